"""The undo journal: what to take back is durable before it is done, so that a kill -9 loses nothing.

One file per owner in <state>/undo/ (`undo_file.py`). A last line that a crash tore is no loss, since no change is made
before its line is complete on disk. A line that is damaged is named and stays; the others are undone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from iolab.base import checked_lines
from iolab.base.checked_lines import Lines
from iolab.base.errors import MachineError
from iolab.base.strict_json import JsonObject
from iolab.machines.system import action, bounded_call, life, lock, state, undo_file
from iolab.machines.system.action import Action, CannotUndo, Outcome
from iolab.machines.system.bounded_call import OnWait
from iolab.machines.system.mounts import users_of
from iolab.machines.system.undo_file import UndoFile

OTHERS_PATIENCE_S = 40.0
"""A killed run's child, or another restore, may wait for a busy mount first."""
DYING_PATIENCE_S = 5.0
"""A killed process ends when its I/O in flight has ended: a run that is to begin waits this long."""
STUCK_S = 1.0
"""An I/O may take this long; only longer waits are reported."""
POLL_S = 0.05
MARK_BYTES = 64
"""More than the length of the line that marks an entry as undone."""


class UndoJournal:
    """Use as a context: leaving it takes everything back, in reverse order."""

    latest: ClassVar[UndoJournal | None] = None
    """That this process opened last."""

    @classmethod
    def open(cls) -> UndoJournal:
        """A new, empty journal of this process. Its file is made before the first change: to make it durable and to
        remove it takes longer than a short trial that changes nothing."""
        made = cls(None, [])
        UndoJournal.latest = made
        return made

    def __init__(self, file: UndoFile | None, pending: list[tuple[int, Action]], *, stays: bool = False) -> None:
        """`stays`: the file has lines that only a person can judge."""
        self._made = file
        self._pending = pending
        self._next = 1 + max((number for number, _ in pending), default=-1)
        self._stays = stays
        self.restoring = False
        """Whether what is pending is being undone just now."""
        self._taken_over = False
        self._closed = False

    @property
    def _file(self) -> UndoFile:
        if self._made is None:
            self._made = UndoFile.make(state.state_subdirectory("undo"), {"boot_id": state.boot_id()})
        return self._made

    def before(self, change: Action) -> None:
        """Makes the change's undoing durable, and reserves the room that saying so will take. Only after this may the
        change be made.

        Raises:
            MachineError: the journal cannot be written, so the change must not be made.
            ValueError: restoring would refuse the entry, as it looks like none that iolab makes.
        """
        if not change.is_iolabs_own:
            raise ValueError(f"iolab restore would not undo {action.to_json(change)}")
        if self._taken_over:
            raise MachineError("the trial was given up, so nothing more is changed", where=f"process {os.getpid()}")
        entry = {"number": self._next, "boot_id": state.boot_id(), **action.to_json(change)}
        self._file.reserve(len(checked_lines.encode(entry)) + MARK_BYTES * (1 + len(self._pending)))
        self._file.append(entry)
        self._pending.append((self._next, change))
        self._next += 1

    def restore(self, on_wait: OnWait | None = None) -> tuple[list[Outcome], list[str]]:
        """Undoes all that is pending, newest first. Returns what was done and what could not be undone now; the latter
        stays in the journal for `iolab restore` unless trying again is hopeless. What no longer answers is told to
        `on_wait` and then given up, and the rest is undone."""
        if self._taken_over:
            return [], []
        self.restoring = True
        try:
            return self._undo(on_wait)
        finally:
            self.restoring = False

    def take_over(self) -> tuple[list[Outcome], list[str]]:
        """Undoes all that is pending for an owner, another thread of this process, that waits for a device without end,
        and gives the journal up. The owner makes no change from now on but the one that it may be making; that one's
        entry stays, because it may still be made. Returns what `restore` does."""
        self._taken_over = True
        try:
            return self._undo(None, unsure=self._pending[-1:])
        finally:
            self.close()

    def _undo(
        self, on_wait: OnWait | None, unsure: Sequence[tuple[int, Action]] = ()
    ) -> tuple[list[Outcome], list[str]]:
        outcomes: list[Outcome] = []
        problems: list[str] = []
        kept: list[tuple[int, Action]] = []
        unmarked = None
        held: set[str] = set()
        for number, change in reversed(self._pending):
            if change.order in held:
                kept.insert(0, (number, change))
                continue
            try:
                outcome = _take_back(change, on_wait)
            except CannotUndo as problem:
                problems.append(str(problem))
                if not problem.for_good:
                    kept.insert(0, (number, change))
                    if change.order:
                        held.add(change.order)
                    continue
            else:
                if outcome is not None:
                    outcomes.append(outcome)
            if (number, change) in unsure:
                if (number, change) not in kept:
                    kept.insert(0, (number, change))
                continue
            try:
                self._file.append({"undone": number})
            except MachineError as error:  # undoing the rest matters more than knowing later that this was undone
                unmarked = error
        self._pending = kept
        if unmarked is not None and self._remains:
            problems.append(f"what is undone will be undone again, as the journal does not take it down: {unmarked}")
        return outcomes, problems

    def close(self) -> None:
        """Gives the journal up; its file goes when nothing is pending."""
        if self._closed:
            return
        self._closed = True
        if self._made is None:
            return
        if self._remains:
            self._made.close()
        else:
            self._made.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            self.restore()
        finally:
            self.close()

    @property
    def _remains(self) -> bool:
        return bool(self._pending) or self._stays


