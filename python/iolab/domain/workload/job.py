"""The options of one job, and of the phase that jobs run in."""

from __future__ import annotations

from typing import Literal

from iolab.base.option import Bytes, Duration, Options, Percent, Rate, option
from iolab.domain.workload.block_sizes import BlockSizes, mean_bytes
from iolab.domain.workload.kind import cpus_option
from iolab.domain.workload.steady import SteadyOptions

FILE_GRANULE_BYTES = 4096

Engine = Literal["io_uring", "io_uring_cmd", "libaio", "psync", "pvsync", "mmap", "null"]
RINGS = ("io_uring", "io_uring_cmd")
"""Engines that submit through a ring of io_uring."""
ONE_AT_A_TIME = ("psync", "pvsync", "mmap")
"""Engines that wait for each operation."""
TAKE_FLAGS = ("io_uring", "libaio", "pvsync")
"""Engines whose calls take the flags of preadv2(2)."""


class PhaseOptions(Options):
    """When the jobs run, and what is measured."""

    duration: Duration | None = option(None, "Measured time; jobs stop when it is over.", unit="ns", gt=0)
    warm_up: Duration = option(0, "Time of I/O before the measured time; not counted.", unit="ns", ge=0)
    cut_transient: bool | None = option(
        None,
        "Detect a transient at the start of the measured time and leave it out.",
        default_is="true with duration, else false",
    )
    interval: Duration = option(100_000_000, "Width of one interval of the time series.", unit="ns", ge=1_000_000)
    verify: bool = option(False, "Write a checksum into each block, and check each block that is read.")
    drop_caches: bool | None = option(
        None,
        "Sync and drop the page cache before the measured phase.",
        default_is="true if a job reads with direct = false",
    )


ZIPF_THETA = 1.1
PARETO_H = 0.2


