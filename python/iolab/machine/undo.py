"""The undo journal: what to take back is durable before it is done, so that a kill -9 loses nothing.

One JSON-lines file per owner in <state>/undo/. The owner holds a flock on its file: a file that can be locked has a
dead owner. A last line that a crash tore is no loss, since no change is made before its line is complete on disk.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from iolab.errors import MachineError
from iolab.machine import action, state
from iolab.machine.action import Action, CannotUndo, Outcome


class UndoJournal:
    """Use as a context: leaving it takes everything back, in reverse order."""

    @classmethod
    def open(cls) -> UndoJournal:
        """A new, empty journal of this process."""
        directory = state.state_subdirectory("undo")
        path = directory / f"{os.getpid()}-{secrets.token_hex(4)}.jsonl"
        with _directory_locked(directory):
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            journal = cls(path, fd, [])
            journal._append({"boot_id": state.boot_id(), "pid": os.getpid()})
            _sync_directory(directory)
        return journal

    def __init__(self, path: Path, fd: int, pending: list[tuple[int, Action]]) -> None:
        self.path = path
        self._fd = fd
        self._pending = pending
        self._next = 1 + max((number for number, _ in pending), default=-1)

    def before(self, change: Action) -> None:
        """Makes the change's undoing durable. Only after this may the change be made.

        Raises:
            MachineError: the journal cannot be written, so the change must not be made.
        """
        self._append({"number": self._next, **action.to_json(change)})
        self._pending.append((self._next, change))
        self._next += 1

    def restore(self) -> tuple[list[Outcome], list[str]]:
        """Undoes all that is pending, newest first. Returns what was done and what could not be undone now; the latter
        stays in the journal for `iolab restore` unless trying again is hopeless."""
        outcomes: list[Outcome] = []
        problems: list[str] = []
        kept: list[tuple[int, Action]] = []
        for number, change in reversed(self._pending):
            try:
                outcome = change.undo()
            except CannotUndo as problem:
                problems.append(str(problem))
                if not problem.for_good:
                    kept.insert(0, (number, change))
                    continue
            else:
                if outcome is not None:
                    outcomes.append(outcome)
            self._append({"undone": number})
        self._pending = kept
        return outcomes, problems

    def close(self) -> None:
        """Gives the journal up; its file goes when nothing is pending."""
        if not self._pending:
            self.path.unlink(missing_ok=True)
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            self.restore()
        finally:
            self.close()

    def _append(self, entry: dict[str, Any]) -> None:
        try:
            os.write(self._fd, (json.dumps(entry) + "\n").encode())
            os.fsync(self._fd)
        except OSError as error:
            raise MachineError(f"cannot write the undo journal: {error.strerror}", where=str(self.path)) from error


def restore_abandoned() -> list[str]:
    """Undoes what dead owners left on this machine. Returns one line for each thing done or not possible."""
    directory = state.state_directory() / "undo"
    if not directory.is_dir():
        return []
    lines: list[str] = []
    with _directory_locked(directory):
        for path in sorted(directory.glob("*.jsonl")):
            lines.extend(_restore_one(path))
    return lines


def abandoned() -> list[Path]:
    """Journals whose owner is dead."""
    directory = state.state_directory() / "undo"
    found = []
    for path in sorted(directory.glob("*.jsonl")) if directory.is_dir() else []:
        fd = _lock_if_dead(path)
        if fd is not None:
            os.close(fd)
            found.append(path)
    return found


def _restore_one(path: Path) -> list[str]:
    fd = _lock_if_dead(path)
    if fd is None:
        return []
    entries, torn = _read(path)
    rebooted = any("boot_id" in entry and entry["boot_id"] != state.boot_id() for entry in entries)
    pending, lines = _pending(entries, rebooted)
    if torn:
        os.write(fd, b"\n")
    journal = UndoJournal(path, fd, pending)
    outcomes, problems = journal.restore()
    if lines:
        os.close(fd)  # entries of another version of iolab: the file stays for that version
    else:
        journal.close()
    return [*lines, *(outcome.line for outcome in outcomes), *problems]


def _read(path: Path) -> tuple[list[dict[str, Any]], bool]:
    """The complete entries, and whether the last line was torn."""
    text = path.read_text(errors="replace")
    entries = []
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # torn: its change was never made
        if isinstance(entry, dict):
            entries.append(entry)
    return entries, bool(text) and not text.endswith("\n")


def _pending(entries: list[dict[str, Any]], rebooted: bool) -> tuple[list[tuple[int, Action]], list[str]]:
    undone = {entry["undone"] for entry in entries if "undone" in entry}
    pending, lines = [], []
    for entry in entries:
        number = entry.pop("number", None)
        if number is None or number in undone:
            continue
        try:
            change = action.from_json(entry)
        except CannotUndo as unknown:
            lines.append(str(unknown))
            continue
        if change.outlives_reboot or not rebooted:
            pending.append((number, change))
    return pending, lines


def _lock_if_dead(path: Path) -> int | None:
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


@contextmanager
def _directory_locked(directory: Path) -> Iterator[None]:
    """So that nobody takes a journal that is just being made for a dead one's, and nobody undoes twice."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
