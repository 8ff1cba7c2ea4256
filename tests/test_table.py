"""Tables of a run: numbers with units, verdicts in words, and each format."""

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.base.quantity import change, scale_for
from iolab.domain.comparison import Comparison
from iolab.domain.definition import Nature
from iolab.domain.metric import METRICS
from iolab.domain.summary import summarise
from iolab.domain.verdict.judgement import judge
from iolab.files.store import RunData
from iolab.presentation.table import FORMATS, render
from iolab.presentation.table.layout import Footnotes
from iolab.presentation.table.words import change_with_interval, label, sentence, sentences, tally
from support.stored import stored_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return stored_run(tmp_path_factory.mktemp("table") / "run", faster={"fast": 1.2})


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("rate_bytes_per_s", "rate"),
        ("read.latency_ns_p999", "read latency p99.9"),
        ("latency_ns_p99", "latency p99"),
        ("cpu_ns_per_io", "CPU per I/O"),
        ("random_read/iops", "random read: IOPS"),
        ("latency_share_over_10s", "latency share over 10s"),
    ],
)
def test_a_key_reads_as_words(key: str, text: str) -> None:
    assert label(key) == text


def test_labels_tell_all_metrics_apart() -> None:
    assert len({label(name) for name in METRICS}) == len(METRICS)


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        ("bytes/s", 3 * 2**20, "3.000 MiB/s"),
        ("ns", 1234.0, "1.234 µs"),
        ("ns", 0.0, "0.000 ns"),
        ("1/s", 123456.0, "123,456 /s"),
        ("percent", 12.5, "12.50%"),
        ("share", 0.000123, "0.000123"),
        ("count", 7.0, "7"),
        ("count", 1128.0, "1,128"),
        ("count", 7.25, "7.250"),
        ("ns", None, "-"),
        ("ns", float("nan"), "-"),
    ],
)
def test_a_number_has_four_digits_and_its_unit(unit: str, value: float | None, text: str) -> None:
    assert scale_for(unit, [value]).with_unit(value) == text


def test_a_row_keeps_the_digits_of_its_smallest_number() -> None:
    scale = scale_for("1/s", [27770.0, 57.3])
    assert [scale.with_unit(value) for value in (27770.0, 57.3)] == ["27,770 /s", "57 /s"]


@given(st.floats(min_value=1e-3, max_value=1e15), st.sampled_from(sorted({metric.unit for metric in METRICS.values()})))
def test_a_shown_number_is_the_number(value: float, unit: str) -> None:
    scale = scale_for(unit, [value])
    assert float(scale.number(value).replace(",", "")) * scale.divisor == pytest.approx(value, rel=1e-3, abs=1e-6)


def test_a_change_is_a_percentage_or_a_multiple() -> None:
    assert [change(ratio) for ratio in (1.031, 0.99999, 0.5, 3.5, 1e9)] == [
        "+3.1 %",
        "+0.0 %",
        "-50.0 %",
        "3.50x",
        ">999x",
    ]
    assert [change(ratio, as_multiple=True) for ratio in (1.5, 0.5, 17, 126.4, 0.001)] == [
        "1.50x",
        "0.50x",
        "17.0x",
        "126x",
        "<0.01x",
    ]


def test_an_interval_is_read_in_one_notation() -> None:
    wide = comparison([1e6 * factor for factor in (1.2, 9.0, 2.0, 14.0, 3.0, 8.0, 5.0, 2.5)])
    for text in (change_with_interval(wide.judgement), sentence(wide, "ns", same_within=0.02)):
        assert text and "x" in text.replace("95 %", "") and "+" not in text
        assert "%" not in text.replace("95 % interval", "")


def comparison(
    candidate: list[float],
    *,
    metric: str = "latency_ns_p99",
    workload: str | None = "mixed",
    nature: Nature = "time",
) -> Comparison:
    baseline = [1e6 + round for round in range(len(candidate))]
    return Comparison(metric, workload, "new", "old", judge(baseline, candidate, nature=nature), nature, 0)


def test_a_sentence_says_what_how_much_and_how_sure() -> None:
    slower = sentence(comparison([1.5e6 + round for round in range(8)]), "ns", same_within=0.02)
    assert slower.startswith(
        "new is slower than old: on mixed, latency p99 is 50.0 % higher (95 % interval +50.0 % to "
    )
    assert slower.endswith("1.500 ms against 1.000 ms over 8 rounds.")
    same = sentence(comparison([1e6 + round for round in range(8)]), "ns", same_within=0.02)
    assert same.startswith("new is the same as old within 2 %: on mixed, latency p99 differs by +0.0 %")


