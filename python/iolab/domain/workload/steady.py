"""A rate that is steady by the rule of SNIA's Solid State Storage Performance Test Specification (version 2.0.2, 2020).

Of the rates of a window's rounds, the best straight line changes by less than a share of their mean (10 % there), and
so does the distance between the highest and the lowest of them (20 %); a window has five rounds, of a minute each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from iolab.base.option import Duration, Options, Percent, option
from iolab.base.plain_text import counted
from iolab.base.quantity import format_duration_ns
from iolab.domain import native_types as native

NS_PER_MINUTE = 60_000_000_000
ROUNDS_MAX = 43_200
"""The engine's (crates/measure/workload/src/limits.rs), and so is the shortest round."""
ROUND_NS_MIN = 10_000_000
FILL_WINDOWS_MAX = 5
"""25 rounds, after which SNIA's tests end that are not steady."""


class SteadyOptions(Options):
    """When a rate is steady."""

    called: ClassVar[str] = "steady"

    slope: Percent = option(
        10.0,
        "The line through the rounds' rates by least squares changes by less than this from the window's first round "
        "to its last, in percent of their mean.",
        unit="percent",
        gt=0,
        le=100,
    )
    spread: Percent = option(
        20.0,
        "The highest rate is less than this above the lowest, in percent of the mean.",
        unit="percent",
        gt=0,
        le=100,
    )
    window: Duration = option(5 * NS_PER_MINUTE, "The time that is looked at, up to now.", unit="ns", gt=0)
    rounds: int = option(5, "Rounds of equal length in a window.", ge=2, le=ROUNDS_MAX)

    def rule(self, ramp_ns: int) -> native.SteadyState:
        """As the engine takes it; rounds begin `ramp_ns` after the job."""
        round_ns = self.window // self.rounds
        return {
            "of": "operations",
            "by": "excursion",
            "limit": self.slope,
            "spread_limit": self.spread,
            "in_percent": True,
            "window_ns": round_ns * self.rounds,
            "interval_ns": round_ns,
            "ramp_ns": ramp_ns,
        }

    def problems(self) -> Iterator[str]:
        """Why there can be no such window."""
        if self.window // self.rounds < ROUND_NS_MIN:
            shortest = format_duration_ns(self.rounds * ROUND_NS_MIN)
            yield f"rounds of less than 10ms; expected {shortest} or more for {counted(self.rounds, 'round')}"
