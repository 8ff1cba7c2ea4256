"""The kind commits: what its options become, what is a commit, and what a host and a simulated machine answer."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from iolab.domain.durable_rule import rule_sentences
from iolab.domain.lead import COMMITS, Shape, in_order
from iolab.domain.trial import LoadPhase
from iolab.domain.workload import KINDS
from iolab.files.store import RunData
from support.command_line import CommandLine
from support.experiments import SCRATCH
from support.runs import faults, statuses
from support.simulated import run

KIND = KINDS["commits"]
MIB = 1 << 20
LOG = """
[workloads.log]
kind = "commits"
writers = {writers}
record_size = {{ "512" = 1, "4KiB" = 1 }}
segment_size = "1MiB"
segments = 2
records = {records}
"""
EACH_WAY = """
[settings.fdatasync]
[settings.fsync]
workload = { sync = "fsync" }
[settings.dsync]
workload = { sync = "dsync" }
[settings.group]
workload = { records_per_sync = 4 }
[settings.grown]
workload = { preallocated = false, log = "own" }
"""
MODEL = 'machine = "model:nvme"\nrounds = 1\nseed = 1\n'
PROTECTED = """
[settings.protected]
machine = { "drives.0.device.firmware.power_loss_protection" = true }
"""


def phases(devices: int = 1, **options: Any) -> list[LoadPhase]:
    accepted = KIND.options.model_validate({"records": 10, **options})
    assert not list(KIND.conflicts(accepted))
    made = KIND.phases(accepted, 1, devices)
    assert all(isinstance(phase, LoadPhase) for phase in made)
    return [phase for phase in made if isinstance(phase, LoadPhase)]


def jobs(**options: Any) -> list[Any]:
    return [job for group in phases(**options)[-1].load["groups"] for job in group["jobs"]]


def conflict(**options: Any) -> str:
    (found,) = KIND.conflicts(KIND.options.model_validate(options))
    return f"{found.key[0]}: {found.what}"


def test_a_preallocated_log_is_laid_out_and_a_grown_one_is_not() -> None:
    layout, main = phases(segments=2, segment_size="1MiB")
    assert (layout.name, layout.measured, main.measured) == ("layout", False, True)
    assert layout.load["files"] == main.load["files"]
    assert [file["path"] for file in main.load["files"]] == ["log.0", "log.1"]
    (grown,) = phases(segments=2, segment_size="1MiB", preallocated=False)
    assert not any(file["extend"] for file in grown.load["files"])


def test_writers_of_one_log_have_its_places_in_turn() -> None:
    made = jobs(writers=3, record_size={"512": 1.0, "4KiB": 1.0}, segment_size="1MiB", segments=2)
    assert [job["files"] for job in made] == [[0, 1]] * 3
    assert [job["offset_bytes"] for job in made] == [0, 4096, 8192]
    assert {job["offset_bytes"] + job["length_bytes"] <= MIB for job in made} == {True}
    assert {str(job["pattern"]) for job in made} == {"{'kind': 'strided', 'stride_bytes': 12288, 'one_lap': True}"}


def test_logs_of_their_own_lie_on_the_devices_in_turn() -> None:
    made = phases(devices=2, writers=3, log="own", segments=2, segment_size="1MiB")[-1]
    assert [file.get("place", 0) for file in made.load["files"]] == [0, 0, 1, 1, 0, 0]
    used = [job["files"] for group in made.load["groups"] for job in group["jobs"]]
    assert used == [[0, 1], [2, 3], [4, 5]]
    assert KIND.file_bytes(KIND.options.model_validate({"writers": 3, "log": "own", "segment_size": "1MiB"})) == 3 * MIB


def test_what_makes_a_record_durable() -> None:
    (plain,) = jobs(record_size=2300)
    assert plain["sync"] == {"kind": "fdatasync", "every_writes": 1, "when_idle": True}
    assert plain["commits"] and plain["align_bytes"] == 1
    (grouped,) = jobs(sync="fsync", records_per_sync=8)
    assert grouped["sync"] == {"kind": "fsync", "every_writes": 8, "when_idle": True}
    (durable,) = jobs(sync="dsync")
    assert (durable["sync"], durable["dsync_every"], durable["align_bytes"]) == (None, 1, 512)
    assert phases(sync="dsync")[-1].load["groups"][0]["direct"]
    assert not phases(sync="dsync", direct=False)[-1].load["groups"][0]["direct"]
    assert {"write", "sync", "commit"} == set(phases()[-1].offered)
    assert {"write", "commit"} == set(phases(sync="dsync")[-1].offered)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "duration: when does it end"),
        ({"records": 1, "warm_up": "1s"}, "warm_up: only with duration"),
        ({"records": 1, "spacing": "poisson"}, "spacing: spaces the records of an open loop"),
        ({"records": 1, "sync": "dsync", "records_per_sync": 2}, "records_per_sync: a durable write is a commit"),
        ({"records": 1, "sync": "dsync", "record_size": 2300}, "record_size: 2300 bytes is not a multiple of 512"),
        ({"records": 1, "writers": 3, "segment_size": "8KiB"}, "segment_size: 8KiB have no place for a record of each"),
        ({"records": 1, "cpus": []}, "cpus: expected a list of CPU numbers"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], said: str) -> None:
    assert conflict(**options).startswith(said)


def test_commits_lead_and_then_their_tail() -> None:
    keys = ["rate_bytes_per_s", "sync.latency_ns_p99", "commit.latency_ns_mean", "commit.latency_ns_p99", "commit.iops"]
    assert in_order(keys, Shape(commits=True, syncs=True))[:3] == list(COMMITS)
    assert in_order(keys[:2], Shape(commits=True, syncs=True))[0] == "sync.latency_ns_p99"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> RunData:
    """Two writers that make 600 records each durable in each way, on a drive that has to flush."""
    directory = tmp_path_factory.mktemp("commits")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        patch.setenv("IOLAB_STATE_DIR", str(directory / "state"))
        return run(MODEL + LOG.format(writers=2, records=600) + EACH_WAY + PROTECTED, str(directory / "out"))


def typical(found: RunData, key: str, setting: str) -> float:
    return float(found.values(key, "log")[setting][0])


def test_each_record_is_committed_once_whatever_makes_it_durable(simulated: RunData) -> None:
    assert set(statuses(simulated.path)) == {"ok"}, faults(simulated.path)
    for setting in simulated.settings:
        assert typical(simulated, "commit.ops", setting) == typical(simulated, "write.ops", setting) == 1200


def test_a_commit_is_its_write_and_its_sync(simulated: RunData) -> None:
    for setting in ("fdatasync", "fsync"):
        parts = [typical(simulated, f"{op}.latency_ns_mean", setting) for op in ("write", "sync")]
        assert typical(simulated, "commit.latency_ns_mean", setting) == pytest.approx(sum(parts), rel=0.05)
        assert typical(simulated, "sync.ops", setting) == 1200
    alike = [typical(simulated, f"{op}.latency_ns_mean", "dsync") for op in ("commit", "write")]
    assert alike[0] == alike[1]


def test_a_group_shares_a_sync_and_each_waits_for_it(simulated: RunData) -> None:
    assert typical(simulated, "sync.ops", "group") == 300
    assert typical(simulated, "commit.iops", "group") > 2 * typical(simulated, "commit.iops", "fdatasync")
    assert typical(simulated, "commit.latency_ns_mean", "group") > typical(simulated, "sync.latency_ns_mean", "group")


def test_protection_spares_the_flush(simulated: RunData) -> None:
    assert typical(simulated, "commit.iops", "protected") > 2 * typical(simulated, "commit.iops", "fdatasync")


def test_the_rule_names_who_keeps_it(simulated: RunData) -> None:
    (sentence,) = rule_sentences(simulated)
    assert sentence.startswith("etcd's rule, p99 of a sync below 10 ms: kept by fdatasync (")
    assert "dsync (" in sentence and "unknown, with fewer than 1,000 syncs in a round, of group" in sentence


def test_a_round_without_a_tail_leaves_the_rule_unknown() -> None:
    """Of three rounds, one has the 1,000 syncs that a p99 takes: the fastest, which may have missed the rule."""
    ms = 1_000_000
    values = {
        "sync.latency_ns_mean": {"slow": [5.0 * ms] * 3, "fast": [2.0 * ms] * 3},
        "sync.latency_ns_p99": {"slow": [None, 12.0 * ms, None], "fast": [4.0 * ms, 12.0 * ms, 3.0 * ms]},
    }
    found = SimpleNamespace(
        workloads=["log"],
        shapes={"log": Shape(commits=True, syncs=True)},
        settings=["slow", "fast"],
        keys=list(values),
        values=lambda key, _: pl.DataFrame(values[key]),
    )
    (sentence,) = rule_sentences(found)  # type: ignore[arg-type]
    assert sentence == (
        "etcd's rule, p99 of a sync below 10 ms: unknown, with fewer than 1,000 syncs in a round, of slow (12.00 ms in "
        "1 of 3 rounds); kept in 2 of 3 rounds by fast (3.00 to 12.00 ms)."
    )
    found.settings = ["slow"]
    assert rule_sentences(found) == []  # type: ignore[arg-type]


def test_what_is_compared_comes_before_the_rule(iolab: CommandLine) -> None:
    text = (
        MODEL.replace("rounds = 1", "rounds = 5") + LOG.format(writers=1, records=1200) + "[settings.one]\n" + PROTECTED
    )
    iolab("run", iolab.write("x.toml", text), "--out", "run")
    for form in ("text", "markdown"):
        shown = iolab("show", "run", *(["--as", form] if form != "text" else [])).text
        assert 0 < shown.index("protected is faster than one") < shown.index("etcd's rule")


def test_a_disk_commits_once_a_turn_and_misses_the_rule_with_a_growing_log(here: Path) -> None:
    """Of 7,200 revolutions a minute, 120 in a second; a growing log needs the journal's place too."""
    text = MODEL.replace("nvme", "one_disk") + LOG.format(writers=1, records=1100) + "direct = true\n"
    found = run(text + "[settings.disk]\n[settings.grown]\nworkload = { preallocated = false }\n")
    assert typical(found, "commit.iops", "disk") == pytest.approx(120, rel=0.02)
    (sentence,) = rule_sentences(found)
    assert "kept by disk (" in sentence and "missed by grown (" in sentence


