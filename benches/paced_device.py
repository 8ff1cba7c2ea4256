"""A block device of known timing: a loop device on a file whose reads and writes take what a device's file says.

The file lies on a filesystem in user space (/dev/fuse, without a library), served by a process of its own that reads as
zeros, forgets writes, and answers each command when its device would have. The device is one of machines/devices/ of
kind `disk` (one arm, first come, no cache), or `lun` (equal servers, no cache), by the rules of docs/model/disk.md and
docs/model/lun.md, so that the simulated machine has the same by construction. Nothing but those rules is in the time.

    benches/paced_device.py FILE DEVICE.toml        serves FILE until the end of standard input, then states what it saw
"""

import ctypes
import heapq
import itertools
import json
import math
import os
import select
import struct
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from iolab.machines.system import driver_tags

SECTOR_BYTES = 512
GETATTR, OPEN, READ, WRITE, STATFS, INIT, INTERRUPT, FORGET, BATCH_FORGET = 3, 14, 15, 16, 17, 26, 36, 2, 42
EMPTY_REPLIES = frozenset({18, 20, 25, 38})
"""Release, fsync, flush, destroy."""
ENOSYS = 38
ASYNC_READ, BIG_WRITES, ASYNC_DIO, MAX_PAGES = 1 << 0, 1 << 5, 1 << 15, 1 << 22
HEADER = struct.Struct("<IIQQIIIHH")
ANSWER = struct.Struct("<IiQ")
IO = struct.Struct("<QQIIQII")
LONGEST = 1 << 20
SPIN_S = 150e-6
"""Shorter than this, waiting is looking at the clock: a sleep ends too late."""

Rule = Callable[[float, int, int], float]
"""(arrival, first sector, sectors) -> end; in seconds of the monotonic clock. Commands come in order of arrival."""


# -- The rules ---------------------------------------------------------------------------------------------------------


def rule_of(device: dict[str, Any]) -> tuple[Rule, int, int]:
    """A device's file as a rule; its bytes, and the commands that it takes at once."""
    match device["kind"]:
        case "disk":
            return arm(device), disk_bytes(device), device["queue"]["depth"]
        case "lun":
            return servers(device), device["capacity_bytes"], device["queue_depth"]
    raise ValueError(f"no rule for a {device['kind']}")


def disk_bytes(disk: dict[str, Any]) -> int:
    (zone,) = disk["zones"]
    return int(zone["cylinders"] * zone["sectors_per_track"] * SECTOR_BYTES)


def arm(disk: dict[str, Any]) -> Rule:
    """Seek, wait for the sector, transfer; one command after the other."""
    (zone,) = disk["zones"]
    assert disk["surfaces"] == 1 and disk["cache"]["segments"] == 0 and not disk["cache"]["write_back"]
    assert disk["queue"]["order"] == "first_come"
    turn_s: float = 60 / disk["revolutions_per_minute"]
    track: int = zone["sectors_per_track"]
    points = [(point["cylinders"], point["time_ns"] / 1e9) for point in disk["seeks"]]
    skew = math.ceil(seek_s(points, 1) / turn_s * track)
    free_at, cylinder = 0.0, 0

    def serve(arrived: float, first: int, sectors: int) -> float:
        nonlocal free_at, cylinder
        to, inside = divmod(first, track)
        at = max(arrived, free_at) + seek_s(points, abs(to - cylinder))
        angle = (inside + to * skew) / track
        at += (angle - at / turn_s) % 1.0 * turn_s
        crossed = (inside + sectors - 1) // track
        free_at = at + (sectors + crossed * skew) / track * turn_s
        cylinder = to + crossed
        return free_at

    return serve


def seek_s(points: list[tuple[int, float]], distance: int) -> float:
    """Through the points, in the logarithm of the distance; level before the first and beyond the last."""
    if distance == 0:
        return 0.0
    if distance <= points[0][0]:
        return points[0][1]
    for (low, low_s), (high, high_s) in itertools.pairwise(points):
        if distance < high:
            return low_s + (high_s - low_s) * math.log(distance / low) / math.log(high / low)
    return points[-1][1]


