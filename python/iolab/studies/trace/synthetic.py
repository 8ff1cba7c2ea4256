"""A trace and the workload that stands for it on one simulated machine: by how much their requests differ there."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from iolab.base.errors import InputError
from iolab.base.quantity import format_bytes
from iolab.base.toml import written
from iolab.base.trace_files import Trace, trace_of
from iolab.files.experiment import loads
from iolab.files.store import read
from iolab.studies import run as running
from iolab.studies.run.machine_executor import MachineExecutor
from iolab.studies.trace.characterise import DURATION_MAX_S
from iolab.studies.trace.export import frames
from iolab.studies.trace.replay import place_of

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from iolab.domain.executor import Display

QUANTILES = 999
WINDOW_NS = 10_000_000
ALIKE = {"latency": 1.1, "depth": 0.5, "sizes": 0.05, "bursts": 1.5, "sequential": 0.1}
"""Up to which distance the two are taken for alike."""


@dataclass(frozen=True)
class Difference:
    """One figure of both, on the machine."""

    figure: str
    trace: str
    synthetic: str
    distance: float
    """In the unit of `words`."""
    words: str
    alike: bool


def beside(trace: Trace, synthetic: str, machine: str, progress: Display, *, seed: int = 1) -> list[Difference]:
    """Runs both once on the machine, and compares what its block layer saw.

    Args:
        synthetic: the text of the experiment whose workload `trace` stands for the trace.

    Raises:
        InputError: no such machine, or the trace doesn't fit there.
    """
    if place_of(machine, destroy=False).machine is None:
        raise InputError("is no simulated machine", where="--check", remedy="name one: iolab list machines")
    with tempfile.TemporaryDirectory(prefix="iolab-check-") as directory:
        out = Path(directory) / "run"
        with MachineExecutor() as executor:
            text = _experiment(trace, synthetic, machine)
            running.run(loads(text, "--check"), out, executor=executor, progress=progress, seed=seed)
        requests = {name: _requests(out, name) for name in ("itself", "synthetic")}
    return _differences(requests["itself"], requests["synthetic"])


def _experiment(trace: Trace, synthetic: str, machine: str) -> str:
    """Both workloads, the synthetic one's tables under another name."""
    if len(trace.paths) != 1 and not str(trace.paths[0]).endswith(".blktrace.0"):
        raise InputError("of several files, the check takes a set of blktrace only", where=trace.name)
    tables = synthetic[synthetic.index("[workloads.trace]") :].replace("[workloads.trace", "[workloads.synthetic")
    file = str(trace.paths[0].absolute()).removesuffix(".blktrace.0")
    lines = [
        'title = "A trace and what stands for it"',
        f"machine = {written(machine)}",
        "rounds = 1",
        "[probes.block]",
        'trace = "blktrace"',
        "[workloads.itself]",
        'kind = "trace"',
        f"file = {written(file)}",
        'side = "queued"',
        'mapping = "regions"',
        f'take = "{DURATION_MAX_S:g}s"',
    ]
    if trace.table is not None:
        raise InputError("a table whose columns are named can't be checked", where="--check")
    return "\n".join([*lines, "[settings.as-it-is]", tables])


def _requests(run: Path, workload: str) -> pl.DataFrame:
    """What the machine's drives saw of the workload's trial."""
    import polars as pl

    data = read(run)
    trials = data.trials.filter(data.trials["workload"] == workload)
    trial = data.record(trials["trial"][0])
    if trial.status != "ok":
        what = trial.faults[0].what if trial.faults else f"the trial {trial.status}"
        raise InputError(what, where=f"--check: {workload}")
    files = sorted((run / "traces").glob(f"{trials['trial'][0]:06}.main.*.blktrace.0"))
    found = [frame for file in files for frame in frames(trace_of([file]))]
    if not found:
        raise InputError("no request ended", where=f"--check: {workload}")
    return pl.concat(found).sort("arrived_ns")


