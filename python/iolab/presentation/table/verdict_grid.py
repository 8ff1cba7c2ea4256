"""`show --as grid`: many runs at once, a row per machine and a column per workload and setting, a verdict in a word in
each cell."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.base.plain_text import counted, listed, no_formula
from iolab.base.quantity import ABSENT, change
from iolab.base.strict_json import dumps
from iolab.domain.definition import VERDICTS, Verdict
from iolab.domain.summary import Summary, summarise
from iolab.files.store import RunData, read
from iolab.files.store.sweep_directory import SweepDirectory, is_sweep
from iolab.presentation.table.plain import STYLES, empty_table
from iolab.presentation.table.words import label, without_values
from iolab.presentation.terminal import text_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from iolab.domain.comparison import Comparison

COLUMNS_MAX = 8
"""Columns that a table has room for; of more, each becomes a row."""
LEFT_OUT_MAX = 4
"""Metrics without a table that are named; more are counted."""


@dataclass(frozen=True)
class GridCell:
    """One metric of a setting against the baseline, on one workload of one experiment on one machine."""

    experiment: str
    machine: str
    workload: str
    metric: str
    setting: str
    against: str
    verdict: Verdict | None
    """None if there is nothing to compare: see `reason`."""
    ratio: float | None
    ci_low: float | None
    ci_high: float | None
    baseline: float | None
    candidate: float | None
    rounds: int
    """Used by the verdict."""
    run: str
    reason: str | None
    """Why there is no verdict, or no ratio."""

    @property
    def text(self) -> str:
        """`faster +12.3 %`, `same`, `undecided`, or `-`."""
        if self.verdict is None:
            return ABSENT
        if self.ratio is None or self.verdict in ("same", "undecided"):
            return self.verdict
        return f"{self.verdict} {change(self.ratio)}"


def rendered(path: Path, name: str, metrics: Sequence[str] = ()) -> str:
    """The grid in a format of `iolab show --as`. InputError if many runs are not shown in it."""
    formats = {"grid": render, "plain": render, "csv": render_csv, "json": render_json}
    if name not in formats:
        raise InputError(
            f"{name}: is a table of one run, and {path} holds several",
            where="--as",
            remedy=f"show one of them: iolab show {path}/RUN --as {name}",
        )
    return formats[name](path, metrics)


def cells_of(path: Path, metrics: Sequence[str] = ()) -> list[GridCell]:
    """The grid of a sweep, of a directory of runs or of one run; without `metrics`, of the first that each experiment
    compares. InputError if `path` is none of them, or no run has a metric that is named."""
    return _read(path, metrics)[0]


def _read(path: Path, metrics: Sequence[str]) -> tuple[list[GridCell], list[str]]:
    """The grid, and the metrics that are compared too and have no place in it."""
    left_out: dict[str, None] = {}
    found = [cell for one in _runs(path) for cell in _cells(*one, metrics, left_out)]
    if not found:
        raise InputError("holds nothing to compare yet", where=str(path), remedy="see what it has: iolab show RUN")
    return found, list(left_out)


def render(path: Path, metrics: Sequence[str] = ()) -> str:
    """For people: what it comes to, then a table for each experiment and metric, coloured on a terminal."""
    return _drawn(*_read(path, metrics))


def render_run(run: RunData, metrics: Sequence[str] = ()) -> str:
    """The same of one run."""
    left_out: dict[str, None] = {}
    return _drawn(list(_cells(*_named(run), metrics, left_out)), list(left_out))


def _drawn(found: Sequence[GridCell], left_out: Sequence[str]) -> str:
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    machines = len({cell.machine for cell in found})
    judged = [cell for cell in found if cell.verdict is not None]
    text = f"{counted(machines, 'machine')}, {counted(len(judged), 'comparison')}: {tally_of(judged)}."
    parts: list[RenderableType] = [Text(text)]
    if left_out:
        named = listed([label(key) for key in left_out], LEFT_OUT_MAX)
        parts.append(Text(f"! compared too, and not shown here: {named} (--metric {left_out[0]})", style="yellow"))
    for (experiment, metric), of_table in groupby(_sorted(found), key=lambda cell: (cell.experiment, cell.metric)):
        title = f"{experiment}: {label(metric)}" if metric else experiment
        parts += [Padding(Text(title, style="bold cyan"), (1, 0, 0, 0), expand=False), _table(list(of_table))]
    reasons = {f"{cell.experiment} on {cell.machine}: {cell.reason}": None for cell in found if cell.verdict is None}
    parts += [Text(f"! {reason}", style="yellow") for reason in reasons]
    return text_of(Group(*parts))


def render_csv(path: Path, metrics: Sequence[str] = ()) -> str:
    """A line per cell, full precision; what is absent is empty."""
    out = io.StringIO()
    rows = [asdict(cell) for cell in cells_of(path, metrics)]
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: no_formula(value) if isinstance(value, str) else value for name, value in row.items()})
    return out.getvalue()


def render_json(path: Path, metrics: Sequence[str] = ()) -> str:
    """The cells, for programs."""
    return dumps({"directory": str(path), "cells": [asdict(cell) for cell in cells_of(path, metrics)]}) + "\n"


def tally_of(found: Sequence[GridCell]) -> str:
    """`1 slower, 2 faster, 4 undecided`."""
    counted = Counter(cell.verdict for cell in found)
    return ", ".join(f"{counted[verdict]} {verdict}" for verdict in VERDICTS if counted[verdict]) or "none"


def _runs(path: Path) -> Iterator[tuple[str, str, str, RunData | None, str | None]]:
    """Each run's experiment, machine, directory's name, what it holds, or why it holds nothing."""
    if is_sweep(path):
        for cell in SweepDirectory.open(path).cells:
            data = None if cell.impossible is not None else read(path / cell.run)
            yield cell.experiment, cell.machine, cell.run, data, cell.impossible
        return
    is_run = (path / "journal.jsonl").is_file()
    places = [path] if is_run else sorted(one.parent for one in path.glob("*/journal.jsonl"))
    if not places:
        raise InputError("holds no runs", where=str(path), remedy="name a sweep, a run, or a directory of runs")
    for place in places:
        yield _named(read(place))


def _named(run: RunData) -> tuple[str, str, str, RunData | None, str | None]:
    return run.experiment.title or run.path.name, run.machine_name or "?", run.path.name, run, None


def _cells(
    experiment: str,
    machine: str,
    run: str,
    data: RunData | None,
    impossible: str | None,
    metrics: Sequence[str],
    left_out: dict[str, None],
) -> Iterator[GridCell]:
    why = impossible
    if data is not None:
        try:
            summary = summarise(data, metrics=metrics)
        except InputError as error:
            if metrics and data.trials.height:
                raise
            why = error.what
        else:
            chosen = _chosen(summary, metrics)
            shown = {one.metric for one in chosen}
            left_out.update((one.metric, None) for one in summary.comparisons if one.metric not in shown)
            for one in chosen:
                yield _cell(experiment, machine, run, one)
            why = without_values(data, summary) or "nothing to compare: it has one setting"
            why = None if summary.comparisons else why
    if why is not None:
        yield GridCell(experiment, machine, "", "", "", "", None, None, None, None, None, None, 0, run, why)


def _chosen(summary: Summary, metrics: Sequence[str]) -> list[Comparison]:
    """All comparisons of the metrics that are named; else those of each workload's first."""
    if metrics:
        return summary.comparisons
    first: dict[str, str] = {}
    for row in summary.rows:
        if row.comparisons:
            first.setdefault(row.place, row.metric)
    return [one for row in summary.rows if first.get(row.place) == row.metric for one in row.comparisons.values()]