def servers(lun: dict[str, Any]) -> Rule:
    """Each access takes one of the servers for its time."""
    assert lun["cache"]["read_bytes"] == lun["cache"]["write_bytes"] == 0
    access_s: float = lun["back_end"]["access_ns"] / 1e9
    free_at: list[float] = [0.0] * lun["back_end"]["servers"]

    def serve(arrived: float, _first: int, _sectors: int) -> float:
        end = max(arrived, free_at[0]) + access_s
        heapq.heapreplace(free_at, end)
        return end

    return serve


# -- The process that serves it ----------------------------------------------------------------------------------------


def serve_file(path: Path, device: dict[str, Any]) -> None:
    rule, size, _ = rule_of(device)
    fuse = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
    mount(path, fuse)
    print("mounted", flush=True)
    # Late answers would be the host's business, not the device's.
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    seen = Served(fuse, rule, size)
    seen.until_end_of(sys.stdin.fileno())
    print(json.dumps({"commands": seen.commands, "most_at_once": seen.most, "late_us": seen.late_us()}), flush=True)


class Served:
    """Commands in, answers out when they are due."""

    def __init__(self, fuse: int, rule: Rule, size: int) -> None:
        self._fuse, self._rule, self._size = fuse, rule, size
        self._due: list[tuple[float, int, bytes]] = []
        self._late: list[float] = []
        self._zeros = bytes(LONGEST)
        self.commands = 0
        self.most = 0

    def late_us(self) -> dict[str, float]:
        """How late answers were, against the rule."""
        late = sorted(self._late) or [0.0]
        return {
            name: round(late[int(share * (len(late) - 1))] * 1e6, 1) for name, share in (("p50", 0.5), ("p99", 0.99))
        }

    def until_end_of(self, stdin: int) -> None:
        while True:
            wait = self._due[0][0] - time.monotonic() - SPIN_S if self._due else None
            timeout = None if wait is None else max(wait, 0.0)
            ready, _, _ = select.select([self._fuse, stdin], [], [], timeout)
            if self._fuse in ready and not self._take():
                return
            self._answer_due()
            if stdin in ready and not os.read(stdin, 1):
                return

    def _take(self) -> bool:
        """Takes all that wait; False when the filesystem is gone."""
        while True:
            try:
                message = os.read(self._fuse, LONGEST + 4096)
            except BlockingIOError:
                return True
            except InterruptedError:
                continue
            except OSError as error:
                if error.errno == 2:  # it was interrupted before it was read
                    continue
                return False
            self._handle(time.monotonic(), message)

    def _handle(self, now: float, message: bytes) -> None:
        _, opcode, unique, _, _, _, _, _, _ = HEADER.unpack_from(message)
        if opcode in (READ, WRITE):
            _, offset, size, *_ = IO.unpack_from(message, HEADER.size)
            due = self._rule(now, offset // SECTOR_BYTES, size // SECTOR_BYTES)
            body = self._zeros[:size] if opcode == READ else struct.pack("<II", size, 0)
            heapq.heappush(self._due, (due, unique, body))
            self.commands += 1
            self.most = max(self.most, len(self._due))
        elif opcode == INIT:
            major, minor, ahead, _ = struct.unpack_from("<IIII", message, HEADER.size)
            flags = ASYNC_READ | BIG_WRITES | ASYNC_DIO | MAX_PAGES
            body = struct.pack("<IIIIHHIIHHI", major, minor, ahead, flags, 1024, 1024, LONGEST, 1, 256, 0, 0)
            self._reply(unique, body.ljust(64, b"\0"))
        elif opcode == GETATTR:
            own = struct.pack(
                "<QQQQQQIIIIIIIIII", 1, self._size, self._size // 512, *[0] * 6, 0o100600, 1, 0, 0, 0, 4096, 0
            )
            self._reply(unique, struct.pack("<QII", 3600, 0, 0) + own)
        elif opcode == OPEN:
            self._reply(unique, struct.pack("<QIi", 1, 0, 0))
        elif opcode == STATFS:
            self._reply(unique, bytes(80))
        elif opcode in EMPTY_REPLIES:
            self._reply(unique, b"")
        elif opcode not in (INTERRUPT, FORGET, BATCH_FORGET):
            self._reply(unique, b"", error=-ENOSYS)

    def _answer_due(self) -> None:
        while self._due and self._due[0][0] - time.monotonic() <= SPIN_S:
            due, unique, body = heapq.heappop(self._due)
            while (late := time.monotonic() - due) < 0:
                pass
            self._reply(unique, body)
            self._late.append(late)

    def _reply(self, unique: int, body: bytes, *, error: int = 0) -> None:
        with suppress(OSError):  # it was given up
            os.write(self._fuse, ANSWER.pack(ANSWER.size + len(body), error, unique) + body)


def mount(path: Path, fuse: int) -> None:
    """Mounted over a regular file, because the filesystem's root is a file too."""
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={fuse},rootmode=100600,user_id=0,group_id=0,allow_other".encode()
    if libc.mount(b"iolab-paced", os.fsencode(path), b"fuse", 2 | 4, options):  # nosuid, nodev
        raise OSError(ctypes.get_errno(), "mount of a filesystem in user space", str(path))


# -- The block device --------------------------------------------------------------------------------------------------


class Paced:
    """The block device, while it is there; afterwards what its server saw."""

    def __init__(self, device: Path) -> None:
        self.device = device
        self.seen: dict[str, Any] = {}


@contextmanager
def paced(directory: Path, device_file: Path) -> Iterator[Paced]:
    """A loop device that takes as many commands at once as the device does. Needs root."""
    device = tomllib.loads(device_file.read_text())
    _, _, depth = rule_of(device)
    backing = directory / "paced"
    backing.touch()
    server = subprocess.Popen(
        [sys.executable, __file__, str(backing), str(device_file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None and server.stdout is not None
    loop = None
    try:
        if server.stdout.readline() != "mounted\n":
            raise RuntimeError("the filesystem in user space was not mounted")
        loop = Paced(Path(system("losetup", "--find", "--show", "--direct-io=on", str(backing)).strip()))
        queue = Path("/sys/block") / loop.device.name / "queue"
        before = {name: chosen(queue / name) for name in ("scheduler", "nr_requests", "rotational")}
        # Without a scheduler nr_requests is the depth of the device, which stays when one is set.
        # Both kinds are rotational to the simulated machine.
        write(queue, {"scheduler": "none", "nr_requests": depth, "rotational": 1})
        try:
            yield loop
        finally:
            write(queue, {"scheduler": "none", "nr_requests": before["nr_requests"], **before})
    finally:
        if loop is not None:
            system("losetup", "--detach", str(loop.device))
        server.stdin.close()
        told = server.stdout.read()
        server.wait(timeout=30)
        subprocess.run(["umount", "--lazy", str(backing)], check=False, capture_output=True)
        if loop is not None and told:
            loop.seen.update(json.loads(told))


def write(queue: Path, tunables: dict[str, object]) -> None:
    for name, value in tunables.items():
        if name == "nr_requests":
            driver_tags.write(queue / name, str(value))
        else:
            (queue / name).write_text(str(value))


def chosen(attribute: Path) -> str:
    """The chosen word of a choice such as `none [bfq]`."""
    text = attribute.read_text().strip()
    return text.partition("[")[2].partition("]")[0] or text


def system(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    serve_file(Path(sys.argv[1]), tomllib.loads(Path(sys.argv[2]).read_text()))
