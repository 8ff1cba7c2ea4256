"""`iolab bisect`: which of many versions changed a metric."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.base.errors import InputError
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import Json, Out, Patience, seconds
from iolab.presentation.cli.output import print_json

if TYPE_CHECKING:
    from iolab.adapters.run.bisect import Finding
    from iolab.base.strict_json import JsonObject
    from iolab.domain.verdict import Judgement

CONFIDENCE_LEAST = 0.5
MOST_MAX, CONFIRM_MAX = 10_000, 1_000


def bisect(
    experiment: Annotated[
        Path | None,
        typer.Argument(
            metavar="[EXPERIMENT.toml]",
            help="An experiment whose settings are the versions, oldest first: kernels of a simulated machine, values "
            "of a tunable, anything that a setting says.",
            show_default=False,
            autocompletion=complete.experiments,
        ),
    ] = None,
    good: Annotated[
        str | None,
        typer.Option(
            metavar="SETTING", help="The oldest version to look at.  [default: the first]", show_default=False
        ),
    ] = None,
    bad: Annotated[
        str | None,
        typer.Option(metavar="SETTING", help="The newest version to look at.  [default: the last]", show_default=False),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="What changed.  [default: the first that the experiment compares]",
            show_default=False,
            autocompletion=complete.metrics,
        ),
    ] = None,
    workload: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of several workloads, the one to measure.", show_default=False)
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="Stop when one account of the history has this probability.")
    ] = 0.95,
    most: Annotated[int, typer.Option(help="Stop after so many trials of the search.")] = 200,
    confirm: Annotated[
        int, typer.Option(help="Measure each version that is named against the one before it in so many fresh rounds.")
    ] = 8,
    out: Out = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Continue the search in DIR.", show_default=False, autocompletion=complete.runs
        ),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            help="Where trials run, instead of the experiment's machine.",
            show_default=False,
            autocompletion=complete.machines,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all that is random.  [default: drawn and recorded]", show_default=False)
    ] = None,
    patience: Patience = None,
    json: Json = False,
) -> None:
    """Find the version that changed a metric: which one, how sure, how much, in few trials.

    Each next trial is of the version that tells most by what is known. The answer is a version, several, a creep over
    many, or none, with its probability. What is named is then measured again, paired with the version before it.
    """
    if (experiment is None) == (resume is None):
        raise InputError("name an experiment, or a search to go on with (--resume DIR), not both", where="iolab bisect")

    from iolab.adapters.run import resume as go_on
    from iolab.adapters.run import run as start
    from iolab.adapters.run.bisect import finding_in, question
    from iolab.adapters.run.by_machine import ByMachine
    from iolab.presentation.cli.run import load
    from iolab.presentation.progress import display

    progress = display(as_json=json)
    with ByMachine(seconds(patience)) as executor:
        if resume is not None:
            finding_in(resume)  # which says so where the run is no search
            path = go_on(resume, executor=executor, progress=progress).path
        else:
            assert experiment is not None
            _check(confidence, most, confirm)
            loaded = load(experiment, machine, None, [])
            asked = question(
                loaded,
                workload=workload,
                metric=metric,
                good=good,
                bad=bad,
                confidence=confidence,
                most=most,
                confirm=confirm,
            )
            path = start(loaded, out, executor=executor, progress=progress, rounds=most, seed=seed, question=asked).path
    _show(path, as_json=json)


def _check(confidence: float, most: int, confirm: int) -> None:
    if not CONFIDENCE_LEAST <= confidence < 1:
        raise InputError(f"{confidence:g} given; expected 0.5 or more, below 1", where="--confidence")
    for option, value, least, largest in (("--most", most, 6, MOST_MAX), ("--confirm", confirm, 0, CONFIRM_MAX)):
        if not least <= value <= largest:
            raise InputError(f"{value} given; expected {least} to {largest:,}", where=option)


def _show(path: Path, *, as_json: bool) -> None:
    from iolab.adapters.run.bisect import finding_in
    from iolab.presentation.table.bisection import lines

    found = finding_in(path)
    if as_json:
        print_json({"run": str(path), **_as_dict(found)})
        return
    from iolab.presentation.terminal import show

    show(lines(found))
    print(f"\nRun:    {path}")


def _as_dict(found: Finding) -> JsonObject:
    """The finding as JSON: the schema stands in docs/reference/bisection.md."""
    answer, versions = found.answer, found.versions
    return {
        "metric": found.question.metric,
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
