"""Whether a guest can run on this machine's processor: tried, as a guest under KVM may hang without a word."""

from __future__ import annotations

from pathlib import Path

from iolab.base.errors import MachineError
from iolab.machines.guest import qemu
from iolab.machines.guest.directory import made_directory
from iolab.machines.guest.limit import Deadline, GuestEnded
from iolab.machines.guest.steps import Plan

LIMIT_S = 20.0
"""From QEMU's start to the end of a plan without steps; one or two if KVM works."""
MEMORY_BYTES = 512 << 20


works: set[Path] = set()
"""Kernels that were tried."""


def check(image: Path, deadline: Deadline) -> None:
    """Boots the kernel under KVM and ends it, once. MachineError if it does not come up in time."""
    if image in works:
        return
    with made_directory(None) as directory:
        initramfs = directory / "initramfs"
        initramfs.write_bytes(Plan(seed=0).packed())
        board = qemu.Board(image, initramfs, cpus=1, memory_bytes=MEMORY_BYTES, accelerator="kvm")
        until = deadline.within(LIMIT_S)
        try:
            qemu.run(board, directory, (), deadline=until, should_stop=lambda: False, on_look=lambda _: None)
        except GuestEnded as error:
            what = f"KVM runs no guest here: {error.what}"
            raise MachineError(what, where="guest.accelerator", remedy='leave it at "tcg"') from None
    works.add(image)
