"""Benchmarks that programs bring along, and what programs print that back up. Texts are in each tool's format, with
figures of their own."""

from pathlib import Path

import pytest
from test_importer_headings import figures

MB, KIB, GIB = 1e6, 2.0**10, 2.0**30
MS, US = 1e6, 1e3
GO = """old:
goos: linux
BenchmarkStore/Put64@100-4 \t     500\t   2500000 ns/op\t  26.20 MB/s\t     320 B/op\t       5 allocs/op
BenchmarkStore/Scan-4      \t      10\t 125000000 ns/op\t         7.000 levels\t       640.5 files/s
PASS
new:
goos: linux
BenchmarkStore/Put64@100-4 \t    1000\t   1250000 ns/op\t  52.40 MB/s\t     320 B/op\t       5 allocs/op
BenchmarkStore/Scan-4      \t      20\t  62500000 ns/op\t         7.000 levels\t      1281 files/s
PASS
"""
CRITERION = """{title}:
Benchmarking log/append
Benchmarking log/append: Analyzing
log/append              time:   [1.2000 ms 1.2500 ms 1.3100 ms]
                        thrpt:  [3.0000 GiB/s 3.1250 GiB/s 3.2000 GiB/s]
                 change:
                        time:   [-6.2000% -5.1000% -4.0000%] (p = 0.00 < 0.05)
                        Performance has improved.
Found 3 outliers among 100 measurements (3.00%)
  3 (3.00%) high mild
log/read back with a long name
                        time:   [11.900 µs 12.500 µs 13.000 µs]
                        thrpt:  [76.900 Kelem/s 80.000 Kelem/s 84.000 Kelem/s]

"""


def test_benchmarks_of_go_are_workloads_whatever_slashes_are_in_their_names(tmp_path: Path) -> None:
    wanted = {
        ("old", "go-bench Store/Put64@100-4", "latency_ns_mean"): 2.5 * MS,
        ("old", "go-bench Store/Put64@100-4", "rate_bytes_per_s"): 26.2 * MB,
        ("old", "go-bench Store/Scan-4", "operations_per_s"): 640.5,
        ("new", "go-bench Store/Scan-4", "latency_ns_mean"): 62.5 * MS,
    }
    (problem,) = figures(tmp_path, GO, wanted)
    assert problem.endswith(":3: figures in B/op, allocs/op, levels: left out")


def test_a_benchmark_of_go_may_report_rates_alone_and_name_its_setting_in_each_line(tmp_path: Path) -> None:
    line = "Engine:{} Benchmarkycsb/A/values=1000 160284  {} ops/sec  0 read  6.45 r-amp\n"
    text = f"### Badger (partly)\n{line.format('badger', 16028.5)}\n### Pebble\n{line.format('pebble', 681.5)}"
    wanted = {
        ("badger", "go-bench ycsb/A/values=1000", "operations_per_s"): 16_028.5,
        ("pebble", "go-bench ycsb/A/values=1000", "operations_per_s"): 681.5,
    }
    (problem,) = figures(tmp_path, text, wanted)
    assert problem.endswith(":2: figures in read, r-amp: left out")


def test_criterion_states_an_estimate_between_its_bounds(tmp_path: Path) -> None:
    text = CRITERION.format(title="before") + CRITERION.format(title="after").replace("1.2500 ms", "1.2200 ms")
    wanted = {
        ("before", "criterion log/append", "latency_ns_mean"): 1.25 * MS,
        ("after", "criterion log/append", "latency_ns_mean"): 1.22 * MS,
        ("before", "criterion log/append", "rate_bytes_per_s"): 3.125 * GIB,
        ("after", "criterion log/read back with a long name", "latency_ns_mean"): 12.5 * US,
        ("after", "criterion log/read back with a long name", "operations_per_s"): 80_000,
    }
    assert figures(tmp_path, text, wanted) == []


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("0.25 seconds", 0.25),
        ("2 minutes 5.50 seconds", 125.5),
        ("1 hours 1 minutes 1.00 seconds", 3661),
    ],
)
def test_borg_states_how_long_it_took(tmp_path: Path, line: str, seconds: float) -> None:
    text = (
        "Archive name: monday\nTime (start): Mon, 2024-03-04 01:00:00\nTime (end):   Mon, 2024-03-04 01:02:05\n"
        f"Duration: {line}\nNumber of files: 10\n"
        "                       Original size      Compressed size    Deduplicated size\n"
        "This archive:               10.00 GB              8.00 GB             12.00 MB\n"
    )
    assert figures(tmp_path, text, {("posted", "borg", "elapsed_s"): seconds}) == []


