"""Published figures and statements with what the model makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from iolab.base.errors import unknown
from iolab.base.problem import Problems
from iolab.domain.executor import Display, Executor
from iolab.files.experiment import Experiment, load
from iolab.files.store import RunData, read
from iolab.studies.reproduction.distributions import Distribution
from iolab.studies.reproduction.evidence import mechanisms_of
from iolab.studies.reproduction.null import NullPredictor, best
from iolab.studies.reproduction.publication import Publication
from iolab.studies.reproduction.run_values import RunValues, Value
from iolab.studies.reproduction.score import Claim, ComparedCell, claims, typical_factor
from iolab.studies.reproduction.statements import JudgedStatement, judged
from iolab.studies.reproduction.tables import Cell, Role, Table
from iolab.studies.run import run

ROLES: tuple[Role, ...] = ("fit", "chosen", "prediction")
ROUNDS_FOR_A_VERDICT = 2
"""Fewer can't be judged at all."""


@dataclass(frozen=True)
class UncomparedCell:
    """A cell that is no evidence about the model, and why."""

    cell: Cell
    simulated: float | None
    reason: str


@dataclass(frozen=True)
class ReproducedTable:
    """A published table with what a run has for its cells."""

    table: Table
    compared: list[ComparedCell]
    not_compared: list[UncomparedCell]
    claims: list[Claim]
    """What was aimed at, with what came out."""
    mechanisms: frozenset[str]
    """The mechanisms of the simulated machine that its cells' trials used."""

    def of_role(self, role: Role) -> list[ComparedCell]:
        """The compared cells of one role: those that were fitted, or the predictions."""
        return [one for one in self.compared if one.cell.role == role]

    @property
    def independent(self) -> list[ComparedCell]:
        """The predictions that follow from no other cell: only these are evidence."""
        return [one for one in self.compared if one.independent]

    @property
    def typical_factor(self) -> dict[str, float | None]:
        """By role, how far off its cells typically are; of the predictions, the independent ones. None: no cell."""
        found = {role: self.of_role(role) for role in ROLES} | {"prediction": self.independent}
        return {role: typical_factor([one.factor for one in cells]) for role, cells in found.items()}

    @property
    def null(self) -> NullPredictor | None:
        """The null predictor that is best beside the model; None if the cells are too few for one."""
        return best(self.table, self.independent)


@dataclass(frozen=True)
class Reproduction:
    """A file of published figures beside the run that reproduces it."""

    published: Publication
    rounds: int
    tables: list[ReproducedTable]
    statements: list[JudgedStatement]

    @property
    def distributions(self) -> list[Distribution]:
        """The file's published distributions; their questions are answered without a run."""
        return self.published.distributions

    def claims(self) -> Iterator[tuple[str, Claim]]:
        """All that was aimed at, each with the name of its part of the file."""
        for table in self.tables:
            yield from ((table.table.name, claim) for claim in table.claims)
        for one in self.statements:
            yield f"{self.published.name}/claims.{one.statement.name}", one.claim
        for distribution in self.distributions:
            yield from ((distribution.name, claim) for claim in distribution.claims())


def experiment_of(published: Publication) -> Experiment | None:
    """The experiment that asks again, None if there is nothing to run. InputError states which workloads and settings
    it lacks, the first of each table of the file, and whether it is too short for statements to be judged."""
    if published.experiment is None:
        return None
    experiment = load(published.experiment)
    problems = Problems(published.document)
    known: dict[str, Iterable[str]] = {"workload": experiment.workloads, "setting": experiment.settings}
    lacking: dict[tuple[str, ...], tuple[str, str]] = {}
    for path, what, name in _named(published):
        if name not in known[what]:
            lacking.setdefault(path, (what, name))
    for place, (what, name) in lacking.items():
        problems.add(place, f"{name}: {unknown(what, name, known[what])}")
    rounds = published.rounds or experiment.rounds
    if any(one.baseline is not None for one in published.statements) and rounds < ROUNDS_FOR_A_VERDICT:
        key = "claims" if published.rounds is None else "rounds"
        problems.add((key,), f"{rounds} round given; statements are judged on at least {ROUNDS_FOR_A_VERDICT}")
    problems.raise_any()
    return experiment


