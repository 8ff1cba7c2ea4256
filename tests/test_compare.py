"""Anybody's numbers in, verdicts out, or one line that says where they are wrong."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from iolab.base.errors import InputError
from iolab.domain.comparison import Comparison, Pair, compare_csv, compare_pairs, compare_table, nature_of
from iolab.domain.definition import better_of
from iolab.domain.verdict.judgement import judge

X = [100.0, 101.0, 99.0, 102.0, 98.0, 100.5, 99.5, 101.5]
Y = [x * 1.2 + d for x, d in zip(X, (0.3, -0.4, 0.1, 0.2, -0.3, 0.4, -0.1, 0.0), strict=True)]


def csv(path: Path, rows: list[str], header: str = "setting,round,iops,lat_us") -> Path:
    file = path / "numbers.csv"
    file.write_text("\n".join([header, *rows]) + "\n")
    return file


def good_rows() -> list[str]:
    return [
        f"{s},{i},{v},{10000 / v}" for i, xy in enumerate(zip(X, Y, strict=True)) for s, v in zip("AB", xy, strict=True)
    ]


def run(file: Path, **options: object) -> list[Comparison]:
    return compare_csv(file, "setting", "round", "A", **options)


def test_every_numeric_column_is_a_metric(tmp_path: Path) -> None:
    iops, latency = run(csv(tmp_path, good_rows()))
    assert (iops.metric, iops.setting, iops.against, iops.judgement.verdict) == ("iops", "B", "A", "faster")
    assert (latency.metric, latency.nature, latency.judgement.verdict) == ("lat_us", "time", "faster")
    assert iops.judgement.ratio == judge(X, Y, nature="rate").ratio
    assert list(iops.as_dict())[:5] == ["metric", "workload", "setting", "against", "baseline"]


def test_rows_in_any_order_are_paired_by_round(tmp_path: Path) -> None:
    shuffled = list(np.random.default_rng(1).permutation(good_rows()))
    plain, mixed = (run(csv(tmp_path, rows))[0].judgement for rows in (good_rows(), shuffled))
    assert plain == mixed


def test_better_overrides(tmp_path: Path) -> None:
    assert run(csv(tmp_path, good_rows()), better={"iops": "lower"})[0].judgement.verdict == "worse"
    assert run(csv(tmp_path, good_rows()), better={"iops": "higher"})[0].judgement.verdict == "faster"


def test_unpaired_rounds_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [*good_rows(), "A,90,500,1", "A,91,500,", "B,92,,1", "B,93,NA,nan"]
    iops, latency = run(csv(tmp_path, rows))
    assert (iops.judgement.n, iops.unpaired_rounds, latency.unpaired_rounds) == (len(X), 2, 2)
    assert iops.notes == ["2 unpaired rounds left out"]
    assert iops.judgement.ratio == judge(X, Y, nature="rate").ratio


def test_workloads_are_compared_apart(tmp_path: Path) -> None:
    rows = [f"{w},{row}" for w in ("read", "write") for row in good_rows()]
    found = run(csv(tmp_path, rows, "workload,setting,round,iops,lat_us"), workload_column="workload")
    assert [(one.workload, one.metric) for one in found] == [
        (w, m) for w in ("read", "write") for m in ("iops", "lat_us")
    ]


def test_several_settings_against_one_baseline(tmp_path: Path) -> None:
    rows = [*good_rows(), *(f"C,{i},{x},{10000 / x}" for i, x in enumerate(X))]
    verdicts = {(one.setting, one.metric): one.judgement.verdict for one in run(csv(tmp_path, rows))}
    assert verdicts["C", "iops"] == "same" and verdicts["B", "iops"] == "faster"


def test_text_columns_are_no_metrics_unless_named(tmp_path: Path) -> None:
    file = csv(tmp_path, [f"{row},ok" for row in good_rows()], "setting,round,iops,lat_us,note")
    assert {one.metric for one in run(file)} == {"iops", "lat_us"}
    with pytest.raises(InputError, match=r"numbers\.csv:2, column note: 'ok' is not a number"):
        run(file, metrics=["note"])


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators(tmp_path: Path, separator: str) -> None:
    rows = [row.replace(",", separator) for row in good_rows()]
    assert len(run(csv(tmp_path, rows, separator.join(("setting", "round", "iops", "lat_us"))))) == 2


@pytest.mark.parametrize(
    "rows,options,message",
    [
        (["A,1,12,1", "B,1,fast,2"], {}, r"numbers\.csv:3, column iops: 'fast' is not a number"),
        (['"A\nA",1,12,1', "B,1,fast,2"], {}, r"numbers\.csv:4, column iops: 'fast'"),
        (["A,1,1,1", ",1,1,1"], {}, r"numbers\.csv:3, column setting: empty"),
        (["A,1,1,1", "A,1,2,2", "B,1,1,1"], {}, r"2 rows share their setting and round.*setting A, round 1"),
        (["A,1,1,1"], {"metrics": ["iop"]}, r"iop: unknown column; did you mean iops\?"),
        (["C,1,1,1"], {}, r"column setting: A: unknown setting; there are: C"),
        (["A,1,x,y"], {}, r"no column with numbers"),
        (["A,1,1,1,1,1"], {}, r"not a CSV table"),
    ],
)
def test_errors_say_where(tmp_path: Path, rows: list[str], options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(csv(tmp_path, rows), **options)


def test_missing_file_and_columns(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        run(tmp_path / "absent.csv")
    with pytest.raises(InputError, match=r"[iI]s a directory"):
        run(tmp_path)
    with pytest.raises(InputError, match=r"settings: unknown column; did you mean setting\?"):
        compare_csv(csv(tmp_path, good_rows()), "settings", "round", "A")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x01,\n")
    with pytest.raises(InputError, match="not a CSV table"):
        run(tmp_path / "binary.csv")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(InputError, match="not a CSV table"):
        run(tmp_path / "empty.csv")


def test_false_discoveries_are_controlled_over_the_table() -> None:
    rng = np.random.default_rng(3)
    columns = {f"m{i}": np.exp(0.05 * rng.standard_normal(20)) for i in range(300)}
    frame = pl.DataFrame({"setting": ["A", "B"] * 10, "round": [i // 2 for i in range(20)], **columns})
    judged = [one.judgement for one in compare_table(frame, "setting", "round", "A")]
    assert sum(one.p_value <= 0.05 for one in judged) > 5
    assert sum(one.differs for one in judged) <= 1


def test_the_sequential_rule_shares_its_promise() -> None:
    pair = Pair("iops", None, "A", "B", X, Y)
    for one in compare_pairs([pair, pair], same_within=0.02, max_rounds=20):
        assert one.judgement.q_value == pytest.approx(min(1, 2 * one.judgement.p_value))
        assert one.judgement.alpha < 0.05 / 2


@pytest.mark.parametrize(
    "metric,nature",
    [
        ("rate_bytes_per_s", "rate"),
        ("read.latency_ns_p99", "time"),
        ("random_read/cpu_ns_per_io", "cost"),
        ("MB/s", "rate"),
        ("ops_per_sec", "rate"),
        ("elapsed", "time"),
        ("clat p99 (us)", "time"),
        ("iops_min", "rate"),
        ("score", "benefit"),
    ],
)
def test_nature(metric: str, nature: str) -> None:
    assert nature_of(metric) == nature
    assert better_of(nature_of(metric, "higher")) == "higher" and better_of(nature_of(metric, "lower")) == "lower"
