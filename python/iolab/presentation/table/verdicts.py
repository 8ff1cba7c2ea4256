"""Comparisons as a list, one line each: what `iolab compare` prints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from iolab.base.plain_text import counted, one_line, visible
from iolab.base.quantity import ABSENT, Scale, scale_for
from iolab.domain.validity import NOT_JUDGED
from iolab.presentation.table.layout import Alternatives
from iolab.presentation.table.plain import (
    CHANGE_HEADING,
    CHANGE_HEADING_UNPAIRED,
    STYLES,
    empty_table,
    in_words,
    indented,
    stated,
)
from iolab.presentation.table.words import (
    beside_typical,
    change_with_interval,
    left_out_in_words,
    tally,
    unit_of,
    verdict_with_rounds,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from iolab.domain.comparison import Comparison
    from iolab.domain.conditions import Conditions

NAMED_MAX = 3
"""Comparisons that share a remark; more are counted."""


def verdicts(
    comparisons: Sequence[Comparison],
    problems: Sequence[str] = (),
    swept: Sequence[str] = (),
    about: Sequence[str] = (),
    left_out: Collection[str] = (),
) -> RenderableType:
    """What the sweeps (`swept`) and the comparisons come to, what else differs (`about`, a line each), the `problems`
    to know of, and a table per workload for people. Below each metric's name the baseline, then a line per candidate:
    its typical value, the change, how sure, the verdict. Jobs that failed come first, and what has no value because of
    them is left out.
    """
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    failed = [problem for problem in problems if problem.endswith(NOT_JUDGED)]
    parts: list[RenderableType] = [Text(f"! {one_line(problem)}", style="yellow") for problem in failed]
    if failed and comparisons:
        comparisons = [one for one in comparisons if one.judgement.has_both]
        if not comparisons:
            parts.append(Text("Nothing is left to judge."))
    if comparisons or not (swept or failed):
        parts.append(Text(f"{tally(comparisons).capitalize()}."))
    parts += [*stated(swept), *in_words(comparisons)]
    parts += (Text(visible(line)) for line in about)
    others = (problem for problem in problems if problem not in failed)
    parts += (Text(f"! {one_line(problem)}", style="yellow") for problem in others)
    cut = left_out_in_words(left_out, comparisons, "--json")
    parts += (Text(f"! {line}", style="yellow") for line in cut)
    shown = [one for one in comparisons if one.metric not in left_out]
    for place, found in groupby(shown, key=lambda comparison: comparison.place):
        of_workload = list(found)
        if place:
            parts.append(Padding(Text(place, style="bold cyan"), (1, 0, 0, 0), expand=False))
        parts.append(Alternatives(_table(of_workload), _table(of_workload, stacked=True)))
    parts += (Text(f"! {line}", style="yellow") for line in _notes(comparisons))
    return Group(*parts)


def condition_lines(conditions: Conditions) -> list[str]:
    """What differs between the arms, a line each, and what could not be compared."""
    lines = [f"differs: {one}" for one in conditions.differs]
    if conditions.conclusion and conditions.differs:
        lines.append(f"         {conditions.conclusion}")
    elif conditions.conclusion:
        lines.append(f"differs: {conditions.conclusion}")
    if conditions.unknown:
        lines.append(f"could not be compared, not on record: {', '.join(conditions.unknown)}")
    return lines


def _notes(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """What holds of many comparisons is stated once."""
    places: dict[str, list[str]] = {}
    for comparison in comparisons:
        for note in comparison.notes:
            places.setdefault(note, []).append(f"{comparison.metric}, {comparison.setting}")
    yield from beside_typical(comparisons)
    for note, found in places.items():
        many = len(found) > NAMED_MAX
        yield from [f"{counted(len(found), 'comparison')}: {note}"] if many else [f"{place}: {note}" for place in found]


def _table(comparisons: Sequence[Comparison], *, stacked: bool = False) -> Table:
    """`stacked`: two lines per candidate, for a narrow console."""
    from rich.text import Text

    table = empty_table()
    table.add_column("metric, setting", overflow="fold")
    paired = all(comparison.pairing == "round" for comparison in comparisons)
    heading = CHANGE_HEADING if paired else CHANGE_HEADING_UNPAIRED
    headings = (heading.replace(" [", "\n["), "p\nq") if stacked else (heading, "p", "q")
    for heading in ("value", "n", *headings):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for metric, found in groupby(comparisons, key=lambda comparison: comparison.metric):
        of_metric = list(found)
        judgements = [comparison.judgement for comparison in of_metric]
        values = (value for one in judgements for value in (one.baseline, one.candidate))
        scale = scale_for(unit_of(metric), values)
        table.add_row(Text(metric, style="bold"), Text(scale.suffix, style="dim"))
        shown = None
        for comparison in of_metric:
            against, value = baseline = (comparison.against, comparison.judgement.baseline)
            # Again only if another baseline, or other rounds of it, are compared with.
            if shown is None or (value is not None and baseline != shown):
                of_its_own = comparison.judgement.n_baseline
                n = "" if of_its_own is None else str(of_its_own)
                table.add_row(indented(against), scale.number(value), n, style="dim")
                shown = baseline
            table.add_row(indented(comparison.setting), *_cells(comparison, scale, stacked=stacked))
        table.add_section()
    return table


def _cells(comparison: Comparison, scale: Scale, *, stacked: bool) -> list[RenderableType]:
    from rich.text import Text

    judgement = comparison.judgement
    found = change_with_interval(judgement) or ABSENT
    probabilities = [_probability(judgement.p_value), _probability(judgement.q_value)]
    verdict = verdict_with_rounds(judgement)
    if stacked:
        found, verdict = found.replace(" [", "\n["), verdict.replace(" (", "\n(")
        probabilities = ["\n".join(probabilities)]
    verdict_text = Text(verdict, style=STYLES[judgement.verdict])
    return [scale.number(judgement.candidate), str(judgement.n), found, *probabilities, verdict_text]


def _probability(value: float | None) -> str:
    if value is None:
        return ABSENT
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"
