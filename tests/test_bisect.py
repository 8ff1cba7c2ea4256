"""The search for the versions that changed a metric: its posterior, its choices, its answers, and the command."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_machine import SilentDisplay
from hypothesis import given, settings
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.domain.bisect.functions import steps_of_functions
from iolab.domain.bisect.posterior import posterior
from iolab.domain.bisect.rounds import without_rounds
from iolab.domain.bisect.search import BESIDE, Answer, Search, spread_of
from iolab.files.experiment import loads
from iolab.machines.model import ModelExecutor
from iolab.presentation.table.bisection import largest_step
from iolab.studies.run import run
from iolab.studies.run.question import question
from support.command_line import CommandLine, wait_until
from support.runs import events

EXPERIMENT = """
title = "Which version?"
machine = "model:quad-7200"
rounds = 1
seed = 1

[workloads.reads]
pattern = "sequential"
direct = false
file_size = "128MiB"
duration = "1s"

[compare]
metrics = ["rate_bytes_per_s"]
"""


def experiment(versions: int, changed_at: int) -> str:
    return EXPERIMENT + "".join(
        f'[settings.v{number}]\nkernel = "2.6.16"\nread_ahead_kb = {16 if number >= changed_at else 128}\n'
        for number in range(versions)
    )


def searched(
    levels: list[float],
    *,
    noise: float = 1.0,
    seed: int = 1,
    lost: tuple[int, ...] = (),
    margin: float = 0.25,
    budget: int = 600,
    spread: int = 0,
) -> Answer:
    """The answer of a search among versions with these levels; the noise is Gaussian."""
    random = np.random.default_rng(seed)
    search = Search(len(levels), seed=seed, budget=budget, spread=spread, margin=lambda _level: margin)
    while (version := search.next()) is not None:
        if version in lost:
            search.unmeasurable(version)
        else:
            search.measured(version, levels[version] + noise * float(random.normal()))
    return search.answer()


def step(versions: int, at: int, size: float) -> list[float]:
    return [size * (version >= at) for version in range(versions)]


def test_the_change_is_named_of_a_thousand_versions_in_a_few_measurements() -> None:
    answers = [searched(step(1024, 700, 5.0), seed=seed) for seed in range(4)]
    right = [one for one in answers if [(change.first, change.last) for change in one.changes] == [(700, 700)]]
    assert len(right) >= 3
    assert all(one.kind == "changes" and one.stopped == "decided" and one.probability >= 0.95 for one in right)
    assert min(one.measurements for one in answers) <= 25


def test_what_rounds_have_in_common_hides_no_change() -> None:
    """As counts do: a round's seed moves each version by about the same, by more than the change."""
    of_rounds = (0.0, 190.0, -120.0, 80.0)

    def told(size: float, *, paired: bool) -> Answer:
        random, search = np.random.default_rng(5), Search(8, margin=lambda _level: 10.0)
        for turn, effect in enumerate(of_rounds):
            for version, level in enumerate(step(8, 5, size)):
                if (version + turn) % 3 or not turn:
                    value = 14_000.0 + level + effect + float(random.normal(scale=0.5))
                    search.measured(version, value, turn if paired else 0)
        return search.answer()

    (change,) = told(41.0, paired=True).changes
    assert (change.first, change.last) == (5, 5) and change.after - change.before == pytest.approx(41.0, abs=1)
    assert told(0.0, paired=True).kind == "none"
    unpaired = told(41.0, paired=False)
    assert unpaired.kind == "none" or unpaired.probability < 0.95


def test_rounds_that_have_nothing_in_common_are_left_as_they_are() -> None:
    random = np.random.default_rng(1)
    values = random.normal(size=30).tolist()
    assert without_rounds([*range(10)] * 3, [0] * 10 + [1] * 10 + [2] * 10, values) == values
    assert without_rounds([0, 1], [0, 1], [1.0, 5.0]) == [1.0, 5.0]


def test_a_function_that_steps_exactly_is_evidence_where_the_total_shows_nothing() -> None:
    random, measured = np.random.default_rng(7), []
    for version in [0, 11, 0, 11, 0, 11, 3, 6, 7, 9, 5]:
        has = version >= 7
        noisy = {("alloc_page", ""): 13_000.0 + float(random.normal(scale=40)), ("memcpy", ""): 10.0}
        own = {("blk_mq_dispatch_rq_list", ""): 85.0 + 5 * has, ("sbitmap_get", ""): 60.0 + 0.5 * has}
        measured.append((version, 0, noisy | own | ({("_raw_spin_lock", ""): 24.0} if has else {})))
    found = steps_of_functions(measured)
    assert [(one.symbol, one.change, one.before_version, one.version) for one in found] == [
        ("_raw_spin_lock", 24.0, 6, 7),
        ("blk_mq_dispatch_rq_list", 5.0, 6, 7),
    ]
    # Two measurements may be alike by chance.
    assert steps_of_functions([one for one in measured if one[0] in (0, 3, 6, 7)]) == []


