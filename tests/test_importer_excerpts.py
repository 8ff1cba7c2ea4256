"""What people post is often a part of an output, or stands among prose, fences and changes: each part is read right, or
refused in one line that says what it is."""

from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.files.importer.run_import import open_run
from test_importer import opened, value

MIB = 2**20
SYSBENCH = """sysbench 1.0.20 (using system LuaJIT 2.1.0)

Running the test with following options:
Number of threads: 1
Doing random write test

Threads started!

[ 1s ] reads: 0.00 MiB/s writes: 1.00 MiB/s fsyncs: 800.00/s latency (ms,95%): 0.099
[ 2s ] reads: 0.00 MiB/s writes: 3.00 MiB/s fsyncs: 900.00/s latency (ms,95%): 0.122
"""
RANKS = """SUMMARY rate: (of 3 iterations)
   Operation       per Rank:  Max      Min      Mean     Std Dev     per Iteration: Max     Min    Mean
   ---------                  ---      ---      ----     -------                    ---     ---    ----
   File creation     :    900.000  100.000   500.000     200.000                800.000 700.000 750.000
"""
FIO = """test: (g=0): rw=randwrite, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=1
fio-3.28
test: (groupid=0, jobs=1): err= 0: pid=1: Mon Jan  1 00:00:00 2024
  write: IOPS=1000, BW=4000KiB/s (4096kB/s)(39.1MiB/10000msec)
    clat (usec): min=1, max=900, avg=300.00, stdev=1.00
     lat (usec): min=2, max=901, avg=301.00, stdev=1.00
    clat percentiles (usec):
     | 50.00th=[  310], 90.00th=[  400], 99.00th=[  494]
    lat percentiles (usec):
     | 50.00th=[  311], 90.00th=[ 4
"""


def _read(tmp_path: Path, text: str, name: str = "x.txt") -> dict[tuple[str, str, str], float]:
    metrics = opened(tmp_path / name, text).metrics
    columns = (metrics[name].to_list() for name in ("setting", "workload", "key", "value"))
    return {(setting, workload, key): value for setting, workload, key, value in zip(*columns, strict=True)}


def test_intervals_of_sysbench_have_their_syncs(tmp_path: Path) -> None:
    found = _read(tmp_path, SYSBENCH)
    assert found["x", "sysbench fileio rndwr[threads=1]", "fsyncs_per_s"] == 850
    assert found["x", "sysbench fileio rndwr[threads=1]", "write.rate_bytes_per_s"] == 2 * MIB


def test_the_files_that_sysbench_prepares_are_a_workload(tmp_path: Path) -> None:
    text = f"$ sysbench fileio prepare\n8388608 bytes written in 4.00 seconds (2.00 MiB/sec).\n{SYSBENCH}"
    assert _read(tmp_path, text)["x", "sysbench fileio prepare", "write.rate_bytes_per_s"] == 2 * MIB


def test_the_figures_of_mdtests_ranks_are_not_those_of_its_iterations(tmp_path: Path) -> None:
    found = _read(tmp_path, RANKS)
    rates = {key.rpartition("_")[2]: rate for (_, _, key), rate in found.items()}
    assert rates == {"max": 800, "min": 700, "mean": 750}


def test_rows_of_ior_without_their_header(tmp_path: Path) -> None:
    text = (
        "read      22660      2097152    4.00       0.011624   4.34       2.70       4.34       0\n"
        "remove    -          -          -          -          -          -          0.360676   0\n"
        "write     25110      2097152    4.00       0.012490   3.91       0.516111   3.91       1\n"
    )
    found = _read(tmp_path, text)
    assert found["x", "ior", "read.rate_bytes_per_s"] == 22660 * MIB
    assert found["x", "ior", "write.rate_bytes_per_s"] == 25110 * MIB