def restore_abandoned() -> list[str]:
    """Undoes what dead owners left on this machine. Returns one line for each thing done or not possible."""
    return restore_dead().lines


@dataclass
class Restoration:
    """What restoring came to, a line each."""

    done: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What could not be undone, or not be read; it stays in its journal."""
    living: list[str] = field(default_factory=list)
    """Who will put back their own changes, as "name (pid)", and what of it waits in the kernel."""

    @property
    def lines(self) -> list[str]:
        """What was taken back, then what could not be, a line each."""
        return [*self.done, *self.problems]


def restore_dead(on_wait: OnWait | None = None, *, dying_patience_s: float = DYING_PATIENCE_S) -> Restoration:
    """Undoes what dead owners left on this machine, whatever stands in the way of one of them.

    Args:
        dying_patience_s: how long an owner is waited for that was killed, and has not ended.

    Raises:
        MachineError: others can write the state directory, so its contents are not to be trusted.
    """
    restored = Restoration()
    directory = state.existing_state_subdirectory("undo")
    if directory is None:
        return restored
    undo_file.remove_unfinished(directory)
    for path in _journals(directory):
        try:
            file = _taken_over(path, dying_patience_s, on_wait)
        except MachineError as refused:
            restored.problems.append(str(refused))
            continue
        if file is not None:
            _restore_one(file, restored, on_wait)
        elif path.exists():
            restored.living += [_user_description(user) for user in users_of(path)]
    return restored


def _user_description(user: str) -> str:
    """A process, "name (pid)", with what it waits for, if no signal reaches it."""
    watch = life.Watch()
    began = time.monotonic()
    while True:
        watch.look([int(user.rpartition("(")[2].rstrip(")"))])
        stuck = watch.stuck()
        if not stuck or time.monotonic() - began > STUCK_S:
            named = life.named(task for task, for_s in stuck if for_s > STUCK_S)
            return f"{user}: {named}," if named else user
        time.sleep(POLL_S)


def what_stays(owner: int) -> list[str]:
    """What a living process, or a dead one, still has to undo, newest first: "unmount /mnt"."""
    found = []
    for path in (state.state_directory() / "undo").glob(f"{owner}-*{undo_file.SUFFIX}"):
        with suppress(OSError):
            pending, _ = _pending(undo_file.parsed(path.read_bytes()), path)
            found += [change.to_do for _, change in reversed(pending)]
    return found


@dataclass
class Journals:
    """The undo journals of this user, by whether their owners live."""

    dead: list[Path] = field(default_factory=list)
    """Their owners are dead, and nobody is undoing them."""
    living: list[str] = field(default_factory=list)
    """Who will undo the others, as "name (pid)"."""
    problems: list[str] = field(default_factory=list)
    """Files that are no journals of this user's, a line each."""


def journals() -> Journals:
    """Raises MachineError as `restore_dead`."""
    found = Journals()
    directory = state.existing_state_subdirectory("undo")
    for path in _journals(directory) if directory is not None else []:
        try:
            file = UndoFile.of_dead(path)
        except MachineError as refused:
            found.problems.append(str(refused))
            continue
        if file is not None:
            file.close()
            found.dead.append(path)
        elif (owner := UndoFile.owner(path)) is not None and life.is_dying(owner):
            found.problems.append(str(_does_not_end(path, owner)))
        elif path.exists():
            found.living += users_of(path) or [path.name]
    return found


def _journals(directory: Path) -> list[Path]:
    return sorted(directory.glob(f"*{undo_file.SUFFIX}"))


