"""Boots a kernel and runs one command in it, or a shell, on this terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

from iolab.adapters.guest import kernel, programs
from iolab.adapters.guest.directory import made_directory
from iolab.adapters.guest.modules import Modules
from iolab.adapters.guest.qemu import CONSOLE, emulator
from iolab.adapters.guest.steps import Plan
from iolab.adapters.system import command
from iolab.base import child_process
from iolab.base.errors import InputError, MachineError

SHELL = "sh"
NO_LIMIT_NS = 2**62
"""A shell stays for as long as somebody is there."""
TOOLS = ("sh", "ls", "cat", "grep", "dmesg", "mount", "umount", "mkdir", "sleep", "uname", "dd", "lsblk", "ps", "sync")
"""Of this machine, in the guest beside a shell; those that are installed."""


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
        initramfs, told = directory / "initramfs", directory / "told"
        initramfs.write_bytes(plan.packed())
        arguments = emulator(found.image, initramfs, cpus, memory_bytes)
        arguments += ["-append", CONSOLE, "-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]
        arguments += ["-chardev", f"file,id=agent,path={told}", "-device", "isa-debugcon,iobase=0xe9,chardev=agent"]
        done = subprocess.run(
            arguments,
            stdout=sys.stderr if to_stderr else None,
            env=child_process.environment(),
            preexec_fn=command.die_with_parent,
            check=False,
        )
        lines = [json.loads(line) for line in told.read_text().splitlines()] if told.exists() else []
    for line in lines:
        if "failed" in line:
            raise MachineError(str(line["failed"]["what"]), where=name)
        if line.get("step") == step:
            status = line["told"]["status"]
            return 1 if status is None else int(status)
    raise MachineError(f"the guest ended before its command did (QEMU's exit status {done.returncode})", where=name)
