"""A run that searches: its settings are versions in their order, and each trial is chosen by what is known by then.
Each metric that is asked for has a search of its own; every trial is evidence for all of them.

The run directory is one like any other. Its first event holds the question; what was measured is in the journal, in
the order of time, from which a resumed run knows what its search knew. When the search has an answer, each version
that it names is measured against the one before it in rounds of their own, paired: a verdict on numbers that had no
part in the search.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.errors import InputError, unknown
from iolab.base.plain_text import counted
from iolab.domain.bisect.search import VALUE_MAX, Answer, Search
from iolab.domain.comparison import counts_instructions, margin_of
from iolab.domain.metric import describe
from iolab.domain.metric.registry import ALL
from iolab.domain.metric.row import key_of, rows
from iolab.domain.verdict.judgement import Judgement, control_false_discovery, judge
from iolab.files.store import trial_file
from iolab.files.store.read import RunData, read
from iolab.studies.run import search_loop
from iolab.studies.run.loop import Loop, Run
from iolab.studies.run.question import Question

if TYPE_CHECKING:
    import polars

    from iolab.domain.experiment import Comparison
    from iolab.domain.record import Record
    from iolab.files.experiment import Experiment
    from iolab.files.store.event import TrialFinished

CONFIRM_FROM_ROUND = 10_000
"""Rounds from this one on confirm: no search has as many."""
SAID_EVERY = 10
"""Trials between two lines of what is known."""


@dataclass
class Finding:
    """What a run that searches has found by now about one metric."""

    question: Question
    metric: str
    versions: list[str]
    search: Search
    margin: str
    """The largest change that counts as none, in words."""
    drifts: bool = True
    """Whether rounds of the machine lie apart, instead of having a seed in common."""
    unmeasurable: dict[str, str] = field(default_factory=dict)
    """Why, by version."""
    fresh: dict[int, dict[str, float | None]] = field(default_factory=dict)
    """Values of the rounds that confirm, by round and version."""
    confirmations: dict[int, Judgement] = field(default_factory=dict)
    """By the version's place, of each that is named: against the version before it; see `confirmed`."""

    @property
    def answer(self) -> Answer:
        """What is known."""
        return self.search.answer()

    def take(self, event: TrialFinished, value: float | None, why: str) -> None:
        """A trial of one of the versions has ended, with a value of the metric or without one."""
        version = event["setting"]
        if event["round"] >= CONFIRM_FROM_ROUND:
            self.fresh.setdefault(event["round"], {})[version] = value
        elif value is None:
            self.unmeasurable[version] = why
            self.search.unmeasurable(self.versions.index(version))
        else:
            # On a machine of its own clock, trials of a round have its seed in common; a host's rounds lie apart.
            self.search.measured(self.versions.index(version), value, 0 if self.drifts else event["round"])


def check_search(path: Path) -> None:
    """InputError for a run that does not search."""
    _question_of(read(path))


def findings_in(path: Path) -> list[Finding]:
    """What the run in a directory has found, by metric. InputError for a run that does not search, and for a damaged
    trial: a resumed search measures it again."""
    data = read(path)
    return _findings(data, _question_of(data))


def _question_of(data: RunData) -> Question:
    asked = Question.of_run(data.state)
    if asked is None:
        path = data.path
        raise InputError("is no search", where=str(path), remedy=f"its trials' answer: iolab bisect {path}")
    asked.check(data.experiment, data.directory.journal_file)
    return asked


def findings_of_stored(path: Path, asked: Question) -> list[Finding]:
    """The answer from the trials of any run, its settings taken for versions; nothing is measured."""
    return _findings(read(path), asked)


