"""Runs a trial on this machine: lock, safety, target, controls, phases, record, and everything restored after.

Each step that changes something is in the undo journal before it is taken. Whatever ends the trial (its end, an error,
a signal), the journal is undone in reverse; after a kill -9 `restore_abandoned` does it.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from iolab import _native
from iolab.base.errors import IolabError, MachineError
from iolab.domain.control import UnsupportedSetting, amend, reach
from iolab.domain.executor import OnProgress, Progress, ShouldStop
from iolab.domain.phase_record import PhaseRecord, failures_of, observed_with, ops_of
from iolab.domain.record import NOT_RESTORED, Fault, Record, TargetObservation
from iolab.domain.trial import FioPhase, Phase, Trial
from iolab.domain.trial.phase import at_once
from iolab.machines.host import (
    commands,
    conditions,
    control,
    describe,
    fio,
    groups,
    load,
    metadata,
    outcome,
    probe_readers,
    site,
    sort,
    timed_command,
    together,
    weighted_load,
)
from iolab.machines.host.control import AppliedValue, Context
from iolab.machines.host.groups import Groups
from iolab.machines.host.site import Site, TargetPlace
from iolab.machines.host.surroundings import Surroundings
from iolab.machines.system import cgroup, driver_tags, lock
from iolab.machines.system.beneath import itself
from iolab.machines.system.cgroup import Cgroup
from iolab.machines.system.undo import UndoJournal


def execute(trial: Trial, *, on_progress: OnProgress, should_stop: ShouldStop, locked: bool = False) -> Record:
    """Runs the trial and returns its record; status `interrupted` when `should_stop` became true.

    Args:
        locked: the caller holds the target's lock (`lock.of_target`).

    Raises:
        InputError, MachineError: the trial cannot run; everything is restored.
    """
    run = _Run(trial, on_progress, should_stop, time.time_ns())
    amended = amend(trial)
    with ExitStack() as stack:
        if not locked:
            stack.enter_context(lock.of_target(trial.target))
        undo = stack.enter_context(UndoJournal.open())
        try:
            run.prepare_and_load(amended, undo, stack)
        except UnsupportedSetting as reason:
            run.absent = {reason.control: str(reason)}
        except IolabError:
            if not should_stop():
                raise
            run.interrupted = True
        finally:
            on_progress(Progress(phase="", doing="restoring"))
            run.before_undo.close()
            run.restored(undo)
    return run.record()


@dataclass
class _Run:
    """What accumulates towards the record."""

    trial: Trial
    on_progress: OnProgress
    should_stop: ShouldStop
    started_unix_ns: int
    applied: dict[str, AppliedValue] = field(default_factory=dict)
    phases: list[PhaseRecord] = field(default_factory=list)
    observed: TargetObservation = field(default_factory=lambda: TargetObservation())
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    groups: dict[str, Cgroup] = field(default_factory=dict)
    before_undo: ExitStack = field(default_factory=ExitStack)
    interrupted: bool = False
    absent: dict[str, str] = field(default_factory=dict)
    """The control that is not to be had here, and why; the trial is then impossible."""
    failed: bool = False
    """A phase failed as a whole, or laying out went wrong: to measure what was not written as asked would be a lie."""

    def prepare_and_load(self, amended: Trial, undo: UndoJournal, stack: ExitStack) -> None:
        self.on_progress(Progress(phase="", doing="preparing"))
        fio.check(amended.phases)
        groups.check(amended.phases)
        where = site.prepare(amended.target, amended.phases, undo, stack)
        self.notes += where.notes
        disks = {place.device.disk.name: place.device.disk for place in where.places if place.device is not None}
        shared = {what for phase in amended.phases for what in phase.reach} | reach(amended.controls)
        if "machine" in shared:
            stack.enter_context(lock.of_machine())
        if "queue" in shared:
            for disk in sorted(disks):
                stack.enter_context(lock.of_queue(disk))
        contexts = [
            Context(
                place.label,
                place.device,
                undo,
                stack,
                self.before_undo,
                self.groups,
                self.notes,
                place.path,
            )
            for place in where.places
        ]
        with _naming_the_setting(self.trial.setting):
            self.applied = control.apply(amended.controls, *contexts)
        self.notes += [note for change in self.applied.values() for note in change.notes]
        if self.trial.trial == 0 or amended.controls.keys() & driver_tags.CHANGED_BY:  # a look takes a millisecond
            self.notes += driver_tags.notes(disks.values())
        phases = site.place(where, control.place(amended.phases, self.applied), undo)
        self.observed = describe.site([(place.path, place.device) for place in where.places])
        self._run_phases(where, phases, undo, groups.made(phases, where.places, undo))

    def restored(self, undo: UndoJournal) -> None:
        outcomes, problems = undo.restore()
        self.notes += [outcome.line for outcome in outcomes if outcome.unusual]
        self.notes += [f"{NOT_RESTORED}: {problem}; try: iolab restore" for problem in problems]

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

    def _run_phases(self, where: Site, phases: Sequence[Phase], undo: UndoJournal, made: Mapping[str, Groups]) -> None:
        around = Surroundings(where, _native.Memory(), undo, self.on_progress, self.should_stop, made)
        for group in at_once(phases):
            if self.should_stop():
                self.interrupted = True
                return
            first = group[0]
            limits = self.groups.values() if first.measured else ()
            with (
                probe_readers.around(first, self.trial.probes, where, undo) as probed,
                conditions.around() as seen,
                cgroup.joined(limits),
            ):
                records = [run_phase(first, around)] if len(group) == 1 else together.run(group, around, run_phase)
            for number, (phase, done) in enumerate(zip(group, records, strict=True)):
                _refuse_failed_pin(done)
                done["conditions"] = seen
                own = probed.in_record() if number == 0 else observed_with(first.name, self.trial.probes)
                self._take(phase, {**done, **own})
            if not first.measured:
                for place in where.places:
                    _sync(place)
                self.failed = bool(self.faults)
            if self.interrupted or self.failed:
                return

    def _take(self, phase: Phase, done: PhaseRecord) -> None:
        self.faults += outcome.faults(done)
        self.notes += outcome.notes(done)
        self._count_verified(phase, done)
        if phase.measured:
            self.phases.append(done)
            self.failed |= bool(failures_of(done))
        self.interrupted |= done["stopped"]

    def _count_verified(self, phase: Phase, done: PhaseRecord) -> None:
        """Adds what the phase read and checked; fio checks in phases of their own."""
        if not phase.verifies or (phase.measured and isinstance(phase, FioPhase)):
            return
        jobs = [job for group in done["groups"] for job in group["jobs"]]
        reads = [found["read"] for job in jobs if "read" in (found := ops_of(job))]
        if any(read["count"] for read in reads):
            verified = self.observed.setdefault("verified", {"blocks": 0, "bytes": 0, "wrong": 0})
            verified["blocks"] += sum(read["count"] for read in reads)
            verified["bytes"] += sum(read["bytes"] for read in reads)
            verified["wrong"] += sum(job["mismatches_count"] for job in jobs)


@contextmanager
def _naming_the_setting(name: str) -> Iterator[None]:
    """Adds the setting's name to what the machine refuses it."""
    try:
        yield
    except UnsupportedSetting:  # becomes a record of this setting
        raise
    except MachineError as error:
        error.where = f"settings.{name}" + (f": {error.where}" if error.where else "")
        raise


