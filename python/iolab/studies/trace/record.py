"""Records the block events of a device through tracefs, even if blktrace is refused, as a packed `trace.dat`.

The kernel filters by device; its sub-buffers go into the file as they are, and nothing is decoded on the way.
"""

from __future__ import annotations

import os
import re
import secrets
import select
import stat
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

from iolab import _native
from iolab.base import child_process, output_file
from iolab.base.errors import InputError, MachineError
from iolab.base.stop import stop_flag
from iolab.machines.system import tracefs
from iolab.machines.system.action import RemoveTraceInstance
from iolab.machines.system.undo import UndoJournal, restore_dead
from iolab.studies.trace.trace_dat import PAGE_BYTES, TraceDat

EVENTS = (
    "block_bio_queue",
    "block_split",
    "block_bio_backmerge",
    "block_bio_frontmerge",
    "block_getrq",
    "block_rq_merge",
    "block_rq_insert",
    "block_rq_issue",
    "block_rq_requeue",
    "block_rq_complete",
    # A bio that is refused because it would have to wait (-EAGAIN) ends with no other event, and is queued once more.
    "block_bio_complete",
)
OF_LAYERS = "block_bio_remap"
"""A bio goes on to another device: from a layer, but also from each partition to its disk."""
_TERM_PATIENCE_S = 5.0
"""A command that gets a signal to end may take this long."""
_TICK_S = 0.05
_BUFFER_KIB = 8192


@dataclass(frozen=True)
class TraceRecording:
    """What was recorded."""

    path: Path
    bytes: int
    seconds: float
    events_lost: int
    """As the kernel counts them: events that found no room."""
    status: int | None
    """How the command ended, if there was one."""
    slow_ns: int | None = None
    """How long the request took that ended it, in ns."""


def record(
    device: Path,
    path: Path,
    *,
    command: Sequence[str] = (),
    seconds: float | None = None,
    keep_s: float | None = None,
    slower_s: float | None = None,
    buffer_kib: int = _BUFFER_KIB,
    layers: bool = False,
) -> TraceRecording:
    """Records until the command has ended, the time is over, a request was too slow, or a signal (Ctrl-C, SIGTERM),
    whichever comes first. What was recorded is kept. The tracing instance is in the undo journal before it is made.

    Args:
        keep_s: keep only the events of this time before the end. slower_s: end when a request took this long, or has
        been in flight for this long. buffer_kib: of the kernel's buffer of each CPU. layers: also the devices that it
        is stacked on, and what it sends them.

    Raises:
        InputError: no block device, or no such command.
        MachineError: tracefs is not there or not to be used.
    """
    numbers = _numbers(device, layers=layers)
    output_file.check(path, "with places")
    with stop_flag() as stopped, _instance(buffer_kib) as instance:
        formats = _enable(instance, numbers, (*EVENTS, OF_LAYERS) if layers else EVENTS)
        watch = None if slower_s is None else _watch(instance, formats, slower_s)
        with closing(_Buffers(instance, keep_s, path.absolute().parent, watch)) as buffers:
            began = time.monotonic()
            _write(instance / "tracing_on", "1")
            try:
                status = _wait(buffers, command, None if seconds is None else began + seconds, stopped)
            finally:
                _write(instance / "tracing_on", "0")
            elapsed_s = time.monotonic() - began
            buffers.drain()
            events_lost = _events_lost(instance)
            file = TraceDat(
                header_page=_read(instance / "events" / "header_page"),
                header_event=_read(instance / "events" / "header_event"),
                formats=formats,
                command_lines=_command_lines(instance),
            )
            size = file.write(path, buffers.taken())
    return TraceRecording(path, size, elapsed_s, events_lost, status, buffers.slow_ns)


def _numbers(device: Path, *, layers: bool) -> list[int]:
    """The device as the kernel numbers it, and of a partition its disk too: requests carry the disk's number. `layers`:
    also all that it is stacked on."""
    try:
        found = device.stat()
    except OSError as error:
        raise InputError(f"can't be opened: {error.strerror}", where=str(device)) from error
    if not stat.S_ISBLK(found.st_mode):
        raise InputError("is no block device", where=str(device), remedy="name one, such as /dev/sda")
    major, minor = os.major(found.st_rdev), os.minor(found.st_rdev)
    place = Path(f"/sys/dev/block/{major}:{minor}").resolve()
    return list(dict.fromkeys(_numbers_in(place, layers=layers)))


def _numbers_in(place: Path, *, layers: bool) -> Iterator[int]:
    """As of `_numbers`, from the device's directory in sysfs."""
    disk = [place.parent] if (place / "partition").exists() else []
    for directory in [place, *disk]:
        major, minor = map(int, (directory / "dev").read_text().split(":"))
        yield major << 20 | minor
    for below in sorted(place.glob("slaves/*")) if layers else ():
        yield from _numbers_in(below.resolve(), layers=True)


@contextmanager
def _instance(buffer_kib: int) -> Iterator[Path]:
    """Buffers and switches of our own, gone at the end; what a killed recording left is removed first."""
    root = tracefs.root()
    if root is None and os.geteuid() != 0:
        raise MachineError("tracefs is for root", remedy="run as root: sudo iolab record ...")
    if root is None:
        raise MachineError("tracefs is not mounted", remedy="sudo mount -t tracefs nodev /sys/kernel/tracing")
    restore_dead()
    name = f"iolab-{secrets.token_hex(8)}"
    instance = root / "instances" / name
    with UndoJournal.open() as undo:
        undo.before(RemoveTraceInstance(name))
        try:
            instance.mkdir()
        except OSError as error:
            raise MachineError(
                f"no tracing instance: {error.strerror}", where=str(instance), remedy="run as root"
            ) from error
        _write(instance / "tracing_on", "0")
        _write(instance / "trace_clock", "mono")
        _write(instance / "buffer_size_kb", str(buffer_kib))
        yield instance


