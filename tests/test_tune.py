"""The search for the best setting: its space, its estimates, its choices, its answer, and the command."""

import math
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.base.toml import parse, write
from iolab.domain.tune.estimate import EncodedPoints, Estimate, _heredity, _together
from iolab.domain.tune.keys import Reduction
from iolab.domain.tune.search import Block, Search
from iolab.domain.tune.space import Parameter, Point, Requirement, Space, flat, nested
from iolab.domain.tune.tuning import Budget
from iolab.domain.tune.untried import POINTS_LEAST, VALUES_MAX, untried
from iolab.files.experiment import load, loads
from iolab.files.experiment.grid import grid
from iolab.studies.run.sweep_file import cells_of, source_of
from iolab.studies.tuner.commands import commands
from iolab.studies.tuner.directory import TuneDirectory
from iolab.studies.tuner.proposer import proposer
from support.command_line import CommandLine, wait_until

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
BASE = """
title = "What is best?"
machine = "model:quad-7200"
seed = 1

[workloads.reads]
pattern = "sequential"
direct = false
file_size = "16MiB"
duration = "100ms"
"""
TUNE = """
[settings.short]
read_ahead_kb = 8

[tune]
objectives = ["rate_bytes_per_s"]
first = "model:quad-7200"
trials = 14
per_round = 5
confirm = 5

[tune.space]
read_ahead_kb = { low = 8, high = 512, log = true }
nr_requests = [64, 128]
"""


def ordered(key: str, count: int) -> Parameter:
    return Parameter(key, tuple(range(count)), ordered=True, sizes=tuple(map(float, range(count))))


SPACE = Space((ordered("a", 8), ordered("b", 6), ordered("c", 5), Parameter("d", ("x", "y", "z"), ordered=False)))


def level(point: Point) -> float:
    """The best is a = 6, d = z; b and c do nothing. The default has a = 2, d = x."""
    return -0.5 * ((point.get("a", 2) - 6) / 7) ** 2 + 0.1 * (point.get("d", 0) == 2)


def searched(
    *, truth: bool = True, seed: int = 1, trials: int = 72, objectives: int = 1, lost: Sequence[int] = ()
) -> Search:
    random = np.random.default_rng(seed)
    budget = Budget(trials=trials, key_rounds=4, confirm=8)
    search = Search(SPACE, proposer(SPACE, objectives), budget, objectives=objectives, seed=seed)
    while (block := search.next()) is not None and block.stage != "confirm":
        drift = float(random.normal())
        arms = [
            None
            if point.get("b") in lost
            else tuple(
                drift + 0.03 * float(random.normal()) + truth * (level(point) if not number else -level(point))
                for number in range(objectives)
            )
            for point in ({}, *block.points)
        ]
        search.measured(block, arms, [1.0] * len(arms))
    return search


@pytest.mark.long
def test_the_best_candidate_is_found_and_the_keys_that_do_nothing_are_left_out() -> None:
    with_nothing = 0
    for seed in range(8):
        search = searched(seed=seed)
        winner, *smaller = search.finalists()
        answer = smaller[0] if smaller else winner
        assert level(winner) > 0.07
        assert search.trials_used <= 72
        assert level(answer) >= 0.95 * level(winner) - 0.01
        assert "a" in answer
        with_nothing += bool({"b", "c"} & set(answer))
    assert with_nothing <= 4  # a quarter of searches, in the long run: 16 of 60


def test_promising_candidates_are_measured_again_and_others_are_not() -> None:
    search = searched(seed=2)
    times, levels = np.asarray(search.repeats()), np.asarray([level(point) for point in search.points])
    assert times.max() >= 2
    assert levels[times > 1].mean() > levels[times == 1].mean()
    assert times[levels < 0].max() == 1


def test_what_cannot_be_measured_is_never_asked_for_again() -> None:
    search = searched(lost=[3], seed=3)
    assert all(search.points[place]["b"] == 3 for place in search.refused)
    assert all(times <= 1 for place, times in enumerate(search.repeats()) if place in search.refused)
    assert search.winners()[0]["b"] != 3


def test_two_objectives_that_disagree_give_a_front() -> None:
    search = searched(objectives=2, seed=4, trials=60)
    front = search.winners()
    assert len(front) >= 2
    levels = [level(point) for point in front]
    assert max(levels) > 0 > min(levels)


