"""`kind = "tiobench"`: the classic threaded benchmark (tiotest 0.3), as four measured phases.

Each thread has a file of its own: it is written in sequence, then at random offsets, read in sequence, read at random
offsets. A thread's write test ends with an fsync. That and closing the file count in the rate and not in the latency of
a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from iolab.base.option import Bytes, Options, option
from iolab.base.quantity import format_bytes
from iolab.domain import native_types as native
from iolab.domain.trial import LoadPhase, Phase
from iolab.domain.trial.trial import derive_seed
from iolab.domain.workload.conflict import cpus_conflicts, sector_conflicts
from iolab.domain.workload.kind import Conflict, Kind, cpus_option, replace_options
from iolab.domain.workload.load import (
    PlainPattern,
    file_json,
    group_json,
    job_json,
    phase_json,
    plain_pattern,
    until_json,
)


class TiobenchOptions(Options):
    """The options of `kind = "tiobench"`."""

    threads: int = option(1, "Threads, each with its own file; several devices are used in turn.", ge=1, le=1024)
    file_size: Bytes = option(
        256 * 2**20,
        "Size of all files together, split evenly over the threads. With twice the memory, reads come from the device.",
        unit="bytes",
        gt=0,
    )
    block_size: Bytes = option(4096, "Bytes of one call.", unit="bytes", gt=0, le=2**30)
    random_ops: int = option(1000, "Calls of each thread in each of the two random tests.", ge=1)
    runs: int = option(
        1,
        "Runs that the tool's report adds up (`tiobench.pl --numruns`): `show --as tiobench_sums` prints latencies and "
        "their shares so many times as large. A trial does the same; rounds repeat it.",
        default_is="1; the sums are of as many as there are rounds",
        ge=1,
        le=1000,
    )
    sync: bool = option(True, "fsync each file at the end of a write test, inside the measured time, as the tool does.")
    fresh_data: bool = option(
        False,
        "Never write the same data twice, for devices that deduplicate; the tool writes the same buffer repeatedly.",
    )
    drop_caches: bool = option(False, "Sync and drop the page cache before each test; the tool does not.")
    engine: Literal["psync", "pvsync", "mmap"] = option("psync", "How I/O is issued.")
    direct: bool = option(False, "Bypass the page cache (O_DIRECT); the tool does not.")
    cpus: list[int] | None = cpus_option("CPUs that the threads may run on.")

    @property
    def thread_file_bytes(self) -> int:
        """A thread's share of file_size, in whole blocks."""
        return self.file_size // self.threads // self.block_size * self.block_size


def _conflicts(options: TiobenchOptions) -> Iterator[Conflict]:
    if not options.thread_file_bytes:
        yield Conflict(
            ("block_size",),
            f"{format_bytes(options.block_size)} is larger than a thread's file, "
            f"{format_bytes(options.file_size // options.threads)}: file_size is split over the threads",
        )
    if options.direct and options.engine == "mmap":
        yield Conflict(("direct",), "mmap goes through the page cache; leave direct out, or use psync")
    if options.direct:
        yield from sector_conflicts("block_size", options.block_size)
    yield from cpus_conflicts(options.cpus)


def _phases(options: TiobenchOptions, seed: int, devices: int = 1) -> list[Phase]:
    files = [
        file_json(
            f"thread.{thread}", options.thread_file_bytes, place=thread % devices, extend=options.engine == "mmap"
        )
        for thread in range(options.threads)
    ]
    tests: list[tuple[str, PlainPattern, bool]] = [
        ("sequential_write", "sequential", False),
        ("random_write", "uniform", False),
        ("sequential_read", "sequential", True),
        ("random_read", "uniform", True),
    ]
    return [_test(name, options, files, seed, pattern=pattern, reads=reads) for name, pattern, reads in tests]


def _test(
    name: str, options: TiobenchOptions, files: list[native.FileSpec], seed: int, *, pattern: PlainPattern, reads: bool
) -> Phase:
    sequential = pattern == "sequential"
    until = until_json(bytes_=options.thread_file_bytes) if sequential else until_json(ops=options.random_ops)
    groups = []
    for thread in range(options.threads):
        thread_name = f"thread.{thread}"
        job = job_json(
            thread_name,
            files=[thread],
            align_bytes=options.block_size,
            length_bytes=options.thread_file_bytes,
            seed=derive_seed(seed, name, thread),
            pattern=plain_pattern(pattern),
            read_share=1.0 if reads else 0.0,
            until=until,
            sync_at_end=options.sync and not reads,
        )
        groups.append(
            group_json(
                thread_name,
                engine=options.engine,
                direct=options.direct,
                jobs=[job],
                cpus=options.cpus,
                fresh_data=options.fresh_data,
                close_in_time=True,
            )
        )
    load = phase_json(name, files=files, groups=groups, seed=derive_seed(seed, name), drop_caches=options.drop_caches)
    return LoadPhase(name=name, measured=True, load=load)


KIND = Kind(
    name="tiobench",
    help="The classic threaded benchmark: sequential and random writes, then reads, a file per thread.",
    options=TiobenchOptions,
    conflicts=_conflicts,
    phases=_phases,
    override=replace_options,
    file_bytes=lambda options: options.thread_file_bytes * options.threads,
)