def test_spread_and_maximum_of_db_bench(tmp_path: Path) -> None:
    text = (
        "fillrandom   :       3.175 micros/op 314982 ops/sec;  245.1 MB/s\nMicroseconds per op:\n"
        "Count: 100000  Average: 3.1737  StdDev: 30.10\nMin: 0.0000  Median: 1.9888  Max: 7520.0000\n"
    )
    found = _read(tmp_path, text)
    assert found["x", "db_bench", "fillrandom/latency_ns_max"] == 7_520_000
    assert found["x", "db_bench", "fillrandom/latency_ns_stddev"] == 30_100


def test_outputs_below_versions_are_of_settings(tmp_path: Path) -> None:
    line = "readrandom   :      {} micros/op 81829 ops/sec;   22.3 MB/s (1000 of 1000 found)\n"
    found = _read(tmp_path, f"6.14 output\n```\n{line.format(12.5)}```\n\n6.27\n```\n{line.format(14.5)}```\n")
    assert found["6.14 output", "db_bench", "readrandom/latency_ns_mean"] == 12_500
    assert found["6.27", "db_bench", "readrandom/latency_ns_mean"] == 14_500


def test_ioping_of_older_versions_by_command(tmp_path: Path) -> None:
    text = (
        "sudo ./ioping -c 10 /\n....\n10 requests completed in 9.0 s, 233 iops, 233.1 MiB/s\n\n"
        "sudo ./ioping -c 10 ~/tmpfs/\n....\n10 requests completed in 9.0 s, 3.2 k iops, 3.1 GiB/s\n"
    )
    found = {setting[-7:]: rate for (setting, _, key), rate in _read(tmp_path, text).items() if key == "iops"}
    assert found == {"-c 10 /": 233, "/tmpfs/": 3200}


def test_what_rados_bench_says_before_its_text_is_cut_off(tmp_path: Path) -> None:
    text = "Total time run:         10.5\nTotal writes made:      63131\nWrite size:             4096\nBandwidth ("
    assert _read(tmp_path, text) == {
        ("x", "rados write", "elapsed_s"): 10.5,
        ("x", "rados write", "ops"): 63131,
    }


def test_diskspd_of_older_versions_calls_a_mebibyte_mb(tmp_path: Path) -> None:
    text = (
        "Total IO\nthread |       bytes     |     I/Os     |     MB/s   |  I/O per s |  AvgLat  | LatStdDev |  file\n"
        "     0 |    121647398912 |       464048 |     193.35 |     773.40 |   82.740 |    41.172 | #2 (894GB)\n"
        "total:      121647398912 |       464048 |     193.35 |     773.40 |   82.740 |    41.172\n"
    )
    assert _read(tmp_path, text)["x", "diskspd", "rate_bytes_per_s"] == pytest.approx(193.35 * MIB)


def test_diskspd_of_which_only_the_percentiles_are_left(tmp_path: Path) -> None:
    text = (
        "  %-ile |  Read (ms) | Write (ms) | Total (ms)\n----------------------------------------------\n"
        "    min |      0.051 |        N/A |      0.051\n   25th |      0.262 |        N/A |      0.262\n"
        "   50th |      0.311 |        N/A |      0.311\n   99th |      1.544 |        N/A |      1.544\n"
        "3-nines |      4.410 |        N/A |      4.410\n    max |     25.011 |        N/A |     25.011\n"
    )
    found = _read(tmp_path, text)
    assert found["x", "diskspd", "latency_ns_p50"] == pytest.approx(311_000)
    assert found["x", "diskspd", "read.latency_ns_p999"] == pytest.approx(4_410_000)
    assert not any("write" in key for *_, key in found)
    run = opened(tmp_path / "x.txt", "".join(text.replace("0.311", figure) for figure in ("0.311", "0.355")))
    assert value(run, "x", "diskspd", "latency_ns_p50", round=1) == pytest.approx(355_000)


