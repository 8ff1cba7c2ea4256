"""Which of many keys make a difference: the design, what trials say, and the command."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iolab.domain.attribute.design import mixtures
from iolab.domain.attribute.judgement import Attribution, attribute
from iolab.domain.attribute.margin import sets_that_count
from iolab.domain.bisect.outliers import weights_of
from iolab.files.experiment import loads
from iolab.presentation.table.attribution import lines
from iolab.studies.run.attribute import ROUNDS_WITH_MODES, AttributionAnswer, AttributionQuestion, mixed
from iolab.studies.run.plan import trials
from support.command_line import CommandLine

Truth = Callable[[np.ndarray], np.ndarray]
ROWS = [(a, b) for _ in range(16) for a in (False, True) for b in (False, True)]
BLOCKS = [place // 4 for place in range(64)]


@pytest.mark.parametrize("keys", [2, 3, 7, 8, 20])
def test_the_design_is_balanced_and_of_resolution_four(keys: int) -> None:
    rows = mixtures(keys)
    assert rows[0] == (True,) * keys and rows[1] == (False,) * keys
    signs = np.where(np.asarray(rows), 1, -1)
    assert not signs.sum(axis=0).any()
    assert (signs.T @ signs == len(rows) * np.eye(keys, dtype=int)).all()
    pairs = [signs[:, a] * signs[:, b] for a in range(keys) for b in range(a)]
    assert not (np.asarray(pairs) @ signs).any()


def measured(truth: Truth, *, keys: int = 12, rounds: int = 4, seed: int = 1, noise: float = 1.0) -> Attribution:
    random = np.random.default_rng(seed)
    rows = mixtures(keys)
    sides, values, blocks = [], [], []
    for number in range(rounds):
        sides += rows
        drift = 3.0 * random.normal()
        values += list(truth(np.asarray(rows, dtype=float)) + drift + noise * random.normal(size=len(rows)))
        blocks += [number] * len(rows)
    return attribute(sides, values, blocks)


def test_the_keys_that_matter_are_named_with_their_effects() -> None:
    def truth(x: np.ndarray) -> np.ndarray:
        return 100 + 2 * x[:, 3] - 1.5 * x[:, 7]

    three, seven = measured(truth).effects
    assert three.low <= 2 <= three.high and seven.low <= -1.5 <= seven.high
    assert three.size == pytest.approx(2, abs=0.6)
    # One draw of the noise may say a little less, where another key happens to fit it.
    found = [measured(truth, seed=seed) for seed in range(1, 7)]
    assert {each.keys for each in found} == {(3, 7)}
    assert np.median([each.probability for each in found]) >= 0.95


def test_only_heavy_tails_take_weight_from_far_values() -> None:
    random = np.random.default_rng(1)
    assert not np.ptp(weights_of(random.normal(size=64)))
    far = weights_of(random.standard_t(1.5, size=64))
    assert far.mean() == pytest.approx(1.0) and far.min() < 0.25
    assert not np.ptp(weights_of(np.zeros(9)))


def searched_among_modes(seed: int, apart: float) -> AttributionAnswer:
    """Until it is decided: five keys, values near 58, 2 or 13 by chance, the first more seldom by `apart` if key 0 is
    set."""
    random = np.random.default_rng([5, seed])
    rows = mixtures(5)
    sides, values = [], []
    asked = AttributionQuestion("good", "bad", dict.fromkeys("abcde", (1, 2)), {})
    for number in range(1, 9):
        is_high = random.random(len(rows)) < np.where(np.asarray(rows)[:, 0], 0.42 - apart / 2, 0.42 + apart / 2)
        is_low = random.random(len(rows)) < 0.35
        high, low = random.normal(58, 0.7, len(rows)), random.normal(2.3, 0.1, len(rows))
        sides += rows
        values += list(np.where(is_high, high, np.where(is_low, low, 13 + random.exponential(6, len(rows)))))
        blocks = [place // len(rows) for place in range(len(values))]
        found = attribute(sides, values, blocks, margin=0.6)
        answer = AttributionAnswer(asked, "w", "iops", 30.0, 0.02, number, 0.95, found)
        if answer.decided:
            break
    return answer


@pytest.mark.parametrize("apart", [0.0, 0.24])
def test_modes_that_come_by_chance_make_no_answer_sure(apart: float) -> None:
    mean_of_others = 0.35 * 2.3 + 0.65 * 19
    truth = -apart * (58 - mean_of_others)
    decided = [answer for seed in range(60) if (answer := searched_among_modes(seed, apart)).decided]
    assert all(answer.rounds >= ROUNDS_WITH_MODES and answer.attribution.modes for answer in decided)
    false = [
        answer
        for answer in decided
        if set(answer.attribution.keys) - ({0} if truth else set())
        or any(not one.low <= truth <= one.high for one in answer.attribution.effects if one.keys == (0,))
        or (not answer.named and abs(truth) > answer.attribution.resolution)
    ]
    assert decided and len(false) <= 0.05 * len(decided)
    nothing = [answer for answer in decided if not answer.named]
    assert nothing and all(answer.attribution.resolution > 10 * answer.margin for answer in nothing)
    answer, *_, modes, _ = lines(nothing[0])
    assert "which is what these trials can show" in answer and "values may have modes" in modes


def test_two_keys_that_act_together_only() -> None:
    found = measured(lambda x: 2.5 * x[:, 1] * x[:, 9])
    assert found.keys == (1, 9)
    together = found.effects[2]
    assert together.keys == (1, 9) and together.probability >= 0.9


def test_nothing_is_named_where_nothing_matters() -> None:
    answers = [measured(lambda x: 0 * x[:, 0], seed=seed) for seed in range(10)]
    assert sum(one.keys == () for one in answers) >= 9


def test_outliers_name_no_key_and_hide_none() -> None:
    def truth(x: np.ndarray) -> np.ndarray:
        values = 100 + 3 * x[:, 5]
        values[4] += 500
        return np.asarray(values)

    assert measured(truth).keys == (5,)


def test_a_metric_without_noise() -> None:
    assert measured(lambda x: 10 + x[:, 2], rounds=1, noise=0.0).keys == (2,)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31), st.floats(1e-6, 1e9), st.floats(-1e3, 1e3))
def test_unit_and_zero_do_not_matter(seed: int, scale: float, shift: float) -> None:
    random = np.random.default_rng(seed)
    rows = mixtures(6)
    values = np.asarray(rows)[:, 1] * 2.0 + random.normal(size=len(rows))
    blocks = [0] * len(rows)
    ours, theirs = attribute(rows, list(values), blocks), attribute(rows, list((values + shift) * scale), blocks)
    assert ours.keys == theirs.keys
    assert theirs.inclusion == pytest.approx(ours.inclusion, rel=1e-3, abs=1e-5)


def test_intervals_hold_the_mean_over_seeds_if_each_trial_has_its_own() -> None:
    rows = mixtures(3)
    held = []
    for number in range(40):
        random = np.random.default_rng(number)
        values = [random.normal() + row[1] * (10 + random.normal()) for row in rows for _ in range(2)]
        found = attribute([row for row in rows for _ in range(2)], values, [0] * len(values))
        held += [one.low <= 10 <= one.high for one in found.effects if one.keys == (1,)]
    assert len(held) == 40 and sum(held) >= 36


def test_the_trials_of_mixtures_have_seeds_of_their_own() -> None:
    experiment = mixed(loads(EXPERIMENT, "keys.toml"))
    seeds = [trial.seed for trial in trials(experiment, 2, seed=1)]
    assert len(set(seeds)) == len(seeds)
    shared = [trial.seed for trial in trials(loads(EXPERIMENT, "keys.toml"), 2, seed=1)]
    assert len(set(shared)) == 2
    asked = mixed(loads('draws = "shared"' + EXPERIMENT, "keys.toml"))
    assert len({trial.seed for trial in trials(asked, 1, seed=1)}) == 1


EXPERIMENT = """
title = "Which key?"
machine = "model:quad-7200"
seed = 1