def test_around_each_named_change_versions_are_measured_again() -> None:
    search = Search(1024, seed=1, spread=32, margin=lambda _level: 0.25)
    random = np.random.default_rng(5)
    counts = dict.fromkeys(range(1024), 0)
    while (version := search.next()) is not None:
        counts[version] += 1
        # The first run of the version that undoes the change looks as if it did not.
        outlier = 5.0 if version == 600 and counts[version] == 1 else 0.0
        search.measured(version, 5.0 * (300 <= version < 600) + outlier + 0.3 * float(random.normal()))
    answer = search.answer()
    assert [(change.first, change.last) for change in answer.changes] == [(300, 300), (600, 600)]
    assert min(counts[version] for version in (299, 300, 599, 600)) >= BESIDE


@pytest.mark.long
def test_modes_of_the_noise_that_look_like_a_step_name_no_version() -> None:
    """The first run of each version is in the mode that makes the modes look like a change at 400; later runs alternate
    between the two modes, 2 apart, and the change of 2 is at 700."""
    search = Search(1024, spread=8, margin=lambda _level: 0.5)
    random = np.random.default_rng(5)
    counts = dict.fromkeys(range(1024), 0)
    while (version := search.next()) is not None:
        upper = (400 <= version < 700) != (counts[version] % 2 == 1)
        counts[version] += 1
        search.measured(version, 2.0 * upper + 2.0 * (version >= 700) + 0.1 * float(random.normal()))
    assert 400 not in search.answer().named


def test_a_version_that_lies_alone_is_measured_until_it_is_believed() -> None:
    # Each 32nd version of a history that goes up at 245, down at 273 and up at 537; the noise has heavy tails.
    before = [0.3, -0.5, 0.5, 0.2, 1.4, -1.2, 0.0, 1.0, 3.1, -0.8, -0.3, -0.6, -0.2, -1.0, 0.0, -1.0, -0.1]
    after = [5.9, 5.3, 5.0, 5.5, 5.5, 5.4, 4.4, 5.6, 4.9, 5.2, 4.9, 4.8, 5.1, 5.1, 4.0, 3.2]
    search = Search(1025, seed=1, spread=32, margin=lambda _level: 1.25)
    for number, value in enumerate(before + after):
        search.measured(32 * number, value)
    again = ((528, 0.0), (536, 0.0), (537, 6.1), (538, 3.7), (540, 4.8), (256, 5.1), (352, 3.1), (416, 2.6))
    for version, value in again:
        search.measured(version, value)
    assert [change.last for change in search.answer().changes] == [537]
    # Measured twice, and high both times: an outlier, or the only one seen of two more changes.
    assert search.next() == 256


def test_the_levels_before_and_after_are_told() -> None:
    (change,) = searched(step(64, 20, 10.0), seed=3).changes
    assert change.before == pytest.approx(0.0, abs=1.5)
    assert change.after == pytest.approx(10.0, abs=1.5)


def test_two_changes_that_cancel_are_both_named() -> None:
    levels = [8.0 * (15 <= version < 40) for version in range(64)]
    answers = [searched(levels, seed=seed) for seed in range(3)]
    assert sum([change.last for change in one.changes] == [15, 40] for one in answers) >= 2


def test_fixed_and_broken_again_is_seen_where_the_search_looks_everywhere() -> None:
    levels = [8.0 * (100 <= version < 150 or version >= 200) for version in range(256)]
    answers = [searched(levels, seed=seed, spread=8) for seed in range(3)]
    assert sum([change.last for change in one.changes] == [100, 150, 200] for one in answers) >= 2
    (change,) = searched(levels, seed=0).changes  # what it costs to look is not spent unasked
    assert change.last in (100, 150, 200)


def test_a_change_that_is_undone_soon_is_seen_beside_another() -> None:
    # Neither half of it says anything alone.
    versions = [*range(33), 0, 32, 10, 23, 24]
    for seed in range(4):
        random = np.random.default_rng(seed)
        found = posterior(versions, [8.0 * (one == 10 or one >= 24) + float(random.normal()) for one in versions])
        assert found.gaps_of(0) == (9, 10, 23)