def _refuse_failed_pin(done: PhaseRecord) -> None:
    """MachineError if a thread did not run on the CPUs that were asked for: its numbers answer another question."""
    notes = [note for group in done["groups"] for note in group["notes"] if note.startswith("pinning to CPUs")]
    if notes:
        allowed = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
        raise MachineError(
            notes[0].partition(";")[0],
            where=f"phase {done['phase']}",
            remedy=f"ask for CPUs that iolab may run on: {allowed}",
        )


def sync_filesystem(fd: int) -> None:
    """Writes the filesystem that the descriptor is on to its disk (syncfs(2)). OSError if the kernel reports that it
    could not: what was laid out may be lost, and is not to be measured."""
    if ctypes.CDLL(None, use_errno=True).syncfs(fd) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _sync(place: TargetPlace) -> None:
    """What was laid out is on its disk before anything is measured. MachineError if the disk did not take it."""
    try:
        if place.directory is not None:
            with place.directory.opened() as directory:
                sync_filesystem(directory)
            return
        fd = os.open(itself(place.file.fd) if place.file else place.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise load.refused(error, f"{place.label}: syncing what was laid out") from error


Runner = Callable[[Any, Surroundings], PhaseRecord]

RUNNERS: dict[str, Runner] = {
    "load": load.run,
    "metadata": metadata.run,
    "commands": commands.run,
    "command": timed_command.run,
    "weighted_load": weighted_load.run,
    "fio": fio.run,
    "sort": sort.run,
}
"""By the phase's kind."""


def run_phase(phase: Phase, around: Surroundings) -> PhaseRecord:
    """The phase's record: the engine's (crates/measure/workload/src/record.rs), or one that `iolab.domain.phase_record`
    makes in its likeness. Its `stopped` is true when `should_stop` became so.

    Raises:
        InputError: the phase is impossible.
        MachineError: the kernel refuses.
    """
    return RUNNERS[phase.kind](phase, around)
