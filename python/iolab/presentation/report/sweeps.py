"""The figures of a sweep, and the heat map of latencies: over the parameter where there is one, else over settings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from iolab.base.quantity import scale_for
from iolab.domain.summary import Summary
from iolab.domain.sweep import LATENCIES, THROUGHPUTS, Sweep, knee, main_metric, rows_of, sweeps, values
from iolab.presentation.report.plot import Figure, Plot, caption, literal, series
from iolab.presentation.table.sweep import curve, title
from iolab.presentation.table.words import label, unit_of

if TYPE_CHECKING:
    import polars

    from iolab.adapters.store import RunData
    from iolab.domain.summary import Row

LINES_PLOTTED_MAX = 12
LOG_FROM = 16
"""Largest over smallest value of a parameter, from which on its axis is logarithmic."""
BINS_PER_DECADE = 8
COLUMNS_MAX = 40
HEAT = [[0, "rgba(57,135,201,0)"], [0.02, "rgba(57,135,201,0.25)"], [0.3, "#3987c9"], [1, "#c0392b"]]
"""Nothing where nothing is; readable on white and on black."""


def figure(summary: Summary) -> Figure:
    """Metrics over the parameter of each sweep, and latency over throughput; without plots where there is none."""
    found = sweeps(summary)
    return Figure(
        "sweeps",
        "Over the parameter",
        "Typical values over the rounds; a star marks the knee of the throughput.",
        [plot for number, one in enumerate(found) for plot in _plots(one, summary, number)],
    )


def _plots(sweep: Sweep, summary: Summary, number: int) -> Iterator[Plot]:
    by_metric = rows_of(sweep, summary)
    throughput, latency = (main_metric(list(by_metric), among) for among in (THROUGHPUTS, LATENCIES))
    shown = {metric: rows for metric, rows in by_metric.items() if any(curve(line, rows)[0] for line in sweep.lines)}
    if not shown:
        return
    scales = {
        metric: scale_for(unit_of(metric), [one for line in sweep.lines for one in curve(line, rows)[1]])
        for metric, rows in shown.items()
    }
    ends = [point.x for line in sweep.lines for point in line.points]
    texts = {point.x: point.text for line in sweep.lines for point in line.points}
    is_log = min(ends) > 0 and max(ends) / min(ends) >= LOG_FROM
    plot = Plot(
        f"sweep-{number}",
        title(sweep),
        f"Each metric over {sweep.parameter}, a line for each of {len(sweep.lines)}; the tables have the values.",
        sweep.parameter,
        [_axis_title(metric, scales[metric].suffix) for metric in shown],
        x_axis={
            **({"type": "log"} if is_log else {}),
            "tickvals": list(texts),
            "ticktext": [literal(text) for text in texts.values()],
        },
        y_axis={"rangemode": "tozero"},
    )
    for panel, (metric, rows) in enumerate(shown.items()):
        for place, line in enumerate(sweep.lines[:LINES_PLOTTED_MAX]):
            points, found = curve(line, rows)
            x, y = [point.x for point in points], [one / scales[metric].divisor for one in found]
            at = knee(x, y) if metric == throughput else None
            plot.add(
                _line(line.name or title(sweep), place, x, y, at.index if at else None, showlegend=not panel), panel
            )
    yield plot
    if throughput in shown and latency in shown:
        assert throughput is not None and latency is not None
        yield _against(sweep, shown[throughput], shown[latency], (throughput, latency), number)


def _against(
    sweep: Sweep, of_throughput: dict[str, Row], of_latency: dict[str, Row], metrics: tuple[str, str], number: int
) -> Plot:
    """Latency over throughput, the points joined in the order of the parameter."""
    both = [curve(line, rows)[1] for line in sweep.lines for rows in (of_throughput, of_latency)]
    scales = [
        scale_for(unit_of(metric), [one for found in both[offset::2] for one in found])
        for offset, metric in enumerate(metrics)
    ]
    plot = Plot(
        f"sweep-{number}-against",
        f"{title(sweep)}: {label(metrics[1])} against {label(metrics[0])}",
        f"{label(metrics[1])} over {label(metrics[0])}, a point for each value of {sweep.parameter}.",
        _axis_title(metrics[0], scales[0].suffix),
        [_axis_title(metrics[1], scales[1].suffix)],
        x_axis={"rangemode": "tozero"},
        y_axis={"rangemode": "tozero"},
    )
    for place, line in enumerate(sweep.lines[:LINES_PLOTTED_MAX]):
        pairs = zip(line.points, values(line, of_throughput), values(line, of_latency), strict=True)
        whole = [(point, rate, latency) for point, rate, latency in pairs if rate is not None and latency is not None]
        x = [rate / scales[0].divisor for _, rate, _ in whole]
        y = [latency / scales[1].divisor for _, _, latency in whole]
        at = knee([point.x for point, *_ in whole], [rate for _, rate, _ in whole])
        drawn = _line(line.name or title(sweep), place, x, y, at.index if at else None, showlegend=True)
        text = [f"{literal(sweep.parameter)} = {literal(point.text)}" for point, *_ in whole]
        plot.add(drawn | {"text": text, "hovertemplate": "%{text}<br>%{x}, %{y}<extra></extra>"})
    return plot


def _line(
    name: str, place: int, x: Sequence[float], y: Sequence[float], star: int | None, *, showlegend: bool
) -> dict[str, Any]:
    line = series(name, place, x, y, mode="lines+markers", showlegend=showlegend)
    symbols = ["star" if index == star else line["marker"]["symbol"] for index in range(len(x))]
    sizes = [16 if index == star else 8 for index in range(len(x))]
    return line | {"marker": {**line["marker"], "symbol": symbols, "size": sizes}}


def _axis_title(metric: str, suffix: str) -> str:
    return f"{label(metric)}, {suffix}" if suffix and suffix not in label(metric) else label(metric)


def heat_maps(run: RunData, summary: Summary, workloads: Sequence[str]) -> Figure:
    """How the latencies lie: a column per value of a sweep's parameter, else per setting, a cell per range of latency.
    Without plots where no histogram is stored or one column is all."""
    columns = {
        line_key: found for line_key, found in _columns(summary, workloads).items() if 1 < len(found) <= COLUMNS_MAX
    }
    return Figure(
        "latency-map",
        "Latency heat map",
        "The darker a cell, the larger the share of a column's operations that took so long; all rounds together. Two "
        "dark bands in one column are two kinds of answers, such as a cache and a disk.",
        [plot for number, (name, found) in enumerate(columns.items()) for plot in _maps(run, name, found, number)],
    )


def _columns(summary: Summary, workloads: Sequence[str]) -> dict[str, list[tuple[str, str, str]]]:
    """By caption: (heading, workload, setting) of each column."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    swept = set()
    for sweep in sweeps(summary):
        for line in sweep.lines[:LINES_PLOTTED_MAX]:
            name = ": ".join(part for part in (title(sweep), line.name) if part)
            found[name] = [(point.text, point.workload, point.setting) for point in line.points]
            swept |= {point.workload for point in line.points}
    for workload in workloads:
        if workload not in swept:
            found[workload] = [(setting, workload, setting) for setting in summary.settings]
    return found


def _maps(run: RunData, name: str, columns: list[tuple[str, str, str]], number: int) -> Iterator[Plot]:
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
            yield _map(f"{caption(name, phase)}, {op}", present, f"latency-map-{number}-{index}")


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
        y_axis={"type": "log", "tickvals": decades, "ticktext": [_time(tick) for tick in decades]},
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


def _time(latency_ns: float) -> str:
    scale = scale_for("ns", [latency_ns])
    return f"{latency_ns / scale.divisor:.3g} {scale.suffix}"
