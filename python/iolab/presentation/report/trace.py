"""A trace as one page: its figures, and its maps over time. What is drawn was aggregated while the trace was read."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import iolab
from iolab.base import output_file
from iolab.base.plain_text import visible
from iolab.presentation.report.heat import HEAT
from iolab.presentation.report.page import asset, figure_json
from iolab.presentation.report.plot import Figure, Plot, series
from iolab.presentation.table.trace import shown
from iolab.presentation.terminal import console

TEXT_WIDTH = 150
PROCESSES_DRAWN = 6


def write(figures: dict[str, Any], name: str, path: Path) -> int:
    """Writes the page to `path`, as `iolab.base.output_file` does, and returns its bytes.

    Raises:
        InputError: it can't be written there.
        MachineError: no room.
    """
    page = render(figures, name).encode()
    output_file.write(path, page)
    return len(page)


def render(figures: dict[str, Any], name: str) -> str:
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
        version=iolab.__version__,
        title=visible(name),
        text=visible(_text(figures)),
        figures=[figure_json(figure) for figure in maps(figures)],
        style=Markup(asset("page.css")),
        script=Markup(asset("page.js")),
        plotly_js=Markup(visible(asset("plotly-cartesian.min.js"))),
    )


def _text(figures: dict[str, Any]) -> str:
    text = io.StringIO()
    page = console(text, width=TEXT_WIDTH, color_system=None)
    for part in shown(figures):
        page.print(part)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def maps(figures: dict[str, Any]) -> Iterator[Figure]:
    """Latency, place, depth and rate over time, and how latencies lie; what the trace can't give is left out."""
    drawn = figures["maps"]
    step_s = drawn["interval_ns"] / 1e9
    times = [step_s * (number + 0.5) for number in range(len(drawn["reads"]))]
    if any(map(any, drawn["latency"])):
        yield _map(
            "trace-latency", "Latency over time", LATENCY, times, drawn["latency"], "latency (us)", _latencies, log=True
        )
    if any(map(any, drawn["places"])):
        size = drawn["place_sectors"] * 512 / 2**30
        yield _map(
            "trace-places", "Where on the device", PLACES, times, drawn["places"], "offset (GiB)",
            lambda count: [size * (number + 0.5) for number in range(count)],
        )  # fmt: skip
    yield _lines(drawn, times, step_s)
    yield _by_process(figures, times, step_s)
    yield from _distribution(figures)


LATENCY = (
    "The stronger a cell's colour, the more requests that completed then took so long. A band that moves is a device "
    "or a queue that changed; a second band is a second kind of answer, such as a cache."
)
PLACES = (
    "The stronger a cell's colour, the more requests began in that part of the device then. A line that climbs is "
    "sequential."
)


def _latencies(count: int) -> list[float]:
    return [2 ** (number / 2 + 0.25) for number in range(count)]


def _map(
    plot_id: str, heading: str, explanation: str, times: list[float], columns: list[list[int]], y_title: str, ys: Any,
    *, log: bool = False,
) -> Figure:  # fmt: skip
    used = [number for number, row in enumerate(zip(*columns, strict=True)) if any(row)]
    first, end = used[0], used[-1] + 1
    rows = [list(row)[first:end] for row in columns]
    plot = Plot(plot_id, heading, f"{heading}: a map of counts.", "time since the trace began (s)", [y_title])
    plot.y_axis = {"type": "log"} if log else {}
    plot.add(
        {
            "type": "heatmap",
            "x": times,
            "y": ys(len(columns[0]))[first:end],
            "z": [list(row) for row in zip(*rows, strict=True)],
            "colorscale": HEAT,
            "showscale": True,
            "hovertemplate": "%{x:.4g} s, %{y:.4g}: %{z}<extra></extra>",
        }
    )
    return Figure(plot_id, heading, explanation, [plot])


def _lines(drawn: dict[str, Any], times: list[float], step_s: float) -> Figure:
    plot = Plot(
        "trace-rates", "Requests and queue", "Rates and queue depth over time.", "time since the trace began (s)",
        ["requests/s", "MiB/s", "with the driver"],
    )  # fmt: skip
    for place, (name, counts, volume) in enumerate(
        (("read", "reads", "bytes_read"), ("write", "writes", "bytes_written"))
    ):
        plot.add(series(name, place, times, [count / step_s for count in drawn[counts]]))
        rates = [count / step_s / 2**20 for count in drawn[volume]]
        plot.add(series(name, place, times, rates, showlegend=False), 1)
    depths = [value / drawn["interval_ns"] for value in drawn["depth_ns"]]
    plot.add(series("depth, mean", 2, times, depths), 2)
    plot.add(series("depth, most", 3, times, drawn["depth_max"]), 2)
    explanation = "Rates at which requests were handed to the driver, and how many it had."
    return Figure("trace-rates", "Rates and queue depth", explanation, [plot])


def _by_process(figures: dict[str, Any], times: list[float], step_s: float) -> Figure:
    by_name: dict[str, list[int]] = {}
    for pid, counts in figures["maps"]["by_pid"].items():
        name = figures["names"].get(pid, "unknown" if pid == "0" else f"task {pid}")
        before = by_name.setdefault(name, [0] * len(counts))
        by_name[name] = [old + new for old, new in zip(before, counts, strict=True)]
    most = sorted(by_name, key=lambda name: -sum(by_name[name]))[:PROCESSES_DRAWN]
    plot = Plot(
        "trace-processes",
        "By process",
        "Request rate of each process.",
        "time since the trace began (s)",
        ["requests/s"],
    )
    for place, name in enumerate(most):
        plot.add(series(name, place, times, [count / step_s for count in by_name[name]]))
    return Figure("trace-processes", "Rate by process", "The processes of most requests, by name.", [plot])


def _distribution(figures: dict[str, Any]) -> Iterator[Figure]:
    groups = [(group["name"], group["whole_ns"] or group["device_ns"]) for group in figures["by_operation"]]
    known = [(name, values) for name, values in groups if values]
    if not known:
        return
    plot = Plot(
        "trace-distribution",
        "Latency, cumulative",
        "Share of requests by latency.",
        "latency (us)",
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
    explanation = "From queueing to completion; where queueing is not in the trace, from issue."
    yield Figure("trace-distribution", "Distribution of latency", explanation, [plot])
