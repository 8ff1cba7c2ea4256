"""The dialect of fio job files: sections, options with or without a value, comments, variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iolab.base.errors import InputError, unknown
from iolab.base.option import shown
from iolab.base.plain_text import is_one_line

USE_FIO = "let fio run it: --engine fio"
_FIO_INSTEAD = re.compile(rf"(, or|;) {USE_FIO}.*")


class JobFileProblems:
    """What is wrong with a job file: every problem at once. `raise_any` raises them in file order as one InputError."""

    def __init__(self, name: str, *, fio_can_run: bool = True) -> None:
        self.name = name
        """What errors call the file."""
        self.fio_can_run = fio_can_run
        """Whether the installed fio can run the file instead; on a simulated machine or in a guest it can't."""
        self._found: dict[tuple[int | None, str], None] = {}

    def add(self, line: int | None, what: str) -> None:
        """`line` is None for what does not stand in the file. The same problem of several jobs is one problem."""
        self._found[line, what if self.fio_can_run else _FIO_INSTEAD.sub("", what)] = None

    def where(self, line: int | None) -> str:
        """A place in the file for an error line: `job.fio:12`, or the file alone."""
        return self.name if line is None else f"{self.name}:{line}"

    def lines(self) -> list[str]:
        """Every problem as `job.fio:12: what`, in file order; first those that stand on no line."""
        in_file_order = sorted(self._found, key=lambda problem: problem[0] or 0)
        return [f"{self.where(line)}: {what}" for line, what in in_file_order]

    def raise_any(self) -> None:
        """Raises InputError with a line per problem; nothing if there is none."""
        if self._found:
            raise InputError(self.lines())


ENTRIES_MAX = 1_000_000


@dataclass(frozen=True)
class Entry:
    """One option as written; without `=`, the value is empty."""

    name: str
    text: str
    line: int | None
    """None: not from the file."""


@dataclass(frozen=True)
class Section:
    """One job: what the [global] sections above it say, then its own entries. Later entries win."""

    name: str
    line: int
    entries: list[Entry]


def parse(text: str, environment: Mapping[str, str], problems: JobFileProblems) -> list[Section]:
    """The job sections in file order; what can't be read is noted in `problems` and left out."""
    sections: list[Section] = []
    shared: list[Entry] = []
    current: list[Entry] | None = None
    entries = 0
    if not _HEADER.search(text) and (number := _first_line(text)) is not None:
        # Nothing of it is quoted: a file without a section is no job file, but somebody's.
        problems.add(number, 'there is no section in this file; expected one such as "[job]" above all options')
        return sections
    for number, written in enumerate(text.splitlines(), start=1):
        line = re.split(r"[;#]", written, maxsplit=1)[0].strip()
        if not line:
            continue
        if line.startswith("["):
            current = _open_section(line, number, shared, sections, problems)
            entries += len(current)
            if entries > ENTRIES_MAX:
                what = f"more than {ENTRIES_MAX} options in all, counting those of [global] in every job"
                problems.add(None, f"{what}; write fewer jobs, or numjobs")
                return sections
        elif current is None:
            problems.add(number, f'{_shown(line)} stands above the first section; expected a section such as "[job]"')
        elif (entry := _entry(line, number, environment, problems)) is not None:
            current.append(entry)
    return sections


def only(text: str, names: Sequence[str], where: str) -> str:
    """The text with the sections of these names and [global] alone, every line where it was, as fio's --section.
    InputError for a name that no section has."""
    kept: list[str] = []
    present: dict[str, None] = {}
    is_kept = True
    for line in text.splitlines():
        if found := _NAME.match(line):
            present[found["name"]] = None
            is_kept = found["name"] in ("global", *names)
        kept.append(line if is_kept else "")
    for name in names:
        if name not in present:
            raise InputError(f"{name}: {unknown('section', name, present)}", where=f"{where}, --section")
    return "\n".join(kept) + "\n"


_NAME = re.compile(r"\s*+\[(?P<name>[^\]]*+)\]")
_HEADER = re.compile(r"^\s*\[", re.MULTILINE)


def _first_line(text: str) -> int | None:
    """The first that is not empty."""
    lines = enumerate(text.splitlines(), start=1)
    return next((number for number, line in lines if re.split(r"[;#]", line, maxsplit=1)[0].strip()), None)


def filled(text: str, environment: Mapping[str, str]) -> str:
    """With the values of its variables, `${NAME}`; those that the environment has not stay."""
    return _VARIABLE.sub(lambda found: environment[found[1]] if found[1] in environment else found[0], text)


_VARIABLE = re.compile(r"\$\{([^}]*)\}")


def _open_section(
    line: str, number: int, shared: list[Entry], sections: list[Section], problems: JobFileProblems
) -> list[Entry]:
    """Where the entries below the header belong: every [global] adds to the ones before."""
    shared[:] = _last_of_each_name(shared)
    name = line[1:].removesuffix("]").strip()
    if not line.endswith("]") or not name or not is_one_line(name):
        problems.add(number, f'{_shown(line)} is no section; expected a name in brackets such as "[job]"')
    if name == "global":
        return shared
    # A name in [global] names no job.
    section = Section(name, number, [entry for entry in shared if entry.name != "name"])
    sections.append(section)
    return section.entries


def _last_of_each_name(entries: list[Entry]) -> list[Entry]:
    """What counts, and where it stands."""
    last: dict[str, Entry] = {}
    for entry in entries:
        last.pop(entry.name, None)
        last[entry.name] = entry
    return list(last.values())


def _entry(line: str, number: int, environment: Mapping[str, str], problems: JobFileProblems) -> Entry | None:
    name, _, value = (part.strip() for part in line.partition("="))
    if re.match(r"include\s", line):
        problems.add(number, "include: not supported; put the lines of the included file here")
        return None
    if not re.fullmatch(r"[\w-]+", name):
        problems.add(number, f"{_shown(line)} is no option; expected name=value")
        return None
    missing = [variable for variable in _VARIABLE.findall(value) if variable not in environment]
    if missing:
        problems.add(number, f"{name}: the environment has no {missing[0]}; run with {missing[0]}=... iolab run ...")
        return None
    return Entry(name, filled(value, environment), number)


def _shown(line: str) -> str:
    return shown(line if len(line) <= 60 else f"{line[:57]}...")
