"""What `iolab reproduce --json` prints, and what of it is stored, which the scorecard reads again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, fields
from typing import cast

from iolab.base.strict_json import JsonObject
from iolab.studies.reproduction.cell_role import CLAIMS, By, serves
from iolab.studies.reproduction.distributions import ComparedRows, Distribution
from iolab.studies.reproduction.null import NullPredictor
from iolab.studies.reproduction.part import (
    Aim,
    CellPart,
    DistributionPart,
    NullPart,
    Part,
    StatementPart,
    StatementsPart,
    TablePart,
)
from iolab.studies.reproduction.reproduction import ReproducedTable, Reproduction
from iolab.studies.reproduction.score import Claim
from iolab.studies.reproduction.statements import JudgedStatement, Statement
from iolab.studies.reproduction.tables import Cell

_OF_FILE = ("title", "source", "experiment", "unit", "notes", "fitted", "chosen")
_OF_STATEMENT = tuple(one.name for one in fields(Statement) if one.name != "name")
"""What the file of figures states of its parts, and of a statement."""


def objects(found: Reproduction) -> Iterator[Part]:
    """A JSON object per table and per distribution, and one for all statements of the file; their `kind` distinguishes
    them apart."""
    for table in found.tables:
        yield _table(table, found)
    if found.statements:
        yield _statements(found)
    for distribution in found.distributions:
        yield _distribution(distribution, found)


def to_store(part: Part) -> Part:
    """The part without what the file of figures states, beside which it is stored."""
    kept = _without(part, _OF_FILE)
    if part["kind"] == "statements":
        kept["statements"] = [_without(one, _OF_STATEMENT) for one in part["statements"]]
    return cast(Part, kept)


def _without(table: Mapping[str, object], keys: Collection[str]) -> JsonObject:
    return {key: value for key, value in table.items() if key not in keys}


def _experiment(found: Reproduction) -> str | None:
    return found.published.experiment.name if found.published.experiment else None


def _table(one: ReproducedTable, found: Reproduction) -> TablePart:
    table = one.table
    return {
        "kind": "table",
        "name": table.name,
        "title": table.title,
        "case_study": found.published.case_study,
        "source": found.published.source,
        "experiment": _experiment(found),
        "rounds": found.rounds,
        "unit": table.unit,
        "cells": [
            {**_cell(each.cell), "simulated": each.simulated, "error": each.error, "factor": each.factor}
            for each in one.compared
        ],
        "not_compared": [
            {**_cell(each.cell), "simulated": each.simulated, "reason": each.reason} for each in one.not_compared
        ],
        "typical_factor": one.typical_factor,
        "independent": len(one.independent),
        "null": None if one.null is None else _null(one.null),
        "aims": [_aim(claim) for claim in one.claims],
        "mechanisms": sorted(one.mechanisms),
        "notes": table.notes,
        "fitted": _serving(found.published.fitted, table.key),
        "chosen": _serving(found.published.chosen, table.key),
    }


def _null(one: NullPredictor) -> NullPart:
    return cast(NullPart, {**asdict(one), "as_good": one.as_good})


def _aim(claim: Claim) -> Aim:
    return {"text": claim.text, "met": claim.met, "date": claim.date}


def _serving(named: Mapping[str, By], part: str) -> dict[str, JsonObject]:
    """The fits or the choices that serve cells of a table, or statements."""
    return {name: one.model_dump() for name, one in named.items() if part in one.serves}


def _cell(cell: Cell) -> CellPart:
    return {
        "row": cell.row,
        "column": cell.column,
        "role": cell.role,
        "follows": cell.follows,
        "published": cell.published,
    }


def _statements(found: Reproduction) -> StatementsPart:
    return {
        "kind": "statements",
        "name": f"{found.published.name}/claims",
        "title": found.published.title,
        "case_study": found.published.case_study,
        "source": found.published.source,
        "experiment": _experiment(found),
        "rounds": found.rounds,
        "statements": [_statement(one, found) for one in found.statements],
        "aims": [_aim(one.claim) for one in found.statements],
        "fitted": _serving(found.published.fitted, CLAIMS),
        "chosen": _serving(found.published.chosen, CLAIMS),
    }


def _statement(one: JudgedStatement, found: Reproduction) -> StatementPart:
    served = any(serves(by, CLAIMS, one.statement.name) for by in found.published.served_by.values())
    came_to = {"values": one.values} if one.comparison is None else one.comparison.judgement.as_dict()
    beside = {"served": served, "met": one.met, "absent": one.absent, "found": came_to}
    return cast(StatementPart, {**asdict(one.statement), **beside})


def _distribution(one: Distribution, found: Reproduction) -> DistributionPart:
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
        "aims": [_aim(claim) for claim in one.claims()],
    }


def _compared(one: ComparedRows) -> JsonObject:
    contrast = {key: value for key, value in asdict(one.contrast).items() if not key.startswith("n_to")}
    return {
        "question": one.question.name,
        "baseline": one.pair.baseline,
        "candidate": one.pair.candidate,
        **contrast,
        "rounds_to_decide": one.rounds_to_decide,
        "rounds_to_see": one.rounds_to_see,
    }
