"""Why requests of a trace are slow, and why those of another are slower: which stage, which requests, beside what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.base.quantity import format_bytes
from iolab.base.trace_files import Trace
from iolab.studies.trace.export import frames, task_names

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

STAGES = ("queue", "scheduler", "device")
TAIL_SHARE, HELD = 0.1, 0.9
"""The slow are the fewest that have the second of the time which the slowest tenth takes beyond all others. Chosen with
a trace of planted causes in sight."""
SLOW_MIN = 10
"""Fewer slow requests than this are not explained."""
LIFT_MIN, COVERED_MIN = 1.5, 0.2
"""How much more a trait has to have of the slow or of their time than of the others, and how much at least."""
PROCESSES_MAX, GROUPS_MAX = 8, 8
NO_CAUSE = "What is more frequent among the slow came with them; a trace alone does not show what caused what."


@dataclass(frozen=True)
class Stage:
    """A stage's part of a difference."""

    name: str
    before_ns: float
    after_ns: float
    share: float
    """The share of the whole difference."""


@dataclass(frozen=True)
class Trait:
    """Something that slow requests have more often than others."""

    what: str
    slow_share: float
    time_share: float
    """Of the slow ones' time beyond the median of all."""
    other_share: float


@dataclass(frozen=True)
class SlowRequests:
    """The slowest requests of a trace beside all others."""

    measure: str
    """`whole` or `device`: the latency that is known."""
    requests: int
    slow: int
    from_ns: float
    held: float
    """Their share of all time beyond the median."""
    stages: list[Stage]
    traits: list[Trait]


@dataclass(frozen=True)
class Group:
    """Requests of one operation and size in both traces."""

    name: str
    share_before: float
    share_after: float
    before_ns: float | None
    after_ns: float | None
    slower_ns: float
    """What its being slower adds to the mean of all."""


@dataclass(frozen=True)
class Change:
    """What became of the mean latency from one trace to another."""

    measure: str
    before_ns: float
    after_ns: float
    stages: list[Stage]
    mix_ns: float
    """What part of the difference comes from other operations and sizes, each as slow as before."""
    slower_ns: float
    """What comes from requests alike that took longer, or less."""
    groups: list[Group]


def explain_slow(trace: Trace) -> SlowRequests:
    """The slowest beside the rest: those with most of the time that the slowest tenth takes beyond all others.

    Raises:
        InputError: the trace can't be read, or has too few latencies.
    """
    rows = _requests(trace)
    measure = _measure([rows], trace.name)
    rows = rows.drop_nulls(f"{measure}_ns")
    if len(rows) < 4 * SLOW_MIN:
        raise InputError(f"{counted(len(rows), 'request')} with a latency: too few to find slow ones", where=trace.name)
    times_ns = rows[f"{measure}_ns"].to_numpy().astype(float)
    extra_ns = np.maximum(times_ns - np.median(times_ns), 0.0)
    from_ns = float(np.sort(times_ns)[-_slow_count(times_ns)])
    slow = times_ns >= from_ns
    if slow.all():
        raise InputError("all requests took the same time", where=trace.name)
    parts = [rows.filter(~slow), rows.filter(slow)]
    weights = extra_ns[slow] / (extra_ns[slow].sum() or 1.0)
    traits = []
    for name, has in _traits(rows, task_names(trace)):
        flags = has.fill_null(value=False).to_numpy().astype(float)
        trait = Trait(name, float(flags[slow].mean()), float(flags[slow] @ weights), float(flags[~slow].mean()))
        if max(trait.slow_share, trait.time_share) >= max(COVERED_MIN, LIFT_MIN * trait.other_share):
            traits.append(trait)
    traits.sort(key=lambda trait: trait.other_share - max(trait.slow_share, trait.time_share))
    held = float(extra_ns[slow].sum() / (extra_ns.sum() or 1.0))
    return SlowRequests(measure, len(rows), int(slow.sum()), from_ns, held, _stages(parts, measure), traits)


