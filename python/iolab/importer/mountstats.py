"""NFS counters: snapshots of /proc/self/mountstats, and what mountstats(8) prints of them.

Of two snapshots of a mount, in one file or in two that follow each other, the difference counts; of one, everything
since the mount. Times of the kernel are milliseconds summed over all calls (net/sunrpc/stats.c: operations,
transmissions, timeouts, bytes sent, bytes received, queue, round trip, execution, and errors from version 1.1 on). An
operation is a phase of the workload `nfs MOUNTPOINT`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from iolab.importer.format import Format
from iolab.importer.results import Results, Row
from iolab.importer.source import Line, Source
from iolab.importer.text import Captions

COUNTERS = ("ops", "transmissions", "timeouts", "bytes_sent", "bytes_received", "queue_ms", "rtt_ms", "execute_ms")
MS = 1e6
WORKLOAD = "nfs"
_DEVICE = re.compile(r"\s*device (?P<device>\S+) mounted on (?P<mount>.+?) with fstype (?P<type>\S+)")
_AGE = re.compile(r"\s*age:\s+(?P<age>\d{1,15})\s*$")
_OPERATION = re.compile(r"\s*(?P<name>[A-Z][A-Z0-9_]*):(?P<counters>(?:\s+\d{1,20}){8,10})\s*$")
_PRINTED = re.compile(r"\s*(?P<name>[A-Z][A-Z0-9_]*):\s*$")
_PRINTED_OPS = re.compile(r"\s*(?P<ops>\d{1,18}) ops \(\d+%\)")
_PRINTED_BYTES = re.compile(r".*?avg bytes sent per op: (?P<sent>\d+)\s+avg bytes received per op: (?P<received>\d+)")
_PRINTED_TIMES = re.compile(
    r".*?backlog wait: (?P<backlog>\d*\.?\d+)\s+RTT: (?P<rtt>\d*\.?\d+)\s+total execute time: (?P<execute>\d*\.?\d+)"
)


@dataclass
class Snapshot:
    """One mount's counters at one moment."""

    mount: str
    line: int
    age_s: int | None = None
    operations: dict[str, list[int]] = field(default_factory=dict)

    def since(self, before: Snapshot) -> Snapshot:
        """What happened from `before` to this one."""
        operations = {
            name: [ours - theirs for ours, theirs in zip(counters, before.operations.get(name, [0] * 8), strict=True)]
            for name, counters in self.operations.items()
        }
        both = self.age_s is not None and before.age_s is not None
        age_s = (self.age_s or 0) - (before.age_s or 0) if both else None
        return Snapshot(self.mount, self.line, age_s, operations)

    @property
    def went_backwards(self) -> bool:
        return any(counter < 0 for counters in self.operations.values() for counter in counters)


class _Reader:
    def __init__(self, source: Source, results: Results) -> None:
        self.source = source
        self.results = results
        self.captions = Captions()
        self.snapshots: dict[str, list[Snapshot]] = {}
        self.current: Snapshot | None = None
        self.printed = ""
        self.row: Row | None = None

    @property
    def setting(self) -> str:
        return self.captions.section or self.source.stem_without_round

    def read(self, line: Line) -> None:
        if found := _DEVICE.match(line.text):
            self.current = Snapshot(found["mount"], line.number) if found["type"].startswith("nfs") else None
            if self.current:
                self.snapshots.setdefault(self.current.mount, []).append(self.current)
        elif self.current and (found := _AGE.match(line.text)):
            self.current.age_s = int(found["age"])
        elif self.current and (found := _OPERATION.match(line.text)):
            self.current.operations[found["name"]] = [int(word) for word in found["counters"].split()[: len(COUNTERS)]]
        elif found := _PRINTED.match(line.text):
            self.printed, self.row = found["name"], None
        elif self.printed:
            self._printed(line)
        self.captions.read(line)

    def _printed(self, line: Line) -> None:
        if found := _PRINTED_OPS.match(line.text):
            self.row = self.results.table(line.number).row(self.setting, WORKLOAD, self.printed.lower())
            self.row.add("ops", float(found["ops"]))
        if self.row is None:
            return
        if found := _PRINTED_BYTES.match(line.text):
            self.row.add("rpc_bytes_sent_per_op", float(found["sent"]))
            self.row.add("rpc_bytes_received_per_op", float(found["received"]))
        if found := _PRINTED_TIMES.match(line.text):
            for name, metric in (("backlog", "backlog_wait"), ("rtt", "rtt"), ("execute", "execute")):
                self.row.add(f"rpc_{metric}_ns_mean", float(found[name]) * MS)

    def finish(self) -> None:
        for snapshots in self.snapshots.values():
            whole = [snapshot for snapshot in snapshots if snapshot.operations]
            if len(whole) < len(snapshots):
                self.results.problem("a snapshot without operations is left out", snapshots[-1].line)
            if len(whole) == 1:
                self.results.problem("one snapshot alone: the figures are since the mount", whole[0].line)
                self._add(whole[0])
            for before, after in zip(whole[::2], whole[1::2], strict=False):
                difference = after.since(before)
                if difference.went_backwards:
                    self.results.problem("counters went backwards: mounted anew in between, left out", after.line)
                else:
                    self._add(difference)
            if len(whole) > 2 and len(whole) % 2:
                self.results.problem("the snapshot has no second one after it, left out", whole[-1].line)

    def _add(self, snapshot: Snapshot) -> None:
        table = self.results.table(snapshot.line)
        for name, counters in snapshot.operations.items():
            values = dict(zip(COUNTERS, map(float, counters), strict=True))
            ops = values["ops"]
            if not ops:
                continue
            row = table.row(self.setting, f"{WORKLOAD} {snapshot.mount}", name.lower())
            row.add("ops", ops)
            if snapshot.age_s:
                row.add("iops", ops / snapshot.age_s)
            row.add("rpc_bytes_sent_per_op", values["bytes_sent"] / ops)
            row.add("rpc_bytes_received_per_op", values["bytes_received"] / ops)
            row.add("rpc_backlog_wait_ns_mean", values["queue_ms"] / ops * MS)
            row.add("rpc_rtt_ns_mean", values["rtt_ms"] / ops * MS)
            row.add("rpc_execute_ns_mean", values["execute_ms"] / ops * MS)
            row.add("rpc_retransmissions", max(0.0, values["transmissions"] - ops))
            row.add("rpc_timeouts", values["timeouts"])


def is_single_snapshot(source: Source) -> bool:
    """Whether the file holds one snapshot, so that the next file may be its second. Never fails."""
    try:
        mounts = [found["mount"] for line in source.head_lines if (found := _DEVICE.match(line))]
    except OSError:
        return False
    return bool(mounts) and len(mounts) == len(set(mounts))


def _parse(source: Source, results: Results) -> None:
    reader = _Reader(source, results)
    for line in source.lines():
        reader.read(line)
    reader.finish()


FORMAT = Format(
    name="mountstats",
    help="NFS: snapshots of /proc/self/mountstats, or what mountstats(8) prints",
    recognises=lambda source: any(source.has_line(pattern) for pattern in (_DEVICE, _PRINTED_BYTES)),
    parse=_parse,
    words=("device", "mounted on", "fstype nfs", "per-op statistics", "RTT:", "backlog wait"),
)
