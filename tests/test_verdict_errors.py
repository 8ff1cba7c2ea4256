"""How often the verdict errs: many comparisons, the stopping rule, and a small seeded simulation of both."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from iolab.base.errors import InputError
from iolab.domain.verdict.interval import interval
from iolab.domain.verdict.judgement import Judgement, control_false_discovery, judge
from iolab.domain.verdict.looks import FIRST_LOOK, SHAPE, _crossing_probability, nominal_level
from iolab.domain.verdict.sequential import judge_sequential
from scipy import stats

ROUNDS = (5, 10, 30)
BENCHES = Path(__file__).parents[1] / "benches"


@pytest.fixture(scope="module")
def noise(monkeypatch_module: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch_module.syspath_prepend(str(BENCHES))
    import statistics_noise

    return statistics_noise.REQUIRED


@pytest.fixture(scope="module")
def monkeypatch_module() -> object:
    with pytest.MonkeyPatch.context() as patch:
        yield patch
    sys.modules.pop("statistics_noise", None)


@pytest.mark.parametrize("rounds", ROUNDS)
def test_false_alarms_and_coverage(noise: dict[str, object], rounds: int) -> None:
    """4000 experiments: the standard error of 5 % is 0.34 %, four of them are allowed."""
    for name, draw in noise.items():
        x, y = draw(np.random.default_rng(7), 4000, rounds)
        low, high = interval(x, y, 0.05)
        missed = ((low > 1) | (high < 1)).mean()
        assert 0.02 < missed < 0.064, f"{name}: {missed:.1%} of the intervals miss"


def test_power_matches_students_where_student_is_right() -> None:
    x, y = 1 + 0.03 * np.random.default_rng(3).standard_normal((2, 2000, 10))
    low, _ = interval(x, 1.05 * y, 0.05)
    assert 0.84 < (low > 1).mean() < 0.92


def test_stopping_rule_on_identical_settings() -> None:
    """A look after every round: at most 5 % of paths may ever cross, where naive peeking crosses in more than 12 %."""
    x, y = np.exp(0.05 * np.random.default_rng(5).standard_normal((2, 3000, 15)))
    crossed = np.zeros((2, len(x)), dtype=bool)
    for n in range(FIRST_LOOK, 16):
        for index, level in enumerate((nominal_level(n, 15, 0.05), 0.05)):
            low, high = interval(x[:, :n], y[:, :n], level)
            crossed[index] |= (low > 1) | (high < 1)
    sequential, naive = crossed.mean(1)
    assert 0.03 < sequential < 0.062
    assert naive > 0.12


def test_crossing_probability_of_one_look_is_the_normal_tail() -> None:
    assert _crossing_probability(1.959964, FIRST_LOOK) == pytest.approx(0.05, abs=1e-6)


def test_crossing_probability_by_random_walks() -> None:
    walks = np.random.default_rng(1).standard_normal((40_000, 20)).cumsum(1)
    looks = np.arange(FIRST_LOOK, 21)
    height = 2.2
    bounds = height * np.sqrt(looks) * (looks / 20) ** (SHAPE - 0.5)
    crossed = (np.abs(walks[:, FIRST_LOOK - 1 :]) > bounds).any(1).mean()
    assert _crossing_probability(height, 20) == pytest.approx(crossed, abs=0.004)


def test_levels_add_up_to_less_than_bonferroni_would_allow() -> None:
    levels = [nominal_level(n, 20, 0.05) for n in range(FIRST_LOOK, 21)]
    assert levels == sorted(levels)
    assert levels[-1] < 0.05 < sum(levels)


def test_sequential_decides_and_waits() -> None:
    rng = np.random.default_rng(2)
    x, y = 100 * np.exp(0.02 * rng.standard_normal((2, 20)))
    clear = [judge_sequential(x[:n], 1.2 * y[:n], nature="time", max_rounds=20).verdict for n in range(2, 21)]
    assert clear[: FIRST_LOOK - 2] == ["undecided"] * (FIRST_LOOK - 2)
    assert "slower" in clear[:8] and "faster" not in clear
    alike = [judge_sequential(x[:n], x[:n] * 1.0001, nature="time", max_rounds=20).verdict for n in range(5, 8)]
    assert alike == ["same"] * 3
    early = judge_sequential(x[:3], 1.2 * y[:3], nature="time", max_rounds=20)
    assert (early.verdict, early.rounds_to_decide) == ("undecided", FIRST_LOOK - 3)


def test_sequential_shares_its_promise_among_comparisons() -> None:
    x, y = 100 * np.exp(0.03 * np.random.default_rng(4).standard_normal((2, 10)))
    one, many = (judge_sequential(x, 1.03 * y, nature="neutral", max_rounds=20, comparisons=n) for n in (1, 50))
    assert one.p_value == many.p_value and one.q_value is not None
    assert many.q_value == pytest.approx(min(1, 50 * one.q_value))
    assert many.ci_low < one.ci_low < one.ci_high < many.ci_high


def test_sequential_p_value_agrees_with_its_interval() -> None:
    rng = np.random.default_rng(6)
    for _ in range(100):
        x, y = 100 * np.exp(0.05 * rng.standard_normal((2, 12)))
        judgement = judge_sequential(x, 1.06 * y, nature="neutral", max_rounds=20, same_within=0)
        assert (judgement.verdict == "higher") == (judgement.p_value <= 0.05 and judgement.ratio > 1)


def test_sequential_arguments() -> None:
    with pytest.raises(InputError, match="max_rounds"):
        judge_sequential([1, 2], [1, 2], nature="neutral", max_rounds=4)
    with pytest.raises(InputError, match="comparisons"):
        judge_sequential([1, 2], [1, 2], nature="neutral", max_rounds=10, comparisons=0)


def judged(p: float) -> Judgement:
    return Judgement(1.0, 1.1, 10, 1.1, 1.01, 1.2, p, None, "faster", 0, 0.02, 0.05)


def test_q_values_are_benjamini_and_hochbergs() -> None:
    p = [0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.9]
    held = control_false_discovery([judged(one) for one in p])
    assert [one.q_value for one in held] == pytest.approx(list(stats.false_discovery_control(p)))
    assert [one.verdict for one in held[:3]] == ["faster", "faster", "undecided"]
    assert held[2].rounds_to_decide is not None and held[2].rounds_to_decide > 0


def test_judgements_without_p_do_not_count() -> None:
    undefined = judge([1.0], [1.0], nature="neutral")
    held = control_false_discovery([undefined, judged(0.04), undefined])
    assert [one.q_value for one in held] == [None, 0.04, None]
    assert control_false_discovery([]) == []


def test_a_clear_difference_survives_a_hundred_metrics() -> None:
    rng = np.random.default_rng(8)
    alike = [judge(*np.exp(0.03 * rng.standard_normal((2, 10))), nature="neutral") for _ in range(99)]
    x, y = np.exp(0.02 * rng.standard_normal((2, 10)))
    held = control_false_discovery([judge(x, 1.2 * y, nature="neutral"), *alike])
    assert held[0].verdict == "higher" and held[0].q_value is not None
    assert not math.isnan(held[0].q_value)