def test_a_limit_keeps_candidates_out() -> None:
    search = Search(SPACE, proposer(SPACE), Budget(trials=60, key_rounds=0), limits=(0.05,), seed=5)
    random = np.random.default_rng(5)
    while (block := search.next()) is not None and block.stage == "search":
        arms = [
            (level(point) + 0.02 * float(random.normal()), -0.4 * (point.get("d") == 2) + 0.02 * float(random.normal()))
            for point in ({}, *block.points)
        ]
        search.measured(block, arms)
    assert search.winners()[0]["d"] != 2


def test_an_estimate_tells_of_points_never_measured_and_knows_how_little_it_knows() -> None:
    random = np.random.default_rng(1)
    points = [SPACE.point({"a": a, "b": b, "c": 0, "d": a % 3}) for a in range(8) for b in range(0, 6, 2)]
    trials = []
    for block in range(3):
        drift = float(random.normal())
        for place, point in [(-1, {}), *enumerate(points)]:
            trials.append((block, place, drift + level(point) + 0.05 * float(random.normal())))
    estimate = Estimate(SPACE, points, trials)
    new = [SPACE.point({"a": 6, "b": 1, "c": 4, "d": 2}), SPACE.point({"a": 0, "b": 3, "c": 2, "d": 1})]
    means, errors = estimate.gains(new)
    truths = [level(point) - level({}) for point in new]
    assert means == pytest.approx(truths, abs=0.12)
    assert (np.abs(means - truths) < 4 * errors).all()
    assert errors.max() < 0.3  # no candidate had another `c`, so its effect is as likely to be large as those of others


@pytest.mark.parametrize("jitter", [0.0, 1e-16, 1e-12])
def test_values_that_nothing_changes_give_no_gains(jitter: float) -> None:
    """As a simulated machine gives them under keys that it does not act on."""
    points = [SPACE.point({"a": a, "b": b, "c": 0, "d": 0}) for a in range(4) for b in range(3)]
    trials = [(block, place, 11.5 + jitter * place) for block in range(3) for place in range(-1, len(points))]
    start = None
    for count in (5, 20, len(trials)):
        estimate = Estimate(SPACE, points, trials[:count], start)
        start = estimate.variances
        means, errors = estimate.gains(points)
        assert np.abs(means).max() < 1e-8 and np.isfinite(errors).all()


@pytest.mark.filterwarnings("error")
def test_as_few_trials_as_fixed_effects_tell_of_no_variance() -> None:
    """The default and a candidate, once each: the two levels take up both values."""
    points: list[Point] = [{"a": 1}, {"a": 0}]
    for seed in range(40):
        level = 9 + np.random.default_rng(seed).normal(0, 1e-3, 2)
        trials = [(0, -1, float(level[0])), (0, 1, float(level[1]))]
        gain, error = Estimate(SPACE, points, trials).gains([points[1]])
        assert gain[0] == pytest.approx(level[1] - level[0], abs=1e-6) and np.isfinite(error[0])


def test_a_difference_of_two_candidates_is_known_better_than_what_each_gains() -> None:
    random = np.random.default_rng(4)
    points = [SPACE.point({"a": a, "b": b, "c": 0, "d": a % 3}) for a in range(8) for b in range(0, 6, 2)]
    values = [level(point) + 0.05 * float(random.normal()) for point in points]
    trials = [(0, -1, level({})), *((0, place, value) for place, value in enumerate(values))]
    estimate = Estimate(SPACE, points, trials)
    one, other = SPACE.point({"a": 6, "b": 1, "c": 0, "d": 0}), SPACE.point({"a": 1, "b": 1, "c": 0, "d": 0})
    (mean, itself), (error, none) = estimate.differences([one, other], other)
    gains, errors = estimate.gains([one, other])
    assert mean == pytest.approx(gains[0] - gains[1])
    assert abs(mean - (level(one) - level(other))) < 4 * error
    assert error < errors[0]
    assert (itself, none) == pytest.approx((0, 0), abs=1e-6)


