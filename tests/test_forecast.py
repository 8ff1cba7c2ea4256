"""What is said of the undecided: why, after how many more rounds, and which verdicts are not final."""

from collections.abc import Callable

import numpy as np
import pytest
from iolab.domain.comparison import Pair, compare_pairs
from iolab.domain.verdict.judgement import Judgement, control_false_discovery, judge
from iolab.domain.verdict.sequential import judge_sequential
from iolab.presentation.table.words import beside_typical, change_of, evidence, span_of_rounds, verdict_with_rounds
from numpy.typing import NDArray

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
NOISE: dict[str, Draw] = {
    "normal": lambda random, n: random.standard_normal(n),
    "heavy tails": lambda random, n: random.standard_t(3, n) / 1.7,
    "skewed": lambda random, n: random.exponential(1, n) - 1,
}


def against_one(ratios: NDArray[np.float64]) -> Judgement:
    return judge(list(np.ones(len(ratios))), list(ratios), nature="time")


def decided_as_forecast(noise: Draw, first: int, difference: float, spread: float, runs: int) -> tuple[int, int]:
    """How many undecided runs with a forecast that number of further rounds decided, and how many there were."""
    random = np.random.default_rng(first)
    decided = forecast = 0
    for _ in range(20 * runs):
        ratios = np.exp(difference + spread * noise(random, first))
        more = against_one(ratios)
        if more.verdict != "undecided" or more.rounds_to_decide is None:
            continue
        later = np.exp(difference + spread * noise(random, more.rounds_to_decide))
        decided += against_one(np.concatenate([ratios, later])).verdict != "undecided"
        forecast += 1
        if forecast == runs:
            break
    return decided, forecast


@pytest.mark.parametrize("noise", NOISE)
def test_of_simulated_runs_the_number_forecast_decides_50_to_90_percent(noise: str) -> None:
    found = [
        decided_as_forecast(NOISE[noise], first, difference, spread, 30)
        for first in (4, 5, 8, 12)
        for difference, spread in ((0.05, 0.08), (0.0, 0.05), (0.02, 0.03))
    ]
    decided, forecast = (sum(numbers) for numbers in zip(*found, strict=True))
    assert forecast > 300
    assert 0.5 <= decided / forecast <= 0.9


def test_beyond_two_hundred_is_said_and_never_nothing() -> None:
    noise = np.random.default_rng(2).standard_normal(40)
    wild = np.exp(2 * noise)
    hopeless = judge(list(wild), list(np.roll(wild, 20)), nature="time", same_within=0.0)
    assert verdict_with_rounds(hopeless) == "undecided (over 200 more)"
    soon = against_one(np.exp(0.02 + 0.03 * noise[:5]))
    assert soon.verdict == "undecided"
    assert span_of_rounds([soon, hopeless]) == f"{soon.rounds_to_decide} to over 200 more"


def test_a_long_tail_away_from_one_does_not_lengthen_the_forecast() -> None:
    """-65 % with an interval from -99.9 %: what is uncertain is how large the difference is, not whether."""
    ratios = np.array([0.001, 0.2, 0.33, 0.34, 0.36, 0.4, 0.55, 0.93])
    alone = against_one(ratios)
    assert alone.verdict == "faster"
    random = np.random.default_rng(1)
    others = [against_one(np.exp(0.1 * random.standard_normal(8))) for _ in range(40)]
    (among, *_) = control_false_discovery([alone, *others])
    assert among.verdict == "undecided" and among.why == "by itself decided, among 41 not yet"
    assert among.rounds_to_decide is not None and among.rounds_to_decide < 30


def test_undecided_says_why() -> None:
    def why(ratios: list[float], levels: list[float] | None = None) -> str:
        at = levels or [1.0] * len(ratios)
        found = judge(at, [x * y for x, y in zip(at, ratios, strict=True)], nature="time")
        assert found.verdict == "undecided"
        return str(found.why)

    noisy = [0.9, 1.11, 0.95, 1.08, 1.03, 0.94, 1.06, 0.99]
    assert why([1.05, 0.97, 1.1, 1.02]) == "too few rounds (4)"
    assert why(noisy) == "noise: the change of one round varies by 8.7 %"
    modes = [0.50, 0.51, 1.5, 0.52, 1.51, 0.50, 1.52, 1.49]
    assert why(modes).startswith("two modes in the changes: 4 rounds and 4, ")
    assert why(noisy, [1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.4]).startswith("drift: the level rose by 1")


@pytest.mark.parametrize(
    "levels",
    [[1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07], [1.0, 2.0, 1.01, 2.02, 1.0, 2.01, 2.0, 1.02]],
    ids=["drift", "modes"],
)
def test_what_cancels_within_rounds_is_no_reason(levels: list[float]) -> None:
    noisy = np.array([0.9, 1.11, 0.95, 1.08, 1.03, 0.94, 1.06, 0.99])
    for baseline in (np.ones(8), np.array(levels)):
        found = judge(list(baseline), list(baseline * noisy), nature="time")
        assert found.verdict == "undecided"
        assert str(found.why).startswith("noise: the change of one round varies by ")


def test_why_is_in_the_json_and_empty_where_decided() -> None:
    pairs = [Pair("m_s", None, "a", "b", [1.0] * 8, [2.0, 2.1, 2.0, 2.2, 2.1, 2.0, 2.1, 2.0])]
    (found,) = compare_pairs(pairs, same_within=0.02)
    assert (found.as_dict()["why"], found.as_dict()["final"]) == (None, True)


def test_a_verdict_that_the_next_round_overturns_is_not_final() -> None:
    """Slower at four rounds, undecided at five."""
    ratios = np.array([1.10, 1.03, 1.09, 1.05, 0.97])
    four, five = against_one(ratios[:4]), against_one(ratios)
    assert (four.verdict, five.verdict) == ("slower", "undecided")
    assert not four.final
    assert verdict_with_rounds(four) == "slower so far"
    assert "so far" not in verdict_with_rounds(five)


def test_the_rule_of_until_decided_makes_verdicts_final() -> None:
    ratios = list(1.1 + 0.01 * np.random.default_rng(3).standard_normal(12))
    found = judge_sequential([1.0] * 12, ratios, nature="time", max_rounds=50)
    assert found.verdict == "slower" and found.final
    clear = against_one(np.array(ratios))
    assert clear.final and verdict_with_rounds(clear) == "slower"


def test_the_median_of_the_ratios_stands_beside_another_typical_ratio() -> None:
    """The typical ratio of a skewed arm is not the median of the ratios that a reader computes."""
    ratios = np.array([1.2, 1.5, 1.9, 7.9, 8.0, 8.2, 8.4, 1.4, 8.1])
    found = judge([1.0] * 9, list(ratios), nature="time")
    assert found.median_ratio == 7.9
    assert found.ratio is not None and found.ratio < 6
    assert "; median of the rounds' ratios 7.90x)" in evidence(found, "s")
    (one,) = compare_pairs([Pair("m_s", None, "a", "b", [1.0] * 9, list(ratios))], same_within=0.02)
    skewed = f"skewed: the median of the rounds' ratios is 7.90x for {change_of(found)} (b, m)"
    assert beside_typical([one])[-1] == skewed
    even = against_one(np.array([1.1, 1.12, 1.08, 1.1, 1.11, 1.09, 1.1, 1.1]))
    assert "median" not in evidence(even, "s")
