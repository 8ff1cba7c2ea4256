"""Reports of load generators and of sysstat: made by the tools, or after their sources where there is no package."""

from __future__ import annotations

from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.domain.metric import describe
from iolab.files.importer.run_import import open_run
from test_importer import value

SAMPLES = Path(__file__).parent / "imported"
MIB = 2**20


@pytest.mark.parametrize(
    ("name", "workload", "metric", "expected"),
    [
        ("bonnie-2.00.txt", "bonnie++", "put_char/rate_bytes_per_s", 378 * 1024),
        ("bonnie-2.00.txt", "bonnie++", "random_create/operations_per_s", 316),
        ("dbench-4.00.txt", "dbench 2 clients", "rate_bytes_per_s", 64.0728e6),
        ("dbench-4.00.txt", "dbench 2 clients", "flush/latency_ns_max", 72.404e6),
        ("pg_test_fsync-15.txt", "pg_test_fsync one 8kB write", "fdatasync/iops", 173.904),
        ("pg_test_fsync-15.txt", "pg_test_fsync two 8kB writes", "fdatasync/latency_ns_mean", 5641e3),
        ("pg_test_fsync-15.txt", "pg_test_fsync", "write_fsync_close/iops", 252.936),
        ("stress-ng-0.15.06.txt", "stress-ng hdd", "operations_per_s", 9225.79),
        ("stress-ng-0.15.06.txt", "stress-ng hdd", "write.rate_bytes_per_s", 1272.23 * MIB),
        ("dd.txt", "dd", "rate_bytes_per_s", 8388608 / 0.0599046),
        ("ior.txt", "ior", "write.rate_bytes_per_s", 2189.82 * MIB),
        ("ior.txt", "ior", "read.iops", 5433),
        ("mdtest.txt", "mdtest", "file_creation/operations_per_s_mean", 19000),
        ("elbencho.txt", "elbencho", "read/rate_bytes_per_s", 14001 * MIB),
        ("elbencho.txt", "elbencho", "write/elapsed_s", 1.254),
        ("db_bench-7.8.3.txt", "db_bench", "fillseq/latency_ns_p999", 2.9e6),
        ("db_bench-7.8.3.txt", "db_bench", "fillseq/rate_bytes_per_s", 3.7 * MIB),
        ("db_bench-7.8.3.txt", "db_bench", "readrandom/iops", 278373),
        ("db_bench-7.8.3.txt", "db_bench", "readseq/latency_ns_mean", 153),
        ("ioping-1.3.txt", "ioping", "read/iops", 2550),
        ("ioping-1.3.txt", "ioping", "read/latency_ns_max", 17.3e6),
        ("ioping-1.3.txt", "ioping", "written/rate_bytes_per_s", 2.44 * MIB),
        ("ioping-1.3.txt", "ioping", "written/bytes", 196 * 1024),
        ("hammerdb.txt", "hammerdb", "new_orders_per_min", 12345),
        ("diskspd.txt", "diskspd", "read.latency_ns_p999", 1.5e6),
        ("diskspd.txt", "diskspd", "write.rate_bytes_per_s", 9.77 * MIB),
        ("diskspd.xml", "diskspd", "read.iops", 7500),
        ("diskspd.xml", "diskspd", "latency_ns_p99", 0.88e6),
        ("iostat-h.txt", "iostat vda", "write.rate_bytes_per_s", 154.5 * 1024),
        ("iostat-h.txt", "iostat vda", "device_busy_percent", 0.8),
        ("sar-d.txt", "sar vda", "iops", 338),
        ("sar-d.txt", "sar vda", "latency_ns_mean", (289 * 0.07 + 387 * 0.08) / (289 + 387) * 1e6),
    ],
)
def test_figures(name: str, workload: str, metric: str, expected: float) -> None:
    assert value(open_run(SAMPLES / name), Path(name).stem, workload, metric) == pytest.approx(expected, rel=1e-6)


def test_sar_with_names_at_the_end_of_the_line_is_read_alike() -> None:
    devices = [set(open_run(SAMPLES / name).workloads) for name in ("sar-d.txt", "sar-p.txt")]
    assert devices == [{"sar vda", "sar loop4"}] * 2


@pytest.mark.parametrize(
    ("metric", "better"),
    [
        ("operations_per_s_mean", "higher"),
        ("operations_per_s", "higher"),
        ("new_orders_per_min", "higher"),
        ("cpu_percent", "lower"),
        ("operations_per_s_stddev", "lower"),
    ],
)
def test_which_way_is_better(metric: str, better: str) -> None:
    assert describe(metric).better == better


def test_what_was_too_short_to_measure_is_absent_and_not_zero() -> None:
    run = open_run(SAMPLES / "bonnie-2.00.txt")
    absent = run.metrics.filter(key="put_block/rate_bytes_per_s")
    assert absent["value"].to_list() == [None]
    assert "too short to measure" in absent["reason"][0]


