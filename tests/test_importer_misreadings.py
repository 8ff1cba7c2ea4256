"""Texts of which a figure could be read as something else: of another setting, of another unit, of another column."""

import re
from pathlib import Path

import pytest
from iolab.base.quantity import Scale
from iolab.files.importer.run_import import open_run
from iolab.presentation.table.words import beside
from test_importer import value
from test_importer_headings import figures, refusal

MIB, MB = 1 << 20, 1e6
MS, US = 1e6, 1e3

_LINSTOR = (
    "With:\ntool options --protocol {} --rcvbuf-size {} --disk-flushes no --c-fill-target 24000 --ping-timeout 300\n\n"
    "Random Read/Write IOPS: {}k/22.3k. BW: 9601MiB/s / 111MiB/s\n\n"
)
_HDPARM = "/dev/{}:\n Timing buffered disk reads: {} MB in  2.00 seconds = {:.2f} MB/sec\n\n"
_DD = "4294967296 bytes (4.3 GB, 4.0 GiB) copied, {} s, {}\n"
_BENCH = (
    '{}: {{\n    "bytes_written": 1073741824,\n    "blocksize": 4194304,\n    "elapsed_sec": 2.0,\n    "iops": {}\n}}\n'
)
_SUM = "{}: {}: bw={}MiB/s (1071MB/s), io={}MiB (32.1GB), run=10000-10000msec\n"
_JOB = (
    "seqw: (groupid=0, jobs=1): err= 0: pid={}: Mon Mar  1 10:00:10 2021\n"
    "  write: IOPS={}, BW={}MiB/s (537MB/s)({}MiB/10000msec); 0 zone resets\n"
)
_QUOTED = (
    "            | 5.10     | 5.10+patch\n------------+----------+-----------\nIOPS        | 412k     | 455k (+10.4%)\n"
)
APART = {
    "long commands below equal titles": (
        _LINSTOR.format("A", 10485760, 294) + _LINSTOR.format("C", 0, 322),
        {
            ("--protocol A --rcvbuf-size 10485760", "dbench-summary", "random/read.iops"): 294e3,
            ("--protocol C --rcvbuf-size 0", "dbench-summary", "random/read.iops"): 322e3,
        },
    ),
    "the same drives below titles": (
        f"Machine 1:\n\n{_HDPARM.format('sda', 1000, 500)}{_HDPARM.format('sdb', 400, 200)}"
        f"Machine 2:\n\n{_HDPARM.format('sda', 600, 300)}",
        {
            ("Machine 1", "hdparm[/dev/sda]", "buffered_disk/rate_bytes_per_s"): 500 * MIB,
            ("Machine 1", "hdparm[/dev/sdb]", "buffered_disk/rate_bytes_per_s"): 200 * MIB,
            ("Machine 2", "hdparm[/dev/sda]", "buffered_disk/rate_bytes_per_s"): 300 * MIB,
        },
    ),
    "drives above a title, and below it": (
        f"{_HDPARM.format('sda', 1000, 500)}{_HDPARM.format('sdb', 400, 200)}with the new HBA:\n"
        f"{_HDPARM.format('sda', 1200, 600)}{_HDPARM.format('sdb', 402, 201)}",
        {
            ("posted", "hdparm[/dev/sda]", "buffered_disk/rate_bytes_per_s"): 500 * MIB,
            ("with the new HBA", "hdparm[/dev/sda]", "buffered_disk/rate_bytes_per_s"): 600 * MIB,
            ("with the new HBA", "hdparm[/dev/sdb]", "buffered_disk/rate_bytes_per_s"): 201 * MIB,
        },
    ),
    "daemons of ceph tell": (
        _BENCH.format("osd.0", 106.0) + _BENCH.format("osd.1", 28.0),
        {("posted", "rados[osd.0]", "iops"): 106, ("posted", "rados[osd.1]", "iops"): 28},
    ),
    "names above lines of dd in MB/s and in GB/s": (
        f"mq-deadline\n{_DD.format(16, '268 MB/s')}bfq\n{_DD.format(2, '2.1 GB/s')}",
        {("mq-deadline", "dd", "elapsed_s"): 16, ("bfq", "dd", "elapsed_s"): 2},
    ),
    "reads of all nodes, then their writes": (
        "".join(
            _SUM.format(node, way, rate, 10 * rate)
            for way, rates in (("READ", (1021, 233)), ("WRITE", (611, 141)))
            for node, rate in zip(("node1", "node3"), rates, strict=True)
        ),
        {
            ("node1", "fio", "rate_bytes_per_s"): (1021 + 611) * MIB,
            ("node3", "fio", "write.rate_bytes_per_s"): 141 * MIB,
        },
    ),
    "snapshots of one job": (
        _JOB.format(1234, 512, 512, 5120) + _JOB.format(1234, 487, 488, 4880),
        {("posted", "seqw", "iops"): 487, ("posted", "seqw", "rate_bytes_per_s"): 488 * MIB},
    ),
    "jobs of one name that ran at once": (
        _JOB.format(1234, 512, 512, 5120) + _JOB.format(1235, 487, 488, 4880),
        {("posted", "seqw", "rate_bytes_per_s"): 1000 * MIB},
    ),
    "rounds beside their mean and its spread": (
        "IOPS:\n\n              run1   run2   run3   avg ± sd\nconsumer SSD   412    398    421   410 ± 11\n"
        "PM883        11230  11410  11105   11248 ± 153\n",
        {("consumer SSD", "table", "iops", 1): 398, ("PM883", "table", "iops", 2): 11_105},
    ),
}


