"""What people write about their results: lists within lists, units beside tables, thousands parted by spaces, rates
that say what they count, two settings in a sentence."""

from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.files.importer.run_import import open_run
from test_importer import opened, value
from test_importer_headings import figures, refusal

KIB, MIB = 1024, 1 << 20
MB, GB = 1e6, 1e9
MS, US = 1e6, 1e3

LISTS = {
    "settings above metrics": (
        "Results on a 4-disk md array:\n\n- mq-deadline\n  - randread: 41.2k IOPS\n  - p99 latency: 3.1 ms\n"
        "- bfq\n  - randread: 22.8k IOPS\n  - p99 latency: 1.9 ms\n",
        {
            ("mq-deadline", "randread", "read.iops"): 41_200,
            ("mq-deadline", "list", "latency_ns_p99"): 3.1 * MS,
            ("bfq", "randread", "read.iops"): 22_800,
        },
    ),
    "tests above settings": (
        "- 4k randread, QD32\n  - before: 210k IOPS\n  - after: 245k IOPS\n"
        "- 128k seqread, QD8\n  - before: 3100 MB/s\n  - after: 3080 MB/s\n",
        {
            ("before", "4k randread, QD32", "read.iops"): 210e3,
            ("after", "128k seqread, QD8", "read.rate_bytes_per_s"): 3080 * MB,
        },
    ),
    "three levels": (
        "".join(
            f"- kernel {kernel}\n  - 4k\n    - read: {rate} MB/s\n    - write: {rate - 20} MB/s\n"
            f"  - 64k\n    - read: {4 * rate} MB/s\n    - write: {3 * rate} MB/s\n"
            for kernel, rate in (("6.1", 110), ("6.6", 115))
        ),
        {
            ("kernel 6.1", "4k write", "write.rate_bytes_per_s"): 90 * MB,
            ("kernel 6.6", "64k read", "read.rate_bytes_per_s"): 460 * MB,
        },
    ),
    "numbered, and figures alone": (
        "1. Without the patch\n   - 18,204 IOPS\n   - 7.02 ms avg latency\n"
        "2. With the patch\n   - 23,911 IOPS\n   - 5.34 ms avg latency\n",
        {
            ("Without the patch", "list", "iops"): 18_204,
            ("With the patch", "list", "latency_ns_mean"): 5.34 * MS,
        },
    ),
    "headings of org-mode": (
        "* bcache off\n** 4k randread 9.1k IOPS\n* bcache on\n** 4k randread 88k IOPS\n",
        {("bcache off", "4k randread", "read.iops"): 9100, ("bcache on", "4k randread", "read.iops"): 88e3},
    ),
    "options as labels": (
        "compress=none : 1.1 GB/s write, 2.2 GB/s read\ncompress=zstd : 0.8 GB/s write, 2.4 GB/s read\n",
        {("compress=zstd", "list", "read.rate_bytes_per_s"): 2.4 * GB},
    ),
    "what a browser copied": (
        "* Samsung 980 Pro:\n   o 4k random read QD1: 14.2k IOPS\n* WD SN850:\n   o 4k random read QD1: 13.1k IOPS\n",
        {("WD SN850", "4k random read QD1", "read.iops"): 13_100},
    ),
    "more of a figure below it": (
        "- randread: 41k IOPS\n  - p99: 3.1 ms\n- randwrite: 12k IOPS\n  - p99: 9.1 ms\n",
        {
            ("posted", "randread", "read.latency_ns_p99"): 3.1 * MS,
            ("posted", "randwrite", "write.latency_ns_p99"): 9.1 * MS,
        },
    ),
    "lines indented below what was set": (
        "Setting: threads=1\n  throughput: 5.2k ops/s\n  p99: 410 us\n"
        "Setting: threads=16\n  throughput: 61.0k ops/s\n  p99: 1.9 ms\n",
        {
            ("Setting: threads=1", "list", "operations_per_s"): 5200,
            ("Setting: threads=16", "list", "latency_ns_p99"): 1.9 * MS,
        },
    ),
    "names and rates without a sign": (
        "Raid5, chunk 64K:\n   read   812 MB/s\n   write  214 MB/s\n"
        "Raid5, chunk 512K:\n   read   901 MB/s\n   write  188 MB/s\n",
        {("Raid5, chunk 512K", "write", "write.rate_bytes_per_s"): 188 * MB},
    ),
    "titles between rulers": (
        "=== bfq ===\nread:  412 MB/s\nwrite: 201 MB/s\n=== none ===\nread:  520 MB/s\nwrite: 260 MB/s\n",
        {("none", "write", "write.rate_bytes_per_s"): 260 * MB},
    ),
    "one space more is no level": (
        "768GB RAM: throughput: 320,600 TPS\n 64GB RAM: throughput: 326,300 TPS\n",
        {("64GB RAM", "list", "operations_per_s"): 326_300},
    ),
    "settings beside tests": (
        "ext4 randread: 41k IOPS\next4 randwrite: 22k IOPS\nxfs randread: 43k IOPS\nxfs randwrite: 25k IOPS\n",
        {("ext4", "randread", "read.iops"): 41e3, ("xfs", "randwrite", "write.iops"): 25e3},
    ),
    "settings behind figures": (
        "- sequential read: 9.1 Gbit/s (nfs), 17.8 Gbit/s (iscsi)\n"
        "- sequential write: 6.2 Gbit/s (nfs), 15.1 Gbit/s (iscsi)\n",
        {("iscsi", "sequential read", "read.rate_bytes_per_s"): 17.8 * GB / 8},
    ),
    "unit above bare figures": (
        "fsync/s\next4: 312\nxfs: 298\n\np99 latency (us), 4k random read\n  none      210\n  kyber     190\n",
        {
            ("xfs", "list", "operations_per_s"): 298,
            ("none", "list", "latency_ns_p99"): 210 * US,
        },
    ),
    "unit in a sentence above": (
        "Every figure below is a latency in ms.\n\n none  4.5\n bfq  7.5\n kyber 3.5\n",
        {("bfq", "list", "latency_ns_mean"): 7.5 * MS},
    ),
    "unit above rounds": (
        "Measured with fio, 5 runs each (MB/s):\nstock   : 501 498 503\npatched : 533 530 536\n",
        {("patched", "list", "rate_bytes_per_s"): 533 * MB},
    ),
    "versions are names": (
        "Kernel 6.1: 1.10 GB/s, 1.12 GB/s\nKernel 6.6: 1.31 GB/s, 1.30 GB/s\n(two runs each)\n",
        {("Kernel 6.1", "list", "rate_bytes_per_s"): 1.1 * GB, ("Kernel 6.6", "list", "rate_bytes_per_s"): 1.31 * GB},
    ),
    "tests above settings, one space deeper": (
        "Test 1 (4k randwrite, sync=1)\n old HBA: 1,204 IOPS\n new HBA: 1,877 IOPS\n"
        "Test 2 (4k randread)\n old HBA: 14,800 IOPS\n new HBA: 31,200 IOPS\n",
        {
            ("old HBA", "Test 1 (4k randwrite, sync=1)", "write.iops"): 1204,
            ("new HBA", "Test 2 (4k randread)", "read.iops"): 31_200,
        },
    ),
    "reads and writes behind figures": (
        "ZFS: 18 MB/s (r) / 12 MB/s (w)\next4: 31 MB/s (r) / 28 MB/s (w)\n",
        {("ext4", "list", "write.rate_bytes_per_s"): 28 * MB},
    ),
    "spreads": (
        "vanilla:  812.3 \u00b1 4.1 MB/s\npatched:  851.9 \u00b1 3.8 MB/s\n",
        {("patched", "list", "rate_bytes_per_s"): 851.9 * MB},
    ),
    "settings behind lines": (
        "4k random read:  p50 = 81 us, p99 = 210 us  (before)\n4k random read:  p50 = 79 us, p99 = 150 us  (after)\n",
        {("after", "4k random read", "latency_ns_p99"): 150 * US},
    ),
}
TABLES = {
    "unit below": (
        "mount       run1   run2   run3\nnoatime     212    209    214\nrelatime    198    201    197\n\n"
        "(all in MB/s)\n",
        {("relatime", "table", "rate_bytes_per_s"): 198 * MB},
    ),
    "unit below Markdown": (
        "| scheduler | randread | randwrite |\n|---|---|---|\n| none | 401 | 212 |\n| bfq | 155 | 98 |\n\n"
        "Numbers are kIOPS.\n",
        {("bfq", "table", "write.iops"): 98e3},
    ),
    "unit of all tables": (
        "| fs | seq read | seq write |\n|---|---|---|\n| ext4 | 501 | 402 |\n\n"
        "| fs | 4k rand read | 4k rand write |\n|---|---|---|\n| ext4 | 41 | 30 |\n\nAll numbers in MB/s.\n",
        {
            ("ext4", "table[seq read, seq write]", "read.rate_bytes_per_s"): 501 * MB,
            ("ext4", "table[4k rand read, 4k rand write]", "write.rate_bytes_per_s"): 30 * MB,
        },
    ),
    "latency below": (
        "| job | vanilla | patched |\n|---|---|---|\n| randread | 812 | 640 |\n\np99 latency in us\n",
        {("patched", "randread", "latency_ns_p99"): 640 * US},
    ),
    "seconds below": (
        "            baseline   patched\ncreate        41.2      38.0\nunlink        22.8      20.1\n\n"
        "(seconds, lower is better)\n",
        {("patched", "unlink", "time_ns"): 20.1e9},
    ),
    "rounds in rows": (
        "run   mq-deadline   kyber\n 1       30.1       28.9\n 2       30.4       29.3\n\nAll times in seconds.\n",
        {("kyber", "posted", "time_ns"): 28.9e9},
    ),
    "thousands in words, over two lines": (
        "The numbers are thousands\nof files created per second, higher is better:\n\n"
        " threads      1       8\n base       18.2    98.7\n patched    18.4   117.5\n",
        {("patched", "table[8]", "operations_per_s"): 117_500},
    ),
    "thousands in brackets": (
        "Creates per second (thousands):\n\nkernel     tmpfs    ext4\n6.1         412      98\n"
        "6.6         440     101\n",
        {("6.6", "ext4", "operations_per_s"): 101e3},
    ),
    "thousands in a name": (
        "| kernel | IOPS (thousands) |\n|---|---|\n| 6.1 | 412 |\n| 6.6 | 440 |\n",
        {("6.6", "table", "iops"): 440e3},
    ),
    "spreads behind +-": (
        "jobs    vanilla (kIOPS)      patched (kIOPS)       diff\n"
        "1         612 +- 1.1%          655 +- 0.9%        +7.0%\n"
        "8        3987 +- 2.3%         4120 +- 1.9%        +3.3%\n",
        {("patched", "table[jobs=8]", "iops"): 4120e3},
    ),
    "spaces between thousands": (
        "| scheduler | IOPS | latency (us) |\n|---|---|---|\n| none | 112 305 | 1 712 |\n| bfq | 41 712 | 3 004 |\n",
        {("none", "table", "iops"): 112_305, ("bfq", "table", "latency_ns_mean"): 3004 * US},
    ),
    "spaces between thousands below a name": (
        "kernel    avg IOPS\n6.1       41 712\n6.6       43 800\n",
        {("6.6", "list", "iops"): 43_800},
    ),
    "spaces between thousands and columns": (
        "scheduler      IOPS       lat us\nnone           41 712     1 712\nbfq            22 105     3 004\n",
        {("bfq", "table", "iops"): 22_105, ("none", "table", "latency_ns_mean"): 1712 * US},
    ),
    "org-mode": (
        "| disks | read (MB/s) | write (MB/s) |\n|-------+-------------+--------------|\n"
        "|     2 |         812 |          401 |\n|     8 |        2990 |         1488 |\n",
        {("posted", "table[disks=8]", "write.rate_bytes_per_s"): 1488 * MB},
    ),
    "MediaWiki": (
        '{| class="wikitable"\n|+ Throughput, MB/s\n! File system\n! Read !! Write\n|-\n| [[ext4]]\n| 511\n| 402\n'
        '|-\n| style="color:red" | [[XFS|xfs]] || 523 || 418\n|}\n',
        {("ext4", "table", "read.rate_bytes_per_s"): 511 * MB, ("xfs", "table", "write.rate_bytes_per_s"): 418 * MB},
    ),
    "bits": (
        "Device   Read (Gbit/s)   Write (Mbit/s)\nsda             3.2             2100\n"
        "sdb            22.8            800\n",
        {("sdb", "table", "read.rate_bytes_per_s"): 2.85 * GB, ("sda", "table", "write.rate_bytes_per_s"): 262.5 * MB},
    ),
    "sizes of I/Os": (
        "I/O Size    Write          Read\n512 B       21.84 MB/s     24.30 MB/s\n"
        "1 MB        931.02 MB/s    970.07 MB/s\n",
        {("posted", "table[I/O Size=512 B]", "read.rate_bytes_per_s"): 24.3 * MB},
    ),
    "rows are settings by their column's name": (
        "| Codec | Compress (MiB/s) | Decompress (MiB/s) |\n|---|---|---|\n| lz4 | 612 | 3190 |\n"
        "| zstd | 431 | 1208 |\n",
        {("zstd", "Decompress", "rate_bytes_per_s"): 1208 * MIB},
    ),
    "IOPS in a heading of two lines": (
        "          |  randread 4k  |  seqwrite 1M\n  kernel  |     IOPS      |     MB/s\n"
        "  --------+---------------+--------------\n  6.8     |   312 310     |     2 911\n"
        "  6.9     |   413 027     |     2 934\n",
        {
            ("6.8", "table[randread 4k]", "read.iops"): 312_310,
            ("6.9", "table[seqwrite 1M]", "write.rate_bytes_per_s"): 2934 * MB,
        },
    ),
    "a spread before a rate": (
        "| k | rate |\n|---|---|\n| a | 812.3 \u00b1 4.1 MB/s |\n| b | 851 \u00b1 3 MB/s |\n",
        {("a", "table", "rate_bytes_per_s"): 812.3 * MB},
    ),
    "sizes of bytes in a heading": (
        "fs_mark, files/s\n\n       512B     4KiB\nxfs   91234    88120\next4  61002    60551\n",
        {("xfs", "table[512B]", "operations_per_s"): 91_234},
    ),
    "latencies": (
        "Latencies (usec):\n        avg   p99\nnone     81   210\nkyber    90   190\n",
        {("kyber", "table", "latency_ns_mean"): 90 * US},
    ),
    "names that begin a clause": (
        "jobs      without          with\n  1      402 KIOPS      431 KIOPS\n  8     2210 KIOPS     2480 KIOPS\n",
        {("with", "table[jobs=8]", "iops"): 2480e3},
    ),
    "depths beside schedulers, and what they are below": (
        "      | QD1   | QD16\n------+-------+------\nbfq   |  9.8k | 71k\nnone  | 10.2k | 112k\n\nRandom read IOPS.\n",
        {("none", "table[QD16]", "iops"): 112e3},
    ),
    "amounts above rows": (
        "   jobs=1  jobs=4\nA    101     390\nB    120     455\n(in KIOPS)\n",
        {("A", "table[jobs=1]", "iops"): 101e3, ("B", "table[jobs=4]", "iops"): 455e3},
    ),
    "runs in rows": (
        "| Run | Before | After |\n|---|---|---|\n| 1 | 412 MB/s | 455 MB/s |\n| 2 | 409 MB/s | 451 MB/s |\n",
        {("After", "table", "rate_bytes_per_s"): 455 * MB},
    ),
    "text below CSV": (
        "Server;IOPS read;lat read (us)\nold;1712;4671\nnew;187430;170\n\nfio, 4 KiB, 5 min each.\n",
        {("new", "posted", "read.iops"): 187_430, ("old", "posted", "read.latency_ns_mean"): 4671 * US},
    ),
    "what a bare rate counts": (
        "| fs | lookups (M/s) |\n|---|---|\n| ext4 | 1.21 |\n| xfs | 1.45 |\n",
        {("xfs", "table", "operations_per_s"): 1.45e6},
    ),
}
SENTENCES = {
    "vs. ends no sentence": (
        "With 16 threads we see 1.2 GB/s on XFS vs. 870 MB/s on ext4.\n",
        {("XFS", "list", "rate_bytes_per_s"): 1.2 * GB, ("ext4", "list", "rate_bytes_per_s"): 870 * MB},
    ),
    "the second without its unit": (
        "fio randwrite does 52k IOPS on XFS vs. 47k on ext4, same box.\n",
        {("XFS", "fio randwrite", "write.iops"): 52e3, ("ext4", "fio randwrite", "write.iops"): 47e3},
    ),
    "what is said of both behind the second": (
        "XFS: 52k IOPS vs ext4: 47k IOPS for 4k randwrite.\n",
        {("xfs", "4k randwrite", "write.iops"): 52e3, ("ext4", "4k randwrite", "write.iops"): 47e3},
    ),
    "how long it took": (
        "Untarring the kernel took 41 s on XFS vs. 29 s on ext4.\n",
        {("XFS", "Untarring kernel", "elapsed_s"): 41, ("ext4", "Untarring kernel", "elapsed_s"): 29},
    ),
    "minutes": (
        "The backup finished in 12m40s with lz4 vs. 9m05s with zstd.\n",
        {("lz4", "backup", "elapsed_s"): 760, ("zstd", "backup", "elapsed_s"): 545},
    ),
    "three settings": (
        "On XFS I get 412 MB/s, on ext4 398 and on btrfs 301.\n",
        {("ext4", "list", "rate_bytes_per_s"): 398 * MB, ("btrfs", "list", "rate_bytes_per_s"): 301 * MB},
    ),
    "thousands in a change": (
        "The fsync-heavy workload went from 4 210 to 2 980 commits/s.\n",
        {("before", "fsync-heavy workload", "operations_per_s"): 4210},
    ),
    "numbers of versions": (
        "The upgrade made reads slower: 3.1 GB/s on 22.04, but only 2.4 GB/s on 24.04.\n",
        {("24.04", "upgrade made reads slower", "read.rate_bytes_per_s"): 2.4 * GB},
    ),
    "spaces between thousands": (
        "Random writes reach 41 712 IOPS on ext4 and 22 105 IOPS on xfs.\n",
        {("ext4", "Random writes", "write.iops"): 41_712, ("xfs", "Random writes", "write.iops"): 22_105},
    ),
    "the operation stands earlier in the sentence": (
        "Use the cached value.\n\n"
        "With fio random 4k writes, 16 jobs, IOPS went from 213k to 247k. The 99th percentile\n"
        "of the completion latency dropped from 1.9 ms to 1.4 ms.\n",
        {
            ("after", "fio random 4k writes", "write.iops"): 247e3,
            ("before", "fio random 4k writes", "latency_ns_p99"): 1.9 * MS,
        },
    ),
    "the text says what M/s is": (
        "ext4 random read: 1.2 M/s\nxfs random read: 1.5 M/s\n(M/s is million operations per second)\n",
        {("xfs", "random read", "read.operations_per_s"): 1.5e6},
    ),
}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [one for kind in (LISTS, TABLES, SENTENCES) for one in kind.values()],
    ids=[*LISTS, *(f"table: {name}" for name in TABLES), *SENTENCES],
)
def test_what_is_written(tmp_path: Path, text: str, wanted: dict[tuple[str, str, str], float]) -> None:
    figures(tmp_path, text, wanted)


