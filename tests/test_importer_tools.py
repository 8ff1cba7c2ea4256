"""Files of hyperfine, sysbench, pgbench and mmtests, as their users bring them: through the command line."""

import json
import shutil
from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.files.importer import mmtests_log, pgbench
from iolab.files.importer.run_import import open_files, open_run
from support.command_line import CommandLine
from support.growth import assert_linear
from test_importer import check_value, opened, value
from test_importer_limits import parsed

IMPORTED = Path(__file__).parent / "imported"
BEGIN = "Running the test with following options:\nThroughput:\n"


def test_hyperfine_runs_are_rounds_and_decide(iolab: CommandLine) -> None:
    times = [0.100 + 0.001 * (n % 3) for n in range(8)]
    results = [
        {"command": "old", "times": times, "exit_codes": [0] * 8, "user": 0.01, "system": 0.02, "mean": 0.1},
        {"command": "new", "times": [time / 2 for time in times], "exit_codes": [0] * 8},
    ]
    iolab.write("timed.json", json.dumps({"results": results}))
    found = iolab("compare", "timed.json", "--metric", "elapsed_s", "--json").json()["comparisons"]
    assert [(one["setting"], one["verdict"], one["n"]) for one in found] == [("new", "faster", 8)]
    assert found[0]["ratio"] == pytest.approx(0.5)
    assert found[0]["pairing"] == "none", "hyperfine runs one command to its end, then the next"
    assert "rounds are not paired" in " ".join(iolab("show", "timed.json", "--metric", "elapsed_s").text.split())


def test_a_command_that_failed_makes_its_round_faulty(tmp_path: Path) -> None:
    path = tmp_path / "timed.json"
    path.write_text('{"results": [{"command": "a", "times": [1.0, 2.0], "exit_codes": [0, null]}]}')
    assert open_run(path).trials["status"].to_list() == ["ok", "faulty"]


def test_a_csv_of_hyperfine_is_not_read_as_any_csv(iolab: CommandLine) -> None:
    shutil.copy(IMPORTED / "hyperfine-1.15.csv", iolab.cwd)
    shown = iolab("show", "hyperfine-1.15.csv", "--as", "csv").stdout.splitlines()
    assert "elapsed_s_median" in shown[0] and "writer bs=4k" in shown[1]


def test_averages_of_several_fio_jobs_are_weighted_by_their_operations(iolab: CommandLine) -> None:
    def job(name: str, ops: int, mean_ns: float) -> dict[str, object]:
        latency = {"min": mean_ns, "max": mean_ns, "mean": mean_ns, "stddev": 0.0, "N": ops}
        side = {"total_ios": ops, "io_bytes": ops * 4096, "bw_bytes": 4096, "runtime": 1000, "lat_ns": latency}
        return {"jobname": name, "groupid": 0, "error": 0, "job_runtime": 1000, "read": side}

    report = {"fio version": "fio-3.33", "jobs": [job("a", 100, 1e6), job("b", 300, 5e6)]}
    iolab.write("two.json", json.dumps(report))
    values = iolab("show", "two.json", "--metric", "latency_ns_mean", "--json").json()["values"]
    assert [(value["job"], value["median"]) for value in values] == [
        *(("b", 5e6), ("a", 1e6)),  # the longest first, and all together last
        (None, pytest.approx(4e6)),
    ]


def test_sysbench_reports_of_two_kernels_are_compared(iolab: CommandLine) -> None:
    report = (IMPORTED / "sysbench-fileio-1.0.20.txt").read_text()
    for kernel, rate in (("old", "170.75"), ("new", "341.50")):
        for number in range(6):
            iolab.write(f"{kernel}-run{number}.txt", report.replace("170.75", f"{float(rate) + number / 10}"))
    files = [f"{kernel}-run{number}.txt" for number in range(6) for kernel in ("old", "new")]
    iolab("import", *files, "--out", "run")
    found = iolab("compare", "run", "--baseline", "old", "--metric", "read.rate_bytes_per_s", "--json").json()
    assert [(one["setting"], one["verdict"]) for one in found["comparisons"]] == [("new", "faster")]


