"""`show --as mmtests`: the comparison in the style of mmtests, a column per setting against the baseline.

The samples of a statistic are the rounds' values. A mean is harmonic (Hmean) where more is better and arithmetic
(Amean) where less is; BHmean-50 and BAmean-50 are those of the best half, and so on. A positive percentage is better
than the baseline. Stars stand around a mean's percentage if the verdict on it is a difference: the same verdict as in
every other table, from pairs of rounds; mmtests takes its own from a test of unpaired samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, harmonic_mean, stdev
from typing import TYPE_CHECKING, Literal

from iolab.base.quantity import Scale, scale_for
from iolab.domain.summary import Jobs, Row, Summary, summarise
from iolab.presentation.table.words import label

if TYPE_CHECKING:
    from iolab.files.store import RunData

BEST_PERCENT = (50, 95, 99)
VALUE_WIDTH, PERCENT_WIDTH = 12, 7
COLUMN_WIDTH = VALUE_WIDTH + PERCENT_WIDTH + 4

Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Statistic:
    """A statistic over repetitions, as a table of mmtests has it."""

    name: str
    of: Callable[[list[float]], float]
    better: Better
    has_verdict: bool = False


@dataclass(frozen=True)
class MetricSamples:
    """A metric of a workload, as the table names it."""

    row: Row
    name: str
    scale: Scale
    samples: dict[str, list[float]]
    """By setting."""

    @property
    def better(self) -> Better:
        """Which way is better; the higher, if the metric has no direction."""
        return "lower" if self.row.better == "lower" else "higher"

    def gain_percent(self, statistic: Statistic, setting: str, baseline: str) -> float | None:
        """How much better than the baseline; None if either has no value."""
        if not self.samples.get(setting) or not self.samples.get(baseline):
            return None
        ours, theirs = statistic.of(self.samples[setting]), statistic.of(self.samples[baseline])
        if not theirs:
            return 0.0 if ours == theirs else None
        change = 100 * (ours - theirs) / abs(theirs)
        return change if statistic.better == "higher" else -change


def render(run: RunData, metrics: Sequence[str] = (), jobs: Jobs | None = None) -> str:
    """A block per workload. InputError names a metric that the run lacks."""
    summary = summarise(run, metrics=metrics, jobs=jobs)
    blocks = []
    for place in dict.fromkeys(row.place for row in summary.rows):
        measured = [_measured(row) for row in summary.rows if row.place == place]
        present = [one for one in measured if any(one.samples.values())]
        if present:
            blocks.append(f"{'_'.join(place.split())}\n\n{_block(summary, present)}\n")
    return "\n".join(blocks)


def _measured(row: Row) -> MetricSamples:
    samples = {setting: [n for n in cell.rounds if n is not None] for setting, cell in row.cells.items()}
    scale = scale_for(row.unit, (cell.typical for cell in row.cells.values()))
    name = "-".join([*label(row.metric).replace(":", "").split(), *([scale.suffix] if scale.suffix else [])])
    return MetricSamples(row, name, scale, samples)


def _block(summary: Summary, measured: list[MetricSamples]) -> str:
    """Statistic by statistic, within each metric by metric: higher-is-better ones have others than the rest."""
    lines: list[tuple[str, str, list[str]]] = []
    ways: tuple[Better, ...] = ("higher", "lower")
    for better in ways:
        alike = [one for one in measured if one.better == better]
        for statistic in _statistics(better) if alike else ():
            lines += [
                (statistic.name, one.name, [_cell(one, statistic, setting, summary) for setting in summary.settings])
                for one in alike
            ]
    name_width = max(len(name) for name, _, _ in lines)
    title_width = max(len(title) for _, title, _ in lines)
    names = ["_".join(setting.split()) for setting in summary.settings]
    widths = [max(COLUMN_WIDTH, len(name) + 1) for name in names]

    def joined(cells: list[str]) -> str:
        return "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))

    header = " " * (name_width + 1 + title_width) + joined(names)
    return "\n".join(
        [header, *(f"{name:<{name_width}} {title:<{title_width}}{joined(cells)}" for name, title, cells in lines)]
    )


def _cell(one: MetricSamples, statistic: Statistic, setting: str, summary: Summary) -> str:
    samples = one.samples.get(setting)
    value = statistic.of(samples) if samples else None
    divisor = 1.0 if statistic.name == "CoeffVar" else one.scale.divisor
    number = f"{'nan' if value is None else f'{value / divisor:.2f}':>{VALUE_WIDTH}}"
    gain = one.gain_percent(statistic, setting, summary.baseline)
    percent = f"{'nan' if gain is None else f'{gain + 0.0:.2f}':>{PERCENT_WIDTH}}%"
    comparison = one.row.comparisons.get(setting)
    sure = statistic.has_verdict and comparison is not None and comparison.judgement.differs
    return f"{number} *{percent}*" if sure else f"{number} ({percent})"


def _statistics(better: Better) -> list[Statistic]:
    """In mmtests' order. Less spread is better, whatever is measured."""
    mean, letter = (_harmonic, "H") if better == "higher" else (fmean, "A")

    def of_best(percent: int) -> Callable[[list[float]], float]:
        return lambda samples: mean(_best(samples, percent, better))

    return [
        Statistic("Min", min, better),
        Statistic(f"{letter}mean", mean, better, has_verdict=True),
        Statistic("Stddev", _stddev, "lower"),
        Statistic("CoeffVar", lambda samples: _ratio_percent(_stddev(samples), fmean(samples)), "lower"),
        Statistic("Max", max, better),
        *(Statistic(f"B{letter}mean-{percent}", of_best(percent), better) for percent in BEST_PERCENT),
    ]


def _best(samples: list[float], percent: int, better: Better) -> list[float]:
    """At least one."""
    kept = max(1, math.floor(len(samples) * percent / 100))
    return sorted(samples, reverse=better == "higher")[:kept]


def _harmonic(samples: list[float]) -> float:
    """The arithmetic mean of samples below zero, which no rate has."""
    return harmonic_mean(samples) if min(samples) >= 0 else fmean(samples)


def _stddev(samples: list[float]) -> float:
    return stdev(samples) if len(samples) > 1 else 0.0


def _ratio_percent(part: float, whole: float) -> float:
    return 100 * part / abs(whole) if whole else 0.0
