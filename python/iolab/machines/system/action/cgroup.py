"""Control groups."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from typing_extensions import override

from iolab.machines.system import lock
from iolab.machines.system.action.base import Action, CannotUndo, Outcome, refusal
from iolab.machines.system.action.path import CGROUP, is_kernels, missing_tree, require_mounted

CONTROLLERS = ("io", "memory", "cpu")
CGROUP_PATIENCE_S = 10.0
"""A killed process leaves its group when its I/O is done."""


@dataclass(frozen=True)
class RemoveCgroup(Action):
    """A control group was made, for processes of iolab's own: what is still in it is killed. Idempotent, since the
    group's name is unique."""

    path: str
    ended: ClassVar = "killed"
    """What becomes of a process in it."""

    @property
    @override
    def to_do(self) -> str:
        return f"remove the control group {self.path}"

    @property
    @override
    def is_iolabs_own(self) -> bool:
        path = Path(self.path)
        named = CGROUP.fullmatch(path.name) is not None and ".." not in path.parts
        return named and (missing_tree(path) is not None or is_kernels(path))

    @override
    def undo(self) -> Outcome | None:
        path = Path(self.path)
        require_mounted(path)
        found: set[int] = set()
        deadline = time.monotonic() + CGROUP_PATIENCE_S
        while path.is_dir():
            for pid in processes_in(path):
                with contextlib.suppress(ProcessLookupError):
                    self._end(pid)
                    found.add(pid)
            try:
                path.rmdir()
            except FileNotFoundError:
                break
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > deadline:
                    raise CannotUndo(f"cannot remove the control group {path}: {error.strerror}") from error
                time.sleep(0.02)
            else:
                what = f", {self.ended} {len(found)}" if found else ""
                return Outcome(f"removed the control group {path}{what}")
        return None

    def _end(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True)
class LeaveCgroup(RemoveCgroup):
    """The same of a group that the processes of the one above it were moved to: they go back."""

    ended: ClassVar = "moved back"

    @override
    def _end(self, pid: int) -> None:
        with refusal(f"move process {pid} out of {self.path}"):
            move(pid, Path(self.path).parent)


@dataclass(frozen=True)
class DisableController(Action):
    """A controller was enabled for the groups below one of version 2."""

    subtree_control: str
    controller: str

    @property
    @override
    def to_do(self) -> str:
        return f"disable {self.controller} in {self.subtree_control}"

    @property
    @override
    def is_iolabs_own(self) -> bool:
        file = Path(self.subtree_control)
        named = file.name == "cgroup.subtree_control" and self.controller in CONTROLLERS and ".." not in file.parts
        return named and (missing_tree(file) is not None or is_kernels(file))

    @property
    @override
    def shared(self) -> str | None:
        return lock.MACHINE

    @override
    def undo(self) -> Outcome | None:
        file = Path(self.subtree_control)
        require_mounted(file)
        with refusal(f"disable {self.controller} in {file}"), contextlib.suppress(FileNotFoundError):
            if self.controller in file.read_text().split():
                file.write_text(f"-{self.controller}")
                if self.controller in file.read_text().split():
                    raise CannotUndo(f"{file} still has {self.controller} although it was disabled")
                return Outcome(f"disabled {self.controller} in {file}")
        return None


def move(pid: int, cgroup: Path) -> None:
    """With all its threads. ProcessLookupError if it has ended, OSError if the kernel refuses."""
    (cgroup / "cgroup.procs").write_text(str(pid))


def processes_in(cgroup: Path) -> list[int]:
    """None of a group that is gone."""
    try:
        return [int(line) for line in (cgroup / "cgroup.procs").read_text().splitlines()]
    except OSError:
        return []
