"""`iolab claims` and `iolab claim`: published claims about performance, and what asking them here came to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from iolab.base.errors import InputError, unknown
from iolab.base.plain_text import counted
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import Json
from iolab.presentation.cli.output import print_json

if TYPE_CHECKING:
    from iolab.studies.claims.library import Claim

OF_ASK = "Of ask: "
ROUNDS_MIN, ROUNDS_MAX = 2, 100
"""A verdict takes two rounds."""


def claims(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="Show this claim, or that of a file CLAIM.toml, in full.",
            autocompletion=complete.claims,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the published claims that come with iolab, with what asking them came to.

    A claim is a mail or a commit with figures: what it says, how iolab can ask it (by the counts of a guest machine, a
    drive of known latency, a simulated machine, this machine), and the stored answers.
    """
    from iolab.studies.claims import library

    if name is not None:
        _show([library.load(name, "iolab claims")], as_json=json)
        return
    from iolab.presentation.table import claim as table
    from iolab.presentation.terminal import show

    found = [library.load(one, "iolab claims") for one in library.names()]
    if json:
        print_json([table.summary(one) for one in found])
    else:
        show(table.listed(found))


def claim(
    action: Annotated[
        Literal["show", "new", "ask"],
        typer.Argument(
            help="show: print a claim in full. new: read a mail with figures, and write the skeleton of a claim. ask: "
            "run the claim's experiments, and store the answers."
        ),
    ],
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...|MAIL",
            help="Claims by name (iolab claims) or as files CLAIM.toml; of new: the mail.",
            autocompletion=complete.claims,
        ),
    ],
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLACE",
            help=OF_ASK + "only there: count, paced, model or host. May be given several times.  [default: count, "
            "paced and model]",
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help=OF_ASK + "boots of each kernel on a path, rounds of an experiment.  [default: 3, the experiment's]"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help=OF_ASK + "where the runs go; claims on the same path and kernels share its run, and what is there is "
            "continued.  [default: a new one in iolab-runs]",
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="CLAIM.toml", help="Of new: the file to write. `-`: standard output."),
    ] = Path("-"),
    json: Json = False,
) -> None:
    """Show a published claim, start one from a mail, or ask it here.

    Answers are stored beside the claim: agrees, disagrees or undecided, with the measured change and its interval. By
    host asks this machine itself, and so only if you say --by host.
    """
    given = {"--by": by, "--rounds": rounds, "--out": out}
    if action != "ask":
        for option, value in given.items():
            if value is not None:
                raise InputError(f"is of ask, not of {action}", where=option, remedy="leave it out")
    if action != "new" and output != Path("-"):
        raise InputError(f"is of new, not of {action}", where="--output", remedy="leave it out")
    if action == "new":
        _new(names, output, as_json=json)
        return
    from iolab.studies.claims import library

    found = [library.load(name) for name in names]
    if action == "ask":
        _ask(found, by, rounds, out, as_json=json)
    _show(found, as_json=json)


def _new(names: Sequence[str], output: Path, *, as_json: bool) -> None:
    from iolab.base import output_file
    from iolab.studies.claims.mail import skeleton

    if len(names) != 1:
        raise InputError(f"{counted(len(names), 'name')}; expected one mail", where="iolab claim new")
    mail = Path(names[0])
    made = skeleton(mail)
    if as_json:
        print_json({"found": made.found, "claim": made.text})
        return
    output_file.write(output, made.text.encode(), [mail])
    print(f"Found:  {'; '.join(made.found)}", file=sys.stderr)
    if output != Path("-"):
        print(f'Next:   complete each "?" in {output}, then: iolab claim show {output}', file=sys.stderr)


def _ask(found: Sequence[Claim], by: list[str] | None, rounds: int | None, out: Path | None, *, as_json: bool) -> None:
    from iolab.domain.claim.finding import Findings
    from iolab.files.store.directory import default_path
    from iolab.presentation.progress import display
    from iolab.studies.claims.ask import Asker
    from iolab.studies.reproduction.effects import PLACES
    from iolab.studies.run.machine_executor import MachineExecutor

    for place in by or ():
        if place not in PLACES:
            raise InputError(f"{place}: {unknown('place', place, PLACES)}", where="--by")
    if rounds is not None and not ROUNDS_MIN <= rounds <= ROUNDS_MAX:
        raise InputError(f"{rounds}: expected {ROUNDS_MIN} to {ROUNDS_MAX}", where="--rounds")
    places = by or [place for place in PLACES if place != "host"]
    for one in found:
        one.check_place()
    with MachineExecutor() as executor:
        asker = Asker(out or default_path("claims"), executor, display(as_json=as_json), rounds)
        for one in found:
            answers = asker.ask(one, places)
            again = {answer.ask for answer in answers}
            known = one.published.effects.asks.keys() - again
            kept = [old for old in one.findings.findings if old.ask in known]
            one.store(Findings(claim=one.published.name, findings=[*kept, *answers]))


def _show(found: Sequence[Claim], *, as_json: bool) -> None:
    from iolab.presentation.table import claim as table

    if as_json:
        print_json([table.as_dict(one) for one in found])
        return
    print("\n".join(table.text(one) for one in found), end="")
