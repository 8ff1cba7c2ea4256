"""Runs side by side: the first is the baseline, the others are candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.base.plain_text import listed
from iolab.domain.comparison import UNPAIRED, Comparison, Numbers, Pair, Pairing, compare_pairs
from iolab.domain.definition import TOOL_METRICS, Better
from iolab.domain.experiment import IMPORTED
from iolab.domain.machine import kind_of
from iolab.domain.matrix_axis import VALUES_MIN
from iolab.domain.metric import METRICS
from iolab.domain.summary import ByPlace, Jobs, Levels, chosen_keys, has_key, row_of, values_by_place
from iolab.domain.verdict.interval import typical

if TYPE_CHECKING:
    from iolab.domain.measured_run import MeasuredRun

WITHOUT_DRIFT = ("model", "guest")
"""The kinds of machines whose numbers follow from the trial's seed."""
Span = tuple[int, int]
"""When the first trial of a round began, and the last, in ns; 0 if that is not known."""


@dataclass(frozen=True)
class Arm:
    """What is compared with another: a run, or several that repeat the same."""

    name: str
    runs: Sequence[MeasuredRun]
    """One run: each round is a value. Several: each run is one, the typical one of its rounds."""

    @property
    def settings(self) -> list[str]:
        """The settings of all its runs."""
        return list(dict.fromkeys(setting for run in self.runs for setting in run.settings))

    def label(self, setting: str) -> str:
        """`bfq in RUN`, or the arm's name if the setting has no other."""
        return self.name if setting == self.name else f"{setting} in {self.name}"

    def values(self, wanted: Sequence[str], jobs: Jobs) -> ByPlace:
        """Each place's settings with their values."""
        found = [_values(run, wanted, jobs) for run in self.runs]
        if len(found) == 1:
            return found[0]
        places = dict.fromkeys(place for one in found for place in one)
        return {
            place: {setting: [_typical(one.get(place, {}).get(setting)) for one in found] for setting in self.settings}
            for place in places
        }

    def spans(self) -> list[Span]:
        """When each value was measured."""
        if len(self.runs) == 1:
            return spans(self.runs[0], None)
        return [(min(first for first, _ in one), max(last for _, last in one)) for one in map(_all_spans, self.runs)]


def compare_arms(
    arms: Sequence[Arm],
    *,
    metrics: Sequence[str] = (),
    same_within: float | None = None,
    jobs: Jobs | None = None,
    better: Mapping[str, Better] | None = None,
) -> list[Comparison]:
    """Each setting of the other arms against the setting of the same name in the first, on each workload that both
    have; if each arm has a single setting, that one, whatever its name.

    Rounds are paired if the clock shows that the arms were measured in turns. `better` as in `compare_pairs`.
    InputError if an arm has nothing in common with the first.
    """
    baseline, *candidates = arms
    first = baseline.runs[0]
    _check_known(metrics, arms)
    wanted = metrics or first.experiment.compare.metrics or ()
    jobs = jobs or Jobs()
    ours = baseline.values(wanted, jobs)
    pairs: list[Pair] = []
    for candidate in candidates:
        theirs = candidate.values(wanted, jobs)
        one_setting = len(baseline.settings) == len(candidate.settings) == 1
        pairing = pairing_of(baseline, candidate)
        found = [
            Pair(
                key,
                workload,
                baseline.label(setting),
                candidate.label(partner),
                *_as_rounds(x, y, pairing),
                pairing,
                job,
            )
            for (workload, job, key), by_setting in ours.items()
            for setting, x in by_setting.items()
            for partner, y in _partners(theirs.get((workload, job, key), {}), setting, any_name=one_setting)
        ]
        if not found:
            raise InputError(
                "the runs have no workload, setting and metric in common",
                where=f"{first.path}, {candidate.runs[0].path}",
                remedy="compare runs of the same experiment, on two kernels for instance",
            )
        pairs += found
    margin = first.experiment.compare.same_within if same_within is None else same_within
    order = {place: number for number, place in enumerate(ours)}
    pairs.sort(key=lambda pair: order[pair.workload or "", pair.job, pair.metric])
    instructions = first.experiment.compare.same_instructions if same_within is None else None
    return compare_pairs(pairs, same_within=margin, same_instructions=instructions, better=better)


def levels_of(arms: Sequence[Arm], metrics: Sequence[str], jobs: Jobs) -> Levels:
    """The values of arms with one setting each, which are settings of one table then; of any others no row, nor if
    there are too few arms for an axis."""
    names = [arm.name for arm in arms]
    if len(arms) < VALUES_MIN or any(len(arm.settings) != 1 for arm in arms):
        return Levels(names, [])
    wanted = metrics or arms[0].runs[0].experiment.compare.metrics or ()
    found: ByPlace = {}
    for arm in arms:
        for place, by_setting in arm.values(wanted, jobs).items():
            for values in by_setting.values():
                found.setdefault(place, {})[arm.name] = values
    return Levels(names, [row_of(place, by_arm, {}, {}) for place, by_arm in found.items()])


