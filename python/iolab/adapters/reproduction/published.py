"""Published figures and statements with their provenance: a file of them, read and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from iolab.adapters.reproduction.distributions import Distribution, read_distributions
from iolab.adapters.reproduction.options import FileOptions, FittedOptions, by_name
from iolab.adapters.reproduction.statements import Statement, read_statements
from iolab.adapters.reproduction.tables import Table, read_tables
from iolab.base import data
from iolab.base.bounded_file import EXPERIMENT_BYTES_MAX, read_bounded
from iolab.base.errors import InputError, unknown
from iolab.base.option import shown
from iolab.base.problem import Problems
from iolab.base.renamed import Renamed, renewed
from iolab.base.toml import Document, parse

RENAMED: Renamed = {("seed",): "case_study", ("said",): "claims"}
PARTS = ("tables", "claims", "distributions")


@dataclass(frozen=True)
class Published:
    """A file of published figures, read and checked."""

    name: str
    title: str
    case_study: str
    source: str
    setup: dict[str, str]
    experiment: Path | None
    """None: nothing has to be run."""
    rounds: int | None
    """None: as many as the experiment has."""
    fitted: dict[str, FittedOptions]
    tables: list[Table]
    statements: list[Statement]
    distributions: list[Distribution]
    document: Document
    """The file, for what is found wrong later."""


def names() -> list[str]:
    """The files that come with iolab. InputError where iolab was installed without them."""
    return data.names(data.PUBLISHED)


def load(name: str) -> Published:
    """The figures that `names` lists as `name`, or those of a file NAME.toml. InputError has a line per problem."""
    path = Path(name)
    if path.suffix != ".toml":
        if name not in names():
            raise InputError(f"{name}: {unknown('published figures', name, names())}", where="iolab reproduce")
        path = data.PUBLISHED / f"{name}.toml"
    try:
        text = read_bounded(path, EXPERIMENT_BYTES_MAX, "published figures").decode()
    except UnicodeDecodeError:
        raise InputError("cannot read the published figures: not UTF-8 text", where=str(path)) from None
    return loads(text, path)


def loads(text: str, path: Path) -> Published:
    """Checks the text of a file that lies at `path`."""
    document = renewed(parse(text, str(path)), RENAMED)
    problems = Problems(document)
    top = problems.validated(FileOptions, document.values, (), "a file of published figures")
    if not any(document.values.get(part) for part in PARTS):
        problems.add((), f"nothing to compare; expected {' or '.join(f'[{part}.NAME]' for part in PARTS)}")
    if top is None:
        problems.raise_any()
        raise AssertionError("what is not valid has a problem")
    published = Published(
        name=path.stem,
        title=top.title,
        case_study=top.case_study,
        source=top.source,
        setup=top.setup,
        experiment=None if top.experiment is None else (path.parent / top.experiment).resolve(),
        rounds=top.rounds,
        fitted=by_name(FittedOptions, top.fitted, ("fitted",), "a fitted parameter", problems),
        tables=list(read_tables(path.stem, top.tables, top.cell, problems)),
        statements=list(read_statements(top.claims, problems)),
        distributions=list(read_distributions(path.stem, top.distributions, problems)),
        document=document,
    )
    if published.experiment is None and (top.tables or top.claims):
        problems.add(("experiment",), "missing; tables and statements are asked of an experiment")
    for name, fitted in published.fitted.items():
        if not any(is_to(fitted.to, part) for part in (*top.tables, *top.claims)):
            problems.add(("fitted", name, "to"), f"{shown(fitted.to)} names no table and no statement of this file")
    problems.raise_any()
    return published


def is_to(text: str, table: str) -> bool:
    """Whether what a parameter was fitted to is in this table, by its name in the file."""
    return re.search(rf"(?<![\w.-]){re.escape(table)}(?![\w.-])", text) is not None
