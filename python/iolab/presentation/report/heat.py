"""The heat map of latencies: over the time of a trial, over the parameter of a sweep, else over the settings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iolab.domain.matrix_axis import sweeps
from iolab.domain.summary import Summary
from iolab.presentation.report.axes import LINES_PLOTTED_MAX
from iolab.presentation.report.plot import FRAME_HEIGHT_PX, Figure, Plot, by, by_setting, caption, duration, literal
from iolab.presentation.table.axis import title

if TYPE_CHECKING:
    import polars

    from iolab.files.store import RunData

BINS_PER_DECADE = 8
COLUMNS_MAX = 40
HEAT = [
    [0, "rgba(57,135,201,0)"],
    [0.001, "rgba(57,135,201,0.2)"],
    [0.1, "rgba(57,135,201,0.45)"],
    [0.4, "rgba(57,135,201,0.75)"],
    [1, "rgba(57,135,201,1)"],
]
"""One hue, which differs from the ground the more there is; nothing if nothing is."""
PANEL_HEIGHT_PX = 170
PANELS_MAX = 6
NAMED_MAX = 4


def heat_maps(run: RunData, summary: Summary, workloads: Sequence[str]) -> Figure:
    """How the latencies lie: of a sweep a column per value of its parameter; else, below one another, each setting's
    over time, and if the records do not hold that, a column per setting. Without plots if there is no histogram, or no
    time and a single column."""
    swept, columns = _sweep_columns(summary)
    plots: list[Plot] = []
    for number, (name, found) in enumerate(columns.items()):
        if 1 < len(found) <= COLUMNS_MAX:
            plots += _maps(run, name, found, f"latency-map-{number}")
    timeless, more = [], False
    for number, workload in enumerate((one for one in workloads if one not in swept), len(columns)):
        over_time = list(_over_time(run, summary.settings, workload, f"latency-map-{number}"))
        by_settings = [(setting, workload, setting) for setting in summary.settings]
        if not over_time and 1 < len(by_settings) <= COLUMNS_MAX:
            over_time = list(_maps(run, workload, by_settings, f"latency-map-{number}"))
            timeless += [workload] if over_time else []
        else:
            more |= len(summary.settings) > PANELS_MAX
        plots += over_time
    return Figure(
        "latency-map", "Latency heat map", _explanation(timeless, len(summary.settings) if more else 0), plots
    )


def _explanation(timeless: Sequence[str], settings: int) -> str:
    """`timeless`: workloads whose records do not hold latencies over time; `settings`: how many, if not all are
    shown."""
    text = (
        "The stronger a cell's colour, the larger the share of its column's operations that took this long; all rounds "
        "together. Two bands in one column are two kinds of answers, such as a cache and a disk; a band that moves "
        "along the time is a machine that changes under the load."
    )
    if settings:
        text += f" Shown are the first {PANELS_MAX} of {settings} settings."
    if timeless:
        named = ", ".join(timeless[:NAMED_MAX]) + (", ..." if len(timeless) > NAMED_MAX else "")
        text += (
            f" Of {named} the records hold no latencies over time (an earlier version of iolab wrote them, or another "
            "tool): a column is a setting."
        )
    return text


def _sweep_columns(summary: Summary) -> tuple[set[str], dict[str, list[tuple[str, str, str]]]]:
    """The workloads of sweeps; and by caption, (heading, workload, setting) of each column."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    swept = set()
    for sweep in sweeps(summary):
        for line in sweep.lines[:LINES_PLOTTED_MAX]:
            name = ": ".join(part for part in (title(sweep), line.name) if part)
            found[name] = [(point.text, point.workload, point.setting) for point in line.points]
            swept |= {point.workload for point in line.points}
    return swept, found


def _over_time(run: RunData, settings: list[str], workload: str, plot_id: str) -> Iterator[Plot]:
    """A plot per phase, a panel per setting."""
    for number, (phase, counts) in enumerate(by(run.latency_over_time(workload), "phase")):
        columns = _in_columns(counts)
        edges = _edges(counts["latency_ns"].min(), counts["latency_ns"].max())  # type: ignore[arg-type]
        parts = by_setting(columns, settings)[:PANELS_MAX]
        width_s, last = columns["width_s"][0], int(columns["column"].max())  # type: ignore[arg-type]
        decades = [
            10.0**power for power in range(math.floor(math.log10(edges[0])), math.ceil(math.log10(edges[-1])) + 1)
        ]
        plot = Plot(
            f"{plot_id}-{number}",
            caption(workload, phase),
            f"Heat map of latencies over the time of a trial of {workload}, in steps of {width_s:.3g} s; a panel for "
            f"each of {len(parts)} settings.",
            "seconds since the start",
            [setting for setting, _ in parts],
            height=FRAME_HEIGHT_PX + PANEL_HEIGHT_PX * len(parts),
            y_axis={"type": "log", "tickvals": decades, "ticktext": [duration(tick) for tick in decades]},
            layout_extra={"showlegend": False},
        )
        shares = [_shares_of_columns(rows, edges, last + 1) for _, rows in parts]
        highest = max(max(map(max, one)) for one in shares)
        first_s = columns["first_s"][0]
        for panel, ((setting, _), share) in enumerate(zip(parts, shares, strict=True)):
            trace = {
                "type": "heatmap",
                "x": [round(first_s + at * width_s, 6) for at in range(last + 2)],
                "y": edges,
                "z": share,
                "colorscale": HEAT,
                "zmin": 0,
                "zmax": highest,
                "showscale": panel == 0,
                "colorbar": {"title": {"text": "% of operations"}},
                "hovertemplate": f"%{{x:.3g}} s: %{{z}} % take about %{{y:.3s}} ns<extra>{literal(setting)}</extra>",
            }
            plot.add(trace, panel)
        yield plot


