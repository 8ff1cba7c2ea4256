"""One comparison: known values, edges, and what has to hold for any numbers."""

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.domain.definition import DIFFERENCES, GAINS, LOSSES, NO_DIFFERENCE, Nature, Verdict, better_of
from iolab.domain.verdict.interval import LARGEST_EXACT, interval, p_value, signed_rank_critical
from iolab.domain.verdict.judgement import Judgement, control_false_discovery, judge
from scipy import stats

positive = st.floats(0.5, 2.0)
pairs = st.integers(2, 14).flatmap(
    lambda n: st.tuples(st.lists(positive, min_size=n, max_size=n), st.lists(positive, min_size=n, max_size=n))
)


def noisy(rounds: int, ratio: float, spread: float = 0.02, seed: int = 1) -> tuple[list[float], list[float]]:
    x, y = 100 * np.exp(spread * np.random.default_rng(seed).standard_normal((2, rounds)))
    return list(x), list(y * ratio)


def numbers(judgement: Judgement) -> tuple[float, float, float]:
    assert judgement.ratio is not None and judgement.ci_low is not None and judgement.ci_high is not None
    return judgement.ci_low, judgement.ratio, judgement.ci_high


@pytest.mark.parametrize("rounds", [6, 7, 8, 12, 30])
def test_p_value_is_scipys(rounds: int) -> None:
    x, y = (np.array(arm) for arm in noisy(rounds, 1.01))
    expected = stats.wilcoxon(y - x, method="exact") if rounds >= 7 else stats.ttest_1samp(np.log(y / x), 0)
    assert p_value(x, y) == pytest.approx(expected.pvalue)


def test_six_rounds_have_students_interval() -> None:
    x, y = noisy(6, 1.05)
    expected = stats.ttest_1samp(np.log(np.array(y) / x), 0).confidence_interval(0.95)
    judgement = judge(x, y, nature="rate")
    assert judgement.ci_low == pytest.approx(math.exp(expected.low))
    assert judgement.ci_high == pytest.approx(math.exp(expected.high))


def test_ten_rounds_have_the_tabled_signed_rank_interval() -> None:
    """For n = 10 the two-sided 5 % critical value is 8: from the 9th of 55 Walsh ratios to the 47th."""
    x, y = noisy(10, 1.05)
    walsh = sorted((y[i] + y[j]) / (x[i] + x[j]) for i in range(10) for j in range(i, 10))
    assert signed_rank_critical(10, 0.05) == 8
    assert numbers(judge(x, y, nature="rate")) == pytest.approx((walsh[8], walsh[27], walsh[46]))


def test_critical_values_are_wilcoxons() -> None:
    tabled = {6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 15: 25, 20: 52, 25: 89, 30: 137}
    assert {n: signed_rank_critical(n, 0.05) for n in tabled} == tabled


def test_normal_approximation_joins_the_exact_distribution() -> None:
    rounds = LARGEST_EXACT
    assert abs(signed_rank_critical(rounds, 0.05) - signed_rank_critical(rounds + 1, 0.05)) < 60


@pytest.mark.parametrize(
    ("nature", "if_higher", "if_lower"),
    [
        ("rate", "faster", "slower"),
        ("time", "slower", "faster"),
        ("benefit", "better", "worse"),
        ("cost", "worse", "better"),
        ("neutral", "higher", "lower"),
    ],
)
@pytest.mark.parametrize("rounds", [3, 5, 6, 10, 30])
def test_a_difference_is_called_by_the_nature_of_the_metric(
    nature: Nature, if_higher: str, if_lower: str, rounds: int
) -> None:
    assert judge(*noisy(rounds, 1.2), nature=nature).verdict == if_higher
    assert judge(*noisy(rounds, 1 / 1.2), nature=nature).verdict == if_lower


def test_every_verdict_is_a_gain_a_loss_without_direction_or_no_difference() -> None:
    groups = (GAINS, LOSSES, frozenset(DIFFERENCES["neutral"]), NO_DIFFERENCE)
    assert sorted(word for group in groups for word in group) == sorted(get_args(Verdict))
    for nature, (if_higher, if_lower) in DIFFERENCES.items():
        gain = {"higher": if_higher, "lower": if_lower, None: None}[better_of(nature)]
        assert (gain in GAINS) == (nature != "neutral")


