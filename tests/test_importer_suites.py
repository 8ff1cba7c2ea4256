"""Suites of small benchmarks: UnixBench, lmbench, PostMark, IO500, kubestr; and percentiles of DiskSpd."""

from pathlib import Path

import pytest
from test_importer import check_value, opened, value

KIB, MIB, GIB = 2**10, 2**20, 2**30
MS, US = 1e6, 1e3
TESTS_OF_UNIXBENCH = """\
Execl Throughput                               2100.4 lps   (30.0 s, 2 samples)
File Copy 1024 bufsize 2000 maxblocks        410200.0 KBps  (30.0 s, 2 samples)
Shell Scripts (1 concurrent)                   4200.6 lpm   (60.0 s, 2 samples)
"""
INDEX_OF_UNIXBENCH = """\
System Benchmarks Index Values               BASELINE       RESULT    INDEX
Execl Throughput                                 43.0       2100.4    488.5
File Copy 1024 bufsize 2000 maxblocks          3960.0     410200.0   1035.9
                                                                   ========
System Benchmarks Index Score                                         760.1
"""
UNIXBENCH = f"""\
Benchmark Run: Mon May 07 2018 10:05:00 - 10:33:05
2 CPUs in system; running 1 parallel copy of tests

{TESTS_OF_UNIXBENCH}
{INDEX_OF_UNIXBENCH}
"""
LMBENCH = """\
                 L M B E N C H  3 . 0   S U M M A R Y
                 ------------------------------------

Processor, Processes - times in microseconds - smaller is better
------------------------------------------------------------------------------
Host                 OS  Mhz null null      open slct sig  sig  fork exec sh
                             call  I/O stat clos TCP  inst hndl proc proc proc
--------- ------------- ---- ---- ---- ---- ---- ---- ---- ---- ---- ---- ----
base      Linux 4.19.0- 2394 0.12 0.20 0.71 1.63 3.61 0.22 1.11 210. 610. 1421
patched   Linux 4.19.0- 2394 0.13 0.21 0.72 1.60      0.22 1.12 212. 615. 14.K

File & VM system latencies in microseconds - smaller is better
-------------------------------------------------------------------------------
Host                 OS   0K File      10K File     Mmap    Prot   Page   100fd
                        Create Delete Create Delete Latency Fault  Fault  selct
--------- ------------- ------ ------ ------ ------ ------- ----- ------- -----
base      Linux 4.19.0-   12.1 8.0100   25.5   10.3  9123.0 0.501 0.21120 1.510
base      Linux 4.19.0-   12.3 8.0200   25.4   10.2  9122.0 0.502 0.21121 1.512

*Local* Communication bandwidths in MB/s - bigger is better
-----------------------------------------------------------------------------
Host                OS  Pipe AF    TCP  File   Mmap  Bcopy  Bcopy  Mem   Mem
                             UNIX      reread reread (libc) (hand) read write
--------- ------------- ---- ---- ---- ------ ------ ------ ------ ---- -----
base      Linux 4.19.0- 2310 5012 3811 6012.2 9811.1 5120.1 5001.0 9710 7421.
"""
LAT_FS = "0k\t1000\t81234\t120345\n1k\t1000\t60123\t98123\n4k\t1000\t59012\t97001\n10k\t1000\t45678\t81234\n"
BW_FILE_RD = "$ bw_file_rd 64M io_only /f\n67.11 5123.45\n$ bw_file_rd 64M open2close /f\n67.11 5011.20\n"
POSTMARK = """\
Time:
\t251 seconds total
\t198 seconds of transactions (252 per second)

Files:
\t35064 created (139 per second)
\t\tCreation alone: 10000 files (400 per second)
\t\tMixed with transactions: 25064 files (126 per second)

Data:
\t136.97 megabytes read (558.78 kilobytes per second)
\t2.10 gigabytes written (8.55 megabytes per second)
"""
IO500 = """\
[RESULT] BW   phase 1            ior_easy_write               12.345 GiB/s : time 312.01 seconds
[RESULT]        mdtest-easy-write           45.123 kIOPS : time 301.22 seconds
[SCORE] Bandwidth 4.51234 GiB/s : IOPS 32.1234 kiops : TOTAL 12.0412
"""
KUBESTR = """\
JobName: read_iops
  blocksize=4K filesize=2G iodepth=64 rw=randread
read:
  IOPS=146781.875000 BW(KiB/s)=587144
  iops: min=32904 max=216324 avg=144282.453125
  bw(KiB/s): min=131616 max=865296 avg=577129.875000
"""
DISKSPD = """\
total:
  %-ile |  Read (ms) | Write (ms) | Total (ms)
----------------------------------------------
    min |      0.045 |      0.052 |      0.045
   25th |      0.210 |      0.310 |      0.230
   75th |      0.402 |      0.622 |      0.480
4-nines |     12.010 |     13.110 |     12.510
5-nines |     20.010 |     21.110 |     20.510
    max |     25.010 |     31.110 |     31.110
"""
XFS_IO = """\
wrote 1073741824/1073741824 bytes at offset 0
1.000 GiB, 1024 ops; 0.5123 sec (1.952 GiB/sec and 1998.8288 ops/sec)
read 1073741824/1073741824 bytes at offset 0
1.000 GiB, 1024 ops; 0:00:01.02 (999.1 MiB/sec and 1003.1122 ops/sec)
"""
COPIED = "file_copy_1024_bufsize_2000_maxblocks"
FILES = "lmbench file & vm system latencies"


