"""Texts that are refused, and what comes of it if visitors do what the refusal says; and posts whose settings stand in
places of their own. Written in the form of such posts, with figures of their own."""

import re
from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.domain.metric import describe
from iolab.files.importer.run_import import open_run
from iolab.presentation.table import render
from test_importer import value
from test_importer_headings import figures, refusal

MIB = 2**20
PLAIN_BARS = """\
The bus makes the difference.

Results on {first}
```
data.object_size | data.operation | data.read-iops | data.write-iops
 64KiB | randread | 30,100 | 0
 64KiB | randwrite | 0 | 28,200
 4KiB | randread | 90,300 | 0
```
Results on {second}
```
data.object_size | data.operation | data.read-iops | data.write-iops
 64KiB | randread | 15,400 | 0
 64KiB | randwrite | 0 | 14,500
 4KiB | randread | 18,600 | 0
```
"""
TWO_CLUSTERS = """\
These are the {what} that we have seen.

2 Nodes\t          MAIN\tPATCHED
INSERT\t                4100\t4200
UPDATE\t                   150\t160

The same with more of them.
4 Nodes\t           MAIN\tPATCHED
INSERT\t                 3900\t3950
UPDATE\t                    120\t118
"""
OF_TIMES = """\
For many sequential reads of mapped files:
{stated}
                                      user       system    cpu        total
    (1)  plain -rc1, 128KB readaround: 3.100      2.500     47.40%     11.500
    (1b) plain -rc1, 256KB readaround: 3.200      2.600     46.20%     11.700
    (2)  patched -rc1, 64KB readahead:  3.000      2.400     48.30%     11.200

It is better.
"""


def test_tables_of_bars_need_no_rule_and_their_titles_are_settings(tmp_path: Path) -> None:
    text = PLAIN_BARS.format(first="bus=virtio", second="default bus=sata")
    settings = "Results on bus=virtio", "Results on default bus=sata"
    wanted = {
        (setting, workload, key): iops
        for setting, *rows in zip(settings, (30_100, 15_400), (28_200, 14_500), (90_300, 18_600), strict=True)
        for (workload, key), iops in zip(
            (
                ("randread[object_size=64KiB]", "read.iops"),
                ("randwrite[object_size=64KiB]", "write.iops"),
                ("randread[object_size=4KiB]", "read.iops"),
            ),
            rows,
            strict=True,
        )
    }
    figures(tmp_path, text, wanted)
    figures(tmp_path, re.sub(r"(data.object.*\n)", r"\1---|---|---|---\n", text), wanted)


def test_a_table_of_bars_with_an_empty_corner(tmp_path: Path) -> None:
    text = "Of 4 KiB, in MB/s:\n\n  | old MB/s | new MB/s\nread | 728.1 | 735.3\nwrite | 81.9 | 77.1\n"
    wanted = {
        ("old", "read", "rate_bytes_per_s"): 728.1e6,
        ("new", "write", "rate_bytes_per_s"): 77.1e6,
    }
    figures(tmp_path, text, wanted)


def test_a_table_without_a_rule_beside_one_with_a_rule_is_named(tmp_path: Path) -> None:
    ruled = "| a | IOPS |\n|---|---|\n| x | 100 |\n| y | 300 |\n\nAnd:\n\n"
    bare = "name | iops | p99 ms\nold | 1000 | 2.5\nnew | 1100 | 2.4\n"
    problems = figures(tmp_path, ruled + bare, {("y", "table", "iops"): 300})
    assert any(":8: no rule such as |---|---|---| below this header" in one for one in problems)
    told = ruled + bare.replace("ms\n", "ms\n---|---|---\n")
    assert not figures(tmp_path, told, {("new", "table", "iops"): 1100, ("y", "table", "iops"): 300})


def test_a_table_of_bars_gives_way_to_the_output_of_tools(tmp_path: Path) -> None:
    text = "name | a | b\nx | 1 | 2\ny | 3 | 4\n\n  read: IOPS=1000, BW=3.9MiB/s\n  read: IOPS=1200, BW=4.7MiB/s\n"
    (tmp_path / "posted.txt").write_text(text)
    assert set(open_run(tmp_path / "posted.txt").metrics["key"]) == {"read.iops", "read.rate_bytes_per_s"}


@pytest.mark.parametrize("what", ["TPS results", "transactions per second", "tps"])
def test_tables_of_one_heading_in_two_corners_are_no_rounds(tmp_path: Path, what: str) -> None:
    wanted = {
        ("MAIN", "INSERT[2 Nodes]", "operations_per_s"): 4100,
        ("PATCHED", "INSERT[2 Nodes]", "operations_per_s"): 4200,
        ("MAIN", "UPDATE[4 Nodes]", "operations_per_s"): 120,
        ("PATCHED", "UPDATE[4 Nodes]", "operations_per_s"): 118,
    }
    figures(tmp_path, TWO_CLUSTERS.format(what=what), wanted)


