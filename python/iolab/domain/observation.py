"""What a measured phase showed, of all jobs or one, of all operations or one kind: the arithmetic under the metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from iolab.base.histogram import Bucket, known_quantile, merged, share_over
from iolab.domain import native_types as native
from iolab.domain import phase_record
from iolab.domain.phase_record import JobRecord, Observations, PhaseRecord
from iolab.domain.replay_fidelity import ReplayFidelity
from iolab.domain.trial import Phase, WeightedGroup

NS_PER_S = 1e9
TRANSFERS = ("read", "write", "null")


@dataclass(frozen=True)
class Observation:
    """A phase's record (`iolab.domain.phase_record`), and the part of it that is looked at: jobs and operations."""

    phase: Phase
    record: PhaseRecord
    jobs: dict[str, JobRecord]
    """By name."""
    late_starts_ns: dict[str, int]
    """The phase's, which go through all its jobs: found once, however many rows ask."""
    ops: tuple[str, ...] = TRANSFERS
    job: str | None = None
    """The one job that is looked at."""
    group: WeightedGroup | None = None
    """The one weighted group that is looked at."""

    def of(self, op: str) -> Observation:
        """The observation of one operation alone; `all` stands for reads and writes, or for null operations."""
        return replace(self, ops=TRANSFERS if op == "all" else (op,))

    def of_job(self, name: str) -> Observation:
        """The observation of one job alone. KeyError if there is none of this name."""
        return replace(self, jobs={name: self.jobs[name]}, job=name)

    def of_jobs(self, names: Sequence[str]) -> Observation:
        """The observation of these jobs together. KeyError if one of them is missing."""
        return replace(self, jobs={name: self.jobs[name] for name in names})

    def of_group(self, group: WeightedGroup) -> Observation:
        """The observation of those jobs of the weighted group that exist."""
        return replace(self, jobs={name: self.jobs[name] for name in group.jobs if name in self.jobs}, group=group)

    def measure(self, metric: str) -> float | None:
        """What the phase, or the one job that is looked at, measured besides operations."""
        return phase_record.measures_of(self.record if self.job is None else self.jobs[self.job]).get(metric)

    @property
    def probes(self) -> Observations:
        """What probes observed of the whole phase, by name; those that were off or could not run are not there."""
        return phase_record.probes_of(self.record)

    def probe_absent(self, name: str) -> str | None:
        """Why the probe could not run, if it was on."""
        return phase_record.probes_absent_of(self.record).get(name)

    @property
    def count(self) -> int:
        """Operations completed in the measured part."""
        return sum(part["count"] for part in self._parts())

    @property
    def bytes(self) -> int:
        """Bytes transferred in the measured part."""
        return sum(part["bytes"] for part in self._parts())

    @property
    def measured_s(self) -> float:
        """Length of the measured part in seconds; of one job that begins later than the phase, from its own start."""
        return float(self.record["measured_to_ns"] - self._measured_from_ns) / NS_PER_S

    @property
    def elapsed_s(self) -> float:
        """The time of one job until its own last operation completed."""
        ended_ns = self.record["elapsed_ns"] if self.job is None else self.jobs[self.job]["finished_ns"]
        return float(ended_ns) / NS_PER_S

    @property
    def transient_s(self) -> float | None:
        """Seconds cut off the start as not yet steady; None if no transient was looked for."""
        transient = self.record["transient"]
        return None if transient is None else float(transient["cut_ns"]) / NS_PER_S

    @property
    def process_cpu_ns(self) -> int:
        """CPU time of the whole process during the phase, user and system, in ns."""
        return int(self.record["process_cpu_user_ns"] + self.record["process_cpu_system_ns"])

    @property
    def queue_depth_found(self) -> int | None:
        """The queue depth that a job's search has found; None if no job had one, or it found none."""
        found = (job["depth_search"]["queue_depth"] for job in self.jobs.values() if "depth_search" in job)
        return next((depth for depth in found if depth is not None), None)

    @property
    def steady_after_ns(self) -> int | None:
        """When the last of the jobs that run for a steady rate reached it; None if no job does, or one did not."""
        reached = [found["reached_ns"] for found in self._steadiness]
        known = [at for at in reached if at is not None]
        return max(known) if known and len(known) == len(reached) else None

    def in_last_window(self, figure: Literal["mean_per_s", "criterion", "spread"]) -> list[float]:
        """What the last window that a job's rate had to be steady in showed, of each job with one."""
        return [value for found in self._steadiness if (value := found.get(figure)) is not None]

    @property
    def _steadiness(self) -> list[native.Steadiness]:
        return [job["steady_state"] for job in self.jobs.values() if "steady_state" in job]

    @property
    def replayed(self) -> ReplayFidelity:
        """How faithful the replay of a trace was, of this job or of all."""
        return ReplayFidelity([job["replay"] for job in self.jobs.values() if "replay" in job])

    @property
    def errors(self) -> int:
        """Failed operations and short transfers of the whole phase."""
        return sum(error["count"] for job in self.jobs.values() for error in job["errors"])

    @property
    def mismatches(self) -> int | None:
        """Blocks read with wrong contents in the whole phase; None if nothing was verified."""
        return sum(job["mismatches_count"] for job in self.jobs.values()) if self.phase.verifies else None

    def per_second(self, amount: float) -> float | None:
        """The amount over the measured seconds; None if no time was measured."""
        return amount / self.measured_s if self.measured_s > 0 else None

    def rate_sum(self) -> float | None:
        """Each job's bytes over the time until its own last operation completed, the measured part of it."""
        rates = [self.of_job(name)._own_rate() for name in self.jobs]
        return None if None in rates else sum(rate for rate in rates if rate is not None)

    def per_io(self, amount: float) -> float | None:
        """The amount over the completed operations; None if there were none."""
        return amount / self.count if self.count else None

    def threads(self, *counters: str) -> int:
        """Sum of usage counters over the phase's threads."""
        groups: list[Mapping[str, Any]] = list(self.record["groups"])
        return sum(group[counter] for group in groups for counter in counters)

    def cpu_ns(self) -> int:
        """CPU time of the jobs' own threads, user and system, in ns."""
        return self.threads("cpu_user_ns", "cpu_system_ns")

    def cpu_wait_ns(self) -> int | None:
        """Time for which the jobs' own threads could run and waited for a CPU, in ns; None unless all threads report
        it."""
        waits_ns = [group.get("cpu_wait_ns") for group in self.record["groups"]]
        known = [one for one in waits_ns if one is not None]
        return sum(known) if known and len(known) == len(waits_ns) else None

    def latency_mean(self) -> float | None:
        """The mean latency in ns, exact; None if no operation completed."""
        total = self._latency_count()
        return sum(count * part["mean_ns"] for count, part in self._latencies()) / total if total else None

    def latency_stddev(self) -> float | None:
        """The standard deviation of the merged population: the parts' variances plus the spread of their means."""
        mean = self.latency_mean()
        if mean is None:
            return None
        squares = sum(
            count * (part["stddev_ns"] ** 2 + (part["mean_ns"] - mean) ** 2) for count, part in self._latencies()
        )
        return math.sqrt(squares / self._latency_count())

    def latency_stddev_job_mean(self) -> float | None:
        """Over the jobs that have any operation."""
        own = [found for name in self.jobs if (found := self.of_job(name).latency_stddev()) is not None]
        return sum(own) / len(own) if own else None

    def latency_min(self) -> float | None:
        """The lowest latency in ns, exact; None if no operation completed."""
        return min((part["min_ns"] for _, part in self._latencies()), default=None)

    def latency_max(self) -> float | None:
        """The highest latency in ns, exact; None if no operation completed."""
        return max((part["max_ns"] for _, part in self._latencies()), default=None)

    def latency_quantile(self, share: float) -> float | None:
        """The latency in ns that `share` (0 to 1) of the operations do not exceed; None if too few lie beyond it.

        From the histogram: at most 1 % above the true quantile, and never above the highest latency.
        """
        return known_quantile(self._histogram, share, self.latency_max() or 0.0)

    def latency_share_over(self, threshold_ns: int) -> float | None:
        """The share of operations, 0 to 1, that took longer than the threshold; None if none completed."""
        return share_over(self._histogram, threshold_ns)

    def fairness(self) -> float | None:
        """Jain's index of the jobs' bytes, 1/n to 1; None with fewer than two jobs, or without I/O."""
        return _jain([sum(part["bytes"] for part in self._parts_of(job)) for job in self.jobs.values()])

    def fairness_weighted(self) -> float | None:
        """Jain's index of the weighted groups' bytes per weight, 1/n to 1; None with fewer than two, or without I/O."""
        return _jain([self.of_group(group).bytes / group.weight for group in self.phase.weighted_groups])

    def share_of_entitlement(self) -> float | None:
        """A group's share of all groups' bytes over its share of the weights; of the phase, the worst-off group's."""
        groups = self.phase.weighted_groups
        everyone = observe(self.phase, self.record)
        total, weights = everyone.bytes, sum(group.weight for group in groups)
        if not total:
            return None
        looked_at = groups if self.group is None else (self.group,)
        return min(everyone.of_group(group).bytes / total / (group.weight / weights) for group in looked_at)

    def io_stalled_percent(self) -> float | None:
        """Time for which a control group waited for I/O, over the phase's; of the phase, the longest. None if the
        kernel does not show it."""
        stalled_us = phase_record.io_stalled_us_of(self.record)
        names = stalled_us if self.group is None else [self.group.name]
        found = [stalled_us[name] for name in names if name in stalled_us]
        return max(found) / 1e3 * 100 / (self.record["elapsed_ns"] / 1e6) if found else None

    def _own_rate(self) -> float | None:
        """The rate of the one job that is observed."""
        (job,) = self.jobs.values()
        ended_ns = min(job["finished_ns"], self.record["measured_to_ns"])
        took_ns = ended_ns - self.of_job(job["name"])._measured_from_ns
        return self.bytes * NS_PER_S / took_ns if took_ns > 0 else None

    @property
    def _measured_from_ns(self) -> int:
        started_ns = 0 if self.job is None else self.late_starts_ns.get(self.job, 0)
        return max(self.record["measured_from_ns"], started_ns)

    def _parts(self) -> list[native.OpRecord]:
        return [part for job in self.jobs.values() for part in self._parts_of(job)]

    def _parts_of(self, job: JobRecord) -> list[native.OpRecord]:
        found = phase_record.ops_of(job)
        return [found[op] for op in self.ops if op in found]

    def _latencies(self) -> list[tuple[int, native.LatencyRecord]]:
        return [(part["count"], latency) for part in self._parts() if (latency := part["latency"]) is not None]

    def _latency_count(self) -> int:
        return sum(count for count, _ in self._latencies())

    @cached_property
    def _histogram(self) -> list[Bucket]:
        return merged(part["histogram"] for _, part in self._latencies())


def observe(phase: Phase, record: PhaseRecord) -> Observation:
    """The whole phase: all jobs, reads and writes."""
    return Observation(phase, record, phase_record.jobs_of(record), phase.late_starts_ns)


def _jain(shares: list[float]) -> float | None:
    """Jain, Chiu and Hawe (1984): (sum x)^2 / (n sum x^2)."""
    squares = sum(share**2 for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if len(shares) > 1 and squares else None
