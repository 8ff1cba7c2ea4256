"""What people post most: sysstat's neighbours, servers' and clusters' benchmarks, packed files, tables of every
country. Texts are written in each tool's format, with figures of their own."""

import bz2
import gzip
import lzma
import re
from pathlib import Path

import pytest
from iolab import _native
from iolab.base.errors import InputError
from iolab.files.importer import content
from iolab.files.importer.groups import groups_of
from iolab.files.importer.run_import import open_files, open_run
from iolab.presentation.table import render
from test_importer import opened, value

KIB, MIB, GIB, MS, US = 2.0**10, 2.0**20, 2.0**30, 1e6, 1e3

VMSTAT = """\
> procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
>  r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
>  1  0      0 2448924 384428 734696    0    0   141     6   42   68  0  0 99  1  0
>  0  3      0 2448940 384428 734696    0    0  2048 51200 4000 5300  1  6 43 50  0
>  0  4      0 2448940 384428 734696    0    0  1024 40960 3000 4100  1  4 35 60  0
"""
VMSTAT_TIMES = """\
--time-- procs -----------memory---------- ---swap-- -----io---- --system-- -----cpu-----
          r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
21:21:49  2  0    376 141000624 945216 8464640    0    0     2   806 31414 37894  2  1 97  0  0
21:21:54  5  0    376 140984384 945232 8465164    0    0     3   283 36567 40997  2  1 90  7  0
21:21:59  4  0    376 140942096 945248 8466076    0    0    45   362 32547 49628  3  1 91  5  0
"""
VMSTAT_DATES = """\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- -----timestamp-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st                 CET
 1  0      0 244892 384428 734696    0    0   141     6   42   68  0  0 99  1  0 2024-03-01 10:00:00
 1  2      0 244892 384428 734696    0    0    64   128   42   68  0  0 90 10  0 2024-03-01 10:00:01
"""
PIDSTAT = """\
Linux 5.14.0-427.el9.x86_64 (db1)         08/17/2026      _x86_64_        (24 CPU)

11:03:26 AM   UID       PID   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command
11:03:28 AM     0      4876      0.00      9.52      0.00       0  agent
11:03:28 AM  1003     16617     97.14  56026.67      0.00      30  log writer
11:03:28 AM  1003     16618     -1.00     -1.00     -1.00       0  hidden

11:03:28 AM   UID       PID   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command
11:03:30 AM  1003     16617    100.00  50000.00      0.00      34  log writer

Average:      UID       PID   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command
Average:     1003     16617     98.57  53013.34      0.00      32  log writer
"""
PIDSTAT_ZH = """\
18时58分49秒   UID       PID   kB_rd/s   kB_wr/s kB_ccwr/s  Command
18时58分49秒     0       979      0.00      0.50      0.01  exchange
"""
SAR = """\
12:00:01 AM       tps      rtps      wtps      dtps   bread/s   bwrtn/s   bdscd/s
12:10:01 AM    338.00    238.00    100.00      0.00   2048.00   4096.00      0.00
12:20:01 AM    162.00     62.00    100.00      0.00   1024.00   4096.00      0.00
Average:       250.00    150.00    100.00      0.00   1536.00   4096.00      0.00

12:00:01 AM       DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util
12:10:01 AM       sda    338.00   1024.00   2048.00      0.00      9.09      0.30      0.90     12.00
12:20:01 AM       sda    162.00    512.00   2048.00      0.00     15.80      0.20      1.20     10.00
"""
DSTAT = """\
----total-cpu-usage---- -dsk/total- -net/total- ---paging-- ---system--
usr sys idl wai hiq siq| read  writ| recv  send|  in   out | int   csw
  1   1  97   1   0   0|  10k  200k|   0     0 |   0     0 | 100   200
  2   5  43  50   0   0|1024k   50M| 120B  820B|   0     0 |4000  5300
  2   5  33  60   0   0|2048k   40M| 120B  820B|   0     0 |4000  5300
"""
DSTAT_CSV = """\
"Dstat 0.7.0 CSV output"
"Author:","Dag Wieers <dag@wieers.com>",,,,"URL:","http://dag.wieers.com/home-made/dstat/"
"Host:","h1",,,,"User:","root"

"total cpu usage",,,,,,"dsk/total",,"net/total",,"paging",,"system",
"usr","sys","idl","wai","hiq","siq","read","writ","recv","send","in","out","int","csw"
20.4,1.6,74.5,3.4,0.0,0.0,707495.561,82419494.859,0.0,0.0,0.0,0.0,17998.361,18691.991
8.8,1.1,77.0,13.1,0.0,0.0,0.0,272334848.0,54.0,818.0,0.0,0.0,1514.0,477.0
9.2,1.9,75.0,13.9,0.0,0.0,1000.0,262334848.0,54.0,818.0,0.0,0.0,1514.0,477.0
"""
ZPOOL = """\
              capacity     operations     bandwidth    total_wait     disk_wait
pool        alloc   free   read  write   read  write   read  write   read  write
----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----
tank        1.47T  85.5T     21    389  2.70M  35.5M    1ms    2ms    1ms    1ms
  sda           -      -     21    389  2.70M  35.5M    1ms    2ms    1ms    1ms
----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----
tank        1.47T  85.5T  1.50K    410   135M  40.0M    6ms      -    4ms      -
  sda           -      -  1.50K    410   135M  40.0M    6ms  500us    4ms  400us
----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----
"""
FREEBSD = """\
                        extended device statistics
device       r/s     w/s     kr/s     kw/s  ms/r  ms/w  ms/o  ms/t qlen  %b
ada0          20      30   1280.0   2560.0     5     9     0     7    1  40
"""
ILLUMOS = """\
                    extended device statistics
    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device
   20.0   30.0 1280.0 2560.0  0.0  0.5    0.0    9.9   0  40 c0t0d0
"""
FILEBENCH = """\
11.164: Per-Operation Breakdown
closefile1           13804ops       46ops/s   0.0mb/s      0.0ms/op [0.00ms -  0.38ms]
readfile1            13804ops       46ops/s   5.5mb/s    347.6ms/op [8.74ms - 5261.88ms]
11.164: IO Summary: 27608 ops 92.019 ops/s 46/0 rd/wr   5.5mb/s   173.8ms/op
"""
VDBENCH = """\
12:00:00.000 Starting RD=run1; I/O rate: 5000; elapsed=4; For loops: threads=8
Jun 05, 2018  interval        i/o   MB/sec   bytes   read     resp     read    write     read    write     resp  queue
12:00:01.050         1    4000.00    31.25    8192  50.00    2.000    1.500    2.500   10.000   20.000    0.900    8.0
12:00:03.060   avg_2-3    5100.00    39.84    8192  50.00    1.550    1.050    2.050   10.000   20.000    0.900    8.0\
   5.0   3.0
12:00:04.000 Starting RD=run1; I/O rate: 5000; elapsed=4; For loops: threads=16
12:00:07.060   avg_2-3    6100.00    47.66    8192  50.00    2.550   20.000    0.900   5.0   3.0
"""
VDBENCH_FILES = (
    "12:00:02.050      avg_2-2  110.0  1.900   5.0 3.00  50.0   55.0  1.400   55.0  2.400  0.43  0.43   0.86    8192"
    + "   0.0  0.000" * 6
    + "\n"
)
RBD = """\
bench  type write io_size 4096 io_threads 16 bytes 1073741824 pattern random
  SEC       OPS   OPS/SEC   BYTES/SEC
    1      2512   2530.53   9.9 MiB/s
elapsed: 70   ops: 262144   ops/sec: 3744.91   bytes/sec: 15 MiB/s
"""
OSD_PERF = "osd  commit_latency(ms)  apply_latency(ms)\n  2                 154                154\n"
SPDK = """\
Device Information                     :       IOPS      MiB/s    Average        min        max
PCIE (0000:5e:00.0) NSID 1 from core  0:  500000.00    1953.13     255.50      20.10    2500.10
========================================================
Total                                  :  500000.00    1953.13     255.50      20.10    2500.10
"""
WARP = """\
Operation: PUT. Concurrency: 20
* Average: 334.00 MiB/s, 85.50 obj/s

Requests considered: 9000:
 * Avg: 123ms, 50%: 101ms, 90%: 202ms, 99%: 1.244s, Fastest: 900µs, Slowest: 2.3s
"""
PVEPERF = "CPU BOGOMIPS:      57600.00\nBUFFERED READS:    512.50 MB/sec\nFSYNCS/SECOND:     1234.56\n"
BENCH_SH = """\
 I/O Speed(1st run)    : 12.4 MB/s
 I/O Speed(2nd run)    : 1.1 GB/s
 Average I/O speed     : 556.2 MB/s
"""
DBENCH = """\
= Dbench Summary =
Random Read/Write IOPS: 75.7k/59.7k. BW: 523MiB/s / 500MiB/s
Average Latency (usec) Read/Write: 183.07/76.91
Sequential Read/Write: 536MiB/s / 512MiB/s
"""
KBENCH = """\
FIO Benchmark Summary
For: test_device
IOPS (Read/Write)
        Random:           28,800 / 5,700
    Sequential:          51,400 / 11,300
  CPU Idleness:                      86%
Bandwidth in KiB/sec (Read/Write)
        Random:      1,034,000 / 278,600
Latency in ns (Read/Write)
        Random:      303,000 / 1,029,000
"""
ELBENCHO_CSV = '''\
ISO date,label,path type,paths,hosts,threads,dirs,files,file size,block size,direct IO,random,random aligned,IO depth,\
shared paths,truncate,operation,time ms [first],time ms [last],entries/s [first],entries/s [last],IOPS [first],\
IOPS [last],MiB/s [first],MiB/s [last],IO lat us [min],IO lat us [avg],IO lat us [max],version,command
2026-05-22T16:09,,dir,1,1,8,1,4,268435456,1048576,1,0,,4,1,0,MKDIRS,2,5,3200,1600,,,,,,,,3.0-1,"elbencho ""-w"""
2026-05-22T16:09,,dir,1,1,8,1,4,268435456,1048576,1,0,,4,1,0,\
WRITE,2000,2800,11,12,3500,2900,3500,2900,16,93,1200,3.0-1,-w
'''
ELBENCHO_LIVE = """\
ISO Date,Label,Phase,RuntimeMS,Rank,MixType,Done%,DoneBytes,MiB/s,IOPS,Entries,Entries/s,Lat Ent us,Lat IO us,\
Active,CPU,
2025-12-17T11:58:08.821-0600,,READ,1001,Total,,35,49416241152,47000,94000,0,0,0,10500,128,5,
2025-12-17T11:58:08.821-0600,,READ,1001,0,,35,49416241,47,94,0,0,0,1050,128,5,
2025-12-17T11:58:09.821-0600,,READ,2001,Total,,73,100924391424,49000,98000,0,0,0,10500,128,5,
"""
ETCD = """\
mytest: (g=0): rw=write, bs=(R) 2300B-2300B, (W) 2300B-2300B, (T) 2300B-2300B, ioengine=sync, iodepth=1
fio-3.19
mytest: (groupid=0, jobs=1): err= 0: pid=20: Tue Mar  2 10:00:00 2021
  write: IOPS=500, BW=1123KiB/s (1150kB/s)(22.0MiB/20058msec); 0 zone resets
    clat (usec): min=4, max=300, avg=20.00, stdev=9.00
     lat (usec): min=4, max=301, avg=21.00, stdev=9.00
  fsync/fdatasync/sync_file_range:
    sync (usec): min=600, max=30000, avg=1970.00, stdev=900.00
    sync percentiles (usec):
     |  1.00th=[  700],  5.00th=[  800], 50.00th=[ 1800], 99.00th=[ 5000],
     | 99.50th=[ 6000], 99.90th=[12000]
     issued rwts: total=0,10029,0,0 short=10029,0,0,0 dropped=0,0,0,0
"""
DB_BENCH = """\
fillseq      :       2.100 micros/op;   52.7 MB/s
snappycomp   :    7000.000 micros/op; (snappy failure)
"""


