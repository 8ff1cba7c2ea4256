"""What moved together with a result: known movers are found, noise is not, and few rounds say so."""

import itertools
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from iolab.domain.comparison import Comparison, compare_table
from iolab.domain.explain import Explanation, explain
from iolab.domain.explain.alone import stage_times
from iolab.domain.explain.correlation import EXACT_MAX, rank_correlations, rounds_needed
from iolab.domain.explain.evidence import SUSPECTS, THROUGHPUT
from iolab.domain.metric import METRICS
from iolab.presentation.cli.invoke import invoke
from iolab.presentation.table.explanation import explanations, finding_sentence
from iolab.presentation.table.stage_times import sentence
from iolab.presentation.terminal import text_of
from scipy.stats import spearmanr
from support.command_line import CommandLine
from support.stored import TWO_SETTINGS, stored_run

GOLDEN = Path(__file__).parent / "golden" / "tables"


def table(seed: int, rounds: int, *, noise: int = 10, step: float = 0.4) -> pl.DataFrame:
    """Settings a and b over rounds. The mover makes the result, the bystander depends on the setting alone."""
    source = np.random.default_rng(seed)
    level = np.where(np.arange(2 * rounds) % 2, step, 0.0)
    mover = level + source.normal(0, 0.1, 2 * rounds)
    iops = 1000 * np.exp(-0.8 * mover + source.normal(0, 0.01, 2 * rounds))
    columns = {
        "iops": iops,
        "latency_ns_mean": 16e9 / iops * np.exp(source.normal(0, 1e-4, 2 * rounds)),
        "milli_iops": 1000 * iops,
        "mover_ns": 5000 * np.exp(mover),
        "mover_us": 5 * np.exp(mover),
        "bystander": 50 * np.exp(level + source.normal(0, 0.05, 2 * rounds)),
        "steady": 70 * np.exp(source.normal(0, 0.002, 2 * rounds)),
        "constant": np.full(2 * rounds, 3.0),
        "missing": np.full(2 * rounds, np.nan),
        **{f"noise_{index}": np.exp(source.normal(0, 0.1, 2 * rounds)) for index in range(noise)},
    }
    names = {"setting": ["a", "b"] * rounds, "round": np.repeat(np.arange(rounds), 2)}
    return pl.DataFrame({**names, **columns})


def results(frame: pl.DataFrame, *metrics: str) -> list[Comparison]:
    return compare_table(frame, "setting", "round", "a", metrics or ("iops",))


def explained(frame: pl.DataFrame, *metrics: str) -> Explanation:
    return explain(frame, results(frame, *metrics))[0]


def kinds(one: Explanation) -> dict[str, str]:
    return {finding.metric: finding.kind for finding in one.looked_at}


def test_a_mover_is_told_from_what_moved_with_the_setting_alone() -> None:
    one = explained(table(1, 12))
    assert [finding.metric for finding in one.findings[:2]] == ["mover_ns", "bystander"]
    mover, bystander = one.findings[:2]
    assert (mover.kind, mover.with_setting.movement, mover.likewise) == ("both", "higher", ["mover_us"])
    assert mover.with_result.rank_correlation is not None and mover.with_result.rank_correlation < -0.9
    assert bystander.kind == "setting"


def test_the_result_in_other_words_explains_nothing() -> None:
    one = explained(table(1, 12))
    assert set(one.same_measure) == {"latency_ns_mean", "milli_iops"}
    assert not {"iops", "latency_ns_mean", "milli_iops"} & kinds(one).keys()


def test_what_did_not_move_is_told() -> None:
    one = explained(table(1, 12))
    assert [finding.metric for finding in one.did_not_move] == ["steady"]
    assert (one.constant, one.absent) == (["constant"], ["missing"])


def test_a_result_that_tells_the_same_as_another_is_explained_once() -> None:
    frame = table(1, 12)
    first, second = explain(frame, results(frame, "iops", "latency_ns_mean"))
    assert first.why_not is None and second.why_not == "it states the same as iops"


def test_what_goes_the_other_way_is_no_support() -> None:
    frame = table(1, 12)
    # Higher with the setting, as the result is lower; but within settings it rises as the result does.
    contrary = pl.when(pl.col("setting") == "b").then(4.0).otherwise(1.0) * pl.col("iops")
    one = explained(frame.with_columns(contrary=contrary))
    assert kinds(one)["contrary"] == "contrary"
    assert "the other way" in finding_sentence(one.findings[-1], one)


