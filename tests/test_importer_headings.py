"""Headings over several lines, and what is said of tables and rows that cannot be read."""

import re
from pathlib import Path
from typing import Any

import pytest
from iolab.base.errors import InputError
from iolab.files.importer.headings import of_lines
from iolab.files.importer.run_import import open_run
from iolab.presentation.table import render
from test_importer import opened, value

OF_GROUPS = """\
Two kernels on the same drive

              before            after
            IOPS    lat(us)    IOPS    lat(us)
4k read     10000   120        12000   100
4k write    8000    200        9000    180
"""
OF_UNITS = """\
Results on the array:

Test        Read        Write
            (MB/s)      (MB/s)
ext4        100         200
xfs         110         190
"""
DRAWN = """\
{rule}
| device | read   | write  |
|        | (MB/s) | (MB/s) |
{rule}
| sda    | 100    | 90     |
| sdb    | 120    | 95+    |
{rule}
"""


def figures(tmp_path: Path, text: str, wanted: dict[tuple[Any, ...], float]) -> list[str]:
    (tmp_path / "posted.txt").write_text(text)
    run = open_run(tmp_path / "posted.txt")
    assert {one: value(run, *one) for one in wanted} == pytest.approx(wanted)
    return run.problems


def refusal(tmp_path: Path, text: str) -> str:
    (tmp_path / "posted.txt").write_text(text)
    with pytest.raises(InputError) as refused:
        open_run(tmp_path / "posted.txt")
    return str(refused.value)


def test_names_of_groups_are_those_of_the_columns_below_them(tmp_path: Path) -> None:
    wanted = {
        ("before", "4k read", "iops"): 10_000,
        ("after", "4k read", "iops"): 12_000,
        ("before", "4k write", "latency_ns_mean"): 200e3,
        ("after", "4k write", "latency_ns_mean"): 180e3,
    }
    figures(tmp_path, OF_GROUPS, wanted)
    figures(tmp_path, OF_GROUPS.replace("    before  ", "--before----").replace(" after", "-after-----"), wanted)


def test_units_may_stand_below_the_names(tmp_path: Path) -> None:
    figures(
        tmp_path,
        OF_UNITS,
        {("posted", "ext4", "read.rate_bytes_per_s"): 100e6, ("posted", "xfs", "write.rate_bytes_per_s"): 190e6},
    )


@pytest.mark.parametrize("rule", ["+--------+--------+--------+", "-" * 28])
def test_a_drawn_table_may_have_a_heading_of_several_lines(tmp_path: Path, rule: str) -> None:
    problems = figures(
        tmp_path,
        DRAWN.format(rule=rule),
        {("sda", "table", "write.rate_bytes_per_s"): 90e6, ("sdb", "table", "read.rate_bytes_per_s"): 120e6},
    )
    assert any("'95+'" in problem for problem in problems), "a cell that is not read is named"


@pytest.mark.parametrize(
    ("upper", "lower", "names"),
    [
        (
            "                random  random",
            "kB    write     read    write",
            ["kB", "write", "random read", "random write"],
        ),
        (
            "          ext4              xfs",
            "bs     read  write      read  write",
            "bs|ext4 read|ext4 write|xfs read|xfs write",
        ),
        # Between two columns: it may be of either.
        ("        random", "kB    read  write", None),
        # One name over three columns, and two names: not as many each.
        ("          ext4          xfs", "bs     read  write  trim  read", None),
    ],
)
def test_what_is_over_what(upper: str, lower: str, names: list[str] | str | None) -> None:
    assert of_lines(upper, lower) == (names.split("|") if isinstance(names, str) else names)


def test_single_spaces_may_part_columns(tmp_path: Path) -> None:
    text = "Rates on one drive, in MB/s\n\nscheduler read write\nnone 500 400\nbfq 450 390\n"
    figures(
        tmp_path,
        text,
        {("none", "table", "read.rate_bytes_per_s"): 500e6, ("bfq", "table", "write.rate_bytes_per_s"): 390e6},
    )
    assert "unrecognised" in refusal(tmp_path, text.replace("read write", "read read"))


