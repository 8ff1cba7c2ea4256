"""Every metric that iolab computes, by name: of every trial, and of those that have a probe on; the operations that
metrics are kept for, and the keys by which [compare], tables and JSON call a phase's metric."""

from __future__ import annotations

from typing import NamedTuple

from iolab.base.errors import InputError, unknown
from iolab.domain.definition import TOOL_METRICS, Metric, MetricDescription, describe_by_name
from iolab.domain.metric import latency, measure, phase, rate, usage
from iolab.domain.metric.aliases import unknown_metric
from iolab.domain.probe import PROBES

ALL = "all"
TRANSFERS = ("read", "write", "null")
OPS: dict[str, str] = {
    "read": "a read",
    "write": "a write",
    "sync": "an fsync or fdatasync",
    "discard": "a discard of a trace's replay, or a write of zeroes without data; its bytes are those that it clears",
    "null": "a null operation of the engine null, which moves nothing; its bytes are those that it names",
    "commit": "a record of a log, from when it was due until it is durable (kind commits)",
    "mkdir": "a mkdir",
    "create": "an open that makes a file",
    "fsync": "an fsync; of a file that is opened again for it, open and close too",
    "system_sync": "a sync of the whole system",
    "close": "a close",
    "unlink": "an unlink",
    ALL: "reads and writes together, or null operations, and the figures of a phase as a whole",
}
"""Every operation that some kind of phase counts. Each phase has its own (`PhaseSpec.offered`)."""

IN_INSTRUCTIONS = ("instructions_per_op", "_call_instructions")
"""How metrics end that count instructions."""
DEFAULT_COMPARED = ("rate_bytes_per_s", "latency_ns_mean", "latency_ns_p99", "cpu_ns_per_io")

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metrics in (
        *(rate.METRICS, latency.METRICS, usage.METRICS, rate.SHARING, measure.METRICS, phase.METRICS),
        *(probe.metrics for probe in PROBES.values()),
    )
    for metric in metrics
}


def describe(key: str) -> MetricDescription:
    """What is known of the metric that `key` names: one of iolab's, of another tool's, or by the words of its name."""
    name = key.rpartition("/")[2].rpartition(".")[2]
    return METRICS.get(name) or TOOL_METRICS.get(name) or describe_by_name(key)


def is_unknown(key: str) -> bool:
    """Whether neither iolab nor the words of the name know which way of the metric is better."""
    name = key.rpartition("/")[2].rpartition(".")[2]
    return name not in METRICS.keys() | TOOL_METRICS.keys() and describe_by_name(key).better is None


def ops_of(metric: Metric) -> tuple[str, ...]:
    """The operations for which the metric is kept, in words."""
    return ("each operation", ALL) if metric.scope == "op" else ops_taken(metric)


def ops_taken(metric: Metric) -> tuple[str, ...]:
    """The operations for which some phase may keep the metric."""
    return {"op": tuple(OPS), "transfer": (*TRANSFERS, ALL)}.get(metric.scope, (ALL,))


class Key(NamedTuple):
    """What `[phase/][op.]metric` names. `phase` is None if a trial has one measured phase."""

    phase: str | None
    op: str
    metric: str

    def __str__(self) -> str:
        key = self.metric if self.op == ALL else f"{self.op}.{self.metric}"
        return key if self.phase is None else f"{self.phase}/{key}"


def parse_key(text: str) -> Key:
    """`random_read/read.latency_ns_p99` -> its parts. InputError names the nearest metric or operation."""
    phase, slash, rest = text.rpartition("/")
    op, dot, name = rest.rpartition(".")
    if dot and op not in OPS:
        raise InputError(unknown("operation", op, OPS), where=text)
    metric = METRICS.get(name)
    if metric is None:
        raise InputError(unknown_metric(name, METRICS), where=text)
    op = op or ALL
    if op not in ops_taken(metric):
        raise InputError(f"{name} is not kept for {op}; it is kept for {', '.join(ops_of(metric))}", where=text)
    return Key(phase if slash else None, op, name)
