"""A trace as one page: its figures, and its maps over time. What is drawn was counted while the trace was read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from iolab.base import output_file
from iolab.base.plain_text import visible
from iolab.base.strict_json import JsonObject
from iolab.base.version import VERSION
from iolab.presentation.report.heat import HEAT
from iolab.presentation.report.over_time import Counts, fine, times
from iolab.presentation.report.page import asset, figure_json
from iolab.presentation.report.plot import COLOURS, FRAME_HEIGHT_PX, Figure, Plot, duration, series
from iolab.presentation.report.single_requests import DRAWN_MAX, REQUESTS_MAX, packed
from iolab.presentation.table.trace import bytes_in_words, microseconds, remarks, slowest, summary, tables, total
from iolab.presentation.table.trace_conclusion import conclusion, in_front, shares

if TYPE_CHECKING:
    import polars
    from rich.table import Table

    from iolab.domain import native_types as native

PANEL_PX = 190
PROCESSES_DRAWN = 6
INTERVALS = 2**14
"""Counted for a page: zooming shows up to 16 times as much as is drawn at first."""


def write(
    figures: native.TraceFigures,
    name: str,
    path: Path,
    inputs: Sequence[Path] = (),
    requests: Iterable[polars.DataFrame] = (),
) -> int:
    """Writes the page to `path`, as `iolab.base.output_file` does, and returns its bytes. `requests`: all of the trace,
    asked for if a page can hold them; none of a pipe, which is read once.

    Raises:
        InputError: it can't be written there.
        MachineError: no room.
    """
    page = render(figures, name, requests).encode()
    output_file.write(path, page, inputs)
    return len(page)


def render(figures: native.TraceFigures, name: str, requests: Iterable[polars.DataFrame] = ()) -> str:
    """The page as one HTML document, scripts included."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("iolab.presentation.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    single = packed(requests, figures["began_ns"]) if figures["all"]["count"] <= REQUESTS_MAX else None
    return environment.get_template("trace.html.j2").render(
        version=VERSION,
        title=visible(name),
        conclusion=conclusion(figures),
        stages=[
            {
                "stage": one.stage,
                "share": f"{one.share:.6f}",
                "text": f"{one.share * 100:.3g} %",
                "mean": f"{microseconds(one.mean_ns)} µs",
            }
            for one in shares(figures)
        ],
        summary=[visible(line) for line in summary(figures)],
        figures=[figure_json(figure) for figure in maps(figures, single)],
        tables=list(_tables(figures)),
        remarks=list(remarks(figures)),
        style=Markup(asset("page.css")),
        script=Markup(asset("page.js")),
        zoom=Markup(asset("zoom.js")),
        sort=Markup(asset("sort.js")),
        plotly_js=Markup(visible(asset("plotly-cartesian.min.js"))),
    )


def _tables(figures: native.TraceFigures) -> Iterator[JsonObject]:
    """Those in front of the slowest, the slowest, then those of the terminal."""
    if figures["slowest"]:
        yield {
            "title": f"In front of the slowest {len(figures['slowest'])}",
            "caption": "Whose requests completed while the slowest were in flight.",
            "heads": [
                {"name": name, "number": place > 0}
                for place, name in enumerate(("process", "slow requests behind it", "requests in front", "bytes"))
            ],
            "rows": [
                [visible(one.task), f"{one.slow:,}", f"{one.requests:,}", bytes_in_words(one.bytes)]
                for one in in_front(figures)
            ],
        }
        yield _as_html(slowest(figures))
    yield from map(_as_html, tables(figures))


def _as_html(table: Table) -> JsonObject:
    heads = [{"name": visible(str(one.header)), "number": one.justify == "right"} for one in table.columns]
    columns = [[visible(str(cell)) for cell in one.cells] for one in table.columns]
    return {
        "title": visible(str(table.title or "")),
        "caption": visible(str(table.caption)) if table.caption else None,
        "heads": heads,
        "rows": [list(row) for row in zip(*columns, strict=True)],
    }


def maps(figures: native.TraceFigures, single: JsonObject | None = None) -> Iterator[Figure]:
    """Latency, place, rates and depth over one time, the rate by process, and how latencies lie; what the trace can't
    give is left out. `single`: `single_requests.packed`."""
    yield _over_time(figures, single)
    yield _by_process(figures)
    yield from _distribution(figures)


