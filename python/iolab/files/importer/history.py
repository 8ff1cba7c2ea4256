"""Histories: directories of runs, files of other tools by date, and CSV files with a row per run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from iolab.base import csv_table
from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.domain.conditions import facts_of
from iolab.domain.history.history import History, Moment, Series
from iolab.domain.summary import absence_reasons, chosen_keys, compared_keys, values_by_setting
from iolab.domain.verdict.interval import typical
from iolab.files.importer.csv_layout import WORKLOAD
from iolab.files.importer.groups import members
from iolab.files.importer.run_import import open_files, open_run

if TYPE_CHECKING:
    import polars as pl

    from iolab.files.store import RunData

TIME = ("time", "date", "day", "night", "when", "timestamp", "version", "commit", "revision", "build", "release")
"""What columns of the time, or of what stands for it, are called."""
SETTING = ("setting", "variant", "config", "configuration")
"""What columns of settings are called: fewer names than elsewhere, since here a kernel is what may have changed."""
ONE_SETTING = "all"
"""The setting of files that name none."""
_DATE = re.compile(r"(?<!\d)(\d{4})[-_.]?(\d\d)[-_.]?(\d\d)(?!\d)")
_NUMBER = re.compile(r"[-+]?\d[\d.,]*")
_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ][\d:.,+Z-]*)?$")

SeriesKey = tuple[str, str, str]
"""Workload, setting, metric."""
Values = dict[SeriesKey, float | str]
"""A run's value of each series, or why it has none."""


def read_history(
    paths: Sequence[Path],
    *,
    metrics: Sequence[str] = (),
    format_name: str | None = None,
    time_column: str | None = None,
) -> History:
    """The history that the paths hold. InputError names what can't be read."""
    if len(paths) == 1 and paths[0].is_file() and (time_column or paths[0].suffix.lower() in (".csv", ".tsv")):
        return _of_table(paths[0], metrics, time_column)
    if time_column is not None:
        raise InputError("is for one CSV file", where="--time-column")
    problems: list[str] = []
    every = [one for path in paths for one in members(path, problems)]
    if len(every) < 2:
        raise InputError("one run is no history", where=str(paths[0]), remedy="name a directory of runs")
    moments: list[Moment] = []
    values: list[Values] = []
    lacking: list[InputError] = []
    machines: list[str] = []
    titles: list[str] = []
    alike: dict[str, list[str]] = {}
    for path in every:
        run = open_run(path) if path.is_dir() else open_files([path], format_name, ONE_SETTING)
        for problem in run.problems:
            alike.setdefault(_NUMBER.sub("", problem), []).append(f"{path.name}: {problem}")
        moments.append(Moment(path.name, _when(run) or _date_in(path.name), facts_of(run)))
        machines.append(run.machine_name or "")
        titles.append(run.experiment.title if path.is_dir() else "")
        try:
            values.append(_values(run, metrics))
        except InputError as error:
            lacking.append(error)
            values.append(_offered(run))
    if not any(isinstance(value, float) for one in values for value in one.values()):
        raise lacking[0] if lacking else InputError("no run has a value", where=str(paths[0]))
    problems += [_with_others(same) for same in alike.values()]
    problems += [str(error) for error in lacking]
    # What another machine does, or another experiment whose workload has the same name, is no change of this one.
    if len(set(machines)) > 1:
        values = _apart(values, [f" on {machine}" for machine in machines])
    if 1 < len(set(titles)) < len(titles):
        values = _apart(values, [f" of {title or 'an experiment without title'}" for title in titles])
    known = all(moment.when_unix_ns is not None for moment in moments)
    order = sorted(range(len(moments)), key=lambda place: moments[place].when_unix_ns or 0) if known else None
    return _history(moments, values, order, "time" if known else "name", problems)


def _apart(values: Sequence[Values], of: Sequence[str]) -> list[Values]:
    """Series of their own for what differs in `of`, which is added to the workload's name."""
    return [
        {(f"{workload}{what}", setting, key): value for (workload, setting, key), value in one.items()}
        for what, one in zip(of, values, strict=True)
    ]


def _with_others(same: Sequence[str]) -> str:
    """The first of the problems, which differ in figures alone, and how many more runs have it."""
    return same[0] if len(same) == 1 else f"{same[0]} ({counted(len(same) - 1, 'more run')} alike)"