def _named(published: Publication) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Each workload and setting that the file names: the key's path, which of the two it is, and the name."""
    path: tuple[str, ...]
    for table in published.tables:
        path = ("tables", table.name.removeprefix(f"{published.name}/"), "cell")
        for place in filter(None, (cell.place for cell in table.cells)):
            yield (*path, "workload"), "workload", place.workload
            yield (*path, "setting"), "setting", place.setting
            if place.against is not None:
                yield (*path, "against"), "setting", place.against
    for one in published.statements:
        path = ("claims", one.name)
        yield (*path, "workload"), "workload", one.workload
        yield (*path, "setting"), "setting", one.setting
        if one.baseline is not None:
            yield (*path, "baseline"), "setting", one.baseline


def reproduce(
    published: Publication,
    out: Path,
    *,
    executor: Executor,
    progress: Display,
    rounds: int | None = None,
    seed: int | None = None,
) -> Reproduction:
    """Runs the experiment into the run directory `out`, and compares. `rounds`: instead of the file's or the
    experiment's number. Errors are those of `iolab.studies.run.run`."""
    experiment = experiment_of(published)
    if experiment is None:
        return _without_run(published)
    done = run(experiment, out, executor=executor, progress=progress, rounds=rounds or published.rounds, seed=seed)
    return compare(published, read(done.path))


def compare_kept(published: Publication, out: Path) -> Reproduction:
    """As `reproduce`, with the run that it left in `out`."""
    return _without_run(published) if published.experiment is None else compare(published, read(out))


def _without_run(published: Publication) -> Reproduction:
    return Reproduction(published, 0, [], [])


def compare(published: Publication, run: RunData) -> Reproduction:
    """The figures beside those of a run of their experiment."""
    measured = RunValues(run)
    used = mechanisms_of(run)
    tables = [_table(table, measured, used) for table in published.tables]
    statements = judged(published.statements, run, measured)
    return Reproduction(published, run.trials["round"].n_unique(), tables, statements)


def _table(table: Table, measured: RunValues, used: Mapping[tuple[str, str], frozenset[str]]) -> ReproducedTable:
    compared: list[ComparedCell] = []
    not_compared: list[UncomparedCell] = []
    for cell in table.cells:
        value = measured.at(cell.place) if cell.place else Value(None, cell.reason)
        reason = cell.reason or value.reason or (None if cell.published else "of 0 there is no relative error")
        if reason is None and value.value is not None:
            compared.append(ComparedCell(cell, value.value))
        else:
            not_compared.append(UncomparedCell(cell, value.value, reason or "not a number"))
    asked = {(cell.place.workload, cell.place.setting) for cell in table.cells if cell.place}
    mechanisms = frozenset[str]().union(*(used.get(trial, frozenset()) for trial in asked))
    return ReproducedTable(table, compared, not_compared, _claims(table, compared, not_compared), mechanisms)


def _claims(table: Table, compared: Sequence[ComparedCell], not_compared: Sequence[UncomparedCell]) -> list[Claim]:
    found = []
    for pattern, aim in table.aims.items():
        asked = [one for one in compared if one.cell.role == "prediction" and one.cell.matches(pattern)]
        # What the model was asked and did not answer is no success.
        unanswered = sum(
            one.cell.role == "prediction" and one.simulated is None and one.cell.matches(pattern)
            for one in not_compared
        )
        if not asked and not unanswered:
            continue  # a fit or a choice serves them all: nothing is left to aim at
        found += [
            claim if pattern == "*" else replace(claim, text=f"{pattern}: {claim.text}")
            for claim in claims(aim, asked, unanswered=unanswered)
        ]
    return found