@pytest.mark.parametrize("form", APART)
def test_what_is_of_different_things_is_no_round_of_one(tmp_path: Path, form: str) -> None:
    figures(tmp_path, *APART[form])


def test_changes_and_spreads_behind_figures_are_named_and_left_out(tmp_path: Path) -> None:
    change, spread = "changes behind figures are left out", "what follows ± in a cell is left out"
    problems = figures(tmp_path, _QUOTED, {("5.10", "table", "iops"): 412e3, ("5.10+patch", "table", "iops"): 455e3})
    assert [change in one for one in problems] == [True]
    spaced = "  kernel     seq read MB/s     rand read kIOPS\n  6.1.55     3412 ± 12         512.3 ± 1.2\n"
    problems = figures(
        tmp_path,
        f"Numbers:\n\n{spaced}  6.5.3      3399 ± 20         498.1 ± 2.2\n",
        {("6.5.3", "table[rand read]", "read.iops"): 498_100},
    )
    assert [spread in one for one in problems] == [True]


COMMAS = {
    "a tool in German": (
        "Sequential:\nRead: 2.812,96 MB/s\nWrite: 1.021 MB/s\n\nAccess Times:\nRead: 0,034 ms\nWrite: 0,026 ms\n",
        {
            ("posted", "Read", "read.rate_bytes_per_s"): 2812.96 * MB,
            ("posted", "Write", "write.rate_bytes_per_s"): 1021 * MB,
            ("posted", "list", "Read_ns"): 34e3,
        },
    ),
    "cells without units": (
        "Vergleich (MB/s):\n\nTest            HDD-RAID5   SSD-RAID1\nSeq. Lesen      512,3       1.021,7\n"
        "Seq. Schreiben  301,1       498,25\n",
        {
            ("SSD-RAID1", "Seq. read", "rate_bytes_per_s"): 1021.7 * MB,
            ("HDD-RAID5", "Seq. write", "rate_bytes_per_s"): 301.1 * MB,
        },
    ),
    "beside figures with points, those alone that are sure": (
        "- read latency: 0,25 ms\n- write latency: 1.25 ms\n- read rate: 1,205 MB/s\n",
        {
            ("posted", "read", "read.latency_ns_mean"): 0.25 * MS,
            ("posted", "write", "write.latency_ns_mean"): 1.25 * MS,
            ("posted", "read", "read.rate_bytes_per_s"): 1205 * MB,
        },
    ),
    "none": (
        "- read: 1,205 IOPS\n- write: 12,345 IOPS on CPUs 1,2 and 3,4\n- write latency: 1,250 ms\n",
        {("posted", "read", "read.iops"): 1205, ("posted", "write", "write.latency_ns_mean"): 1250 * MS},
    ),
}


