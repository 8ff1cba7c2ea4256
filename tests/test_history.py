"""When metrics changed over many runs: the test, what it must not see, and the command."""

import json
import math
import re
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from conftest import CommandLine
from hypothesis import given, settings
from hypothesis import strategies as st
from iolab.domain.history.changes import FEWEST, Change, _combined, changes_in, detection_limit
from iolab.domain.history.moving_as_one import independent_count
from iolab.files.importer.history import _with_others
from iolab.presentation.cli.invoke import invoke
from support.stored import MACHINE, TWO_SETTINGS, stored_run

Seed = int | list[int]
FIO = Path(__file__).parent / "imported" / "fio-3.33-plus.json"


def noise(count: int, seed: Seed = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=count)


def stepped(count: int, at: int, size: float, seed: Seed = 1) -> list[float]:
    return list(100 + noise(count, seed) + size * (np.arange(count) >= at))


def test_a_step_is_found_where_it_is_with_its_size() -> None:
    (change,) = changes_in(stepped(120, 70, 4.0))
    assert change.earliest <= 70 <= change.latest
    assert change.low <= 4.0 <= change.high
    assert change.before == pytest.approx(100, abs=0.5)
    assert change.after == pytest.approx(104, abs=0.5)
    assert change.p <= 0.05


def test_several_steps_are_found_oldest_first() -> None:
    levels = np.repeat([0.0, 5.0, 0.0, 3.0], 40)
    found = changes_in(list(levels + noise(160)))
    assert [one.at for one in found] == [pytest.approx(place, abs=1) for place in (40, 80, 120)]


def test_an_episode_between_equal_levels_is_two_steps() -> None:
    places = np.arange(200)
    found = changes_in(list(noise(200) + 4.0 * ((places >= 90) & (places < 102))))
    assert [one.at for one in found] == [pytest.approx(90, abs=1), pytest.approx(102, abs=1)]


def test_few_series_of_noise_show_a_change() -> None:
    assert sum(bool(changes_in(list(noise(60, seed)))) for seed in range(100)) <= 10


def seen_of(steps: int, *, runs: int, at: int, size: float) -> int:
    return sum(
        any(abs(one.at - at) <= 5 for one in changes_in(stepped(runs, at, size, [at, seed]))) for seed in range(steps)
    )


def test_drift_that_nobody_saw_absorbs_no_step() -> None:
    assert seen_of(40, runs=60, at=40, size=1.5) >= 38
    assert seen_of(40, runs=60, at=30, size=3.0) == 40


@pytest.mark.long
def test_a_step_after_a_change_of_the_machine_is_found_too() -> None:
    def seen(size: float) -> int:
        histories = (np.asarray(stepped(60, 40, size, [3, seed])) + 5 * (np.arange(60) >= 20) for seed in range(40))
        return sum(any(abs(one.at - 40) <= 5 for one in changes_in(list(values))) for values in histories)

    assert seen(1.5) >= 32
    assert seen(3.0) == 40


@given(st.lists(st.floats(1e-200, 1), min_size=1, max_size=40), st.integers(0, 39), st.floats(0, 1))
def test_places_that_agree_cost_no_more_than_their_number(tests: list[float], one: int, less: float) -> None:
    p, weights = np.asarray(tests), np.full(len(tests), 1 / len(tests))
    together = _combined(p, weights)
    assert 0 < together < 1
    if p.min() * len(p) < 0.01 and p.max() < 0.5:
        assert together <= 1.001 * p.min() * len(p)
    assert _combined(np.full(len(p), 0.001), weights) == pytest.approx(0.001)
    p[one % len(p)] *= less
    assert _combined(p, weights) <= together


def test_a_step_that_drift_explains_too_is_marked() -> None:
    def marks(size: float) -> list[bool]:
        histories = [stepped(60, 30, size, seed) for seed in range(12)]
        return [one.may_be_drift for values in histories for one in changes_in(values)]

    assert not any(marks(4.0))
    small = marks(1.5)
    assert len(small) >= 8 and 1 < sum(small) < len(small) - 1


