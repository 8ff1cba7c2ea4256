"""How a run begins: its directory, complete with the facts of its journal's first event about experiment, machine and
session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iolab import _native
from iolab.base.strict_json import JsonObject
from iolab.base.version import VERSION
from iolab.files.experiment import Experiment
from iolab.files.store import directory
from iolab.files.store.directory import RunDirectory
from iolab.files.store.event import RunStarted, SessionEvent
from iolab.files.store.journal import FORMAT
from iolab.machines.system import session
from iolab.studies.run import origin
from iolab.studies.run.goal import Goal
from iolab.studies.run.parts import Block
from iolab.studies.run.plan import Plan
from iolab.studies.run.question import Question
from iolab.studies.run.reconcile import digest


def create(
    path: Path,
    experiment: Experiment,
    plan: Plan,
    goal: Goal,
    machine: JsonObject,
    *,
    probes: Sequence[str] = (),
    block: Block | None = None,
    question: Question | None = None,
    on: str | None = None,
) -> RunDirectory:
    """Makes the run directory `path`; `machine` is the content of its machine.json. The others are those of
    `iolab.studies.run.run`. InputError if the path is taken or can't be made."""
    first_event: RunStarted = {
        "event": "run_started",
        "format": FORMAT,
        "seed": plan.seed,
        "rounds": goal.rounds,
        "until_decided": goal.until_decided,
        "machine": experiment.machine.name,
        "probes": list(probes),
        "workloads": list(experiment.workloads),
        "settings": list(experiment.settings),
        "experiment_sha256": digest(experiment.text),
        "iolab_version": VERSION,
    }
    if question is not None:
        first_event["question"] = question.as_event()
    describe_session(first_event, experiment, plan, block, on)
    return directory.create(
        path,
        experiment_text=experiment.text,
        machine=machine,
        first_event=first_event,
        attachments=experiment.attachments,
    )


def describe_session(
    event: SessionEvent, experiment: Experiment, plan: Plan, block: Block | None, on: str | None = None
) -> None:
    """Adds to the session's event under what it measures, where, and who began it. A simulated machine does nothing to
    this one, whoever made the run."""
    if on is not None:
        event["on"] = on
    event["build_profile"] = _native.build_profile()
    event["boot_id"] = session.boot_id()
    event["fingerprint"] = session.fingerprint()
    mark = origin.mark(experiment, plan.seed)
    if mark is not None:
        event["origin"] = mark
    if block is not None:
        event["part"], event["block"], event["boot"], event["facts"] = block.part, block.number, block.boot, block.facts