@pytest.mark.parametrize("rounds", [5, 10, 30])
def test_same_needs_the_whole_interval_within_the_margin(rounds: int) -> None:
    x, y = noisy(rounds, 1.0, spread=0.004)
    assert judge(x, y, nature="rate", same_within=0.02).verdict == "same"
    assert judge(x, y, nature="rate", same_within=0.0001).verdict == "undecided"


def test_a_real_difference_within_the_margin_is_the_same() -> None:
    x, y = noisy(30, 1.01, spread=0.002)
    assert judge(x, y, nature="rate", same_within=0.02).verdict == "same"
    assert judge(x, y, nature="rate", same_within=0.005).verdict == "faster"


def test_exact_numbers_are_decided_exactly() -> None:
    for rounds in (2, 5, 6, 7, 30):
        judgement = judge([5.0] * rounds, [5.5] * rounds, nature="time")
        assert numbers(judgement) == pytest.approx((1.1, 1.1, 1.1))
        assert (judgement.verdict, judgement.p_value, judgement.rounds_to_decide) == ("slower", 0.0, 0)
        assert (judgement.baseline, judgement.candidate) == (5.0, 5.5)
        equal = judge([5.0] * rounds, [5.0] * rounds, nature="time", same_within=0)
        assert (equal.verdict, numbers(equal), equal.p_value) == ("same", (1, 1, 1), 1.0)


@pytest.mark.parametrize(
    "x,y,reason",
    [
        ([], [], "at least 2"),
        ([1.0], [2.0], "at least 2"),
        ([1.0, None, 3.0], [None, 2.0, 3.0], "at least 2"),
        ([1.0, 0.0, 3.0], [1.0, 2.0, 3.0], "zero"),
        ([0.0, 0.0], [1.0, 2.0], "zero"),
        ([1.0, -1.0, 3.0], [1.0, 2.0, 3.0], "negative"),
        ([1.0, math.inf, 3.0], [1.0, 2.0, 3.0], "infinite"),
        ([1e-200, 1e-200], [1e200, 1e200], "beyond"),
    ],
)
def test_no_ratio_is_undecided_with_a_reason(x: list[float | None], y: list[float | None], reason: str) -> None:
    judgement = judge(x, y, nature="rate")
    assert (judgement.verdict, judgement.ratio, judgement.rounds_to_decide) == ("undecided", None, None)
    assert (judgement.p_value is None) == (reason != "zero")
    assert judgement.reason is not None and reason in judgement.reason


@pytest.mark.parametrize(
    ("old", "new", "verdict", "p", "levels"),
    [
        ([0.0] * 12, [3.0, 5.0, 9.0, 4.0] * 3, "worse", 2**-11, (0.0, 4.5)),
        ([0.0] * 15, [0.0] * 8 + [3.0] * 7, "worse", 2**-6, (0.0, 1.4)),
        ([3.0] * 7, [0.0] * 7, "better", 2**-6, (3.0, 0.0)),
        ([0.0] * 5, [2.0] * 5, "undecided", 2**-4, (0.0, 2.0)),
        ([0.0, 1.0] * 6, [1.0, 0.0] * 6, "undecided", 1.0, (0.5, 0.5)),
    ],
)
def test_counts_that_are_zero_at_times_are_judged_by_which_side_has_more(
    old: list[float], new: list[float], verdict: str, p: float, levels: tuple[float, float]
) -> None:
    found = judge(old, new, nature="cost")
    assert (found.verdict, found.ratio, found.p_value) == (verdict, None, pytest.approx(p))
    assert (found.baseline, found.candidate) == pytest.approx(levels)


def test_counts_are_worse_where_most_rounds_are_whatever_one_of_them_does_to_the_mean() -> None:
    found = judge([0.0, *[1.0] * 10, 1000.0], [*[2.0] * 11, 3.0], nature="cost")
    assert (found.verdict, found.p_value) == ("worse", pytest.approx(26 / 2**12))
    assert (found.baseline, found.candidate) == (1.0, 2.0)


