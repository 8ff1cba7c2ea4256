"""Runs a trial on this machine: lock, safety, target, controls, phases, record, and everything restored after.

Each step that changes something is in the undo journal before it is taken. Whatever ends the trial (its end, an error,
a signal), the journal is undone in reverse; after a kill -9 `restore_abandoned` does it.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iolab import control
from iolab.control import Applied, Context, Impossible
from iolab.errors import IolabError
from iolab.executor import OnProgress, Progress, ShouldStop
from iolab.machine import describe, lock, outcome, probing, runner, site
from iolab.machine.site import Site
from iolab.machine.surroundings import Surroundings
from iolab.machine.undo import UndoJournal
from iolab.phase_record import failures_of
from iolab.record import Fault, Record
from iolab.trial import Phase, Trial


def execute(trial: Trial, *, on_progress: OnProgress, should_stop: ShouldStop, locked: bool = False) -> Record:
    """Runs the trial and returns its record; status `interrupted` when `should_stop` became true.

    Args:
        locked: the caller holds the target's lock (`lock.of_target`).

    Raises:
        InputError, MachineError: the trial cannot run; everything is restored.
    """
    run = _Run(trial, on_progress, should_stop, time.time_ns())
    amended = control.amend(trial)
    with ExitStack() as stack:
        if not locked:
            stack.enter_context(lock.of_target(trial.target))
        undo = stack.enter_context(UndoJournal.open())
        try:
            run.prepare_and_load(amended, undo, stack)
        except Impossible as reason:
            run.absent = {reason.control: str(reason)}
        except IolabError:
            if not should_stop():
                raise
            run.interrupted = True
        finally:
            on_progress(Progress(phase="", doing="restoring"))
            run.restored(undo)
    return run.record()


@dataclass
class _Run:
    """What accumulates towards the record."""

    trial: Trial
    on_progress: OnProgress
    should_stop: ShouldStop
    started_unix_ns: int
    applied: dict[str, Applied] = field(default_factory=dict)
    phases: list[dict[str, Any]] = field(default_factory=list)
    observed: dict[str, Any] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    absent: dict[str, str] = field(default_factory=dict)
    """The control that is not to be had here, and why; the trial is then impossible."""
    failed: bool = False
    """A phase failed as a whole, or laying out went wrong: to measure what was not written as asked would be a lie."""

    def prepare_and_load(self, amended: Trial, undo: UndoJournal, stack: ExitStack) -> None:
        self.on_progress(Progress(phase="", doing="preparing"))
        where = site.prepare(amended.target, amended.phases, undo, stack)
        self.notes += where.notes
        if control.reaches(amended.controls, "machine"):
            stack.enter_context(lock.of_machine())
        if control.reaches(amended.controls, "queue"):
            for disk in sorted({place.device.disk.name for place in where.places if place.device is not None}):
                stack.enter_context(lock.of_queue(disk))
        contexts = [Context(place.label, place.device, undo, stack) for place in where.places]
        self.applied = control.apply(amended.controls, *contexts)
        self.notes += [note for change in self.applied.values() for note in change.notes]
        phases = site.place(where, control.place(amended.phases, self.applied))
        self.observed = describe.site([(place.path, place.device) for place in where.places])
        self._run_phases(where, phases, undo)

    def restored(self, undo: UndoJournal) -> None:
        outcomes, problems = undo.restore()
        self.notes += [outcome.line for outcome in outcomes if outcome.unusual]
        self.notes += [f"not restored: {problem}; try: iolab restore" for problem in problems]

    def record(self) -> Record:
        return Record(
            spec=self.trial,
            status=outcome.status(
                self.faults, interrupted=self.interrupted, failed=self.failed, impossible=bool(self.absent)
            ),
            started_unix_ns=self.started_unix_ns,
            ended_unix_ns=time.time_ns(),
            controls_applied={
                name: {"before": change.before, "applied": change.applied} for name, change in self.applied.items()
            },
            controls_absent=self.absent,
            phases=self.phases,
            observed=self.observed,
            faults=self.faults,
            notes=self.notes,
        )

    def _run_phases(self, where: Site, phases: Sequence[Phase], undo: UndoJournal) -> None:
        from iolab import _native

        around = Surroundings(where, _native.Memory(), undo, self.on_progress, self.should_stop)
        for phase in phases:
            if self.should_stop():
                self.interrupted = True
                return
            with probing.around(phase, self.trial.probes, where, undo) as probed:
                done = runner.run(phase, around)
            done |= probed.in_record()
            self.faults += outcome.faults(done)
            self.notes += outcome.notes(done)
            if phase.measured:
                self.phases.append(done)
                self.failed = bool(failures_of(done))
            else:
                for place in where.places:
                    _sync(place.path)
                self.failed = bool(self.faults)
            if done["stopped"]:
                self.interrupted = True
            if self.interrupted or self.failed:
                return


def _sync(path: Path) -> None:
    """What was laid out is on its disk before anything is measured (syncfs(2) of the target's filesystem)."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if path.is_dir():
            ctypes.CDLL(None).syncfs(fd)
        else:
            os.fsync(fd)
    finally:
        os.close(fd)
