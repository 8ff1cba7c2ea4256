"""Runs an experiment into a run directory, and goes on with a run that was stopped or killed at any instant."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolab.errors import InputError, MachineError
from iolab.run.goal import Goal
from iolab.run.loop import Loop, Run
from iolab.run.plan import Plan
from iolab.run.reconcile import check_resumable, digest, reconcile
from iolab.seed import SEED_MAX
from iolab.store import directory, session
from iolab.store.directory import RunDirectory
from iolab.store.journal import Journal, read_journal
from iolab.store.state import fold

if TYPE_CHECKING:
    from iolab.executor import Executor
    from iolab.experiment import Experiment
    from iolab.progress import Display

__all__ = ["Run", "resume", "run"]


def run(
    experiment: Experiment,
    out: Path | None = None,
    *,
    executor: Executor,
    progress: Display,
    rounds: int | None = None,
    until_decided: bool = False,
    seed: int | None = None,
    probes: Sequence[str] = (),
    machine: dict[str, Any] | None = None,
) -> Run:
    """Makes the run directory `out` (default: a new one under ./iolab-runs) and runs every trial.

    `probes` are those that were on by choice of the caller when `experiment` was read: a resumed run has them on too.
    `machine` is what machine.json will say; by default this machine is described. InputError if `out` is taken,
    MachineError if this machine can't go on, InterruptedRun after Ctrl-C with everything restored. The two errors
    leave no run directory when no trial has a record yet.
    """
    goal = Goal.at_start(experiment, rounds, until_decided=until_decided)
    path = out or directory.default_path(experiment.title)
    directory.check_free(path)
    _restore_abandoned(progress)
    _say_what_probes_lack(experiment, progress)
    given = experiment.seed if seed is None else seed
    plan = Plan(experiment, secrets.randbelow(SEED_MAX) if given is None else given)
    plan.check()
    if experiment.modelled is not None:
        progress.say(f"simulating {experiment.machine} with seed {plan.seed}")
    first_event = {
        "event": "run_started",
        "format": session.FORMAT,
        "seed": plan.seed,
        "rounds": goal.rounds,
        "until_decided": goal.until_decided,
        "machine": experiment.machine,
        "probes": list(probes),
        "workloads": list(experiment.workloads),
        "settings": list(experiment.settings),
        "experiment_sha256": digest(experiment.text),
        **session.facts(),
    }
    was_missing = directory.missing(path)
    made = directory.create(
        path,
        experiment_text=experiment.text,
        machine=_describe_machine(experiment) if machine is None else machine,
        first_event=first_event,
        attachments=experiment.attachments,
    )
    with Journal(made.journal_file) as journal:
        state = fold(read_journal(made.journal_file).events)
        try:
            return Loop(made, journal, state, plan, goal, executor, progress).complete()
        except (InputError, MachineError):
            if not state.measured:
                directory.take_back(made, was_missing)
            raise


def resume(
    out: Path,
    *,
    executor: Executor,
    progress: Display,
    rounds: int | None = None,
    until_decided: bool | None = None,
    retry_failed: bool = False,
    accept_other_machine: bool = False,
) -> Run:
    """Goes on with the run in `out`: what is finished stays, what is missing is measured. `rounds` may add some.

    A failed trial counts as finished unless `retry_failed`. InputError if the directory is no run, is in use, or was
    changed; MachineError on another machine or kernel, unless that is accepted; InterruptedRun after Ctrl-C.
    """
    from iolab.experiment import loads

    opened = RunDirectory.open(out)
    with Journal(opened.journal_file) as journal:
        state = fold(read_journal(opened.journal_file).events)
        check_resumable(opened, state, accept_other_machine=accept_other_machine)
        probes = state.started.get("probes", [])
        machine = state.started["machine"]
        experiment = loads(opened.experiment_text(), str(opened.experiment_file), probes=probes, machine=machine)
        goal = Goal.on_resume(state, rounds, until_decided)
        _restore_abandoned(progress)
        _say_what_probes_lack(experiment, progress)
        plan = Plan(experiment, state.started["seed"])
        journal.append("run_resumed", rounds=goal.rounds, **session.facts())
        reconcile(opened, journal, state, plan, retry_failed=retry_failed)
        return Loop(opened, journal, state, plan, goal, executor, progress).complete()


def _restore_abandoned(progress: Display) -> None:
    from iolab.machine.undo import restore_abandoned

    for line in restore_abandoned():
        progress.say(f"restored, after a run that was killed: {line}")


def _say_what_probes_lack(experiment: Experiment, progress: Display) -> None:
    """Before it takes long; the run goes on, and each trial's record has the reason too."""
    from iolab.machine import probe_needs
    from iolab.probe import PROBES

    if experiment.modelled is not None:
        return  # its probes need nothing of this machine
    for name in dict.fromkeys(name for probes in experiment.probes.values() for name in probes):
        for supply in probe_needs.lacking(PROBES[name]):
            progress.say(f"probe {name}: {supply.detail}; {supply.remedy}")


def _describe_machine(experiment: Experiment) -> dict[str, Any]:
    from iolab.machine import describe, model

    if experiment.modelled is None:
        return describe.describe(experiment.target)
    return model.describe(experiment.machine, experiment.modelled.as_filed, list(experiment.modelled.files))