def test_numbered_rows_are_rounds_of_one_workload(tmp_path: Path) -> None:
    text = TABLES["runs in rows"][0]
    (tmp_path / "posted.txt").write_text(text)
    run = open_run(tmp_path / "posted.txt")
    assert run.workloads == ["table"]
    assert value(run, "After", "table", "rate_bytes_per_s", 1) == 451 * MB


def test_a_duration_that_is_not_read_is_counted(tmp_path: Path) -> None:
    problems = figures(tmp_path, "rsync: 14m 20s\ncp: 9m 5s\nzfs send | zfs recv: 6m 48s\n", {})
    assert any("1 line with figures was not read: " in problem for problem in problems)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Before the patch:  write 412 M/s\nAfter the patch:   write 530 M/s\n",
            "write MB/s or MiB/s if they are bytes",
        ),
        ("NIC: 10 Gbit/s\nLink speed: 25 Gbit/s\n", "unrecognised format"),
        # Runs, or thousands.
        ("| fs | IOPS |\n|---|---|\n| ext4 | 212 209 |\n| xfs | 214 211 |\n", "'212 209'"),
        ("setting,lat_us\na,4.671\nb,170\nc,262\n", "'4.671' may be 4.671 or 4671"),
        (
            "The usual set on 3 machines, relative to v6.7:\n\n           Skylake   Rome\n"
            "ffsb       +4.1%     +6.0%\npostmark   +0.9%     -1.1%\n",
            "only changes, and iolab compares measurements",
        ),
        (
            "$ btrfs device stats /mnt\n[/dev/sdb].write_io_errs    12\n[/dev/sdb].read_io_errs     0\n",
            "counters of btrfs",
        ),
        ("Sure:\n\nCPU\tAvg_MHz\tBusy%\tIRQ\n-\t412\t13.71\t210334\n0\t204\t6.81\t18210\n", "turbostat's report"),
        ("NAME    SIZE TYPE  RQ-SIZE\nsda     3.6T disk       64\nnvme0n1 931G disk     1023\n", "a list of devices"),
        ("[    2.463811] ata1: SATA link up 6.0 Gbps\n[    2.466204] ata1.00: ATA-11: X\n", "a kernel's log"),
        ("Both in the same slot:\n\n[img]https://i.example.com/a.png[/img]\nFig. 1: A 2TB\n", "in pictures"),
        (
            "It is a lot faster.\n---\n 1 file changed, 1 insertion(+)\n",
            "a change of sources, which is not read; if its text has results",
        ),
        (
            "My job file:\n\n[global]\nioengine=libaio\nrate_iops=20000\n[a]\nrw=randread\n",
            "fio's job file, without results",
        ),
    ],
)
def test_what_is_refused_says_what_it_is(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(tmp_path, text)


def test_a_list_of_devices_above_results_hides_none(tmp_path: Path) -> None:
    text = "NAME    SIZE TYPE\nsda     3.6T disk\n\nbefore: 41k IOPS\nafter: 52k IOPS\n"
    figures(tmp_path, text, {("after", "list", "iops"): 52e3})


@pytest.mark.parametrize("first", ["randread: IOPS=24.1k, BW=94.1MiB/s, avg lat=1.32ms, p99=4.1ms\n", ""])
def test_a_line_of_one_figure_counts_beside_a_richer_one(tmp_path: Path, first: str) -> None:
    blocks = (
        f"{name}:\n\n{first}seqwrite: BW={rate}MiB/s\nfsync: {syncs}/s\n"
        for name, rate, syncs in (("Before", 512, 1120), ("After", 300, 640))
    )
    run = opened(tmp_path / "mail.txt", "\n".join(blocks))
    for name, rate, syncs in (("Before", 512, 1120), ("After", 300, 640)):
        assert value(run, name, "seqwrite", "rate_bytes_per_s") == rate * 2**20
        assert value(run, name, "fsync", "operations_per_s") == syncs


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ("BW=7317MiB/s (7673MB/s)(214GiB/30001msec)", 7317 * 2**20),
        ("BW=1217KiB/s (1246kB/s)(21.0MiB/18513msec)", 1217 * 2**10),
        ("BW=116MiB/s (122MB/s)(6975MiB/60001msec)", 6975 * 2**20 / 60.001),
    ],
)
def test_of_fios_two_figures_of_a_rate_the_finer_one_counts(tmp_path: Path, rates: str, expected: float) -> None:
    head = "job: (groupid=0, jobs=1): err= 0: pid=1: Tue Mar  9 10:32:18 2021\n"
    run = opened(tmp_path / "fio.txt", f"{head}  write: IOPS=541, {rates}\n")
    found = value(run, *run.settings, *run.workloads, "write.rate_bytes_per_s")
    assert found == pytest.approx(expected, rel=1e-6)


