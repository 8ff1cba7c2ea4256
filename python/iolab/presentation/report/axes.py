"""The figures of a sweep: metrics over the parameter, and latency over throughput."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iolab.base.quantity import scale_for
from iolab.base.strict_json import JsonObject
from iolab.domain.matrix_axis import LATENCIES, Sweep, knee_of, main_metric, rows_of, sweeps, values
from iolab.domain.summary import Row, Summary
from iolab.presentation.report.plot import Figure, Plot, literal, marker_of, series
from iolab.presentation.table.axis import curve, title
from iolab.presentation.table.words import label, unit_of

LINES_PLOTTED_MAX = 12
LOG_FROM = 16
"""Largest over smallest value of a parameter, from which on its axis is logarithmic."""


def figure(summary: Summary) -> Figure:
    """Metrics over the parameter of each sweep, and latency over throughput; without plots if there is none."""
    found = sweeps(summary)
    return Figure(
        "sweeps",
        "Over the parameter",
        "Typical values over the rounds; a star marks the knee of the throughput.",
        [plot for number, one in enumerate(found) for plot in _plots(one, summary, number)],
    )


def _plots(sweep: Sweep, summary: Summary, number: int) -> Iterator[Plot]:
    by_metric = rows_of(sweep, summary)
    throughput, latency = sweep.throughput(list(by_metric)), main_metric(list(by_metric), LATENCIES)
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
            knee = knee_of(line, rows) if metric == throughput else None
            at = None if knee is None else points.index(line.points[knee])
            plot.add(_line(line.name or title(sweep), place, x, y, at, showlegend=not panel), panel)
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
        knee = knee_of(line, of_throughput)
        at = None if knee is None else next((n for n, one in enumerate(whole) if one[0] is line.points[knee]), None)
        drawn = _line(line.name or title(sweep), place, x, y, at, showlegend=True)
        text = [f"{literal(sweep.parameter)} = {literal(point.text)}" for point, *_ in whole]
        plot.add(drawn | {"text": text, "hovertemplate": "%{text}<br>%{x}, %{y}<extra></extra>"})
    return plot


def _line(
    name: str, place: int, x: Sequence[float], y: Sequence[float], star: int | None, *, showlegend: bool
) -> JsonObject:
    line = series(name, place, x, y, mode="lines+markers", showlegend=showlegend)
    marker = marker_of(place)
    symbols = ["star" if index == star else marker["symbol"] for index in range(len(x))]
    sizes = [16 if index == star else 8 for index in range(len(x))]
    return line | {"marker": {**marker, "symbol": symbols, "size": sizes}}


def _axis_title(metric: str, suffix: str) -> str:
    return f"{label(metric)}, {suffix}" if suffix and suffix not in label(metric) else label(metric)
