"""mmtests' raw logs: a directory work/log with its runs, or one run's directory.

Each file is the benchmark's own output, and read as such if iolab recognises the format; the times of tests come from
tests-timestamp. A run's name (usually the kernel) is the setting, an iteration of it a round. Layouts: RUN/iter-N/...
as today, and TEST-RUN beside tests-timestamp-RUN as of old.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from iolab.base.errors import InputError
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results
from iolab.files.importer.source import Source
from iolab.files.importer.written_number import number

FILES_MAX = 5000
TIMESTAMP = "tests-timestamp"
DEPTH_MAX = 8

_ITERATION = re.compile(r"iter-(?P<number>\d{1,6})")
_TIME = re.compile(
    r"time :: (?P<test>\S{1,200}+) (?P<user>\d[\d.]*+) ?user (?P<system>\d[\d.]*+) ?system "
    r"(?P<elapsed>\d[\d.]*+) ?elapsed"
)


def is_log_directory(path: Path) -> bool:
    """Whether a run of mmtests, or several, lie in it: their tests-timestamp does."""
    return any(next(path.glob(pattern), None) for pattern in (f"{place}{TIMESTAMP}*" for place in ("", "*/", "*/*/")))


def sources_in(path: Path) -> list[Source]:
    """The files of all runs in the directory, in order of name; iterations by their numbers. Each is called as its run.

    InputError for more than 5000 files.
    """
    runs = [file.name.removeprefix(f"{TIMESTAMP}-") for file in path.glob(f"{TIMESTAMP}-*")]
    found: list[Source] = []
    for file in _files(path):
        if len(found) == FILES_MAX:
            raise InputError(f"more than {FILES_MAX} files", where=str(path), remedy="name one run's directory in it")
        found.append(Source(file, label=_run_of(path, file, runs)))
    return sorted(found, key=lambda source: _order(source.path))


def _files(path: Path) -> Iterator[Path]:
    for directory, below, names in os.walk(path):
        here = Path(directory)
        if len(here.relative_to(path).parts) >= DEPTH_MAX:
            below.clear()
        for name in names:
            file = here / name
            if file.is_file() and not file.is_symlink():
                yield file


def _run_of(path: Path, file: Path, runs: list[str]) -> str:
    """The run's name: the directory above iter-N; the ending of an old layout's names; else the directory's own."""
    parts = file.relative_to(path.parent).parts
    for above, part in pairwise(parts):
        if _ITERATION.fullmatch(part):
            return above
    for name in reversed(parts[1:]):
        for run in sorted(runs, key=len, reverse=True):
            if name.endswith(f"-{run}"):
                return run
    return parts[1] if len(parts) > 2 and (path / parts[1] / TIMESTAMP).exists() else parts[0]


def _order(file: Path) -> tuple[tuple[int, str], ...]:
    """By the parts of the path, iter-10 after iter-9."""
    found = [(_ITERATION.fullmatch(part), part) for part in file.parts]
    return tuple((int(matched["number"]), "") if matched else (0, part) for matched, part in found)


def _parse(source: Source, results: Results) -> None:
    label = source.label or source.path.name.removeprefix(TIMESTAMP).lstrip("-") or source.path.parent.name
    for line in source.lines(results.problem):
        if found := _TIME.match(line.text.strip()):
            row = results.table(line.number).row(label, found["test"])
            for metric, name in (("elapsed_s", "elapsed"), ("cpu_user_s", "user"), ("cpu_system_s", "system")):
                row.add(metric, number(found[name]), absent="no number")
            results.workloads.setdefault(found["test"], {"kind": "mmtests"})


FORMAT = Format(
    name="mmtests-log",
    help="mmtests' raw logs: times of tests; a directory work/log holds the benchmarks' own files too",
    recognises=lambda source: source.has_line(_TIME),
    parse=_parse,
    words=("test begin ::", "time ::", "test end ::"),
)
