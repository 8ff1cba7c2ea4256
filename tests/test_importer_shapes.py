"""What people make of figures: tables whose rows are metrics, sentences of before and after, pieces of outputs.

Texts are written as such posts are, with figures of their own."""

from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.files.importer.run_import import open_run
from test_importer import opened, value

MIB = 2**20
OF_METRICS = """\
| Metric | none | bfq | Change |
|---|---|---|---|
| Random Read IOPS | 12,000 | 9,000 | -25.0% |
| Seq Write BW | 500 MB/s (0.5 GB/s) | 450 MB/s | -10.0% |
| Read latency (P99) | 320 μs | ~450 μs | +40.6% |
| [READ], MaxLatency(us) | 9,100 | 9,900 | +8.8% |
| Peak | 4.0-4.5 GB/s | 5 GB/s | |
"""
OF_POOLS = """\
| Test | pool0 (91%) | pool1 (12%) | pool0 vs. pool1 |
|---|---|---|---|
| Seq. Write | 125 MiB/s | 250 MiB/s | **50% slower** |
| Random Read IOPS | 400 | 12,000 | **30x slower** |
| Mixed p95 lat | 800 ms | 400 ms | **2x higher** |
"""
OF_ONE = """\
| Metric | Value | Unit |
|---|---|---|
| Sequential read | 1,500 | MB/s |
| Random 4K latency (avg) | 0.75 | ms |
| Random 4K latency (P99) | 1.5 | ms |
"""
SPREADSHEET = """\
metric,none,mq-deadline,Δ (%)
randread IOPS,240000,230000,-4.2
randread p99 (us),310,325,4.8
seqwrite MB/s,1900,1880,-1.1
"""
OF_CHANGES = """\
Two tests on a disk:
* 16 processes that read at random
** the bandwidth is improved from 400KB/s to 500KB/s
** the maximum latency is reduced from 8.5s to 2.5
* With this, 4k sequential write throughput drops from
  310 MB/s to 290 MB/s. The range is from 120MB/s to 160MB/s.
4K randread: 235k -> 250k IOPS
"""


@pytest.mark.parametrize(
    ("text", "name", "figures"),
    [
        (
            OF_METRICS,
            "table.md",
            {
                ("none", "Random Read", "read.iops"): 12_000,
                ("bfq", "Random Read", "read.iops"): 9_000,
                ("none", "Seq Write", "write.rate_bytes_per_s"): 500e6,
                ("bfq", "Read", "read.latency_ns_p99"): 450e3,
                ("none", "[READ]", "read.latency_ns_max"): 9_100e3,
                ("bfq", "Peak", "rate_bytes_per_s"): 5e9,
            },
        ),
        (
            OF_POOLS,
            "pools.md",
            {
                ("pool0 (91%)", "Seq. Write", "write.rate_bytes_per_s"): 125 * MIB,
                ("pool1 (12%)", "Random Read", "read.iops"): 12_000,
                ("pool0 (91%)", "Mixed", "latency_ns_p95"): 800e6,
            },
        ),
        (
            OF_ONE,
            "one.md",
            {
                ("one", "Sequential read", "read.rate_bytes_per_s"): 1.5e9,
                ("one", "Random 4K", "latency_ns_mean"): 750e3,
                ("one", "Random 4K", "latency_ns_p99"): 1.5e6,
            },
        ),
        (
            SPREADSHEET,
            "sheet.csv",
            {
                ("none", "randread", "read.iops"): 240_000,
                ("mq-deadline", "randread", "read.latency_ns_p99"): 325e3,
                ("mq-deadline", "seqwrite", "write.rate_bytes_per_s"): 1_880e6,
            },
        ),
        (
            "Metric;Read;Write\nIOPS;900;800\nlatency (ms);1.5;2.5\n",
            "ways.csv",
            {("ways", "Read", "read.iops"): 900, ("ways", "Write", "write.latency_ns_mean"): 2.5e6},
        ),
    ],
)
def test_rows_are_metrics_and_columns_settings(
    tmp_path: Path, text: str, name: str, figures: dict[tuple[str, str, str], float]
) -> None:
    run = opened(tmp_path / name, text)
    for place, expected in figures.items():
        assert value(run, *place) == pytest.approx(expected), place


