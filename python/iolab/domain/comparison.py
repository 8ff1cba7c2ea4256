"""From tables of numbers to verdicts: every candidate setting against the baseline, metric by metric.

A table has a row per (workload, setting, round): a run's metrics, or anybody's CSV.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from iolab.base import csv_table
from iolab.base.errors import InputError, unknown
from iolab.base.strict_json import JsonObject
from iolab.domain.definition import Better, Nature, better_of
from iolab.domain.lead import phase_of
from iolab.domain.metric import IN_INSTRUCTIONS, describe
from iolab.domain.verdict.judgement import Judgement, control_false_discovery, judge
from iolab.domain.verdict.sequential import judge_sequential
from iolab.domain.verdict.unpaired_samples import judge_unpaired

if TYPE_CHECKING:
    import polars as pl

Numbers = list[float | None]
"""A value per round, None if it is absent."""
Pairing = Literal["round", "boot", "none", "draws"]
"""What two values have in common that are compared: a round; two boots one after the other; nothing; nothing, on a
machine that does not drift, since other seeds were drawn."""
UNPAIRED: tuple[Pairing, ...] = ("none", "draws")
NOT_INTERLEAVED = "not paired: drift is in this difference"
OTHER_DRAWS = "not paired: the runs drew from other seeds, which is in this difference; give both the same seed"
MARGIN_MAX = 0.99
RARE = 0.01
"""What happens less often than this per operation, under both settings, is no conclusion, however large the ratio."""
BY_BOOT = "paired by boot: what changed between two boots is in this difference"


@dataclass(frozen=True)
class Pair:
    """Two settings' values of one metric on one workload, paired by index unless `pairing` is none."""

    metric: str
    workload: str | None
    baseline: str
    candidate: str
    baseline_values: Sequence[float | None]
    """A value per round; None or NaN if it is absent."""
    candidate_values: Sequence[float | None]
    pairing: Pairing = "round"
    job: str | None = None
    """None: all of the workload's jobs together."""

    @property
    def unpaired_rounds(self) -> int:
        """How many rounds have only one of the two, of those that are paired."""
        if self.pairing in UNPAIRED:
            return 0
        both = zip(self.baseline_values, self.candidate_values, strict=True)
        return sum(_absent(ours) != _absent(theirs) for ours, theirs in both)


def place_of(workload: str | None, job: str | None) -> str:
    """`mixed, job reader`; empty if there is no workload."""
    return (workload or "") + (f", job {job}" if job else "")


@dataclass(frozen=True)
class Comparison:
    """A metric of a candidate setting against the baseline's, on one workload."""

    metric: str
    workload: str | None
    """None if the table has no workloads."""
    setting: str
    """The candidate."""
    against: str
    """The baseline."""
    judgement: Judgement
    nature: Nature
    """The metric's."""
    unpaired_rounds: int
    """Rounds left out, because only one of the two settings has this metric there."""
    pairing: Pairing = "round"
    job: str | None = None
    leads: bool = False
    """It is about what the workload waits for (`iolab.domain.lead`): the first of the workload, or of one of its jobs
    or phases, that has values under both settings."""

    @property
    def notes(self) -> list[str]:
        """What a reader has to know beside the numbers."""
        dropped = f"{self.unpaired_rounds} unpaired {self.pairing}s left out" if self.unpaired_rounds else None
        common = {"round": None, "boot": BY_BOOT, "none": NOT_INTERLEAVED, "draws": OTHER_DRAWS}[self.pairing]
        return [note for note in (dropped, self.judgement.reason, common) if note]

    @property
    def is_rare(self) -> bool:
        """Whether it counts events per operation, of which there are next to none."""
        if not self.metric.endswith(("_per_io", "_per_op")) or describe(self.metric).unit != "count":
            return False
        return all(level is not None and level < RARE for level in (self.judgement.baseline, self.judgement.candidate))

    @property
    def place(self) -> str:
        """The workload, and its job; empty if the table has none."""
        return place_of(self.workload, self.job)

    def as_dict(self) -> JsonObject:
        """One JSON object: metric, workload, setting, against, the judgement's fields, notes."""
        return {
            "metric": self.metric,
            "workload": self.workload,
            "setting": self.setting,
            "against": self.against,
            **self.judgement.as_dict(),
            "job": self.job,
            "pairing": self.pairing,
            "leads": self.leads,
            "notes": self.notes,
        }