def test_keys_that_matter_are_the_likelier_ones_to_matter_together() -> None:
    keys = np.ones((3, 1, 2))
    keys[0, 0, 1] = 0.0  # the first key's values differ between the two columns
    assert _together(_heredity(np.ones(3)), keys) == pytest.approx(np.asarray([[1, 1 / 3]]))
    assert _together(_heredity(np.asarray([1.0, 1.0, 0.0])), keys)[0, 1] < 0.25
    assert _together(_heredity(np.asarray([0.0, 1.0, 1.0])), keys)[0, 1] > 0.6


def test_pairs_explain_nothing_that_keys_do_alone() -> None:
    space = Space((ordered("a", 8), ordered("b", 6), Parameter("d", ("x", "y", "z"), ordered=False)))
    points: list[Point] = [{"a": a, "b": b, "d": d} for a in range(8) for b in range(6) for d in range(3)]
    encoded = EncodedPoints(space, points)
    keys = encoded.alike(encoded)
    assert np.abs(keys.sum(axis=1)).max() < 1e-9
    assert encoded.alike_itself() == pytest.approx(np.diagonal(keys, axis1=1, axis2=2))
    one_key_alone = np.array([float(point["a"]) for point in points])
    assert np.abs(_together(_heredity(np.ones(3)), keys) @ one_key_alone).max() < 1e-9
    assert np.abs(EncodedPoints(space, [{"a": 1}]).alike(encoded)[1]).max() == 0  # what is out of force has no effect