@pytest.mark.parametrize("form", COMMAS)
def test_a_decimal_comma_parts_no_thousands(tmp_path: Path, form: str) -> None:
    problems = figures(tmp_path, *COMMAS[form])
    assert any("commas in figures are taken as decimal signs" in one for one in problems) is (form != "none")


_FIO = "  read: IOPS={0}, BW={0}MiB/s ({0}MB/s)({1}MiB/10000msec)\n"
_PERF = " Performance counter stats for 'system wide':\n   412,112,334,112      cycles\n\n"
BESIDE = {
    "perf stat": (
        f"Before:\n{_FIO.format(100, 1000)}{_PERF}After:\n{_FIO.format(200, 2000)}{_PERF}",
        {("After", "fio", "iops"): 200},
        "posted.txt:3: the report of perf stat beside these figures is not read",
    ),
    "a histogram of bcc": (
        "p50=395us p75=615us p90=885us p99=1500us \nand\n     usecs               : count     distribution\n"
        "       256 -> 511        : 7373     |****                    |\n",
        {("posted", "iolatpcts", "latency_ns_p99"): 1500 * US},
        "posted.txt:3: a histogram beside these figures is not read: read it with iolab trace",
    ),
    "a chat": (
        "<ann> ext4: 41k-43k iops randread, xfs 44-45k\n<bob> thats with bs=4k?\n<ann> yep qd32\n<bob> p99?\n"
        "<ann> 1.2ms ext4, 0.9 xfs\n",
        {("xfs", "list", "latency_ns_p99"): 0.9 * MS},
        "1: 1 figure of these sentences is not read",
    ),
}


@pytest.mark.parametrize("form", BESIDE)
def test_figures_beside_others_are_named(tmp_path: Path, form: str) -> None:
    text, wanted, problem = BESIDE[form]
    assert any(problem in one for one in figures(tmp_path, text, wanted))


def test_a_percentile_that_fio_prints_is_read(tmp_path: Path) -> None:
    printed = (
        "r: (groupid=0, jobs=1): err= 0: pid=77: Fri Mar  1 10:11:33 2024\n"
        "  read: IOPS=88.1k, BW=344MiB/s (361MB/s)(6883MiB/20001msec)\n"
        "     lat (usec): min=82, max=3125, avg=724.24, stdev=91.22\n    clat percentiles (usec):\n"
        "     | 50.00th=[  709], {}99.00th=[ 1012]\n"
    )
    figures(tmp_path, printed.format("95.00th=[  881], "), {("posted", "r", "latency_ns_p95"): 881 * US})
    (tmp_path / "posted.txt").write_text(printed.format(""))
    assert open_run(tmp_path / "posted.txt").metrics.filter(key="latency_ns_p95").height == 0


