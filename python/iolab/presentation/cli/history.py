"""`iolab history`: when did it change?"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.base.errors import EXIT_CONDITION, InputError, unknown
from iolab.base.plain_text import listed
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import From, Json, Metrics
from iolab.presentation.cli.output import print_json, print_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolab.domain.history.history import History, HistoryFinding, Series

CONDITIONS = ("regressed", "changed", "possibly-regressed", "possibly-changed")
POSSIBLY = "possibly-"
"""Before a condition: a change that may be drift meets it too."""
NAMED_MAX = 5
LOOKS_MAX = 100_000


def history(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR|RUN|FILE...",
            autocompletion=complete.runs_and_files,
            help="Runs of the same experiment, or a directory of them; files of other tools, such as fio's JSON, "
            "a file per run; or one CSV file with a row per run.",
        ),
    ],
    metric: Metrics = None,
    time_column: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="CSV: the column of times or versions.  [default: one called time, date, version, commit ...]",
        ),
    ] = None,
    looks: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="How often this history is looked at while it grows, such as 365 for a year of nights: false alarms "
            "are counted over all looks, and small changes are seen later.",
        ),
    ] = 1,
    false_alarms: Annotated[
        float, typer.Option(metavar="SHARE", help="The share of unchanged histories that may show a change.")
    ] = 0.05,
    same_within: Annotated[
        float, typer.Option(metavar="SHARE", help="Leave out changes up to this size, such as 0.01.")
    ] = 0.0,
    since: Annotated[
        str | None,
        typer.Option(metavar="RUN|DATE", help="Show changes from this run or date on only; older ones are known."),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="Exit with status 1 if a metric has regressed and no later change made up for it, or if anything has "
            "changed. A change that may be drift is reported and meets possibly-regressed and possibly-changed only.",
        ),
    ] = None,
    from_: From = None,
    json: Json = False,
) -> None:
    """Find when metrics changed over many runs of the same experiment, by how much, and what else changed then.

    Runs are taken in the order of time. Outliers and drift of the machine are no changes. If machine, kernel, iolab or
    options changed at the same time, the change may be theirs, and the line states it.
    """
    if fail_on is not None and fail_on not in CONDITIONS:
        raise InputError(f"{fail_on}: {unknown('condition', fail_on, CONDITIONS)}", where="--fail-on")
    for option, value, most in (("--false-alarms", false_alarms, 0.5), ("--same-within", same_within, 0.99)):
        if not (0 <= value <= most) or (option == "--false-alarms" and value == 0):
            raise InputError(f"{value:g} given; expected a share above 0, {most:g} at most", where=option)
    if not 1 <= looks <= LOOKS_MAX:
        raise InputError(f"{looks} given; expected 1 to {LOOKS_MAX:,}", where="--looks")

    from iolab.domain.history.history import found_in, unchanged_series
    from iolab.domain.history.weekly import weekly_cycles
    from iolab.files.importer.history import read_history

    read = read_history(runs, metrics=metric or (), format_name=from_, time_column=time_column)
    first = 0 if since is None else _place(read, since)
    changes = found_in(read, false_alarms=false_alarms, looks=looks, same_within=same_within)
    unseen = unchanged_series(read, changes, false_alarms=false_alarms, looks=looks)
    cycles = weekly_cycles(read, changes)
    found = [one for one in changes if one.change.at >= first]
    if json:
        print_json(
            {
                "runs": [{"name": one.name, "when_unix_ns": one.when_unix_ns} for one in read.moments],
                "ordered_by": read.ordered_by,
                "series": len(read.series),
                "changes": [one.as_dict(read.moments) for one in found],
                "unseen": [one.as_dict(read.moments) for one in unseen],
                "weekly_cycles": [one.as_dict() for one in cycles],
                "lost": [one.lost_as_dict(read.moments) for one in read.series if one.lost],
                "problems": list(read.problems),
            }
        )
    else:
        from iolab.presentation.table.history import lines

        print_lines(lines(read, found, unseen, cycles, false_alarms, looks))
        print_lines(read.problems, "! ")
    lost = [one for one in read.series if one.lost and one.lost[0] >= first]
    _exit_if_met(fail_on, found, lost, of_all=len(lost) == len(read.series))


def _place(read: History, since: str) -> int:
    """The place of the first moment that is the run of this name, or not before this date."""
    for place, moment in enumerate(read.moments):
        if since in (moment.name, str(moment)):
            return place
    try:
        when = datetime.fromisoformat(since)
    except ValueError:
        raise InputError(f"{since}: no run of this name, and no date such as 2026-11-23", where="--since") from None
    if any(moment.when_unix_ns is None for moment in read.moments):
        raise InputError("the runs have no dates", where="--since", remedy="name a run")
    at = when.replace(tzinfo=when.tzinfo or UTC).timestamp() * 1e9
    return next((place for place, one in enumerate(read.moments) if (one.when_unix_ns or 0) >= at), len(read.moments))


def _exit_if_met(
    condition: str | None, found: Sequence[HistoryFinding], lost: Sequence[Series], *, of_all: bool
) -> None:
    """Status 1 if a change meets the condition. Changes that drift explains as well exceed the share of false alarms
    that the limits are set for, so they count only if asked for, like metrics that the newest runs have no value of
    (`lost`; `of_all`: all are); what was not counted is reported. InputError if nothing is left that could change."""
    if condition is None:
        return
    counts_drift = condition.startswith(POSSIBLY)
    asked = [one for one in found if one.regressed or condition.removeprefix(POSSIBLY) == "changed"]
    met = [one for one in asked if counts_drift or not one.change.may_be_drift]
    without = f"the newest runs have no value of {_series_named(lost)}" if lost else ""
    if met or (lost and counts_drift):
        print(f"iolab: --fail-on holds: {'; '.join(filter(None, [_named(met), without]))}", file=sys.stderr)
        raise typer.Exit(EXIT_CONDITION)
    if lost and of_all:
        raise InputError(
            f"{condition}: can't hold of the newest runs, {without}",
            where="--fail-on",
            remedy=f"measure longer, name a metric that has values, or count it with {POSSIBLY}{condition}",
        )
    if lost:
        print(f"iolab: --fail-on cannot see all: {without}", file=sys.stderr)
    if asked:
        remedy = f"count what may be drift with: --fail-on {POSSIBLY}{condition}"
        print(f"iolab: --fail-on does not hold; it may be drift: {_named(asked)}; {remedy}", file=sys.stderr)


def _series_named(series: Sequence[Series]) -> str:
    return listed([f"{one.metric} of {one.workload or 'the file'}" for one in series], NAMED_MAX)


def _named(found: Sequence[HistoryFinding]) -> str:
    named = "; ".join(
        f"{one.series.metric} of {one.series.workload or 'the file'} {one.verdict}" for one in found[:NAMED_MAX]
    )
    return f"{named}; and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else named
