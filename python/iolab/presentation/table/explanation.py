"""Explanations for people: a sentence per finding, a table of them, and what did not move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iolab.base.plain_text import counted
from iolab.base.quantity import ABSENT
from iolab.domain.explain.correlation import FEWEST_ROUNDS
from iolab.domain.explain.evidence import SUSPECTS
from iolab.domain.explain.ranking import suspicion
from iolab.domain.probe import PROBES
from iolab.presentation.table.layout import Alternatives
from iolab.presentation.table.plain import SENTENCE_WIDTH_MAX, STYLES, empty_table, indented
from iolab.presentation.table.words import both_levels, change_with_interval, claim, evidence, label, sentence, unit_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from iolab.domain.explain import Explanation, Finding
    from iolab.domain.verdict.judgement import Judgement

SENTENCES_MAX = 6
ROWS_MAX = 16
NAMED_MAX = 8
FOLDED_MAX = 6
"""What is beyond is counted, and with --json listed."""
TELLING_PROBES = ("block", "switches", "cpu", "memory")
"""Those whose absence is reported: what they read moves with most results."""


def explanations(explained: Sequence[Explanation]) -> RenderableType:
    """All of them, those with findings first in each workload's order; then a line each for what is not explained."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = []
    for one in explained:
        if not one.why_not:
            parts.append(Padding(Group(*_explanation(one)), (0, 0, 1, 0), expand=False))
    parts += (Text(_nothing(one), style="dim") for one in explained if one.why_not)
    return Group(*parts) if parts else Text("Nothing was compared: there is nothing to explain.")


def folded(explained: Sequence[Explanation]) -> Iterator[str]:
    """A line for what --all shows in full: the metrics that moved, of each workload once."""
    for workload in dict.fromkeys(one.result.workload for one in explained if one.findings):
        moved = dict.fromkeys(
            label(finding.metric)
            for one in explained
            if one.result.workload == workload
            for finding in one.findings
            if finding.kind in ("both", "setting")
        )
        place = f" on {workload}" if workload else ""
        yield f"Moved{place}: {_some(list(moved), FOLDED_MAX)}; --all shows each with its evidence."


def more_to_see(explained: Sequence[Explanation], probes_off: Sequence[str], first_only: str | None) -> Iterator[str]:
    """What was not examined, and how to examine it."""
    if first_only:
        yield f"This explains {first_only}, the first metric compared; --metric KEY explains another."
    if probes_off and any(one.why_not is None for one in explained):
        for name in TELLING_PROBES:
            if name in probes_off:
                yield f"The probe {name} was off; `iolab run --probe {name}` adds: {PROBES[name].help}"


def finding_sentence(finding: Finding, explained: Explanation) -> str:
    """What moved with what, how far, and how sure each is. Never why."""
    result, name = label(explained.result.metric), label(finding.metric)
    with_result = finding.with_result
    correlation = with_result.rank_correlation
    way = "rises as" if (correlation or 0) > 0 else "falls as"
    strength = f"rank correlation {_signed(correlation)}, q = {_probability(with_result.q_value)}"
    moved = f"{name} moved with the setting: it is {_how_far(finding.with_setting.judgement, unit_of(finding.metric))}"
    match finding.kind:
        case "both":
            return (
                f"{moved}; and it moves with the result within settings: from round to round it {way} {result} rises "
                f"({strength})."
            )
        case "contrary":
            return (
                f"{moved}; within settings it moves with the result too, but the other way: "
                f"it {way} {result} rises ({strength})."
            )
        case "result":
            shift = change_with_interval(finding.with_setting.judgement) or "no ratio"
            return (
                f"{name} moves with the result within settings: from round to round it {way} {result} rises "
                f"({strength}); the setting does not visibly move it ({shift})."
            )
        case _ if correlation is None:
            return f"{moved}; whether it moves with the result within settings is unknown: {with_result.reason}."
        case _:
            return f"{moved}; within settings it does not visibly move with the result ({strength})."


def _explanation(one: Explanation) -> Iterator[RenderableType]:
    from rich.constrain import Constrain
    from rich.padding import Padding
    from rich.text import Text

    result = one.result
    text = sentence(result, unit_of(result.metric), same_within=result.judgement.same_within)
    yield Constrain(Text(text, style="bold"), SENTENCE_WIDTH_MAX)
    lines = [f"● {finding_sentence(finding, one)}" for finding in one.findings[:SENTENCES_MAX]]
    if not lines:
        lines = ["No other measured metric visibly moved with it."]
    yield Padding(Constrain(Text("\n".join(lines)), SENTENCE_WIDTH_MAX), (1, 0, 1, 0), expand=False)
    if one.findings:
        yield Alternatives(_table(one), _table(one, stacked=True))
    below = list(_below(one))
    yield Padding(Constrain(Text("\n".join(below)), SENTENCE_WIDTH_MAX), (1, 0, 0, 0), expand=False)


