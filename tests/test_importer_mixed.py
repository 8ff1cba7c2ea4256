"""Figures among sentences: two speeds in one, CSV and HTML tables, lines of assignments; and reports of databases."""

from pathlib import Path

import pytest
from iolab.base.errors import InputError
from test_importer import check_value, opened, value

MIB = 2**20
MS, US = 1e6, 1e3
CSV = """Hi,

my numbers:

scheduler,bs,iops,lat_us
none,4k,900,50.5
bfq,4k,800,60.5

Any idea?
"""
DECIMAL_COMMAS = "Meine Messung:\n\nDateisystem;Lesen (MB/s)\next4;412,5\nxfs;428,25\n\nIst das gut?\n"
TABS = "Both pools:\n\npool\tread IOPS\tp99 ms\nreplica\t900\t8.5\nerasure\t700\t30.5\n\nAs expected.\n"
QUOTED = (
    "On Monday, B wrote:\n> kernel;run;iops\n> 6.1;1;900\n> 6.1;2;910\n> 6.2;1;950\n> 6.2;2;960\n\nSo it is faster.\n"
)
HTML = """<table>
 <tr><th></th><th colspan="2">ext4</th><th colspan=2>xfs</th></tr>
 <tr>
  <th>Test</th><th>IOPS</th><th>lat (us)</th><th>IOPS</th>
  <th>lat (us)</th>
 </tr>
 <tr><td>randread</td><td>1,000</td><td>12.5</td><td>1,200</td><td>10.5</td></tr>
</table>
"""
HTML_IN_A_LINE = (
    "<p>Drives:</p><table border=1><tr><th>Name</th><th>Read MB/s</th></tr>"
    "<tr><td>A &amp; B</td><td><b>500</b></td></tr><tr><td>C</td><td>600</td></tr></table>\n"
)
ASSIGNED = """kernel=6.1 bs=4k qd=1  p50=80us p99=140us iops=11.9k
kernel=6.1 bs=4k qd=32 p50=200us p99=480us iops=148k
kernel=6.2 bs=4k qd=1  p50=70us p99=130us iops=12.4k
"""
BESIDE = """untar linux     vanilla 41.5s    patched 38.5s
rm -rf          vanilla 12.5s    patched  7.5s
"""
SPACED = """(lab) | r12 |   |   | r13 |
-- | -- | -- | -- | -- | --
Test | read IOPS | write IOPS |   | read IOPS | write IOPS
randrw | 8,300 | 2,700 |   | 4,800 | 1,600
randread | 14,600 |   |   | 5,900 |
"""
DRAWN = """Time: 23:31
┌───────────────────────────────┐
| Name  | ops/s | Latency (us)  |
| one   | 5,810 | 27.5          |
| two   | 9,510 | 5.5           |
└───────────────────────────────┘
"""
SEPARATED = (
    "|Name|Maximum Throughput|Latency (ms)|  \n| :--- | ---: | ---: |  \n|[randread](#of-256k)|5040 MB/s|1.5|  \n"
)
OF_ONE_LABEL = "".join(
    f"{title}:\n\n```\nD:\n   Benchmark 1: ./related\n   Processing time: {ms}ms\n   Processing time: {ms + 1}ms\n```\n"
    for title, ms in (("before", 24.5), ("after", 30.5))
)
GENERATIONS = (
    "Gen2: read 452 MB/s, write 430 MB/s, 4k read 41 MB/s\nGen3: read 880 MB/s, write 810 MB/s, 4k read 58 MB/s\n"
)
CRYSTAL = "Random Read 512KB :   401.5 MB/s\nRandom Read 4KB (QD=1) :    31.5 MB/s [  7622.1 IOPS]\n"
LMBENCH = """*Local* Communication bandwidths in MB/s - bigger is better
-----------------------------------
Host                OS  Pipe Mem
                             read
--------- ------------- ---- ----
one       Linux 6.1.0-1 4102   11.K
"""
BLOCKS = """test1: 4k random read
  iops   : 1200
  lat_p99: 612.5 usec
test2: 4k random write
  iops   : 800
  lat_p99: 905.5 usec
"""
WITH_RATES = """Before:
  write 4k sync:   avg 1.5 ms   p99 6.5 ms   510 iops
After:
  write 4k sync:   avg 0.5 ms   p99 2.5 ms   1204 iops
"""
RUNS = "run  iops    lat(ms)\n1    1020    3.5\n2    1010    3.25\navg  1015    3.375\n"
UNIT_LAST = "          read     write\nsingle    178      171     MB/s\nmirror    690      340     MB/s\n"
OF_PERCENTILES = """Latency (us), 4k:

            50%    99.9%   max
drive A     31     410    5210
drive B     28     1900   18200
"""
OF_DEVICE = "Device:            sdc\nRandom 4K read:    0.75 MB/s (173 IOPS)\nAccess time:       14.5 ms\n"
REMARKED = "".join(
    f"# {title}\nr: (groupid=0, jobs=1): err= 0: pid={iops}: Mon Mar  2 10:00:00 2026\n"
    f"  read: IOPS={iops}, BW=4000KiB/s (4096kB/s)(39.1MiB/10000msec)\n"
    for title, iops in (("before", 1000), ("with the patch", 1200))
)
DD = "dd if=/dev/sdb of=/dev/null bs=1M count=1"
SET_BETWEEN = """$ dd if=/dev/sdb of=/dev/null bs=1M count=1
1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.5 s, 2.1 MB/s
$ echo 1 > /sys/block/sdb/queue/nomerges
$ dd if=/dev/sdb of=/dev/null bs=1M count=1
1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.25 s, 4.2 MB/s
"""
DEVICE_LAST = """   r/s     w/s    rMB/s    wMB/s  %util  device
 812.0   120.0     50.5      7.5   71.5  sdb
 810.0   131.0     50.5      8.5   72.5  sdb
 830.0   110.0     51.5      6.5   70.5  sdb
"""
JOB = """[
  "6A1F3C22D0A103E273931323", "2026-02-18 14:22:31", "{0} Active Virtual Users configured",
  "TEST RESULT : System achieved {1} NOPM from 20000 PostgreSQL TPM"
]
"""
TIMES = """{
  "NEWORD": {
    "elapsed_ms": "180442.0",
    "calls": "900",
    "avg_ms": "5.5",
    "p99_ms": "14.5",
    "ratio_pct": "50.2"
  },
  "PAYMENT": {
    "calls": "800",
    "avg_ms": "3.5"
  }
}
"""
REDIS = """====== SET ======
  1000 requests completed in 0.50 seconds
50.000% <= 0.287 milliseconds (cumulative count 500)
Summary:
  throughput summary: 2000.50 requests per second
  latency summary (msec):
          avg       min       p50       p95       p99       max
        0.302     0.144     0.287     0.503     0.711     2.103
"""
CASSANDRA = """Results:
Op rate                   :   41,210 op/s  [WRITE: 41,210 op/s]
Row rate                  :   41,210 row/s [WRITE: 41,210 row/s]
Latency mean              :    4.5 ms [WRITE: 4.5 ms]
Latency 99.9th percentile :   88.5 ms [WRITE: 88.5 ms]
Total operation time      : 00:02:01
"""
KAFKA = (
    "1000 records sent, 190.5 records/sec (0.20 MB/sec), 2.5 ms avg latency, 9.0 ms max latency.\n"
    "3000 records sent, 200.5 records/sec (0.25 MB/sec), 3.5 ms avg latency, 12.00 ms max latency, "
    "3 ms 50th, 5 ms 95th, 8 ms 99th, 11 ms 99.9th.\n"
)
JMH = """Benchmark                  Mode  Cnt      Score      Error  Units
FileBench.read            thrpt    5  65166.210 ±  810.122  ops/s
FileBench.write            avgt    5     12.5 ±    0.210  us/op
"""
SPEEDTEST = " 100 - 500 INSERTs into table......................    0.081s\n       TOTAL.......    0.402s\n"


