"""A plot as plotly's own JSON: plain data, so that a page needs only the library's script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from iolab.base.plain_text import one_line
from iolab.base.quantity import scale_for
from iolab.base.strict_json import JsonObject
from iolab.domain.definition import DIFFERENCES, GAINS, LOSSES, Verdict

if TYPE_CHECKING:
    import polars

    from iolab.files.store import RunData


COLOURS = ("#3987c9", "#e07b39", "#2ca583", "#c96aa5", "#a8861a", "#7a6fd6", "#7d8794")
"""Distinct with any kind of colour vision, and readable on white and on black; markers and dashes differ too."""
MARKERS = ("circle", "diamond", "square", "triangle-up", "cross", "triangle-down", "x")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid")
VERDICT_COLOURS: dict[Verdict, str] = {
    **dict.fromkeys(GAINS, "#1a9a66"),
    **dict.fromkeys(LOSSES, "#d64541"),
    **dict.fromkeys(DIFFERENCES["neutral"], "#8e5bb5"),
    "same": "#6b7a8c",
    "undecided": "#c28a12",
}

PANEL_HEIGHT_PX = 300
FRAME_HEIGHT_PX = 90


@dataclass
class Plot:
    """Panels one above the other, with a common x axis title and legend."""

    id: str
    caption: str
    description: str
    """What a person who can't see the plot should know."""
    x_title: str
    panels: list[str]
    """Title of each panel's y axis."""
    height: int = 0
    x_axis: JsonObject = field(default_factory=dict)
    y_axis: JsonObject = field(default_factory=dict)
    y_axis_of: dict[int, JsonObject] = field(default_factory=dict)
    """By panel, in place of `y_axis`."""
    layout_extra: JsonObject = field(default_factory=dict)
    traces: list[JsonObject] = field(default_factory=list)
    fine: JsonObject | None = None
    """What is drawn when it is zoomed: `over_time.fine`."""
    requests: JsonObject | None = None
    """What is drawn when few are in sight: `single_requests.packed`."""

    def __post_init__(self) -> None:
        self.height = self.height or FRAME_HEIGHT_PX + PANEL_HEIGHT_PX * len(self.panels)

    def add(self, trace: JsonObject, panel: int = 0) -> None:
        """Adds a trace of Plotly to the panel of this number, from 0."""
        self.traces.append({**trace, "xaxis": _axis("x", panel), "yaxis": _axis("y", panel)})

    def figure(self) -> JsonObject:
        """`data` and `layout` for Plotly.newPlot. Colours of text and grid are the page's, set by its script."""
        layout: JsonObject = {
            "autosize": True,
            "height": self.height,
            "margin": {"l": 72, "r": 16, "t": 40, "b": 52},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"family": "system-ui, sans-serif", "size": 13},
            "hovermode": "closest",
            "hoverlabel": {"namelength": -1},
            "modebar": {"bgcolor": "rgba(0,0,0,0)"},
            "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "groupclick": "togglegroup"},
            "showlegend": True,
            **self.layout_extra,
        }
        count = len(self.panels)
        gap = 0.24 / count if count > 1 else 0.0
        share = (1 - gap * (count - 1)) / count
        for panel, title in enumerate(self.panels):
            top = 1 - panel * (share + gap)
            bottom = panel == count - 1
            x_title = {"title": {"text": literal(self.x_title)}} if bottom else {}
            layout[_axis("xaxis", panel)] = {
                "anchor": _axis("y", panel),
                "showline": True,
                "zeroline": False,
                "showticklabels": bottom,
                **({} if bottom else {"matches": _axis("x", count - 1)}),
                **x_title,
                **self.x_axis,
            }
            layout[_axis("yaxis", panel)] = {
                "anchor": _axis("x", panel),
                "domain": [max(0.0, top - share), top],
                "title": {"text": literal(title)},
                "zeroline": False,
                "automargin": True,
                **self.y_axis_of.get(panel, self.y_axis),
            }
        return {"data": self.traces, "layout": layout}


@dataclass(frozen=True)
class Figure:
    """Plots under one heading."""

    id: str
    heading: str
    explanation: str
    plots: list[Plot]


def series(name: str, place: int, x: Sequence[float], y: Sequence[float | None], **more: object) -> JsonObject:
    """A line for the setting at `place` in the legend."""
    colour = colour_of(place)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": literal(name),
        "legendgroup": name,
        "x": list(x),
        "y": list(y),
        "line": {"color": colour, "width": 2, "dash": DASHES[place % len(DASHES)]},
        "marker": marker_of(place),
        **more,
    }


def marker_of(place: int) -> JsonObject:
    """How points of the setting at `place` look."""
    return {"color": colour_of(place), "symbol": MARKERS[place % len(MARKERS)], "size": 8}


def band(
    name: str, place: int, x: Sequence[float], low: Sequence[float | None], high: Sequence[float | None]
) -> list[JsonObject]:
    """The area between two lines, behind the setting's own line."""
    edge = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    red, green, blue = (int(colour_of(place)[i : i + 2], 16) for i in (1, 3, 5))
    fill = {"fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},0.16)"}
    return [series(name, place, x, low) | edge, series(name, place, x, high) | edge | fill]


def literal(text: str) -> str:
    """A name for plotly, which takes texts for markup, templates and formulas: it shows this as the name is."""
    escaped = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("%{", "&#37;{").replace("$", "&#36;")


def colour_of(place: int) -> str:
    """The colour of the setting at this place among the run's; colours repeat."""
    return COLOURS[place % len(COLOURS)]


def _axis(name: str, panel: int) -> str:
    return name if panel == 0 else f"{name}{panel + 1}"


def by(frame: polars.DataFrame, column: str) -> list[tuple[str, polars.DataFrame]]:
    """The frame in parts, one for each value of the column, in the order of first appearance."""
    parts = frame.partition_by(column, as_dict=True, maintain_order=True)
    return [(str(key), part) for (key,), part in parts.items()]


def by_setting(frame: polars.DataFrame, settings: list[str]) -> list[tuple[str, polars.DataFrame]]:
    """The frame in parts by setting, in the run's order of settings."""
    return sorted(by(frame, "setting"), key=lambda part: settings.index(part[0]))


def plot_id(figure: str, run: RunData, workload: str, number: int) -> str:
    """The id of a plot's element on the page: unique, and the same each time that the report is made."""
    return f"{figure}-{run.workloads.index(workload)}-{number}"


def caption(workload: str, phase: str) -> str:
    """A plot's caption: the workload, and the phase if there are several."""
    return workload if phase == "main" else f"{workload}, {phase.replace('_', ' ')}"


def duration(ns: float) -> str:
    """`10 µs`, for the ticks of an axis."""
    scale = scale_for("ns", [ns])
    return f"{ns / scale.divisor:.3g} {scale.suffix}"


def add_lines_over_time(plot: Plot, panel: int, points: polars.DataFrame, divisor: float, settings: list[str]) -> None:
    """A line for each setting, with the range of its rounds behind it: the columns setting, start_s, value, low, high,
    by time."""
    for setting, rows in by_setting(points, settings):
        place, x = settings.index(setting), rows["start_s"].to_list()
        low, middle, high = ((rows[name] / divisor).to_list() for name in ("low", "value", "high"))
        for edge in band(setting, place, x, low, high):
            plot.add(edge, panel)
        plot.add(series(setting, place, x, middle, showlegend=panel == 0), panel)