def test_what_is_written_above_a_table_as_its_refusal_says_is_read(tmp_path: Path) -> None:
    said = refusal(tmp_path, TWO_CLUSTERS.format(what="results"))
    assert "lines 3 to 5" in said and "'TPS:'" in said
    told = TWO_CLUSTERS.format(what="results").replace("2 Nodes", "TPS:\n2 Nodes").replace("4 Nodes", "TPS:\n4 Nodes")
    figures(tmp_path, told, {("MAIN", "INSERT[4 Nodes]", "operations_per_s"): 3900})


def test_tables_of_one_heading_under_two_titles_are_no_rounds(tmp_path: Path) -> None:
    table = "| query | main | patched |\n|---|---|---|\n| a | {} tps | {} tps |\n| b | {} tps | {} tps |\n\n"
    text = "two nodes\n" + table.format(1, 2, 3, 4) + "four nodes\n" + table.format(5, 6, 7, 8)
    wanted = {
        ("main", "a[two nodes]", "operations_per_s"): 1,
        ("patched", "b[four nodes]", "operations_per_s"): 8,
    }
    figures(tmp_path, text, wanted)


def test_times_of_several_kinds_are_no_rounds_of_one(tmp_path: Path) -> None:
    assert "lines 3 to 6" in refusal(tmp_path, OF_TIMES.format(stated=""))
    plain, patched = "(1) plain -rc1, 128KB readaround", "(2) patched -rc1, 64KB readahead"
    wanted = {
        (plain, "table", "user time_ns"): 3.1e9,
        (plain, "table", "elapsed_s"): 11.5,
        (patched, "table", "system time_ns"): 2.4e9,
        (patched, "table", "cpu"): 48.3,
    }
    figures(tmp_path, OF_TIMES.format(stated="time in s:"), wanted)
    wanted = {
        (patched, "table[system latency]", "latency_ns_mean"): 2.4e9,
        (patched, "table[total latency]", "latency_ns_mean"): 11.2e9,
        (patched, "table", "cpu"): 48.3,
    }
    figures(tmp_path, OF_TIMES.format(stated="latency in s:"), wanted)


def test_a_row_of_fewer_figures_is_named(tmp_path: Path) -> None:
    text = "IOPS:\n\n         before   after\na        100      110\nb        200      210\nc        300\n"
    problems = figures(tmp_path, text, {("after", "b", "iops"): 210})
    assert any(":6: not as many figures as the heading has: left out, 'c        300'" in one for one in problems)


@pytest.mark.parametrize(
    ("text", "seen", "heading"),
    [
        ("Chunk Block Read kB/s Write kB/s\n4k 1k 20100 18100\n4k 4k 33100 27100\n", "2: '4k 1k", "rate (kB/s)"),
        ("up to v1:\n2 GB, time is about 10s on RELEASE.2020-01-02T03-04-05Z\n", "2: '2 GB", "elapsed_s"),
        ("5 GB took 1m30s on 2020-01-02\n", "1: '5 GB", "elapsed_s (1:10 is 70)"),
        ("0:27.27 with 0.9.5\n0:30.10 with 0.9.6\n", "1: '0:27", "elapsed_s (1:10 is 70)"),
        ("1.1u 2.2s 0:20.05 99% 26+6k 0+0io\n3.3u 4.4s 0:31.50 99% 26+6k 0+0io\n", "1: '1.1u", "elapsed_s (1:10"),
        ("In it (the unit is seconds):\n# Load none bfq\n  10r-seq  2.1   0.7   1.1\n", "3: '10r-seq", "elapsed_s"),
        (
            "10 users, 100 warehouses, 3h long.\n\nRun \tTPM\tNOPM\n\t\t\n1\t300100\t130100\n2\t290200\t120200\n",
            "5: '1",
            "transactions_per_min,new_orders_per_min",
        ),
        ("old a 202s ± 2%   209s ± 1%   ~\nold b 302s ± 2%   309s ± 1%   ~\n", "1: 'old a", "elapsed_s"),
        ("2) 30s of it, 4K random:\nnumjobs 1, IOPS 19.4k, ava latency  320.5us\n", "2: 'numjobs", "iops,latency (us)"),
        ("2010-12-07 17:51:12\n\nit makes about 2200/s of them\n", "3: 'it makes", "ops/s"),
        (
            "04-05-2024 11:33 load a: 369.1K Op/s, latency 99% 158.3 ms: 4 oks, 0 bad\n" * 3,
            "1: '04-05-2024",
            "ops/s,latency (ms)",
        ),
    ],
)
def test_the_heading_of_a_csv_file_is_of_the_units_in_the_text(
    tmp_path: Path, text: str, seen: str, heading: str
) -> None:
    said = refusal(tmp_path, text)
    assert f"such as {seen}" in said
    assert f"such as setting,round,{heading}" in said