def test_keys_lend_one_another_their_size() -> None:
    random = np.random.default_rng(2)
    space = Space(tuple(ordered(name, 6) for name in "abcdefgh"))
    points = [{one.key: int(random.integers(6)) for one in space.parameters} for _ in range(30)]
    trials = [
        (place // 5, place, sum(-0.15 * ((at - 3) / 5) ** 2 for at in point.values()) + 0.05 * float(random.normal()))
        for place, point in enumerate(points)
    ]
    alone, together = (
        Estimate(space, points, trials, prior_freedom=freedom).variances.terms[:8] for freedom in (0.0, 1.5)
    )
    assert alone.min() < 0.01 * alone.mean()
    assert together.min() > 0.1 * together.mean()


def test_values_that_have_nothing_to_do_with_their_neighbours_are_not_smoothed_away() -> None:
    space = Space((ordered("a", 8), ordered("b", 8)))
    truth = {"a": [0.0, -0.2, 0.3, -0.1, -0.2, 0.0, -0.2, 0.1], "b": [-0.2 * ((at - 3) / 7) ** 2 for at in range(8)]}
    random = np.random.default_rng(4)
    points = [{"a": a, "b": int(random.integers(8))} for a in range(8) for _ in range(5)]
    trials = [
        (place // 4, place, truth["a"][point["a"]] + truth["b"][point["b"]] + 0.05 * float(random.normal()))
        for place, point in enumerate(points)
    ]
    estimate = Estimate(space, points, trials)
    smooth, unrelated = np.split(estimate.variances.terms, 2)
    assert unrelated[0] > smooth[0]  # of the rugged key
    assert unrelated[1] < 0.1 * unrelated[0]  # of the other
    gains, _ = estimate.gains([{"a": at, "b": 3} for at in range(8)])
    errors = gains - gains.mean() - (np.asarray(truth["a"]) - np.mean(truth["a"]))
    assert np.abs(errors).max() < 0.05


def test_a_pair_that_matters_stands_out_among_all_pairs() -> None:
    space = Space(tuple(ordered(name, 6) for name in "abcdefgh"))
    for seed in range(3):
        random = np.random.default_rng(seed)
        points = [{one.key: int(random.integers(6)) for one in space.parameters} for _ in range(50)]
        trials = [
            (place // 5, place, (point["b"] - 2.5) * (point["e"] - 2.5) / 10 + 0.05 * float(random.normal()))
            for place, point in enumerate(points)
        ]
        pairs = Estimate(space, points, trials).variances.pairs
        assert pairs == pytest.approx(pairs.T) and not pairs.diagonal().any()
        others = [pairs[one, other] for one in range(8) for other in range(one) if (one, other) != (4, 1)]
        assert pairs[4, 1] > 10 * max(others)


def test_the_smaller_setting_keeps_what_it_is_not_sure_to_do_without() -> None:
    """The noise shows no difference between two keys that matter alike: neither is left out, whatever the draw."""
    space = Space(tuple(ordered(key, 2) for key in "abcd"))
    for seed in range(8):
        random = np.random.default_rng(seed)
        reduction = Reduction(space, dict.fromkeys("abcd", 1))
        for _ in range(2):
            values = [0.1 * (point.get("a", 0) + point.get("b", 0)) for point in ({}, *reduction.points)]
            reduction.measured([value + 0.05 * float(random.normal()) for value in values])
        assert {"a", "b"} <= set(reduction.minimal or reduction.winner)


def test_the_smaller_setting_loses_little_of_a_large_gain() -> None:
    """A key of 3 % beside one of a factor of three is less than 5 % of the gain, and stays."""
    reduction = Reduction(
        Space((ordered("large", 2), ordered("small", 2), ordered("idle", 2))), {"large": 1, "small": 1, "idle": 1}
    )
    for _ in range(2):
        points = ({}, *reduction.points)
        reduction.measured([1.1 * point.get("large", 0) + 0.03 * point.get("small", 0) for point in points])
    assert set(reduction.minimal or {}) == {"large", "small"}


def test_a_key_out_of_force_goes_with_the_key_that_it_depends_on() -> None:
    idle = Parameter("idle", (0, 8), ordered=False, when={"scheduler": frozenset({1})})
    space = Space((Parameter("scheduler", ("none", "bfq"), ordered=False), idle, ordered("n", 4)))
    assert space.point({"scheduler": 0, "idle": 1, "n": 2}) == {"scheduler": 0, "n": 2}
    assert space.factors() == [("scheduler", "idle"), ("n",)]
    reduction = Reduction(space, {"scheduler": 1, "idle": 0, "n": 3})
    assert {"scheduler": 1, "idle": 0} in reduction.points and {"n": 3} in reduction.points
    assert [one.key for one in space.without(["scheduler"]).parameters] == ["n"]
    known = [({"scheduler": 1, "idle": 1, "n": 1}, (0.1,)), ({"scheduler": 0, "n": 1}, (0.0,))]
    assert all(("idle" in point) == (point["scheduler"] == 1) for point in proposer(space)(known, 12, 1))


def test_requirements_hold_in_all_that_is_proposed() -> None:
    space = Space(
        (ordered("low", 6), ordered("high", 6)), (Requirement("low", "<", "high"), Requirement("low", ">=", 1.0))
    )
    points = proposer(space)([], 20, 3)
    assert len(points) == 20
    assert all(1 <= point["low"] < point["high"] for point in points)


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ((16, 100, None, True), (16, 32, 64, 100)),
        (("4MiB", "16MiB", None, True), ("4MiB", "8MiB", "16MiB")),
        (("10ms", "30ms", "10ms", False), ("10ms", "20ms", "30ms")),
        ((0, 4, 2, False), (0, 2, 4)),
        ((4, 100, None, False), (*range(4, 100, 8), 100)),
    ],
)
def test_a_range_is_a_grid(given: tuple[object, object, object, bool], values: tuple[object, ...]) -> None:
    low, high, step, log = given
    assert grid(low, high, step, log=log)[0] == values


@pytest.mark.parametrize(
    ("tune", "said"),
    [
        ("", "4: tune.space: no key to try"),
        ("[tune.space]\nnr_request = [1, 2]", "6: tune.space.nr_request: unknown setting; did you mean nr_requests?"),
        ("[tune.space]\nnr_requests = [2, 64]", "nr_requests is 2, expected a whole number from 4"),
        ("[tune.space]\nnr_requests = { low = 64, high = 8 }", "low is 64, which is not below high, 8"),
        ("[tune.space]\ndirty_expire = { low = 4 }", "4 given; expected a duration"),
        ("[tune.space]\nmount_options = {}", "no low and high, and no range of its own"),
        ('[tune.space]\n"scheduler.slice_idle" = [0, 8]', "name it: when"),
        ("[tune.space]\nnr_requests = {}\nread_ahead_kb = { when = { nr_request = 64 } }", "did you mean nr_requests"),
        ("[tune.space]\nnr_requests = [64, 64]", "the same value twice"),
        ("trails = 10\n[tune.space]\nnr_requests = {}", "tune.trails: unknown option; did you mean trials?"),
        ('objectives = ["queue_depth"]\n[tune.space]\nnr_requests = {}', "objectives"),
        ('no_worse = { latency_ns_p99 = "much" }\n[tune.space]\nnr_requests = {}', "expected a share"),
        ('require = ["a < b"]\n[tune.space]\nnr_requests = {}', "a: unknown range"),
        ('first = "host"\n[tune.space]\nnr_requests = {}', "expected a simulated machine"),
        ('[tune.space]\n"workload.queue_dept" = [1, 2]', "queue_dept"),
    ],
)
def test_a_mistake_is_told_on_its_line(tune: str, said: str) -> None:
    text = f"[workloads.w]\nduration = '1s'\n\n[tune]\n{tune}\n"
    with pytest.raises(InputError) as raised:
        loads(text, "t.toml")
    assert said in str(raised.value)
    assert str(raised.value).startswith("t.toml:")


def test_ranges_of_the_registry_and_a_scheduler_with_its_keys() -> None:
    text = (
        "[workloads.w]\nduration = '1s'\n[tune.space]\nscheduler = {}\nnr_requests = {}\n"
        '"scheduler.slice_idle" = { values = ["0", "8ms"], when = { scheduler = "bfq" } }\n'
        '"workload.queue_depth" = [1, 8]\n'
    )
    tuning = loads(text, "t.toml").tuning
    assert tuning is not None
    space = tuning.space
    assert [one.key for one in space.parameters] == [
        "scheduler.name",
        "nr_requests",
        "scheduler.slice_idle",
        "workload.queue_depth",
    ]
    values = space.values(space.point({"scheduler.name": 3, "nr_requests": 0, "scheduler.slice_idle": 1}))
    assert nested(values) == {"scheduler": {"name": "bfq", "slice_idle": "8ms"}, "nr_requests": 16}
    assert flat(nested(values)) == values


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("tune/*.toml")), ids=lambda path: path.stem)
def test_the_experiments_of_the_tuner_are_valid(path: Path) -> None:
    assert load(path).tuning is not None


