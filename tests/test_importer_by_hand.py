"""What people make by hand: tables with rules between rows, lists whose labels are what was changed, lines of a
distribution, and texts of which nothing can be read."""

from pathlib import Path

import pytest
from test_importer_headings import figures, refusal

MB, MIB = 1e6, 2.0**20
MS, US = 1e6, 1e3
RULED = """Bench of loop, IOPS

{rule}
|           | base   | base with mq | delta |
{rule}
| randread  | 1500   | 24000        | +1500%|
{rule}
| read      | 41000  | 52000        | +26.8%|
{rule}
| randwrite | 35000  | 34500        | -1%   |
{rule}
"""
WITHOUT_CORNER = """Here are some numbers (files/s):

          | SATA  |  SAN
----------+-------+-------
deadline  |  30.5 | 500.9
unpatched |  30.1 | 100.2
patched   |  32.0 | 520.9
"""
OF_FSPERF = """      metric           baseline       current        stdev            diff
================================================================================
avg_commit_ms               60.50         50.25          3.35   -16.94% *
dev_read_iops                  48            48             0     0.00%
end_state_umount_ns      1.80e+09      1.50e+09   14186226.85   -16.67% *
write_iops               10500.25      15750.75        392.92    50.00% *
"""
DISTRIBUTIONS = """ext4
IOPS mean 852 stddev 158 max 1200
lat (ms) mean 12.5 p99 40

xfs
IOPS mean 952 stddev 58 max 1300
lat (ms) mean 11.5 p99 30
"""
RSYNC = """pi@nas:/ $ rsync -vrth --progress /mnt/old/temp/ /srv/temp/
sending incremental file list
film.mp4
        700.00M 100%   44.89MB/s    0:00:15 (xfr#1, to-chk=2/4)

sent 750.50M bytes  received 57 bytes  42.50M bytes/sec
total size is 760.00M  speedup is 1.01

pi@nas:/ $ rsync -vrth --progress /mnt/new/temp/ /srv/temp/

sent 750,500,000 bytes  received 57 bytes  85,000,000.50 bytes/sec
total size is 760,000,000  speedup is 1.01
"""


@pytest.mark.parametrize("rule", ["-" * 52, "+-----------+--------+--------------+-------+"])
def test_rules_between_rows_begin_no_table(tmp_path: Path, rule: str) -> None:
    wanted = {
        ("base", "randread", "iops"): 1500,
        ("base with mq", "read", "iops"): 52_000,
        ("base with mq", "randwrite", "iops"): 34_500,
    }
    problems = figures(tmp_path, RULED.format(rule=rule), wanted)
    assert [problem.partition(": ")[2] for problem in problems] == [
        "columns of changes are left out: they are computed anew"
    ]


def test_a_heading_may_begin_behind_its_corner_and_rows_may_be_what_was_changed(tmp_path: Path) -> None:
    wanted = {
        ("deadline", "SATA", "operations_per_s"): 30.5,
        ("unpatched", "SAN", "operations_per_s"): 100.2,
        ("patched", "SAN", "operations_per_s"): 520.9,
    }
    assert figures(tmp_path, WITHOUT_CORNER, wanted) == []


def test_rows_with_bars_below_no_rule_are_counted(tmp_path: Path) -> None:
    text = f"a    | 1  | 2\nb    | 3  | 4\n\n{WITHOUT_CORNER}"
    (problem,) = figures(tmp_path, text, {("patched", "SATA", "operations_per_s"): 32.0})
    assert "posted.txt:1: 2 rows have no header with a rule such as |---|---| below it: left out" in problem


def test_marks_behind_rows_and_columns_of_spreads_are_no_figures(tmp_path: Path) -> None:
    wanted = {
        ("baseline", "avg_commit_ms", "avg_commit_ms"): 60.5,
        ("baseline", "end_state_umount_ns", "end_state_umount_ns"): 1.8e9,
        ("current", "write_iops", "write.iops"): 15_750.75,
    }
    problems = figures(tmp_path, OF_FSPERF, wanted)
    assert any("columns of spreads are left out" in problem for problem in problems)
    assert not any("stdev" in problem for problem in problems)


@pytest.mark.parametrize(
    "text",
    [
        "Write speed in MB/s by file size:\n\n       1G    4G    16G\next4   500   480   300\nxfs    520   500   310\n",
        "| fs | 1G | 4G | 16G |\n|---|---|---|---|\n| ext4 | 500 MB/s | 480 MB/s | 300 MB/s |\n"
        "| xfs | 520 MB/s | 500 MB/s | 310 MB/s |\n",
    ],
)
def test_columns_called_by_sizes_alone_are_what_was_done(tmp_path: Path, text: str) -> None:
    wanted = {
        ("ext4", "table[1G]", "rate_bytes_per_s"): 500 * MB,
        ("xfs", "table[16G]", "rate_bytes_per_s"): 310 * MB,
    }
    figures(tmp_path, text, wanted)


def test_whole_numbers_left_of_the_only_result_are_what_was_done(tmp_path: Path) -> None:
    text = (
        "| Readers | Savers | Trees | Total time |\n|---|---|---|---|\n"
        "| 2 | 16 | 16*20 | 7min06s (default) |\n| 16 | 64 | 64*20 | 2min33s |\n"
    )
    wanted = {
        ("posted", "table[Readers=2,Savers=16,Trees=16*20]", "elapsed_s"): 426,
        ("posted", "table[Readers=16,Savers=64,Trees=64*20]", "elapsed_s"): 153,
    }
    assert figures(tmp_path, text, wanted) == []