def test_a_change_behind_a_row_may_stand_apart_from_its_bracket(tmp_path: Path) -> None:
    rows = "4k randwrite IOPS  318k     402k   (+26.4%)\n4k randread IOPS   2961k    2958k  ( -0.1%)\n"
    text = f"                  before   after\n{rows}"
    run = opened(tmp_path / "commit.txt", text)
    assert value(run, "after", "4k randread", "read.iops") == 2_958_000


def test_what_a_job_of_fio_asks_for_is_no_result(tmp_path: Path) -> None:
    job = "[global]\nioengine=libaio\n\n[read]\nrw=randread\nrate_iops=20000\n\n[write]\nrw=write\nmax_latency=500ms\n"
    (tmp_path / "mail.txt").write_text(f"Please run this:\n\n{job}\nand post what it prints.\n")
    with pytest.raises(InputError):
        open_run(tmp_path / "mail.txt")


SEVERAL_IN_A_CELL = {
    "reads and writes": (
        "128k, sequential:\n\nmirror:  612/540 MB/s (read/write)\nraidz2: 1105/870 MB/s (read/write)\n",
        {
            ("mirror", "list", "read.rate_bytes_per_s"): 612 * MB,
            ("raidz2", "list", "write.rate_bytes_per_s"): 870 * MB,
        },
    ),
    "percentiles that a line above names": (
        "fsync latency (p50/p95/p99):\n\next4: 1.1/3.4/9.8 ms\nxfs: 0.9/2.8/7.1 ms\n",
        {("ext4", "list", "latency_ns_p95"): 3.4 * MS, ("xfs", "list", "latency_ns_p99"): 7.1 * MS},
    ),
    "a rate in place of another": (
        "Since the upgrade the pool reads at 720 MB/s instead of 1.1 GB/s before.\n",
        {
            ("before", "Since upgrade pool reads", "read.rate_bytes_per_s"): 1.1 * GB,
            ("after", "Since upgrade pool reads", "read.rate_bytes_per_s"): 720 * MB,
        },
    ),
    "times of kernels": (
        "kernel     compile time\n6.1.90     312.4s\n6.6.30     308.9s\n",
        {("6.1.90", "list", "time_ns"): 312.4 * GB, ("6.6.30", "list", "time_ns"): 308.9 * GB},
    ),
    "queue depths are cases": (
        "Disk | QD1 read | QD1 write | QD32 read\nA | 11.2k | 48.1k | 310k\nB | 71.0k | 66.2k | 560k\n(all IOPS)\n",
        {("A", "table[QD1 read]", "read.iops"): 11_200, ("B", "table[QD32 read]", "read.iops"): 560e3},
    ),
    "names in German": (
        "| Volume | Lesen (MB/s) | Schreiben (MB/s) | Latenz (ms) |\n|---|---|---|---|\n"
        "| local | 1820 | 1430 | 0.21 |\n",
        {
            ("local", "table", "read.rate_bytes_per_s"): 1820 * MB,
            ("local", "table", "write.rate_bytes_per_s"): 1430 * MB,
            ("local", "table", "latency_ns_mean"): 0.21 * MS,
        },
    ),
    "two tests of two metrics": (
        "| Backend | Seq. read | 4k rand read | 4k rand write |\n|---|---|---|---|\n"
        "| rbd | 1.1 GB/s | 38.5k IOPS | 11.2k IOPS |\n",
        {
            ("rbd", "table[Seq. read]", "read.rate_bytes_per_s"): 1.1 * GB,
            ("rbd", "table[4k rand]", "read.iops"): 38_500,
            ("rbd", "table[4k rand]", "write.iops"): 11_200,
        },
    ),
    "percentiles as rows of two settings": (
        "| Percentile | old pool (reads) | new pool (reads) |\n|---|---|---|\n"
        "| p50 | 412 us | 388 us |\n| p99.9 | 48 ms | 5.6 ms |\n| max | 1.2 s | 31 ms |\n",
        {
            ("old pool", "read", "read.latency_ns_p50"): 412 * US,
            ("old pool", "read", "read.latency_ns_p999"): 48 * MS,
            ("new pool", "read", "read.latency_ns_max"): 31 * MS,
        },
    ),
    "a unit in a sentence above": (
        "IOPS are averages over the run, latencies in microseconds.\n\n"
        "+-----+-------+------+-------+\n| set |  IOPS |  avg | p99.9 |\n+-----+-------+------+-------+\n"
        "| cow | 61204 | 13.1 |  1893 |\n| raw | 99204 |  7.1 |   420 |\n+-----+-------+------+-------+\n",
        {
            ("cow", "table", "iops"): 61_204,
            ("cow", "table", "latency_ns_mean"): 13.1 * US,
            ("raw", "table", "latency_ns_p999"): 420 * US,
        },
    ),
    "versions beside results": (
        "| Type | Version |\n|---|---|\n| Distribution | Ubuntu |\n| Release | 22.04 |\n| Kernel | 5.15.0-91 |\n\n"
        "| Type | IOPS |\n|---|---|\n| ext4 | 38,200 |\n| zfs | 4,117 |\n",
        {("ext4", "table", "iops"): 38_200, ("zfs", "table", "iops"): 4117},
    ),
    "rates of a network": (
        "| Disk | Read |\n|---|---|\n| a | 500 MB/s |\n\n"
        "| Provider | Send | Ping |\n|---|---|---|\n| c | 934 Mbits/sec | 12.4 ms |\n",
        {("a", "table", "read.rate_bytes_per_s"): 500 * MB},
    ),
    "a clause before a colon": (
        "You see it easily: with sync=disabled I get 1.1 GB/s, with sync=always 79 MB/s.\n",
        {("sync=disabled", "list", "rate_bytes_per_s"): 1.1 * GB, ("sync=always", "list", "rate_bytes_per_s"): 79 * MB},
    ),
}