@pytest.mark.parametrize(
    ("text", "setting", "workload", "metric", "expected"),
    [
        (UNIXBENCH, "run", "unixbench 1 parallel copy", f"{COPIED}/rate_bytes_per_s", 410200 * KIB),
        (UNIXBENCH, "run", "unixbench 1 parallel copy", f"{COPIED}/index", 1035.9),
        (UNIXBENCH, "run", "unixbench 1 parallel copy", "index", 760.1),
        (UNIXBENCH, "run", "unixbench 1 parallel copy", "shell_scripts_1_concurrent/operations_per_s", 70.01),
        (TESTS_OF_UNIXBENCH, "run", "unixbench", "execl_throughput/operations_per_s", 2100.4),
        (INDEX_OF_UNIXBENCH, "run", "unixbench", f"{COPIED}/rate_bytes_per_s", 410200 * KIB),
        (INDEX_OF_UNIXBENCH, "run", "unixbench", "execl_throughput/index", 488.5),
        (LMBENCH, "base", FILES, "10k_file_create/time_ns", 25.5 * US),
        (LMBENCH, "base", FILES, "0k_file_delete/time_ns", 8.01 * US),
        (LMBENCH, "patched", "lmbench processor", "sh_proc/time_ns", 14 * MS),
        (LMBENCH, "patched", "lmbench processor", "slct_tcp/time_ns", None),
        (LMBENCH, "base", "lmbench local communication bandwidths", "file_reread/rate_bytes_per_s", 6012.2e6),
        (LAT_FS, "run", "lmbench-programs 10k", "delete/operations_per_s", 81234),
        (BW_FILE_RD, "run", "lmbench-programs[open2close]", "rate_bytes_per_s", 5011.2e6),
        (POSTMARK, "run", "postmark", "transactions_per_s", 252),
        (POSTMARK, "run", "postmark", "created/files_per_s", 139),
        (POSTMARK, "run", "postmark", "read.rate_bytes_per_s", 558.78 * KIB),
        (POSTMARK, "run", "postmark", "write.rate_bytes_per_s", 8.55 * MIB),
        (IO500, "run", "io500", "ior_easy_write/rate_bytes_per_s", 12.345 * GIB),
        (IO500, "run", "io500", "mdtest_easy_write/iops", 45123),
        (IO500, "run", "io500", "score", 12.0412),
        (KUBESTR, "run", "kubestr read_iops", "read/iops", 146781.875),
        (KUBESTR, "run", "kubestr read_iops", "read/rate_bytes_per_s", 587144 * KIB),
        (DISKSPD, "run", "diskspd", "read.latency_ns_p25", 0.21 * MS),
        (DISKSPD, "run", "diskspd", "latency_ns_p75", 0.48 * MS),
        (DISKSPD, "run", "diskspd", "write.latency_ns_p9999", 13.11 * MS),
        (XFS_IO, "run", "xfs_io", "wrote/rate_bytes_per_s", 1.952 * GIB),
        (XFS_IO, "run", "xfs_io", "read/iops", 1003.1122),
    ],
)
def test_the_figures(
    tmp_path: Path, text: str, setting: str, workload: str, metric: str, expected: float | None
) -> None:
    check_value(tmp_path, text, setting, workload, metric, expected)


def test_a_host_again_is_the_next_round(tmp_path: Path) -> None:
    assert value(opened(tmp_path / "a.txt", LMBENCH), "base", FILES, "0k_file_create/time_ns", 1) == 12_300


@pytest.mark.parametrize(("text", "what"), [(DISKSPD, "five nines"), (POSTMARK, "parts of creations")])
def test_what_is_left_out_is_named(tmp_path: Path, text: str, what: str) -> None:
    assert any(what in problem for problem in opened(tmp_path / "a.txt", text).problems)


def test_rates_of_rados_have_extremes(tmp_path: Path) -> None:
    text = (
        "Total time run:         10.3\nTotal writes made:      691\nBandwidth (MB/sec):     268.0\n"
        "Max bandwidth (MB/sec): 284\nMin bandwidth (MB/sec): 252\nAverage IOPS:           67\nMax IOPS:  71\n"
        "Average Latency(s):     0.238\n"
    )
    run = opened(tmp_path / "a.txt", text)
    assert value(run, "a", "rados write", "rate_bytes_per_s_max") == 284 * MIB
    assert value(run, "a", "rados write", "iops_max") == 71
