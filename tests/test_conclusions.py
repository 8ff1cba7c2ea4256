"""What a comparison comes to, in sentences."""

import math
from pathlib import Path

import pytest
from iolab.domain.comparison import Comparison, Pair, compare_pairs
from iolab.domain.definition import Nature
from iolab.domain.verdict.doubt import why_undecided_of
from iolab.domain.verdict.judgement import judge
from iolab.files.importer.run_import import open_run
from iolab.presentation.cli.outcome import exit_if_met
from iolab.presentation.table import render
from iolab.presentation.table.conclusions import conclusions
from iolab.presentation.table.words import rounds_of_both, tally
from test_importer import opened
from typer import Exit


def compared(metric: str, baseline: float, candidate: float) -> Comparison:
    ours, theirs = ([level * (1 + 0.001 * round_) for round_ in range(5)] for level in (baseline, candidate))
    return Comparison(metric, None, "b", "a", judge(ours, theirs, nature="cost"), "cost", 0)


def test_what_hardly_ever_happens_is_no_conclusion() -> None:
    rare, often = compared("switches_per_op", 0.0014, 0.0039), compared("switches_per_op", 0.5, 1.4)
    assert conclusions([rare]) == []
    assert [one.verdict for one in conclusions([often])] == ["worse"]
    slower = compared("cpu_ns_per_io", 0.001, 0.002)
    (one,) = conclusions([rare, slower])
    assert "CPU per I/O" in one.text and "switches" not in one.text


def test_the_undecided_are_counted_of_all_comparisons() -> None:
    """As the line above counts them, which has what hardly ever happens too."""
    noisy = judge([1.0, 1.2, 0.9, 1.1, 1.0], [1.1, 1.0, 1.2, 0.9, 1.0], nature="cost")
    undecided = Comparison("cpu_ns_per_io", None, "b", "a", noisy, "cost", 0)
    found = [undecided, compared("cpu_ns_per_byte", 1.0, 2.0), compared("switches_per_op", 0.0014, 0.0039)]
    assert tally(found) == "2 worse, 1 undecided"
    (text,) = [one.text for one in conclusions(found) if one.text.startswith("Undecided")]
    assert text.startswith("Undecided, 1 of 3: b in CPU per I/O")


def test_what_the_number_of_comparisons_alone_leaves_open_is_stated_first_with_its_change() -> None:
    """Three rounds of each, apart by more than their spread, so that p < 0.05."""
    noisy = [([1.0, 1.2, 0.9], [1.1, 1.0, 1.1]) for _ in range(4)]
    arms = [*noisy[:2], ([1000.0, 1200.0, 1100.0], [1500.0, 1300.0, 1400.0]), *noisy[2:]]
    names = ("cpu_ns_per_io", "rate_bytes_per_s", "iops", "latency_ns_mean", "latency_ns_p99")
    pairs = [Pair(name, None, "a", "b", *of, pairing="none") for name, of in zip(names, arms, strict=True)]
    found = [one.text for one in conclusions(compare_pairs(pairs, same_within=0.02))]
    assert found[0].startswith("By itself decided, among 5 not yet: b in IOPS (+27.3 %, "), found
    assert found[1].startswith("Undecided, 4 of 5: b in ") and "IOPS" not in found[1]
    assert not any("by itself" in text for text in found[1:])


def test_a_change_of_fewer_rounds_than_the_values_beside_it_names_them() -> None:
    def of(metric: str, candidate: list[float | None]) -> Pair:
        return Pair(metric, "mix", "a", "b", [1.0, 1.1, 1.2, 1.3], candidate, job="web")

    found = compare_pairs(
        [of("latency_ns_p99", [None, 2.0, None, 2.1]), of("iops", [1.0] * 4), of("latency_ns_p50", [None] * 4)],
        same_within=0.02,
    )
    assert rounds_of_both(found) == [
        "latency p99 of mix, job web (b): change over the 2 rounds that have both, values over all that have one"
    ]


def test_what_hardly_ever_happens_fails_no_gate_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    exit_if_met(["worse"], [compared("switches_per_op", 0.0014, 0.0039)])
    left_out = "--fail-on leaves out what happens less than 0.01 times per operation"
    assert capsys.readouterr().err == f"iolab: {left_out}: switches per op b worse\n"
    with pytest.raises(Exit):
        exit_if_met(["worse"], [compared("switches_per_op", 0.5, 1.4)])


