"""Files and directories: they outlive a reboot."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from iolab.machine import loop
from iolab.machine.action.base import Action, CannotUndo, Outcome, refusal
from iolab.machine.mounts import mounts_below

MARKER = ".iolab"
"""The file that says iolab made a directory; it holds the directory's token."""


@dataclass(frozen=True)
class TruncateFile(Action):
    """An existing file was written past its end."""

    path: str
    size_bytes: int
    outlives_reboot: ClassVar[bool] = True

    def undo(self) -> Outcome | None:
        with refusal(f"truncate {self.path}"), contextlib.suppress(FileNotFoundError):
            if Path(self.path).stat().st_size > self.size_bytes:
                os.truncate(self.path, self.size_bytes)
                return Outcome(f"truncated {self.path} to {self.size_bytes} bytes")
        return None


@dataclass(frozen=True)
class RemoveFile(Action):
    """A file was made where there was none."""

    path: str
    outlives_reboot: ClassVar[bool] = True

    def undo(self) -> Outcome | None:
        with refusal(f"remove {self.path}"), contextlib.suppress(FileNotFoundError):
            Path(self.path).unlink()
            return Outcome(f"removed {self.path}")
        return None


@dataclass(frozen=True)
class RemoveTree(Action):
    """A directory was made. Removed with what is in it only when its marker carries the token, nothing is mounted
    inside and no loop device uses a file inside."""

    path: str
    token: str
    outlives_reboot: ClassVar[bool] = True

    def undo(self) -> Outcome | None:
        path = Path(self.path)
        try:
            if not path.is_dir():
                return None
            self._check_unused(path)
            if not (path / MARKER).exists():
                path.rmdir()  # killed before the marker was written: the directory is empty, or it isn't ours
            elif (path / MARKER).read_text().strip() == self.token:
                _remove_marker_last(path)
            else:
                raise CannotUndo(f"{path} has another marker and is left alone", for_good=True)
        except OSError as error:
            raise CannotUndo(f"cannot remove {path}: {error.strerror}") from error
        return Outcome(f"removed {path}")

    def _check_unused(self, path: Path) -> None:
        inside = mounts_below(path.resolve())
        if inside:
            raise CannotUndo(f"cannot remove {path}: {inside[-1].mount_point} is still mounted")
        for device in loop.attached():
            if device.backing_file.startswith(f"{path}/") and not device.detaches_on_last_close:
                raise CannotUndo(f"cannot remove {path}: {device.node} still uses {device.backing_file}")


def _remove_marker_last(path: Path) -> None:
    """A kill half-way must leave a directory that still says whose it is."""
    for entry in path.iterdir():
        if entry.name == MARKER:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    (path / MARKER).unlink()
    path.rmdir()
