"""A run that searches: its settings are versions in their order, and each trial is chosen by what is known by then.

The run directory is one like any other. Its first event holds the question; what was measured is in the journal, in
the order of time, from which a resumed run knows what its search knew. When the search has an answer, each version
that it names is measured against the one before it in rounds of their own, paired: a verdict on numbers that had no
part in the search.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from iolab.adapters.run.loop import Loop, Run
from iolab.adapters.store import trial_file
from iolab.adapters.store.directory import RunDirectory
from iolab.adapters.store.event import AskedQuestion
from iolab.adapters.store.read import read
from iolab.base.errors import InputError, unknown
from iolab.domain.bisect.search import Answer, Search
from iolab.domain.metric import describe
from iolab.domain.metric.registry import ALL, parse_key
from iolab.domain.metric.row import key_of, rows
from iolab.domain.verdict import Judgement, judge
from iolab.domain.workload import KINDS

if TYPE_CHECKING:
    from iolab.adapters.experiment import Experiment
    from iolab.adapters.store.state import RunState
    from iolab.domain.record import Record
    from iolab.domain.trial import Trial

CONFIRM_FROM_ROUND = 10_000
"""Rounds from this one on confirm: no search comes so far."""
VERSIONS_MAX = 4096
SAID_EVERY = 10
"""Trials between two lines of what is known."""


@dataclass(frozen=True)
class Question:
    """What is asked. `good`, `bad`: settings, the ends of the search; `metric`: a key; `most`: trials of the search at
    most; `confirm`: rounds for each change that is named; `spread`: see `Search`."""

    workload: str
    metric: str
    good: str
    bad: str
    confidence: float
    most: int
    confirm: int
    spread: int = 0

    def as_event(self) -> AskedQuestion:
        """The question as the journal keeps it."""
        return cast(AskedQuestion, asdict(self))

    @staticmethod
    def of_run(state: RunState) -> Question | None:
        """The question of a run, from its first event; None of a run that asks none."""
        asked = None if state.started is None else state.started.get("question")
        return None if asked is None else Question(**asked)

    def versions(self, experiment: Experiment) -> list[str]:
        """The settings from good to bad, in the experiment's order."""
        names = list(experiment.settings)
        return names[names.index(self.good) : names.index(self.bad) + 1]


def question(
    experiment: Experiment,
    *,
    workload: str | None,
    metric: str | None,
    good: str | None,
    bad: str | None,
    confidence: float,
    most: int,
    confirm: int,
    spread: int = 0,
) -> Question:
    """The question with what is left out filled in: the only workload, the first and the last setting. InputError says
    what the experiment lacks."""
    if workload is None and len(experiment.workloads) != 1:
        names = ", ".join(experiment.workloads)
        raise InputError(f"the experiment has several workloads: {names}", remedy="name one with --workload")
    chosen = workload or next(iter(experiment.workloads))
    if chosen not in experiment.workloads:
        raise InputError(f"{chosen}: {unknown('workload', chosen, experiment.workloads)}", where="--workload")
    settings = list(experiment.settings)
    first, last = good or settings[0], bad or settings[-1]
    for option, name in (("--good", first), ("--bad", last)):
        if name not in settings:
            raise InputError(f"{name}: {unknown('setting', name, settings)}", where=option)
    if settings.index(first) >= settings.index(last):
        raise InputError(
            f"{first} does not come before {last}",
            where="--good",
            remedy="the settings are the versions, oldest first, in the order of the file",
        )
    if len(settings) > VERSIONS_MAX:
        raise InputError(f"{len(settings)} settings; expected {VERSIONS_MAX} at most")
    compared = list(KINDS[experiment.workloads[chosen].kind].compared)
    key = metric or (list(experiment.compare.metrics or ()) + compared)[0]
    return Question(chosen, str(parse_key(key)), first, last, confidence, most, confirm, spread)


@dataclass(frozen=True)
class Finding:
    """What a run that searches has found by now."""

    question: Question
    versions: list[str]
    search: Search
    answer: Answer
    confirmations: dict[int, Judgement]
    """By the version's place, of each that is named: against the version before it."""
    unmeasurable: dict[str, str]
    """Why, by version."""


def finding_in(path: Path) -> Finding:
    """What the run in a directory has found. InputError for a run that does not search."""
    data = read(path)
    asked = Question.of_run(data.state)
    if asked is None:
        raise InputError("is no search", where=str(path), remedy="show it with: iolab show")
    values = _Values(data.directory, asked.metric)
    return finding(data.experiment, data.state, values, asked)