@pytest.mark.parametrize(
    ("text", "setting", "workload", "metric", "expected"),
    [
        ("Writes went from 512 MB/s to 498 MB/s.", "after", "Writes", "write.rate_bytes_per_s", 498e6),
        ("Here 4k randread does 312k IOPS vs 287k IOPS before.", "before", "4k randread", "read.iops", 287e3),
        ("Here 4k randread does 312k IOPS vs 287k before.", "after", "4k randread", "read.iops", 312e3),
        ("randread 312k IOPS with the patch vs 287k without", "after", "randread", "read.iops", 312e3),
        (
            "randwrite: 1.5 GB/s, up from 900 MB/s on the same disk",
            "before",
            "randwrite",
            "write.rate_bytes_per_s",
            9e8,
        ),
        ("seq read is 910 MB/s now, was 700 MB/s", "before", "seq read", "read.rate_bytes_per_s", 7e8),
        (
            "Here fio 4k randwrite drops from 410 kIOPS to 365 kIOPS (-11%), CPU goes up from 31% to\n"
            "44%, and avg completion latency goes from 77.5 us to 87.2 us.",
            *("after", "fio 4k randwrite", "latency_ns_mean", 87.2 * US),
        ),
        (
            "randread 312k IOPS vs 287k before, randwrite 210k vs 190k before",
            "before",
            "randwrite",
            "write.iops",
            190e3,
        ),
        ("Clone time dropped from 94 s to 31 s.", "after", "list", "Clone time_ns", 31e9),
        (CSV, "bfq", "run[bs=4k]", "latency_ns_mean", 60.5 * US),
        (DECIMAL_COMMAS, "xfs", "run", "Lesen (MB_per_s)", 428.25),
        (TABS, "erasure", "run", "latency_ns_p99", 30.5 * MS),
        (QUOTED, "6.2", "run", "iops", 950),
        (HTML, "xfs", "randread", "latency_ns_mean", 10.5 * US),
        (HTML, "ext4", "randread", "iops", 1000),
        (HTML_IN_A_LINE, "A & B", "table", "read.rate_bytes_per_s", 5e8),
        (ASSIGNED, "6.1", "list[bs=4k,qd=32]", "latency_ns_p99", 480 * US),
        (ASSIGNED, "6.2", "list[bs=4k,qd=1]", "iops", 12.4e3),
        (BESIDE, "patched", "rm -rf", "time_ns", 7.5e9),
        (GENERATIONS, "Gen3", "4k read", "read.rate_bytes_per_s", 58e6),
        (SPACED, "r13", "randrw", "write.iops", 1600),
        (SPACED, "r12", "randread", "write.iops", None),
        (DRAWN, "two", "table", "latency_ns_mean", 5.5 * US),
        (SEPARATED, "run", "randread", "latency_ns_mean", 1.5 * MS),
        (OF_ONE_LABEL, "after", "list", "Processing time_ns", 30.5 * MS),
        (CRYSTAL, "run", "random 4 KB Q=1", "read.rate_bytes_per_s", 31.5e6),
        (LMBENCH, "one", "lmbench local communication bandwidths", "mem_read/rate_bytes_per_s", 11e9),
        (JOB.format(8, 9000), "run", "hammerdb 8 Active Virtual Users", "new_orders_per_min", 9000),
        (
            JOB.format(8, 9000) + JOB.format(16, 9500),
            "run",
            "hammerdb 16 Active Virtual Users",
            "new_orders_per_min",
            9500,
        ),
        (BLOCKS, "run", "test2: 4k random write", "write.iops", 800),
        (BLOCKS, "run", "test1: 4k random read", "read.latency_ns_p99", 612.5 * US),
        (WITH_RATES, "After", "write 4k sync", "iops", 1204),
        (WITH_RATES, "Before", "write 4k sync", "latency_ns_mean", 1.5 * MS),
        (UNIT_LAST, "mirror", "table", "write.rate_bytes_per_s", 340e6),
        (OF_PERCENTILES, "drive B", "table", "latency_ns_p999", 1900 * US),
        (OF_DEVICE, "run", "Random 4K read", "read.iops", 173),
        (OF_DEVICE, "run", "list", "latency_ns_mean", 14.5 * MS),
        (REMARKED, "before", "r", "iops", 1000),
        (REMARKED, "with the patch", "r", "iops", 1200),
        (SET_BETWEEN, "before echo 1 > /sys/block/sdb/queue/nomerges", DD, "elapsed_s", 0.5),
        (SET_BETWEEN, "echo 1 > /sys/block/sdb/queue/nomerges", DD, "elapsed_s", 0.25),
        ("- ext4:  1.5 GB/s -> 1.75 GB/s\n- xfs:   1.25 GB/s -> 2.0 GB/s\n", "after", "xfs", "rate_bytes_per_s", 2e9),
        ("| disk | 4k randread |\n|---|---|\n| a | 812k ± 4k IOPS |\n", "a", "table", "read.iops", 812e3),
        ("Random write:\n  Disk A .... 21,300 IOPS\n  Disk B ....    410 IOPS\n", "Disk A", "list", "iops", 21300),
        ("Result: 421k IOPS, 1644 MiB/s, avg lat 75.5 us, p99 112 us\n", "run", "Result", "latency_ns_mean", 75.5 * US),
        (DEVICE_LAST, "run", "iostat sdb", "read.iops", 820),
        ("p99.9 latency 9.8ms -> 4.1ms, reads 2.4GB/s -> 2.9GB/s", "after", "list", "latency_ns_p999", 4.1 * MS),
        (TIMES, "run", "hammerdb", "neword/latency_ns_p99", 14.5 * MS),
        (TIMES, "run", "hammerdb", "payment/latency_ns_mean", 3.5 * MS),
        (REDIS, "run", "redis-benchmark SET", "operations_per_s", 2000.5),
        (REDIS, "run", "redis-benchmark SET", "latency_ns_p99", 0.711 * MS),
        (
            "SET: 900.50 requests per second, p50=0.255 msec\n",
            "run",
            "redis-benchmark SET",
            "latency_ns_p50",
            0.255 * MS,
        ),
        (CASSANDRA, "run", "cassandra-stress", "operations_per_s", 41210),
        (CASSANDRA, "run", "cassandra-stress", "latency_ns_p999", 88.5 * MS),
        (CASSANDRA, "run", "cassandra-stress", "elapsed_s", 121),
        (KAFKA, "run", "kafka-producer", "operations_per_s", 200.5),
        (KAFKA, "run", "kafka-producer", "rate_bytes_per_s", 0.25 * MIB),
        (JMH, "run", "jmh FileBench.write", "latency_ns_mean", 12.5 * US),
        (JMH, "run", "jmh FileBench.read", "operations_per_s", 65166.21),
        (SPEEDTEST, "run", "speedtest1 100 - 500 INSERTs into table", "elapsed_s", 0.081),
    ],
)
def test_the_figures(
    tmp_path: Path, text: str, setting: str, workload: str, metric: str, expected: float | None
) -> None:
    check_value(tmp_path, text, setting, workload, metric, expected)


