"""QEMU as a child: its command line, what the agent in it reports, and its end."""

from __future__ import annotations

import os
import resource
import selectors
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from iolab.base import child_process
from iolab.domain.trial.guest import Accelerator
from iolab.machines.guest import programs
from iolab.machines.guest.limit import Deadline, GuestEnded
from iolab.machines.guest.reader import AgentReport, InvalidMessage, Reader
from iolab.machines.system import command

POLL_S = 0.1
ERRORS = "qemu"
"""The file of what QEMU and its plugin complain about."""
COMPLETES_AT_ANY_TIME = b"counter: drives complete at any time"
CONSOLE_LINES = 6
CONSOLE_BYTES = 16384
OWN_MEMORY_BYTES = 4 << 30
"""The memory of QEMU beside its guest's: 1 GiB is for translated code, and the counter keeps each block that was
executed."""
CONSOLE_MAX_BYTES = 16 << 20
"""A kernel that writes more ends its machine: it would fill the disk."""
COMPLAINTS = ("Kernel panic", "BUG:", "Oops:", "Out of memory")
CONSOLE = (
    "console=ttyS0 panic=-1 oops=panic quiet no_timer_check tsc=reliable "
    "cryptomgr.notests=1 initcall_blacklist=load_system_certificate_list"
)
"""panic=-1: a kernel that panics ends the machine. The last two halve the time to boot a distribution's kernel."""
COMMAND_LINE = f"{CONSOLE} nokaslr damon_stat.enabled=0 sysctl.vm.compaction_proactiveness=0"
"""nokaslr: functions lie where they lay the last time. damon_stat: Debian's 7.2 looks for unused memory all the time,
the longer the more there is. compaction_proactiveness: kcompactd wakes twice a second, in one boot during the load and
in another before it (mm/compaction.c, 5.9)."""
EMULATED = {"virtio-blk": "virtio-blk-pci", "nvme": "nvme"}
"""QEMU's devices, of the drives that it emulates; the others are the kernel's own."""
BOARD_SLOTS, BRIDGE_SLOTS = 24, 31
"""Drives on the board itself, which uses some of its 32 slots; more of them lie behind bridges, of so many each."""
_SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"


@dataclass(frozen=True)
class Drive:
    """What the machine has as a drive."""

    image: Path | int
    """Its file; or its bytes, if nobody reads what is written: such a drive is done at once, without a thread of the
    host's that the machine would wait for."""
    device: str
    """QEMU's name of the device."""
    properties: dict[str, str]


