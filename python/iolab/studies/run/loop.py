"""The loop: trial after trial, each durable before the next.

The order that makes a run resumable after a kill at any instant: the trial's file first (whole, synced), then the
journal's word that it is finished.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

from iolab.base.errors import InterruptedRun, IolabError, MachineError
from iolab.base.plain_text import counted
from iolab.base.stop import stop_flag
from iolab.domain.executor import ConcurrentExecutor, Display, Executor, LeftBehind, TrialStalled
from iolab.domain.record import NOT_RESTORED, Record, impossible
from iolab.domain.trial import DeviceIdentity, Trial
from iolab.domain.verdict.looks import FIRST_LOOK
from iolab.files.store import index, trial_file
from iolab.files.store.directory import RunDirectory
from iolab.files.store.event import TrialFinished, TrialStarted
from iolab.files.store.journal import Journal
from iolab.files.store.read import read
from iolab.files.store.state import RunState, describe_finished
from iolab.studies.run.goal import Goal, undecided
from iolab.studies.run.parts import Block
from iolab.studies.run.plan import Plan

UNDECIDED_NAMED_MAX = 3


@dataclass(frozen=True)
class Run:
    """How a run ended: its directory, rounds and trials, and what is still undecided."""

    path: Path
    rounds: int
    """Complete ones."""
    trials_by_status: dict[str, int]
    undecided: list[str] | None
    """What is still open, of a run until decided; None of any other."""

    @property
    def trials(self) -> int:
        """How many trials the run has, whatever their status."""
        return sum(self.trials_by_status.values())


class RunStopped(Exception):
    """Someone asked to stop, and the machine is as before; or what of it is not."""


@dataclass
class Loop:
    """The loop over the trials of one session, with what it needs of run, plan and machine."""

    directory: RunDirectory
    journal: Journal
    state: RunState
    plan: Plan
    goal: Goal
    executor: Executor
    progress: Display
    block: Block | None = None
    """What this boot measures, of a run whose settings need several; None: everything."""
    admitted: list[DeviceIdentity] | None = None
    """The target's devices, once this session has looked at them."""

    def complete(self) -> Run:
        """Runs what is missing; on return the goal is reached. InterruptedRun after Ctrl-C, MachineError if the machine
        or the run directory's disk refuses: after both, the run can be resumed, if its directory is kept."""
        self.progress.begin(self.directory.path, finished=len(self.state.finished))
        try:
            with stop_flag() as stop:
                return self._run_rounds(stop)
        except (RunStopped, InterruptedRun, KeyboardInterrupt) as stopped:
            self.journal.append("run_interrupted")
            left = str(stopped) if isinstance(stopped, RunStopped | InterruptedRun) else ""
            raise InterruptedRun(
                f"interrupted with {counted(len(self.state.finished), 'trial')} finished, "
                + (f"not everything restored: {left}" if left else "everything restored"),
                remedy=f"continue with: iolab run --resume {self.directory.path}",
            ) from None
        except IolabError as error:
            # The journal's disk may be what failed; the error itself matters more.
            with suppress(IolabError):
                self.journal.append("run_failed", error=str(error))
            raise
        finally:
            self.progress.end()

    def _run_rounds(self, stop: threading.Event) -> Run:
        open_comparisons: list[str] | None = None
        rounds = 0
        self._announce(range(self._rounds_known_to_run()))
        self.executor.expect(self._coming())
        for rounds in self._rounds():
            if rounds > self._rounds_known_to_run():
                self._announce(range(rounds - 1, rounds))
            for trial in self._missing(rounds - 1):
                self.run_until_finished(trial, stop)
            if self.goal.until_decided and self.block is None and rounds >= FIRST_LOOK:
                open_comparisons = self._look(rounds)
                if not open_comparisons:
                    break
        if self.block is not None and self.goal.until_decided:
            open_comparisons = self._look_at_boots()
        if self._is_complete() or open_comparisons == []:
            self.journal.append("run_finished", rounds=rounds)
        statuses: Counter[str] = Counter(event["status"] for event in self.state.finished.values())
        if set(statuses) == {"impossible"}:
            raise MachineError(
                f"none of the trials can be run here; the first: {self._why_impossible(min(self.state.finished))}",
                where=str(self.directory.path),
            )
        return Run(self.directory.path, rounds, dict(statuses), open_comparisons)

    def _coming(self) -> Iterator[Trial]:
        """All that is missing, planned as it is taken."""
        for number in self._rounds():
            yield from self._missing(number - 1)

    def _rounds(self) -> range:
        """Those of this session, from 1."""
        if self.block is None:
            return range(1, self.goal.rounds + 1)
        return range(self.block.rounds.start + 1, self.block.rounds.stop + 1)

    def _missing(self, number: int) -> list[Trial]:
        settings = self.plan.experiment.settings if self.block is None else self.block.settings
        return [trial for trial in self.plan.missing(number, self.state) if trial.setting in settings]

    def _is_complete(self) -> bool:
        """A block may leave trials to other boots."""
        return self.block is None or not any(
            self.plan.missing(number, self.state) for number in range(self.goal.rounds)
        )

    def _impossible_again(self, trial: Trial) -> Record | None:
        """What was impossible in one round is in each: its record, without another try."""
        reasons = self._impossible.get((trial.workload, trial.setting))
        return None if reasons is None else impossible(trial, reasons)

    @cached_property
    def _impossible(self) -> dict[tuple[str, str], dict[str, str]]:
        """Why settings have turned out to be impossible, by workload and setting."""
        return {
            (event["workload"], event["setting"]): event.get("impossible", {})
            for event in self.state.finished.values()
            if event["status"] == "impossible"
        }

    def _why_impossible(self, trial: int) -> str:
        record = trial_file.read_record(self.directory.trial_file(trial))
        return f"{record.spec.setting}: {'; '.join(record.controls_absent.values())}"

    def _rounds_known_to_run(self) -> int:
        return FIRST_LOOK if self.goal.until_decided and self.block is None else self.goal.rounds

    def _announce(self, rounds: range) -> None:
        if self.block is None:
            self.progress.planned(self.plan.to_come(rounds, self.state))
        else:
            self.progress.planned(Counter(trial.workload for trial in self._coming()))

    def run_until_finished(self, trial: Trial, stop: threading.Event) -> None:
        """Runs the trial, and before it others whose records are there earlier."""
        while trial.trial not in self.state.finished:
            asked_ns = self.journal.monotonic_ns()
            first = self._soonest(trial, stop)
            owner = self.owner(first)
            if first.trial in owner.state.finished:  # impossible, as an earlier round had shown
                self.executor.run(first, self.progress.trial_progress, stop.is_set)
            else:
                owner._run_trial(first, stop, asked_ns)

    def owner(self, trial: Trial) -> Loop:
        """The run to which a trial that the executor names belongs."""
        return self

    def _soonest(self, trial: Trial, stop: threading.Event) -> Trial:
        """A look after each round is to see that round and those before it, so they are run in order then, where the
        same seed is to give the same run."""
        in_order = self.goal.until_decided and not trial.is_of_host
        if in_order or self._impossible_again(trial) or not isinstance(self.executor, ConcurrentExecutor):
            return trial
        self.progress.trial_started(trial)
        return self.executor.soonest(trial, self.progress.trial_progress, stop.is_set)

    def _run_trial(self, trial: Trial, stop: threading.Event, asked_ns: int | None = None) -> None:
        """`asked_ns`: since when the run has waited for it; None: from now on."""
        if stop.is_set():
            raise RunStopped
        attempt = self.state.attempts.get(trial.trial, 0) + 1
        started = self.journal.append(
            "trial_started",
            synced=trial.is_of_host,  # what is simulated may have ended by now, and does nothing to this machine
            trial=trial.trial,
            round=trial.round,
            workload=trial.workload,
            setting=trial.setting,
            attempt=attempt,
        )
        self.state.attempts[trial.trial] = attempt
        self.progress.trial_started(trial)
        stalled: TrialStalled | None = None
        try:
            record = self._impossible_again(trial) or self._executed(trial, stop)
        except TrialStalled as error:
            record, stalled = error.record.model_copy(update={"spec": trial}), error
        except LeftBehind:
            self.journal.append("trial_abandoned", trial=trial.trial, reason="interrupted")
            raise
        self.state.measured = True
        # Ctrl-C on a terminal reaches the trial's process too, and may kill it before it can report it.
        if record.status == "interrupted" or (record.status == "failed" and stop.is_set()):
            self.journal.append("trial_abandoned", trial=trial.trial, reason="interrupted")
            raise RunStopped("; ".join(note for note in record.notes if note.startswith(NOT_RESTORED)))
        self.directory.write_traces(trial.trial, record.traces)
        stored = trial_file.write(self.directory.trial_file(trial.trial), record)
        began_ns = cast(TrialStarted, started)["monotonic_ns"] if asked_ns is None else asked_ns
        duration_ns = self.journal.monotonic_ns() - began_ns
        event = describe_finished(record, stored, attempt=attempt, duration_ns=duration_ns)
        # Of a host's trial, the next line is synced, which is soon, and both with it.
        finished = self.journal.append(**event, synced=not trial.is_of_host)
        self.state.finished[trial.trial] = cast(TrialFinished, finished)
        if record.status == "impossible":
            self._impossible[trial.workload, trial.setting] = record.controls_absent
        self._index(trial.trial)
        self.progress.trial_finished(trial, record, duration_ns)
        if stalled is not None:
            raise stalled

    def _executed(self, trial: Trial, stop: threading.Event) -> Record:
        """Its record; the journal states which devices the target's names lead to before the first is written to."""
        asked = trial
        if trial.target.kind == "device" and trial.writes:
            if self.admitted is None:
                known = trial.on_devices(self.state.devices) if self.state.devices else trial
                self.admitted = self.executor.admit(known, stop.is_set)
                devices = [device.model_dump(mode="json") for device in self.admitted]
                self.journal.append("devices_admitted", devices=devices)
            asked = trial.on_devices(self.admitted)
        record = self.executor.run(asked, self.progress.trial_progress, stop.is_set)
        return record.model_copy(update={"spec": trial})

    def _index(self, trial: int) -> None:
        block = index.block_of(trial)
        if all(other in self.state.finished for other in index.trials_of(block)):
            index.update(self.directory, self.state.sha256_of(), block)

    def _look(self, rounds: int) -> list[str]:
        """What is undecided after this many rounds; a look that the journal has is not taken again."""
        if rounds not in self.state.looks:
            found = undecided(read(self.directory.path))
            self.journal.append("look", rounds=rounds, undecided=found)
            self.state.looks[rounds] = found
        found = self.state.looks[rounds]
        per_boot, unit = (1, "rounds") if self.block is None else (self.plan.experiment.rounds_per_boot, "boots")
        self.progress.report_look(
            f"after {rounds // per_boot} {unit} of at most {self.goal.rounds // per_boot}: {_in_words(found)}"
        )
        return found

    def _look_at_boots(self) -> list[str] | None:
        """What is undecided once each part has as many boots as the others; None if one lacks this block, or there
        are too few for a look."""
        assert self.block is not None, "of several boots"
        boots = self.block.number + 1
        is_whole = not any(self.plan.missing(number, self.state) for number in range(self.block.rounds.stop))
        return self._look(self.block.rounds.stop) if is_whole and boots >= FIRST_LOOK else None


def _in_words(open_comparisons: list[str]) -> str:
    if not open_comparisons:
        return "everything is decided"
    named = "; ".join(open_comparisons[:UNDECIDED_NAMED_MAX])
    more = len(open_comparisons) - UNDECIDED_NAMED_MAX
    return f"{len(open_comparisons)} undecided: {named}" + (f"; and {more} more" if more > 0 else "")
