"""What the probes saw: their time series as plots, and their tables as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.base.quantity import Scale, scale_for
from iolab.domain.probe import PROBES
from iolab.presentation import table
from iolab.presentation.report.plot import Figure, Plot, add_lines_over_time, by, caption
from iolab.presentation.table.words import label

if TYPE_CHECKING:
    import polars

    from iolab.files.store import RunData

WHOLE = "all"
"""The whole machine, in series that have it beside each CPU; a device's series has its name instead."""
TABLE_LINES_MAX = 500

PLOTTED = {
    "block": {"queue_depth": "count", "requests_waiting": "count", "requests_completed_per_s": "1/s"},
    "switches": {"context_switches_per_s": "1/s"},
    "cpu": {
        "user_percent": "percent",
        "system_percent": "percent",
        "iowait_percent": "percent",
        "idle_percent": "percent",
    },
    "memory": {
        "dirty_bytes": "bytes",
        "writeback_bytes": "bytes",
        "cached_bytes": "bytes",
        "swap_used_bytes": "bytes",
        "pressure_io_some_share": "share",
    },
    "io_cost": {"vrate_percent": "percent"},
}
"""Probe -> the columns of its series that are plotted, a panel each, and their units."""
TABLES = {
    "block": "affinity",
    "cpu": "cycles",
    "extents": "extents",
    "switches": "switches",
    "profile": "profile",
    "instructions": "symbols",
}
"""Probe -> the format of `iolab show --as` that shows it."""


@dataclass(frozen=True)
class Table:
    """A table of a probe as text."""

    name: str
    """As in `iolab show --as`."""
    help: str
    text: str


def figure(run: RunData, settings: list[str], workloads: list[str]) -> Figure:
    """The figure of these workloads; it has no plots if no probe with a series was on."""
    return Figure(
        "probes",
        "What the probes saw over time",
        "Median over the rounds, and the range from the lowest to the highest round; from just before the phase, "
        "warm-up included, to just after it. Block devices are summed; CPUs and memory are those of the whole machine.",
        [plot for workload in workloads for plot in _plots(run, settings, workload)],
    )


def tables(run: RunData) -> list[Table]:
    """Those that the run has something for."""
    on = _probes_on(run)
    shown = [name for probe, name in TABLES.items() if probe in on]
    return [Table(name, table.FORMATS[name], text) for name in shown if (text := _text(run, name))]


def _text(run: RunData, name: str) -> str | None:
    try:
        lines = table.render(run, name).splitlines()
    except InputError:
        return None
    if len(lines) > TABLE_LINES_MAX:
        more = len(lines) - TABLE_LINES_MAX
        lines = [*lines[:TABLE_LINES_MAX], f"... {counted(more, 'more line')}: iolab show RUN --as {name}"]
    return "\n".join(lines)


def _probes_on(run: RunData) -> set[str]:
    """Under any setting; none for a run whose experiment this iolab doesn't understand."""
    try:
        probes = run.experiment.probes
    except InputError:
        return set()
    return {name for of_setting in probes.values() for name in of_setting}


def _plots(run: RunData, settings: list[str], workload: str) -> Iterator[Plot]:
    seen = run.series(workload=workload)
    for phase, of_phase in by(seen, "phase"):
        for probe, of_probe in by(of_phase, "probe"):
            shown = PLOTTED.get(probe, {})
            panels = [(column, binned) for column in shown if len(binned := over_rounds(of_probe, column))]
            if not panels:
                continue
            scales = [scale_for(shown[column], binned["value"].to_list()) for column, binned in panels]
            plot = Plot(
                f"probes-{run.workloads.index(workload)}-{phase}-{probe}",
                f"{caption(workload, phase)}: {probe}",
                f"{PROBES[probe].help} Over the time of {workload}, under each setting.",
                "seconds since the probe's start",
                [_title(column, scale) for (column, _), scale in zip(panels, scales, strict=True)],
                y_axis={"rangemode": "tozero"},
            )
            for panel, ((_, binned), scale) in enumerate(zip(panels, scales, strict=True)):
                add_lines_over_time(plot, panel, binned, scale.divisor, settings)
            yield plot


def _title(column: str, scale: Scale) -> str:
    name = label(column.removesuffix("_percent"))
    return f"{name}, {scale.suffix}" if scale.suffix else name


def over_rounds(of_probe: polars.DataFrame, column: str) -> polars.DataFrame:
    """setting, start_s, value, low, high, by time: the rounds at the same distance from their start.

    Points of one trial lie an interval apart, which probes double when they have too many: the longest one decides.
    """
    import polars as pl

    points = of_probe.filter(pl.col("metric") == column)
    if WHOLE in points["job"]:
        points = points.filter(pl.col("job") == WHOLE)
    else:
        points = points.group_by("trial", "round", "setting", "at_ns").agg(pl.col("value").sum())
    lengths = of_probe.filter(pl.col("metric") == "length_s")["value"]
    width_s = max(lengths.to_list(), default=0.0)
    if not width_s:
        return points.clear()
    return (
        points.with_columns(((pl.col("at_ns") / 1e9 / width_s + 0.5).floor() * width_s).alias("start_s"))
        .group_by("setting", "round", "start_s")
        .agg(pl.col("value").mean())
        .group_by("setting", "start_s")
        .agg(pl.col("value").median(), pl.col("value").min().alias("low"), pl.col("value").max().alias("high"))
        .sort("setting", "start_s")
    )
