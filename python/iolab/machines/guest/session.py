"""Boots a kernel and runs one command in it, or a shell, on this terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from iolab.base import child_process
from iolab.base.errors import InputError, MachineError
from iolab.machines.guest import kernel, programs
from iolab.machines.guest.agent_message import ExitAnswer
from iolab.machines.guest.directory import made_directory
from iolab.machines.guest.limit import GuestEnded
from iolab.machines.guest.modules import Modules
from iolab.machines.guest.qemu import CONSOLE, chunks, emulator
from iolab.machines.guest.reader import AgentReport, InvalidMessage, Reader
from iolab.machines.guest.steps import Plan
from iolab.machines.system import command

SHELL = "sh"
ENDING_S = 5.0
NO_LIMIT_NS = 2**62
"""A shell stays for as long as somebody is there."""
TOOLS = ("sh", "ls", "cat", "grep", "dmesg", "mount", "umount", "mkdir", "sleep", "uname", "dd", "lsblk", "ps", "sync")
"""The programs of this machine that a shell in the guest has beside it, if they are installed."""


def run(
    name: str, argv: Sequence[str], *, memory_bytes: int, cpus: int, modules: Sequence[str], to_stderr: bool = False
) -> int:
    """The command's exit status in a guest that boots the kernel of that name; without a command, a shell's.

    Args:
        argv: a program of this machine, which is packed with its libraries, and its arguments.
        modules: loaded before.
        to_stderr: where the console goes; else to standard output.

    Raises:
        InputError: there is no such kernel or program.
        MachineError: this machine cannot run guests, or the kernel ended early.
    """
    found = kernel.find(name)
    plan = Plan(seed=0, limit_ns=NO_LIMIT_NS)
    plan.load_modules(Modules(found.modules), modules, {})
    wanted = list(argv) or [SHELL]
    if command.find(wanted[0]) is None:
        raise InputError("no such program on this machine", where=wanted[0])
    path = programs.pack(plan.archive, wanted[0], wanted[0])
    for tool in TOOLS if wanted[0] == SHELL else ():
        if command.find(tool) is not None:
            programs.pack(plan.archive, tool, tool)
    plan.archive.add_link("/bin", "/sbin")
    step = plan.add("console", argv=[path, *wanted[1:]])
    with made_directory(None) as directory:
        initramfs = directory / "initramfs"
        initramfs.write_bytes(plan.packed())
        arguments = emulator(found.image, initramfs, cpus, memory_bytes)
        arguments += ["-append", CONSOLE, "-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]
        report, status = _listened(arguments, directory, plan, found.label, to_stderr=to_stderr)
    if report.failed is not None:
        raise MachineError(report.failed.what, where=found.label)
    answer = report.answer(step)
    if not isinstance(answer, ExitAnswer):
        raise MachineError(f"it ended before its command did (QEMU's exit status {status})", where=found.label)
    return 1 if answer.status is None else answer.status


def _listened(
    arguments: Sequence[str], directory: Path, plan: Plan, label: str, *, to_stderr: bool
) -> tuple[AgentReport, int]:
    """What the agent reported, what its console showed, and QEMU's exit status. GuestEnded if no agent reports it."""
    ours, its = os.pipe()
    chardev = f"file,id=agent,path=/dev/fd/{its}"
    reader = Reader(plan.steps)
    process = None
    try:
        process = subprocess.Popen(
            [*arguments, "-chardev", chardev, "-device", "isa-debugcon,iobase=0xe9,chardev=agent"],
            stdout=sys.stderr if to_stderr else None,
            pass_fds=[its],
            cwd=directory,
            env=child_process.environment(),
            preexec_fn=command.dying_with_parent(),
        )
        os.close(its)
        its = -1
        for chunk in chunks(ours):
            reader.take(chunk)
        return reader.report, process.wait()
    except InvalidMessage as error:
        raise GuestEnded(f"the guest {error}", where=label) from None
    finally:
        if process is not None:
            _end(process)
        for fd in (ours, its):
            if fd >= 0:
                os.close(fd)


def _end(process: subprocess.Popen[bytes]) -> None:
    """QEMU puts the terminal back as it was, if it is let."""
    process.terminate()
    try:
        process.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
