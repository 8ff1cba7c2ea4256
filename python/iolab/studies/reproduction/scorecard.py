"""A line for each table, of its independent predictions beside a null predictor; and what all come to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from iolab.base import data
from iolab.base.plain_text import counted, markdown_table
from iolab.studies.reproduction.part import Aim, DistributionPart, NullPart, Part, StatementsPart, TablePart
from iolab.studies.reproduction.score import QUARTER, times, typical_factor

RESULTS = data.PUBLISHED / "results"
"""What `make reproduce` stored: NAME.json is what `iolab reproduce NAME --json` printed, without what the file of
figures states."""
HEAD = ("table", "cells", "fitted", "chosen", "independent", "factor", "within 25 %", "null", "skill", "aims")
OF_OURS = "none"
"""The case study of tables that nobody published: what a real kernel did here."""
BLIND = "blind"
"""The case study of tables that the model was not made for: machine and load were written down before it was asked."""
DISTINCT = 1.25
"""Figures that differ by more are in an order."""
OF_STATEMENTS = ("claims of", "agree", "of which served")


@dataclass(frozen=True)
class Score:
    """The score of a table."""

    name: str
    cells: int
    """All that were published."""
    fitted: int
    """Cells that a fit serves."""
    chosen: int
    """Cells that only a choice serves."""
    independent: int
    """Predictions that follow from no other cell."""
    factor: float | None
    """How far off the independent predictions typically are."""
    within_quarter: float | None
    """The share of them within a factor of `QUARTER`."""
    null: NullPart | None
    aims: list[Aim] = field(default_factory=list)

    @property
    def skill(self) -> str:
        """Whether the model does better than the null predictor; `-` if there is none to compare with."""
        if self.null is None:
            return "-"
        return "none shown" if self.null["as_good"] else "yes"

    def words(self) -> tuple[str, ...]:
        """A word for each of `HEAD`."""
        counts = map(str, (self.cells, self.fitted, self.chosen, self.independent))
        share = "-" if self.within_quarter is None else f"{self.within_quarter:.0%}".replace("%", " %")
        null = "-" if self.null is None else f"{times(self.null['factor'])}, {self.null['words']}"
        met = f"{sum(aim['met'] for aim in self.aims)} of {len(self.aims)}" if self.aims else "-"
        return (self.name, *counts, times(self.factor), share, null, self.skill, met)


def scores(parts: Sequence[Part]) -> Iterator[Score]:
    """A score for each table, in their order."""
    for part in tables_of(parts):
        roles = [cell["role"] for cell in (*part["cells"], *part["not_compared"])]
        factors = factors_of(part)
        yield Score(
            part["name"],
            cells=len(roles),
            fitted=roles.count("fit"),
            chosen=roles.count("chosen"),
            independent=len(factors),
            factor=typical_factor(factors),
            within_quarter=share_within(factors, QUARTER),
            null=part["null"],
            aims=part["aims"],
        )


def factors_of(table: TablePart) -> list[float]:
    """How far off each independent prediction of a table is."""
    return [cell["factor"] for cell in table["cells"] if cell["role"] == "prediction" and not cell["follows"]]


def share_within(factors: Sequence[float], limit: float) -> float | None:
    """The share of factors up to a limit; None of none."""
    return sum(one <= limit for one in factors) / len(factors) if factors else None


def overall(parts: Sequence[Part]) -> list[str]:
    """What all come to, a sentence each: predictions of published figures and skill at them, predictions beside a real
    kernel, statements, published distributions."""
    published = _of_case_studies(parts)
    found = []
    if factors := _factors_of_all(published):
        found.append(f"{_predictions(factors)}.")
    judged = [one for one in scores(published) if one.null is not None]
    if judged:
        shown = sum(one.skill == "yes" for one in judged)
        found.append(f"{shown} of {counted(len(judged), 'table')} that have a null predictor show skill beyond it.")
    if factors := _factors_of_all([part for part in parts if part["case_study"] == OF_OURS]):
        found.append(f"Beside a real kernel in front of a device of known timing: {_predictions(factors)}.")
    blind = [part for part in parts if part["case_study"] == BLIND]
    if factors := _factors_of_all(blind):
        pairs = [pair for table in tables_of(blind) for pair in _in_order(table)]
        found.append(
            f"On tables that the model was not made for: {_predictions(factors)}; {sum(pairs)} of {len(pairs)} pairs "
            "of a row or a column in the published order."
        )
    statements, distributions = _statements_of(parts), _distributions_of(parts)
    if statements:
        claims = [one for part in statements for one in part["statements"]]
        served = sum(one["served"] for one in claims)
        of_which = f"; choices serve {served} of them" if served else ""
        found.append(f"{sum(one['met'] for one in claims)} of {len(claims)} statements agree with the model{of_which}.")
    if distributions:
        aims = [aim for part in distributions for aim in part["aims"]]
        found.append(
            f"{sum(aim['met'] for aim in aims)} of {len(aims)} readings of published distributions agree with the "
            "claims about them, which involves no model."
        )
    return found


def _of_case_studies(parts: Sequence[Part]) -> list[Part]:
    """What the case studies are about."""
    return [part for part in parts if part["case_study"] not in (OF_OURS, BLIND)]


def _in_order(table: TablePart) -> Iterator[bool]:
    """Whether, of two independent predictions of a row or a column whose published figures differ, the same one is
    larger."""
    cells = [cell for cell in table["cells"] if cell["role"] == "prediction" and not cell["follows"]]
    for one, other in combinations(cells, 2):
        low, high = sorted((one["published"], other["published"]))
        alike = (one["row"] == other["row"]) != (one["column"] == other["column"])
        if alike and high > low * DISTINCT:
            yield ((one["simulated"] or 0) > (other["simulated"] or 0)) == (one["published"] > other["published"])


def _factors_of_all(parts: Sequence[Part]) -> list[float]:
    return [one for table in tables_of(parts) for one in factors_of(table)]


def _predictions(factors: Sequence[float]) -> str:
    close, double = _shares(factors)
    return (
        f"{len(factors)} independent predictions: {close} within 25 %, {double} within a factor of 2, typically "
        f"{times(typical_factor(factors))} off"
    )


def _shares(factors: Sequence[float]) -> tuple[str, str]:
    """Within 25 %, and within a factor of 2."""
    close, double = (f"{100 * (share_within(factors, limit) or 0):.0f} %" for limit in (QUARTER, 2.0))
    return close, double


def stored() -> list[Part]:
    """What the last `make reproduce` stored of all files."""
    return [part for path in sorted(RESULTS.glob("*.json")) for part in json.loads(path.read_text())]


def markdown(parts: Sequence[Part]) -> str:
    """The lines as a Markdown table, for docs/."""
    return markdown_table(HEAD, (score.words() for score in scores(parts)))


def statements_markdown(parts: Sequence[Part]) -> str:
    """The statements, by file, with the number that agrees and the number that a choice serves."""
    rows = []
    for part in _statements_of(parts):
        statements = part["statements"]
        rows.append(
            (
                part["name"],
                f"{sum(one['met'] for one in statements)} of {len(statements)}",
                str(sum(one["served"] for one in statements)),
            )
        )
    return markdown_table(OF_STATEMENTS, rows)


def distributions_markdown(parts: Sequence[Part]) -> str:
    """The verdicts on published distributions that agree with the claims about them."""
    rows = [
        (part["name"], f"{sum(aim['met'] for aim in part['aims'])} of {len(part['aims'])}")
        for part in _distributions_of(parts)
    ]
    return markdown_table(("distribution", "agrees"), rows)


def summary_markdown(parts: Sequence[Part]) -> str:
    """What all come to as a Markdown table of a few rows, by what the model is compared with."""
    published, blind = _of_case_studies(parts), [part for part in parts if part["case_study"] == BLIND]
    judged = [one for one in scores(published) if one.null is not None]
    skill = (
        f"{sum(one.skill == 'yes' for one in judged)} of {counted(len(judged), 'table')} better than a null predictor"
    )
    pairs = [pair for table in tables_of(blind) for pair in _in_order(table)]
    order = f"{sum(pairs)} of {len(pairs)} pairs in the published order"
    statements = [one for part in _statements_of(parts) for one in part["statements"]]
    served = sum(one["served"] for one in statements)
    ours = [part for part in parts if part["case_study"] == OF_OURS]
    return markdown_table(
        ("compared with", "predictions", "within 25 %", "within a factor of 2", "typically off by", "besides"),
        [
            _summary("published tables that the model was built for", published, skill),
            _summary("published tables that it was not built for", blind, order),
            _summary("a real kernel on a device of known timing", ours, ""),
            (
                *("statements of the sources", str(len(statements)), "", "", ""),
                f"{sum(one['met'] for one in statements)} agree, {served} of them because a constant was chosen for it",
            ),
        ],
    )


def _summary(compared: str, parts: Sequence[Part], besides: str) -> tuple[str, ...]:
    factors = _factors_of_all(parts)
    return (compared, str(len(factors)), *_shares(factors), times(typical_factor(factors)), besides)


def tables_of(parts: Sequence[Part]) -> list[TablePart]:
    """The tables among the parts."""
    return [part for part in parts if part["kind"] == "table"]


def _statements_of(parts: Sequence[Part]) -> list[StatementsPart]:
    return [part for part in parts if part["kind"] == "statements"]


def _distributions_of(parts: Sequence[Part]) -> list[DistributionPart]:
    return [part for part in parts if part["kind"] == "distribution"]
