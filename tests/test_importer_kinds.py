"""Kinds of texts that people post: summaries and percentiles, tables whose caption states the unit, lists of times."""

import json
from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.files.importer.run_import import open_run
from iolab.presentation.cli.invoke import invoke
from test_importer import check_value, opened, value

MIB = 2**20
MS, US = 1e6, 1e3
IOR = (
    "Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)     StdDev    Mean(s)"
    " Stonewall(s) Stonewall(MiB) Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt   blksiz    xsize"
    " aggs(MiB)   API RefNum\n"
    "7: write     210.00     190.00     200.00       8.00     105.00      95.00     100.00       4.00    5.12000"
    "         NA            NA     0      4   4    3   0     0        1         0    0      1 268435456  2097152"
    "    1024.0 POSIX      0\n"
)
OLD_IOR = (
    "Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev    Mean(s) Test# #Tasks tPN reps fPP reord reordoff"
    " reordrand seed segcnt blksiz xsize aggsize API RefNum\n"
    "read         310.00     290.00     300.00       8.00    3.41333     0 4 4 3 0 1 1 0 0 1 268435456 2097152"
    " 1073741824 POSIX 0\n"
)
COCKROACH = """_elapsed___errors_____ops(total)___ops/sec(cum)__avg(ms)__p50(ms)__p95(ms)__p99(ms)_pMax(ms)__total
   60.0s        0         120000         2000.0      4.0      3.5      9.4     15.2    101.0  read

_elapsed___errors_____ops(total)___ops/sec(cum)__avg(ms)__p50(ms)__p95(ms)__p99(ms)_pMax(ms)__result
   60.0s        0         180000         3000.0      5.0      4.5     10.4     16.2    111.0
"""
TPCC = """_elapsed_______tpmC____efc__avg(ms)__p50(ms)__p90(ms)__p95(ms)__p99(ms)_pMax(ms)
   60.0s     1234.5  95.9%     31.0     29.4     39.8     44.0     67.1    130.0
"""
CRYPTSETUP = """# Tests are approximate using memory only (no storage IO).
PBKDF2-sha256     500000 iterations per second for 256-bit key
#     Algorithm |       Key |      Encryption |      Decryption
        aes-xts        256b       400.0 MiB/s       410.5 MiB/s
    serpent-xts        256b               N/A        90.0 MiB/s
"""
PERCENTILES = "read   p50=4.0ms p75=5.0ms p90=7.0ms p99=12.0ms\nwrite: p50=900us p75=2.0ms p90=3.0ms p99=8.0ms\n"
IOPING = """On the file system (`ioping -c4 /`)
--- / (ext4 /dev/sda1) ioping statistics ---
4 requests completed in 3.00 s, 2.50 k iops, 9.77 MiB/s
min/avg/max/mdev = 300 us / 400 us / 700 us / 100 us

On the device (`ioping -c4 /dev/sda`)
--- /dev/sda (block device 10 GiB) ioping statistics ---
4 requests completed in 3.05 s, 80 iops, 320.0 KiB/s
min/avg/max/mdev = 8.00 ms / 12.5 ms / 20.0 ms / 4.00 ms
"""
FIO = """Writes:
$ fio --ioengine=libaio --direct=1 --name=a --bs=4m --rw=write
....
    write: IOPS=40, BW=160MiB/s (168MB/s)(1600MiB/10000msec); 0 zone resets

$ fio --ioengine=libaio --direct=1 --name=a --bs=1g --rw=write
....
    write: IOPS=0, BW=150MiB/s (157MB/s)(1500MiB/10000msec); 0 zone resets
"""
CHANGES = """| Block | QD | Old IOPS | New IOPS | IOPS change | Old CPU ns/op | New CPU ns/op |
|---|---:|---:|---:|---:|---:|---:|
| 4 KiB | 32 | 6,000 | 6,600 | +10.0% | 3,500 | 3,100 |
| 4 KiB | 64 | 9,000 | 9,900 | +10.0% | 3,400 | 3,000 |
"""
MILLISECONDS = (
    "Times of the patch in {unit}:\n\n            old     new\nopen        1.20    1.10\nfsync       8.50    4.20\n"
)
HEY = """Summary:
  Total:	10.5000 secs.
  Slowest:	0.0600 secs.
  Average:	0.0030 secs.
  Requests/sec:	400.5000

Latency distribution:
  50% in 0.0025 secs.
  99% in 0.0200 secs.
  99.9% in 0.0450 secs.
"""
SPDK = """Summary latency data for PCIE (0000:01:00.0) NSID 1 from core 0:
=================================================================
 10.00000% :     6.100us
 50.00000% :     7.200us
 99.00000% :    12.500us
 99.90000% :    30.000us
"""
REQUESTS = "`off`:\n\nInsert RPS: 9000.5\nSelect RPS: 70000\n\n`lz4`:\n\nInsert RPS: 9500.5\nSelect RPS: 60000\n"
WAYS = """Size | BS | Mode | IOP/s (R) | IOP/s (W) | BW (R) | BW (W)
--- | --- | --- | --- | --- | --- | ---
1G | 4K | sync | 6000 | 2500 | 24.5MB | 10.5MB
1G | 8K | sync | 7000 | 3000 | 57MB | 24MB
"""
SHORT_ROW = "change | load [s] | OK?\n--- | --- | ---\nbaseline | 6.5 |\nlarger records | 7.25 | :+1:\n"
THOUSANDS = """--- /dev/sda (device 10.0 GiB) ioping statistics ---
2.2 k requests completed in 3.0 s, 738 iops, 2.5 MiB/s
min/avg/max/mdev = 200 us / 1.5 ms / 30.0 ms / 3.0 ms
"""
BIOTOP = """08:00:01 loadavg: 1.48 0.87 0.45 1/287 14547

PID    COMM             D MAJ MIN DISK       I/O  Kbytes  AVGms
81     writer           W 8   0   sda         10    40.0   2.00
82     writer           W 8   0   sda         30   120.0   4.00
0                       R 8   0   sda          1     4.0   0.50
08:00:02 loadavg: 1.48 0.87 0.45 1/287 14547

PID    COMM             D MAJ MIN DISK       I/O  Kbytes  AVGms
81     writer           W 8   0   sda         20    80.0   3.00
"""
LATENCIES = "p99 latency (us) by scheduler:\n\n          ext4    xfs\nnone      120     90\nbfq       240     180\n"