class JobOptions(Options):
    """Who reads or writes what, where, how large, how deep, when."""

    pattern: Literal[
        "sequential", "backward", "strided", "random", "zipf", "pareto", "normal", "zoned", "permutation"
    ] = option(
        "random",
        "Order of the offsets. random: uniform; zipf, pareto, normal: some blocks more than others, scattered; zoned: "
        "some parts more than others; permutation: each block once per pass, in random order.",
    )
    stride: Bytes | None = option(None, "Distance between offsets with pattern strided.", unit="bytes", gt=0)
    zipf_theta: float | None = option(
        None,
        "Skew of pattern zipf: the block of rank r is drawn proportionally to 1/r^theta.",
        gt=0,
        default_is=f"{ZIPF_THETA} with zipf",
    )
    pareto_h: float | None = option(
        None,
        "Skew of pattern pareto: this share of the blocks gets all but this share of the operations, and so on within "
        "it; 0.5 is uniform.",
        gt=0,
        lt=1,
        default_is=f"{PARETO_H} with pareto",
    )
    normal_deviation: Percent | None = option(
        None,
        "Width of pattern normal, in percent of the range, as fio adds it to the mean of twelve uniform ranks.",
        unit="percent",
        ge=0,
        le=100,
        default_is="0 with normal",
    )
    zones: str | None = option(
        None,
        'Parts of the range for pattern zoned, operations in percent and size of each: "50/5%:30/15%:20/80%", or '
        '"60/1GiB:40/3GiB". What is behind the last is left out.',
    )
    read_percent: Percent = option(
        100.0, "Share of operations that read; the rest write.", unit="percent", ge=0, le=100
    )
    block_size: BlockSizes = option(
        {4096: 1.0},
        "Bytes of one operation, or several sizes with the weight of each.",
        unit="bytes",
        expected='a size such as "4KiB", or sizes with weights such as {"4KiB" = 70, "64KiB" = 30}',
    )
    align: Bytes | None = option(
        None, "Every offset is a multiple of this.", unit="bytes", gt=0, default_is="the smallest block_size"
    )
    queue_depth: int = option(1, "Operations in flight per copy of the job.", ge=1, le=4096)
    jobs: int = option(1, "Copies of the job, each with its own thread and files.", ge=1, le=1024)
    share_thread: bool = option(False, "Run all copies in one thread.")
    file_size: Bytes = option(
        256 * 2**20, "Size of each file, rounded down to a multiple of 4KiB.", unit="bytes", ge=FILE_GRANULE_BYTES
    )
    files_per_job: int = option(1, "Files of each copy.", ge=1, le=10_000)
    shared_files: bool = option(False, "All copies use the same files.")
    file_order: Literal["sequential", "round_robin", "random"] = option(
        "round_robin", "Which file comes next. sequential: finish one, then take the next."
    )
    devices: list[int] | None = option(
        None,
        "Which of the target's devices, from 0. Copies take them in turn; so do the files of a single copy.",
        default_is="all",
        expected="a list of numbers such as [0] or [0, 2]",
    )
    range_start: Bytes = option(0, "Start of the range of each file that the job touches.", unit="bytes", ge=0)
    range_length: Bytes | None = option(
        None, "Length of that range.", unit="bytes", gt=0, default_is="to the end of the file"
    )
    layout: bool | None = option(
        None,
        "Write the files before the measured phase.",
        default_is="true, unless the job only writes, in sequence",
    )
    fill: Literal["sequential twice", "random until steady"] | None = option(
        None,
        "Precondition what the files lie on, before the measured phase. sequential twice: write the files twice; "
        "random until steady: write them once in sequence, then blocks of block_size at random until the rate is "
        "steady by `steady`, or by SNIA's own figures.",
        default_is="write the files once, if layout says so",
    )
    engine: Engine = option(
        "io_uring",
        "How I/O is issued. io_uring_cmd sends NVMe commands past the block layer; psync, pvsync and mmap wait for "
        "each operation; null does no I/O.",
    )
    direct: bool | None = option(
        None, "Bypass the page cache (O_DIRECT).", default_is="true, but false with engine mmap or null"
    )
    batch: int | None = option(
        None,
        "Completions taken at once, and so operations submitted at once: the job waits for so many, and takes no more. "
        "A simulated job does not wait.",
        ge=1,
        le=4096,
        default_is="adapts to what is ready",
    )
    fixed_buffers: bool = option(True, "Register the buffers with the ring (io_uring, io_uring_cmd).")
    registered_files: bool = option(True, "Register the files with the ring (io_uring, io_uring_cmd).")
    poll: bool = option(
        False, "Poll for completions instead of taking interrupts (io_uring, io_uring_cmd or pvsync, direct)."
    )
    hybrid_poll: bool = option(
        False,
        "With poll, sleep half the shortest time that a request took before polling: IORING_SETUP_HYBRID_IOPOLL, "
        "Linux 6.13 (io_uring).",
    )
    registered_waits: bool = option(
        False,
        "Let the kernel read a wait's time limit from memory that is registered with the ring, and not copy it in each "
        "call: IORING_REGISTER_MEM_REGION, Linux 6.13 (io_uring, io_uring_cmd).",
    )
    sqpoll: bool = option(False, "Let a kernel thread submit (io_uring, io_uring_cmd).")
    uncached: bool = option(
        False,
        "Buffered I/O that leaves nothing in the page cache: RWF_DONTCACHE, Linux 6.14, ext4, xfs and btrfs "
        "(io_uring, libaio or pvsync).",
    )
    atomic_writes: bool = option(
        False,
        "Each write reaches the medium whole or not at all: RWF_ATOMIC, Linux 6.11, on a device that has it (direct; "
        "io_uring, libaio or pvsync).",
    )
    write_hint: Literal["none", "short", "medium", "long", "extreme"] | None = option(
        None,
        "How long what the job writes will live, beside what else is written: F_SET_RW_HINT, Linux 4.13. A drive with "
        "streams or placement handles keeps each lifetime in blocks of its own.",
        default_is="not set",
    )
    nowait_reads: bool = option(
        False,
        "Ask for each read without waiting first, and again if it would have to wait: RWF_NOWAIT, Linux 4.14, a block "
        "device, ext4, xfs or btrfs (io_uring or pvsync).",
    )
    cpus: list[int] | None = cpus_option("CPUs that the job's threads may run on; one CPU is a pin.")
    amount: Bytes | None = option(None, "Bytes that each copy transfers.", unit="bytes", gt=0)
    operations: int | None = option(None, "Operations that each copy performs.", ge=1)
    steady: SteadyOptions | None = option(
        None,
        'End the job when its rate is steady, such as { window = "5min" }: slope, spread, window, rounds.',
        expected='a table of slope, spread, window and rounds, such as { slope = 10, spread = 20, window = "5min" }',
        default_is="the job runs to its bounds",
    )
    rate: Rate | None = option(
        None,
        "Open loop: operations are due at this rate per copy, whatever completes; latency counts from the due time.",
        unit="bytes/s",
        gt=0,
    )
    rate_iops: float | None = option(None, "The same, in operations per second.", unit="1/s", ge=1e-6, le=1e9)
    spacing: Literal["constant", "poisson"] | None = option(
        None, "Distribution of the due times of an open loop.", default_is="constant"
    )
    think_time: Duration = option(0, "Pause of a copy between operations.", unit="ns", ge=0)
    think_every: int | None = option(None, "Completions between two pauses.", ge=1, default_is="1")
    fsync_every: int | None = option(None, "Writes between two fsyncs.", ge=1)
    fdatasync_every: int | None = option(None, "Writes between two fdatasyncs.", ge=1)
    dsync_every: int | None = option(
        None,
        "Of this many writes the last is on the medium before it completes (RWF_DSYNC; 1: each), as with O_DSYNC.",
        ge=1,
    )
    osync_every: int | None = option(
        None,
        "The same with all of the file's metadata (RWF_SYNC), as with O_SYNC.",
        ge=1,
    )
    sync_file_range_every: int | None = option(
        None,
        "Writes between two calls of sync_file_range(2), each of the whole file: what is dirty has been sent to the "
        "device, and nothing is durable.",
        ge=1,
    )
    sync_at_end: bool = option(False, "fsync each written file after the last operation, inside the measured time.")

    @property
    def uses_direct(self) -> bool:
        """Whether the page cache is bypassed: as given, else if the engine has O_DIRECT."""
        return self.engine not in ("mmap", "null") if self.direct is None else self.direct

    @property
    def layout_engine(self) -> Engine:
        """What writes the files before the measured phase. A command is not split, so the block layer does it for one
        that sends commands."""
        if self.engine in ONE_AT_A_TIME:
            return "psync"
        return "io_uring" if self.engine == "io_uring_cmd" else self.engine

    @property
    def reads(self) -> bool:
        """Whether any of the operations is a read."""
        return self.read_percent > 0

    @property
    def writes(self) -> bool:
        """Whether any of the operations is a write."""
        return self.read_percent < 100

    @property
    def lays_out(self) -> bool:
        """Whether the files are written before the measured phase: as given, else unless the job itself fills them."""
        if self.engine == "null":
            return False
        if self.fill is not None:
            return True
        only_fills = not self.reads and self.pattern == "sequential"
        return not only_fills if self.layout is None else self.layout

    @property
    def file_bytes(self) -> int:
        """Size of one file in bytes, rounded down to a multiple of 4 KiB."""
        return self.file_size // FILE_GRANULE_BYTES * FILE_GRANULE_BYTES

    @property
    def file_count(self) -> int:
        """Files of all copies of the job together."""
        return self.files_per_job * (1 if self.shared_files else self.jobs)

    @property
    def device_users(self) -> int:
        """How many take turns with the devices: copies, or files if copies have none of their own."""
        return self.file_count if self.shared_files or self.jobs == 1 else self.jobs

    @property
    def align_bytes(self) -> int:
        """What offsets are a multiple of, in bytes: as given, else the smallest block size."""
        return self.align or min(self.block_size)

    @property
    def range_bytes(self) -> int:
        """Length of the range that the job touches in each file; what a last partial block would need is left out."""
        rest = self.file_bytes - self.range_start
        return (rest if self.range_length is None else self.range_length) // self.align_bytes * self.align_bytes

    @property
    def mean_block_bytes(self) -> float:
        """The mean of the block sizes, weighted by how often each is drawn, in bytes."""
        return mean_bytes(self.block_size)