def test_a_difference_without_a_ratio_is_corrected_for_many_metrics_too() -> None:
    counts = judge([0.0] * 6, [1.0, 2.0, 1.0, 3.0, 1.0, 2.0], nature="cost")
    assert counts.verdict == "worse"
    found = control_false_discovery([counts, *[judge([1.0, 1.1], [1.0, 1.2], nature="cost")] * 9])
    assert (found[0].verdict, found[0].why) == ("undecided", "by itself decided, among 10 not yet")


def test_zeros_on_both_sides_are_the_same() -> None:
    assert judge([0.0] * 5, [0.0] * 5, nature="time").verdict == "same"


@pytest.mark.parametrize("scale", [1e-290, 1e290])
def test_extreme_values(scale: float) -> None:
    x, y = noisy(10, 1.1)
    scaled = judge([scale * value for value in x], [scale * value for value in y], nature="rate")
    assert numbers(scaled) == pytest.approx(numbers(judge(x, y, nature="rate")))


def test_rounds_that_lack_a_number_are_left_out() -> None:
    x, y = noisy(10, 1.1)
    holed = judge([*x, 5.0, math.nan], [*y, None, 5.0], nature="rate")
    assert holed == judge(x, y, nature="rate")


def test_wrong_arguments() -> None:
    with pytest.raises(InputError, match="2 rounds and candidate 3"):
        judge([1, 2], [1, 2, 3], nature="neutral")
    with pytest.raises(InputError, match="same_within"):
        judge([1, 2], [1, 2], nature="neutral", same_within=-0.1)
    with pytest.raises(InputError, match="confidence"):
        judge([1, 2], [1, 2], nature="neutral", confidence=95)


def test_fields_of_the_json() -> None:
    assert list(judge([1, 2], [1, 2], nature="neutral").as_dict()) == [
        *("baseline", "candidate", "n", "ratio", "ci_low", "ci_high"),
        *("p_value", "q_value", "verdict", "rounds_to_decide", "final", "why", "median_ratio", "modes", "n_baseline"),
    ]


def test_an_outlier_does_not_put_a_verdict_off_for_ever() -> None:
    """Of the half of the interval that it makes long alone, over 200 more rounds would be asked for."""
    asked = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        x, y = np.exp(0.03 * random.standard_normal((2, 10)))
        y *= np.where(np.isin(np.arange(10), (3, 7)), 0.42, 1.05)
        judged = judge(list(x), list(y), nature="rate")
        assert judged.verdict == "undecided"
        asked.append(judged.rounds_to_decide)
    assert asked.count(None) <= 2 and all(10 < more <= 200 for more in asked if more is not None), asked


def test_equal_changes_leave_a_spread() -> None:
    """The ends of the interval, and the ratio, fall on the same value: no spread was taken for none, and one more round
    asked for."""
    x, y = [10.0] * 10, [10.0, 11, 10, 9, 11, 10, 10, 11, 9, 11]
    judged = judge(x, y, nature="rate")
    assert judged.verdict == "undecided"
    assert judged.spread == pytest.approx(np.log(np.array(y) / 10).std(ddof=1), rel=0.2)
    assert judged.rounds_to_decide is None or judged.rounds_to_decide > 10


def test_rounds_to_decide_grow_with_the_noise_and_end() -> None:
    asked = [judge(*noisy(5, 1.03, spread, seed=3), nature="rate").rounds_to_decide for spread in (0.02, 0.04, 0.08)]
    assert all(more is not None and more > 0 for more in asked)
    assert asked == sorted(asked)
    assert judge(*noisy(40, 1.0, 2.0), nature="rate", same_within=0.0).rounds_to_decide is None


@pytest.mark.parametrize("values", [[50.0, 55.0, 60.0], [50.0, 60.0, 55.0], [7.0, 7.0]])
def test_what_is_equal_in_every_round_is_the_same_in_any_order(values: list[float]) -> None:
    found = judge(values, values, nature="time")
    assert (found.verdict, found.ratio, found.ci_low, found.ci_high, found.p_value) == ("same", 1.0, 1.0, 1.0, 1.0)
    assert found.baseline == found.candidate == sum(values) / len(values)
    assert judge(values, [*values[:-1], 1.1 * values[-1]], nature="time").verdict == "undecided"


