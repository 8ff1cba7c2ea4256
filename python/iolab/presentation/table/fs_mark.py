"""`show --as fs_mark`: the tool's table for each setting and workload, a line per loop; `fs_mark_verbose` adds calls.

As in the tool, Count goes up from loop to loop, Files/sec is the sum of the threads' own rates, App Overhead the sum of
their times outside the timed calls, and times are whole microseconds, cut off; a call that was never made has zeros.
Unlike there, SYNC has its true minimum and maximum, and an fsync counts once for each call, not once for each file.
Values are means over the rounds, minima and maxima those of all rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.domain.summary import values_by_setting
from iolab.domain.workload.fs_mark import FsMarkOptions

if TYPE_CHECKING:
    from iolab.domain.comparison import Numbers
    from iolab.files.store import RunData

CALLS = {
    "create": "CREAT",
    "write": "WRITE",
    "fsync": "FSYNC",
    "system_sync": "SYNC",
    "close": "CLOSE",
    "unlink": "UNLINK",
}
"""Operation -> heading, in the tool's order."""

ABSENT = "-"

Values = dict[str, "Numbers"]
"""Metric key -> its values over the rounds."""


def render(run: RunData, metrics: Sequence[str] = (), *, calls: bool = False) -> str:
    """The tables. InputError if the run has no workload of kind fs_mark, or if metrics are asked for."""
    if metrics:
        raise InputError("the fs_mark table has fixed columns", where="--metric", remedy="leave --metric out")
    values = values_by_setting(run, run.keys)
    parts: list[str] = []
    for setting in run.settings:
        for workload in run.workloads:
            options = run.experiment.workload_under(workload, setting).options
            if isinstance(options, FsMarkOptions):
                found = {
                    key: by_setting.get(setting, []) for (name, key), by_setting in values.items() if name == workload
                }
                parts += [*_heading(setting, workload, options, run), *_table(options, found, calls=calls), ""]
    if not parts:
        raise InputError(
            "the run has no workload of kind fs_mark",
            where=str(run.path),
            remedy="show it as plain, csv, markdown or json",
        )
    return "\n".join(parts)


def _heading(setting: str, workload: str, options: FsMarkOptions, run: RunData) -> Iterator[str]:
    rounds = run.trials["round"].n_unique()
    yield f"*** {setting}"
    yield f"#\t{workload}: {options.threads} thread(s), means over {rounds} round(s)"
    yield f"#\tSync method: {options.sync}"
    yield f"#\tDirectories: {_directories(options)}"
    random = options.random_name_length
    yield f"#\tFile names: {options.name_length} bytes long, {random} of them random"
    yield f"#\tFiles info: size {options.file_size} bytes, written in calls of {options.write_size} bytes"
    yield "#\tApp overhead is time in microseconds outside the timed system calls."


def _directories(options: FsMarkOptions) -> str:
    if options.subdirectories is None:
        return f"{options.directories}, without subdirectories"
    per = options.files_per_subdirectory
    turn = f"{per} files each, in turn" if per else "one after the other by time"
    return f"{options.directories}, each with {options.subdirectories} subdirectories, {turn}"


def _table(options: FsMarkOptions, found: Values, *, calls: bool) -> Iterator[str]:
    headings = [f"{f'{name} (Min/Avg/Max)':>26}" for name in CALLS.values()] if calls else []
    yield " ".join([f"{'FSUse%':>6} {'Count':>12} {'Size':>12} {'Files/sec':>12} {'App Overhead':>16}", *headings])
    count: float | None = 0.0
    for loop in range(1, options.loops + 1):
        prefix = f"loop.{loop}/" if options.loops > 1 else ""
        made = _value(found, f"{prefix}create.ops", fmean)
        count = None if count is None or made is None else count + made
        cells = [
            _whole(_value(found, f"{prefix}filesystem_used_percent", fmean), 6),
            _whole(count, 12),
            f"{options.file_size:>12}",
            _rate(_value(found, f"{prefix}files_per_s", fmean), 12),
            _whole(_value(found, f"{prefix}app_overhead_s", fmean), 16, scale=1e6),
        ]
        yield " ".join([*cells, *(_call(found, f"{prefix}{op}.latency_ns") for op in CALLS if calls)])


def _call(found: Values, key: str) -> str:
    if f"{key}_mean" not in found:
        return " ".join([_whole(0, 8)] * 3)
    summaries: dict[str, Callable[[list[float]], float]] = {"min": min, "mean": fmean, "max": max}
    return " ".join(_whole(_value(found, f"{key}_{name}", of), 8, scale=1e-3) for name, of in summaries.items())


def _value(found: Values, key: str, summary: Callable[[list[float]], float]) -> float | None:
    numbers = [number for number in found.get(key, ()) if number is not None]
    return summary(numbers) if numbers else None


def _whole(value: float | None, width: int, *, scale: float = 1.0) -> str:
    return f"{ABSENT if value is None else int(value * scale):>{width}}"


def _rate(value: float | None, width: int) -> str:
    return f"{ABSENT:>{width}}" if value is None else f"{value:>{width}.1f}"
