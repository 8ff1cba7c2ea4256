"""What a run's tables, words and figures are made of: a row per workload and metric, a cell per setting, a verdict per
candidate."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from iolab.base.errors import InputError, unknown
from iolab.base.plain_text import counted, listed
from iolab.domain.comparison import Comparison, Numbers, Pair, compare_pairs, place_of
from iolab.domain.definition import Better
from iolab.domain.durable_rule import rule_sentences
from iolab.domain.experiment import IMPORTED
from iolab.domain.lead import SYNC_RATE, SYNC_TIMES, TAIL, Shape, in_order, left_out
from iolab.domain.machine import Machine
from iolab.domain.metric import Metric, describe, meant, parse_key
from iolab.domain.trial import LoadPhase
from iolab.domain.validity import lines, overloaded, partly_unsteady, unfaithful
from iolab.domain.verdict.doubt import NOISE
from iolab.domain.verdict.interval import typical
from iolab.domain.verdict.judgement import Judgement
from iolab.domain.work_conservation import groups_alone, sharing_sentences
from iolab.domain.workload import KINDS

if TYPE_CHECKING:
    from iolab.domain.measured_run import MeasuredRun

METRICS_NAMED_MAX = 8
UNFAITHFUL = "not judged: most arrivals of the replay were late, so that it is not the trace that was offered"
OVERLOADED = "not judged: open loops asked for more than was served, so that latencies state how long they ran"
FORBIDDEN = (UNFAITHFUL, OVERLOADED)
COUNTED = (
    "kernel_instructions_per_op",
    *("memory_reads_per_op", "memory_writes_per_op", "modelled_cache_misses_per_op"),
)
"""On guest machines only; the last of them on request."""
SPLIT = ("read", "write")
"""Operations that are shown apart if a workload, or a job, does both."""
CPU_TIMES = ("cpu_ns_per_io", "cpu_ns_per_byte")
"""Which guest machines count in instructions."""
FOUND = ("queue_depth_found",)
"""What a workload was run to find: shown first."""
CALLS = ("write_call_instructions", "sync_call_instructions")
"""Shown apart if a workload both writes and syncs."""
JOBS_UNASKED_MAX = 8
"""Kinds of jobs of a workload that are shown one by one; if there are more, all together unless asked for."""
Place = tuple[str, str | None, str]
"""Workload, job (None: all together), key."""
ByPlace = dict[Place, dict[str, Numbers]]
"""The settings' values of each place, by round."""


@dataclass(frozen=True)
class Jobs:
    """Which jobs of a workload are shown one by one, before all together."""

    which: Literal["kinds", "each", "none"] = "kinds"
    """Each kind of job of a mix; each job, copies too; or none."""
    only: str | None = None
    """This one, and nothing else."""


@dataclass(frozen=True)
class Cell:
    """One setting's values over the rounds."""

    typical: float | None
    """Hodges-Lehmann estimate, as in the judgement; None when no round has a value."""
    spread: float | None
    """Half the distance between the quartiles; None below two rounds."""
    n: int
    reason: str | None
    """Why there is no value, if there is none."""
    rounds: Numbers
    """The value of each round."""


@dataclass(frozen=True)
class Row:
    """One metric of one workload: a cell per setting, and a comparison per candidate."""

    workload: str
    job: str | None
    """None: all of the workload's jobs together."""
    metric: str
    """The metric's key, `[phase/][op.]metric`."""
    unit: str
    better: str | None
    help: str
    cells: dict[str, Cell]
    comparisons: dict[str, Comparison]

    @property
    def place(self) -> str:
        """The workload, and its job."""
        return place_of(self.workload, self.job)


@dataclass(frozen=True)
class Levels:
    """The values of settings: a row per workload and metric, with a cell per setting."""

    settings: list[str]
    """The baseline first."""
    rows: list[Row]