def _differences(ours: pl.DataFrame, theirs: pl.DataFrame) -> list[Difference]:
    both = (ours, theirs)
    found = []
    latencies = [(rows["completed_ns"] - rows["arrived_ns"]).drop_nulls().to_numpy().astype(float) + 1 for rows in both]
    if all(len(one) for one in latencies):
        shares = np.arange(1, QUANTILES + 1) / (QUANTILES + 1)
        logs = [np.log(np.quantile(one, shares)) for one in latencies]
        factor = float(np.exp(np.abs(logs[0] - logs[1]).mean()))
        values = [f"{np.quantile(one, 0.5) / 1e6:.3g} / {np.quantile(one, 0.99) / 1e6:.3g} ms" for one in latencies]
        words = f"off by a factor of {factor:.3g} on average over its quantiles"
        found.append(_difference("latency", "latency p50 / p99", values, factor, words))
    depths = [_depth(rows) for rows in both]
    apart = float(np.abs(np.cumsum(depths[0]) - np.cumsum(depths[1])).sum())
    values = [f"{float((np.arange(len(one)) * one).sum()):.3g}" for one in depths]
    found.append(_difference("depth", "queue depth, mean", values, apart, f"off by {apart:.3g} requests over time"))
    sizes = [dict(rows["sectors"].value_counts(normalize=True).iter_rows()) for rows in both]
    other = sum(abs(sizes[0].get(size, 0) - sizes[1].get(size, 0)) for size in {*sizes[0], *sizes[1]}) / 2
    values = [format_bytes(int(float(rows["sectors"].mean() or 0) * 512)) for rows in both]  # type: ignore[arg-type]
    found.append(
        _difference("sizes", "request size, mean", values, other, f"{other:.1%} of requests have another size")
    )
    bursts = [_dispersion(rows) for rows in both]
    more = max(bursts) / max(min(bursts), 1e-3)
    values = [f"{one:.3g}" for one in bursts]
    words = f"{more:.3g} times as uneven, the one as the other"
    found.append(_difference("bursts", "arrivals in 10 ms, variance over mean", values, more, words))
    follow = [_sequential(rows) for rows in both]
    share = abs(follow[0] - follow[1])
    values = [f"{one:.1%}" for one in follow]
    found.append(_difference("sequential", "requests that follow one another", values, share, f"{share:.1%} apart"))
    return found


def _difference(kind: str, figure: str, values: list[str], distance: float, words: str) -> Difference:
    return Difference(figure, values[0], values[1], distance, words, distance <= ALIKE[kind])


def _depth(rows: pl.DataFrame) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Share of the time at each depth from 0 on, padded so that two can be compared."""
    ended = rows.drop_nulls("completed_ns")
    at = np.concatenate([ended["arrived_ns"].to_numpy(), ended["completed_ns"].to_numpy()]).astype(np.int64)
    by = np.concatenate([np.ones(len(ended), np.int64), -np.ones(len(ended), np.int64)])
    order = np.lexsort((by, at))
    depth = np.clip(np.cumsum(by[order])[:-1], 0, _DEPTHS - 1)
    passed = np.diff(at[order])
    shares = np.bincount(depth, weights=passed, minlength=_DEPTHS)
    return shares / max(1.0, float(shares.sum()))


_DEPTHS = 4096


def _dispersion(rows: pl.DataFrame) -> float:
    since = (rows["arrived_ns"] - rows["arrived_ns"][0]).to_numpy() // WINDOW_NS
    counts = np.bincount(since.astype(np.int64))
    return float(counts.var() / counts.mean())


def _sequential(rows: pl.DataFrame) -> float:
    """The share of each operation that begins where the one before ended."""
    import polars as pl

    end = pl.col("sector") + pl.col("sectors")
    follows = rows.select(pl.col("sector") == end.shift().over("operation")).to_series().fill_null(value=False)
    return float(follows.mean() or 0.0)  # type: ignore[arg-type]
