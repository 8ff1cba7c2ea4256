"""Figures under several conditions: in sentences, in columns that name a setting and a case, in lines of their own."""

from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.files.importer.conditions import stated_in
from test_importer import check_value, opened, value

MB, GB = 1e6, 1e9
MS, US = 1e6, 1e3
BARE = "Tested sequential reads on the SSD: with mq-deadline it's 182 MB/s, with noop it's 179.\n"
BEHIND = "I get about 95 MB/s with ext4 and 110 MB/s with XFS. Latency is 2.1 ms on ext4 vs 1.8 ms on XFS.\n"
PATCH = "Without the patch I see 430k IOPS; with the patch, 512k IOPS. P99 goes from 812us to 640us.\n"
VERSIONS = "On kernel 5.4 we got 1.2GB/s read and 800MB/s write, on 5.15 it is 900MB/s read and 610MB/s write.\n"
WAYS = "The array went from 10 to 12 GB/s for reads and from 5 to 5.5 for writes.\n"
PLACES = "Write throughput went from 410 MB/s to 480 MB/s on ext4, and from 395 MB/s to 470 MB/s on xfs.\n"
VERBS = "Random 4k reads improved from 52k to 61k IOPS, and sequential writes dropped from 1.9 GB/s to 1.7 GB/s.\n"
PARENTHESES = (
    "TPS:\n\nclients=1:  410 tps (base) vs 512 tps (patched)\nclients=16: 5200 tps (base) vs 6100 tps (patched)\n"
)
LINES = "4k rand write, queue=128\nusing spdk get about 360,000 iops;\nwhile using libnvme got about 71,000 iops.\n"


@pytest.mark.parametrize(
    ("text", "setting", "workload", "metric", "expected"),
    [
        (BARE, "mq-deadline", "sequential reads SSD", "read.rate_bytes_per_s", 182 * MB),
        (BARE, "noop", "sequential reads SSD", "read.rate_bytes_per_s", 179 * MB),
        (BEHIND, "ext4", "list", "rate_bytes_per_s", 95 * MB),
        (BEHIND, "XFS", "list", "latency_ns_mean", 1.8 * MS),
        (PATCH, "without patch", "list", "iops", 430e3),
        (PATCH, "with patch", "list", "iops", 512e3),
        (PATCH, "after", "list", "latency_ns_p99", 640 * US),
        (VERSIONS, "kernel 5.4", "write", "write.rate_bytes_per_s", 800 * MB),
        (VERSIONS, "5.15", "read", "read.rate_bytes_per_s", 900 * MB),
        (WAYS, "before", "array writes", "write.rate_bytes_per_s", 5 * GB),
        (WAYS, "after", "array writes", "write.rate_bytes_per_s", 5.5 * GB),
        (WAYS, "after", "array reads", "read.rate_bytes_per_s", 12 * GB),
        (PLACES, "before", "Write xfs", "write.rate_bytes_per_s", 395 * MB),
        (PLACES, "after", "Write ext4", "write.rate_bytes_per_s", 480 * MB),
        (VERBS, "after", "sequential writes", "write.rate_bytes_per_s", 1.7 * GB),
        (PARENTHESES, "patched", "clients=16", "operations_per_s", 6100),
        (LINES, "libnvme", "4k rand write, queue=128", "write.iops", 71e3),
    ],
)
def test_sentences(tmp_path: Path, text: str, setting: str, workload: str, metric: str, expected: float) -> None:
    check_value(tmp_path, text, setting, workload, metric, expected)


@pytest.mark.parametrize(
    "text",
    [
        "It should do 100k IOPS with libaio and does 20k IOPS with psync.",
        "The drive is rated 3500 MB/s with PCIe 3 and 7000 MB/s with PCIe 4.",
        "I get 100 MB/s with ext4, and on another machine 3 GB/s.",
        "Reads are 550 MB/s and writes 480 MB/s on bare metal, but reads are 300 MB/s and writes 210 MB/s in the VM.",
        "It ran for 30 s with ext4 and for 40 s with xfs.",
    ],
)
def test_what_is_wished_or_not_sure_is_not_read(text: str) -> None:
    assert stated_in(text) == []


