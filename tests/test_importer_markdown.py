"""Tables of Markdown as people post them: figures with units, settings in rows or in columns, numbered rounds."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.files.importer.quantity_cell import quantity
from iolab.files.importer.run_import import open_run
from test_importer import opened, value

MIB = 2**20
ROUNDS = """| Benchmark | Result 1 | Result 2 | Result 3 | Average |
| --- | --- | --- | --- | --- |
| hdparm | 150.2 MB/s | 151.0 MB/s | 149.5 MB/s | 150.2 MB/s |
| 4k read | TODO | TODO | TODO | TODO |
| 4k write | 1,234 KB/s | 1,200 KB/s | 1,260 KB/s | 1,231 KB/s |
"""
SETTINGS_IN_ROWS = """| scheduler | read IOPS | BW | lat |
|---|---:|---|---|
| none | 65.5k | 512 MB/s | 122 us |
| bfq | 33.1k | 258 MiB/s | 1.2 ms |
"""
SETTINGS_IN_COLUMNS = """| test | ext4 | xfs |
|---|---|---|
| rand 4k p99 | 900 us | 1.1 ms |
| seq 1M | 1.2 GB/s | 1.4 GB/s |
"""
WAYS_IN_COLUMNS = """| drive | seq read | seq write |
|---|---|---|
| a | 500 MB/s | 300 MB/s |
"""


@pytest.mark.parametrize(
    ("text", "setting", "workload", "metric", "expected"),
    [
        (SETTINGS_IN_ROWS, "none", "table", "read.iops", 65_500),
        (SETTINGS_IN_ROWS, "none", "table", "rate_bytes_per_s", 512e6),
        (SETTINGS_IN_ROWS, "bfq", "table", "rate_bytes_per_s", 258 * MIB),
        (SETTINGS_IN_ROWS, "bfq", "table", "latency_ns_mean", 1.2e6),
        (SETTINGS_IN_COLUMNS, "ext4", "rand 4k", "latency_ns_p99", 900e3),
        (SETTINGS_IN_COLUMNS, "xfs", "seq 1M", "rate_bytes_per_s", 1.4e9),
        (WAYS_IN_COLUMNS, "a", "table", "write.rate_bytes_per_s", 300e6),
    ],
)
def test_figures_with_units(
    tmp_path: Path, text: str, setting: str, workload: str, metric: str, expected: float
) -> None:
    assert value(opened(tmp_path / "table.md", text), setting, workload, metric) == pytest.approx(expected)


YABS = """Block Size | 4k            (IOPS) | 64k           (IOPS)
  ------   | ---            ----  | ----           ----
Read       | 142.02 MB/s  (35.5k) | 1.36 GB/s    (21.4k)
Total      | 284.41 MB/s  (71.1k) | 2.74 GB/s    (42.9k)
           |                      |
Block Size | 512k          (IOPS) | 1m            (IOPS)
  ------   | ---            ----  | ----           ----