@pytest.mark.parametrize("first", ["File size", "size"])
def test_sizes_are_what_was_done_under_settings_in_columns(tmp_path: Path, first: str) -> None:
    """*Before* was a metric, and the first size the baseline of the others."""
    text = f"| {first} | Before | After | Reduction |\n|---|---|---|---|\n"
    text += "| 4k | 100.5ms | 50ms | 50.2% |\n| 64k | 200ms | 150ms | 25% |\n"
    wanted = {
        ("Before", f"table[{first}=4k]", "time_ns"): 100.5e6,
        ("After", f"table[{first}=64k]", "time_ns"): 150e6,
    }
    problems = figures(tmp_path, text, wanted)
    assert any("columns of changes are left out" in problem for problem in problems)


def test_a_title_may_begin_with_test(tmp_path: Path) -> None:
    """Lists below two titles were rounds of one."""
    rates = "    Total throughput = {} kB/s\n    Min throughput = {} kB/s\n"
    text = f"  Test of none:\n{rates.format(1000, 300)}  Test of bfq:\n{rates.format(900, 250)}"
    figures(
        tmp_path,
        text,
        {("Test of none", "Total", "rate_bytes_per_s"): 1e6, ("Test of bfq", "list", "rate_bytes_per_s_min"): 250e3},
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("  f2fs_gc : block_rq_complete: 8,16 R () 1519616 + 8 [0]", "without their times.*as the kernel prints them"),
    ],
)
def test_what_is_refused_has_a_way_out_that_leads_somewhere(tmp_path: Path, line: str, said: str) -> None:
    assert re.search(said, refusal(tmp_path, f"As seen here:\n{line}\n{line}\n"))


def test_several_columns_may_name_a_row(tmp_path: Path) -> None:
    """Three tests of two tools, each with a unit of its own: none is a round of another."""
    text = "Of the new drive:\n\n     Tool      What           Result\n"
    text += "hdparm    disk read      707.5 MB/sec\nhdparm    cached read    661.5 MB/sec\n"
    text += "fio       4k randread    103434 IOPS (413737 KB/s)\n"
    wanted = {
        ("hdparm", "table[What=disk read]", "rate_bytes_per_s"): 707.5e6,
        ("hdparm", "table[What=cached read]", "rate_bytes_per_s"): 661.5e6,
        ("fio", "table[What=4k randread]", "iops"): 103_434,
        ("fio", "table[What=4k randread]", "rate_bytes_per_s"): 413_737e3,
    }
    figures(tmp_path, text, wanted)
    shown = render(open_run(tmp_path / "posted.txt"), "plain").splitlines()
    assert shown[2] == "● table[What=disk read] under hdparm: rate 674.7 MiB/s.", "nothing to compare, but to say"


def test_columns_of_one_name_are_not_read_as_rounds(tmp_path: Path) -> None:
    """Which of them is whose is not known."""
    said = refusal(tmp_path, "    old new\n         IOPS    IOPS\nread    100     200\nwrite    300     400\n")
    assert "unrecognised format" in said


def test_lines_of_data_are_no_heading(tmp_path: Path) -> None:
    """`56 ms for 100 MB` became a metric, and what followed it settings."""
    lines = ["Run 0 => Reading a file   56 ms for 100 MB (avg. 1872 MB/s)"]
    lines += [f"Run 0 => Locking {count} times   {1000 + count} ms" for count in range(4)]
    said = refusal(tmp_path, "\n".join(lines) + "\n")
    assert "5 lines with figures that no format reads" in said
    assert "a row per run, such as setting,round,latency (ms),rate (MB/s)" in said, "the heading for these figures"


def test_a_table_without_a_metric_is_refused_by_its_lines(tmp_path: Path) -> None:
    said = refusal(
        tmp_path, "Numbers of today\n\n          before   after\nrun a     120.3    130.2\nrun b     121.3    131.2\n"
    )
    assert "nothing states what the figures of the table in lines 3 to 5 are" in said and "'IOPS:'" in said


def test_rows_of_figures_without_names_are_called_so(tmp_path: Path) -> None:
    said = refusal(tmp_path, "a trace\n" + "".join(f"{48 + n} 1 {5000 + 16 * n} 16 0\n" for n in range(5)))
    assert "rows of figures without a heading" in said and "iolab trace FILE --columns" in said
    said = refusal(tmp_path, "what it did:\n\n\nbs  x  y\n" + "".join(f"{n} {n + 1} {n + 2}\n" for n in range(5)))
    assert "without a heading" not in said


def test_lines_of_a_list_that_are_not_read_are_counted(tmp_path: Path) -> None:
    problems = figures(
        tmp_path,
        "Two ways:\n\n  one:   286 MB/s, 73K IOPS\n  other: 340 MB/s, 87K IOPS\n\nCPU:\n\n  one: 59.8 billion cycles\n",
        {("one", "list", "rate_bytes_per_s"): 286e6, ("other", "list", "iops"): 87_000},
    )
    assert any("1 line has a figure of no metric that iolab knows" in problem for problem in problems)


