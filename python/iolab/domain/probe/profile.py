"""A profile over time: which functions ran, interval by interval, so that a burst is not averaged away."""

from __future__ import annotations

from iolab.base.option import Duration, Options, option
from iolab.domain.native_types import ProfileObservation
from iolab.domain.probe.probe import Probe, ProbeReader

NAME = "profile"
READER = ProbeReader[ProfileObservation](NAME, lambda probes: probes.get("profile"))


class ProfileOptions(Options):
    """The options of the probe `profile`."""

    interval: Duration = option(10**9, "Time between two points of the series.", unit="ns", ge=10**7)
    frequency_hz: int = option(99, "Samples per second and CPU.", ge=1, le=10_000)


PROBE = Probe(
    NAME,
    "Stack samples of all CPUs, as a table over time. On a host only.",
    ProfileOptions,
    ("perf events",),
    (
        READER.metric(
            "profile_samples",
            "count",
            "neutral",
            "Stacks sampled, of all CPUs.",
            "it is not counted",
            lambda found: found["samples"],
        ),
        READER.metric(
            "profile_samples_lost",
            "count",
            "cost",
            "Samples lost because the ring buffers were full.",
            "it is not counted",
            lambda found: found["samples_lost"],
        ),
    ),
)