def test_what_sysbench_prints_as_zero_is_absent_with_the_reason() -> None:
    run = open_run(IMPORTED / "sysbench-memory-1.0.20.txt")
    absent = run.metrics.filter(key="latency_ns_min")
    assert absent["value"].to_list() == [None]
    assert "two decimals" in absent["reason"][0]


def test_the_logs_of_one_pgbench_s_threads_are_one_trial() -> None:
    paths = [IMPORTED / "pgbench_log.20850", IMPORTED / "pgbench_log.20850.1"]
    run = open_files(paths)
    assert run.trials.height == 1
    assert run.metrics.filter(key="ops")["value"].to_list() == [160.0]
    lines = [line.split() for path in paths for line in path.read_text().splitlines()]
    latencies = sorted(float(words[2]) * 1000 for words in lines)
    p50 = run.metrics.filter(key="latency_ns_p50")["value"][0]
    assert latencies[79] <= p50 <= latencies[79] * 1.012
    assert run.metrics.filter(key="latency_ns_mean")["value"][0] == pytest.approx(sum(latencies) / 160)


def test_progress_alone_has_a_rate(iolab: CommandLine) -> None:
    lines = [f"progress: {n}.0 s, {100 + n}.0 tps, lat {n}.000 ms stddev 1.0" for n in range(1, 5)]
    iolab.write("progress.txt", "\n".join(lines))
    values = iolab("show", "progress.txt", "--metric", "transactions_per_s", "--json").json()["values"]
    assert [value["median"] for value in values] == [102.5]


def test_a_log_that_is_cut_off_says_so(iolab: CommandLine) -> None:
    text = (IMPORTED / "pgbench_log.20850").read_text()
    iolab.write("cut_log.1", text[:-9])
    assert "no line of a pgbench log, left out" in iolab("import", "cut_log.1", "--out", "run").text


def test_a_log_directory_of_mmtests_is_a_run(iolab: CommandLine) -> None:
    shutil.copytree(IMPORTED / "mmtests-log", iolab.cwd / "log")
    shown = iolab("import", "log", "--out", "run")
    assert "4 files are in no format that iolab recognises" in shown.text
    found = iolab("show", "run", "--json").json()
    assert found["settings"] == ["6.1.0-base", "6.1.0-patched"]
    assert found["rounds"] == 2
    compared = iolab("compare", "log", "--metric", "elapsed_s", "--json").json()["comparisons"]
    ratio = {one["workload"]: one["ratio"] for one in compared}
    assert ratio["sysbench-cpu"] == pytest.approx(0.8, abs=0.01)


def test_one_run_of_mmtests_and_the_layout_of_old(iolab: CommandLine) -> None:
    shutil.copytree(IMPORTED / "mmtests-log" / "6.1.0-base", iolab.cwd / "6.1.0-base")
    assert iolab("show", "6.1.0-base", "--json").json()["settings"] == ["6.1.0-base"]
    old = iolab.cwd / "log"
    for kernel in ("3.0-vanilla", "3.0-mel"):
        (old / f"tiobench-{kernel}").mkdir(parents=True)
        (old / f"tests-timestamp-{kernel}").write_text("time :: tiobench 1.0 user 2.0 system 30.0 elapsed\n")
        shutil.copy(IMPORTED / "sysbench-oltp-1.0.20.txt", old / f"tiobench-{kernel}" / "bench.log")
    found = iolab("show", "log", "--json").json()
    assert sorted(found["settings"]) == ["3.0-mel", "3.0-vanilla"]
    assert {value["workload"] for value in found["values"]} >= {"tiobench"}


def test_another_directory_is_refused_in_one_line(iolab: CommandLine) -> None:
    (iolab.cwd / "some").mkdir()
    iolab("import", "some", "--out", "run", status=2).assert_one_clear_line(
        2, "some", "holds no run and no file in a known format"
    )


