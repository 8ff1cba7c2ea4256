"""What posts do to outputs: wrapped lines, commands above results, figures in lists; and tools that old mails show.
Texts are written in each tool's format, with figures of their own."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.files.importer.run_import import open_files, open_run
from iolab.files.importer.wrapped import WIDTH_MIN, joined, wrappings_of
from iolab.files.store import RunData
from iolab.presentation.table import render
from test_importer import opened, value
from test_importer_everyday import KIB, MIB, MS, US

IOSTAT = """\
Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm \
w_await wareq-sz     f/s f_await  aqu-sz  %util
nvme0n1        100.00    800.00     0.00   0.00    0.50     8.00   50.00    400.00     2.00   3.85  \
  0.80     8.00    1.00    2.50    0.09  12.50
sda             10.00     80.00     0.00   0.00    5.50     8.00    5.00     40.00     0.00   0.00  \
  9.80     8.00    0.00    0.00    0.10   7.50
"""
FIO = """\
randread: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=32
fio-3.28
Starting 1 process

randread: (groupid=0, jobs=1): err= 0: pid=9981: Tue Mar  5 10:11:12 2024
  read: IOPS=100k, BW=391MiB/s (410MB/s)(11.5GiB/30001msec)
    slat (nsec): min=1010, max=80200, avg=1900.50, stdev=700.10
    clat (usec): min=60, max=9100, avg=317.20, stdev=41.90
     lat (usec): min=62, max=9102, avg=319.20, stdev=42.10
    clat percentiles (usec):
     |  1.00th=[  251],  5.00th=[  269], 10.00th=[  281], 20.00th=[  289],
     | 99.00th=[  429], 99.50th=[  482], 99.90th=[  611], 99.95th=[  701],
     | 99.99th=[ 1106]
   bw (  KiB/s): min=380000, max=410000, per=100.00%, avg=400384.00, stdev=5000.00, samples=59
   iops        : min=95000, max=102500, avg=100096.00, stdev=1250.00, samples=59
  cpu          : usr=9.50%, sys=30.25%, ctx=1500000, majf=0, minf=42
  IO depths    : 1=0.1%, 2=0.1%, 4=0.1%, 8=0.1%, 16=0.1%, 32=100.0%, >=64=0.0%
     issued rwts: total=3002880,0,0,0 short=0,0,0,0 dropped=0,0,0,0

Run status group 0 (all jobs):
   READ: bw=391MiB/s (410MB/s), 391MiB/s-391MiB/s (410MB/s-410MB/s), io=11.5GiB (12.3GB), run=30001-30001msec
"""
DBENCH = """\
 Operation      Count    AvgLat    MaxLat
 ----------------------------------------
 NTCreateX     100000     0.050    20.000
 Flush           7000     {flush}    80.000

Throughput {rate} MB/sec  8 clients  8 procs  max_latency=80.000 ms
"""
TIOTEST = """\
Tiotest results for 4 concurrent io threads:
,----------------------------------------------------------------------.
| Item                  | Time     | Rate         | Usr CPU  | Sys CPU |
+-----------------------+----------+--------------+----------+---------+
| Write          64 MBs |    2.0 s |  32.000 MB/s |   1.5 %  |  20.0 % |
| Random Write   16 MBs |    8.0 s |   2.000 MB/s |   0.1 %  |   2.5 % |
| Read           64 MBs |    0.0 s |     inf MB/s |   0.0 %  |   0.0 % |
| Random Read    16 MBs |    4.0 s |   4.000 MB/s |   0.2 %  |   1.0 % |
`----------------------------------------------------------------------'
Tiotest latency results:
,-------------------------------------------------------------------------.
| Item         | Average latency | Maximum latency | % >2 sec | % >10 sec |
+--------------+-----------------+-----------------+----------+-----------+
| Write        |        0.450 ms |      900.000 ms |  0.00000 |   0.00000 |
| Random Write |        7.500 ms |      150.000 ms |  0.00000 |   0.00000 |
| Read         |        0.020 ms |        3.000 ms |  0.00000 |   0.00000 |
| Random Read  |        3.900 ms |       45.000 ms |  0.00000 |   0.00000 |
|--------------+-----------------+-----------------+----------+-----------|
| Total        |        1.250 ms |      900.000 ms |  0.00000 |   0.00000 |
`--------------+-----------------+-----------------+----------+-----------'
"""
FFSB = """\
FFSB version 6.0-RC2 started
Results:
Benchmark took 20.00 sec

Total Results
===============
             Op Name   Transactions\t Trans/sec\t% Trans\t    % Op Weight\t   Throughput
             =======   ============\t =========\t=======\t    ===========\t   ==========
             readall :         2000\t    100.00\t66.667%\t\t50.000%\t    400KB/sec
              create :          800\t     40.00\t26.667%\t\t25.000%\t    2.5MB/sec
              delete :          200\t     10.00\t 6.667%\t\t25.000%\t           NA
-
150.00 Transactions per Second

Throughput Results
===================
Read Throughput: 400KB/sec
Write Throughput: 2.5MB/sec

System Call Latency statistics in millisecs
=====
\t\tMin\t\tAvg\t\tMax\t\tTotal Calls
\t\t========\t========\t========\t============
[   open]\t0.013000\t0.250000\t124.500000\t         793
   -
[  write]\t0.004000\t0.075000\t420.500000\t       65956
   -

0.5% User   Time
10.5% System Time
11.0% CPU Utilization
"""
FLAT = """\
* 'flatfile.html' holds figures column by column.

tod                  timestamp     Run  Interval    reqrate       rate     MB/sec   bytes/io      \
read%       resp  read_resp write_resp   resp_max    threads   xfersize
12:00:01.050  06/05/2018-12:00:01-CET  run1         1  999999.00    4000.00      31.25    8192.00   \
  100.00     2.0000     2.0000     0.0000    10.0000          4       8192
