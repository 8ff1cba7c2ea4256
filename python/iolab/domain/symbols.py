"""What functions cost in instructions per operation, and which of them differ between two settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from iolab.domain.phase_record import InstructionsObservation

USER = "[user mode]"
_MADE_BY_COMPILER = re.compile(r"(\.(isra|constprop|part|cold|llvm)(\.\d+)?)+$")
NAMED_FROM = 1.0
"""A function that changed by less than one instruction per operation is not named."""
LAYOUT_SHARE = 3e-5
"""Nor one that changed by less than this of all instructions. A kernel built again with its text shifted by 1,504 bytes
differed by up to 0.1 instructions of a read of 4,764, and by up to 1.9 of a create of 82,593: a page fault more."""

Key = tuple[str, str]
"""A function's name, and its module; the module is empty for the kernel itself."""


def floor_of(total: float) -> float:
    """The smallest change of a function that is named, in instructions per operation, where all functions take so many
    together."""
    return max(NAMED_FROM, LAYOUT_SHARE * total)


@dataclass(frozen=True)
class Difference:
    """A function under two settings: instructions per operation, means over the rounds."""

    symbol: str
    module: str
    baseline: float
    candidate: float
    is_named: bool
    """Whether the rounds of the two settings lie further apart than those of either among themselves, and than what
    the layout of the text makes."""

    @property
    def change(self) -> float:
        """In instructions per operation."""
        return self.candidate - self.baseline


def per_operation(found: InstructionsObservation) -> dict[Key, float]:
    """Each function of one round, all of which add up to the total, under the name that its source has, and user mode.
    Empty if no operation completed."""
    if not found["operations"]:
        return {}
    sums: dict[Key, float] = {(USER, ""): found["user"] / found["operations"]}
    for symbol, module, amount in zip(found["symbols"], found["modules"], found["instructions"], strict=True):
        key = (source_name(symbol), module)
        sums[key] = sums.get(key, 0.0) + amount / found["operations"]
    return sums


def calls_per_operation(found: InstructionsObservation) -> dict[Key, float]:
    """How often each function began in one round."""
    calls: dict[Key, float] = {}
    for symbol, module, amount in zip(found["symbols"], found["modules"], found["calls"], strict=True):
        key = (source_name(symbol), module)
        calls[key] = calls.get(key, 0.0) + amount / max(found["operations"], 1)
    return calls


def source_name(symbol: str) -> str:
    """Without what a compiler appends to a function that it specialised or split."""
    return _MADE_BY_COMPILER.sub("", symbol)


def means(rounds: Sequence[Mapping[Key, float]]) -> dict[Key, float]:
    """Over the rounds, of which one that lacks a function has 0 of it."""
    keys = {key for one in rounds for key in one}
    return {key: sum(one.get(key, 0.0) for one in rounds) / len(rounds) for key in keys}


def differences(baseline: Sequence[Mapping[Key, float]], candidate: Sequence[Mapping[Key, float]]) -> list[Difference]:
    """Every function that either setting executed, the largest change first. The changes add up to that of the
    totals."""
    keys = {key for one in (*baseline, *candidate) for key in one}
    floor = floor_of(max((sum(one.values()) for one in (*baseline, *candidate)), default=0.0))
    found = []
    for key in keys:
        before, after = ([one.get(key, 0.0) for one in side] for side in (baseline, candidate))
        apart = max(min(after) - max(before), min(before) - max(after))
        spread = max(max(before) - min(before), max(after) - min(after))
        is_named = apart >= max(spread, floor) and min(len(before), len(after)) > 1
        found.append(Difference(*key, sum(before) / len(before), sum(after) / len(after), is_named))
    return sorted(found, key=lambda one: (-abs(one.change), one.symbol, one.module))