def test_too_many_files_and_seconds_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmtests_log, "FILES_MAX", 3)
    with pytest.raises(InputError, match="more than 3 files"):
        open_run(IMPORTED / "mmtests-log")
    monkeypatch.setattr(pgbench, "SECONDS_MAX", 3)
    with pytest.raises(InputError, match=r"log\.1:4: more than 3 seconds"):
        opened(tmp_path / "log.1", "".join(f"0 {n} 100 0 {1_795_387_198 + n} 5\n" for n in range(9)))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hyperfine", '{"results": [{"command": "a", "times": [1e999, true, "x", 1' + "0" * 400 + "]}]}"),
        ("hyperfine", '{"results": [{"command": 5, "times": 7, "mean": [1]}, 3]}'),
        ("hyperfine", "command,mean,stddev,median,user,system,min,max\na,1,2\n"),
        ("hyperfine", "command,mean,stddev,median,user,system,min,max\n" + '"' + "x" * 200_000 + "\n"),
        ("sysbench", BEGIN + "    total time:  1.2.3s\n"),
        (
            "sysbench",
            BEGIN + "[ 999999999s ] tps: 1.5.1\n[ 1s ] tps: 1\n",
        ),
        ("pgbench", "progress: 0.0 s, 1 tps\nprogress: 0.0 s, 1 tps\ntransaction type: <a>\ntps = 1.1.1\n"),
        ("pgbench-log", "0 1 0 0 99999999999 999999\n0 1 999999999999999 0 100000000 0\n"),
        ("pgbench-log", "100000000 0 0 0 0 0\n100000000 5 " + "9" * 30 + " 1 1 1\n"),
    ],
)
def test_hostile_files_end_in_a_run_or_one_line(name: str, text: str, tmp_path: Path) -> None:
    from test_importer_fuzz import read

    read(text.encode(), name, "hostile.1")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("sysbench", BEGIN + "    total time:  1.2s\n"),
        ("pgbench", "progress: 1.0 s, 5 tps, lat 1.0 ms\ntransaction type: <a>\ntps = 5 (including)\n"),
        ("pgbench-log", "0 1 27971 0 1795387198 339277\n"),
        ("mmtests-log", "time :: a 1 user 1 system 1 elapsed\n"),
        ("hyperfine", ""),
    ],
)
def test_more_of_the_same_takes_linear_time(name: str, line: str, tmp_path: Path) -> None:
    def of_size(size: int) -> object:
        path = tmp_path / f"{size}.txt"
        times = ",".join(["0.5"] * size)
        path.write_text(line * size if line else f'{{"results": [{{"command": "a", "times": [{times}]}}]}}')
        return lambda: parsed(path, name)

    assert_linear(of_size, 4000)  # type: ignore[arg-type]


def test_reads_and_writes_of_a_fio_job_are_apart(iolab: CommandLine) -> None:
    def side(mean_ns: float) -> dict[str, object]:
        latency = {"min": mean_ns, "max": mean_ns, "mean": mean_ns, "stddev": 0.0, "N": 100}
        return {"total_ios": 100, "io_bytes": 409_600, "bw_bytes": 4096, "runtime": 1000, "lat_ns": latency}

    both = {"jobname": "both", "groupid": 0, "error": 0, "job_runtime": 1000, "read": side(1e6), "write": side(2e6)}
    log = {"jobname": "log", "groupid": 0, "error": 0, "job_runtime": 1000, "write": side(9e6)}
    iolab.write("two.json", json.dumps({"fio version": "fio-3.33", "jobs": [both, log]}))
    values = iolab("show", "two.json", "--json").json()["values"]
    means = {(one["job"], one["metric"]): one["median"] for one in values if "latency_ns_mean" in one["metric"]}
    assert means["both", "read.latency_ns_mean"] == pytest.approx(1e6)
    assert means["both", "write.latency_ns_mean"] == pytest.approx(2e6)
    assert means["log", "latency_ns_mean"] == pytest.approx(9e6)


