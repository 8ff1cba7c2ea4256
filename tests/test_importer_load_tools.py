"""Reports of load generators and of sysstat: made by the tools, or after their sources where there is no package."""

import json
import re
from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.domain.metric import describe
from iolab.files.importer.run_import import open_files, open_run
from test_importer import opened, value

SAMPLES = Path(__file__).parent / "imported"
MIB = 2**20


@pytest.mark.parametrize(
    ("name", "workload", "metric", "expected"),
    [
        ("bonnie-2.00.txt", "bonnie++", "put_char/rate_bytes_per_s", 378 * 1024),
        ("bonnie-2.00.txt", "bonnie++", "random_create/operations_per_s", 316),
        ("dbench-4.00.txt", "dbench 2 clients", "rate_bytes_per_s", 64.0728e6),
        ("dbench-4.00.txt", "dbench 2 clients", "flush/latency_ns_max", 72.404e6),
        ("pg_test_fsync-15.txt", "pg_test_fsync one 8kB write", "fdatasync/iops", 173.904),
        ("pg_test_fsync-15.txt", "pg_test_fsync two 8kB writes", "fdatasync/latency_ns_mean", 5641e3),
        ("pg_test_fsync-15.txt", "pg_test_fsync", "write_fsync_close/iops", 252.936),
        ("stress-ng-0.15.06.txt", "stress-ng hdd", "operations_per_s", 9225.79),
        ("stress-ng-0.15.06.txt", "stress-ng hdd", "write.rate_bytes_per_s", 1272.23 * MIB),
        ("dd.txt", "dd", "rate_bytes_per_s", 8388608 / 0.0599046),
        ("ior.txt", "ior", "write.rate_bytes_per_s", 2189.82 * MIB),
        ("ior.txt", "ior", "read.iops", 5433),
        ("mdtest.txt", "mdtest", "file_creation/operations_per_s_mean", 19000),
        ("mdtest-4.txt", "mdtest", "tree_creation/operations_per_s_mean", 480.25),
        ("mdtest-per-rank.txt", "mdtest", "file_creation/operations_per_s_mean", 6168.3),
        ("mdtest-per-rank.txt", "mdtest", "file_creation/operations_per_s_stddev", 402.1),
        ("ior-3.0.txt", "ior", "read.rate_bytes_per_s", 2500 * MIB),
        ("ior-4.txt", "ior", "write.latency_ns_mean", 1.826e6),
        ("elbencho-2.txt", "elbencho", "write/elapsed_s", 50),
        ("elbencho-2.txt", "elbencho", "write/rate_bytes_per_s", 4100 * MIB),
        ("elbencho-3.txt", "elbencho", "write/elapsed_s", 60.256),
        ("elbencho-3.txt", "elbencho", "write/latency_ns_mean", 98e3),
        ("elbencho-3.txt", "elbencho", "write/latency_ns_max", 1.25e9),
        ("elbencho-3.txt", "elbencho", "write/latency_ns_p99", 6.889e6),
        ("elbencho-3.txt", "elbencho", "read/elapsed_s", 0.588),
        ("elbencho-3.txt", "elbencho", "read/iops", 16978),
        ("iozone-489-ops.txt", "iozone[file_kib=2048,record_kib=4]", "random_read/iops", 1983258),
        ("iozone-489-microseconds.txt", "iozone[file_kib=2048,record_kib=4]", "read/latency_ns_mean", 2000),
        (
            "iozone-489-throughput.txt",
            "iozone[file_kib=4096,record_kib=64,threads=2]",
            "random_write/rate_bytes_per_s",
            236477.63 * 1024,
        ),
        ("diskspd-2.1.txt", "diskspd", "latency_ns_mean", 9.299e6),
        ("diskspd-2.1.txt", "diskspd", "write.latency_ns_p999", 1.396e6),
        ("sadf.json", "sar vda", "iops", (865 + 327.45) / 2),
        ("sadf.json", "sar vda", "read.rate_bytes_per_s", (3214 + 414.71) / 2 * 512),
        ("sadf.json", "sar loop1", "device_busy_percent", (4.8 + 4.31) / 2),
        ("sadf-d.csv", "sar vda", "latency_ns_mean", (865 * 0.38 + 327.45 * 0.17) / (865 + 327.45) * 1e6),
        ("db_bench-7.8.3.txt", "db_bench", "fillseq/latency_ns_p999", 2.9e6),
        ("db_bench-7.8.3.txt", "db_bench", "fillseq/rate_bytes_per_s", 3.7 * MIB),
        ("db_bench-7.8.3.txt", "db_bench", "readrandom/iops", 278373),
        ("db_bench-7.8.3.txt", "db_bench", "readseq/latency_ns_mean", 153),
        ("ioping-1.3.txt", "ioping[4,096 bytes]", "read/iops", 2550),
        ("ioping-1.3.txt", "ioping[4,096 bytes]", "read/latency_ns_max", 17.3e6),
        ("ioping-1.3.txt", "ioping[4,096 bytes]", "written/rate_bytes_per_s", 2.44 * MIB),
        ("ioping-1.3.txt", "ioping[4,096 bytes]", "written/bytes", 196 * 1024),
        ("hammerdb.txt", "hammerdb 2 Active Virtual Users", "new_orders_per_min", 12345),
        ("diskspd.txt", "diskspd", "read.latency_ns_p999", 1.5e6),
        ("diskspd.txt", "diskspd", "write.rate_bytes_per_s", 9.77 * MIB),
        ("diskspd.xml", "diskspd", "read.iops", 7500),
        ("diskspd.xml", "diskspd", "latency_ns_p99", 0.88e6),
        ("iostat-h.txt", "iostat vda", "write.rate_bytes_per_s", 154.5 * 1024),
        ("iostat-h.txt", "iostat vda", "device_busy_percent", 0.8),
        ("sar-d.txt", "sar vda", "iops", 338),
        ("sar-d.txt", "sar vda", "latency_ns_mean", (289 * 0.07 + 387 * 0.08) / (289 + 387) * 1e6),
    ],
)
def test_figures(name: str, workload: str, metric: str, expected: float) -> None:
    assert value(open_run(SAMPLES / name), Path(name).stem, workload, metric) == pytest.approx(expected, rel=1e-6)