def test_figures_of_no_unit_get_a_heading_of_none(tmp_path: Path) -> None:
    said = refusal(tmp_path, "What it did\n\nCreation :   22,5   22,6   22,7\nRemoval  :   32,5   32,6   32,7\n")
    assert "setting,round,value (unit), with their unit, which nothing states" in said
    assert describe("value (unit)").better is None, "followed to the letter, it judges nothing"


@pytest.mark.parametrize(
    ("heading", "better", "unit"),
    [
        ("elapsed_s", "lower", "s"),
        ("rate (kB/s)", "higher", "kB/s"),
        ("latency (ms)", "lower", "ns"),
        ("ops/s", "higher", "1/s"),
        ("transactions_per_min", "higher", "1/min"),
        ("value (s)", "lower", ""),
        ("value (MB/s)", "higher", "MB/s"),
        ("value (unit)", None, ""),
    ],
)
def test_columns_that_a_refusal_names_are_judged_as_they_are_meant(
    tmp_path: Path, heading: str, better: str | None, unit: str
) -> None:
    (tmp_path / "it.csv").write_text(f"setting,round,{heading}\na,1,10\na,2,11\nb,1,20\nb,2,21\n")
    key = open_run(tmp_path / "it.csv").metrics["key"][0]
    assert (describe(key).better, describe(key).unit) == (better, unit)


def test_a_table_of_a_cell_per_line_is_refused_as_that(tmp_path: Path) -> None:
    cells = "Disks |\nSeq read |\nSeeks |\nA of 320 GB |\n71 |\n232 @ 4 GB |\nB of 160 GB |\n59 |\n177 @ 16 GB |\n"
    said = refusal(tmp_path, f"A summary:\n{cells}")
    assert "a table with a cell per line; make a line of each row" in said
    told = "Disks | Seq read (MB/s) | Seeks\nA of 320 GB | 71 | 232\nB of 160 GB | 59 | 177\n"
    figures(tmp_path, told, {("B of 160 GB", "table", "read.rate_bytes_per_s"): 59e6})


def test_a_sentence_of_operations_done_is_read_and_of_a_limit_is_not(tmp_path: Path) -> None:
    text = "bonnie++ file creates on a 512MB disk {} from about 2100/s\nto about 2600/s, about a 24% improvement.\n"
    wanted = {
        ("before", "bonnie++ file creates 512MB disk", "operations_per_s"): 2100,
        ("after", "bonnie++ file creates 512MB disk", "operations_per_s"): 2600,
    }
    figures(tmp_path, text.format("speeds up"), wanted)
    assert "nothing was measured" in refusal(tmp_path, "The limit of requests was raised from 2100/s to 2600/s.\n")


NAMES = """\
test_heavy[vanilla-10-5].run_duration: 10.5 s
test_heavy[vanilla-10-5].read_latency_max: 0.25 s
test_heavy[vanilla-10-5].read_latency_avg: 0.125 s
test_heavy[sync_off-10-5].lsn_lag_max: 4296 kB
test_heavy[sync_off-10-5].run_duration: 30.5 s <---------
test_heavy[sync_off-10-5].read_latency_max: 8,500.5 ms <---------
test_heavy[sync_off-10-5].read_latency_avg: 3.5 s  <- why?
test_heavy[sync_off-10-5].scan_latency_avg: 1.5 s
"""


def test_what_stands_in_brackets_in_names_is_the_setting(tmp_path: Path) -> None:
    wanted = {
        ("vanilla", "test_heavy[10-5]", "elapsed_s"): 10.5,
        ("vanilla", "test_heavy[10-5]", "read.latency_ns_max"): 0.25e9,
        ("sync_off", "test_heavy[10-5]", "elapsed_s"): 30.5,
        ("sync_off", "test_heavy[10-5]", "read.latency_ns_max"): 8.5005e9,
        ("sync_off", "test_heavy[10-5]", "read.latency_ns_mean"): 3.5e9,
        ("sync_off", "test_heavy[10-5].scan", "latency_ns_mean"): 1.5e9,
    }
    problems = figures(tmp_path, NAMES, wanted)
    assert any("1 line has a figure of no metric" in one and "lsn_lag_max: 4296 kB'" in one for one in problems)


