"""The claims that come with iolab and those of a user's files, with the answers that are stored of each.

A claim is a file of published figures (docs/reference/reproduce.md): those that a model is asked, and those of the
folder `claims`. Answers to the former and the latter are in `results/claims`, those to a user's file beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from iolab.base import data, output_file
from iolab.base.bounded_file import MIB, read_bounded
from iolab.base.errors import InputError, unknown
from iolab.base.strict_json import by_row
from iolab.domain.claim.finding import Findings, State, state_of
from iolab.studies.reproduction.part import Part, StatementPart
from iolab.studies.reproduction.publication import Publication, load_file
from iolab.studies.reproduction.scorecard import stored

ANSWERS = data.PUBLISHED / "results" / "claims"
_ANSWERS_MAX_BYTES = MIB
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


@dataclass(frozen=True)
class Claim:
    """A claim with its file."""

    published: Publication
    file: Path

    @property
    def comes_with_iolab(self) -> bool:
        """Whether it is of the library."""
        return self.file.parent in (data.PUBLISHED, data.CLAIMS)

    @property
    def answers_file(self) -> Path:
        """Where its answers are stored."""
        if self.comes_with_iolab:
            return ANSWERS / f"{self.published.name}.json"
        return self.file.with_suffix(".answers.json")

    @property
    def findings(self) -> Findings:
        """What is stored of it. InputError if that is damaged."""
        path = self.answers_file
        if not path.exists():
            return Findings(claim=self.published.name, findings=[])
        content = read_bounded(path, _ANSWERS_MAX_BYTES, "answers")
        try:
            return Findings.model_validate_json(content)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the file"
            raise InputError(
                f"no answers of iolab: {where}: {first['msg']}", where=str(path), remedy="remove it, and ask again"
            ) from None

    @property
    def state(self) -> State:
        """The stored answers in a word."""
        return state_of(self.findings.findings)

    @property
    def date(self) -> str:
        """The claim's date; of a file without one, the last year that its source names."""
        years = _YEAR.findall(self.published.source)
        return self.published.date or (years[-1] if years else "")

    def check_place(self) -> None:
        """Before anything is measured: InputError if answers can't be stored."""
        output_file.check(self.answers_file)

    def store(self, findings: Findings) -> None:
        """Replaces what is stored. InputError if the place can't be written."""
        output_file.write(self.answers_file, (by_row(json.loads(findings.model_dump_json())) + "\n").encode())


def names() -> list[str]:
    """The claims that come with iolab, sorted. InputError if it was installed without them."""
    return sorted({*data.names(data.PUBLISHED), *data.stems(data.CLAIMS)})


def load(name: str, where: str = "iolab claim") -> Claim:
    """The claim of this name, or that of a file NAME.toml. InputError has a line per problem."""
    path = Path(name)
    if path.suffix != ".toml":
        found = [folder / f"{name}.toml" for folder in (data.CLAIMS, data.PUBLISHED)]
        path = next(filter(Path.is_file, found), path)
        if path.suffix != ".toml":
            raise InputError(
                f"{name}: {unknown('claim', name, names())}", where=where, remedy="iolab claims lists them"
            )
    return Claim(load_file(path), path)


def stated() -> list[Claim]:
    """Those of the library that state an effect, sorted by name."""
    return [one for one in map(load, names()) if one.published.effects.claimed]


def figures_of(name: str) -> tuple[int, int, int] | None:
    """Of a file that a model was asked: its cells that were compared, and how many of its claims in words it confirms
    of how many. None: no results are stored."""
    parts = [part for part in stored() if part["name"].partition("/")[0] == name]
    if not parts:
        return None
    cells = sum(len(part["cells"]) for part in parts if part["kind"] == "table")
    met = [one["met"] for part in parts if part["kind"] == "statements" for one in part["statements"]]
    return cells, sum(met), len(met)


def statement_of(name: str, statement: str, parts: Iterable[Part] | None = None) -> StatementPart | None:
    """What a model came to in a claim of the file, [claims.STATEMENT]. `parts`: of a reproduction; None: as stored."""
    for part in stored() if parts is None else parts:
        if part["kind"] == "statements" and part["name"].partition("/")[0] == name:
            return next((one for one in part["statements"] if one["name"] == statement), None)
    return None