12:00:03.060  06/05/2018-12:00:03-CET  run1   avg_2-3  999999.00    5100.00      39.84    8192.00   \
  100.00     1.5500     1.5500     0.0000    12.0000          4       8192
12:00:07.060  06/05/2018-12:00:07-CET  run1   avg_2-3  999999.00    9000.00      70.31    8192.00   \
  100.00     1.7500     1.7500     0.0000    15.0000         16       8192
"""
VMSTAT_D = """\
disk- ------------reads------------ ------------writes----------- -----IO------
       total merged sectors      ms  total merged sectors      ms    cur    sec
loop0      0      0       0       0      0      0       0       0      0      0
sda    50000   1000 2000000   30000  60000   2000 3000000   90000      0     60
"""
IOSNOOP = """\
Tracing block I/O. Ctrl-C to end.
COMM             PID    TYPE DEV      BLOCK        BYTES     LATms
supervise        9229   W    202,1    16839176     4096       0.50
fio server       9229   W    202,1    16839184     8192       1.50
jbd2/xvda1-8     301    WS   202,1    1620         4096       4.00
dd               17117  R    202,16   8            4096       0.25
"""
LIST = """\
Results on the new drive (kernel 6.8):

- Random Read IOPS: 235k
- Random Write IOPS: 189k
- **Sequential Read**: 766 MiB/s
* Sequential Write = 419 MiB/s.
- Random Read latency p99: 1.25 ms
- Drive: 2 TB
- Temperature: 45 C
"""


def wrapped(text: str, width: int, *, drops_all: bool = True) -> str:
    """As a mail's program wraps: at the last space that lets the line fit, which it drops, or all around it."""
    lines = []
    for line in text.splitlines():
        rest = line
        while len(rest) > width and (at := rest.rfind(" ", 1, width + 1)) > 0 and rest[:at].strip():
            lines.append(rest[:at].rstrip())
            rest = rest[at:].lstrip() if drops_all else rest[at + 1 :]
        lines.append(rest)
    return "\n".join(lines) + "\n"