def test_restic_states_how_much_it_read_in_how_long(tmp_path: Path) -> None:
    text = (
        "Files:         100 new,     0 changed,     0 unmodified\n"
        "Added to the repository: 1.000 GiB (900.0 MiB stored)\n\n"
        "processed 100 files, 1.500 GiB in 1:05\nsnapshot 0a1b2c3d saved\n"
    )
    wanted = {("posted", "restic", "elapsed_s"): 65, ("posted", "restic", "bytes"): 1.5 * GIB}
    assert figures(tmp_path, text, wanted) == []


HYPERFINE = """Benchmark 1: ./check all
  Time (mean ± \u03c3):     {mean} s ±  0.250 s    [User: 4.500 s, System: 1.250 s]
  Range (min … max):    9.500 s … 13.500 s    10 runs

"""


def test_a_command_that_hyperfine_timed_again_is_of_the_settings_above(tmp_path: Path) -> None:
    text = f"Before:\n\n{HYPERFINE.format(mean='12.500')}\nAfter:\n\n{HYPERFINE.format(mean='10.500')}"
    wanted = {
        ("Before", "./check all", "elapsed_s_mean"): 12.5,
        ("After", "./check all", "elapsed_s_mean"): 10.5,
    }
    assert figures(tmp_path, text, wanted) == []


def test_how_long_a_command_took_is_no_round_of_what_it_printed(tmp_path: Path) -> None:
    text = (
        "$ time dd if=/dev/zero of=f bs=1k count=1\n"
        "1024 bytes (1.0 kB, 1.0 KiB) copied, 0.0002 s, 5.1 MB/s\n\n"
        "real\t0m0.007s\nuser\t0m0.001s\nsys\t0m0.003s\n"
    )
    command = "dd if=/dev/zero of=f bs=1k count=1"
    wanted = {("posted", command, "elapsed_s"): 0.0002, ("posted", f"time {command}", "elapsed_s"): 0.007}
    assert figures(tmp_path, text, wanted) == []


def test_a_trace_of_a_shell_in_remarks_that_a_change_adds(tmp_path: Path) -> None:
    line = "0.10user 0.90system 0:0{}elapsed 46%CPU (0avgtext+0avgdata 0maxresident)k\n"
    text = (
        f"+# + env time /a/bin/rm -rf one\n+# {line.format('4.50')}+# + cp -a e two\n"
        f"+# + env time /b/rm -rf two\n+# {line.format('1.50')}+# done\n"
    )
    wanted = {("posted", "/a/bin/rm -rf one", "elapsed_s"): 4.5, ("posted", "/b/rm -rf two", "elapsed_s"): 1.5}
    assert figures(tmp_path, text, wanted) == []


def test_a_dated_line_between_two_times_may_name_another_setting(tmp_path: Path) -> None:
    taken = "real\t0m{}s\nuser\t0m1.001s\nsys\t0m0.003s\n"
    text = (
        f"{taken.format('4.500')}Fri Mar  1 13:04:18 UTC 2024 [two] run with other options\n\n{taken.format('3.500')}"
    )
    (problem,) = figures(tmp_path, text, {("posted", "command", "elapsed_s"): 4.5})
    assert "taken as a round of 'posted'" in problem


def test_what_zsh_repeats_below_dd_is_no_command_without_figures(tmp_path: Path) -> None:
    text = (
        "$ time dd if=/dev/zero bs=1k of=f count=1\n1024 bytes (1.0 kB, 1.0 KiB) copied, 0.0002 s, 5.1 MB/s\n"
        "dd if=/dev/zero bs=1k of=f count=1  0.00s user 0.00s system 89% cpu 0.003 total\n"
    )
    command = "dd if=/dev/zero bs=1k of=f count=1"
    wanted = {("posted", command, "elapsed_s"): 0.0002, ("posted", f"time {command}", "elapsed_s"): 0.003}
    assert figures(tmp_path, text, wanted) == []


