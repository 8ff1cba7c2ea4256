"""Runs an experiment into a run directory, and continues a run that was stopped or killed at any instant."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from iolab.base.errors import InputError, MachineError
from iolab.base.strict_json import JsonObject
from iolab.base.version import VERSION
from iolab.domain.executor import Display, Executor
from iolab.domain.trial.trial import SEED_MAX
from iolab.files.experiment import Experiment, loads
from iolab.files.store import directory
from iolab.files.store.directory import RunDirectory
from iolab.files.store.event import SessionEvent
from iolab.files.store.journal import Journal, read_journal
from iolab.files.store.state import RunState, fold
from iolab.machines.ports import port_of
from iolab.studies.run import origin, parts, preflight, remote_hosts, run_start
from iolab.studies.run.bisect import BisectLoop
from iolab.studies.run.goal import Goal
from iolab.studies.run.loop import Loop, Run
from iolab.studies.run.origin import Consent
from iolab.studies.run.plan import Plan
from iolab.studies.run.question import Question
from iolab.studies.run.reconcile import check_resumable, reconcile

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
    machine: JsonObject | None = None,
    part: str | None = None,
    question: Question | None = None,
    on: str | None = None,
) -> Run:
    """Makes the run directory `out` (default: a new one under ./iolab-runs) and runs every trial.

    `probes` are those that were on by choice of the caller when `experiment` was read: a resumed run has them on too.
    `part`: what this boot provides, of an experiment whose settings need several; only its next block is measured then.
    `question`: what to search for among the settings, instead of measuring each in every round. `on`: of an executor
    that runs trials on other hosts, the place where these are found. `machine` is what machine.json will say; by
    default this machine is described. InputError if `out` is taken, MachineError if this machine can't continue,
    InterruptedRun after Ctrl-C with everything restored. The two errors leave no run directory when no trial has a
    record yet.
    """
    remote_hosts.check(experiment, part, on)
    parts.check_part(experiment, part)
    goal = Goal.at_start(experiment, rounds, until_decided=until_decided)
    parts.check_rounds(experiment, goal)
    path = out or directory.default_path(experiment.title)
    directory.check_free(path)
    preflight.check(experiment, progress, on)
    given = experiment.seed if seed is None else seed
    plan = Plan(experiment, secrets.randbelow(SEED_MAX) if given is None else given)
    plan.check()
    port = port_of(experiment.machine)
    if announced := port.announcement(experiment.machine, plan.seed):
        progress.report_line(announced)
    if experiment.machine.is_of_host and on is None:
        executor.expect(plan.round(0))  # begins while the machine is described
    if machine is None and experiment.machine.is_of_host and on is not None:
        machine = remote_hosts.describe(on)
    described = port.describe(experiment.machine, experiment.target) if machine is None else machine
    block = None if part is None else parts.next_block(experiment, RunState(rounds=goal.rounds), part, described)
    was_missing = directory.missing(path)
    made = run_start.create(
        path, experiment, plan, goal, described, probes=probes, block=block, question=question, on=on
    )
    with Journal(made.journal_file) as journal:
        state = fold(read_journal(made.journal_file).events)
        try:
            return _loop(made, journal, state, plan, goal, executor, progress, block).complete()
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
    consent: Consent | None = None,
    part: str | None = None,
    on: str | None = None,
) -> Run:
    """Goes on with the run in `out`: what is finished stays, what is missing is measured. `rounds` may add some.

    A failed trial counts as finished unless `retry_failed`. InputError if the directory is no run, is in use, or was
    changed; MachineError on another machine or kernel, unless that is accepted; InterruptedRun after Ctrl-C. `consent`
    is called, before anything is done, with what a run does to this machine that somebody else made or changed; it
    raises to have nothing done. Without one, such a run is refused. `part`: of a run whose settings need several boots,
    what this one provides. `on`: as of `run`; a run on several hosts continues there.
    """
    opened = RunDirectory.open(out)
    with Journal(opened.journal_file) as journal:
        contents = read_journal(opened.journal_file)
        state = fold(contents.events)
        remote_hosts.check_resumable(opened.path, state, on)
        accept_other_machine = accept_other_machine or on is not None  # its hosts report themselves what they are
        started = check_resumable(opened, state, accept_other_machine=accept_other_machine)
        if accept_other_machine:
            state.devices = []  # those of another machine are others, and looked at as those of a new run
        experiment = loads(
            opened.experiment_text(),
            str(opened.experiment_file),
            probes=started.get("probes", []),
            machine=started["machine"],
            copies=opened.files,
        )
        if (asked := Question.of_run(state)) is not None:
            asked.check(experiment, opened.journal_file)
        origin.ask_about_run(opened.path, experiment, state, consent)
        remote_hosts.check(experiment, part, on)
        remote_hosts.pin(executor, state)
        parts.check_part(experiment, part)
        goal = Goal.on_resume(state, rounds, until_decided)
        parts.check_rounds(experiment, goal)
        for problem in contents.problems:
            progress.report_line(f"{opened.path}/{problem}")
        preflight.check(experiment, progress, on)
        plan = Plan(experiment, started["seed"])
        state.rounds = goal.rounds
        described = {} if part is None else port_of(experiment.machine).describe(experiment.machine, experiment.target)
        block = None if part is None else parts.next_block(experiment, state, part, described)
        resumed: SessionEvent = {"event": "run_resumed", "rounds": goal.rounds}
        run_start.describe_session(resumed, experiment, plan, block, on)
        journal.append(**resumed, iolab_version=VERSION)
        reconcile(opened, journal, state, plan, retry_failed=retry_failed)
        return _loop(opened, journal, state, plan, goal, executor, progress, block).complete()


def _loop(
    directory: RunDirectory,
    journal: Journal,
    state: RunState,
    plan: Plan,
    goal: Goal,
    executor: Executor,
    progress: Display,
    block: parts.Block | None,
) -> Loop:
    """The loop over rounds, or over what a question asks for."""
    asked = Question.of_run(state)
    if asked is None:
        return Loop(directory, journal, state, plan, goal, executor, progress, block)
    return BisectLoop(directory, journal, state, plan, goal, executor, progress, block, question=asked)
