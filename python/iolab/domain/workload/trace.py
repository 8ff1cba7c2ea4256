"""`kind = "trace"`: the I/Os of a trace once more, at their times or at those of what they waited for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import PrivateAttr
from typing_extensions import override

from iolab import _native
from iolab.base import beneath
from iolab.base.errors import InputError
from iolab.base.option import Bytes, Duration, Options, option
from iolab.base.quantity import format_bytes
from iolab.base.trace_files import check_regular, trace_of
from iolab.domain import native_types as native
from iolab.domain.trial import LoadPhase, Phase
from iolab.domain.trial.trial import derive_seed
from iolab.domain.workload.conflict import SECTOR_BYTES
from iolab.domain.workload.fio import attachment_name
from iolab.domain.workload.job import FILE_GRANULE_BYTES
from iolab.domain.workload.kind import Conflict, Kind, replace_options
from iolab.domain.workload.load import file_json, group_json, job_json, layout_phase, phase_json, until_json

THREADS_MAX = 8
DEPTHS = (64, 1024)
"""The least and the most of a thread's default queue depth."""
BUFFERS_BYTES_MAX = 512 * 2**20
"""What all buffers take together, if nobody states how deep the queues are."""
MIB = 2**20
COPY_SUFFIX = ".ios.csv"
COPY_TABLE: native.TraceTable = {
    "separator": ",",
    "columns": [
        ("time", 1),
        ("latency", 1),
        ("operation", 1),
        ("offset", 1),
        ("size", 1),
        ("device", 1),
        ("pid", 1),
        ("process", 1),
    ],
    "ended": True,
    "one_reads": False,
}
"""The columns of a run's copy: `Schedule::table` of crates/measure/workload/src/traced/schedule.rs."""