def test_of_few_versions_every_one_is_looked_at_first() -> None:
    search = Search(8, margin=lambda _level: 0.02)
    random = np.random.default_rng(1)
    while len(search.values) < 12 and (version := search.next()) is not None:
        search.measured(version, float(random.normal()))
    assert {version for version, _ in search.values} == set(range(8))


def test_where_it_looked_nowhere_is_told() -> None:
    search = Search(100)
    for version in (0, 0, 0, 99, 99, 99, 40):
        search.measured(version, float(version))
    assert search.longest_unmeasured() == (40, 99)
    search = Search(3)
    for version in (0, 1, 2):
        search.measured(version, 0.0)
    assert search.longest_unmeasured() is None


def test_of_two_that_tell_alike_the_cheaper_one_is_measured() -> None:
    search = Search(1000)
    search.cost = lambda version: 1.0 if version < 500 else 50.0
    for version, value in ((0, 0.0), (999, 1.4), (0, 0.7), (999, 1.9), (0, -0.7), (999, 0.9)):
        search.measured(version, value)
    chosen = search.next()
    assert chosen is not None and chosen < 500


def test_what_is_measured_next_is_a_function_of_what_was_measured() -> None:
    def begun() -> Search:
        search = Search(300, seed=3, spread=0)
        for version, value in ((0, 0.0), (299, 1.4), (0, 0.7), (299, 1.9), (0, -0.7), (299, 0.9), (150, 0.8)):
            search.measured(version, value)
        return search

    asked_often = begun()
    assert {asked_often.next() for _ in range(20)} == {begun().next()}


def test_a_run_builds_its_search_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []

    class Counted(Search):
        def __init__(self, versions: int, **words: Any) -> None:
            built.append(versions)
            super().__init__(versions, **words)

    monkeypatch.setattr("iolab.studies.run.bisect.Search", Counted)
    loaded = loads(experiment(4, 2), "versions.toml")
    asked = question(
        loaded, workload=None, metrics=(), good=None, bad=None, confidence=0.95, most=50, confirm=2, spread=None
    )
    with ModelExecutor(cores=1) as executor:
        done = run(loaded, tmp_path / "hunt", executor=executor, progress=SilentDisplay(), rounds=50, question=asked)
    assert done.trials > 8 and built == [4]


def test_nothing_is_named_where_nothing_changes() -> None:
    answers = [searched([0.0] * 200, seed=seed, margin=1.0) for seed in range(5)]
    assert sum(one.kind == "none" for one in answers) >= 2


def test_a_version_that_strays_by_less_than_counts_is_not_named_beside_a_change() -> None:
    # Counts of instructions of kernels of one tree: alike to 1e-6, but for a layout that costs 0.18 % more.
    levels = 9.681 + 0.151 * (np.arange(65) >= 30) + 0.018 * (np.arange(65) == 48)
    random = np.random.default_rng(5)
    search = Search(65, margin=lambda level: 0.005 * level)
    while (version := search.next()) is not None:
        search.measured(version, float(levels[version] + random.normal(0, 1e-5)))
    search.measured(48, float(levels[48]))
    found = search.answer()
    assert [(change.first, change.last) for change in found.changes] == [(30, 30)] and found.probability > 0.95


def test_a_probability_that_is_rounded_is_none_above_1() -> None:
    levels = {
        0: 4281.8035,
        12: 4312.8455,
        6: 4281.852,
        2: 4282.4525,
        8: 4282.112,
        4: 4281.851,
        10: 4282.065,
        11: 4312.92,
    }
    search = Search(13, margin=lambda _level: 5.0)
    for version, value in levels.items():
        search.measured(version, value)
    answer = search.answer()
    assert (answer.kind, [change.last for change in answer.changes]) == ("changes", [11])
    assert 0.999 < answer.probability <= 1
    assert 0.999 < answer.changes[0].probability <= 1


def test_a_creep_is_no_version() -> None:
    levels = [min(max(version - 50, 0), 100) / 100 * 12 for version in range(256)]
    answers = [searched(levels, seed=seed, budget=150) for seed in range(3)]
    assert all(one.kind != "changes" or one.stopped == "budget" or len(one.changes) > 1 for one in answers)
    assert sum(one.kind == "creep" for one in answers) >= 2


def test_versions_that_cannot_be_measured_are_never_asked_for_again_and_widen_the_answer() -> None:
    lost = tuple(range(30, 40))
    answer = searched(step(64, 35, 8.0), lost=lost, seed=2)
    assert [(change.first, change.last) for change in answer.changes] == [(30, 40)]


