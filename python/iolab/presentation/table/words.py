"""Metric keys and verdicts in words: what, how much, how sure, or how many more rounds."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

from iolab.base.plain_text import counted, listed
from iolab.base.quantity import MULTIPLE_FROM, Scale, change, plain, scale_for
from iolab.domain.comparison import Comparison
from iolab.domain.definition import BYTE_RATE, VERDICTS
from iolab.domain.measured_run import MeasuredRun
from iolab.domain.metric import describe, is_unknown
from iolab.domain.summary import Summary
from iolab.domain.verdict.forecast import FORECAST_MAX
from iolab.domain.verdict.judgement import Judgement

MEDIAN_APART = 0.1
"""The part of the interval by which the rounds' median ratio has to differ from the typical ratio to be shown."""
MEDIANS_MAX = 3
LACKING_MAX = 4
"""Metrics without values that a line names; more are counted."""


def sentences(summary: Summary) -> list[tuple[Comparison, str]]:
    """One full sentence per comparison, workload by workload, clear differences first."""
    found = []
    for _, rows in groupby(summary.rows, key=lambda row: row.place):
        pairs = [(comparison, unit_of(row.metric)) for row in rows for comparison in row.comparisons.values()]
        pairs.sort(key=lambda pair: VERDICTS.index(pair[0].judgement.verdict))
        found += [(one, sentence(one, unit, same_within=summary.same_within)) for one, unit in pairs]
    return found


def sentence(comparison: Comparison, unit: str, *, same_within: float) -> str:
    """A verdict as a sentence. Percentages are the ratio candidate/baseline less one, as in the tables."""
    place = f"on {comparison.place}, " if comparison.place else ""
    candidate, where = comparison.setting, f"{place}{label(comparison.metric)}"
    judgement = comparison.judgement
    if judgement.ratio is None or judgement.ci_low is None or judgement.ci_high is None:
        if one_round := _change_in_one_round(judgement):
            differs = f"{where} differs by {one_round.partition(' [')[0]}, and one round has no interval"
            return f"{candidate} is undecided against {comparison.against}: {differs}."
        if judgement.differs:
            levels, over = both_levels(judgement, unit), _rounds_of_both(judgement)
            return f"{candidate} is {judgement.verdict} than {comparison.against}: {where} is {levels} over {over}."
        return f"{candidate} is undecided against {comparison.against}: {where} can't be compared, {judgement.reason}."
    how_sure = evidence(judgement, unit)
    differs = f"{where} differs by {change(judgement.ratio, as_multiple=_as_multiple(judgement))} {how_sure}"
    so_far = "" if judgement.final else " so far"
    match judgement.verdict:
        case "same":
            margin = f"within {same_within * 100:.3g} %"
            return f"{candidate} is the same{so_far} as {comparison.against} {margin}: {differs}."
        case "undecided":
            why = f"; {judgement.why}" if judgement.why else ""
            q = f" (q = {judgement.q_value:.2f})" if why and judgement.q_value is not None else ""
            more = _more_rounds(judgement)
            return f"{candidate} is undecided against {comparison.against}: {differs}{why}{q}; {more}."
        case "higher" | "lower":
            return f"{candidate} differs{so_far} from {comparison.against}: {where} is {claim(judgement)} {how_sure}."
        case verdict:
            than = f"{verdict}{so_far} than {comparison.against}"
            return f"{candidate} is {than}: {where} is {claim(judgement)} {how_sure}."


def evidence(judgement: Judgement, unit: str) -> str:
    """`(95 % interval +1.0 % to +5.2 %), 12.3 ms against 11.9 ms over 8 rounds`, of a judgement that has a ratio."""
    assert judgement.ci_low is not None and judgement.ci_high is not None, "there is an interval where there is a ratio"
    scale, as_multiple = scale_for(unit, (judgement.baseline, judgement.candidate)), _as_multiple(judgement)
    low, high = (change(end, as_multiple=as_multiple) for end in (judgement.ci_low, judgement.ci_high))
    median = f"; median of the rounds' ratios {beside}" if (beside := median_beside(judgement)) else ""
    return (
        f"(95 % interval {low} to {high}{median}), "
        f"{scale.with_unit(judgement.candidate)} against {scale.with_unit(judgement.baseline)} "
        f"over {_rounds_of_both(judgement)}"
    )


