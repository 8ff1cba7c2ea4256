"""iozone, aio-stream, tiobench and mixes on real devices: what they do, and that a kill half-way leaves nothing."""

import os
import signal
import time

import pytest
from iolab.files import store
from support.command_line import CommandLine, wait_until
from support.runs import events, faults, statuses, times_finished

TARGET = '[target]\nkind = "scratch"\nsize = "128MiB"\nfilesystem = "{filesystem}"\ndevices = {devices}\n'
IOZONE = """
[workloads.iozone]
kind = "iozone"
file_size = "{size}"
record_size = "64KiB"
threads = [1, 3]
direct = true
fsync = true
"""
STREAMS = """
[workloads.large]
kind = "aio-stream"
file_size = "{size}"
duration = "{duration}"
[workloads.cached]
kind = "aio-stream"
window = "2MiB"
duration = "{duration}"
engine = "libaio"
[workloads.written]
kind = "aio-stream"
operation = "write"
file_size = "{size}"
duration = "{duration}"
"""
TIOBENCH = """
[workloads.tiobench]
kind = "tiobench"
threads = {threads}
file_size = "{size}"
random_ops = 5
"""
MIX = """
[workloads.mixed]
kind = "mix"
duration = "{duration}"
[workloads.mixed.jobs.readers]
jobs = 2
queue_depth = 4
file_size = "{size}"
direct = false
[workloads.mixed.jobs.writer]
pattern = "sequential"
read_percent = 0
block_size = "64KiB"
file_size = "{size}"
engine = "psync"
fsync_every = 64
"""
ARGUMENTS = ("workload", "filesystem", "devices")
CASES = {
    "iozone": (IOZONE, "ext4", 2),
    "aio-stream": (STREAMS, "none", 2),
    "tiobench": (TIOBENCH, "xfs", 1),
    "mix": (MIX, "ext4", 2),
}
KILLED_SOON = {"mix"}
"""Those whose kill is not left to the long tests."""


def experiment(workload: str, filesystem: str, devices: int, *, size: str, duration: str, threads: int) -> str:
    target = TARGET.format(filesystem=filesystem, devices=devices)
    if filesystem == "xfs":
        target = target.replace("128MiB", "512MiB")
    body = workload.format(size=size, duration=duration, threads=threads)
    return f"rounds = 1\nseed = 1\n{target}{body}[settings.one]\n[settings.two]\nnomerges = 2\n"


@pytest.mark.root
@pytest.mark.parametrize(ARGUMENTS, CASES.values(), ids=CASES)
def test_it_runs_and_shows_its_tables(iolab: CommandLine, workload: str, filesystem: str, devices: int) -> None:
    iolab.write(
        "experiment.toml", experiment(workload, filesystem, devices, size="4MiB", duration="200ms", threads=256)
    )
    iolab("run", "experiment.toml", "--out", "run")
    run = iolab.cwd / "run"
    assert set(statuses(run)) == {"ok"}, faults(run)
    assert "Hmean" in iolab("show", "run", "--as", "mmtests").stdout
    found = store.read(run)
    if workload is IOZONE:
        shown = iolab("show", "run", "--as", "iozone").stdout
        assert "Children see throughput for  3 stride readers" in shown
        parent = found.values("write/rate_bytes_per_s", "iozone[threads=3]")["one"]
        children = found.values("write/rate_sum_bytes_per_s", "iozone[threads=3]")["one"]
        assert (children >= parent * 0.999).all()
    if workload is STREAMS:
        jobs = found.job_metrics(workload="large", setting="one")
        assert set(jobs["job"]) == {"device.0", "device.1"}
        assert found.values("latency_ns_stddev_job_mean", "large")["one"].null_count() == 0
    if workload is TIOBENCH:
        shown = iolab("show", "run", "--as", "tiobench").stdout
        assert shown.count("one          256") == 4
        calls = found.values("random_read/read.ops", "tiobench")["one"].to_list()
        assert calls == [256 * 5]


@pytest.mark.root
@pytest.mark.parametrize(
    ARGUMENTS,
    [
        pytest.param(*case, id=name, marks=[] if name in KILLED_SOON else [pytest.mark.long])
        for name, case in CASES.items()
    ],
)
def test_a_killed_run_leaves_nothing_and_resumes(
    iolab: CommandLine, workload: str, filesystem: str, devices: int
) -> None:
    iolab.write("experiment.toml", experiment(workload, filesystem, devices, size="8MiB", duration="500ms", threads=16))
    run = iolab.cwd / "run"
    with iolab.start("run", "experiment.toml", "--out", "run") as process:
        wait_until(lambda: len(events(run, "trial_started")) >= 2, "the second trial")
        time.sleep(0.4)
        os.killpg(process.pid, signal.SIGKILL)
    iolab("run", "--resume", "run")
    assert set(times_finished(run).values()) == {1}
    assert set(statuses(run)) == {"ok"}, faults(run)
