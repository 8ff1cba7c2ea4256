"""How fast a trial goes at the moment, and how long the rest of the run will take."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from iolab.domain.executor import Progress

NS_PER_S = 1_000_000_000
WINDOW_NS = NS_PER_S


@dataclass(frozen=True)
class Rate:
    """How fast a phase goes now."""

    bytes_per_s: float
    ios_per_s: float


class Speedometer:
    """The rate over the last second or so of a trial's cumulative counts."""

    def __init__(self) -> None:
        self._samples: list[Progress] = []

    def rate(self, progress: Progress) -> Rate | None:
        """Takes the next sample; None until two samples of the same phase give a rate."""
        if self._samples and not _continues(self._samples[-1], progress):
            self._samples.clear()
        self._samples.append(progress)
        while len(self._samples) > 2 and progress.elapsed_ns - self._samples[1].elapsed_ns >= WINDOW_NS:
            self._samples.pop(0)
        first = self._samples[0]
        elapsed_s = (progress.elapsed_ns - first.elapsed_ns) / NS_PER_S
        if elapsed_s <= 0:
            return None
        return Rate((progress.bytes - first.bytes) / elapsed_s, (progress.ops - first.ops) / elapsed_s)


def _continues(earlier: Progress, later: Progress) -> bool:
    return earlier.phase == later.phase and earlier.elapsed_ns <= later.elapsed_ns and earlier.ops <= later.ops


def phase_left_ns(progress: Progress) -> float | None:
    """Time left of the running phase, from the fraction that is done; None, too, for one that is past its end."""
    if not progress.fraction or progress.fraction >= 1 or progress.doing != "running":
        return None
    return progress.elapsed_ns * (1 - progress.fraction) / progress.fraction


class Pace:
    """Time left of the run: for each trial to come, the mean time of its workload's trials until now."""

    def __init__(self) -> None:
        self._to_come: Counter[str] = Counter()
        self._taken_ns: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])

    @property
    def to_come(self) -> int:
        """How many trials are still to come."""
        return self._to_come.total()

    def plan(self, trials_by_workload: Mapping[str, int]) -> None:
        """Adds this many trials by workload to those that are still to come."""
        self._to_come.update(trials_by_workload)

    def finished(self, workload: str, duration_ns: int) -> None:
        """Takes one trial off, and remembers how long it took."""
        self._to_come[workload] -= 1
        taken = self._taken_ns[workload]
        taken[0] += duration_ns
        taken[1] += 1

    def left_ns(self, *, spent_on_current_ns: int = 0) -> float | None:
        """None until a trial has finished. A workload that has not run yet is taken for an average one."""
        count = sum(taken[1] for taken in self._taken_ns.values())
        if not count:
            return None
        average_ns = sum(taken[0] for taken in self._taken_ns.values()) / count
        left_ns = 0.0
        for workload, trials in self._to_come.items():
            total_ns, finished = self._taken_ns.get(workload, (0, 0))
            left_ns += trials * (total_ns / finished if finished else average_ns)
        return max(0.0, left_ns - spent_on_current_ns)
