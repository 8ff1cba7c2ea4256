"""Which files are one trace, and what the columns of a table are."""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from iolab.base.errors import InputError, unknown

STDIN = Path("-")
SPEAK_AFTER_S = 3.0
LOOK_EVERY_S = 0.2
T = TypeVar("T")
GAPS = ("filtered", "lost")
_PER_CPU = re.compile(r"(.*\.blktrace)\.(\d+)")
_UNITS = {"ns": 1, "100ns": 100, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_SIZES = {"B": 1, "bytes": 1, "sectors": 512, "KiB": 1024, "pages": 4096}
_TIMES = ("time", "latency")
_PLACES = ("offset", "size")
_PLAIN = ("operation", "device", "pid", "process", "-")
_SEPARATORS = {"tab": "\t", "blank": " ", "comma": ",", "semicolon": ";"}


@dataclass(frozen=True)
class Trace:
    """Files of one trace."""

    name: str
    paths: tuple[Path, ...]
    table: dict[str, Any] | None = None
    partitions: tuple[tuple[str, str], ...] = field(default=())
    filtered: bool | None = None
    """Whether a text that leaves out numbers of events was filtered; None: by the text itself."""

    @property
    def spec(self) -> dict[str, Any]:
        """As `_native.TraceJob` and `_native.TraceRows` take it."""
        return {
            "paths": [str(path) for path in self.paths],
            "table": self.table,
            "partitions": [list(pair) for pair in self.partitions],
            "filtered": self.filtered,
        }


def trace_of(
    paths: Sequence[Path], columns: str | None = None, separator: str | None = None, gaps: str | None = None
) -> Trace:
    """The trace that these files are: of blktrace, one file or the name before `.blktrace.CPU` stands for all CPUs.

    Args:
        columns: of a table, what each column holds: `time:us,device,operation,offset:B,size:B`; a `-` is left out.
        separator: between them: a character, or tab, blank, comma, semicolon.
        gaps: `filtered` or `lost`: what numbers are that a text of blkparse leaves out; None: by the text itself.

    Raises:
        InputError: there is no such file, or the columns are none.
    """
    files = [file for path in paths for file in _files(path)]
    table = None if columns is None else _table(columns, separator)
    if separator is not None and columns is None:
        raise InputError("separates the columns of a table", where="--separator", remedy="give --columns too")
    if gaps not in (None, *GAPS):
        raise InputError(unknown("kind of gaps", gaps, GAPS), where="--gaps")
    filtered = None if gaps is None else gaps == "filtered"
    return Trace(" ".join(str(path) for path in paths), tuple(dict.fromkeys(files)), table, filtered=filtered)


def attended(trace: Trace, call: Callable[[], T]) -> T:
    """What a call that reads the trace returns. A pipe may say nothing for as long as it likes: after a while that is
    said, and Ctrl-C ends the wait."""
    pipes = [path for path in trace.paths if not path.is_file()]
    if not pipes:
        return call()
    answers: list[T | BaseException] = []
    # Left behind by Ctrl-C, when no signal reaches it.
    thread = threading.Thread(target=_answer, args=(call, answers), daemon=True)
    thread.start()
    thread.join(SPEAK_AFTER_S)
    if thread.is_alive():
        names = ", ".join("standard input" if path == STDIN else str(path) for path in pipes)
        warnings.warn(f"{names}: waiting for data; Ctrl-C ends it", stacklevel=2)
    while thread.is_alive():
        thread.join(LOOK_EVERY_S)
    if isinstance(answers[0], BaseException):
        raise answers[0]
    return answers[0]


def _answer(call: Callable[[], T], answers: list[T | BaseException]) -> None:
    try:
        answers.append(call())
    except BaseException as error:
        answers.append(error)


def check_regular(paths: Sequence[Path]) -> None:
    """InputError for a pipe, because a trace is read more than once here."""
    for path in paths:
        if path.exists() and not path.is_file():
            raise InputError(
                "is no regular file, and a trace that is replayed is read more than once",
                where=str(path),
                remedy="write it to a file first",
            )


def _files(path: Path) -> list[Path]:
    if path == STDIN:
        return [path]
    if found := _PER_CPU.fullmatch(str(path)):
        return _set(found[1]) or [path]
    if not path.exists():
        if of_cpus := _set(f"{path}.blktrace"):
            return of_cpus
        raise InputError(
            "no such file", where=str(path), remedy="name a trace; of blktrace, the name before .blktrace.0"
        )
    if path.is_dir():
        raise InputError("is a directory", where=str(path), remedy="name the files of one trace")
    return [path]


def _set(stem: str) -> list[Path]:
    base = Path(stem)
    parent = base.parent
    numbered = [
        (int(found[2]), file)
        for file in (parent.iterdir() if parent.is_dir() else ())
        if (found := _PER_CPU.fullmatch(str(file))) and Path(found[1]) == base
    ]
    return [file for _, file in sorted(numbered)]


def _table(columns: str, separator: str | None) -> dict[str, Any]:
    parsed = [_column(column.strip()) for column in columns.split(",")]
    named = [name for name, _ in parsed]
    for needed in ("time", "offset", "size"):
        if needed not in named:
            raise InputError(f"a table of I/Os needs the column {needed}", where="--columns", remedy=_EXAMPLE)
    between = _SEPARATORS.get(separator or ",", separator or ",")
    if len(between) != 1 or not between.isascii():
        raise InputError(f"{separator}: no separator", where="--separator", remedy="one character, or tab or blank")
    return {"separator": between, "columns": parsed}


_EXAMPLE = "for instance --columns time:us,device,operation,offset:B,size:B"


def _column(column: str) -> tuple[str, int]:
    name, _, unit = column.partition(":")
    if name in _PLAIN:
        return name, 1
    units = _UNITS if name in _TIMES else _SIZES if name in _PLACES else None
    if units is None:
        raise InputError(unknown("column", name, [*_TIMES, *_PLACES, *_PLAIN]), where="--columns")
    if unit not in units:
        raise InputError(unknown(f"unit of {name}", unit, units), where="--columns", remedy=_EXAMPLE)
    return name, units[unit]
