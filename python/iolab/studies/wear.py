"""What writes do to simulated flash: write amplification, erases and rate, slice by slice of what is written."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

from pydantic import ValidationError

from iolab.base import data
from iolab.base.bounded_file import EXPERIMENT_BYTES_MAX, is_file, read_bounded
from iolab.base.errors import InputError, MachineError, unknown
from iolab.base.quantity import format_bytes, parse_bytes
from iolab.base.schema import first_problem
from iolab.base.toml import Document, TomlTable, parse, value_of
from iolab.domain import native_model
from iolab.domain import native_types as native
from iolab.domain.observation import Observation, observe
from iolab.domain.simulated_machine import InvalidMachine
from iolab.domain.trial import DrivesTarget, LoadPhase, Phase, Trial
from iolab.domain.workload import io, trace
from iolab.domain.workload.job import PARETO_H, ZIPF_THETA
from iolab.domain.workload.zone import read_zones, zoned
from iolab.files import machine_file
from iolab.machines.model.simulation import execute

AROUND = "model:nvme"
"""The simulated machine whose drive is exchanged."""
SLICES = 48
CLIFF_SHARE = 0.5
AT_ONCE = 1e-6
"""The least factor on the times of a trace."""
SEED = 1
SCATTER_SEED = 1
ALL = 100
"""Percent."""
WEIGHTS = 1_000_000
"""What the parts of writes add up to."""
ALIGN_BYTES = 4096
WRITES: dict[str, Any] = {"read_percent": 0, "block_size": 131_072, "queue_depth": 32}
"""A named pattern's options; those of the pattern itself have their defaults."""
ANY_END = {"amount": "1GiB", "operations": None, "duration": None}
"""A job has to have an end; each slice gets its own."""
PATTERNS = ("sequential", "random", "zipf", "pareto", "normal", "permutation")
Options: TypeAlias = "io.IoOptions | trace.TraceOptions"
_O = TypeVar("_O", io.IoOptions, trace.TraceOptions)


@dataclass(frozen=True)
class WearSlice:
    """A part of what was written."""

    host_bytes: int
    """Written by the host in this slice."""
    elapsed_ns: int
    erases: int
    amplification: float | None
    """None if nothing was programmed: the slice fitted in the drive's buffer, or had no write."""
    free_percent: float | None
    """Erased blocks at its end, of all that are no part of the cache."""
    slc_percent: float | None
    """The programmed part of the pseudo-SLC cache at its end; None: there is no such cache."""
    celsius: float | None
    """The drive's temperature at its end; None: it does not get warm."""

    @property
    def bytes_per_s(self) -> float:
        """What the host wrote per second of simulated time."""
        return _rate(self.host_bytes, self.elapsed_ns)