def compare_csv(
    path: Path,
    setting_column: str,
    round_column: str | None,
    baseline: str,
    metrics: Sequence[str] | None = None,
    *,
    same_within: float = 0.02,
    workload_column: str | None = None,
    better: Mapping[str, Better] | None = None,
    text: pl.DataFrame | None = None,
) -> list[Comparison]:
    """Verdicts on a CSV file with a row per setting and round; `metrics`: default every other column that has numbers.
    Without a column of rounds, the rows of a setting are rounds in their order, and pair if settings take turns. `text`
    as in `csv_table.read`, the rest as in `compare_table`. InputError names file, line and column.
    """
    keys = [column for column in (workload_column, setting_column, round_column) if column]
    frame, metrics = csv_table.read(path, keys, metrics, text)
    by_place = round_column is None
    if round_column is None:
        frame, round_column = csv_table.with_rounds(frame, keys)
        by_place = round_column not in metrics
        metrics = [metric for metric in metrics if metric != round_column]
    return compare_table(
        frame,
        setting_column,
        round_column,
        baseline,
        metrics,
        same_within=same_within,
        workload_column=workload_column,
        better=better,
        by_place=by_place,
        name=str(path),
    )


def compare_table(
    frame: pl.DataFrame,
    setting_column: str,
    round_column: str,
    baseline: str,
    metrics: Sequence[str] | None = None,
    *,
    same_within: float = 0.02,
    workload_column: str | None = None,
    better: Mapping[str, Better] | None = None,
    by_place: bool = False,
    name: str = "table",
) -> list[Comparison]:
    """Verdicts on a frame with a row per (workload, setting, round), metrics as columns, null if a value is missing.

    Order: by workload, then setting, as they first appear, then metric. `metrics`: default every other numeric column.
    Two rows of the same workload, setting and round are refused: repeats within a round aren't rounds. `by_place`: the
    rounds are only the places of the rows, so that they pair if the settings take turns. `name` is the table's in
    errors. The rest as in `compare_pairs`.
    """
    keys = [column for column in (workload_column, setting_column, round_column) if column]
    columns = frame.schema
    for column in (*keys, *(metrics or ())):
        _require(column, columns, "column", name)
    if metrics is None:
        metrics = [column for column, kind in columns.items() if column not in keys and kind.is_numeric()]
    settings = _in_order(frame[setting_column])
    _require(baseline, settings, "setting", f"{name}, column {setting_column}")
    _refuse_duplicates(frame, keys, name)
    rows = _rows(frame, workload_column, setting_column, rounds_in_order(frame[round_column]))
    values = {metric: frame[metric].to_list() for metric in metrics}
    pairs = []
    for workload in _in_order(frame[workload_column]) if workload_column else [None]:
        for setting in settings:
            if setting == baseline:
                continue
            ours, theirs = _by_round(rows, workload, baseline, setting)
            pairing: Pairing = "round" if not by_place or in_turns(ours, theirs) else "none"
            for metric in metrics:
                x, y = _picked(values[metric], ours), _picked(values[metric], theirs)
                pairs.append(Pair(metric, workload, baseline, setting, x, y, pairing))
    return compare_pairs(pairs, same_within=same_within, better=better)


def in_turns(*places: Sequence[int | None]) -> bool:
    """Whether settings took turns: whatever stands at `places`, a setting's by round, all of a round do before all of
    the next. None: the setting lacks the round."""
    rounds = [[place for place in of if place is not None] for of in zip_longest(*places)]
    return all(max(one) <= min(later) for one, later in pairwise(filter(None, rounds)))


def margin_of(
    metric: str, baseline: Sequence[float | None], same_within: float, same_instructions: float | None
) -> float:
    """The margin of `same` as a share, of a metric with these values under the baseline."""
    known = [abs(value) for value in baseline if value is not None and not _absent(value)]
    if same_instructions is None or not counts_instructions(metric) or not any(known):
        return same_within
    return min(same_instructions * len(known) / sum(known), MARGIN_MAX)


def counts_instructions(metric: str) -> bool:
    """Whether the margin of `same` may be one in instructions."""
    return metric.endswith(IN_INSTRUCTIONS)


