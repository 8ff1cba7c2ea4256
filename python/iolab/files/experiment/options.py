"""The options of an experiment itself, of its target and of its comparison."""

from __future__ import annotations

import os
from typing import Annotated, Literal

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from iolab.base.option import Bytes, Options, option, shown
from iolab.base.toml import TomlTable
from iolab.domain.trial import DeviceTarget, DirectoryTarget, FileTarget, ScratchTarget, SideDevice
from iolab.domain.trial.trial import SEED_MAX

ROUNDS_MAX = 1_000_000


def read_share(given: object) -> object:
    """`"2%"` -> 0.02; whatever is no text with a percent sign stays. ValueError for a text that is no percentage."""
    if isinstance(given, str) and given.endswith("%"):
        try:
            return float(given[:-1]) / 100
        except ValueError:
            raise PydanticCustomError(
                "quantity", "{why}", {"why": f"{shown(given)} given; expected {_SHARE}"}
            ) from None
    return given


_SHARE = 'a share such as "2%" or 0.02, above 0 and below 1'

Share = Annotated[float, BeforeValidator(read_share)]


class ExperimentOptions(Options):
    """The top of an experiment's file."""

    title: str = option("", "The question the experiment asks.")
    machine: str = option(
        "host",
        "Where trials run: host is this machine, model:NAME a simulated one, guest:KERNEL an "
        "emulated one that boots this kernel.",
    )
    rounds: int = option(
        5,
        "How often each workload runs under each setting.",
        ge=1,
        le=ROUNDS_MAX,
        expected="a whole number, at least 1 and at most 1000000",
    )
    rounds_per_boot: int = option(
        1,
        "With settings of several parts (`part`): how many of the rounds each boot measures.",
        ge=1,
        le=ROUNDS_MAX,
        expected="a whole number, at least 1 and at most 1000000",
    )
    seed: int | None = option(
        None,
        "Decides the order of trials and every offset.",
        ge=0,
        le=SEED_MAX,
        default_is="drawn, and recorded",
        expected="a whole number from 0 to 2^63 - 1",
    )
    draws: Literal["shared", "own"] = option(
        "shared",
        "Offsets and other draws of a round's trials: shared by all settings, so that their differences are paired; "
        "or each trial's own, so that the spread within a round includes the influence of draws.",
    )
    target: TomlTable = option(
        {}, "Where the I/O goes, [target].", default_is="scratch as root, else the directory `.`"
    )
    workloads: TomlTable = option({}, "A table per workload, [workloads.NAME].", default_is="must be given")
    settings: TomlTable = option({}, "A table per setting, [settings.NAME].", default_is="one, named default")
    probes: TomlTable = option({}, "What is read from the machine during each phase, [probes].", default_is="nothing")
    guest: TomlTable = option({}, "The emulated machine, [guest].", default_is="one CPU, 1 GiB, null_blk")
    compare: TomlTable = option({}, "What is compared, [compare].", default_is="each setting with the first")
    tune: TomlTable = option({}, "Which settings `iolab tune` tries, and for what, [tune].", default_is="nothing")


METRICS_MAX = 1_000
"""So many metrics [compare] may name."""


class CompareOptions(Options):
    """What is compared, [compare]."""

    baseline: str | None = option(None, "The setting that the others are compared with.", default_is="the first")
    metrics: list[str] | None = option(
        None,
        f"Keys of metrics, [phase/][op.]metric; at most {METRICS_MAX:,}.",
        default_is="rate_bytes_per_s, latency_ns_mean, latency_ns_p99, cpu_ns_per_io",
        expected='a list such as ["rate_bytes_per_s", "read.latency_ns_p99"]',
    )
    same_within: Share = option(0.02, "Margin of the verdict same.", gt=0, lt=1, expected=_SHARE)
    same_instructions: float | None = option(
        None,
        "The same margin for metrics that count instructions: instructions per operation, or per system call.",
        default_is="`same_within`",
        gt=0,
    )