def test_few_rounds_say_how_many_it_takes() -> None:
    three, five = explained(table(1, 3, step=4.0)), explained(table(1, 5))
    assert all(finding.with_result.rank_correlation is None for finding in three.looked_at)
    assert kinds(three)["mover_ns"] == "setting"
    assert "3 rounds are too few to show" in text_of(explanations([three]))
    assert five.rounds_needed == 6
    assert "5 rounds are few to show" in text_of(explanations([five]))
    assert "few to show" not in text_of(explanations([explained(table(1, 6))]))


def test_rounds_needed_lets_a_single_metric_pass() -> None:
    assert [rounds_needed(metrics) for metrics in (1, 3, 4, 10, 100, 1000)] == [5, 5, 6, 6, 7, 8]


@pytest.mark.long
@pytest.mark.parametrize("rounds", [5, 12])
def test_false_discoveries_stay_within_their_rate(rounds: int) -> None:
    """Each kind of evidence promises a share of at most 5 % of what it claims, on average over experiments."""
    of_setting, of_result = [], []
    for seed in range(40):
        one = explained(table(100 + seed, rounds))
        moved = [finding.metric for finding in one.looked_at if finding.with_setting.moved]
        moves = [finding.metric for finding in one.looked_at if finding.with_result.moves]
        of_setting.append(share(moved, {"mover_ns", "bystander"}))
        of_result.append(share(moves, {"mover_ns"}))
    # Two standard errors of 40 experiments on top.
    assert np.mean(of_setting) <= 0.05 + 2 * np.std(of_setting) / np.sqrt(40)
    assert np.mean(of_result) <= 0.05 + 2 * np.std(of_result) / np.sqrt(40)
    assert np.mean(of_setting) <= 0.1 and np.mean(of_result) <= 0.1


def share(claimed: list[str], true: set[str]) -> float:
    return len(set(claimed) - true) / len(claimed) if claimed else 0.0


@pytest.mark.parametrize("rounds", [5, 6, EXACT_MAX])
def test_p_values_are_exact_for_few_rounds(rounds: int) -> None:
    result = np.random.default_rng(rounds).normal(size=rounds)
    ranks = np.argsort(np.argsort(result)).astype(float)
    rho, p = rank_correlations(result, np.array([ranks, -ranks, np.roll(ranks, 1)]))
    assert rho[:2] == pytest.approx([1, -1])
    assert p[:2] == pytest.approx(2 / len(list(itertools.permutations(range(rounds)))))
    assert rho[2] == pytest.approx(spearmanr(result, np.roll(ranks, 1)).statistic)


def test_drawn_orders_come_to_the_same() -> None:
    source = np.random.default_rng(3)
    result, metric = source.normal(size=(2, 30))
    rho, p = rank_correlations(result, (metric + result)[None, :] * 0.3)
    reference = spearmanr(result, metric + result)
    assert rho[0] == pytest.approx(reference.statistic)
    assert p[0] == pytest.approx(reference.pvalue, abs=0.005)


def test_numbers_without_variation_have_no_correlation() -> None:
    frame = table(1, 8).with_columns(iops=pl.when(pl.col("setting") == "a").then(100.0).otherwise(80.0))
    one = explained(frame)
    assert {finding.with_result.reason for finding in one.looked_at} == {"it is the same in all rounds"}
    assert kinds(one)["mover_ns"] == "setting"


def test_a_zero_has_no_ratio_and_still_moves() -> None:
    merges = pl.when(pl.col("setting") == "b").then(pl.col("round") + 500.0).otherwise(0.0)
    one = explained(table(1, 8).with_columns(merges=merges, errors=pl.lit(0.0)))
    found = next(finding for finding in one.findings if finding.metric == "merges")
    assert (found.kind, found.with_setting.movement) == ("setting", "higher")
    assert "503.5 against 0.0" in finding_sentence(found, one)


def test_absent_rounds_are_left_out() -> None:
    holes = pl.when(pl.col("round") > 2).then(pl.col("mover_ns") ** 2)
    one = explained(table(1, 12).with_columns(holes=holes))
    found = next(finding for finding in one.looked_at if finding.metric == "holes")
    assert (found.with_setting.judgement.n, found.with_result.n) == (9, 9)


def test_an_explanation_is_golden() -> None:
    frame = table(1, 12).rename({"mover_ns": "time_in_scheduler_ns_mean", "steady": "queue_depth_mean"})
    shown = text_of(explanations(explain(frame, results(frame, "iops", "noise_1"))))
    assert shown == (GOLDEN / "explain.txt").read_text()


def test_the_words_are_in_the_registry() -> None:
    assert METRICS.keys() >= {*SUSPECTS, *THROUGHPUT}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored_run(tmp_path_factory.mktemp("explain") / "run", faster={"fast": 1.2}).path


def test_a_run_is_explained(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["explain", str(run)]) == 0
    shown = capsys.readouterr().out
    assert "fast is faster than plain" in shown
    assert "alike against plain: nothing to explain, it is the same under both" in shown
    assert "The probe block was off" in shown