@pytest.mark.parametrize(("text", "wanted"), SEVERAL_IN_A_CELL.values(), ids=SEVERAL_IN_A_CELL.keys())
def test_kinds_of_short_posts(tmp_path: Path, text: str, wanted: dict[tuple[str, str, str], float]) -> None:
    figures(tmp_path, text, wanted)
    settings = {setting for setting, *_ in wanted}
    run = open_run(tmp_path / "posted.txt")
    assert settings <= set(run.settings) <= {*settings, "zfs", "B"}


def test_figures_with_slashes_are_runs_if_the_line_says_so(tmp_path: Path) -> None:
    run = opened(tmp_path / "post.txt", "A: 41k/39k/40k IOPS over three runs\nB: 52k/51k/53k IOPS over three runs\n")
    assert [value(run, "A", "list", "iops", round) for round in range(3)] == [41e3, 39e3, 40e3]
    assert value(run, "B", "list", "iops", 2) == 53e3


def test_a_row_of_changes_is_no_setting(tmp_path: Path) -> None:
    rows = " v6.9      14.1k   70.1us    91us\n polled    18.9k   52.3us    60us\n"
    text = f" kernel    IOPS    lat avg   lat p99\n{rows} delta     +34%    -25%      -34%\n"
    run = opened(tmp_path / "post.txt", text)
    assert run.settings == ["v6.9", "polled"]
    assert any("rows of changes are left out" in problem for problem in run.problems)


