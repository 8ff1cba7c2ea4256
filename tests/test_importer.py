"""Importing: the tables as their readers posted them, units exactly, errors with their place."""

import re
from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.domain.comparison import compare_table
from iolab.domain.definition import TOOL_METRICS
from iolab.domain.metric import METRICS, describe
from iolab.domain.summary import summarise
from iolab.files.importer.run_import import import_files, open_run
from iolab.files.importer.series import INTERVALS_MAX, Series
from iolab.files.store import RunData, read
from iolab.presentation.table import render
from support.command_line import CommandLine

SAMPLES = Path(__file__).parent / "imported"
MIB = 2**20


def check_value(directory: Path, text: str, setting: str, workload: str, metric: str, expected: float | None) -> None:
    """What is imported of a text."""
    found = value(opened(directory / "run.txt", text), setting, workload, metric)
    assert found == (expected if expected is None else pytest.approx(expected))


def value(run: RunData, setting: str, workload: str, key: str, round: int = 0) -> float:
    rows = run.metrics.filter(setting=setting, workload=workload, key=key, round=round)
    assert rows.height == 1, (setting, workload, key, rows.height)
    found: float = rows["value"][0]
    return found


def opened(path: Path, content: str | bytes) -> RunData:
    """What is imported of a file with this content."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_run(path)


def sample(name: str) -> RunData:
    return open_run(SAMPLES / name)


def written(tmp_path: Path, text: str, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


FILEIO = "sysbench fileio rndrw[block=16K,threads=2]"
TPC_B = "pgbench[TPC-B (sort of),clients=2,threads=2,scale=2]"
EXPECTED = [
    ("affinity.txt", "A=X,Q=X,C=X", "affinity", "rate_bytes_per_s", 3859.9 * MIB),
    ("affinity.txt", "A=X,Q=X,C=X", "affinity", "latency_ns_mean", 1.190067e9),
    ("affinity.txt", "rq=1 (kthreads-based)", "affinity", "completions_remote", 22876.6),
    ("affinity.txt", "A=I,Q=X,C=X (Original)", "affinity", "queue_remote", 47406.1),
    ("spread.txt", "q1.c1.rq0", "make-sequence", "make/elapsed_s_mean", 543.577),
    ("spread.txt", "q1.c1.rq0 (kthreads-based kernel)", "make-sequence", "clean/elapsed_s_stddev", 2.872),
    ("kernels.txt", "2.6.24 + original patches + rq=1", "kernels", "cpu_cycles", 2551175203455.0),
    ("kernels.txt", "2.6.24 + kthreads patches + rq=1", "kernels", "rate_bytes_per_s", 107.16 * MIB),
    ("kernels.txt", "2.6.24 (no patches)", "kernels", "cpu_iowait_percent", 43.949),
    ("iozone-cpu.txt", "pull-up kernel", "nfs", "write/rpc_execute_ns_mean", 183426.0),
    ("iozone-cpu.txt", "DMA-mapping kernel", "nfs", "read/ops", 25146066.0),
    (
        "iozone-cpu.txt",
        "DMA-mapping kernel",
        "iozone[file_kib=1048576,record_kib=1,threads=12]",
        "rewrite/cpu_percent",
        164.47,
    ),
    ("iostest.txt", "slice_idle=0", "bsr[jobs_per_group=8]", "rate_bytes_per_s", 374976 * 1024.0),
    ("iostest.txt", "slice_idle=8", "bsr[jobs_per_group=1]", "rate_bytes_per_s", 217437 * 1024.0),
    ("tiobench-mail.txt", "2.5.53-mm1", "tiobench[threads=2]", "sequential_write/cpu_percent", 4.951),
    ("tiobench-mail.txt", "2.5.56", "tiobench[threads=256]", "sequential_write/rate_bytes_per_s", 12.64 * MIB),
    (
        "tiobench-mail.txt",
        "2.5.59",
        "tiobench[filesystem=ext3,threads=32]",
        "sequential_read/latency_ns_max",
        4310.62e6,
    ),
    ("tiobench.txt", "6.1.0", "tiobench[threads=2]", "sequential_read/latency_ns_mean", 0.120e6),
    (
        "iozone-matrix.txt",
        "iozone-matrix",
        "iozone[file_kib=409600,record_kib=64]",
        "stride_read/rate_bytes_per_s",
        3779260 * 1024.0,
    ),
    (
        "iozone-matrix.txt",
        "iozone-matrix",
        "iozone[file_kib=409600,record_kib=64]",
        "random_read/rate_bytes_per_s",
        816017 * 1024.0,
    ),
    (
        "iozone-throughput.txt",
        "iozone-throughput",
        "iozone[file_kib=1048576,record_kib=256,threads=12]",
        "rewrite/elapsed_s",
        2.584,
    ),
    (
        "iozone-throughput.txt",
        "iozone-throughput",
        "iozone[file_kib=1048576,record_kib=256,threads=12]",
        "write/rate_bytes_per_s",
        4646810.21 * 1024,
    ),
    (
        "iozone-throughput.txt",
        "iozone-throughput",
        "iozone[file_kib=1048576,record_kib=256,threads=12]",
        "write/rate_sum_bytes_per_s",
        4732581.09 * 1024,
    ),
    ("mmtests.txt", "5.10.0-rc6 altrecent-v2", "tbench4", "64/score_hmean", 12506.31),
    ("mmtests.txt", "5.10.0-rc6 altrecent-v2", "tbench4", "1/cost_stddev", 1.0),
    ("mmtests.txt", "5.10.0-rc6 baseline-v2", "tbench4", "elapsed_s", 120.44),
    ("mmtests-old.txt", "3.4.0-vanilla", "mmtests", "Files_per_s/score_mean", 20000.0),
    ("mmtests-old.txt", "3.4.0-vanilla", "mmtests", "Overhead/cost_max", 3.3e6),
    ("mountstats-pair.txt", "mountstats-pair", "nfs /mnt", "read/ops", 3000.0),
    ("mountstats-pair.txt", "mountstats-pair", "nfs /mnt", "read/iops", 50.0),
    ("mountstats-pair.txt", "mountstats-pair", "nfs /mnt", "read/rpc_rtt_ns_mean", 0.5e6),
    ("iostat-2.6.txt", "iostat-2.6", "iostat sda", "read.rate_bytes_per_s", 64 * 512.0),
    ("iostat-2.6.txt", "iostat-2.6", "iostat sda", "latency_ns_mean", 6e6),
    ("iostat-s.txt", "iostat-s", "iostat sda", "rate_bytes_per_s", 2000 * 1024.0),
    ("iostat-s.txt", "iostat-s", "iostat sda", "latency_ns_mean", (100 * 1e6 + 300 * 2e6) / 400),
    ("iostat.json", "iostat", "iostat sda", "read.rate_bytes_per_s", 40200 * 1024.0),
    ("iostat.json", "iostat", "iostat sda", "device_busy_percent", 21.2),
    ("iostat.json", "iostat", "iostat cpu", "cpu_user_percent", 20.1),
    ("context-switches.txt", "Vanilla", "context switches", "context_switches_per_s", 4278.53),
    ("iostat-2.6.txt", "iostat-2.6", "iostat cpu", "cpu_iowait_percent", 43.95),
    ("mpstat.txt", "mpstat", "mpstat", "cpu_user_percent", (1.52 + 18.63) / 2),
    ("fs_mark-v.txt", "fs_mark-v", "fs_mark[size=0,threads=2]", "create.latency_ns_mean", 862e3),
    ("fs_mark-v.txt", "fs_mark-v", "fs_mark[size=0,threads=2]", "create.latency_ns_min", 335e3),
    ("fs_mark-v.txt", "fs_mark-v", "fs_mark[size=0,threads=2]", "close.latency_ns_max", 502e3),
    ("fs_mark-v.txt", "fs_mark-v", "fs_mark[size=0,threads=2]", "files_per_s", 691.6),
    ("time-v.txt", "time-v", "ls", "resident_bytes_max", 2056 * 1024.0),
    ("fio-2.16.json", "fio-2.16", "rand", "read.rate_bytes_per_s", 4 * MIB),
    ("fio-2.16.json", "fio-2.16", "rand", "read.latency_ns_mean", 974e3),
    ("fio-2.16.json", "fio-2.16", "rand", "latency_ns_p99", 3e6),
    ("fio-3.33-plus.json", "fio-3.33-plus", "r+w", "read.rate_bytes_per_s", 16003072 / 1.001),
    ("fio-3.33-plus.json", "fio-3.33-plus", "r+w", "read.latency_ns_p99", 5537792.0),
    ("rounds.csv", "bfq", "rounds", "iops", 900.0),
    ("hyperfine-1.15.json", "sleep 0.02", "command", "elapsed_s", 0.01815546008),
    ("hyperfine-1.15.json", "sleep 0.02", "command", "cpu_user_s_mean", 0.00138004),
    ("hyperfine-1.15.csv", "writer bs=64k", "command", "elapsed_s_median", 0.029022098360000005),
    ("sysbench-fileio-1.0.20.txt", "sysbench-fileio-1.0.20", FILEIO, "read.rate_bytes_per_s", 170.75 * MIB),
    ("sysbench-fileio-1.0.20.txt", "sysbench-fileio-1.0.20", FILEIO, "iops", 10928.27 + 7285.60),
    ("sysbench-fileio-1.0.20.txt", "sysbench-fileio-1.0.20", FILEIO, "fsyncs_per_s", 730.23),
    ("sysbench-oltp-1.0.20.txt", "sysbench-oltp-1.0.20", "sysbench sql[threads=2]", "transactions_per_s", 130.0),
    ("sysbench-oltp-1.0.20.txt", "sysbench-oltp-1.0.20", "sysbench sql[threads=2]", "latency_ns_p95", 38.94e6),
    ("sysbench-cpu-1.0.20.txt", "sysbench-cpu-1.0.20", "sysbench cpu[threads=2]", "events_per_s", 950.79),
    (
        "sysbench-memory-1.0.20.txt",
        "sysbench-memory-1.0.20",
        "sysbench memory[block=1K,threads=1]",
        "latency_ns_max",
        37.89e6,
    ),
    (
        "sysbench-memory-1.0.20.txt",
        "sysbench-memory-1.0.20",
        "sysbench memory[block=1K,threads=1]",
        "rate_bytes_per_s",
        1380.92 * MIB,
    ),
    ("pgbench-15.txt", "pgbench-15", TPC_B, "transactions_per_s", 176.041170),
    ("pgbench-15.txt", "pgbench-15", TPC_B, "latency_ns_stddev", 9.279e6),
    ("pgbench-15.txt", "pgbench-15", "pgbench[select only,clients=2,threads=1,scale=2]", "latency_ns_mean", 0.452e6),
    ("pgbench_log.20850", "pgbench_log", "pgbench", "latency_ns_mean", 10353362.5),
    ("agg_log.20945", "agg_log", "pgbench", "ops", 535.0),
    ("agg_log.20945", "agg_log", "pgbench", "latency_ns_max", 85078e3),
    ("rate_log.21091", "rate_log", "pgbench", "transactions_skipped", 6.0),
    ("mmtests-log", "6.1.0-patched", "sysbench-cpu", "elapsed_s", 10.0),
    ("mmtests-log", "6.1.0-base", "sysbench cpu[threads=2]", "events_per_s", 950.79),
]


@pytest.mark.parametrize(("name", "setting", "workload", "key", "expected"), EXPECTED)
def test_figures_are_what_was_posted(name: str, setting: str, workload: str, key: str, expected: float) -> None:
    assert value(sample(name), setting, workload, key) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.*")), ids=lambda path: path.name)
def test_every_sample_survives_the_store(path: Path, tmp_path: Path) -> None:
    imported = open_run(path)
    stored = read(import_files([path], tmp_path / "run").path)
    assert stored.metrics.equals(imported.metrics)
    assert stored.problems == imported.problems
    assert stored.settings == imported.settings
    assert stored.workloads == imported.workloads
    assert stored.histograms().equals(imported.histograms())
    assert render(stored, "csv") == render(imported, "csv")
    assert [row.metric for row in summarise(stored).rows] == [row.metric for row in summarise(imported).rows]


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.*")), ids=lambda path: path.name)
def test_metrics_have_a_home(path: Path) -> None:
    for name in open_run(path).metrics["metric"].unique():
        known = name in METRICS or name in TOOL_METRICS or name.startswith(("score_", "cost_")) or path.suffix == ".md"
        assert known, name


def test_no_metric_has_two_homes() -> None:
    assert not METRICS.keys() & TOOL_METRICS.keys()
    assert describe("read/rpc_rtt_ns_mean").better == "lower"


def test_what_is_posted_or_quoted_again_counts_once() -> None:
    for name in ("spread.txt", "kernels.txt"):
        run = sample(name)
        assert run.trials["round"].max() == 0
        assert any("again, left out" in problem for problem in run.problems)


def test_one_round_is_undecided_and_shows_its_change() -> None:
    summary = summarise(sample("iostest.txt"))
    assert {comparison.judgement.verdict for comparison in summary.comparisons} == {"undecided"}
    assert "+132.6 % [one round]" in render(sample("iostest.txt"), "markdown")


def test_rows_of_the_same_name_are_rounds(tmp_path: Path) -> None:
    text = (SAMPLES / "tiobench.txt").read_text()
    run = open_run(written(tmp_path, text + text.replace("66.32", "67.00").replace("1.20", "1.30")))
    assert run.trials["round"].max() == 1
    assert value(run, "6.1.0", "tiobench[threads=1]", "sequential_read/rate_bytes_per_s", 1) == 67 * MIB


def test_a_classic_table_comes_back() -> None:
    text = render(sample("tiobench.txt"), "tiobench")
    assert "6.1.0          1   66.32 15.12%     0.058      100.00  0.00000  0.00000   439" in text
    assert "6245  12776 16591 23471" in render(sample("iostest.txt"), "iostest")
    throughput = render(sample("iozone-throughput.txt"), "iozone")
    for posted in (
        "Children see throughput for 12 initial writers  = 4732581.09 kB/sec",
        "Parent sees throughput for 12 initial writers   = 4646810.21 kB/sec",
        "Min throughput per thread                       =  387764.34 kB/sec",
        "Max throughput per thread                       =  399655.47 kB/sec",
        "Avg throughput per thread                       =  394381.76 kB/sec",
        "Min xfer                                        = 1017344.00 kB",
        "CPU utilization: Wall time    2.671    CPU time    1.974    CPU utilization  73.89 %",
    ):
        assert posted in throughput


def test_tiobench_adds_up_latencies_over_its_runs(tmp_path: Path) -> None:
    text = (SAMPLES / "tiobench-mail.txt").read_text()
    silent = sample("tiobench-mail.txt")
    (problem,) = silent.problems
    assert "42 of 42 rows are too long for one run at their rate, as sums of 3 would be; read as one run" in problem
    said = open_run(written(tmp_path, f"$ tiobench.pl --numruns 3 --size 8192\n{text}"))
    place = ("2.4.20-pre10", "tiobench[threads=1]")
    for key, posted in (("latency_ns_mean", 0.288e6), ("latency_ns_max", 4315.58e6), ("rate_bytes_per_s", 37.71 * MIB)):
        runs = 1 if "rate" in key else 3
        assert value(silent, *place, f"sequential_write/{key}") == pytest.approx(posted)
        assert value(said, *place, f"sequential_write/{key}") == pytest.approx(posted / runs)
    share = "sequential_write/latency_share_over_2s"
    assert value(said, "2.5.56", "tiobench[threads=2]", share) == pytest.approx(0.0005112 / 3)
    assert [problem.rpartition(": ")[0].partition(":")[2] for problem in said.problems] == [
        "13: the mean latency of 2.5.51-mm1 takes 3.33 runs at its rate, of 3",
        "27: the mean latency of 2.5.53-mm1 takes 8.15 runs at its rate, of 3",
        "50: the mean latency of 2.5.56 takes 4.47 runs at its rate, of 3",
    ]
    posted = "2.4.20-pre10   1   37.71 56.08%     0.288     4315.58  0.00000  0.00000    67"
    assert posted in render(said, "tiobench_sums") and "sums of 3 runs" in render(said, "tiobench_sums")
    assert "2.4.20-pre10   1   37.71 56.08%     0.096     1438.53  0.00000  0.00000    67" in render(said, "tiobench")


@pytest.mark.parametrize("name", ["fio_lat.1.log", "pgbench_log.20850", "rate_log.21091", "fio-3.33-plus.json"])
def test_no_percentile_is_above_the_maximum(name: str) -> None:
    keys = ("key", "setting", "workload", "round", "value")
    found = {(key, *place): value for key, *place, value in sample(name).metrics.select(*keys).iter_rows()}
    quantiles = {place: value for place, value in found.items() if re.search(r"latency_ns_p\d+$", place[0])}
    assert quantiles
    for (key, *place), value in quantiles.items():
        assert value is None or value <= found[(re.sub(r"_p\d+$", "_max", key), *place)], key


def test_quoting_changes_nothing(tmp_path: Path) -> None:
    for name in ("tiobench-mail.txt", "affinity.txt", "mmtests.txt", "fs_mark.txt"):
        lines = (SAMPLES / name).read_text().splitlines()
        quoted = open_run(written(tmp_path, "\n".join(f">> {line}" for line in lines), name))
        assert quoted.metrics.equals(sample(name).metrics)


def test_a_cut_table_is_kept_and_said(tmp_path: Path) -> None:
    text = (SAMPLES / "tiobench.txt").read_text()
    cut = text[: text.index("14.00%")]
    run = open_run(written(tmp_path, cut))
    assert run.trials.height == 1
    assert any("cut off" in problem for problem in run.problems)


def test_a_cut_json_keeps_whole_jobs(tmp_path: Path) -> None:
    text = (SAMPLES / "fio-3.33-plus.json").read_text()
    run = open_run(written(tmp_path, text[: text.index('"jobname": "w"') + 200], "a.json"))
    whole = sample("fio-3.33-plus.json")
    assert run.workloads == whole.workloads == ["r+w"]
    assert any("cut off" in problem for problem in run.problems)
    of_r = [one.job_metrics().filter(job="r").select("key", "value") for one in (run, whole)]
    assert of_r[0].height > 5 and of_r[0].equals(of_r[1])
    assert value(run, "a", "r+w", "iops") is None, "the sum of a part of the jobs is no sum"
    assert run.experiment.settings["a"]["fio_version"] == "fio-3.33"


def test_a_cut_json_is_a_round_of_the_workload_and_no_difference(iolab: CommandLine) -> None:
    """Of two jobs one after the other, the first is whole."""
    text = (SAMPLES / "fio-3.33-plus.json").read_text()
    second = text.index('"jobname": "w"')
    text = text[:second] + text[second:].replace('"groupid": 0', '"groupid": 1')
    for name in ("one", "two"):
        (iolab.cwd / name).mkdir()
    for place, content in enumerate((text, text, text, text[: text.index('"write"', second)])):
        iolab.write(f"{'one' if place < 2 else 'two'}/run{place}.json", content)
    found = iolab("compare", "one", "two", "--metric", "r/iops", "--metric", "w/iops", "--json").json()
    assert found["differs"] == []
    counts = {one["metric"]: (one["n_baseline"], one["n"]) for one in found["comparisons"]}
    assert counts == {"r/iops": (2, 2), "w/iops": (2, 1)}


def test_messages_around_and_between_the_json(tmp_path: Path) -> None:
    text = (SAMPLES / "fio-2.16.json").read_text().splitlines()
    noisy = ["fio: {weird} message", *text[:6], "fio: pid=1, err=5", *text[6:], "Run status group 0", "{"]
    run = open_run(written(tmp_path, "\n".join(noisy), "a.json"))
    assert value(run, "a", "rand", "latency_ns_p99") == 3e6
    assert any("messages" in problem for problem in run.problems)


def test_text_where_a_number_belongs_has_its_place(tmp_path: Path) -> None:
    path = written(tmp_path, (SAMPLES / "rounds.csv").read_text().replace("905", "fast"), "a.csv")
    with pytest.raises(InputError, match=r"a\.csv:5, column iops: 'fast' is not a number"):
        open_run(path)
    text = (SAMPLES / "fs_mark.txt").read_text().replace("187.0", "oops")
    with pytest.raises(InputError, match=r"file\.txt:\d+, column Files/sec: 'oops' is not a number"):
        open_run(written(tmp_path, text))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"  \n\n", "the file is empty"),
        (b"\x7fELF\x02\x01\x00\x00", "a binary file"),
        (b"\x1f\x8b\x08\x00", "packed with gzip, and can't be unpacked.*was it cut off"),
        (b"\x28\xb5\x2f\xfd\x00", "packed with zstd, and can't be unpacked"),
        (b"notes.txt".ljust(257, b"\0") + b"ustar\x0000", "an archive.*tar -xf"),
        (b"Dear all, fs_mark got slower.", "unrecognised format; nearest: fs_mark.*--from FORMAT"),
        (
            b"FSUse%        Count         Size    Files/sec     App Overhead\n",
            "looks like fs_mark, and no figures were found below it; if a mail wrapped its lines, join them",
        ),
        (b"0, 5, 0, 4096\n1, 5, 0, 4096\n", "--from fio-bw-log"),
        (b'{"sysstat": {"hosts": [', "no whole JSON of sysstat"),
        (b"\x17\x08\x44tracing6", "a trace of trace-cmd.*iolab trace"),
        (b"PERFILE2\0\0", "a recording of perf.*iolab trace"),
        (b"PK\x03\x04\0\0", "an archive or a spreadsheet.*as CSV"),
        (b"    10   -> 20   : 5  |**|\n     usecs  : count    distribution\n", "a histogram.*iolab trace"),
        (b"a-1 [000] 1.000001: block_rq_issue: 8,0 R 4096 () 8 + 8 [a]\n", "a trace of block events.*iolab trace"),
        (b"TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n", "biosnoop.*iolab trace"),
        (b"0.000004    my task        1950   xvda1   W  13092560   4096      0.74\n", "biosnoop.*iolab trace"),
        (b"==================== All Devices ====================\n\n| a |\n|---|\n| 1 |\n", "btt's report"),
        (b"08:14:44     CPU    intr/s\n08:14:45     all   2665.05\n", "mpstat's report of interrupts"),
        (b"08:14:53  pgpgin/s pgpgout/s\n08:14:54  873.00 219.00\n", "sar without devices.*sar -b"),
        (b"4 4354638 919 3762425 127851 1088660 3638449 1477456 5 200370205\n", "ioping's raw.*leave out -B"),
        (b"#      Time   UID       PID    %usr %system Command\n", "pidstat without -d.*run pidstat -d"),
        (b" L(q)  ops/s    r/s   kBps   ms/r\n    1     50     20   1280    5.0\n", "gstat's report.*iostat -x"),
        (b"> Disk  Random 16.0 Read                450.50 MB/s          8.3\n", "winsat's report"),
        (b"SMART/Health Information (NVMe Log 0x02)\nData Units Written: 1,384,224 [708 GB]\n", "smartctl's report"),
        (b"   TID  PRIO  USER     DISK READ  DISK WRITE  SWAPIN     IO>    COMMAND\n", "iotop's report.*pidstat -d"),
        (b'[{"setting": "a", "iops": 1}, {"setting": "b", "iops": 2}]', "JSON of none of the tools.*jq"),
        (b'{"setting": "a", "iops": 1}\n{"setting": "b", "iops": 2}\n', "JSON of none of the tools.*jq"),
        (b"setting | iops\na | 1\nb | 2\n", r"a table with bars between its columns.*sed"),
        (b"setting   score\na           1\nb           2\n", "a table with spaces between its columns.*sed"),
        (b'{"results": [{"fio version": "fio-3.33", "jobs": []}]}', "results of fio inside another JSON.*jq"),
    ],
)
def test_one_line_says_what_is_wrong(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        opened(tmp_path / "file.txt", content)


def test_a_format_can_be_forced(tmp_path: Path) -> None:
    path = written(tmp_path, "0, 5, 0, 4096\n9, 7, 0, 4096\n")
    assert value(open_run(path, "fio-lat-log-usec"), "file", "fio lat log", "read.latency_ns_max") == 7000
    with pytest.raises(InputError, match="did you mean tiobench"):
        open_run(path, "tiobnch")


def test_a_line_that_is_none_of_a_log_has_its_place(tmp_path: Path) -> None:
    for line in ("3, -5, 0, 4096", "3, 5", "oops"):
        path = written(tmp_path, f"0, 5, 0, 4096\n1, 5, 0, 4096\n{line}\n4, 5, 0, 4096\n", "x_lat.1.log")
        with pytest.raises(InputError, match=rf"x_lat\.1\.log:3: no line of an fio log: '{line}'"):
            open_run(path, "fio-lat-log")


def test_two_snapshots_in_two_files(tmp_path: Path) -> None:
    before, after = (SAMPLES / "mountstats-pair.txt").read_text().split("\n\n")
    paths = [written(tmp_path, before, "before.txt"), written(tmp_path, after, "after.txt")]
    run = read(import_files(paths, tmp_path / "run").path)
    assert value(run, "before", "nfs /mnt", "read/ops") == 3000
    alone = open_run(paths[1])
    assert any("since the mount" in problem for problem in alone.problems)


def test_files_of_several_rounds_make_one_setting(tmp_path: Path) -> None:
    text = (SAMPLES / "fio-2.16.json").read_text()
    paths = [written(tmp_path, text, f"{name}-run{number}.json") for name in ("none", "bfq") for number in (1, 2)]
    run = read(import_files(paths, tmp_path / "run").path)
    assert run.settings == ["none", "bfq"]
    assert run.trials["round"].to_list() == [0, 1, 0, 1]


def test_single_operations_are_averaged_before_they_are_compared(tmp_path: Path) -> None:
    """A third of the operations moves the mean by 60 % and the median by nothing."""
    times = [280.0 if number % 3 == 0 else 100.0 for number in range(2500)]
    rows = [f"{name},{time}" for of_b in times for name, time in (("a", 100.0), ("b", of_b))]
    run = opened(tmp_path / "t.csv", "\n".join(["setting,latency_us", *rows]) + "\n")
    found = next(one for one in summarise(run).comparisons if one.setting == "b")
    assert found.judgement.ratio == pytest.approx(sum(times) / 2500 / 100, rel=0.02)


def test_many_rows_without_rounds_become_batches(tmp_path: Path) -> None:
    rows = "".join(f"{'a' if number % 2 else 'b'},{number}\n" for number in range(60_000))
    run = open_run(written(tmp_path, f"setting,iops\n{rows}", "big.csv"))
    assert 90 <= run.trials["round"].n_unique() <= 110
    assert any("averaged" in problem for problem in run.problems)


def test_samples_of_one_round_are_averaged(tmp_path: Path) -> None:
    run = open_run(written(tmp_path, "kernel,run,iops\na,1,10\na,1,20\na,2,40\nb,1,5\nb,2,6\n", "x.csv"))
    assert [value(run, "a", "x", "iops", number) for number in (0, 1)] == [15, 40]


def test_spaces_and_gaps_change_no_mean_and_a_late_round_may_be_text(tmp_path: Path) -> None:
    text = "setting,round,iops,ns\na,1,10,\na ,1,20,\n a,1,,6\na,2,40,nan\nb,1,5,1\nb,2,6,1\n"
    run = open_run(written(tmp_path, text, "x.csv"))
    assert run.settings == ["a", "b"]
    assert [value(run, "a", "x", "iops", number) for number in (0, 1)] == [15, 40]
    assert value(run, "a", "x", "ns") == 6 and value(run, "a", "x", "ns", 1) is None
    late = "".join(f"a,{number},{number}\n" for number in range(1500)) + "a,last,7\n"
    assert value(open_run(written(tmp_path, f"setting,round,iops\n{late}", "y.csv")), "a", "y", "iops", 1500) == 7


def test_our_own_csv_comes_back(tmp_path: Path) -> None:
    run = sample("fio-2.16.json")
    again = open_run(written(tmp_path, render(run, "csv"), "again.csv"))
    assert value(again, "fio-2.16", "rand", "read.iops") == value(run, "fio-2.16", "rand", "read.iops")
    assert again.workloads == run.workloads


def test_an_imported_run_compares_like_the_csv_of_it() -> None:
    run = sample("rounds.csv")
    wide = run.wide(["iops"])
    (expected,) = compare_table(wide, "setting", "round", "none", ["iops"])
    (found,) = [one for one in summarise(run).comparisons if one.metric == "iops"]
    assert found.judgement.ratio == expected.judgement.ratio


def test_a_series_stays_short_and_keeps_its_mean() -> None:
    series = Series()
    for number in range(1000):
        series.add(float(number))
    assert series.mean == pytest.approx(499.5)
    intervals = list(series.intervals())
    assert len(intervals) <= INTERVALS_MAX
    assert intervals[0] == (0, pytest.approx((series.per_interval - 1) / 2))