def test_a_sentence_on_a_metric_without_direction_does_not_value_it() -> None:
    deeper = comparison([2e6 + round for round in range(8)], metric="queue_depth_mean", nature="neutral")
    text = sentence(deeper, "count", same_within=0.02)
    assert text.startswith("new differs from old: on mixed, queue depth mean is 100.0 % higher (95 % interval ")


def test_an_undecided_sentence_says_how_many_more_rounds() -> None:
    noisy = comparison([1e6 * factor for factor in (0.8, 1.3, 0.9, 1.25, 1.1, 0.95, 1.2, 1.15)])
    assert noisy.judgement.verdict == "undecided"
    more = noisy.judgement.rounds_to_decide
    assert sentence(noisy, "ns", same_within=0.02).endswith(f"; about {more} more rounds would decide.")


def test_a_comparison_without_numbers_says_why() -> None:
    text = sentence(comparison([0.0, 2e6], workload=None), "ns", same_within=0.02)
    assert text.startswith("new is undecided against old: latency p99 can't be compared, ")


def test_one_round_shows_the_change_and_no_interval() -> None:
    text = sentence(comparison([2e6], workload=None), "ns", same_within=0.02)
    assert text.endswith("latency p99 differs by +100.0 %, and one round has no interval.")


def test_the_tally_counts_verdicts(run: RunData) -> None:
    summary = summarise(run)
    assert re.fullmatch(r"(\d \w+, )*\d \w+", tally(summary.comparisons))
    assert tally([]) == "nothing to compare"
    assert len(sentences(summary)) == len(summary.comparisons) == 6


def test_every_format_can_be_made(run: RunData, tmp_path: Path) -> None:
    general = {"plain", "csv", "markdown", "json"}
    for name in FORMATS:
        try:
            assert "fast" in render(run, name)
        except InputError as error:
            assert name not in general, error
            assert str(run.path) in str(error)
    with pytest.raises(InputError, match="did you mean markdown"):
        render(run, "markdwn")


def test_plain_has_a_column_per_setting_and_ends_in_words(run: RunData) -> None:
    text = render(run, "plain")
    heading = next(line for line in text.splitlines() if line.strip().startswith("metric"))
    assert heading.split() == ["metric", "unit", "plain", "fast", "alike"]
    assert text.splitlines()[1].startswith("8 rounds on host; baseline plain; ")
    assert text.splitlines()[2].startswith("● fast is faster than plain in ")
    assert "rate (+20.0 %)" in text.splitlines()[2]
    assert sum(line.startswith("○ Undecided, ") for line in text.splitlines()) <= 1
    assert not any(line != line.rstrip() for line in text.splitlines()), "no spaces at the ends of lines"


def test_csv_has_a_line_per_trial_and_units_in_names(run: RunData) -> None:
    rows = list(csv.DictReader(io.StringIO(render(run, "csv"))))
    assert len(rows) == run.trials.height
    assert float(rows[0]["rate_bytes_per_s"]) > 0
    assert list(rows[0])[:5] == ["trial", "round", "workload", "setting", "status"]
    assert render(run, "csv", ["iops"]).splitlines()[0] == "trial,round,workload,setting,status,iops"


def test_markdown_has_a_column_per_setting_while_lines_stay_short(run: RunData) -> None:
    short = [line for line in render(run, "markdown", ["ops"]).splitlines() if line.startswith("|")]
    assert re.split(r" *\| *", short[0])[1:-1] == ["setting", "value", "change", "verdict"]


def test_an_absent_value_is_shown_with_its_reason(run: RunData) -> None:
    row = summarise(run, metrics=["mismatches"]).rows[0]
    cell = row.cells["plain"]
    assert cell.typical is None and cell.reason
    assert cell.reason in render(run, "plain", ["mismatches"])


def test_a_long_reason_is_told_once_below_the_table() -> None:
    footnotes = Footnotes()
    long = "the trial failed: make failed with exit status 2"
    marks = [footnotes.mark(text) for text in (long, "no reads", f"{long} on sdb", long)]
    assert marks == ["[1]", "no reads", "[2]", "[1]"]
    assert footnotes.lines() == [f"[1] {long}", f"[2] {long} on sdb"]


def test_a_workload_s_long_name_is_not_broken_by_its_narrow_table(tmp_path: Path) -> None:
    name = "a-workload-whose-name-is-far-longer-than-any-of-the-tables-that-this-run-has-to-show-for-it"
    text = (
        f'rounds = 1\nseed = 7\n[target]\nkind = "directory"\npath = "."\n[workloads.{name}]\n'
        'file_size = "1MiB"\nduration = "1s"\n[settings.a]\n'
    )
    assert name in render(stored_run(tmp_path / "run", text), "plain", ["iops"]).splitlines()