def both_levels(judgement: Judgement, unit: str) -> str:
    """`6 against 0`."""
    scale = scale_for(unit, (judgement.baseline, judgement.candidate))
    return f"{scale.with_unit(judgement.candidate)} against {scale.with_unit(judgement.baseline)}"


def _rounds_of_both(judgement: Judgement) -> str:
    if judgement.n_baseline is None:
        return counted(judgement.n, "round")
    return f"{counted(judgement.n, 'round')} against {judgement.n_baseline} that are not interleaved"


def claim(judgement: Judgement) -> str:
    """`higher by 3.1 %`: `+3.1 %` in the tables; or `4.93 times as high`, `4.93x` there."""
    text = change_of(judgement) or ""
    if text.endswith("x"):
        return f"{text.removesuffix('x')} times as high"
    return f"{text.lstrip('+-')} {'lower' if text.startswith('-') else 'higher'}"


def change_with_interval(judgement: Judgement) -> str | None:
    """`+3.1 % [+1.0 %, +5.2 %]`; `+3.1 % [one round]` if there is no interval; None if there is no ratio."""
    if judgement.ratio is None or judgement.ci_low is None or judgement.ci_high is None:
        return _change_in_one_round(judgement)
    ratios = (judgement.ratio, judgement.ci_low, judgement.ci_high)
    middle, low, high = (change(one, as_multiple=_as_multiple(judgement)) for one in ratios)
    return f"{middle} [{low}, {high}]"


def change_of(judgement: Judgement) -> str | None:
    """`+3.1 %`, in the notation of the tables; None if there is no ratio."""
    return None if judgement.ratio is None else change(judgement.ratio, as_multiple=_as_multiple(judgement))


def beside_typical(comparisons: Sequence[Comparison]) -> list[str]:
    """What typical values and ratios hide, in a line each: two modes, and skewed ratios."""
    return [line for line in (_modes(comparisons), _medians(comparisons)) if line]


def _modes(comparisons: Sequence[Comparison]) -> str | None:
    found = []
    for one in comparisons:
        if modes := one.judgement.modes:
            sides = (
                (modes.baseline_upper, one.judgement.n_baseline or one.judgement.n, one.against),
                (modes.candidate_upper, one.judgement.n, one.setting),
            )
            upper = " and ".join(f"{count} of {counted(n, 'round')} of {name}" for count, n, name in sides)
            place = f" on {one.place}" if one.place else ""
            apart = f"{plain(modes.factor, 2)}x the other"
            found.append(f"{upper} are in the upper one, {apart} ({label(one.metric)}{place})")
    return f"two modes: {_first(found)}" if found else None


def _first(found: Sequence[str]) -> str:
    more = f"; and {len(found) - MEDIANS_MAX} more" if len(found) > MEDIANS_MAX else ""
    return f"{'; '.join(found[:MEDIANS_MAX])}{more}"


def _medians(comparisons: Sequence[Comparison]) -> str | None:
    found = []
    for one in comparisons:
        if beside := median_beside(one.judgement):
            place = f" on {one.place}" if one.place else ""
            found.append(f"{beside} for {change_of(one.judgement)} ({one.setting}, {label(one.metric)}{place})")
    return f"skewed: the median of the rounds' ratios is {_first(found)}" if found else None


def rounds_of_both(comparisons: Sequence[Comparison]) -> list[str]:
    """Of changes that are of fewer rounds than the values beside them, those rounds: a line for each number of them."""
    found: dict[str, list[str]] = {}
    for one in comparisons:
        if one.unpaired_rounds and one.judgement.has_both:
            rounds = f"{counted(one.judgement.n, one.pairing)} that {'have' if one.judgement.n > 1 else 'has'} both"
            place = f" of {one.place}" if one.place else ""
            found.setdefault(rounds, []).append(f"{label(one.metric)}{place} ({one.setting})")
    return [
        f"{listed(names, MEDIANS_MAX)}: change over the {rounds}, values over all that have one"
        for rounds, names in found.items()
    ]


