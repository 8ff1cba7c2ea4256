"""`kind = "iozone"`: the classic file benchmark (iozone 3), a measured phase per test.

Each thread has a file of its own and goes over it once in each test, a record at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from iolab.base.option import Bytes, Options, Percent, option
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


@dataclass(frozen=True)
class Test:
    """What one test does with a file."""

    pattern: PlainPattern | Literal["strided"]
    reads: bool
    same_record: bool = False
    """The file's first record again and again."""
    classic: bool = True
    """Runs when no tests are named."""
    engine: native.EngineKind | None = None
    """The calls that the test is about; None: those of the option."""
    mixed: bool = False
    """Some threads write."""

    @property
    def writes(self) -> bool:
        """Whether the test changes the files."""
        return self.mixed or not self.reads


TESTS = {
    "write": Test("sequential", reads=False),
    "rewrite": Test("sequential", reads=False),
    "read": Test("sequential", reads=True),
    "reread": Test("sequential", reads=True),
    "random_read": Test("permutation", reads=True),
    "random_write": Test("permutation", reads=False),
    "backward_read": Test("backward", reads=True),
    "record_rewrite": Test("sequential", reads=False, same_record=True),
    "stride_read": Test("strided", reads=True),
    "mixed": Test("permutation", reads=True, classic=False, mixed=True),
    "pwrite": Test("sequential", reads=False, classic=False, engine="psync"),
    "repwrite": Test("sequential", reads=False, classic=False, engine="psync"),
    "pread": Test("sequential", reads=True, classic=False, engine="psync"),
    "repread": Test("sequential", reads=True, classic=False, engine="psync"),
    "pwritev": Test("sequential", reads=False, classic=False, engine="pvsync"),
    "repwritev": Test("sequential", reads=False, classic=False, engine="pvsync"),
    "preadv": Test("sequential", reads=True, classic=False, engine="pvsync"),
    "repreadv": Test("sequential", reads=True, classic=False, engine="pvsync"),
}
"""By phase, in the order in which they run: the matrix's columns, then the tool's further tests (-i 8 to 12)."""
MAKE_FILES = ("write", "pwrite", "pwritev")
"""The tests that the rest finds whole files after."""
CLASSIC = [name for name, test in TESTS.items() if test.classic]


class IozoneOptions(Options):
    """The options of `kind = "iozone"`; the letters in their help are the tool's own switches."""

    tests: list[str] = option(
        CLASSIC,
        "The tests to run, in the tool's order. If the first one reads, files are written before it, unmeasured.",
        default_is="those of -i 0 to -i 5",
        expected='a list of tests such as ["write", "read"]',
    )
    file_size: Bytes = option(
        256 * 2**20, "Size of each thread's file (-s), rounded down to whole records.", unit="bytes", gt=0
    )
    record_size: Bytes = option(4096, "Bytes of one call (-r).", unit="bytes", gt=0, le=2**30)
    threads: int = option(1, "Threads, each with its own file (-t); several devices are used in turn.", ge=1, le=1024)
    stride: int = option(17, "Records from one call to the next in stride_read (-j).", ge=1, le=2**20)
    direct: bool = option(False, "Bypass the page cache (O_DIRECT, -I).")
    fsync: bool = option(
        False,
        "fsync each file inside the time of a test that writes (-e). Otherwise files are synced after the test, "
        "unmeasured.",
    )
    close: bool = option(False, "Count the closing of a test's files in its time (-c).")
    stop_with_first: bool = option(
        True,
        "The first thread to finish a test ends it for all, as in the tool's throughput mode; false is -x. The rest is "
        "written outside the test's time.",
    )
    mixed_read_percent: Percent | None = option(
        None,
        "Share of the threads that read in the test mixed (-+p); the others write.",
        unit="percent",
        ge=0,
        le=100,
        default_is="every second one",
    )
    fresh_data: bool = option(
        False,
        "Never write the same data twice, for devices that deduplicate; the tool writes the same buffer repeatedly.",
    )
    drop_caches: bool = option(False, "Sync and drop the page cache before each test (-U remounts instead).")
    engine: Literal["psync", "pvsync", "mmap"] = option("psync", "How I/O is issued; mmap is -B.")
    cpus: list[int] | None = cpus_option("CPUs that the threads may run on.")

    @property
    def file_bytes(self) -> int:
        """Size of each thread's file in bytes, in whole records."""
        return self.file_size // self.record_size * self.record_size

    @property
    def records(self) -> int:
        """How many records each thread's file has."""
        return self.file_size // self.record_size

    @property
    def wanted_tests(self) -> list[str]:
        """The tests to run, in the tool's order, whatever the order in which they are given."""
        return [name for name in TESTS if name in self.tests]