TOGETHER = """\
Old: IOPS=4100, BW=16.4MB/s, latency=15.2ms
New: IOPS=4800, BW=19.1MB/s, latency=13.1ms
"""
"""Several labels with their figures on a line, behind a name."""

LINKED = """\
local:
- `pgbench -c 8` -- [912 TPS](https://example.org/run/1)
- `pgbench -c 64` -- [1.5k TPS](https://example.org/run/2)

replicated:
- `pgbench -c 8` \u2014 870 TPS
- `pgbench -c 64` \u2014 1.4k TPS
"""
"""Figures as links, behind dashes, in requests per second."""


YCSB = """[OVERALL], RunTime(ms), 20500
[OVERALL], Throughput(ops/sec), 4000.5
[TOTAL_GC_TIME_%], Time(%), 0.5
[READ], Operations, 41000
[READ], AverageLatency(us), 150.25
[READ], 99thPercentileLatency(us), 900
[READ], Return=OK, 40990
[READ], Return=ERROR, 10
[READ-MODIFY-WRITE], AverageLatency(ms), 2.5
"""
MEMTIER = """Type     Ops/sec  Hits/sec  Misses/sec  Avg. Latency  p50 Latency  p99 Latency  p99.9 Latency  KB/sec
Sets     9000.50       ---         ---       1.50000      1.20000      5.50000        9.50000  800.50
Gets        0.00      0.00        0.00       0.00000      0.00000      0.00000        0.00000    0.00
Totals   9000.50      0.00        0.00       1.50000      1.20000      5.50000        9.50000  800.50
"""
OLD_MEMTIER = """AGGREGATED AVERAGE RESULTS (2 runs)
Type        Ops/sec     Hits/sec   Misses/sec      Latency       KB/sec
Totals      3500.50         0.00         0.00     17.50000      5000.50
"""
SMALLFILE = """                            files/thread : 500
                                 threads : 2
host = localhost,thr = 00,elapsed = 0.5,files = 500,records = 500,status = ok
total threads = 2
total files = 1000
total IOPS = 1000
100.00% of requested files processed, warning threshold is  70.00
elapsed time =     0.5
files/sec = 2000.5
IOPS = 2001.5
MiB/sec = 125.5
"""
TPCC_LOG = """before

2026-01-05 10:00:00 INFO  jTPCC:803 - Term-00, Running Average tpmTOTAL: 900.5    Current tpmTOTAL: 50
2026-01-05 10:00:00 INFO  jTPCC:763 - Term-00, Measured tpmC (NewOrders) = 400.5
2026-01-05 10:00:00 INFO  jTPCC:764 - Term-00, Measured tpmTOTAL = 900.75
"""
MONGO = "Insert.Empty\n1\t1000.5\n4\t3000.5\nUpdate.Field.Random\n1\t900.5\n4\t2500.5\n"
HAMMERDB = """Vuser 1:TEST RESULT : System achieved 9000 NOPM from 20000 MariaDB TPM
>>>>> PROC: NEWORD
CALLS: 900\tMIN: 0.5ms\tAVG: 2.5ms\tMAX: 80.5ms\tTOTAL: 2250.0ms
P99: 9.5ms\tP95: 5.5ms\tP50: 2.0ms\tSD: 900.5\tRATIO: 40.5%
"""
OSD_BENCH = 'In a text: \n{\n "osd_bench_results": {"bytes_written": 1048576, "blocksize": 4096, "iops": 2048.5}\n}\n'
PROGRESS = (
    "+   progress: 5.0 s, 100.0 tps, lat 9.0 ms stddev 1.0\n+   progress: 10.0 s, 300.0 tps, lat 3.0 ms stddev 1.0\n"
)
READS_ALONE = """mix: (groupid=0, jobs=1): err= 0: pid=7: Mon Jan  5 10:00:00 2026
  read: IOPS=4000, BW=15.6MiB/s (16.4MB/s)(156MiB/10000msec)
    slat (nsec): min=500, max=9000, avg=2000.00, stdev=300.00
     lat (usec): min=50, max=900, avg=250.00, stdev=30.00
  write: IOPS=1000, BW=4000KiB/s (4096kB/s)(39.1MiB/10000msec)
    slat (nsec): min=600, max=8000, avg=25
"""