def test_json_has_all_that_was_looked_at(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["explain", str(run), "--metric", "rate_bytes_per_s", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    first = told["explanations"][0]
    assert first["result"]["verdict"] == "faster" and first["why_not"] is None
    assert {"first", "changes", "budget", "symptoms"} < told["causes"][0].keys()
    assert {"metric", "likewise", "kind", "with_setting", "with_result"} == first["looked_at"][0].keys()
    assert "block" in told["probes_off"] and told["problems"] == []


def test_two_runs_are_explained_setting_by_setting(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = stored_run(tmp_path / "run", faster={"plain": 1.5}).path
    assert invoke(["explain", str(run), str(other), "--metric", "rate_bytes_per_s"]) == 0
    assert f"plain in {other} is faster than plain in {run}" in " ".join(capsys.readouterr().out.split())


def test_a_csv_file_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "numbers.csv"
    table(1, 12).write_csv(file)
    assert invoke(["explain", str(file)]) == 0
    by_content = capsys.readouterr().out
    named = ["--setting-column", "setting", "--round-column", "round", "--baseline", "a"]
    assert invoke(["explain", str(file), *named]) == 0
    by_hand = capsys.readouterr().out
    assert "This explains iops, the first metric compared" in by_hand
    for shown in (by_content, by_hand):
        assert "● mover moved with the setting" in shown and "The probe" not in shown


def test_several_files_are_taken_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = table(1, 12)
    files = []
    for begin in (0, 4, 8):
        files.append(tmp_path / f"part{begin}.csv")
        frame.filter(pl.col("round").is_between(begin, begin + 3)).write_csv(files[-1])
    assert invoke(["explain", *map(str, files), "--metric", "iops"]) == 0
    assert "b is slower than a" in capsys.readouterr().out


def test_mistakes_are_named(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        ((run, "--metric", "iopps"), ("iopps", "iops")),
        ((run, "--workload", "bothh"), ("--workload", "both")),
        ((run, "--baseline", "plane"), ("--baseline", "plain")),
        ((run, "--setting-column", "x"), ("--setting-column", "is for CSV files")),
        ((run, run, "--baseline", "plain"), ("--baseline", "leave it out")),
        ((tmp_path / "nowhere",), ("nowhere", "does not exist")),
    ):
        assert invoke(["explain", *map(str, arguments)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert all(word in line for word in words), line


def test_a_run_without_a_round_in_common_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = stored_run(tmp_path / "run", TWO_SETTINGS.replace("rounds = 8", "rounds = 1")).path
    assert invoke(["explain", str(path)]) == 0
    assert "nothing to explain, it is undecided" in capsys.readouterr().out


def test_a_single_setting_states_where_the_time_of_an_io_goes() -> None:
    of_block = {"block_ns_per_io": 950e3, "queue_ns_per_io": 150e3, "device_ns_per_io": 800e3}
    values = {"latency_ns_mean": 1e6, **of_block, "bios_per_io": 1.0, "requests_per_io": 1.0}
    frame = pl.DataFrame(
        [
            {"workload": "reads", "setting": "none", "round": 1, **values},
            {"workload": "reads", "setting": "none", "round": 2, **{key: 3 * one for key, one in of_block.items()}}
            | {"latency_ns_mean": 3e6, "bios_per_io": 1.0, "requests_per_io": 1.0},
            {"workload": "writes", "setting": "none", "round": 1, "latency_ns_mean": 5e6},
        ]
    )
    (found,) = stage_times(frame)
    stages = {"above": 100e3, "queue": 300e3, "scheduler": 0.0, "device": 1600e3, "unknown": 0.0}
    assert (found.workload, found.phase, found.ns_per_io) == ("reads", "", pytest.approx(stages))
    stated = "an I/O takes 2.000 ms: 80 % at the device, 15 % in the queue, 5 % above the block layer."
    assert sentence(found) == f"reads under none: {stated}"
    (of_phase,) = stage_times(frame.rename({name: f"write/{name}" for name in values}))
    assert sentence(of_phase) == f"reads, phase write under none: {stated}"


def test_a_single_setting_without_stages_states_what_shows_more(tmp_path: Path, iolab: CommandLine) -> None:
    (tmp_path / "one.csv").write_text("iops\n1\n2\n")
    found = iolab("explain", "one.csv").stdout
    assert found.startswith("A single setting has nothing to be compared with: iolab show ") and found.count("\n") == 1
    stored_run(tmp_path / "run", TWO_SETTINGS.partition("[settings.fast]")[0])
    found = iolab("explain", "run").stdout
    assert "the probe block shows where the time of an I/O goes" in found and found.count("\n") == 1
