"""What a run's tables, words and figures are made of: a row per workload and metric, a cell per setting, a verdict per
candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from iolab.base.errors import InputError, unknown
from iolab.domain.compare import Numbers, Pair, compare_pairs
from iolab.domain.metric import describe, meant, parse_key
from iolab.domain.validity import lines, unfaithful
from iolab.domain.verdict.interval import typical
from iolab.domain.workload import KINDS

if TYPE_CHECKING:
    from iolab.domain.compare import Comparison
    from iolab.domain.measured_run import MeasuredRun

METRICS_NAMED_MAX = 8
UNFAITHFUL = "not judged: most arrivals of the replay were late, so that it is not the trace that was offered"
COUNTED = ("kernel_instructions_per_op",)
"""On guest machines alone."""
FOUND = ("queue_depth_found",)
"""What a workload was run to find: told first."""
SYNC_TIMES = ("sync.latency_ns_mean", "sync.latency_ns_p99")


@dataclass(frozen=True)
class Cell:
    """One setting's values over the rounds."""

    typical: float | None
    """Hodges-Lehmann estimate, as in the judgement; None when no round has a value."""
    spread: float | None
    """Half the distance between the quartiles; None below two rounds."""
    n: int
    reason: str | None
    """Why there is no value, where there is none."""


@dataclass(frozen=True)
class Row:
    """One metric of one workload: a cell per setting, and a comparison per candidate."""

    workload: str
    metric: str
    """The metric's key, `[phase/][op.]metric`."""
    unit: str
    better: str | None
    help: str
    cells: dict[str, Cell]
    comparisons: dict[str, Comparison]


@dataclass(frozen=True)
class Summary:
    """A run as its table tells it: a row per workload and metric, with a cell and a comparison per setting."""

    title: str
    machine: str
    seed: int | None
    """Of the order of trials and of all offsets; None where no run drew one, as in other tools' files."""
    simulated: bool
    """Of a simulated machine's run: all that it takes to have the same numbers again."""
    settings: list[str]
    """The baseline first."""
    rounds: int
    trials: int
    trials_not_ok: int
    is_search: bool
    """One version was measured after another, so that their rounds have nothing in common."""
    same_within: float
    rows: list[Row]
    problems: list[str]
    doubts: list[str]
    """What casts doubt on its numbers, and what to do, a line each."""

    @property
    def machine_in_words(self) -> str:
        """The machine's name, with the seed where it is a simulated one."""
        return f"{self.machine} (simulated, seed {self.seed})" if self.simulated else self.machine

    @property
    def baseline(self) -> str:
        """The setting that the others are compared with; empty where there is none."""
        return self.settings[0] if self.settings else ""

    @property
    def comparisons(self) -> list[Comparison]:
        """Every comparison, row by row."""
        return [comparison for row in self.rows for comparison in row.comparisons.values()]


def summarise(
    run: MeasuredRun, *, metrics: Sequence[str] = (), baseline: str | None = None, same_within: float | None = None
) -> Summary:
    """A run as a table. `metrics` are keys; without them the experiment's [compare].metrics, else the default ones.

    A key without a phase means that metric of every phase. `baseline` and `same_within`: else the experiment's.
    InputError names a key or a setting that the run doesn't have.
    """
    experiment = run.experiment
    if baseline is not None and baseline not in run.settings:
        raise InputError(f"{baseline}: {unknown('setting', baseline, run.settings)}", where="--baseline")
    baseline = experiment.compare.baseline if baseline is None else baseline
    if baseline not in run.settings:
        raise _without_baseline(run, baseline)
    margin = experiment.compare.same_within if same_within is None else same_within
    values = values_by_setting(run, chosen_keys(run, metrics) if metrics else compared_keys(run))
    judged = compare_pairs(
        _pairs(run, _possible(run, values), baseline),
        same_within=margin,
        max_rounds=run.rounds_until_decided,
        rounds_per_boot=experiment.rounds_per_boot,
    )
    by_place: dict[tuple[str, str], dict[str, Comparison]] = {}
    unfaithful_in = unfaithful(run)
    for comparison in (_unjudged(one) if one.workload in unfaithful_in else one for one in judged):
        by_place.setdefault((comparison.workload or "", comparison.metric), {})[comparison.setting] = comparison
    reasons = _reasons(run)
    rows = [
        _row(workload, key, by_setting, by_place.get((workload, key), {}), reasons)
        for (workload, key), by_setting in values.items()
    ]
    return Summary(
        title=experiment.title or run.path.name,
        machine=experiment.machine,
        seed=run.seed,
        simulated=experiment.simulated is not None,
        settings=sorted(run.settings, key=lambda name: name != baseline),
        rounds=run.trials["round"].n_unique(),
        trials=run.trials.height,
        trials_not_ok=int((~run.trials["status"].is_in(["ok", "impossible"])).sum()),
        is_search=run.is_search,
        same_within=margin,
        rows=rows,
        problems=run.problems,
        doubts=lines(run),
    )