_HTML = (
    '<table border="1">\n<tr><th rowspan="2">Drive</th><th colspan="2">Read</th><th colspan="2">Write</th></tr>\n'
    "<tr><th>IOPS</th><th>Lat (µs)</th><th>IOPS</th><th>Lat (µs)</th></tr>\n"
    "<tr><td>A</td><td>402,112</td><td>79</td><td>351,220</td><td>91</td></tr>\n"
    "<tr><td>B</td><td>398,120</td><td>80</td><td>91,332</td><td>350</td></tr>\n</table>\n"
)
_WRAPPED = "".join(
    f">   {way}: IOPS={rate}, BW={rate}MiB/s (1294MB/s)({10 * rate}MiB/10000msec); 0\n> zone resets\n"
    f">      lat (usec): min=100, max=99000, avg={10 * rate}.10,\n> stdev=1300.11\n"
    for way, rate in (("read", 1234), ("write", 812))
)
HEADINGS = {
    "a name over two rows of names": (
        _HTML,
        {
            ("A", "table", "read.iops"): 402_112,
            ("A", "table", "read.latency_ns_mean"): 79 * US,
            ("B", "table", "write.iops"): 91_332,
            ("B", "table", "write.latency_ns_mean"): 350 * US,
        },
    ),
    "what a mail wrapped of fio's output": (
        _WRAPPED,
        {
            ("posted", "fio", "read.iops"): 1234,
            ("posted", "fio", "read.latency_ns_mean"): 12340.1 * US,
            ("posted", "fio", "write.latency_ns_stddev"): 1300.11 * US,
        },
    ),
    "a summary below a line in bold": (
        "**Setup**: 3 nodes, 1GbE\n\n"
        + "".join(
            f"<details><summary>{name}</summary>\n\n```\n{_FIO.format(rate, 10 * rate)}```\n</details>\n\n"
            for name, rate in (("OpenEBS 2.4", 100), ("Longhorn 1.5", 200))
        ),
        {("OpenEBS 2.4", "fio", "iops"): 100, ("Longhorn 1.5", "fio", "iops"): 200},
    ),
    "iozone's names in one line": (
        "      kB  reclen    write  rewrite    read    reread    random read  random write\n"
        " 1048576       4   412331   501223  1501223  1512233      91223      88112\n",
        {
            ("posted", "iozone[file_kib=1048576,record_kib=4]", "random_read/rate_bytes_per_s"): 91_223 * 1024,
            ("posted", "iozone[file_kib=1048576,record_kib=4]", "random_write/rate_bytes_per_s"): 88_112 * 1024,
        },
    ),
    "a unit in the sentence above, for rows without": (
        "Latency, lower is better. Throughput in MiB/s.\n\n|        | A | B |\n|--------|---:|---:|\n"
        "| Seq read | 412 | 688 |\n| Rand read 4k (IOPS) | 10.1k | 22k |\n| Threads | 4 | 8 |\n",
        {("B", "Seq read", "read.rate_bytes_per_s"): 688 * MIB, ("A", "Rand read 4k", "read.iops"): 10_100},
    ),
    "a rule of one dash per column": (
        "|fs|iops|\n|-|-|\n|ext4|412|\n|xfs|433|\n",
        {("ext4", "table", "iops"): 412, ("xfs", "table", "iops"): 433},
    ),
}


@pytest.mark.parametrize("form", HEADINGS)
def test_names_and_units_are_those_of_their_figures(tmp_path: Path, form: str) -> None:
    figures(tmp_path, *HEADINGS[form])


NAMES = {
    "versions of a program within labels": (
        "".join(
            f"restic 0.9.{version} {cache} cache, first backup:  {time} s\n"
            for version, cache, time in ((5, "cold", 27.27), (5, "hot", 15.96), (6, "cold", 29.98), (6, "hot", 14.47))
        ),
        {
            ("restic 0.9.5", "cold cache, first backup", "time_ns"): 27.27e9,
            ("restic 0.9.6", "hot cache, first backup", "time_ns"): 14.47e9,
        },
    ),
    "file systems at the end of labels": (
        "sync on bfq: 720 s\nsync on xfs: 600 s\n",
        {("bfq", "sync on", "time_ns"): 720e9, ("xfs", "sync on", "time_ns"): 600e9},
    ),
    "figures before names": (
        "12 minutes - Windows 10\n19 minutes - Docker 2.1.0 on a volume\n71 minutes - Docker 2.3.0 on a volume\n",
        {("Docker 2.1.0", "on a volume", "time_ns"): 1140e9, ("posted", "list", "Windows 10_ns"): 720e9},
    ),
    "assignments behind a name": (
        "ext4 iops=121990 bw=476MiB/s\nxfs iops=119870 bw=468MiB/s\n",
        {("ext4", "list", "iops"): 121_990, ("xfs", "list", "rate_bytes_per_s"): 468 * MIB},
    ),
    "bars of signs": (
        "Sequential write (MB/s):\n\next4   ######################## 512\nxfs    ########################### 547\n",
        {("ext4", "list", "rate_bytes_per_s"): 512 * MB, ("xfs", "list", "rate_bytes_per_s"): 547 * MB},
    ),
    "bytes in words": (
        "   Speed :           112,345,678 Bytes/sec.\n\nafter enabling multichannel:\n\n"
        "   Speed :           401,233,112 Bytes/sec.\n",
        {
            ("posted", "list", "rate_bytes_per_s"): 112_345_678,
            ("after enabling multichannel", "list", "rate_bytes_per_s"): 401_233_112,
        },
    ),
    "colons in names of files": (
        "out-32G@06:52:  read: IOPS=240, BW=240MiB/s (252MB/s)(2400MiB/10000msec)\n"
        "out-64G@07:12:  read: IOPS=120, BW=120MiB/s (126MB/s)(1200MiB/10000msec)\n",
        {("out-32G", "fio", "iops"): 240, ("out-64G", "fio", "iops"): 120},
    ),
    "a time per operation in names of columns": (
        "bench       old ns/op   new ns/op   delta\nRead4K      1123.0      998.1       -11.1%\n"
        "Write4K     2211.0      2230.2      +0.87%\n",
        {
            ("old", "go-bench Read4K", "latency_ns_mean"): 1123,
            ("new", "go-bench Write4K", "latency_ns_mean"): 2230.2,
        },
    ),
    "means with their ranges": (
        "| Case | A RPS | B RPS |\n|---|---|---|\n| 1K | 341,127 (334,187\u2013346,283) | 491,129 (442,304-543,360)|\n",
        {("A", "1K", "RPS"): 341_127},
    ),
    "spreads in a list": (
        "chunk=64K   seqread 412±9 MB/s  seqwrite 188±12 MB/s\nchunk=256K  seqread 431±7 MB/s  seqwrite 201±9 MB/s\n",
        {
            ("chunk=64K", "seqread", "read.rate_bytes_per_s"): 412 * MB,
            ("chunk=256K", "seqwrite", "write.rate_bytes_per_s"): 201 * MB,
        },
    ),
}


