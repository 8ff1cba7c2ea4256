"""A job file, read and checked: its jobs with their options as values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from iolab.base.errors import nearest
from iolab.base.option import shown
from iolab.base.plain_text import is_one_line
from iolab.base.toml import TomlTable
from iolab.domain.workload.fio_file import ini, value
from iolab.domain.workload.fio_file.ini import USE_FIO, Entry, JobFileProblems, Section
from iolab.domain.workload.fio_file.option import (
    FILE_ENGINES,
    FORBIDDEN,
    FORBIDDEN_TO_FIO,
    OPTIONS,
    WITHOUT_EFFECT,
    known,
)

Runner = Literal["iolab", "fio"]


@dataclass(frozen=True)
class FioJob:
    """One job section. Options by fio's own names, whatever alias was written."""

    name: str
    line: int
    values: Mapping[str, Any]
    """As read, of the options that iolab has."""
    texts: Mapping[str, str]
    """As written, in file order."""
    lines: Mapping[str, int | None]

    def __getitem__(self, option: str) -> Any:
        """The value, or the option's default."""
        return self.values.get(option, OPTIONS[option].default)

    def has(self, option: str) -> bool:
        """Whether the job, or the [global] section above it, gives the option."""
        return option in self.texts

    def line_of(self, option: str) -> int | None:
        """The line on which the option is given, else that of the job's section; None: not from the file."""
        return self.lines.get(option, self.line)


@dataclass(frozen=True)
class JobFile:
    """A job file read, with values converted and checked one by one."""

    jobs: Sequence[FioJob]

    @property
    def stages(self) -> list[list[FioJob]]:
        """Jobs that run together; each stage waits for the one before."""
        stages: list[list[FioJob]] = []
        for job in self.jobs:
            if not stages or job["stonewall"]:
                stages.append([])
            stages[-1].append(job)
        return stages

    @property
    def accepted(self) -> list[str]:
        """The options in it that have no effect on iolab's engine."""
        given = {name: None for job in self.jobs for name in job.texts}
        return [name for name in given if name in OPTIONS and OPTIONS[name].state == "accepted"]


def read(
    text: str,
    problems: JobFileProblems,
    *,
    runner: Runner = "iolab",
    environment: Mapping[str, str],
    changes: Mapping[str, str] | None = None,
) -> JobFile:
    """Everything that is wrong is noted in `problems`; what is returned then is incomplete.

    Args:
        runner: who is to run it; fio runs options that iolab only hands on.
        environment: what `${NAME}` stands for.
        changes: options of every job, in place of what the file says.
    """
    sections = ini.parse(text, environment, problems)
    if not sections and not problems.lines():
        problems.add(None, 'no job; expected a section such as "[job]" with options below it')
    ours = [Entry(name, changed, None) for name, changed in (changes or {}).items()]
    suggested: dict[str, str | None] = {}
    return JobFile([_job(section, ours, problems, runner, suggested) for section in sections])


def is_job_file(text: str) -> bool:
    """Whether a text is a job file and not TOML: sections, and every option in them is one of fio's."""
    problems = JobFileProblems("")
    sections = ini.parse(text, _AnyVariable(), problems)
    entries = [entry for section in sections for entry in section.entries]
    return bool(entries) and not problems.lines() and all(entry.name in known().names for entry in entries)


class _AnyVariable(dict[str, str]):
    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "1"


def _job(
    section: Section, changes: list[Entry], problems: JobFileProblems, runner: Runner, suggested: dict[str, str | None]
) -> FioJob:
    texts: dict[str, str] = {}
    lines: dict[str, int | None] = {}
    for entry in [*section.entries, *changes]:
        name = known().names.get(entry.name, entry.name)
        if WITHOUT_EFFECT.get(name) == entry.text:
            continue
        if fault := _fault(name, entry, runner, suggested) or _not_a_line(entry.text) or _reaches_out(name, entry.text):
            problems.add(entry.line, f"{entry.name}: {fault}")
            continue
        texts.pop(name, None)  # the later entry counts, and stands where it was written
        texts[name] = entry.text
        lines[name] = entry.line
    values = _values(texts, lines, problems, runner)
    return FioJob(values.get("name", section.name), section.line, values, texts, lines)


