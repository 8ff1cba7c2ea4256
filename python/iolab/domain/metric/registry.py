"""Every metric that iolab computes, by name: of every trial, and of those that have a probe on."""

from __future__ import annotations

from iolab.domain.definition import Described, Metric
from iolab.domain.metric import latency, measure, phase, rate, sharing, usage
from iolab.domain.metric.operation import ALL, OPS, TRANSFERS
from iolab.domain.probe import PROBES
from iolab.domain.tool_metric import TOOL_METRICS, describe_by_name

DEFAULT_COMPARED = ("rate_bytes_per_s", "latency_ns_mean", "latency_ns_p99", "cpu_ns_per_io")

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metrics in (
        *(noun.METRICS for noun in (rate, latency, usage, sharing, measure, phase)),
        *(probe.metrics for probe in PROBES.values()),
    )
    for metric in metrics
}


def describe(key: str) -> Described:
    """What is known of the metric that `key` names: one of iolab's, of another tool's, or by the words of its name."""
    name = key.rpartition("/")[2].rpartition(".")[2]
    return METRICS.get(name) or TOOL_METRICS.get(name) or describe_by_name(key)


def ops_of(metric: Metric) -> tuple[str, ...]:
    """The operations for which the metric is kept, in words."""
    return ("each operation", ALL) if metric.scope == "op" else ops_taken(metric)


def ops_taken(metric: Metric) -> tuple[str, ...]:
    """The operations for which some phase may keep the metric."""
    return {"op": tuple(OPS), "transfer": (*TRANSFERS, ALL)}.get(metric.scope, (ALL,))
