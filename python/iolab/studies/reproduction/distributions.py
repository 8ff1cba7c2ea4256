"""Published summaries of repeated measurements: read, checked, and judged by themselves, without a run.

How much a mean is worth depends on what of the measurement was independent, which a mail seldom states: each reading of
it is judged alike.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iolab.base.errors import InputError
from iolab.base.option import shown
from iolab.base.plain_text import counted
from iolab.base.problem import Problems
from iolab.base.toml import TomlTable
from iolab.domain.definition import Nature
from iolab.domain.verdict.summaries import Contrast, Summary, contrasts
from iolab.studies.reproduction.options import DistributionOptions, KeyPath, QuestionOptions, by_name, check_verdicts
from iolab.studies.reproduction.score import Claim

UNITS_OF_TIME = ("ns", "us", "ms", "s", "min", "h")


@dataclass(frozen=True)
class Row:
    """A published summary of repeated measurements, in the distribution's unit."""

    low: float
    mean: float
    high: float
    sd: float


@dataclass(frozen=True)
class Pair:
    """Two rows, or two groups of rows, by what they are called."""

    baseline: str
    candidate: str
    baseline_rows: list[str]
    candidate_rows: list[str]


@dataclass(frozen=True)
class Question:
    """Pairs of rows of a published distribution, and the claims about them."""

    name: str
    pairs: list[Pair]
    text: str | None
    """The claims about it."""
    who: str | None
    verdicts: list[str]
    """Those that it agrees with."""


@dataclass(frozen=True)
class ComparedRows:
    """A pair, as one reading of what was independent has it."""

    question: Question
    pair: Pair
    contrast: Contrast
    rounds_to_decide: int | None
    """How many rounds each row would have needed for a verdict other than *undecided*; None if none suffice."""
    rounds_to_see: int | None
    """The same for a difference of the size that was found."""


@dataclass(frozen=True)
class Reading:
    """All pairs, if `per_round` values of a round are independent."""

    unit: str
    per_round: int
    n: int
    compared: list[ComparedRows]


@dataclass(frozen=True)
class Distribution:
    """Published summaries of repeated measurements, and the questions asked of them."""

    name: str
    """FILE/DISTRIBUTION."""
    title: str
    unit: str
    rounds: int
    rows: dict[str, Row]
    questions: list[Question]
    readings: list[Reading]

    def claims(self) -> Iterator[Claim]:
        """The claims beside the verdicts on these figures, once for each reading."""
        for reading in self.readings:
            for question in self.questions:
                if question.text is not None:
                    found = [one.contrast.verdict for one in reading.compared if one.question is question]
                    agree = sum(verdict in question.verdicts for verdict in found)
                    words = (
                        f"{agree} of {len(found)} {' or '.join(question.verdicts)}, if {reading.unit} is independent"
                    )
                    yield Claim(f"{question.text} ({question.who}): {words}", agree == len(found))


def read_distributions(file: str, tables: TomlTable, problems: Problems) -> Iterator[Distribution]:
    """The distributions of [distributions.NAME] that are right, judged."""
    named = by_name(DistributionOptions, tables, ("distributions",), "a distribution", problems)
    for name, options in named.items():
        path: KeyPath = ("distributions", name)
        faults = list(_faults(options))
        for key, what in faults:
            problems.add((*path, *key), what)
        if faults:
            continue
        questions = list(_questions(options, (*path, "compare"), problems))
        try:
            readings = [_reading(options, questions, unit) for unit in options.independent]
        except InputError as error:
            problems.add((*path, "rows"), str(error))
            continue
        rows = {row: Row(*figures) for row, figures in options.rows.items()}
        yield Distribution(f"{file}/{name}", options.title, options.unit, options.rounds, rows, questions, readings)


def _reading(options: DistributionOptions, questions: Sequence[Question], unit: str) -> Reading:
    """The share of false discoveries is controlled over all its pairs."""
    per_round = options.independent[unit]
    n = options.rounds * per_round

    def arm(rows: Sequence[str]) -> list[Summary]:
        return [Summary(n, mean, sd) for _, mean, _, sd in (options.rows[row] for row in rows)]

    asked = [(question, pair) for question in questions for pair in question.pairs]
    judged = contrasts(
        [(arm(pair.baseline_rows), arm(pair.candidate_rows)) for _, pair in asked],
        nature=_nature(options),
        same_within=options.same_within,
    )
    compared = [
        ComparedRows(
            question, pair, contrast, _rounds(contrast.n_to_decide, per_round), _rounds(contrast.n_to_see, per_round)
        )
        for (question, pair), contrast in zip(asked, judged, strict=True)
    ]
    return Reading(unit, per_round, n, compared)


def _nature(options: DistributionOptions) -> Nature:
    """Figures in a unit of time are times, figures per second rates, unless the other way is better."""
    if options.better == "lower":
        return "time" if options.unit in UNITS_OF_TIME else "cost"
    return "rate" if options.unit.endswith("/s") else "benefit"


def _rounds(n: float, per_round: int) -> int | None:
    return math.ceil(n / per_round) if math.isfinite(n) else None


def _faults(options: DistributionOptions) -> Iterator[tuple[KeyPath, str]]:
    for row, figures in options.rows.items():
        if len(figures) != 4:
            yield (
                ("rows", row),
                f"{counted(len(figures), 'figure')} given; expected lowest, mean, highest, standard deviation",
            )
            continue
        low, mean, high, sd = figures
        if not 0 < low <= mean <= high:
            yield ("rows", row), "expected lowest <= mean <= highest, all above 0"
        if not 0 < sd < mean:
            yield ("rows", row), "expected a standard deviation above 0 and below the mean"
    for unit, values in options.independent.items():
        if values < 1:
            yield ("independent", unit), f"{values} given; expected at least 1"
    for key, given in (("rows", options.rows), ("independent", options.independent), ("compare", options.compare)):
        if not given:
            yield (key,), "expected at least one"


def _questions(options: DistributionOptions, path: KeyPath, problems: Problems) -> Iterator[Question]:
    for name, asked in by_name(QuestionOptions, options.compare, path, "a question", problems).items():
        found = {key: fnmatch.filter(options.rows, getattr(asked, key)) for key in ("baseline", "candidate")}
        for key, rows in found.items():
            if not rows:
                pattern = shown(getattr(asked, key))
                problems.add((*path, name, key), f"{pattern}: no row is named so; there are {', '.join(options.rows)}")
        shared = set(found["baseline"]) & set(found["candidate"])
        if shared and (asked.pooled or len(found["candidate"]) == 1):
            problems.add((*path, name, "candidate"), f"{', '.join(sorted(shared))}: compared with itself")
        if not asked.pooled and len(found["baseline"]) > 1:
            which = f"{shown(asked.baseline)}: {counted(len(found['baseline']), 'row')}"
            problems.add((*path, name, "baseline"), f"{which}; expected one, or pooled = true")
        if asked.text is not None:
            check_verdicts(asked.verdict, _nature(options), (*path, name, "verdict"), problems)
            if asked.who is None:
                problems.add((*path, name, "who"), "missing; expected its author")
        if not all(found.values()):
            continue
        yield Question(name, list(_pairs(asked, **found)), asked.text, asked.who, asked.verdict)


def _pairs(asked: QuestionOptions, baseline: list[str], candidate: list[str]) -> Iterator[Pair]:
    if asked.pooled:
        yield Pair(asked.baseline, asked.candidate, baseline, candidate)
        return
    for row in candidate:
        if row not in baseline:
            yield Pair(asked.baseline, row, baseline, [row])