@dataclass(frozen=True)
class Board:
    """The emulated machine's parts."""

    image: Path
    initramfs: Path
    cpus: int
    memory_bytes: int
    command_line: str = ""
    drives: Sequence[Drive] = ()
    accelerator: Accelerator = "tcg"
    counter: Mapping[str, str] | None = None
    """The counter's arguments (counter/counter.c); None: nothing is counted."""
    name: str = "guest machine"
    """As errors call it."""

    def arguments(self, console: Path) -> list[str]:
        """QEMU's command line. With one CPU under TCG, time is instructions: 1 ns each, and none passes while it
        idles."""
        found = emulator(self.image, self.initramfs, self.cpus, self.memory_bytes, self.accelerator)
        # A CPU that waits for another one would spin through its whole share of such a time, which is seconds.
        found += ["-icount", "shift=0,sleep=off"] if self.cpus == 1 and self.accelerator == "tcg" else []
        found += ["-rtc", "base=2020-01-01,clock=vm"]
        found += ["-append", f"{COMMAND_LINE} {self.command_line}".rstrip()]
        found += ["-chardev", f"file,id=console,path={_escaped(str(console))}", "-serial", "chardev:console"]
        found += ["-chardev", "stdio,id=agent,signal=off", "-device", "isa-debugcon,iobase=0xe9,chardev=agent"]
        bridges = -(-len(self.drives) // BRIDGE_SLOTS) if len(self.drives) > BOARD_SLOTS else 0
        for number in range(bridges):
            found += ["-device", f"pci-bridge,id=bridge{number},chassis_nr={number + 1},shpc=off"]
        for number, drive in enumerate(self.drives):
            if isinstance(drive.image, int):
                file = f"driver=null-co,size={drive.image},read-zeroes=on"
            else:
                file = f"file={_escaped(str(drive.image))},format=raw,cache=unsafe"
            found += ["-drive", f"if=none,id=drive{number},{file}"]
            further = "".join(f",{name}={_escaped(value)}" for name, value in drive.properties.items())
            found += ["-device", f"{drive.device},drive=drive{number}{self._place(number)}{further}"]
        if self.counter is not None:
            options = "".join(f",{name}={_escaped(value)}" for name, value in self.counter.items())
            found += ["-plugin", f"{programs.counter()},cpus={self.cpus}{options}"]
        return found

    def _place(self, number: int) -> str:
        """Where a drive is plugged in; the kernel finds them in the order of their numbers."""
        if len(self.drives) <= BOARD_SLOTS:
            return ""
        return f",bus=bridge{number // BRIDGE_SLOTS},addr={1 + number % BRIDGE_SLOTS:#x}"


PROCESSOR = "qemu64"
"""QEMU's plainest, which its versions have in common: the kernel chooses its copying functions by the flags."""
_ACCELERATORS: dict[Accelerator, list[str]] = {
    "tcg": ["-accel", "tcg,thread=single", "-cpu", PROCESSOR],
    "kvm": ["-accel", "kvm", "-cpu", "host"],
}


def emulator(image: Path, initramfs: Path, cpus: int, memory_bytes: int, accelerator: Accelerator = "tcg") -> list[str]:
    """QEMU's command line up to what a machine is connected to: no network, no drive, nothing of this machine.

    It is run in the initramfs' directory: QEMU takes a comma in that path for the end of it, and firmware from where it
    is run.
    """
    found = [programs.qemu(), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-sandbox", _SANDBOX]
    found += [*_ACCELERATORS[accelerator], "-smp", str(cpus), "-m", f"size={memory_bytes >> 20}M"]
    found += ["-kernel", str(image), "-initrd", initramfs.name, "-device", "isa-debug-exit,iobase=0xf4,iosize=4"]
    return found


def run(
    board: Board,
    directory: Path,
    steps: Sequence[Mapping[str, Any]],
    *,
    deadline: Deadline,
    should_stop: Callable[[], bool],
    on_look: Callable[[AgentReport], None],
) -> AgentReport:
    """Runs the machine to its end; what its agent reported. Stopped, it has not `ended`.

    Args:
        directory: of the machine's own, for its console's report; its initramfs lies there.
        steps: that its agent is to answer.
        on_look: called some times per second.

    Raises:
        GuestEnded: it panicked, hung, ended early, or sent what no agent sends.
        MachineError: QEMU does not start.
    """
    console, errors = directory / "console", directory / ERRORS
    with errors.open("wb") as complaints:
        process = subprocess.Popen(
            board.arguments(console),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            cwd=directory,
            env=child_process.environment(),
            start_new_session=True,
            preexec_fn=partial(_confine, command.dying_with_parent(), board.memory_bytes),
        )
    assert process.stdout is not None
    reader = Reader(steps)
    report = reader.report
    try:
        for chunk in chunks(process.stdout.fileno()):
            reader.take(chunk)
            on_look(report)
            if should_stop():
                return report
            if deadline.passed:
                raise GuestEnded(_why(deadline.passed, console), where=board.name)
            if console.exists() and console.stat().st_size > CONSOLE_MAX_BYTES:
                what = f"the guest wrote more than {CONSOLE_MAX_BYTES >> 20} MiB to its console"
                raise GuestEnded(_why(what, console), where=board.name)
    except InvalidMessage as error:
        raise GuestEnded(f"the guest {error}", where=board.name) from None
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    if not report.is_over:
        errors_shown = last_bytes(errors).decode(errors="replace").strip().splitlines()
        what = (
            errors_shown[-1]
            if errors_shown and not console.stat().st_size
            else "the guest's kernel ended before its load"
        )
        raise GuestEnded(_why(what, console), where=board.name)
    return report


def completes_at_any_time(directory: Path) -> bool:
    """Whether the counter could not make drives complete at a time of the machine's own (counter/completion.c)."""
    return COMPLETES_AT_ANY_TIME in last_bytes(directory / ERRORS)


def _confine(die_with_parent: Callable[[], None], memory_bytes: int) -> None:
    """Before QEMU is executed: it dies with this process, and takes no more memory than its guest and itself need."""
    die_with_parent()
    most, (_, hard) = memory_bytes + OWN_MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_DATA)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def chunks(fd: int) -> Iterator[bytes]:
    """What comes, and nothing from time to time, until the other side closes it."""
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        while True:
            if not selector.select(POLL_S):
                yield b""
                continue
            chunk = os.read(fd, 1 << 20)
            if not chunk:
                return
            yield chunk


def last_bytes(path: Path) -> bytes:
    """The last bytes of a file that may be long; empty if the file does not exist."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - CONSOLE_BYTES))
            return file.read(CONSOLE_BYTES)
    except OSError:
        return b""


def _why(what: str, console: Path) -> str:
    """With what the kernel complained about, and its last lines."""
    text = last_bytes(console).decode(errors="replace")
    printable = ("".join(one if one.isprintable() else " " for one in line).strip() for line in text.splitlines())
    lines = [line for line in printable if line]
    last = lines[-CONSOLE_LINES:]
    complaints = [line for line in lines if any(word in line for word in COMPLAINTS) and line not in last]
    last = [*complaints[:1], *last]
    return f"{what}; its last lines: {' | '.join(last)}" if last else f"{what}, without a message"


def _escaped(text: str) -> str:
    """In a list of QEMU's options a comma is written twice."""
    return text.replace(",", ",,")
