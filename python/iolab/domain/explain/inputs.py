"""What is explained, and by what: the numbers and verdicts of a run, of two runs, or of anybody's table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base import csv_table
from iolab.base.errors import InputError, unknown
from iolab.domain.arms import compare_runs, setting_names
from iolab.domain.comparison import Comparison, compare_table, rounds_in_order
from iolab.domain.experiment import IMPORTED
from iolab.domain.explain.change import Change, Changes, changes_between, changes_within
from iolab.domain.explain.place import KEYS, ROUND, SETTING, WORKLOAD, Name
from iolab.domain.metric import METRICS
from iolab.domain.probe import PROBES
from iolab.domain.summary import Jobs, summarise

if TYPE_CHECKING:
    import polars as pl

    from iolab.domain.definition import Better
    from iolab.domain.measured_run import MeasuredRun


@dataclass(frozen=True)
class Inputs:
    """The numbers to be looked through, and the results to be explained by them."""

    frame: pl.DataFrame
    """A row per (workload, setting, round), a column per metric."""
    results: list[Comparison]
    probes_off: list[str]
    """Probes that the run had not on; none for numbers that iolab did not measure."""
    problems: list[str]
    first_only: str | None = None
    """The metric, if it was chosen as the file's first."""
    changes: Changes = field(default_factory=dict)
    """What was changed between the settings; nothing if that is not known."""

    def of_workload(self, workload: str | None) -> Inputs:
        """The results on it alone; None: all. InputError if there is none."""
        if workload is None:
            return self
        known = list(dict.fromkeys(one.workload for one in self.results if one.workload))
        known = known or self.frame[WORKLOAD].unique(maintain_order=True).to_list()
        if workload not in known:
            raise InputError(f"{workload}: {unknown('workload', workload, known)}", where="--workload")
        frame = self.frame if self.results else self.frame.filter(self.frame[WORKLOAD] == workload)
        return replace(self, frame=frame, results=[one for one in self.results if one.workload == workload])

    @property
    def is_one_setting(self) -> bool:
        """Whether there is nothing to compare with."""
        return not self.results and SETTING in self.frame.columns and self.frame[SETTING].n_unique() == 1


def of_run(run: MeasuredRun, metrics: Sequence[str], baseline: str | None) -> Inputs:
    """`metrics` are keys; without them what the experiment compares, of imported numbers the first that is compared."""
    chosen, first = _chosen(run, metrics)
    results = summarise(run, metrics=chosen, baseline=baseline, jobs=Jobs("none")).comparisons
    return Inputs(frame_of(run), results, probes_off(run), run.problems, first, _changes_of_run(run, results))


def of_two_runs(baseline: MeasuredRun, candidate: MeasuredRun, metrics: Sequence[str]) -> Inputs:
    """The second run's settings as candidates against those of the same name in the first."""
    import polars as pl

    chosen, first = _chosen(baseline, metrics)
    results = compare_runs(baseline, candidate, metrics=chosen)
    runs = (baseline, candidate)
    names = setting_names(*runs)
    frames = [
        frame_of(run).with_columns(pl.col(SETTING).replace_strict({one: name(one) for one in run.settings}))
        for run, name in zip(runs, names, strict=True)
    ]
    off = [probe for probe in probes_off(baseline) if probe in probes_off(candidate)]
    problems = [*baseline.problems, *candidate.problems]
    changes = _changes_of_two(baseline, candidate, results)
    return Inputs(pl.concat(frames, how="diagonal"), results, off, problems, first, changes)


def of_csv(
    path: Path,
    setting_column: str,
    round_column: str | None,
    baseline: str,
    metrics: Sequence[str],
    *,
    workload_column: str | None = None,
    better: dict[str, Better] | None = None,
    text: pl.DataFrame | None = None,
) -> Inputs:
    """A CSV file whose columns are named; without `metrics` its first column of numbers. `text` and errors as of
    `compare_csv`."""
    import polars as pl

    named = {WORKLOAD: workload_column, SETTING: setting_column, ROUND: round_column}
    keys = {name: column for name, column in named.items() if column}
    frame, columns = csv_table.read(path, list(keys.values()), None, text)
    by_place = round_column is None
    if round_column is None:
        frame, round_column = csv_table.with_rounds(frame, list(keys.values()))
        by_place = round_column not in columns
        keys[ROUND] = round_column
        columns = [column for column in columns if column != round_column]
    for metric in metrics:
        if metric not in columns:
            raise InputError(f"{metric}: {unknown('column of numbers', metric, columns)}", where=str(path))
    results = compare_table(
        frame,
        setting_column,
        round_column,
        baseline,
        metrics or columns[:1],
        workload_column=workload_column,
        better=better,
        by_place=by_place,
        name=str(path),
    )
    renamed_keys = [frame[column].alias(name) for name, column in keys.items()]
    renamed = pl.DataFrame([*renamed_keys, *(frame[column] for column in columns if column not in KEYS)]).with_columns(
        pl.Series(ROUND, rounds_in_order(frame[round_column]))
    )
    return Inputs(renamed, results, [], [], None if metrics else columns[0])


def frame_of(run: MeasuredRun) -> pl.DataFrame:
    """Every metric of every trial, aggregates over all jobs."""
    return run.metrics.pivot(on="key", index=list(KEYS), values="value")


def probes_off(run: MeasuredRun) -> list[str]:
    """Probes of which no trial has a metric."""
    if run.machine_name == IMPORTED:
        return []
    names = run.metrics["metric"].unique().to_list()
    on = {METRICS[name].probe for name in names if name in METRICS}
    return [name for name in PROBES if name not in on]


def _changes_of_run(run: MeasuredRun, results: Sequence[Comparison]) -> dict[Name, list[Change]]:
    if run.machine_name == IMPORTED:
        return {}
    return {
        (one.workload, one.against, one.setting): changes_within(
            run.experiment, one.workload or "", one.against, one.setting
        )
        for one in results
    }


def _changes_of_two(
    baseline: MeasuredRun, candidate: MeasuredRun, results: Sequence[Comparison]
) -> dict[Name, list[Change]]:
    if IMPORTED in (baseline.machine_name, candidate.machine_name):
        return {}
    ours, theirs = setting_names(baseline, candidate)
    before = {ours(name): name for name in baseline.settings}
    after = {theirs(name): name for name in candidate.settings}
    return {
        (one.workload, one.against, one.setting): changes_between(
            baseline.experiment, before[one.against], candidate.experiment, after[one.setting], one.workload or ""
        )
        for one in results
        if one.against in before and one.setting in after
    }


def _chosen(run: MeasuredRun, metrics: Sequence[str]) -> tuple[Sequence[str], str | None]:
    """Forty explanations of a table with forty columns explain nothing: the first column's, then."""
    compared = run.experiment.compare.metrics
    if metrics or run.machine_name != IMPORTED or not compared:
        return metrics, None
    return compared[:1], compared[0]