def written(folder: Path, text: str, name: str = "run.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("width", [65, 72, 76, 80])
@pytest.mark.parametrize(
    ("text", "workload", "metrics"),
    [
        (IOSTAT, "iostat nvme0n1", {"write.latency_ns_mean": 0.8 * MS, "device_busy_percent": 12.5}),
        (IOSTAT, "iostat sda", {"write.latency_ns_mean": 9.8 * MS, "device_busy_percent": 7.5}),
        (
            FIO,
            "randread",
            {
                "read.iops": 3_002_880 / 30.001,
                "read.latency_ns_mean": 319.2 * US,
                "read.latency_ns_max": 9102 * US,
                "read.latency_ns_p99": 429 * US,
            },
        ),
    ],
    ids=["iostat", "iostat-second", "fio"],
)
def test_lines_that_a_mail_wrapped_are_joined(
    tmp_path: Path, width: int, text: str, workload: str, metrics: dict[str, float]
) -> None:
    assert wrapped(text, width) != text
    run = open_run(written(tmp_path, f"Hi all,\n\nthis is what I see:\n\n{wrapped(text, width)}\n-- \nA. Person\n"))
    for metric, expected in metrics.items():
        assert value(run, "run", workload, metric) == pytest.approx(expected, rel=1e-3), metric
    whole = open_run(written(tmp_path, text, "whole.txt"))
    assert sorted(run.metrics["key"]) == sorted(whole.metrics["key"])
    # Nothing that is read of fio's stands at the end of its longest lines.
    assert any("wrapped" in one and "are joined" in one for one in run.problems) == (text is IOSTAT)


@pytest.mark.parametrize("width", range(64, 82))
def test_rests_of_lines_may_be_indented(tmp_path: Path, width: int) -> None:
    whole = open_run(written(tmp_path, IOSTAT, "whole.txt"))
    run = open_run(written(tmp_path, wrapped(IOSTAT, width, drops_all=False)))
    assert run.metrics.drop("setting").equals(whole.metrics.drop("setting"))


def test_what_was_not_wrapped_is_left_as_it_is(tmp_path: Path) -> None:
    run = open_run(written(tmp_path, FIO))
    assert not run.problems
    assert value(run, "run", "randread", "read.latency_ns_p99") == 429 * US


@given(
    st.lists(st.lists(st.text("abc12.", min_size=1, max_size=9), min_size=1, max_size=30).map(" ".join), max_size=12),
    st.integers(65, 80),
)
def test_what_wrapping_parted_is_joined_again(lines: list[str], width: int) -> None:
    parted = wrapped("\n".join(lines), width).splitlines()
    if len(parted) == len(lines) or max(map(len, parted)) < WIDTH_MIN:
        return
    texts = ["\n".join(line for _, line in joined(enumerate(parted), way)) for way in wrappings_of(parted)]
    assert all(text.split() == " ".join(lines).split() for text in texts)
    # The last way joins most: every break is undone, and lines that end near the width may be joined too.
    assert all(line in texts[-1] for line in lines)


def test_results_below_different_commands_are_different_workloads(tmp_path: Path) -> None:
    text = (
        f"$ dbench -t 60 8\n{DBENCH.format(rate=100, flush=5.0)}\n"
        f"$ docker run --rm bench dbench -t 60 8\n{DBENCH.format(rate=60, flush=9.0)}"
    )
    run = open_run(written(tmp_path, text))
    assert value(run, "run", "dbench 8 clients[dbench -t 60 8]", "rate_bytes_per_s") == 100e6
    assert value(run, "run", "dbench 8 clients[docker run --rm bench]", "rate_bytes_per_s") == 60e6
    assert any("different commands are of different workloads" in one for one in run.problems)


def test_commands_that_differ_by_a_path_are_settings(tmp_path: Path) -> None:
    text = (
        f"root@host:~# dbench -D /mnt/ext4 8\n{DBENCH.format(rate=100, flush=5.0)}\n"
        f"root@host:~# dbench -D /mnt/xfs 8\n{DBENCH.format(rate=60, flush=9.0)}"
    )
    run = open_run(written(tmp_path, text))
    assert value(run, "/mnt/ext4", "dbench 8 clients", "rate_bytes_per_s") == 100e6
    assert value(run, "/mnt/xfs", "dbench 8 clients", "rate_bytes_per_s") == 60e6


def test_what_was_set_before_the_same_command_is_the_setting(tmp_path: Path) -> None:
    text = "".join(
        f"# echo {name} > /sys/block/sda/queue/scheduler\n# sync; echo 3 > /proc/sys/vm/drop_caches\n# dbench 8\n"
        f"{DBENCH.format(rate=rate, flush=5.0)}\n"
        for name, rate in (("bfq", 100), ("none", 60))
    )
    run = open_run(written(tmp_path, text))
    settings = sorted(set(run.metrics["setting"]))
    assert settings == ["echo bfq > /sys/block/sda/queue/scheduler", "echo none > /sys/block/sda/queue/scheduler"]
    assert value(run, settings[1], "dbench 8 clients", "rate_bytes_per_s") == 60e6


@pytest.mark.parametrize("command", ["$ dbench 8", "$ ./once {}", "$ dbench 8 | tee log{}", "$ dbench 8 > out.{}"])
def test_one_command_again_is_a_round(tmp_path: Path, command: str) -> None:
    text = "\n".join(f"{command.format(n)}\n{DBENCH.format(rate=100 * n, flush=5.0)}" for n in (1, 2))
    run = open_run(written(tmp_path, text))
    assert list(run.metrics.filter(run.metrics["key"] == "rate_bytes_per_s")["value"]) == [100e6, 200e6]
    assert set(run.metrics["workload"]) == {"dbench 8 clients"}


def test_titles_name_settings_and_commands_workloads(tmp_path: Path) -> None:
    text = "\n".join(
        f"{title}:\n\n$ dbench 8\n{DBENCH.format(rate=rate, flush=5.0)}\n"
        f"$ dbench -s 8\n{DBENCH.format(rate=rate / 2, flush=9.0)}"
        for title, rate in (("Before", 100), ("After", 120))
    )
    run = open_run(written(tmp_path, text))
    rates = run.metrics.filter(run.metrics["key"] == "rate_bytes_per_s")
    assert dict(zip(zip(rates["setting"], rates["workload"], strict=True), rates["value"], strict=True)) == {
        ("Before", "dbench 8 clients[dbench 8]"): 100e6,
        ("Before", "dbench 8 clients[-s]"): 50e6,
        ("After", "dbench 8 clients[dbench 8]"): 120e6,
        ("After", "dbench 8 clients[-s]"): 60e6,
    }


@pytest.mark.parametrize(
    ("text", "workload", "metric", "expected"),
    [
        (TIOTEST, "tiotest 4 concurrent io threads", "write/write.rate_bytes_per_s", 32 * MIB),
        (TIOTEST, "tiotest 4 concurrent io threads", "random_write/write.latency_ns_mean", 7.5 * MS),
        (TIOTEST, "tiotest 4 concurrent io threads", "random_read/read.rate_bytes_per_s", 4 * MIB),
        (TIOTEST, "tiotest 4 concurrent io threads", "read/read.latency_ns_max", 3 * MS),
        (TIOTEST, "tiotest 4 concurrent io threads", "read/read.rate_bytes_per_s", None),
        (FFSB, "ffsb", "operations_per_s", 150.0),
        (FFSB, "ffsb", "read.rate_bytes_per_s", 400 * KIB),
        (FFSB, "ffsb", "write.rate_bytes_per_s", 2.5 * MIB),
        (FFSB, "ffsb", "create/rate_bytes_per_s", 2.5 * MIB),
        (FFSB, "ffsb", "delete/operations_per_s", 10.0),
        (FFSB, "ffsb", "open_call/latency_ns_mean", 0.25 * MS),
        (FFSB, "ffsb", "cpu_percent", 11.0),
        (FLAT, "vdbench run1[threads=4]", "iops", 5100.0),
        (FLAT, "vdbench run1[threads=16]", "rate_bytes_per_s", 70.31 * MIB),
        (FLAT, "vdbench run1[threads=4]", "read.latency_ns_mean", 1.55 * MS),
        (FLAT, "vdbench run1[threads=4]", "write.latency_ns_mean", None),
        (VMSTAT_D, "vmstat sda", "read.latency_ns_mean", 0.6 * MS),
        (VMSTAT_D, "vmstat sda", "write.request_bytes_mean", 25_600.0),
        (IOSNOOP, "iosnoop 202,1", "write.ops", 3.0),
        (IOSNOOP, "iosnoop 202,1", "write.latency_ns_mean", 2 * MS),
        (IOSNOOP, "iosnoop 202,1", "write.latency_ns_max", 4 * MS),
        (IOSNOOP, "iosnoop 202,1", "write.latency_ns_p99", None),
        (IOSNOOP, "iosnoop 202,16", "read.latency_ns_mean", 0.25 * MS),
        (LIST, "Random Read", "read.iops", 235_000.0),
        (LIST, "Random Write", "write.iops", 189_000.0),
        (LIST, "Sequential Read", "read.rate_bytes_per_s", 766 * MIB),
        (LIST, "Sequential Write", "write.rate_bytes_per_s", 419 * MIB),
        (LIST, "Random Read", "read.latency_ns_p99", 1.25 * MS),
        ("test,run1,run2\nseqread,100,120\nrandread,10,12\n", "seqread", "value", 110.0),
    ],
)
def test_figures_of_old_tools_and_lists(
    tmp_path: Path, text: str, workload: str, metric: str, expected: float | None
) -> None:
    run = open_run(written(tmp_path, text))
    rows = run.metrics.filter((run.metrics["workload"] == workload) & (run.metrics["key"] == metric))
    assert len(rows), sorted(set(zip(run.metrics["workload"], run.metrics["key"], strict=True)))
    found = rows["value"].mean()
    assert found == (None if expected is None else pytest.approx(expected))
    assert render(run, "plain")


def test_a_list_with_tests_of_another_program_is_whole(tmp_path: Path) -> None:
    lines = "* Seq read: 3,450 MB/s\n* 4K rand read: 612k IOPS\n* p99 latency: 310 us\n"
    run = open_run(written(tmp_path, f"### Before\n{lines}\n### After\n{lines.replace('612k', '655k')}"))
    assert value(run, "Before", "Seq read", "read.rate_bytes_per_s") == 3450e6
    assert value(run, "After", "4K rand read", "read.iops") == 655_000
    assert value(run, "After", "list", "latency_ns_p99") == 310 * US


def test_several_figures_of_a_line_are_read_or_named(tmp_path: Path) -> None:
    text = "1. Seq read: 3450 MB/s\n2. Rand read 4k (QD32): 612k IOPS, 2,507 MB/s and 0.2 ms\n"
    run = open_run(written(tmp_path, text))
    assert value(run, "run", "Rand read 4k (QD32)", "read.iops") == 612_000
    assert value(run, "run", "Rand read 4k (QD32)", "read.rate_bytes_per_s") == 2507e6
    assert [one.rpartition("run.txt")[2] for one in run.problems] == [
        ":2: a figure does not state what it is: left out"
    ]


def test_fio_below_commands(tmp_path: Path) -> None:
    """What was set is the setting; a read and a write are no settings of one workload."""
    job = "t: (groupid=0, jobs=1): err= 0: pid={pid}: Fri Mar  1 10:00:00 2024\n"
    job += "  read: IOPS={iops}, BW=9.8MiB/s (10.2MB/s)(293MiB/30000msec)\n"
    text = "".join(
        f"# echo {name} > /sys/block/sda/queue/scheduler\n# fio randread.fio\n{job.format(pid=pid, iops=iops)}"
        for name, pid, iops in (("none", 900, 2500), ("bfq", 901, 2000))
    )
    run = open_run(written(tmp_path, text))
    assert value(run, "echo bfq > /sys/block/sda/queue/scheduler", "t", "read.iops") == 2000
    banner = "t: (g=0): rw={rw}, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1\n"
    text = "".join(
        f"$ fio --name=t --rw={rw}\n{banner.format(rw=rw)}{job.format(pid=pid, iops=iops).replace('read:', f'{rw}:')}"
        for rw, pid, iops in (("read", 900, 2500), ("write", 901, 2000))
    )
    run = open_run(written(tmp_path, text, "two.txt"))
    assert value(run, "two", "t[rw=read]", "read.iops") == 2500
    assert value(run, "two", "t[rw=write]", "write.iops") == 2000
    assert not run.problems


def test_a_share_of_the_cpu_is_no_change(tmp_path: Path) -> None:
    text = "| Scheduler | IOPS | p99 latency (ms) | CPU % |\n|---|---|---|---|\n| none | 90100 | 1.2 | 12 |\n"
    run = open_run(written(tmp_path, f"{text}| bfq | 70100 | 2.4 | 30 |\n"))
    assert value(run, "bfq", "table", "CPU %") == 30


def test_a_list_holds_nothing_but_what_was_measured(tmp_path: Path) -> None:
    run = open_run(written(tmp_path, LIST))
    assert sorted(set(run.metrics["workload"])) == [
        "Random Read",
        "Random Write",
        "Sequential Read",
        "Sequential Write",
    ]


def test_lists_below_titles_are_settings(tmp_path: Path) -> None:
    text = "Before:\n- Random Read IOPS: 235k\n- Random Write IOPS: 189k\n\n"
    run = open_run(written(tmp_path, text + text.replace("Before", "After").replace("235k", "250k")))
    assert value(run, "Before", "Random Read", "read.iops") == 235_000
    assert value(run, "After", "Random Read", "read.iops") == 250_000


def test_between_two_reports_of_vmstat_the_difference_counts(tmp_path: Path) -> None:
    later = "sda    50100   1000 2000800   30050  60000   2000 3000000   90000      0     61\n"
    run = open_run(written(tmp_path, VMSTAT_D + later))
    assert value(run, "run", "vmstat sda", "read.ops") == 100
    assert value(run, "run", "vmstat sda", "read.latency_ns_mean") == 0.5 * MS
    assert any("without -t it states no rates" in one for one in run.problems)


@pytest.mark.parametrize(
    ("text", "setting", "workload", "metric", "values"),
    [
        ("setting,run1,run2,run3\nold,10,11,12\nnew,20,21,22\n", "new", "csv", "value", [20, 21, 22]),
        ("kernel,iops_1,iops_2\n6.1,10k,11k\n6.6,20k,21k\n", "6.6", "csv", "iops", [20_000, 21_000]),
        ("kernel,run1 lat (us),run2 lat (us)\n6.1,10,11\n6.6,20,21\n", "6.6", "csv", "latency_ns_mean", [20e3, 21e3]),
        ("setting,metric,r1,r2\na,iops,10,11\na,p99 lat (ms),1,2\n", "a", "csv", "latency_ns_p99", [1e6, 2e6]),
        ("config;workload;run 1;run 2;mean\na;seq;1.5;2.5;2\nb;seq;3;4;3.5\n", "b", "seq", "value", [3, 4]),
        ("Test,Run 1,Run 2,Average\nread MB/s,3,4,3.5\n", "run", "read MB/s", "read.rate_bytes_per_s", [3e6, 4e6]),
        ("metric,round1,round2\niops,1000,1100\nrate_bytes_per_s,5,6\n", "run", "csv", "iops", [1000, 1100]),
    ],
)
def test_columns_of_a_csv_that_are_rounds(
    tmp_path: Path, text: str, setting: str, workload: str, metric: str, values: list[float]
) -> None:
    run = open_run(written(tmp_path, text, "run.csv"))
    rows = run.metrics.filter(
        (run.metrics["setting"] == setting) & (run.metrics["workload"] == workload) & (run.metrics["key"] == metric)
    )
    assert list(rows.sort("round")["value"]) == pytest.approx(values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("TIME(s),COMM,PID,DISK,T,SECTOR,BYTES,LAT(ms)\n0.1,fio,7,sda,R,8,4096,0.5\n", "biosnoop.*iolab trace"),
        ('{\n  "json_format_version": [1, 0],\n  "smartctl": {\n    "version": [7, 2]\n  }\n}\n', "smartctl.*CSV file"),
        ('{\n  "critical_warning": 0,\n  "percent_used": 3,\n  "power_cycles": 1\n}\n', "nvme's log.*each run"),
    ],
)
def test_what_is_no_result_is_named_with_a_way_out(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_run(written(tmp_path, text))


def test_files_that_are_compared_keep_their_commands_apart(tmp_path: Path) -> None:
    paths = [
        written(
            tmp_path,
            f"$ dbench 8\n{DBENCH.format(rate=rate, flush=5.0)}\n"
            f"$ dbench -s 8\n{DBENCH.format(rate=rate / 2, flush=9.0)}",
            f"{name}.txt",
        )
        for name, rate in (("old", 100), ("new", 120))
    ]
    run = open_files(paths)
    assert value(run, "old", "dbench 8 clients[-s]", "rate_bytes_per_s") == 50e6
    assert value(run, "new", "dbench 8 clients[-s]", "rate_bytes_per_s") == 60e6


RADOS = """\
Total time run:       60.2
Total reads made:     14498
Bandwidth (MB/sec):   {rate}
Average IOPS:         {iops}
Average Latency:      0.0662
"""
OLD_FIO = "  read : io=285240KB, bw=324535 B/s, iops={read} , runt=900011msec\n"
ZPOOL = """\
                capacity     operations    bandwidth
pool          alloc   free   read  write   read  write
------------  -----  -----  -----  -----  -----  -----
tank          27.2T  16.4T    108     88  1.69M  1.36M
  raidz2      13.6T  8.15T     51     50   817K   801K
    sda           -      -     17     24   112K   202K
  raidz2      13.6T  8.23T     57     37   915K   587K
    sdb           -      -     22     20   113K   154K
"""
PGBENCH = """\
transaction type: /tmp/bench.sql
scaling factor: 1
query mode: simple
number of clients: 200
number of threads: 1
duration: 60 s
"""
REPORTER = """\
Mean latency: {mean} ms
SD of latency: 6.7 ms
Max latency: 104 ms
Latency at 50 percentile: 55 ms
Latency at 99 percentile: 79 ms
"""


def test_numbers_may_have_an_exponent(tmp_path: Path) -> None:
    text = f"Without:\n\n{RADOS.format(rate=966, iops=241)}\nWith:\n\n{RADOS.format(rate='1.16e+03', iops=290)}"
    run = open_run(written(tmp_path, text))
    assert value(run, "With", "rados read", "rate_bytes_per_s") == 1160 * MIB


def test_a_long_title_above_rates_names_them_and_not_the_one_before(tmp_path: Path) -> None:
    title = "For a raid0 using software raid, I got the following results (but for what matters not)"
    first, other = OLD_FIO.format(read=79), OLD_FIO.format(read=189)
    run = open_run(written(tmp_path, f"Here is my job file:\n\n{title}:\n\n{first}\nOn a raid1:\n\n{other}"))
    assert run.settings == [title, "On a raid1"]


def test_vdevs_of_one_name_are_numbered_as_new_versions_do(tmp_path: Path) -> None:
    run = open_run(written(tmp_path, ZPOOL))
    name = next(iter(run.settings))
    assert [value(run, name, f"zpool raidz2-{place}", "read.iops") for place in (0, 1)] == [51, 57]
    assert value(run, name, "zpool tank", "write.iops") == 88


def test_a_result_that_is_cut_off_is_no_round_of_the_one_before(tmp_path: Path) -> None:
    whole = f"{PGBENCH}number of transactions actually processed: 30036\nlatency average = 400.487 ms\ntps = 499.39\n"
    run = open_run(written(tmp_path, f"Without the patch:\n\n{whole}\nWith the patch:\n\n{PGBENCH}number of tra"))
    assert run.settings == ["Without the patch", "With the patch"]
    with_patch = run.metrics.filter(run.metrics["setting"] == "With the patch")
    assert "operations_per_s" not in with_patch["metric"]


def test_titles_that_differ_by_what_was_done_are_workloads(tmp_path: Path) -> None:
    figures = "  Total throughput = {} kB/sec\n  Avg throughput = {} kB/sec\n"
    text = "".join(
        f"Test {who} results:\n{figures.format(4 * rate, rate)}" for who, rate in (("writers", 8), ("readers", 9))
    )
    run = open_run(written(tmp_path, text))
    assert len(run.settings) == 1
    assert "Total[Test readers results]" in run.workloads


def test_percentiles_in_words_are_no_means(tmp_path: Path) -> None:
    run = open_run(written(tmp_path, "\n".join(REPORTER.format(mean=mean) for mean in (56.4, 57.1))))
    (name,) = run.settings
    assert run.workloads == ["list"]
    found = {metric: value(run, name, "list", metric) for metric in ("latency_ns_p50", "latency_ns_p99")}
    assert found == {"latency_ns_p50": 55 * MS, "latency_ns_p99": 79 * MS}
    assert value(run, name, "list", "latency_ns_stddev") == pytest.approx(6.7 * MS)


def test_an_operation_without_bytes_has_no_rate_to_be_missed(tmp_path: Path) -> None:
    text = "Operation: STAT, 30%, Concurrency: 20, Duration: 47s.\n * Throughput: 4.84 obj/s\n"
    run = open_run(written(tmp_path, text))
    assert list(run.metrics["metric"]) == ["operations_per_s"]


def test_times_in_a_line_behind_a_name(tmp_path: Path) -> None:
    line = "{}: real 0m{}s user 0m13.684s sys 0m31.359s\n"
    text = f"Before:\n{line.format('write', 31.149)}{line.format('seq', 27.102)}After:\n" + line.format("seq", 21.104)
    run = open_run(written(tmp_path, text))
    assert [value(run, name, "seq", "elapsed_s") for name in ("Before", "After")] == [27.102, 21.104]


def test_lines_of_one_figure_are_never_lost_in_silence(tmp_path: Path) -> None:
    rounds = "68973.9\n65820.1\n65424.7\n"
    run = open_run(
        written(tmp_path, f"Master:\n{rounds}average TPS: 66225.3\nPatched:\n{rounds}average TPS: 66590.8\n")
    )
    assert any("6 lines of a figure alone left out" in problem for problem in run.problems)
    with pytest.raises(InputError, match=r"3 lines of a figure alone; nothing states.*name each"):
        open_run(
            written(tmp_path, f"It is slow, as you see:\n```\n$ bench.py rpq 1 8 /tmp/log\n{rounds}```\n", "alone.txt")
        )


def test_pairs_behind_a_size_below_titles(tmp_path: Path) -> None:
    sizes = "   4k  IOPS=25.5k, BW=99.8MiB/s, Lat=0.374ms\n  64k  IOPS=8358,  BW=522MiB/s,  Lat=1.083ms\n"
    run = open_run(written(tmp_path, f"ring=false\n\n{sizes}\nring=true\n\n{sizes.replace('25.5k', '29.2k')}"))
    assert [value(run, f"ring={is_on}", "4k", "iops") for is_on in ("false", "true")] == [25_500, 29_200]
    assert value(run, "ring=true", "64k", "latency_ns_mean") == pytest.approx(1083 * US)


def test_a_change_with_about(tmp_path: Path) -> None:
    run = open_run(written(tmp_path, "sequential reads speed up from about 2200 IOPS to roughly 2500 IOPS.\n"))
    assert [value(run, setting, "sequential reads", "read.iops") for setting in ("before", "after")] == [
        2200,
        2500,
    ]


OLD_WARP = """\
Mixed operations.

Operation: GET
 * 512.25 MB/s, 300.50 obj/s (59.9s, starting 07:00:05 PST) (45.0% of operations)

Operation: DELETE
 * 70.25 obj/s (59.9s, starting 07:00:05 PST) (10.0% of operations)

Cluster Total:  700.00 MB/s, 650.75 obj/s (59.7s, starting 07:00:05 PST)
"""
WARP_CMP = """\
Operation: PUT
Duration: 5s -> 2s
* Average: +5.25% (+0.5 MiB/s) throughput, +5.25% (+60.5) obj/s
* Fastest: -6.50% (-0.7 MiB/s) throughput, -6.50% (-69.5) obj/s
"""
WARP_PARTS = """\
Operation: RETENTION
* Average: 150.50 obj/s

Throughput by host:
 * http://10.0.0.1:9001: Avg: 75.25 obj/s

Throughput, split into 59 x 1s:
 * Fastest: 200.50 obj/s
 * Slowest: 140.25 obj/s
"""
LONG_NAMES = """\
Device:         rrqm/s   wrqm/s     r/s     w/s    rMB/s    wMB/s   await r_await w_await  svctm  %util
mapper-of-data
                  0.00     0.00    0.00  100.00     0.00     1.00    {await_}    0.00    4.00   2.00  20.00
sdb               0.00     0.00    0.00   50.00     0.00     0.50    2.00    0.00    2.00   2.00  10.00
"""
MDTEST = """\
$ mpiexec -np 2 ./mdtest -n 10
SUMMARY rate: (of 1 iterations)
   Operation                      Max            Min           Mean        Std Dev
   ---------                      ---            ---           ----        -------
   Directory creation        :         25,500         20,500         23,000          2,500
   File stat                 :       1600,750       1500,250       1550,500         50,250
   Tree creation             :          0,000          0,000          0,000          0,000
"""
KBENCH_OF_TWO = """\
FIO Benchmark Comparsion Summary
For: Local vs Remote
                                   Local   vs                   Remote    :              Change
IOPS (Read/Write)
        Random:          20,000 / 10,000   vs            4,000 / 1,000    :   -80.00% / -90.00%
  CPU Idleness:                      75%   vs                      50%    :                -25%
"""


def test_old_warp_calls_a_mebibyte_mb(tmp_path: Path) -> None:
    run = open_run(written(tmp_path, OLD_WARP))
    assert value(run, "run", "warp GET", "rate_bytes_per_s") == 512.25 * MIB
    assert value(run, "run", "warp GET", "operations_per_s") == 300.5
    assert value(run, "run", "warp DELETE", "operations_per_s") == 70.25
    assert value(run, "run", "warp Cluster Total", "rate_bytes_per_s") == 700 * MIB
    assert run.metrics.filter(workload="warp DELETE", key="rate_bytes_per_s").is_empty(), "a delete moves no bytes"
    assert not run.problems


def test_differences_of_warp_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"warp cmp's differences.*warp analyze OLD.csv.zst > old.txt"):
        open_run(written(tmp_path, WARP_CMP))
    with pytest.raises(InputError, match="warp cmp's differences"):
        open_run(written(tmp_path, re.sub(r"(?m)^\* ", "", WARP_CMP)))