def _cell(experiment: str, machine: str, run: str, one: Comparison) -> GridCell:
    judged = one.judgement
    return GridCell(
        experiment=experiment,
        machine=machine,
        workload=one.place,
        metric=one.metric,
        setting=one.setting,
        against=one.against,
        verdict=judged.verdict,
        ratio=judged.ratio,
        ci_low=judged.ci_low,
        ci_high=judged.ci_high,
        baseline=judged.baseline,
        candidate=judged.candidate,
        rounds=judged.n,
        run=run,
        reason=judged.reason,
    )


def _sorted(found: Sequence[GridCell]) -> list[GridCell]:
    """By experiment and metric, each in the order in which it comes first; cells without a metric stay last."""
    order: dict[tuple[str, str], int] = {}
    experiments: dict[str, int] = {}
    for cell in found:
        experiments.setdefault(cell.experiment, len(experiments))
        order.setdefault((cell.experiment, cell.metric), len(order))
    judged = [cell for cell in found if cell.metric]
    return sorted(judged, key=lambda cell: (experiments[cell.experiment], order[cell.experiment, cell.metric]))


def _table(found: Sequence[GridCell]) -> Table:
    from rich.text import Text

    workloads = len({cell.workload for cell in found})
    columns = list(dict.fromkeys((cell.workload, cell.setting) for cell in found))
    by_place = {(cell.machine, cell.workload, cell.setting): cell for cell in found}
    table = empty_table()
    table.add_column("machine", overflow="fold")

    def drawn(machine: str, column: tuple[str, str]) -> Text:
        cell = by_place.get((machine, *column))
        return Text(ABSENT) if cell is None else Text(cell.text, style=STYLES[cell.verdict] if cell.verdict else "")

    machines = list(dict.fromkeys(cell.machine for cell in found))
    if len(columns) <= COLUMNS_MAX:
        for workload, setting in columns:
            table.add_column(f"{workload}\n{setting}" if workloads > 1 else setting)
        for machine in machines:
            table.add_row(machine, *(drawn(machine, column) for column in columns))
        return table
    for heading in ("workload", "setting", "verdict"):
        table.add_column(heading, overflow="fold")
    for machine in machines:
        for column in columns:
            table.add_row(machine, *column, drawn(machine, column))
    return table
