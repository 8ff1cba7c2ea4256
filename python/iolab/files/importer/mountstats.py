"""NFS counters: snapshots of /proc/self/mountstats, and what mountstats(8) prints of them.

The difference counts of two snapshots of a mount, in one file or in two that follow each other; of one, everything
since the mount (`iolab.base.mountstats`). An operation is a phase of the workload `nfs MOUNTPOINT`.
"""

from __future__ import annotations

import re

from iolab.base.mountstats import COUNTERS, DEVICE, NS_PER_MS, Snapshot, SnapshotReader, per_operation
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Row
from iolab.files.importer.source import Line, Source
from iolab.files.importer.text import Captions
from iolab.files.importer.written_number import number

WORKLOAD = "nfs"
_PRINTED = re.compile(r"\s*(?P<name>[A-Z][A-Z0-9_]*):\s*$")
_PRINTED_OPS = re.compile(r"\s*+(?P<ops>\d{1,18}+) ops \(\d++%\)")
_PRINTED_BYTES = re.compile(
    r".*?avg bytes sent per op: (?P<sent>\d{1,18}+)\s++avg bytes received per op: (?P<received>\d{1,18}+)"
)
_PRINTED_TIMES = re.compile(
    r".*?backlog wait: (?P<backlog>[\d.]{1,64}+)\s++RTT: (?P<rtt>[\d.]{1,64}+)\s++"
    r"total execute time: (?P<execute>[\d.]{1,64}+)"
)


class _Reader:
    def __init__(self, source: Source, results: Results) -> None:
        self.source = source
        self.results = results
        self.captions = Captions()
        self.counters = SnapshotReader()
        self.printed = ""
        self.row: Row | None = None

    @property
    def setting(self) -> str:
        return self.captions.section or self.source.stem_without_round

    def read(self, line: Line) -> None:
        if self.counters.read(line.text, line.number):
            pass
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
                time_ms = number(found[name])
                self.row.add(f"rpc_{metric}_ns_mean", None if time_ms is None else time_ms * NS_PER_MS)

    def finish(self) -> None:
        by_mount: dict[str, list[Snapshot]] = {}
        for snapshot in self.counters.snapshots:
            by_mount.setdefault(snapshot.mount, []).append(snapshot)
        for snapshots in by_mount.values():
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
            if not values["ops"]:
                continue
            row = table.row(self.setting, f"{WORKLOAD} {snapshot.mount}", name.lower())
            row.add("ops", values["ops"])
            if snapshot.age_s:
                row.add("iops", values["ops"] / snapshot.age_s)
            for metric, value in per_operation(values).items():
                row.add(metric, value)


def is_single_snapshot(source: Source) -> bool:
    """Whether the file holds one snapshot, so that the next file may be its second. Never fails."""
    try:
        mounts = [found["mount"] for line in source.text_lines if (found := DEVICE.match(line))]
    except OSError:
        return False
    return bool(mounts) and len(mounts) == len(set(mounts))


def _parse(source: Source, results: Results) -> None:
    reader = _Reader(source, results)
    for line in source.lines(results.problem):
        reader.read(line)
    reader.finish()


FORMAT = Format(
    name="mountstats",
    help="NFS: snapshots of /proc/self/mountstats, or what mountstats(8) prints",
    recognises=lambda source: any(source.has_line(pattern) for pattern in (DEVICE, _PRINTED_BYTES)),
    parse=_parse,
    words=("device", "mounted on", "fstype nfs", "per-op statistics", "RTT:", "backlog wait"),
)
