"""`kind = "fs_mark"`: many small files made, written, synced, closed and unlinked, as fs_mark 3.3 does it.

A loop is a measured phase. Its threads write their files, each in a directory of its own or in one that it shares, and
unlink them when all of its own are written, unless they are kept. The letters in the options' help are the tool's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from iolab.base.option import Bytes, Duration, Options, option
from iolab.base.plain_text import counted
from iolab.domain import native_types as native
from iolab.domain.trial import MetadataPhase, Phase
from iolab.domain.trial.phase import PlacedThread
from iolab.domain.trial.trial import derive_seed
from iolab.domain.workload.conflict import cpus_conflicts
from iolab.domain.workload.kind import Conflict, Kind, cpus_option, replace_options

NAME_BYTES_MAX = 255
FILES_MAX = 10**9
RANDOM_BYTES_ENOUGH = 12
"""So many random letters and digits make a billion names that differ, but for one chance in ten."""


class FsMarkOptions(Options):
    """The options of `kind = "fs_mark"`; the letters in their help are the tool's own switches."""

    threads: int = option(1, "Threads (-t); the tool forks processes.", ge=1, le=1024)
    directories: int = option(
        1,
        "Directories (-d), each used by the same number of threads, and placed on several devices in turn.",
        ge=1,
        le=1024,
    )
    files: int = option(1000, "Files of each thread in each loop (-n).", ge=1, le=FILES_MAX)
    file_size: Bytes = option(50 * 1024, "Bytes of each file (-s).", unit="bytes", ge=0, le=2**40)
    write_size: Bytes = option(16 * 1024, "Bytes of one call of write (-w).", unit="bytes", gt=0, le=2**30)
    sync: Literal[
        "none",
        "before_close",
        "system_then_first",
        "reverse",
        "system_then_reverse",
        "in_order",
        "system_then_in_order",
    ] = option(
        "before_close",
        "How files become durable (-S 0 to 6, in this order). before_close: fsync each file. system: sync(2) once a "
        "thread has written all its files. first, reverse, in_order: then reopen the first file, or all files in "
        "that order, fsync and close.",
    )
    subdirectories: int | None = option(None, "Subdirectories of each directory (-D).", ge=1, le=2**20)
    files_per_subdirectory: int | None = option(
        None, "Files per subdirectory before the next subdirectory is used (-N).", ge=1
    )
    subdirectory_time: Duration | None = option(
        None,
        "Time after which the next subdirectory is used, if files_per_subdirectory is not given.",
        unit="ns",
        gt=0,
        default_is='`"180s"`, as the tool',
    )
    first_subdirectory: int | None = option(
        None,
        "The subdirectory that is filled first, from 0.",
        ge=0,
        lt=2**20,
        default_is="drawn by the seed for each loop; the tool takes the second of the day",
    )
    loops: int = option(1, "Number of loops (-L); each loop is a phase.", ge=1, le=10_000)
    keep: bool | None = option(
        None, "Keep a loop's files (-k).", default_is="true with more than one loop, as the tool"
    )
    fill: bool = option(
        False,
        "Create files until the filesystem is full (-F). This ends the single loop and is no failure; the files are "
        "kept.",
    )
    name_length: int = option(40, "Bytes of a file's name (-p).", ge=1, le=NAME_BYTES_MAX)
    random_name_length: int = option(24, "Random bytes at the end of the name (-r).", ge=0, le=NAME_BYTES_MAX)
    paths: Literal["full", "relative"] = option(
        "full",
        "How calls name files. full: from the root, as the tool; relative: from an open directory, which saves the "
        "path walk.",
    )
    drop_caches: bool = option(False, "Sync and drop all caches before each loop; the tool does not.")
    cpus: list[int] | None = cpus_option("CPUs that the threads may run on.")

    @property
    def keeps(self) -> bool:
        """Whether files stay after a loop: as given, else if loops fill the filesystem or follow each other."""
        return self.fill or self.loops > 1 if self.keep is None else self.keep

    @property
    def files_of_a_loop(self) -> int:
        """The files of all threads; if a loop fills a filesystem, the most that there are names for."""
        return self.files_of_a_thread * self.threads

    @property
    def files_of_a_thread(self) -> int:
        """Files that a thread makes in a loop at most; when it fills the filesystem, no limit of its own."""
        return FILES_MAX if self.fill else self.files


DEFAULT_SUBDIRECTORY_TIME_NS = 180 * 10**9


