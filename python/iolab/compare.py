"""From tables of numbers to verdicts: every candidate setting against the baseline, metric by metric.

A table has a row per (workload, setting, round): a run's metrics, or anybody's CSV.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from iolab.errors import InputError
from iolab.nearest import unknown

if TYPE_CHECKING:
    import polars as pl

    from iolab.verdict import Judgement

Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Comparison:
    metric: str
    workload: str | None
    """None where the table has no workloads."""
    setting: str
    """The candidate."""
    against: str
    """The baseline."""
    judgement: Judgement
    better: Better
    unpaired_rounds: int
    """Rounds left out, because only one of the two settings has this metric there."""

    @property
    def notes(self) -> list[str]:
        """What a reader has to know beside the numbers."""
        dropped = f"{self.unpaired_rounds} unpaired rounds left out" if self.unpaired_rounds else None
        return [note for note in (dropped, self.judgement.reason) if note]

    def as_dict(self) -> dict[str, Any]:
        """One JSON object: metric, workload, setting, against, the judgement's fields, notes."""
        return {
            "metric": self.metric,
            "workload": self.workload,
            "setting": self.setting,
            "against": self.against,
            **self.judgement.as_dict(),
            "notes": self.notes,
        }


def compare_csv(
    path: Path,
    setting_column: str,
    round_column: str,
    baseline: str,
    metrics: Sequence[str] | None = None,
    *,
    same_within: float = 0.02,
    workload_column: str | None = None,
    better: Mapping[str, Better] | None = None,
) -> list[Comparison]:
    """Verdicts on a CSV file with a row per setting and round; `metrics`: default every other column that has numbers.
    The rest as in `compare_table`. InputError names file, line and column.
    """
    from iolab import csv_table

    keys = [column for column in (workload_column, setting_column, round_column) if column]
    frame, metrics = csv_table.read(path, keys, metrics)
    return compare_table(
        frame,
        setting_column,
        round_column,
        baseline,
        metrics,
        same_within=same_within,
        workload_column=workload_column,
        better=better,
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
    max_rounds: int | None = None,
    name: str = "table",
) -> list[Comparison]:
    """Verdicts on a frame with a row per (workload, setting, round), metrics as columns, null where a value is missing.

    Order: by workload, then setting, as they first appear, then metric. `metrics`: default every other numeric column.
    `better` overrides which way is faster. The false-discovery rate is controlled over all comparisons of the call;
    with `max_rounds` the sequential rule judges instead, its promise shared among all comparisons. Two rows of the same
    workload, setting and round are refused: repeats within a round aren't rounds. `name` is the table's in errors.
    """
    from iolab.verdict import control_false_discovery, judge, judge_sequential

    keys = [column for column in (workload_column, setting_column, round_column) if column]
    for column in (*keys, *(metrics or ())):
        _require(column, frame.columns, "column", name)
    if metrics is None:
        metrics = [column for column in frame.columns if column not in keys and frame[column].dtype.is_numeric()]
    settings = _in_order(frame[setting_column])
    _require(baseline, settings, "setting", f"{name}, column {setting_column}")
    _refuse_duplicates(frame, keys, name)
    rounds = _rounds(frame[round_column])
    directions = {metric: (better or {}).get(metric) or direction(metric) for metric in metrics}
    workloads = _in_order(frame[workload_column]) if workload_column else [None]
    columns = {metric: frame[metric].to_list() for metric in metrics}
    table = _index(frame, workload_column, setting_column, rounds)
    cases = [
        (workload, setting, metric)
        for workload in workloads
        for setting in settings
        if setting != baseline
        for metric in metrics
    ]
    comparisons = []
    for workload, setting, metric in cases:
        x, y, unpaired = _pairs(
            columns[metric], table.get((workload, baseline), {}), table.get((workload, setting), {})
        )
        way = directions[metric]
        if max_rounds is None:
            judgement = judge(x, y, better=way, same_within=same_within)
        else:
            judgement = judge_sequential(
                x, y, better=way, same_within=same_within, max_rounds=max_rounds, comparisons=len(cases)
            )
        comparisons.append(Comparison(metric, workload, setting, baseline, judgement, way, unpaired))
    if max_rounds is None:
        controlled = control_false_discovery([one.judgement for one in comparisons])
        comparisons = [replace(one, judgement=held) for one, held in zip(comparisons, controlled, strict=True)]
    return comparisons


def direction(metric: str) -> Better:
    """Which way is faster, as the registry of metrics says. Of others by the words of their name: rates are better
    high; latencies, durations, CPU time and counts of what hurts are better low; the rest is better high."""
    from iolab.metric import METRICS

    known = METRICS.get(metric.rpartition("/")[2].rpartition(".")[2])
    if known is not None:
        return known.better or "higher"
    name = metric.lower()
    if re.search(r"(/|per_?)s(ec)?(ond)?\b", name):
        return "higher"
    return "lower" if _LOWER_IS_BETTER & set(re.split(r"[^a-z0-9]+", name)) else "higher"


_LOWER_IS_BETTER = {
    *("latency", "lat", "clat", "slat", "cpu", "time", "elapsed", "duration", "delay", "wait", "stall", "stalls"),
    *("ns", "us", "ms", "s", "sec", "seconds", "errors", "faults", "switches", "retries", "misses"),
}


def _require(word: str, words: Sequence[str], what: str, where: str) -> None:
    if word not in words:
        raise InputError(f"{word}: {unknown(what, word, words)}", where=where)


def _in_order(column: pl.Series) -> list[str]:
    return [str(value) for value in column.unique(maintain_order=True)]


def _refuse_duplicates(frame: pl.DataFrame, keys: list[str], name: str) -> None:
    repeated = frame.select(keys).is_duplicated()
    if repeated.any():
        row = frame.select(keys).row(int(repeated.arg_max() or 0), named=True)
        which = ", ".join(f"{key} {value}" for key, value in row.items())
        raise InputError(
            f"{int(repeated.sum())} rows share their {' and '.join(keys)} with another, first: {which}",
            where=name,
            remedy="number the rounds, average repeats within a round, or name the column of the workload",
        )


def _rounds(column: pl.Series) -> list[float]:
    """The order of the rounds: by number, or as they first appear where they aren't numbers."""
    import polars as pl

    numbers = column.cast(pl.Float64, strict=False)
    if numbers.is_null().any():
        place: dict[Any, float] = {}
        return [place.setdefault(value, float(len(place))) for value in column]
    return numbers.to_list()


def _index(
    frame: pl.DataFrame, workload_column: str | None, setting_column: str, rounds: list[float]
) -> dict[tuple[str | None, str], dict[float, int]]:
    """(workload, setting) -> round -> row."""
    workloads = frame[workload_column].to_list() if workload_column else [None] * len(frame)
    table: dict[tuple[str | None, str], dict[float, int]] = {}
    for row, (workload, setting, number) in enumerate(zip(workloads, frame[setting_column], rounds, strict=True)):
        key = (None if workload is None else str(workload), str(setting))
        table.setdefault(key, {})[number] = row
    return table


def _pairs(
    values: list[float | None], baseline: dict[float, int], candidate: dict[float, int]
) -> tuple[list[float], list[float], int]:
    """The numbers of the rounds that have both, and how many rounds have only one."""

    def present(rows: dict[float, int]) -> dict[float, float]:
        found = {number: values[row] for number, row in rows.items()}
        return {number: value for number, value in found.items() if value is not None and not math.isnan(value)}

    x, y = present(baseline), present(candidate)
    both = sorted(x.keys() & y.keys())
    return [x[number] for number in both], [y[number] for number in both], len(x.keys() ^ y.keys())