def _unjudged(comparison: Comparison) -> Comparison:
    """The numbers, and no verdict."""
    judgement = replace(comparison.judgement, verdict="undecided", rounds_to_decide=None, reason=UNFAITHFUL)
    return replace(comparison, judgement=judgement)


def compare_jobs(
    run: MeasuredRun,
    metrics: Sequence[str] = (),
    baseline: str | None = None,
    same_within: float | None = None,
    only: str | None = None,
) -> list[Comparison]:
    """The comparisons of `summarise`, and those of each job; `only`: those of this job alone. Errors as of both."""
    baseline = run.experiment.compare.baseline if baseline is None else baseline
    keys = chosen_keys(run, metrics) if metrics else compared_keys(run)
    found: dict[tuple[str, str | None, str], dict[str, Numbers]] = {}
    if only is None:
        found = {(workload, None, key): values for (workload, key), values in values_by_setting(run, keys).items()}
    found |= jobs_by_setting(run, keys, only)
    pairs = [
        _pair(run, (workload, job, key), (baseline, by_setting[baseline]), (setting, values))
        for (workload, job, key), by_setting in found.items()
        for setting, values in by_setting.items()
        if setting != baseline and baseline in by_setting and (workload, setting) not in run.impossible
    ]
    margin = run.experiment.compare.same_within if same_within is None else same_within
    return compare_pairs(pairs, same_within=margin)


def chosen_keys(run: MeasuredRun, wanted: Sequence[str]) -> list[str]:
    """The run's keys that `wanted` means (none: the default metrics). InputError names one that the run lacks."""
    if not wanted:
        return _known_keys(run, _compared_by_kind(run))
    for text in wanted:
        if not knows(run, text):
            if close := meant(text, run.keys):
                raise InputError("the run has no such metric", where=text, remedy=f"did you mean {close[0]}?")
            some = ", ".join(run.keys[:METRICS_NAMED_MAX])
            raise InputError("the run has no such metric", where=text, remedy=f"it has {some}, ...")
    return _known_keys(run, wanted)


def _without_baseline(run: MeasuredRun, baseline: str) -> InputError:
    why = f": {run.problems[0]}" if run.problems else ""
    more = f" (and {len(run.problems) - 1} more)" if len(run.problems) > 1 else ""
    return InputError(
        f"no trial can be read under the baseline, {baseline}{why}{more}",
        where=str(run.path),
        remedy=f"name another with --baseline: {', '.join(run.settings)}" if run.settings else "measure it again",
    )


def compared_keys(run: MeasuredRun) -> list[str]:
    """Keys that the experiment compares. A metric that no trial has, as when all failed, is no mistake here."""
    asked = [*_present(run, FOUND), *_compared_by_kind(run), *_present(run, SYNC_TIMES)]
    return _known_keys(run, run.experiment.compare.metrics or asked)


def _present(run: MeasuredRun, names: tuple[str, ...]) -> list[str]:
    """Those of the names that any workload has: how long syncs took where it syncs, what a search found."""
    return list(dict.fromkeys(key.rpartition("/")[2] for key in run.keys if key.endswith(names)))


def _known_keys(run: MeasuredRun, wanted: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(key for text in wanted for key in _keys_meant(run, text)))


def knows(run: MeasuredRun, text: str) -> bool:
    """Whether the run has what `text` names. InputError for what no run has, unless the run has what it means."""
    try:
        return bool(_keys_meant(run, text))
    except InputError:
        if meant(text, run.keys):
            return False
        raise


def _keys_meant(run: MeasuredRun, text: str) -> list[str]:
    with_phase = "/" in text if text in run.keys else parse_key(text).phase is not None
    return [key for key in run.keys if (key if with_phase else key.rpartition("/")[2]) == text]


def _compared_by_kind(run: MeasuredRun) -> list[str]:
    """What the kinds of the run's workloads are compared by; on guest machines first by what was counted."""
    kinds = [KINDS[one.kind] for one in run.experiment.workloads.values() if one.kind in KINDS]
    return list(dict.fromkeys([*_present(run, COUNTED), *(key for kind in kinds for key in kind.compared)]))


def values_by_setting(run: MeasuredRun, keys: Sequence[str]) -> dict[tuple[str, str], dict[str, Numbers]]:
    """By (workload, key), in the experiment's order: setting -> its value in each round."""
    return {
        (workload, key): {setting: wide[setting].to_list() for setting in wide.columns[1:]}
        for workload in run.workloads
        for key in keys
        if (wide := run.values(key, workload)).height
    }