def test_a_drift_is_no_difference_without_spread() -> None:
    """The candidate happened to run second in all five rounds of a machine that slows down by 3 % per trial."""
    trials = 100 * 0.97 ** np.arange(10) * (1 + 0.001 * np.array([0, 1, -1, 0, 1, 0, -1, 1, 0, -1]))
    assert judge(list(trials[0::2]), list(trials[1::2]), nature="rate").verdict == "undecided"


def test_an_outlier_does_not_hide_a_difference() -> None:
    x, y = noisy(30, 1.1)
    x[7] *= 10
    assert judge(x, y, nature="rate").verdict == "faster"


def test_many_rounds_are_summed_in_groups() -> None:
    low, _, high = numbers(judge(*noisy(2500, 1.01), nature="rate", same_within=0))
    assert 1.005 < low < 1.01 < high < 1.015


@given(pairs)
def test_swapping_the_arms_inverts_the_ratio(arms: tuple[list[float], list[float]]) -> None:
    one, other = judge(*arms, nature="rate"), judge(*reversed(arms), nature="rate")
    low, ratio, high = numbers(one)
    assert numbers(other) == pytest.approx((1 / high, 1 / ratio, 1 / low))
    assert other.p_value == pytest.approx(one.p_value)


@given(pairs, st.floats(1e-6, 1e6))
def test_the_unit_does_not_matter(arms: tuple[list[float], list[float]], unit: float) -> None:
    scaled = judge(*([unit * value for value in arm] for arm in arms), nature="rate")
    assert numbers(scaled) == pytest.approx(numbers(judge(*arms, nature="rate")))


@given(pairs, st.floats(0.0, 0.5))
def test_the_verdict_follows_from_the_interval(arms: tuple[list[float], list[float]], margin: float) -> None:
    judgement = judge(*arms, nature="rate", same_within=margin)
    low, ratio, high = numbers(judgement)
    assert low <= ratio <= high
    if 1 / (1 + margin) <= low and high <= 1 + margin:
        assert judgement.verdict == "same"
    else:
        assert judgement.verdict == ("faster" if low > 1 else "slower" if high < 1 else "undecided")


@given(pairs)
def test_p_value_and_interval_agree(arms: tuple[list[float], list[float]]) -> None:
    x, y = np.array(arms)
    p = float(p_value(x, y))
    for alpha in (0.04999, 0.01, 0.0003):
        with np.errstate(over="ignore"):
            low, high = interval(x, y, alpha)
        if abs(p - alpha) > 1e-9:
            assert (p <= alpha) == bool(low > 1 or high < 1)


@settings(max_examples=50)
@given(st.lists(st.floats(0.1, 10), min_size=6, max_size=6), st.permutations(range(6)))
def test_a_rounds_own_level_cancels(levels: list[float], order: list[int]) -> None:
    """Up to six rounds exactly, unless the levels only rise or only fall, which is taken for a drift."""
    steps = np.diff(levels)
    if (steps >= 0).all() or (steps <= 0).all():
        return
    x, y = np.array([1, 1.01, 0.99, 1.02, 0.98, 1.0]), np.array([1.05, 1.04, 1.07, 1.03, 1.06, 1.05])[list(order)]
    flat = numbers(judge(list(x), list(y), nature="rate"))
    assert numbers(judge(list(x * levels), list(y * levels), nature="rate")) == pytest.approx(flat)


@given(pairs, st.floats(0.0, 1e308))
@example(([1.0, 1.1], [1.0, 1.3]), 8e-250)
@example(([1.0, 1.1], [1.0, 1.3]), 5e-324)
@example(([1e-300, 1e300, 1.0], [1.0, 1e-300, 1e300]), 1e-300)
def test_no_margin_is_too_narrow_or_too_wide_to_judge(
    both: tuple[list[float], list[float]], same_within: float
) -> None:
    judgement = judge(*both, nature="rate", same_within=same_within)
    assert judgement.rounds_to_decide is None or 0 <= judgement.rounds_to_decide <= 200


@pytest.mark.parametrize("counts", [[0, 5], [0, 0, 5, 0], [0, 0]])
def test_counts_that_are_equal_in_every_round_are_the_same(counts: list[float]) -> None:
    found = judge(counts, counts, nature="cost")
    assert (found.verdict, found.ratio, found.baseline) == ("same", 1.0, float(np.median(counts)))