def test_sentences_of_two_paragraphs_are_no_rounds(tmp_path: Path) -> None:
    run = opened(tmp_path / "a.txt", f"{BEHIND}\nOn the NAS it is 80 MB/s with ext4 and 81 MB/s with XFS.\n")
    assert value(run, "ext4", "list in line 3", "rate_bytes_per_s") == 80 * MB
    assert run.metrics["round"].max() == 0


def test_figures_of_a_sentence_that_are_left_out_are_counted(tmp_path: Path) -> None:
    run = opened(tmp_path / "a.txt", f"{BEHIND.strip()} A cold start took 35 ms.\n")
    assert any("1 figure of these sentences is not read" in problem for problem in run.problems)


GROUPS_OF_AMOUNTS = """Throughput in MB/s

              1 thread           8 threads
           before   after     before   after
read          210     215       1600    1720
write         180     190       1100    1180
"""
TESTS_ABOVE_SETTINGS = """| QD | 4k randread | | 4k randwrite | |
|---|---|---|---|---|
| | base | patched | base | patched |
| 1 | 10.1k | 10.2k | 35.0k | 36.1k |
| 32 | 240k | 255k | 180k | 190k |
"""
SETTINGS_ABOVE_AMOUNTS = """fio randread, IOPS:

|      | ext4       | ext4       | xfs        | xfs        |
|------|------------|------------|------------|------------|
|      | QD1        | QD32       | QD1        | QD32       |
| 4k   | 12000      | 250000     | 11800      | 262000     |
| 16k  | 9000       | 110000     | 9100       | 115000     |
"""
AMOUNTS_TOGETHER = """Benchmark | Size / Depth | IOPS | Lat avg (us)
--- | --- | --- | ---
randread | 4k / 1 | 11000 | 90
randread | 4k / 32 | 210000 | 151
randwrite | 4k / 1 | 40000 | 24
"""
COUNTS = """Aggregate throughput in MB/s for N sequential readers:

kernel          1      2      4      8
2.6.31        95.1   61.2   45.0   38.9
2.6.32        95.3   78.8   72.1   70.4
"""
UNITS_BELOW = """| Scheduler | Throughput | Avg latency | p99 latency |
|-----------|------------|-------------|-------------|
|           | MB/s       | ms          | ms          |
| none      | 2104       | 1.21        | 4.8         |
| bfq       | 1412       | 1.92        | 9.9         |
"""
UNITS_IN_HEADING = """| Engine | 4k randread (IOPS / MB/s / ms) | 4k randwrite (IOPS / MB/s / ms) |
|---|---|---|
| libaio | 51000 / 209 / 0.62 | 32000 / 131 / 0.99 |
| io_uring | 58000 / 237 / 0.55 | 35500 / 145 / 0.90 |
"""
STATISTICS_AS_ROWS = """## fsync latency (ms, lower is better)

|        | raidz2 | mirrors |
|--------|-------:|--------:|
| avg    |   11.2 |     8.9 |
| p99    |   48.0 |    31.2 |
"""
WITHOUT_PATCH = """Random 4k read IOPS, mean of three runs:

  numjobs   w/o patch    w/ patch     diff
  -------   ---------    --------     ----
        1      412k        415k      +0.7%
       32     4.10M       5.02M     +22.4%
"""
OF_BONNIE = """| fs | Block write K/s | %CP | Block read K/s | %CP |
|---|---|---|---|---|
| ext4 | 120345 | 22 | 190123 | 18 |
| xfs | 125001 | 20 | 195002 | 17 |
"""


