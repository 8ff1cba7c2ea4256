"""Kinds of texts that people post, which were once misread, lost or refused: each with the right values."""

from __future__ import annotations

from pathlib import Path

import pytest
from iolab.files.importer.posted import plain
from iolab.files.importer.run_import import open_run
from iolab.presentation.side_by_side import ComparisonRequest, compare_runs

MB, MIB, US, MS = 1e6, 2.0**20, 1e3, 1e6
_COPIED = "4294967296 bytes (4.3 GB, 4.0 GiB) copied, {} s, 1 MB/s\n"
_WRITES, _READS = "dd if=/dev/zero of=/tank/f bs=1M count=4096\n", "dd if=/tank/f of=/dev/null bs=1M\n"
_BONNIE = """{}
Version  1.96       ------Sequential Output------ --Sequential Input- --Random-
Concurrency   1     -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--
Machine        Size K/sec %CP K/sec %CP K/sec %CP K/sec %CP K/sec %CP  /sec %CP
nas             32G    95  99 {} 20 56000  11   180  97 150000 15 310.2   1
Latency               101ms     2012ms    1012ms     120ms     312ms     812ms

"""
_HDPARM = """root@{}:~# hdparm -t /dev/sda

/dev/sda:
 Timing buffered disk reads: 1538 MB in  3.00 seconds = {} MB/sec
"""
_DISKSPD = """{}
thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  file
------------------------------------------------------------------------------
     0 |      3062038528 |       747568 |      97.36 |   {} | c:\\test.dat (1GiB)
------------------------------------------------------------------------------
total:        3062038528 |       747568 |      97.36 |   {}

"""
_SPDK = """Average Latency:

Queue Depth | 1 | 2 | 4
-- | -- | -- | --
AIO (us) | 59.72 | 59.48 | 60.99
SPDK (us) | 57.39 | 57.21 | 59.36

IOPS:

Queue Depth | 1 | 2 | 4
-- | -- | -- | --
AIO IOPS | 16736 | 33609 | 65548
SPDK IOPS | 17412 | 34932 | 67341
"""
_TIOTEST = """Tiotest results for 4 concurrent io threads:
,----------------------------------------------------------------------.
| Item                  | Time     | Rate         | Usr CPU  | Sys CPU |
+-----------------------+----------+--------------+----------+---------+
| Write       32768 MBs |  626.0 s |  52.346 MB/s |   0.5 %  |  11.9 % |
`----------------------------------------------------------------------'

"""
_IOPING = """$ ioping {} /dev/vda

--- /dev/vda (device 10.0 GiB) ioping statistics ---
2000 requests completed in 3.0 s, {} iops, 2.9 MiB/s
min/avg/max/mdev = 216 us / 1.4 ms / 33.6 ms / 3.3 ms
"""
_WARP = """Operation: GET
{0}Throughput: 1286.26 MiB/s, 128.63 obj/s

Throughput, split into 59 x 1s:
{0}Fastest: 1391.13MiB/s, 139.11 obj/s
{0}50% Median: 1306.80MiB/s, 130.68 obj/s
{0}Slowest: 1140.30MiB/s, 114.03 obj/s
"""
_AS_SSD = "AS SSD\n            Read       Write\nSeq         518.2 MB/s 412.3 MB/s\n4K          31.2 MB/s  err\n"
_PYTHON = (
    "{'fio version': 'fio-3.28', 'jobs': [{'jobname': 'a\"b', 'groupid': 0, 'error': 0, 'read': {'io_bytes': 4096000, "
    "'bw_bytes': 4096000, 'iops': 1000.0, 'runtime': 1000, 'total_ios': 1000}, 'latency_window': None, 'ss': True}]}\n"
)
_SPC = """SPC-1 test run

         ASUs    BSUs    IOPS        Average Response Time (ms)
100%     All     3000    150061.2    1.92
95%      All     2850    142512.0    1.63
10%      All     300     15001.9     0.36
"""
_GROUPED = """          MB/s              IOPS
          read   write      read    write
local     512    410        7000    6000
ceph      210    190        3000    2500
"""
_DRIVES = "/dev/sda:\nRead 180 MB/s\nWrite 170 MB/s\n\n/dev/sdb:\nRead 2100 MB/s\nWrite 1300 MB/s\n"

