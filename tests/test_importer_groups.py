"""Names of groups above columns, several statistics in a cell, lists of slow operations, and bbolt."""

from pathlib import Path

import polars
import pytest
from iolab.base.errors import InputError
from iolab.files.importer.results import Row
from iolab.files.importer.run_import import open_run
from test_importer import check_value, opened

MS, US = 1e6, 1e3
ABOVE_THE_RULE = """|          | old   |          | new   |          |
|          | IOPS  | lat (us) | IOPS  | lat (us) |
|----------|-------|----------|-------|----------|
| randread | 1000  | 80       | 1200  | 70       |
| seqread  | 500   | 160      | 400   | 190      |
"""
BELOW_THE_RULE = """| Device | Old |  | New | |
|---|---|---|---|---|
| | IOPS | latency (us) | IOPS | latency (us) |
| sda | 1000 | 41 | 1200 | 37 |
| sdb | 800 | 524 | 700 | 459 |
"""
DRAWN = """+------+-----------------+-----------------+
|      |       old       |       new       |
+------+--------+--------+--------+--------+
| bs   | IOPS   | MB/s   | IOPS   | MB/s   |
+------+--------+--------+--------+--------+
| 4k   | 1000   | 4.1    | 1200   | 4.9    |
| 64k  | 800    | 52.4   | 900    | 59.0   |
+------+--------+--------+--------+--------+
"""
WITH_UNIT_BEHIND = """          |      ext4       |      xfs        |
   jobs   |  read  | write  |  read  | write  |   (MB/s)
----------+--------+--------+--------+--------+
    1     |  210   |  180   |  230   |  175   |
    4     |  510   |  380   |  630   |  475   |
"""
PARTED = "| setting | latency (min / mean ± sd / max) |\n|---|---|\n| none | 1.2 / 4.5 ± 0.8 / 20.1 ms |\n"
PARTED_IN_HEADER = "| fs | min/avg/max latency (ms) | iops |\n|---|---|---|\n| xfs | 1.4/5.5/30.1 | 600 |\n"
PARTED_BY_SPACES = """          commit latency, min / mean ± sd / max
ext4      1.2 ms / 4.5 ms ± 0.8 ms / 20.1 ms
xfs       900 us / 3.5 ms ± 0.4 ms / 18.1 ms
"""
OF_RATE = "| fs | IOPS (min / mean / max) | time |\n|---|---|---|\n| xfs | 10 / 20 / 40 | 3 |\n"
MEAN = "| setting | latency mean ± sd (ms) |\n|---|---|\n| none | 12.0 ± 3.7 |\n| bfq | 13.0 ± 20 % |\n"
EXT4SLOWER = """Tracing ext4 operations slower than 10 ms
TIME     COMM           PID    T BYTES   OFF_KB   LAT(ms) FILENAME
06:35:01 cron           16464  R 1249    0          16.05 common-auth
06:35:01 cron           16463  R 1249    0          14.50 common-auth
06:35:02 my prog        16465  S 0       0          36.50 some file.db
"""
FILESLOWER = """Tracing sync file reads and writes
TIME(s)  COMM           TID    D BYTES   LAT(ms) FILENAME
0.000    cksum          11346  R 65536      2.00 ld-2.19.so
2.032    dd             11500  R 65536      4.00 out
"""
FSYNCSNOOP = "TIME(s)  COMM      PID  FILE   LATms\n1.2000   postgres  812  fsync  2.31\n1.3 postgres 812 fsync 4.5\n"
BBOLT = """$ bbolt bench -read-mode rnd
starting write benchmark.
Completed 2000 requests, 1999/s
# Write\t1000(ops)\t66.4ms\t(66.4µs/op)\t(15060 op/sec)
# Read\t2196000(ops)\t1m1.5s\t(455ns/op)\t(2197802 op/sec)
$ bbolt bench
# Write\t1000(ops)\t70ms\t(70µs/op)\t(14285 op/sec)
"""
OF_JOBS = """fio randread 4k:

                 base        patched
 numjobs=1      640K IOPS    812K IOPS
 numjobs=4     2100K IOPS   2550K IOPS
"""
OF_THREADS = """   threads     w/o patch     w/ patch    delta
        1       11.31 GB/s   11.29 GB/s   -0.2%
        2       21.40 GB/s   21.98 GB/s   +2.7%
"""
OF_CLIENTS = """dbench 5 (throughput, MB/sec):

clients   6.9.0      6.10.0-rc1
1         153.22     151.90
4         498.10     466.23
"""
OF_MINUTES = """            create          find        unlink
            (avg files/s)   (time)      (time)
vanilla     235000          2m40s       4m30s
patched     262000          2m38s       3m10s
"""
PER_CORE = "Before: 1.62M IOPS per core\nAfter:  1.78M IOPS per core (+10%)\n"
STATISTICS = "rq_affinity=1:\n  lat avg: 12.3us  p99: 25us\nrq_affinity=2:\n  lat avg: 14.1us  p99: 31us\n"
THREE_RUNS = "Results (3 runs each):\n none:  1012, 1005, 998 MB/s\n bfq:    402,  398, 410 MB/s\n"
TWO_CHANGES = "RAID5 goes from 34.2k IOPS to 51.9k IOPS, and the\n99.9th percentile latency from 8.3ms to 4.1 ms.\n"
ELBENCHO_LATENCIES = """
          Files latency    : [ min=405us avg=2.10ms max=5.30ms ]
          IO latency       : [ min=6us avg=24us max=196us ]
          IO lat % us      : [ 1%<=6.8 50%<=12 75%<=22 99%<=216 ]
"""
FILEBENCH_BREAKDOWN = """61.130: Run took 60 seconds...
61.147: Per-Operation Breakdown
random-rate          0ops        0ops/s   0.0mb/s    0.000ms/op [0.000ms - 0.000ms]
shadow-post-dbwr     315000ops     5249ops/s   0.0mb/s   36.712ms/op [0.013ms - 312.173ms]
"""
QUOTED = """> > The p99 latency dropped from 120 us
> > to 95 us.
>
> IOPS went from 100K to
> 120K on nvme.
"""


