"""The loop of every search among versions, whatever measures them: the most informative version is measured until the
answer stands, then each version that it names is measured again, in turns with the one before it."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Protocol


class MeasuredSearch(Protocol):
    """A search with a way to measure. Versions are places, from the oldest on."""

    def wanted(self) -> int | None:
        """The version to measure next; None when the answer stands."""

    def measure(self, place: int) -> None:
        """A measurement of the search."""

    def named(self) -> Sequence[int]:
        """The versions that the answer names."""

    def missing(self, named: int, number: int) -> Sequence[int]:
        """What has no measurement yet in a fresh round of a named version, in the order of that round."""

    def confirm(self, place: int, named: int, number: int) -> bool:
        """A measurement of a fresh round; whether the version could be measured."""


def complete(search: MeasuredSearch, *, confirm: int, time_s: float | None) -> bool:
    """Measures until the answer stands and is confirmed in this many fresh rounds; False if the time was over
    before."""
    until = math.inf if time_s is None else time.monotonic() + time_s
    while (place := search.wanted()) is not None:
        if time.monotonic() >= until:
            return False
        search.measure(place)
    for named in search.named():
        _confirm(search, named, confirm)
    return True


def _confirm(search: MeasuredSearch, named: int, rounds: int) -> None:
    for number in range(rounds):
        for place in search.missing(named, number):
            if not search.confirm(place, named, number):
                return