def test_diskspd_without_its_totals(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text(
        "Total IO\nthread |       bytes     |     I/Os     |     MB/s   |  I/O per s |  file\n"
        "     0 |       631439360 |         9635 |       5.02 |      80.29 | c:\\temp\\testfile.dat (50GB)\n"
    )
    with pytest.raises(InputError, match=r"x\.txt:3: the text ends before the line of totals"):
        open_run(path)


def test_percentiles_of_a_list_that_is_cut_off(tmp_path: Path) -> None:
    found = _read(tmp_path, FIO)
    assert found["x", "test", "latency_ns_p50"] == 310_000
    assert found["x", "test", "latency_ns_p99"] == 494_000


def test_a_summary_whose_jobs_are_not_in_the_text_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    summary = "  WRITE: bw=251MiB/s (263MB/s), 251MiB/s-251MiB/s (263MB/s-263MB/s), io=15.8GiB (16.9GB), run=1-1msec\n"
    path.write_text(f"Run status group 0 (all jobs):\n{summary}\n=== more ===\n{FIO}")
    assert any("x.txt:1: this summary is not read" in problem for problem in open_run(path).problems)


def test_reports_of_iostat_below_long_titles_are_settings(tmp_path: Path) -> None:
    report = "Device            r/s     w/s     rkB/s     wkB/s  %util\nsda   {}  0.00   0.00   0.00   1.00\n"
    title = "On the same machine with the newest kernel I am instead seeing spikes like this in util:"
    found = _read(tmp_path, f"On the old kernel I see:\n\n{report.format(7)}\n{title}\n\n{report.format(9)}")
    rates = {setting: rate for (setting, _, key), rate in found.items() if key == "read.iops"}
    assert rates == {"On the old kernel I see": 7, title[:-1]: 9}


def test_a_text_that_begins_within_a_report_of_iostat_has_no_first_one(tmp_path: Path) -> None:
    row = "sda   {}  0.00   0.00   0.00   1.00\n"
    report = f"\nDevice            r/s     w/s     rkB/s     wkB/s  %util\n{row}"
    found = _read(tmp_path, f"{row.format(5)}{report.format(7)}{report.format(9)}")
    assert found["x", "iostat sda", "read.iops"] == 8


def test_devices_of_dstat_that_stand_together(tmp_path: Path) -> None:
    text = (
        "----system---- --dsk/sda-----dsk/sdb-- sda--sdb-\n"
        "     time     | read  writ: read  writ|svct:svct\n"
        "14-10 18:44:24|  38k 3442k:  13B    0 |0.15:0.16\n"
        "14-10 18:44:25|   2k   16k:   1k    0 |0.15:0.16\n"
    )
    found = _read(tmp_path, text)
    assert found["x", "dstat sda", "write.rate_bytes_per_s"] == 16 * 1024
    assert found["x", "dstat sdb", "read.rate_bytes_per_s"] == 1024


def test_rates_of_older_fio_after_a_name(tmp_path: Path) -> None:
    found = _read(
        tmp_path,
        "reads.16-threads:  read : io=100MB, bw=10240KB/s, iops=2500, runt= 10000msec\n"
        "reads.1-threads:  read : io=10MB, bw=1024KB/s, iops=250, runt= 10000msec\n",
    )
    rates = {name: count for (_, name, key), count in found.items() if key == "iops"}
    assert rates == {"reads.16-threads": 2500, "reads.1-threads": 250}


def test_two_figures_and_a_name_in_a_cell(tmp_path: Path) -> None:
    found = _read(
        tmp_path, "| disk | randread |\n|---|---|\n| a | 378K IOPS, p50 184 us |\n| b | 400K IOPS, p50 1 ms |\n"
    )
    assert found["a", "table", "read.iops"] == 378_000
    assert found["a", "table", "read.latency_ns_p50"] == 184_000
    assert found["b", "table", "read.latency_ns_p50"] == 1_000_000


def test_what_a_sentence_says_was_changed(tmp_path: Path) -> None:
    found = _read(
        tmp_path, "And finally, we can improve the sequential write performance,\nfrom 450.5 MB/s to 479.5 MB/s.\n"
    )
    assert found == {
        ("before", "sequential write", "write.rate_bytes_per_s"): 450.5e6,
        ("after", "sequential write", "write.rate_bytes_per_s"): 479.5e6,
    }


def test_times_of_busybox_below_commands_that_a_shell_traced(tmp_path: Path) -> None:
    times = "real\t{}\nuser\t0m 0.00s\nsys\t0m 0.10s\n"
    text = f"+ cd /mnt\n+ time find a b\n{times.format('0m 0.78s')}+ time cp -r a b\n{times.format('1m 8.50s')}"
    found = {name: time for (_, name, key), time in _read(tmp_path, text).items() if key == "elapsed_s"}
    assert found == {"find a b": 0.78, "cp -r a b": 68.5}


def test_reads_and_writes_in_a_cell(tmp_path: Path) -> None:
    found = _read(
        tmp_path,
        "| SPDK | Sequential | Random |\n|---|---|---|\n| IOPS (Read/Write) | 240,125 / 235,990 | 239,201 / 236,695 |\n"
        "| Bandwidth in KiB/sec (Read/Write) | 2,022 / 1,478 | 1,990 / 1,420 |\n"
        "| Latency in ns (Read/Write) | 165,033 / 161,666 | 164,378 / 162,669 |\n",
    )
    assert found["SPDK", "Sequential read", "read.iops"] == 240_125
    assert found["SPDK", "Random write", "write.rate_bytes_per_s"] == 1_420 * 1024
    assert found["SPDK", "Random write", "write.latency_ns_mean"] == 162_669
    found = _read(tmp_path, "| fs | IOPS (r/w) |\n|---|---|\n| ext4 | 10k/20k |\n| xfs | 30k/40k |\n")
    assert (found["ext4", "table", "read.iops"], found["xfs", "table", "write.iops"]) == (10_000, 40_000)


def test_two_figures_in_each_cell_of_two_settings(tmp_path: Path) -> None:
    found = _read(
        tmp_path,
        "| Workload | Baseline | zero-copy |\n|---|---|---|\n"
        "| 4K randread | 378K IOPS, p50 184 us | 353K IOPS, p50 201 us |\n"
        "| 128K read | 10140 MiB/s, p50 1489 us | 7215 MiB/s, p50 1911 us |\n",
    )
    assert found["Baseline", "4K randread", "read.iops"] == 378_000
    assert found["zero-copy", "128K read", "read.latency_ns_p50"] == 1_911_000
    assert len(found) == 8


def test_units_written_out(tmp_path: Path) -> None:
    found = _read(tmp_path, "- random-read-latency: 750 microseconds\n- random-write-latency: 2 milliseconds\n")
    assert {key: time for (_, _, key), time in found.items()} == {
        "read.latency_ns_mean": 750_000,
        "write.latency_ns_mean": 2_000_000,
    }


def test_times_of_posix_in_a_line_are_rounds(tmp_path: Path) -> None:
    run = opened(tmp_path / "x.txt", "real 5.05 user 0.03 sys 0.01\nreal 4.88 user 0.03 sys 0.00\n")
    assert [value(run, "x", "command", "elapsed_s", round) for round in range(2)] == [5.05, 4.88]


def test_a_line_of_code_is_read(tmp_path: Path) -> None:
    text = "dd if=/dev/zero of=here bs=1G count=1\n`1073741824 bytes (1.1 GB, 1.0 GiB) copied, 4.0 s, 255 MB/s`\n"
    found = {key: rate for (_, _, key), rate in _read(tmp_path, text).items()}
    assert found["rate_bytes_per_s"] == 2**28


def test_headings_of_markdown_are_no_commands_of_root(tmp_path: Path) -> None:
    line = "READ: bw={0}MiB/s, {0}MiB/s-{0}MiB/s, io={1}MiB (8MB), run=1000-1000msec\n"
    text = f"# CH 4G\n$ ./ch --cpus 4\n\n{line.format(131, 131)}\n# QEMU 4G\n$ qemu\n\n{line.format(67, 67)}"
    found = _read(tmp_path, text).items()
    rates = {setting: rate for (setting, _, key), rate in found if key == "read.rate_bytes_per_s"}
    assert rates == {"CH 4G": 131 * MIB, "QEMU 4G": 67 * MIB}


def test_a_table_without_a_figure_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("| Engine | Pure | Perf |\n|---|---|---|\n| sled | Yes | N/A |\n| redb | No | N/A |\n")
    with pytest.raises(InputError, match="no figures"):
        open_run(path)


def test_times_that_a_run_took_in_a_list(tmp_path: Path) -> None:
    found = _read(tmp_path, "write_test[old].run_duration: 10.5 s\nwrite_test[new].run_duration: 7500 ms\n")
    assert {(setting, name): time for (setting, name, key), time in found.items() if key == "elapsed_s"} == {
        ("old", "write_test"): 10.5,
        ("new", "write_test"): 7.5,
    }


def test_what_crystaldiskmark_did_not_measure_is_no_rate_of_zero(tmp_path: Path) -> None:
    text = (
        "[Read]\n  Sequential 1 MiB (Q= 8, T= 1):     0.000 MB/s [      0.0 IOPS] <     0.00 us>\n"
        "      Random 4 KiB (Q= 1, T= 1):     7.774 MB/s [   1943.6 IOPS] <   511.38 us>\n"
    )
    found = _read(tmp_path, text)
    assert found["x", "sequential 1 MiB Q=8 T=1", "read.iops"] is None
    assert found["x", "random 4 KiB Q=1 T=1", "read.iops"] == 1943.6


def test_latencies_of_bonnie(tmp_path: Path) -> None:
    text = (
        "1.98,2.00a,vm,1,1795719867,64M,,8192,5,378,19,+++++,+++,+++++,+++,655,21,+++++,+++,+++++,+++,4,,,,,856,18,"
        "+++++,+++,+++++,+++,316,18,+++++,+++,+++++,+++,44339us,22ms,20149us,52628us,16053us,2s,33222us,32106us,"
        "24056us,52598us,10758us,20174us\n"
    )
    found = {key: time for (_, _, key), time in _read(tmp_path, text).items() if key.endswith("latency_ns_max")}
    assert (found["put_char/latency_ns_max"], found["put_block/latency_ns_max"]) == (44_339_000, 22_000_000)
    assert (found["seek/latency_ns_max"], found["random_delete/latency_ns_max"]) == (2e9, pytest.approx(20_174_000))
    assert len(found) == 12


def test_lines_with_figures_that_were_not_read_are_stated(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("As we see it is 4.5 MB/s\n\n$ dd if=/dev/zero of=a\n1000 bytes (1 kB) copied, 2.0 s, 500 B/s\n")
    assert (
        "x.txt: 1 line with figures was not read: 1 (first: 'As we see it is 4.5 MB/s')" in open_run(path).problems[0]
    )


@pytest.mark.parametrize(
    ("header", "key", "expected"),
    [
        ("Bandwidth in MiB/sec", "rate_bytes_per_s", 5 * MIB),
        ("Bandwidth MB/s", "rate_bytes_per_s", 5e6),
        ("read bw MiB/s", "read.rate_bytes_per_s", 5 * MIB),
        ("Avg latency in ms", "latency_ns_mean", 5e6),
        ("p99 us", "latency_ns_p99", 5e3),
        ("Read IOPS", "read.iops", 5),
        ("IOPS(avg)", "iops", 5),
        ("IOPS (write)", "write.iops", 5),
    ],
)
def test_units_in_names_of_columns(tmp_path: Path, header: str, key: str, expected: float) -> None:
    found = _read(tmp_path, f"| fs | {header} |\n|---|---|\n| ext4 | 5 |\n| xfs | 6 |\n")
    assert found["ext4", "table", key] == expected


def test_columns_of_one_meaning_keep_their_names(tmp_path: Path) -> None:
    found = _read(tmp_path, "setting,iops,IOPS\na,1,2\nb,3,4\n", "x.csv")
    assert {key for _, _, key in found} == {"iops", "IOPS"}


def test_numbered_columns_of_a_metric_without_a_name_are_rounds(tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    path.write_text("| type | run1 | run2 |\n|---|---|---|\n| large | 2287.9 | 2383.8 |\n| small | 12.4 | 13.2 |\n")
    run = open_run(path)
    assert value(run, "large", "table", "value", 1) == 2383.8
    assert value(run, "small", "table", "value") == 12.4


def test_of_a_change_what_is_there_after_it(tmp_path: Path) -> None:
    text = (
        "README\n```diff\n@@ -1,4 +1,4 @@\n | fs | IOPS |\n |---|---|\n-| ext4 | 5 |\n+| ext4 | 7 |\n"
        "+| xfs | 8 |\n```\n"
    )
    found = _read(tmp_path, text)
    assert {setting: count for (setting, _, _), count in found.items()} == {"ext4": 7, "xfs": 8}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('    "clat" : {\n      "min" : 0\n    }\n', "a part of fio's JSON"),
        ("     lat (nsec): min=15702M, max=15702M, avg=15701834395.00, stdev= 0.00\n", "a part of fio's output"),
        ("zfs:  bw=1210MiB/s and lat (usec): min=9, max=2205\n", "a part of fio's output"),
        ("fio --name=a --rw=randread --bs=4k \\\n    --size=1G\n", "a command of fio, without its results"),
        ("[global]\nioengine=libaio\ndirect=1\n[a]\nrw=randread\n", "fio's job file"),
        ("4 KiB <<< . (ext4 /dev/sda1): request=2 time=3.33 ms\n", "ioping's lines of requests"),
        ("  sec Cur ops   started  finished  avg MB/s  cur MB/s\n    1      16        16         0\n", "rados bench's"),
        ("2022/02/09-14:54:35  ... thread 1: (5000,9000) ops and (79.1,71.6) ops/second\n", "db_bench's progress"),
        ("Actual DISK READ:       0.00 B/s | Actual DISK WRITE:      11.86 M/s\n", "iotop's report"),
        ("test rdb::create ... bench:       8,779 ns/iter (+/- 1,905)\n", "cargo bench's report"),
        ("host_bytes_written              :   0%       sectors: 0\n", "nvme's log"),
        (" Logical core: 0\n NVMe0n1    :  103938.83 IO/s     406.01 MB/s\n", "bdevperf's report of old"),
        ('# TYPE wal_fsync_seconds histogram\nwal_fsync_seconds_bucket{le="0.001"} 0\n', "Prometheus"),
        ("- Write speed: 77 Mb/s\n- Read speed: 97 Mb/s\n", "rates in Mb/s"),
        ("| latency | 24.6 ms | 22.0 ms |\n| tps | 0.040 | 0.045 |\n", "rows of a table without its header"),
    ],
)
def test_a_part_is_refused_by_name(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        opened(tmp_path / "x.txt", text)
    assert caught.value.remedy


def test_the_first_report_of_iostat_below_a_command_with_y_counts(tmp_path: Path) -> None:
    reports = "".join(
        f"\nDevice            r/s     w/s     rkB/s     wkB/s  %util\nsda   {rate}  0.00   0.00   0.00   {rate}\n"
        for rate in ("0.00", "4.00", "8.00")
    )
    run = opened(tmp_path / "x.txt", reports)
    assert value(run, "x", "iostat sda", "read.iops") == 6
    assert "without a request" in run.problems[0] and "it counts below '$ iostat -y'" in run.problems[0]
    for command in ("$ iostat -y", "root@host:~# iostat -x -y 1 3", "$ iostat -xy 1 3"):
        run = opened(
            tmp_path / "x.txt", f"{command}\nLinux 6.1.0 (host) 	01/01/2024 	_x86_64_	(8 CPU)\n{reports}"
        )
        assert value(run, "x", "iostat sda", "read.iops") == 4 and not run.problems
