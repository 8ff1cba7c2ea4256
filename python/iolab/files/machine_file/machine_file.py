"""Reads a machine's file with those of the devices and mounts that it names, and keeps the line of each key of the
whole stands."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from iolab.base.bounded_file import EXPERIMENT_BYTES_MAX, is_file, read_bounded
from iolab.base.errors import InputError
from iolab.base.former_names import renewed
from iolab.base.toml import Document, KeyPath, parse
from iolab.domain import native_types as native
from iolab.domain.machine import MODEL_PREFIX
from iolab.domain.simulated_machine import InvalidMachine, Table
from iolab.files.machine_file.catalogue import DEVICES, MOUNTS, copy_of, machine_path, part_path
from iolab.files.machine_file.likeness import LIKE, completed
from iolab.files.machine_file.tables import as_written, expanded_drives, mounts_with_files

RENAMED_KEYS: dict[tuple[str, ...], str] = {
    ("cpus", "topology", "cells"): "numa_nodes",
    ("cpus", "topology", "sockets_per_cell"): "sockets_per_node",
    ("cpus", "interrupts", "latency_other_cell_ns"): "latency_other_node_ns",
    ("drives", "takes_one_ahead"): "peek",
    ("completion", "form"): "variant",
    ("skew", "zipf_seed"): "scatter_seed",
}
RENAMED_VALUES: dict[tuple[str, ...], dict[str, str]] = {
    ("cpus", "scheduling", "migrates_within"): {"cell": "node"},
    ("completion", "shares_cache"): {"cell": "node"},
}
"""Keys and values of machine files that were called something else in the version before."""


@dataclass(frozen=True)
class MachineFile:
    """Devices and mounts stand in the table in place of their names, and each drive by itself if the file counts equal
    ones."""

    name: str
    table: native.MachineFile
    document: Document
    device: Callable[[str], Document]
    """The file of a device that a setting names. Raises InputError."""
    copies: dict[str, str]
    """What the machine was read from, as a run keeps it: name of the copy -> text."""
    _parts: dict[KeyPath, Document] = field(default_factory=dict)
    """Path of a device or a mount in the table -> the file that it came from."""
    _written_in: list[int] = field(default_factory=list)
    """By drive: the number of its [[drives]] in the file."""

    @property
    def drives(self) -> int:
        """How many drives the machine has, counted ones each by itself."""
        return len(self.table["drives"])

    @property
    def places(self) -> int:
        """Where files can lie: drives first, then mounts."""
        return self.drives + len(self.table.get("mounts", ()))

    def where(self, key: KeyPath) -> str:
        """`machines/NAME.toml:12`, or the line of the device's or mount's own file."""
        written = as_written(key, self._written_in)
        for place, document in self._parts.items():
            if key[: len(place)] == place and len(key) > len(place) and written not in self.document.lines:
                return _where(document, key[len(place) :])
        return _where(self.document, written)


def read(machine: str, directory: Path, copies: Path | None = None) -> MachineFile:
    """The file of `model:NAME`.

    Args:
        directory: from which a path counts. copies: the directory of the files that a run was started with; files there
        take precedence.

    Raises:
        InputError: no such machine, not TOML, or no drives; names file and line.
    """
    reader = _Reader(copies)
    path = reader.machine(machine.removeprefix(MODEL_PREFIX), directory)
    document = reader.whole_machine(path)
    table = deepcopy(document.values)

    def part(folder: str, name: str, key: KeyPath) -> Document:
        try:
            return reader.part(folder, name, path)
        except InputError as error:
            if error.where is not None:
                raise
            raise InputError(f"{'.'.join(key)}: {error.what}", where=_where(document, key)) from None

    parts: dict[KeyPath, Document] = {}
    try:
        table["drives"], written_in = expanded_drives(_drives(document))
        if "mounts" in table:
            table["mounts"], parts = mounts_with_files(table["mounts"], lambda name, key: part(MOUNTS, name, key))
    except InvalidMachine as error:
        raise InputError(str(error), where=_where(document, error.path)) from None
    for number, drive in enumerate(table["drives"]):
        place = ("drives", str(number), "device")
        if isinstance(name := drive.get("device"), str):
            parts[place] = part(DEVICES, name, as_written(place, written_in))
            drive["device"] = deepcopy(parts[place].values)
    found = MachineFile(
        path.stem,
        cast(native.MachineFile, table),
        document,
        lambda name: reader.part(DEVICES, name, path),
        reader.copies,
        parts,
        written_in,
    )
    try:
        check_values(table)
    except InvalidMachine as error:
        raise InputError(str(error), where=found.where(error.path)) from None
    return found


def device_at(path: Path) -> Document:
    """A device's file by itself, complete with what it takes over from others beside it."""
    return _Reader(None).device(path, path.parent)


