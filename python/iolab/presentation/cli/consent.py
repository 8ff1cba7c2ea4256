"""Asks before a run or a search that somebody else made or changed runs something here; all commands ask in this
way."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from iolab.base.errors import InputError, InterruptedRun
from iolab.base.plain_text import one_line

TrustRun = Annotated[
    bool,
    typer.Option(
        "--trust-run", help="With --resume: do not ask before continuing a run that somebody else made or changed."
    ),
]


def consent_of(path: Path, *, trusted: bool) -> Callable[[list[str]], None]:
    """Shows what is to be done, and asks; if no one can answer, `trusted` has to be true. Raises if nothing is to be
    done."""

    def consent(deeds: list[str]) -> None:
        print(f"{path} was made by somebody else, or elsewhere, or was changed. Continuing it will:", file=sys.stderr)
        for deed in deeds:
            print(f"  {one_line(deed)}", file=sys.stderr)
        if trusted:
            return
        if sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise InputError(
                "was not made here by this user",
                where=str(path),
                remedy="read what it does, above, then add --trust-run",
            )
        print("Continue? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise InterruptedRun("nothing was done")

    return consent
