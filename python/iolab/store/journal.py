"""The journal of a run: what happened when, a JSON object per line, appended and synced before anything relies on it.

A kill can tear the last line only. Reading tolerates that and says so; the next writer cuts the torn line off and
records that it did.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iolab.errors import InputError
from iolab.store.durable import refusals_explained, sync_directory

Event = dict[str, Any]
"""`event` (its name), `wall_unix_ns`, `monotonic_ns` (since the machine's boot), and what belongs to the event."""


@dataclass(frozen=True)
class Clocks:
    """Where an event's times come from. Durations are differences of the monotonic clock; the wall clock may jump."""

    wall_unix_ns: Callable[[], int] = time.time_ns
    monotonic_ns: Callable[[], int] = time.monotonic_ns


class Journal:
    """The one writer of a run's journal. Holds an exclusive lock on it until closed or killed."""

    def __init__(self, path: Path, *, clocks: Clocks | None = None) -> None:
        """Opens `path`, made if absent. InputError if another process writes it."""
        self.path = path
        self._clocks = clocks or Clocks()
        is_new = not path.exists()
        self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise InputError(
                "another iolab is running here", where=str(path.parent), remedy="wait for it or stop it first"
            ) from None
        if is_new:
            sync_directory(path.parent)
        self._cut_torn_tail()

    def append(self, event: str, **content: Any) -> Event:
        """Writes one event; on return it survives a power cut. MachineError if the disk refuses."""
        entry: Event = {
            "event": event,
            "wall_unix_ns": self._clocks.wall_unix_ns(),
            "monotonic_ns": self.monotonic_ns(),
            **content,
        }
        line = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        with refusals_explained(self.path):
            while line:
                line = line[os.write(self._descriptor, line) :]
            os.fsync(self._descriptor)
        return entry

    def monotonic_ns(self) -> int:
        """The clock that durations are taken from."""
        return self._clocks.monotonic_ns()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _cut_torn_tail(self) -> None:
        content = self.path.read_bytes()
        whole_bytes = content.rfind(b"\n") + 1
        if whole_bytes < len(content):
            os.ftruncate(self._descriptor, whole_bytes)
            self.append("torn_line_cut", bytes=len(content) - whole_bytes)


@dataclass
class Contents:
    """What a journal says, and what is wrong with it, a line each."""

    events: list[Event] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_journal(path: Path) -> Contents:
    """Reads every whole line; torn and unreadable lines are named in `problems` and left out.

    OSError if the file can't be read at all.
    """
    contents = Contents()
    lines = path.read_bytes().split(b"\n")
    torn = lines.pop()
    for number, line in enumerate(lines, start=1):
        event = _parse(line)
        if event is None:
            contents.problems.append(f"{path.name}:{number}: not a journal entry, left out")
        else:
            contents.events.append(event)
    if torn:
        contents.problems.append(
            f"{path.name}:{len(lines) + 1}: torn last line ({len(torn)} bytes), left out; "
            "its trial's file is still read, and a resumed run goes on from here"
        )
    return contents


def _parse(line: bytes) -> Event | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None