def test_what_warp_says_of_hosts_and_seconds_is_named(tmp_path: Path) -> None:
    run = open_run(written(tmp_path, WARP_PARTS))
    assert value(run, "run", "warp RETENTION", "operations_per_s") == 150.5
    assert [problem.rpartition("run.txt:")[2] for problem in run.problems] == [
        "5: what warp's report has of each host: left out",
        "8: the fastest, median and slowest part of the time in warp's report: left out",
    ]


def test_iostat_with_a_long_name_on_a_line_of_its_own(tmp_path: Path) -> None:
    report = LONG_NAMES.format(await_="4.00")
    run = open_run(written(tmp_path, f"{report}\n{report}\n{LONG_NAMES.format(await_='8.00')}"))
    assert value(run, "run", "iostat mapper-of-data", "latency_ns_mean") == 6 * MS
    assert value(run, "run", "iostat sdb", "write.iops") == 50
    titled = open_run(
        written(tmp_path, f"before\n\n{report}\npatched\n\n{LONG_NAMES.format(await_='8.00')}", "titles.txt")
    )
    assert value(titled, "patched", "iostat mapper-of-data", "latency_ns_mean") == 8 * MS
    cut = open_run(written(tmp_path, report + report.rpartition("mapper")[0] + "mapper-of-data\n", "cut.txt"))
    assert any("cut.txt:6: the table is cut off in this line" in problem for problem in cut.problems)