@pytest.mark.parametrize(
    ("text", "workload", "metric", "expected"),
    [
        (VMSTAT, "vmstat", "read.rate_bytes_per_s", 1536 * KIB),
        (VMSTAT, "vmstat", "write.rate_bytes_per_s", 46080 * KIB),
        (VMSTAT, "vmstat", "cpu_iowait_percent", 55),
        (VMSTAT, "vmstat", "tasks_blocked_mean", 3.5),
        (VMSTAT_TIMES, "vmstat", "write.rate_bytes_per_s", 322.5 * KIB),
        (VMSTAT_DATES, "vmstat", "write.rate_bytes_per_s", 128 * KIB),
        (VMSTAT_DATES, "vmstat", "cpu_steal_percent", 0),
        (PIDSTAT, "pidstat log writer", "write.rate_bytes_per_s", 53013.335 * KIB),
        # It is in one of the two reports.
        (PIDSTAT, "pidstat agent", "write.rate_bytes_per_s", 4.76 * KIB),
        (PIDSTAT_ZH, "pidstat exchange", "write.rate_bytes_per_s", 512),
        (SAR, "sar io", "read.iops", 150),
        (SAR, "sar io", "write.rate_bytes_per_s", 4096 * 512),
        (SAR, "sar sda", "write.rate_bytes_per_s", 2048 * KIB),
        (DSTAT, "dstat total", "read.rate_bytes_per_s", 1.5 * MIB),
        (DSTAT, "dstat total", "write.rate_bytes_per_s", 45 * MIB),
        (DSTAT, "dstat cpu", "cpu_iowait_percent", 55),
        (DSTAT_CSV, "dstat total", "write.rate_bytes_per_s", 267334848),
        (DSTAT_CSV, "dstat cpu", "cpu_iowait_percent", 13.5),
        (ZPOOL, "zpool tank", "read.iops", 1536),
        (ZPOOL, "zpool tank", "write.rate_bytes_per_s", 40 * MIB),
        (ZPOOL, "zpool tank", "read.latency_ns_mean", 6 * MS),
        (ZPOOL, "zpool sda", "write.latency_ns_mean", 500 * US),
        (ZPOOL, "zpool sda", "write.device_service_ns_mean", 400 * US),
        (FREEBSD, "iostat ada0", "write.latency_ns_mean", 9 * MS),
        (FREEBSD, "iostat ada0", "write.rate_bytes_per_s", 2560 * KIB),
        (ILLUMOS, "iostat c0t0d0", "device_service_ns_mean", 9.9 * MS),
        (FILEBENCH, "filebench", "iops", 92.019),
        (FILEBENCH, "filebench", "rate_bytes_per_s", 5.5 * MIB),
        (FILEBENCH, "filebench", "readfile1/latency_ns_max", 5261.88 * MS),
        (VDBENCH, "vdbench run1; I/O rate: 5000; elapsed=4; For loops: threads=8", "iops", 5100),
        (VDBENCH, "vdbench run1; I/O rate: 5000; elapsed=4; For loops: threads=8", "write.latency_ns_mean", 2.05 * MS),
        (VDBENCH, "vdbench run1; I/O rate: 5000; elapsed=4; For loops: threads=16", "latency_ns_max", 20 * MS),
        (VDBENCH_FILES, "vdbench", "operations_per_s", 110),
        (VDBENCH_FILES, "vdbench", "read.latency_ns_mean", 1.4 * MS),
        (VDBENCH_FILES, "vdbench", "rate_bytes_per_s", 0.86 * MIB),
        (
            RBD,
            "rbd type write io_size 4096 io_threads 16 bytes 1073741824 pattern random",
            "rate_bytes_per_s",
            15 * MIB,
        ),
        (OSD_PERF, "osd-perf 2", "commit_latency_ns", 154 * MS),
        (SPDK, "spdk-perf", "latency_ns_mean", 255.5 * US),
        (WARP, "warp PUT", "rate_bytes_per_s", 334 * MIB),
        (WARP, "warp PUT", "latency_ns_p99", 1.244e9),
        (WARP, "warp PUT", "latency_ns_min", 900 * US),
        (WARP.replace("MiB/s", "MB/s"), "warp PUT", "operations_per_s", 85.5),
        (PVEPERF, "pveperf", "fsyncs_per_s", 1234.56),
        (DBENCH, "dbench-summary", "random/write.iops", 59700),
        (DBENCH, "dbench-summary", "random/read.rate_bytes_per_s", 523 * MIB),
        (DBENCH, "dbench-summary", "average_latency/write.latency_ns_mean", 76.91 * US),
        (KBENCH, "kbench", "random/write.rate_bytes_per_s", 278600 * KIB),
        (KBENCH, "kbench", "sequential/read.iops", 51400),
        (KBENCH, "kbench", "random/read.latency_ns_mean", 303 * US),
        (ELBENCHO_CSV, "elbencho", "mkdirs/files_per_s", 1600),
        (ELBENCHO_CSV, "elbencho", "write/iops", 2900),
        (ELBENCHO_CSV, "elbencho", "write/latency_ns_mean", 93 * US),
        (ELBENCHO_LIVE, "elbencho", "read/rate_bytes_per_s", 48000 * MIB),
        (ELBENCHO_LIVE, "elbencho", "read/iops", 96000),
        (ETCD, "mytest", "sync.latency_ns_mean", 1.97 * MS),
        (ETCD, "mytest", "sync.latency_ns_p99", 5 * MS),
        (DB_BENCH, "db_bench", "fillseq/latency_ns_mean", 2.1 * US),
    ],
)
def test_figures_of_what_people_post(tmp_path: Path, text: str, workload: str, metric: str, expected: float) -> None:
    assert value(opened(tmp_path / "posted.txt", text), "posted", workload, metric) == pytest.approx(expected, rel=1e-6)