def test_without_noise_a_few_measurements_decide() -> None:
    answer = searched(step(1024, 1, 1.0), noise=0.0)
    assert [change.last for change in answer.changes] == [1]
    assert answer.measurements <= 30


def test_a_budget_ends_the_search_with_what_is_known() -> None:
    answer = searched(step(1024, 512, 0.5), budget=12)
    assert (answer.stopped, answer.measurements) == ("budget", 12)


def test_two_versions_and_fewer() -> None:
    assert [change.last for change in searched([0.0, 9.0], seed=4).changes] == [1]
    with pytest.raises(InputError, match="nothing to search between"):
        Search(1)


@settings(max_examples=25)
@given(st.integers(0, 2**31), st.floats(0.001, 1000.0), st.floats(-1e6, 1e6))
def test_the_unit_and_the_zero_of_a_metric_do_not_matter(seed: int, scale: float, shift: float) -> None:
    random = np.random.default_rng(seed)
    versions = [*random.integers(0, 50, 24).tolist(), 0, 49]
    values = [float(random.normal()) + 2.0 * (version >= 20) for version in versions]
    ours = posterior(versions, values)
    theirs = posterior(versions, [value * scale * 1e3 + shift for value in values])
    assert ours.gaps[:3].tolist() == theirs.gaps[:3].tolist()
    assert ours.probabilities[0] == pytest.approx(theirs.probabilities[0], rel=1e-3)
    assert ours.probabilities.sum() == pytest.approx(1.0)


def test_the_command_names_the_version_confirms_it_and_says_so_as_json(iolab: CommandLine) -> None:
    iolab.write("versions.toml", experiment(12, 7))
    found = iolab("bisect", "versions.toml", "--out", "hunt", "--confirm", "6", "--json").json()
    assert (found["kind"], found["stopped"]) == ("changes", "decided")
    (change,) = found["changes"]
    assert (change["first"], change["last"]) == ("v7", "v7")
    assert change["confirmed"]["verdict"] == "slower"
    assert change["confirmed"]["n"] == 6
    shown = iolab("bisect", "--resume", "hunt").text
    assert "changed by v7" in shown
    assert "6 fresh rounds against v6: slower" in shown


def test_several_metrics_are_answered_from_the_same_trials(iolab: CommandLine) -> None:
    iolab.write("versions.toml", experiment(12, 7))
    metrics = ("--metric", "rate_bytes_per_s", "--metric", "read.iops", "--metric", "cpu_ns_per_io")
    failed = iolab(
        "bisect", "versions.toml", "--out", "hunt", *metrics, "--confirm", "4", "--fail-on", "regressed", status=1
    )
    assert "--fail-on holds: rate_bytes_per_s: slower" in failed.stderr
    assert failed.stdout.count("changed by v7") == 2
    said = " ".join(failed.text.split())
    assert "CPU per I/O of reads, v0 to v11: nothing changes by more than 2 % between v0 and v11" in said
    assert "read_ahead_kb is 16 in v7, 128 in v6" in said
    iolab("report", "hunt", "-o", "hunt.html")
    page = (iolab.cwd / "hunt.html").read_text()
    assert page.index(">Which version did it<") < page.index(">Results<")
    # The trials of any run are versions, too.
    stored = iolab("bisect", "hunt", "--metric", "read.iops", "--json").json()
    assert (stored["metric"], stored["changes"][0]["last"]) == ("read.iops", "v7")
    iolab("run", "versions.toml", "--out", "plain")
    (change,) = iolab("bisect", "plain", "--json").json()["changes"]
    assert change["last"] == "v7"
    (change,) = iolab("bisect", "plain", "--good", "v4", "--fail-on", "regressed", "--json", status=1).json()["changes"]
    assert change["last"] == "v7"


def test_the_table_of_a_search_says_why_nothing_is_paired(iolab: CommandLine) -> None:
    iolab.write("versions.toml", experiment(4, 2))
    iolab("bisect", "versions.toml", "--out", "hunt", "--confirm", "2")
    shown = " ".join(iolab("show", "hunt").text.split())
    assert "! this run is a search (iolab bisect), which measures one version after another" in shown
    assert "rounds are not paired: drift is in it." in shown and "within rounds" not in shown
    iolab("report", "hunt", "-o", "hunt.html")
    assert "measured one after the other, not in turns" in (iolab.cwd / "hunt.html").read_text()
    iolab("run", iolab.write("plain.toml", experiment(2, 1)), "--rounds", "2", "--out", "plain")
    assert "this run is a search" not in iolab("show", "plain").text