def test_a_page_that_shows_several_lines_as_code_keeps_the_header(tmp_path: Path) -> None:
    cpu = "`avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n   70.25    0.00    0.50    0.25    0.00   29.00`"
    device = "Device            r/s     rMB/s  %util\nnvme0n1         40.00      2.50   4.00\n"
    run = open_run(written(tmp_path, f"On the server:\n\n{cpu}\n\n{device}"))
    assert value(run, "run", "iostat cpu", "cpu_user_percent") == 70.25
    assert value(run, "run", "iostat cpu", "cpu_idle_percent") == 29
    assert value(run, "run", "iostat nvme0n1", "read.iops") == 40


@pytest.mark.parametrize("width", [66, 72])
def test_mdtest_with_decimal_commas_and_wrapped(width: int, tmp_path: Path) -> None:
    run = open_run(written(tmp_path, wrapped(MDTEST, width)))
    found = [value(run, "run", "mdtest", f"file_stat/operations_per_s_{name}") for name in ("max", "mean", "stddev")]
    assert found == [1600.75, 1550.5, 50.25]
    assert run.metrics.filter(key="tree_creation/operations_per_s_mean").is_empty(), "what was not done has zeros"
    without = wrapped(MDTEST.replace("SUMMARY rate: (of 1 iterations)\n", ""), width)
    with pytest.raises(InputError, match=r"states whether it has rates or times.*SUMMARY rate: \(of 1 iterations\)"):
        open_run(written(tmp_path, without, "without.txt"))