@pytest.mark.parametrize(
    ("text", "setting", "workload", "metric", "expected"),
    [
        (GROUPS_OF_AMOUNTS, "before", "read[1 thread]", "rate_bytes_per_s", 210 * MB),
        (GROUPS_OF_AMOUNTS, "after", "write[8 threads]", "rate_bytes_per_s", 1180 * MB),
        (TESTS_ABOVE_SETTINGS, "patched", "4k randread[QD=32]", "value", 255e3),
        (TESTS_ABOVE_SETTINGS, "base", "4k randwrite[QD=1]", "value", 35e3),
        (SETTINGS_ABOVE_AMOUNTS, "xfs", "4k[QD32]", "iops", 262e3),
        (SETTINGS_ABOVE_AMOUNTS, "ext4", "16k[QD1]", "iops", 9000),
        (AMOUNTS_TOGETHER, "run", "randread[Size / Depth=4k / 32]", "iops", 210e3),
        (AMOUNTS_TOGETHER, "run", "randwrite[Size / Depth=4k / 1]", "latency_ns_mean", 24 * US),
        (COUNTS, "2.6.31", "table[8]", "rate_bytes_per_s", 38.9 * MB),
        (COUNTS, "2.6.32", "table[2]", "rate_bytes_per_s", 78.8 * MB),
        (UNITS_BELOW, "bfq", "table", "rate_bytes_per_s", 1412 * MB),
        (UNITS_BELOW, "none", "table", "latency_ns_p99", 4.8 * MS),
        (UNITS_IN_HEADING, "io_uring", "table", "write.latency_ns_mean", 0.9 * MS),
        (UNITS_IN_HEADING, "libaio", "table", "read.rate_bytes_per_s", 209 * MB),
        (STATISTICS_AS_ROWS, "mirrors", "run", "latency_ns_p99", 31.2 * MS),
        (STATISTICS_AS_ROWS, "raidz2", "run", "latency_ns_mean", 11.2 * MS),
        (WITHOUT_PATCH, "w/o patch", "table[numjobs=1]", "iops", 412e3),
        (WITHOUT_PATCH, "w/ patch", "table[numjobs=32]", "iops", 5.02e6),
        (OF_BONNIE, "xfs", "table", "write.rate_bytes_per_s", 125001 * 1024),
        (OF_BONNIE, "ext4", "table", "Block read CPU %", 18),
    ],
)
def test_tables(tmp_path: Path, text: str, setting: str, workload: str, metric: str, expected: float) -> None:
    check_value(tmp_path, text, setting, workload, metric, expected)


def test_a_size_is_no_metric(tmp_path: Path) -> None:
    for text in (GROUPS_OF_AMOUNTS, TESTS_ABOVE_SETTINGS, SETTINGS_ABOVE_AMOUNTS, COUNTS):
        metrics = set(opened(tmp_path / "run.txt", text).metrics["metric"].drop_nulls())
        assert metrics <= {"rate_bytes_per_s", "iops", "value"}


