"""Rounds in which every arm runs once, in an order that rotates from round to round."""

import resource
import sys
from collections.abc import Callable, Mapping
from typing import TypeVar

from fio import Sample

One = TypeVar("One")


def alternate(arms: Mapping[str, Callable[[], One]], rounds: int) -> dict[str, list[One]]:
    """Samples by arm; the i-th of each arm are from the same round. A sample's text is shown as it comes."""
    samples: dict[str, list[One]] = {name: [] for name in arms}
    names = list(arms)
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            one = arms[name]()
            samples[name].append(one)
            print(f"   {name}: {one}", file=sys.stderr)
    return samples


def iops(samples: list[Sample]) -> list[float]:
    return [one.iops for one in samples]


def cpu(samples: list[Sample]) -> list[float]:
    return [one.cpu_ns_per_io for one in samples]


def cpu_of_children_s() -> float:
    """CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
