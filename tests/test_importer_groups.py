"""Names of groups above columns, several statistics in a cell, lists of slow operations, and bbolt."""

from __future__ import annotations

from pathlib import Path

import pytest
from iolab.base.errors import InputError
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
        (WITH_UNIT_BEHIND, "xfs", "4", "read.rate_bytes_per_s", 630e6),
        (WITH_UNIT_BEHIND, "ext4", "1", "write.rate_bytes_per_s", 180e6),
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


def test_columns_of_one_name_are_no_rounds(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("| fs | IOPS | IOPS | MB/s |\n|---|---|---|---|\n| xfs | 10 | 20 | 3 |\n| ext4 | 11 | 21 | 4 |\n")
    run = open_run(path)
    assert set(run.metrics["key"]) == {"rate_bytes_per_s"}
    assert any("2 columns are called IOPS" in one for one in run.problems)
    with pytest.raises(InputError) as error:
        opened(path, "| fs | IOPS | IOPS |\n|---|---|---|\n| xfs | 10 | 20 |\n")
    assert "2 columns are called IOPS" in error.value.what