@pytest.mark.parametrize(
    ("text", "setting", "workload", "metric", "expected"),
    [
        (ABOVE_THE_RULE, "old", "randread", "iops", 1000),
        (ABOVE_THE_RULE, "new", "randread", "latency_ns_mean", 70 * US),
        (ABOVE_THE_RULE, "new", "seqread", "iops", 400),
        (BELOW_THE_RULE, "Old", "sdb", "latency_ns_mean", 524 * US),
        (BELOW_THE_RULE, "New", "sda", "iops", 1200),
        (DRAWN, "old", "64k", "rate_bytes_per_s", 52.4e6),
        (DRAWN, "new", "4k", "iops", 1200),
        (WITH_UNIT_BEHIND, "xfs", "table[jobs=4]", "read.rate_bytes_per_s", 630e6),
        (WITH_UNIT_BEHIND, "ext4", "table[jobs=1]", "write.rate_bytes_per_s", 180e6),
        (PARTED, "none", "table", "latency_ns_min", 1.2 * MS),
        (PARTED, "none", "table", "latency_ns_mean", 4.5 * MS),
        (PARTED, "none", "table", "latency_ns_max", 20.1 * MS),
        (PARTED_IN_HEADER, "xfs", "table", "latency_ns_mean", 5.5 * MS),
        (PARTED_IN_HEADER, "xfs", "table", "iops", 600),
        (PARTED_BY_SPACES, "xfs", "table", "latency_ns_min", 900 * US),
        (PARTED_BY_SPACES, "ext4", "table", "latency_ns_mean", 4.5 * MS),
        (OF_RATE, "xfs", "table", "iops", 20),
        (MEAN, "none", "table", "latency_ns_mean", 12 * MS),
        (MEAN, "bfq", "table", "latency_ns_mean", 13 * MS),
        (EXT4SLOWER, "run", "slow operations", "read.ops", 2),
        (EXT4SLOWER, "run", "slow operations", "read.latency_ns_max", 16.05 * MS),
        (EXT4SLOWER, "run", "slow operations", "read.latency_ns_mean", None),
        (EXT4SLOWER, "run", "slow operations", "sync.latency_ns_max", 36.5 * MS),
        (FILESLOWER, "run", "slow operations", "read.latency_ns_mean", 3 * MS),
        (FSYNCSNOOP, "run", "slow operations", "sync.ops", 2),
        (FSYNCSNOOP, "run", "slow operations", "sync.latency_ns_max", 4.5 * MS),
        (BBOLT, "run", "bbolt -read-mode rnd", "write/latency_ns_mean", 66.4 * US),
        (BBOLT, "run", "bbolt -read-mode rnd", "read/elapsed_s", 61.5),
        (BBOLT, "run", "bbolt -read-mode rnd", "read/operations_per_s", 2197802),
        (BBOLT, "run", "bbolt", "write/operations_per_s", 14285),
        (OF_JOBS, "base", "numjobs=4", "iops", 2.1e6),
        (OF_JOBS, "patched", "numjobs=1", "iops", 812e3),
        (OF_THREADS, "w/o patch", "table[threads=2]", "rate_bytes_per_s", 21.4e9),
        (OF_THREADS, "w/ patch", "table[threads=1]", "rate_bytes_per_s", 11.29e9),
        (OF_CLIENTS, "6.10.0-rc1", "table[clients=4]", "rate_bytes_per_s", 466.23e6),
        (OF_MINUTES, "patched", "table", "unlink (time)_ns", 190 * 1000 * MS),
        (OF_MINUTES, "vanilla", "table", "create (avg files_per_s)", 235000),
        (PER_CORE, "After", "per core", "iops", 1.78e6),
        (STATISTICS, "rq_affinity=2", "list", "latency_ns_p99", 31 * US),
        (TWO_CHANGES, "after", "RAID5", "latency_ns_p999", 4.1 * MS),
        (TWO_CHANGES, "before", "RAID5", "iops", 34200),
        (ELBENCHO_LATENCIES, "run", "elbencho", "file_latency_ns_mean", 2.1 * MS),
        (ELBENCHO_LATENCIES, "run", "elbencho", "latency_ns_p50", 12 * US),
        (ELBENCHO_LATENCIES, "run", "elbencho", "latency_ns_p99", 196 * US),
        (FILEBENCH_BREAKDOWN, "run", "filebench", "shadow_post_dbwr/iops", 5249),
        (FILEBENCH_BREAKDOWN, "run", "filebench", "shadow_post_dbwr/latency_ns_max", 312.173 * MS),
        (QUOTED, "before", "list", "latency_ns_p99", 120 * US),
        (QUOTED, "after", "list", "iops", 120_000),
    ],
)
def test_the_figures(
    tmp_path: Path, text: str, setting: str, workload: str, metric: str, expected: float | None
) -> None:
    check_value(tmp_path, text, setting, workload, metric, expected)


