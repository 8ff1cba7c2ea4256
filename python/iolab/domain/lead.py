"""What leads: of each workload, the rows and sentences that come first are about what the workload waits for.

The rule, which docs/reference/statistics.md states:

- A log is written for its commits: commits a second lead, then the tail of a commit.
- A workload that syncs while it runs waits for its syncs: sync latency leads. A buffered write returns from memory.
- One that keeps several I/Os in flight waits for completions: latency leads.
- The job with the longest tail under the baseline comes first among jobs side by side, and its tail leads.
- Any other leads with what its experiment compares first.

What other tools report has no such shape: there, the metrics of each job, which is a phase, have a `tier`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice, zip_longest

from iolab.domain.metric import describe
from iolab.domain.metric.row import families
from iolab.domain.trial import Phase

COMMITS = ("commit.iops", "commit.latency_ns_p99", "commit.latency_ns_mean")
SYNC_TIMES = ("sync.latency_ns_mean", "sync.latency_ns_p99")
SYNC_RATE = "sync.iops"
"""Of a setting alone, where it answers how many commits a second; beside others it says what the latency says."""
OF_DEVICE = "device_busy_percent"
"""What a watched device has, which passes flushes on and waits for nothing."""
COMPLETION = ("latency_ns_mean", "latency_ns_p99")
TAIL = ("latency_ns_p99", "latency_ns_mean")
OF_TRANSFERS = ("read", "write", "")
METRICS_SHOWN_MAX = 40
"""The most that tables of what another tool reports show unasked, beside `LEADING_SHOWN` of each phase and those that
differ."""
LEADING_SHOWN = 4
"""Rate, IOPS, mean latency and p99. Both are chosen."""
_PERCENTILE = re.compile(r"_(?:p(?P<percent>\d+)|median|min|max|stddev)$")


@lru_cache(maxsize=100_000)
def tier(key: str) -> int:
    """0: rates, times, their means and p99; 1: other percentiles and metrics; 2: extremes, percentiles of fewer than
    one operation in a hundred, and spreads, which vary most."""
    found = _PERCENTILE.search(key)
    if found is None:
        return int(describe(key).nature not in ("rate", "time"))
    percent = found["percent"]
    if percent is None:
        return 1 if found[0] == "_median" else 2
    return 0 if percent == "99" else 1 if len(percent) < 3 else 2


def phase_of(key: str) -> str:
    """`seqread` of `seqread/read.iops`; empty if the workload has one phase."""
    return key.rpartition("/")[0]


def left_out(keys: Sequence[str], differing: Collection[str]) -> list[str]:
    """Those that tables leave out for their length: each phase has its first metrics before any has further ones."""
    by_phase: dict[str, list[str]] = {}
    for key in sorted(keys, key=tier):
        by_phase.setdefault(phase_of(key), []).append(key)
    turns = filter(None, chain.from_iterable(zip_longest(*by_phase.values())))
    kept = {*islice(turns, max(METRICS_SHOWN_MAX, LEADING_SHOWN * len(by_phase))), *differing}
    return [key for key in keys if key not in kept]


@dataclass(frozen=True)
class Shape:
    """What a workload is like, as far as the choice of its metrics depends on it."""

    jobs: tuple[str, ...] = ()
    """Its kinds of jobs, if it has several: copies of one job are one kind."""
    syncs: bool = False
    """Whether it waits for data to be durable while it runs."""
    commits: bool = False
    """Whether it writes a log, whose commits are measured."""
    queue_depth: int = 1


def shape_of(phases: Iterable[Phase]) -> Shape:
    """The shape of the workload that has these phases."""
    measured = [phase for phase in phases if phase.measured]
    jobs = dict.fromkeys(name for phase in measured for name in _kinds(phase))
    return Shape(
        tuple(jobs) if len(jobs) > 1 else (),
        syncs=any(phase.waits_for_syncs for phase in measured),
        commits=any(phase.commits for phase in measured),
        queue_depth=max((phase.queue_depth for phase in measured), default=1),
    )


def kinds_of(jobs: Sequence[str]) -> list[str]:
    """Jobs by name, copies together under the name of their kind; none if all are of one kind."""
    by_kind = families(jobs)
    of_kind = {name: kind for kind, names in by_kind.items() for name in names}
    found = list(dict.fromkeys(of_kind.get(name, name) for name in jobs))
    one_kind = not by_kind and len({name.rpartition(".")[0] or name for name in jobs}) == 1
    return [] if one_kind else found


def _kinds(phase: Phase) -> list[str]:
    groups = [group.name for group in phase.weighted_groups]
    return groups or kinds_of(phase.job_names)


def in_order(keys: Sequence[str], shape: Shape, *, beside_others: bool = False) -> list[str]:
    """The keys of a workload's metrics, or of one of its jobs' beside others, those first that lead."""
    of_op = _of_one_operation(keys, shape)
    first = of_op or (TAIL if beside_others else COMPLETION if shape.queue_depth > 1 else ())
    return sorted(keys, key=lambda key: _place(key, first, of_op=bool(of_op)))


def _of_one_operation(keys: Sequence[str], shape: Shape) -> tuple[str, ...]:
    """What leads by name, operation and all, as far as the keys have it: commits before syncs."""
    if shape.commits and any(key.endswith(COMMITS) for key in keys):
        return COMMITS
    if shape.syncs and any(key.endswith(SYNC_TIMES) for key in keys):
        return (SYNC_RATE, *SYNC_TIMES)
    return ()


def _place(key: str, first: Sequence[str], *, of_op: bool) -> int:
    name = key.rpartition("/")[2]
    op, _, metric = name.rpartition(".")
    leads = [place for place, one in enumerate(first) if (name.endswith(one) if of_op else metric == one)]
    return leads[0] if leads and (of_op or op in OF_TRANSFERS) else len(first)