class ScratchOptions(Options):
    """`kind = "scratch"` of [target]."""

    kind: Literal["scratch"] = option("scratch", "A loop device that iolab makes for each trial and removes after it.")
    size: Bytes = option(4 * 2**30, "Size of the device; its backing file is sparse.", unit="bytes", ge=16 * 2**20)
    filesystem: Literal["ext2", "ext3", "ext4", "xfs", "btrfs", "none"] = option(
        "ext4", "Filesystem made on it; none: the bare device."
    )
    mkfs_options: str = option(
        "", "Additional arguments of mkfs, such as -b 1024. They must not name a device or a file."
    )
    mount_options: str = option("", "Mount options, separated by commas.")
    backing: str | None = option(None, "Directory of the backing file.", default_is="the state directory")
    sector_size: Literal[512, 4096] | None = option(
        None, "Logical block size of the device, in bytes: 512 or 4096.", default_is="512", expected="512 or 4096"
    )

    devices: int = option(
        1, "Number of such devices; the workload distributes its jobs or steps over them.", ge=1, le=256
    )
    log_size: Bytes | None = option(
        None,
        "Size of a second scratch device, for the log of xfs or the journal of ext3 or ext4.",
        unit="bytes",
        default_is="an internal log",
        ge=2**20,
    )
    log_backing: str | None = option(None, "Directory of the log's backing file.", default_is="as `backing`")
    realtime_size: Bytes | None = option(
        None,
        "Size of another scratch device, for the realtime section of xfs.",
        unit="bytes",
        default_is="no realtime section",
        ge=2**20,
    )
    realtime_backing: str | None = option(
        None, "Directory of the realtime section's backing file.", default_is="as `backing`"
    )

    layers: list[TomlTable] = option(
        [],
        "Layers of the kernel's between each device and its drives, the top one first (docs/layers.md). The device at "
        "the top holds `size`; the drives are as large as that takes.",
        default_is="none",
        expected='a list such as [{ kind = "crypt" }, { kind = "raid", level = 5, members = 4 }]',
    )

    def target(self) -> ScratchTarget:
        """The target as a trial carries it, sizes in bytes."""
        return ScratchTarget(
            size_bytes=self.size,
            filesystem=None if self.filesystem == "none" else self.filesystem,
            mkfs_options=self.mkfs_options,
            mount_options=self.mount_options,
            backing_directory=self.backing,
            sector_bytes=self.sector_size,
            devices=self.devices,
            log=_side(self.log_size, self.log_backing),
            realtime=_side(self.realtime_size, self.realtime_backing),
            layers=self.layers,
        )


def _side(size_bytes: int | None, backing: str | None) -> SideDevice | None:
    return None if size_bytes is None else SideDevice(size_bytes=size_bytes, backing_directory=backing)


class DirectoryOptions(Options):
    """`kind = "directory"` of [target]."""

    kind: Literal["directory"] = option("directory", "A directory; iolab makes a subdirectory in it and removes it.")
    path: str = option(".", "The directory.")

    def target(self) -> DirectoryTarget:
        """The target as a trial carries it."""
        return DirectoryTarget(path=self.path)


class FileOptions(Options):
    """`kind = "file"` of [target]."""

    kind: Literal["file"] = option("file", "One named file; the files of jobs are regions of it.")
    path: str = option(..., "The file.", expected='a path such as "/data/iolab.bin"')

    def target(self) -> FileTarget:
        """The target as a trial carries it."""
        return FileTarget(path=self.path)


class DeviceOptions(Options):
    """`kind = "device"` of [target]."""

    kind: Literal["device"] = option("device", "A block device; the files of jobs are regions of it.")
    path: str | None = option(
        None, "The device.", default_is="must be given, or paths", expected='a path such as "/dev/nvme1n1"'
    )
    paths: list[str] | None = option(
        None,
        "Several devices, instead of path.",
        default_is="path alone",
        expected='a list such as ["/dev/sdb", "/dev/sdc"]',
    )
    destroy: bool = option(False, "Overwrite the device even if it carries signatures, partitions or other data.")

    def target(self) -> DeviceTarget:
        """The target as a trial carries it; the devices are looked at when the run begins."""
        paths = self.paths or ([] if self.path is None else [self.path])
        return DeviceTarget(paths=paths, destroy=self.destroy)


TARGETS: dict[str, type[ScratchOptions | DirectoryOptions | FileOptions | DeviceOptions]] = {
    "scratch": ScratchOptions,
    "directory": DirectoryOptions,
    "file": FileOptions,
    "device": DeviceOptions,
}


def default_target_kind() -> str:
    """Loop devices need root; a directory does not."""
    return "scratch" if os.geteuid() == 0 else "directory"