def _check_known(metrics: Sequence[str], arms: Sequence[Arm]) -> None:
    """InputError for a metric that no run has. A metric that one run has and another lacks is compared among those that
    have it."""
    runs = [run for arm in arms for run in arm.runs]
    for text in metrics:
        if not any(_has(run, text) for run in runs):
            chosen_keys(runs[0], [text])


def _as_rounds(x: Numbers, y: Numbers, pairing: Pairing) -> tuple[Numbers, Numbers]:
    """If rounds are paired, a round that the shorter arm lacks is no pair."""
    if pairing in UNPAIRED:
        return x, y
    rounds = max(len(x), len(y))
    return x + [None] * (rounds - len(x)), y + [None] * (rounds - len(y))


def pairing_of(baseline: Arm, candidate: Arm) -> Pairing:
    """Rounds of files, and several runs, have something in common if they were measured in turns; rounds of two runs,
    if both were simulated, or emulated, with the same seed."""
    if len(baseline.runs) == len(candidate.runs) == 1:
        ours, theirs = (arm.runs[0] for arm in (baseline, candidate))
        machines = ours.machine_name, theirs.machine_name
        if all(kind_of(machine) in WITHOUT_DRIFT for machine in machines):
            return "round" if ours.seed == theirs.seed else "draws"
        if set(machines) != {IMPORTED}:
            return "none"
    return "round" if interleaved(baseline.spans(), candidate.spans()) else "none"


def compare_runs(
    baseline: MeasuredRun, candidate: MeasuredRun, *, metrics: Sequence[str] = (), same_within: float | None = None
) -> list[Comparison]:
    """`compare_arms` of two runs, named as `setting_names` names them."""
    ours, theirs = arm_names([baseline, candidate])
    return compare_arms([Arm(ours, [baseline]), Arm(theirs, [candidate])], metrics=metrics, same_within=same_within)


def arm_names(runs: Sequence[MeasuredRun]) -> list[str]:
    """Their directories' names, or paths if two names are equal."""
    names = [run.path.name for run in runs]
    return names if len(set(names)) == len(names) else [str(run.path) for run in runs]


def setting_names(baseline: MeasuredRun, candidate: MeasuredRun) -> tuple[Callable[[str], str], Callable[[str], str]]:
    """The names of each run's settings beside the other's: `bfq in RUN`, by the path if the names are equal."""
    ours, theirs = arm_names([baseline, candidate])
    return Arm(ours, [baseline]).label, Arm(theirs, [candidate]).label


def interleaved(ours: Sequence[Span], theirs: Sequence[Span]) -> bool:
    """Whether the two were measured in turns: every round of both was over before the next of either began."""
    if len(ours) != len(theirs) or len(ours) < 2 or not all(first > 0 for first, _ in (*ours, *theirs)):
        return False
    blocks = [(min(x[0], y[0]), max(x[1], y[1])) for x, y in zip(ours, theirs, strict=True)]
    return all(last < first for (_, last), (first, _) in pairwise(blocks))


def spans(run: MeasuredRun, setting: str | None) -> list[Span]:
    """When each round of the setting was measured, of all settings for None."""
    import polars as pl

    trials = run.trials if setting is None else run.trials.filter(pl.col("setting") == setting)
    at = pl.col("started_unix_ns").fill_null(0)
    rounds = trials.group_by("round").agg(at.min().alias("first"), at.max().alias("last")).sort("round")
    return [(first, last) for _, first, last in rounds.select("round", "first", "last").iter_rows()]


def _all_spans(run: MeasuredRun) -> list[Span]:
    return spans(run, None) or [(0, 0)]


def _values(run: MeasuredRun, wanted: Sequence[str], jobs: Jobs) -> ByPlace:
    known = [text for text in wanted if _has(run, text)]
    keys = (chosen_keys(run, known) if known else []) if wanted else None
    return values_by_place(run, keys, jobs)


def _has(run: MeasuredRun, text: str) -> bool:
    """A name that only another run has, such as a column of its file, is none of this one's."""
    try:
        return has_key(run, text)
    except InputError:
        return False


def not_shared(arms: Sequence[Arm]) -> list[str]:
    """A line that names the columns that only some of several files have, which are not compared; none for metrics of
    known tools, which depend on what each did."""
    found: dict[str, list[str]] = {}
    for arm in arms:
        for key in dict.fromkeys(key for run in arm.runs for key in run.keys if run.machine_name == IMPORTED):
            if key.rpartition("/")[2].rpartition(".")[2] not in METRICS.keys() | TOOL_METRICS.keys():
                found.setdefault(key, []).append(arm.name)
    lacking = [f"{key} ({', '.join(names)})" for key, names in found.items() if len(names) < len(arms)]
    return [f"not compared, since not all have them: {listed(lacking, 8)}"] if lacking else []


def _partners(by_setting: dict[str, Numbers], setting: str, *, any_name: bool) -> Iterator[tuple[str, Numbers]]:
    partner = next(iter(by_setting), setting) if any_name else setting
    if partner in by_setting:
        yield partner, by_setting[partner]


def _typical(numbers: Numbers | None) -> float | None:
    import numpy as np

    values = [number for number in numbers or () if number is not None]
    return float(typical(np.array(values))) if values else None
