"""Controls in a run: in force while it measures, put back after it, and after it was killed."""

import os
import signal
from pathlib import Path

import pytest
from iolab.base import cpu_list
from iolab.files.store import read
from iolab.machines.system import interrupt
from support.command_line import CommandLine, wait_until
from support.experiments import SCRATCH, experiment, reads_for
from support.runs import statuses

VM = Path("/proc/sys/vm")
WATCHED = [
    *(VM / name for name in ("dirty_ratio", "dirty_bytes", "dirty_background_ratio", "dirty_background_bytes")),
    *(VM / name for name in ("dirty_expire_centisecs", "dirty_writeback_centisecs")),
]
EXPIRE = 4
MACHINE_WIDE = """
[settings.plain]
[settings.changed]
dirty_bytes = "64MiB"
dirty_background_ratio = 3
dirty_expire = "2s"
workqueue_cpus = [0]
io_priority = "be/7"
nice = 5
"""
IN_MEMORY = f'{SCRATCH}\nbacking = "/dev/shm"'.replace('"ext4"', '"none"')

pytestmark = [pytest.mark.root, pytest.mark.machine]


def in_force() -> list[str]:
    return [path.read_text() for path in (*WATCHED, interrupt.workqueue_mask())]


def test_what_a_setting_changes_on_the_machine_is_recorded_and_put_back(iolab: CommandLine) -> None:
    before = in_force()
    iolab.write("experiment.toml", experiment(SCRATCH, settings=MACHINE_WIDE, rounds=1))
    iolab("run", "experiment.toml", "--out", "run")
    assert in_force() == before
    run = read(iolab.cwd / "run")
    (trial,) = run.trials.filter(setting="changed")["trial"]
    applied = {name: change["applied"] for name, change in run.record(trial).controls_applied.items()}
    assert applied["dirty_bytes"] == str(64 << 20)
    assert applied["dirty_background_ratio"] == "3"
    assert (applied["dirty_expire"], applied["workqueue_cpus"]) == ("2s", "0")
    assert (applied["io_priority"], applied["nice"]) == ("be/7", 5)
    assert not [note for note in run.record(trial).notes if "not restored" in note]
    queue = run.record(trial).observed["device"]
    assert set(cpu_list.parse(queue["queue_cpus"]["0"]) or []) >= os.sched_getaffinity(0)


@pytest.mark.parametrize("told", [True, False], ids=["restore", "next run"])
def test_what_a_killed_run_changed_on_the_machine_is_put_back(iolab: CommandLine, told: bool) -> None:
    before = in_force()
    text = experiment(SCRATCH, workload=reads_for("20s"), settings=MACHINE_WIDE.replace("[settings.plain]\n", ""))
    iolab.write("experiment.toml", text)
    with iolab.start("run", "experiment.toml", "--out", "run") as process:
        wait_until(lambda: in_force()[EXPIRE] != before[EXPIRE], "what the setting changes last")
        os.killpg(process.pid, signal.SIGKILL)
    if told:
        assert "dirty_expire_centisecs back" in iolab("restore").stdout
    else:
        iolab.write("next.toml", experiment(SCRATCH, rounds=1))
        iolab("run", "next.toml", "--out", "next")
    assert in_force() == before


def test_a_mistake_names_its_line(iolab: CommandLine) -> None:
    settings = '[settings.wrong]\ndirty_ratio = 5\ndirty_bytes = "64MiB"\nio_priority = "high"\n'
    text = experiment(SCRATCH, settings=settings)
    iolab.write("experiment.toml", text)
    done = iolab("run", "experiment.toml", "--out", "run", status=2)
    first = text.splitlines().index("dirty_ratio = 5") + 1
    assert f"experiment.toml:{first}: settings.wrong.dirty_ratio: dirty_bytes given too" in done.stderr
    assert f"experiment.toml:{first + 2}: settings.wrong.io_priority" in done.stderr
    assert not (iolab.cwd / "run").exists()


def test_a_setting_that_this_machine_lacks_ends_the_run(iolab: CommandLine) -> None:
    before = in_force()
    iolab.write("experiment.toml", experiment(SCRATCH, settings="[settings.own]\nirq_cpus = [0]\n"))
    done = iolab("run", "experiment.toml", "--out", "run", status=3)
    assert "has no interrupts of its own" in done.stderr
    assert not (iolab.cwd / "run").exists()
    assert in_force() == before


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_cells_are_run_where_they_say_and_the_others_are_left_out(iolab: CommandLine) -> None:
    before = in_force()
    settings = '[settings.cell]\naffinity = { application = "X", queue = ["A", "I"], completion = ["A", "I"] }\n'
    iolab.write("experiment.toml", experiment(IN_MEMORY, settings=settings, rounds=1))
    iolab("run", "experiment.toml", "--out", "run")
    assert in_force() == before
    run = read(iolab.cwd / "run")
    assert sorted(set(run.trials.filter(status="impossible")["setting"])) == ["cell[Q=I,C=A]"]
    assert set(statuses(iolab.cwd / "run")) == {"ok", "impossible"}
    found = {record.spec.setting: record for record in map(run.record, run.trials.filter(status="ok")["trial"])}
    for setting, rq_affinity in (("cell[Q=A,C=A]", "2"), ("cell[Q=A,C=I]", "0"), ("cell[Q=I,C=I]", "0")):
        applied = found[setting].controls_applied["affinity"]["applied"]
        assert applied["rq_affinity"] == rq_affinity
        assert applied["application"] != applied["interrupt"]
        assert (applied["queue"] == applied["application"]) == ("Q=A" in setting)
    shown = iolab("show", "run", "--as", "affinity").stdout
    assert "X I A: impossible here: completion on CPU" in shown


def test_of_nothing_possible_the_run_says_so(iolab: CommandLine) -> None:
    settings = '[settings.cell]\naffinity = { application = "X", queue = "A", completion = "X" }\n'
    iolab.write("experiment.toml", experiment(IN_MEMORY, settings=settings, rounds=1))
    done = iolab("run", "experiment.toml", "--out", "run", status=3)
    assert "none of the trials can be run here" in done.stderr
