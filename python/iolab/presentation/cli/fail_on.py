"""`--fail-on`: conditions under which a command that did its work ends with status 1."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from iolab.base.errors import EXIT_CONDITION, InputError, unknown
from iolab.presentation.table.label import label

if TYPE_CHECKING:
    from iolab.domain.compare import Comparison

VERDICT_CONDITIONS = ("slower", "faster", "undecided")
NAMED_MAX = 5
CONDITIONS = (*VERDICT_CONDITIONS, "faulty")


def check_conditions(given: Sequence[str] | None) -> list[str]:
    """The conditions as given, one by one or with commas. InputError names one that doesn't exist."""
    conditions = [word for text in given or () for word in text.split(",")]
    for word in conditions:
        if word not in CONDITIONS:
            raise InputError(f"{word}: {unknown('condition', word, CONDITIONS)}", where="--fail-on")
    return conditions


def exit_if_met(conditions: Sequence[str], comparisons: Sequence[Comparison], *, trials_not_ok: int = 0) -> None:
    """Says on stderr which conditions hold, and ends the command with status 1 if any does."""
    met = [
        " ".join(
            (comparison.workload or "", label(comparison.metric), comparison.setting, comparison.judgement.verdict)
        )
        for comparison in comparisons
        if comparison.judgement.verdict in conditions
    ]
    if "faulty" in conditions and trials_not_ok:
        met.append(f"{trials_not_ok} {'trial is' if trials_not_ok == 1 else 'trials are'} not ok")
    if met:
        rest = f"; and {len(met) - NAMED_MAX} more" if len(met) > NAMED_MAX else ""
        print(f"iolab: --fail-on holds: {'; '.join(met[:NAMED_MAX])}{rest}", file=sys.stderr)
        raise typer.Exit(EXIT_CONDITION)
