"""What is compared of each path: amounts per operation that a guest machine counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iolab.base.strict_json import JsonObject
from iolab.domain.phase_record import InstructionsObservation
from iolab.domain.probe.instructions import MESSAGES, SWITCH, calls_of
from iolab.domain.symbols import source_name

CONFIDENCE = 0.95
_ALLOCATIONS = frozenset(
    {
        *("kmem_cache_alloc", "kmem_cache_alloc_lru", "kmem_cache_alloc_node", "kmem_cache_alloc_bulk"),
        *("__kmalloc", "__kmalloc_node", "__kmalloc_node_track_caller", "__kmalloc_large_node"),
        *("kmalloc_trace", "kmalloc_node_trace", "__kmalloc_cache", "__kmalloc_cache_node"),
    }
)
"""Ways into the slab allocator (mm/slub.c and mm/slab_common.c of Linux 6.1 and 6.12, which append _noprof): each
allocation runs through one of them. A bio or request from a cache of its owner's is none."""
_FREES = frozenset({"kmem_cache_free", "kmem_cache_free_bulk", "kfree"})
_NO_PROFILE = "_noprof"


def _calls(found: InstructionsObservation, names: frozenset[str]) -> int:
    return sum(
        calls
        for symbol, calls in zip(found["symbols"], found["calls"], strict=True)
        if source_name(symbol).removesuffix(_NO_PROFILE) in names
    )


@dataclass(frozen=True)
class Measure:
    """An amount of a path."""

    name: str
    words: str
    of: Callable[[InstructionsObservation], float | None]
    """The amount of a whole phase; None: it was not counted."""


MEASURES: dict[str, Measure] = {
    one.name: one
    for one in (
        Measure("instructions", "instructions", lambda found: found["total"]),
        Measure("kernel", "instructions of the kernel", lambda found: found["total"] - found["user"]),
        Measure("user", "instructions in user mode", lambda found: found["user"]),
        Measure("switches", "context switches", lambda found: calls_of(found, *SWITCH)),
        Measure("messages", "messages between CPUs", lambda found: calls_of(found, *MESSAGES)),
        Measure("locked", "locked instructions", lambda found: sum(found["locked"]) if "locked" in found else None),
        Measure("allocations", "slab allocations", lambda found: _calls(found, _ALLOCATIONS)),
        Measure("frees", "slab frees", lambda found: _calls(found, _FREES)),
        Measure(
            "string_bytes",
            "bytes of string instructions",
            lambda found: sum(found["string_bytes"]) if "string_bytes" in found else None,
        ),
        Measure("reads", "reads of memory", lambda found: found["memory"]["read"] if "memory" in found else None),
        Measure("writes", "writes of memory", lambda found: found["memory"]["write"] if "memory" in found else None),
    )
}
"""By name, in the order of tables."""
ON_REQUEST = ("reads", "writes")
"""Measures that are counted with the probe's option `memory` only."""


@dataclass(frozen=True)
class Change:
    """An amount per operation under two kernels, means over the rounds."""

    base: float
    tip: float
    half_width: float | None
    """Of the interval of the difference (`CONFIDENCE`); None: of one round there is none."""

    @property
    def difference(self) -> float:
        """Tip less base."""
        return self.tip - self.base

    @property
    def share(self) -> float | None:
        """The difference as a share of the base; None if that is 0."""
        return self.difference / self.base if self.base else None

    @property
    def low(self) -> float:
        """The lower end of the difference's interval."""
        return -math.inf if self.half_width is None else self.difference - self.half_width

    @property
    def high(self) -> float:
        """Its upper end."""
        return math.inf if self.half_width is None else self.difference + self.half_width

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0

    def as_dict(self) -> JsonObject:
        """As JSON has it; ends of an interval that does not exist are null."""
        has_interval = self.half_width is not None
        return {
            "base": self.base,
            "tip": self.tip,
            "difference": self.difference,
            "share": self.share,
            "low": self.low if has_interval else None,
            "high": self.high if has_interval else None,
        }


def change_of(
    measure: Measure, base: Sequence[InstructionsObservation], tip: Sequence[InstructionsObservation]
) -> Change | None:
    """The change of an amount over rounds that are paired by index. None: it was not counted in all of them."""
    sides = [[_per_operation(measure, one) for one in side] for side in (base, tip)]
    known = [[value for value in side if value is not None] for side in sides]
    if not known[0] or [len(side) for side in known] != [len(base), len(base)]:
        return None
    return paired_change(*known)


def paired_change(base: Sequence[float], tip: Sequence[float]) -> Change:
    """Student's interval of the mean of the rounds' differences; both sides of a round share a seed."""
    from scipy.special import stdtrit

    rounds = len(base)
    means = [math.fsum(side) / rounds for side in (base, tip)]
    if rounds < 2:
        return Change(means[0], means[1], None)
    differences = [after - before for before, after in zip(base, tip, strict=True)]
    center = math.fsum(differences) / rounds
    variance = math.fsum((one - center) ** 2 for one in differences) / (rounds - 1)
    quantile = float(stdtrit(rounds - 1, (1 + CONFIDENCE) / 2))
    return Change(means[0], means[1], quantile * math.sqrt(variance / rounds))


def _per_operation(measure: Measure, found: InstructionsObservation) -> float | None:
    amount = measure.of(found)
    return None if amount is None or not found["operations"] else amount / found["operations"]