def test_numbers_below_a_column_of_runs_are_rounds(tmp_path: Path) -> None:
    run = opened(tmp_path / "run.txt", RUNS)
    assert value(run, "run", "table", "iops", round=1) == 1010
    assert any("rows over all rounds are left out: avg" in one for one in run.problems)


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        (
            "I got:\n\nname,first,second\na,900,800\nb,950,850\n\nas CSV.\n",
            "lines 3 to 5 are a CSV table",
            "sed -n 3,5p",
        ),
        (KAFKA.splitlines()[0] + "\n", "progress of Kafka", "99th"),
        *(
            (text, "unrecognised", "CSV")
            for text in (
                "throughput is 900 MB/s vs 950 MB/s\n",
                "It reached 910 MB/s, was 20 MB/s slower than the other one.\n",
                "seq write throughput 512 MB/s vs 498 MB/s without compression\n",
                "I get 312k IOPS randread against 287k IOPS on the other box.\n",
            )
        ),
    ],
)
def test_what_is_refused_says_why_and_the_way_out(tmp_path: Path, text: str, what: str, remedy: str) -> None:
    with pytest.raises(InputError) as error:
        opened(tmp_path / "run.txt", text)
    assert what in error.value.what
    assert remedy in (error.value.remedy or "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Writes fell from 9 GB/s to 8 GB/s, and something from 5 GB/s to 7 ms.",
            "figures of these sentences are not read",
        ),
        ("randread 312k IOPS vs 287k before, context switches 210k vs 190k before.", "2 figures of these sentences"),
        (f"{REDIS}\nkernel,IOPS\n6.1,900\n6.2,950\n", ":10: a CSV table that is not read"),
        (f"{CSV}\nWith deadline it was 700 MB/s.\n", "1 line with figures was not read: "),
    ],
)
def test_what_is_left_out_is_said(tmp_path: Path, text: str, said: str) -> None:
    assert any(said in problem for problem in opened(tmp_path / "run.txt", text).problems)
