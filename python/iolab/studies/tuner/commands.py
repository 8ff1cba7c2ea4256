"""A setting as others take it: the lines of a setting's table, shell commands, a udev rule, a profile of tuned.

What a control writes is its own business (`Control.on_guest`), the same files as in a guest machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iolab.base.option import shown
from iolab.base.toml import write
from iolab.domain.control import CONTROLS
from iolab.domain.trial import DeviceTarget, Target
from iolab.domain.tune.space import nested

DEVICE = "DEVICE"
"""Stands for the user's disk."""
SYSCTL = "/proc/sys/"


@dataclass(frozen=True)
class Commands:
    """`toml`: a setting's table; `shell`: lines for this boot; `udev`: a rule for every boot; `sysctl`: lines of a file
    in /etc/sysctl.d; `tuned`: a profile; `by_hand`: what none of them can set."""

    toml: str
    shell: tuple[str, ...]
    udev: str | None
    sysctl: tuple[str, ...]
    tuned: str | None
    by_hand: tuple[str, ...]


def device_of(target: Target) -> str:
    """The name of the disk that the target names, or a word in its place."""
    if isinstance(target, DeviceTarget) and len(target.paths) == 1:
        return target.paths[0].removeprefix("/dev/")
    return DEVICE


def commands(name: str, values: Mapping[str, Any], device: str) -> Commands:
    """The commands that bring a machine to the values, by dotted key of a setting."""
    table = nested(values)
    files: list[tuple[str, str]] = []
    by_hand: list[str] = []
    for key, control in CONTROLS.items():
        if key not in table:
            continue
        written = control.on_guest(control.validate(table[key])) if control.reach else None
        if written:
            files += written
        else:
            by_hand.append(f"{key} = {shown(table[key])}")
    by_hand += [f"{key} = {shown(value)}" for key, value in table.items() if key not in CONTROLS]
    places = {"{queue}": f"/sys/block/{device}/queue", "{disk}": f"/sys/block/{device}"}
    paths = [(_filled(path, places), value) for path, value in files]
    of_device = [(path.removeprefix(f"/sys/block/{device}/"), value) for path, value in paths if SYSCTL not in path]
    sysctl = [(path.removeprefix(SYSCTL).replace("/", "."), value) for path, value in paths if path.startswith(SYSCTL)]
    return Commands(
        toml=write({"settings": {name: table}}),
        shell=tuple(f"echo {value} > {path}" for path, value in paths),
        udev=_udev(of_device, device) if of_device else None,
        sysctl=tuple(f"{key} = {value}" for key, value in sysctl),
        tuned=_tuned(name, of_device, sysctl, device) if paths else None,
        by_hand=tuple(by_hand),
    )


def _filled(path: str, places: Mapping[str, str]) -> str:
    for word, place in places.items():
        path = path.replace(word, place)
    return path


def _udev(files: list[tuple[str, str]], device: str) -> str:
    """One rule: assignments are made in their order, the scheduler before its tunables."""
    matched = ['ACTION=="add|change"', 'SUBSYSTEM=="block"', f'KERNEL=="{device}"']
    return ", ".join([*matched, *(f'ATTR{{{path}}}="{value}"' for path, value in files)])


def _tuned(name: str, files: list[tuple[str, str]], sysctl: list[tuple[str, str]], device: str) -> str:
    lines = ["[main]", f"summary=iolab tune: {name}"]
    if sysctl:
        lines += ["", "[sysctl]", *(f"{key}={value}" for key, value in sysctl)]
    if files:
        lines += ["", "[sysfs]", *(f"/sys/block/{device}/{path}={value}" for path, value in files)]
    return "\n".join(lines) + "\n"
