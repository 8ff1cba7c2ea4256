"""Layers in a guest machine with a real kernel: what each adds is counted, or measured where its time is known."""

import re
from pathlib import Path
from typing import Any

import pytest
from iolab.files.store import read
from support.command_line import CommandLine
from support.guests import kernel_or_skip
from support.traced_guest import traced


@pytest.fixture(scope="module")
def kernel_name() -> str:
    return kernel_or_skip("6.1.")


def phases(iolab: CommandLine, kernel: str, settings: str, *, read_percent: int = 100) -> dict[str, Any]:
    """The measured phase under each setting."""
    iolab.write(
        "layers.toml",
        f"""
machine = "guest:{kernel}"
rounds = 1
seed = 1
[target]
kind = "scratch"
size = "32MiB"
filesystem = "none"
[guest]
memory = "512MiB"
[workloads.job]
operations = 300
read_percent = {read_percent}
engine = "psync"
block_size = "4KiB"
file_size = "4MiB"
{settings}
""",
    )
    iolab("run", "layers.toml", "--out", "run", cpu_limit_s=1200)
    run = read(Path(iolab.cwd) / "run")
    records = [run.record(trial) for trial in run.trials["trial"].to_list()]
    return {record.spec.setting: record.phases[0] for record in records}


WRITES = 20


def trace_of_writes(layer: str, kernel: str, directory: Path) -> str:
    """Of so many, of 4 KiB each, at random, to what nothing was written to before."""
    experiment = f"""
machine = "guest:{kernel}"
[target]
kind = "scratch"
size = "32MiB"
filesystem = "none"
layers = [{layer}]
[guest]
memory = "512MiB"
[workloads.job]
operations = {WRITES}
read_percent = 0
layout = false
engine = "psync"
block_size = "4KiB"
file_size = "4MiB"
"""
    return traced(experiment, directory)


def kernel_instructions(phase: Any) -> float:
    found = phase["probes"]["instructions"]
    return float(found["total"] - found["user"]) / float(found["operations"])


def latency_ns(phase: Any, op: str = "read") -> float:
    return float(phase["groups"][0]["jobs"][0][op]["latency"]["mean_ns"])


@pytest.mark.long
def test_delay_adds_its_delay_and_each_linear_the_same_instructions(iolab: CommandLine, kernel_name: str) -> None:
    """dm-delay's time is known: under 6.1 it is two ticks of 4 ms longer at most."""
    found = phases(
        iolab,
        kernel_name,
        """
[settings.none]
[settings.linear]
layers = [{ kind = "linear" }]
[settings.linear_2]
layers = [{ kind = "linear" }, { kind = "linear" }]
[settings.linear_3]
layers = [{ kind = "linear" }, { kind = "linear" }, { kind = "linear" }]
[settings.delay]
layers = [{ kind = "delay", delay = "20ms" }]
""",
    )
    added = latency_ns(found["delay"]) - latency_ns(found["none"])
    assert 20e6 <= added <= 28.5e6
    none, one, two, three = (kernel_instructions(found[name]) for name in ("none", "linear", "linear_2", "linear_3"))
    assert 1000 < one - none < 4000
    assert three - two == pytest.approx(two - one, rel=0.05)


@pytest.mark.long
def test_crypt_costs_instructions_and_its_workqueues_cost_switches(iolab: CommandLine, kernel_name: str) -> None:
    found = phases(
        iolab,
        kernel_name,
        """
[settings.none]
[settings.null]
layers = [{ kind = "crypt", cipher = "cipher_null-ecb" }]
[settings.null_without]
layers = [{ kind = "crypt", cipher = "cipher_null-ecb", no_read_workqueue = true, no_write_workqueue = true }]
[settings.aes]
layers = [{ kind = "crypt" }]
[settings.aes_without]
layers = [{ kind = "crypt", no_read_workqueue = true, no_write_workqueue = true }]
""",
    )
    counts = {name: kernel_instructions(phase) for name, phase in found.items()}
    assert counts["none"] < counts["null_without"] < counts["null"] < counts["aes_without"] < counts["aes"]


