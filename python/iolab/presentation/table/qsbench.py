"""`show --as qsbench`: when the first, the second, ... process was done, a column per setting.

By the order in which they finish and not by name: whether memory goes to one process after the other or to all of them
at once shows in the distance from the first to the last. Seconds, means over the rounds; below them why some have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.domain.machine import Model
from iolab.domain.workload.qsbench import QsbenchOptions

if TYPE_CHECKING:
    from iolab.files.store import RunData

MIB = 2**20
ABSENT = "-"
VALUE_WIDTH_MIN = 10


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """A table per workload. InputError if the run has none of kind qsbench, or if metrics are asked for."""
    if metrics:
        raise InputError("the qsbench table has fixed lines", where="--metric", remedy="leave --metric out")
    parts = [_table(run, name, options) for name, options in _workloads(run).items()]
    if not parts:
        raise InputError(
            "the run has no workload of kind qsbench",
            where=str(run.path),
            remedy="show it as plain, csv, markdown or json",
        )
    return "\n".join(parts)


def _workloads(run: RunData) -> dict[str, QsbenchOptions]:
    found = {name: run.experiment.workloads[name].options for name in run.workloads}
    return {name: options for name, options in found.items() if isinstance(options, QsbenchOptions)}


def _table(run: RunData, workload: str, options: QsbenchOptions) -> str:
    columns = {setting: _times_by_place(run, workload, setting) for setting in run.settings}
    widths = {setting: max(len(setting), VALUE_WIDTH_MIN) for setting in columns}
    lines = [
        f"{workload}: {counted(options.processes, 'process sorts', 'processes sort')} {_what(run, options)}",
        " ".join(["process done", *(setting.rjust(width) for setting, width in widths.items())]),
        " ".join(["------------", *("-" * width for width in widths.values())]),
    ]
    for place in range(max(map(len, columns.values()), default=0)):
        cells = [_cell(times, place).rjust(widths[setting]) for setting, times in columns.items()]
        lines.append(" ".join([f"{place + 1:>12}", *cells]))
    lines += _absent(run, workload)
    return "\n".join(lines) + "\n"


def _what(run: RunData, options: QsbenchOptions) -> str:
    if options.memory_limit is None and isinstance(run.experiment.machine, Model):
        return f"{options.share:g} % of the machine's memory each"
    return f"{options.process_bytes / MIB:.1f} MiB each, with {options.host_limit / MIB:.1f} MiB of memory for all"


def _absent(run: RunData, workload: str) -> list[str]:
    """Which trials have no times, and why: a line per setting and reason."""
    import polars as pl

    rows = run.metrics.filter(
        (pl.col("workload") == workload) & (pl.col("metric") == "elapsed_s") & pl.col("value").is_null()
    )
    causes = rows.group_by("setting", "reason", maintain_order=True).agg(pl.col("trial").n_unique().alias("trials"))
    return [
        f"{setting}: no times from {counted(trials, 'trial')}: {reason}"
        for setting, reason, trials in sorted(causes.iter_rows(), key=lambda row: run.settings.index(row[0]))
    ]


def _times_by_place(run: RunData, workload: str, setting: str) -> list[float]:
    """Mean completion time of the first, second, ... process to finish."""
    import polars as pl

    rows = run.job_metrics(workload=workload, setting=setting).filter(
        (pl.col("metric") == "elapsed_s") & pl.col("value").is_not_null()
    )
    rounds = [sorted(part["value"].to_list()) for part in rows.partition_by("trial")]
    return [fmean(times) for times in zip(*rounds, strict=False)]


def _cell(times: list[float], place: int) -> str:
    return f"{times[place]:.3f}" if place < len(times) else ABSENT