def of_job(job: str | None, metric: str, candidate: float) -> Comparison:
    ours, theirs = ([level * (1 + 0.001 * round_) for round_ in range(5)] for level in (100.0, candidate))
    nature: Nature = "time" if "latency" in metric else "rate"
    return Comparison(metric, "mix", "bfq", "none", judge(ours, theirs, nature=nature), nature, 0, job=job)


def test_what_one_job_gains_and_another_loses_is_said_job_by_job() -> None:
    """*Faster on two jobs, slower on two* hides who pays for whom."""
    found = [
        of_job("reader", "rate_bytes_per_s", 250.0),
        of_job("reader", "latency_ns_mean", 40.0),
        of_job("writer", "rate_bytes_per_s", 25.0),
        of_job(None, "rate_bytes_per_s", 80.0),
        of_job(None, "latency_ns_mean", 60.0),
    ]
    (first,) = conclusions(found)
    assert first.verdict == "slower"
    assert first.text.replace(", so far", "") == (
        "bfq against none: mix, job writer: slower in rate (-75.0 %); "
        "mix, job reader: faster in rate (+150.0 %) and latency mean (-60.0 %); "
        "mix as a whole: slower in rate (-20.0 %), faster in latency mean (-40.0 %)."
    )
    (alike,) = conclusions([found[0], of_job("writer", "rate_bytes_per_s", 300.0)])
    assert alike.text.startswith("bfq is faster than none in rate on 2 jobs")


def test_noise_is_printed_without_exponents() -> None:
    assert why_undecided_of(9, 9, math.log(3.73)).endswith("varies by 273 %")
    assert why_undecided_of(9, 9, math.log(1.0273)).endswith("varies by 2.7 %")
    assert why_undecided_of(9, 9, 50.0).endswith("varies by more than 100,000 %")


def test_a_setting_alone_has_a_sentence_with_its_levels_and_its_rounds(tmp_path: Path) -> None:
    """The first question of a run of one setting is how much, and whether the rounds agree."""
    path = tmp_path / "drive.csv"
    shown = render(opened(path, "run,elapsed_s,iops\n1,0.5,100\n2,0.5,80\n3,0.5,130\n"), "plain").splitlines()
    assert shown[2] == "● IOPS 102.5 (80.0 to 130.0) and elapsed 500.0 ms (500.0 to 500.0)."
    shown = render(opened(path, "test,iops\nread,100\nwrite,80\nread,100\nwrite,80\n"), "markdown").splitlines()
    assert shown[4:6] == ["- read: IOPS 100.0 (100.0 to 100.0).", "- write: IOPS 80.00 (80.00 to 80.00)."]


def test_of_reads_and_writes_together_the_sentence_has_their_sum_and_three_kinds_of_figures(tmp_path: Path) -> None:
    path = tmp_path / "mix.csv"
    path.write_text("read iops,write iops,iops,rate_bytes_per_s,latency_ns_p99\n700,300,1000,4096000,2000000\n")
    assert render(open_run(path), "plain").splitlines()[2] == (
        "● IOPS 1,000, rate 3.906 MiB/s and latency p99 2.000 ms."
    )
    path.write_text("read iops,write iops\n700,300\n")
    assert render(open_run(path), "plain").splitlines()[2] == "● read IOPS 700.0 and write IOPS 300.0."


def test_what_has_no_value_is_named_among_the_undecided(tmp_path: Path) -> None:
    """Who asks for p99 has to read that there is none, not that two other metrics are undecided."""
    path = tmp_path / "tails.csv"
    path.write_text("setting,iops,latency_ns_p99\na,100,\na,130,\nb,101,5\nb,99,6\n")
    (stated, *_) = [line for line in render(open_run(path), "markdown").splitlines() if line.startswith("- Undecided")]
    assert "b in IOPS" in stated and stated.endswith("; without values of both: latency p99.")


def test_a_metric_that_one_lacks_takes_nothing_from_what_one_round_shows(tmp_path: Path) -> None:
    path = tmp_path / "flushes.csv"
    path.write_text("setting,iops,latency_ns_p99\na,100,\nb,130,5\n")
    (stated, *_) = [line for line in render(open_run(path), "markdown").splitlines() if "In one round" in line]
    assert stated == "- In one round, b differs from a in IOPS (+30.0 %). Without values of both: latency p99."


def test_one_round_names_only_figures_that_differ(tmp_path: Path) -> None:
    path = tmp_path / "same.csv"
    path.write_text("setting,iops,elapsed_s\na,100,2\nb,100,3\nc,100,2\n")
    (stated,) = [line for line in render(open_run(path), "plain").splitlines() if line.startswith("○")]
    assert "IOPS" not in stated and "b differs from a in elapsed (+50.0 %)" in stated and "c differs" not in stated
    assert "In one round, no figure differs." in render(opened(path, "setting,iops\na,100\nb,100\n"), "plain")


