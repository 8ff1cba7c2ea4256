"""One job's result in fio's JSON, whatever the version, in iolab's units.

fio 3 writes `lat_ns`, `bw_bytes` and `io_bytes` in bytes. fio 2 writes `lat` and `clat` in microseconds and `io_bytes`
in KiB (stat.c of each: 2.x shifts io_bytes right by 10; 3.0 has io_kbytes beside it).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from iolab.base.plain_text import whole_number
from iolab.base.strict_json import JsonObject

KIB = 1024
COUNT_END = 2.0**63
US = 1e3
WAYS = {"read": "read", "write": "write", "trim": "discard", "sync": "sync"}
"""fio's directions -> what iolab calls their operations."""
MIXED = "mixed"
"""Reads and writes together, of `unified_rw_reporting`. If it is `both`, they stand beside it."""
TRANSFERS = ("read", "write", MIXED)
QUANTILES = {"50.000000": "p50", "90.000000": "p90", "95.000000": "p95", "99.000000": "p99"}
QUANTILES |= {"99.900000": "p999", "99.990000": "p9999"}
_V2_BITS = "FIO_IO_U_PLAT_BITS"


@dataclass(frozen=True)
class Latency:
    """The latency of one direction as fio summarises it, in ns."""

    count: float
    min_ns: float
    max_ns: float
    mean_ns: float
    stddev_ns: float
    percentiles_ns: dict[str, float] = field(default_factory=dict)
    """`p99` and so on, as fio computed them; of completion latency unless lat_percentiles was asked for."""
    bins: tuple[tuple[int, int], ...] = ()
    """json+ only: latency in ns, count."""


@dataclass(frozen=True)
class Side:
    """Reads, writes or syncs of one job."""

    ops: float
    bytes: float
    runtime_ms: float
    latency: Latency | None
    parts: Mapping[str, Latency]
    """Of it, where fio measures them: `submission`, until the operation was submitted, and `completion`, from then
    on."""


@dataclass(frozen=True)
class Job:
    """A job's result in fio's JSON."""

    name: str
    group: int
    raw: JsonObject

    @cached_property
    def sides(self) -> dict[str, Side]:
        """By operation: what the job did there; those that it did not do are left out."""
        found = {op: _side(table(self.raw, way)) for way, op in WAYS.items()}
        # fio prints no number of syncs for some engines, and their latency.
        found = {
            op: side
            for op, side in found.items()
            if side.ops > 0 or side.bytes > 0 or (op == "sync" and side.latency is not None)
        }
        mixed = _side(table(self.raw, MIXED))
        return found if found.keys() & set(TRANSFERS) or not mixed.ops else {**found, MIXED: mixed}

    @property
    def transfers(self) -> list[Side]:
        """What the job's rates are of: reads and writes; of a job that only discards, that."""
        moved = [side for op, side in self.sides.items() if op in TRANSFERS]
        return moved or [side for op, side in self.sides.items() if op == "discard"]

    @property
    def runtime_ms(self) -> float:
        """Sum over the threads that the result stands for; without it, of the longest direction."""
        total = number(self.raw, "job_runtime")
        return total or max((side.runtime_ms for side in self.sides.values()), default=0.0)

    @property
    def has_cpu(self) -> bool:
        """Whether fio states how much CPU time the job took."""
        return "usr_cpu" in self.raw and "sys_cpu" in self.raw

    @property
    def cpu_user_s(self) -> float:
        """CPU time in user mode, in seconds, over all threads that the result stands for."""
        return number(self.raw, "usr_cpu") / 100 * self.runtime_ms / 1000

    @property
    def cpu_system_s(self) -> float:
        """CPU time in the kernel, in seconds, over all threads that the result stands for."""
        return number(self.raw, "sys_cpu") / 100 * self.runtime_ms / 1000


