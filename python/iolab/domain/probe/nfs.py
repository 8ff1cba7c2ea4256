"""NFS: what the client's RPC layer did, operation by operation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from iolab.base.mountstats import COUNTERS, Counter, per_operation
from iolab.base.option import Options
from iolab.domain.definition import Metric
from iolab.domain.native_types import NfsObservation
from iolab.domain.probe.probe import Probe, ProbeReader

NAME = "nfs"
READER = ProbeReader[NfsObservation](NAME, lambda probes: probes.get("nfs"))
ALL_OPERATIONS = ""
OPERATIONS = {ALL_OPERATIONS: "of all operations", "read": "of READ", "write": "of WRITE"}
"""Those with metrics of their own; the observation has the others' counters too."""


class NfsOptions(Options):
    """The probe `nfs` has no options."""


def _metrics() -> Iterator[Metric]:
    for operation, of in OPERATIONS.items():
        absent = "no such call was made" if operation else "no call was made"
        prefix = f"rpc_{operation}_" if operation else "rpc_"
        yield READER.metric(
            f"{prefix}ops_per_s",
            "1/s",
            "neutral",
            f"Calls {of} per second of the observation.",
            "no time was observed",
            partial(_calls_per_s, operation=operation),
        )
        for name, unit, what in (
            ("bytes_sent_per_op", "bytes", "Bytes sent per call"),
            ("bytes_received_per_op", "bytes", "Bytes received per call"),
            ("backlog_wait_ns_mean", "ns", "Mean wait in the backlog before the call was sent"),
            ("rtt_ns_mean", "ns", "Mean time from sending the call to its reply"),
            ("execute_ns_mean", "ns", "Mean time of the call in the RPC layer, including waits"),
        ):
            yield READER.metric(
                f"{prefix}{name}",
                unit,
                "time" if unit == "ns" else "neutral",
                f"{what}, {of}.",
                absent,
                partial(_mean, operation=operation, metric=f"rpc_{name}"),
            )
    yield READER.metric(
        "rpc_retransmissions",
        "count",
        "cost",
        "Calls sent more than once.",
        "no call was made",
        partial(_mean, operation=ALL_OPERATIONS, metric="rpc_retransmissions"),
    )
    yield READER.metric(
        "rpc_timeouts",
        "count",
        "cost",
        "Calls that timed out.",
        "no call was made",
        partial(_mean, operation=ALL_OPERATIONS, metric="rpc_timeouts"),
    )
    yield READER.metric(
        "rpc_pulled_up_bytes",
        "bytes",
        "neutral",
        "Bytes of data that were copied behind their message's head to be sent, instead of being mapped (RDMA).",
        "the transport is not RDMA",
        _pulled_up,
    )


def _pulled_up(found: NfsObservation) -> float | None:
    of_rdma = [count for mount in found["mounts"].values() if (count := mount.get("pulled_up_bytes")) is not None]
    return float(sum(of_rdma)) if of_rdma else None


def _calls_per_s(found: NfsObservation, operation: str) -> float | None:
    return _total(found, operation)["ops"] * 1e9 / found["elapsed_ns"] if found["elapsed_ns"] else None


def _mean(found: NfsObservation, operation: str, metric: str) -> float | None:
    total = _total(found, operation)
    return per_operation(total)[metric] if total["ops"] else None


def _total(found: NfsObservation, operation: str) -> dict[Counter, float]:
    """The counters of one operation, or of all, over all mounts."""
    counted = [
        counters
        for mount in found["mounts"].values()
        for name, counters in mount["operations"].items()
        if operation in (ALL_OPERATIONS, name)
    ]
    return {name: float(sum(counters[name] for counters in counted)) for name in COUNTERS}


PROBE = Probe(
    NAME,
    "Operations of the target's NFS mount: calls, bytes, waits and times (/proc/self/mountstats).",
    NfsOptions,
    ("NFS",),
    tuple(_metrics()),
)