def test_that_only_slow_operations_are_listed_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    assert any("only operations slower than 10 ms are listed" in one for one in opened(path, EXT4SLOWER).problems)
    assert not opened(path, FILESLOWER).problems


def test_figures_of_one_kind_are_rounds_where_the_text_says_runs(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text(THREE_RUNS)
    of_bfq = open_run(path).metrics.filter(polars.col("setting") == "bfq").sort("round")
    assert of_bfq["value"].to_list() == [402e6, 398e6, 410e6]
    path.write_text(f"{THREE_RUNS}ext4: 900 MB/s\n".partition("\n")[2])
    run = open_run(path)
    assert run.metrics["value"].to_list() == [900e6]
    assert any("figures of one kind behind a label: left out" in one for one in run.problems)


def test_that_a_percentile_was_the_bound_of_a_bucket_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text(ELBENCHO_LATENCIES)
    assert any("percentiles above the maximum are bounds of buckets" in one for one in open_run(path).problems)


def test_a_percentile_is_bounded_by_its_own_maximum_and_by_no_interval_s() -> None:
    row = Row("a", "b", "main")
    row.add("latency_ns_max", 9.0)
    row.add("latency_ns_p99", 8.0)
    row.add("latency_ns_p999", 10.0)
    row.add("latency_ns_p99", 20.0, op="read")
    row.interval("latency_ns_max", 0.0, 1.0)
    assert row.bound_percentiles()
    values = {(one.op, one.metric): one.value for one in row.rows if one.what == "metric"}
    assert values["all", "latency_ns_p99"] == 8.0
    assert values["all", "latency_ns_p999"] == 9.0
    assert values["read", "latency_ns_p99"] == 20.0


def test_columns_of_one_name_are_no_rounds(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("| fs | IOPS | IOPS | MB/s |\n|---|---|---|---|\n| xfs | 10 | 20 | 3 |\n| ext4 | 11 | 21 | 4 |\n")
    run = open_run(path)
    assert set(run.metrics["key"]) == {"rate_bytes_per_s"}
    assert any("2 columns are called IOPS" in one for one in run.problems)
    with pytest.raises(InputError) as error:
        opened(path, "| fs | IOPS | IOPS |\n|---|---|---|\n| xfs | 10 | 20 |\n")
    assert "2 columns are called IOPS" in error.value.what