def median_beside(judgement: Judgement) -> str | None:
    """The median of the rounds' ratios, if it differs from the typical ratio by more than a tenth of the
    interval, and by more than the margin of *same*."""
    ratios = (judgement.ratio, judgement.ci_low, judgement.ci_high, judgement.median_ratio)
    if None in ratios:
        return None
    ratio, low, high, median = (math.log(one) for one in ratios if one is not None)
    if abs(median - ratio) <= max((high - low) * MEDIAN_APART, math.log1p(judgement.same_within)):
        return None
    text = change(judgement.median_ratio or 1.0, as_multiple=_as_multiple(judgement))
    return None if text == change_of(judgement) else text


def _as_multiple(judgement: Judgement) -> bool:
    """Whether the ratio and its interval are read as multiples: all three, if one of them is large."""
    return (judgement.ci_high or judgement.ratio or 0) >= MULTIPLE_FROM


def of_one_round(judgement: Judgement) -> float | None:
    """The ratio in the one round that there is; None if it has no ratio, or if there are more."""
    if judgement.n != 1 or not judgement.baseline or judgement.candidate is None:
        return None
    ratio = judgement.candidate / judgement.baseline
    return ratio if ratio > 0 else None


def _change_in_one_round(judgement: Judgement) -> str | None:
    ratio = of_one_round(judgement)
    return None if ratio is None else f"{change(ratio)} [one round]"


def verdict_with_rounds(judgement: Judgement) -> str:
    """`faster`, `faster so far` if further rounds may overturn it, or `undecided (12 more)`: rounds that would
    decide."""
    if judgement.verdict != "undecided":
        return judgement.verdict if judgement.final else f"{judgement.verdict} so far"
    return f"undecided ({more})" if (more := span_of_rounds([judgement])) else "undecided"


def span_of_rounds(judgements: Sequence[Judgement]) -> str:
    """`12 more`, `2 to 12 more`, `over 200 more`: rounds that would decide the undecided; empty if no number
    would."""
    known = [one for one in judgements if one.ratio is not None and one.reason is None]
    if not known:
        return ""
    counts = sorted(one.rounds_to_decide or FORECAST_MAX + 1 for one in known)
    ends = dict.fromkeys(
        f"over {FORECAST_MAX}" if count > FORECAST_MAX else str(count) for count in (counts[0], counts[-1])
    )
    return f"{' to '.join(ends)} more"


def unit_of(key: str) -> str:
    """The usual unit of a metric's key; empty for a column without a unit in its name."""
    metric = describe(key)
    return "IOPS" if metric.name == "iops" and not key.endswith(COMMITS_PER_S) else metric.unit


def tally(comparisons: Iterable[Comparison]) -> str:
    """`1 slower, 2 faster, 4 undecided`; of one round, which no verdict can come of, that."""
    comparisons = list(comparisons)
    if are_of_one_round(comparisons):
        return "one round gives no verdict"
    of_verdict = Counter(comparison.judgement.verdict for comparison in comparisons)
    counts = [(of_verdict[verdict], verdict) for verdict in VERDICTS]
    return ", ".join(f"{count} {verdict}" for count, verdict in counts if count) or "nothing to compare"


def are_of_one_round(comparisons: Iterable[Comparison]) -> bool:
    """Whether all that can be compared is of one round; a metric that one setting lacks takes nothing from that."""
    return {one.judgement.n for one in comparisons if one.judgement.n} == {1}


def left_out_in_words(left_out: Collection[str], comparisons: Sequence[Comparison], option: str) -> list[str]:
    """A line about the metrics that tables leave out, and the option that shows them; none if they leave out none."""
    if not left_out:
        return []
    what = f"the tables leave out {counted(len(left_out), 'metric')} for their length"
    none = ", none of which differs" if any(one.judgement.n > 1 for one in comparisons) else ""
    return [f"{what}{none}: {option} has them all, --metric KEY shows one, such as {min(left_out)}"]