def test_amounts_and_operations_in_brackets_are_no_settings(tmp_path: Path) -> None:
    text = "".join(
        f"io[{engine}-{op}-{size}k].iops: {iops}\n"
        for engine, op, size, iops in (
            ("aio", "randread", 4, 900),
            ("aio", "randread", 64, 500),
            ("uring", "randread", 4, 950),
            ("uring", "randwrite", 4, 700),
        )
    )
    wanted = {
        ("aio", "io[randread-4k]", "iops"): 900,
        ("aio", "io[randread-64k]", "iops"): 500,
        ("uring", "io[randread-4k]", "iops"): 950,
        ("uring", "io[randwrite-4k]", "iops"): 700,
    }
    figures(tmp_path, text, wanted)


def test_cases_with_dotted_names_have_the_same_figures(tmp_path: Path) -> None:
    text = "".join(
        f"test_perf.{case}.{line}\n"
        for case, tail in (("root", ""), ("child", " <---------"))
        for line in (f"number_of_clients: 10{tail}", f"latency_average: 14,035.5 ms{tail}", f"tps: 0.75{tail}")
    )
    wanted = {
        (setting, f"test_perf.{case}", key): figure
        for setting in ("posted",)
        for case in ("root", "child")
        for key, figure in (("latency_ns_mean", 14.0355e9), ("operations_per_s", 0.75))
    }
    problems = figures(tmp_path, text, wanted)
    assert any("2 lines have figures of no metric" in one and "root.number_of_clients: 10'" in one for one in problems)


def test_filesystems_before_a_colon_of_any_width_are_settings(tmp_path: Path) -> None:
    text = "f2fs \uff1aIOPS=40.5k, BW=158MiB/s\next4\uff1aIOPS=3300, BW=12.9MiB/s ????\n"
    wanted = {
        ("f2fs", "fio-lines", "iops"): 40_500,
        ("ext4", "fio-lines", "iops"): 3300,
        ("ext4", "fio-lines", "rate_bytes_per_s"): 12.9 * MIB,
    }
    assert not figures(tmp_path, text, wanted)


def test_a_number_of_disks_is_no_metric(tmp_path: Path) -> None:
    table = "| Commit | QD | Disks | IOPS |\n|---|---|---|---|\n| a1 | 8 | 7 | 5000 |\n| b2 | 8 | 7 | 4000 |\n"
    figures(tmp_path, table, {("b2", "table[QD=8,Disks=7]", "iops"): 4000})


def test_tasks_that_wait_for_a_cpu_are_shown(tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text(
        " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n"
        " 4  3      0 1000000  10000 500000    0    0   500   600  300  400 10  5 70 15  0\n"
    )
    shown = render(open_run(tmp_path / "run.txt"), "plain")
    assert re.search(r"tasks runnable mean +4\.000\n", shown) and re.search(r"tasks blocked mean +3\.000\n", shown)


def test_what_biotop_counts_is_shown(tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text(
        "PID    COMM             D MAJ MIN DISK       I/O  Kbytes  AVGms\n"
        "9056   dd               W 253 0   vda         14   14336 138.17\n"
    )
    shown = render(open_run(tmp_path / "run.txt"), "plain")
    assert re.search(r"write ops +14\n", shown) and re.search(r"write bytes +MiB +14\.00", shown)


def test_screens_of_biotop_are_a_run_and_outputs_are_rounds(tmp_path: Path) -> None:
    screen = (
        "\n08:00:0{} loadavg: 1.48 0.87 0.45 1/287 14547\n\n"
        "PID    COMM             D MAJ MIN DISK       I/O  Kbytes  AVGms\n"
        "9056   dd               W 253 0   vda         {}   14336 {}\n"
    )
    output = "Tracing... Output every 1 secs. Hit Ctrl-C to end\n" + screen.format(1, 10, 2) + screen.format(2, 30, 4)
    (tmp_path / "run.txt").write_text(output * 2)
    run = open_run(tmp_path / "run.txt")
    assert [value(run, "run", "biotop dd vda", "write.ops", round=one) for one in (0, 1)] == [40, 40]
    assert value(run, "run", "biotop dd vda", "write.latency_ns_mean") == pytest.approx(3.5e6)


def test_counts_without_a_unit_beside_a_share_are_no_ratios_alone(tmp_path: Path) -> None:
    path = tmp_path / "post.txt"
    path.write_text("raw:\n245K read\n225K write\n\nmirror:\n315K read\n23K write\n\nwhy is it 10 percent of 12?\n")
    with pytest.raises(InputError, match="no figure of it has a unit that iolab knows"):
        open_run(path)