def test_the_demonstration_is_one_sweep_of_valid_experiments() -> None:
    file = EXPERIMENTS / "schedulers" / "sweep.toml"
    cells, seed = cells_of(source_of(file))
    assert seed == 1
    assert {one.source.path for one in cells} == {*file.parent.rglob("*.toml")} - {file}
    for path in {one.source.path for one in cells}:
        assert list(load(path).settings) == ["none", "mq-deadline", "kyber", "bfq"]


def test_a_written_table_is_read_back() -> None:
    table = {
        "title": 'a "b"\\\x7f',
        "list": [1, 2.5, True, {"a": [1], "b c": {}}],
        "empty": {},
        "target": {"kind": "scratch", "deep.er": {"x": 1e22}},
    }
    assert parse(write(table), "x").values == table


def test_commands_say_what_the_controls_write() -> None:
    values = {"scheduler.name": "bfq", "scheduler.slice_idle": "0", "nr_requests": 64, "dirty_ratio": 10}
    told = commands("winner", {**values, "mount_options": "noatime"}, "sda")
    assert told.shell == (
        "echo bfq > /sys/block/sda/queue/scheduler",
        "echo 0 > /sys/block/sda/queue/iosched/slice_idle",
        "echo 64 > /sys/block/sda/queue/nr_requests",
        "echo 10 > /proc/sys/vm/dirty_ratio",
    )
    assert told.udev is not None and told.udev.endswith(
        'KERNEL=="sda", ATTR{queue/scheduler}="bfq", ATTR{queue/iosched/slice_idle}="0", ATTR{queue/nr_requests}="64"'
    )
    assert told.sysctl == ("vm.dirty_ratio = 10",)
    assert told.tuned is not None and "/sys/block/sda/queue/nr_requests=64" in told.tuned
    assert told.by_hand == ('mount_options = "noatime"',)
    assert parse(told.toml, "x").values["settings"]["winner"]["scheduler"] == {"name": "bfq", "slice_idle": "0"}


