"""Verdicts on published summaries: Welch's test, the interval of the ratio, the rounds that are needed."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.domain.verdict.summaries import Contrast, Summary, contrasts
from scipy import stats

SUMMARIES = st.builds(Summary, st.integers(5, 200), st.floats(50, 100), st.floats(0.5, 10))


def contrast(baseline: Summary, candidate: Summary) -> Contrast:
    return contrasts([([baseline], [candidate])], nature="time")[0]


@given(SUMMARIES, SUMMARIES)
def test_one_pair_is_welchs_test(x: Summary, y: Summary) -> None:
    found = contrast(x, y)
    oracle = stats.ttest_ind_from_stats(y.mean, y.sd, y.n, x.mean, x.sd, x.n, equal_var=False)
    assert found.p_value == pytest.approx(oracle.pvalue, rel=1e-6, abs=1e-12)
    assert found.difference == pytest.approx(y.mean - x.mean)


@given(SUMMARIES, SUMMARIES)
def test_ratio_and_difference_say_the_same(x: Summary, y: Summary) -> None:
    found = contrast(x, y)
    assume(abs(found.p_value - 0.05) > 1e-6)
    beyond = found.p_value < 0.05
    assert (found.ci_low > 1 or found.ci_high < 1) == beyond
    assert (found.difference_low > 0 or found.difference_high < 0) == beyond
    assert found.ci_low < found.ratio < found.ci_high


@given(SUMMARIES, SUMMARIES)
def test_swapped_arms_have_the_inverse_ratio(x: Summary, y: Summary) -> None:
    found, swapped = contrast(x, y), contrast(y, x)
    assert swapped.ci_low == pytest.approx(1 / found.ci_high)
    assert swapped.ci_high == pytest.approx(1 / found.ci_low)
    assert {found.verdict, swapped.verdict} in ({"faster", "slower"}, {"same"}, {"undecided"})


def test_the_mean_of_equal_rows_is_as_sure_as_all_their_values() -> None:
    """Four rows of ten values of one distribution say what one row of forty says."""
    four = contrasts([([Summary(10, 100, 4)] * 4, [Summary(10, 103, 4)] * 4)], nature="time")[0]
    one = contrast(Summary(40, 100, 4), Summary(40, 103, 4))
    assert four.difference == pytest.approx(one.difference)
    assert four.p_value == pytest.approx(one.p_value, rel=0.2)


def test_of_many_pairs_a_weak_difference_is_not_claimed() -> None:
    weak = ([Summary(10, 100, 4)], [Summary(10, 104, 4)])
    nothing = ([Summary(10, 100, 4)], [Summary(10, 100.1, 4)])
    assert contrasts([weak], nature="time")[0].verdict == "slower"
    many = contrasts([weak, *[nothing] * 7], nature="time")[0]
    assert many.verdict == "undecided" and many.q_value == pytest.approx(8 * many.p_value)


@pytest.mark.parametrize("ratio", [1.02, 1.05])
def test_the_rounds_said_to_be_needed_see_four_of_five_differences(ratio: float) -> None:
    needed = int(np.ceil(contrast(Summary(10, 100, 4), Summary(10, 100 * ratio, 4)).n_to_see))
    rng = np.random.default_rng(1)
    x, y = rng.normal(100, 4, (4000, needed)), rng.normal(100 * ratio, 4, (4000, needed))
    seen = stats.ttest_ind(x, y, axis=1, equal_var=False).pvalue < 0.05
    assert 0.76 < seen.mean() < 0.88


def test_equal_means_are_never_seen_to_differ_but_can_be_the_same() -> None:
    found = contrast(Summary(10, 100, 4), Summary(10, 100, 4))
    assert found.n_to_see == float("inf") and found.n_to_decide < 200


def test_a_mean_near_zero_has_no_ratio() -> None:
    with pytest.raises(InputError, match="not clear of zero"):
        contrast(Summary(5, 1, 10), Summary(5, 1, 1))
