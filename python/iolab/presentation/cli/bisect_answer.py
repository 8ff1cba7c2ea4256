"""The answer of a search among versions: printed, as JSON, and as the command's exit status."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from iolab.base.errors import EXIT_CONDITION
from iolab.presentation.cli.output import print_json, print_lines

if TYPE_CHECKING:
    from iolab.base.strict_json import JsonObject
    from iolab.domain.bisect.search import Answer
    from iolab.domain.definition import Nature
    from iolab.domain.verdict.judgement import Judgement
    from iolab.studies.run.bisect import Finding
    from iolab.studies.run.commits import GitFinding


def show_commits(found: GitFinding, path: Path, fail_on: str | None, *, as_json: bool) -> None:
    """Shows the result of a search that ran commands under commits or a list of versions. Exits with status 1 if
    `fail_on` holds."""
    from iolab.presentation.table import commits

    if as_json:
        print_json({"run": str(path), **commits.as_dict(found)})
    else:
        print_lines(commits.lines(found))
        print(f"\nSearch: {path}")
    judged = {change.last: found.judged(change.last) for change in found.answer.changes}
    _exit_if_met(fail_on, found.answer, judged, found.question.nature, str(path))


def _exit_if_met(
    condition: str | None, answer: Answer, judged: Mapping[int, Judgement | None], nature: Nature, what: str
) -> None:
    """Ends the command with status 1 if it holds. A change that was not confirmed counts by its levels."""
    from iolab.domain.definition import DIFFERENCES, LOSSES

    if condition is None or answer.kind not in ("changes", "creep"):
        return
    found = []
    for change in answer.changes:
        higher, lower = DIFFERENCES[nature]
        confirmed = judged.get(change.last)
        found.append(confirmed.verdict if confirmed else higher if change.after > change.before else lower)
    if condition == "changed" or LOSSES & set(found):
        print(f"iolab: --fail-on holds: {what}: {', '.join(found)}", file=sys.stderr)
        raise typer.Exit(EXIT_CONDITION)


def show_run(path: Path, found: list[Finding], fail_on: str | None, *, as_json: bool, stored: bool = False) -> None:
    """Shows the result of a search among an experiment's settings. Exits with status 1 if `fail_on` holds."""
    from iolab.domain.metric import describe
    from iolab.presentation.table.bisection import lines

    if as_json:
        first, *others = (_as_dict(one) for one in found)
        print_json({"run": str(path), **first, "others": others})
    else:
        from iolab.presentation.terminal import show

        for place, one in enumerate(found):
            if place:
                print()
            show(lines(one, stored=stored))
        _print_confirmed(path, found)
        _print_functions(path, found)
        print(f"\nRun:    {path}")
    for one in found:
        _exit_if_met(fail_on, one.answer, one.confirmations, describe(one.metric).nature, one.metric)


def _print_confirmed(path: Path, found: list[Finding]) -> None:
    """For each version that was confirmed against the one before it, on guest machines: the functions that it made
    more expensive or cheaper; and what `iolab explain` reports about the fresh rounds."""
    from iolab.domain.explain import causes
    from iolab.domain.explain.inputs import of_run
    from iolab.files.store import read
    from iolab.presentation.table import cause
    from iolab.presentation.table.symbols import between
    from iolab.presentation.terminal import show
    from iolab.studies.run.bisect import ConfirmationRun

    asked = found[0].question
    for change in sorted({change for one in found for change in one.confirmations}):
        before, after = found[0].versions[change - 1], found[0].versions[change]
        run = read(path)
        if functions := between(run, asked.workload, before, after):
            print(f"\n{functions.rstrip()}")
        metrics = [one.metric for one in found if change in one.confirmations]
        inputs = of_run(ConfirmationRun.of(run, asked.workload, before, after), metrics, before)
        if known := causes(inputs.frame, inputs.results, inputs.changes):
            print()
            show(cause.causes(known))


def _print_functions(path: Path, found: list[Finding]) -> None:
    """Names the functions of guest machines that step if no metric's change was confirmed."""
    from iolab.files.store import read
    from iolab.presentation.table.symbols import stepped

    confirmed = {found[0].versions[change] for one in found for change in one.confirmations}
    if functions := stepped(read(path), found[0].question.workload, found[0].versions, confirmed):
        print(f"\n{functions.rstrip()}")


def _as_dict(found: Finding) -> JsonObject:
    """The finding as JSON: the schema stands in docs/bisection.md."""
    answer, versions = found.answer, found.versions
    return {
        "metric": found.metric,
        "kind": answer.kind,
        "probability": answer.probability,
        "stopped": answer.stopped,
        "trials": answer.measurements,
        "changes": [
            {
                "first": versions[change.first],
                "last": versions[change.last],
                "probability": change.probability,
                "before": change.before,
                "after": change.after,
                "confirmed": _confirmed(found.confirmations.get(change.last)),
            }
            for change in answer.changes
        ],
        "unmeasurable": found.unmeasurable,
    }


def _confirmed(judgement: Judgement | None) -> JsonObject | None:
    return None if judgement is None else judgement.as_dict()