BENCHSTAT = """name                  old time/op    new time/op    delta
Store/Put64@100-4       2.50µs ± 2%    1.25µs ±17%  -50.00%  (p=0.008 n=5+5)
Store/Scan-4             125ms ± 0%     130ms ± 1%     ~     (p=0.690 n=5+5)

name                  old speed      new speed      delta
Store/Put64@100-4     26.2MB/s ± 2%  52.4MB/s ±17%  +100.00%  (p=0.008 n=5+5)
name                  old ops/sec    new ops/sec    delta
Store/Scan-4             69.6k ± 7%    1.08M ± 9%     ~     (p=0.841 n=5+5)
name                  old alloc/op   new alloc/op   delta
Store/Put64@100-4         320B ± 0%      320B ± 0%     ~     (all equal)
"""
BENCHSTAT_NEW = """goos: linux
                  │  base.txt   │              fast.txt               │
                  │   sec/op    │   sec/op     vs base                │
Store/Put64@100-4   2.500µ ± 1%   1.250µ ± ∞ ¹  -50.00% (p=0.000 n=10)
Store/Scan-4        125.0m ± 0%   130.0m ± 1%       ~ (p=0.690 n=10)
geomean             559.0µ        403.1µ        -27.89%
                  │     B/s      │      B/s       vs base                │
Store/Put64@100-4   25.00Mi ± 1%   50.00Mi ± 2%  +100.00% (p=0.000 n=10)
"""
PUT, SCAN = "go-bench Store/Put64@100-4", "go-bench Store/Scan-4"


def test_benchstat_names_the_unit_in_its_header_and_the_prefix_in_the_cell(tmp_path: Path) -> None:
    wanted = {
        ("old", PUT, "latency_ns_mean"): 2500,
        ("new", PUT, "latency_ns_mean"): 1250,
        ("old", SCAN, "latency_ns_mean"): 125e6,
        ("new", PUT, "rate_bytes_per_s"): 52.4 * MB,
        ("old", SCAN, "operations_per_s"): 69_600,
        ("new", SCAN, "operations_per_s"): 1_080_000,
    }
    problem, unchanged = figures(tmp_path, BENCHSTAT, wanted)
    assert "posted.txt:9: the table of alloc/op is left out: iolab has no such metric" in problem
    assert "benchstat itself finds no difference (~) in 1 benchmark: Store/Scan-4; its p, n" in unchanged
    assert len(figures(tmp_path, "".join(f"> {line}\n" for line in BENCHSTAT.splitlines()), wanted)) == 2


def test_the_newest_benchstat_has_a_column_per_file(tmp_path: Path) -> None:
    wanted = {
        ("base", PUT, "latency_ns_mean"): 2500,
        ("fast", SCAN, "latency_ns_mean"): 130e6,
        ("fast", PUT, "rate_bytes_per_s"): 50 * 2**20,
    }
    (unchanged,) = figures(tmp_path, BENCHSTAT_NEW, wanted)
    assert "no difference (~) in 1 benchmark: Store/Scan-4" in unchanged
    two = "name \\ time/op  ext4         xfs          btrfs\nRead4K-8        1.12µs ± 1%  1.00µs ± 2%  2.00ms ± 0%\n"
    wanted = {
        ("ext4", "go-bench Read4K-8", "latency_ns_mean"): 1120,
        ("btrfs", "go-bench Read4K-8", "latency_ns_mean"): 2e6,
    }
    assert figures(tmp_path, two, wanted) == []
    lacking = (
        "name \\ time/op  ext4         xfs\nRead4K-8        1.12µs ± 1%  1.00µs ± 2%\nWrite4K-8       1.12µs ± 1%\n"
    )
    (problem,) = figures(tmp_path, lacking, {("xfs", "go-bench Read4K-8", "latency_ns_mean"): 1000})
    assert "posted.txt:3: a row with fewer figures than files, or of another unit: left out" in problem


def test_benchcmp_has_bare_figures(tmp_path: Path) -> None:
    text = "benchmark  old ns/op   new ns/op   delta\nRead4K     1,123.0     998.1       -11.1%\n"
    wanted = {("old", "go-bench Read4K", "latency_ns_mean"): 1123, ("new", "go-bench Read4K", "latency_ns_mean"): 998.1}
    assert figures(tmp_path, text, wanted) == []


def test_bytes_of_a_go_benchmark_are_a_rate(tmp_path: Path) -> None:
    text = "BenchmarkSend-16  646  1791000 ns/op  586138181 bytes/sec  6164 B/op  147 allocs/op\n"
    wanted = {
        ("posted", "go-bench Send-16", "rate_bytes_per_s"): 586_138_181,
        ("posted", "go-bench Send-16", "latency_ns_mean"): 1_791_000,
    }
    (problem,) = figures(tmp_path, text, wanted)
    assert problem.endswith(":1: figures in B/op, allocs/op: left out")