def test_the_command_finds_the_setting_confirms_it_and_goes_on_after_a_kill(iolab: CommandLine) -> None:
    iolab.write("tune.toml", BASE + TUNE)
    with iolab.start("tune", "tune.toml", "--out", "found") as process:
        wait_until(lambda: len(list((iolab.cwd / "found" / "search").glob("0*"))) >= 1, "a survivor", 60)
        os.killpg(process.pid, signal.SIGKILL)
    before = {path: path.read_bytes() for path in (iolab.cwd / "found").rglob("*.parquet") if "trials" in path.parts}
    found = iolab("tune", "--resume", "found", "--json").json()
    assert all(path.read_bytes() == content for path, content in before.items())
    chosen = found["finalists"][found["chosen"][0]]
    assert chosen["objectives"]["rate_bytes_per_s"]["verdict"] == "faster"
    assert chosen["setting"]["read_ahead_kb"] > 16
    assert found["left_out_on_model"] == ["nr_requests"]
    shown = iolab("tune", "found").text
    assert "On fresh rounds, against short:" in shown
    assert "echo" in shown and "read_ahead_kb" in shown
    assert "faster" in iolab("show", "found/confirm").text
    iolab("run", "tune.toml", status=None).assert_one_clear_line(2, "iolab tune tune.toml")


def test_what_is_shown_of_a_search_that_is_not_over(iolab: CommandLine) -> None:
    iolab.write("plain.toml", BASE)
    iolab("tune", "plain.toml", status=None).assert_one_clear_line(2, "give it a table [tune]")
    iolab("tune", ".", status=None).assert_one_clear_line(2, "is no tuner's directory")


def test_a_metric_that_the_default_has_no_value_of_is_one_line_and_no_answer(iolab: CommandLine) -> None:
    asked = TUNE.replace('first = "model:quad-7200"', "").replace("rate_bytes_per_s", "latency_ns_p99")
    iolab.write("tune.toml", BASE.replace("100ms", "20ms") + asked)
    for again in (("tune.toml", "--out", "found"), ("--resume", "found")):
        outcome = iolab("tune", *again, status=None)
        outcome.assert_one_clear_line(2, "latency_ns_p99 has no value in a trial of the default: of fewer than 1,000")
    assert len(list((iolab.cwd / "found" / "search").iterdir())) == 1


@given(st.integers(0, 2**31))
@hypothesis.settings(max_examples=25, deadline=None)
def test_every_value_that_a_point_may_have_is_tried(seed: int) -> None:
    parent = Parameter("p", ("x", "y", "z"), ordered=False)
    beside = Parameter("q", (0, 1, 2, 3), ordered=True, sizes=(0.0, 1.0, 2.0, 3.0), when={"p": frozenset({1})})
    space = Space((parent, beside, ordered("a", 40), ordered("b", 4)), (Requirement("a", ">=", "b"),))
    points: list[Point] = []
    while fresh := untried(space, points, 5, seed + len(points)):
        assert all(dict(one) not in points and space.allows(one) for one in fresh)
        points += fresh
    assert POINTS_LEAST <= len(points) <= 40
    found = {one for point in points for one in point.items()}
    assert {("p", 0), ("p", 1), ("p", 2), *(("q", at) for at in range(4)), *(("b", at) for at in range(4))} <= found
    assert len([at for key, at in found if key == "a"]) == VALUES_MAX


def test_a_search_ends_if_no_key_acts() -> None:
    search = Search(SPACE, proposer(SPACE), Budget(trials=1000), seed=1)
    while (block := search.next()) is not None and block.stage == "search":
        search.measured(block, [(0.01 * search.trials_used,)] * (1 + len(block.points)))
    assert block is None and search.nothing_acts and search.winners() == []
    assert 15 <= search.candidates <= 20 and search.trials_used <= 25


def test_a_search_goes_on_once_a_key_acts() -> None:
    space = Space((ordered("a", 8), ordered("b", 8)))
    search = Search(space, proposer(space), Budget(trials=60), seed=1)
    while (block := search.next()) is not None and block.stage == "search":
        search.measured(block, [(0.5 * (point.get("a") == 5),) for point in ({}, *block.points)])
    assert not search.nothing_acts and search.winners()[0]["a"] == 5 and 59 <= search.trials_used <= 60