def _conflicts(options: FsMarkOptions) -> Iterator[Conflict]:
    if options.threads % options.directories:
        yield Conflict(
            ("directories",),
            f"{counted(options.threads, 'thread')} do not spread evenly over {options.directories} directories; "
            "make threads a multiple",
        )
    if options.random_name_length > options.name_length:
        yield Conflict(
            ("random_name_length",), f"a name has {options.name_length} bytes: lower it, or raise name_length"
        )
    elif _names_may_collide(options):
        yield Conflict(
            ("name_length",),
            f"{options.name_length - options.random_name_length} sequential and {options.random_name_length} random "
            f"bytes do not make {options.files_of_a_loop * options.loops} different names; raise one of them",
        )
    if options.fill:
        if options.keep is False:
            yield Conflict(("keep",), "fill keeps its files: nothing is full when they go")
        for key in ("files", "loops"):
            if key in options.model_fields_set:
                yield Conflict((key,), "not with fill, which makes as many files as fit, once")
    for key in ("files_per_subdirectory", "subdirectory_time", "first_subdirectory"):
        if getattr(options, key) is not None and options.subdirectories is None:
            yield Conflict((key,), "only with subdirectories")
    if options.files_per_subdirectory is not None and options.subdirectory_time is not None:
        yield Conflict(("subdirectory_time",), "not with files_per_subdirectory: files or time, one of them")
    if options.subdirectories is not None and (options.first_subdirectory or 0) >= options.subdirectories:
        yield Conflict(("first_subdirectory",), f"there are {options.subdirectories}, counted from 0")
    yield from cpus_conflicts(options.cpus)


def _names_may_collide(options: FsMarkOptions) -> bool:
    sequential = options.name_length - options.random_name_length
    return 16**sequential < options.files_of_a_loop * options.loops and options.random_name_length < RANDOM_BYTES_ENOUGH


def _phases(options: FsMarkOptions, seed: int, devices: int = 1) -> list[Phase]:
    return [_loop(options, number, derive_seed(seed, "loop", number), devices) for number in range(options.loops)]


def _loop(options: FsMarkOptions, number: int, seed: int, devices: int) -> Phase:
    threads = [_thread(options, number, thread, seed, devices) for thread in range(options.threads)]
    name = f"loop.{number + 1}"
    return MetadataPhase(
        name=name, measured=True, metadata={"name": name, "threads": threads}, drop_caches=options.drop_caches
    )


def _thread(options: FsMarkOptions, loop: int, thread: int, seed: int, devices: int) -> PlacedThread:
    job: native.MetadataSpec = {
        "name": f"thread.{thread}",
        "files": options.files_of_a_thread,
        "file_bytes": options.file_size,
        "write_bytes": options.write_size,
        "sync": options.sync,
        "keep": options.keeps,
        "until_full": options.fill,
        "subdirectories": _walk(options, seed),
        "names": {
            "bytes": options.name_length,
            "random_bytes": options.random_name_length,
            "first": loop * options.files_of_a_loop + thread,
            "step": options.threads,
        },
        "seed": derive_seed(seed, "thread", thread),
    }
    directory = thread % options.directories
    return {
        "place": directory % devices,
        "directory": f"directory.{directory}",
        "paths": options.paths,
        "cpus": options.cpus,
        "job": job,
    }


def _walk(options: FsMarkOptions, seed: int) -> native.WalkSpec | None:
    """All threads of a loop begin in the same subdirectory, as the tool's do, which start within one second."""
    if options.subdirectories is None:
        return None
    first = options.first_subdirectory
    if first is None:
        first = derive_seed(seed, "first subdirectory") % options.subdirectories
    next_after: native.NextDirectory
    if options.files_per_subdirectory is not None:
        next_after = {"files": options.files_per_subdirectory}
    else:
        next_after = {"time_ns": options.subdirectory_time or DEFAULT_SUBDIRECTORY_TIME_NS}
    return {"count": options.subdirectories, "first": first, "next_after": next_after}


def _file_bytes(options: FsMarkOptions) -> int:
    """What a filesystem is filled with is known only when it is."""
    if options.fill:
        return 0
    return options.file_size * options.files_of_a_loop * (options.loops if options.keeps else 1)


KIND = Kind(
    name="fs_mark",
    help="Many small files created, written, synced, closed and unlinked; times of each system call.",
    options=FsMarkOptions,
    conflicts=_conflicts,
    phases=_phases,
    override=replace_options,
    file_bytes=_file_bytes,
    compared=("files_per_s", "create.latency_ns_mean", "create.latency_ns_p99"),
)