@pytest.mark.parametrize(
    ("text", "setting", "workload", "metric", "expected"),
    [
        (IOR, "run", "ior", "write.rate_bytes_per_s", 200 * MIB),
        (IOR, "run", "ior", "write.operations_per_s", 100),
        (IOR, "run", "ior", "write.elapsed_s", 5.12),
        (OLD_IOR, "run", "ior", "read.rate_bytes_per_s", 300 * MIB),
        (OLD_IOR, "run", "ior", "read.elapsed_s", 3.41333),
        (COCKROACH, "run", "cockroach", "read/operations_per_s", 2000),
        (COCKROACH, "run", "cockroach", "operations_per_s", 3000),
        (COCKROACH, "run", "cockroach", "latency_ns_p99", 16.2 * MS),
        (TPCC, "run", "cockroach", "tpcc/new_orders_per_min", 1234.5),
        (TPCC, "run", "cockroach", "tpcc/latency_ns_p90", 39.8 * MS),
        (CRYPTSETUP, "run", "cryptsetup aes-xts 256b", "decryption/rate_bytes_per_s", 410.5 * MIB),
        (CRYPTSETUP, "run", "cryptsetup serpent-xts 256b", "encryption/rate_bytes_per_s", None),
        (PERCENTILES, "run", "iolatpcts", "read/latency_ns_p99", 12 * MS),
        (PERCENTILES, "run", "iolatpcts", "write/latency_ns_p50", 900 * US),
        (2 * PERCENTILES.replace("read   ", "").replace("write: ", ""), "run", "iolatpcts", "latency_ns_p50", 4 * MS),
        (IOPING, "/", "ioping", "iops", 2500),
        (IOPING, "/dev/sda", "ioping", "latency_ns_mean", 12.5 * MS),
        (FIO, "Writes bs=4m", "fio", "write.iops", 40),
        (FIO, "Writes bs=1g", "fio", "write.rate_bytes_per_s", 150 * MIB),
        (FIO, "Writes bs=1g", "fio", "write.iops", None),
        (CHANGES, "Old", "4 KiB[QD=64]", "iops", 9000),
        (CHANGES, "New", "4 KiB[QD=32]", "CPU ns_per_op", 3100),
        (MILLISECONDS.format(unit="ms"), "new", "fsync", "time_ns", 4.2 * MS),
        (MILLISECONDS.format(unit="seconds"), "old", "open", "time_ns", 1.2e9),
        (MILLISECONDS.format(unit="seconds, 30 each; IOPS"), "old", "open", "iops", 1.2),
        (LATENCIES, "xfs", "bfq", "latency_ns_p99", 180 * US),
        ("| step | run 1 | run 2 |\n|---|---|---|\n| sync | 8 ms | 4 ms |\n", "sync", "table", "time_ns", 8 * MS),
        (HEY, "run", "requests", "operations_per_s", 400.5),
        (HEY, "run", "requests", "latency_ns_p999", 45 * MS),
        (HEY, "run", "requests", "latency_ns_max", 60 * MS),
        (SPDK, "run", "spdk-perf", "pcie_0000_01_00_0_nsid_1_from_core_0/latency_ns_p99", 12.5 * US),
        (REQUESTS, "lz4", "Insert", "operations_per_s", 9500.5),
        (REQUESTS, "off", "Select", "operations_per_s", 70000),
        (BIOTOP, "run", "biotop writer sda", "write.ops", 60),
        (BIOTOP, "run", "biotop writer sda", "write.bytes", 240 * 1024),
        (BIOTOP, "run", "biotop writer sda", "write.latency_ns_mean", 200 / 60 * MS),
        (BIOTOP, "run", "biotop without a name sda", "read.latency_ns_mean", 0.5 * MS),
        (WAYS, "sync", "table[Size=1G,BS=8K]", "read.iops", 7000),
        (WAYS, "sync", "table[Size=1G,BS=4K]", "write.rate_bytes_per_s", 10.5e6),
        (SHORT_ROW, "baseline", "table", "load_ns", 6.5e9),
        (SHORT_ROW, "larger records", "table", "load_ns", 7.25e9),
        (THOUSANDS, "run", "ioping", "iops", 738),
        (THOUSANDS, "run", "ioping", "rate_bytes_per_s", 2.5 * MIB),
        ("Cost:\n\nper-sector: 12 us\nper-request: 40 us\n", "run", "list", "per-sector_ns", 12 * US),
        (TOGETHER, "Old", "list", "iops", 4100),
        (TOGETHER, "New", "list", "latency_ns_mean", 13.1 * MS),
        (TOGETHER.replace(", ", "; "), "New", "list", "rate_bytes_per_s", 19.1e6),
        (TOGETHER.replace("Old", "randread").replace("New", "randwrite"), "run", "randwrite", "iops", 4800),
        (LINKED, "local", "pgbench -c 8", "operations_per_s", 912),
        (LINKED, "replicated", "pgbench -c 64", "operations_per_s", 1400),
        (YCSB, "run", "ycsb", "operations_per_s", 4000.5),
        (YCSB, "run", "ycsb", "read/latency_ns_mean", 150.25 * US),
        (YCSB, "run", "ycsb", "read/errors", 10),
        (YCSB.replace("150.25", "0"), "run", "ycsb", "read/latency_ns_mean", None),
        (YCSB, "run", "ycsb", "read_modify_write/latency_ns_mean", 2.5 * MS),
        (MEMTIER, "run", "memtier", "operations_per_s", 9000.5),
        (MEMTIER, "run", "memtier", "rate_bytes_per_s", 800.5 * 1024),
        (MEMTIER, "run", "memtier", "sets/latency_ns_p99", 5.5 * MS),
        (MEMTIER, "run", "memtier", "gets/latency_ns_mean", None),
        (OLD_MEMTIER, "run", "memtier AGGREGATED AVERAGE", "latency_ns_mean", 17.5 * MS),
        (SMALLFILE, "run", "smallfile", "operations_per_s", 2000.5),
        (SMALLFILE, "run", "smallfile", "iops", 2001.5),
        (SMALLFILE, "run", "smallfile", "rate_bytes_per_s", 125.5 * MIB),
        (TPCC_LOG, "run", "benchmarksql", "new_orders_per_min", 400.5),
        (TPCC_LOG, "run", "benchmarksql", "transactions_per_min", 900.75),
        (MONGO, "run", "mongo-perf 4", "insert_empty/operations_per_s", 3000.5),
        (MONGO, "run", "mongo-perf 1", "update_field_random/operations_per_s", 900.5),
        (HAMMERDB, "run", "hammerdb", "neword/latency_ns_mean", 2.5 * MS),
        (HAMMERDB, "run", "hammerdb", "neword/latency_ns_p99", 9.5 * MS),
        (OSD_BENCH, "run", "rados", "iops", 2048.5),
        (PROGRESS, "run", "pgbench", "transactions_per_s", 200),
        (READS_ALONE, "run", "mix", "iops", 5000),
        (READS_ALONE, "run", "mix", "read.latency_ns_mean", 250 * US),
        (READS_ALONE, "run", "mix", "latency_ns_mean", None),
    ],
)
def test_the_figures(
    tmp_path: Path, text: str, setting: str, workload: str, metric: str, expected: float | None
) -> None:
    check_value(tmp_path, text, setting, workload, metric, expected)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (READS_ALONE, ":6: fio's output is cut off"),
        (f"fio-3.30\nStarting 4 threads\n{READS_ALONE}", ":2: fio started 4 jobs, and 1 of them are in the text"),
        (MEMTIER + "Gets 5.50 --- --- 1.50000 1\n", ":5: the line is cut off"),
        (COCKROACH + COCKROACH.splitlines()[1][:-30] + "\n", "the line is cut off"),
        (
            "Run status group 0 (all jobs):\n   READ: bw=10.0MiB/s (10.5MB/s), io=100MiB (105MB), run=10000-10000msec\n"
            "Run status group 1 (all jobs):\n   READ: bw=20.0MiB/s (21.0MB/s), 2\n",
            ":4: the line is cut off",
        ),
    ],
)
def test_what_is_cut_off_is_said(tmp_path: Path, text: str, said: str) -> None:
    assert any(said in problem for problem in opened(tmp_path / "run.txt", text).problems)