def as_filed(name: str) -> Table:
    """The table of one of iolab's machines, devices by name."""
    document = _Reader(None).whole_machine(machine_path(name, Path()))
    _drives(document)
    return document.values


def check_values(value: object, path: KeyPath = ()) -> None:
    """Raises InvalidMachine for what has no place in JSON: dates, infinities."""
    if isinstance(value, dict):
        for key, inner in value.items():
            check_values(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            check_values(inner, (*path, str(number)))
    elif not isinstance(value, str | int | float):
        raise InvalidMachine(".".join(path), f"{value} given; expected a number, a text, true or false")
    elif isinstance(value, float) and not abs(value) < float("inf"):
        raise InvalidMachine(".".join(path), f"{value} given; expected a finite number")


class _Reader:
    """Reads each file once, from the run's copy if there is one, and keeps what it read."""

    def __init__(self, copies: Path | None) -> None:
        self.copies: dict[str, str] = {}
        self._from = copies
        self._documents: dict[Path, Document] = {}

    def machine(self, name: str, directory: Path) -> Path:
        if self._copy(plain := Path(name if name.endswith(".toml") else f"{name}.toml")):
            return plain
        return machine_path(name, directory)

    def part(self, folder: str, name: str, machine: Path) -> Document:
        path = self._part_path(folder, name, machine.parent / folder)
        return self.device(path, machine.parent / folder) if folder == DEVICES else self.document(path)

    def device(self, path: Path, folder: Path) -> Document:
        """Complete, with what it takes over from devices of the folder."""
        return self._whole(path, lambda name: self._part_path(DEVICES, name, folder))

    def whole_machine(self, path: Path) -> Document:
        """The same of a machine's file, with what it takes over from other machines."""
        return self._whole(path, lambda name: self.machine(name, path.parent))

    def _whole(self, path: Path, found: Callable[[str], Path], within: tuple[Path, ...] = ()) -> Document:
        if path in within:
            raise InputError(f"{LIKE}: it is like itself", where=_shown(path))
        return completed(self.document(path), lambda name: self._whole(found(name), found, (*within, path)))

    def _part_path(self, kind: str, name: str, folder: Path) -> Path:
        plain = Path(kind, f"{name}.toml")
        return plain if self._copy(plain) else part_path(kind, name, folder)

    def document(self, path: Path) -> Document:
        if path in self._documents:
            return self._documents[path]
        copy = self._copy(path)
        source, within = (path, None) if copy is None or self._from is None else (copy, self._from.parent)
        try:
            text = read_bounded(source, EXPERIMENT_BYTES_MAX, "a machine's file", within=within).decode()
        except UnicodeDecodeError as error:
            raise InputError(f"not UTF-8 text at byte {error.start}", where=str(source)) from None
        self.copies[copy_of(path)] = text
        self._documents[path] = renewed(parse(text, _shown(source)), RENAMED_KEYS, RENAMED_VALUES)
        return self._documents[path]

    def _copy(self, path: Path) -> Path | None:
        if self._from is None:
            return None
        copy = self._from / copy_of(path)
        return copy if is_file(copy) else None


def _drives(document: Document) -> list[Table]:
    """Enough of the shape to find the devices; all else is the model's to judge. None at all if there are mounts."""
    drives = document.values.get("drives", [])
    has_some = bool(drives or document.values.get("mounts"))
    if not isinstance(drives, list) or not all(isinstance(drive, dict) for drive in drives) or not has_some:
        raise InputError(
            "drives: expected at least one [[drives]] table with a device, or [[mounts]]",
            where=_where(document, ("drives",)),
        )
    return drives


def _where(document: Document, key: KeyPath) -> str:
    return f"{document.name}:{document.line(key)}"


def _shown(path: Path) -> str:
    """Relative to the current directory if that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