def test_kbench_states_how_idle_the_processors_were(tmp_path: Path) -> None:
    run = open_run(written(tmp_path, KBENCH_OF_TWO))
    assert [value(run, name, "kbench", "iops/cpu_idle_percent") for name in ("Local", "Remote")] == [75, 50]
    assert value(run, "Remote", "kbench", "random/read.iops") == 4000


def test_etcdctl_states_its_rate_whether_it_passes_or_fails(tmp_path: Path) -> None:
    passed = "PASS: Throughput is 151 writes/s\nPASS: Slowest request took 0.087s\nPASS: Stddev is 0.011s\nPASS\n"
    failed = (
        "FAIL: Throughput too low: 97 writes/s\nSlowest request took too long: 0.744s\nFAIL: Stddev too high: 0.2s\n"
    )
    run = open_run(
        written(
            tmp_path, f"before\n```\netcdctl check perf\n{failed}```\nafter\n```\netcdctl check perf\n{passed}```\n"
        )
    )
    assert [value(run, name, "etcdctl", "write.operations_per_s") for name in ("before", "after")] == [97, 151]
    assert value(run, "before", "etcdctl", "write.latency_ns_max") == pytest.approx(744 * MS)


def values(run: RunData, setting: str, workload: str, key: str) -> list[float]:
    return list(run.metrics.filter(setting=setting, workload=workload, key=key).sort("round")["value"])