def compare_pairs(
    pairs: Sequence[Pair],
    *,
    same_within: float,
    same_instructions: float | None = None,
    better: Mapping[str, Better] | None = None,
    max_rounds: int | None = None,
    rounds_per_boot: int = 1,
) -> list[Comparison]:
    """A verdict for each pair, with the false-discovery rate over all of them controlled.

    Pairs are in the order of the output: the first of each workload lead, or of each of its jobs and phases. Those that
    have no rounds in common are judged by `judge_unpaired`. `same_instructions`: the margin of metrics that count them,
    instead. `better` overrides which way of a metric is better. `max_rounds`: the most rounds of a run that may stop at
    any round; the sequential rule judges then, its promise shared among all pairs. What is paired by boot has a value
    for each `rounds_per_boot` of them.
    """
    have_jobs = {pair.workload for pair in pairs if pair.job is not None}
    leading: dict[tuple[str | None, ...], Pair] = {}
    for pair in pairs:
        known = not any(all(map(_absent, values)) for values in (pair.baseline_values, pair.candidate_values))
        if known and (pair.job is not None or pair.workload not in have_jobs):
            leading.setdefault((pair.candidate, pair.workload, pair.job, phase_of(pair.metric)), pair)
    leaders = set(map(id, leading.values()))
    natures = [nature_of(pair.metric, (better or {}).get(pair.metric)) for pair in pairs]

    def judge_of(pair: Pair) -> Callable[..., Judgement]:
        if pair.pairing in UNPAIRED:
            return judge_unpaired
        if max_rounds is None:
            return judge
        most = max_rounds // rounds_per_boot if pair.pairing == "boot" else max_rounds
        return partial(judge_sequential, max_rounds=most, comparisons=len(pairs))

    judgements = [
        judge_of(pair)(
            pair.baseline_values,
            pair.candidate_values,
            nature=nature,
            same_within=margin_of(pair.metric, pair.baseline_values, same_within, same_instructions),
        )
        for pair, nature in zip(pairs, natures, strict=True)
    ]
    if max_rounds is None:
        judgements = control_false_discovery(judgements)
    return [
        Comparison(
            metric=pair.metric,
            workload=pair.workload,
            setting=pair.candidate,
            against=pair.baseline,
            judgement=judgement,
            nature=nature,
            unpaired_rounds=pair.unpaired_rounds,
            pairing=pair.pairing,
            job=pair.job,
            leads=id(pair) in leaders,
        )
        for pair, judgement, nature in zip(pairs, judgements, natures, strict=True)
    ]


def nature_of(metric: str, better: Better | None = None) -> Nature:
    """The metric's nature, from the registry; for other metrics, from the words of the name (`describe_by_name`).
    `better`: which way is better, if a user gives it; a rate or a time of which the other way is better is neither."""
    nature = describe(metric).nature
    if better is None or better == better_of(nature):
        return nature
    return "benefit" if better == "higher" else "cost"


def _require(word: str, words: Collection[str], what: str, where: str) -> None:
    if word not in words:
        raise InputError(f"{word}: {unknown(what, word, words)}", where=where)


def _in_order(column: pl.Series) -> list[str]:
    return [str(value) for value in column.unique(maintain_order=True)]


def _refuse_duplicates(frame: pl.DataFrame, keys: list[str], name: str) -> None:
    repeated = frame[keys].is_duplicated()
    if repeated.any():
        row = frame[keys].row(int(repeated.arg_max() or 0), named=True)
        which = ", ".join(f"{key} {value}" for key, value in row.items())
        raise InputError(
            f"{int(repeated.sum())} rows share their {' and '.join(keys)} with another, first: {which}",
            where=name,
            remedy="number the rounds, average repeats within a round, or name the column of the workload",
        )


def rounds_in_order(column: pl.Series) -> list[float]:
    """The order of the rounds: by number, or as they first appear if they aren't numbers."""
    import polars as pl

    numbers = column.cast(pl.Float64, strict=False)
    if numbers.is_null().any():
        place: dict[Any, float] = {}
        return [place.setdefault(value, float(len(place))) for value in column]
    return numbers.to_list()


def _rows(
    frame: pl.DataFrame, workload_column: str | None, setting_column: str, rounds: list[float]
) -> dict[tuple[str | None, str], dict[float, int]]:
    """(workload, setting) -> round -> row."""
    workloads = frame[workload_column].to_list() if workload_column else [None] * len(frame)
    table: dict[tuple[str | None, str], dict[float, int]] = {}
    for row, (workload, setting, number) in enumerate(zip(workloads, frame[setting_column], rounds, strict=True)):
        key = (None if workload is None else str(workload), str(setting))
        table.setdefault(key, {})[number] = row
    return table


def _by_round(
    rows: dict[tuple[str | None, str], dict[float, int]], workload: str | None, baseline: str, candidate: str
) -> tuple[list[int | None], list[int | None]]:
    """For each round that either setting has: the row of the one and of the other."""
    ours, theirs = rows.get((workload, baseline), {}), rows.get((workload, candidate), {})
    rounds = sorted(ours.keys() | theirs.keys())
    return [ours.get(number) for number in rounds], [theirs.get(number) for number in rounds]


def _picked(values: list[float | None], rows: list[int | None]) -> list[float | None]:
    return [None if row is None else values[row] for row in rows]


def _absent(value: float | None) -> bool:
    return value is None or math.isnan(value)
