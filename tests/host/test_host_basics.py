"""What a user tries first."""

from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.devices import queue_attribute
from support.experiments import DEFAULT_WORKLOAD, TWO_SCHEDULERS, experiment
from support.runs import faults, statuses

FOR_ROOT = {"switches", "profile", "counters", "nvme"}


def test_the_doctor_finds_what_there_is(iolab_by: CommandLine) -> None:
    found = {(line["area"], line["what"]): line for line in iolab_by("doctor", "--json").json()["findings"]}
    print(*found.values(), sep="\n")
    states = {key: line["state"] for key, line in found.items()}
    assert states["engine", "io_uring"] == "ok"
    is_root = states["privileges", "root"] == "ok"
    assert states["controls", "I/O cgroups"] == states["controls", "memory cgroups"] == ("ok" if is_root else "limited")
    assert "version 2" in found["controls", "I/O cgroups"]["detail"]
    missing = {what for (_, what), state in states.items() if state == "missing"}
    assert missing == ({"nfs"} if is_root else {"nfs"} | FOR_ROOT)


@pytest.mark.parametrize("iolab_by", ["root", "user in a scope"], indirect=True)
def test_the_demo_runs(iolab_by: CommandLine) -> None:
    told = iolab_by("demo", "--quick", "--out", "run")
    assert "Traceback" not in told.text
    assert set(statuses(iolab_by.cwd / "run")) == {"ok"}, faults(iolab_by.cwd / "run")


def test_a_run_on_nvme_switches_the_scheduler_and_puts_it_back(iolab: CommandLine, nvme: Path) -> None:
    before = queue_attribute(nvme, "scheduler")
    target = f'kind = "device"\npath = "{nvme}"'
    iolab.write("experiment.toml", experiment(target, workload=DEFAULT_WORKLOAD, settings=TWO_SCHEDULERS))
    iolab("run", "experiment.toml", "--out", "run")
    assert set(statuses(iolab.cwd / "run")) == {"ok"}, faults(iolab.cwd / "run")
    assert queue_attribute(nvme, "scheduler") == before