@dataclass
class _Searches:
    """A search for each metric, all of which learn of every trial."""

    experiment: Experiment
    asked: Question
    read: Callable[[int], Record]
    """Reads the record of a trial by its number."""

    @cached_property
    def all(self) -> list[Finding]:
        """What each has found, without confirmations."""
        return [self._begun(metric) for metric in self.asked.metrics]

    def take(self, event: TrialFinished) -> None:
        """A trial has ended."""
        if event["workload"] == self.asked.workload and event["setting"] in self.all[0].versions:
            record = self.read(event["trial"])
            for one in self.all:
                one.take(event, *value_of(record, one.metric))

    def _begun(self, metric: str) -> Finding:
        asked, compare = self.asked, self.experiment.compare
        versions = asked.versions(self.experiment)
        search = Search(
            len(versions),
            confidence=asked.confidence,
            budget=asked.most,
            spread=asked.spread,
            margin=lambda level: (
                abs(level) * margin_of(metric, [level], compare.same_within, compare.same_instructions)
            ),
        )
        margin = margin_in_words(metric, compare)
        return Finding(asked, metric, versions, search, margin, drifts=self.experiment.machine.is_of_host)

    def confirmed(self) -> list[Finding]:
        """With confirmations, the false discovery rate of all of which is controlled."""
        for one in self.all:
            one.confirmations = _confirmations(one, self.experiment.compare)
        named = [(one, change) for one in self.all for change in one.confirmations]
        judged = control_false_discovery([one.confirmations[change] for one, change in named])
        for (one, change), judgement in zip(named, judged, strict=True):
            one.confirmations[change] = judgement
        return self.all


def _findings(data: RunData, asked: Question) -> list[Finding]:
    """The values of each metric in the finished trials, in the order of time."""
    searches = _Searches(data.experiment, asked, data.record)
    for event in data.state.finished.values():
        searches.take(event)
    return searches.confirmed()


def _confirmations(found: Finding, compare: Comparison) -> dict[int, Judgement]:
    judged = {}
    rounds = [values for _, values in sorted(found.fresh.items())]
    for change in found.answer.named:
        before, after = found.versions[change - 1 : change + 1]
        both = [(one[before], one[after]) for one in rounds if before in one and after in one]
        if both and len(both) >= found.question.confirm:
            ours, theirs = zip(*both, strict=True)
            margin = margin_of(found.metric, ours, compare.same_within, compare.same_instructions)
            judged[change] = judge(ours, theirs, nature=describe(found.metric).nature, same_within=margin)
    return judged


@dataclass
class ConfirmationRun(RunData):
    """The fresh rounds of a version against the one before it, as a run of its own."""

    pair: tuple[str, str] = ("", "")
    workload: str = ""

    @classmethod
    def of(cls, run: RunData, workload: str, before: str, after: str) -> ConfirmationRun:
        """Those of the run."""
        return cls(run.directory, run.state, run.machine, run.found, run.problems, (before, after), workload)

    @property
    def is_search(self) -> bool:
        """These rounds are paired."""
        return False

    @property
    def workloads(self) -> list[str]:
        """The one that was searched with."""
        return [self.workload]

    @property
    def settings(self) -> list[str]:
        """The version before, then the version."""
        return list(self.pair)

    @cached_property
    def trials(self) -> polars.DataFrame:
        """Those of the fresh rounds."""
        return self._fresh(super().trials)

    @cached_property
    def metrics(self) -> polars.DataFrame:
        """Those of the fresh rounds."""
        return self._fresh(super().metrics)

    def _fresh(self, frame: polars.DataFrame) -> polars.DataFrame:
        import polars as pl

        return frame.filter((pl.col("round") >= CONFIRM_FROM_ROUND) & pl.col("setting").is_in(self.pair))


def value_of(record: Record, key: str) -> tuple[float | None, str]:
    """The metric's value in a record, or why there is none. InputError for a key that such records don't have."""
    one_phase = sum(phase.measured for phase in record.spec.phases) == 1
    found = {key_of(row, one_phase=one_phase): row for row in rows(record) if row.job == ALL}
    if key not in found:
        if record.status in ("ok", "faulty"):
            raise InputError(unknown("metric", key, found), where="--metric")
        why = "; ".join(record.controls_absent.values()) or "; ".join(fault.what for fault in record.faults)
        return None, f"{record.status}: {why}" if why else f"the trial {record.status}"
    row = found[key]
    if row.value is not None and not abs(row.value) <= VALUE_MAX:
        return None, f"its value is beyond {VALUE_MAX:g}"
    return row.value, row.reason or ""