def test_sar_with_names_at_the_end_of_the_line_is_read_alike() -> None:
    devices = [set(open_run(SAMPLES / name).workloads) for name in ("sar-d.txt", "sar-p.txt")]
    assert devices == [{"sar vda", "sar loop4"}] * 2


@pytest.mark.parametrize(
    ("metric", "better"),
    [
        ("operations_per_s_mean", "higher"),
        ("operations_per_s", "higher"),
        ("new_orders_per_min", "higher"),
        ("cpu_percent", "lower"),
        ("operations_per_s_stddev", "lower"),
    ],
)
def test_which_way_is_better(metric: str, better: str) -> None:
    assert describe(metric).better == better


def test_what_was_too_short_to_measure_is_absent_and_not_zero() -> None:
    run = open_run(SAMPLES / "bonnie-2.00.txt")
    absent = run.metrics.filter(key="put_block/rate_bytes_per_s")
    assert absent["value"].to_list() == [None]
    assert "too short to measure" in absent["reason"][0]


def test_the_table_of_bonnie_is_read_where_its_line_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "table.txt"
    pair = "{0:>7} {1:>3}"
    rates = " ".join(pair.format(*one) for one in (("475k", 24), ("1.5m", 9), ("+++++", "+++"), (627, 20)))
    path.write_text(
        "Version 2.00a       ------Sequential Output------ --Sequential Input- --Random-\n"
        f"vm              64M {rates}  +++++ +++ 316.5   1\n"
        "Version 2.00a       ------Sequential Create------ --------Random Create--------\n"
        "                  4  4096  23 +++++ +++ +++++ +++  4097  21 +++++ +++ +++++ +++\n"
    )
    run = open_run(path)
    wanted = {
        "put_char/rate_bytes_per_s": 475 * 1024,
        "put_block/rate_bytes_per_s": 1.5 * MIB,
        "get_char/rate_bytes_per_s": 627 * 1024,
        "seek/iops": 316.5,
        "random_create/operations_per_s": 4097,
    }
    assert {key: value(run, "table", "bonnie++", key) for key in wanted} == pytest.approx(wanted)
    assert run.metrics.filter(key="rewrite/rate_bytes_per_s")["value"].to_list() == [None]


