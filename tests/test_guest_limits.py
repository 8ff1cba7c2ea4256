"""The control `io_max` of a guest machine: its steps, and what a limit that is not reached costs an I/O."""

from typing import Any

import pytest
from iolab.base.errors import InputError
from iolab.files.experiment import loads
from iolab.files.store import read
from iolab.machines.guest import plan, steps
from iolab.machines.guest.modules import Modules
from iolab.studies.run.plan import Plan
from support.command_line import CommandLine
from support.guests import kernel_or_skip

EXPERIMENT = """
machine = "guest:6.1.0-56-cloud"
rounds = 2
target = { kind = "scratch", size = "32MiB", filesystem = "none" }
[workloads.reads]
operations = 2000
engine = "psync"
file_size = "16MiB"
layout = false
[settings.none]
[settings.limited]
io_max = { read = "100GiB/s", read_iops = 1000000 }
"""


def made(setting: str, text: str = EXPERIMENT) -> steps.Plan:
    trials = Plan(loads(text, "e.toml"), 1).round(0)
    return plan.make(next(trial for trial in trials if trial.setting == setting), Modules(None))


def steps_of(setting: str, text: str = EXPERIMENT) -> list[dict[str, Any]]:
    return [dict(step) for step in made(setting, text).steps]


def test_a_limited_load_is_in_the_group_during_measured_phases_only() -> None:
    whole = made("limited", EXPERIMENT.replace("layout = false\n", ""))
    (limit,) = (step for step in whole.steps if step["do"] == "copy")
    assert limit["source"] == "/sys/block/nullb0/dev"
    assert limit["words"] == "rbps=107374182400 riops=1000000"
    moves = [step["path"] for step in whole.steps if str(step.get("path")).endswith("cgroup.procs")]
    measured = [phase.measured for phase in whole.phases.values()]
    assert [path == "/limits/iolab/cgroup.procs" for path in moves] == measured == [False, True]


def test_without_the_control_there_is_no_group() -> None:
    assert not any("cgroup" in str(step) or step["do"] == "copy" for step in steps_of("none"))


def test_each_drive_of_the_target_is_limited() -> None:
    text = EXPERIMENT.replace('size = "32MiB"', 'size = "32MiB", devices = 2')
    limits = [step["source"] for step in steps_of("limited", text) if step["do"] == "copy"]
    assert limits == ["/sys/block/nullb0/dev", "/sys/block/nullb1/dev"]


def test_groups_of_a_mix_have_their_own_limits() -> None:
    groups = EXPERIMENT.replace('engine = "psync"\n', 'kind = "iostest"\n').replace("operations = 2000\n", "")
    with pytest.raises(InputError):
        steps_of("limited", groups)


@pytest.mark.long
def test_a_limit_that_is_not_reached_costs_instructions(iolab: CommandLine) -> None:
    kernel = kernel_or_skip()
    iolab.write("e.toml", EXPERIMENT.replace("6.1.0-56-cloud", kernel))
    iolab("run", "e.toml", "--out", "run")
    metrics = read(iolab.cwd / "run").metrics
    found = metrics.filter(metrics["key"] == "kernel_instructions_per_op").select("setting", "value")
    cost = dict(found.iter_rows())
    assert cost["none"] < cost["limited"] < 1.5 * cost["none"]
