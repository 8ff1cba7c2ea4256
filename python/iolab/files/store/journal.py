"""The journal of a run: what happened when, a JSON object per line, appended and synced before anything relies on it.

Each line has a checksum (`checked_lines`), so that a damaged one is known and named, and the rest is read. A kill can
tear the last line only. Reading tolerates that and reports it; the next writer cuts the torn line off and records that
it did.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from iolab.base import beneath, checked_lines, replaceable
from iolab.base.bounded_file import read_bounded
from iolab.base.durable import REMEDY, sync_directory
from iolab.base.errors import InputError
from iolab.files.store import event as events
from iolab.files.store.event import Event

JOURNAL_BYTES_MAX = 2**30
"""A million trials."""
FORMAT_WITHOUT_SUMS = 1
FORMAT = 2
"""The lines have checksums."""
FORMATS = (FORMAT_WITHOUT_SUMS, FORMAT)
"""The formats of runs that are read and continued."""


@dataclass(frozen=True)
class Clocks:
    """Where an event's times come from. Durations are differences of the monotonic clock; the wall clock may jump."""

    wall_unix_ns: Callable[[], int] = time.time_ns
    monotonic_ns: Callable[[], int] = time.monotonic_ns


class Journal:
    """The one writer of a run's journal. Holds an exclusive lock on it until closed or killed."""

    def __init__(self, path: Path, *, clocks: Clocks | None = None) -> None:
        """Opens `path`, made if absent. InputError if another process writes it, it is no file of the run's own,
        or root would write where others can put something in the way."""
        replaceable.refuse_strangers(path.parent)
        self.path = path
        self._clocks = clocks or Clocks()
        is_new = not os.path.lexists(path)
        self._descriptor = _opened(path)
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

    def append(self, event: str, *, synced: bool = True, **content: object) -> Event:
        """Writes one event; on return it survives a power cut. What nothing relies on before the next event need not be
        `synced`: it survives with that one. MachineError if the disk refuses."""
        entry: Event = {
            "event": event,
            "wall_unix_ns": self._clocks.wall_unix_ns(),
            "monotonic_ns": self.monotonic_ns(),
            **content,
        }
        checked_lines.append(self._descriptor, entry, where=str(self.path), remedy=REMEDY, synced=synced)
        return entry

    def monotonic_ns(self) -> int:
        """The clock that durations are taken from."""
        return self._clocks.monotonic_ns()

    def close(self) -> None:
        """Closes the file, which lets others write to it; nothing the second time."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _cut_torn_tail(self) -> None:
        content = read_bounded(self.path, JOURNAL_BYTES_MAX, "a journal", within=self.path.parent)
        whole_bytes = checked_lines.read(content, is_earlier=_is_earlier).whole_bytes
        if whole_bytes < len(content):
            os.ftruncate(self._descriptor, whole_bytes)
            self.append("torn_line_cut", bytes=len(content) - whole_bytes)


def _opened(path: Path) -> int:
    """A descriptor that appends. A link would have lines written to, and cut off, somebody's file elsewhere."""
    try:
        return beneath.open_file(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, mode=0o644)
    except PermissionError:
        raise
    except OSError as error:
        raise InputError(f"cannot write it: {error.strerror}", where=str(path), remedy=REMEDY) from None


@dataclass
class Contents:
    """The content of a journal, and what is wrong with it, a line each."""

    events: list[Event] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_journal(path: Path, within: Path | None = None) -> Contents:
    """Reads every whole line; torn, damaged and unreadable ones are named in `problems` and left out.

    Args:
        within: below it, by default the journal's directory, no link is followed.

    Raises:
        InputError: the file can't be read at all.
    """
    content = read_bounded(path, JOURNAL_BYTES_MAX, "a journal", within=within or path.parent)
    lines = checked_lines.read(content, is_earlier=_is_earlier)
    contents = Contents()
    damaged = list(lines.damaged)
    for number, event in zip(lines.numbers, lines.entries, strict=True):
        try:
            events.check(event)
        except ValueError as error:
            damaged.append(checked_lines.DamagedLine(number, str(error)))
        else:
            contents.events.append(event)
    contents.problems += [f"{path.name}:{number}: {reason}, left out" for number, reason in sorted(damaged)]
    if lines.torn_end:
        contents.problems.append(
            f"{path.name}:{len(lines.numbers) + len(lines.damaged) + 1}: "
            f"torn last line ({lines.torn_bytes} bytes), left out; "
            "its trial's file is still read, and a resumed run continues from here"
        )
    return contents


def _is_earlier(header: Event) -> bool:
    """Whether the run is from before lines had checksums."""
    return header.get("event") == "run_started" and header.get("format") == FORMAT_WITHOUT_SUMS