SYSBENCH_04 = """$ sysbench --test=fileio --file-test-mode=rndrw --max-time=60 run
sysbench 0.4.12:  multi-threaded system evaluation benchmark
...
Operations performed:  6000 Read, 4000 Write, 12800 Other = 22800 Total
Read 93.75Mb  Written 62.5Mb  Total transferred 156.25Mb  (2.6031Mb/sec)
  166.60 Requests/sec executed

Test execution summary:
    total time:                          60.0252s
    per-request statistics:
         min:                                  0.01ms
         avg:                                  2.92ms
         max:                                101.61ms
         approx.  95 percentile:               9.92ms
"""
"""As people shorten it."""


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("rate_bytes_per_s", 2.6031 * 2**20),
        ("read.rate_bytes_per_s", 2.6031 * 2**20 * 0.6),
        ("iops", 166.6),
        ("latency_ns_mean", 2.92e6),
        ("latency_ns_max", 101.61e6),
        ("elapsed_s", 60.0252),
    ],
)
def test_sysbench_0_4(tmp_path: Path, metric: str, expected: float) -> None:
    path = tmp_path / "old.txt"
    path.write_text(SYSBENCH_04)
    assert value(open_run(path), "old", "sysbench fileio rndrw", metric) == pytest.approx(expected)


def test_sysbench_s_commands_that_differ_are_settings(tmp_path: Path) -> None:
    run = opened(tmp_path / "old.txt", SYSBENCH_04 + SYSBENCH_04.replace("--max-time=60", "--file-num=1") + SYSBENCH_04)
    assert run.trials["setting"].to_list() == ["old", "old file-num=1 no max-time", "old"]
    assert run.trials["round"].to_list() == [0, 0, 1]


CLICKHOUSE = (
    "Queries executed: 50.\n\ndb1:9000, queries 50, QPS: 8.25, RPS: 1000000.5, MiB/s: 120.5, result RPS: 8.25, "
    "result MiB/s: 0.001.\n\n0.000%\t\t0.101 sec.\t\n50.000%\t\t0.115 sec.\t\n90.000%\t\t0.140 sec.\t\n"
    "95.000%\t\t0.151 sec.\t\n99.000%\t\t0.190 sec.\t\n99.900%\t\t0.201 sec.\t\n99.990%\t\t0.202 sec.\t\n"
)
TPCC_MYSQL = (
    "MEASURING START.\n\n  10, trx: 900, 95%: 21.5, 99%: 29.1, max_rt: 61.0, 901|58.2, 90|8.1, 90|70.5, 91|90.3\n"
    "  20, trx: 950, 95%: 20.5, 99%: 28.1, max_rt: 60.0, 951|57.2, 95|8.0, 95|69.5, 96|89.3\n\n<Raw Results>\n"
    "  [0] sc:10 lt:1840  rt:0  fl:0 avg_rt: 14.5 (5)\n  [1] sc:2 lt:1850  rt:0  fl:0 avg_rt: 8.5 (5)\n"
    "  [2] sc:180 lt:5  rt:0  fl:0 avg_rt: 2.5 (5)\n  [3] sc:186 lt:0  rt:0  fl:0 avg_rt: 30.5 (80)\n"
    "  [4] sc:0 lt:185  rt:0  fl:0 avg_rt: 40.5 (20)\n in 20 sec.\n\n<TpmC>\n                 5550.500 TpmC\n"
)
S3_BENCHMARK = "".join(
    f"Loop {loop}: PUT time 30.0 secs, objects = 600, speed = {rate}MB/sec, {rate}.0 operations/sec. Slowdowns = 0\n"
    f"Loop {loop}: GET time 30.0 secs, objects = 36000, speed = 1.2GB/sec, 1200.5 operations/sec. Slowdowns = 0\n"
    f"Loop {loop}: DELETE time 5.0 secs, 120.5 deletes/sec. Slowdowns = 0\n"
    for loop, rate in ((1, 20), (2, 21))
)
DLIO = (
    "[OUTPUT] 2024-01-02T10:00:00.000001 Epoch 1 - Block 1 [Training] Throughput (samples/second): 9.5\n"
    "[METRIC] Training Accelerator Utilization [AU] (%): 90.5000 (0.4)\n"
    "[METRIC] Training Throughput (samples/second): 10.5000 (0.1)\n"
    "[METRIC] Training I/O Throughput (MB/second): 1500.5000 (12.7)\n"
)
EXCEL = (
    '\tOutput is in kBytes/sec\nExcel output is below:\n\n"Writer report"\n        "64"  "128"\n"1024"   1000   2000 \n'
    '"2048"   1100   2100 \n\n"Re-reader report"\n        "64"  "128"\n"1024"   3000   4000 \n"2048"   3100   4100 \n'
)
SQL_ALONE = "".join(
    f"**sync_binlog={value}**\n\n```\nSQL statistics:\n    queries performed:\n        read:          1400\n"
    f"    transactions:   100    ({rate} per sec.)\n    queries:        2000   ({20 * rate} per sec.)\n\n"
    "Latency (ms):\n         avg:         5.25\n         95th percentile:        9.50\n```\n\n"
    for value, rate in ((0, 200.5), (1, 100.5))
)