SUGGESTED_MAX = 50
"""So many unknown options get a suggestion, which takes milliseconds to find."""


def _fault(name: str, entry: Entry, runner: Runner, suggested: dict[str, str | None]) -> str | None:
    """Why the option can't be taken."""
    forbidden = FORBIDDEN | (FORBIDDEN_TO_FIO if runner == "fio" else {})
    for one in (name, f"{name}={entry.text}"):
        if one in forbidden:
            return f"iolab does not let a job file do this: {forbidden[one]}"
    if name in OPTIONS:
        return None
    if runner == "fio":
        return None  # the fio that runs the job checks its options before anything runs
    if name in known().names:
        return f"fio has this option, iolab does not; leave it out, or {USE_FIO}"
    close = _close(name, suggested)
    return f"neither {known().version} nor iolab has this option" + (f"; did you mean {close}?" if close else "")


def _close(name: str, suggested: dict[str, str | None]) -> str | None:
    """The option that is meant, perhaps; found once for each of the first unknown names."""
    if name not in suggested:
        looked_for = len(suggested) < SUGGESTED_MAX
        suggested[name] = (nearest(name, OPTIONS) or nearest(name, known().names)) if looked_for else None
    return suggested[name]


def _values(
    texts: Mapping[str, str], lines: Mapping[str, int | None], problems: JobFileProblems, runner: Runner
) -> TomlTable:
    values: TomlTable = {}
    kb_base = value.KB_BASE
    for name in sorted(texts, key=lambda name: name != "kb_base"):
        try:
            if name in OPTIONS:
                values[name] = OPTIONS[name].read(texts[name], kb_base)
        except ValueError as error:
            if not _left_to_fio(name, texts[name], runner):
                problems.add(lines[name], f"{name}: {error}")
        if name == "kb_base":
            kb_base = values.get(name, kb_base)
    if kb_base not in (1000, 1024):
        problems.add(lines["kb_base"], f"kb_base: {kb_base} given; expected 1000 or 1024")
    return values


def _left_to_fio(name: str, text: str, runner: Runner) -> bool:
    """Values that only fio has: words of its own, and numbers as it alone writes them. What states where and how much
    stays iolab's to know."""
    if runner == "iolab" or name in _PLACES:
        return False
    if name == "ioengine":
        return text in FILE_ENGINES
    return name in _WORDS or _FIOS_NUMBER.fullmatch(text) is not None


_PLACES = frozenset(
    {"rw", "size", "io_size", "filesize", "offset", "offset_increment", "numjobs", "nrfiles", "filename"}
)
"""Options whose meaning iolab needs whatever runs the job: whether it writes, where and how much."""

_WORDS = frozenset(
    {"bs", "bsrange", "bssplit", "ba", "file_service_type", "rate_process", "cpus_allowed_policy", "fallocate"}
    | {"random_distribution", "verify", "verify_pattern", "startdelay", "latency_percentile", "steadystate"}
)
"""Options of which fio has words or forms that iolab has not; every other option is a number to both."""

_FIOS_NUMBER = re.compile(r"\([\w .+*/()%-]+\)|\d+(:\d+)+")
"""An expression in parentheses; a time with colons."""


def _not_a_line(text: str) -> str | None:
    """fio would take what follows the end of a line for another option, which nobody has checked."""
    return None if is_one_line(text) else f"{shown(text)} given; expected one line without control characters"


def _reaches_out(name: str, text: str) -> str | None:
    if name == "mem" and ":" in text:
        return f'"{text}": iolab does not let a job file name files outside of the target'
    return None
