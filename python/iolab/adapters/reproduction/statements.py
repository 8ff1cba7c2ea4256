"""What was said in words of two settings, read and checked, and what a run's verdict makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iolab.adapters.reproduction.options import KeyPath, StatementOptions, by_name, check_metric, check_verdicts
from iolab.adapters.reproduction.score import Claim
from iolab.domain.compare import Comparison, Pair, compare_pairs, nature_of
from iolab.domain.metric import ALL

if TYPE_CHECKING:
    from iolab.adapters.reproduction.measured import Measured
    from iolab.adapters.store import RunData
    from iolab.base.problem import Problems


@dataclass(frozen=True)
class Statement:
    """A published claim without figures: which verdict a metric of two settings should have."""

    name: str
    text: str
    who: str
    workload: str
    metric: str
    job: str
    """"all" for all together."""
    baseline: str
    setting: str
    verdicts: list[str]
    """Those that it agrees with."""


@dataclass(frozen=True)
class JudgedStatement:
    """A claim beside the verdict that a run gives."""

    statement: Statement
    comparison: Comparison
    absent: str | None
    """Why there is nothing to compare, where the run has no values or no two rounds of them."""

    @property
    def met(self) -> bool:
        """Without numbers nothing was undecided: nothing was asked."""
        return self.absent is None and self.comparison.judgement.verdict in self.statement.verdicts

    @property
    def claim(self) -> Claim:
        """The claim with the verdict found, and whether they agree."""
        found = self.absent or self.comparison.judgement.verdict
        expected = " or ".join(self.statement.verdicts)
        return Claim(f"{self.statement.text} ({self.statement.who}): {found}, said {expected}", self.met)


def read_statements(tables: dict[str, Any], problems: Problems) -> Iterator[Statement]:
    """The statements of [claims.NAME] that are right."""
    for name, options in by_name(StatementOptions, tables, ("claims",), "a statement", problems).items():
        path: KeyPath = ("claims", name)
        check_metric(options.metric, (*path, "metric"), problems)
        check_verdicts(options.verdict, nature_of(options.metric), (*path, "verdict"), problems)
        if options.setting == options.baseline:
            problems.add((*path, "setting"), f"{options.setting}: expected another setting than the baseline")
        yield Statement(
            name=name,
            text=options.text,
            who=options.who,
            workload=options.workload,
            metric=options.metric,
            job=options.job or ALL,
            baseline=options.baseline,
            setting=options.setting,
            verdicts=options.verdict,
        )


def judged(statements: Sequence[Statement], run: RunData, measured: Measured) -> list[JudgedStatement]:
    """Each statement with the verdict on the run's rounds, by the run's margin of *same* and with the share of false
    discoveries among all statements controlled."""
    if not statements:
        return []
    started = run.state.started
    comparisons = compare_pairs(
        [_pair(one, measured) for one in statements],
        same_within=run.experiment.compare.same_within,
        max_rounds=started["rounds"] if started.get("until_decided") else None,
    )
    return [
        JudgedStatement(one, comparison, comparison.judgement.reason and _why_absent(one, comparison, measured))
        for one, comparison in zip(statements, comparisons, strict=True)
    ]


def _pair(statement: Statement, measured: Measured) -> Pair:
    ours, theirs = (
        measured.by_round((statement.workload, setting), statement.metric, statement.job)
        for setting in (statement.baseline, statement.setting)
    )
    rounds = sorted(ours.keys() | theirs.keys())
    x, y = ([side[number].value if number in side else None for number in rounds] for side in (ours, theirs))
    return Pair(statement.metric, statement.workload, statement.baseline, statement.setting, x, y)


def _why_absent(statement: Statement, comparison: Comparison, measured: Measured) -> str | None:
    """The run's own reason says more than that there are too few rounds."""
    for setting in (statement.baseline, statement.setting):
        found = measured.mean((statement.workload, setting), statement.metric, statement.job)
        if found.reason:
            return f"{setting}: {found.reason}"
    return comparison.judgement.reason