def test_labels_of_one_metric_are_settings_and_numbered_ones_rounds(tmp_path: Path) -> None:
    text = "size 256: 50 MB/s\nsize 4096: 123 MB/s\nhost (bare): ~200 MB/s\n"
    wanted = {
        ("size 256", "list", "rate_bytes_per_s"): 50 * MB,
        ("host (bare)", "list", "rate_bytes_per_s"): 200 * MB,
    }
    assert figures(tmp_path, text, wanted) == []
    figures(tmp_path, "GET: 100 MB/s\nPUT: 50 MB/s\n", {("posted", "GET", "rate_bytes_per_s"): 100 * MB})
    titled = "Before:\nalice: 50 MB/s\nbob: 60 MB/s\n\nAfter:\nalice: 70 MB/s\nbob: 80 MB/s\n"
    figures(tmp_path, titled, {("After", "alice", "rate_bytes_per_s"): 70 * MB})
    runs = figures(tmp_path, "Run 1: 500 MB/s\nRun 2: 510 MB/s\n", {("posted", "list", "rate_bytes_per_s"): 500 * MB})
    assert runs == []


def test_ranges_in_a_list_are_called_ranges(tmp_path: Path) -> None:
    text = "host: ~200k IOPS\nguest (idle): 100k ~ 110k IOPS\nother: 190k IOPS\n"
    (problem,) = figures(tmp_path, text, {("host", "list", "iops"): 200e3, ("other", "list", "iops"): 190e3})
    assert problem.endswith("2: 1 line has a range in place of a figure: left out; give the figure of each run")


def test_a_line_may_hold_the_figures_of_a_distribution(tmp_path: Path) -> None:
    wanted = {
        ("ext4", "list", "iops"): 852,
        ("ext4", "list", "iops_max"): 1200,
        ("xfs", "list", "latency_ns_mean"): 11.5 * MS,
        ("xfs", "list", "latency_ns_p99"): 30 * MS,
    }
    problems = figures(tmp_path, DISTRIBUTIONS, wanted)
    assert {problem.partition(": ")[2] for problem in problems} == {
        "of a rate, the mean and the extremes alone are read"
    }


def test_amounts_beside_figures_without_signs_are_of_the_workload(tmp_path: Path) -> None:
    text = "numjobs 1, qdepth 64, IOPS 19.4k, lat 3292.05us\nnumjobs 4, qdepth 1,  IOPS 40.4k, avg latency 95.5us\n"
    wanted = {
        ("posted", "list[numjobs=1,qdepth=64]", "iops"): 19_400,
        ("posted", "list[numjobs=4,qdepth=1]", "latency_ns_mean"): 95.5 * US,
    }
    assert figures(tmp_path, text, wanted) == []


def test_rsync_states_its_rate_and_files_of_progress_are_left_out(tmp_path: Path) -> None:
    wanted = {
        ("/mnt/old/temp/", "rsync -vrth --progress /srv/temp/", "rate_bytes_per_s"): 42.5 * MB,
        ("/mnt/new/temp/", "rsync -vrth --progress /srv/temp/", "rate_bytes_per_s"): 85 * MB + 0.5,
    }
    (problem,) = figures(tmp_path, RSYNC, wanted)
    assert "rates of single files, as --progress prints: left out" in problem


def test_a_title_goes_before_the_path_of_a_command_and_may_stand_right_below_one(tmp_path: Path) -> None:
    copied = "1000000000 bytes (1.0 GB, 954 MiB) copied, {} s, {} MB/s\n"
    dd = "{}:\ndd if=/dev/zero of=/mnt/{} bs=1M count=1000\n* " + copied
    text = dd.format("old one ", "a", "10", "100") + "\n" + dd.format("new one", "b", "5", "200")
    workload = "dd if=/dev/zero bs=1M count=1000"
    wanted = {
        ("old one", workload, "rate_bytes_per_s"): 100 * MB,
        ("new one", workload, "rate_bytes_per_s"): 200 * MB,
    }
    assert figures(tmp_path, text, wanted) == []
    line = "fillrandom   :       {} micros/op {} ops/sec;   {} MB/s\n"
    text = f"The change of\n./db_bench --benchmarks=fillrandom -n 5\nfrom\n{line.format(4.0, 250000, 30.5)}to\n"
    figures(tmp_path, text + line.format(2.0, 500000, 61.0), {("to", "db_bench", "fillrandom/iops"): 500_000})