def test_percentiles_behind_the_name_of_one_are_no_rounds(tmp_path: Path) -> None:
    text = "  - read p95 ~168 ms, p99 ~233 ms\n  - write p95 ~650 ms, p99 ~801 ms\n"
    (tmp_path / "post.txt").write_text(text)
    with pytest.raises(InputError):
        open_run(tmp_path / "post.txt")


def test_a_percentile_without_a_unit_is_a_doubt(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "post.md", "| set | IOPS | p99 |\n|---|---|---|\n| a | 61204 | 412 |\n| b | 99204 | 188 |\n"
    )
    assert any("nothing states the unit of p99" in problem for problem in run.problems)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("## Specifications\n\n- Sequential read: 7,200 MB/s\n- Random read: 1,250k IOPS\n", "nothing was measured"),
        ("The disk is rated at 3.5 GB/s, was 2.8 GB/s in a review.\n", "nothing was measured"),
        ("The drive does up to 7,200 MB/s.\nRandom reads: up to 150k IOPS\n", "nothing was measured"),
        (
            "Date: Sat, 18 May 2024 10:02:17 +0200\n\nWith it, the throughput goes up by about 22%, and p99 shrinks by "
            "40%,\non 5 boots of two laptops.\n",
            "only changes, and iolab compares measurements",
        ),
    ],
)
def test_what_nobody_measured_is_refused_as_such(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(tmp_path, text)


def test_fio_prints_a_percentile_of_9999_and_a_sum_of_writes_and_syncs_is_none(tmp_path: Path) -> None:
    jobs = (
        "reader: (groupid=0, jobs=1): err= 0: pid=1: Tue Mar  9 10:32:18 2021\n"
        "  read: IOPS=1650, BW=206MiB/s (216MB/s)(12.1GiB/60006msec)\n"
        "     lat (usec): min=322, max=188211, avg=2423.21, stdev=4120.11\n"
        "    clat percentiles (usec):\n     | 99.00th=[12387], 99.99th=[ 9000]\n"
        "writer: (groupid=0, jobs=1): err= 0: pid=2: Tue Mar  9 10:32:18 2021\n"
        "  write: IOPS=413, BW=1653KiB/s (1693kB/s)(96.9MiB/60012msec); 0 zone resets\n"
        "     lat (usec): min=6, max=210, avg=15.80, stdev=9.11\n"
        "  fsync/fdatasync/sync_file_range:\n    sync (usec): min=702, max=210411, avg=2398.12, stdev=411.6\n"
    )
    run = opened(tmp_path / "fio.txt", jobs)
    writer = run.table.filter(run.table["job"] == "writer")
    found = {
        key: value for key, value in writer.select("key", "value").rows() if key and key.endswith("latency_ns_mean")
    }
    assert found["latency_ns_mean"] == pytest.approx(15.80 * US)
    alone = opened(tmp_path / "one.txt", jobs.partition("writer:")[0])
    assert value(alone, "one", "reader", "read.latency_ns_p9999") == 9000 * US


def test_go_ycsb_reports_what_it_did_last(tmp_path: Path) -> None:
    line = (
        "READ   - Takes(s): {0}, Count: {1}, OPS: {2}, Avg(us): 185, Min(us): 21, Max(us): 20223, 95th(us): 330, "
        "99th(us): 790"
    )
    text = "\n".join(
        (
            *(line.format("10.0", 412345, 41234.1).replace("READ ", way) for way in ("READ ", "UPDATE ")),
            "Run finished, takes 20.01s",
            *(line.format("20.0", 812345, 40617.2).replace("READ ", way) for way in ("READ ", "UPDATE ")),
        )
    )
    run = opened(tmp_path / "ycsb.txt", text)
    assert value(run, "ycsb", "go-ycsb", "read/operations_per_s") == 40617.2
    assert value(run, "ycsb", "go-ycsb", "update/latency_ns_p99") == 790 * US
    assert run.problems == []


def test_status_lines_of_fio_stand_below_the_line_next_to_them(tmp_path: Path) -> None:
    group = "Run status group 0 (all jobs):\n  WRITE: bw={0}MiB/s, {0}MiB/s-{0}MiB/s, io=20.1GiB, run=60058-60058msec\n"
    outputs = f"RAID5\n-----\n{group.format(341)}\nRAID10\n------\n{group.format(342)}"
    run = opened(tmp_path / "f.txt", f"levels\n(only status lines)\n\n{outputs}")
    assert run.settings == ["RAID5", "RAID10"]
    assert value(run, "RAID10", "fio", "write.rate_bytes_per_s") == pytest.approx(342 * MIB)


def test_an_item_may_label_its_figures_with_settings_and_other_items_are_named(tmp_path: Path) -> None:
    text = (
        "- first `ls -f` with non-patched version: 58.5 minutes, patched: 80.5 minutes (yes, it is worse)\n"
        "- repeated `ls -f` of both: 4-6 seconds\n- 4k randread on ext4: 312k IOPS, xfs: 287 k IOPS.\n"
        "- `unrar l archive.rar` took 11 minutes\n"
    )
    wanted = {
        ("non-patched", "first ls -f", "time_ns"): 58.5 * 60e9,
        ("patched", "first ls -f", "time_ns"): 80.5 * 60e9,
        ("ext4", "4k randread", "read.iops"): 312e3,
        ("xfs", "4k randread", "read.iops"): 287e3,
    }
    (problem,) = figures(tmp_path, text, wanted)
    assert "2 lines with figures were not read: 2, 4" in problem


def test_what_it_came_to_is_of_the_step_above(tmp_path: Path) -> None:
    text = (
        "1. I entered the pod, and executed `dd if=/dev/zero of=/volume/file bs=1M count=1k`\n"
        "1. It shown writing speed of 729.1MB/s\n"
        "1. I executed `dd if=/dev/zero of=/volume/file bs=1M count=1k` again, overwriting the file\n"
        "1. It shown writing speed of 51.1MB/s\n"
        "\nExpected:\n1. It should show more than 300MB/s\n"
    )
    wanted = {
        ("entered the pod and executed", "write", "write.rate_bytes_per_s"): 729.1 * MB,
        ("executed again overwriting the file", "write", "write.rate_bytes_per_s"): 51.1 * MB,
    }
    problems = figures(tmp_path, text, wanted)
    assert "check them against the text" in problems[0]
    assert "1 line with figures was not read: 7" in problems[1]