def test_few_levels_that_wander_are_stated_to_be_no_drift() -> None:
    found = []
    for seed in range(60):
        random = np.random.default_rng([seed, 8])
        values = 0.12 * random.normal(size=60).cumsum() + random.normal(size=60)
        found.append(any(not one.may_be_drift for one in changes_in(values.tolist())))
    assert sum(found) <= 7


def test_what_would_not_be_seen_is_said_from_the_spread() -> None:
    spread = [detection_limit(list(100 + noise(60, seed))) for seed in range(20)]
    assert float(np.median(spread)) == pytest.approx(1.4, abs=0.3)
    (one,) = (detection_limit(list(100 + 10 * noise(60, seed))) for seed in range(1))
    assert one == pytest.approx(10 * spread[0], rel=1e-6)
    assert detection_limit(list(noise(240))) < 1.2
    assert detection_limit([7.0] * 60) == 0
    assert detection_limit([1.0, 2.0]) == math.inf


def test_outliers_are_no_change_and_do_not_hide_one() -> None:
    plain = noise(100)
    plain[[20, 50, 98, 99]] += [500.0, -500.0, 300.0, -300.0]
    assert changes_in(list(plain)) == []
    values = stepped(100, 60, 4.0)
    values[10], values[80] = 1e6, -1e6
    (change,) = changes_in(values)
    assert change.earliest <= 60 <= change.latest
    assert change.low <= 4.0 <= change.high


def test_drift_of_the_machine_is_no_change() -> None:
    shown = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        wandering = np.zeros(200)
        for place in range(1, 200):
            wandering[place] = 0.9 * wandering[place - 1] + random.normal()
        shown += bool(changes_in(list(wandering)))
    assert shown <= 3


def test_more_series_and_more_looks_ask_for_more() -> None:
    values = stepped(100, 94, 2.2)
    alone = changes_in(values)
    assert len(alone) == 1
    assert changes_in(values, series=1000, looks=1000) == []


def test_a_metric_without_noise() -> None:
    (change,) = changes_in([7.0] * 30 + [8.0] * 30)
    assert (change.at, change.before, change.after) == (30, 7.0, 8.0)
    assert changes_in([7.0] * 60) == []
    assert changes_in([7.0] * 59 + [9.0]) == []


def test_of_few_values_nothing_is_said() -> None:
    assert changes_in([1.0] * 3 + [2.0] * (FEWEST - 4)) == []


def without_units(change: Change, scale: float, shift: float) -> tuple[float, ...]:
    levels = ((change.before - shift) / scale, (change.after - shift) / scale)
    return (change.at, change.earliest, change.latest, *levels, change.low / scale, change.high / scale)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.floats(1e-6, 1e9), st.floats(-1e3, 1e3))
def test_unit_and_zero_do_not_matter(seed: int, scale: float, shift: float) -> None:
    values = np.asarray(stepped(60, 40, 3.0, seed))
    ours = changes_in(list(values))
    theirs = changes_in(list((values + shift) * scale))
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        moved = without_units(other, scale, shift * scale)
        assert moved == pytest.approx(without_units(one, 1.0, 0.0), rel=1e-4, abs=1e-4)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31))
def test_a_history_read_backwards_has_its_change_at_the_same_place(seed: int) -> None:
    values = stepped(80, 40, 8.0, seed)
    (ours,), (theirs,) = (changes_in(way, false_alarms=1e-6) for way in (values, values[::-1]))
    assert theirs.at == 80 - ours.at
    assert (theirs.before, theirs.after) == pytest.approx((ours.after, ours.before), rel=1e-6)