def test_sentences_with_commas_are_no_csv_file(tmp_path: Path) -> None:
    text = (
        "This flag was set before the new API came, which tells the kernel that files have no such attributes.\n"
        "Unfortunately it was lost on the way, so that writes to one file are done one after the other.\n\n"
        "A nice win with nearly 60% throughput improvement from 826 MB/s to 1311 MB/s.\n"
    )
    figures(tmp_path, text, {("after", "nice win", "rate_bytes_per_s"): 1311 * MB})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Random reads are 15% faster with this patch, and sequential writes gain about 8%.\n",
            "ratios alone, such as '15%'",
        ),
        (
            "Indexing is about **20 % faster** with that (94s instead of 114s).\n",
            "1 line with figures that no format reads",
        ),
        (
            "md1 : active raid5 sda3[2]\n [>....] resync = 2.5% (1002/38970) finish=744.1min speed=85037K/sec\n",
            "/proc/mdstat, which is not read; put the speed",
        ),
        (
            "$ ior -i 1 -C -Q 1 -g -G 27 -t 16m\nSystem Read Throughput(MB/s) 16729.23 on 4\n",
            "no figure of it has its unit beside it, such as 2: 'System Read",
        ),
        (
            "```\n[global]\nioengine=libaio\nruntime=30 #stop after 30s\n\n[a]\nstartdelay=35 #add 5s\nrw=read\n```\n",
            "fio's job file, without results",
        ),
        ("test_number  test_name  KB_per_sec\n1  2k Bus Test  690808\n", "iorate's table"),
        ("FS-Mark\nOpenBenchmarking.org\nFiles/s, More Is Better\nEXT4\nXFS\n30\n60\n", "result-file-to-csv"),
    ],
)
def test_what_cannot_be_read_is_called_by_what_it_is(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(tmp_path, text)


def test_lists_beside_a_tool_that_marks_no_lines_are_not_lost_in_silence(tmp_path: Path) -> None:
    text = (
        "Measuring sequential write bandwidth: 473 MB/s\nMeasuring random read IOPS: 1999 IOPS\n\nand fio has\n"
        "test: (groupid=0, jobs=1): err= 0: pid=1: Wed Jun 26 08:58:13 2019\n"
        "   read: IOPS=47.6k, BW=186MiB/s (195MB/s)(3070MiB/16521msec)\n"
    )
    problems = figures(tmp_path, text, {("posted", "test", "read.iops"): 47_600})
    assert any("2 lines with figures were not read: 1-2 (first: 'Measuring" in problem for problem in problems)


def test_times_of_zsh_and_of_real_alone_are_read(tmp_path: Path) -> None:
    zsh = "{}:\n18.50s user 6.25s system 129% cpu 19.500 total\nmake -j8  17.5s user 6s system 120% cpu 1:02.50 total\n"
    text = zsh.format("old tree") + "\n" + zsh.format("new tree")
    wanted = {
        ("old tree", "command", "elapsed_s"): 19.5,
        ("new tree", "command", "cpu_system_s"): 6.25,
        ("new tree", "make -j8", "elapsed_s"): 62.5,
    }
    assert figures(tmp_path, text, wanted) == []
    alone = "1. time cp -a tree/go /data/one\nreal 58s\n\n2. time cp -a tree/go /data/two\nreal 2m52s\n"
    wanted = {
        ("/data/one", "cp -a tree/go", "elapsed_s"): 58,
        ("/data/two", "cp -a tree/go", "elapsed_s"): 172,
    }
    assert figures(tmp_path, alone, wanted) == []


def test_percentiles_are_no_changes_and_deviations_in_percent_are(tmp_path: Path) -> None:
    text = (
        "Name                     ips        average  deviation         median         99th %\n"
        "One Insert           7700.50       0.130 ms    ±33.34%       0.118 ms        0.24 ms\n"
        "Two Insert            480.25        2.06 ms     ±9.79%        2.03 ms        2.61 ms\n"
    )
    wanted = {
        ("One Insert", "table", "ips"): 7700.5,
        ("One Insert", "table", "latency_ns_p99"): 0.24 * MS,
        ("Two Insert", "table", "latency_ns_p50"): 2.03 * MS,
    }
    figures(tmp_path, text, wanted)


def test_entries_of_yaml_are_a_list_and_no_table(tmp_path: Path) -> None:
    text = "disks:\n  - mountpoint: /var/lib\n    read_iops: 32000\n    write_iops: 34600\n    read_bandwidth: 262607\n"
    (problem,) = figures(
        tmp_path, text, {("posted", "read", "read.iops"): 32_000, ("posted", "write", "write.iops"): 34_600}
    )
    assert "1 line has a figure of no metric that iolab knows: left out, 'read_bandwidth: 262607'" in problem


def test_a_command_of_fio_among_results_hides_none(tmp_path: Path) -> None:
    text = (
        "- thread B runs async. I/O\n  fio --rw=write --bs=128k --name=test\n\n"
        "[ w/o patch ]\nElapsed Time: Avg. 68 seconds\n[ w/ patch ]\nElapsed Time: Avg. 48 seconds\n"
    )
    wanted = {
        ("[ w/o patch ]", "Elapsed Time", "elapsed_s"): 68,
        ("[ w/ patch ]", "Elapsed Time", "elapsed_s"): 48,
    }
    assert figures(tmp_path, text, wanted) == []


def test_modes_of_caches_are_no_writes_and_minutes_may_have_a_colon(tmp_path: Path) -> None:
    text = (
        "cache = | off | writethrough | writeback |\n---|---|---|---|\n"
        "Old (0.10) | 16:50 min | 28:30 min | 6:02 min |\nraw | 5:41 min | 7:24 min | 6:03 min |\n"
    )
    wanted = {
        ("off", "raw", "time_ns"): 341e9,
        ("writethrough", "Old (0.10)", "time_ns"): 1710e9,
        ("writeback", "raw", "time_ns"): 363e9,
    }
    assert figures(tmp_path, text, wanted) == []


def test_a_ratio_before_what_was_measured_is_no_change(tmp_path: Path) -> None:
    text = (
        "| Compressor | Ratio | Compression| Decompress.|\n| --- | ---| ---| --- |\n"
        "| **zstd -1** | 2.887 | 530 MB/s | 1700 MB/s |\n| [lz4] 1.9 | 2.101 | 740 MB/s | 4500 MB/s |\n"
    )
    wanted = {
        ("zstd -1", "table", "Ratio"): 2.887,
        ("zstd -1", "table[Compression]", "rate_bytes_per_s"): 530 * MB,
        ("[lz4] 1.9", "table[Decompress.]", "rate_bytes_per_s"): 4500 * MB,
    }
    assert figures(tmp_path, text, wanted) == []


def test_access_sizes_are_what_was_done(tmp_path: Path) -> None:
    text = (
        "| Access Size | Queue Depth | IOPS | Latency (ms) |\n|---|---|---|---|\n"
        "| 4K | 1 | 10,600 | 0.092 |\n| 16K | 4 | 9,250 | 0.110 |\n"
    )
    wanted = {
        ("posted", "table[Access Size=4K,Queue Depth=1]", "iops"): 10_600,
        ("posted", "table[Access Size=16K,Queue Depth=4]", "latency_ns_mean"): 0.11 * MS,
    }
    assert figures(tmp_path, text, wanted) == []


def test_columns_called_by_changes_are_settings_though_one_has_ranges_alone(tmp_path: Path) -> None:
    text = (
        "| Command | Baseline | + monitor (warmed) | + monitor + cache |\n|---|---|---|---|\n"
        "| `git status -uall` (the panel) | ~55s | ~45-55s (no gain) | ~74-101s (worse) |\n"
        "| `git status -uno` | ~10s | ~0.2s | — |\n"
    )
    wanted = {
        ("Baseline", "git status -uall (the panel)", "time_ns"): 55e9,
        ("+ monitor (warmed)", "git status -uno", "time_ns"): 0.2e9,
    }
    (problem,) = figures(tmp_path, text, wanted)
    assert "2 cells without a single figure, such as '~45-55s (no gain)': left out" in problem


def test_ab_and_weed_state_their_rates_and_percentiles(tmp_path: Path) -> None:
    text = (
        "------------ Writing Benchmark ----------\nConcurrency Level:      64\n"
        "Time taken for tests:   100.000 seconds\nComplete requests:      100000\n"
        "Requests per second:    1000.00 [#/sec]\nTransfer rate:          9694.25 [Kbytes/sec]\n\n"
        "Connection Times (ms)\n              min      avg        max      std\n"
        "Total:        1.2      64.5       394.0      51.5\n\n"
        "   50%     51.5 ms\n   99%    229.0 ms\n  100%    394.0 ms\n"
        "------------ Randomly Reading Benchmark ----------\nRequests per second:    1250.00 [#/sec]\n"
    )
    wanted = {
        ("posted", "requests Writing Benchmark", "operations_per_s"): 1000,
        ("posted", "requests Writing Benchmark", "rate_bytes_per_s"): 9694.25 * 1024,
        ("posted", "requests Writing Benchmark", "latency_ns_mean"): 64.5 * MS,
        ("posted", "requests Writing Benchmark", "latency_ns_p99"): 229 * MS,
        ("posted", "requests Randomly Reading Benchmark", "operations_per_s"): 1250,
    }
    figures(tmp_path, text, wanted)


def test_progress_of_a_run_that_was_stopped_is_its_mean_and_that_of_a_whole_one_is_nothing(tmp_path: Path) -> None:
    progress = "Completed {} of 1048576 requests, 0.1% {}/s {}MB/s\n"
    stopped = progress.format(150, "150.0", "0.5") + progress.format(400, "250.0", "1.5") + "^C"
    text = (
        "~$ weed benchmark -fsync\n------------ Writing Benchmark ----------\n"
        f"{stopped}~$ weed benchmark -fsync=false\n------------ Writing Benchmark ----------\n"
        f"{progress.format(9000, '9000.0', '9.0')}Requests per second:    8000.00 [#/sec]\n"
    )
    wanted = {
        ("-fsync", "requests Writing Benchmark", "operations_per_s"): 200,
        ("-fsync", "requests Writing Benchmark", "rate_bytes_per_s"): MIB,
        ("-fsync=false", "requests Writing Benchmark", "operations_per_s"): 8000,
    }
    (problem,) = figures(tmp_path, text, wanted)
    assert "2 lines of progress, each of an interval, without the report at the end: their mean is taken" in problem


def test_a_lead_and_a_label_may_stand_before_one_figure(tmp_path: Path) -> None:
    text = "768GB RAM: throughput: 320,600 TPS\n 64GB RAM: throughput: 326,300 TPS\n"
    wanted = {
        ("768GB RAM", "list", "operations_per_s"): 320_600,
        ("64GB RAM", "list", "operations_per_s"): 326_300,
    }
    assert figures(tmp_path, text, wanted) == []


def test_a_share_of_reads_says_what_was_done_and_brackets_stay_whole(tmp_path: Path) -> None:
    text = (
        "4KB Random 100% Read: 5000 IOPS\n4KB Random 0% Read: 700 IOPS\n4KB Random 70% Read: 900 IOPS\n"
        "512KB Seq 100% Read (Throughput Test): 98 MB/S\nthroughput(psync) = 640MB/s\n"
    )
    wanted = {
        ("posted", "4KB Random 100% Read", "read.iops"): 5000,
        ("posted", "4KB Random 0% Read", "write.iops"): 700,
        ("posted", "4KB Random 70% Read", "iops"): 900,
        ("posted", "512KB Seq 100% Read (Throughput Test)", "read.rate_bytes_per_s"): 98 * MB,
        ("posted", "psync", "rate_bytes_per_s"): 640 * MB,
    }
    assert figures(tmp_path, text, wanted) == []


def test_a_label_may_hold_options(tmp_path: Path) -> None:
    text = "straight to tmpfs: 1.5 GB/s\nnull=true: 2.5 GB/s\ncache=off; through.io=off: 800 MB/s\n"
    wanted = {
        ("straight to tmpfs", "list", "rate_bytes_per_s"): 1500 * MB,
        ("null=true", "list", "rate_bytes_per_s"): 2500 * MB,
        ("cache=off; through.io=off", "list", "rate_bytes_per_s"): 800 * MB,
    }
    assert figures(tmp_path, text, wanted) == []


def test_labels_with_figures_are_no_heading_of_a_csv_file(tmp_path: Path) -> None:
    error = refusal(tmp_path, "w/o this change: 54k, 56K, 54K\nw/ this change:58.8k, 59k, 58K\n")
    assert "such as 1: 'w/o this change: 54k, 56K, 54K'" in error


def test_columns_that_a_third_divides_are_settings(tmp_path: Path) -> None:
    text = "| test | mine (sec) | plain (sec) | mine/plain |\n| copy | 3.5 | 1.5 | 2.33 |\n| scan | 18 | 10 | 1.8 |\n"
    wanted = {("mine", "copy", "time_ns"): 3.5e9, ("plain", "scan", "time_ns"): 10e9}
    (problem,) = figures(tmp_path, text, wanted)
    assert problem.endswith("posted.txt:1: columns of changes are left out: they are computed anew")


def test_columns_of_file_systems_are_settings_without_a_unit(tmp_path: Path) -> None:
    text = "|Buffer Size|btrfs|ext2|jfs|\n|---|---|---|---|\n|1|28.25|14.25|12.5|\n|2|14.5|7.25|6.25|\n"
    wanted = {
        ("btrfs", "table[Buffer Size=1]", "value"): 28.25,
        ("jfs", "table[Buffer Size=2]", "value"): 6.25,
    }
    assert figures(tmp_path, text, wanted) == []


@pytest.mark.parametrize("cells", ["7m | 4m", "07:19 | 03:16"])
def test_cells_that_may_be_minutes_are_neither_millions_nor_names(tmp_path: Path, cells: str) -> None:
    error = refusal(tmp_path, f"files | 0.9.6 | pull-2970\n-- | -- | --\n178K | {cells}\n420K | {cells}\n")
    assert f"4 cells without a single figure, such as '{cells.partition(' ')[0]}': left out" in error


def test_a_comma_behind_a_figure_is_none_of_it(tmp_path: Path) -> None:
    text = "old:\nIOPS=333.36K, BW=162MiB/s, IOS/call=31/31\nnew:\nIOPS=288864, BW=141MiB/s, IOS/call=32/31\n"
    wanted = {("old", "t-io_uring", "iops"): 333_360, ("new", "t-io_uring", "iops"): 288_864}
    assert figures(tmp_path, text, wanted) == []


def test_zsh_prints_a_decimal_comma_where_the_locale_has_one(tmp_path: Path) -> None:
    text = "git clone a b  5,49s user 1,70s system 43% cpu 16,659 total\n"
    wanted = {("posted", "git clone a b", "elapsed_s"): 16.659, ("posted", "git clone a b", "cpu_user_s"): 5.49}
    assert [one.partition(": ")[2] for one in figures(tmp_path, text, wanted)] == [
        "commas in figures are taken as decimal signs"
    ]


def test_the_same_labels_below_lines_that_say_what_was_done(tmp_path: Path) -> None:
    text = (
        "For **write** I saw\n   throughput(psync) = 600MB/s\n   throughput(libaio) = 2300MB/s\n"
        "   which is a great difference. **Is that** to be expected?\n"
        "For **read** I saw\n   throughput(psync) = 2400MB/s\n   throughput(libaio) = 2400MB/s\n"
    )
    wanted = {
        ("psync", "For write I saw", "write.rate_bytes_per_s"): 600 * MB,
        ("libaio", "For read I saw", "read.rate_bytes_per_s"): 2400 * MB,
    }
    assert figures(tmp_path, text, wanted) == []


def test_columns_that_share_one_of_their_metrics_are_no_rounds(tmp_path: Path) -> None:
    text = (
        "| filesystem | seq write | fsync-per-write |\n| --- | --- | --- |\n"
        "| /mnt/a | 88 MB/s | **8 MB/s, 120 iops** |\n| /mnt/b | 360 MB/s | **116 MB/s, 1800 iops** |\n"
    )
    wanted = {
        ("/mnt/a", "table[seq write]", "write.rate_bytes_per_s"): 88 * MB,
        ("/mnt/b", "table[fsync-per-write]", "write.rate_bytes_per_s"): 116 * MB,
        ("/mnt/b", "table[fsync-per-write]", "write.iops"): 1800,
    }
    assert figures(tmp_path, text, wanted) == []


def test_a_title_may_stand_in_quotes(tmp_path: Path) -> None:
    dd = "3145728000 bytes (3.1 GB, 2.9 GiB) copied, {} s, 678 MB/s\n"
    text = f"\u201cPacking with zstd-3\u201d\n{dd.format('4.5')}\u201cUnpacking with zstd-3\u201d\n{dd.format('3.5')}"
    wanted = {
        ("Packing with zstd-3", "dd", "elapsed_s"): 4.5,
        ("Unpacking with zstd-3", "dd", "elapsed_s"): 3.5,
    }
    assert figures(tmp_path, text, wanted) == []


def test_options_with_figures_beside_them_are_no_job_file(tmp_path: Path) -> None:
    text = "raw disk /dev/nvme1\niodepth=1\nnumjobs=1 r: 12.31(us) w: 12.78(us)\nnumjobs=2 r: 14.39(us) w: 14.78(us)\n"
    error = refusal(tmp_path, text)
    assert "2 lines with figures that no format reads, such as 3: 'numjobs=1 r: 12.31(us) w: 12.78(us)'" in error
    error = refusal(tmp_path, "**results BEFORE regression:** 110K ops (commit-id Ffbd)\n")
    assert "no figure of it has a unit that iolab knows, such as 1: '**results BEFORE regression:** 110K ops" in error


def test_amounts_rates_of_unknown_things_and_remarks_are_no_settings(tmp_path: Path) -> None:
    text = (
        "| Test | Rate | Total | Blobs | Verdict |\n|---|---|---|---|---|\n"
        "| seq read | 300 MB/s | 9,522 MiB | 12 blobs/s | improved, p < 0.05 |\n"
        "| seq write | 100 MB/s | 53.8 GiB | 13 blobs/s | improved, p < 0.05 |\n"
    )
    (problem,) = figures(tmp_path, text, {("posted", "seq read", "rate_bytes_per_s"): 300 * MB})
    assert "4 cells without a single figure, such as '9,522 MiB': left out" in problem


def test_settings_before_two_metrics_go_before_a_verdict_behind_them(tmp_path: Path) -> None:
    text = (
        (
            "| iters | before time | after time | before throughput | after throughput | verdict |\n|-|-|-|-|-|-|\n"
            "| 10 | 30 ms | 4 ms | 270 elem/s | 2.5 Kelem/s | improved |\n"
            "| 100 | 60 ms | 30 ms | 1.5 Kelem/s | 3 Kelem/s | improved |\n"
        )
        .replace("|-|", "|--|")
        .replace("-|-", "--|--")
    )
    wanted = {("before", "10", "operations_per_s"): 270, ("after", "100", "operations_per_s"): 3000}
    assert figures(tmp_path, text, wanted) == []


def test_numbers_of_things_and_loads_are_no_rounds(tmp_path: Path) -> None:
    text = (
        "| Run | # of Server Threads | # of Clients | Load (Ops/Sec) | Throughput (Ops/Sec) |\n"
        "| 1 | 1 | 5 | 800 | 350 |\n| 2 | 1 | 5 | 1600 | 210 |\n| 1 | 2 | 5 | 800 | 560 |\n"
    )
    of = "table[# of Server Threads={},# of Clients=5,Load={}]"
    wanted = {
        ("posted", of.format(1, 800), "operations_per_s"): 350,
        ("posted", of.format(1, 1600), "operations_per_s"): 210,
        ("posted", of.format(2, 800), "operations_per_s"): 560,
    }
    assert figures(tmp_path, text, wanted) == []


def test_requests_per_second_behind_what_was_changed(tmp_path: Path) -> None:
    text = "Without the patch:  16.5 reqs/sec\nWith it:   3.25 reqs/sec\nWith it and this fix: 17 Requests/s\n"
    wanted = {("With it", "list", "operations_per_s"): 3.25, ("With it and this fix", "list", "operations_per_s"): 17}
    assert figures(tmp_path, text, wanted) == []


def test_a_sentence_with_a_gap_is_no_heading(tmp_path: Path) -> None:
    text = "Walk all keys  and values , of 512 bytes\nfirst : 1.5 s\nsecond:  160 ms\n"
    wanted = {("posted", "list", "first_ns"): 1.5e9, ("posted", "list", "second_ns"): 160 * MS}
    assert figures(tmp_path, text, wanted) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "| fs | 4k | 1m |\n|---|---|---|\n| ext4 | R: 61 / W: 43 MiB/s | R: 900 / W: 700 MiB/s |\n"
            "| xfs | R: 59 / W: 44 MiB/s | R: 950 / W: 710 MiB/s |\n",
            {
                ("ext4", "table[read 4k]", "read.rate_bytes_per_s"): 61 * 2**20,
                ("xfs", "table[write 1m]", "write.rate_bytes_per_s"): 710 * 2**20,
            },
        ),
        (
            "| test | before | after |\n|---|---|---|\n| 4k | read 610 MB/s, write 430 MB/s | R=620 / W=450 MB/s |\n"
            "| 64k | - | R=900 / W=700 MB/s |\n",
            {
                ("before", "read 4k", "read.rate_bytes_per_s"): 610 * MB,
                ("after", "write 4k", "write.rate_bytes_per_s"): 450 * MB,
                ("after", "read 64k", "read.rate_bytes_per_s"): 900 * MB,
            },
        ),
        (
            "With the change:\n\nbefore    R: 61 MB/s, W: 43 MB/s\nafter    R: 65 MB/s, W: 47 MB/s\n",
            {
                ("before", "read", "read.rate_bytes_per_s"): 61 * MB,
                ("after", "write", "write.rate_bytes_per_s"): 47 * MB,
            },
        ),
    ],
)
def test_a_cell_states_reads_and_writes(tmp_path: Path, text: str, wanted: dict[tuple[str, str, str], float]) -> None:
    assert figures(tmp_path, text, wanted) == []


