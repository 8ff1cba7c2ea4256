"""One line per table: how many cells, what was fitted, how far off the predictions are, what was aimed at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from iolab.reproduction.published import DIRECTORY
from iolab.reproduction.score import percent

RESULTS = DIRECTORY / "results"
"""What `make reproduce` stored: NAME.json is what `iolab reproduce NAME --json` printed."""
HEAD = ("table", "fitted", "mean error", "predicted", "mean error", "aim")


def scores(tables: Sequence[dict[str, Any]], *, in_full: bool = False) -> Iterator[tuple[str, ...]]:
    """A line for each of the tables, which are as `iolab reproduce --json` prints them; `in_full`: with what each aim
    asks for and what came out."""
    for table in tables:
        means = table["mean_abs_error"]
        yield (
            table["name"],
            str(len(_errors([table], "fit"))),
            percent(means["fit"]),
            str(len(_errors([table], "prediction"))),
            percent(means["prediction"]),
            _aims(table["aims"], in_full=in_full),
        )


def overall(tables: Sequence[dict[str, Any]]) -> str:
    """The means over all cells of all tables, in words."""
    predictions, fits = (_errors(tables, role) for role in ("prediction", "fit"))
    left_out = sum(len(table["not_compared"]) for table in tables)
    parts = [
        f"All tables: {len(predictions)} predictions, mean error {percent(_mean(predictions))}",
        f"{len(fits)} fitted, mean error {percent(_mean(fits))}",
        f"{left_out} not compared",
    ]
    return "; ".join(parts) + "."


def stored() -> list[dict[str, Any]]:
    """The tables of the last `make reproduce`."""
    return [table for path in sorted(RESULTS.glob("*.json")) for table in json.loads(path.read_text())]


def markdown(tables: Sequence[dict[str, Any]]) -> str:
    """The lines as a Markdown table, for docs/."""
    from iolab.reference import markdown_table

    return f"{markdown_table(HEAD, scores(tables, in_full=True))}\n{overall(tables)}\n"


def _aims(aims: Sequence[dict[str, Any]], *, in_full: bool) -> str:
    if not aims:
        return "-"
    if in_full:
        return "; ".join(f"{'met' if aim['met'] else 'missed'}: {aim['text']}" for aim in aims)
    met = sum(aim["met"] for aim in aims)
    return "met" if met == len(aims) else "missed" if len(aims) == 1 else f"{met} of {len(aims)} met"


def _errors(tables: Sequence[dict[str, Any]], role: str) -> list[float]:
    return [abs(cell["error"]) for table in tables for cell in table["cells"] if cell["role"] == role]


def _mean(errors: Sequence[float]) -> float | None:
    return fmean(errors) if errors else None
