"""A trace as one page: its figures, and its maps over time. What is drawn was counted while the trace was read."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from iolab.base import output_file
from iolab.base.plain_text import visible
from iolab.base.version import VERSION
from iolab.presentation.report.heat import HEAT
from iolab.presentation.report.over_time import Counts, fine, times
from iolab.presentation.report.page import asset, figure_json
from iolab.presentation.report.plot import Figure, Plot, series
from iolab.presentation.table.trace import shown
from iolab.presentation.terminal import console

if TYPE_CHECKING:
    from iolab.domain import native_types as native

TEXT_WIDTH = 150
PROCESSES_DRAWN = 6
INTERVALS = 2**14
"""Counted for a page: zooming shows up to 16 times as much as is drawn at first."""


def write(figures: native.TraceFigures, name: str, path: Path, inputs: Sequence[Path] = ()) -> int:
    """Writes the page to `path`, as `iolab.base.output_file` does, and returns its bytes.

    Raises:
        InputError: it can't be written there.
        MachineError: no room.
    """
    page = render(figures, name).encode()
    output_file.write(path, page, inputs)
    return len(page)


def render(figures: native.TraceFigures, name: str) -> str:
    """The page as one HTML document, scripts included."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("iolab.presentation.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template("trace.html.j2").render(
        version=VERSION,
        title=visible(name),
        text=visible(_text(figures)),
        figures=[figure_json(figure) for figure in maps(figures)],
        style=Markup(asset("page.css")),
        script=Markup(asset("page.js")),
        zoom=Markup(asset("zoom.js")),
        plotly_js=Markup(visible(asset("plotly-cartesian.min.js"))),
    )


def _text(figures: native.TraceFigures) -> str:
    text = io.StringIO()
    page = console(text, width=TEXT_WIDTH, color_system=None)
    for part in shown(figures):
        page.print(part)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def maps(figures: native.TraceFigures) -> Iterator[Figure]:
    """Latency, place, depth and rate over time, and how latencies lie; what the trace can't give is left out."""
    drawn = figures["maps"]
    step_s = drawn["interval_ns"] / 1e9
    if any(map(any, drawn["latency"])):
        yield _map(
            "trace-latency",
            "Latency over time",
            LATENCY,
            drawn["latency"],
            step_s,
            "latency (µs)",
            _latencies,
            log=True,
        )
    if any(map(any, drawn["places"])):
        size = drawn["place_sectors"] * 512 / 2**30
        yield _map(
            "trace-places", "Where on the device", PLACES, drawn["places"], step_s, "offset (GiB)",
            lambda count: [size * (number + 0.5) for number in range(count)],
        )  # fmt: skip
    depth_known = any(device["depth_max"] is not None for device in figures["devices"])
    yield _lines(drawn, step_s, depth_known=depth_known)
    yield _by_process(figures, step_s)
    yield from _distribution(figures)


LATENCY = (
    "The stronger a cell's colour, the more requests that completed then took this long. A band that moves is a device "
    "or a queue that changed; a second band is a second kind of answer, such as a cache."
)
PLACES = (
    "The stronger a cell's colour, the more requests began in that part of the device then. A line that climbs is "
    "sequential."
)


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


def _latencies(count: int) -> list[float]:
    return [2 ** (number / 2 + 0.25) for number in range(count)]


def _map(
    plot_id: str, heading: str, explanation: str, columns: list[list[int]], step_s: float, y_title: str, ys: Any,
    *, log: bool = False,
) -> Figure:  # fmt: skip
    by_row = np.asarray(columns).T
    used = np.flatnonzero(by_row.any(axis=1))
    first, end = int(used[0]), int(used[-1]) + 1
    counts = Counts.of(by_row[first:end], "count")
    plot = Plot(plot_id, heading, f"{heading}: a map of counts.", "time since the trace began (s)", [y_title])
    plot.y_axis = {"type": "log"} if log else {}
    plot.fine = fine([counts], step_s, "z")
    plot.add(
        {
            "type": "heatmap",
            "x": times(counts.length, step_s),
            "y": ys(len(by_row))[first:end],
            "z": counts.drawn(step_s),
            "colorscale": HEAT,
            "showscale": True,
            "hovertemplate": "%{x:.6g} s, %{y:.4g}: %{z}<extra></extra>",
        }
    )
    return Figure(plot_id, heading, explanation, [plot])


def _lines(drawn: native.Maps, step_s: float, *, depth_known: bool) -> Figure:
    plot = Plot(
        "trace-rates", "Requests and queue", "Rates and queue depth over time.", "time since the trace began (s)",
        ["requests/s", "MiB/s", *(["with the driver"] if depth_known else [])],
    )  # fmt: skip
    lines = [
        (panel, place, name, Counts.of([drawn[key]], "rate", scale))
        for place, (name, counts, volume) in enumerate(DIRECTIONS)
        if any(drawn[counts])
        for panel, key, scale in ((0, counts, 1.0), (1, volume, 2**-20))
    ]
    if depth_known:
        lines += [
            (2, 3, "depth, mean", Counts.of([drawn["depth_ns"]], "mean", 1 / drawn["interval_ns"])),
            (2, 4, "depth, most", Counts.of([drawn["depth_max"]], "max")),
        ]
    _draw(plot, lines, step_s)
    explanation = "Rates at which requests were handed to the driver, and how many it had."
    return Figure("trace-rates", "Rates and queue depth", explanation, [plot])


def _draw(plot: Plot, lines: list[tuple[int, int, str, Counts]], step_s: float) -> None:
    """Panel, place among the colours, name, and what is drawn."""
    for panel, place, name, counts in lines:
        x, (y,) = times(counts.length, step_s), counts.drawn(step_s)
        plot.add(series(name, place, x, y, showlegend=panel != 1), panel)
    plot.fine = fine([counts for *_, counts in lines], step_s, "y")


def _by_process(figures: native.TraceFigures, step_s: float) -> Figure:
    by_name: dict[str, np.ndarray[Any, Any]] = {}
    for pid, counts in figures["maps"]["by_pid"].items():
        name = figures["names"].get(pid, "unknown" if pid == "0" else f"task {pid}")
        by_name[name] = by_name.get(name, 0) + np.asarray(counts)
    most = sorted(by_name, key=lambda name: -by_name[name].sum())[:PROCESSES_DRAWN]
    plot = Plot(
        "trace-processes",
        "By process",
        "Request rate of each process.",
        "time since the trace began (s)",
        ["requests/s"],
    )
    lines = [(0, place, name, Counts.of(by_name[name][np.newaxis], "rate")) for place, name in enumerate(most)]
    _draw(plot, lines, step_s)
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