def test_figures_stand_before_what_was_measured(tmp_path: Path) -> None:
    text = "On the drive:\n\n- 15200 IOPS for 4k randread\n- 512 MiB/s of sequential reads.\n- 1.2 GB/s for the write\n"
    wanted = {
        ("posted", "4k randread", "read.iops"): 15_200,
        ("posted", "sequential reads", "read.rate_bytes_per_s"): 512 * 2**20,
        ("posted", "write", "write.rate_bytes_per_s"): 1.2e9,
    }
    assert figures(tmp_path, text, wanted) == []
    text = "before: 15200 IOPS for randread\nafter: 16100 IOPS for randread\n"
    wanted = {("before", "randread", "read.iops"): 15_200, ("after", "randread", "read.iops"): 16_100}
    assert figures(tmp_path, text, wanted) == []


def test_runs_follow_each_other_behind_a_label(tmp_path: Path) -> None:
    text = "Three runs of fsck:\n\nbefore: 41.8s 42.1s 41.9s\nafter: 31.2s 31.0s 31.4s\n"
    wanted = {("before", "list", "time_ns"): 41.8e9, ("after", "list", "time_ns"): 31.2e9}
    assert figures(tmp_path, text, wanted) == []
    text = text.replace("runs", "disks").replace("42.1s", "49.1s").replace("31.0s", "25.0s")
    (tmp_path / "posted.txt").write_text(text)
    assert "if they are rounds, say 'runs'" in refusal(tmp_path, text)