def test_names_that_number_what_was_repeated_are_rounds(tmp_path: Path) -> None:
    lines = "unpatched:\n  run 1: write: IOPS=1201, BW=4805KiB/s\n  run 2: write: IOPS=1188, BW=4752KiB/s\n"
    lines += "patched:\n  run 1: write: IOPS=1733, BW=6932KiB/s\n  run 2: write: IOPS=1741, BW=6964KiB/s\n"
    run = opened(tmp_path / "mail.txt", lines)
    assert values(run, "patched", "fio-lines", "write.iops") == [1733, 1741]
    table = "IOPS of 4k randwrite:\n\n          old     new\n run 1    30112   33100\n run 2    30401   33502\n"
    run = opened(tmp_path / "table.txt", table + " average  30256   33301\n")
    assert values(run, "new", "table", "iops") == [33100, 33502]
    assert any("rows over all rounds are left out: average" in problem for problem in run.problems)
    run = opened(tmp_path / "a.md", "| kernel | run1 | run2 |\n|---|---|---|\n| 5.15 | 402 MB/s | 398 MB/s |\n")
    assert values(run, "5.15", "table", "rate_bytes_per_s") == [402e6, 398e6]
    run = opened(tmp_path / "b.md", "| | IOPS |\n|---|---|\n| test 1 | 400 |\n| test 2 | 9,000 |\n")
    assert values(run, "test 2", "table", "iops") == [9000], "another test may be something else"