@pytest.mark.parametrize(
    ("text", "setting", "workload", "metric", "expected"),
    [
        (CLICKHOUSE, "run", "clickhouse-benchmark", "queries_per_s", 8.25),
        (CLICKHOUSE, "run", "clickhouse-benchmark", "rate_bytes_per_s", 120.5 * (1 << 20)),
        (CLICKHOUSE, "run", "clickhouse-benchmark", "latency_ns_p9999", 202e6),
        (TPCC_MYSQL, "run", "tpcc-mysql", "new_orders_per_min", 5550.5),
        (TPCC_MYSQL, "run", "tpcc-mysql", "delivery/latency_ns_mean", 30.5e6),
        (S3_BENCHMARK, "run", "s3-benchmark", "put/rate_bytes_per_s", 20 * (1 << 20)),
        (S3_BENCHMARK, "run", "s3-benchmark", "get/rate_bytes_per_s", 1.2 * (1 << 30)),
        (S3_BENCHMARK, "run", "s3-benchmark", "delete/operations_per_s", 120.5),
        (S3_BENCHMARK, "run", "s3-benchmark", "delete/rate_bytes_per_s", None),
        (DLIO, "run", "dlio", "samples_per_s", 10.5),
        (DLIO, "run", "dlio", "read.rate_bytes_per_s", 1500.5 * (1 << 20)),
        (EXCEL, "run", "iozone[file_kib=2048,record_kib=64]", "write/rate_bytes_per_s", 1100 * 1024),
        (EXCEL, "run", "iozone[file_kib=1024,record_kib=128]", "reread/rate_bytes_per_s", 4000 * 1024),
        (
            "10 requests completed in 2.71 ms, 40 KiB read, 3.69 k iops, 14.4 MiB/s\n"
            "min/avg/max/mdev = 181.2 us / 270.9 us / 410.8 us / 70.1 us\n",
            *("run", "ioping", "read/iops", 3690),
        ),
        (SQL_ALONE, "sync_binlog=0", "sysbench sql", "transactions_per_s", 200.5),
        (SQL_ALONE, "sync_binlog=1", "sysbench sql", "latency_ns_p95", 9.5e6),
    ],
)
def test_reports_of_more_tools(
    tmp_path: Path, text: str, setting: str, workload: str, metric: str, expected: float | None
) -> None:
    check_value(tmp_path, text, setting, workload, metric, expected)


def test_a_loop_of_s3_benchmark_is_a_round(tmp_path: Path) -> None:
    run = opened(tmp_path / "run.txt", S3_BENCHMARK)
    assert value(run, "run", "s3-benchmark", "put/operations_per_s", 1) == 21