def with_renamed(
    found: Sequence[Difference], before: Mapping[Key, float], after: Mapping[Key, float]
) -> list[Difference]:
    """The differences, with a function that only the baseline has and one that only the candidate has as one, where the
    name of the one begins with the other's and both are called equally often.

    Args:
        before: calls per operation under the baseline, after: under the candidate.
    """
    new = {(one.symbol, one.module): one for one in found if one.baseline == 0}
    merged: list[Difference] = []
    taken: set[Key] = set()
    for one in found:
        key = (one.symbol, one.module)
        names = (other for other in new if other not in taken and one.candidate == 0 and _is_renamed(key, other))
        other = next((each for each in names if _alike(before.get(key, 0.0), after.get(each, 0.0))), None)
        if other is None:
            merged.append(one)
            continue
        taken.add(other)
        change = new[other].candidate - one.baseline
        is_named = one.is_named and new[other].is_named and abs(change) >= NAMED_FROM
        name = f"{one.symbol} -> {other[0]}"
        merged.append(Difference(name, one.module, one.baseline, new[other].candidate, is_named))
    left = [one for one in merged if (one.symbol, one.module) not in taken]
    return sorted(left, key=lambda one: (-abs(one.change), one.symbol, one.module))


SIZES_ALIKE = 0.5
"""So much of an inlined function its caller may have gained more or less, as a share of it."""
INFERRED = " (inlined, inferred)"
INFERRED_FROM = 20.0
"""The change in instructions per operation below which nothing is inferred about an inlined function."""


def with_inlined(
    found: Sequence[Difference], before: Mapping[str, Set[str]], after: Mapping[str, Set[str]]
) -> list[Difference]:
    """The differences, with a function that one side lacks and its caller as one, where the function had that caller
    only and the caller's own instructions changed by about what the function had.

    Args:
        before: who called each function under the baseline, after: under the candidate; empty if calls were not
            followed. Then the caller is the only function of its module that changed so, and its name says that this is
            inferred.
    """
    by_name = {one.symbol: one for one in found}
    merged: dict[str, Difference] = {}
    for one in found:
        if one.baseline and one.candidate:
            continue
        followed = before if one.candidate == 0 else after
        callers = followed.get(one.symbol, ()) if followed else _inferred(one, found)
        if len(callers) != 1:
            continue
        (caller,) = callers
        other = merged.get(caller, by_name.get(caller))
        if other is None or not other.baseline or not other.candidate or caller in merged:
            continue
        if abs(other.change + one.change) <= SIZES_ALIKE * abs(one.change):
            name = f"{caller} + {one.symbol}" if one.candidate == 0 else f"{caller} - {one.symbol}"
            name += "" if followed else INFERRED
            both = Difference(
                name,
                other.module,
                one.baseline + other.baseline,
                one.candidate + other.candidate,
                one.is_named and other.is_named and abs(one.change + other.change) >= NAMED_FROM,
            )
            merged[caller] = both
            merged[one.symbol] = both
    left = [one for one in found if one.symbol not in merged]
    made = list(dict.fromkeys(merged.values()))
    return sorted([*left, *made], key=lambda one: (-abs(one.change), one.symbol, one.module))


def _inferred(inlined: Difference, found: Sequence[Difference]) -> list[str]:
    """The functions that may have taken it into themselves, or given it away."""
    if abs(inlined.change) < INFERRED_FROM:
        return []
    return [
        one.symbol
        for one in found
        if one.module == inlined.module and one.baseline and one.candidate
        if abs(one.change + inlined.change) <= SIZES_ALIKE * abs(inlined.change)
    ]


def _is_renamed(old: Key, new: Key) -> bool:
    shorter, longer = sorted((old[0].lstrip("_"), new[0].lstrip("_")), key=len)
    return old[1] == new[1] and len(shorter) > 3 and longer.startswith(shorter)


_FREES = frozenset({"kmem_cache_free", "kfree"})


def depends_on_slab_page(symbol: str, change: float, before: float, after: float) -> bool:
    """Whether a function changed by where the objects lie that it frees: of a slab of several pages, one in the first
    takes three instructions less (virt_to_head_page in include/linux/mm.h, Linux 6.1). A patch of the function itself
    changes each call of it.

    Args:
        change: in instructions per operation, with the calls per operation `before` and `after` it.
    """
    return symbol in _FREES and abs(change) < min(before, after) and _alike(before, after)


CALLS_ALIKE = 0.05
"""So far may two numbers of calls lie apart, as a share of the larger one."""


def _alike(one: float, other: float) -> bool:
    return max(one, other) > 0 and abs(one - other) <= CALLS_ALIKE * max(one, other)
