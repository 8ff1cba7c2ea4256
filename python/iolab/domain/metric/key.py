"""The names by which [compare], tables and JSON call a phase's metric."""

from __future__ import annotations

from typing import NamedTuple

from iolab.base.errors import InputError, unknown
from iolab.domain.metric.operation import ALL, OPS
from iolab.domain.metric.registry import METRICS, ops_of, ops_taken


class Key(NamedTuple):
    """What `[phase/][op.]metric` names. `phase` is None where a trial has one measured phase."""

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
        raise InputError(unknown("metric", name, METRICS), where=text)
    op = op or ALL
    if op not in ops_taken(metric):
        raise InputError(f"{name} is not kept for {op}; it is kept for {', '.join(ops_of(metric))}", where=text)
    return Key(phase if slash else None, op, name)