@pytest.mark.parametrize("fast", [False, True])
def test_latencies_below_the_table_of_bonnie(tmp_path: Path, fast: bool) -> None:
    """Both tables have six of them; with -f the first has four."""
    path = tmp_path / "table.txt"
    chars = "" if fast else "  475  24"
    gap = " " * 12 if fast else ""
    put, get = ("", "") if fast else ("9938us", "36921us")
    path.write_text(
        "Version 1.97        ------Sequential Output------ --Sequential Input- --Random-\n"
        f"vm              64G {gap}{chars} 176411  19 90203  10 {gap}{chars} 231170  15 309.5   6\n"
        f"Latency             {put}   632ms     743ms  {get}   282ms     166ms\n"
        "Version 1.97        ------Sequential Create------ --------Random Create--------\n"
        "                 16  4096  23 +++++ +++ 5000   9  4097  21 +++++ +++ 6000   9\n"
        "Latency              8567us    2208us    1207us     201us      32us      79us\n"
    )
    run = open_run(path)
    wanted = {
        "put_block/latency_ns_max": 632e6,
        "rewrite/latency_ns_max": 743e6,
        "get_block/latency_ns_max": 282e6,
        "seek/latency_ns_max": 166e6,
        "seq_create/latency_ns_max": 8567e3,
        "random_delete/latency_ns_max": 79e3,
    }
    wanted |= {} if fast else {"put_char/latency_ns_max": 9938e3, "get_char/latency_ns_max": 36921e3}
    assert {key: value(run, "table", "bonnie++", key) for key in wanted} == pytest.approx(wanted)


def test_lines_of_ior_that_somebody_shortened_are_rounds(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "short.txt",
        "write  20052   ...\nread  19910  ...\nwrite  20022  1048576  ...\nread  19880  ...\n"
        "Max Write: 19371.43 MiB/sec (20312.46 MB/sec)\n",
    )
    assert [value(run, "short", "ior", "write.rate_bytes_per_s", round=number) for number in (0, 1)] == [
        20052 * MIB,
        20022 * MIB,
    ]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("  12   948   13.36 MB/sec  execute   8 sec  latency 270.377 ms", "dbench's progress"),
        ("Jobs: 1 (f=1): [r(1)][40.0%][r=239MiB/s][r=61.3k IOPS][eta 00m:09s]", "fio's progress"),
        ("[ 2s ] thds: 16 tps: 601.50 qps: 12030.00 lat (ms,95%): 31.37", "sysbench's progress"),
        ("41 02:42:01.100352 fdatasync(7) = 0 <0.004120>", "system calls (strace)"),
    ],
)
def test_what_goes_before_a_result_is_called_by_its_name(tmp_path: Path, line: str, what: str) -> None:
    (tmp_path / "begun.txt").write_text(f"It stopped here:\n{line}\n{line}\n")
    with pytest.raises(InputError, match=re.escape(what)):
        open_run(tmp_path / "begun.txt")


