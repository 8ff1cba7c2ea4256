"""What a comparison comes to, before any table: a sentence per setting, and what is undecided in one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iolab.base.quantity import change
from iolab.presentation.table.words import VERDICTS, label, rounds, tally

if TYPE_CHECKING:
    from iolab.domain.compare import Comparison
    from iolab.domain.definition import Verdict

NAMED_MAX = 4
"""Metrics that a sentence names for each verdict, those that changed most; more are counted."""
UNDECIDED_NAMED_MAX = 4
SETTINGS_MAX = 12
"""Settings with a sentence of their own: more than these nobody reads, and the tables have all."""


@dataclass(frozen=True)
class Conclusion:
    """One sentence of the conclusions, and the verdict that it is about."""

    verdict: Verdict
    """The one that it begins with: what needs attention first."""
    setting: str | None
    """None where it is about several."""
    text: str


def conclusions(comparisons: Sequence[Comparison]) -> list[Conclusion]:
    """A sentence per setting that has a verdict, those that differ first where not all are told; then what is
    undecided."""
    several = len({one.workload for one in comparisons}) > 1
    of_settings: dict[tuple[str, str], list[Comparison]] = {}
    for one in comparisons:
        if one.judgement.verdict != "undecided":
            of_settings.setdefault((one.setting, one.against), []).append(one)
    told = list(of_settings.values())
    if len(told) > SETTINGS_MAX:
        told.sort(key=lambda found: min(VERDICTS.index(one.judgement.verdict) for one in found))
    sentences = [_of_setting(found, several=several) for found in told[:SETTINGS_MAX]]
    if rest := [one for found in told[SETTINGS_MAX:] for one in found]:
        more = len(told) - SETTINGS_MAX
        text = f"And {more} more {'setting' if more == 1 else 'settings'}: {tally(rest)}; see the tables."
        sentences.append(Conclusion(min((one.judgement.verdict for one in rest), key=VERDICTS.index), None, text))
    undecided = [one for one in comparisons if one.judgement.verdict == "undecided"]
    if undecided:
        text = _of_undecided(undecided, len(comparisons), several=several)
        sentences.append(Conclusion("undecided", None, text))
    return sentences


def _of_setting(found: Sequence[Comparison], *, several: bool) -> Conclusion:
    """`b is slower than a in rate (-96.7 %) and latency p99 (24.1x); the same within 5 % in CPU per I/O.`"""
    setting, against = found[0].setting, found[0].against
    by_verdict = {verdict: [one for one in found if one.judgement.verdict == verdict] for verdict in VERDICTS}
    present = [(verdict, ones) for verdict, ones in by_verdict.items() if ones]
    clauses = []
    for number, (verdict, ones) in enumerate(present):
        largest = sorted(ones, key=_size, reverse=True)[:NAMED_MAX]
        named = [_named(one, several=several, changed=verdict != "same") for one in ones if one in largest]
        if len(ones) > NAMED_MAX:
            named.append(f"{len(ones) - NAMED_MAX} more")
        margin = f"within {ones[0].judgement.same_within * 100:.3g} %"
        if verdict == "same":
            how = f"is the same as {against} {margin}" if not number else f"the same {margin}"
        else:
            how = f"is {verdict} than {against}" if not number else verdict
        clauses.append(f"{how} in {_listed(named)}")
    return Conclusion(present[0][0], setting, f"{setting} {'; '.join(clauses)}.")


def _of_undecided(found: Sequence[Comparison], of: int, *, several: bool) -> str:
    """`Undecided, 3 of 9: mq-deadline in rate (21 more rounds) and latency p99 (16); kyber in rate.`"""
    count = f"Undecided, {len(found)} of {of}" if len(found) < of else f"Undecided, all {of}" if of > 1 else "Undecided"
    if all(one.judgement.n == 1 for one in found):
        return f"{count}: one round has no interval."
    measured = [one for one in found if one.judgement.n]
    if not measured:
        return f"{count}: no round has values of both settings."
    shown = measured[:UNDECIDED_NAMED_MAX]
    by_setting: dict[str, list[str]] = {}
    unit_said = False
    for one in shown:
        name, more = _named(one, several=several, changed=False), one.judgement.rounds_to_decide
        if one.judgement.ratio is None:
            name += " (no ratio)"
        elif more:
            name += f" ({more})" if unit_said else f" (about {rounds(more, 'more ')})"
            unit_said = True
        by_setting.setdefault(one.setting, []).append(name)
    places = "; ".join(f"{setting} in {_listed(names)}" for setting, names in by_setting.items())
    rest = len(found) - len(shown)
    return f"{count}: {places}{f'; and {rest} more' if rest else ''}."


def _named(one: Comparison, *, several: bool, changed: bool) -> str:
    name = f"{label(one.metric)} on {one.workload}" if several and one.workload else label(one.metric)
    ratio = one.judgement.ratio
    return f"{name} ({change(ratio)})" if changed and ratio is not None else name


def _size(one: Comparison) -> float:
    ratio = one.judgement.ratio
    return abs(math.log(ratio)) if ratio else 0.0


def _listed(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