@pytest.mark.parametrize(
    ("text", "workload", "figures"),
    [
        ("| Threads | IOPS |\n|---|---|\n| 1 | 100 |\n| 8 | 700 |\n", "table[Threads={}]", {"1": 100, "8": 700}),
        ("| Per-worker QD | IOPS |\n|--:|--:|\n| 2 | 300 |\n| 4 | 500 |\n", "table[Per-worker QD={}]", {"2": 300}),
        ("| BS (x) | IOPS |\n|---|---|\n| 1.5 | 300 |\n| 2.5 | 500 |\n", "table", {"": 300}),
        ("| Run | IOPS |\n|--:|--:|\n| 1 | 300 |\n| 2 | 500 |\n", "table", {"": 300}),
    ],
)
def test_columns_that_state_how_much_was_done_are_workloads(
    tmp_path: Path, text: str, workload: str, figures: dict[str, float]
) -> None:
    run = opened(tmp_path / "table.md", text)
    for amount, expected in figures.items():
        assert value(run, "table", workload.format(amount), "iops") == expected


def test_tables_below_different_headings_are_settings(tmp_path: Path) -> None:
    table = "| Test | Read MB/s |\n|---|---|\n| SEQ1M | {} |\n| RND4K | {} |\n"
    path = tmp_path / "page.md"
    path.write_text(f"## MB/s\n\n### old pool\n\n{table.format(1100, 40)}\n### new pool\n\n{table.format(1000, 500)}")
    run = open_run(path)
    assert sorted(run.settings) == ["new pool", "old pool"]
    assert set(run.metrics["round"]) == {0}


def test_settings_and_metrics_in_the_names_of_columns(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "table.md",
        "| phase | old IOPS | old BW | new IOPS | new BW | old vs new |\n|---|---|---|---|---|---|\n"
        "| 4k randread | 160k | 640 MiB/s | 165k | 660 MiB/s | +3.1% |\n",
    )
    assert value(run, "new", "4k randread", "iops") == 165e3
    assert value(run, "old", "4k randread", "rate_bytes_per_s") == 640 * MIB
    assert set(run.metrics["round"]) == {0}


def test_columns_beside_names_of_tests_are_settings(tmp_path: Path) -> None:
    path = tmp_path / "table.md"
    path.write_text(
        "| job | C0 (ext4) | BS (shadow) |\n|---|---|---|\n| seq-write | 216 | 192 |\n| rand-read 4k | 19.5 | 52.5 |\n"
    )
    run = open_run(path)
    assert value(run, "BS (shadow)", "rand-read 4k", "rand-read 4k") == 52.5
    assert value(run, "C0 (ext4)", "seq-write", "seq-write") == 216


def test_devices_are_no_part_of_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "table.md"
    path.write_text("| Tier | Device | Read |\n|---|---|---|\n| T1 | NVMe | 2.5 GB/s |\n| T2 | SSD | 0.5 GB/s |\n")
    assert set(open_run(path).metrics["workload"]) == {"table"}


def test_columns_of_tests_are_workloads(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "table.md",
        "| Backend | 4K randread | 64K randread |\n|---|---|---|\n| `a` | `3800 MiB/s` | `4400 MiB/s` |\n"
        "| `b` | `1200 MiB/s` | `2600 MiB/s` |\n",
    )
    assert value(run, "a", "table[4K randread]", "read.rate_bytes_per_s") == 3800 * MIB
    assert value(run, "b", "table[64K randread]", "read.rate_bytes_per_s") == 2600 * MIB