@pytest.mark.parametrize("timed", [False, True])
def test_the_busiest_report_of_a_night_is_named(tmp_path: Path, timed: bool) -> None:
    """The mean over twelve hours hides the one in which the disk was full."""
    busy = [22.0, 21.0, 23.0, 99.8, 22.5, 8.0]
    if timed:
        rows = [
            f"0{hour}:10:01 AM  sdb  310.0  100.0  4100.0  13.5  0.4  {48.3 if at > 90 else 1.2}  {at}\n"
            for hour, at in enumerate(busy, 1)
        ]
        header = "01:00:01 AM  DEV  tps  rkB/s  wkB/s  areq-sz  aqu-sz  await  %util\n"
    else:
        rows = [
            f"Device  r/s  w/s  rkB/s  wkB/s  r_await  w_await  %util\nsdb  10  300  100  4100  2.5 "
            f"{48.3 if at > 90 else 1.2} {at}\n\n"
            for at in busy
        ]
        header = ""
    (tmp_path / "night.txt").write_text(header + "".join(rows))
    (problem, *_) = [one for one in open_run(tmp_path / "night.txt").problems if "busiest" in one]
    # The first report of iostat, since the boot, is no part of the median.
    if timed:
        wanted = "sdb was busiest at 04:10:01 AM: 99.8 % of the time, 48.30 ms a request; in the median report 22.2 %"
    else:
        took = "99.8 % of the time, 2.500 ms a read, 48.30 ms a write"
        wanted = f"sdb was busiest in report 4: {took}; in the median report 22.5 %"
    assert problem.endswith(wanted)


def test_lines_of_dd_are_rounds(tmp_path: Path) -> None:
    path = tmp_path / "dd.txt"
    path.write_text("".join(f"1048576 bytes (1.0 MB) copied, 0.{n} s, 1 MB/s\n" for n in range(1, 5)))
    assert open_run(path).trials["round"].to_list() == [0, 1, 2, 3]


def test_commands_of_dd_are_workloads(tmp_path: Path) -> None:
    path = tmp_path / "dd.txt"
    done = "1+0 records in\n1+0 records out\n1048576 bytes (1.0 MB) copied, 0.1 s, 10 MB/s\n"
    path.write_text(
        f"root@host:~# dd if=/dev/zero of=a bs=1M count=1\n{done}$ sudo dd if=a of=/dev/null bs=4k\n{done}{done}"
    )
    found = open_run(path).trials.select("workload", "round").rows()
    first, second = "dd if=/dev/zero of=a bs=1M count=1", "dd if=a of=/dev/null bs=4k"
    assert found == [(first, 0), (second, 0), (second, 1)]


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.0015 s, 699 MB/s", 0.0015),
        ("1048576 Bytes (1,0 MB, 1,0 MiB) kopiert, 0,0015 s, 699 MB/s", 0.0015),
        ("1048576字节(1.0 MB)已复制\uff0c0.0015 秒\uff0c699 MB/秒", 0.0015),
        ("1048576字节\uff081.0 MB\uff0c1.0 MiB\uff09已复制\uff0c0.002 s\uff0c524 MB/s", 0.002),
        ("1048576 octets (1,0 MB, 1,0 MiB) copiés, 0,002 s, 699 MB/s", 0.002),
        ("1048576 bytes transferred in 0.002 secs (524288000 bytes/sec)", 0.002),
    ],
)
def test_dd_is_read_in_any_language(tmp_path: Path, line: str, seconds: float) -> None:
    run = opened(tmp_path / "dd.txt", f"1+0 in\n1+0 out\n{line}\n")
    assert value(run, "dd", "dd", "elapsed_s") == seconds
    assert value(run, "dd", "dd", "rate_bytes_per_s") == 1048576 / seconds


def test_hdparm_times_the_cache_and_the_device(tmp_path: Path) -> None:
    path = tmp_path / "hdparm.txt"
    once = (
        "\n/dev/sda:\n Timing cached reads:   21850 MB in  1.99 seconds = 10968.44 MB/sec\n"
        " Timing buffered disk reads: 1662 MB in  3.00 seconds = 553.80 MB/sec\n"
    )
    run = opened(path, "".join(once.replace("553.80", f"553.8{place}") for place in range(3)))
    assert run.trials["round"].to_list() == [0, 1, 2]
    assert value(run, "hdparm", "hdparm /dev/sda", "buffered_disk/rate_bytes_per_s") == 553.80 * MIB
    assert value(run, "hdparm", "hdparm /dev/sda", "cached/bytes") == 21850 * MIB