YCSB_SERIES = (
    "10 sec: 1200 operations; 120 current ops/sec; [READ AverageLatency(us)=812.1]\n"
    "20 sec: 2300 operations; 110 current ops/sec; [READ AverageLatency(us)=850.1]\n"
    "[OVERALL], RunTime(ms), 20000\n[OVERALL], Throughput(ops/sec), 115.0\n[READ], Operations, 2300\n"
    "[READ], AverageLatency(us), 830.5\n[READ], 0, 812.1\n[READ], 10000, 850.1\n"
)
COCKROACH_SERIES = (
    "_elapsed___errors__ops/sec(inst)___ops/sec(cum)__p50(ms)__p95(ms)__p99(ms)_pMax(ms)\n"
    "    1.0s        0         3612.4         3612.4      1.8      4.5      8.1     24.1 read\n"
    "    2.0s        0         3701.0         3656.6      1.8      4.2      7.9     22.0 read\n\n"
    "_elapsed___errors_____ops(total)___ops/sec(cum)__avg(ms)__p50(ms)__p95(ms)__p99(ms)_pMax(ms)__total\n"
    "    2.0s        0           7313         3656.6      2.1      1.8      4.3      8.0     24.1  read\n"
)


@pytest.mark.parametrize(
    ("text", "workload", "metric", "expected"),
    [
        (YCSB_SERIES, "ycsb", "operations_per_s", 115),
        (YCSB_SERIES, "ycsb", "read/latency_ns_mean", 830.5e3),
        (COCKROACH_SERIES, "cockroach", "read/operations_per_s", 3656.6),
        (COCKROACH_SERIES, "cockroach", "read/latency_ns_p99", 8e6),
    ],
)
def test_lines_of_a_series_are_no_rounds(
    tmp_path: Path, text: str, workload: str, metric: str, expected: float
) -> None:
    run = opened(tmp_path / "run.txt", text)
    assert run.metrics["round"].max() == 0
    assert value(run, "run", workload, metric) == pytest.approx(expected)
    with pytest.raises(InputError, match="give the lines at its end too"):
        opened(tmp_path / "cut.txt", "\n".join(line for line in text.splitlines()[:3] if "OVERALL" not in line) + "\n")


NFSIOSTAT = """nas:/export mounted on /mnt:

           ops/s       rpc bklog
        {all}           0.000

read:              ops/s            kB/s           kB/op         retrans    avg RTT (ms)    avg exe (ms)
                {reads}       64000.000          64.000        {again} (0.1%)           {rtt}           6.655
write:             ops/s            kB/s           kB/op         retrans    avg RTT (ms)    avg exe (ms)
                   0.000           0.000           0.000        0 (0.0%)           0.000           0.000
"""


def _nfsiostat(all: float, reads: float, rtt: float, again: int) -> str:
    return NFSIOSTAT.format(all=all, reads=reads, rtt=rtt, again=again)


def test_nfsiostat_reports_are_means_without_the_first_and_settings_by_titles(tmp_path: Path) -> None:
    series = _nfsiostat(9.5, 9.5, 99.0, 0) + _nfsiostat(1000.5, 1000.0, 6.0, 1) + _nfsiostat(3000.5, 3000.0, 2.0, 0)
    run = opened(tmp_path / "base.txt", series)
    assert value(run, "base", "nfs /mnt", "iops") == 2000.5
    assert value(run, "base", "nfs /mnt", "read/iops") == 2000
    assert value(run, "base", "nfs /mnt", "read/rate_bytes_per_s") == 64000 * 1024
    assert value(run, "base", "nfs /mnt", "read/rpc_rtt_ns_mean") == pytest.approx(3e6), "weighted by operations"
    assert value(run, "base", "nfs /mnt", "read/rpc_retransmissions") == 0.5
    assert run.problems == [f"{tmp_path}/base.txt: the first report, averages since the mount, is left out"]
    posted = (
        f"with nconnect=1:\n\n{_nfsiostat(10.5, 9.5, 6.5, 0)}\nwith nconnect=8:\n\n{_nfsiostat(20.5, 19.5, 2.5, 0)}"
    )
    run = opened(tmp_path / "posted.txt", posted)
    assert value(run, "with nconnect=1", "nfs /mnt", "read/rpc_rtt_ns_mean") == 6.5e6
    assert value(run, "with nconnect=8", "nfs /mnt", "iops") == 20.5
    assert "time since the mount" in run.problems[0]