def test_tables_that_name_settings_below_different_titles_are_workloads(tmp_path: Path) -> None:
    table = "| phase | old | new |\n|---|---|---|\n| 4k randread | {} IOPS | {} IOPS |\n"
    run = opened(
        tmp_path / "table.md",
        f"**NVMe/RDMA** (100 GbE)\n\n{table.format('160k', '165k')}\n**NVMe/TCP** (same wire)\n\n"
        f"{table.format('115k', '240k')}",
    )
    assert value(run, "new", "4k randread[NVMe/TCP]", "read.iops") == 240e3
    assert value(run, "old", "4k randread[NVMe/RDMA]", "read.iops") == 160e3


def test_marks_behind_figures_and_remarks_above_them(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(
        "### Good\n\nSequential Write: 45.0 MB/s ✓\nRandom Read: 150 IOPS ✓\n\n"
        "### Poor\n\nSequential Write: 2.0 MB/s  ✗ (Target: >20 MB/s)\nRandom Read: 20 IOPS ✗ (Target: >100 IOPS)\n"
    )
    run = open_run(tmp_path / "list.txt")
    assert value(run, "Good", "Sequential Write", "write.rate_bytes_per_s") == 45e6
    assert value(run, "Poor", "Random Read", "read.iops") == 20
    copied = "```\n$ dd if=/dev/zero of=f bs=1G count=1\n1073741824 bytes (1.1 GB) copied, {} s, 1 MB/s\n```\n"
    (tmp_path / "dd.txt").write_text(f"// HDD speed\n{copied.format('8.0')}//NVMe\n{copied.format('2.0')}")
    run = open_run(tmp_path / "dd.txt")
    assert value(run, "HDD speed", "dd if=/dev/zero of=f bs=1G count=1", "elapsed_s") == 8
    assert value(run, "NVMe", "dd if=/dev/zero of=f bs=1G count=1", "elapsed_s") == 2


def test_what_is_no_single_figure_and_changes_are_named(tmp_path: Path) -> None:
    run = opened(tmp_path / "table.md", OF_METRICS)
    assert any("1 cell without a single figure, such as '4.0-4.5 GB/s'" in problem for problem in run.problems)
    assert any("columns of changes are left out" in problem for problem in run.problems)
    assert set(run.metrics["setting"]) == {"none", "bfq"}


def test_least_and_greatest_rates_are_no_rounds_of_the_mean(tmp_path: Path) -> None:
    run = opened(tmp_path / "list.txt", "Bandwidth: 300 MB/s (dd)\nMax bandwidth: 310 MB/s\nMin bandwidth: 290 MB/s\n")
    assert set(run.metrics["round"]) == {0}
    assert value(run, "list", "list", "rate_bytes_per_s") == 300e6


def test_sentences_state_what_was_before_and_after(tmp_path: Path) -> None:
    run = opened(tmp_path / "mail.txt", OF_CHANGES)
    reads = "16 processes that read at random"
    for setting, rate, longest in (("before", 400e3, 8.5e9), ("after", 500e3, 2.5e9)):
        assert value(run, setting, reads, "rate_bytes_per_s") == rate
        assert value(run, setting, reads, "latency_ns_max") == longest
    assert value(run, "before", "4k sequential write", "write.rate_bytes_per_s") == 310e6
    assert value(run, "after", "4k sequential write", "write.rate_bytes_per_s") == 290e6
    assert value(run, "before", "4K randread", "read.iops") == 235e3
    assert value(run, "after", "4K randread", "read.iops") == 250e3
    assert 120e6 not in set(run.metrics["value"]), "a range is no change"
    assert any("check them against the text" in problem for problem in run.problems)


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        (
            "/dev/hda:\n Timing buffer-cache reads:   128 MB in  3.20 seconds =40.00 MB/sec\n"
            " Timing buffered disk reads:  64 MB in 8.00 seconds =  8.00 MB/sec\n",
            {("hdparm /dev/hda", "buffer_cache/rate_bytes_per_s"): 40 * MIB},
        ),
        (
            "Compare file sync methods using one 8kB write:\n        fdatasync        1500.250 ops/sec\n"
            "        fsync             700.500 ops/sec    1428 usecs/\nop\n",
            {
                ("pg_test_fsync one 8kB write", "fdatasync/iops"): 1500.25,
                ("pg_test_fsync one 8kB write", "fsync/latency_ns_mean"): 1_428e3,
            },
        ),
        (
            "Total time run:       20.5\nTotal writes made:    500\nBandwidth (MB/sec):   100.0\n"
            "Total time run:       20.0\nTotal reads made:     500\nBandwidth (MB/sec):   110.0\n",
            {
                ("rados write", "rate_bytes_per_s"): 100 * MIB,
                ("rados write", "elapsed_s"): 20.5,
                ("rados read", "rate_bytes_per_s"): 110 * MIB,
                ("rados read", "elapsed_s"): 20.0,
            },
        ),
        (
            "[code]     ------Sequential Output------ --Sequential Input- --Random-\n"
            "     -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--\n"
            "Size K/sec %CP K/sec %CP K/sec %CP K/sec %CP K/sec %CP /sec %CP\n"
            "  4G 90000  99 300000  96 190000  23 100000  97 400000 21 350.5   4\n"
            "    ------Sequential Create------ --------Random Create--------\n"
            "    16  3000  49 +++++ +++  2900  46   220   8 +++++ +++   110   5[/code]\n",
            {
                ("bonnie++", "put_block/rate_bytes_per_s"): 300_000 * 1024,
                ("bonnie++", "seek/iops"): 350.5,
                ("bonnie++", "seq_create/operations_per_s"): 3_000,
            },
        ),
        (
            "Version  1.97       ------Sequential Output------ --Sequential Input- --Random-\n"
            "FreeBSD         16G           108000  25 50000  11           204000   9 393.0   4\n",
            {
                ("bonnie++", "put_block/rate_bytes_per_s"): 108_000 * 1024,
                ("bonnie++", "rewrite/cpu_percent"): 11,
                ("bonnie++", "get_block/rate_bytes_per_s"): 204_000 * 1024,
                ("bonnie++", "seek/iops"): 393,
            },
        ),
        (
            "WRITE       Elapsed time     :        80ms        90ms\n"
            "            IOPS             :        9690        9600\n",
            {("elbencho", "write/iops"): 9_600, ("elbencho", "write/elapsed_s"): 0.09},
        ),
        (
            "intial create total runs 10 avg 30.50 MB/s (user 0.70s sys 2.40s)\nno runs for create\n"
            "delete compiled tree total runs 10 avg 4.25 seconds (user 0.60s sys 1.80s)\n",
            {
                ("compilebench", "intial_create/rate_bytes_per_s_mean"): 30.5 * MIB,
                ("compilebench", "delete_compiled_tree/elapsed_s_mean"): 4.25,
            },
        ),
        (
            "ioping: seek rate\n    min/avg/max/mdev = 90.0 us / 420.0 us / 7.50 ms / 380.0 us\n"
            "ioping: sequential read speed\n"
            "    generated 4.40 k requests in 5.00 s, 1.07 GiB, 1.20 k iops, 300.0 MiB/s\n\n"
            "dd: sequential write speed\n    1st run:    400.00 MiB/s\n    average:    400.00 MiB/s\n\n"
            "    Cachefly CDN:         5.00 MiB/s\n",
            {
                ("bench.sh", "seek/latency_ns_mean"): 420e3,
                ("bench.sh", "seek/latency_ns_max"): 7.5e6,
                ("bench.sh", "sequential/read.iops"): 1_200,
                ("bench.sh", "write.rate_bytes_per_s"): 400 * MIB,
            },
        ),
        (
            "--- . (ext4 /dev/sda) ioping statistics ---10 requests completed in 9009.6 ms, 2500 iops, 9.8 mb/s\n"
            "min/avg/max/mdev = 0.1/0.4/0.7/0.2 ms\n",
            {("ioping", "iops"): 2_500, ("ioping", "latency_ns_mean"): 400e3},
        ),
        (
            "        fsync/fdatasync/sync_file_range:\n"
            "            sync (usec): min=500, max=15000, avg=1200.5, stdev=1000\n"
            "            sync percentiles (usec):\n            |...,\n            | 99.00th=[ 6300], 99.50th=[ 9600]\n",
            {("fio", "sync.latency_ns_mean"): 1_200_500, ("fio", "sync.latency_ns_p99"): 6_300e3},
        ),
    ],
)
def test_pieces_of_outputs_as_they_are_posted(tmp_path: Path, text: str, figures: dict[tuple[str, str], float]) -> None:
    run = opened(tmp_path / "post.txt", text)
    for (workload, metric), expected in figures.items():
        assert value(run, "post", workload, metric) == pytest.approx(expected), metric
    assert not any(row["value"] == 0 and row["metric"] == "bytes" for row in run.metrics.iter_rows(named=True))


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        (
            "    capacity     operations    bandwidth\n    pool         used  avail   read  write   read  write\n"
            "    ----------  -----  -----  -----  -----  -----  -----\n"
            "    data         602M  3.16G  2,50K     51      0  6,50M\n",
            {("zpool data", "read.iops"): 2.5 * 1024, ("zpool data", "write.rate_bytes_per_s"): 6.5 * MIB},
        ),
        (
            "              KB  reclen   write rewrite    read    reread<br>\n"
            "            1024     256   78000 1110000  1960000  3250000<br>\n",
            {("iozone[file_kib=1024,record_kib=256]", "reread/rate_bytes_per_s"): 3_250_000 * 1024},
        ),
        (
            "fillsync     :   72000.500 micros/op;    0.0 MB/s (100 ops)\n"
            "readseq      :       0.900 micros/op; 1094.0 MB/s\n",
            {
                ("db_bench", "fillsync/latency_ns_mean"): 72_000_500,
                ("db_bench", "readseq/rate_bytes_per_s"): 1094 * MIB,
            },
        ),
    ],
)
def test_other_spellings_of_outputs(tmp_path: Path, text: str, figures: dict[tuple[str, str], float]) -> None:
    run = opened(tmp_path / "post.txt", text)
    for (workload, metric), expected in figures.items():
        assert value(run, "post", workload, metric) == pytest.approx(expected), metric
    absent = [row["key"] for row in run.metrics.iter_rows(named=True) if row["value"] is None]
    assert ("fillsync/rate_bytes_per_s" in absent) == ("fillsync" in text), "0.0 is below the decimals, and not none"