COMPLETIONS = "base:\n  12.31M completions/s\n  12.29M completions/s\npatched:\n  13.02M completions/s\n"
VERSION_TITLES = """2.6.32:
/dev/sda:
 Timing buffered disk reads: 380 MB in  3.01 seconds = 126.20 MB/sec

3.2:
/dev/sda:
 Timing buffered disk reads: 290 MB in  3.01 seconds =  96.30 MB/sec
"""
OWN_TITLES = """On the host:

fio Disk Speed Tests (Mixed R/W 50/50):
---------------------------------
Block Size | 4k            (IOPS) | 64k           (IOPS)
  ------   | ---            ----  | ----           ----
Read       | 59.85 MB/s   (14.9k) | 782.21 MB/s  (12.2k)

In the VM:

fio Disk Speed Tests (Mixed R/W 50/50):
---------------------------------
Block Size | 4k            (IOPS) | 64k           (IOPS)
  ------   | ---            ----  | ----           ----
Read       | 29.85 MB/s    (7.4k) | 382.21 MB/s   (5.9k)
"""
BULLETS = """- Using v0.6.5, with 1G test file:

BS | IOPS
--- | ---
4K | 6498
8K | 7243

- Using v0.7.9, with 1G test file:

BS | IOPS
--- | ---
4K | 3498
8K | 4243
"""
MESSAGE = """    btrfs: avoid searching the tree twice

    Before this change:

      WRITE: bw=310MiB/s (325MB/s), 310MiB/s-310MiB/s (325MB/s-325MB/s), io=8192MiB (8590MB), run=26425-26425msec

    After this change:

      WRITE: bw=372MiB/s (390MB/s), 372MiB/s-372MiB/s (390MB/s-390MB/s), io=8192MiB (8590MB), run=22021-22021msec

    (+20.0% throughput)
"""
DRIVES = "Samsung 870: read 552 MB/s, write 521 MB/s\nCrucial MX500: 541 MB/s read / 498 MB/s write\n"
NAMED_BEHIND = (
    "Before:\n  Read:  45.2k IOPS, 177 MiB/s, 1.41 ms avg\nAfter:\n  Read:  61.8k IOPS, 241 MiB/s, 1.03 ms avg\n"
)
OF_A_LINE = """\
zfs:  bw=1120MiB/s and lat (usec): min=85, max=9012, avg=1086.21, stdev=780.10
ext4:  bw=1437MiB/s and lat (usec): min=65, max=3086, avg=846.51, stdev=297.89
"""
EXTREMES = """\
Test readers:
    Min throughput = 354526.41 kB/sec
    Max throughput = 359583.72 kB/sec
    Avg throughput = 357426.16 kB/sec
"""
WITHIN = """\
1 thread, seq 1M writes, simple: 1426 write iops (787% HDD)
16 threads, rnd 4k writes: 61295 write iops (17% HDD)
"""


@pytest.mark.parametrize(
    ("text", "setting", "workload", "metric", "round", "expected"),
    [
        (COMPLETIONS, "base", "list", "operations_per_s", 1, 12.29e6),
        (COMPLETIONS, "patched", "list", "operations_per_s", 0, 13.02e6),
        (VERSION_TITLES, "3.2", "hdparm /dev/sda", "buffered_disk/elapsed_s", 0, 3.01),
        (OWN_TITLES, "In the VM", "table[64k]", "read.iops", 0, 5900),
        (OWN_TITLES, "On the host", "table[4k]", "read.rate_bytes_per_s", 0, 59.85 * MB),
        (BULLETS, "Using v0.7.9, with 1G test file", "table[BS=8K]", "iops", 0, 4243),
        (MESSAGE, "After this change", "fio", "elapsed_s", 0, 22.021),
        (DRIVES, "Crucial MX500", "list", "write.rate_bytes_per_s", 0, 498 * MB),
        (DRIVES, "Samsung 870", "list", "read.rate_bytes_per_s", 0, 552 * MB),
        (NAMED_BEHIND, "After", "Read", "read.latency_ns_mean", 0, 1.03 * MS),
        (OF_A_LINE, "ext4", "list", "latency_ns_max", 0, 3086 * US),
        (OF_A_LINE, "zfs", "list", "latency_ns_stddev", 0, 780.1 * US),
        (EXTREMES, "run", "list", "rate_bytes_per_s_min", 0, 354526.41e3),
        (EXTREMES, "run", "list", "rate_bytes_per_s", 0, 357426.16e3),
        (WITHIN, "run", "1 thread, seq 1M writes, simple write", "write.iops", 0, 1426),
    ],
)
def test_lines_and_titles(
    tmp_path: Path, text: str, setting: str, workload: str, metric: str, round: int, expected: float
) -> None:
    found = value(opened(tmp_path / "run.txt", text), setting, workload, metric, round)
    assert found == pytest.approx(expected)


def test_ranges_in_prose_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="its figures are ranges, such as '4209"):
        opened(
            tmp_path / "a.txt", "vanilla had 4209.19-4909.18 iops most of the time\nand 0.6.5.3 1707.47-3004.4 iops\n"
        )