OVER_TIME = (
    "The stronger a cell's colour, the more requests that completed then took this long, or began in that part of the "
    "device. A band of latencies that moves is a device or a queue that changed; a second band is a second kind of "
    "answer, such as a cache. A place that climbs is sequential. Drag over a stretch of time to see it in finer "
    "intervals; a double click shows all."
)
SINGLE = " If at most {most:,} requests are in sight, each is drawn."
TOO_MANY = (
    " A trace of up to {most:,} requests is drawn down to single ones; `iolab trace --sector` shows one of these."
)
TIME = "time since the trace began (s)"
DIRECTIONS: tuple[
    tuple[
        str,
        Literal["reads", "writes", "discards"],
        Literal["bytes_read", "bytes_written", "bytes_discarded"],
    ],
    ...,
] = (
    ("read", "reads", "bytes_read"),
    ("write", "writes", "bytes_written"),
    ("discard", "discards", "bytes_discarded"),
)


def _over_time(figures: native.TraceFigures, single: JsonObject | None) -> Figure:
    """Panels with one time axis."""
    drawn, step_s, until_s = figures["maps"], figures["maps"]["interval_ns"] / 1e9, figures["elapsed_ns"] / 1e9
    depth_known = any(device["depth_max"] is not None for device in figures["devices"])
    panels: list[str] = []
    axes: dict[int, JsonObject] = {}
    traces: list[tuple[JsonObject, int]] = []
    counted: list[Counts] = []
    points: list[tuple[JsonObject, int]] = []
    if any(map(any, drawn["latency"])):
        ys, counts = _cells(drawn["latency"], _latencies)
        powers = range(math.floor(math.log10(ys[0])), math.ceil(math.log10(ys[-1])) + 1)
        decades = [10.0**power for power in powers]
        axes[len(panels)] = {"type": "log", "tickvals": decades, "ticktext": [duration(one * 1e3) for one in decades]}
        traces.append((_map(ys, counts, step_s, until_s, "latency (µs)"), len(panels)))
        counted.append(counts)
        points += [(_slowest_marks(figures), len(panels)), (_marks("latency_us"), len(panels))]
        panels.append("latency")
    if any(map(any, drawn["places"])):
        size = drawn["place_sectors"] * 512 / 2**30
        ys, counts = _cells(drawn["places"], lambda count: [size * (number + 0.5) for number in range(count)])
        traces.append((_map(ys, counts, step_s, until_s, "offset (GiB)"), len(panels)))
        counted.append(counts)
        points.append((_marks("place_gib"), len(panels)))
        panels.append("offset (GiB)")
    first = len(panels)
    panels += ["requests/s", "MiB/s", *(["with the driver"] if depth_known else [])]
    lines = [
        (first + panel, place, name, Counts.of([drawn[key]], "rate", scale))
        for place, (name, number, volume) in enumerate(DIRECTIONS)
        if any(drawn[number])
        for panel, key, scale in ((0, number, 1.0), (1, volume, 2**-20))
    ]
    if depth_known:
        lines += [
            (first + 2, 3, "depth, mean", Counts.of([drawn["depth_ns"]], "mean", 1 / drawn["interval_ns"])),
            (first + 2, 4, "depth, most", Counts.of([drawn["depth_max"]], "max")),
        ]
    for panel, place, name, counts in lines:
        (y,) = counts.drawn(step_s, until_s)
        line = series(name, place, times(counts.length, step_s), y, showlegend=panel != first + 1)
        traces.append((line, panel))
        counted.append(counts)
    plot = Plot(
        "trace-over-time",
        "Latency, place, rates and depth",
        "Maps of latencies and of places, rates and queue depth, over the same time.",
        TIME,
        panels,
        height=FRAME_HEIGHT_PX + PANEL_PX * len(panels),
        x_axis={"range": [0, until_s]} if until_s > 0 else {},
        y_axis={"rangemode": "tozero", "tickformat": ","},
        y_axis_of=axes,
    )
    for trace, panel in (*traces, *points):
        plot.add(trace, panel)
    plot.fine = fine(counted, step_s, until_s)
    if single is not None:
        marks = {trace["meta"]: len(traces) + place for place, (trace, _) in enumerate(points) if "meta" in trace}
        plot.requests = {**single, "marks": marks}
    explanation = OVER_TIME
    if single is not None:
        explanation += SINGLE.format(most=DRAWN_MAX)
    elif figures["all"]["count"] > REQUESTS_MAX:
        explanation += TOO_MANY.format(most=REQUESTS_MAX)
    return Figure("trace-over-time", "Over time", explanation, [plot])