@dataclass(frozen=True)
class Summary(Levels):
    """A run as its table shows it: a row per workload and metric, with a cell and a comparison per setting."""

    title: str
    machine: Machine
    seed: int | None
    """The seed of the order of trials and of all offsets; None if no run drew one, as in other tools' files."""
    rounds: int
    trials: int
    trials_not_ok: int
    is_search: bool
    """One version was measured after another, so that their rounds have nothing in common."""
    same_within: float
    problems: list[str]
    doubts: list[str]
    """What casts doubt on its numbers, and what to do, a line each."""
    left_out: Collection[str]
    """Keys of metrics that tables leave out for their length."""
    named: bool
    """The user or the experiment named the metrics."""
    failed: list[str]
    """The settings of which each trial failed, unlike another's, and why, a sentence each."""
    rules: list[str]
    """Whether its logs keep the rule for their tails, and how much its groups do together, a sentence each."""

    @property
    def machine_in_words(self) -> str:
        """The machine's name, with the seed if it is a simulated one."""
        return self.machine.with_seed(self.seed)

    @property
    def baseline(self) -> str:
        """The setting that the others are compared with; empty if there is none."""
        return self.settings[0] if self.settings else ""

    @property
    def comparisons(self) -> list[Comparison]:
        """Every comparison, row by row."""
        return [comparison for row in self.rows for comparison in row.comparisons.values()]

    @property
    def without_values(self) -> list[Row]:
        """The rows that have no value under any setting."""
        return [row for row in self.rows if all(cell.typical is None for cell in row.cells.values())]


def summarise(
    run: MeasuredRun,
    *,
    metrics: Sequence[str] = (),
    baseline: str | None = None,
    same_within: float | None = None,
    jobs: Jobs | None = None,
    better: Mapping[str, Better] | None = None,
) -> Summary:
    """A run as a table. `metrics` are keys; without them the experiment's [compare].metrics, else the default ones.

    A key without a phase means that metric of every phase. `baseline` and `same_within`: else the experiment's. `jobs`:
    else of a mix each kind of job, and then all together. `better` as in `compare_pairs`. InputError names a key, a job
    or a setting that the run doesn't have.
    """
    experiment = run.experiment
    if baseline is not None and baseline not in run.settings:
        raise InputError(f"{baseline}: {unknown('setting', baseline, run.settings)}", where="--baseline")
    baseline = experiment.compare.baseline if baseline is None else baseline
    if baseline not in run.settings:
        raise _without_baseline(run, baseline)
    margin = experiment.compare.same_within if same_within is None else same_within
    named = chosen_keys(run, metrics) if metrics else _known_keys(run, experiment.compare.metrics or ())
    asked = bool(metrics or experiment.compare.metrics)
    values = values_by_place(run, named if asked else None, jobs or Jobs(), baseline)
    judged = compare_pairs(
        _pairs(run, values, baseline),
        same_within=margin,
        same_instructions=experiment.compare.same_instructions if same_within is None else None,
        better=better,
        max_rounds=run.rounds_until_decided,
        rounds_per_boot=experiment.rounds_per_boot,
    )
    by_place: dict[Place, dict[str, Comparison]] = {}
    for comparison in _judged_if_sound(run, judged):
        place = (comparison.workload or "", comparison.job, comparison.metric)
        by_place.setdefault(place, {})[comparison.setting] = comparison
    reasons = absence_reasons(run)
    rows = [row_of(place, by_setting, by_place.get(place, {}), reasons) for place, by_setting in values.items()]
    return Summary(
        title=experiment.title or run.path.name,
        machine=experiment.machine,
        seed=run.seed,
        settings=sorted(run.settings, key=lambda name: name != baseline),
        rounds=run.trials["round"].n_unique(),
        trials=run.trials.height,
        trials_not_ok=int((~run.trials["status"].is_in(["ok", "impossible"])).sum()),
        is_search=run.is_search,
        same_within=margin,
        rows=rows,
        problems=run.problems,
        doubts=[*lines(run), *_without_effect(rows, baseline)],
        left_out=() if metrics else left_out_of([run], judged),
        named=asked,
        failed=_failed_sentences(run, reasons),
        rules=[*rule_sentences(run), *sharing_sentences(run)],
    )


