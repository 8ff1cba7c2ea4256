"""Published figures and statements with their provenance: a file of them, read and checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iolab.base import data
from iolab.base.bounded_file import EXPERIMENT_BYTES_MAX, read_bounded
from iolab.base.errors import InputError, unknown
from iolab.base.former_names import Renamed, renewed
from iolab.base.problem import Problems
from iolab.base.toml import Document, parse
from iolab.studies.reproduction.cell_role import CLAIMS, By, check, patterns, with_sources
from iolab.studies.reproduction.distributions import Distribution, read_distributions
from iolab.studies.reproduction.effects import Effects, read_effects
from iolab.studies.reproduction.options import ChosenOptions, FileOptions, FittedOptions, by_name
from iolab.studies.reproduction.statements import Statement, read_statements
from iolab.studies.reproduction.tables import Table, read_tables

RENAMED: Renamed = {("seed",): "case_study", ("said",): "claims"}
OPEN = "?"
"""Stands in a skeleton for what a person has to complete."""
PARTS = ("tables", "claims", "distributions", "effects")


@dataclass(frozen=True)
class Publication:
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
    chosen: dict[str, ChosenOptions]
    tables: list[Table]
    statements: list[Statement]
    distributions: list[Distribution]
    date: str | None
    commit: str | None
    effects: Effects
    document: Document
    """The file, for what is found wrong later."""

    @property
    def served_by(self) -> dict[str, By]:
        """Fits and choices, by name."""
        return {**self.fitted, **self.chosen}


def names() -> list[str]:
    """The files that a model is asked. InputError if iolab was installed without them."""
    return data.names(data.PUBLISHED)


def load(name: str) -> Publication:
    """The figures that `names` lists as `name`, or those of a file NAME.toml. InputError has a line per problem."""
    path = Path(name)
    if path.suffix != ".toml":
        if name not in names():
            raise InputError(f"{name}: {unknown('published figures', name, names())}", where="iolab reproduce")
        path = data.PUBLISHED / f"{name}.toml"
    return load_file(path)


def load_file(path: Path) -> Publication:
    """The same of a file. InputError has a line per problem."""
    try:
        text = read_bounded(path, EXPERIMENT_BYTES_MAX, "published figures").decode()
    except UnicodeDecodeError:
        raise InputError("cannot read the published figures: not UTF-8 text", where=str(path)) from None
    return loads(text, path)


def _open_places(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys that a skeleton leaves open."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _open_places(inner, (*path, key))
    elif value == OPEN:
        yield path


def loads(text: str, path: Path) -> Publication:
    """Checks the text of a file that lies at `path`."""
    document = renewed(parse(text, str(path)), RENAMED)
    problems = Problems(document)
    top = problems.validated(FileOptions, document.values, (), "a file of published figures")
    if not any(document.values.get(part) for part in PARTS):
        problems.add((), f"nothing to compare; expected {' or '.join(f'[{part}.NAME]' for part in PARTS)}")
    for place in _open_places(document.values):
        problems.add(place, f'"{OPEN}" stands for what is to be completed, as the source has it')
    if top is None:
        problems.raise_any()
        raise AssertionError("what is not valid has a problem")
    fitted = by_name(FittedOptions, top.fitted, ("fitted",), "a fitted parameter", problems)
    chosen = by_name(ChosenOptions, top.chosen, ("chosen",), "a choice", problems)
    tables = list(read_tables(path.stem, top.tables, top.cell, patterns(fitted, chosen), problems))
    published = Publication(
        name=path.stem,
        title=top.title,
        case_study=top.case_study or "none",
        source=top.source,
        setup=top.setup,
        experiment=None if top.experiment is None else (path.parent / top.experiment).resolve(),
        rounds=top.rounds,
        fitted=fitted,
        chosen=chosen,
        tables=with_sources(tables, problems),
        statements=list(read_statements(top.claims, problems)),
        distributions=list(read_distributions(path.stem, top.distributions, problems)),
        date=top.date,
        commit=top.commit,
        effects=read_effects(top, list(top.claims), problems),
        document=document,
    )
    if top.case_study is None and (top.tables or top.claims or top.distributions):
        problems.add(("case_study",), 'missing; expected the number of a case study, "none" or "blind"')
    figures_are_asked = bool(top.tables) and not top.effects
    figures_are_asked |= any(cell.place is not None for table in tables for cell in table.cells)
    if published.experiment is None and (figures_are_asked or top.claims):
        problems.add(("experiment",), "missing; tables and statements are asked of an experiment")
    if CLAIMS in top.tables:
        problems.add(("tables", CLAIMS), "statements have this name; expected another one for the table")
    wrong = top.tables.keys() - {table.key for table in tables}
    for kind, found in (("fitted", fitted), ("chosen", chosen)):
        for name, one in found.items():
            check((kind, name), one, tables, list(top.claims), wrong, problems)
    for name, choice in chosen.items():
        given = [key for key in ("machine", "parameter", "value") if getattr(choice, key) is not None]
        if len(given) not in (0, 3):
            problems.add(("chosen", name), "expected machine, parameter and value together, or none of them")
    problems.raise_any()
    return published