@pytest.mark.parametrize("form", NAMES)
def test_labels_keep_their_names(tmp_path: Path, form: str) -> None:
    figures(tmp_path, *NAMES[form])


def test_columns_of_iostat_in_a_csv_file_are_what_iostat_calls_so(tmp_path: Path) -> None:
    header = "time,device,r/s,w/s,rMB/s,wMB/s,await\n"
    text = f"{header}10:00:01,sda,12.1,301.2,0.2,12.3,4.1\n10:00:01,sdb,11.1,9.2,0.2,12.2,9.9\n"
    (tmp_path / "posted.csv").write_text(text)
    run = open_run(tmp_path / "posted.csv")
    assert value(run, "sda", "posted", "write.rate_bytes_per_s") == pytest.approx(12.3 * MIB)
    assert value(run, "sdb", "posted", "latency_ns_mean") == pytest.approx(9.9 * MS)


def test_a_unit_is_left_out_behind_its_own_word_alone() -> None:
    seconds = Scale(1.0, "s", 0)
    assert beside("sync on xfs", seconds, 600) == seconds.with_unit(600)


REFUSED = {
    "a change of sources": (
        "4k randread, before -> after in KIOPS:\n\n  jobs=1     1050 -> 1061\n\n---\n a.c | 3 +-\n"
        " 1 file changed, 25 insertions(+), 6 deletions(-)\n",
        "a change of sources, which is not read; if its text has results",
    ),
    "/proc/diskstats": (
        " 259       0 nvme0n1 1203441 2211 98213442 203112 881233 110233 55123312 991233 0 301233 1194345 0 0 0 0 0 0\n"
        * 2,
        "a copy of /proc/diskstats, which is not read; .*iostat -x",
    ),
    "nvme's histogram": (
        "Group 1: Range is 0-1ms, step is 32us\nBucket  0: 0us to 32us: 1021\nBucket  1: 32us to 64us: 88123\n",
        "a histogram of the nvme tool, which is not read",
    ),
    "ratios": (
        "Relative to: base\ncol-1 : new\n\ncol-1\tcol-2\n0.30\t0.31\thot-points\n1.01\t1.00\tpoint-query\n",
        "a table of ratios alone, which is not read",
    ),
    "a unit that stands elsewhere": ("Write (MB/s):\n\next4 was 512\n", "no figure of it has its unit beside it"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_a_refusal_names_the_kind(tmp_path: Path, form: str) -> None:
    text, message = REFUSED[form]
    assert re.search(message, refusal(tmp_path, text))
