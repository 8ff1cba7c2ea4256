"""A guest machine as a trial carries it: which kernel, on what."""

from __future__ import annotations

from typing import Literal

from iolab.domain.trial.target import Spec

PREFIX = "guest:"
"""How the name of a guest machine begins; its kernel follows."""


def is_commit(kernel: str) -> bool:
    """Whether the kernel's name is `TREE@COMMIT`."""
    tree, at, commit = kernel.rpartition("@")
    return bool(at and commit) and "/" in tree


def is_image(kernel: str) -> bool:
    """Whether the kernel's name is the path of an image."""
    return "/" in kernel and not is_commit(kernel)


MEMORY_BYTES_MIN, MEMORY_BYTES_MAX = 128 * 2**20, 2**40
"""The limits of memory: a distribution's kernel boots with the smaller one, no machine gives away the larger one."""

DriveKind = Literal["null_blk", "scsi_debug", "virtio-blk", "nvme"]


Accelerator = Literal["tcg", "kvm"]


class GuestMachine(Spec):
    """An emulated machine that boots a kernel of the user's choice (docs/guest.md)."""

    kernel: str
    """A Debian package's version, a path of an image, `TREE@COMMIT`, or `running`."""
    modules: str | None
    """The directory of the image's modules, as /lib/modules/RELEASE; None: the package's or the tree's own."""
    cpus: int
    memory_bytes: int
    command_line: str
    """Further words of the kernel's command line."""
    drive: DriveKind
    drive_parameters: dict[str, str]
    """Attributes in configfs of null_blk, parameters of the module scsi_debug, else properties of QEMU's device."""
    module_parameters: dict[str, dict[str, str]]
    """By module, loaded whether or not a drive or filesystem needs it."""
    time_limit_ns: int
    """The limit of wall time from the kernel's image to the record: symbols, images, the machine."""
    debug: str | None = None
    """The kernel's file with debug information; None: the one that its build left, if any."""
    config: str | None = None
    """What a tree's kernel is configured as: `plain`, or a file's path; None: the tree's own, else `plain`."""
    accelerator: Accelerator = "tcg"
    """What executes its instructions: QEMU, which counts them, or this processor."""
    virtual_time_limit_ns: int = 120 * 10**9
    """The limit of the machine's own time, in which an instruction takes a nanosecond."""