def first_sentence(path: Path) -> str:
    return next(line for line in render(open_run(path), "plain").splitlines() if line.startswith("● "))


def test_syncs_lead_the_sentence_of_a_load_and_not_that_of_a_device(tmp_path: Path) -> None:
    path = tmp_path / "etcd.txt"
    path.write_text(ETCD)
    assert first_sentence(path).startswith("● sync latency mean 1.970 ms, sync latency p99 5.000 ms and rate")
    path.write_text("Device  r/s  w/s  f/s  f_await  %util\nsda  200.00  100.00  20.00  10.00  98.00\n")
    assert first_sentence(path).startswith(
        "● device busy percent 98.00%, sync latency mean 10.00 ms and read IOPS 200.0."
    )


def test_what_failed_or_was_not_counted_is_absent(tmp_path: Path) -> None:
    path = tmp_path / "posted.txt"
    for text, key, reason in (
        (DB_BENCH, "snappycomp/latency_ns_mean", "failed"),
        (PIDSTAT, "write.rate_bytes_per_s", "not accessible to pidstat"),
        (FILEBENCH, "closefile1/latency_ns_mean", "below the decimals"),
    ):
        absent = opened(path, text).metrics.filter(key=key).drop_nulls("reason")
        assert absent["value"].to_list() == [None] and reason in absent["reason"][0]
    assert "sync.iops" not in opened(path, ETCD).keys