def _conflicts(options: IozoneOptions) -> Iterator[Conflict]:
    unknown = [name for name in options.tests if name not in TESTS]
    if unknown or not options.tests:
        problem = f'"{unknown[0]}" is none' if unknown else "the list is empty"
        yield Conflict(("tests",), f"{problem}; expected some of {', '.join(TESTS)}")
    if not options.records:
        yield Conflict(
            ("record_size",),
            f"{format_bytes(options.record_size)} is larger than file_size, {format_bytes(options.file_size)}",
        )
    if options.mixed_read_percent is not None and "mixed" not in options.tests:
        yield Conflict(("mixed_read_percent",), "only with the test mixed")
    if "mixed" in options.tests and options.threads < 2:
        yield Conflict(("tests",), "mixed needs at least 2 threads: some read and some write")
    if options.engine == "mmap" and (own := [name for name in options.wanted_tests if TESTS[name].engine]):
        yield Conflict(("engine",), f"the test {own[0]} makes calls, and mmap makes none")
    if options.direct and options.engine == "mmap":
        yield Conflict(("direct",), "mmap goes through the page cache; leave direct out, or use psync")
    if options.direct:
        yield from sector_conflicts("record_size", options.record_size)
    yield from cpus_conflicts(options.cpus)


def _phases(options: IozoneOptions, seed: int, devices: int = 1) -> list[Phase]:
    extend = options.engine == "mmap"
    files = [
        file_json(f"thread.{thread}", options.file_bytes, place=thread % devices, extend=extend)
        for thread in range(options.threads)
    ]
    phases: list[Phase] = []
    if options.wanted_tests[0] not in MAKE_FILES:
        phases.append(_phase("layout", TESTS["write"], options, files, seed, measured=False, sync=True))
    for name in options.wanted_tests:
        test = TESTS[name]
        phases.append(_phase(name, test, options, files, seed, sync=options.fsync and test.writes))
        if test.writes and not options.fsync:
            phases.append(_sync_after(name, options, files, seed))
    return phases


def _phase(
    name: str,
    test: Test,
    options: IozoneOptions,
    files: list[native.FileSpec],
    seed: int,
    *,
    sync: bool,
    measured: bool = True,
) -> Phase:
    groups = []
    readers = _readers(test, options)
    for thread in range(options.threads):
        thread_name = f"thread.{thread}"
        job = job_json(
            thread_name,
            files=[thread],
            align_bytes=options.record_size,
            length_bytes=options.record_size if test.same_record else options.file_bytes,
            seed=derive_seed(seed, name, thread),
            pattern=_pattern(test, options),
            read_share=1.0 if thread in readers else 0.0,
            until=until_json(bytes_=options.file_bytes),
            sync_at_end=sync and thread not in readers,
        )
        engine = test.engine or options.engine
        groups.append(_group(thread_name, options, job, engine=engine, close_in_time=options.close and measured))
    load = phase_json(
        name,
        files=files,
        groups=groups,
        seed=derive_seed(seed, name),
        drop_caches=options.drop_caches,
        ends_with_first=options.stop_with_first and options.threads > 1 and measured,
    )
    return LoadPhase(name=name, measured=measured, load=load)


def _readers(test: Test, options: IozoneOptions) -> set[int]:
    """The threads that read: of a mixed test every second one from the first, or so many in equal distances."""
    if not test.mixed:
        return set(range(options.threads)) if test.reads else set()
    share = 0.5 if options.mixed_read_percent is None else options.mixed_read_percent / 100
    wanted = round(options.threads * share)
    return {index * options.threads // wanted for index in range(wanted)}


def _pattern(test: Test, options: IozoneOptions) -> native.Pattern:
    if test.pattern == "strided":
        return {"kind": "strided", "stride_bytes": options.stride * options.record_size}
    return plain_pattern(test.pattern)


def _sync_after(test: str, options: IozoneOptions, files: list[native.FileSpec], seed: int) -> Phase:
    """So that no test pays for the one before. The engine syncs what a job has written: a record of each file."""
    name = f"sync {test}"
    job = job_json(
        name,
        files=list(range(len(files))),
        file_order="round_robin",
        align_bytes=options.record_size,
        length_bytes=options.record_size,
        seed=derive_seed(seed, name),
        until=until_json(ops=len(files)),
        sync_at_end=True,
    )
    group = _group(name, options, job, engine=options.engine)
    load = phase_json(name, files=files, groups=[group], seed=derive_seed(seed, name))
    return LoadPhase(name=name, measured=False, load=load)


def _group(
    name: str,
    options: IozoneOptions,
    job: native.JobSpec,
    *,
    engine: native.EngineKind,
    close_in_time: bool = False,
) -> native.GroupSpec:
    return group_json(
        name,
        engine=engine,
        direct=options.direct,
        jobs=[job],
        cpus=options.cpus,
        fresh_data=options.fresh_data,
        close_in_time=close_in_time,
    )


KIND = Kind(
    name="iozone",
    help="The classic file benchmark: write, rewrite, read, reread, random, backward and strided, a file per thread.",
    options=IozoneOptions,
    conflicts=_conflicts,
    phases=_phases,
    override=replace_options,
    file_bytes=lambda options: options.file_bytes * options.threads,
    compared=("rate_bytes_per_s", "cpu_ns_per_io"),
)
