"""What is told of a workload, and in which order: jobs and operations apart, and first what it waits for."""

import json
from pathlib import Path
from typing import Any

import iolab
import pytest
from iolab.domain.lead import Shape, in_order, kinds_of
from iolab.presentation.cli.invoke import invoke

MIX = """
machine = "model:nvme"
rounds = 2
seed = 3

[workloads.mixed]
kind = "mix"
duration = "300ms"

[workloads.mixed.jobs.reader]
pattern = "random"
file_size = "8MiB"

[workloads.mixed.jobs.writers]
jobs = 2
read_percent = 0
block_size = "8KiB"
file_size = "8MiB"
queue_depth = 16

[settings.none]
scheduler = "none"

[settings.bfq]
scheduler = "bfq"
"""
COMMITS = """
machine = "model:nvme"
rounds = 3
seed = 3

[workloads.commits]
read_percent = 0
direct = false
fsync_every = 1
file_size = "4MiB"
operations = 1500

[settings.none]
scheduler = "none"

[settings.bfq]
scheduler = "bfq"
"""
HALF = """
machine = "model:nvme"
rounds = 2
seed = 3
[workloads.half]
read_percent = 50
file_size = "8MiB"
duration = "20ms"
queue_depth = {depth}
[settings.none]
scheduler = "none"
[settings.bfq]
scheduler = "bfq"
"""


def run(tmp_path: Path, text: str) -> Path:
    (tmp_path / "own.toml").write_text(text)
    assert invoke(["run", str(tmp_path / "own.toml"), "--out", str(tmp_path / "run"), "--json"]) == 0
    return tmp_path / "run"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    capsys.readouterr()
    assert invoke(list(arguments)) == status
    captured = capsys.readouterr()
    return captured.out + captured.err


def places(document: Any) -> list[tuple[str | None, str]]:
    return list(dict.fromkeys((one["job"], one["metric"]) for one in document["comparisons"]))


def test_a_mix_is_judged_by_job_and_totals_follow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = run(tmp_path, MIX)
    shown = json.loads(printed(capsys, "show", str(path), "--as", "json"))
    compared = json.loads(printed(capsys, "compare", str(path), "--json"))
    assert places(shown) == places(compared)
    jobs = list(dict.fromkeys(job for job, _ in places(shown)))
    assert set(jobs[:2]) == {"writers", "reader"} and jobs[2] is None  # copies are one, and all together last
    tails = {one["job"]: one["baseline"] for one in shown["comparisons"] if one["metric"] == "latency_ns_p99"}
    assert tails[jobs[0]] > tails[jobs[1]]  # the longest first
    assert {metric for job, metric in places(shown) if job == "reader"} == {
        *("latency_ns_mean", "latency_ns_p99", "rate_bytes_per_s"),
    }
    assert [one["metric"] for one in shown["comparisons"] if one["leads"]] == ["latency_ns_p99"] * 2
    text = printed(capsys, "show", str(path))
    headings = [text.index(f"\nmixed, job {job}\n") for job in jobs[:2]]
    assert headings[0] < headings[1] < text.index("\nmixed\n")
    assert "on mixed, job " in text.partition("\n\n")[0]
    figures = iolab.load(path).job_metrics
    assert {"reader", "writers", "writers.0"} <= set(figures["job"]) and "read.latency_ns_mean" in set(figures["key"])
    assert [one.job for one in iolab.load(path).compare() if one.metric == "latency_ns_mean"] == jobs


def test_each_copy_and_one_job_alone_can_be_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(run(tmp_path, MIX))
    assert "mixed, job writers.1" in printed(capsys, "show", path, "--by-job")
    alone = printed(capsys, "show", path, "--job", "reader")
    assert "mixed, job reader" in alone and "writers" not in alone
    assert "did you mean reader" in printed(capsys, "show", path, "--job", "readr", status=2)
    assert "does not show jobs apart" in printed(capsys, "show", path, "--by-job", "--as", "csv", status=2)