def test_copies_of_a_script_are_rounds_without_their_mean(tmp_path: Path) -> None:
    run = opened(tmp_path / "bench.txt", BENCH_SH)
    assert run.settings == ["bench"] and run.workloads == ["bench.sh"]
    assert [value(run, "bench", "bench.sh", "write.rate_bytes_per_s", round=one) for one in (0, 1)] == [12.4e6, 1.1e9]


def test_two_volumes_side_by_side_are_settings(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "kbench.txt",
        "For: Local-Path vs Longhorn\nIOPS (Read/Write)\n"
        "        Random:   36,000 / 26,000   vs   14,000 / 9,000    :   -61.11% / -65.38%\n",
    )
    assert run.settings == ["Local-Path", "Longhorn"]
    assert value(run, "Longhorn", "kbench", "random/write.iops") == 9000


def test_a_packed_file_is_read_as_what_it_holds(tmp_path: Path) -> None:
    """Also by its name: an ending of packing is none of a setting's name."""
    plain = VMSTAT.encode()
    windows = VMSTAT.replace("\n", "\r\n")
    for ending, packed in (
        ("txt", plain),
        ("txt.gz", gzip.compress(plain)),
        ("txt.xz", lzma.compress(plain)),
        ("txt.bz2", bz2.compress(plain)),
        ("txt.zst", _native.zstd(plain) + _native.zstd(b"\n")),
        ("log", windows.encode("utf-16")),
        ("log", windows.encode("utf-16-le")),
        ("log", windows.encode("utf-16-be")),
        ("log.gz", gzip.compress(windows.encode("utf-16"))),
    ):
        path = tmp_path / f"night-run2.{ending}"
        path.write_bytes(packed)
        assert value(open_run(path), "night", "vmstat", "cpu_iowait_percent") == 55, ending


def test_a_packed_table_and_log_are_read_in_pieces(tmp_path: Path) -> None:
    table = tmp_path / "t.csv.gz"
    rows = b"".join(b"a,%d,10\nb,%d,20\n" % (n, n) for n in range(9))
    assert value(opened(table, gzip.compress(b"setting,round,iops\n" + rows)), "b", "t", "iops", round=8) == 20
    log = tmp_path / "x_bw.1.log.xz"
    log.write_bytes(lzma.compress(b"".join(b"%d, 1024, 0, 4096, 0\n" % ms for ms in range(100))))
    assert open_run(log).settings == ["x"]