@dataclass(frozen=True)
class Wear:
    """What a workload came to on a drive."""

    drive_bytes: int
    slices: Sequence[WearSlice]
    is_paced: bool
    """The I/Os of a trace are due at its times: a low rate is the load's."""

    @property
    def host_bytes(self) -> int:
        """Written by the host."""
        return sum(one.host_bytes for one in self.slices)

    @property
    def elapsed_ns(self) -> int:
        """Simulated time."""
        return sum(one.elapsed_ns for one in self.slices)

    @property
    def bytes_per_s(self) -> float:
        """As of a slice."""
        return _rate(self.host_bytes, self.elapsed_ns)

    @property
    def erases(self) -> int:
        """Blocks erased, those of all planes of a die as one."""
        return sum(one.erases for one in self.slices)

    @property
    def amplification(self) -> float | None:
        """Of all that was written; None if nothing was programmed."""
        return _mean_amplification(self.slices)

    @property
    def last_quarter(self) -> Wear:
        """The last of it: the steady state, if there was enough to write."""
        return replace(self, slices=self.slices[-max(1, len(self.slices) // 4) :])

    @property
    def cliff(self) -> tuple[int, int] | None:
        """Bytes and nanoseconds before the first slice that has less than half of the first one's rate, as have all
        that follows together and the last quarter; None: there is none, or the load sets the rate."""
        if self.is_paced:
            return None
        least = CLIFF_SHARE * self.slices[0].bytes_per_s
        if self.last_quarter.bytes_per_s >= least:
            return None
        for number, one in enumerate(self.slices):
            rest = replace(self, slices=self.slices[number:])
            if one.elapsed_ns and max(one.bytes_per_s, rest.bytes_per_s) < least:
                before = replace(self, slices=self.slices[:number])
                return before.host_bytes, before.elapsed_ns
        return None

    def as_dict(self) -> dict[str, object]:
        """For JSON; bytes, nanoseconds, counts and ratios."""
        return {
            "drive_bytes": self.drive_bytes,
            "host_bytes": self.host_bytes,
            "elapsed_ns": self.elapsed_ns,
            "write_amplification": self.amplification,
            "write_amplification_last_quarter": self.last_quarter.amplification,
            "erases": self.erases,
            "cliff_bytes": None if self.cliff is None else self.cliff[0],
            "cliff_ns": None if self.cliff is None else self.cliff[1],
            "slices": [
                {
                    "host_bytes": one.host_bytes,
                    "elapsed_ns": one.elapsed_ns,
                    "bytes_per_s": one.bytes_per_s,
                    "write_amplification": one.amplification,
                    "erases": one.erases,
                    "free_percent": one.free_percent,
                    "slc_percent": one.slc_percent,
                    "celsius": one.celsius,
                }
                for one in self.slices
            ],
        }


def _rate(host_bytes: int, elapsed_ns: int) -> float:
    return host_bytes / elapsed_ns * 1e9 if elapsed_ns else 0.0


def _mean_amplification(slices: Sequence[WearSlice]) -> float | None:
    known = [(one.host_bytes, one.amplification) for one in slices if one.amplification is not None]
    total = sum(host_bytes for host_bytes, _ in known)
    return sum(host_bytes * factor for host_bytes, factor in known) / total if total else None


def drive(name: str, changes: Sequence[str]) -> native.MachineFile:
    """A machine with this drive: a device that `iolab list devices` names, or a device's file.

    Args:
        changes: `KEY=VALUE` each, as `firmware.collector=windowed`.

    Raises:
        InputError: there is no such drive, it is no flash, or a key or a value is wrong.
    """
    document = _device(name)
    device = deepcopy(document.values)
    for change in changes:
        _set(device, change)
    if device.get("kind") != "flash":
        raise InputError(
            f"a device of kind {device.get('kind', 'none')!r}; only flash wears",
            where=name,
            remedy="name one of flash: iolab list devices",
        )
    machine = cast(native.MachineFile, deepcopy(dict(machine_file.read(AROUND, Path()).table)))
    machine["drives"] = [cast(native.DriveSpec, {**machine["drives"][0], "device": device})]
    try:
        native_model.drive_sizes(machine)
    except ValueError as error:
        refusal = InvalidMachine.from_native(error)
        raise InputError(f"{refusal.key.removeprefix('drives.0.device.')}: {refusal.what}", where=name) from None
    return machine


def size_of(machine: native.MachineFile) -> int:
    """Bytes of its drive that are written."""
    return native_model.drive_sizes(machine)[0] // ALIGN_BYTES * ALIGN_BYTES


def own_steady_state(options: Options, size: int) -> tuple[str, ...]:
    """Changes of a drive of so many bytes so that it starts as a long run of this workload leaves it: `KEY=VALUE` each.

    Raises:
        InputError: the state after this workload is not known.
    """
    if isinstance(options, trace.TraceOptions):
        return ("firmware.filled=true", "firmware.steady=sequential")
    if options.read_percent == ALL:
        raise InputError("only of a job that writes", where="--start steady")
    block, *others = options.block_size
    start, length = _range(options, size)
    is_whole, is_even = length == size, not others and options.align_bytes == block
    steady: dict[str, object] | None = None
    match options.pattern:
        case "sequential" | "backward":
            steady = {"firmware.steady": "sequential"}
        case "strided" if is_whole and is_even and options.stride and options.stride % block == 0:
            stride = {"firmware.steady_block_bytes": block, "firmware.steady_stride_bytes": options.stride}
            steady = {"firmware.steady": "sequential", **stride}
        case "random" | "permutation" if is_whole and is_even:
            steady = {"firmware.steady": options.pattern, "firmware.steady_block_bytes": block}
        case "zipf" | "pareto" | "normal" as pattern if is_whole and is_even:
            key, value = {
                "zipf": ("zipf_theta_per_mille", 1000 * (options.zipf_theta or ZIPF_THETA)),
                "pareto": ("pareto_h_per_mille", 1000 * (options.pareto_h or PARETO_H)),
                "normal": ("normal_deviation_per_mille", 10 * (options.normal_deviation or 0)),
            }[pattern]
            steady = _skewed(options, {key: round(value), "scatter_seed": SCATTER_SEED})
        case "random" | "zoned":
            zones = zoned(read_zones(options.zones or f"{ALL}/{ALL}%", parse_bytes), length)["zones"]
            written = [(zone["length_bytes"], round(WEIGHTS / ALL * zone["weight"])) for zone in zones]
            all_zones = [(start, 0), *written] if start else written
            steady = _skewed(options, {"zones": _inline(("bytes", "weight"), all_zones)})
    if steady is None:
        raise InputError(
            f"what a long run of {options.pattern} leaves is not known of this range, block_size, align or stride",
            where="--start steady",
            remedy="use the whole drive, one block_size that is its align, and a stride that is a multiple of it; "
            "sequential, backward, random and zoned take any",
        )
    return ("firmware.filled=true", *(f"{key}={value}" for key, value in steady.items()))


def passes_before(machine: native.MachineFile, options: Options) -> int:
    """How often a trace is written without a measure so that it has come to its steady state: none of a job, which
    starts there.

    What a pass writes is written again in the next. If two passes fit in what is spare, all of a block is invalid
    before it is collected, as after writing in sequence; else the drive is written three times over.
    """
    if not isinstance(options, trace.TraceOptions):
        return 0
    written = options.written_bytes
    if not written:
        raise InputError("the trace writes nothing", where="--start steady")
    device = machine["drives"][0]["device"]
    assert device["kind"] == "flash", "`drive` makes no other"
    geometry = cast(Mapping[str, int], device["geometry"])
    sizes = ("channels", "dies_per_channel", "planes_per_die", "blocks_per_plane", "pages_per_block", "page_bytes")
    spare = math.prod(geometry[size] for size in sizes) * geometry["over_provision_per_mille"] // 1000
    touched = min(written, size_of(machine))
    return 2 if 2 * written <= spare else math.ceil(3 * (spare + touched) / written)


def _skewed(options: io.IoOptions, keys: Mapping[str, object]) -> dict[str, object]:
    """The keys of a drive that was written so, in the sizes of the job."""
    skew = {**keys, "block_bytes": options.align_bytes}
    if list(options.block_size) != [options.align_bytes]:
        all_weights = sum(options.block_size.values())
        sizes = [(size, max(1, round(WEIGHTS * part / all_weights))) for size, part in options.block_size.items()]
        skew["sizes"] = _inline(("bytes", "weight"), sizes)
    return {"firmware.steady": "skewed", **{f"skew.{key}": value for key, value in skew.items()}}


def _inline(keys: Sequence[str], rows: Sequence[Sequence[int]]) -> str:
    """Tables of TOML in one line."""
    tables = (", ".join(f"{key} = {value}" for key, value in zip(keys, row, strict=True)) for row in rows)
    return f"[{', '.join(f'{{ {table} }}' for table in tables)}]"


def _range(options: io.IoOptions, size: int) -> tuple[int, int]:
    """Where the job begins on the drive, and how much of it it uses."""
    start = options.range_start
    if start >= size:
        raise InputError(f"{format_bytes(start)} is behind the drive's {format_bytes(size)}", where="range_start")
    return start, min(options.range_length or size, size - start)


def workload(name: str, given: Mapping[str, Any]) -> Options:
    """What is written: a pattern by its name, the workload of an experiment's file, or a trace.

    Args:
        given: options of a job that replace others, as `block_size`.

    Raises:
        InputError: there is no such pattern or file, or an option is wrong.
    """
    if name in PATTERNS:
        return _checked(io.IoOptions, {"pattern": name, **WRITES, **ANY_END, **given}, name)
    if not is_file(path := Path(name)):
        raise InputError(
            unknown("pattern", name, PATTERNS), where=name, remedy="name a pattern, an experiment's file or a trace"
        )
    if path.suffix == ".toml":
        return _checked(io.IoOptions, {**_of_experiment(path), **ANY_END, **given}, name)
    if given:
        raise InputError("a trace has its own", where=f"--{next(iter(given)).replace('_', '-')}", remedy="leave it out")
    return _checked(trace.TraceOptions, {"file": str(path.absolute())}, name)


def wear(
    machine: native.MachineFile, options: Options, amount: int | None, slices: int = SLICES, passes: int = 0
) -> Wear:
    """Writes in `slices` parts, one after the other, on a drive that keeps its state.

    Args:
        amount: bytes that are transferred, about; None: as many as the drive holds, or the whole trace.
        passes: how often the whole trace is written first, as fast as the drive takes it; of a trace alone.

    Raises:
        InputError: the drive is too small, or has no mechanism for something in the workload.
        MachineError: the simulation failed.
    """
    size = size_of(machine)
    if isinstance(options, trace.TraceOptions):
        phases = _of_trace(options, size, slices, passes)
    else:
        phases = _of_job(options, size, size if amount is None else amount, slices)
    trial = Trial(
        trial=0,
        round=0,
        position=0,
        workload="wear",
        setting="wear",
        seed=SEED,
        machine=AROUND,
        target=DrivesTarget(devices=1),
        controls={},
        model=machine,
        phases=list(phases),
    )
    record = execute(trial, lambda progress: None, lambda: False)
    if record.status != "ok":
        raise MachineError(record.faults[0].what if record.faults else f"the trial {record.status}", where="iolab wear")
    measured = [phase for phase in trial.phases if phase.measured]
    found = map(observe, measured, record.phases)
    return Wear(size, [_slice(one) for one in found], isinstance(options, trace.TraceOptions))


def _slice(seen: Observation) -> WearSlice:
    measures = seen.record.get("measures", {})
    written = sum(job["write"]["bytes"] for job in seen.jobs.values() if "write" in job)
    return WearSlice(
        host_bytes=int(written),
        elapsed_ns=int(seen.record["elapsed_ns"]),
        erases=int(measures.get("flash_erases") or 0),
        amplification=measures.get("write_amplification"),
        free_percent=measures.get("flash_free_percent"),
        slc_percent=measures.get("slc_fill_percent"),
        celsius=measures.get("flash_celsius"),
    )


def _of_job(options: io.IoOptions, size: int, amount: int, slices: int) -> Iterator[Phase]:
    """A job in order goes on where the slice before ended; so slices divide its range."""
    start, length = _range(options, size)
    part = max(amount // slices, *options.block_size, ALIGN_BYTES)
    is_in_order = options.pattern in ("sequential", "backward")
    if is_in_order:
        part = length // max(1, round(length / part))
    is_in_passes = options.pattern in ("permutation", "strided")
    aligned = math.lcm(options.align_bytes, ALIGN_BYTES, *(options.block_size if is_in_passes else ()))
    part = max(part // aligned, 1) * aligned
    for number in range(max(1, round(amount / part))):
        done = number * part
        before = done % (length // part * part) if is_in_order else 0
        changes = {
            "file_size": size,
            "range_start": start + (before if options.pattern == "sequential" else 0),
            "range_length": length - before,
            "amount": part,
            "operations": None,
            "duration": None,
            "warm_up": 0,
            "cut_transient": False,
            "layout": False,
            "fill": None,
            "steady": None,
        }
        asked = options.model_copy(update=changes)
        phase = io.KIND.phases(asked, SEED + number, 1)[-1]
        if isinstance(phase, LoadPhase):
            for job in phase.load["groups"][0]["jobs"]:
                # The same blocks are hot in each slice, and a pass goes on where the slice before ended.
                job["scatter_seed"] = SCATTER_SEED
                if job["pattern"]["kind"] == "permutation" or job["pattern"]["kind"] == "strided":
                    job["pattern"]["blocks_done"] = done // job["blocks"][0]["bytes"]
        yield _named(phase, number)


def _of_trace(options: trace.TraceOptions, size: int, slices: int, passes: int) -> Iterator[Phase]:
    whole_ns = max(1, int(options.schedule["elapsed_ns"]))
    part_ns = whole_ns // slices + 1  # the last arrives when all of the time has passed
    reach = min(options.bytes_per_file(1), size)
    for number in range(passes):
        given = {"time_scale": AT_ONCE, "file_size": format_bytes(reach), "layout": False}
        whole = trace.TraceOptions.model_validate({"file": options.file, **given})
        phase = trace.KIND.phases(whole, SEED, 1)[-1]
        yield phase.model_copy(update={"name": f"pass-{number + 1}", "measured": False})
    for number in range(slices):
        times = {"skip": f"{number * part_ns}ns", "take": f"{part_ns}ns"}
        given = {**times, "file_size": format_bytes(reach), "layout": False}
        part = trace.TraceOptions.model_validate({"file": options.file, **given})
        if any(trace.KIND.conflicts(part)):
            continue  # nothing was asked for in that time
        yield _named(trace.KIND.phases(part, SEED, 1)[-1], number)


def _named(phase: Phase, number: int) -> Phase:
    return phase.model_copy(update={"name": f"slice-{number + 1}"})


def _device(name: str) -> Document:
    known = machine_file.devices()
    if name not in known and not name.endswith(".toml"):
        raise InputError(unknown("drive", name, known), where=name, remedy="iolab list devices; or name a file, X.toml")
    return machine_file.device_at(data.MACHINES / "devices" / f"{name}.toml" if name in known else Path(name))


def _set(device: TomlTable, change: str) -> None:
    key, is_pair, value = (part.strip() for part in change.partition("="))
    if not is_pair or not key or not value:
        what, remedy = "expected KEY=VALUE", "for instance --set firmware.collector=windowed"
        raise InputError(what, where=f"--set {change}", remedy=remedy)
    *tables, last = key.split(".")
    at: Any = device
    for table in tables:
        at = at.setdefault(table, {})
        if not isinstance(at, dict):
            raise InputError(f"{table} is no table", where=f"--set {change}")
    at[last] = value_of(value)


def _of_experiment(path: Path) -> TomlTable:
    """The one workload of the file, which has to be of kind io."""
    text = read_bounded(path, EXPERIMENT_BYTES_MAX, "an experiment's file").decode(errors="replace")
    document = parse(text, str(path))
    tables = document.values.get("workloads")
    if not isinstance(tables, dict) or len(tables) != 1:
        raise InputError("expected one workload", where=str(path), remedy="keep one table [workloads.NAME]")
    (name, table), *_ = tables.items()
    where = f"{path}:{document.line(('workloads', name))}"
    if not isinstance(table, dict) or table.get("kind", "io") != "io":
        raise InputError("expected a workload of kind io", where=where)
    return {key: value for key, value in table.items() if key != "kind"}


def _checked(kind: type[_O], given: Mapping[str, Any], where: str) -> _O:
    try:
        options = kind.model_validate(given)
    except ValidationError as error:
        raise InputError(first_problem(error), where=where) from None
    is_trace = isinstance(options, trace.TraceOptions)
    for conflict in trace.KIND.conflicts(options) if is_trace else io.KIND.conflicts(options):
        raise InputError(conflict.what, where=where)
    return options
