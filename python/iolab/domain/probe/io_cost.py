"""The rate at which io.cost lets the virtual time of devices pass (vrate), over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from iolab.domain.definition import Metric
from iolab.domain.native_types import IoCostObservation
from iolab.domain.probe.probe import Probe, ProbeReader, SampledOptions, lowest, mean, measured_span

if TYPE_CHECKING:
    from iolab.domain.observation import Observation

NAME = "io_cost"
READER = ProbeReader[IoCostObservation](NAME, lambda probes: probes.get("io_cost"))
COLUMN = "vrate_percent"
_NOT_SHOWN = "io.cost was off"


def _metrics() -> Iterator[Metric]:
    yield READER.metric_per_io(
        "vrate_percent_mean",
        "percent",
        "neutral",
        "The rate of io.cost's virtual time while the phase was measured: mean over time and devices. 100 is that of "
        "wall time; less: the kernel slows groups down to keep the device's latencies.",
        _NOT_SHOWN,
        _mean,
    )
    yield READER.metric(
        "vrate_percent_min",
        "percent",
        "neutral",
        "The lowest of that rate over an interval of the series, warm-up included.",
        _NOT_SHOWN,
        lambda found: lowest(found, COLUMN),
    )


def _mean(seen: Observation, found: IoCostObservation) -> float | None:
    return mean(found, COLUMN, measured_span(seen, found))


PROBE = Probe(
    NAME,
    "The rate of io.cost (vrate) of the target's devices over time (the io.stat of the root of control groups v2).",
    SampledOptions,
    ("block device", "io.cost"),
    tuple(_metrics()),
)