def _in_columns(counts: polars.DataFrame) -> polars.DataFrame:
    """Operations by setting, column of time and latency class, all rounds together: trials differ in the width of their
    intervals by powers of two; the widest decides."""
    import polars as pl

    ns = 1e9
    first = counts["start_ns"].min()
    starts = counts.group_by("trial").agg(
        pl.col("start_ns").unique().sort().diff().min().alias("width_ns"),
    )
    width_ns = starts["width_ns"].max() or ns
    return (
        counts.with_columns(((pl.col("start_ns") - first) / width_ns + 1e-6).floor().cast(pl.Int64).alias("column"))
        .group_by("setting", "column", "latency_ns")
        .agg(pl.col("count").sum())
        .with_columns(pl.lit(width_ns / ns).alias("width_s"), pl.lit(first / ns).alias("first_s"))  # type: ignore[operator]
        .sort("setting", "column", "latency_ns")
    )


def _shares_of_columns(rows: polars.DataFrame, edges: list[int], columns: int) -> list[list[float]]:
    """Percent of a column's operations, a list per latency class."""
    import polars as pl

    classes = {edge - 1: place for place, edge in enumerate(edges[1:])}
    totals: dict[int, float] = dict(rows.group_by("column").agg(pl.col("count").sum()).iter_rows())
    shares = [[0.0] * columns for _ in edges[1:]]
    for column, latency_ns, count in rows.select("column", "latency_ns", "count").iter_rows():
        shares[classes[int(latency_ns)]][column] = round(100 * count / totals[column], 1)
    return shares


def _edges(lowest_ns: float, highest_ns: float) -> list[int]:
    """Where the classes begin, half a power of two each, and where the last one ends."""
    ends = [2, 3]
    while ends[-1] < highest_ns:
        ends.append(ends[-2] * 2 + 1)
    kept = [end for end in ends if lowest_ns <= end <= highest_ns]
    before = [end for end in ends if end < kept[0]]
    return [before[-1] + 1 if before else 1, *(end + 1 for end in kept)]


def _maps(run: RunData, name: str, columns: list[tuple[str, str, str]], plot_id: str) -> Iterator[Plot]:
    import polars as pl

    counts = {workload: run.latency_counts(workload) for workload in dict.fromkeys(one for _, one, _ in columns)}
    places = dict.fromkeys(place for frame in counts.values() for place in frame.select("phase", "op").unique().rows())
    for index, (phase, op) in enumerate(sorted(places)):
        is_place = (pl.col("phase") == phase) & (pl.col("op") == op)
        of_place = [
            (heading, counts[workload].filter(is_place, pl.col("setting") == setting))
            for heading, workload, setting in columns
        ]
        present = [(heading, frame) for heading, frame in of_place if frame.height]
        if len(present) > 1:
            yield _map(f"{caption(name, phase)}, {op}", present, f"{plot_id}-{index}")


def _map(name: str, columns: list[tuple[str, polars.DataFrame]], plot_id: str) -> Plot:
    shares = [_shares(frame) for _, frame in columns]
    low, high = min(min(one) for one in shares), max(max(one) for one in shares)
    bins = range(low, high + 1)
    middles = [10 ** ((at + 0.5) / BINS_PER_DECADE) for at in bins]
    decades = [10.0**decade for decade in range(low // BINS_PER_DECADE, high // BINS_PER_DECADE + 2)]
    plot = Plot(
        plot_id,
        name,
        f"Heat map of latencies of {name}: a column for each of {len(columns)}.",
        "",
        ["latency"],
        x_axis={"type": "category"},
        y_axis={"type": "log", "tickvals": decades, "ticktext": [duration(tick) for tick in decades]},
    )
    plot.add(
        {
            "type": "heatmap",
            "x": [literal(heading) for heading, _ in columns],
            "y": middles,
            "z": [[round(100 * one.get(at, 0.0), 3) for one in shares] for at in bins],
            "colorscale": HEAT,
            "zmin": 0,
            "colorbar": {"title": {"text": "% of operations"}},
            "hovertemplate": "%{x}: %{z} % take about %{y:.3s} ns<extra></extra>",
        }
    )
    return plot


def _shares(counts: polars.DataFrame) -> dict[int, float]:
    """By bin, the share of the operations in it."""
    total = float(counts["count"].sum())
    found: dict[int, float] = {}
    for latency_ns, count in counts.select("latency_ns", "count").iter_rows():
        at = math.floor(math.log10(max(1.0, latency_ns)) * BINS_PER_DECADE)
        found[at] = found.get(at, 0.0) + count / total
    return found