class TraceOptions(Options):
    """The options of `kind = "trace"`."""

    file: str = option(
        ...,
        "The trace, from any of the tools; for blktrace, the name before .blktrace.0. A relative path is relative to "
        "the experiment's directory. A run keeps a copy of its I/Os.",
    )
    columns: str | None = option(
        None,
        "What each column of a table holds, if iolab does not recognise the table: "
        "time:us,device,operation,offset:B,size:B.",
        default_is="recognised",
    )
    separator: str | None = option(
        None, "Between those columns: a character, tab or blank.", default_is="comma, with columns"
    )
    side: Literal["issued", "queued"] = option(
        "issued",
        "issued: requests as the driver got them (D), merged and sorted; queued: bios as they were asked for (Q).",
    )
    device: str | None = option(
        None, 'Only this device of the trace: "8:0", or its name there.', default_is="all, laid one after the other"
    )
    skip: Duration = option(0, "Leave out what arrived before this much of the trace had passed.", unit="ns", ge=0)
    take: Duration | None = option(
        None, "Replay only this much of the trace.", unit="ns", gt=0, default_is="to its end"
    )
    timing: Literal["recorded", "dependent"] = option(
        "recorded",
        "recorded: each I/O is due when it arrived, whatever has completed (open loop). dependent: when all that its "
        "process had seen complete is done, and its pause after that is over.",
    )
    time_scale: float = option(1.0, "Factor on all times of the trace: 0.5 offers it twice as fast.", ge=0, le=1e6)
    mapping: Literal["wrap", "scale", "regions"] = option(
        "wrap",
        "On a smaller file or device. wrap: offsets modulo its size; scale: regions in proportion; regions: regions "
        "that are touched, one after the other.",
    )
    region_size: Bytes = option(MIB, "What mapping scale and regions keep together.", unit="bytes", ge=4096)
    file_size: Bytes | None = option(
        None,
        "How much of each device, or of the one file in a directory, is used.",
        unit="bytes",
        ge=4096,
        default_is="as far as the trace reaches",
    )
    align: Bytes = option(
        SECTOR_BYTES, "Offsets and sizes are rounded out to multiples of this.", unit="bytes", ge=SECTOR_BYTES
    )
    threads: int | None = option(
        None,
        "Threads that offer the I/O: the processes of most I/Os have one each, the last has all others.",
        ge=1,
        le=64,
        default_is=f"one for each process, at most {THREADS_MAX}",
    )
    queue_depth: int | None = option(
        None,
        "I/Os in flight per thread, at most; what arrives beyond is late.",
        ge=1,
        le=4096,
        default_is=f"twice the trace's own, from {DEPTHS[0]} to {DEPTHS[1]}",
    )
    layout: bool | None = option(
        None, "Write the files before the measured phase.", default_is="true if the trace reads"
    )
    engine: Literal["io_uring", "libaio"] = option("io_uring", "How I/O is issued.")
    direct: bool = option(True, "Bypass the page cache (O_DIRECT).")
    realtime: bool = option(
        False,
        "Offer from threads of real-time priority (SCHED_FIFO), so that other work on the CPUs makes nothing late. "
        "Needs root; no simulated machine has it.",
    )
    interval: Duration = option(100_000_000, "Width of one interval of the time series.", unit="ns", ge=1_000_000)

    _directory: Path = PrivateAttr(default=Path())
    _copies: list[Path] = PrivateAttr(default_factory=list)
    """Where a copy of the I/Os may be."""
    _copy_first: bool = PrivateAttr(default=False)

    def model_post_init(self, context: Any) -> None:
        """A run's experiment has the run's copy; any other the trace itself, and only if there is none the copy
        beside it, for who took the experiment of a run with its files."""
        given = context or {}
        name = attachment_name(self.file) + COPY_SUFFIX
        self._directory = Path(given.get("experiment", "")).parent
        self._copy_first = given.get("copies") is not None
        places = given["copies"] if self._copy_first else self._directory / "files"
        self._copies = [places / name, places / (attachment_name(str(self._named)) + COPY_SUFFIX)]

    @property
    def _named(self) -> Path:
        return self._directory / self.file

    @property
    @override
    def attachments(self) -> dict[str, str]:
        return {attachment_name(self.file) + COPY_SUFFIX: self._table}

    @cached_property
    def choice(self) -> native.TraceChoice:
        """Which I/Os of which files, as `_native.TraceSchedule` takes it.

        Raises:
            InputError: there is no such file, or its columns are none.
        """
        run = self._copies[0].parents[1] if self._copy_first else None
        copy = next((place for place in self._copies if beneath.is_file(place, run)), None)
        if copy is not None and (self._copy_first or not _is_there(self._named)):
            return copy_choice(str(copy.absolute()))
        trace = trace_of([self._named], self.columns, self.separator)
        check_regular(trace.paths)
        table: Any = trace.table
        return {
            "paths": [str(path.absolute()) for path in trace.paths],
            "table": table,
            "side": self.side,
            "device": self.device,
            "from_ns": self.skip,
            "length_ns": self.take,
        }

    @cached_property
    def schedule(self) -> native.ScheduleSummary:
        """What is replayed. InputError as `choice`; ValueError for what can't be read."""
        summary: native.ScheduleSummary = json.loads(self._opened.summary(self.region_size))
        return summary

    @cached_property
    def _opened(self) -> _native.TraceSchedule:
        return _native.TraceSchedule.open(json.dumps(self.choice))

    @cached_property
    def _table(self) -> str:
        return self._opened.table()

    @property
    def written_bytes(self) -> int:
        """What all writes of the trace come to."""
        rows = (line.split(",", 5) for line in self._table.splitlines()[1:])
        return sum(int(size) for _, _, operation, _, size, _ in rows if operation.startswith("W"))

    @property
    def thread_count(self) -> int:
        """How many threads offer the I/O."""
        return min(self.threads or THREADS_MAX, len(self.schedule["processes"]))

    def bytes_per_file(self, files: int) -> int:
        """The size of each of so many files: as given, else as far as the trace's devices that share one reach."""
        if self.file_size is not None:
            granule = max(self.align, FILE_GRANULE_BYTES)
            return self.file_size // granule * granule
        found = self.schedule
        reach = [0] * files
        for number, (device, regions) in enumerate(zip(found["devices"], found["regions"], strict=True)):
            ends = -(-device["extent_bytes"] // self.region_size)
            reach[number % files] += (regions if self.mapping == "regions" else ends) * self.region_size
        return max(*reach, -(-found["largest_bytes"] // MIB) * MIB)


def copy_choice(path: str) -> native.TraceChoice:
    """All of a copy that a run keeps; what was left out is not in it."""
    return {
        "paths": [path],
        "table": COPY_TABLE,
        "side": "issued",
        "device": None,
        "from_ns": 0,
        "length_ns": None,
    }


def _is_there(path: Path) -> bool:
    return path.exists() or Path(f"{path}.blktrace.0").exists()


def _conflicts(options: TraceOptions) -> Iterator[Conflict]:
    try:
        found = options.schedule
    except InputError as error:
        yield Conflict(("file",), str(error))
        return
    except (OSError, ValueError) as error:
        yield Conflict(("file",), str(error))
        return
    if options.timing == "recorded" and options.time_scale < 1e-6:
        yield Conflict(("time_scale",), 'above 0 with timing = "recorded"; without pauses: timing = "dependent"')
    if options.timing == "dependent" and found["ended_share"] == 0:
        yield Conflict(
            ("timing",), 'the trace does not show when I/Os ended, so it is unknown what waited; use "recorded"'
        )
    if options.align % SECTOR_BYTES or options.region_size % options.align:
        yield Conflict(("align",), f"expected a multiple of {SECTOR_BYTES} that divides region_size")
    largest = -(-found["largest_bytes"] // options.align) * options.align
    if options.file_size is not None and options.bytes_per_file(1) < largest:
        yield Conflict(("file_size",), f"holds no I/O of {format_bytes(largest)}, which the trace has")


def _phases(options: TraceOptions, seed: int, devices: int = 1) -> list[Phase]:
    found = options.schedule
    size = options.bytes_per_file(devices)
    files = [file_json(f"replay.{place}", size, place=place) for place in range(devices)]
    reads = any(process["reads"] for process in found["processes"])
    phases: list[Phase] = []
    if reads if options.layout is None else options.layout:
        phases.append(
            layout_phase(
                "layout replay",
                files,
                file_bytes=size,
                seed=seed,
                engine=options.engine,
                direct=options.direct,
                queue_depth=8,
            )
        )
    seed_of_main = derive_seed(seed, "main")
    groups = [
        group_json(name, engine=options.engine, direct=options.direct, realtime=options.realtime, jobs=[job])
        for name, job in _jobs(options, seed_of_main, devices, size)
    ]
    load = phase_json("main", files=files, groups=groups, seed=seed_of_main, interval_ns=options.interval)
    return [*phases, LoadPhase(name="main", measured=True, load=load)]


def _jobs(options: TraceOptions, seed: int, devices: int, size: int) -> Iterator[tuple[str, native.JobSpec]]:
    """One per thread, with the sizes and directions that its processes have."""
    found = options.schedule
    threads = options.thread_count
    largest = -(-max(found["largest_bytes"], SECTOR_BYTES) // options.align) * options.align
    taken: set[str] = set()
    for thread in range(threads):
        last = thread == threads - 1
        processes = found["processes"][thread : None if last else thread + 1]
        reads, writes, flushes, discards, ios = (
            sum(process[what] for process in processes) for what in ("reads", "writes", "flushes", "discards", "ios")
        )
        name = "others" if len(processes) > 1 else _name(processes[0])
        if name in taken:
            name = f"{name}-{thread}"
        taken.add(name)
        directions = 2 if reads and writes else 1
        room = BUFFERS_BYTES_MAX // (threads * largest * directions)
        deepest = sum(process["depth_max"] for process in processes)
        depth = options.queue_depth or max(8, min(room, DEPTHS[1], max(DEPTHS[0], 2 * deepest)))
        job = job_json(
            name,
            files=list(range(devices)),
            blocks={largest: 1.0},
            align_bytes=options.align,
            length_bytes=size,
            seed=derive_seed(seed, name),
            read_share=0.5 if reads and (writes or discards) else float(not (writes or discards)),
            queue_depth=depth,
            until=until_json(ops=ios),
        )
        job["replay"] = {
            "trace": options.choice,
            "digest": found["digest"],
            "timing": options.timing,
            "time_scale": options.time_scale,
            "mapping": options.mapping,
            "region_bytes": options.region_size,
            "thread": thread,
            "threads": threads,
            "flushes": flushes > 0,
            "discards": discards > 0,
        }
        yield name, job


def _name(process: native.Process) -> str:
    """As a job is called: letters, digits, `_`, `-` and its number."""
    plain = re.sub(r"[^\w-]", "_", process["name"]) or "task"
    return f"{plain}-{process['pid']}"


KIND = Kind(
    name="trace",
    help="The I/Os of a trace again: at their times, or when what they waited for is done.",
    options=TraceOptions,
    conflicts=_conflicts,
    phases=_phases,
    override=replace_options,
    file_bytes=lambda options: options.bytes_per_file(1),
    compared=("latency_ns_mean", "latency_ns_p99", "elapsed_s", "cpu_ns_per_io"),
)