def test_a_run_below_prose_is_not_that_of_the_title_above_in_silence(tmp_path: Path) -> None:
    dd = "$ dd if=/dev/zero of=/mnt/a bs=1M count=1000\n1048576000 bytes (1.0 GB, 1000 MiB) copied, {} s, {} MB/s\n\n"
    parts = ["HDD:\n\n", dd.format(5, 210), "SSD:\n\n", dd.format(2, 524)]
    prose = "Then I bought another drive and repeated all of it.\n\n"
    run = opened(tmp_path / "a.txt", "".join([*parts, prose, dd.format(1, 1000)]))
    (stated,) = run.problems
    assert "a.txt:14: 'Then I bought" in stated and "a round of 'SSD'" in stated
    titled = opened(tmp_path / "a.txt", "".join([*parts, prose, "NVMe:\n\n", dd.format(1, 1000)]))
    assert titled.settings == ["HDD", "SSD", "NVMe"] and not titled.problems


def test_what_a_tool_prints_above_its_options_is_no_title(tmp_path: Path) -> None:
    iostat = "Device            r/s     rkB/s   w/s     wkB/s  %util\nsda  {}.0     100.0   20.0    200.0  10.0\n\n"
    sysbench = (
        "sysbench 1.0.20 (using system LuaJIT 2.1.0)\n\nRunning the test with following options:\n"
        "Number of threads: 1\n\nThroughput:\n    read, MiB/s:                  10.00\n"
        "    written, MiB/s:               6.50\n\n"
    )
    run = opened(tmp_path / "a.txt", f"## ext4\n\n{iostat.format(10)}{sysbench}## xfs\n\n{iostat.format(12)}")
    assert run.settings == ["ext4", "xfs"]


def test_fio_prints_its_version_before_each_run(tmp_path: Path) -> None:
    output = (
        "fio-3.28\nx: (groupid=0, jobs=1): err= 0: pid={}: Mon Jan  1 00:00:0{} 2024\n"
        "  read: IOPS={}, BW=4000KiB/s (4096kB/s)(39.1MiB/10000msec)\n\n"
    )
    run = opened(tmp_path / "a.txt", output.format(7, 1, 1000) + output.format(8, 2, 2000))
    assert [value(run, "a", "x", "iops", round=place) for place in (0, 1)] == [1000, 2000]


def test_a_heading_may_have_three_lines(tmp_path: Path) -> None:
    text = (
        "              Sequential    Sequential    Random\n              read          write         read\n"
        "filesystem    (MB/s)        (MB/s)        (IOPS)\n"
        "ext4          510.5         480.5         9120\nxfs           515.5         490.5         9333\n"
    )
    wanted = {
        ("ext4", "table[Sequential]", "read.rate_bytes_per_s"): 510.5e6,
        ("xfs", "table[Sequential]", "write.rate_bytes_per_s"): 490.5e6,
        ("xfs", "table[Random read]", "read.iops"): 9333,
    }
    assert figures(tmp_path, text, wanted) == []


def test_single_spaces_may_stand_between_columns_and_before_units(tmp_path: Path) -> None:
    text = "fs write read iops\next4 510.5 MB/s 480.5 MB/s 9120\nxfs 515.5 MB/s 490.5 MB/s 9333\n"
    wanted = {("ext4", "table", "write.rate_bytes_per_s"): 510.5e6, ("xfs", "table", "iops"): 9333}
    assert figures(tmp_path, text, wanted) == []


def test_a_sentence_whose_colon_is_of_a_list_is_no_title(tmp_path: Path) -> None:
    table = "FSUse%        Count         Size    Files/sec     App Overhead\n"
    table += "     0        10000         4096        {}           1000\n"
    text = (
        "For some tests fs_mark got a change so that it calls io_fsync:\n\n- write 10000 files\n- run 5 iterations\n\n"
        f"First on a sparse filesystem.\n\n{table.format(500.0)}\nUsing io_fsync():\n\n{table.format(4000.0)}"
    )
    workload = "fs_mark[size=4096]"
    wanted = {("posted", workload, "files_per_s"): 500, ("Using io_fsync()", workload, "files_per_s"): 4000}
    figures(tmp_path, text, wanted)
