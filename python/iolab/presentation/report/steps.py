"""The figure of make-sequence: a plot per step, each setting's times from the shortest to the longest."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from iolab.files.store import RunData
from iolab.presentation.report.plot import Figure, Plot, literal, series
from iolab.presentation.table.make import make_workloads, step_seconds


def figure(run: RunData, settings: list[str]) -> Figure:
    """Without plots if the run has no such workload."""
    return Figure(
        "steps",
        "Time of each step",
        "The mark is the mean over all rounds and devices, the line reaches from the shortest time to the longest; "
        "each time has the mount before and the unmount after the step in it. Lower is better.",
        [plot for workload in make_workloads(run) for plot in _plots(run, settings, workload)],
    )


def _plots(run: RunData, settings: list[str], workload: str) -> Iterator[Plot]:
    for step, seconds in step_seconds(run, workload).items():
        timed = [setting for setting in settings if seconds.get(setting)]
        if not timed:
            continue
        plot = Plot(
            f"steps-{run.workloads.index(workload)}-{step}",
            f"{workload}, {step}",
            f"Time of the step {step} of {workload} under each setting: mean, shortest and longest.",
            "setting",
            ["seconds"],
            x_axis={"type": "category"},
            y_axis={"rangemode": "tozero"},
        )
        for setting in timed:
            mean = fmean(seconds[setting])
            reach = {"array": [max(seconds[setting]) - mean], "arrayminus": [mean - min(seconds[setting])]}
            mark = series(setting, settings.index(setting), [], [mean], mode="markers")
            plot.add(mark | {"x": [literal(setting)], "error_y": {"type": "data", "symmetric": False, **reach}})
        yield plot