def test_what_unpacks_to_too_much_or_in_part_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.gz"
    with pytest.raises(InputError, match=r"x\.gz: packed with gzip, and can't be unpacked .*; was it cut off\?"):
        opened(path, gzip.compress(b"a" * 5000)[:-9])
    for name in ("CONTENT_BYTES_MAX", "ZSTD_BYTES_MAX"):
        monkeypatch.setattr(content, name, 4000)
    for packed in (gzip.compress(b"a" * 5000), _native.zstd(b"a" * 5000)):
        with pytest.raises(
            InputError, match=r"x\.gz: holds more than 0 MiB, the most that is unpacked; unpack or split it"
        ):
            opened(path, packed)


@pytest.mark.parametrize(
    ("text", "key", "expected", "stated"),
    [
        ("c;MB/s\na;3.500,5\nb;4.100,0\n", "MB_per_s", 3500.5, "points in numbers are taken as separators"),
        ('c,iops\na,"1,234,567"\nb,"834,567"\n', "iops", 1234567, "commas in numbers are taken as separators"),
        ('c,bw\na,"4,822.5"\nb,"3,222.5"\n', "bw", 4822.5, "commas in numbers are taken as separators"),
        ("c;iops\na;1 234 567\nb;834 567\n", "iops", 1234567, "spaces in numbers"),
        ("c;iops\na;1\u202f234\u202f567,5\nb;834\u202f567,5\n", "iops", 1234567.5, "spaces in numbers"),
        ("c;iops\na;1'234'567\nb;834'567\n", "iops", 1234567, "' in numbers"),
        ("c;ms;iops\na;1,2;12.345\nb;1,1;9.456\n", "iops", 12345, "points in numbers are taken as separators"),
        ("c,read_lat_us\na,12.5\nb,13\n", "read.latency_ns_mean", 12500, ""),
        ('c,bw\na,"12,5"\nb,"13,75"\n', "bw", 12.5, "commas in numbers are taken as decimal signs"),
        ("c,IOPS (k)\na,12.5\nb,13\n", "iops", 12500, ""),
        ("c,lat (µs)\na,12.5\nb,13\n", "latency_ns_mean", 12500, ""),
        ("c,Read lat [ms]\na,12.5\nb,13\n", "read.latency_ns_mean", 12.5e6, ""),
        ("c,lat_p99 (us)\na,12.5\nb,13\n", "latency_ns_p99", 12500, ""),
        ("c,Max latency (ms)\na,12.5\nb,13\n", "latency_ns_max", 12.5e6, ""),
        ("c,99.9th percentile (ms)\na,12.5\nb,13\n", "latency_ns_p999", 12.5e6, ""),
        ("c,Runtime (ms)\na,12.5\nb,13\n", "Runtime_ns", 12.5e6, ""),
        ("c,IOPS\na,905 IOPS\nb,1.2k IOPS\n", "iops", 905, ""),
        ("c,speed\na,12.5 MiB/s\nb,1.5 GiB/s\n", "rate_bytes_per_s", 12.5 * MIB, ""),
        ("c,p99 read lat\na,1.2ms\nb,900us\n", "read.latency_ns_p99", 1.2e6, ""),
        ("c,n,iops\na,1,1.2k\nb,2,1.3k\n", "iops", 1200, ""),
        ("c,Throughput [MB/s]\na,12.5\nb,13\n", "Throughput [MB_per_s]", 12.5, ""),
    ],
)
def test_numbers_of_every_country_and_units_in_the_header(
    tmp_path: Path, text: str, key: str, expected: float, stated: str
) -> None:
    run = opened(tmp_path / "t.csv", text)
    assert value(run, "a", "t", key) == pytest.approx(expected)
    assert any(stated in one for one in run.problems) if stated else not run.problems


def test_two_columns_of_one_metric_are_both_kept(tmp_path: Path) -> None:
    run = opened(tmp_path / "t.csv", "c,lat (µs),avg lat [ms]\na,130,0.13\nb,131,0.131\n")
    assert value(run, "a", "t", "latency_ns_mean") == 130e3 and value(run, "a", "t", "avg lat [ms]") == 0.13


def test_a_stage_and_its_operations_are_what_was_measured(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "cosbench.csv",
        "Stage,Op-Name,Op-Type,Op-Count,Avg-ResTime,Throughput,Status\n"
        "init,init,init,0,N/A,0,completed\nmain,read,read,600,5.5,200.5,completed\n"
        "main,write,write,150,25.5,50.1,completed\n",
    )
    assert run.settings == ["cosbench"]
    assert value(run, "cosbench", "main[Op-Name=read,Op-Type=read]", "Throughput") == 200.5


def test_files_of_two_machines_are_settings(tmp_path: Path) -> None:
    for name, text in (("old", VMSTAT), ("new", VMSTAT_TIMES)):
        (tmp_path / f"{name}.txt.gz").write_bytes(gzip.compress(text.encode()))
    run = open_files([tmp_path / "old.txt.gz", tmp_path / "new.txt.gz"])
    assert run.settings == ["old", "new"] and run.workloads == ["vmstat"]
    assert [group.name for group in groups_of([tmp_path / "old.txt.gz", tmp_path / "new.txt.gz"]).groups] == [
        "old",
        "new",
    ]
    rounds = [tmp_path / f"{name}-{n}.txt.gz" for name in ("a", "b") for n in (1, 2)]
    for path in rounds:
        path.write_bytes(gzip.compress(VMSTAT.encode()))
    assert [(group.name, len(group.paths)) for group in groups_of(rounds).groups] == [("a", 2), ("b", 2)]