def test_an_open_log_commits_what_is_due_and_counts_the_wait(iolab: CommandLine) -> None:
    """At a low rate each record has a sync of its own; at a high one, groups fill."""
    text = LOG.format(writers=1, records=400) + "records_per_sync = 16\nrate_iops = [20, 100000]\ndirect = true\n"
    iolab.write("open.toml", MODEL + text + "[settings.one]\n")
    iolab("run", "open.toml", "--out", "run")
    found = iolab("show", "run", "--as", "json", "--metric", "sync.ops", "--metric", "commit.ops").json()
    syncs = {one["workload"]: one["median"] for one in found["values"] if one["metric"] == "sync.ops"}
    assert syncs["log[rate_iops=20]"] == 400 and syncs["log[rate_iops=100000]"] < 60


def test_what_the_model_lacks_is_named(iolab: CommandLine) -> None:
    machine = MODEL.replace("nvme", "dram-nvme")
    text = machine + LOG.format(writers=1, records=10) + "direct = false\n[settings.one]\n"
    refused = iolab("run", iolab.write("x.toml", text), status=None)
    refused.assert_one_clear_line(2, "direct", "no [memory]")


def test_the_table_begins_with_commits(iolab: CommandLine) -> None:
    text = MODEL + LOG.format(writers=1, records=1200) + "[settings.one]\n"
    iolab("run", iolab.write("x.toml", text), "--out", "run")
    shown = iolab("show", "run")
    assert "● commits " in shown.text and "etcd's rule" in shown.text
    first = iolab("show", "run", "--as", "json").json()["values"][0]
    assert first["metric"] == "commit.iops"


@pytest.mark.root
@pytest.mark.parametrize("filesystem", ["ext4", "none"])
def test_a_loop_device_commits_each_record(iolab: CommandLine, filesystem: str) -> None:
    target = SCRATCH.replace("ext4", filesystem)
    text = f"rounds = 1\nseed = 1\n[target]\n{target}\n" + LOG.format(writers=4, records=60) + EACH_WAY
    iolab.write("log.toml", text)
    iolab("run", "log.toml", "--out", "run")
    assert set(statuses(iolab.cwd / "run")) == {"ok"}, faults(iolab.cwd / "run")
    shown = iolab("show", "run", "--as", "json", "--metric", "commit.ops", "--metric", "sync.ops").json()
    by_metric: dict[str, dict[str, float]] = {}
    for one in shown["values"]:
        by_metric.setdefault(one["metric"], {})[one["setting"]] = one["median"]
    assert set(by_metric["commit.ops"].values()) == {240.0}
    assert {by_metric["sync.ops"][name] for name in ("fdatasync", "fsync", "grown")} == {240.0}
    assert by_metric["sync.ops"]["group"] == 60.0