def test_a_table_of_markdown_in_prose(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "table.md",
        "Results:\n\n| Kernel | test | IOPS | lat_us |\n|---|---|--:|--|\n| 6.1 | read | 1,000 | - |\n"
        "| **6.6** | read | 1,200 | 5 |\n\nAnd that was it.\n",
    )
    assert value(run, "6.6", "read", "iops") == 1200
    assert run.metrics.filter(setting="6.1", key="lat_us")["value"].to_list() == [None]


def test_the_times_of_mdtest_are_no_second_round(tmp_path: Path) -> None:
    path = tmp_path / "mdtest.txt"
    rates = (SAMPLES / "mdtest.txt").read_text()
    assert opened(path, rates + rates.replace("SUMMARY rate: ", "SUMMARY time (in ms/op): ")).trials.height == 1


def test_mdtest_without_a_spread(tmp_path: Path) -> None:
    text = """SUMMARY rate (in ops/sec): (of 1 iterations)
Operation                           Max           Min          Mean
------------------------- ------------- ------------- -------------
Directory creation            30206.205     30206.205     30206.205
File stat                  55749077.532  55749077.532  55749077.532
"""
    run = opened(tmp_path / "md.txt", text)
    assert value(run, "md", "mdtest", "directory_creation/operations_per_s_mean") == 30206.205
    assert value(run, "md", "mdtest", "file_stat/operations_per_s_max") == 55749077.532


def test_what_mdtest_did_not_do_is_no_rate_of_zero() -> None:
    keys = set(open_run(SAMPLES / "mdtest-4.txt").metrics["key"])
    assert {key.split("/")[0] for key in keys} == {"file_creation", "tree_creation"}


def test_phases_of_elbencho_are_apart_in_one_round_and_operations_of_a_mix_too(tmp_path: Path) -> None:
    assert open_run(SAMPLES / "elbencho-3.txt").trials.height == 1
    run = opened(
        tmp_path / "mix.txt",
        "OPERATION   RESULT TYPE         FIRST DONE   LAST DONE\n"
        "RWMIX90     Elapsed time     :    1h2m3s    1h2m4s\n"
        "            IOPS read        :        900         901\n"
        "            IOPS write       :        100         101\n"
        "            MB/s read        :        9           10\n"
        "            IO lat us        : [ min=5 avg=70 max=900 ]\n",
    )
    wanted = {
        "rwmix90/elapsed_s": 3724,
        "rwmix90/read.iops": 901,
        "rwmix90/write.iops": 101,
        "rwmix90/read.rate_bytes_per_s": 10e6,
        "rwmix90/latency_ns_mean": 70e3,
    }
    assert {key: value(run, "mix", "elbencho", key) for key in wanted} == wanted


def test_a_time_below_what_iozone_prints_is_absent() -> None:
    reread = open_run(SAMPLES / "iozone-489-microseconds.txt").metrics.filter(key="reread/latency_ns_mean")
    assert reread["value"].to_list() == [None]


def test_sar_of_old_versions_has_rates(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "sar.txt",
        "12:00:01 AM  DEV   tps rd_sec/s wr_sec/s avgrq-sz avgqu-sz await svctm %util\n"
        "12:10:01 AM dev8-0 12.50 100.00 200.00 24.00 0.05 4.00 1.00 1.25\n",
    )
    assert value(run, "sar", "sar dev8-0", "read.rate_bytes_per_s") == 51200
    assert value(run, "sar", "sar dev8-0", "write.rate_bytes_per_s") == 102400


