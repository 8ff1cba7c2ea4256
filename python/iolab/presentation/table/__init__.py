"""Tables of a run, one file per format of `iolab show --as`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from iolab.base.errors import InputError, unknown
from iolab.base.strict_json import dumps

if TYPE_CHECKING:
    from iolab.domain.summary import Jobs
    from iolab.files.store import RunData

FORMATS = {
    "plain": "for people: a row per workload and metric, a column per setting",
    "tiobench": "the classic table of a tiobench experiment",
    "tiobench_sums": "the same with latencies and their shares added up over runs, as tiobench.pl --numruns posts them",
    "iozone": "the tool's matrix, and its throughput blocks, with CPU utilisation",
    "mmtests": "a comparison in mmtests' style: positive is better, * if the verdict is sure",
    "fs_mark": "the tool's table of an fs_mark experiment",
    "fs_mark_verbose": "the same with the times of each system call, as its option -v",
    "iostest": "the AVERAGE table of an iostest experiment: a column per weighted group",
    "make": "the table of a make-sequence experiment: a block per step, a line per setting",
    "hosts": "for a run on several hosts: a verdict per host, and how much the hosts differ",
    "output": "the output of commands that failed, such as a make",
    "affinity": "where I/O is queued and completed: a line per cell of the matrix of the setting affinity",
    "qsbench": "when each process of a qsbench experiment was done",
    "cycles": "cycles per byte and per I/O in both readings of utilisation, the CPU split, stalled cycles",
    "extents": "where files lie on their device: logical and physical blocks, and how files interleave",
    "switches": "where tasks leave their CPUs and for how long, by the function that waits and by task",
    "profile": "which functions of the kernel ran, over time",
    "symbols": "instructions by function in a guest machine, and the functions in which settings differ",
    "lines": "the same by line of the kernel's source, if a file with debug information was available",
    "folded": "functions of a guest machine as folded stacks, for programs that draw flame graphs",
    "grid": "for a sweep, or a directory of runs: machines x settings, a verdict in each cell",
    "csv": "one line per trial, one column per metric; `iolab compare FILE.csv` reads it",
    "markdown": "the plain table for a document or a mail",
    "json": "every value and verdict, for programs",
}
"""Name -> what it is for. The format NAME is made by `iolab.presentation.table.NAME.render(run, metrics)`, if it is
none of VARIANTS. `grid` is of many runs: `iolab.presentation.table.verdict_grid` makes it."""

VARIANTS: dict[str, tuple[str, dict[str, bool]]] = {
    "tiobench_sums": ("tiobench", {"sums": True}),
    "fs_mark_verbose": ("fs_mark", {"calls": True}),
}
"""Formats that the module of another makes, with what it is told."""
OF_JOBS = ("plain", "markdown", "mmtests", "json")
"""Formats that have rows for jobs."""
OF_PROBES = ("extents", "switches", "profile")
"""Formats that show the whole of what the probe of that name observed."""


def render(run: RunData, name: str, metrics: Sequence[str] = (), jobs: Jobs | None = None) -> str:
    """The run as text in the format `name`, of the metrics with these keys (default: the experiment's).

    InputError if there is no such format, or if the run doesn't have what it needs. `jobs`: else as `summarise` does.
    """
    if name not in FORMATS:
        raise InputError(f"{name}: {unknown('format', name, FORMATS)}", where="--as")
    if name == "grid":
        grid: str = import_module("iolab.presentation.table.verdict_grid").render_run(run, metrics)
        return grid
    if jobs is not None and name not in OF_JOBS:
        raise InputError(
            f"{name}: does not show jobs apart", where="--as", remedy=f"choose another: {', '.join(OF_JOBS)}"
        )
    of_jobs = {} if jobs is None else {"jobs": jobs}
    module, variant = VARIANTS.get(name, (name, {}))
    text: str = import_module(f"iolab.presentation.table.{module}").render(run, metrics, **of_jobs, **variant)
    return text


def render_json(run: RunData, name: str, metrics: Sequence[str] = (), jobs: Jobs | None = None) -> str:
    """What the format `name` is made from, for programs: a probe's observations (`probe_observations`), else every
    value and verdict of the run. InputError as `render`."""
    if name not in OF_PROBES:
        return render(run, "json" if name in FORMATS else name, metrics, jobs)
    observations_of = import_module("iolab.presentation.table.probe_observations").observations_of
    places = [place.as_dict() for place in observations_of(run, name)]
    return dumps({"run": str(run.path), "probe": name, "seen": places}) + "\n"
