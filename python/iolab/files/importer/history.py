"""Histories: directories of runs, files of other tools by date, and CSV files with a row per run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from iolab.base import csv_table
from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.domain.conditions import facts_of
from iolab.domain.history.dates import MONTH_FIRST, dates_in_names, dates_of
from iolab.domain.history.history import History, Moment, Series
from iolab.domain.summary import absence_reasons, chosen_keys, compared_keys, values_by_setting
from iolab.domain.verdict.interval import typical
from iolab.domain.versions import are_versions, version_order
from iolab.files.importer import csv_entries
from iolab.files.importer.csv_layout import NO_SETTING, ROUND, WORKLOAD
from iolab.files.importer.groups import members
from iolab.files.importer.run_import import open_files, open_run
from iolab.files.importer.written_number import is_number, number

if TYPE_CHECKING:
    import polars as pl

    from iolab.files.store import RunData

VERSION = ("version", "commit", "revision", "build", "release", "tag", "kernel")
TIME = ("time", "date", "day", "night", "when", "timestamp", *VERSION[:-1])
"""What columns of the time, or of what stands for it, are called. A kernel may be what changed over time."""
HOST = ("host", "hostname", "machine", "server", "node")
"""What columns of machines are called: each machine has series of its own, as with directories of runs."""
SETTING = ("setting", "variant", "config", "configuration")
"""What columns of settings are called: fewer names than elsewhere, since here a kernel is what may have changed."""
ONE_SETTING = "all"
"""The setting of files that name none."""
_NUMBER = re.compile(r"[-+]?\d[\d.,]*")

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
    dates = dates_in_names([path.name for path in every])
    for path, date in zip(every, dates, strict=True):
        run = open_run(path) if path.is_dir() else open_files([path], format_name, ONE_SETTING)
        for problem in run.problems:
            alike.setdefault(_NUMBER.sub("", problem), []).append(f"{path.name}: {problem}")
        moments.append(Moment(path.name, _when(run) or date, facts_of(run)))
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
    undated = [moment.name for moment in moments if moment.when_unix_ns is None]
    if 0 < len(undated) < len(moments):
        problems.append(f"{undated[0]}: no time in it or in its name, so all are taken in the order of their names")
    order = sorted(
        range(len(moments)),
        key=lambda place: version_order(str(every[place])) if undated else (moments[place].when_unix_ns or 0),
    )
    return _history(moments, values, order, "name" if undated else "time", problems)


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
    order: Sequence[int],
    ordered_by: str,
    problems: Sequence[str],
) -> History:
    in_order = [values[number] for number in order]
    places = dict.fromkeys(place for one in values for place, value in one.items() if isinstance(value, float))
    series = [_series(place, in_order) for place in places]
    return History([moments[number] for number in order], series, ordered_by, problems)


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
    keys = [key for key in (workload, setting) if key]
    frame, found = csv_table.read(path, [time, *keys], list(metrics) or None)
    cases = _cases(frame, time, keys, found)
    measured = [name for name in found if name in metrics or not (name in cases or name.lower() in VERSION)]
    if measured != found:
        # As the file has it: kernel 6.10 is not 6.1.
        frame, found = csv_table.read(path, [time, *keys], measured)
    rows: dict[str, list[dict[str, object]]] = {}
    for row in frame.iter_rows(named=True):
        rows.setdefault(str(row[time]), []).append(row)
    names, times, ordered_by, problems = _oldest_first(time, list(rows))
    facts = [
        name for name in columns if name not in (time, workload, setting, *found, *cases) and _is_text(frame, name)
    ]
    values: list[Values] = []
    moments: list[Moment] = []
    for name, when in zip(names, times, strict=True):
        stated = {fact: dict.fromkeys(str(row[fact]) for row in rows[name] if row[fact]) for fact in facts}
        moments.append(Moment(name, when, {fact: ", ".join(sorted(every)) for fact, every in stated.items() if every}))
        repeats: dict[SeriesKey, list[float]] = {}
        for row in rows[name]:
            case = ",".join(f"{column}={row[column] or ''}" for column in cases)
            of = f"{row[workload]}[{case}]" if workload and cases else str(row[workload]) if workload else case
            for metric in found:
                numbers = repeats.setdefault((of, str(row[setting]) if setting else ONE_SETTING, metric), [])
                if isinstance(value := row[metric], float):
                    numbers.append(value)
        of_name = {place: float(typical(np.array(numbers))) if numbers else "" for place, numbers in repeats.items()}
        values.append(of_name)
    return _history(moments, values, range(len(moments)), ordered_by, problems)


def _oldest_first(column: str, names: Sequence[str]) -> tuple[list[str], list[int | None], str, list[str]]:
    """The entries of the column of times from the oldest on, when each was, by what they are ordered, and what is
    doubtful about that."""
    called_version = column.lower() in VERSION
    # A build's number of ten digits is no time.
    dates = None if called_version and all(map(str.isdecimal, names)) else dates_of(names)
    if dates is not None:
        order = sorted(range(len(names)), key=lambda place: dates.unix_ns[place])
        problems = []
        if dates.ambiguous is not None:
            ours, theirs = ("month", "day") if dates.reading == MONTH_FIRST else ("day", "month")
            problems = [f"{column}: '{dates.ambiguous}' is read with the {ours} first; it may be the {theirs}"]
        return [names[place] for place in order], [dates.unix_ns[place] for place in order], "date", problems
    unknown: list[int | None] = [None] * len(names)
    if not are_versions(names, called_so=called_version):
        unread = next((name for name in names if dates_of([name]) is None), names[0])
        what = f"{column}: '{unread}' is read neither as a date nor as a version"
        return list(names), unknown, "row", [f"{what}: the rows are taken as they stand, the oldest first"]
    # A time of 0.25 stands before one of 0.5, but version 0.5 before version 0.25.
    if column.lower() in TIME and not called_version and all(map(is_number, names)):
        return sorted(names, key=lambda name: number(name) or 0.0), unknown, "number", []
    branches = [version_order(name)[:-2] for name in names]
    problems = []
    if len(list(groupby(branches))) > len(set(branches)):
        first, second = next((a, b) for a, b in pairwise(names) if version_order(a) > version_order(b))
        problems = [f"{column}: taken in the order of versions, though {second} stands below {first}"]
    return sorted(names, key=version_order), unknown, "version", problems


def _cases(frame: pl.DataFrame, time: str, keys: Sequence[str], metrics: Sequence[str]) -> list[str]:
    """The columns that distinguish rows of the same time, beside `keys`: machines, and names and parameters that come
    again and differ there, one after the other until the rest is the same. What is text otherwise is a fact."""
    excluded = (*ROUND, *NO_SETTING, *csv_entries.REMARKS)
    entries = {name: [str(one or "") for one in frame[name]] for name in frame.columns if _is_text(frame, name)}
    candidates = [
        name
        for name in frame.columns
        if name not in (time, *keys)
        and name.lower() not in excluded
        and (
            (_is_text(frame, name) and csv_entries.kind_of(name, entries[name]) == "names")
            or (name in metrics and csv_entries.is_parameter(name) and (frame[name] == frame[name].round(0)).all())
        )
    ]
    cases: list[str] = []
    for name in sorted(candidates, key=lambda name: name.lower() not in HOST):
        different = frame.group_by(time, *keys, *cases).n_unique()[name]
        if frame[name].n_unique() > 1 and (name.lower() in HOST or (different > 1).any()):
            cases.append(name)
    return [name for name in frame.columns if name in cases]


def _is_text(frame: pl.DataFrame, column: str) -> bool:
    import polars as pl

    return bool(frame.schema[column] == pl.String)