def _marks(what: str) -> JsonObject:
    """Single requests, which `zoom.js` draws if few are in sight."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "single requests",
        "meta": what,
        "x": [],
        "y": [],
        "showlegend": False,
        "marker": {"color": COLOURS[0], "size": 6},
        "hovertemplate": "%{x:.9~g} s, %{y:.4~g}<extra></extra>",
    }


def _slowest_marks(figures: native.TraceFigures) -> JsonObject:
    """Where they completed."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "the slowest",
        "x": [(slow["arrived_ns"] + total(slow)) / 1e9 for slow in figures["slowest"]],
        "y": [total(slow) / 1e3 for slow in figures["slowest"]],
        "marker": {"color": COLOURS[1], "size": 9, "symbol": "circle-open", "line": {"width": 2}},
        "hovertemplate": "%{x:.9~g} s: %{y:.6~g} µs<extra>one of the slowest</extra>",
    }


def _latencies(count: int) -> list[float]:
    return [2 ** (number / 2 + 0.25) for number in range(count)]


def _cells(columns: list[list[int]], ys_of: Callable[[int], list[float]]) -> tuple[list[float], Counts]:
    """The rows of a map in which anything is, and what they are on its axis."""
    by_row = np.asarray(columns).T
    used = np.flatnonzero(by_row.any(axis=1))
    first, end = int(used[0]), int(used[-1]) + 1
    return ys_of(len(by_row))[first:end], Counts.of(by_row[first:end], "count")


def _map(ys: list[float], counts: Counts, step_s: float, until_s: float, what: str) -> JsonObject:
    return {
        "type": "heatmap",
        "x": times(counts.length, step_s),
        "y": ys,
        "z": counts.drawn(step_s, until_s),
        "colorscale": HEAT,
        "showscale": False,
        "hovertemplate": f"%{{x:.6g}} s, {what} %{{y:.4g}}: %{{z}}<extra></extra>",
    }


def _by_process(figures: native.TraceFigures) -> Figure:
    step_s, until_s = figures["maps"]["interval_ns"] / 1e9, figures["elapsed_ns"] / 1e9
    by_name: dict[str, np.ndarray[Any, Any]] = {}
    for pid, counts in figures["maps"]["by_pid"].items():
        name = figures["names"].get(pid, "unknown" if pid == "0" else f"task {pid}")
        by_name[name] = by_name.get(name, 0) + np.asarray(counts)
    most = sorted(by_name, key=lambda name: -by_name[name].sum())[:PROCESSES_DRAWN]
    plot = Plot(
        "trace-processes",
        "By process",
        "Request rate of each process.",
        TIME,
        ["requests/s"],
        x_axis={"range": [0, until_s]} if until_s > 0 else {},
        y_axis={"rangemode": "tozero", "tickformat": ","},
    )
    counted = [Counts.of(by_name[name][np.newaxis], "rate") for name in most]
    for place, (name, counts) in enumerate(zip(most, counted, strict=True)):
        (y,) = counts.drawn(step_s, until_s)
        plot.add(series(name, place, times(counts.length, step_s), y))
    plot.fine = fine(counted, step_s, until_s)
    return Figure("trace-processes", "Rate by process", "The processes of most requests, by name.", [plot])


def _distribution(figures: native.TraceFigures) -> Iterator[Figure]:
    groups = [(group["name"], group["whole_ns"] or group["device_ns"]) for group in figures["by_operation"]]
    known = [(name, values) for name, values in groups if values]
    if not known:
        return
    plot = Plot(
        "trace-distribution",
        "Latency, cumulative",
        "Share of requests by latency.",
        "latency (µs)",
        ["share that took no longer"],
    )
    plot.x_axis = {"type": "log"}
    for place, (name, values) in enumerate(known):
        seen, xs, ys = 0, [], []
        for _, high, count in values["histogram"]:
            seen += count
            xs.append(max(high, 1) / 1e3)
            ys.append(seen / values["count"])
        plot.add(series(name, place, xs, ys))
    explanation = "From queueing to completion; from issue if queueing is not in the trace."
    yield Figure("trace-distribution", "Distribution of latency", explanation, [plot])