def test_a_rate_that_was_asked_for_is_no_result(tmp_path: Path) -> None:
    run = opened(tmp_path / "run.txt", "Rate limit: 900 TPS\nrandom write IOPS: 12k\nread IOPS: 9k\n")
    assert set(run.metrics["key"].unique()) == {"read.iops", "write.iops"}
    assert any("'Rate limit: 900 TPS'" in one for one in run.problems)


def test_a_line_that_repeats_the_heading_leaves_the_first_column(tmp_path: Path) -> None:
    path = tmp_path / "run.md"
    heading = "| Command | Mean [ms] | Command | Mean [ms] |\n"
    with pytest.raises(InputError, match="figures"):
        opened(path, f"{heading}|---|---|---|---|\n| dd | 12.0 | cp | 13.0 |\n")


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        (
            "test        vs base   faster\nrandread    1.20x     20%\nrandwrite   1.05x     5%\n",
            "ratios alone",
            "before and after",
        ),
        (
            COCKROACH.replace("ops(total)___ops/sec(cum)__avg(ms)", "ops/sec(inst)___ops/sec(cum)"),
            "progress of cockroach",
            "lines at its end",
        ),
        (
            "The run took long in all 30 seconds.\n\n      old   new\na     1     2\nb     3     4\n",
            "states what",
            "ms",
        ),
        ('x_seconds_bucket{le="0.001"} 10\nx_seconds_bucket{le="0.002"} 20\n', "Prometheus", "iolab trace"),
        ("| a | b |\n|---|---|\n| x | 1.5 / 2.5 ±0.1 / 3.5 ms |\n| y | 1 / 2 / 3 |\n", "single figure", "CSV file"),
        (
            "| rate (MiB/s) | | |\n|---|---|---|\n| what | 10 | 50 |\n| a | 1.5 | 2.5 |\n",
            "2 columns of figures without a name",
            "CSV file",
        ),
        ("poll interval: 10 ms\nI/O timeout: 30 ms\n", "unrecognised", "CSV file"),
        (COCKROACH.replace("ops(total)", "ops/sec(inst)").replace("_elapsed", "   _elapsed"), "progress", "at its end"),
        (
            "2026-01-05T10:00:00+0000   sec Cur ops   started  finished  avg MB/s\n",
            "rados bench's progress",
            "Total time run",
        ),
        ("5 sec: 900 operations; 180.5 current ops/sec; [READ: Avg=5.5]\n", "YCSB's progress", "OVERALL"),
        (SMALLFILE.partition("host")[0], "smallfile's settings", "total threads"),
        (
            "pool     sync_read    scrub\nreq_size   ind    agg    ind    agg\n512   5   0   9   0\n",
            "histograms",
            "-lv",
        ),
        (" Task        |   Runtime ms  | Switches |\n a:7   |  12.5 ms | 90 | avg:  0.5 ms |\n", "perf sched", "CSV"),
    ],
)
def test_what_is_refused_says_why_and_the_way_out(tmp_path: Path, text: str, what: str, remedy: str) -> None:
    with pytest.raises(InputError) as error:
        opened(tmp_path / "run.txt", text)
    assert what in error.value.what
    assert remedy in (error.value.remedy or "")


