"""What pages over many runs need of one: its numbers by round, its verdicts, its sweeps. Computed once per run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from iolab.base.errors import InputError
from iolab.domain.collection.hardware import Facts
from iolab.domain.conditions import facts_of
from iolab.domain.definition import Nature, Verdict
from iolab.domain.matrix_axis import LATENCIES, knee_of, main_metric, rows_of, sweeps
from iolab.domain.summary import Summary, cell_of, summarise

if TYPE_CHECKING:
    from iolab.domain.comparison import Comparison
    from iolab.domain.measured_run import MeasuredRun

KEYS_MAX = 200
"""Metrics of a run that are kept; those that it compares come first."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class Measured(_Part):
    """A metric of a workload under a setting. `rounds`: the value of each round that the workload has a trial of, null
    if it has no value; `typical`, `spread`, `n` and `reason` as in `iolab.domain.summary.Cell`."""

    workload: str
    setting: str
    metric: str
    rounds: list[float | None]
    typical: float | None
    spread: float | None
    n: int
    reason: str | None


class Judged(_Part):
    """A comparison of the run, as `iolab show` prints it: fields of `iolab.domain.verdict.Judgement`."""

    workload: str
    job: str | None
    setting: str
    against: str
    metric: str
    nature: Nature
    verdict: Verdict
    baseline: float | None
    candidate: float | None
    ratio: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    q_value: float | None
    alpha: float
    n: int
    rounds_to_decide: int | None
    final: bool
    why: str | None
    leads: bool
    notes: list[str]


class SweptPoint(_Part):
    """One value of a sweep's parameter: where its numbers stand."""

    x: float
    text: str
    workload: str
    setting: str


class SweptLine(_Part):
    """A line of a sweep; `knee`: which of its points is the throughput's knee, null if there is none."""

    name: str
    points: list[SweptPoint]
    knee: int | None


class Swept(_Part):
    """A sweep of the run; `throughput`, `latency`: the metrics to draw against each other, null if it has none."""

    name: str
    parameter: str
    lines: list[SweptLine]
    throughput: str | None
    latency: str | None


class Extract(_Part):
    """All that is kept of a run. `trials`: by workload and setting, the trial of each round, null if it has none."""

    facts: dict[str, str]
    baseline: str
    same_within: float
    compared: list[str]
    measured: list[Measured]
    judged: list[Judged]
    sweeps: list[Swept]
    trials: dict[str, dict[str, list[int | None]]]
    problems: list[str]
    doubts: list[str]
    left_out: int
    """Metrics beyond KEYS_MAX."""


def extract_of(run: MeasuredRun) -> Extract:
    """The extract of a run that is read; InputError if this iolab does not understand its experiment."""
    facts: Facts = facts_of(run)
    try:
        summary = summarise(run)
    except InputError as error:  # of a run that has only begun, or of which the baseline is lost
        return _without_numbers(run, dict(facts), str(error))
    compared = list(dict.fromkeys(row.metric for row in summary.rows))
    keys = list(dict.fromkeys([*compared, *run.keys]))
    return Extract(
        facts=dict(facts),
        baseline=summary.baseline,
        same_within=summary.same_within,
        compared=compared,
        measured=_measured(run, keys[:KEYS_MAX]),
        judged=[judged_of(one) for one in summary.comparisons],
        sweeps=_sweeps(summary),
        trials=_trials(run),
        problems=summary.problems,
        doubts=summary.doubts,
        left_out=max(0, len(keys) - KEYS_MAX),
    )


def _without_numbers(run: MeasuredRun, facts: dict[str, str], why: str) -> Extract:
    problems = run.problems if run.trials.height == 0 else [*run.problems, why]
    return Extract(
        facts=facts,
        baseline=run.experiment.compare.baseline,
        same_within=run.experiment.compare.same_within,
        compared=[],
        measured=_measured(run, run.keys[:KEYS_MAX]),
        judged=[],
        sweeps=[],
        trials=_trials(run),
        problems=problems,
        doubts=[],
        left_out=0,
    )