def jobs_by_setting(
    run: MeasuredRun, keys: Sequence[str], only: str | None = None
) -> dict[tuple[str, str | None, str], dict[str, Numbers]]:
    """By (workload, job, key): setting -> the job's value in each round. `only`: of this job. InputError if no trial
    has such a job."""
    import polars as pl

    rows = run.job_metrics()
    names = rows["job"].unique(maintain_order=True).to_list()
    if only is not None and only not in names:
        none = "no workload has several jobs" if not names else unknown("job", only, names)
        raise InputError(f"{only}: {none}", where="--job")
    found: dict[tuple[str, str | None, str], dict[str, Numbers]] = {}
    for workload in run.workloads:
        of_workload = rows.filter(pl.col("workload") == workload)
        for job in names if only is None else [only]:
            of_job = of_workload.filter(pl.col("job") == job)
            for key in keys:
                chosen = of_job.filter(pl.col("key") == key)
                if chosen["value"].is_not_null().any():
                    rounds = sorted(of_workload["round"].unique())
                    by_round = {
                        (setting, round): value
                        for setting, round, value in chosen.select("setting", "round", "value").iter_rows()
                    }
                    present = [setting for setting in run.settings if setting in set(chosen["setting"])]
                    found[workload, job, key] = {
                        setting: [by_round.get((setting, round)) for round in rounds] for setting in present
                    }
    return found


def _possible(
    run: MeasuredRun, values: dict[tuple[str, str], dict[str, Numbers]]
) -> dict[tuple[str, str], dict[str, Numbers]]:
    """Without the settings that a workload could not be run under: there is nothing to decide about them."""
    return {
        (workload, key): {
            setting: numbers for setting, numbers in by_setting.items() if (workload, setting) not in run.impossible
        }
        for (workload, key), by_setting in values.items()
    }


def _pairs(run: MeasuredRun, values: dict[tuple[str, str], dict[str, Numbers]], baseline: str) -> list[Pair]:
    return [
        _pair(run, (workload, None, key), (baseline, by_setting[baseline]), (candidate, numbers))
        for (workload, key), by_setting in values.items()
        for candidate, numbers in by_setting.items()
        if candidate != baseline and baseline in by_setting
    ]


def _pair(
    run: MeasuredRun, place: tuple[str, str | None, str], ours: tuple[str, Numbers], theirs: tuple[str, Numbers]
) -> Pair:
    """Settings of one boot by their rounds; of two, a value per boot."""
    workload, job, key = place
    pairing = run.pairing(ours[0], theirs[0])
    x, y = ours[1], theirs[1]
    if pairing == "boot":
        x, y = (_by_boot(values, run.experiment.rounds_per_boot) for values in (x, y))
    return Pair(key, workload, ours[0], theirs[0], x, y, pairing, job)


def _by_boot(values: Numbers, rounds_per_boot: int) -> Numbers:
    """The typical value of each boot's rounds, of those that have one."""
    import numpy as np

    found: Numbers = []
    for first in range(0, len(values), rounds_per_boot):
        present = [value for value in values[first : first + rounds_per_boot] if value is not None]
        found.append(float(typical(np.array(present))) if present else None)
    return found


def _reasons(run: MeasuredRun) -> dict[tuple[str, str, str], str]:
    import polars as pl

    absent = run.metrics.filter(pl.col("value").is_null()).unique(["workload", "key", "setting"], keep="first")
    columns = ("workload", "key", "setting", "reason")
    return {(workload, key, setting): reason for workload, key, setting, reason in absent.select(columns).iter_rows()}


def _row(
    workload: str,
    key: str,
    by_setting: dict[str, Numbers],
    by_candidate: dict[str, Comparison],
    reasons: dict[tuple[str, str, str], str],
) -> Row:
    metric = describe(key)
    cells = {
        setting: cell_of(numbers, reasons.get((workload, key, setting))) for setting, numbers in by_setting.items()
    }
    return Row(workload, key, metric.unit, metric.better, metric.help, cells, by_candidate)


def cell_of(numbers: Numbers, reason: str | None) -> Cell:
    """The typical value and the spread of values, one per round; `reason`: why they are absent, where they are."""
    import numpy as np

    values = np.array([number for number in numbers if number is not None])
    if not len(values):
        return Cell(None, None, 0, reason)
    # Halved, so that the difference of two is a number.
    low, high = np.quantile(values / 2, (0.25, 0.75))
    return Cell(float(typical(values)), float(high - low) if len(values) > 1 else None, len(values), reason)
