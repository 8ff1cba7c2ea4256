"""What `iolab reproduce --json` prints, and the scorecard reads again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from iolab.adapters.reproduction.distributions import ComparedRows, Distribution
from iolab.adapters.reproduction.reproduced import Reproduced, ReproducedTable
from iolab.adapters.reproduction.statements import JudgedStatement
from iolab.adapters.reproduction.tables import Cell

Object = dict[str, Any]


def objects(found: Reproduced) -> Iterator[Object]:
    """A JSON object per table and per distribution, and one for all statements of the file; their `kind` tells them
    apart."""
    for table in found.tables:
        yield _table(table, found)
    if found.statements:
        yield _statements(found)
    for distribution in found.distributions:
        yield _distribution(distribution, found)


def _file(found: Reproduced) -> Object:
    """What all objects of a file have."""
    return {
        "case_study": found.published.case_study,
        "source": found.published.source,
        "experiment": found.published.experiment.name if found.published.experiment else None,
        "rounds": found.rounds,
    }


def _table(one: ReproducedTable, found: Reproduced) -> Object:
    table = one.table
    return {
        "kind": "table",
        "name": table.name,
        "title": table.title,
        **_file(found),
        "unit": table.unit,
        "cells": [{**_cell(each.cell), "modelled": each.simulated, "error": each.error} for each in one.compared],
        "not_compared": [
            {**_cell(each.cell), "modelled": each.simulated, "reason": each.reason} for each in one.not_compared
        ],
        "mean_abs_error": one.mean_abs_error,
        "aims": [asdict(claim) for claim in one.claims],
        "notes": table.notes,
        "fitted": {name: fitted.model_dump() for name, fitted in found.published.fitted.items()},
    }


def _cell(cell: Cell) -> Object:
    return {"row": cell.row, "column": cell.column, "role": cell.role, "published": cell.published}


def _statements(found: Reproduced) -> Object:
    return {
        "kind": "statements",
        "name": f"{found.published.name}/claims",
        "title": found.published.title,
        **_file(found),
        "statements": [_statement(one) for one in found.statements],
        "aims": [asdict(one.claim) for one in found.statements],
    }


def _statement(one: JudgedStatement) -> Object:
    said = asdict(one.statement)
    return {**said, "met": one.met, "absent": one.absent, "found": one.comparison.judgement.as_dict()}


def _distribution(one: Distribution, found: Reproduced) -> Object:
    return {
        "kind": "distribution",
        "name": one.name,
        "title": one.title,
        "case_study": found.published.case_study,
        "source": found.published.source,
        "unit": one.unit,
        "rounds": one.rounds,
        "rows": {name: asdict(row) for name, row in one.rows.items()},
        "readings": [
            {
                "independent": reading.unit,
                "per_round": reading.per_round,
                "n": reading.n,
                "compared": [_compared(each) for each in reading.compared],
            }
            for reading in one.readings
        ],
        "aims": [asdict(claim) for claim in one.claims()],
    }


def _compared(one: ComparedRows) -> Object:
    contrast = {key: value for key, value in asdict(one.contrast).items() if not key.startswith("n_to")}
    return {
        "question": one.question.name,
        "baseline": one.pair.baseline,
        "candidate": one.pair.candidate,
        **contrast,
        "rounds_to_decide": one.rounds_to_decide,
        "rounds_to_see": one.rounds_to_see,
    }