def _enable(instance: Path, numbers: Sequence[int], events: Sequence[str]) -> list[bytes]:
    """Switches the events on, and yields their formats; older kernels lack some."""
    condition = " || ".join(f"dev == {number}" for number in numbers)
    formats = []
    for event in events:
        directory = instance / "events" / "block" / event
        if directory.is_dir():
            formats.append(_read(directory / "format"))
            _write(directory / "filter", condition)
            _write(directory / "enable", "1")
    if not formats:
        raise MachineError("this kernel has no block events", remedy="boot one with CONFIG_BLK_DEV_IO_TRACE")
    return formats


def _watch(instance: Path, formats: Sequence[bytes], slower_s: float) -> _native.TraceWatch:
    header = _read(instance / "events" / "header_page").decode()
    try:
        return _native.TraceWatch(header, [text.decode() for text in formats], int(slower_s * 1e9))
    except ValueError as error:
        raise MachineError(f"its events can't be watched: {error}", remedy="leave out --until-slower") from error


def _wait(buffers: _Buffers, command: Sequence[str], until: float | None, stopped: threading.Event) -> int | None:
    child = _start(command) if command else None
    status = None
    while status is None and buffers.slow_ns is None and (until is None or time.monotonic() < until):
        if stopped.is_set():
            break
        buffers.wait(_TICK_S)
        buffers.drain()
        status = None if child is None else child.poll()
    if child is not None and child.poll() is None:
        _end(child)
    return status


def _end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(_TERM_PATIENCE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, env=child_process.environment())
    except OSError as error:
        raise InputError(f"can't be started: {error.strerror}", where=command[0]) from error


class _Buffers:
    """The kernel's buffers of all CPUs, emptied into files; with `keep_s` into memory, which what is older leaves."""

    def __init__(
        self, instance: Path, keep_s: float | None, beside: Path, watch: _native.TraceWatch | None = None
    ) -> None:
        self._watch = watch
        self.slow_ns: int | None = None
        """How long the first request took that was too slow."""
        self._keep_ns = None if keep_s is None else int(keep_s * 1e9)
        found = sorted((int(re.sub(r"\D", "", path.name)), path) for path in (instance / "per_cpu").glob("cpu*"))
        files = [] if keep_s is not None else found
        self._written = [TemporaryFile(dir=beside) for _ in files]  # noqa: SIM115 (open until `close`)
        self._cpus = [cpu for cpu, _ in found]
        self._files = [os.open(path / "trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK) for _, path in found]
        self._pages: list[deque[bytes]] = [deque() for _ in found]
        self._poll = select.poll()
        for descriptor in self._files:
            self._poll.register(descriptor, select.POLLIN)

    def wait(self, seconds: float) -> None:
        """Until a buffer is filling, or so long."""
        self._poll.poll(seconds * 1000)

    def drain(self) -> None:
        """Takes all that is there."""
        for cpu, descriptor, pages in zip(self._cpus, self._files, self._pages, strict=True):
            with suppress(BlockingIOError):
                while page := os.read(descriptor, PAGE_BYTES):
                    pages.append(page.ljust(PAGE_BYTES, b"\0"))
                    if self._watch is not None and self.slow_ns is None:
                        self.slow_ns = self._watch.add(cpu, pages[-1])
        if self._keep_ns is not None:
            self._forget(time.monotonic_ns() - self._keep_ns)
            return
        for file, pages in zip(self._written, self._pages, strict=True):
            file.writelines(pages)
            pages.clear()

    def _forget(self, before_ns: int) -> None:
        """A page whose successor begins before then holds nothing newer."""
        for pages in self._pages:
            while len(pages) > 1 and int.from_bytes(pages[1][:8], "little") < before_ns:
                pages.popleft()

    def taken(self) -> list[Iterable[bytes]]:
        """The pages of each CPU from 0 on."""
        by_cpu: dict[int, Iterable[bytes]] = dict(zip(self._cpus, self._pages, strict=True))
        for cpu, file in zip(self._cpus, self._written, strict=False):
            file.seek(0)
            by_cpu[cpu] = iter(partial(file.read, PAGE_BYTES), b"")
        return [by_cpu.get(cpu, ()) for cpu in range(max(by_cpu) + 1)]

    def close(self) -> None:
        """An instance can't be removed while its files are open."""
        for descriptor in self._files:
            os.close(descriptor)
        for file in self._written:
            file.close()


def _events_lost(instance: Path) -> int:
    counted = ("overrun", "commit overrun", "dropped events")
    lost = 0
    for path in (instance / "per_cpu").glob("cpu*/stats"):
        for line in path.read_text().splitlines():
            name, _, count = line.partition(":")
            lost += int(count) if name in counted else 0
    return lost


def _command_lines(instance: Path) -> bytes:
    root = instance.parent.parent
    with suppress(OSError):
        return _read(root / "saved_cmdlines")
    return b""


def _read(path: Path) -> bytes:
    return path.read_bytes()


def _write(path: Path, value: str) -> None:
    try:
        path.write_text(value)
    except OSError as error:
        raise MachineError(f"can't be written: {error.strerror}", where=str(path), remedy="run as root") from error
