"""Before a run continues: may it, and do its journal and its trial files agree?"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from iolab.base import beneath
from iolab.base.durable import sync_directory
from iolab.base.errors import InputError, MachineError
from iolab.domain.experiment import IMPORTED
from iolab.domain.machine import kind_of
from iolab.files.store import index
from iolab.files.store.directory import RunDirectory
from iolab.files.store.event import Event, RunStarted, TrialFinished
from iolab.files.store.examine import examine
from iolab.files.store.journal import FORMAT, FORMATS, Journal
from iolab.files.store.state import RunState, fold
from iolab.files.store.trial_file import read_record
from iolab.machines.system import session
from iolab.studies.run.plan import Plan


def digest(experiment_text: str) -> str:
    """SHA-256 of an experiment's text, in hexadecimal: by it a resumed run recognises the same experiment."""
    return hashlib.sha256(experiment_text.encode()).hexdigest()


def check_resumable(directory: RunDirectory, state: RunState, *, accept_other_machine: bool) -> RunStarted:
    """How the run was started. InputError if it can't continue as it was; MachineError if this is another machine or
    kernel."""
    directory.check_directories()
    started = state.started
    if started is None:
        raise InputError(
            "does not record how the run was started", where=str(directory.journal_file), remedy="start a new run"
        )
    if started["machine"] == IMPORTED:
        raise InputError(
            "holds imported numbers; there is nothing to continue",
            where=str(directory.path),
            remedy="import again",
        )
    if started["format"] not in FORMATS:
        raise InputError(
            f"the run has format {started['format']}; this iolab reads {FORMAT}",
            where=str(directory.path),
            remedy=f"use iolab {started['iolab_version']}",
        )
    if started.get("experiment_sha256") != digest(directory.experiment_text()):
        raise InputError(
            "was changed since the run was started",
            where=str(directory.experiment_file),
            remedy="put the text back, or start a new run with the new one",
        )
    before, now = started.get("fingerprint", {}), session.fingerprint()
    if started.get("part"):  # which kernel a part has is looked at by itself (parts.py)
        before, now = ({name: value for name, value in one.items() if name != "kernel"} for one in (before, now))
    changes = session.differences(before, now)
    # What a simulated machine yields is the same wherever it is simulated; what a guest counts, wherever it runs.
    if changes and not accept_other_machine and kind_of(started["machine"]) not in ("model", "guest"):
        raise MachineError(
            f"the run was started elsewhere: {'; '.join(changes)}; its trials would not be comparable",
            where=str(directory.path),
            remedy="resume it there, or start a new run here",
        )
    return started


def reconcile(directory: RunDirectory, journal: Journal, state: RunState, plan: Plan, *, retry_failed: bool) -> None:
    """Makes `state`, journal and trial files agree: whole files that a kill left without their entry are taken over,
    entries without a whole file are taken back, so that nothing is measured twice and nothing is missing."""
    directory.remove_leftovers()
    found = examine(directory, state)
    events: list[Event] = []
    for trial in sorted(state.finished.keys() - found.trials.keys()):
        events.append(journal.append("trial_abandoned", trial=trial, reason="its file is missing or damaged"))
    for trial, event in found.trials.items():
        if trial not in state.finished and _is_planned(directory.trial_file(trial), plan):
            adopted: TrialFinished = {**event, "adopted": True}
            events.append(journal.append(**adopted))
        if retry_failed and event["status"] == "failed":
            events.append(journal.append("trial_abandoned", trial=trial, reason="failed, to be tried again"))
    state.finished = fold([*({**event} for event in state.finished.values()), *events]).finished
    _set_aside_strangers(directory, state)
    for block in index.complete_blocks(state.finished):
        index.update(directory, state.sha256_of(), block)


def _is_planned(path: Path, plan: Plan) -> bool:
    """Whether the plan has the trial of a file that `examine` has just found whole."""
    spec = read_record(path).spec
    return spec in plan.round(spec.round)


def _set_aside_strangers(directory: RunDirectory, state: RunState) -> None:
    """Renames files that are none of the run's finished trials, so that no reader takes them for such."""
    known = {directory.trial_file(trial).name for trial in state.finished}
    for path in directory.trials.glob("*.parquet"):
        if path.name not in known:
            beneath.move(path, _free_name(path.with_suffix(".parquet.aside")).name, directory.root)
    sync_directory(directory.trials)


def _free_name(path: Path) -> Path:
    """A name beside `path` under which nothing is: what was set aside earlier stays."""
    copies, free = 1, path
    while os.path.lexists(free):
        copies += 1
        free = path.with_name(f"{path.name}.{copies}")
    return free
