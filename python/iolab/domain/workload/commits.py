"""`kind = "commits"`: the write-ahead log of a database. Writers append records and make each durable before the next.

A commit is measured from the time at which its record was due until the record is durable: with `dsync` when its write
completes, else when the sync after it does. Records of a group commit share a sync, and each waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from iolab.base.option import Bytes, Duration, Options, option
from iolab.base.plain_text import counted
from iolab.base.quantity import format_bytes
from iolab.domain import native_types as native
from iolab.domain.trial import LoadPhase, Phase
from iolab.domain.trial.trial import derive_seed
from iolab.domain.workload.block_sizes import BlockSizes
from iolab.domain.workload.conflict import SECTOR_BYTES, cpus_conflicts, sector_conflicts
from iolab.domain.workload.job import FILE_GRANULE_BYTES
from iolab.domain.workload.kind import Conflict, Kind, cpus_option, replace_options
from iolab.domain.workload.load import file_json, group_json, job_json, layout_phase, phase_json, until_json


class CommitsOptions(Options):
    """The options of `kind = "commits"`."""

    writers: int = option(1, "Threads that commit; each waits for its own commit before its next one.", ge=1, le=1024)
    log: Literal["shared", "own"] = option(
        "shared",
        "shared: all writers append to one log, in turn; own: each to a log of its own. Logs take several devices in "
        "turn.",
    )
    record_size: BlockSizes = option(
        {4096: 1.0},
        "Bytes of a record, or several sizes with the weight of each.",
        unit="bytes",
        expected='a size such as "4KiB", or sizes with weights such as {"512" = 70, "8KiB" = 30}',
    )
    records_per_sync: int = option(
        1,
        "Group commit: a writer writes this many records, one after the other, before it syncs. A sync comes earlier "
        "if no record is due.",
        ge=1,
        le=10**6,
    )
    sync: Literal["fdatasync", "fsync", "dsync"] = option(
        "fdatasync", "What makes records durable. dsync: each write does it itself (RWF_DSYNC), as with O_DSYNC."
    )
    direct: bool | None = option(
        None, "Bypass the page cache (O_DIRECT).", default_is='true with sync = "dsync", else false'
    )
    segments: int = option(1, "Files of a log, filled one after the other, then overwritten.", ge=1, le=1000)
    segment_size: Bytes = option(
        64 * 2**20, "Size of each file, rounded down to a multiple of 4KiB.", unit="bytes", ge=FILE_GRANULE_BYTES
    )
    preallocated: bool = option(
        True,
        "Write the files once before the measured phase, so that commits overwrite; else files grow, and a commit has "
        "to make their size and blocks durable too, until the first is overwritten.",
    )
    rate_iops: float | None = option(
        None,
        "Open loop: records per second that are due of each writer, whatever completes; a commit counts from the due "
        "time.",
        unit="1/s",
        ge=1e-6,
        le=1e9,
        default_is="a record is due as soon as the one before is committed",
    )
    spacing: Literal["constant", "poisson"] | None = option(
        None, "Distribution of the due times of an open loop.", default_is="constant"
    )
    records: int | None = option(None, "Records that each writer commits.", ge=1)
    duration: Duration | None = option(None, "Measured time; writers stop when it is over.", unit="ns", gt=0)
    warm_up: Duration = option(0, "Time of commits before the measured time; not counted.", unit="ns", ge=0)
    interval: Duration = option(100_000_000, "Width of one interval of the time series.", unit="ns", ge=1_000_000)
    engine: Literal["psync", "pvsync", "io_uring"] = option("psync", "How writes and syncs are issued.")
    cpus: list[int] | None = cpus_option("CPUs that the writers may run on.")

    @property
    def uses_direct(self) -> bool:
        """Whether the page cache is bypassed: as given, else if writes are durable themselves."""
        return self.sync == "dsync" if self.direct is None else self.direct

    @property
    def segment_bytes(self) -> int:
        """Size of one file in bytes, rounded down to a multiple of 4 KiB."""
        return self.segment_size // FILE_GRANULE_BYTES * FILE_GRANULE_BYTES

    @property
    def logs(self) -> int:
        """How many logs there are."""
        return self.writers if self.log == "own" else 1

    @property
    def appenders(self) -> int:
        """Writers of one log."""
        return self.writers // self.logs

    @property
    def align_bytes(self) -> int:
        """What records begin at a multiple of, in bytes."""
        return SECTOR_BYTES if self.uses_direct else 1

    @property
    def place_bytes(self) -> int:
        """The place of one record in a shared log: what the largest takes."""
        return -(-max(self.record_size) // self.align_bytes) * self.align_bytes


def _conflicts(options: CommitsOptions) -> Iterator[Conflict]:
    if options.duration is None and options.records is None:
        yield Conflict(("duration",), 'when does it end? give duration = "10s" or records = 1000')
    if options.duration is None and options.warm_up:
        yield Conflict(("warm_up",), "only with duration: a run by amount is measured from its first byte to its last")
    if options.spacing is not None and options.rate_iops is None:
        yield Conflict(("spacing",), "spaces the records of an open loop; give rate_iops too")
    if options.sync == "dsync" and options.records_per_sync > 1:
        yield Conflict(
            ("records_per_sync",),
            "a durable write is a commit of its own; take fsync or fdatasync, or larger records",
        )
    if options.uses_direct:
        for size in options.record_size:
            yield from sector_conflicts("record_size", size)
    if options.appenders * options.place_bytes > options.segment_bytes:
        yield Conflict(
            ("segment_size",),
            f"{format_bytes(options.segment_bytes)} have no place for a record of each of "
            f"{counted(options.appenders, 'writer')}, {format_bytes(options.place_bytes)} each",
        )
    yield from cpus_conflicts(options.cpus)


def _phases(options: CommitsOptions, seed: int, devices: int = 1) -> list[Phase]:
    files = [
        file_json(
            f"log.{segment}" if options.logs == 1 else f"log.{log}.{segment}",
            options.segment_bytes,
            place=log % devices,
            extend=options.preallocated,
        )
        for log in range(options.logs)
        for segment in range(options.segments)
    ]
    layout = layout_phase(
        "layout", files, file_bytes=options.segment_bytes, seed=seed, engine="psync", direct=options.uses_direct
    )
    groups = [_writer(options, writer, derive_seed(seed, "main")) for writer in range(options.writers)]
    load = phase_json(
        "main",
        files=files,
        groups=groups,
        seed=derive_seed(seed, "main"),
        warm_up_ns=options.warm_up,
        interval_ns=options.interval,
    )
    return [*([layout] if options.preallocated else []), LoadPhase(name="main", measured=True, load=load)]


def _writer(options: CommitsOptions, number: int, seed: int) -> native.GroupSpec:
    """A thread that commits. Of a shared log, it has each of its places that follow the others' in turn."""
    name = "writer" if options.writers == 1 else f"writer.{number}"
    log, turn = divmod(number, options.appenders)
    first = log * options.segments
    job = job_json(
        name,
        files=list(range(first, first + options.segments)),
        file_order="sequential",
        pattern=_pattern(options),
        blocks=options.record_size,
        align_bytes=options.align_bytes,
        offset_bytes=turn * options.place_bytes,
        length_bytes=options.segment_bytes - (options.appenders - 1) * options.place_bytes,
        seed=derive_seed(seed, name),
        arrival=_arrival(options),
        until=until_json(
            ops=options.records,
            duration_ns=None if options.duration is None else options.warm_up + options.duration,
        ),
        sync=_sync(options),
        dsync_every=1 if options.sync == "dsync" else None,
        commits=True,
    )
    return group_json(name, engine=options.engine, direct=options.uses_direct, jobs=[job], cpus=options.cpus)


def _pattern(options: CommitsOptions) -> native.Pattern:
    if options.appenders == 1:
        return {"kind": "sequential"}
    return {"kind": "strided", "stride_bytes": options.appenders * options.place_bytes, "one_lap": True}


def _arrival(options: CommitsOptions) -> native.Arrival | None:
    if options.rate_iops is None:
        return None
    return {"kind": "open", "rate_per_s": options.rate_iops, "spacing": options.spacing or "constant"}


def _sync(options: CommitsOptions) -> native.Sync | None:
    if options.sync == "dsync":
        return None
    return {"kind": options.sync, "every_writes": options.records_per_sync, "when_idle": True}


KIND = Kind(
    name="commits",
    help="The write-ahead log of a database: writers that append records and wait until each is durable.",
    options=CommitsOptions,
    conflicts=_conflicts,
    phases=_phases,
    override=replace_options,
    file_bytes=lambda options: options.segment_bytes * options.segments * options.logs,
    compared=("commit.iops", "commit.latency_ns_p99", "commit.latency_ns_mean", "rate_bytes_per_s"),
)
