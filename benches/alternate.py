"""Rounds in which every arm runs once, in an order that turns from round to round."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from fio import Sample


def alternate(arms: Mapping[str, Callable[[], Sample]], rounds: int) -> dict[str, list[Sample]]:
    """Samples by arm; the i-th of each arm are from the same round."""
    samples: dict[str, list[Sample]] = {name: [] for name in arms}
    names = list(arms)
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            one = arms[name]()
            samples[name].append(one)
            print(f"   {name}: {one.iops / 1e3:.0f} k IOPS, {one.cpu_ns_per_io:.0f} ns CPU per I/O", file=sys.stderr)
    return samples


def iops(samples: list[Sample]) -> list[float]:
    return [one.iops for one in samples]


def cpu(samples: list[Sample]) -> list[float]:
    return [one.cpu_ns_per_io for one in samples]