def test_a_job_of_fio_without_rates_is_no_job_that_did_nothing(tmp_path: Path) -> None:
    path = tmp_path / "post.txt"
    path.write_text(
        "read: (groupid=0, jobs=1): err= 0: pid=12847\n  read: IOPS=487, BW=487MiB/s (511MB/s), aggrb=487MiB/s\n"
    )
    with pytest.raises(InputError, match="no rates are below the line of job read"):
        open_run(path)


def test_names_that_end_in_a_number_title_outputs_above_a_ruler(tmp_path: Path) -> None:
    output = "intial create total runs 20 avg {} MB/s (user 0.70s sys 2.40s)\nno runs for create\n"
    path = tmp_path / "mail.txt"
    path.write_text(f"numbers\n\next4\n=====\n{output.format('30.00')}\next3\n=======\n{output.format('28.00')}")
    run = open_run(path)
    for setting, rate in (("ext4", 30), ("ext3", 28)):
        assert value(run, setting, "compilebench", "intial_create/rate_bytes_per_s_mean") == rate * MIB


def test_a_title_in_parentheses_names_the_run_below_it(tmp_path: Path) -> None:
    rates = "  read : io=524288KB, bw={}MB/s, iops={}, runt= {}msec\n"
    run = opened(
        tmp_path / "commit.txt",
        f"Reads of a block device:\n(Without this commit)\n{rates.format('1700.2', '435455', '301')}"
        f"\n(With this commit)\n{rates.format('2133.4', '546133', '240')}",
    )
    assert value(run, "Without this commit", "fio", "iops") == 435_455
    assert value(run, "With this commit", "fio", "iops") == 546_133