def table(path: Path, values: list[float], column: str = "iops") -> Path:
    rows = [
        f"2026-{1 + place // 28:02}-{1 + place % 28:02},{'new' if place >= 40 else 'old'},{value}"
        for place, value in enumerate(values)
    ]
    path.write_text("\n".join([f"date,kernel,{column}", *rows]) + "\n")
    return path


@pytest.fixture
def nights(tmp_path: Path) -> Path:
    return table(tmp_path / "nights.csv", stepped(60, 40, -5.0))


def test_a_table_by_date(nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["history", str(nights)]) == 0
    shown = capsys.readouterr().out
    assert "60 runs in the order of their date, 2026-01-01 to 2026-03-04" in shown
    assert "IOPS: slower since 2026-02-13" in shown
    assert "changed there too: kernel: old -> new" in shown


def test_the_gate_holds_until_the_change_is_known(nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["history", str(nights), "--fail-on", "regressed"]) == 1
    assert "iops of the file slower" in capsys.readouterr().err
    assert invoke(["history", str(nights), "--fail-on", "regressed", "--since", "2026-02-20"]) == 0
    assert invoke(["history", str(nights), "--fail-on", "regressed", "--same-within", "0.2"]) == 0


def test_what_may_be_drift_is_reported_and_fails_only_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drift = next(
        values
        for values in (stepped(60, 30, -1.5, seed) for seed in range(12))
        if [one.may_be_drift for one in changes_in(values)] == [True]
    )
    (nights := tmp_path / "nights.csv").write_text("night,iops\n" + "".join(f"{n},{v}\n" for n, v in enumerate(drift)))
    for condition in ("regressed", "changed"):
        assert invoke(["history", str(nights), "--fail-on", condition]) == 0
        shown = capsys.readouterr()
        assert "it may be drift" in shown.out
        (line,) = shown.err.splitlines()
        assert f"--fail-on possibly-{condition}" in line and "iops of the file slower" in line
        assert invoke(["history", str(nights), "--fail-on", f"possibly-{condition}"]) == 1
        assert "--fail-on holds" in capsys.readouterr().err


def test_what_was_undone_and_what_is_better_fails_no_gate(tmp_path: Path) -> None:
    undone = np.repeat([100.0, 90.0, 100.0], 20) + 0.5 * noise(60)
    back = table(tmp_path / "undone.csv", list(undone))
    assert invoke(["history", str(back), "--fail-on", "regressed"]) == 0
    assert invoke(["history", str(back), "--fail-on", "changed"]) == 1
    lower = table(tmp_path / "latency.csv", stepped(60, 40, -5.0), "latency_ns_p99")
    assert invoke(["history", str(lower), "--fail-on", "regressed"]) == 0