def explain_change(before: Trace, after: Trace) -> Change:
    """The mean latency of both, by stage and by what was asked for.

    Raises:
        InputError: one can't be read, or has no latency.
    """
    import polars as pl

    both = [_requests(trace) for trace in (before, after)]
    measure = _measure(both, f"{before.name}, {after.name}")
    both = [rows.drop_nulls(f"{measure}_ns") for rows in both]
    grouped = [
        rows.group_by(_group().alias("group")).agg(share=pl.len() / len(rows), mean=pl.col(f"{measure}_ns").mean())
        for rows in both
    ]
    groups, mix_ns, slower_ns = [], 0.0, 0.0
    joined = grouped[0].join(grouped[1], on="group", how="full", coalesce=True, suffix="_after").sort("group")
    means = [float(rows[f"{measure}_ns"].mean() or 0.0) for rows in both]  # type: ignore[arg-type]
    for name, share, mean, share_after, mean_after in joined.iter_rows():
        shares = (share or 0.0, share_after or 0.0)
        # A group that one trace lacks can't be slower or faster: all of it is mix.
        old, new = (mean_after if mean is None else mean, mean if mean_after is None else mean_after)
        # Kitagawa's decomposition: each part at the average of the other.
        mix_ns += (shares[1] - shares[0]) * ((old + new) / 2 - sum(means) / 2)
        own_ns = (new - old) * sum(shares) / 2
        slower_ns += own_ns
        groups.append(Group(name, *shares, mean, mean_after, own_ns))
    groups.sort(key=lambda group: -abs(group.slower_ns))
    return Change(measure, means[0], means[1], _stages(both, measure), mix_ns, slower_ns, groups[:GROUPS_MAX])


def _slow_count(times_ns: np.ndarray[Any, Any]) -> int:
    beyond = np.maximum(np.sort(times_ns)[::-1] - np.quantile(times_ns, 1 - TAIL_SHARE), 0.0)
    held = np.cumsum(beyond)
    return max(SLOW_MIN, int(np.searchsorted(held, HELD * held[-1])) + 1)


def _requests(trace: Trace) -> pl.DataFrame:
    import polars as pl

    kept = [frame.filter(pl.col("operation") != "other") for frame in frames(trace)]
    if not kept or not sum(map(len, kept)):
        raise InputError("no request ended in it", where=trace.name)
    column = pl.col
    between = {
        "queue_ns": pl.coalesce("inserted_ns", "issued_ns") - column("queued_ns"),
        "scheduler_ns": column("issued_ns") - column("inserted_ns"),
        "device_ns": column("completed_ns") - column("issued_ns"),
        "whole_ns": column("completed_ns") - column("queued_ns"),
    }
    rows = pl.concat(kept)
    # Times since 1601, as in traces of Windows, are beyond what is signed.
    times = pl.col("^.*_ns$")
    first_ns = rows.select(pl.min_horizontal(times.min())).item()
    signed = rows.with_columns(times - first_ns).with_columns(pl.col(pl.UInt64).cast(pl.Int64))
    return signed.with_columns(**between).sort("arrived_ns", maintain_order=True)


def _measure(traces: list[pl.DataFrame], name: str) -> str:
    for measure in ("whole", "device"):
        if all(rows[f"{measure}_ns"].count() for rows in traces):
            return measure
    raise InputError("has no latency", where=name, remedy="record it with iolab record")


def _stages(both: list[pl.DataFrame], measure: str) -> list[Stage]:
    """The stages of the difference of the means. A request that skipped a stage spent no time there."""
    whole = [float(rows[f"{measure}_ns"].mean() or 0.0) for rows in both]  # type: ignore[arg-type]
    found = []
    known = [name for name in STAGES if measure == "whole" and any(rows[f"{name}_ns"].count() for rows in both)]
    for name in known or (measure,):
        means = [float(rows[f"{name}_ns"].fill_null(0).mean() or 0.0) for rows in both]  # type: ignore[arg-type]
        apart = whole[1] - whole[0]
        share = (means[1] - means[0]) / apart if apart else 0.0
        found.append(Stage(name, means[0], means[1], share))
    return found