def test_what_is_named_may_be_left_unconfirmed(iolab: CommandLine) -> None:
    iolab.write("versions.toml", experiment(4, 2))
    (change,) = iolab("bisect", "versions.toml", "--out", "hunt", "--confirm", "0", "--json").json()["changes"]
    assert (change["last"], change["confirmed"]) == ("v2", None)


def test_a_killed_search_goes_on_and_measures_nothing_twice(iolab: CommandLine, tmp_path: Path) -> None:
    iolab.write("versions.toml", experiment(16, 11))
    process = iolab.start("bisect", "versions.toml", "--out", "hunt", "--confirm", "4")
    journal = tmp_path / "hunt" / "journal.jsonl"
    wait_until(lambda: journal.exists() and journal.read_text().count("trial_finished") >= 3, "three trials")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    found = iolab("bisect", "--resume", "hunt", "--json").json()
    assert [change["last"] for change in found["changes"]] == ["v11"]
    finished = [event["trial"] for event in events(tmp_path / "hunt", "trial_finished") if not event.get("adopted")]
    assert len(finished) == len(set(finished))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--good", "v9"], ("--good", "unknown setting")),
        (["--good", "v3", "--bad", "v1"], ("v3 does not come before v1",)),
        (["--metric", "speed"], ("speed",)),
        (["--metric", "files_per_s"], ("--metric", "files_per_s: it is not measured")),
        (["--metric", "block_ns_per_io"], ("--metric", "the probe block is off")),
        (["--most", "3"], ("--most", "6 to 10,000")),
        (["--confidence", "1.5"], ("--confidence", "0.5 or more")),
        (["--workload", "writes"], ("--workload", "unknown workload")),
        (["--fail-on", "slower"], ("--fail-on", "unknown condition")),
        (["--time", "soon"], ("--time", "30s or 5min")),
        (["--spread", "-1"], ("--spread", "0 to 1,000")),
        (["--git", ".", "--good", "a", "--bad", "b"], ("guest machine", "guest:KERNEL")),
    ],
)
def test_wrong_arguments_are_one_clear_line(iolab: CommandLine, arguments: list[str], words: tuple[str, ...]) -> None:
    iolab.write("versions.toml", experiment(4, 2))
    iolab("bisect", "versions.toml", "--out", "hunt", *arguments, status=None).assert_one_clear_line(2, *words)
    assert not (iolab.cwd / "hunt").exists()


def test_a_run_that_is_no_search_is_refused(iolab: CommandLine) -> None:
    iolab.write("versions.toml", experiment(2, 1))
    iolab("run", "versions.toml", "--out", "plain")
    iolab("bisect", "--resume", "plain", status=None).assert_one_clear_line(2, "is no search", "iolab bisect plain")


def test_the_default_looks_wide_enough_for_what_is_undone() -> None:
    assert [spread_of(versions) for versions in (2, 9, 30, 65, 129, 1025)] == [1, 8, 8, 8, 16, 24]
    levels = np.zeros(1025)
    levels[530:590] = 100.0  # nobody would look here with eight parts
    search = Search(1025, margin=lambda _level: 1.0)
    random = np.random.default_rng(1)
    while (version := search.next()) is not None:
        search.measured(version, 1000 + float(levels[version]) + float(random.normal()))
    assert [(one.first, one.last) for one in search.answer().changes] == [(530, 530), (590, 590)]


def test_parts_are_alike_and_no_more_than_asked_for() -> None:
    search = Search(1025, spread=24)
    for _ in range(2):
        search.measured(0, 1.0)
        search.measured(1024, 1.0)
    taken = 0
    while (version := search._in_the_widest(24)) is not None:
        search.measured(version, 1.0)
        taken += 1
    assert taken == 23


def test_of_nothing_the_largest_step_is_said() -> None:
    search = Search(9, margin=lambda level: 0.05 * level)
    for version in range(9):
        for time in range(3):
            search.measured(version, 1000 + 0.1 * time + (4 if version >= 5 else 0))
    assert search.answer().kind == "none"
    names = [f"v{place}" for place in range(9)]
    assert largest_step(search, names) == "the largest step seen is +0.4 %, at v5"
    flat = Search(3)
    for version in (0, 1, 2, 0, 1, 2):
        flat.measured(version, 7.0)
    assert largest_step(flat, names) == "no step was seen"