Place = tuple[str, str, str]
KINDS: dict[str, tuple[str, dict[Place, float]]] = {
    "pools below a name and a remark": (
        _BONNIE.format("pool1: raidz", 112000) + _BONNIE.format("pool2: mirror", 212000),
        {
            ("pool1: raidz", "bonnie++", "put_block/rate_bytes_per_s"): 112000 * 1024.0,
            ("pool2: mirror", "bonnie++", "put_block/rate_bytes_per_s"): 212000 * 1024.0,
        },
    ),
    "drives by their paths": (
        _DRIVES,
        {
            ("/dev/sda", "Read", "read.rate_bytes_per_s"): 180 * MB,
            ("/dev/sdb", "Write", "write.rate_bytes_per_s"): 1300 * MB,
        },
    ),
    "hosts in prompts": (
        _HDPARM.format("alpha", 512.5) + _HDPARM.format("beta", 430.0),
        {
            ("alpha", "hdparm /dev/sda", "buffered_disk/rate_bytes_per_s"): 512.5 * MIB,
            ("beta", "hdparm /dev/sda", "buffered_disk/rate_bytes_per_s"): 430 * MIB,
        },
    ),
    "dd's reads below words alone": (
        f"{_WRITES}{_COPIED.format(8)}and reading it back:\n{_COPIED.format(4)}",
        {
            ("post", f"dd {_WRITES[3:-1]}", "elapsed_s"): 8.0,
            ("post", "dd and reading it back", "elapsed_s"): 4.0,
        },
    ),
    "dd's commands above both results": (
        f"{_WRITES}{_READS}\n{_COPIED.format(8)}{_COPIED.format(4)}",
        {("post", f"dd {_WRITES[3:-1]}", "elapsed_s"): 8.0, ("post", f"dd {_READS[3:-1]}", "elapsed_s"): 4.0},
    ),
    "dd's results without bytes": (
        "$ dd if=/dev/zero of=f bs=1M\n4.3 GB copied, 6.5 s, 661 MB/s\n",
        {("post", "dd if=/dev/zero of=f bs=1M", "rate_bytes_per_s"): 661 * MB},
    ),
    "statistics of warp": (
        _WARP.format(" * "),
        {("post", "warp GET", "rate_bytes_per_s"): 1286.26 * MIB, ("post", "warp GET", "operations_per_s"): 128.63},
    ),
    "statistics of warp without marks": (
        _WARP.format(""),
        {("post", "warp GET", "rate_bytes_per_s"): 1286.26 * MIB, ("post", "warp GET", "operations_per_s"): 128.63},
    ),
    "engines by queue depth": (
        _SPDK,
        {
            ("AIO", "table[4]", "latency_ns_mean"): 60.99 * US,
            ("SPDK", "table[1]", "iops"): 17412.0,
        },
    ),
    "units above groups of columns": (
        _GROUPED,
        {
            ("local", "table", "read.rate_bytes_per_s"): 512 * MB,
            ("ceph", "table", "write.iops"): 2500.0,
        },
    ),
    "reads and writes in one cell": (
        "Sequential, read/write in MB/s\n\n| fs | dd |\n|---|---|\n| ext4 | 1234/567 |\n| xfs | 1301/612 |\n",
        {
            ("ext4", "table", "read.rate_bytes_per_s"): 1234 * MB,
            ("xfs", "table", "write.rate_bytes_per_s"): 612 * MB,
        },
    ),
    "cells one space apart": (
        _AS_SSD,
        {
            ("post", "Seq", "write.rate_bytes_per_s"): 412.3 * MB,
            ("post", "4K", "read.rate_bytes_per_s"): 31.2 * MB,
        },
    ),
    "versions as columns": (
        "Throughput in MB/s:\n\nbs      6.1     6.6\n4k      31      33\n1M      2101    2212\n",
        {("6.6", "1M", "rate_bytes_per_s"): 2212 * MB},
    ),
    "units far above": (
        "mdtest, rate in ops/sec\n\nLustre:\nFile stat: 90123.1\n\nBeeGFS:\nFile stat: 70123.1\n",
        {("BeeGFS", "File stat", "operations_per_s"): 70123.1},
    ),
    "seeker": (
        "Benchmarking /dev/sda [232 GB], wait 30 seconds\nResults: 83 seeks/second, 11.95 ms random access time\n",
        {
            ("post", "seeker /dev/sda", "read.iops"): 83.0,
            ("post", "seeker /dev/sda", "read.latency_ns_mean"): 11.95 * MS,
        },
    ),
    "fio's dictionary of Python": (_PYTHON, {("post", 'a"b', "read.iops"): 1000.0}),
    "shares of the load": (_SPC, {("All", "table[BSUs=300]", "latency_ns_mean"): 0.36 * MS}),
    "pgbench without its head": (
        "ext4:\nlatency average = 4.9 ms\ntps = 3261.1 (including connections establishing)\n"
        "tps = 3261.9 (excluding connections establishing)\n\nzfs:\nlatency average = 6.9 ms\n"
        "tps = 2310.2 (including connections establishing)\ntps = 2310.8 (excluding connections establishing)\n",
        {
            ("ext4", "pgbench[shortened]", "transactions_per_s"): 3261.9,
            ("zfs", "pgbench[shortened]", "latency_ns_mean"): 6.9 * MS,
        },
    ),
    "DiskSpd's tables alone": (
        _DISKSPD.format("NTFS", 24924, 24924) + _DISKSPD.format("ReFS", 20924, 20924),
        {("NTFS", "diskspd", "iops"): 24924.0, ("ReFS", "diskspd", "iops"): 20924.0},
    ),
    "ioping's last line": (
        "min/avg/max/mdev = 4.2 ms / 8.1 ms / 15.1 ms / 3.2 ms\n",
        {("post", "ioping", "latency_ns_mean"): 8.1 * MS},
    ),
    "IOR's last lines": (
        "Max Write: 2101.20 MiB/sec (2203.27 MB/sec)\nMax Read:  3301.10 MiB/sec (3461.45 MB/sec)\n",
        {("post", "ior", "write.rate_bytes_per_s"): 2101.2 * MIB},
    ),
    "sides below lines in brackets": (
        "size=5G\n[w/o]\nw: IOPS=62.5k, BW=244MiB/s\n[w]\nw: IOPS=79.6k, BW=311MiB/s\n",
        {("[w/o]", "fio-lines w", "iops"): 62500.0, ("[w]", "fio-lines w", "iops"): 79600.0},
    ),
    "sides below the items of a list": (
        "".join(
            f"* {name}\n100+0 records in\n100+0 records out\n\nreal\t0m{seconds}s\nuser\t0m0.1s\nsys\t0m0.2s\n\n"
            for name, seconds in (("On the host", 0.5), ("Within a container that has a volume of the host", 2.06))
        ),
        {
            ("On the host", "command", "elapsed_s"): 0.5,
            ("Within a container that has a volume of the host", "command", "elapsed_s"): 2.06,
        },
    ),
    "CrystalDiskMark's sizes": (
        "Sequential Read : 255.0 MB/s\nTest : 50 MB [D: 0.0%] (x9)\n\n"
        "Sequential Read : 268.0 MB/s\nTest : 1000 MB [D: 0.0%] (x5)\n",
        {
            ("post", "sequential[50 MB]", "read.rate_bytes_per_s"): 255 * MB,
            ("post", "sequential[1000 MB]", "read.rate_bytes_per_s"): 268 * MB,
        },
    ),
    "CrystalDiskMark in quotations of HTML": (
        "A:\n<blockquote>Sequential Read : 520.5 MB/s\nSequential Write : 489.8 MB/s</blockquote>\n"
        "B:\n<blockquote>Sequential Read : 898.9 MB/s\nSequential Write : 905.5 MB/s</blockquote>\n",
        {
            ("A", "sequential", "read.rate_bytes_per_s"): 520.5 * MB,
            ("B", "sequential", "write.rate_bytes_per_s"): 905.5 * MB,
        },
    ),
    "options of one program": (
        _IOPING.format("-q -S 64m", 738) + _IOPING.format("-R", 74),
        {("-q -S 64m", "ioping", "iops"): 738.0, ("-R", "ioping", "iops"): 74.0},
    ),
    "dd of other amounts below headings": (
        f"## WSL2\n$ {_WRITES}{_COPIED.format(8)}\n## WSL1\n$ {_WRITES.replace('4096', '8192')}{_COPIED.format(4)}",
        {("WSL2", "dd if=/dev/zero of=/tank/f bs=1M", "rate_bytes_per_s"): 4294967296 / 8},
    ),
    "two tools in one text": (
        _TIOTEST + _BONNIE.format("bonnie++:", 112000),
        {("post", "bonnie++", "put_block/rate_bytes_per_s"): 112000 * 1024.0},
    ),
    "names over the columns left of theirs": (
        "New | Used | |\n---|---|---|\nread | 495.4 MB/s | 489.6 MB/s |\nwrite | 440.0 MB/s | 143.4 MB/s |\n",
        {("New", "write", "write.rate_bytes_per_s"): 440 * MB, ("Used", "read", "read.rate_bytes_per_s"): 489.6 * MB},
    ),
    "columns of ways and sides": (
        "| MB/s | write - master | write - branch | read - master | read - branch |\n|---|---|---|---|---|\n"
        "| 4k | 916 | 999 | 1095 | 1415 |\n| 512m | 1207 | 1169 | 1619 | 1556 |\n",
        {
            ("branch", "write 4k", "rate_bytes_per_s"): 999 * MB,
            ("master", "read 512m", "rate_bytes_per_s"): 1619 * MB,
        },
    ),
    "benchstat without its header": (
        "Scan10-8   1.87MB/s \u00b1 8%   2.51MB/s \u00b1 1%      +34.57%   (p=0.000 n=10+9)\n"
        "Scan100-8  12.0MB/s \u00b1 4%   18.1MB/s \u00b1 5%      +50.82%  (p=0.000 n=10+10)\n",
        {
            ("old", "go-bench Scan10-8", "rate_bytes_per_s"): 1.87 * MB,
            ("new", "go-bench Scan100-8", "rate_bytes_per_s"): 18.1 * MB,
        },
    ),
    "calls of dd that time timed": (
        "".join(
            f"{title}:\n\n$ time dd if=/dev/zero of=big{n}.dat bs=1M count=4096\n{_COPIED.format(n * 4)}\n"
            f"real\t0m{n * 4}.2s\nuser\t0m0.1s\nsys\t0m0.2s\n\n"
            for n, title in ((1, "Today I have"), (2, "With the older release"))
        ),
        {
            ("Today I have", "dd if=/dev/zero bs=1M count=4096", "rate_bytes_per_s"): 4294967296 / 4,
            ("With the older release", "time dd if=/dev/zero bs=1M count=4096", "elapsed_s"): 8.2,
        },
    ),
    "words before reads and writes": (
        "Uncompressed sequential read: 223MB/sec write: 309MB/sec\n"
        "Compressed sequential read: 566MB/sec write: 1.12GB/sec\n",
        {
            ("post", "Uncompressed sequential read", "read.rate_bytes_per_s"): 223 * MB,
            ("post", "Compressed sequential write", "write.rate_bytes_per_s"): 1120 * MB,
        },
    ),
    "units spelled out": (
        "== result (KBps) ==\nwrite 1 2 4\nlock 24936 24738 24726\nnolock 24962 30866 32101\n",
        {("nolock", "table[4]", "rate_bytes_per_s"): 32101e3},
    ),
    "words of other languages": (
        "Scheda | lettura (MB/s) | scrittura (MB/s)\n---|---|---\nA | 90.1 | 30.5\nB | 95.2 | 40.5\n",
        {("B", "table", "write.rate_bytes_per_s"): 40.5 * MB, ("A", "table", "read.rate_bytes_per_s"): 90.1 * MB},
    ),
    "multiples in parentheses": (
        "Results (us/op):\n\n| Operations | Redis | SQLite3 | TiDB |\n|---|---|---|---|\n"
        "| mkdir | 252 | 1001 (4.0) | 6800 (27.0) |\n| rmdir | 292 | 1000 (3.4) | 10047 (34.4) |\n",
        {("SQLite3", "mkdir", "time_ns"): 1001e3, ("Redis", "rmdir", "time_ns"): 292e3},
    ),
    "what two drives attain": (
        "The Samsung 970 gets 3400 MB/s, while the SN550 only does 2300 MB/s.\n",
        {("SN550", "list", "rate_bytes_per_s"): 2300 * MB},
    ),
    "a cell a line": (
        "Pools\n\nPool\n\nBacking\n\nLayout\n\nUsed\n\nnvme\n\nNVMe SSD\n\nstripe (2 drives)\n\n84%\n\ndata0\n\nHDD\n\n"
        "3x mirror\n\n91%\n\nNote: nvme is striped.\n\n\nSummary\n\nTest\n\nPattern\n\n"
        "Depth\n\nnvme (84%)\n\ndata0 (91%)\n\n"
        "Seq. Write\n\nwrite\n\n1\n\n317 MiB/s\n\n127 MiB/s\n\nRand Read IOPS\n\nrandread\n\n32\n\n21,500\n\n419\n",
        {
            ("data0 (91%)", "Seq. Write[Pattern=write,Depth=1]", "write.rate_bytes_per_s"): 127 * MIB,
            ("nvme (84%)", "Rand Read [Pattern=randread,Depth=32]", "read.iops"): 21500,
        },
    ),
    "cells of numbers, a line each": (
        "threads\next4\nxfs\n1\n500 MB/s\n510 MB/s\n4\n900 MB/s\n950 MB/s\n",
        {
            ("ext4", "table[threads=4]", "rate_bytes_per_s"): 900 * MB,
            ("xfs", "table[threads=1]", "rate_bytes_per_s"): 510 * MB,
        },
    ),
    "ranges, below names of two columns": (
        "Protocol | Configuration | Time (seconds) | Load |\n---|---|---|---|\n"
        "NFS | Kernel server (sync) | 32-36 | Low |\n"
        "NFS | Kernel server (async) | 3-4 | Low |\nSamba | Default config | 4-7 | Medium |\n",
        {
            ("NFS Kernel server (sync)", "table", "Time_ns"): 34e9,
            ("Samba Default config", "table", "Time_ns"): 5.5e9,
        },
    ),
    "settings that were measured in their own way": (
        "| Engine | I/O depth | IOPS | p99 clat |\n|---|---:|---:|---:|\n| `io_uring` | 8 | 10.2k | 1483 us |\n"
        "| `sync` | 1 | 5007 | 486 us |\n",
        {
            ("io_uring[I/O depth=8]", "table", "iops"): 10200,
            ("sync[I/O depth=1]", "table", "latency_ns_p99"): 486 * US,
        },
    ),
    "items of a list above fio's summaries": (
        "".join(
            f"- {name}\n```\n./run.py fs={name}\nBooted up in {ms} ms\nfio-3.29\nStarting 4 threads\n...\n"
            "Run status group 0 (all jobs):\n"
            f"   READ: bw={rate}MiB/s (1MB/s), 9MiB/s-9MiB/s (9MB/s-9MB/s), io=512MiB (537MB), run=350-350msec\n```\n\n"
            for name, ms, rate in (("zfs", 264.45, 1463), ("ext", 189.8, 63.2))
        ),
        {("zfs", "fio", "rate_bytes_per_s"): 1463 * MIB, ("ext", "fio", "rate_bytes_per_s"): 63.2 * MIB},
    ),
    "methods by what they were tried with": (
        "Method | composer install | yarn build\n--- | --- | ---\nNative | 12.1s | 31.0s\ngRPC FUSE | 1m 31s | 2m 5s\n",
        {("gRPC FUSE", "table", "composer install_ns"): 91e9, ("Native", "table", "yarn build_ns"): 31e9},
    ),
    "a count before a rate in parentheses": (
        "| Operation | Rook | Default |\n|--|--|--|\n| Read | 286(4.5 MB/secs) | 8286(129 MB/secs) |\n"
        "| Write | 380(6 MB/secs) | 556(9 MB/secs) |\n",
        {("Rook", "Read", "read.iops"): 286, ("Default", "Write", "write.rate_bytes_per_s"): 9 * MB},
    ),
    "sizes in small and in large letters": (
        "BS | DEPTH | CACHE | IOPS\n---|---|---|---\n4K | 1 | SYNC | 6498\n4k | 1 | NOSYNC | 75300\n"
        "8k | 1 | SYNC | 5100\n8K | 1 | NOSYNC | 34000\n",
        {
            ("SYNC", "table[BS=4K,DEPTH=1]", "iops"): 6498,
            ("NOSYNC", "table[BS=4K,DEPTH=1]", "iops"): 75300,
            ("NOSYNC", "table[BS=8k,DEPTH=1]", "iops"): 34000,
        },
    ),
    "sizes and multiples beside rates": (
        "| lane | config | physical | compressratio | GB per 1M blocks |\n|---|---|--:|--:|--:|\n"
        "| l0 | ext4 | 23.4 GB | \u2014 | 23.2 |\n| l1 | zfs zstd | 8.2 GB | 2.88\u00d7 | 8.1 |\n"
        "| l2 | zfs lz4 | 9.9 GB | 2.42\u00d7 | 9.7 |\n",
        {
            ("l0 ext4", "table", "physical (GB)"): 23.4,
            ("l1 zfs zstd", "table", "compressratio (x)"): 2.88,
            ("l1 zfs zstd", "table", "GB per 1M blocks"): 8.1,
        },
    ),
    "ranges in a list": (
        "benchmark of the cipher: 8.8GB/s\n\next4: 900MB/s - 1000MB/s\next4-luks: 650-800 MB/s\nntfs: 175MB/s\n",
        {
            ("ext4", "list", "rate_bytes_per_s"): 950 * MB,
            ("ext4-luks", "list", "rate_bytes_per_s"): 725 * MB,
            ("ntfs", "list", "rate_bytes_per_s"): 175 * MB,
        },
    ),
    "a sheet below what was measured": (
        "Server (RAID 1):\nfsync: 30.5 ops/sec (\u224832.7ms per operation)\n"
        "Local:\nfsync: 34.6 ops/sec (\u224828.9ms per operation)\nKey hardware specifications:\n- Dual 2TB SATA\n",
        {("Server (RAID 1)", "fsync", "operations_per_s"): 30.5, ("Local", "fsync", "operations_per_s"): 34.6},
    ),
    "from where to where": (
        "qemu-img (master)\n nfs -> iscsi 22.8 secs\n nfs -> ram   11.7 secs\n\n"
        "qemu-img-async (8 coroutines, in-order write disabled)\n nfs -> iscsi 11.0 secs\n nfs -> ram   10.4 secs\n",
        {
            ("qemu-img (master)", "list", "nfs to iscsi_ns"): 22.8e9,
            ("qemu-img-async (8 coroutines, in-order write disabled)", "list", "nfs to ram_ns"): 10.4e9,
        },
    ),
    "a row of amounts below a title": (
        "| **Write speed (MiB/s)** | **Unit** | | |\n|---|---|---|---|\n| **Size** | **10** | **50** | **MiB** |\n"
        "| soft | 13.16 | 13.48 | MiB/s |\n| plain | 12.66 | 12.82 | MiB/s |\n",
        {
            ("soft", "table[10 MiB]", "rate_bytes_per_s"): 13.16 * MIB,
            ("plain", "table[50 MiB]", "rate_bytes_per_s"): 12.82 * MIB,
        },
    ),
    "reads below a label, and writes": (
        f"Reading a file from the snapshot (of=/dev/null):\n{_COPIED.format(46.0)}\nWriting when idle:\n"
        f"$ {_WRITES}{_COPIED.format(2.0)}\nCopying during that time:\n$ {_WRITES}{_COPIED.format(38.0)}",
        {
            ("Writing when idle", "dd if=/dev/zero of=/tank/f bs=1M count=4096", "elapsed_s"): 2.0,
            ("Copying during that time", "dd if=/dev/zero of=/tank/f bs=1M count=4096", "elapsed_s"): 38.0,
            (
                "Reading a file from the snapshot (of=/dev/null)",
                "dd Reading a file from the snapshot",
                "elapsed_s",
            ): 46.0,
        },
    ),
    "rates that a Go benchmark reports": (
        "Engine:badger Benchmarkycsb/A/values=1000 160284  16028.1 ops/sec  0 read  0.00 w-amp\n"
        "Engine:pebble Benchmarkycsb/A/values=1000 6820  681.9 ops/sec  0 read  1.00 w-amp\n",
        {
            ("badger", "go-bench ycsb/A/values=1000", "operations_per_s"): 16028.1,
            ("pebble", "go-bench ycsb/A/values=1000", "operations_per_s"): 681.9,
        },
    ),
    "one program timed with other options": (
        "".join(
            f'\tCommand being timed: "./iobench -c 48{option}"\n\tUser time (seconds): {user}\n'
            f"\tSystem time (seconds): 1.0\n\t**Elapsed (wall clock) time (h:mm:ss or m:ss): 0:0{elapsed}**\n"
            "\tExit status: 0\n"
            for option, user, elapsed in ((" -s", 19.41, 1.25), ("", 17.72, 2.5))
        ),
        {
            ("-s", "./iobench -c 48", "elapsed_s"): 1.25,
            ("without -s", "./iobench -c 48", "cpu_user_s"): 17.72,
        },
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_posts(tmp_path: Path, kind: str) -> None:
    text, wanted = KINDS[kind]
    path = tmp_path / "post.txt"
    path.write_text(text)
    rows = open_run(path).metrics.select("setting", "workload", "key", "value", "round").rows()
    found = {(setting, workload, key): value for setting, workload, key, value, _ in rows}
    assert not any(round for *_, round in rows), rows
    assert {place: found.get(place) for place in wanted} == pytest.approx(wanted), rows


@pytest.mark.parametrize("line", ["_1m:_", "_1m_:"])
def test_a_title_in_italics_is_a_title(line: str) -> None:
    assert plain(line) == "1m:"


def test_work_of_one_setting_alone_is_named_beside_what_is_compared(tmp_path: Path) -> None:
    path = tmp_path / "post.txt"
    path.write_text(KINDS["ranges in a list"][0])
    compared = compare_runs([open_run(path)], ComparisonRequest())
    assert compared.doubts[-1].startswith("of one setting alone, and not compared; iolab show prints it: 'benchmark")
    assert compared.read_as == "baseline: ext4, the setting of the first row"


def test_a_report_of_iostat_alone_is_of_the_time_since_the_boot(tmp_path: Path) -> None:
    path = tmp_path / "post.txt"
    path.write_text(
        "Device             tps    kB_read/s    kB_wrtn/s\nsda              12.30       120.12       340.40\n"
    )
    assert "since the boot" in open_run(path).problems[0]