def _without_effect(rows: Sequence[Row], baseline: str) -> list[str]:
    """A line about the settings of which each value is the baseline's, which only a simulated machine gives."""
    found: dict[str, list[Judgement]] = {}
    for one in (comparison for row in rows for comparison in row.comparisons.values()):
        found.setdefault(one.setting, []).append(one.judgement)
    equal = [name for name, judged in found.items() if len(judged) > 1 and all(one.is_equal for one in judged)]
    if not equal:
        return []
    differ = "differs" if len(equal) == 1 else "differ"
    of = f"{listed(equal, METRICS_NAMED_MAX)} {differ} from {baseline} in no value of any round"
    return [f"{of}: this load has no use for what was set, or ends before it acts (io.latency: steps of 500 ms)"]


def failed_settings(run: MeasuredRun) -> dict[str, int]:
    """How many trials each setting has of those of which each failed."""
    found = {name: run.trials.filter(run.trials["setting"] == name)["status"].to_list() for name in run.settings}
    return {name: len(of_it) for name, of_it in found.items() if of_it and set(of_it) == {"failed"}}


def _failed_sentences(run: MeasuredRun, reasons: dict[tuple[str, str, str], str]) -> list[str]:
    failed = failed_settings(run)
    if len(failed) == len(run.settings):
        return []
    why = {setting: reason.removeprefix("the trial failed: ") for (_, _, setting), reason in reversed(reasons.items())}
    return [
        f"{name} failed in each of {counted(n, 'trial')}: {why.get(name, 'see its trials')}"
        for name, n in failed.items()
    ]


def left_out_of(runs: Sequence[MeasuredRun], judged: Sequence[Comparison]) -> frozenset[str]:
    """Keys that tables of these runs leave out unless asked for: of other tools' only, which report many, and none that
    differs."""
    if any(run.machine_name != IMPORTED for run in runs):
        return frozenset()
    keys = dict.fromkeys(key for run in runs for key in compared_keys(run))
    return frozenset(left_out(list(keys), {one.metric for one in judged if one.judgement.differs}))


def judged_together(run: MeasuredRun, jobs: Jobs) -> list[str]:
    """A line if the jobs of a workload are too many to be judged one by one unasked."""
    counts = [len(shape.jobs) for shape in run.shapes.values() if len(shape.jobs) > JOBS_UNASKED_MAX]
    if not counts or jobs.only is not None or jobs.which != "kinds":
        return []
    return [f"{max(counts)} kinds of jobs are judged together: --by-job judges each"]


def _judged_if_sound(run: MeasuredRun, judged: Sequence[Comparison]) -> Iterator[Comparison]:
    """The comparisons; without a verdict those that a doubt forbids."""
    late, too_much, uneven = unfaithful(run), overloaded(run), partly_unsteady(run)
    for one in judged:
        both = {(one.workload or "", setting) for setting in (one.setting, one.against)}
        unsteady = [uneven.get(place, (0, 0)) for place in both]
        if one.workload in late:
            yield _unjudged(one, UNFAITHFUL)
        elif both <= too_much and _waits_in_line(run, one):
            yield _unjudged(one, OVERLOADED)
        elif (some := sum(count for count, _ in unsteady)) and (why := one.judgement.why or "").startswith(NOISE):
            of = sum(count for _, count in unsteady)
            why = f"{NOISE}, with {some} of {counted(of, 'trial')} counting a start that others cut{why[len(NOISE) :]}"
            yield replace(one, judgement=replace(one.judgement, why=why))
        else:
            yield one


def _waits_in_line(run: MeasuredRun, one: Comparison) -> bool:
    """Whether the metric is a latency of an open loop, which counts from the arrival; a sync's has no arrival."""
    key = parse_key(one.metric)
    if not key.metric.startswith("latency_ns") or key.op == "sync":
        return False
    if one.job is None:
        return True
    phases = run.experiment.workload_under(one.workload or "", one.setting).phases(0, run.experiment.target.devices)
    loads = [phase.load for phase in phases if isinstance(phase, LoadPhase) and phase.measured]
    jobs = [job for load in loads for group in load["groups"] for job in group["jobs"]]
    return any(job["arrival"]["kind"] == "open" for job in jobs if job["name"].partition(".")[0] == one.job)


def _unjudged(comparison: Comparison, reason: str) -> Comparison:
    """The numbers, and no verdict."""
    judgement = replace(comparison.judgement, verdict="undecided", rounds_to_decide=None, reason=reason, why=reason)
    return replace(comparison, judgement=judgement)


