"""Probes in whole runs: what a killed one traced is gone, and a run that goes on keeps its probes."""

import subprocess
from pathlib import Path

import pytest
from iolab.domain.phase_record import probes_absent_of, probes_of
from iolab.files import store
from iolab.machines.system import tracefs
from support.command_line import CommandLine, wait_until
from support.experiments import SCRATCH, experiment, reads_for
from support.leftovers import kill_processes, trace_instances
from support.runs import statuses

TRACED = "[probes]\nblock = true\nswitches = true\n"
DIRECTORY = 'kind = "directory"\npath = "."'
SETTINGS = "[settings.a]\n"


def start(iolab: CommandLine, duration: str = "5s") -> subprocess.Popen[str]:
    iolab.write("traced.toml", experiment(SCRATCH, workload=reads_for(duration), settings=TRACED + SETTINGS, rounds=1))
    return iolab.start("run", "traced.toml", "--out", "run")


@pytest.fixture
def traced(iolab: CommandLine, state_dir: Path) -> set[Path]:
    """What a run was tracing with when it was killed."""
    if tracefs.root() is None:
        pytest.skip("tracefs is not mounted")
    with start(iolab) as process:
        # Each of the two probes that trace has one of its own.
        wait_until(lambda: len(trace_instances(state_dir)) == 2 or process.poll() is not None, "the probes to run")
        kill_processes(state_dir)
    found = trace_instances(state_dir)
    assert len(found) == 2
    return found


@pytest.mark.root
@pytest.mark.machine
def test_restore_removes_what_a_killed_run_traced_with(iolab: CommandLine, traced: set[Path]) -> None:
    told = iolab("restore").stdout
    for instance in traced:
        assert not instance.exists()
        assert f"removed the tracing instance {instance}" in told


@pytest.mark.root
@pytest.mark.machine
def test_the_next_run_removes_what_a_killed_one_traced_with(iolab: CommandLine, traced: set[Path]) -> None:
    iolab("run", "--resume", "run")
    assert not [instance for instance in traced if instance.exists()]
    assert statuses(iolab.cwd / "run") == ["ok"]


def test_probes_of_the_command_line_are_kept_by_a_run_that_goes_on(iolab: CommandLine) -> None:
    iolab.write("plain.toml", experiment(DIRECTORY, rounds=1))
    iolab("run", "plain.toml", "--probe", "nfs", "--probe", "nfs", "--probe", "memory", "--out", "run")
    iolab("run", "--resume", "run", "--rounds", "2")
    read = store.read(iolab.cwd / "run")
    assert len(read.trials) == 4
    assert set(read.series()["probe"]) == {"memory"}
    for number in range(4):
        seen = read.record(number)
        assert set(seen.spec.probes) == {"nfs", "memory"}
        (phase,) = seen.phases
        assert {*probes_of(phase), *probes_absent_of(phase)} == {"nfs", "memory"}
    iolab("run", "--resume", "run", "--probe", "cpu", status=2).assert_one_clear_line(2, "--probe")
    iolab("run", "plain.toml", "--probe", "mem", "--out", "other", status=2).assert_one_clear_line(2, "memory")


def test_a_probe_that_cannot_run_is_told_of_and_the_trial_is_well(iolab: CommandLine) -> None:
    iolab.write("plain.toml", experiment(DIRECTORY, settings="[settings.a]\n", rounds=1))
    ran = iolab("run", "plain.toml", "--probe", "nfs", "--out", "run")
    read = store.read(iolab.cwd / "run")
    (phase,) = read.record(0).phases
    if "nfs" in probes_of(phase):
        pytest.skip("NFS is mounted here")
    assert statuses(iolab.cwd / "run") == ["ok"]
    assert "probe nfs: no NFS is mounted" in ran.text
    assert "probe nfs: no NFS is mounted" in " ".join(read.remarks()["text"])
    shown = iolab("show", "run", "--metric", "rpc_rtt_ns_mean", "--json").text
    assert "no NFS is mounted" in shown