def test_columns_of_diskspd_are_found_by_their_names(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "diskspd.txt",
        "actual test time:\t30.00s\nTotal IO\n"
        "thread |  bytes  |  I/Os  |  MiB/s  |  I/O per s |  AvgLat  | IopsStdDev | LatStdDev |  file\n"
        "total:   1048576 |    256 |   1.00 |     256.00 |    4.000 |      17.00 |     2.000\n",
    )
    assert value(run, "diskspd", "diskspd", "latency_ns_mean") == 4e6
    assert value(run, "diskspd", "diskspd", "latency_ns_stddev") == 2e6


def test_sysbench_1_1_says_its_times_otherwise(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "sb.txt",
        "\ufeffsysbench 1.1.0 (using bundled LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\n"
        "Number of threads: 16\n\nThreads started!\n\nThroughput:\n    events/s (eps):                      143.0086\n"
        "    time elapsed:                        1800.0319s\n    total number of events:              257521\n",
    )
    assert value(run, "sb", "sysbench test[threads=16]", "elapsed_s") == 1800.0319
    assert value(run, "sb", "sysbench test[threads=16]", "events_per_s") == 143.0086


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("      bogo-ops-per-second-real-time: 9.5", "--metrics"),
        (" Performance counter stats for 'ls':", "a column per event"),
        ("  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]", "iolab trace"),
        ('"bwMaxMIB": 12.5,', "summaryFormat"),
        ('    "ignored": false', "leave out -json"),
    ],
)
def test_what_is_recognised_and_not_read_says_the_way_out(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(InputError, match=f"which is not read; .*({said})"):
        opened(tmp_path / "any.txt", f"some words\n{line}\nmore words\n")


def test_xml_with_entities_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="document type"):
        opened(tmp_path / "evil.xml", "<Results><TimeSpan></TimeSpan><!DOCTYPE a [<!ENTITY b 'c'>]></Results>")


def test_rados_bench(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "rados.txt",
        "Total time run:         10.5\nBandwidth (MB/sec):     24.5\nStddev Bandwidth:       2.5\n"
        "Max bandwidth (MB/sec): 40\nAverage IOPS:           6272\nStddev IOPS:            640\n"
        "Average Latency(s):     0.0025\nMax latency(s):         1.25\n",
    )
    assert value(run, "rados", "rados", "rate_bytes_per_s") == 24.5 * MIB
    assert value(run, "rados", "rados", "rate_bytes_per_s_stddev") == 2.5 * MIB
    assert value(run, "rados", "rados", "iops") == 6272
    assert value(run, "rados", "rados", "iops_stddev") == 640
    assert value(run, "rados", "rados", "latency_ns_max") == 1.25e9


CBT = {
    "Total time run": "10.5",
    "Total writes made": "6272",
    "Write size": "4194304",
    "Bandwidth (MB/sec)": "24.5",
    "Stddev Bandwidth": "1.5",
    "Average IOPS": "6",
    "Average Latency(s)": "0.0025",
    "Max latency(s)": "1.25",
}
RADOS_JSON = {
    "total_time_run": "10.500000",
    "bandwidth": "24.500000",
    "average_iops": "6",
    "average_latency": "0.002500",
    "max_latency:": "1.250000",
}


@pytest.mark.parametrize("content", [CBT, RADOS_JSON])
@pytest.mark.parametrize("indent", [None, 4])
def test_rados_bench_as_json_and_as_cbt_keeps_it(content: dict[str, str], indent: int | None, tmp_path: Path) -> None:
    run = opened(tmp_path / "json_output.0.node-a", 2 * f"{json.dumps(content, indent=indent)}\n")
    (setting,) = run.settings
    metrics = {"elapsed_s": 10.5, "rate_bytes_per_s": 24.5 * MIB, "iops": 6}
    metrics |= {"latency_ns_mean": 2.5e6, "latency_ns_max": 1.25e9}
    assert {name: value(run, setting, "rados", name) for name in metrics} == metrics
    assert run.trials.height == 2


