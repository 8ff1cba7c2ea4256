"""What a run that searches is asked: which versions, by which metrics, how sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, cast

from iolab.base.errors import InputError, unknown
from iolab.base.plain_text import counted
from iolab.domain.metric.registry import METRICS, Key, parse_key
from iolab.domain.probe.instructions import NAME as INSTRUCTIONS
from iolab.domain.probe.instructions import ONLY_ON_GUESTS
from iolab.domain.workload import KINDS
from iolab.files.experiment import Experiment
from iolab.files.experiment.metric_keys import lacks
from iolab.files.store.event import AskedQuestion
from iolab.files.store.state import RunState

VERSIONS_MAX = 4096


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
    """The question with what is left out filled in: the only workload, the first and the last setting. InputError
    states what the experiment lacks."""
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
        raise InputError(f"{counted(len(settings), 'setting')}; expected {VERSIONS_MAX} at most")
    compared = list(KINDS[experiment.workloads[chosen].kind].compared)
    keys = metrics or (list(experiment.compare.metrics or ()) + compared)[:1]
    asked = dict.fromkeys(map(parse_key, keys))
    for key in asked:
        _check_metric(experiment, chosen, key, settings)
    return Question(chosen, tuple(map(str, asked)), first, last, confidence, most, confirm, spread, time_s)


def _check_metric(experiment: Experiment, workload: str, key: Key, settings: Sequence[str]) -> None:
    """A search without values would measure for nothing."""
    what = lacks(key, [experiment.workloads[workload]], experiment.target.devices)
    probe = METRICS[key.metric].probe
    if what is None and probe is not None and any(probe not in experiment.probes[name] for name in settings):
        only_elsewhere = probe == INSTRUCTIONS and experiment.machine.kind != "guest"
        what = ONLY_ON_GUESTS if only_elsewhere else f"the probe {probe} is off; add {probe} = true to [probes]"
    if what is not None:
        raise InputError(f"{key}: {what}", where="--metric")