def test_the_message_of_a_commit_is_read_as_it_was_written(tmp_path: Path) -> None:
    text = "commit 3c1d2e5f8a70b1\nAuthor: A Name <a@example.org>\nDate:   Tue Mar 8 10:11:12 2022 +0800\n\n"
    text += "    ext4: lock less\n\n    Before:\n      write: IOPS=41.2k, BW=161MiB/s (169MB/s)(9660MiB/60001msec)\n"
    text += "    After:\n      write: IOPS=97.5k, BW=381MiB/s (399MB/s)(22.3GiB/60001msec)\n"
    run = opened(tmp_path / "log.txt", text)
    assert value(run, "Before", "fio", "iops") == pytest.approx(41_200)
    assert value(run, "After", "fio", "iops") == pytest.approx(97_500)


def test_what_stands_behind_the_figures_of_a_row_below_no_name(tmp_path: Path) -> None:
    changes = "            base        patched\n  1 job     1893K IOPS   2042K IOPS  (+7.9%)\n"
    run = opened(tmp_path / "a.txt", changes + "  2 jobs    3611K IOPS   3925K IOPS  (+8.7%)\n")
    assert value(run, "patched", "2 jobs", "iops") == 3_925_000
    assert any("changes behind rows are left out" in problem for problem in run.problems)
    spreads = "Read throughput (MB/s), mean(stddev):\n\n  bs    vanilla         patched\n"
    spreads += "  4k    1021.3 (12.1)   1402.2 (9.8)\n  64k   1811.0 (20.2)   2410.4 (18.1)\n"
    run = opened(tmp_path / "b.txt", spreads)
    assert value(run, "patched", "64k", "rate_bytes_per_s") == pytest.approx(2410.4e6)
    assert any("spreads in brackets are left out" in problem for problem in run.problems)


def test_rows_and_columns_of_percentiles_have_the_unit_above(tmp_path: Path) -> None:
    rows = "read latency (us):\n\n  pct    vanilla   patched\n  p50       12.1      11.9\n  p99.9    310.0     402.2\n"
    run = opened(tmp_path / "rows.txt", rows)
    assert value(run, "patched", "rows", "latency_ns_p999") == pytest.approx(402_200)
    columns = "fsync latency percentiles in ms:\n\n          p50    p99    max\n jbd2     1.2    9.1   88.0\n"
    run = opened(tmp_path / "columns.txt", columns + " fast     0.4    2.2   91.3\n")
    assert value(run, "fast", "table", "latency_ns_p99") == pytest.approx(2_200_000)
    assert value(run, "fast", "table", "latency_ns_max") == pytest.approx(91_300_000)


def test_a_title_ends_the_sentences_before_it(tmp_path: Path) -> None:
    rates = "  read : io=524288KB, bw={}MB/s, iops={}, runt= 301msec\n"
    text = f"We moved the log to NVMe. Tests with 16 writers, before:\n{rates.format('1700.2', '435455')}"
    run = opened(tmp_path / "mail.txt", f"{text}\nafter:\n{rates.format('2133.4', '546133')}")
    assert value(run, "after", "fio", "iops") == 546_133


def test_several_figures_in_a_cell_are_no_name(tmp_path: Path) -> None:
    text = "| chunk | stock | patched | gain |\n|---|---|---|---|\n| 64K | 612.3   88.1 | 801.2   61.0 | 30.9% |\n"
    run = opened(tmp_path / "t.md", text + "| 128K | 701.9   85.4 | 912.0   60.2 | 29.9% |\n")
    assert {row["setting"] for row in run.metrics.to_dicts()} == {"t"}
    assert any("4 cells without a single figure, such as '612.3   88.1'" in problem for problem in run.problems)


def test_wrk_has_latencies_and_transfer(tmp_path: Path) -> None:
    text = "  4 threads and 128 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n"
    text += "    Latency     5.12ms    2.31ms  81.22ms   88.12%\n    Req/Sec     6.31k   412.02     7.91k    71.20%\n"
    text += "  753102 requests in 30.05s, 11.91GB read\nRequests/sec:  25061.63\nTransfer/sec:    405.81MB\n"
    run = opened(tmp_path / "wrk.txt", text)
    figures = {"latency_ns_mean": 5.12e6, "latency_ns_max": 81.22e6, "operations_per_s": 25061.63, "elapsed_s": 30.05}
    for metric, figure in {**figures, "rate_bytes_per_s": 405.81 * 2**20}.items():
        assert value(run, "wrk", "requests", metric) == pytest.approx(figure)


def test_a_report_above_all_commands_is_no_round_of_those_below(tmp_path: Path) -> None:
    report = "Device Information   :       IOPS      MiB/s    Average        min        max\n"
    report += "Total                :  {}     528.93     236.31      19.03    1761.46\n"
    command = "[root@host perf]# ./perf -q 64 -w randread\nEAL: No pages reported\n"
    text = f"{report.format(1000.0)}{command}{report.format(3000.0)}"
    run = opened(tmp_path / "x.txt", text)
    assert value(run, "x", "spdk-perf", "iops") == 1000
    assert value(run, "x", "spdk-perf[./perf -q 64 -w randread]", "iops") == 3000
    again = opened(tmp_path / "y.txt", f"{report.format(1000.0)}# rm -f x\n{report.format(3000.0)}")
    assert [value(again, "y", "spdk-perf", "iops", n) for n in (0, 1)] == [1000, 3000]


def test_numbered_items_that_a_change_adds_are_a_list(tmp_path: Path) -> None:
    text = "+1. The most that we saw:\n+    1. random-read-bandwidth: 874 MiB/s\n"
    text += "+    1. random-write-latency: 2040 microseconds\n"
    run = opened(tmp_path / "x.txt", text * 2)
    assert 874 * MIB in run.metrics["value"].to_list()