@dataclass
class BisectLoop(Loop):
    """The loop of a run that searches."""

    question: Question | None = None

    def _run_rounds(self, stop: threading.Event) -> Run:
        assert self.question is not None
        trials = _Trials(self, self.question, stop)
        if search_loop.complete(trials, confirm=self.question.confirm, time_s=self.question.time_s):
            self.journal.append("run_finished", rounds=len(self.state.finished))
        statuses: Counter[str] = Counter(event["status"] for event in self.state.finished.values())
        return Run(self.directory.path, len(self.state.finished), dict(statuses), None)


@dataclass
class _Trials:
    """Measures with trials of the run: see `search_loop.MeasuredSearch`."""

    loop: BisectLoop
    question: Question
    stop: threading.Event

    @cached_property
    def searches(self) -> _Searches:
        """Which know all trials that have ended."""
        loop = self.loop
        found = _Searches(
            loop.plan.experiment,
            self.question,
            lambda trial: trial_file.read_record(loop.directory.trial_file(trial)),
        )
        for event in loop.state.finished.values():
            found.take(event)
        return found

    def wanted(self) -> int | None:
        # A trial for one metric's search serves the others too.
        return next((place for one in self.searches.all if (place := one.search.next()) is not None), None)

    def measure(self, place: int) -> None:
        setting = self.versions[place]
        done = self.loop.state.finished.values()
        times = sum(event["setting"] == setting and event["round"] < CONFIRM_FROM_ROUND for event in done)
        self._run(setting, times)
        if len(done) % SAID_EVERY == 0:
            self.loop.progress.report_look("; ".join(in_words(one) for one in self.searches.all))

    def named(self) -> list[int]:
        return sorted({place for one in self.searches.all for place in one.answer.named})

    def missing(self, named: int, number: int) -> list[int]:
        round_ = self._round(named, number)
        done = {event["setting"] for event in self.loop.state.finished.values() if event["round"] == round_}
        order = [trial.setting for trial in self.loop.plan.round(round_)]
        pair = sorted((named - 1, named), key=lambda place: order.index(self.versions[place]))
        return [place for place in pair if self.versions[place] not in done]

    def confirm(self, place: int, named: int, number: int) -> bool:
        # A trial without a value counts as its round's.
        self._run(self.versions[place], self._round(named, number))
        return True

    @property
    def versions(self) -> list[str]:
        """The settings that are searched."""
        return self.searches.all[0].versions

    def _round(self, named: int, number: int) -> int:
        return CONFIRM_FROM_ROUND + self.named().index(named) * self.question.confirm + number

    def _run(self, setting: str, round_: int) -> None:
        loop = self.loop
        loop.progress.planned(Counter({self.question.workload: 1}))
        trial = next(
            trial
            for trial in loop.plan.round(round_)
            if (trial.setting, trial.workload) == (setting, self.question.workload)
        )
        if trial.trial in loop.state.finished:
            what = f"trial {trial.trial} is finished, but not as {setting} in round {round_}"
            raise InputError(what, where=str(loop.directory.journal_file), remedy="begin a new search")
        loop._run_trial(trial, self.stop)
        self.searches.take(loop.state.finished[trial.trial])


def margin_in_words(metric: str, compare: Comparison) -> str:
    """`0.5 %`, or `5 instructions`."""
    if compare.same_instructions is not None and counts_instructions(metric):
        return f"{compare.same_instructions:,g} instructions"
    return f"{100 * compare.same_within:.3g} %"


def in_words(now: Finding) -> str:
    """What is known, in a line."""
    answer, versions = now.answer, now.versions
    sure = f"{answer.probability:.0%}"
    if answer.kind == "none":
        nothing = f"nothing changes by more than {now.margin} between {versions[0]} and {versions[-1]}"
        return f"{nothing} ({sure})"
    if answer.kind == "unknown":
        return f"nothing known yet after {counted(answer.measurements, 'trial')}"
    if answer.kind == "creep":
        change = answer.changes[0]
        return f"it creeps from {versions[change.first]} to {versions[change.last]} ({sure}): no single version did it"
    named = [
        versions[change.last]
        if change.first == change.last
        else f"one of {versions[change.first]} to {versions[change.last]}"
        for change in answer.changes
    ]
    return f"changed by {' and by '.join(named)} ({sure})"