Read       | 3.36 GB/s     (6.5k) | 3.75 GB/s     (3.6k)
"""
YABS_IN_ONE_TABLE = """| Block Size | 4k (IOPS) | 64k (IOPS) |
| --- | --- | --- |
| Read | 240.07 MB/s (60.0k) | 1.53 GB/s (24.0k) |
|  |  |  |
| Block Size | 512k (IOPS) | 1m (IOPS) |
| \\------ | \\--- ---- | \\---- ---- |
| Read | 2.94 GB/s (5.7k) | 3.09 GB/s (3.0k) |
"""
SIZES_IN_COLUMNS = """| Block Size | 4k (MB/s) | 4k (IOPS) | 8k (MB/s) | 8k (IOPS) |
|------------|-----------|------------|------------|------------|
| Read       | 430.27    | 107568     | 436.29     | 54536     |
| Write      | 385.19    | 96297      | 390.04     | 48756     |
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (YABS, {"read.4k": (142.02e6, 35_500), "64k": (2.74e9, 42_900), "read.1m": (3.75e9, 3_600)}),
        (YABS_IN_ONE_TABLE, {"read.4k": (240.07e6, 60_000), "read.512k": (2.94e9, 5_700), "read.1m": (3.09e9, 3e3)}),
        (SIZES_IN_COLUMNS, {"read.4k": (430.27e6, 107_568), "write.8k": (390.04e6, 48_756)}),
    ],
)
def test_columns_of_block_sizes_are_workloads_and_rows_operations(
    tmp_path: Path, text: str, expected: dict[str, tuple[float, float]]
) -> None:
    run = opened(tmp_path / "table.md", text)
    assert not run.problems
    for name, figures in expected.items():
        op, dot, size = name.rpartition(".")
        keys = [f"{op}{dot}{metric}" for metric in ("rate_bytes_per_s", "iops")]
        found = tuple(value(run, "table", f"table[{size}]", key) for key in keys)
        assert found == pytest.approx(figures), name


def test_numbered_columns_are_rounds_and_their_average_is_none(tmp_path: Path) -> None:
    run = opened(tmp_path / "table.md", ROUNDS)
    assert sorted(run.trials.select("setting", "workload", "round").rows()) == sorted(
        ("table", workload, round) for workload in ("hdparm", "4k write") for round in range(3)
    )
    assert value(run, "table", "4k write", "write.rate_bytes_per_s", 2) == 1_260e3


@pytest.mark.parametrize(
    ("cell", "expected", "metric"),
    [
        ("1,234", 1234, None),
        ("65.5k", 65_500, None),
        ("4.95%", 4.95, None),
        ("12.3k IOPS", 12_300, "iops"),
        ("1.5 GiB/s", 1.5 * 2**30, "rate_bytes_per_s"),
        ("7 µs", 7_000, "ns"),
    ],
)
def test_quantities(cell: str, expected: float, metric: str | None) -> None:
    found = quantity(cell)
    assert found is not None
    assert (found.value, found.metric) == (pytest.approx(expected), metric)


@pytest.mark.parametrize("cell", ["", "TODO", "-", "6.1", "ext4", "100 Mbps", "5 files", "1.2.3 ms", "v2"])
def test_what_is_no_quantity_of_a_known_unit(cell: str) -> None:
    assert quantity(cell) is None or cell == "6.1"


@given(st.text(max_size=60))
def test_any_cell_is_read_or_not(cell: str) -> None:
    found = quantity(cell)
    assert found is None or abs(found.value) < float("inf")


def test_two_figures_in_a_cell_are_both_read_and_a_range_is_named(tmp_path: Path) -> None:
    table = """| Workload | Read | Write |
|---|---|---|
| seq | 2,000 MB/s | 1,000 MB/s |
| random | 400 MB/s (100K IOPS) | ~500 MB/s |
| mixed | 1.2-2.2 GB/s | 700 MB/s |
"""
    path = tmp_path / "two.md"
    run = opened(path, table)
    assert value(run, "two", "seq", "read.rate_bytes_per_s") == 2e9
    assert value(run, "two", "random", "read.iops") == 100_000
    assert value(run, "two", "random", "write.rate_bytes_per_s") == 500e6
    assert run.problems == [f"{path}:2: 1 cell without a single figure, such as '1.2-2.2 GB/s': left out"]


def test_a_headers_unit_is_that_of_its_cells(tmp_path: Path) -> None:
    path = tmp_path / "units.md"
    path.write_text(
        "|      | Read(MB/s) | Write [MiB/s] |\n|---|---|---|\n| Seq | 590.5 | 100 |\n| 4K | 28.25 | 10 |\n"
    )
    run = open_run(path)
    assert value(run, "units", "Seq", "read.rate_bytes_per_s") == 590.5e6
    assert value(run, "units", "4K", "write.rate_bytes_per_s") == 10 * 2**20