def test_the_table_of_bonnie_is_read_where_its_line_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "table.txt"
    pair = "{0:>7} {1:>3}"
    rates = " ".join(pair.format(*one) for one in (("475k", 24), ("1.5m", 9), ("+++++", "+++"), (627, 20)))
    path.write_text(
        "Version 2.00a       ------Sequential Output------ --Sequential Input- --Random-\n"
        f"vm              64M {rates}  +++++ +++ 316.5   1\n"
        "Version 2.00a       ------Sequential Create------ --------Random Create--------\n"
        "                  4  4096  23 +++++ +++ +++++ +++  4097  21 +++++ +++ +++++ +++\n"
    )
    run = open_run(path)
    wanted = {
        "put_char/rate_bytes_per_s": 475 * 1024,
        "put_block/rate_bytes_per_s": 1.5 * MIB,
        "get_char/rate_bytes_per_s": 627 * 1024,
        "seek/iops": 316.5,
        "random_create/operations_per_s": 4097,
    }
    assert {key: value(run, "table", "bonnie++", key) for key in wanted} == pytest.approx(wanted)
    assert run.metrics.filter(key="rewrite/rate_bytes_per_s")["value"].to_list() == [None]


def test_lines_of_dd_are_rounds(tmp_path: Path) -> None:
    path = tmp_path / "dd.txt"
    path.write_text("".join(f"1048576 bytes (1.0 MB) copied, 0.{n} s, 1 MB/s\n" for n in range(1, 5)))
    assert open_run(path).trials["round"].to_list() == [0, 1, 2, 3]


def test_commands_of_dd_are_workloads(tmp_path: Path) -> None:
    path = tmp_path / "dd.txt"
    done = "1+0 records in\n1+0 records out\n1048576 bytes (1.0 MB) copied, 0.1 s, 10 MB/s\n"
    path.write_text(
        f"root@host:~# dd if=/dev/zero of=a bs=1M count=1\n{done}$ sudo dd if=a of=/dev/null bs=4k\n{done}{done}"
    )
    found = open_run(path).trials.select("workload", "round").rows()
    first, second = "dd if=/dev/zero of=a bs=1M count=1", "dd if=a of=/dev/null bs=4k"
    assert found == [(first, 0), (second, 0), (second, 1)]


def test_a_table_of_markdown_in_prose(tmp_path: Path) -> None:
    path = tmp_path / "table.md"
    path.write_text(
        "Results:\n\n| Kernel | test | IOPS | lat_us |\n|---|---|--:|--|\n| 6.1 | read | 1,000 | - |\n"
        "| **6.6** | read | 1,200 | 5 |\n\nAnd that was it.\n"
    )
    run = open_run(path)
    assert value(run, "6.6", "read", "IOPS") == 1200
    assert run.metrics.filter(setting="6.1", key="lat_us")["value"].to_list() == [None]


def test_the_times_of_mdtest_are_no_second_round(tmp_path: Path) -> None:
    path = tmp_path / "mdtest.txt"
    rates = (SAMPLES / "mdtest.txt").read_text()
    path.write_text(rates + rates.replace("SUMMARY rate: ", "SUMMARY time (in ms/op): "))
    assert open_run(path).trials.height == 1


def test_sysbench_1_1_says_its_times_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "sb.txt"
    path.write_text(
        "\ufeffsysbench 1.1.0 (using bundled LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\n"
        "Number of threads: 16\n\nThreads started!\n\nThroughput:\n    events/s (eps):                      143.0086\n"
        "    time elapsed:                        1800.0319s\n    total number of events:              257521\n"
    )
    run = open_run(path)
    assert value(run, "sb", "sysbench test[threads=16]", "elapsed_s") == 1800.0319
    assert value(run, "sb", "sysbench test[threads=16]", "events_per_s") == 143.0086


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("      bogo-ops-per-second-real-time: 9.5", "--metrics"),
        (" Performance counter stats for 'ls':", "perf stat -x"),
        ("  8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]", "iolab trace"),
        ("[OVERALL], RunTime(ms), 1000", "CSV"),
        ('"bwMaxMIB": 12.5,', "summaryFormat"),
        ('    "ignored": false', "leave out -json"),
    ],
)
def test_what_is_recognised_and_not_read_says_the_way_out(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "any.txt"
    path.write_text(f"some words\n{line}\nmore words\n")
    with pytest.raises(InputError, match=f"which is not read; .*({said})"):
        open_run(path)


def test_xml_with_entities_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "evil.xml"
    path.write_text("<Results><TimeSpan></TimeSpan><!DOCTYPE a [<!ENTITY b 'c'>]></Results>")
    with pytest.raises(InputError, match="document type"):
        open_run(path)
