"""Files with debug information (DWARF) of a kernel and its modules: where an instruction was written, by binutils."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from iolab.base.errors import MachineError
from iolab.machines.guest.kernel_paths import files_below
from iolab.machines.guest.limit import Deadline
from iolab.machines.system import command

_UNKNOWN = "??"
_SYMBOL = re.compile(r"^([0-9a-f]{16}) .{6}F (\S+)\t[0-9a-f]+ (?:\.hidden )?(\S+)$", re.MULTILINE)
"""A function in objdump's output for a module: its place in its section, the section, its name."""


@dataclass(frozen=True)
class SourceLine:
    """Where an instruction was written."""

    inlined: str | None
    """The function, if it was inlined into another; None: it was not, or the file has no such information."""
    line: str | None
    """`FILE:LINE`; None: the file does not have it."""


NOWHERE = SourceLine(None, None)


@dataclass(frozen=True)
class Source:
    """The debug information of one kernel."""

    image: Path
    """Its `vmlinux`."""
    directory: Path | None = None
    """Below it lie its modules' files, as `NAME.ko` or `NAME.ko.debug`; None: modules have none."""
    deadline: Deadline | None = None

    def places(self, addresses: Sequence[int]) -> list[SourceLine]:
        """The source line of each address in the kernel's image.

        Raises:
            MachineError: binutils is not installed, or does not read the file in time.
        """
        return self._places(self.image, addresses)

    def places_in(self, module: str, addresses: Sequence[tuple[int, int, str]]) -> list[SourceLine]:
        """The same of a module, which the kernel put where it had room. Its functions show where each of its sections
        lies.

        Args:
            addresses: each with the start and the name of the function that it lies in.
        """
        file = self._modules.get(module)
        if file is None:
            return [NOWHERE] * len(addresses)
        functions = {
            name: (section, int(at, 16))
            for at, section, name in _SYMBOL.findall(self._run("objdump", "--syms", file=file))
        }
        bases = _bases(functions, {(start, name) for _, start, name in addresses})
        found = [NOWHERE] * len(addresses)
        for section, base in bases.items():
            wanted = [
                at for at, (*_, name) in enumerate(addresses) if name in functions and functions[name][0] == section
            ]
            offsets = [addresses[at][0] - base for at in wanted]
            for at, place in zip(wanted, self._places(file, offsets, "--section", section), strict=True):
                found[at] = place
        return found

    def _places(self, file: Path, addresses: Sequence[int], *options: str) -> list[SourceLine]:
        if not addresses:
            return []
        asked = "".join(f"{address:x}\n" for address in addresses)
        options = ("--addresses", "--inlines", "--functions", *options, "--exe")
        found = _parsed(self._run("addr2line", *options, file=file, given=asked))
        if len(found) != len(addresses):
            raise MachineError("addr2line does not answer", where=str(file))
        return found

    def _run(self, tool: str, *options: str, file: Path, given: str | None = None) -> str:
        """What a program of binutils prints of the file."""
        limit_s = command.TIME_LIMIT_S if self.deadline is None else self.deadline.left_s
        return command.run(
            [tool, *options, str(file)],
            package="binutils",
            where="probe instructions",
            given=given,
            limit_s=min(limit_s, command.TIME_LIMIT_S),
        )

    @cached_property
    def _modules(self) -> dict[str, Path]:
        if self.directory is None:
            return {}
        files = sorted(path for path in files_below(self.directory) if path.name.endswith((".ko", ".ko.debug")))
        return {path.name.partition(".ko")[0].replace("-", "_"): path for path in files}


def at(path: Path, deadline: Deadline | None = None) -> Source | None:
    """The debug information of a `vmlinux`, or of what a package or a build left in a directory; None without one."""
    if not path.is_dir():
        return Source(path, deadline=deadline) if path.is_file() else None
    named = (found for found in files_below(path) if found.name.startswith("vmlinux"))
    images = sorted(found for found in named if found.is_file() and found.suffix not in (".o", ".lds"))
    return Source(images[0], path, deadline) if images else None


def _bases(functions: Mapping[str, tuple[str, int]], loaded: set[tuple[int, str]]) -> dict[str, int]:
    """Where each section lies, as most of its functions have it: a name may stand for several functions."""
    votes: dict[str, Counter[int]] = {}
    for start, name in loaded:
        if name in functions:
            section, at = functions[name]
            votes.setdefault(section, Counter())[start - at] += 1
    return {section: count.most_common(1)[0][0] for section, count in votes.items()}


def _parsed(text: str) -> list[SourceLine]:
    """After each address a pair of lines for each function that it lies in, the innermost first."""
    found: list[SourceLine] = []
    frames: list[tuple[str, str]] = []
    lines = iter(text.splitlines())
    for line in lines:
        if not line.startswith("0x"):
            frames.append((line, next(lines, _UNKNOWN)))
            continue
        if frames:
            found.append(_place(frames))
        frames = []
    return [*found, _place(frames)] if frames else found


def _place(frames: Sequence[tuple[str, str]]) -> SourceLine:
    function, place = frames[0]
    inlined = function if len(frames) > 1 and function != _UNKNOWN else None
    return SourceLine(inlined, None if place.startswith(_UNKNOWN) else _normal(place))


def _normal(place: str) -> str:
    """Without what addr2line adds, and without detours in the path."""
    path, _, number = place.partition(" ")[0].rpartition(":")
    return f"{os.path.normpath(path)}:{number}"