IN_A_MAIL = """\
> Throughput in MiB/s, ext4:
>
> Test            base     patched    diff
> ----------------------------------------
> seqwrite 1M     1900.5   2100.0     +10.5%
> randwrite 4k     305.2    310.1      +1.6%
"""
OF_SCHEDULERS = """\
Results (4k randread, IOPS):

                 none    mq-deadline     bfq
 jobs=1         95000          94000   81000
 jobs=4        310000         300000  180000
"""
OF_METRICS = """\
scheduler      IOPS     lat (us)
none           120000   130
bfq             80000   200
"""
CHANGED = """\
| Test | Baseline IOPS | Patched IOPS | Delta |
|------|--------------:|-------------:|------:|
| randread 4k | 10.5k | 11.2k | +6.7% |
| randwrite 4k | 38.1k | 35.0k | -8.1% |
"""
RATES_CHANGED = """\
| Workload | Before (MB/s) | After (MB/s) | % change |
|---|---|---|---|
| seq read | 500 | 550 | 10% |
"""


@pytest.mark.parametrize(
    ("text", "settings", "workload", "metric", "expected"),
    [
        (IN_A_MAIL, ["base", "patched"], "randwrite 4k", "rate_bytes_per_s", 310.1 * MIB),
        (OF_SCHEDULERS, ["none", "mq-deadline", "bfq"], "jobs=4", "iops", 180000),
        (OF_METRICS, ["none", "bfq"], "table", "latency_ns_mean", 200 * US),
        (CHANGED, ["Baseline", "Patched"], "randwrite 4k", "iops", 35000),
        (RATES_CHANGED, ["Before", "After"], "seq read", "rate_bytes_per_s", 550e6),
    ],
)
def test_columns_are_settings_of_what_their_names_or_the_text_above_say(
    tmp_path: Path, text: str, settings: list[str], workload: str, metric: str, expected: float
) -> None:
    run = opened(tmp_path / "mail.txt", f"Hi,\n\n{text}\nThanks\n")
    assert run.settings == settings
    assert value(run, settings[-1], workload, metric) == pytest.approx(expected)
    stated = [one for one in run.problems if "columns of changes are left out" in one]
    assert bool(stated) == any(word in text for word in ("diff", "Delta", "change"))


def test_aligned_words_without_results_are_no_table(tmp_path: Path) -> None:
    path = tmp_path / "free.txt"
    path.write_text(
        "        total     used     free\nMem:    16337416  2000000  1000000\nSwap:   2097148   0   2097148\n"
    )
    with pytest.raises(InputError, match="unrecognised format"):
        open_run(path)


def test_rates_after_the_name_of_their_file_or_job(tmp_path: Path) -> None:
    """What `grep IOPS= *.log` prints."""
    line = "  {}: IOPS={}, BW=977MiB/s (1024MB/s)(57.2GiB/60001msec)\n"
    path = tmp_path / "grep.txt"
    path.write_text(
        "".join(
            f"{fs}.log:" + line.format(way, f"{n}0k")
            for n, fs in ((1, "ext4"), (2, "xfs"))
            for way in ("read", "write")
        )
    )
    run = open_run(path)
    assert run.settings == ["ext4.log", "xfs.log"]
    assert value(run, "xfs.log", "fio", "write.iops") == 20000 and value(run, "xfs.log", "fio", "iops") == 40000
    run = opened(path, "".join(f"rand{way}:" + line.format(way, "10k") for way in ("read", "write")))
    assert run.workloads == ["randread", "randwrite"] and value(run, "grep", "randread", "iops") == 10000


def test_lines_of_io_uring_are_rounds_below_their_titles(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "mail.txt",
        "> Before:\n> IOPS=4.50M, BW=2.20GiB/s, IOS/call=32/31\n> IOPS=4.52M, BW=2.21GiB/s, IOS/call=32/31\n"
        "> After:\n> IOPS=480K, BW=234MiB/s, IOS/call=32/31\n",
    )
    assert run.settings == ["Before", "After"]
    assert value(run, "Before", "t-io_uring", "iops", round=1) == 4.52e6
    assert value(run, "After", "t-io_uring", "iops") == 480e3


RECORDS = "1024+0 records in\n1024+0 records out\n"
COPIED = "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 4 s, 268 MB/s\n"
METER = "300000000 bytes (300 MB, 286 MiB) copied, 1 s, 300 MB/s"


@pytest.mark.parametrize("between", ["\r", "\n"])
def test_the_progress_meter_of_dd_is_no_measurement(tmp_path: Path, between: str) -> None:
    """As a terminal shows it, and as it is posted."""
    run = opened(tmp_path / "dd.txt", f"{METER}{between}6{METER[1:]}\n{RECORDS}{COPIED}" * 2)
    assert run.workloads == ["dd"] and run.problems == []
    assert [value(run, "dd", "dd", "elapsed_s", round=one) for one in (0, 1)] == [4, 4]