def test_a_whole_output_of_ior_counts_its_iterations_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text((Path(__file__).parent / "imported/ior.txt").read_text() + "\nSummary of all tests:\n" + IOR)
    run = open_run(path)
    assert value(run, "run", "ior", "write.rate_bytes_per_s") == 2189.82 * MIB
    assert "write.operations_per_s" not in set(run.metrics["key"])


def test_columns_of_dstat_that_are_not_read_are_named(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "run.txt",
        "--dsk/sda-- ---load-avg---\n read  writ| 1m   5m  15m \n"
        "  10k   20k|0.10 0.20 0.30\n  30k   40k|0.10 0.20 0.30\n",
    )
    assert value(run, "run", "dstat sda", "read.rate_bytes_per_s") == 30 * 1024
    assert any("not read: 1m, 5m, 15m" in one for one in run.problems)


def test_a_histogram_of_prometheus_is_a_distribution(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "metrics.txt"
    path.write_text(
        'wal_fsync_seconds_bucket{job="a",le="0.001"} 10\n'
        'wal_fsync_seconds_bucket{job="a",le="0.002"} 4.0e+01\n'
        'wal_fsync_seconds_count{job="a"} 50\n'
        'io_ms_bucket{le="1"} 7\nio_ms_bucket{le="2"} 9\n'
    )
    assert invoke(["trace", str(path), "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["histograms"]
    assert (first["name"], first["count"]) == ('wal_fsync{job="a"}', 50)
    assert [tuple(one) for one in first["histogram_ns"]][:2] == [(0, 1_000_000, 10), (1_000_000, 2_000_000, 30)]
    assert first["histogram_ns"][2][0::2] == [2_000_000, 10]
    assert (second["name"], second["count"]) == ("io, those of at most 0.002 s", 9)


def test_the_unit_of_a_map_of_bpftrace_may_stand_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "maps.txt"
    path.write_text("@usec_hist: \n[1]       3 |@@  |\n[2, 4)    5 |@@@@|\n\n@lat_us_of[sda]:\n[8, 16)   2 |@@@@|\n")
    assert invoke(["trace", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["histograms"]
    assert [(one["name"], one["count"]) for one in found] == [("hist", 8), ("lat_of[sda]", 2)]
    assert [tuple(one) for one in found[0]["histogram_ns"]] == [(1_000, 2_000, 3), (2_000, 4_000, 5)]


def test_devices_are_named_before_processors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sar.txt"
    path.write_text(
        "Linux 6.1.0 (host) \t11/01/2026 \t_x86_64_\t(8 CPU)\n\n"
        "10:00:01 AM     CPU     %user     %nice   %system   %iowait    %steal     %idle\n"
        "10:10:01 AM     all      2.00      0.00      1.00     40.00      0.00     57.00\n\n"
        "10:00:01 AM       DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util\n"
        "10:10:01 AM       sdb    120.00   1000.00   2000.00      0.00     25.00      3.30     27.50     99.00\n"
    )
    assert invoke(["show", str(path)]) == 0
    first = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("●"))
    assert first.startswith("● sar sdb: device busy percent 99.00%")


def test_the_answer_of_a_history_stands_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "nights.csv"
    lines = [f"2026-01-{day:02},{100 + day % 3}" for day in range(1, 31)]
    for count, first in ((8, "Too few runs to show a change"), (30, "No change was found.")):
        path.write_text("\n".join(["date,iops", *lines[:count]]) + "\n")
        assert invoke(["history", str(path)]) == 0
        assert capsys.readouterr().out.startswith(first)
