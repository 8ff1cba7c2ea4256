"""Where machine files lie: those that come with iolab, those of a user, and the copies that a run keeps."""

from __future__ import annotations

from pathlib import Path

from iolab.base import data
from iolab.base.bounded_file import is_file
from iolab.base.errors import InputError, unknown
from iolab.domain.machine import MODEL_PREFIX

DEVICES = "devices"
MOUNTS = "mounts"
_PARTS = {DEVICES: "device", MOUNTS: "mount"}
"""Folders of what machines name, and what each holds."""


def names() -> list[str]:
    """The names of the machines that come with iolab."""
    return data.names(data.MACHINES)


def devices() -> dict[str, str]:
    """The device files that come with iolab, by name: their texts."""
    folder = data.MACHINES / DEVICES
    return {name: (folder / f"{name}.toml").read_text() for name in data.names(folder)}


def machine_path(name: str, directory: Path) -> Path:
    """The file of `model:NAME`: one of iolab's, or a path that ends in .toml and counts from `directory`.

    Raises:
        InputError: there is none of that name.
    """
    if name.endswith(".toml"):
        return directory / name
    if name not in names():
        what = f'"{MODEL_PREFIX}{name}": {unknown("machine", name, names())}'
        raise InputError(f"{what}, or name a file, {MODEL_PREFIX}PATH.toml")
    return data.MACHINES / f"{name}.toml"


def part_path(kind: str, name: str, folder: Path) -> Path:
    """The file of a device or a mount: in the folder given, that beside the machine's, else one of iolab's.

    Raises:
        InputError: there is none of that name.
    """
    folders = [folder, data.MACHINES / kind]
    found = next((path for place in folders if is_file(path := place / f"{name}.toml")), None)
    if found is None:
        known = dict.fromkeys(stem for place in folders for stem in data.stems(place))
        raise InputError(f'"{name}": {unknown(_PARTS[kind], name, known)}')
    return found


def copy_of(path: Path) -> str:
    """The name under which a run keeps a copy of a machine's, a device's or a mount's file."""
    folder = [path.parent.name] if path.parent.name in _PARTS else []
    return "%2F".join(["machines", *folder, path.name])