def _measured(run: MeasuredRun, keys: Sequence[str]) -> list[Measured]:
    wanted = {key: place for place, key in enumerate(keys)}
    values: dict[tuple[str, str, str], dict[int, float | None]] = {}
    columns = ("workload", "key", "setting", "round", "value")
    for workload, key, setting, turn, value in run.metrics.select(columns).iter_rows():
        if key in wanted:
            values.setdefault((workload, key, setting), {})[turn] = _finite(value)
    orders = [{name: place for place, name in enumerate(names)} for names in (run.workloads, run.settings)]
    turns_of = _rounds(run)
    found = []
    for place in sorted(values, key=lambda one: (orders[0][one[0]], wanted[one[1]], orders[1][one[2]])):
        workload, key, setting = place
        rounds = [values[place].get(turn) for turn in turns_of[workload]]
        cell = cell_of(rounds, None)
        found.append(
            Measured(
                workload=workload,
                setting=setting,
                metric=key,
                rounds=rounds,
                typical=_finite(cell.typical),
                spread=_finite(cell.spread),
                n=cell.n,
                reason=None if cell.n else "no round has a value",
            )
        )
    return found


def measured_at(extract: Extract, workload: str, setting: str, metric: str) -> Measured | None:
    """What the run measured there; None if nothing."""
    place = (workload, setting, metric)
    return next((one for one in extract.measured if (one.workload, one.setting, one.metric) == place), None)


def _finite(value: float | None) -> float | None:
    return value if value is not None and value - value == 0.0 else None


def judged_of(one: Comparison) -> Judged:
    """A comparison as pages have it."""
    it = one.judgement
    return Judged(
        workload=one.workload or "",
        job=one.job,
        setting=one.setting,
        against=one.against,
        metric=one.metric,
        nature=one.nature,
        verdict=it.verdict,
        baseline=_finite(it.baseline),
        candidate=_finite(it.candidate),
        ratio=_finite(it.ratio),
        ci_low=_finite(it.ci_low),
        ci_high=_finite(it.ci_high),
        p_value=_finite(it.p_value),
        q_value=_finite(it.q_value),
        alpha=it.alpha,
        n=it.n,
        rounds_to_decide=it.rounds_to_decide,
        final=it.final,
        why=it.why,
        leads=one.leads,
        notes=one.notes,
    )


def _sweeps(summary: Summary) -> list[Swept]:
    found = []
    for sweep in sweeps(summary):
        by_metric = rows_of(sweep, summary)
        throughput = sweep.throughput(list(by_metric))
        lines = []
        for line in sweep.lines:
            at = knee_of(line, by_metric[throughput]) if throughput else None
            points = [
                SweptPoint(x=one.x, text=one.text, workload=one.workload, setting=one.setting) for one in line.points
            ]
            lines.append(SweptLine(name=line.name, points=points, knee=at))
        latency = main_metric(list(by_metric), LATENCIES)
        found.append(
            Swept(name=sweep.name, parameter=sweep.parameter, lines=lines, throughput=throughput, latency=latency)
        )
    return found


def _trials(run: MeasuredRun) -> dict[str, dict[str, list[int | None]]]:
    """In the order of `Measured.rounds`."""
    numbers: dict[str, dict[str, dict[int, int]]] = {}
    for workload, setting, turn, trial in run.trials.select("workload", "setting", "round", "trial").iter_rows():
        numbers.setdefault(workload, {}).setdefault(setting, {})[turn] = trial
    turns_of = _rounds(run)
    return {
        workload: {setting: [of_round.get(turn) for turn in turns_of[workload]] for setting, of_round in of.items()}
        for workload, of in numbers.items()
    }


def _rounds(run: MeasuredRun) -> dict[str, list[int]]:
    """By workload, the rounds of which it has a trial."""
    found: dict[str, set[int]] = {}
    for workload, turn in run.trials.select("workload", "round").unique().iter_rows():
        found.setdefault(workload, set()).add(turn)
    return {workload: sorted(turns) for workload, turns in found.items()}
