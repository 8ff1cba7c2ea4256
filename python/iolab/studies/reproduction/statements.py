"""Claims in words about two settings, read and checked, and what a run's verdict makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iolab.base.problem import Problems
from iolab.base.toml import TomlTable
from iolab.domain.comparison import Comparison, Pair, compare_pairs, nature_of
from iolab.domain.metric import ALL
from iolab.files.store import RunData
from iolab.studies.reproduction.options import KeyPath, StatementOptions, by_name, check_metric, check_verdicts
from iolab.studies.reproduction.run_values import RunValues, Value
from iolab.studies.reproduction.score import Claim


@dataclass(frozen=True)
class Statement:
    """A published claim without figures: which verdict a metric of two settings should have."""

    name: str
    text: str
    who: str
    workload: str
    metric: str
    per: str | None
    """The divisor of the metric in a limit; None: the limit is about the metric alone."""
    job: str
    """"all" for all together."""
    baseline: str | None
    """None: it is about a limit."""
    setting: str
    verdicts: list[str]
    """Those that it agrees with."""
    above: float | None
    below: float | None


@dataclass(frozen=True)
class JudgedStatement:
    """A claim beside the result of a run: a verdict, or the values that were to keep within a limit."""

    statement: Statement
    comparison: Comparison | None
    values: list[float]
    """The values of the rounds, in a statement about a limit."""
    absent: str | None
    """Why there is nothing to compare, if the run has no values or no two rounds of them."""

    @property
    def met(self) -> bool:
        """Without numbers nothing was undecided: nothing was asked."""
        if self.absent is not None:
            return False
        if self.comparison is not None:
            return self.comparison.judgement.verdict in self.statement.verdicts
        low, high = self.statement.above, self.statement.below
        return all((low is None or value > low) and (high is None or value < high) for value in self.values)

    @property
    def claim(self) -> Claim:
        """The claim with what was found, and whether they agree."""
        statement = self.statement
        if self.comparison is not None:
            words, expected = str(self.comparison.judgement.verdict), " or ".join(statement.verdicts)
        else:
            ends = {min(self.values), max(self.values)} if self.values else set[float]()
            words, expected = " to ".join(f"{value:.4g}" for value in sorted(ends)), limits(statement)
        return Claim(f"{statement.text} ({statement.who}): {self.absent or words}, said {expected}", self.met)


def limits(statement: Statement) -> str:
    """The limits of a statement in words."""
    both = (("above", statement.above), ("below", statement.below))
    return " and ".join(f"{word} {limit:g}" for word, limit in both if limit is not None)


def read_statements(tables: TomlTable, problems: Problems) -> Iterator[Statement]:
    """The statements of [claims.NAME] that are right."""
    for name, options in by_name(StatementOptions, tables, ("claims",), "a statement", problems).items():
        path: KeyPath = ("claims", name)
        check_metric(options.metric, (*path, "metric"), problems)
        has_limit = options.above is not None or options.below is not None
        if (options.baseline is None) != has_limit:
            problems.add(path, "expected a baseline with verdicts, or a limit: above, below or both")
        if options.per is not None:
            check_metric(options.per, (*path, "per"), problems)
            if not has_limit:
                problems.add((*path, "per"), "a verdict is on the metric alone; expected a limit instead of a baseline")
        if has_limit and options.verdict:
            problems.add((*path, "verdict"), "a limit has no verdict; expected a baseline instead")
        if not has_limit:
            check_verdicts(options.verdict, nature_of(options.metric), (*path, "verdict"), problems)
        if options.setting == options.baseline:
            problems.add((*path, "setting"), f"{options.setting}: expected another setting than the baseline")
        yield Statement(
            name=name,
            text=options.text,
            who=options.who,
            workload=options.workload,
            metric=options.metric,
            per=options.per,
            job=options.job or ALL,
            baseline=options.baseline,
            setting=options.setting,
            verdicts=options.verdict,
            above=options.above,
            below=options.below,
        )


def judged(
    statements: Sequence[Statement], run: RunData, measured: RunValues, same_within: float | None = None
) -> list[JudgedStatement]:
    """Each statement with the verdict on the run's rounds, with the share of false discoveries among all statements
    controlled. `same_within`: the margin of *same*; None: the run's."""
    if not statements:
        return []
    compared = [one for one in statements if one.baseline is not None]
    comparisons = compare_pairs(
        [_pair(one, one.baseline or "", measured) for one in compared],
        same_within=run.experiment.compare.same_within if same_within is None else same_within,
        max_rounds=run.rounds_until_decided,
        rounds_per_boot=run.experiment.rounds_per_boot,
    )
    found = {
        one.name: JudgedStatement(
            one, comparison, [], comparison.judgement.reason and _why_absent(one, comparison, measured)
        )
        for one, comparison in zip(compared, comparisons, strict=True)
    }
    return [found.get(one.name) or _within_limits(one, measured) for one in statements]


def _within_limits(statement: Statement, measured: RunValues) -> JudgedStatement:
    trial = (statement.workload, statement.setting)
    keys = [statement.metric, *filter(None, [statement.per])]
    found = [measured.by_round(trial, key, statement.job) for key in keys]
    rounds = sorted(set().union(*found))
    by_round = [_quotient([of_key.get(number, Value(None, None)) for of_key in found]) for number in rounds]
    values = [value for value in by_round if value is not None]
    missing = None
    if not values or len(values) < len(by_round):
        means = (measured.mean(trial, key, statement.job).reason for key in keys)
        of_rounds = (one.reason for of_key in found for one in of_key.values())
        missing = next(filter(None, (*means, *of_rounds)), "a round has no value")
    return JudgedStatement(statement, None, values, missing)


def _quotient(values: Sequence[Value]) -> float | None:
    """The quotient of a metric and its divisor, if it has one; None without a number."""
    number, divisor = values[0].value, values[1].value if len(values) > 1 else 1.0
    return None if number is None or not divisor else number / divisor


def _pair(statement: Statement, baseline: str, measured: RunValues) -> Pair:
    ours, theirs = (
        measured.by_round((statement.workload, setting), statement.metric, statement.job)
        for setting in (baseline, statement.setting)
    )
    rounds = sorted(ours.keys() | theirs.keys())
    x, y = ([side[number].value if number in side else None for number in rounds] for side in (ours, theirs))
    return Pair(statement.metric, statement.workload, baseline, statement.setting, x, y)


def _why_absent(statement: Statement, comparison: Comparison, measured: RunValues) -> str | None:
    """The run's own reason is more specific than that there are too few rounds."""
    for setting in filter(None, (statement.baseline, statement.setting)):
        found = measured.mean((statement.workload, setting), statement.metric, statement.job)
        if found.reason:
            return f"{setting}: {found.reason}"
    return comparison.judgement.reason