def test_tables_of_one_row(tmp_path: Path) -> None:
    text = "            before   after\nrandread    12000    13000 IOPS\n"
    wanted = {("before", "randread", "read.iops"): 12_000, ("after", "randread", "read.iops"): 13_000}
    assert figures(tmp_path, text, wanted) == []
    text = "IOPS:\n\n            before   after\nrandread    12000    13000\n\nThat is all.\n"
    wanted = {("before", "randread", "iops"): 12_000, ("after", "randread", "iops"): 13_000}
    assert figures(tmp_path, text, wanted) == []
    text = "bs    IOPS    BW (MiB/s)    lat (us)\n4k    12000    46.9    83\n"
    assert figures(tmp_path, text, {("posted", "table[bs=4k]", "latency_ns_mean"): 83 * US}) == []


def test_the_unit_of_a_row_stands_behind_it(tmp_path: Path) -> None:
    """Of a row, and no metric of the last column; below names of metrics, it is the last one's alone."""
    text = "            before   after\nrandread    12000    13000 IOPS\nrandwrite    8000    8100 IOPS\n"
    wanted = {("before", "randwrite", "write.iops"): 8000, ("after", "randread", "read.iops"): 13_000}
    assert figures(tmp_path, text, wanted) == []
    text = "            time    IOPS\nrandread    12    13000 IOPS\nrandwrite    8    8100 IOPS\n"
    assert figures(tmp_path, text, {("posted", "randread", "time"): 12, ("posted", "randread", "iops"): 13_000}) == []