def test_the_command_states_that_no_key_acts(iolab: CommandLine) -> None:
    space = "nr_requests = [32, 64, 128]\nnomerges = [0, 1, 2]\n"
    direct = BASE.replace("sequential", "random").replace("direct = false\n", "").replace("100ms", "20ms")
    text = (
        direct + '[settings.plain]\nkernel = "3.10"\n[tune]\nobjectives = ["rate_bytes_per_s"]\n[tune.space]\n' + space
    )
    iolab.write("tune.toml", text)
    shown = iolab("tune", "tune.toml", "--out", "found").text
    assert "Keep the default: no key acts. 9 candidates" in shown
    found = iolab("tune", "found", "--json").json()
    assert found["nothing_acts"] is True and found["trials"] == 11 and found["chosen"] == []
    iolab.write("none.toml", text.replace('"3.10"', '"2.5.58"').replace("nomerges = [0, 1, 2]", ""))
    for again in (("none.toml", "--out", "none"), ("--resume", "none")):
        iolab("tune", *again, status=None).assert_one_clear_line(2, "no key can be set on model:quad-7200; nr_requests")
    assert not (iolab.cwd / "none" / "search").exists()


def test_a_search_ends_where_nothing_can_be_measured() -> None:
    search = Search(SPACE, proposer(SPACE), Budget(trials=18), seed=1)
    while (block := search.next()) is not None:
        search.measured(block, [None] * (len(block.points) + 1))
    assert search.winners() == []
    assert 17 <= search.trials_used <= 18  # a default alone is no block


def test_a_small_space_is_searched_to_its_end_and_its_points_again() -> None:
    space = Space((ordered("a", 3),))
    search = Search(space, proposer(space), Budget(trials=200, per_block=2), seed=1)
    while (block := search.next()) is not None and block.stage == "search":
        search.measured(block, [(0.1 * point.get("a", 0),) for point in ({}, *block.points)])
    assert len(search.points) == 3
    assert search.winners() == [{"a": 2}]
    assert 18 <= search.trials_used <= 80


@pytest.mark.parametrize("trials", [12, 14, 30, 31])
def test_no_more_trials_are_made_than_allowed(trials: int) -> None:
    assert trials - 1 <= searched(trials=trials, lost=[3]).trials_used <= trials


def test_time_ends_a_search_too() -> None:
    search = Search(SPACE, proposer(SPACE), Budget(trials=1000, time_s=30.0), seed=1)
    while (block := search.next()) is not None and block.stage == "search":
        search.measured(block, [(level(point),) for point in ({}, *block.points)], [1.0] * (1 + len(block.points)))
    assert 30 <= search.trials_used < 36  # the round that reaches it is the last


def test_the_blocks_of_the_first_points_come_first() -> None:
    first = [{"a": 1, "b": 1, "c": 1, "d": 1}, {"a": 2, "b": 1, "c": 1, "d": 1}]
    search = Search(SPACE, lambda _known, _count, _seed: [], Budget(trials=12), first=first, seed=1)
    block = search.next()
    assert block is not None and list(block.points) == first
    search.measured(block, [(0.0,), (0.1,), (math.log(1.5),)])
    again = search.next()
    assert again is not None and again.stage == "search" and list(again.points) and isinstance(again, Block)
    leading = search.leading()
    assert leading is not None and 0 < leading < 1


@pytest.mark.root
@pytest.mark.machine
def test_a_killed_search_leaves_no_tunable_changed(iolab: CommandLine, tmp_path: Path) -> None:
    text = """
[target]
kind = "scratch"
size = "64MiB"
filesystem = "ext4"
[workloads.w]
file_size = "8MiB"
duration = "700ms"
[tune]
trials = 12
per_round = 2
[tune.space]
dirty_expire = ["7s", "9s", "11s"]
"""
    file = Path("/proc/sys/vm/dirty_expire_centisecs")
    before = file.read_text()
    iolab.write("tune.toml", text)
    with iolab.start("tune", "tune.toml", "--out", "found") as process:
        wait_until(lambda: file.read_text() != before or process.poll() is not None, "a candidate to be measured", 60)
        os.killpg(process.pid, signal.SIGKILL)
    assert file.read_text() != before
    wait_until(lambda: "dirty_expire" in iolab("restore").text or file.read_text() == before, "restoring", 60)
    assert file.read_text() == before


def test_mixtures_have_draws_of_their_own(tmp_path: Path) -> None:
    directory = TuneDirectory.create(tmp_path / "found", loads(BASE + TUNE, "tune.toml"), 1)
    points = {"candidate1": {"read_ahead_kb": 3}}
    shared, own = (
        directory.of_points(directory.machine, points, directory.tuning.space, own_draws=own) for own in (False, True)
    )
    assert (shared.own_draws, own.own_draws) == (False, True)
