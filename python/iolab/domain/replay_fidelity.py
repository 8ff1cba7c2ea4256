"""How faithful the replay of a trace was, of one thread or of all together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iolab.domain import native_types as native


@dataclass(frozen=True)
class ReplayFidelity:
    """The records of the threads that replayed (crates/measure/workload/src/replay/fidelity.rs)."""

    jobs: Sequence[native.ReplayRecord]

    @property
    def arrivals(self) -> int:
        """I/Os that were offered."""
        return sum(job["arrivals"] for job in self.jobs)

    @property
    def late_percent(self) -> float | None:
        """The share of I/Os that were more than 100 us late; None without any I/O."""
        late = sum(job["arrivals_late"] for job in self.jobs)
        return 100 * late / self.arrivals if self.arrivals else None

    @property
    def late_queue_full_percent(self) -> float | None:
        """I/Os late because the queue was full when they were due; None without any, and of older records."""
        late = [job.get("arrivals_late_queue_full") for job in self.jobs]
        known = [count for count in late if count is not None]
        return 100 * sum(known) / self.arrivals if self.arrivals and len(known) == len(late) else None

    @property
    def refused(self) -> int | None:
        """Discards and writes of zeroes that the target does not take; None of older records, which have none."""
        known = [count for job in self.jobs if (count := job.get("refused")) is not None]
        return sum(known) if known else None

    @property
    def lateness_ns_p99(self) -> int | None:
        """The highest of the threads' 99th percentiles of lateness, in ns."""
        return max((found for job in self.jobs if (found := job["lateness_ns_p99"]) is not None), default=None)

    @property
    def rate_share(self) -> float | None:
        """Arrivals per second over those of the trace, of the threads that report both."""
        rates = [
            (recorded, replayed)
            for job in self.jobs
            if (recorded := job["recorded_rate_per_s"]) and (replayed := job["replayed_rate_per_s"])
        ]
        return sum(replayed for _, replayed in rates) / sum(recorded for recorded, _ in rates) if rates else None

    @property
    def depth_distance(self) -> float | None:
        """The mean of the threads that report it, weighted by their I/Os."""
        known = [(job["arrivals"], found) for job in self.jobs if (found := job["depth_distance"]) is not None]
        ios = sum(count for count, _ in known)
        return sum(count * found for count, found in known) / ios if ios else None
