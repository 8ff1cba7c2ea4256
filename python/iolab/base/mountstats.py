"""The NFS client's counters as /proc/self/mountstats shows them (formats statvers 1.0 and 1.1, net/sunrpc/stats.c).

A line for each operation of a mount: how often it was called, transmissions, major timeouts, bytes sent, bytes
received, and three times summed over all calls, in milliseconds: waiting in the queue, from transmission to reply, from
start to end; from version 1.1 on errors too. A line for each transport: of RDMA it has the bytes that were pulled up,
copied behind a message's head to be sent. All counters count since the mount.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

Counter = Literal[
    "ops", "transmissions", "timeouts", "bytes_sent", "bytes_received", "queue_ms", "rtt_ms", "execute_ms"
]
COUNTERS: tuple[Counter, ...] = (
    "ops",
    "transmissions",
    "timeouts",
    "bytes_sent",
    "bytes_received",
    "queue_ms",
    "rtt_ms",
    "execute_ms",
)
NS_PER_MS = 1_000_000

DEVICE = re.compile(r"\s*+device (?P<device>\S++) mounted on (?P<mount>.+?) with fstype (?P<type>\S++)")
_AGE = re.compile(r"\s*age:\s+(?P<age>\d{1,15})\s*$")
_RDMA = re.compile(r"\s*xprt:\s+rdma(?:\s+-?\d{1,20}){15}\s+(?P<pulled_up>\d{1,20})(?:\s|$)")
"""`xprt_rdma_print_stats`: ten counters of every transport, five of chunks, then `pullup_copy_count`."""
_OPERATION = re.compile(r"\s*(?P<name>[A-Z][A-Z0-9_]*):(?P<counters>(?:\s+\d{1,20}){8,10})\s*$")


@dataclass
class Snapshot:
    """One mount's counters at one moment."""

    mount: str
    """As the file has it: spaces are `\\040`."""
    line: int
    age_s: int | None = None
    operations: dict[str, list[int]] = field(default_factory=dict)
    """By the kernel's name, such as READ: a number for each of `COUNTERS`."""
    pulled_up_bytes: int | None = None
    """Over all connections; None: the transport is not RDMA."""

    def since(self, before: Snapshot) -> Snapshot:
        """What happened from `before` to this one."""
        operations = {
            name: [ours - theirs for ours, theirs in zip(counters, before.operations.get(name, [0] * 8), strict=True)]
            for name, counters in self.operations.items()
        }
        both = self.age_s is not None and before.age_s is not None
        age_s = (self.age_s or 0) - (before.age_s or 0) if both else None
        ours, theirs = self.pulled_up_bytes, before.pulled_up_bytes
        pulled_up = None if ours is None else ours - (theirs or 0)
        return Snapshot(self.mount, self.line, age_s, operations, pulled_up)

    @property
    def went_backwards(self) -> bool:
        """Whether any counter is negative, as a difference is when the mount was made anew in between."""
        counters = [counter for counters in self.operations.values() for counter in counters]
        return any(counter < 0 for counter in (*counters, self.pulled_up_bytes or 0))


class SnapshotReader:
    """Takes a text line by line; other lines than a mount's may stand in between."""

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []
        self._current: Snapshot | None = None

    def read(self, line: str, number: int) -> bool:
        """Whether the line describes a mount."""
        if found := DEVICE.match(line):
            self._current = Snapshot(found["mount"], number) if found["type"].startswith("nfs") else None
            if self._current:
                self.snapshots.append(self._current)
        elif self._current and (found := _AGE.match(line)):
            self._current.age_s = int(found["age"])
        elif self._current and (found := _RDMA.match(line)):
            self._current.pulled_up_bytes = (self._current.pulled_up_bytes or 0) + int(found["pulled_up"])
        elif self._current and (found := _OPERATION.match(line)):
            self._current.operations[found["name"]] = [int(word) for word in found["counters"].split()[: len(COUNTERS)]]
        else:
            return False
        return True


def snapshots(text: str) -> list[Snapshot]:
    """Those of all NFS mounts, in the file's order."""
    reader = SnapshotReader()
    for number, line in enumerate(text.splitlines(), 1):
        reader.read(line, number)
    return reader.snapshots


def per_operation(counters: dict[Counter, float]) -> dict[str, float]:
    """By metric: what a call took on average, and what was sent more than once.

    Args:
        counters: by the names of `COUNTERS`; `ops` above zero.
    """
    ops = counters["ops"]
    return {
        "rpc_bytes_sent_per_op": counters["bytes_sent"] / ops,
        "rpc_bytes_received_per_op": counters["bytes_received"] / ops,
        "rpc_backlog_wait_ns_mean": counters["queue_ms"] / ops * NS_PER_MS,
        "rpc_rtt_ns_mean": counters["rtt_ms"] / ops * NS_PER_MS,
        "rpc_execute_ns_mean": counters["execute_ms"] / ops * NS_PER_MS,
        "rpc_retransmissions": max(0.0, counters["transmissions"] - ops),
        "rpc_timeouts": counters["timeouts"],
    }
