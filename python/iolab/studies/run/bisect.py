"""A run that searches: its settings are versions in their order, and each trial is chosen by what is known by then.
Each metric that is asked for has a search of its own; every trial tells all of them.

The run directory is one like any other. Its first event holds the question; what was measured is in the journal, in
the order of time, from which a resumed run knows what its search knew. When the search has an answer, each version
that it names is measured against the one before it in rounds of their own, paired: a verdict on numbers that had no
part in the search.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from iolab.base.errors import InputError, unknown
from iolab.domain.bisect.search import VALUE_MAX, Answer, Search
from iolab.domain.compare import margin_of
from iolab.domain.metric import describe
from iolab.domain.metric.registry import ALL, METRICS, parse_key
from iolab.domain.metric.row import key_of, rows
from iolab.domain.verdict import Judgement, control_false_discovery, judge
from iolab.domain.workload import KINDS
from iolab.files.experiment.compared import lacks
from iolab.files.store import trial_file
from iolab.files.store.event import AskedQuestion
from iolab.files.store.read import RunData, read
from iolab.studies.run.loop import Loop, Run

if TYPE_CHECKING:
    import polars

    from iolab.domain.record import Record
    from iolab.domain.trial import Trial
    from iolab.files.experiment import Experiment
    from iolab.files.store.state import RunState

CONFIRM_FROM_ROUND = 10_000
"""Rounds from this one on confirm: no search comes so far."""
VERSIONS_MAX = 4096
SAID_EVERY = 10
"""Trials between two lines of what is known."""


@dataclass(frozen=True)
class Question:
    """What is asked. `good`, `bad`: settings, the ends of the search; `metrics`: keys; `most`: trials of the search at
    most, None for any number; `confirm`: rounds for each change that is named; `spread`: see `Search`; `time_s`: after
    so long a session chooses no further trial."""

    workload: str
    metrics: tuple[str, ...]
    good: str
    bad: str
    confidence: float
    most: int | None
    confirm: int
    spread: int | None = None
    time_s: float | None = None

    def as_event(self) -> AskedQuestion:
        """The question as the journal keeps it."""
        return cast(AskedQuestion, {**asdict(self), "metrics": list(self.metrics)})

    @staticmethod
    def of_run(state: RunState) -> Question | None:
        """The question of a run, from its first event; None of a run that asks none."""
        asked = None if state.started is None else state.started.get("question")
        if asked is None:
            return None
        names = {one.name for one in fields(Question)}
        known: dict[str, Any] = {key: value for key, value in asked.items() if key in (*names, "metric")}
        metrics = tuple(known.pop("metrics", None) or (known.get("metric", ""),))
        known.pop("metric", None)
        # An iolab that does not say what it looked at looked nowhere in particular.
        return Question(metrics=metrics, **{"spread": 0, **known})

    def check(self, experiment: Experiment, journal: Path) -> None:
        """InputError if the experiment is not the one that was asked about."""
        names = list(experiment.settings)
        lost = "its experiment, which was changed, has no"
        try:
            for key, name, known in (
                ("workload", self.workload, list(experiment.workloads)),
                ("good", self.good, names),
                ("bad", self.bad, names),
            ):
                if name not in known:
                    raise InputError(f"{lost} {'workload' if key == 'workload' else 'setting'} {name}", where=key)
            if names.index(self.good) >= names.index(self.bad):
                raise InputError(f"{self.good} does not come before {self.bad}", where="good")
            for key in self.metrics:
                parse_key(key)
        except InputError as error:
            what = f"question.{error.where}: {error.what}"
            raise InputError(what, where=f"{journal}:1", remedy="begin a new search") from None

    def versions(self, experiment: Experiment) -> list[str]:
        """The settings from good to bad, in the experiment's order."""
        names = list(experiment.settings)
        return names[names.index(self.good) : names.index(self.bad) + 1]