def values_by_place(run: MeasuredRun, keys: Sequence[str] | None, jobs: Jobs, baseline: str | None = None) -> ByPlace:
    """The values of each place by setting and round, workload by workload, each kind of job before all together, in the
    order of `iolab.domain.lead`. `keys`: in this order instead; None: the default ones, and those of reads and of
    writes if both occur. `baseline`: its tail determines which job comes first; None: the first setting's."""
    found: ByPlace = {}
    by_itself = groups_alone(run.experiment)
    wanted = _default_keys(run) if keys is None else list(keys)
    split = [] if keys is not None else [with_op(key, op) for key in wanted for op in SPLIT]
    of_all = values_by_setting(run, list(dict.fromkeys([*wanted, *split])))
    of_jobs = _of_jobs(run, None if keys is None else wanted, jobs)
    for workload in run.workloads:
        shape = run.shapes.get(workload, Shape())
        own = {key: by_setting for (name, key), by_setting in of_all.items() if name == workload}
        by_job = of_jobs.get(workload, {})
        for job in _slowest_first(by_job, baseline):
            of_job = by_job[job]
            for key in _shown_keys(of_job, wanted, shape, named=keys is not None, beside_others=True):
                found[workload, job, key] = of_job[key]
        if jobs.only is None:
            for key in _shown_keys(own, wanted, shape, named=keys is not None, beside_jobs=bool(by_job)):
                if is_of_one_job(key, by_job):
                    continue
                found[workload, None, key] = {name: own[key][name] for name in own[key] if name not in by_itself}
    return found


def is_of_one_job(key: str, by_job: dict[str, dict[str, dict[str, Numbers]]]) -> bool:
    """Whether the key is of an operation that one job alone does: all together are that job, which is shown already."""
    of_one_op = "." in key.rpartition("/")[2]
    return of_one_op and sum(_is_measured(values, key) for values in by_job.values()) == 1


def _shown_keys(
    values: dict[str, dict[str, Numbers]],
    wanted: Sequence[str],
    shape: Shape,
    *,
    named: bool,
    beside_others: bool = False,
    beside_jobs: bool = False,
) -> list[str]:
    """The keys that are shown of these values, in order: of a job beside others, or of all together beside their jobs,
    which show reads and writes apart already."""
    if named:
        return [key for key in wanted if key in values]
    split = [
        of_op
        for op in (() if beside_jobs else SPLIT)
        for key in wanted
        if (of_op := with_op(key, op)) and all(_is_measured(values, with_op(key, other)) for other in SPLIT)
    ]
    return in_order([key for key in (*split, *wanted) if key in values], shape, beside_others=beside_others)


def with_op(key: str, op: str) -> str:
    """`write/latency_ns_mean` of reads: `write/read.latency_ns_mean`; empty if it is of one operation already."""
    phase, slash, name = key.rpartition("/")
    return "" if "." in name else f"{phase}{slash}{op}.{name}"


def _is_measured(values: dict[str, dict[str, Numbers]], key: str) -> bool:
    return any(number is not None for numbers in values.get(key, {}).values() for number in numbers)


def _slowest_first(jobs: dict[str, dict[str, dict[str, Numbers]]], baseline: str | None) -> list[str]:
    """The jobs by their tails, of syncs if one has some; by their means if not all have enough operations."""
    tails: dict[str, float] = {}
    for metric in TAIL:
        found = {job: _longest(values, metric, baseline) for job, values in jobs.items()}
        tails = {job: tail for job, tail in found.items() if tail is not None}
        if len(tails) == len(jobs):
            break
    return sorted(jobs, key=lambda job: -tails.get(job, 0.0))


def _longest(values: dict[str, dict[str, Numbers]], metric: str, baseline: str | None) -> float | None:
    known = [
        cell.typical
        for key, by_setting in values.items()
        if key.endswith((f"sync.{metric}", f"/{metric}")) or key == metric
        if (cell := cell_of(by_setting.get(baseline or "", next(iter(by_setting.values()), [])), None)).typical
    ]
    return max((one for one in known if one is not None), default=None)


