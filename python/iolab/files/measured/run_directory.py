"""A run directory as cells: each workload of the kind `io` under one setting, over its rounds."""

from __future__ import annotations

import math
from pathlib import Path

from iolab.domain.calibration.cell import Cell, factor
from iolab.domain.workload.io import IoOptions
from iolab.files.measured.found import MeasuredCells
from iolab.files.store import read as read_run
from iolab.files.store.read import RunData

P99 = "latency_ns_p99"
IOPS = "iops"


def read(path: Path) -> MeasuredCells:
    """The cells under the first setting: geometric means over the rounds.

    Raises:
        InputError: no run, or one that this iolab doesn't understand.
    """
    run = read_run(path)
    found = MeasuredCells()
    if not run.settings:
        found.left_out.append(f"{path}: no trial has ended")
        return found
    setting, *others = run.settings
    found.left_out += [f"{path}: setting {other}: only the first, {setting}, is read" for other in others]
    for workload in run.workloads:
        options = run.experiment.workload_under(workload, setting).options
        if (why := _why_not(options)) is not None:
            found.left_out.append(f"{path}: {workload}: {why}")
            continue
        assert isinstance(options, IoOptions), "all others are refused above"
        rates = _values(run, workload, setting, IOPS)
        if not rates:
            found.left_out.append(f"{path}: {workload}: no trial has its rate")
        else:
            p99_ns = _values(run, workload, setting, P99)
            again = factor(rates[0], rates[1]) if len(rates) > 1 else None
            found.cells.append(Cell(workload, options, _mean(rates), _mean(p99_ns) if p99_ns else None, again))
    return found


def _why_not(options: object) -> str | None:
    if not isinstance(options, IoOptions):
        return "a cell is one job, a workload of the kind io"
    if not options.uses_direct:
        return "it is buffered: the page cache is in it, and not the device alone"
    if options.rate is not None or options.rate_iops is not None or options.think_time:
        return "its rate is not the device's: an open loop, or pauses"
    return None


def _values(run: RunData, workload: str, setting: str, metric: str) -> list[float]:
    """Of the rounds in order: those that have one above 0."""
    frame = run.values(metric, workload)
    values = frame[setting].drop_nulls().to_list() if setting in frame.columns else []
    return [value for value in values if value > 0]


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))
