"""What a probe is: a reader of what the machine did while a phase ran, with its options and the metrics it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from iolab.base.option import Duration, Options, extras, option
from iolab.domain.definition import Better, Metric

Need = Literal["block device", "tracefs", "perf events", "hardware counters", "procfs", "PSI", "FIEMAP", "NFS"]
"""What a probe reads from; `iolab doctor` looks for it under this name."""

Probes = dict[str, dict[str, Any]]
"""Probes that are on, by name, each with its options."""

_SUFFIXES = {"ns": "_ns", "bytes": "_bytes"}


@dataclass(frozen=True)
class Probe:
    name: str
    help: str
    """What it reads, one sentence."""
    options: type[Options]
    needs: tuple[Need, ...]
    metrics: tuple[Metric, ...]
    """Made by `observed`."""


class SampledOptions(Options):
    """Of a probe that yields time series."""

    interval: Duration = option(10**8, "Time between two points of the series.", unit="ns", ge=10**6)


def observed(
    probe: str,
    name: str,
    unit: str,
    better: Better,
    help: str,
    absent: str,
    of: Callable[[dict[str, Any]], float | None] | None = None,
) -> Metric:
    """A metric that is read from the probe's observation alone; one that also needs the phase's I/O is a `Metric` whose
    `of` asks `Observation.probe`.

    Args:
        of: from the observation; by default its number of this name.
        absent: the reason when the probe ran and has no such number; when it could not run it says itself why.
    """

    def read(found: dict[str, Any]) -> float | None:
        return found.get(name) if of is None else of(found)

    return Metric(
        name,
        unit,
        better,
        help,
        "probe",
        lambda seen: None if (found := seen.probe(probe)) is None else read(found),
        absent,
        probe=probe,
    )


def resolved(options: Options) -> dict[str, Any]:
    """The options as a trial carries them, with their units in the names: `interval` -> `interval_ns`."""
    fields = type(options).model_fields
    units = {name: extras(field).get("unit", "") for name, field in fields.items()}
    return {f"{name}{_SUFFIXES.get(units[name], '')}": value for name, value in options.model_dump().items()}