@pytest.mark.long
def test_what_is_read_through_layers_is_what_was_written(iolab: CommandLine, kernel_name: str) -> None:
    found = phases(
        iolab,
        kernel_name,
        """
verify = true
[settings.raid0]
layers = [{ kind = "raid", level = 0, members = 2 }]
[settings.raid1]
layers = [{ kind = "raid", level = 1, members = 2, bitmap = "64KiB" }]
[settings.raid5]
layers = [{ kind = "raid", level = 5, members = 3, chunk = "64KiB", stripe_cache = 512, threads = 0 }]
[settings.raid6]
layers = [{ kind = "raid", level = 6, members = 4, bitmap = "1MiB" }]
[settings.raid10]
layers = [{ kind = "raid", level = 10, members = 4 }]
[settings.dm_raid]
layers = [{ kind = "dm_raid", members = 3, chunk = "64KiB" }]
[settings.journal]
layers = [{ kind = "dm_raid", level = 4, members = 3, journal = "writethrough", journal_size = "8MiB" }]
[settings.journal_back]
layers = [{ kind = "dm_raid", members = 3, journal = "writeback", stripe_cache = 1024 }]
[settings.bcache]
layers = [{ kind = "bcache" }]
[settings.bcache_back]
layers = [{ kind = "bcache", mode = "writeback", sequential_cutoff = "0" }, { kind = "linear" }]
[settings.thin]
layers = [{ kind = "thin" }]
[settings.writecache]
layers = [{ kind = "writecache" }]
[settings.cache]
layers = [{ kind = "cache", mode = "writeback" }]
[settings.integrity]
layers = [{ kind = "integrity", block = 4096 }]
[settings.deep]
layers = [{ kind = "crypt" }, { kind = "raid", level = 5, members = 3 }, { kind = "striped" }, { kind = "crypt" }]
""",
        read_percent=50,
    )
    kept = {"bcache", "bcache_back", "thin", "writecache", "cache", "integrity"}
    mapped = {"dm_raid", "journal", "journal_back"}
    assert set(found) == {"raid0", "raid1", "raid5", "raid6", "raid10", *mapped, *kept, "deep"}
    for phase in found.values():
        (job,) = phase["groups"][0]["jobs"]
        assert job["read"]["count"] + job["write"]["count"] == 300
        assert job["mismatches_count"] == 0
    assert (
        kernel_instructions(found["raid5"]) > kernel_instructions(found["raid1"]) > kernel_instructions(found["raid0"])
    )


@pytest.mark.long
def test_a_trace_shows_that_a_delay_is_the_layers_own_time(
    iolab: CommandLine, tmp_path: Path, kernel_name: str
) -> None:
    """dm-delay holds a bio for 10 ms, and up to two ticks of 4 ms; null_blk is done at once."""
    experiment = f"""
machine = "guest:{kernel_name}"
[target]
kind = "scratch"
size = "32MiB"
filesystem = "none"
layers = [{{ kind = "delay", delay = "10ms" }}]
[guest]
memory = "512MiB"
[workloads.job]
operations = 50
block_size = "4KiB"
file_size = "4MiB"
"""
    iolab.write("trace.txt", traced(experiment, tmp_path))
    figures = iolab("trace", "trace.txt", "--json").json()
    (layer,) = [device["layer"] for device in figures["devices"] if device["layer"]]
    assert (layer["own_ns"]["count"], layer["below_ns"]["count"], layer["unknown"]) == (50, 50, 0)
    assert 10e6 <= layer["own_ns"]["min"] <= layer["own_ns"]["max"] <= 18.5e6
    assert layer["below_ns"]["max"] < 1e6
    assert "itself" in iolab("trace", "trace.txt").text


@pytest.mark.long
@pytest.mark.parametrize(("journal", "of_a_write"), [("writethrough", "JMMT"), ("writeback", "JT")])
def test_a_write_reaches_the_journal_before_the_members(
    tmp_path: Path, kernel_name: str, journal: str, of_a_write: str
) -> None:
    """J: the journal has written. M: a write goes to a member. T: the write of the array itself, dm-1, is done."""
    layer = f'{{ kind = "dm_raid", members = 3, chunk = "64KiB", journal = "{journal}" }}'
    event = re.compile(r"block_(rq_issue|rq_complete|bio_complete): \d+,(\d+) W")
    steps = []
    for name, minor in event.findall(trace_of_writes(layer, kernel_name, tmp_path)):
        if name == "bio_complete":
            steps += "T" if minor == "1" else ""
        elif minor == "3" and name == "rq_complete":
            steps.append("J")
        elif minor != "3" and name == "rq_issue":
            steps.append("M")
    assert "".join(steps) == of_a_write * WRITES


@pytest.mark.long
@pytest.mark.parametrize(
    ("mode", "to_backing", "to_cache"),
    [("writethrough", WRITES, WRITES), ("writeback", 0, WRITES), ("writearound", WRITES, 0)],
)
def test_a_write_goes_where_the_mode_of_bcache_says(
    tmp_path: Path, kernel_name: str, mode: str, to_backing: int, to_cache: int
) -> None:
    """The job's own writes of the first device are synchronous (WS), unlike what bcache writes back later."""
    text = trace_of_writes(f'{{ kind = "bcache", mode = "{mode}" }}', kernel_name, tmp_path)
    assert len(re.findall(r"block_rq_issue: \d+,0 WS 4096 ", text)) == to_backing
    assert len(re.findall(r"block_rq_issue: \d+,1 W 4096 ", text)) == to_cache