@dataclass
class _Values:
    """The metric's value of each trial, read once."""

    directory: RunDirectory
    metric: str
    known: dict[int, tuple[float | None, str]] = field(default_factory=dict)

    def of(self, trial: int) -> tuple[float | None, str]:
        """The value, or None and why. InputError for a metric that such trials don't have."""
        if trial not in self.known:
            self.known[trial] = value_of(trial_file.read_record(self.directory.trial_file(trial)), self.metric)
        return self.known[trial]


def finding(experiment: Experiment, state: RunState, values: _Values, asked: Question) -> Finding:
    """What the finished trials say, in the order of time."""
    versions = asked.versions(experiment)
    same_within = experiment.compare.same_within
    search = Search(
        len(versions),
        confidence=asked.confidence,
        budget=asked.most,
        spread=asked.spread,
        margin=lambda level: abs(level) * same_within,
    )
    lost: dict[str, str] = {}
    paired: dict[int, dict[str, float | None]] = {}
    for event in state.finished.values():
        value, why = values.of(event["trial"])
        if event["round"] >= CONFIRM_FROM_ROUND:
            paired.setdefault(event["round"], {})[event["setting"]] = value
        elif value is None:
            lost[event["setting"]] = why
            search.unmeasurable(versions.index(event["setting"]))
        else:
            search.measured(versions.index(event["setting"]), value)
    answer = search.answer()
    return Finding(
        asked,
        versions,
        search,
        answer,
        _confirmations(asked, versions, answer, paired, same_within),
        lost,
    )


def _confirmations(
    asked: Question,
    versions: list[str],
    answer: Answer,
    paired: Mapping[int, Mapping[str, float | None]],
    same_within: float,
) -> dict[int, Judgement]:
    found = {}
    for change in _named(answer):
        before, after = versions[change - 1], versions[change]
        both = [(one[before], one[after]) for _, one in sorted(paired.items()) if before in one and after in one]
        if both and len(both) >= asked.confirm:
            ours, theirs = zip(*both, strict=True)
            found[change] = judge(ours, theirs, nature=describe(asked.metric).nature, same_within=same_within)
    return found


def _named(answer: Answer) -> list[int]:
    """The places of the versions that the answer names, each beside a measurable one before it."""
    if answer.kind != "changes" or answer.stopped != "decided":
        return []
    return [change.last for change in answer.changes if change.first == change.last]


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
    return row.value, row.reason or ""


@dataclass
class BisectLoop(Loop):
    """The loop of a run that searches."""

    question: Question | None = None

    def _run_rounds(self, stop: threading.Event) -> Run:
        assert self.question is not None
        values = _Values(self.directory, self.question.metric)
        while True:
            now = finding(self.plan.experiment, self.state, values, self.question)
            version = now.search.next()
            if version is not None:
                chosen = [(now.versions[version], self._times(now.versions[version]))]
            else:
                chosen = self._to_confirm(now)
            if not chosen:
                break
            for setting, round_ in chosen:
                self.progress.planned(Counter({self.question.workload: 1}))
                self._run_trial(self._trial(setting, round_), stop)
            if version is not None and len(self.state.finished) % SAID_EVERY == 0:
                self.progress.looked(in_words(now))
        self.journal.append("run_finished", rounds=len(self.state.finished))
        statuses: Counter[str] = Counter(event["status"] for event in self.state.finished.values())
        return Run(self.directory.path, len(self.state.finished), dict(statuses), None)

    def _times(self, setting: str) -> int:
        """How often the search has measured a version."""
        done = self.state.finished.values()
        return sum(event["setting"] == setting and event["round"] < CONFIRM_FROM_ROUND for event in done)

    def _to_confirm(self, now: Finding) -> list[tuple[str, int]]:
        """The next pair of trials that confirm, in the order of its round; none when all are there."""
        asked = now.question
        done = {(event["setting"], event["round"]) for event in self.state.finished.values()}
        for place, change in enumerate(_named(now.answer)):
            pair = [now.versions[change - 1], now.versions[change]]
            for number in range(asked.confirm):
                round_ = CONFIRM_FROM_ROUND + place * asked.confirm + number
                missing = [setting for setting in pair if (setting, round_) not in done]
                if missing:
                    order = [trial.setting for trial in self.plan.round(round_)]
                    return [(setting, round_) for setting in sorted(missing, key=order.index)]
        return []

    def _trial(self, setting: str, round_: int) -> Trial:
        assert self.question is not None
        return next(
            trial
            for trial in self.plan.round(round_)
            if (trial.setting, trial.workload) == (setting, self.question.workload)
        )


def in_words(now: Finding) -> str:
    """What is known, in a line."""
    answer, versions = now.answer, now.versions
    sure = f"{answer.probability:.0%}"
    if answer.kind == "none":
        nothing = f"nothing changes by more than same_within between {versions[0]} and {versions[-1]}"
        return f"{nothing} ({sure})"
    if answer.kind == "unknown":
        return f"nothing known yet after {answer.measurements} trials"
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
