"""Published tables with what the model makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolab.errors import InputError
from iolab.nearest import unknown
from iolab.reproduction.measured import Measured, Value
from iolab.reproduction.published import Cell, Published, Role, Table
from iolab.reproduction.score import Claim, claims, mean_error

if TYPE_CHECKING:
    from iolab.executor import Executor
    from iolab.experiment import Experiment
    from iolab.progress import Display
    from iolab.store import RunData

ROLES: tuple[Role, ...] = ("fit", "prediction")


@dataclass(frozen=True)
class Compared:
    """A cell, never published as 0, with what the model says, in the table's unit."""

    cell: Cell
    modelled: float

    @property
    def error(self) -> float:
        return (self.modelled - self.cell.published) / self.cell.published


@dataclass(frozen=True)
class NotCompared:
    """A cell that says nothing of the model, and why."""

    cell: Cell
    modelled: float | None
    reason: str


@dataclass(frozen=True)
class ReproducedTable:
    table: Table
    compared: list[Compared]
    not_compared: list[NotCompared]
    claims: list[Claim]
    """What was aimed at, with what came out."""

    def of_role(self, role: Role) -> list[Compared]:
        return [one for one in self.compared if one.cell.role == role]

    @property
    def mean_abs_error(self) -> dict[str, float | None]:
        return {role: mean_error(self.of_role(role)) for role in ROLES}


@dataclass(frozen=True)
class Reproduced:
    published: Published
    rounds: int
    tables: list[ReproducedTable]

    def as_dicts(self) -> list[dict[str, Any]]:
        """A JSON object per table."""
        fitted = {name: one.model_dump() for name, one in self.published.fitted.items()}
        return [
            {
                "name": one.table.name,
                "seed": self.published.seed,
                "title": one.table.title,
                "source": self.published.source,
                "unit": one.table.unit,
                "experiment": self.published.experiment.name,
                "rounds": self.rounds,
                "cells": [
                    {**_facts(each.cell), "modelled": each.modelled, "error": each.error} for each in one.compared
                ],
                "not_compared": [
                    {**_facts(each.cell), "modelled": each.modelled, "reason": each.reason} for each in one.not_compared
                ],
                "mean_abs_error": one.mean_abs_error,
                "aims": [asdict(claim) for claim in one.claims],
                "notes": one.table.notes,
                "fitted": fitted,
            }
            for one in self.tables
        ]


def _facts(cell: Cell) -> dict[str, Any]:
    return {"row": cell.row, "column": cell.column, "role": cell.role, "published": cell.published}


def experiment_of(published: Published) -> Experiment:
    """The experiment that asks again. InputError if it has no such workload or setting as a cell names."""
    from iolab.experiment import load

    experiment = load(published.experiment)
    for table in published.tables:
        for place in filter(None, (cell.place for cell in table.cells)):
            for what, name, known in (
                ("workload", place.workload, experiment.workloads),
                ("setting", place.setting, experiment.settings),
            ):
                if name not in known:
                    where = f"{published.name}, table {table.name.partition('/')[2]}"
                    raise InputError(f"{name}: {unknown(what, name, known)}", where=where)
    return experiment


def reproduce(
    published: Published,
    out: Path,
    *,
    executor: Executor,
    progress: Display,
    rounds: int | None = None,
    seed: int | None = None,
) -> Reproduced:
    """Runs the experiment into the run directory `out`, and compares. Errors are those of `iolab.run.run`."""
    from iolab.run import run
    from iolab.store import read

    done = run(experiment_of(published), out, executor=executor, progress=progress, rounds=rounds, seed=seed)
    return compare(published, read(done.path))


def compare(published: Published, run: RunData) -> Reproduced:
    """The figures beside those of a run of their experiment."""
    measured = Measured(run)
    tables = [_table(table, measured) for table in published.tables]
    return Reproduced(published, run.trials["round"].n_unique(), tables)


def _table(table: Table, measured: Measured) -> ReproducedTable:
    compared: list[Compared] = []
    not_compared: list[NotCompared] = []
    for cell in table.cells:
        value = measured.at(cell.place) if cell.place else Value(None, cell.reason)
        reason = cell.reason or value.reason or (None if cell.published else "of 0 there is no relative error")
        if reason is None and value.value is not None:
            compared.append(Compared(cell, value.value))
        else:
            not_compared.append(NotCompared(cell, value.value, reason or "not a number"))
    return ReproducedTable(table, compared, not_compared, _claims(table, compared, not_compared))


def _claims(table: Table, compared: Sequence[Compared], not_compared: Sequence[NotCompared]) -> list[Claim]:
    found = []
    for pattern, aim in table.aims.items():
        asked = [one for one in compared if one.cell.role == "prediction" and one.cell.matches(pattern)]
        # What the model was asked and did not answer is no success.
        unanswered = sum(
            one.cell.role == "prediction" and one.modelled is None and one.cell.matches(pattern) for one in not_compared
        )
        found += [
            claim if pattern == "*" else replace(claim, text=f"{pattern}: {claim.text}")
            for claim in claims(aim, asked, unanswered=unanswered)
        ]
    return found