def test_one_setting_has_rows_of_jobs_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job_file = "[global]\ndirectory=/tmp\nsize=8m\nbs=4k\nioengine=libaio\ndirect=1\nruntime=1\ntime_based\n"
    job_file += "[slow]\nrw=randread\nrate_iops=200\n[fast]\nrw=randread\niodepth=8\n"
    (tmp_path / "two.fio").write_text(job_file)
    (tmp_path / "own.toml").write_text(
        'machine = "model:nvme"\nrounds = 1\nseed = 1\n[workloads.two]\nkind = "fio"\nfile = "two.fio"\n'
    )
    assert invoke(["run", str(tmp_path / "own.toml"), "--out", str(tmp_path / "run")]) == 0
    shown = capsys.readouterr().out
    assert "two, job slow" in shown and "two, job fast" in shown
    assert "No value of latency p99: of fewer than 1,000 values, fewer than 10 lie beyond it" in shown


def test_each_direction_of_a_mix_does_what_its_rate_allows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """rate=400k of 4 KiB is 100 a second of both, as fio 3.33 does; with drawn directions the two differed by 20 %."""
    job_file = "[a]\ndirectory=/tmp\nsize=8m\nbs=4k\nioengine=libaio\ndirect=1\nruntime=1\ntime_based\n"
    (tmp_path / "mix.fio").write_text(job_file + "rw=randrw\nrwmixread=75\nrate=400k\n")
    (tmp_path / "own.toml").write_text(
        'machine = "model:nvme"\nrounds = 1\nseed = 1\n[workloads.mix]\nkind = "fio"\nfile = "mix.fio"\n'
    )
    assert invoke(["run", str(tmp_path / "own.toml"), "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    figures = iolab.load(str(tmp_path / "run")).metrics
    found = {row["key"]: row["value"] for row in figures.to_dicts()}
    assert found["read.ops"] == found["write.ops"] == pytest.approx(100, abs=1)


def test_sync_latency_leads_where_a_workload_syncs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(printed(capsys, "show", str(run(tmp_path, COMMITS)), "--as", "json"))
    assert [metric for _, metric in places(shown)][:2] == ["sync.latency_ns_mean", "sync.latency_ns_p99"]
    (first, *_) = shown["conclusions"]
    assert " in sync latency mean" in first["text"].partition(";")[0]


def test_a_setting_alone_says_how_often_it_syncs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Commits a second; beside another setting it says what the latency says."""
    one = COMMITS[: COMMITS.index("[settings.")] + "[settings.alone]\n"
    shown = json.loads(printed(capsys, "show", str(run(tmp_path, one)), "--as", "json"))
    assert shown["values"][0]["metric"] == "sync.iops"


@pytest.mark.parametrize(("depth", "lead"), [(1, "read.rate_bytes_per_s"), (8, "read.latency_ns_mean")])
def test_reads_and_writes_are_apart_where_both_occur(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], depth: int, lead: str
) -> None:
    document = json.loads(printed(capsys, "show", str(run(tmp_path, HALF.format(depth=depth))), "--as", "json"))
    told = [metric for _, metric in places(document)]
    assert told[0] == lead
    assert {"read.latency_ns_mean", "write.latency_ns_mean", "latency_ns_mean"} <= set(told)


def test_the_order_of_keys() -> None:
    keys = ["rate_bytes_per_s", "latency_ns_mean", "latency_ns_p99", "sync.latency_ns_mean", "sync.latency_ns_p99"]
    assert in_order(keys, Shape()) == keys
    assert in_order(keys, Shape(queue_depth=8))[:3] == ["latency_ns_mean", "latency_ns_p99", "rate_bytes_per_s"]
    assert in_order(keys, Shape(syncs=True, queue_depth=8))[:2] == keys[3:]
    assert in_order(keys, Shape(), beside_others=True)[:2] == ["latency_ns_p99", "latency_ns_mean"]


def test_copies_are_one_kind_of_job() -> None:
    assert kinds_of(["reader", "writer.0", "writer.1"]) == ["reader", "writer"]
    assert kinds_of(["job.0", "job.1"]) == []
    assert kinds_of(["one"]) == []
