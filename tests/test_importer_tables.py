"""Tables that people type: which rows are rounds and which columns are settings, and what of a table was not measured.

Texts are written as such posts are, with figures of their own."""

from pathlib import Path
from typing import Any

import pytest
from iolab.files.importer.html_table import with_bars
from test_importer_headings import figures, refusal

MB, GB, MIB = 1e6, 1e9, 2**20
MS, US = 1e6, 1e3
Figures = dict[tuple[Any, ...], float]

KINDS: dict[str, tuple[str, Figures]] = {
    "a column of tests parts rows of one size": (
        "| Block | Metric | Before | After | Change |\n|---|---|---|---|---|\n"
        "| 4 KiB | Sequential write | 60 MiB/s | 720 MiB/s | 12x |\n"
        "| 4 KiB | Random write | 15,000 IOPS | 41,000 IOPS | |\n",
        {
            ("Before", "4 KiB[Metric=Sequential write]", "write.rate_bytes_per_s"): 60 * MIB,
            ("After", "4 KiB[Metric=Random write]", "write.iops"): 41_000,
        },
    ),
    "thousands in a first column are how much was done": (
        "| Files | Duration | Throughput |\n|---|---|---|\n| 1,000 | 5.5s | 182.5 files/s |\n"
        "| 10,000 | 54.7s | 183 files/s |\n",
        {("posted", "table[Files=10,000]", "operations_per_s"): 183},
    ),
    "numbers of rows are no names": (
        "| # | Test | Old IOPS | Old Lat (ms) | New IOPS | New Lat (ms) |\n|---|---|---|---|---|---|\n"
        "| 01 | Verify, 4x64 | 95 | 671 | 308 | ~208 |\n| 02 | Deep, 1x1024 | 96 | 10,713 | 3,302 | ~310 |\n",
        {
            ("Old", "Deep, 1x1024", "latency_ns_mean"): 10_713 * MS,
            ("New", "Verify, 4x64", "iops"): 308,
        },
    ),
    "statistics are no settings": (
        "Metric            Avg        Max        Min\nRead Iops    66,000.12  67,000.73  65,000.51\n"
        "Write Iops   66,100.23  67,100.78  65,100.68\n",
        {("posted", "Read", "read.iops"): 66_000.12},
    ),
    "a percentile ends a row's name": (
        "Sequential write latency (us):\n                baseline    patched     change\n"
        "  cached p50      3031.0     1055.3     -65.2%\n  cached p99     74973.2    21626.9     -71.2%\n",
        {
            ("baseline", "cached", "latency_ns_p50"): 3031 * US,
            ("patched", "cached", "latency_ns_p99"): 21626.9 * US,
        },
    ),
    "extremes behind a rate": (
        "                v6.15     v6.16\niops (min)  3,996.00  5,921.60\niops (avg)  4,526.25  6,295.31\n"
        "bw (MB/s)      18.54     25.78\n",
        {
            ("v6.15", "table", "iops_min"): 3996,
            ("v6.16", "table", "iops"): 6295.31,
            ("v6.16", "table", "rate_bytes_per_s"): 25.78 * MB,
        },
    ),
    "a mean beside tests makes them rounds": (
        "[req/s]    test1    test2    mean\nw/o patch  514,664  519,040  516.9k\nw/  patch  516,863  526,337  521.6k\n",
        {("w/o patch", "table", "operations_per_s", 1): 519_040},
    ),
    "rounds in brackets": (
        "seq-write  [1/2] = 1331.20 MB/s\nseq-write  [2/2] = 1433.60 MB/s\n",
        {("posted", "seq-write", "write.rate_bytes_per_s", 1): 1433.6 * MB},
    ),
    "titles of options above lists": (
        "base, RETPOLINE=n, mitigations=off\nMaximum IOPS=12837K\nMaximum IOPS=12812K\n\n"
        "next, RETPOLINE=n, mitigations=off\nMaximum IOPS=12877K\nMaximum IOPS=12870K\n",
        {("next, RETPOLINE=n, mitigations=off", "list", "iops_max", 1): 12_870_000},
    ),
    "bold and a remark in a cell": (
        "| Quantity | Measured |\n|---|---|\n| SSD sequential read | **3.2 GB/s** (4.2 GB in 1.3 s, cold) |\n"
        "| other | 2 GB/s |\n",
        {("posted", "SSD sequential read", "read.rate_bytes_per_s"): 3.2 * GB},
    ),
    "several figures by name": (
        "| Test | old | new |\n|---|---|---|\n| 4K random write | IOPS=93.7k, BW=366MiB/s | IOPS=182k, BW=712MiB/s |\n"
        "| 1M random read | IOPS=2098, BW=2099MiB/s | IOPS=2731, BW=2732MiB/s |\n",
        {
            ("old", "4K random write", "write.iops"): 93_700,
            ("new", "1M random read", "read.rate_bytes_per_s"): 2732 * MIB,
        },
    ),
    "tags of a forum": (
        '[TABLE="width: 0"]\n[TR]\n[TD][/TD]\n[TD]A[/TD]\n[TD]B[/TD]\n[/TR]\n[TR]\n[TD]4K read[/TD]\n[TD]94 MB/s[/TD]\n'
        "[TD]140 MB/s\n\n[/TD]\n[/TR]\n[TR]\n[TD]4K write[/TD]\n[TD]40 MB/s[/TD]\n[TD]41 MB/s[/TD]\n[/TR]\n[/TABLE]\n",
        {("B", "4K read", "read.rate_bytes_per_s"): 140 * MB, ("A", "4K write", "write.rate_bytes_per_s"): 40 * MB},
    ),
    "cells that span rows": (
        "<table><thead><tr><th rowspan=2>Drive</th><th rowspan=2>Workload</th><th>Rate</th></tr>"
        "<tr><th>IOPS</th></tr></thead>\n"
        "<tr><td rowspan=2>SATA</td><td>4k read</td><td>91,240</td></tr>\n<tr><td>4k write</td><td>62,815</td></tr>\n"
        "<tr><td rowspan=2>NVMe</td><td>4k read</td><td>694,310</td></tr>\n"
        "<tr><td>4k write</td><td>381,077</td></tr></table>\n",
        {("SATA", "4k write", "iops"): 62_815, ("NVMe", "4k read", "iops"): 694_310},
    ),
    "French, with decimal commas beside spreads": (
        "| Test | ext4 | xfs |\n|---|---|---|\n| Écriture séquentielle 1M (Mo/s) | 487,3 ± 6,1 | 502,8 ± 4,4 |\n"
        "| Lecture aléatoire 4k (IOPS) | 38 420 ± 310 | 9 640 ± 1 205 |\n",
        {
            ("ext4", "write sequential 1M", "write.rate_bytes_per_s"): 487.3 * MB,
            ("xfs", "read random 4k", "read.iops"): 9640,
        },
    ),
    "a unit ends each row": (
        "                       base        + the patch\n cp                    6:29        6:19           (min:sec)\n"
        " dbench throughput     11.633      14.4045        (MB/s)\n",
        {("base", "cp", "time_ns"): 389 * 1e9, ("+ the patch", "dbench", "rate_bytes_per_s"): 14.4045 * MB},
    ),
    "groups right of two columns": (
        "                buffer_head        iomap\n type     bs    IOPS    BW(MiB/s)  IOPS    BW(MiB/s)\n"
        " hole     4K    576k    2253       762k    2975     +32%\n"
        " ramdisk  64K   34.5k   2156       45.6k   2850     +32%\n",
        {
            ("buffer_head", "hole[bs=4K]", "iops"): 576_000,
            ("iomap", "ramdisk[bs=64K]", "rate_bytes_per_s"): 2850 * MIB,
        },
    ),
    "groups over names with one space": (
        "Creates (files/s):\n\n                ext4                    xfs\n"
        "threads         vanilla  patched        vanilla patched\n"
        "2               117k     112k            80k     85k\n4               185k     190k           133k    145k\n",
        {
            ("ext4 patched", "table[threads=4]", "operations_per_s"): 190_000,
            ("xfs vanilla", "table[threads=2]", "operations_per_s"): 80_000,
        },
    ),
    "rows go on below an empty line": (
        "name          speed\nread_1k/clang     335MB/s\nread_10k/clang    124MB/s\n\nwrite_1k/clang    154MB/s\n",
        {("posted", "write_1k/clang", "rate_bytes_per_s"): 154 * MB},
    ),
    "a multiple behind rows": (
        "    points   unpatched   patched\n       40      3.18 s     2.00 s    1.59x\n"
        "      120     21.04 s    11.51 s    1.83x\n",
        {("patched", "table[points=120]", "time_ns"): 11.51e9},
    ),
    "two spaces within a name": (
        "bandwidth in MB/s\n              v6.8      v6.9\n4k randwrite     375      642\n"
        "4k  write        306      387\n1M   read        415     3122\n",
        {("v6.9", "1M read", "rate_bytes_per_s"): 3122 * MB},
    ),
    "changes that no mmtests printed": (
        "           IOPS (numjobs=4)\n               before   poll_source      io_poll\n"
        "4k randread    167102  186049 (+11%)  186654 (+11%)\n"
        "4k randwrite   162204  181214 (+11%)  181850 (+12%)\n",
        {("before", "4k randread", "iops"): 167_102, ("io_poll", "4k randwrite", "iops"): 181_850},
    ),
    "two sides beside their change": (
        "Total memory   base kernel    patched kernel       %gain\n"
        "8GB             65.743          13.93              78.8\n"
        "32GB           153.95          132.12              14.1\ntime in seconds\n",
        {("base", "8GB", "kernel time_ns"): 65.743e9, ("patched", "32GB", "kernel time_ns"): 132.12e9},
    ),
    "a text column behind an amount": (
        "| Threads | Engine | Chunking | Rate (GB/s) | Rate (MiB/s) |\n|---|---|---|---|---|\n"
        "| 12 | `fast` | Auto | **2.869 GB/s** | 2736 MiB/s |\n| 12 | `fast` | 256 KiB | 3.017 GB/s | 2877 MiB/s |\n",
        {("fast", "table[Threads=12,Chunking=256 KiB]", "rate_bytes_per_s"): 3.017 * GB},
    ),
    "figures of several kinds": (
        "| Check | Result | Verdict |\n|---|---|---|\n| fio seqread 1M | 7.2 GB/s | good |\n"
        "| fio randwrite 4k | 67.8k IOPS | bad |\n",
        {("posted", "fio randwrite 4k", "iops"): 67_800},
    ),
    "percentiles with two decimals, and either of two": (
        "| cache | iops/bandwidth | clat 99.00th (ms) |\n|---|---|---|\n| 4k randwrite | 3539 | 1.5 |\n"
        "| 512k write | 290 MB/s | 600 |\n",
        {
            ("posted", "4k randwrite", "iops"): 3539,
            ("posted", "4k randwrite", "latency_ns_p99"): 1.5 * MS,
            ("posted", "512k write", "rate_bytes_per_s"): 290 * MB,
        },
    ),
    "a way beside a unit": (
        "| Card | Capacity (GB) | Seq (Read MB/s) | Seq (Write MB/s) |\n|---|---|---|---|\n"
        "| [Pro][pro] | 32 | 91.40 | 85.63 |\n| [Ultra][ultra] | 16 | 46.32 | 28.10 |\n",
        {("Pro", "table", "read.rate_bytes_per_s"): 91.4 * MB, ("Ultra", "table", "write.rate_bytes_per_s"): 28.1 * MB},
    ),
    "a group names its rows in the first alone": (
        "| Group | Case | Rate |\n|---|---|---|\n| Disk | one | 44 MB/s |\n| | two | 2 MB/s |\n"
        "| Net | one | 99 MB/s |\n| | two | 9 MB/s |\n",
        {
            ("Disk", "two", "rate_bytes_per_s"): 2 * MB,
            ("Net", "two", "rate_bytes_per_s"): 9 * MB,
        },
    ),
    "a column says what was measured": (
        "| Operation | Metric | Result |\n|---|---|---|\n| Sequential Read | Latency | 6.63 ms |\n"
        "| Concurrent Write | Throughput | 113.48 TPS |\n",
        {("posted", "Sequential Read", "read.latency_ns_mean"): 6.63 * MS},
    ),
    "shares beside rates are no sides": (
        "| Pattern | Hits | Bandwidth (GB/s) | Relative Performance |\n|---|---|---|---|\n"
        "| Sequential | 98.7% | 42.3 | 1.0x |\n| Strided | 94.5% | 35.7 | 0.84x |\n",
        {("posted", "Strided", "rate_bytes_per_s"): 35.7 * GB},
    ),
    "units in names of rows": (
        "                        w/o patches        w/ patches\nswap-out time(ms)       68711              49908\n"
        "swap-in time(ms)        30687              20685\n",
        {("w/o patches", "swap-in time", "time_ns"): 30_687 * MS},
    ),
    "shares of changes may have no sign": (
        "| Test | A | raw | Overhead |\n|---|---|---|---|\n| Sequential Write | 109 MB/s | 110 MB/s | <1% |\n"
        "| Random Read | 49.7 MB/s | 48.8 MB/s | 0% |\n",
        {
            ("A", "Sequential Write", "write.rate_bytes_per_s"): 109 * MB,
            ("raw", "Random Read", "read.rate_bytes_per_s"): 48.8 * MB,
        },
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_figures_are_those_of_the_text(tmp_path: Path, kind: str) -> None:
    figures(tmp_path, *KINDS[kind])


NOTED: dict[str, tuple[str, Figures, str]] = {
    "a thousand, or one": (
        "| Size | IOPS | MB/s |\n|---|---|---|\n| 4k | 1.000 | 4 |\n| 32k | 500 | 16 |\n",
        {("posted", "table[Size=32k]", "iops"): 500},
        "1 figure such as '1.000' may be thousands: left out; write 1000",
    ),
    "bits that are bytes": (
        "300 s of random writes\n\nbsize\told\tnew\n4K\t115 KB/s\t141 KB/s\n512K\t19,652 KB/s\t19,688 Kb/s\n",
        {("new", "table[bsize=512K]", "rate_bytes_per_s"): 19_688e3},
        "is taken as one in bytes",
    ),
    "bits that may be bits": (
        "300 s of random writes\n\nbsize\told\tnew\n4K\t115 KB/s\t141 KB/s\n512K\t2,652 KB/s\t19,688 Kb/s\n",
        {("old", "table[bsize=512K]", "rate_bytes_per_s"): 2_652e3},
        "such as '19,688 Kb/s': left out",
    ),
    "what is specified": (
        "| Metric | Rated | Achieved |\n|---|---|---|\n| read bandwidth | 3.5 GB/s | 2.8 GB/s |\n"
        "| write bandwidth | 3 GB/s | 1 GB/s |\n",
        {("Achieved", "read", "read.rate_bytes_per_s"): 2.8 * GB},
        "what is specified is left out: it was not measured",
    ),
    "changes in a table of their own": (
        "| | old | new |\n|---|---|---|\n| randread (IOPS) | 842 | 7,721 |\n| randwrite (IOPS) | 818 | 9,372 |\n\n"
        "| | knobs | backend |\n|---|---|---|\n| randread | +10…+17 % | +913…+1,359 % |\n"
        "| seqwrite | +5 % | **+856 %** |\n",
        {("new", "randread", "read.iops"): 7721},
        "a table of changes alone: left out",
    ),
}


@pytest.mark.parametrize("kind", NOTED)
def test_what_is_left_out_or_taken_for_sure_is_said(tmp_path: Path, kind: str) -> None:
    text, wanted, note = NOTED[kind]
    assert note in "\n".join(figures(tmp_path, text, wanted))


REFUSED = {
    "a data sheet's columns": (
        "| Model | Form Factor | PCIe Gen | Sequential Read |\n|---|---|---|---|\n| A | 2230 | 4.0 | 5,150 MB/s |\n"
        "| B | 2230 | 4.0 | 3,500 MB/s |\n",
        "what is specified or asked for",
    ),
    "targets": (
        "Storage performance targets (aggregate):\n\n| Tier | Write | Read |\n|---|---|---|\n"
        "| NVMe | 4 GB/s | 6 GB/s |\n"
        "| HDD | 300 MB/s | 1 GB/s |\n",
        "what is specified or asked for",
    ),
    "limits of disks": (
        "| Type | P4 | P6 |\n|---|---|---|\n| Max IOPS per disk | 120 | 240 |\n"
        "| Max throughput per disk | 25 MB/s | 50 MB/s |\n",
        "what is specified or asked for",
    ),
    "a sheet's title": (
        "Intel P3700 800 GB spec:\n\nSequential Read  2800 MB/s\nRandom Read    460000 IOPS\n",
        "nothing was",
    ),
    "what is expected": (
        "| Platform | Expected Latency | Expected Rate |\n|---|---|---|\n| A | 3 ms | 2 GB/s |\n"
        "| B | 1 ms | 3 GB/s |\n",
        "what is specified or asked for",
    ),
    "changes beside what noise is": (
        "| test | stock vs new | noise floor |\n|---|---|---|\n| 4k randread | +14.7% | 14.2% |\n"
        "| tcp | -0.5% | 9.1% |\n",
        "a table of changes alone",
    ),
    "a drawn box": (
        "│  METRIC        BEFORE    AFTER   │\n│  Speed    300ms  →  150ms    +50% │\n" * 2,
        "unrecognised format",
    ),
    "shares": (
        "### Score (% of ext4)\n\n| Filesystem | Seq | Rand |\n|---|---|---|\n| ext4 | 100% | 100% |\n"
        "| xfs | 95% | 93% |\n",
        "a table of changes alone",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_was_not_measured_is_refused_as_such(tmp_path: Path, kind: str) -> None:
    text, said = REFUSED[kind]
    assert said in refusal(tmp_path, text)


def test_spans_end_with_their_table() -> None:
    table = "<table><tr><td rowspan=9>a</td><td>1</td></tr><tr><td>2</td></tr></table>"
    rows = [text for _, text in with_bars(enumerate((table, "<table><tr><td>b</td><td>3</td></tr></table>"), 1))]
    assert [row for row in rows if "-" not in row] == ["| a | 1 |", "| a | 2 |", "| b | 3 |"]


def test_dashes_part_columns_and_changes_to_one_side_state_the_other(tmp_path: Path) -> None:
    text = (
        "Benchmark        old(0)(ms) old(1) - old(0)(%)\n"
        "---------------- ---------- ------------------\n"
        "readArray/cat         10.50              +4.00\n"
        "chunks/arraysOf 1    800.00              -2.50\n"
    )
    wanted = {
        ("old(0)", "readArray/cat", "time_ns"): 10.5e6,
        ("old(1)", "readArray/cat", "time_ns"): 10.92e6,
        ("old(1)", "chunks/arraysOf 1", "time_ns"): 780e6,
    }
    (problem,) = figures(tmp_path, text, wanted)
    assert "figures of 'old(1)' are computed from the changes in percent" in problem