def test_processes_of_cbt_are_no_rounds_in_silence(tmp_path: Path) -> None:
    for process in range(2):
        (tmp_path / f"json_output.{process}.node1").write_text(
            '{"Total time run": "300.1", "Bandwidth (MB/sec)": "24.5"}'
        )
    run = open_run(tmp_path / "json_output.1.node1")
    assert any("run at the same time" in problem for problem in run.problems)
    (tmp_path / "alone.json").write_text('{"Total time run": "300.1", "Bandwidth (MB/sec)": "24.5"}')
    assert open_run(tmp_path / "alone.json").problems == []


def test_rados_bench_as_json_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=":1: JSON that is cut off"):
        opened(tmp_path / "json_output.0.node-a", json.dumps(CBT)[:-20])


def test_a_diskspd_that_wrote_nothing_has_no_rate_of_writes(tmp_path: Path) -> None:
    columns = "thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s | IopsStdDev |  file\n"
    text = "actual test time:\t30.00s\n"
    for what, cells in (("Total", "10680209408 | 2607473 | 339.51 | 86915.29"), ("Write", "0 | 0 | 0.00 | 0.00")):
        text += f"{what} IO\n{columns}----\n     0 | {cells} | 0.00 | X:\\t.dat\n----\ntotal: {cells} | 0.00\n"
    run = opened(tmp_path / "diskspd.txt", text)
    assert value(run, "diskspd", "diskspd", "iops") == 86915.29
    assert not [key for key in run.keys if "write" in key]


def test_iopings_of_other_request_sizes_are_no_rounds(tmp_path: Path) -> None:
    text = "--- /dev/sda (block device 931.5 GiB) ioping statistics ---\n"
    small = "192 requests completed in 3.00 s, 768 KiB read, 64 iops, 256.2 KiB/s\n"
    large = "837 requests completed in 3.00 s, 209.2 MiB read, 279 iops, 69.7 MiB/s\n"
    path = tmp_path / "ioping.txt"
    assert opened(path, text + small + text + small).workloads == ["ioping"]
    run = opened(path, text + small + text + large)
    assert run.workloads == ["ioping[4,096 bytes]", "ioping[262,144 bytes]"]
    assert value(run, "ioping", "ioping[262,144 bytes]", "read/iops") == 279
    shortened, problem = run.problems
    assert "2 reports, of which this is the first, are cut off, or shortened: without min/avg/max/mdev" in shortened
    assert "ioping of 4,096 bytes, 262,144 bytes: not the same measurement, so each is a workload" in problem
    other = tmp_path / "other.txt"
    path.write_text(text + small)
    other.write_text(text + large)
    *_, problem = open_files([path, other]).problems
    assert problem.endswith("ioping of 4,096 bytes, 262,144 bytes: not the same measurement")


def test_commands_of_dd_that_differ_by_one_path_are_settings(tmp_path: Path) -> None:
    """Two disks, or two mounts; a write and the read of the same file differ in two words, and are workloads."""
    path = tmp_path / "dd.txt"
    done = "1+0 records in\n1+0 records out\n1048576 bytes (1.0 MB) copied, 0.{} s, 10 MB/s\n"
    commands = [f"$ dd if=/dev/zero of=/mnt/{disk}/f bs=1M\n" for disk in ("old", "new")] * 3
    path.write_text("".join(command + done.format(number) for number, command in enumerate(commands, 1)))
    found = set(open_run(path).trials.select("workload", "setting", "round").rows())
    assert found == {("dd if=/dev/zero bs=1M", f"/mnt/{disk}/f", n) for disk in ("old", "new") for n in range(3)}
    path.write_text(
        f"$ dd if=/dev/zero of=/mnt/f bs=1M\n{done.format(1)}$ dd if=/mnt/f of=/dev/null bs=1M\n{done.format(2)}"
    )
    assert open_run(path).workloads == ["dd if=/dev/zero of=/mnt/f bs=1M", "dd if=/mnt/f of=/dev/null bs=1M"]