def test_as_json(nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["history", str(nights), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (change,) = found["changes"]
    assert (change["metric"], change["verdict"], change["stands"]) == ("iops", "slower", True)
    assert change["differs"] == [{"what": "kernel", "before": "old", "after": "new"}]
    assert (len(found["runs"]), found["ordered_by"], found["series"]) == (60, "date", 1)


def test_where_nothing_changed_the_smallest_step_that_would_be_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = table(tmp_path / "same.csv", list(100 + noise(60, 3)))
    assert invoke(["history", str(same)]) == 0
    shown = capsys.readouterr().out
    assert "No change" in shown
    assert re.search(r"IOPS: none found; a step below 1\.\d % would not be seen in 60 runs", shown)
    assert invoke(["history", str(same), "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["unseen"]
    assert (one["metric"], one["runs"]) == ("iops", 60)
    assert 1 < one["unseen_below"] < 2


@pytest.mark.parametrize("later", [2, 3, 4, 5, 6])
def test_a_step_that_more_runs_have_to_follow_is_not_said_to_be_none(
    later: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eight nights, and a drop by a third before the newest few."""
    path = table(tmp_path / "nights.csv", list(np.repeat([300.0, 200.0], [8, later]) + 0.4 * noise(8 + later, 5)))
    assert invoke(["history", str(path)]) == 0
    shown = capsys.readouterr().out
    if later > 2:
        assert "iops: slower since" in shown.lower()
        return
    newest = int(shown.rpartition("nor any yet in the newest ")[2].split()[0])
    assert later <= newest <= (8 + later) // 2
    assert invoke(["history", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unseen"][0]["unseen_newest"] == newest


def test_files_of_fio_by_the_time_they_were_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(FIO.read_text())
    for night in range(24):
        # Names in another order than the time in the files.
        started_s = 1_795_000_000 + 86_400 * night
        content |= {"timestamp": started_s, "timestamp_ms": 1000 * started_s}
        content["fio version"] = "fio-3.33" if night < 14 else "fio-3.36"
        for job in content["jobs"]:
            job["read"]["total_ios"] = (4000 if night < 14 else 3000) + 7 * (night % 5)
        (tmp_path / f"{(7 * night) % 24:02}.json").write_text(json.dumps(content))
    assert invoke(["history", str(tmp_path), "--metric", "iops", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ordered_by"] == "time"
    assert {change["since"] for change in found["changes"]} == {f"{(7 * 14) % 24:02}.json"}
    assert {"what": "fio version", "before": "3.33", "after": "3.36"} in [
        {**one, "before": one["before"].removeprefix("fio-"), "after": one["after"].removeprefix("fio-")}
        for one in found["changes"][0]["differs"]
    ]


def test_what_changed_at_one_place_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (nights := tmp_path / "nights.csv").write_text(
        "version,kernel,iops,latency_ns_p99\n"
        + "".join(
            f"v{n},{'new' if n >= 20 else 'old'},{100 if n < 20 else 50},{9 if n < 20 else 4}\n" for n in range(40)
        )
    )
    assert invoke(["history", str(nights)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "2 series changed at v20: 1 slower, 1 faster"
    assert shown[1] == "changed there too: kernel: old -> new"
    assert shown[2].startswith("IOPS: slower: 100.0 -> 50.0 IOPS, -50.0 %")
    assert shown[3].startswith("latency p99: faster: 9.000 -> 4.000 ns, -55.6 %")


def lacking(path: Path, blank: set[int], column: str = "latency_ns_p99") -> Path:
    """Twenty nights of reads and of writes; `column` of reads is blank in some of them."""
    rows = [
        f"{night:02},{workload},{100 + night % 3},{'' if workload == 'reads' and night in blank else 9 + night % 2}\n"
        for night in range(20)
        for workload in ("reads", "writes")
    ]
    path.write_text(f"night,workload,iops,{column}\n" + "".join(rows))
    return path


def test_a_metric_that_the_newest_runs_lack_is_named_and_passes_no_gate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nights = lacking(tmp_path / "nights.csv", {3, *range(14, 20)})
    assert invoke(["history", str(nights)]) == 0
    named = "latency p99 of reads: no value in the newest 6 runs, since 14"
    assert capsys.readouterr().out.splitlines()[0] == named
    for condition, status, words in (
        ("regressed", 0, "cannot see all: the newest runs have no value of latency_ns_p99 of reads"),
        ("possibly-changed", 1, "holds: the newest runs have no value of latency_ns_p99 of reads"),
    ):
        assert invoke(["history", str(nights), "--fail-on", condition]) == status
        assert words in capsys.readouterr().err
    assert invoke(["history", str(nights), "--fail-on", "possibly-regressed", "--since", "15"]) == 0
    alone = lacking(tmp_path / "alone.csv", set(range(14, 20)))
    alone.write_text("".join(line for line in alone.open() if "writes" not in line))
    assert invoke(["history", str(alone), "--metric", "latency_ns_p99", "--fail-on", "regressed"]) == 2
    assert "regressed: can't hold of the newest runs" in capsys.readouterr().err
    assert invoke(["history", str(nights), "--json"]) == 0
    (lost,) = json.loads(capsys.readouterr().out)["lost"]
    assert (lost["workload"], lost["metric"], lost["runs"], lost["since"]) == ("reads", "latency_ns_p99", 6, "14")


@pytest.mark.parametrize("blank", [{5}, {7, 8, 18, 19}, {0, 1}, {4, 19}])
def test_gaps_that_came_before_are_no_loss(blank: set[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["history", str(lacking(tmp_path / "nights.csv", blank)), "--fail-on", "possibly-changed"]) == 0
    assert "no value" not in capsys.readouterr().out


def test_the_reason_why_the_newest_runs_of_a_directory_lack_a_metric(iolab: CommandLine, tmp_path: Path) -> None:
    """Also beside runs of another workload, which lack nothing of this one."""
    text = 'machine = "model:nvme"\nrounds = 1\n[workloads.{}]\noperations = {}\nfile_size = "4MiB"\n'
    for night, (workload, operations) in enumerate((("a", 2000), ("a", 500), ("b", 2000))):
        (tmp_path / "e.toml").write_text(text.format(workload, operations))
        iolab("run", "e.toml", "--out", f"runs/{night}")
    shown = iolab("history", "runs", "--metric", "latency_ns_p99").stdout
    assert "latency p99 of a under default: no value in the newest run, " in shown
    assert ": of fewer than 1,000 values, fewer than 10 lie beyond it" in shown
    assert "of b" not in shown


def test_experiments_whose_workloads_have_one_name_are_series_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two experiments in one directory, a night each in turn: one of them has a step, the other none."""
    for night in range(12):
        for title in ("small blocks", "large blocks"):
            stored_run(
                tmp_path / "runs" / f"{title}-{night:02}",
                re.sub("title = .*\nrounds = 8", f'title = "{title}"\nrounds = 1', TWO_SETTINGS),
                faster={"plain": 0.5} if title == "large blocks" and night >= 6 else {},
            )
    assert invoke(["history", str(tmp_path / "runs"), "--metric", "rate_bytes_per_s", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["changes"]
    assert (found["workload"], found["setting"]) == ("both of large blocks", "plain")
    assert "large blocks-06" in (found["since"], found["latest"])
    assert found["after"] / found["before"] == pytest.approx(0.5, rel=0.2)


def test_a_problem_of_many_runs_is_one_line() -> None:
    problems = [f"night-{night}: the wall clock moved by {night} s" for night in range(3)]
    assert _with_others(problems) == "night-0: the wall clock moved by 0 s (2 more runs alike)"
    assert _with_others(problems[:1]) == problems[0]


@pytest.mark.long
def test_runs_with_their_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for night in range(20):
        kernel = "6.1.0-47" if night < 12 else "6.1.0-48"
        stored_run(
            tmp_path / "runs" / f"night-{night}",
            faster={} if night < 12 else {"plain": 0.7, "fast": 0.7, "alike": 0.7},
            machine={**MACHINE, "kernel": {"release": kernel}},
        )
    assert invoke(["history", str(tmp_path / "runs"), "--metric", "rate_bytes_per_s"]) == 0
    shown = capsys.readouterr().out
    assert "20 runs in the order of their" in shown
    assert "3 series changed at 2023-11-14 (night-12): 3 slower" in shown
    assert "changed there too: kernel: 6.1.0-47 -> 6.1.0-48" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["absent"], ["absent"]),
        (["nights.csv", "--fail-on", "slower"], ["--fail-on", "slower"]),
        (["nights.csv", "--looks", "0"], ["--looks"]),
        (["nights.csv", "--false-alarms", "0"], ["--false-alarms"]),
        (["nights.csv", "--since", "soon"], ["--since", "soon"]),
        (["nights.csv", "--time-column", "dat"], ["dat", "did you mean date"]),
        (["nights.csv", "--metric", "iop"], ["iop", "did you mean iops"]),
    ],
)
def test_wrong_input_is_one_line(
    nights: Path,
    arguments: list[str],
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(nights.parent)
    assert invoke(["history", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert all(word in line for word in words)


def test_the_newest_run_far_beyond_all_others_is_named_and_is_no_change(iolab: CommandLine, tmp_path: Path) -> None:
    """*Did last night regress?*: one run cannot tell a step from an outlier, but is not kept quiet about."""

    def history(last: float) -> str:
        values = [*(float(100 + one) for one in noise(23)), last]
        rows = "".join(f"2026-11-{day:02d},{value}\n" for day, value in enumerate(values, 1))
        (tmp_path / "nights.csv").write_text(f"date,iops\n{rows}")
        return iolab("history", "nights.csv").stdout

    stated = history(90.0)
    assert "No change was found.\nIOPS: 100" in stated
    assert "in the newest run (2026-11-24), beyond all 23 before: an outlier, or a change" in " ".join(stated.split())
    assert "beyond all" not in history(97.5)


COUNTS = {
    "rare": lambda random, count: random.poisson(0.1, count),
    "sometimes": lambda random, count: random.poisson(0.5, count),
    "bursts": lambda random, count: (random.random(count) < 0.1) * random.lognormal(2, 1, count),
    "0 or 1": lambda random, count: random.integers(0, 2, count),
}


@pytest.mark.parametrize("kind", COUNTS)
def test_counts_that_are_mostly_0_show_no_change(kind: str) -> None:
    """5 % are promised; 36 % of rare events in 60 runs had one."""
    series = (COUNTS[kind](np.random.default_rng([7, seed]), 60) for seed in range(60))
    assert sum(bool(changes_in([float(one) for one in values])) for values in series) <= 6


@pytest.mark.parametrize("seed", range(8))
def test_counts_that_begin_are_one_step_from_0(seed: int) -> None:
    counts = [*28 * [0.0], *map(float, np.random.default_rng([5, seed]).integers(1, 4, 12))]
    (change,) = changes_in(counts)
    assert (change.at, change.earliest, change.before, change.from_zero) == (28, 28, 0.0, True)
    assert change.after == pytest.approx(np.mean(counts[28:]))
    (back,) = changes_in(counts[::-1])
    assert (back.at, back.after, back.from_zero) == (12, 0.0, False)


def test_errors_that_begin_have_no_ratio(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(tmp_path / "errors.csv", [*40 * [0.0], *10 * [1.0, 3.0]], "io_errors")
    assert invoke(["history", str(path), "--fail-on", "regressed"]) == 1
    assert capsys.readouterr().out.splitlines()[0] == "I/O errors: worse since 2026-02-13: 0.000 -> 2.000"


def test_a_level_with_more_noise_than_another_shows_no_further_change() -> None:
    def found_beside(seed: int) -> bool:
        noises = np.where(np.arange(40) < 28, 0.5, 5.0) * noise(40, [9, seed])
        return any(abs(one.at - 28) > 5 for one in changes_in(list(noises + 25 * (np.arange(40) >= 28))))

    assert sum(map(found_beside, range(40))) <= 4


def alike(share: float, count: int, runs: int, seed: Seed) -> list[list[float]]:
    """Series whose noise is the same but for a share."""
    common, own = noise(runs, seed), np.random.default_rng([*np.atleast_1d(seed), 1]).normal(size=(count, runs))
    return [list(100 + common + share * one) for one in own]


def test_series_that_move_as_one_count_once_and_others_each() -> None:
    same = alike(0.0, 9, 31, 1)
    assert independent_count(same, 0.05) == pytest.approx(1, abs=0.01)
    assert independent_count([*same, [-one for one in same[0]]], 0.05) == pytest.approx(1, abs=0.01)
    assert independent_count(alike(100.0, 12, 31, 2), 0.05) == pytest.approx(12, abs=0.2)
    assert independent_count([*same, *alike(100.0, 3, 31, 3)], 0.05) == pytest.approx(4, abs=0.1)
    assert 4 < independent_count(alike(0.33, 12, 60, 4), 0.05) < 11
    steps = [[value + 50 * (place >= 15) for place, value in enumerate(one)] for one in alike(100.0, 6, 31, 5)]
    assert independent_count(steps, 0.05) == pytest.approx(6, abs=0.2)
    assert independent_count([[1.0, 2.0, None]], 0.05) == 1


@pytest.mark.parametrize(("share", "histories"), [(0.0, 60), (0.1, 40)])
def test_few_histories_of_series_that_move_as_one_show_a_change(share: float, histories: int) -> None:
    def alarms(seed: int) -> bool:
        series = alike(share, 6, 31, [6, seed])
        return any(changes_in(one, series=independent_count(series, 0.05)) for one in series)

    assert sum(map(alarms, range(histories))) <= 0.05 * histories + 2 * math.sqrt(0.05 * histories)


def test_a_step_of_all_percentiles_is_found_as_that_of_one_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = np.asarray(alike(0.01, 12, 30, 3)) + 6 * (np.arange(30) >= 20)
    assert invoke(["history", str(percentiles(tmp_path / "nights.csv", rows))]) == 0
    assert capsys.readouterr().out.startswith("12 series changed at 2026-09-21")


def test_what_a_metric_shows_only_by_itself_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A step of three times the noise in one of six metrics, which six chances of an error could be."""
    rows = 100 + np.asarray([noise(30, seed) for seed in (2, 101, 102, 103, 104, 105)])
    rows[0, 19:] += 3
    path = percentiles(tmp_path / "nights.csv", rows)
    assert invoke(["history", str(path), "--fail-on", "changed"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith("No change was found. p0 (ms): none found;")
    assert "; by itself, as with --metric, it would be slower since 2026-09-20, +" in shown
    assert shown.count("by itself") == 1
    assert invoke(["history", str(path), "--metric", "p0 (ms)", "--fail-on", "changed"]) == 1
    assert capsys.readouterr().out.startswith("p0 (ms): slower since 2026-09-20")


def percentiles(path: Path, rows: np.ndarray) -> Path:
    """A night per column of `rows`, and a metric per row."""
    lines = [f"2026-09-{1 + night:02}," + ",".join(f"{one:.3f}" for one in of) for night, of in enumerate(rows.T)]
    path.write_text("\n".join(["date," + ",".join(f"p{place} (ms)" for place in range(len(rows))), *lines]) + "\n")
    return path


def test_a_cycle_of_seven_days_is_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nights = [date(2026, 1, 1) + timedelta(days=night) for night in range(56)]
    weekend = np.asarray([night.isoweekday() > 5 for night in nights])

    def table(path: Path, values: list[float]) -> Path:
        path.write_text(
            "date,iops\n" + "".join(f"{night},{value}\n" for night, value in zip(nights, values, strict=True))
        )
        return path

    for name, values in (("flat", 100 + noise(56)), ("weekly", 100 + noise(56) - 30 * weekend)):
        path = table(tmp_path / f"{name}.csv", list(values))
        assert invoke(["history", str(path)]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert ("a cycle of seven days" in shown) == (name == "weekly")
    assert re.search(r"IOPS: has a cycle of seven days, from (69|70)\S* on S\w+days to 10\S* IOPS on \w+days:", shown)
    stepped_too = 100 + noise(56) - 5 * weekend + 200 * (np.arange(56) >= 30)
    assert invoke(["history", str(table(tmp_path / "both.csv", list(stepped_too))), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["changes"]) == 1
    (one,) = found["weekly_cycles"]
    assert one["lowest_day"] in ("Saturday", "Sunday") and 290 < one["lowest"] < 298 < one["highest"] < 303