def chosen_keys(run: MeasuredRun, wanted: Sequence[str]) -> list[str]:
    """The run's keys that `wanted` means (none: the default metrics). InputError names one that the run lacks."""
    if not wanted:
        return _known_keys(run, _compared_by_kind(run))
    for text in wanted:
        if not has_key(run, text):
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
    metrics = run.experiment.compare.metrics
    return _known_keys(run, metrics) if metrics else _default_keys(run)


def _default_keys(run: MeasuredRun) -> list[str]:
    calls = _counted(run, CALLS)
    asked = [*_present(run, FOUND), *_compared_by_kind(run)]
    if any(shape.syncs and not shape.commits for shape in run.shapes.values()):
        asked += _present(run, SYNC_TIMES)
        asked += _present(run, (SYNC_RATE,)) if len(run.settings) == 1 else []
    asked += calls if len(calls) == len(CALLS) else []
    return _known_keys(run, asked)


def _present(run: MeasuredRun, names: tuple[str, ...]) -> list[str]:
    """Those of the names that any workload has: how long syncs took if it syncs, what a search found."""
    return list(dict.fromkeys(key.rpartition("/")[2] for key in run.keys if key.endswith(names)))


def _counted(run: MeasuredRun, names: tuple[str, ...]) -> list[str]:
    """Those of the names that any trial has a value of."""
    found = [key for key in run.keys if key.rpartition("/")[2] in names]
    measured = {key for (_, key), values in values_by_setting(run, found).items() if _is_measured({key: values}, key)}
    return [name for name in names if any(key.rpartition("/")[2] == name for key in measured)]


def _known_keys(run: MeasuredRun, wanted: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(key for text in wanted for key in _keys_meant(run, text)))


def has_key(run: MeasuredRun, text: str) -> bool:
    """Whether the run has what `text` names. InputError for what no run has, unless the run has what it means."""
    try:
        return bool(_keys_meant(run, text))
    except InputError:
        if meant(text, run.keys):
            return False
        raise


def _keys_meant(run: MeasuredRun, text: str) -> list[str]:
    if "/" in text and text in run.keys:
        return [text]
    with_phase = False if text in run.keys else parse_key(text).phase is not None
    return [key for key in run.keys if (key if with_phase else key.rpartition("/")[2]) == text]


def _compared_by_kind(run: MeasuredRun) -> list[str]:
    """What the kinds of the run's workloads are compared by; on guest machines first by what was counted."""
    kinds = [KINDS[one.kind] for one in run.experiment.workloads.values() if one.kind in KINDS]
    counted = _counted(run, COUNTED)
    compared = [key for kind in kinds for key in kind.compared if not (counted and key in CPU_TIMES)]
    return list(dict.fromkeys([*counted, *compared]))


def values_by_setting(run: MeasuredRun, keys: Sequence[str]) -> dict[tuple[str, str], dict[str, Numbers]]:
    """By (workload, key), in the experiment's order: setting -> its value in each round."""
    return {
        (workload, key): {setting: wide[setting].to_list() for setting in wide.columns[1:]}
        for workload in run.workloads
        for key in keys
        if (wide := run.values(key, workload)).height
    }


def _of_jobs(
    run: MeasuredRun, keys: Sequence[str] | None, jobs: Jobs
) -> dict[str, dict[str, dict[str, dict[str, Numbers]]]]:
    """By workload, job and key: the job's values by setting and round. InputError if no trial has the job that is
    asked for."""
    kinds = {name: shape.jobs for name, shape in run.shapes.items() if 1 < len(shape.jobs) <= JOBS_UNASKED_MAX}
    if jobs.only is None and (jobs.which == "none" or (jobs.which == "kinds" and not kinds)):
        return {}
    import polars as pl

    rows = run.job_metrics()
    names = rows["job"].unique(maintain_order=True).to_list()
    if jobs.only is not None and jobs.only not in names:
        none = "no workload has several jobs" if not names else unknown("job", jobs.only, names)
        raise InputError(f"{jobs.only}: {none}", where="--job")
    found: dict[str, dict[str, dict[str, dict[str, Numbers]]]] = {}
    for workload in run.workloads:
        of_workload = rows.filter(pl.col("workload") == workload)
        chosen = of_workload if keys is None else of_workload.filter(pl.col("key").is_in(keys))
        names_kept = (
            [jobs.only] if jobs.only is not None else names if jobs.which == "each" else kinds.get(workload, ())
        )
        chosen = chosen.filter(pl.col("job").is_in(names_kept))
        rounds = {number: place for place, number in enumerate(sorted(of_workload["round"].unique()))}
        by_job = found.setdefault(workload, {})
        for job, key, setting, number, value in chosen.select("job", "key", "setting", "round", "value").iter_rows():
            if (workload, setting) not in run.impossible:
                by_setting = by_job.setdefault(job, {}).setdefault(key, {})
                by_setting.setdefault(setting, [None] * len(rounds))[rounds[number]] = value
        for job, by_key in by_job.items():
            by_job[job] = {key: {name: of[name] for name in run.settings if name in of} for key, of in by_key.items()}
    return found


