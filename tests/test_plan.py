"""Plans: randomised complete blocks, the same again for the same seed."""

from collections import Counter
from itertools import groupby

from hypothesis import given, settings
from hypothesis import strategies as st
from iolab.domain.trial import Trial
from iolab.files.experiment import loads
from iolab.studies.run import plan

EXPERIMENT = loads(
    """
    [target]
    kind = "directory"
    [workloads.reads]
    duration = "1s"
    queue_depth = [1, 8]
    [workloads.writes]
    amount = "1MiB"
    read_percent = 0
    [settings.a]
    [settings.b]
    nomerges = 2
    [settings.c]
    workload = { block_size = "8KiB" }
    """,
    "x.toml",
)
PAIRS = {(workload, setting) for workload in EXPERIMENT.workloads for setting in EXPERIMENT.settings}
SEEDS = st.integers(0, 2**63 - 1)


@settings(deadline=None)
@given(SEEDS, st.integers(1, 5), st.integers(0, 1000))
def test_every_round_has_each_workload_under_each_setting_once(seed: int, rounds: int, first: int) -> None:
    trials = plan.trials(EXPERIMENT, rounds, seed=seed, first_round=first)
    blocks = {number: list(block) for number, block in groupby(trials, lambda trial: trial.round)}
    assert list(blocks) == list(range(first, first + rounds))
    for block in blocks.values():
        assert {(trial.workload, trial.setting) for trial in block} == PAIRS
        assert [trial.position for trial in block] == list(range(len(PAIRS)))
    numbers = [trial.trial for trial in trials]
    assert numbers == list(range(first * len(PAIRS), (first + rounds) * len(PAIRS)))


@settings(deadline=None)
@given(SEEDS)
def test_a_plan_is_derived_again(seed: int) -> None:
    trials = plan.trials(EXPERIMENT, 3, seed=seed)
    assert trials == plan.trials(EXPERIMENT, 3, seed=seed)
    assert trials[len(PAIRS) :] == plan.trials(EXPERIMENT, 2, seed=seed, first_round=1)


@settings(deadline=None)
@given(SEEDS)
def test_settings_of_a_round_share_a_workloads_seed(seed: int) -> None:
    trials = plan.trials(EXPERIMENT, 2, seed=seed)
    by_workload = {(trial.round, trial.workload): set[int]() for trial in trials}
    for trial in trials:
        by_workload[trial.round, trial.workload].add(trial.seed)
    assert all(len(seeds) == 1 for seeds in by_workload.values())
    assert len(set.union(*by_workload.values())) == len(by_workload)


def test_offsets_are_paired_across_settings() -> None:
    first = {trial.setting: trial for trial in plan.trials(EXPERIMENT, 1, seed=7) if trial.workload == "writes"}
    assert first["a"].phases == first["b"].phases
    assert first["a"].controls != first["b"].controls
    assert first["c"].phases[-1].load["groups"][0]["jobs"][0]["blocks"] == [{"bytes": 8192, "weight": 1.0}]


def test_the_order_is_drawn_anew_each_round_and_favours_nobody() -> None:
    rounds = 900
    trials = plan.trials(EXPERIMENT, rounds, seed=1)
    first = Counter((trial.workload, trial.setting) for trial in trials if trial.position == 0)
    assert set(first) == PAIRS
    expected = rounds / len(PAIRS)
    # 9 pairs, 900 rounds: four standard deviations either way.
    assert all(abs(count - expected) < 4 * expected**0.5 for count in first.values())


def test_a_trial_is_self_contained_json() -> None:
    for trial in plan.trials(EXPERIMENT, 1, seed=3):
        assert Trial.model_validate_json(trial.model_dump_json()) == trial