def number(source: JsonObject, name: str) -> float:
    """A number of the object, 0 if it is none or not finite."""
    value = source.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    try:
        return float(value) if math.isfinite(value) else 0.0
    except OverflowError:
        return 0.0


def table(source: JsonObject, name: str) -> JsonObject:
    """The object of this name; empty if there is none, or another kind of value."""
    value = source.get(name)
    return value if isinstance(value, dict) else {}


def _side(raw: JsonObject) -> Side:
    size = number(raw, "io_bytes")
    if "io_kbytes" not in raw and "bw_bytes" not in raw:
        size *= KIB
    runtime_ms = number(raw, "runtime")
    counted = number(raw, "total_ios") or number(raw, "iops") * runtime_ms / 1000
    latency = _latency(raw, counted)
    ops = counted or number(table(raw, "lat_ns"), "N") or number(table(raw, "clat_ns"), "N")
    return Side(ops, size, runtime_ms, latency, _parts(raw, counted))


def _latency(raw: JsonObject, ops: float) -> Latency | None:
    """Total latency, submission included; of old versions and of syncs, whatever there is. `ops`: how many operations
    there were, if it does not say of how many it is."""
    ns = "lat_ns" in raw or "clat_ns" in raw
    scale = 1.0 if ns else US
    total = table(raw, "lat_ns" if ns else "lat")
    completion = table(raw, "clat_ns" if ns else "clat")
    chosen = total if number(total, "max") else completion
    if not number(chosen, "max"):
        return None
    with_bins = total if table(total, "bins") else completion
    # All of one kind of latency, though the list that stands last may be cut off.
    percentiles = max((table(one, "percentile") for one in (total, completion)), key=len)
    return replace(
        _summary(chosen, ops, scale),
        percentiles_ns={
            short: number(percentiles, long) * scale for long, short in QUANTILES.items() if long in percentiles
        },
        bins=_bins(table(with_bins, "bins"), scale),
    )


def _parts(raw: JsonObject, ops: float) -> dict[str, Latency]:
    """Without a total, the completion is the latency itself."""
    has_total = number(table(raw, "lat_ns"), "max") or number(table(raw, "lat"), "max")
    names = {"submission": "slat", "completion": "clat"} if has_total else {"submission": "slat"}
    found = {}
    for name, short in names.items():
        part, scale = (table(raw, f"{short}_ns"), 1.0) if f"{short}_ns" in raw else (table(raw, short), US)
        if number(part, "max"):
            found[name] = _summary(part, ops, scale)
    return found


def _summary(raw: JsonObject, ops: float, scale: float) -> Latency:
    return Latency(
        # A weight at least: of some engines' syncs fio prints a latency, and that there was none.
        count=max(0.0, number(raw, "N") or ops) or 1.0,
        min_ns=number(raw, "min") * scale,
        max_ns=number(raw, "max") * scale,
        mean_ns=number(raw, "mean") * scale,
        stddev_ns=number(raw, "stddev") * scale,
    )


def _bins(raw: JsonObject, scale: float) -> tuple[tuple[int, int], ...]:
    """Latency and count. fio 2 numbers its bins, fio 3 names them by their latency."""
    bits = raw.get(_V2_BITS)
    found = []
    for key in raw:
        at, count = whole_number(key), number(raw, key)
        if at is not None and 0 < count < COUNT_END:
            value = latency_of_bin(at, bits) if isinstance(bits, int) else at
            found.append((int(value * scale), int(count)))
    return tuple(sorted(found))


def latency_of_bin(index: int, bits: int) -> int:
    """The middle of fio 2's bin `index`: exact up to 2^(bits + 1), then 2^bits bins for each doubling."""
    bits = min(max(bits, 1), 16)
    if index < 1 << (bits + 1):
        return index
    error_bits = min((index >> bits) - 1, 48)
    base = 1 << (error_bits + bits)
    step = index % (1 << bits)
    return base + int((step + 0.5) * (1 << error_bits))
