"""What a comparison comes to, before any table: a sentence per setting, and what is undecided in one line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from iolab.base.plain_text import counted, listed
from iolab.base.quantity import change
from iolab.domain.comparison import Comparison
from iolab.domain.definition import GAINS, LOSSES, NO_DIFFERENCE, VERDICTS, Verdict
from iolab.domain.lead import tier
from iolab.domain.verdict.doubt import NOISE, noise
from iolab.presentation.table.words import (
    are_of_one_round,
    both_levels,
    change_of,
    label,
    of_one_round,
    span_of_rounds,
    tally,
    unit_of,
)

NAMED_MAX = 4
"""Metrics that a sentence names for each verdict, those that changed most; more are counted."""
SETTINGS_IN_FULL = 2
"""Up to so many settings, the sentence about one round has several metrics of each."""
UNDECIDED_NAMED_MAX = 4
"""Settings that the line of the undecided names; more are counted."""
SO_FAR = "so far"
"""The mark of a verdict that further rounds may overturn."""
SETTINGS_MAX = 12
"""Most settings with a sentence of their own: more would not be read, and the tables have all."""


@dataclass(frozen=True)
class Conclusion:
    """One sentence of the conclusions, and the verdict that it is about."""

    verdict: Verdict
    """The one that it begins with: what needs attention first."""
    setting: str | None
    """None if it is about several."""
    text: str


def conclusions(comparisons: Sequence[Comparison]) -> list[Conclusion]:
    """A sentence per setting that has a verdict, those that differ first if not all are shown; then what is undecided.
    Each begins with what differs, or with what the workload waits for if all of that is undecided."""
    every = comparisons
    comparisons = [one for one in comparisons if not one.is_rare]
    several = len({one.place for one in comparisons}) > 1
    of_settings: dict[tuple[str, str], list[Comparison]] = {}
    for one in comparisons:
        of_settings.setdefault((one.setting, one.against), []).append(one)
    by_setting = [
        [one for one in found if one.leads or one.judgement.verdict != "undecided"]
        for found in of_settings.values()
        if any(one.judgement.verdict != "undecided" for one in found)
    ]
    if len(by_setting) > SETTINGS_MAX:
        by_setting.sort(key=lambda found: min(VERDICTS.index(one.judgement.verdict) for one in found))
    sentences = [_of_setting(found, several=several) for found in by_setting[:SETTINGS_MAX]]
    if rest := [one for found in by_setting[SETTINGS_MAX:] for one in found]:
        more = len(by_setting) - SETTINGS_MAX
        text = f"And {counted(more, 'more setting')}: {tally(rest)}; see the tables."
        sentences.append(Conclusion(min((one.judgement.verdict for one in rest), key=VERDICTS.index), None, text))
    undecided = [one for one in comparisons if one.judgement.verdict == "undecided"]
    by_itself = [one for one in undecided if one.judgement.is_decided_by_itself]
    if by_itself:
        sentences.append(Conclusion("undecided", None, _by_itself(by_itself, several=several)))
        undecided = [one for one in undecided if one not in by_itself]
    if undecided:
        number = sum(one.judgement.verdict == "undecided" for one in every) - len(by_itself)
        text = _of_undecided(undecided, number, len(every), several=several)
        sentences.append(Conclusion("undecided", None, text))
        if reasons := _reasons(undecided):
            sentences.append(Conclusion("undecided", None, reasons))
    return sentences


def _reasons(found: Sequence[Comparison]) -> str:
    """`Why undecided: drift (b, rate and 2 more).`: each reason with the first of those that it holds for."""
    by_reason: dict[str, list[Comparison]] = {}
    for one in found:
        if one.judgement.why:
            by_reason.setdefault(one.judgement.why.partition(": ")[0], []).append(one)
    sentences = []
    for reason, ones in by_reason.items():
        (first, *others) = ones
        spreads = [one.judgement.spread for one in ones if one.judgement.spread is not None]
        text = first.judgement.why if not others else noise(*spreads) if reason == NOISE and spreads else reason
        more = f" and {len(others)} more" if others else ""
        sentences.append(f"{text} ({first.setting}, {label(first.metric)}{more})")
    return f"Why undecided: {'; '.join(sentences)}." if sentences else ""


def _of_setting(found: Sequence[Comparison], *, several: bool) -> Conclusion:
    """`b is slower than a in rate (-96.7 %) and latency p99 (24.1x); the same within 5 % in CPU per I/O.` If jobs
    fare differently, a clause per job."""
    setting, against = found[0].setting, found[0].against
    if _fare_differently(found):
        return _of_jobs(found)
    by_verdict = {verdict: [one for one in found if one.judgement.verdict == verdict] for verdict in VERDICTS}
    present = [(verdict, ones) for verdict, ones in by_verdict.items() if ones]
    present.sort(key=lambda one: _turn(one[0], one[1], found))
    clauses: list[str] = []
    for number, (verdict, ones) in enumerate(present):
        named = _metrics(ones, several=several, changed=verdict != "same")
        margin = f"within {ones[0].judgement.same_within * 100:.3g} %"
        match verdict:
            case "same":
                how = f"is the same as {against} {margin}" if not number else f"the same {margin}"
            case "undecided":
                how = f"is undecided against {against}" if not number else verdict
            case _:
                how = f"is {verdict} than {against}" if not number else verdict
        clauses.append(f"{how} in {listed(named)}")
    return Conclusion(present[0][0], setting, f"{setting} {'; '.join(clauses)}.")


def _turn(verdict: Verdict, ones: Sequence[Comparison], found: Sequence[Comparison]) -> tuple[int, bool]:
    """When the clause of a verdict comes: what differs first, what is the same last."""
    all_undecided = all(one.judgement.verdict == "undecided" for one in found if one.leads)
    turn = {"same": 2, "undecided": -1 if all_undecided else 1}.get(verdict, 0)
    return turn, not any(one.leads for one in ones)


def _fare_differently(found: Sequence[Comparison]) -> bool:
    """Whether some job gains or loses and another does not, of so few that each is named."""
    ways: dict[str, set[Verdict]] = {}
    for one in found:
        if one.job and (one.leads or one.judgement.differs):
            verdict = one.judgement.verdict
            way: Verdict = "faster" if verdict in GAINS else "slower" if verdict in LOSSES else "undecided"
            ways.setdefault(one.place, set()).add(way)
    return 1 < len(ways) <= NAMED_MAX and len(set().union(*ways.values())) > 1


def _of_jobs(found: Sequence[Comparison]) -> Conclusion:
    """`b against a: mix, job writer: slower in rate (-86.5 %); mix, job reader: undecided in latency p99 (2 more)`:
    those first that lose, and last all jobs of a workload together."""
    places: dict[str, list[Comparison]] = {}
    for one in found:
        if one.leads or one.judgement.differs:
            places.setdefault(one.place, []).append(one)
    clauses = []
    for place, ones in sorted(places.items(), key=lambda item: _order(item[1])):
        by_verdict = [(verdict, [one for one in ones if one.judgement.verdict == verdict]) for verdict in VERDICTS]
        named = [
            f"{'the same' if verdict == 'same' else verdict} in "
            f"{listed(_metrics(of, several=False, changed=verdict not in NO_DIFFERENCE))}"
            for verdict, of in by_verdict
            if of
        ]
        clauses.append(f"{place}{'' if ones[0].job else ' as a whole'}: {', '.join(named)}")
    first = min((one.judgement.verdict for ones in places.values() for one in ones), key=VERDICTS.index)
    return Conclusion(first, found[0].setting, f"{found[0].setting} against {found[0].against}: {'; '.join(clauses)}.")


def _order(of_place: Sequence[Comparison]) -> tuple[bool, int]:
    return of_place[0].job is None, min(VERDICTS.index(one.judgement.verdict) for one in of_place)


def _by_itself(found: Sequence[Comparison], *, several: bool) -> str:
    """`By itself decided, among 9 not yet: new in IOPS (+40.5 %, 1 more).`"""
    why = found[0].judgement.why or ""
    by_setting: dict[str, list[Comparison]] = {}
    for one in found:
        by_setting.setdefault(one.setting, []).append(one)
    places = [
        f"{setting} in {listed(_metrics(ones, several=several, changed=True))}"
        for setting, ones in list(by_setting.items())[:UNDECIDED_NAMED_MAX]
    ]
    more = len(by_setting) - len(places)
    places += [f"and {counted(more, 'more setting')}"] if more else []
    return f"{why[:1].upper()}{why[1:]}: {'; '.join(places)}."


def _of_undecided(found: Sequence[Comparison], number: int, of: int, *, several: bool) -> str:
    """`Undecided, 3 of 9: mq-deadline in rate (21 more) and latency p99; kyber in rate.`: first what the fewest further
    rounds decide. `number`: with those that are named nowhere, since they hardly ever happen."""
    count = f"Undecided, {number} of {of}" if number < of else f"Undecided, all {of}" if of > 1 else "Undecided"
    without = [one for one in found if not one.judgement.has_both]
    lacking = f"without values of both: {listed(_metrics(without, several=several, changed=False))}" if without else ""
    if are_of_one_round(found):
        said = _in_one_round(found, several=several)
        apart = f" {lacking[0].upper()}{lacking[1:]}." if lacking else ""
        if number == of:
            return (said or "One round gives no verdict.") + apart
        return f"{count}, of one round, which has no interval{f': {said}' if said else '.'}{apart}"
    by_setting: dict[str, list[Comparison]] = {}
    for one in found:
        if one.judgement.has_both:
            by_setting.setdefault(one.setting, []).append(one)
    if not by_setting:
        return f"{count}: no round has values of both settings."
    shown = sorted(by_setting.items(), key=lambda item: min(map(_further, item[1])))[:UNDECIDED_NAMED_MAX]
    places = [f"{setting} in {listed(_metrics(ones, several=several, changed=False))}" for setting, ones in shown]
    more = len(by_setting) - len(shown)
    rest = f"; and {counted(more, 'more setting')}" if more else ""
    return f"{count}: {'; '.join(places)}{rest}{f'; {lacking}' if lacking else ''}."


def _further(one: Comparison) -> float:
    return math.inf if one.judgement.rounds_to_decide is None else one.judgement.rounds_to_decide


def _in_one_round(found: Sequence[Comparison], *, several: bool) -> str:
    """`In one round, b differs from a in rate (-71.8 %) and IOPS (-71.8 %).`: what it shows, undecided as it is; empty
    if it has no figures of both."""
    of_settings: dict[tuple[str, str], list[tuple[float, Comparison]]] = {}
    for one in found:
        ratio = of_one_round(one.judgement)
        if ratio and "stddev" not in one.metric and change(ratio) != change(1.0):
            of_settings.setdefault((one.setting, one.against), []).append((ratio, one))
    clauses: list[str] = []
    most = NAMED_MAX if len(of_settings) <= SETTINGS_IN_FULL else 1
    for (setting, against), ones in list(of_settings.items())[:UNDECIDED_NAMED_MAX]:
        first = sorted(ones, key=lambda one: _turn_in_one_round(*one))[:most]
        named = [
            f"{label(one.metric)}{f' on {one.place}' if several and one.place else ''} ({change(ratio)})"
            for ratio, one in first
        ]
        more = [f"{len(ones) - NAMED_MAX} more"] if len(ones) > NAMED_MAX == most else []
        from_which = f" from {against}" if not clauses else ""
        clauses.append(f"{setting} differs{from_which} in {listed([*named, *more])}")
    rest = len(of_settings) - len(clauses)
    clauses += [f"and {counted(rest, 'more setting')}"] if rest else []
    alike = any(of_one_round(one.judgement) for one in found)
    return f"In one round, {'; '.join(clauses)}." if clauses else "In one round, no figure differs." if alike else ""


def _turn_in_one_round(ratio: float, one: Comparison) -> tuple[bool, int, bool, float]:
    """What is beyond the margin of *same* first, of that what is measured best, and of that the largest change."""
    size = abs(math.log(ratio))
    return size <= math.log1p(one.judgement.same_within), tier(one.metric), not one.leads, -size


def _metrics(found: Sequence[Comparison], *, several: bool, changed: bool) -> list[str]:
    """Each metric once, in the order of the experiment: `rate (-96.7 %)`, `rate on reads (-96.7 %)`, or of several
    workloads `rate on 5 workloads (-96.7 % to -91.2 %)`. Undecided ones have the further rounds that would decide."""
    by_metric: dict[str, list[Comparison]] = {}
    for one in found:
        by_metric.setdefault(one.metric, []).append(one)
    order = sorted(by_metric, key=lambda metric: not any(one.leads for one in by_metric[metric]))
    largest = sorted(order, key=lambda metric: max(map(_rank, by_metric[metric])), reverse=True)[:NAMED_MAX]
    named = [_metric(by_metric[metric], several=several, changed=changed) for metric in order if metric in largest]
    if not changed:
        named = _merged(named)
    return [*named, f"{len(by_metric) - NAMED_MAX} more"] if len(by_metric) > NAMED_MAX else named


def _merged(named: Sequence[str]) -> list[str]:
    """`rate on 3 jobs` and `IOPS on 3 jobs` as `rate and IOPS on 3 jobs`."""
    parts = ((name.partition(" on "), name) for name in named)
    merged: list[str] = []
    for where, group in groupby(parts, key=lambda part: part[0][2]):
        ones = list(group)
        merged += [f"{listed([name for (name, *_), _ in ones])} on {where}"] if where else [name for _, name in ones]
    return merged


def _metric(ones: Sequence[Comparison], *, several: bool, changed: bool) -> str:
    name = label(ones[0].metric)
    if several and ones[0].place:
        name += f" on {ones[0].place}" if len(ones) == 1 else f" on {_counted(ones)}"
    is_open = ones[0].judgement.verdict == "undecided"
    has_change = any(one.judgement.is_decided_by_itself for one in ones) if is_open else changed
    changes = [text for one in _ends(ones) if (text := change_of(one.judgement))] if has_change else []
    remarks = [" to ".join(dict.fromkeys(changes))] if changes else []
    if ones[0].judgement.differs and ones[0].judgement.ratio is None:
        remarks.append(both_levels(ones[0].judgement, unit_of(ones[0].metric)))
    remarks += [more] if is_open and (more := span_of_rounds([one.judgement for one in ones])) else []
    remarks += [] if all(one.judgement.final for one in ones) else [SO_FAR]
    return f"{name} ({', '.join(remarks)})" if remarks else name


def _counted(ones: Sequence[Comparison]) -> str:
    jobs = [one.job for one in ones if one.job]
    what = "jobs" if len(jobs) == len(ones) else "workloads and jobs" if jobs else "workloads"
    return f"{len(ones)} {what}"


def _ends(ones: Sequence[Comparison]) -> list[Comparison]:
    """Those with the lowest ratio and the highest."""
    known = [one for one in ones if one.judgement.ratio is not None]
    return [end(known, key=lambda one: one.judgement.ratio or 0.0) for end in (min, max)] if known else []


def _rank(one: Comparison) -> tuple[bool, int, float]:
    return one.leads, -tier(one.metric), _size(one)


def _size(one: Comparison) -> float:
    ratio = one.judgement.ratio
    return abs(math.log(ratio)) if ratio else 0.0