def question(
    experiment: Experiment,
    *,
    workload: str | None,
    metrics: Sequence[str],
    good: str | None,
    bad: str | None,
    confidence: float,
    most: int | None,
    confirm: int,
    spread: int | None = None,
    time_s: float | None = None,
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
    keys = metrics or (list(experiment.compare.metrics or ()) + compared)[:1]
    asked = tuple(dict.fromkeys(str(parse_key(key)) for key in keys))
    for key in asked:
        _check_metric(experiment, chosen, key, settings)
    return Question(chosen, asked, first, last, confidence, most, confirm, spread, time_s)


def _check_metric(experiment: Experiment, workload: str, key: str, settings: Sequence[str]) -> None:
    """A search without values would measure for nothing."""
    what = lacks(key, [experiment.workloads[workload]], experiment.target.devices)
    probe = METRICS[parse_key(key).metric].probe
    if what is None and probe is not None and any(probe not in experiment.probes[name] for name in settings):
        what = f"the probe {probe} is off; add {probe} = true to [probes]"
    if what is not None:
        raise InputError(f"{key}: {what}", where="--metric")


@dataclass(frozen=True)
class Finding:
    """What a run that searches has found by now about one metric."""

    question: Question
    metric: str
    versions: list[str]
    search: Search
    answer: Answer
    confirmations: dict[int, Judgement]
    """By the version's place, of each that is named: against the version before it."""
    unmeasurable: dict[str, str]
    """Why, by version."""


def check_search(path: Path) -> None:
    """InputError for a run that does not search."""
    _asked(read(path))


def findings_in(path: Path) -> list[Finding]:
    """What the run in a directory has found, by metric. InputError for a run that does not search, and for a damaged
    trial: one that is gone on with measures it again."""
    data = read(path)
    asked = _asked(data)
    return findings(data.experiment, data.state, _Values(data.record), asked)


def _asked(data: RunData) -> Question:
    asked = Question.of_run(data.state)
    if asked is None:
        path = data.path
        raise InputError("is no search", where=str(path), remedy=f"see what its trials say: iolab bisect {path}")
    asked.check(data.experiment, data.directory.journal_file)
    return asked


def findings_of_stored(path: Path, asked: Question) -> list[Finding]:
    """What the trials of any run say, its settings taken for versions; nothing is measured."""
    data = read(path)
    return findings(data.experiment, data.state, _Values(data.record), asked)


@dataclass
class _Values:
    """The metrics' values of each trial, read once. `record`: reads a trial."""

    record: Callable[[int], Record]
    known: dict[tuple[int, str], tuple[float | None, str]] = field(default_factory=dict)

    def of(self, trial: int, metric: str) -> tuple[float | None, str]:
        """The value, or None and why. InputError for a metric that such trials don't have."""
        if (trial, metric) not in self.known:
            self.known[trial, metric] = value_of(self.record(trial), metric)
        return self.known[trial, metric]


def findings(experiment: Experiment, state: RunState, values: _Values, asked: Question) -> list[Finding]:
    """What the finished trials say, in the order of time, of each metric. Of the confirmations of all metrics the false
    discovery rate is controlled."""
    found = [_finding(experiment, state, values, asked, metric) for metric in asked.metrics]
    named = [(one, change) for one in found for change in one.confirmations]
    judged = control_false_discovery([one.confirmations[change] for one, change in named])
    for (one, change), judgement in zip(named, judged, strict=True):
        one.confirmations[change] = judgement
    return found


def _finding(experiment: Experiment, state: RunState, values: _Values, asked: Question, metric: str) -> Finding:
    versions = asked.versions(experiment)
    same_within, same_instructions = experiment.compare.same_within, experiment.compare.same_instructions
    search = Search(
        len(versions),
        confidence=asked.confidence,
        budget=asked.most,
        spread=asked.spread,
        margin=lambda level: abs(level) * margin_of(metric, [level], same_within, same_instructions),
    )
    places = {version: place for place, version in enumerate(versions)}
    lost: dict[str, str] = {}
    paired: dict[int, dict[str, float | None]] = {}
    for event in state.finished.values():
        if event["workload"] != asked.workload or event["setting"] not in places:
            continue
        value, why = values.of(event["trial"], metric)
        if event["round"] >= CONFIRM_FROM_ROUND:
            paired.setdefault(event["round"], {})[event["setting"]] = value
        elif value is None:
            lost[event["setting"]] = why
            search.unmeasurable(places[event["setting"]])
        else:
            # On a machine of its own clock, trials of a round have its seed in common; a host's rounds lie apart.
            search.measured(places[event["setting"]], value, 0 if experiment.is_of_host else event["round"])
    answer = search.answer()
    confirmations = _confirmations(asked, metric, versions, answer, paired, experiment)
    return Finding(asked, metric, versions, search, answer, confirmations, lost)


def _confirmations(
    asked: Question,
    metric: str,
    versions: list[str],
    answer: Answer,
    paired: Mapping[int, Mapping[str, float | None]],
    experiment: Experiment,
) -> dict[int, Judgement]:
    same_within, same_instructions = experiment.compare.same_within, experiment.compare.same_instructions
    found = {}
    for change in _named(answer):
        before, after = versions[change - 1], versions[change]
        both = [(one[before], one[after]) for _, one in sorted(paired.items()) if before in one and after in one]
        if both and len(both) >= asked.confirm:
            ours, theirs = zip(*both, strict=True)
            margin = margin_of(metric, ours, same_within, same_instructions)
            found[change] = judge(ours, theirs, nature=describe(metric).nature, same_within=margin)
    return found


@dataclass
class Confirming(RunData):
    """The fresh rounds of a version against the one before it, as a run of its own."""

    pair: tuple[str, str] = ("", "")
    workload: str = ""

    @classmethod
    def of(cls, run: RunData, workload: str, before: str, after: str) -> Confirming:
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
    if row.value is not None and not abs(row.value) <= VALUE_MAX:
        return None, f"its value is beyond {VALUE_MAX:g}"
    return row.value, row.reason or ""


@dataclass
class BisectLoop(Loop):
    """The loop of a run that searches."""

    question: Question | None = None

    def _run_rounds(self, stop: threading.Event) -> Run:
        assert self.question is not None
        values = _Values(lambda trial: trial_file.read_record(self.directory.trial_file(trial)))
        until = math.inf if self.question.time_s is None else time.monotonic() + self.question.time_s
        while True:
            now = findings(self.plan.experiment, self.state, values, self.question)
            # What one metric's search wants to know tells the others too.
            next_ = [(one, place) for one in now if (place := one.search.next()) is not None]
            version = next((one.versions[place] for one, place in next_), None)
            if version is not None and time.monotonic() >= until:
                break
            chosen = [(version, self._times(version))] if version is not None else self._to_confirm(now)
            if not chosen:
                self.journal.append("run_finished", rounds=len(self.state.finished))
                break
            for setting, round_ in chosen:
                self.progress.planned(Counter({self.question.workload: 1}))
                trial = self._trial(setting, round_)
                if trial.trial in self.state.finished:
                    what = f"trial {trial.trial} is finished, but not as {setting} in round {round_}"
                    raise InputError(what, where=str(self.directory.journal_file), remedy="begin a new search")
                self._run_trial(trial, stop)
            if version is not None and len(self.state.finished) % SAID_EVERY == 0:
                self.progress.looked("; ".join(in_words(one) for one in now))
        statuses: Counter[str] = Counter(event["status"] for event in self.state.finished.values())
        return Run(self.directory.path, len(self.state.finished), dict(statuses), None)

    def _times(self, setting: str) -> int:
        """How often the search has measured a version."""
        done = self.state.finished.values()
        return sum(event["setting"] == setting and event["round"] < CONFIRM_FROM_ROUND for event in done)

    def _to_confirm(self, now: Sequence[Finding]) -> list[tuple[str, int]]:
        """The next pair of trials that confirm, in the order of its round; none when all are there."""
        asked = now[0].question
        done = {(event["setting"], event["round"]) for event in self.state.finished.values()}
        named = sorted({change for one in now for change in _named(one.answer)})
        for place, change in enumerate(named):
            pair = [now[0].versions[change - 1], now[0].versions[change]]
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
