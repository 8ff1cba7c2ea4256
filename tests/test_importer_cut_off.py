"""Outputs that end too early: what is there is read, and what is missing is stated. Texts in each tool's form, with
figures of their own."""

from pathlib import Path

import pytest
from iolab.studies.trace import histograms_of
from support.command_line import CommandLine
from test_importer import opened, value

MIB = 2**20
SECONDS = """\
Maintaining 16 concurrent writes of 8192 bytes to objects of size 8192 for up to 3 seconds or 0 objects
  sec Cur ops   started  finished  avg MB/s  cur MB/s last lat(s)  avg lat(s)
    0       0         0         0         0         0           -           0
    1      16      1216      1200     9.375     9.375  0.00110000  0.00140000
    2       9      2409      2400     9.500     9.375  0.00120000  0.00150000
Total time run:         2.0100
Total writes made:      2409
Write size:             8192
"""
ENDING = "Bandwidth (MB/sec):     9.363\nAverage IOPS:           1198\nAverage Latency(s):     0.0016\n"
STRESS_NG = """\
stress-ng: info:  [71] stressor       bogo ops real time  usr time  sys time   bogo ops/s   bogo ops/s
stress-ng: info:  [71]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)
stress-ng: info:  [71] io                  600     60.00      0.50      1.50        10.00       300.00
stress-ng: info:  [71] hdd                9000     60.0
"""
ELBENCHO = """\
OPERATION   RESULT TYPE         FIRST DONE   LAST DONE
=========== ================    ==========   =========
WRITE       Elapsed time     :      5.000s      5.200s
            Throughput MiB/s :         400         390
            Svc compl. time  : [ 10.0.0.1:1611=5.000s 10.0.0.2:1611=5.1
"""
COPY = "dd if=/dev/zero of=/t/a bs=8k count=64k"
DD = f"""\
# {COPY}
536870912 bytes (537 MB, 512 MiB) copied, 2.0 s, 268 MB/s
# dd if=/dev/zero of=/t/b bs=4k cou
"""
FILEBENCH = """\
10.100: Per-Operation Breakdown
writefile1           600ops       60ops/s   7.5mb/s      2.0ms/op [0.1ms - 9.0ms]
20.200: Per-Operation Breakdown
"""
CRYSTALDISKMARK = """\
NTFS
CrystalDiskMark 6.0.2 x64 (C) 2007-2018 hiyohiyo
   Sequential Read (Q= 32,T= 1) :   500.000 MB/s
EXT4
CrystalDiskMark 6.0.2 x64 (C) 2007-2018 hiyohiyo
* MB/s = 1,000,000 byte
"""
FIO = """\
mix: (g=0): rw=randrw, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=8
fio-3.30
mix: (groupid=0, jobs=1): err= 0: pid=7: Tue Mar  5 10:11:12 2024
  read: IOPS=5000, BW=19.5MiB/s (20.5MB/s)(195MiB/10000msec)
    clat (usec): min=60, max=910, avg=317.20, stdev=41.90
   bw (  KiB/s): min=18000, max=21000, per=100.00%, avg=20000.00, stdev=500.25, sampl
"""
BIOLATENCY = """\
     usecs               : count     distribution
         0 -> 1          : 0        |                    |
         2 -> 3          : 6        |********************|
         4 -> 7          : 2        |******
"""


def test_the_last_averages_of_rados_bench_stand_for_those_that_are_cut_off(tmp_path: Path) -> None:
    run = opened(tmp_path / "cut.txt", SECONDS)
    assert value(run, "cut", "rados write", "rate_bytes_per_s") == 9.5 * MIB
    assert value(run, "cut", "rados write", "latency_ns_mean") == 1.5e6
    assert value(run, "cut", "rados write", "ops") == 2409
    assert any(
        "cut.txt:6: the report is cut off, or shortened: without Bandwidth (MB/sec) and Average Latency(s); the last "
        "averages" in problem
        for problem in run.problems
    )
    whole = opened(tmp_path / "whole.txt", SECONDS + ENDING)
    assert value(whole, "whole", "rados write", "rate_bytes_per_s") == 9.363 * MIB
    assert value(whole, "whole", "rados write", "latency_ns_mean") == 1.6e6
    assert not whole.problems