def test_a_title_within_the_frame_of_a_table_states_the_unit(tmp_path: Path) -> None:
    text = (
        "+---------------------------+\n| iozone, MB/s              |\n+-------+---------+---------+\n"
        "| Test  | ext4    | xfs     |\n+-------+---------+---------+\n"
        "| write | 340     | 290     |\n| read  | 610     | 580     |\n+-------+---------+---------+\n"
    )
    wanted = {("ext4", "write", "rate_bytes_per_s"): 340 * MB, ("xfs", "read", "rate_bytes_per_s"): 580 * MB}
    assert figures(tmp_path, text, wanted) == []


def test_runs_of_time_stand_side_by_side(tmp_path: Path) -> None:
    wanted = {
        ("vanilla", "tar xf a.tar", "elapsed_s"): 12.31,
        ("vanilla", "tar xf a.tar", "cpu_system_s"): 4.102,
        ("with patch", "tar xf a.tar", "elapsed_s"): 70.211,
        ("with patch", "tar xf a.tar", "cpu_user_s"): 1.198,
    }
    for text in (
        "$ time tar xf a.tar\n\n"
        "        vanilla      with patch\n"
        "real    0m12.310s    1m10.211s\nuser    0m1.203s    0m1.198s\nsys    0m4.102s    0m3.870s\n",
        "$ time tar xf a.tar\n\n"
        "vanilla               with patch\n"
        "real 0m12.310s        real 1m10.211s\n"
        "user 0m1.203s        user 0m1.198s\nsys  0m4.102s        sys  0m3.870s\n",
    ):
        assert figures(tmp_path, text, wanted) == []
    nameless = "Some words\nreal 12.31 70.21\nuser 1.20 1.19\nsys 4.10 3.87\n"
    assert "without a name each in the line above" in refusal(tmp_path, nameless)
    capital = "# time dd if=/dev/fd0 of=/dev/null\n160+0 records in\n\nReal 1m6.820s\n"
    assert figures(tmp_path, capital, {("posted", "dd if=/dev/fd0 of=/dev/null", "elapsed_s"): 66.82}) == []