def test_machines_of_bonnie_are_settings_if_there_are_several(tmp_path: Path) -> None:
    line = "1.97,1.97,{},1,1400000000,16G,,500,90,{},20,40000,10,1055,90,120000,12,250.5,1,16,,,,,"
    line += ",".join(["5000,20"] * 6) + ",1us" * 12 + "\n"
    path = tmp_path / "bonnie.csv"
    run = opened(path, line.format("ext4", 90000) + line.format("xfs", 95000))
    assert run.settings == ["ext4", "xfs"]
    assert value(run, "xfs", "bonnie++", "put_block/rate_bytes_per_s") == 95000 * KIB
    assert opened(path, line.format("host", 90000) + line.format("host", 95000)).settings == ["bonnie"]


def test_timed_commands_are_workloads(tmp_path: Path) -> None:
    times = "real\t0m{}s\nuser\t0m0.016s\nsys\t0m1.365s\n\n"
    path = tmp_path / "shell.txt"
    path.write_text(f"$ time cp a b\n{times.format(50.5)}root@h:~# time sync -f b\n{times.format(2)}")
    run = open_run(path)
    assert run.workloads == ["cp a b", "sync -f b"] and value(run, "shell", "cp a b", "elapsed_s") == 50.5


def test_diskspd_below_headings(tmp_path: Path) -> None:
    """Lines that end in a colon in each output are the tool's own."""
    output = (
        "Input parameters:\n\nResults for timespan 1:\n\nactual test time:       30.00s\n\nTotal IO\n"
        "thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  file\n"
        "total:        2000000000 |       244140 |      {} |    8000.00\n"
    )
    path = tmp_path / "issue.md"
    path.write_text(f"## **Before the change**\n{output.format(60)}## **After the change**\n{output.format(70)}")
    run = open_run(path)
    assert run.settings == ["Before the change", "After the change"]
    assert value(run, "After the change", "diskspd", "rate_bytes_per_s") == 70 * MIB


@pytest.mark.parametrize(
    ("text", "workload", "metric", "expected"),
    [
        (
            "  pts/fio-1.15.0 [Type: Random Read]\n    Test 1 of 1\n        250000\n        251000\n\n"
            "    Average: 250500 IOPS\n    Deviation: 0.40%\n",
            "phoronix fio-1.15.0 Type: Random Read",
            "iops",
            250000,
        ),
        (
            '{"bytes_written": 1073741824, "blocksize": 4194304, "elapsed_sec": 4.5, "bytes_per_sec": 238609294.2}',
            "rados",
            "rate_bytes_per_s",
            238609294.2,
        ),
        (
            "--- /dev/sda (device 298.1 Gb) ioping statistics ---\n"
            "186 requests completed in 3001.5 ms, 62 iops, 0.2 mb/s\n"
            "min/avg/max/mdev = 6.6/16.1/54.9/5.3 ms\n",
            "ioping",
            "latency_ns_mean",
            16.1 * MS,
        ),
        ("Throughput 40.89 MB/sec (sync open) (sync dirs) 5 procs\n", "dbench 5 procs", "rate_bytes_per_s", 40.89e6),
        ("read : io=3071.7MB, bw=98.3MB/s, iops=25151 , runt= 31252msec\n", "fio", "iops", 25151),
    ],
)
def test_more_figures_of_what_people_post(
    tmp_path: Path, text: str, workload: str, metric: str, expected: float
) -> None:
    assert value(opened(tmp_path / "posted.txt", text), "posted", workload, metric) == pytest.approx(expected, rel=1e-4)


def test_what_posting_adds_to_each_line_is_taken_off(tmp_path: Path) -> None:
    """Colours of a terminal, the plus signs of a review, a page of HTML."""
    path = tmp_path / "posted.txt"
    for text in (
        ETCD.replace("write:", "\x1b[1;32mwrite\x1b[0m:").replace("mytest: (groupid", "\x1b[0mmytest: (groupid"),
        "@@ -0,0 +1,14 @@\n" + "".join(f"+{line}\n" for line in ETCD.splitlines()),
        f"<html><body><pre>\nHi,\n{ETCD.replace('<', '&lt;')}</pre></body></html>\n",
    ):
        run = opened(path, text)
        assert value(run, "posted", "mytest", "write.iops") == pytest.approx(500, rel=0.01), text
        assert value(run, "posted", "mytest", "sync.latency_ns_mean") == 1.97 * MS


def test_a_job_without_rates_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.txt"
    path.write_text("\n".join(line for line in ETCD.splitlines() if "IOPS=" not in line))
    assert any("no rates are below the line of job mytest" in one for one in open_run(path).problems)


def test_sums_of_fio_after_the_name_of_their_file(tmp_path: Path) -> None:
    """What `grep -E 'READ:|WRITE:' *.txt` prints, and such lines alone."""
    line = "{0}   {1}: bw={2}.0MiB/s (1MB/s), 1.0MiB/s-1.0MiB/s (1MB/s-1MB/s), io={2}0MiB (1MB), run=10000-10000msec\n"
    path = tmp_path / "grep.txt"
    path.write_text(
        "".join(line.format(f"{name}:", way, n) for name, n in (("bfq", 1), ("none", 2)) for way in ("READ", "WRITE"))
    )
    run = open_run(path)
    assert run.settings == ["bfq", "none"] and run.state.rounds == 1
    assert value(run, "none", "fio", "write.rate_bytes_per_s") == 2 * MIB
    run = opened(path, line.format("", "READ", 1) + line.format("", "READ", 3))
    assert [value(run, "grep", "fio", "rate_bytes_per_s", round=one) for one in (0, 1)] == [MIB, 3 * MIB]