def _taken_over(path: Path, dying_patience_s: float, on_wait: OnWait | None) -> UndoFile | None:
    """The file of a dead owner. One that was killed and has not ended is waited for, and who is putting back the same.
    None: there is nothing to do.

    Raises:
        MachineError: not this user's file, or the other does not come to an end.
    """
    began = time.monotonic()
    spoken = False
    while True:
        file = UndoFile.of_dead(path)
        owner = UndoFile.owner(path)
        if file is not None or not path.exists() or (owner is not None and not life.is_dying(owner)):
            return file
        waited_s = time.monotonic() - began
        if waited_s > (OTHERS_PATIENCE_S if owner is None else dying_patience_s):
            raise _does_not_end(path, owner)
        if on_wait is not None and owner is not None and not spoken and waited_s > bounded_call.SPEAK_AFTER_S:
            on_wait(f"process {owner} was killed and has not ended; it is given up after {dying_patience_s:.0f} s")
            spoken = True
        time.sleep(POLL_S)


def _does_not_end(path: Path, owner: int | None) -> MachineError:
    if owner is None:
        who = ", ".join(users_of(path)) or "another process"
        return MachineError(
            f"{who} is changing this, or putting it back", where=str(path), remedy="see what it waits for"
        )
    stuck = life.named(task for task in life.tasks_of([owner]) if task.is_stuck)
    text = f": {stuck}" if stuck else ""
    return MachineError(
        f"process {owner} was killed, but has not ended{text}; what it changed can be put back only then",
        where=str(path),
        remedy="when it has ended: iolab restore",
    )


def _restore_one(file: UndoFile, restored: Restoration, on_wait: OnWait | None) -> None:
    pending, unreadable = _pending(file.read(), file.path)
    with ExitStack() as held:
        free, withheld = _with_locks(pending, held)
        journal = UndoJournal(file, free, stays=bool(unreadable or withheld))
        outcomes, problems = journal.restore(on_wait)
        journal.close()
    restored.done += [outcome.line for outcome in outcomes]
    restored.problems += [*problems, *withheld, *unreadable]


def _with_locks(pending: list[tuple[int, Action]], held: ExitStack) -> tuple[list[tuple[int, Action]], list[str]]:
    """The changes that can be undone now, since no living run is changing the same, which the locks see to; and a line
    for whatever lock somebody else has."""
    refused: dict[str, str] = {}
    taken: set[str] = set()
    free = []
    for number, change in pending:
        shared = change.shared
        if shared is not None and shared not in taken | refused.keys():
            try:
                held.enter_context(lock.of_shared(shared))
                taken.add(shared)
            except MachineError as error:
                refused[shared] = f"not put back now: {error}"
        if shared is None or shared in taken:
            free.append((number, change))
    return free, list(refused.values())


def _take_back(change: Action, on_wait: OnWait | None) -> Outcome | None:
    """Undoes one change. Whatever goes wrong with one must not stop the others: all is CannotUndo."""
    try:
        return bounded_call.call(change.undo, doing=change.to_do, on_wait=on_wait)
    except CannotUndo:
        raise
    except MachineError as error:
        raise CannotUndo(str(error)) from error
    except Exception as error:
        raise CannotUndo(f"cannot undo {action.to_json(change)}: {error!r}") from error


def _pending(lines: Lines, path: Path) -> tuple[list[tuple[int, Action]], list[str]]:
    """What is still to be undone, and a line for each of the file's lines that cannot be read."""
    unreadable = [_kept(path, line, reason) for line, reason in lines.damaged]
    boot_id = state.boot_id()
    boot_of_all = next((entry["boot_id"] for entry in lines.entries if "boot_id" in entry), None)
    undone = {entry["undone"] for entry in lines.entries if isinstance(entry.get("undone"), int)}
    pending = []
    for line, entry in zip(lines.numbers, lines.entries, strict=True):
        fields: JsonObject = dict(entry)
        number, boot_of_this = fields.pop("number", None), fields.pop("boot_id", boot_of_all)
        if "action" not in fields or (isinstance(number, int) and number in undone):
            continue
        try:
            change = action.from_json(fields)
        except CannotUndo as unknown:
            unreadable.append(_kept(path, line, str(unknown)))
            continue
        if not isinstance(number, int):
            unreadable.append(_kept(path, line, f"no number: {entry}"))
        elif change.outlives_reboot or boot_of_this == boot_id:
            pending.append((number, change))
    return pending, unreadable


def _kept(path: Path, line: int, reason: str) -> str:
    return f"{path}:{line}: {reason}; kept: when nothing of it is left to undo, rm {path}"
