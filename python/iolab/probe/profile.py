"""A profile over time: which functions ran, interval by interval, so that a burst is not averaged away."""

from __future__ import annotations

from iolab.option import Duration, Options, option
from iolab.probe.probe import Probe


class ProfileOptions(Options):
    interval: Duration = option(10**9, "Time between two points of its series.", unit="ns", ge=10**7)
    frequency_hz: int = option(99, "Samples per second and CPU.", ge=1, le=10_000)


PROBE = Probe(
    "profile",
    "Stack samples of all CPUs, as a table over time.",
    ProfileOptions,
    ("perf events",),
    (),
)
