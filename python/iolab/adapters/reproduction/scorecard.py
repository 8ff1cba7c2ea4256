"""A score per part of a file: how many cells, what was fitted, how far off the predictions are, what was aimed at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from iolab.adapters.reproduction.published import is_to
from iolab.adapters.reproduction.score import percent
from iolab.base import data
from iolab.base.plain_text import markdown_table

RESULTS = data.PUBLISHED / "results"
"""What `make reproduce` stored: NAME.json is what `iolab reproduce NAME --json` printed."""
HEAD = ("table", "cells", "parameters", "fitted", "mean error", "predicted", "mean error", "aim")
TOLD_MAX = 4
"""Of more aims than these, those that were missed are told in full."""
Part = dict[str, Any]
"""An object as `iolab reproduce --json` prints it: a table's, or another kind's."""


@dataclass(frozen=True)
class Score:
    """Of a table; of statements and distributions, which have no cells to compare, the name and the aims alone."""

    name: str
    cells: int | None = None
    parameters: int | None = None
    """How many were fitted to cells of the table."""
    fitted: int | None = None
    """Cells that a parameter was fitted to."""
    fitted_mean_abs_error: float | None = None
    predicted: int | None = None
    predicted_mean_abs_error: float | None = None
    aims: list[dict[str, Any]] = field(default_factory=list)
    """An object each: text, met."""

    def words(self, *, in_full: bool = False) -> tuple[str, ...]:
        """A word for each of `HEAD`; `in_full`: with what each aim asks for and what came out."""
        counts = [
            "-" if count is None else str(count) for count in (self.cells, self.parameters, self.fitted, self.predicted)
        ]
        fit, prediction = percent(self.fitted_mean_abs_error), percent(self.predicted_mean_abs_error)
        return (self.name, *counts[:3], fit, counts[3], prediction, _aims(self.aims, in_full=in_full))


def scores(parts: Sequence[Part]) -> Iterator[Score]:
    """A score for each part of the files, in their order."""
    for part in parts:
        if part["kind"] != "table":
            yield Score(part["name"], aims=part["aims"])
            continue
        table = part["name"].partition("/")[2]
        yield Score(
            part["name"],
            cells=len(part["cells"]) + len(part["not_compared"]),
            parameters=sum(is_to(fitted["to"], table) for fitted in part["fitted"].values()),
            fitted=len(_errors([part], "fit")),
            fitted_mean_abs_error=part["mean_abs_error"]["fit"],
            predicted=len(_errors([part], "prediction")),
            predicted_mean_abs_error=part["mean_abs_error"]["prediction"],
            aims=part["aims"],
        )


def overall(parts: Sequence[Part]) -> str:
    """The means over all cells of all tables, in words."""
    tables = _of_kind(parts, "table")
    predictions, fits = (_errors(tables, role) for role in ("prediction", "fit"))
    left_out = sum(len(table["not_compared"]) for table in tables)
    said = [aim for kind in ("statements", "distribution") for part in _of_kind(parts, kind) for aim in part["aims"]]
    parameters = {(table["name"].partition("/")[0], name) for table in tables for name in table["fitted"]}
    words = [
        f"{len(predictions)} predictions, mean error {percent(_mean(predictions))}",
        f"{len(fits)} fitted (parameters: {len(parameters)}), mean error {percent(_mean(fits))}",
        f"{left_out} not compared",
        *([f"{sum(one['met'] for one in said)} of {len(said)} statements met"] if said else []),
    ]
    return f"All tables: {'; '.join(words)}."


def stored() -> list[Part]:
    """What the last `make reproduce` stored of all files."""
    return [part for path in sorted(RESULTS.glob("*.json")) for part in json.loads(path.read_text())]


def markdown(parts: Sequence[Part]) -> str:
    """The lines as a Markdown table, for docs/."""
    return f"{markdown_table(HEAD, (score.words(in_full=True) for score in scores(parts)))}\n{overall(parts)}\n"


def _aims(aims: Sequence[dict[str, Any]], *, in_full: bool) -> str:
    if not aims:
        return "-"
    met = sum(aim["met"] for aim in aims)
    if in_full and len(aims) > TOLD_MAX:
        return "; ".join([f"{met} of {len(aims)} met", *(f"missed: {aim['text']}" for aim in aims if not aim["met"])])
    if in_full:
        return "; ".join(f"{'met' if aim['met'] else 'missed'}: {aim['text']}" for aim in aims)
    return "met" if met == len(aims) else "missed" if len(aims) == 1 else f"{met} of {len(aims)} met"


def _of_kind(parts: Sequence[Part], kind: str) -> list[Part]:
    return [part for part in parts if part["kind"] == kind]


def _errors(tables: Sequence[Part], role: str) -> list[float]:
    return [abs(cell["error"]) for table in tables for cell in table["cells"] if cell["role"] == role]


def _mean(errors: Sequence[float]) -> float | None:
    return fmean(errors) if errors else None