ROWS = (("scheduler", "iops", "BW (MB/s)"), ("none", "120,345", "470.1"), ("bfq", "80,112", "312.9"))


def drawn(left: str, cross: str, right: str, line: str, bar: str) -> str:
    """The table as clients of databases and libraries draw it."""
    rule = left + cross.join(line * 11 for _ in ROWS) + right
    head, *rows = (bar + bar.join(f" {cell:<9} " for cell in row) + bar for row in ROWS)
    return "\n".join((rule, head, rule, *rows, rule, ""))


@pytest.mark.parametrize(
    "text",
    [
        drawn("+", "+", "+", "-", "|"),
        drawn("┌", "┬", "┐", "─", "│"),
        " scheduler | iops | BW (MB/s)\n-----------+------+-----------\n none | 120345 | 470.1\n bfq | 80112 | 312.9\n",
    ],
)
def test_drawn_tables_are_read_as_those_of_markdown(tmp_path: Path, text: str) -> None:
    (tmp_path / "mail.txt").write_text(f"Hi, here are the results:\n\n{text}\n(2 rows)\n")
    run = open_run(tmp_path / "mail.txt")
    assert list(run.settings) == ["none", "bfq"] and run.problems == []
    assert [value(run, name, "table", "iops") for name in ("none", "bfq")] == [120345, 80112]
    assert value(run, "bfq", "table", "rate_bytes_per_s") == 312.9e6


def test_lines_of_a_tool_in_cells_have_a_row_for_each_figure(tmp_path: Path) -> None:
    line = "fillrandom   :      {} micros/op {} ops/sec;   {} MB/s"
    text = f"| base | direct |\n|---|---|\n|{line.format(97.5, 10217, 20.5)}| {line.format(308.5, 3244, 6.5)}|\n"
    run = opened(tmp_path / "post.txt", text)
    assert run.problems == []
    assert value(run, "base", "fillrandom", "latency_ns_mean") == 97_500
    assert value(run, "direct", "fillrandom", "latency_ns_mean") == 308_500
    assert value(run, "direct", "fillrandom", "operations_per_s") == 3244
    assert value(run, "base", "fillrandom", "rate_bytes_per_s") == 20.5 * 2**20
    rows = "| 4k | a: 12 MB/s 3 ms | a: 24 MB/s 5 ms |\n| 8k | a: 9 MB/s 4 ms | a: 8 MB/s 6 ms |\n"
    named = f"| | xfs | ext4 |\n|---|---|---|\n{rows}"
    run = opened(tmp_path / "named.txt", named)
    assert value(run, "ext4", "4k a", "rate_bytes_per_s") == 24e6
    assert value(run, "xfs", "8k a", "latency_ns_mean") == 4e6


def test_a_column_of_metrics_names_rows_or_columns_whatever_else_the_table_has(tmp_path: Path) -> None:
    sides = (
        "| Test | Metric | before | after |\n|---|---|---|---|\n| randread | IOPS | 4500 | 5200 |\n"
        "| randread | lat (us) | 120 | n/a |\n| seq | MB/s | 450 | 520 |\n"
    )
    run = opened(tmp_path / "sides.txt", sides)
    assert value(run, "after", "randread", "read.iops") == 5200
    assert value(run, "before", "randread", "read.latency_ns_mean") == 120e3
    assert value(run, "after", "seq", "rate_bytes_per_s") == 520e6
    long = (
        "| Test | FS | Metric | value |\n|---|---|---|---|\n| randread | ext4 | IOPS | 4500 |\n"
        "| randread | xfs | IOPS | 4600 |\n| randread | ext4 | lat (us) | 120 |\n| randread | xfs | lat (us) | 110 |\n"
    )
    run = opened(tmp_path / "long.txt", long)
    assert value(run, "xfs", "randread", "iops") == 4600
    assert value(run, "ext4", "randread", "latency_ns_mean") == 120e3