def test_ratios_are_refused_by_name(tmp_path: Path) -> None:
    text = "Relative to base:\n\n           bfq    kyber\nrandread   0.91x  0.99x\nrandwrite  0.84x  0.97x\n"
    with pytest.raises(InputError, match="ratios alone"):
        opened(tmp_path / "a.txt", text)


def test_a_table_without_bars_at_its_sides_keeps_its_first_column(tmp_path: Path) -> None:
    """Its names look like those that docker compose writes before each line."""
    run = opened(tmp_path / "run.txt", AMOUNTS_TOGETHER)
    assert {name.partition("[")[0] for name in run.metrics["workload"]} == {"randread", "randwrite"}


THREADS = "fs_mark with 16 threads: ext4 creates 21000 files/s, xfs creates 34000 files/s.\n"
VERSIONS_ABOVE = """fio 4k randrw QD32

                    5.10          6.1
read IOPS          81.2k        92.4k
read p99 (us)      1483         1205
"""
AMOUNTS_ABOVE = """4K random read IOPS by queue depth:

| Kernel | QD1 | QD8 |
|--------|-----|-----|
| 6.1    | 11.2k | 82k |
| 6.6    | 11.9k | 88k |
"""
SPREADSHEET = (
    "Test (MB/s),ext4 run1,ext4 run2,xfs run1,xfs run2\nseq read,1810,1822,1905,1899\nseq write,1204,1188,1330,1341\n"
)
CORNER = """| Latency (us) | none p50 | none p99.9 | bfq p50 | bfq p99.9 |
|--------------|----------|------------|---------|-----------|
| randread 4k  | 78       | 310        | 91      | 1210      |
"""
RUNS = """Write throughput (MB/s):

           run 1   run 2   run 3   avg
baseline   412     408     415     411.7
patched    455     461     449     455.0
"""
SECONDS = "Boot time under load:\n\nnone:          12.4 s\nbfq:            9.1 s\n"
SQL = """SQL statistics:
    transactions:                        {count}  ({rate} per sec.)

General statistics:
    total time:                          60.0205s

Latency (ms):
         avg:                                   48.01

"""
TWO_OF_SYSBENCH = (
    "method=fsync\n\n" + SQL.format(count=100, rate=1.6) + "method=O_DIRECT\n\n" + SQL.format(count=200, rate=3.2)
)


@pytest.mark.parametrize(
    ("text", "setting", "workload", "metric", "round", "expected"),
    [
        (THREADS, "xfs", "fs_mark with 16 threads", "operations_per_s", 0, 34e3),
        (VERSIONS_ABOVE, "6.1", "read", "read.iops", 0, 92.4e3),
        (VERSIONS_ABOVE, "5.10", "read", "read.latency_ns_p99", 0, 1483 * US),
        (AMOUNTS_ABOVE, "6.6", "table[QD8]", "iops", 0, 88e3),
        (SPREADSHEET, "xfs", "seq write", "rate_bytes_per_s", 1, 1341 * MB),
        (SECONDS, "bfq", "list", "time_ns", 0, 9.1e9),
        (CORNER, "bfq", "randread 4k", "latency_ns_p999", 0, 1210 * US),
        (RUNS, "patched", "table", "rate_bytes_per_s", 2, 449 * MB),
        (TWO_OF_SYSBENCH, "method=fsync", "sysbench sql", "transactions_per_s", 0, 1.6),
        (TWO_OF_SYSBENCH, "method=O_DIRECT", "sysbench sql", "transactions_per_s", 0, 3.2),
    ],
)
def test_what_is_easily_mistaken(
    tmp_path: Path, text: str, setting: str, workload: str, metric: str, round: int, expected: float
) -> None:
    """Threads for reads, versions and depths for figures, settings for metrics, the second report for the only one."""
    found = value(opened(tmp_path / "run.txt", text), setting, workload, metric, round)
    assert found == pytest.approx(expected)
