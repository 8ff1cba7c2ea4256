"""Where the time of an I/O goes: stages that add up to the whole.

All from the block probe's numbers per I/O of the jobs. Requests of one I/O that run side by side take longer together
than the I/O does; then their times are scaled down to the latency, as if at each moment those in flight shared it. A
bio that was merged waits with its request; the stages of requests are scaled up to the time of the bios for that. Where
the page cache gathers I/Os and the block layer works longer than they take, nobody waits for it, and the latency is
unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iolab.base.strict_json import JsonObject
from iolab.domain.explain.place import Arms, Array

STAGES = ("application", "above", "queue", "scheduler", "device", "unknown")
"""In the order in which an I/O meets them."""
NEEDED = ("latency_ns_mean", "block_ns_per_io", "queue_ns_per_io", "device_ns_per_io", "bios_per_io", "requests_per_io")
APPLICATION = "application_ns_per_io"
SCHEDULER = "scheduler_ns_per_io"
SPLITS = "splits_per_io"
GATHERED_BELOW = 0.5
"""Bios per I/O: below, the page cache gathers the I/Os of several calls into one."""
DISCREPANCY_MAX = 0.02
"""The part of the time in the block layer by which the sums of bios and of requests may differ, and be taken as equal:
requests in flight when the probe began or ended."""


@dataclass(frozen=True)
class Budget:
    """Means over the rounds that have all numbers, in ns per I/O."""

    baseline: dict[str, float]
    """By stage; without `application` if it is not known."""
    candidate: dict[str, float]
    n: tuple[int, int]
    """Rounds under the baseline and under the candidate."""
    side_by_side: tuple[float, float]
    """Bios of one I/O in flight at a time: beyond 1, what is above the block layer is hidden behind them."""
    latency: tuple[float, float]

    @property
    def stages(self) -> list[str]:
        """Those of which anything is known, in order."""
        return [one for one in STAGES if one in self.baseline and one in self.candidate]

    @property
    def totals(self) -> tuple[float, float]:
        """The sums of the stages, in ns: baseline, candidate."""
        return sum(self.baseline[one] for one in self.stages), sum(self.candidate[one] for one in self.stages)

    def difference(self, stage: str) -> float:
        """Candidate less baseline, in ns."""
        return self.candidate[stage] - self.baseline[stage]

    def as_dict(self) -> JsonObject:
        """One JSON object: ns per I/O."""
        return {
            "unit": "ns",
            "baseline": self.baseline,
            "candidate": self.candidate,
            "difference": {stage: self.difference(stage) for stage in self.stages},
            "latency": {"baseline": self.latency[0], "candidate": self.latency[1]},
            "side_by_side": {"baseline": self.side_by_side[0], "candidate": self.side_by_side[1]},
            "rounds": {"baseline": self.n[0], "candidate": self.n[1]},
        }


def budget(arms: dict[str, Arms], prefix: str = "") -> Budget | None:
    """The budget from the metrics of one phase (`prefix`, with its slash); None if the block probe's numbers are
    missing."""
    if any(f"{prefix}{name}" not in arms for name in NEEDED):
        return None
    ours, theirs = (
        _side({key.removeprefix(prefix): getattr(one, side) for key, one in arms.items() if key.startswith(prefix)})
        for side in ("baseline", "candidate")
    )
    if ours is None or theirs is None:
        return None
    return Budget(
        ours.stages, theirs.stages, (ours.n, theirs.n), (ours.parallel, theirs.parallel), (ours.latency, theirs.latency)
    )


def stages_of(values: dict[str, Array]) -> dict[str, Array]:
    """By stage, ns per I/O in each round; NaN if a number is missing. They add up to the mean latency, with
    `application` to the time between two I/Os in the same place of the queue."""
    latency, block = values["latency_ns_mean"], values["block_ns_per_io"]
    scheduler = np.nan_to_num(values.get(SCHEDULER, np.zeros_like(latency)))
    requests = values["queue_ns_per_io"] + scheduler + values["device_ns_per_io"]
    with np.errstate(divide="ignore", invalid="ignore"):
        # What merges account for: as many bios wait for a request as went into it.
        bios = values["bios_per_io"] + np.nan_to_num(values.get(SPLITS, np.zeros_like(latency)))
        most = np.maximum(1.0, np.where(values["requests_per_io"] > 0, bios / values["requests_per_io"], 1.0))
        of_bios = np.clip(np.where(requests > 0, block / requests, 1.0), 1.0, most)
        near = np.abs(block / requests - 1) <= DISCREPANCY_MAX
        of_bios = np.where((requests > 0) & near, block / requests, of_bios)
        whole = np.maximum(block, requests * of_bios)
        scale = np.where(whole > latency, latency / whole, 1.0)
        # Write-back, or read-ahead far ahead: few bios for many I/Os, and more time than the I/Os took.
        not_waited_for = (values["bios_per_io"] < GATHERED_BELOW) & (whole > latency)
    scale = np.where(not_waited_for, 0.0, scale)
    found = {
        "above": np.where(not_waited_for, 0.0, latency - whole * scale),
        "queue": values["queue_ns_per_io"] * of_bios * scale,
        "scheduler": scheduler * of_bios * scale,
        "device": values["device_ns_per_io"] * of_bios * scale,
        "unknown": np.where(not_waited_for, latency, (whole - requests * of_bios) * scale),
    }
    if APPLICATION in values:
        found = {"application": values[APPLICATION], **found}
    return found


@dataclass(frozen=True)
class _Side:
    stages: dict[str, float]
    n: int
    parallel: float
    latency: float


def _side(values: dict[str, Array]) -> _Side | None:
    """Means over the rounds that have all that is needed: of stages that add up, the means do too."""
    stages = stages_of(values)
    whole = np.isfinite(np.array([stages[one] for one in stages if one != "application"])).all(axis=0)
    if not whole.any():
        return None
    application = stages.get("application")
    if application is not None and not np.isfinite(application[whole]).all():
        del stages["application"]
    latency, block = values["latency_ns_mean"][whole], values["block_ns_per_io"][whole]
    return _Side(
        {name: float(one[whole].mean()) for name, one in stages.items()},
        int(whole.sum()),
        float(block.mean() / latency.mean()) if latency.mean() > 0 else 0.0,
        float(latency.mean()),
    )
