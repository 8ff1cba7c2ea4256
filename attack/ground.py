"""The ground under a root family's lane: devices, a state directory and the command line, and what must not change."""

import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from family import Attack, Lane
from support.command_line import CommandLine, Outcome
from support.devices import attach, command, loops_backed_under, sparse_file
from support.leftovers import kill_processes

SAID = (0, 1, 2, 3)
"""The exit statuses of a command that was not interrupted."""


class Ground:
    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.directory = lane.directory
        self.state = lane.directory / "state"
        self.state.mkdir(mode=0o700)
        self.work = lane.directory / "work"
        self.work.mkdir()
        self.iolab = CommandLine(cwd=self.work, state_dir=self.state)

    def device(self, name: str, size_bytes: int) -> Path:
        """A new loop device, all zeros."""
        return attach(sparse_file(self.directory / name, size_bytes))

    def clear(self) -> None:
        """Whatever a case left, so that the next begins as the first did."""
        kill_processes(self.state)
        with suppress(subprocess.TimeoutExpired):
            self.iolab("restore", status=None)
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            if line.split()[4].startswith(f"{self.work}/"):
                subprocess.run(["umount", "--lazy", line.split()[4]], capture_output=True, check=False)
        for path in (self.work, self.state):
            remove_inside(path)


@contextmanager
def ground(lane: Lane) -> Iterator[Ground]:
    made = Ground(lane)
    try:
        yield made
    finally:
        made.clear()
        detach_under(lane.directory)


@contextmanager
def lane_on_ground(made: Callable[[Ground], Attack], lane: Lane) -> Iterator[Attack]:
    with ground(lane) as own:
        yield made(own)


def remove_inside(directory: Path) -> None:
    for path in directory.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def detach_under(directory: Path) -> None:
    for device in loops_backed_under(directory):
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            if line.split(" - ")[1].split()[1] == device:
                subprocess.run(["umount", line.split()[4]], capture_output=True, check=False)
        subprocess.run(["losetup", "--detach", device], capture_output=True, check=False)


def digest(path: Path) -> str:
    """The digest of a file's or device's bytes, read past the page cache of another name for it."""
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        with suppress(OSError):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while piece := file.read(1 << 20):
            hashed.update(piece)
    return hashed.hexdigest()


def ill_told(outcome: Outcome, statuses: tuple[int, ...] = SAID) -> list[str]:
    """What is wrong with how a command ended: the status, a traceback, a control character on a terminal."""
    wrong = []
    if outcome.status not in statuses:
        wrong.append(f"exit status {outcome.status}: {outcome.text[-300:]!r}")
    if "Traceback" in outcome.text or "defect in iolab" in outcome.text:
        wrong.append(f"a traceback or defect: {outcome.text[-300:]!r}")
    if found := control_characters(outcome.text):
        wrong.append(f"control characters reach the terminal: {found!r}")
    return wrong


def control_characters(text: str) -> str:
    return "".join(sorted({one for one in text if (one < " " and one not in "\n\t") or "\x7f" <= one < "\xa0"}))


def run_to_end(iolab: CommandLine, *arguments: str | Path, time_limit_s: float = 60.0) -> Outcome:
    """Status 124 when it took too long, and was killed."""
    process = iolab.start_program(*arguments)
    try:
        stdout, stderr = process.communicate(timeout=time_limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        kill_processes(iolab.state_dir)
        return Outcome(124, "", f"still running after {time_limit_s:g} s")
    return Outcome(process.returncode, stdout, stderr)


@contextmanager
def mounted(device: Path, mount_point: Path) -> Iterator[Path]:
    mount_point.mkdir(exist_ok=True)
    command("mount", device, mount_point)
    try:
        yield mount_point
    finally:
        subprocess.run(["umount", mount_point], capture_output=True, check=False)