def test_averages_are_of_their_own_report(tmp_path: Path) -> None:
    """The second has no seconds: nothing is put in its place."""
    text = f"Before:\n{SECONDS}{ENDING}\nAfter:\nTotal time run:  3.5\nTotal writes made:  4000\n"
    run = opened(tmp_path / "two.txt", text)
    assert value(run, "After", "rados write", "ops") == 4000
    assert run.metrics.filter(setting="After", key="rate_bytes_per_s").is_empty()
    assert any("without Bandwidth (MB/sec)" in problem for problem in run.problems)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Summary:\n  Total: 2.0 secs.\n  Average: 0.002 secs.\n{}  Requests/sec: 500.0\n", "without Requests/sec"),
        (
            "CPU BOGOMIPS:  1000.00\nBUFFERED READS:  100.00 MB/sec\n{}FSYNCS/SECOND:  50.00\n",
            "without FSYNCS/SECOND",
        ),
        (
            "--- /t (ext4 /dev/sda1) ioping statistics ---\n9 requests completed in 5.00 ms, 36 KiB read, 1.80 k iops, "
            "7.03 MiB/s\n{}min/avg/max/mdev = 0.5 ms / 0.6 ms / 0.9 ms / 0.1 ms\n",
            "without min/avg/max/mdev",
        ),
    ],
)
def test_the_second_of_two_reports_may_be_cut_off(text: str, said: str, tmp_path: Path) -> None:
    whole = f"Before:\n{text.format('')}\nAfter:\n"
    assert not opened(tmp_path / "whole.txt", whole + text.format("")).problems
    problems = opened(tmp_path / "x.txt", whole + text.partition("{}")[0]).problems
    assert [problem for problem in problems if said in problem], problems


@pytest.mark.parametrize(
    ("text", "workload", "metric", "expected", "said"),
    [
        (STRESS_NG, "stress-ng io", "operations_per_s", 10, ":4: the line is cut off"),
        (ELBENCHO, "elbencho", "write/rate_bytes_per_s", 390 * MIB, ":5: the line is cut off"),
        (DD, COPY, "elapsed_s", 2, ":3: the figures of dd that belong below"),
        (f"{DD}2+0 records out\n8192 bytes (8.2 kB) copied, 0.5", COPY, "elapsed_s", 2, ":5: the line is cut off"),
        (
            STRESS_NG.rpartition("stress-ng")[0] + STRESS_NG.partition("\n")[0],
            *("stress-ng io", "operations_per_s", 10, ":4: the figures of stress-ng that belong below"),
        ),
        (FILEBENCH, "filebench", "writefile1/iops", 60, ":3: the figures of filebench that belong below"),
        (
            CRYSTALDISKMARK,
            "sequential Q=32 T=1",
            "read.rate_bytes_per_s",
            5e8,
            ":5: the tests that belong below this line are not",
        ),
        (
            FIO + "    clat percentiles (usec):\n     | 50.00th=[  310], 90.00th=[  400], 95.",
            *("mix", "read.latency_ns_p90", 400e3, ":8: fio's output is cut off in this line"),
        ),
        (FIO, "mix", "read.iops", 5000, ":6: fio's output is cut off in this line"),
        (FIO, "mix", "read.iops", 5000, ":3: job mix has rw=randrw, and no writes of it are in the text"),
    ],
)
def test_where_a_text_is_cut_off_is_stated(
    text: str, workload: str, metric: str, expected: float, said: str, tmp_path: Path
) -> None:
    run = opened(tmp_path / "x.txt", text)
    setting = next(iter(run.settings))
    assert value(run, setting, workload, metric) == pytest.approx(expected)
    assert [problem for problem in run.problems if f"x.txt{said}" in problem]


@pytest.mark.parametrize("text", [STRESS_NG.rpartition("stress-ng")[0], ELBENCHO.rpartition("Svc")[0], DD[:-36]])
def test_what_ends_where_it_should_has_no_such_problem(text: str, tmp_path: Path) -> None:
    assert not opened(tmp_path / "whole.txt", text).problems


def test_a_histogram_whose_last_line_breaks_off(iolab: CommandLine) -> None:
    path = iolab.cwd / "cut.txt"
    path.write_text(BIOLATENCY)
    assert "the text is cut off in a line of this histogram" in iolab("trace", "cut.txt").stdout
    assert [one.as_dict()["cut_off"] for one in histograms_of([path])] == [True]
    path.write_text(BIOLATENCY.replace("|******\n", "|******              |\n"))
    assert [one.is_cut_off for one in histograms_of([path])] == [False]
