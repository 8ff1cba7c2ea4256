"""What a probe is: a reader of what the machine did while a phase ran, with its options and the metrics it gives;
and its time series as numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, TypedDict, TypeVar

from iolab.base.option import Duration, Options, extras, option
from iolab.base.strict_json import JsonObject
from iolab.domain import native_types as native
from iolab.domain.definition import Metric, Nature
from iolab.domain.phase_record import Observations

if TYPE_CHECKING:
    from iolab.domain.observation import Observation


Need = Literal[
    "block device",
    "tracefs",
    "perf events",
    "hardware counters",
    "procfs",
    "PSI",
    "io.cost",
    "FIEMAP",
    "NFS",
    "NVMe",
    "guest machine",
]
"""What a probe reads from; `iolab doctor` looks for it under this name."""

ProbeOptions = JsonObject
"""A probe's options as a trial carries them: as many shapes as there are probes, each checked by the probe's model."""

Probes = dict[str, ProbeOptions]
"""Probes that are on, by name, each with its options."""

_SUFFIXES = {"ns": "_ns", "bytes": "_bytes"}


@dataclass(frozen=True)
class Probe:
    """A probe as the registry `iolab.domain.probe.PROBES` has it."""

    name: str
    help: str
    """What it reads, one sentence."""
    options: type[Options]
    needs: tuple[Need, ...]
    metrics: tuple[Metric, ...]
    """Made by a `ProbeReader`."""


class SampledOptions(Options):
    """The options of a probe that yields time series."""

    interval: Duration = option(10**8, "Time between two points of the series.", unit="ns", ge=10**6)


Seen = TypeVar("Seen")
"""What a probe observed, one of the types that `Observations` has."""


@dataclass(frozen=True)
class ProbeReader(Generic[Seen]):
    """Makes a probe's metrics, each of which is computed from what the probe observed."""

    probe: str
    """The probe's name."""
    seen_in: Callable[[Observations], Seen | None]
    """Looks the probe's observation up; None if the probe was off or could not run."""

    def metric(
        self, name: str, unit: str, nature: Nature, help: str, absent: str, of: Callable[[Seen], float | None]
    ) -> Metric:
        """A metric that needs the probe's observation alone.

        Args:
            of: from the observation, in the metric's unit; None if it has no such number.
            absent: the reason when `of` gives None; when the probe could not run, the record states why.
        """
        return self.metric_per_io(name, unit, nature, help, absent, lambda _, found: of(found))

    def metric_per_io(
        self,
        name: str,
        unit: str,
        nature: Nature,
        help: str,
        absent: str,
        of: Callable[[Observation, Seen], float | None],
    ) -> Metric:
        """A metric that needs the phase's own I/O too: `of` also takes the phase's observation."""

        def read(seen: Observation) -> float | None:
            found = self.seen_in(seen.probes)
            return None if found is None else of(seen, found)

        return Metric(name, unit, nature, help, "probe", read, absent, probe=self.probe)


def resolved(options: Options) -> ProbeOptions:
    """The options as a trial carries them, with their units in the names: `interval` -> `interval_ns`."""
    fields = type(options).model_fields
    units = {name: extras(field).get("unit", "") for name, field in fields.items()}
    return {f"{name}{_SUFFIXES.get(units[name], '')}": value for name, value in options.model_dump().items()}


Span = tuple[float, float]
"""From and to, in ns since the probe's start."""


class SampledObservation(TypedDict):
    """What observations of probes that sample have alike."""

    series: dict[str, native.SampledSeries]
    times: native.Times


def mean(observation: SampledObservation, column: str, span: Span | None = None) -> float | None:
    """The mean of a column of the probe's time series, weighted by time, in the column's unit.

    Of the machine as a whole, over the span (default: all of it); None if nothing was seen.
    """
    weighted = list(_weighted(observation, column, span))
    total_ns = sum(weight for weight, _ in weighted)
    return sum(weight * value for weight, value in weighted) / total_ns if total_ns else None


def highest(observation: SampledObservation, column: str) -> float | None:
    """The highest value of a column, of the machine as a whole; None if nothing was seen."""
    return max((value for _, value in _weighted(observation, column, None)), default=None)


def lowest(observation: SampledObservation, column: str) -> float | None:
    """The lowest value of a column, as `highest`."""
    return min((value for _, value in _weighted(observation, column, None)), default=None)


def measured_span(seen: Observation, observation: SampledObservation) -> Span:
    """When the phase was measured, warm-up and transient left out. Two wall clocks are compared: on one machine."""
    offset_ns = max(0, seen.record["started_unix_ns"] - observation["times"]["started_unix_ns"])
    return offset_ns + seen.record["measured_from_ns"], offset_ns + seen.record["measured_to_ns"]


def _weighted(observation: SampledObservation, column: str, span: Span | None) -> Iterator[tuple[float, float]]:
    """The share of each interval that lies in the span, in ns, and its value."""
    series = observation.get("series", {}).get("all", {"at_ns": [], "columns": {}})
    columns = series["columns"]
    if column not in columns:
        return
    for start_ns, length_s, value in zip(series["at_ns"], columns["length_s"], columns[column], strict=True):
        assert length_s is not None, "each interval has a length"
        end_ns = start_ns + length_s * 1e9
        low, high = (start_ns, end_ns) if span is None else (max(start_ns, span[0]), min(end_ns, span[1]))
        if value is not None and high > low:
            yield high - low, value
