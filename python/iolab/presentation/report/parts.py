"""What the figures of a report have in common: frames in parts, names of plots, lines with the range of the rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolab.presentation.report.plot import Plot, band, series

if TYPE_CHECKING:
    import polars

    from iolab.adapters.store import RunData


def by(frame: polars.DataFrame, column: str) -> list[tuple[str, polars.DataFrame]]:
    parts = frame.partition_by(column, as_dict=True, maintain_order=True)
    return [(str(key), part) for (key,), part in parts.items()]


def by_setting(frame: polars.DataFrame, settings: list[str]) -> list[tuple[str, polars.DataFrame]]:
    return sorted(by(frame, "setting"), key=lambda part: settings.index(part[0]))


def plot_id(figure: str, run: RunData, workload: str, number: int) -> str:
    return f"{figure}-{run.workloads.index(workload)}-{number}"


def caption(workload: str, phase: str) -> str:
    return workload if phase == "main" else f"{workload}, {phase.replace('_', ' ')}"


def add_lines_over_time(plot: Plot, panel: int, points: polars.DataFrame, divisor: float, settings: list[str]) -> None:
    """A line for each setting, with the range of its rounds behind it: the columns setting, start_s, value, low, high,
    by time."""
    for setting, rows in by_setting(points, settings):
        place, x = settings.index(setting), rows["start_s"].to_list()
        low, middle, high = ((rows[name] / divisor).to_list() for name in ("low", "value", "high"))
        for edge in band(setting, place, x, low, high):
            plot.add(edge, panel)
        plot.add(series(setting, place, x, middle, showlegend=panel == 0), panel)
