"""Metric keys and verdicts in words: what, how much, how sure, or how many more rounds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from iolab.base.quantity import MULTIPLE_FROM, change, scale_for
from iolab.domain.definition import VERDICTS
from iolab.domain.metric import describe
from iolab.domain.summary import Summary

if TYPE_CHECKING:
    from iolab.domain.compare import Comparison
    from iolab.domain.verdict import Judgement


def sentences(summary: Summary) -> list[tuple[Comparison, str]]:
    """One full sentence per comparison, workload by workload, clear differences first."""
    found = []
    for _, rows in groupby(summary.rows, key=lambda row: row.workload):
        pairs = [(comparison, unit_of(row.metric)) for row in rows for comparison in row.comparisons.values()]
        pairs.sort(key=lambda pair: VERDICTS.index(pair[0].judgement.verdict))
        found += [(one, sentence(one, unit, same_within=summary.same_within)) for one, unit in pairs]
    return found


def sentence(comparison: Comparison, unit: str, *, same_within: float) -> str:
    """A verdict as a sentence. Percentages are the ratio candidate/baseline less one."""
    place = f"on {comparison.workload}, " if comparison.workload else ""
    candidate, where = comparison.setting, f"{place}{label(comparison.metric)}"
    judgement = comparison.judgement
    if judgement.ratio is None or judgement.ci_low is None or judgement.ci_high is None:
        if one_round := _change_in_one_round(judgement):
            differs = f"{where} differs by {one_round.partition(' [')[0]}, and one round has no interval"
            return f"{candidate} is undecided against {comparison.against}: {differs}."
        return f"{candidate} is undecided against {comparison.against}: {where} can't be compared, {judgement.reason}."
    how_sure = evidence(judgement, unit)
    differs = f"{where} differs by {change(judgement.ratio, as_multiple=_as_multiple(judgement))} {how_sure}"
    match judgement.verdict:
        case "same":
            return f"{candidate} is the same as {comparison.against} within {same_within * 100:.3g} %: {differs}."
        case "undecided":
            doubt = _doubt(judgement)
            return (
                f"{candidate} is undecided against {comparison.against}: {differs}{doubt}; {_more_rounds(judgement)}."
            )
        case "higher" | "lower":
            return f"{candidate} differs from {comparison.against}: {where} is {claim(judgement)} {how_sure}."
        case verdict:
            return f"{candidate} is {verdict} than {comparison.against}: {where} is {claim(judgement)} {how_sure}."


def evidence(judgement: Judgement, unit: str) -> str:
    """`(95 % interval +1.0 % to +5.2 %), 12.3 ms against 11.9 ms over 8 rounds`, of a judgement that has a ratio."""
    assert judgement.ci_low is not None and judgement.ci_high is not None, "there is an interval where there is a ratio"
    scale, as_multiple = scale_for(unit, (judgement.baseline, judgement.candidate)), _as_multiple(judgement)
    low, high = (change(end, as_multiple=as_multiple) for end in (judgement.ci_low, judgement.ci_high))
    return (
        f"(95 % interval {low} to {high}), "
        f"{scale.with_unit(judgement.candidate)} against {scale.with_unit(judgement.baseline)} "
        f"over {_rounds_of_both(judgement)}"
    )


def _rounds_of_both(judgement: Judgement) -> str:
    if judgement.n_baseline is None:
        return rounds(judgement.n)
    return f"{rounds(judgement.n)} against {judgement.n_baseline} that are not interleaved"


def claim(judgement: Judgement) -> str:
    """`3.1 % higher`, or `4.93 times as high`, of a judgement that has a ratio."""
    ratio = judgement.ratio or 1.0
    if _as_multiple(judgement):
        return f"{change(ratio, as_multiple=True).removesuffix('x')} times as high"
    return f"{abs(ratio - 1) * 100:.1f} % {'higher' if ratio > 1 else 'lower'}"


def change_with_interval(judgement: Judgement) -> str | None:
    """`+3.1 % [+1.0 %, +5.2 %]`; `+3.1 % [one round]` where there is no interval; None where there is no ratio."""
    if judgement.ratio is None or judgement.ci_low is None or judgement.ci_high is None:
        return _change_in_one_round(judgement)
    ratios = (judgement.ratio, judgement.ci_low, judgement.ci_high)
    middle, low, high = (change(one, as_multiple=_as_multiple(judgement)) for one in ratios)
    return f"{middle} [{low}, {high}]"


def _as_multiple(judgement: Judgement) -> bool:
    """Whether the ratio and its interval are read as multiples: all three, where one of them is large."""
    return (judgement.ci_high or judgement.ratio or 0) >= MULTIPLE_FROM


def _change_in_one_round(judgement: Judgement) -> str | None:
    if judgement.n != 1 or not judgement.baseline or judgement.candidate is None:
        return None
    ratio = judgement.candidate / judgement.baseline
    return f"{change(ratio)} [one round]" if ratio > 0 else None


def verdict_with_rounds(judgement: Judgement) -> str:
    """`faster`, or `undecided (12 more)`: rounds that would decide."""
    more = judgement.rounds_to_decide
    return f"{judgement.verdict} ({more} more)" if more else judgement.verdict


def unit_of(key: str) -> str:
    """The unit of a metric's key as people say it; nothing for a column whose name says none."""
    metric = describe(key)
    return "IOPS" if metric.name == "iops" else metric.unit


def tally(comparisons: Iterable[Comparison]) -> str:
    """`1 slower, 2 faster, 4 undecided`."""
    counted = Counter(comparison.judgement.verdict for comparison in comparisons)
    counts = [(counted[verdict], verdict) for verdict in VERDICTS]
    return ", ".join(f"{count} {verdict}" for count, verdict in counts if count) or "nothing to compare"


def _doubt(judgement: Judgement) -> str:
    """Why an interval that excludes no difference does not decide: there were many comparisons."""
    excludes_one = not (judgement.ci_low or 0) <= 1 <= (judgement.ci_high or 0)
    if not excludes_one or judgement.q_value is None:
        return ""
    return f", which among so many comparisons may be chance (q = {judgement.q_value:.2f})"


def rounds(count: int, more: str = "") -> str:
    """`1 round`, `8 rounds`; `more`: a word between."""
    return f"{count} {more}{'round' if count == 1 else 'rounds'}"


def _more_rounds(judgement: Judgement) -> str:
    if judgement.rounds_to_decide is None:
        return "how many more rounds would decide can't be told from these"
    return f"about {rounds(judgement.rounds_to_decide, 'more ')} would decide"


_WORDS = {"cpu": "CPU", "io": "I/O", "iops": "IOPS", "rpc": "RPC", "rtt": "RTT", "stddev": "standard deviation"}
_UNIT_PARTS = re.compile(r"_bytes_per_s|_per_s(?=_|$)|_ns(?=_|$)|_s$")
_QUANTILE = re.compile(r"p(\d\d)(\d*)$")


def label(key: str) -> str:
    """`random_read/read.latency_ns_p99` -> `random read: read latency p99`. The unit is left to the table."""
    phase, _, rest = key.rpartition("/")
    op, _, metric = rest.rpartition(".")
    words = [_word(word) for word in _UNIT_PARTS.sub("", metric).split("_")]
    text = " ".join([op, *words] if op else words)
    return f"{phase.replace('_', ' ')}: {text}" if phase else text


def _word(word: str) -> str:
    if quantile := _QUANTILE.match(word):
        return f"p{quantile[1]}.{quantile[2]}" if quantile[2] else word
    return _WORDS.get(word, word)