[workloads.reads]
pattern = "sequential"
direct = false
file_size = "16MiB"
duration = "200ms"

[settings.before]
kernel = "2.6.16"
read_ahead_kb = 128
nr_requests = 128
workload = { block_size = "4KiB" }

[settings.after]
kernel = "2.6.16"
read_ahead_kb = 8
nr_requests = 64
workload = { block_size = "8KiB" }

[compare]
metrics = ["rate_bytes_per_s"]
"""


def test_the_command_names_the_key_on_a_simulated_machine(iolab: CommandLine) -> None:
    iolab.write("keys.toml", EXPERIMENT)
    found = iolab("attribute", "keys.toml", "--out", "which", "--json").json()
    assert found["decided"] is True
    assert "read_ahead_kb" in found["keys"] and "nr_requests" not in found["keys"]
    assert found["effects"][0]["size"] < 0
    shown = iolab("attribute", "which").text
    assert "read_ahead_kb, 128 -> 8" in shown
    assert "3 keys" in shown


def test_effects_that_are_too_small_to_count_are_not_named() -> None:
    noise = np.random.default_rng(3).normal(0, 0.01, 64)
    values = [1000 - 2 * row[0] - 40 * row[1] + float(one) for row, one in zip(ROWS, noise, strict=True)]
    found = attribute(ROWS, values, BLOCKS, margin=10.0)
    asked = AttributionQuestion("good", "bad", {"jitter": (1, 2), "real": (1, 2)}, {})
    said = AttributionAnswer(asked, "w", "iops", 1000.0, 0.01, 8, 0.95, found)
    assert attribute(ROWS, values, BLOCKS).keys == (0, 1) and said.named == ["real"]
    answer, jitter, real, *_ = lines(said)
    assert "real makes the difference" in answer and "too small to count" in jitter and "too small" not in real
    nothing = attribute(ROWS, [1000 - 2 * row[0] for row in ROWS], BLOCKS, margin=10.0)
    (answer, *_) = lines(AttributionAnswer(asked, "w", "iops", 1000.0, 0.01, 8, 0.95, nothing))
    assert "no key makes a difference of more than 1.0% (same_within)" in answer


def test_effects_near_the_margin_count_by_their_probability() -> None:
    """One key's effect is 1 to 3, and 2 is the margin; the other's is 8. Standard errors are a quarter."""
    stated, right = [], []
    for seed in range(200):
        random = np.random.default_rng([39, seed])
        near = random.uniform(1, 3)
        values = [100 + near * row[0] - 8 * row[1] + random.normal() for row in ROWS]
        found = attribute(ROWS, values, BLOCKS, margin=2.0)
        stated.append(found.probability)
        right.append(found.keys == ((0, 1) if near > 2 else (1,)))
    assert np.mean(right) == pytest.approx(np.mean(stated), abs=0.08)
    sure = np.asarray(stated) >= 0.95
    assert 100 <= sure.sum() <= 160 and np.mean(np.asarray(right)[sure]) >= 0.95


def test_two_keys_whose_interaction_alone_counts() -> None:
    shares = sets_that_count([(0,), (1,), (0, 1)], [0.0, 0.5, 0.8])
    assert shares == pytest.approx({(): 0.1, (1,): 0.1, (0, 1): 0.8})


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        (EXPERIMENT + "[settings.third]\n", [], ("3 settings; expected two",)),
        (EXPERIMENT.replace("= 8\n", "= 128\n").replace("8KiB", "4KiB"), [], ("differ in 1 key;",)),
        (EXPERIMENT, ["--confidence", "2"], ("--confidence",)),
        (EXPERIMENT, ["--most", "0"], ("--most",)),
        (EXPERIMENT, ["--machine", "hots"], ("--machine",)),
    ],
)
def test_wrong_input_is_one_clear_line(iolab: CommandLine, text: str, arguments: list[str], words: tuple[str]) -> None:
    iolab.write("keys.toml", text)
    iolab("attribute", "keys.toml", *arguments, status=None).assert_one_clear_line(2, *words)