def _group() -> pl.Expr:
    """`read up to 4KiB`: the operation and the power of two that holds the size."""
    import polars as pl

    size = ((pl.col("sectors").clip(1).log(2) - 1e-9).ceil().cast(pl.Int64)).replace_strict(
        {power: format_bytes(512 << power) for power in range(33)}, return_dtype=pl.String
    )
    return pl.col("operation").cast(pl.String) + pl.when(pl.col("sectors") > 0).then(" up to " + size).otherwise(
        pl.lit("")
    )


def _traits(rows: pl.DataFrame, names: dict[int, str]) -> Iterator[tuple[str, pl.Series]]:
    """What a request has or has not, by its description."""
    import polars as pl

    groups = rows.select(_group().alias("group"))["group"]
    for name in groups.unique().sort():
        yield f"is a {name}", groups == name
    operations = rows["operation"].cast(pl.String)
    for name in operations.unique().sort():
        if (of_it := operations == name).any() and groups.filter(of_it).n_unique() > 1:
            yield f"is a {name} of any size", of_it
    processes = rows["pid"].replace_strict(names, default="a task that the trace does not name", return_dtype=pl.String)
    known = processes.value_counts(sort=True)[processes.name][:PROCESSES_MAX].to_list()
    for name in known:
        yield f"is of {name}", processes == name
    for mark, words in (
        ("fua", "has FUA"),
        ("preflush", "begins with a flush"),
        ("split", "is a part of a larger I/O"),
    ):
        yield words, rows[mark]
    yield "was given back by the driver (requeue)", rows["requeues"] > 0
    yield "has others merged into it", rows["merged"] > 0
    ended = rows["completed_ns"].to_numpy()
    began = rows["arrived_ns"].to_numpy()
    flush = ((rows["operation"] == "flush") | rows["preflush"]).to_numpy()
    own = flush.astype(np.int64)
    beside = _under_way(began[flush], ended[flush], began, ended) - own
    yield "had a flush in flight beside it", pl.Series(beside > 0)
    groups_of = [(f"a {name}", operations == name) for name in operations.filter(operations != "flush").unique().sort()]
    if len(known) > 1:
        groups_of += [(f"a request of {name}", processes == name) for name in known]
    for words, of_it in groups_of:
        before = np.searchsorted(np.sort(began[of_it.to_numpy()]), began)
        over = np.searchsorted(np.sort(ended[of_it.to_numpy()]), began, side="right")
        yield f"came when {words} was in flight", pl.Series(before > over)
    for what, weights in (("requests", np.ones(len(rows))), ("bytes", rows["sectors"].to_numpy().astype(float))):
        ahead = _ahead(began, ended, weights)
        many = np.quantile(ahead, 0.9)
        if many > np.median(ahead):
            shown = f"{many:.0f} requests" if what == "requests" else format_bytes(int(many) * 512)
            yield f"came when {shown} or more were in flight", pl.Series(ahead >= many)
    end = pl.col("sector") + pl.col("sectors")
    jumps = rows.select(pl.col("sector") != end.shift().over("device", "operation")).to_series().fill_null(value=True)
    yield "did not follow the one before", jumps & (rows["sectors"] > 0)


def _under_way(
    began: np.ndarray[Any, Any], ended: np.ndarray[Any, Any], since: np.ndarray[Any, Any], until: np.ndarray[Any, Any]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How many of the intervals meet each of the others."""
    started = np.searchsorted(np.sort(began), until, side="right")
    over = np.searchsorted(np.sort(ended), since, side="left")
    return np.asarray(started - over, dtype=np.int64)


def _ahead(
    began: np.ndarray[Any, Any], ended: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """What had arrived and not ended when each arrived."""
    order = np.argsort(ended, kind="stable")
    done = np.concatenate([[0.0], np.cumsum(weights[order])])
    arrived = np.concatenate([[0.0], np.cumsum(weights)[:-1]])
    return np.asarray(arrived - done[np.searchsorted(ended[order], began, side="right")], dtype=np.float64)
