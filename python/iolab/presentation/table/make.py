"""`show --as make`: a block per step of make-sequence, a line per setting, over all rounds and devices, in seconds.

The columns are those of the table in which the kernel-make results of I/O affinity were posted (linux-kernel, February
2008). The standard deviation is that of a sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.domain.workload.make_sequence import STEPS

if TYPE_CHECKING:
    import polars

    from iolab.files.store import RunData

COLUMNS = ("Min", "Avg", "Max", "Std Dev")
WIDTH = 7
ABSENT = "-"

Seconds = Mapping[str, Sequence[float]]
"""By setting: the time of each device in each round."""


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """The table. InputError if the run has no workload of kind make-sequence, or if metrics are asked for."""
    if metrics:
        raise InputError("the make table has fixed columns", where="--metric", remedy="leave --metric out")
    workloads = make_workloads(run)
    if not workloads:
        raise InputError(
            "the run has no workload of kind make-sequence",
            where=str(run.path),
            remedy="show it as plain, csv, markdown or json",
        )
    parts = []
    for workload in workloads:
        if len(workloads) > 1:
            parts.append(f"{workload}\n")
        parts += [block(step, seconds) for step, seconds in step_seconds(run, workload).items()]
    return "\n".join(parts)


def make_workloads(run: RunData) -> list[str]:
    """The run's workloads of this kind."""
    return [name for name in run.workloads if run.experiment.workloads[name].kind == "make-sequence"]


def step_seconds(run: RunData, workload: str) -> dict[str, dict[str, list[float]]]:
    """By step, in order: each setting's times, of each device in each round."""
    by_step: dict[str, dict[str, list[float]]] = {step: {name: [] for name in run.settings} for step in STEPS}
    for phase, setting, value in _elapsed(run, workload).select("phase", "setting", "value").iter_rows():
        if phase in by_step:
            by_step[phase][setting].append(value)
    return by_step


def block(step: str, seconds: Seconds) -> str:
    """One step's lines, heading first."""
    names = {setting: "_".join(setting.split()) for setting in seconds}
    width = max(len(step), *(len(name) for name in names.values()))
    lines = [
        _line(f"{step:<{width}}", COLUMNS),
        _line("-" * width, ["-" * WIDTH] * len(COLUMNS)),
        *(_line(f"{names[setting]:<{width}}", _cells(values)) for setting, values in seconds.items()),
    ]
    return "\n".join(lines) + "\n"


def _elapsed(run: RunData, workload: str) -> polars.DataFrame:
    """Each device's time; if there is one device, its time is the phase's."""
    import polars as pl

    of_devices = run.job_metrics(workload=workload).filter(pl.col("metric") == "elapsed_s")
    if of_devices.is_empty():
        of_devices = run.metrics.filter(pl.col("workload") == workload, pl.col("metric") == "elapsed_s")
    return of_devices.filter(pl.col("value").is_not_null())


def _cells(values: Sequence[float]) -> list[str]:
    if not values:
        return [ABSENT] * len(COLUMNS)
    spread = f"{stdev(values):.3f}" if len(values) > 1 else ABSENT
    return [f"{min(values):.3f}", f"{fmean(values):.3f}", f"{max(values):.3f}", spread]


def _line(name: str, cells: Sequence[str]) -> str:
    return " ".join([name, *(f"{cell:>{WIDTH}}" for cell in cells)])
