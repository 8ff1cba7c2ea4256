"""`kind = "make-sequence"`: mkfs, untar, make and make clean on every device at once, each step with the mount before
and the unmount after it in its time.

The steps and what counts in them are those of A. D. Brunelle's tests of I/O affinity (linux-kernel, February 2008).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from iolab.base.option import Options, option
from iolab.domain.trial import CommandsPhase, Phase
from iolab.domain.workload.conflict import cpus_conflicts
from iolab.domain.workload.kind import Conflict, Kind, cpus_option, replace_options

STEPS = ("mkfs", "untar", "make", "clean")
"""The measured phases, in order."""

SOURCE_TREE_OPTIONS = ("source_files", "source_functions")


class MakeSequenceOptions(Options):
    """The options of `kind = "make-sequence"`."""

    tarball: str | None = option(
        None,
        "Source tarball to unpack, in any compression that tar knows.",
        default_is="a C source tree that iolab makes",
        expected='a path such as "linux-6.1.tar.xz"',
    )
    source_files: int = option(100, "C files of the tree that iolab makes.", ge=1, le=100_000)
    source_functions: int = option(20, "Functions in each of these files.", ge=1, le=10_000)
    jobs: int = option(4, "Parallel compilations on each device: JOBS, for make -j.", ge=1, le=1024)
    untar: str = option(
        'mkdir source && tar -xf "$TARBALL" -C source --strip-components=1',
        "Shell command of the step untar. All commands run in the root of the device's filesystem.",
        lines=True,
    )
    configure: str | None = option(
        None,
        "Shell command between untar and make, not measured, such as make -C source defconfig.",
        default_is="nothing",
        lines=True,
    )
    make: str = option('make -C source -j"$JOBS"', "Shell command of the step make.", lines=True)
    clean: str = option("make -C source clean", "Shell command of the step clean.", lines=True)
    filesystem: Literal["ext2", "ext3", "ext4", "xfs", "btrfs"] | None = option(
        None, "Filesystem that the step mkfs makes.", default_is="the scratch target's, else ext4"
    )
    mkfs_options: str | None = option(None, "Additional arguments of mkfs.", default_is="the scratch target's")
    mount_options: str | None = option(None, "Mount options, separated by commas.", default_is="the scratch target's")
    cpus: list[int] | None = cpus_option("CPUs that the commands may run on.")
    drop_caches: bool = option(False, "Sync and drop the page cache before each step.")


def _conflicts(options: MakeSequenceOptions) -> Iterator[Conflict]:
    yield from cpus_conflicts(options.cpus)
    for key in SOURCE_TREE_OPTIONS:
        if options.tarball is not None and key in options.model_fields_set:
            yield Conflict((key,), "only for the tree that iolab makes, and a tarball is given")


def _phases(options: MakeSequenceOptions, seed: int, devices: int = 1) -> list[Phase]:
    mkfs, untar, make, clean = STEPS
    return [
        _step(options, mkfs, None, makes_filesystem=True),
        _step(options, untar, options.untar, unpacks=True),
        *([_step(options, "configure", options.configure, measured=False)] if options.configure else []),
        _step(options, make, options.make),
        _step(options, clean, options.clean),
    ]


def _step(
    options: MakeSequenceOptions,
    name: str,
    command: str | None,
    *,
    measured: bool = True,
    makes_filesystem: bool = False,
    unpacks: bool = False,
) -> CommandsPhase:
    own_tree = {"files": options.source_files, "functions": options.source_functions}
    return CommandsPhase(
        name=name,
        measured=measured,
        command=command,
        environment={"JOBS": str(options.jobs)},
        makes_filesystem=makes_filesystem,
        filesystem=options.filesystem,
        mkfs_options=options.mkfs_options,
        mount_options=options.mount_options,
        tarball=options.tarball if unpacks else None,
        source_tree=own_tree if unpacks and options.tarball is None else None,
        cpus=options.cpus,
        drop_caches=options.drop_caches,
    )


def _file_bytes(options: Any) -> int:
    """What is unpacked and built is known only when it is."""
    return 0


KIND = Kind(
    name="make-sequence",
    help="mkfs, untar, make and make clean on every device at once; times include mounts and unmounts. On a host only.",
    options=MakeSequenceOptions,
    conflicts=_conflicts,
    phases=_phases,
    override=replace_options,
    file_bytes=_file_bytes,
    compared=("elapsed_s", "cpu_percent"),
)