def test_columns_that_a_page_broke_off_are_named(tmp_path: Path) -> None:
    run = opened(
        tmp_path / "book.txt",
        "Device: rrqm/s wrqm/s r/s w/s rMB/s\nsda 0.00 11.00 0.50 24.00 0.25\n"
        "wMB/s avgrq-sz avgqu-sz await r_await w_await svctm %util\n0.14 13.35 0.15 6.06 5.33 6.08 0.42 1.04\n",
    )
    assert value(run, "book", "iostat sda", "write.iops") == 24
    assert any(":3: columns go on in a line of their own" in problem for problem in run.problems)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "Hello\n1       10M      0m8.401s         0m5.623s\n",
            r"1 line with figures .* such as 2: '1 +10M .*CSV file",
        ),
        ("It ran well.\nThe end.\n", "no line of it has figures"),
        ("bw 4, iops 5 and 6 of 7\n", r"1 line with figures that no format reads, such as 1: 'bw 4"),
        ("    time  read  miss  miss%  dmis  arcsz\n15:12:52    14     1      7     1   5.9G\n", "arcstat's report"),
        ("5000 records sent, 999.4 records/sec (0.10 MB/sec), 1.9 ms avg latency\n", "Kafka's performance test"),
    ],
)
def test_a_refusal_says_what_was_seen_and_what_to_do(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        opened(tmp_path / "text.txt", text)


def test_columns_of_one_metric_are_no_rounds_of_each_other(tmp_path: Path) -> None:
    """As iozone's: each of several ways to write is a workload of its own, wherever the unit stands."""
    rows = "\next4 | 50 | 51 | 90 | 40\nxfs | 60 | 61 | 95 | 45\n"
    names = ("write", "rewrite", "read", "random read")
    for unit, above in (("", "All in MB/s:\n\n"), (" (MB/s)", "")):
        header = " | ".join(["fs", *(f"{name}{unit}" for name in names)])
        run = opened(tmp_path / "a.txt", f"{above}{header}{rows}".replace(" | ", "    "))
        assert value(run, "ext4", "table[rewrite]", "write.rate_bytes_per_s") == 51e6
        assert value(run, "xfs", "table[random read]", "read.rate_bytes_per_s") == 45e6


@pytest.mark.parametrize(
    ("name", "text", "metric", "expected"),
    [
        ("a.txt", "IOPS (k):\n\n        ext4    xfs\nread    55      60\nwrite   70      75\n", "iops", 55_000),
        ("a.txt", "| fs | IOPS (k) |\n|--|--|\n| ext4 | 55 |\n| xfs | 60 |\n", "iops", 55_000),
        ("a.csv", "fs,IOPS [k]\next4,55\nxfs,60\n", "iops", 55_000),
        ("a.txt", "Latency in usec:\n\n12.5\n13.1\n12.9\n", "latency_ns_mean", 12_500),
    ],
)
def test_units_of_headings(tmp_path: Path, name: str, text: str, metric: str, expected: float) -> None:
    rows = opened(tmp_path / name, text).metrics.filter(metric=metric)
    assert rows["value"][0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("I measured the bandwidth, in MB/s.\n\nbefore   after\n210      230\n212      233\n", "rate (MB/s)"),
        ("Latency (us) of 4k reads at queue depth 1\n\nnone 55.1\nkyber 57.2\n", "latency (us)"),
        ("Average latency, usec:\n\next4 - 55\nxfs - 60\n", "latency (us)"),
    ],
)
def test_a_unit_that_a_sentence_states_is_asked_for_no_more(tmp_path: Path, text: str, column: str) -> None:
    with pytest.raises(InputError) as refused:
        opened(tmp_path / "a.txt", text)
    assert f"such as setting,round,{column};" in str(refused.value) and "nothing states" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (
            "| Cores | Replicas | IOPS |\n|---|---|---|\n| 4 | 1 | 41,000 |\n| 8 | 1 | 78,000 |\n| 8 | 3 | 31,000 |\n",
            {
                "table[Cores=4,Replicas=1]": 41_000,
                "table[Cores=8,Replicas=1]": 78_000,
                "table[Cores=8,Replicas=3]": 31_000,
            },
        ),
        (
            "| Disks | Record | IOPS |\n|---|---|---|\n| 4 | 128K | 412 |\n| 8 | 128K | 801 |\n| 8 | 1M | 988 |\n",
            {"table[Disks=4,Record=128K]": 412, "table[Disks=8,Record=128K]": 801, "table[Disks=8,Record=1M]": 988},
        ),
        (
            "| I/O Block Size | Mode | IOPS |\n|---|---|---|\n| 4K | randwrite | 3638 |\n| 128K | randwrite | 1134 |\n",
            {"randwrite[I/O Block Size=4K]": 3638, "randwrite[I/O Block Size=128K]": 1134},
        ),
    ],
)
def test_rows_of_other_conditions_are_no_rounds_of_each_other(
    tmp_path: Path, text: str, values: dict[str, float]
) -> None:
    run = opened(tmp_path / "conditions.md", text)
    assert {name: value(run, "conditions", name, "iops") for name in run.workloads} == values