def _pairs(run: MeasuredRun, values: ByPlace, baseline: str) -> list[Pair]:
    """Without what no setting has a value of, and settings that a workload could not be run under: there is nothing to
    decide about them. A group alone is compared with the same group beside the others."""
    together = {name: alone.together for name, alone in groups_alone(run.experiment).items()}
    return [
        _pair(run, place, (against, by_setting[against]), (candidate, numbers))
        for place, by_setting in values.items()
        for candidate, numbers in by_setting.items()
        if candidate != baseline and (against := together.get(candidate, baseline)) in by_setting
        if any(number is not None for number in (*by_setting[against], *numbers))
        if not {(place[0], against), (place[0], candidate)} & run.impossible
    ]


def _pair(run: MeasuredRun, place: Place, ours: tuple[str, Numbers], theirs: tuple[str, Numbers]) -> Pair:
    """Settings of one boot by their rounds; of two, a value per boot."""
    workload, job, key = place
    pairing = run.pairing(ours[0], theirs[0])
    x, y = ours[1], theirs[1]
    if pairing == "boot":
        x, y = (_by_boot(values, run.experiment.rounds_per_boot) for values in (x, y))
    return Pair(key, workload, ours[0], theirs[0], x, y, pairing, job)


def _by_boot(values: Numbers, rounds_per_boot: int) -> Numbers:
    """The typical value of each boot's rounds, of those that have one."""
    found: Numbers = []
    for first in range(0, len(values), rounds_per_boot):
        present = [value for value in values[first : first + rounds_per_boot] if value is not None]
        found.append(float(typical(np.array(present))) if present else None)
    return found


def absence_reasons(run: MeasuredRun) -> dict[tuple[str, str, str], str]:
    """By workload, key and setting, why a trial has no value."""
    import polars as pl

    absent = run.metrics.filter(pl.col("value").is_null()).unique(["workload", "key", "setting"], keep="first")
    columns = ("workload", "key", "setting", "reason")
    return {(workload, key, setting): reason for workload, key, setting, reason in absent.select(columns).iter_rows()}


def row_of(
    place: Place,
    by_setting: dict[str, Numbers],
    by_candidate: dict[str, Comparison],
    reasons: dict[tuple[str, str, str], str],
) -> Row:
    """A place's values by setting as a row; `reasons`: by workload, key and setting, why there is none."""
    workload, job, key = place
    metric = describe(key)
    of_job = metric.absent if job and isinstance(metric, Metric) else None
    cells = {
        setting: cell_of(numbers, of_job or reasons.get((workload, key, setting)))
        for setting, numbers in by_setting.items()
    }
    return Row(workload, job, key, metric.unit, metric.better, metric.help, cells, by_candidate)


def cell_of(numbers: Numbers, reason: str | None) -> Cell:
    """The typical value and the spread of values, one per round; `reason`: why they are absent, if they are."""
    values = np.array([number for number in numbers if number is not None])
    if not len(values):
        return Cell(None, None, 0, reason, numbers)
    # Halved, so that the difference of two is a number.
    low, high = np.quantile(values / 2, (0.25, 0.75))
    return Cell(float(typical(values)), float(high - low) if len(values) > 1 else None, len(values), reason, numbers)