def test_undecided_settings_are_named_nearest_first_with_the_span_of_their_noise(tmp_path: Path) -> None:
    """Of settings that are all undecided, the reader asks which is nearest to a verdict, and how noisy it was."""
    path = tmp_path / "mounts.csv"
    values = {
        "default": (100, 130, 90, 120, 101, 95),
        "noatime": (104, 121, 97, 118, 90, 112),
        "writeback": (160, 110, 95, 170, 80, 150),
    }
    rows = (f"{name},{number},{one}\n" for name, of in values.items() for number, one in enumerate(of))
    path.write_text(f"setting,round,iops\n{''.join(rows)}")
    shown = [line for line in render(open_run(path), "markdown").splitlines() if line.startswith("- ")]
    assert shown == [
        "- Undecided, all 2: writeback in IOPS (38 more); noatime in IOPS (103 more).",
        "- Why undecided: noise: the change of one round varies by 11 % to 37 % (noatime, IOPS and 1 more).",
    ]


def judged_of(job: str | None, metric: str, ratio: float | None, *, leads: bool, noise: float = 0.001) -> Comparison:
    ours = [100.0 * (1 + noise * (round_ * 7 % 5)) for round_ in range(5)]
    theirs = [None if ratio is None else ratio * 100.0 * (1 + noise * (round_ * 3 % 5)) for round_ in range(5)]
    return Comparison(metric, "m", "b", "a", judge(ours, theirs, nature="time"), "time", 0, job=job, leads=leads)


def test_what_differs_comes_before_what_is_the_same_or_undecided() -> None:
    same, slower = judged_of(None, "rate_s", 1.0, leads=True), judged_of(None, "latency_ns_p99", 3.0, leads=False)
    (one,) = conclusions([same, slower])
    assert one.verdict == "slower" and one.text.startswith("b is slower than a in latency p99 (3.00x); the same within")
    undecided = judged_of(None, "latency_ns_mean", 1.0, leads=True, noise=0.3)
    assert conclusions([undecided, slower])[0].text.startswith("b is undecided against a in latency mean")
    assert conclusions([undecided, same, slower])[0].text.startswith("b is slower than a in latency p99")


def test_maxima_and_rare_percentiles_are_named_last() -> None:
    metrics = ("latency_ns_max", "latency_ns_p9999", "latency_ns_p50", "latency_ns_mean", "latency_ns_p99")
    sizes = (9.0, 8.0, 1.5, 1.4, 1.3)
    (one,) = conclusions([judged_of(None, name, size, leads=False) for name, size in zip(metrics, sizes, strict=True)])
    assert "latency max" in one.text and "p99.99" not in one.text and "and 1 more" in one.text


def test_a_job_that_is_undecided_has_a_clause_beside_one_that_lost() -> None:
    found = [
        judged_of("backup", "latency_ns_mean", 20.0, leads=True),
        judged_of("database", "latency_ns_p99", 1.0, leads=True, noise=0.3),
        judged_of("database", "rate_s", 1.0, leads=False, noise=0.3),
        judged_of(None, "latency_ns_mean", 4.0, leads=False),
    ]
    text = conclusions(found)[0].text
    assert text.startswith("b against a: m, job backup: slower in latency mean (20.0x); m, job database: undecided in")
    assert text.endswith("m as a whole: slower in latency mean (4.00x).") and "rate" not in text


def test_the_first_metric_of_each_job_that_has_values_of_both_leads() -> None:
    def pair(job: str | None, metric: str, theirs: float | None) -> Pair:
        return Pair(metric, "m", "a", "b", [1.0, 1.1], [theirs, theirs], job=job)

    pairs = [
        *(pair("backup", "latency_ns_p99", None), pair("backup", "latency_ns_mean", 9.0)),
        *(pair("database", "latency_ns_p99", 1.0), pair("database", "latency_ns_mean", 1.0)),
        pair(None, "latency_ns_p99", 1.0),
    ]
    found = compare_pairs(pairs, same_within=0.02)
    assert [(one.job, one.metric) for one in found if one.leads] == [
        ("backup", "latency_ns_mean"),
        ("database", "latency_ns_p99"),
    ]
    absent = found[0].judgement
    assert (absent.verdict, absent.n, absent.baseline, absent.candidate) == ("undecided", 0, 1.05, None)