PLOTTED = """{what}

x before
+ with patch
+----------------------------------+
|x   *  x     *    +         +    x|
| |_____M__A______|   |___MA_____| |
+----------------------------------+
    N           Min           Max        Median           Avg        Stddev
x   5         12.10         12.63         12.31        12.332          0.21
+   5         10.01         10.44         10.20        10.216          0.17
Difference at 95.0% confidence
\t-2.116 +/- 0.28
"""


def test_ministat_states_means_and_no_rounds(tmp_path: Path) -> None:
    wanted = {
        ("before", "ministat", "elapsed_s_mean"): 12.332,
        ("before", "ministat", "elapsed_s_stddev"): 0.21,
        ("with patch", "ministat", "elapsed_s_min"): 10.01,
        ("with patch", "ministat", "elapsed_s_median"): 10.20,
    }
    assert figures(tmp_path, PLOTTED.format(what="Copying a tree, in seconds:"), wanted) == []
    rates = {("with patch", "ministat", "rate_bytes_per_s_max"): 10.44 * MB}
    assert figures(tmp_path, PLOTTED.format(what="MB/s of dd:"), rates) == []
    (problem,) = figures(tmp_path, PLOTTED.format(what="Results:"), {("before", "ministat", "value_mean"): 12.332})
    assert "nothing states what ministat's figures are" in problem