def _history(
    moments: Sequence[Moment],
    values: Sequence[Values],
    order: Sequence[int] | None,
    ordered_by: str,
    problems: Sequence[str],
) -> History:
    chosen = range(len(moments)) if order is None else order
    in_order = [values[number] for number in chosen]
    places = dict.fromkeys(place for one in values for place, value in one.items() if isinstance(value, float))
    series = [_series(place, in_order) for place in places]
    return History([moments[number] for number in chosen], series, ordered_by, problems)


def _series(place: SeriesKey, values: Sequence[Values]) -> Series:
    workload, setting, metric = place
    numbers = [value if isinstance(value := one.get(place), float) else None for one in values]
    first = next(at for at, number in enumerate(numbers) if number is not None)
    offered = [at for at in range(first, len(values)) if any(one[:2] == (workload, setting) for one in values[at])]
    gaps = [list(group) for has_none, group in groupby(offered, lambda at: numbers[at] is None) if has_none]
    if not gaps or gaps[-1][-1] < offered[-1] or any(len(gap) >= len(gaps[-1]) for gap in gaps[:-1]):
        return Series(workload, setting, metric, numbers)
    return Series(workload, setting, metric, numbers, gaps[-1], str(values[gaps[-1][-1]].get(place, "")))


def _values(run: RunData, metrics: Sequence[str]) -> Values:
    """The typical value of the rounds, or why there is none."""
    keys = chosen_keys(run, metrics) if metrics else compared_keys(run)
    reasons = absence_reasons(run)
    found = _offered(run)
    for (workload, key), by_setting in values_by_setting(run, keys).items():
        for setting, rounds in by_setting.items():
            numbers = [value for value in rounds if value is not None]
            why = reasons.get((workload, key, setting), "")
            found[workload, setting, key] = float(typical(np.array(numbers))) if numbers else why
    return found


def _offered(run: RunData) -> Values:
    """The workloads and settings of its trials, whatever came of them, as series without a metric."""
    return {(workload, setting, ""): "" for workload, setting in run.trials.select("workload", "setting").iter_rows()}


def _when(run: RunData) -> int | None:
    started = [value for value in run.trials["started_unix_ns"].to_list() if value]
    return min(started) if started else None


def _date_in(text: str) -> int | None:
    """The date that a name has, as `2026-11-23` or `20261123`."""
    for year, month, day in _DATE.findall(text):
        try:
            return int(datetime(int(year), int(month), int(day), tzinfo=UTC).timestamp()) * 10**9
        except ValueError:
            continue
    return None


def _of_table(path: Path, metrics: Sequence[str], time_column: str | None) -> History:
    """A row per run; rows of the same time, workload and setting repeat each other. Columns of text are facts."""
    columns = csv_table.header(path)
    lower = {name.lower(): name for name in reversed(columns)}
    time, workload, setting = (
        given or next((lower[name] for name in known if name in lower), None)
        for given, known in ((time_column, TIME), (None, WORKLOAD), (None, SETTING))
    )
    if time is None:
        raise InputError(
            "no column is called as one of times or versions usually is", where=str(path), remedy="give --time-column"
        )
    setting = None if setting == time else setting
    frame, found = csv_table.read(path, [key for key in (time, workload, setting) if key], list(metrics) or None)
    rows: dict[str, list[dict[str, object]]] = {}
    for row in frame.iter_rows(named=True):
        rows.setdefault(str(row[time]), []).append(row)
    dated = all(_ISO.match(name) for name in rows)
    names = sorted(rows) if dated else list(rows)
    facts = [name for name in columns if name not in (time, workload, setting, *found) and _is_text(frame, name)]
    values: list[Values] = []
    moments: list[Moment] = []
    for name in names:
        moments.append(
            Moment(
                name,
                _date_in(name) if dated else None,
                {fact: str(rows[name][0][fact]) for fact in facts if rows[name][0][fact]},
            )
        )
        repeats: dict[SeriesKey, list[float]] = {}
        for row in rows[name]:
            where = (str(row[workload]) if workload else "", str(row[setting]) if setting else ONE_SETTING)
            for metric in found:
                numbers = repeats.setdefault((*where, metric), [])
                if isinstance(value := row[metric], float):
                    numbers.append(value)
        of_name = {place: float(typical(np.array(numbers))) if numbers else "" for place, numbers in repeats.items()}
        values.append(of_name)
    return _history(moments, values, None, "date" if dated else "row", [])


def _is_text(frame: pl.DataFrame, column: str) -> bool:
    import polars as pl

    return bool(frame.schema[column] == pl.String)