def _table(one: Explanation, *, stacked: bool = False) -> Table:
    """A row per finding: the two kinds of evidence side by side. `stacked`: for a narrow console."""
    from rich.text import Text

    table = empty_table()
    table.add_column("moved with", no_wrap=True)
    table.add_column("metric", overflow="fold")
    table.add_column("change\n[95 % interval]" if stacked else "change [95 % interval]", justify="right", no_wrap=True)
    table.add_column("q", justify="right", no_wrap=True)
    table.add_column("rank corr.\nwith result", justify="right")
    table.add_column("q", justify="right", no_wrap=True)
    for finding in one.findings[:ROWS_MAX]:
        judgement, with_result = finding.with_setting.judgement, finding.with_result
        change = change_with_interval(judgement) or both_levels(judgement, unit_of(finding.metric))
        name = Text(label(finding.metric))
        table.add_row(
            Text(_KINDS[finding.kind], style=STYLES["better"] if finding.kind == "both" else ""),
            name,
            change.replace(" [", "\n[") if stacked else change,
            _probability(judgement.q_value),
            _signed(with_result.rank_correlation),
            _probability(with_result.q_value),
        )
        if finding.likewise:
            table.add_row("", indented(f"likewise {_some([label(key) for key in finding.likewise], 1)}"), style="dim")
    return table


_KINDS = {"both": "both", "setting": "setting", "result": "result", "contrary": "both, contrary", "neither": ""}


def _below(one: Explanation) -> Iterator[str]:
    if (more := len(one.findings) - ROWS_MAX) > 0:
        yield f"And {more} more that moved: --json lists all."
    n = one.result.judgement.n
    if n < FEWEST_ROUNDS:
        yield (
            f"{counted(n, 'round is', 'rounds are')} too few to show what moves with the result within settings: "
            f"it takes at least {FEWEST_ROUNDS}; to show a single one of {len(one.looked_at)} metrics, "
            f"{one.rounds_needed}."
        )
    elif n < one.rounds_needed:
        yield (
            f"{counted(n, 'round is', 'rounds are')} few to show what moves with the result within settings: "
            f"a single one of {len(one.looked_at)} metrics takes {one.rounds_needed}."
        )
    if same := one.did_not_move:
        suspects = [finding for finding in same if suspicion(finding.metric) < len(SUSPECTS)]
        named = [
            f"{label(finding.metric)} ({change_with_interval(finding.with_setting.judgement)})" for finding in suspects
        ]
        others = len(same) - len(suspects)
        also = counted(others, "other metric") if others else ""
        margin = f"{one.result.judgement.same_within * 100:.3g} %"
        yield f"Did not move, the same within {margin}: {'; and '.join(filter(None, (_some(named), also)))}."
    undecided = [
        finding for finding in one.looked_at if finding.kind == "neither" and finding.with_setting.movement != "same"
    ]
    suspects = [finding for finding in undecided if suspicion(finding.metric) < len(SUSPECTS)]
    asked = sorted(suspects, key=lambda finding: suspicion(finding.metric))
    if asked:
        yield f"Undecided: {_some([label(finding.metric) for finding in asked])}."
    if one.same_measure:
        yield f"Left out, the same measure as the result: {_some([label(key) for key in one.same_measure])}."
    looked_at, moved = len(one.looked_at), len(one.findings)
    yield (
        f"Examined: {counted(looked_at, 'metric')}: {moved} moved, {len(same)} did not, {len(undecided)} undecided; "
        f"{len(one.constant)} never changed, {len(one.absent)} without numbers."
    )


def _nothing(one: Explanation) -> str:
    result = one.result
    place = f"{result.workload}: " if result.workload else ""
    return (
        f"{place}{label(result.metric)}, {result.setting} against {result.against}: nothing to explain, {one.why_not}."
    )


def _how_far(judgement: Judgement, unit: str) -> str:
    if judgement.ratio is None:
        return f"{both_levels(judgement, unit)} over {counted(judgement.n, 'round')}"
    return f"{claim(judgement)} {evidence(judgement, unit)}"


def _probability(p: float | None) -> str:
    if p is None:
        return ABSENT
    return "<0.0001" if p < 0.0001 else f"{p:.2g}" if p < 0.01 else f"{p:.2f}"


def _signed(correlation: float | None) -> str:
    return ABSENT if correlation is None else f"{correlation + 0.0:+.2f}"


def _some(names: Sequence[str], named_max: int = NAMED_MAX) -> str:
    more = len(names) - named_max
    return ", ".join(names[:named_max]) + (f" and {more} more" if more > 0 else "")