def lacking(summary: Summary) -> list[str]:
    """`latency p99 of reads`, of each metric that was named and has no value under any setting."""
    return [f"{label(row.metric)} of {row.place}" for row in summary.without_values if summary.named]


def without_values(run: MeasuredRun, summary: Summary) -> str:
    """If nothing is compared: which metrics have no value under any setting, why, and how many operations their trials
    had at most."""
    if summary.comparisons or len(summary.settings) < 2 or not summary.rows:
        return ""
    reasons = dict.fromkeys(cell.reason for row in summary.rows for cell in row.cells.values() if cell.reason)
    names = list(dict.fromkeys(label(row.metric) for row in summary.rows))
    text = f"no setting has a value of {listed(names, LACKING_MAX)}: {'; '.join(reasons) or 'no trial has one'}"
    counts = {key[: max(key.rfind("."), key.rfind("/")) + 1] + "ops" for key in (row.metric for row in summary.rows)}
    known = run.metrics.filter(run.metrics["key"].is_in(list(counts)))["value"].drop_nulls().to_list()
    return f"{text}; a trial had at most {max(known):,.0f} operations" if known else text


def undirected(comparisons: Sequence[Comparison]) -> list[str]:
    """A line about the metrics that differ and that nothing says which way is better of, and how to say it."""
    names = dict.fromkeys(
        one.metric
        for one in comparisons
        if one.judgement.differs and one.nature == "neutral" and is_unknown(one.metric)
    )
    if not names:
        return []
    one = shlex.quote(next(iter(names)).rpartition("/")[2])
    text = f"which way is better is not known of {listed(list(names), MEDIANS_MAX)}"
    return [f"{text}: give --lower-is-better {one} or --higher-is-better {one}"]


def _more_rounds(judgement: Judgement) -> str:
    if judgement.rounds_to_decide is None:
        return f"over {FORECAST_MAX} more rounds would decide"
    return f"about {counted(judgement.rounds_to_decide, 'more round')} would decide"


COMMITS_PER_S = "commit.iops"
"""Nobody calls them I/O operations."""
_WORDS = {"cpu": "CPU", "io": "I/O", "iops": "IOPS", "rpc": "RPC", "rtt": "RTT", "stddev": "standard deviation"}
_UNIT_PARTS = re.compile(r"_bytes_per_s|_per_s(?=_|$)|_ns(?=_|$)|_s(?=_(?:min|mean|max|median|stddev)$|$)")
_QUANTILE = re.compile(r"p(\d\d)(\d*)$")


_PER = ("s", "sec", "second", "min", "op", "io", "ns", "us", "ms")


def label(key: str) -> str:
    """`random_read/read.latency_ns_p99` -> `random read: read latency p99`. The unit is left to the table."""
    phase, _, rest = key.rpartition("/")
    if rest.rstrip(")] ") in _PER:  # a column of another tool, `MB/s`, and no phase
        return key
    op, _, metric = rest.rpartition(".")
    words = [_word(word) for word in (_UNIT_PARTS.sub("", BYTE_RATE.sub("", metric)) or "rate").split("_")]
    text = "commits" if rest == COMMITS_PER_S else " ".join([op, *words] if op else words)
    return f"{phase.replace('_', ' ')}: {text}" if phase else text


def beside(name: str, scale: Scale, value: float) -> str:
    """The value behind its label, which may be the unit already: `IOPS 3,502`, `rate 459.2 MiB/s`."""
    before = name.removesuffix(scale.suffix)
    # `sync on xfs` does not end in seconds.
    is_word = scale.suffix[:1].isalpha() and before[-1:].isalpha()
    return scale.number(value) if name.endswith(scale.suffix) and not is_word else scale.with_unit(value)


def _word(word: str) -> str:
    if quantile := _QUANTILE.match(word):
        return f"p{quantile[1]}.{quantile[2]}" if quantile[2] else word
    return _WORDS.get(word, word)