def test_summaries_of_dbench_after_a_name(tmp_path: Path) -> None:
    path = tmp_path / "issue.txt"
    path.write_text("".join(f"{name}: {DBENCH.splitlines()[1]}\n" for name in ("Bare metal", "virtiofs")))
    run = open_run(path)
    assert run.settings == ["Bare metal", "virtiofs"]
    assert value(run, "virtiofs", "dbench-summary", "random/write.iops") == 59700


def test_outputs_of_sysbench_below_titles_are_settings(tmp_path: Path) -> None:
    output = (
        "Running the test with following options:\nNumber of threads: 4\n\nDoing random r/w test\n\nFile operations:\n"
        "    reads/s:                      {}.00\n\nGeneral statistics:\n    total time:               10.0030s\n\n"
    )
    path = tmp_path / "mail.txt"
    path.write_text("".join(f"{name}:\n{output.format(n)}" for name, n in (("XFS", 1000), ("ZFS", 500))))
    run = open_run(path)
    assert run.settings == ["XFS", "ZFS"]
    assert value(run, "ZFS", "sysbench fileio rndrw[threads=4]", "read.iops") == 500


def test_how_it_was_accessed_is_no_setting(tmp_path: Path) -> None:
    run = opened(tmp_path / "t.csv", "bs,rw,iops\n4k,randread,100\n4k,randwrite,90\n")
    assert run.settings == ["t"]
    assert run.workloads == ["csv[bs=4k,rw=randread]", "csv[bs=4k,rw=randwrite]"]


@pytest.mark.parametrize(
    "name",
    ["elbencho-3.txt", "ior-4.txt", "iozone-489-throughput.txt", "mdtest.txt", "stress-ng-0.15.06.txt", "diskspd.txt"],
)
def test_outputs_before_and_after_a_change_are_no_rounds(name: str, tmp_path: Path) -> None:
    before = (Path(__file__).parent / "imported" / name).read_text()
    after = re.sub(r"(?<=\d)7(?=\d*\b)", "8", before)
    assert opened(tmp_path / "mail.txt", f"Before:\n\n{before}\n\nAfter:\n\n{after}\n").settings == ["Before", "After"]


@pytest.mark.parametrize(
    ("given", "order"),
    [
        (("after.csv", "before.csv"), ["before", "after"]),
        (("new-1.csv", "new-2.csv", "fio_old-1.csv", "fio_old-2.csv"), ["fio_old", "new"]),
        (("bold.csv", "cold.csv"), ["bold", "cold"]),
        (("x-old.csv", "a.csv", "y-old.csv"), ["x-old", "a", "y-old"]),
    ],
)
def test_what_is_called_the_earlier_is_the_baseline(tmp_path: Path, given: tuple[str, ...], order: list[str]) -> None:
    """A shell sorts `after` before `before`, and *old is slower than new* is the answer upside down."""
    for name in given:
        (tmp_path / name).write_text("iops\n100\n")
    assert [group.name for group in groups_of([tmp_path / name for name in given]).groups] == order


TESTS = "setting,round,{0}1_ms,{0}2_ms\n" + "".join(
    f"{name},{turn},10,{value}\n" for turn in (1, 2, 3) for name, value in (("old", 20), ("new", 40))
)


@pytest.mark.parametrize("called", ["test", "run", "q"])
def test_numbered_columns_beside_one_of_rounds_are_metrics(tmp_path: Path, called: str) -> None:
    run = opened(tmp_path / "tests.csv", TESTS.format(called))
    assert [value(run, name, *run.workloads, f"{called}2_ms") for name in ("old", "new")] == [20, 40]


@pytest.mark.parametrize("mean", ["", ",average"])
def test_numbered_tests_are_rounds_of_what_somebody_made_a_mean_of(tmp_path: Path, mean: str) -> None:
    of_rows = [
        f"{name},{one},{one + 2}{',' + str(one + 1) if mean else ''}" for name, one in (("old", 10), ("new", 20))
    ]
    run = opened(tmp_path / "tests.csv", "\n".join([f"setting,test1,test2{mean}", *of_rows, ""]))
    assert run.trials.height == (4 if mean else 2)


def _loop(of: str, seconds: tuple[float, ...]) -> list[str]:
    return [
        f"# for i in 1 2 3; do dd if=/dev/zero of={of} bs=1M count=4096 oflag=direct; done",
        *(f"4294967296 bytes (4.3 GB, 4.0 GiB) copied, {one} s, {4294.967296 / one:.0f} MB/s" for one in seconds),
    ]


def test_rounds_are_paired_only_if_they_were_taken_in_turns(tmp_path: Path) -> None:
    loops = _loop("/mnt/a/t", (10.0, 10.5, 11.0)), _loop("/mnt/b/t", (10.5, 11.0, 11.6))
    run = opened(tmp_path / "loops.txt", "\n".join((*loops[0], *loops[1], "")))
    assert len(run.settings) == 2 and run.pairing(*run.settings) == "none"
    in_turns = [line for turn in range(3) for loop in loops for line in (loop[0], loop[1 + turn])]
    run = opened(tmp_path / "turns.txt", "\n".join((*in_turns, "")))
    assert len(run.settings) == 2 and run.pairing(*run.settings) == "round"