def test_columns_of_conditions_between_tests_and_settings_are_no_settings(tmp_path: Path) -> None:
    table = """| Test | Pattern | Block Size | Jobs | nvme | disk |
|---|---|---|---|---|---|
| Seq. Write | write | 1 MiB | 1 | 317 MiB/s | 127 MiB/s |
| Rand Read IOPS | randread | 4 KiB | 4 | 21,500 | 419 |
"""
    run = opened(tmp_path / "conditions.md", table)
    assert list(run.settings) == ["nvme", "disk"]
    written = "Seq. Write[Pattern=write,Block Size=1 MiB,Jobs=1]"
    assert value(run, "disk", written, "write.rate_bytes_per_s") == 127 * 2**20
    (read,) = (name for name in run.workloads if name != written)
    assert value(run, "nvme", read, "read.iops") == 21_500


def test_results_below_other_commands_are_no_rounds_of_each_other(tmp_path: Path) -> None:
    """Whatever the prompt looks like; what was set before is the setting, however long the tool looked."""
    dbench = "Throughput {} MB/sec 5 procs\n"
    text = f"host:~ # dbench -D /work 5\n{dbench.format(40)}\nhost:~ # docker run bench -D /work 5\n{dbench.format(20)}"
    run = opened(tmp_path / "prompts.txt", text)
    assert sorted(run.workloads) == ["dbench 5 procs[dbench]", "dbench 5 procs[docker run bench]"]
    pgbench = (
        "scaling factor: 1\nnumber of clients: 1\nduration: 60 s\nlatency average = 7 ms\ntps = {} (without initial)\n"
    )
    sets = 'db=# \n$ psql -c "alter system set synchronous_commit = {}"\n$ pgbench -T 60 {}bench\n'
    text = sets.format("on", "-P 30 ") + pgbench.format(4000) + sets.format("off", "") + pgbench.format(9000)
    run = opened(tmp_path / "pgbench.txt", text)
    assert len(run.settings) == 2 and all("synchronous_commit" in name for name in run.settings)


def test_what_a_script_says_that_it_begins_is_a_title(tmp_path: Path) -> None:
    copied = "536870912 bytes (537 MB, 512 MiB) copied, {} s, {} MB/s\n"
    text = f"Running DD WRITE test...\n{copied.format(1.7, 310)}\nRunning DD READ test...\n{copied.format(1.1, 464)}"
    assert sorted(opened(tmp_path / "script.txt", text).workloads) == ["dd[DD READ test]", "dd[DD WRITE test]"]


def test_hdparm_of_a_very_slow_drive_is_in_thousands(tmp_path: Path) -> None:
    line = " Timing buffered disk reads: 2 MB in  33.87 seconds = 60.47 kB/sec\n"
    run = opened(tmp_path / "slow.txt", f"/dev/nvme0n1:\n{line}")
    assert value(run, "slow", "hdparm /dev/nvme0n1", "buffered_disk/rate_bytes_per_s") == 60.47 * 1024
