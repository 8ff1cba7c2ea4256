"""What leads: of each workload, the rows and sentences that come first are about what the workload waits for.

The rule, which docs/reference/statistics.md states:

- A workload that syncs while it runs waits for its syncs: sync latency leads. A buffered write returns from memory.
- One that keeps several I/Os in flight waits for completions: latency leads.
- The job with the longest tail under the baseline comes first among jobs side by side, and its tail leads.
- Any other leads with what its experiment compares first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iolab.domain.metric.row import families

if TYPE_CHECKING:
    from iolab.domain.trial import Phase

SYNC_TIMES = ("sync.latency_ns_mean", "sync.latency_ns_p99")
SYNC_RATE = "sync.iops"
"""Of a setting alone, where it answers how many commits a second; beside others it says what the latency says."""
COMPLETION = ("latency_ns_mean", "latency_ns_p99")
TAIL = ("latency_ns_p99", "latency_ns_mean")
OF_TRANSFERS = ("read", "write", "")


@dataclass(frozen=True)
class Shape:
    """What a workload is like, as far as the choice of its metrics depends on it."""

    jobs: tuple[str, ...] = ()
    """Its kinds of jobs, if it has several: copies of one job are one kind."""
    syncs: bool = False
    """Whether it waits for data to be durable while it runs."""
    queue_depth: int = 1


def shape_of(phases: Iterable[Phase]) -> Shape:
    """The shape of the workload that has these phases."""
    measured = [phase for phase in phases if phase.measured]
    jobs = dict.fromkeys(name for phase in measured for name in _kinds(phase))
    return Shape(
        tuple(jobs) if len(jobs) > 1 else (),
        any(phase.waits_for_syncs for phase in measured),
        max((phase.queue_depth for phase in measured), default=1),
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
    syncs = shape.syncs and any(key.endswith(SYNC_TIMES) for key in keys)
    first = (
        (SYNC_RATE, *SYNC_TIMES) if syncs else TAIL if beside_others else COMPLETION if shape.queue_depth > 1 else ()
    )
    return sorted(keys, key=lambda key: _place(key, first, of_syncs=syncs))


def _place(key: str, first: Sequence[str], *, of_syncs: bool) -> int:
    name = key.rpartition("/")[2]
    op, _, metric = name.rpartition(".")
    leads = [place for place, one in enumerate(first) if (name.endswith(one) if of_syncs else metric == one)]
    return leads[0] if leads and (of_syncs or op in OF_TRANSFERS) else len(first)
