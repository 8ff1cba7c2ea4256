"""Chains of calls that a guest machine's counter followed, over several rounds, and between two settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from iolab.domain.phase_record import Chains, InstructionsObservation
from iolab.domain.symbols import source_name

OUTSIDE = "[user mode]"
"""What lies outside of all functions that were seen to be called: user mode above all."""
Chain = tuple[str, ...]
"""Functions, each called by the one before it."""
_THUNK = "__x86_indirect_"
"""Functions that only pass a call on."""


def per_operation(found: InstructionsObservation) -> dict[Chain, float]:
    """Instructions of each chain's last function itself in one round; all add up to the total. Empty if no
    operation completed, or no chains were followed."""
    chains, operations = found.get("chains"), found["operations"]
    if chains is None or not operations:
        return {}
    sums: dict[Chain, float] = {}
    for chain, amount in zip(_whole(chains), chains["instructions"], strict=True):
        sums[chain] = sums.get(chain, 0.0) + amount / operations
    return sums


def means(rounds: Sequence[Mapping[Chain, float]]) -> dict[Chain, float]:
    """Over the rounds, of which one that lacks a chain has 0 of it."""
    keys = dict.fromkeys(key for one in rounds for key in one)
    return {key: sum(one.get(key, 0.0) for one in rounds) / len(rounds) for key in keys}


def with_callers(chains: Mapping[Chain, float]) -> dict[Chain, float]:
    """Each chain with all that goes on from it; callers that executed nothing themselves are there too."""
    whole: dict[Chain, float] = {}
    for chain, amount in chains.items():
        for length in range(1, len(chain) + 1):
            whole[chain[:length]] = whole.get(chain[:length], 0.0) + amount
    return whole


def callers(chains: Mapping[Chain, float]) -> dict[str, set[str]]:
    """Who called each function directly."""
    found: dict[str, set[str]] = {}
    for chain in chains:
        for caller, function in pairwise(chain):
            found.setdefault(function, set()).add(caller)
    return found


def _whole(chains: Chains) -> Iterator[Chain]:
    found: list[Chain] = []
    for number, (function, caller) in enumerate(zip(chains["functions"], chains["callers"], strict=True)):
        if number == 0:
            chain: Chain = (OUTSIDE,)
        else:
            above = found[caller] if caller else ()
            chain = above if function.startswith(_THUNK) else (*above, source_name(function))
        found.append(chain)
        yield chain or (function,)