def test_the_row_that_others_are_compared_with_has_no_change(tmp_path: Path) -> None:
    """Whole numbers left of results are what was set."""
    text = (
        "nomerges    Throughput    %System    Improvement\n0    12.45 MB/s    0.66\n"
        "1    12.50 MB/s    0.64    0.40%\n2    12.52 MB/s    0.63    0.56%\n"
    )
    wanted = {
        ("posted", "table[nomerges=0]", "rate_bytes_per_s"): 12.45 * MB,
        ("posted", "table[nomerges=2]", "rate_bytes_per_s"): 12.52 * MB,
    }
    (problem,) = figures(tmp_path, text, wanted)
    assert "columns of changes are left out" in problem


def test_alike_figures_behind_a_label_are_runs_below_their_command(tmp_path: Path) -> None:
    text = (
        "cmdline: ./mkdirs -n 20\nBefore patch: MKDIR_ALL: 41.833s 41.832s 41.835s\n"
        "After  patch: MKDIR_ALL:  3.702s  3.703s  3.701s\n\n"
        "cmdline: ./mkdirs -n 40\nBefore patch: MKDIR_ALL: 84.560s 84.556s 84.550s\n"
        "After  patch: MKDIR_ALL:  3.901s  3.902s  3.905s\n"
    )
    wanted = {
        ("Before patch", "list[20]", "MKDIR ALL_ns"): 41.833e9,
        ("After patch", "list[20]", "MKDIR ALL_ns"): 3.702e9,
        ("Before patch", "list[40]", "MKDIR ALL_ns"): 84.56e9,
    }
    (problem,) = figures(tmp_path, text, wanted)
    assert "results below different commands are of different workloads" in problem


def test_rates_of_fio_in_a_list_are_read_below_their_titles(tmp_path: Path) -> None:
    text = (
        "The sequential write rate:\n- IOPS=5400, BW=21.1MiB/s\n- IOPS=5300, BW=20.7MiB/s\n"
        "The sequential read rate:\n- IOPS=10.2k, BW=39.8MiB/s\n- IOPS=10.1k, BW=39.5MiB/s\n"
    )
    (tmp_path / "posted.txt").write_text(text)
    wanted = {
        ("posted", "list[The sequential write rate]", "iops"): 5400,
        ("posted", "list[The sequential read rate]", "iops"): 10_200,
    }
    assert figures(tmp_path, text, wanted) == []


def test_how_often_it_was_measured_is_no_rate_of_the_list(tmp_path: Path) -> None:
    block = "---- {}.result ----\n\nAverage RPS:\n\ncnt: 15\nmin: {}\navg: {}\n\n"
    text = block.format("1.6", 95_134, 95_507.6) + block.format("1.9", 87_271, 89_365.7)
    wanted = {
        ("1.6.result", "list", "operations_per_s"): 95_507.6,
        ("1.9.result", "list", "operations_per_s_min"): 87_271,
    }
    (problem,) = figures(tmp_path, text, wanted)
    assert "2 lines have figures of no metric that iolab knows: left out, 'cnt: 15' first" in problem


def test_a_figure_may_stand_below_its_label_and_its_unit(tmp_path: Path) -> None:
    text = "user id : 1000\nmmap: /tmp/file iterations/s\n1.5\nstdlib: /tmp/file iterations/s\n0.375\n"
    wanted = {
        ("mmap /tmp/file", "list", "operations_per_s"): 1.5,
        ("stdlib /tmp/file", "list", "operations_per_s"): 0.375,
    }
    figures(tmp_path, text, wanted)
    text = "Sequential read (MB/s):\n812.5\nRandom read (MB/s):\n41.5\n"
    wanted = {
        ("posted", "Sequential read", "read.rate_bytes_per_s"): 812.5 * MB,
        ("posted", "Random read", "read.rate_bytes_per_s"): 41.5 * MB,
    }
    assert figures(tmp_path, text, wanted) == []


def test_a_letter_too_much_in_a_unit_is_a_slip_and_said(tmp_path: Path) -> None:
    wanted = {
        ("0 readahead", "list", "operations_per_s"): 6079,
        ("2MB readahead", "list", "operations_per_s"): 6117,
    }
    (problem,) = figures(tmp_path, "0 readahead: 6079 ops/sec\n2MB readahead: 6117 sops/sec\n", wanted)
    assert problem.endswith(":2: its unit is taken as 'ops/sec', as in the line beside it")
