"""Settings that run a command beside the load, and that limit the load: through the command line, and after kill -9."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from iolab.base.errors import InputError
from iolab.domain import control
from iolab.files.store import read
from support.command_line import CommandLine, wait_until
from support.experiments import SCRATCH, experiment
from support.leftovers import look

READS = """
[workloads.reads]
pattern = "random"
engine = "psync"
file_size = "4MiB"
operations = 60
"""
FOREVER = READS.replace("operations = 60", 'duration = "600s"')


@pytest.mark.parametrize(
    ("name", "value", "normalized"),
    [
        ("io_max", {"read": "1MiB/s", "write_iops": 500}, {"read": 1 << 20, "write_iops": 500}),
        ("io_max", {"read": 4096}, {"read": 4096}),
        ("cpu_quota", 0.5, 0.5),
        ("cpu_quota", 2, 2.0),
        ("cpu_quota", "50%", 0.5),
        ("background", "  sleep 1 ", "sleep 1"),
    ],
)
def test_values_are_normalized_once(name: str, value: Any, normalized: Any) -> None:
    assert control.validate(name, value) == normalized
    assert control.validate(name, normalized) == normalized


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("io_max", {"raed": 1}, "did you mean read?"),
        ("io_max", {}, "expected a table of read"),
        ("io_max", "1MiB/s", "expected a table of read"),
        ("io_max", {"read": "fast"}, r"io_max\.read: .*fast"),
        ("io_max", {"read": 0}, "expected a rate"),
        ("io_max", {"read_iops": 1.5}, "expected a whole number of operations"),
        ("io_max", {"read_iops": True}, "expected a whole number of operations"),
        ("cpu_quota", 0, "from 0.01"),
        ("cpu_quota", True, "from 0.01"),
        ("cpu_quota", "half", "from 0.01"),
        ("background", "", "a shell command on one line"),
        ("background", "a\nb", "a shell command on one line"),
    ],
)
def test_other_values_are_refused(name: str, value: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        control.validate(name, value)


def test_a_simulated_machine_has_no_such_settings(iolab: CommandLine) -> None:
    text = (
        'machine = "model:one_disk"\n[workloads.w]\nfile_size = "1MiB"\noperations = 1\n[settings.a]\ncpu_quota = 1\n'
    )
    iolab.write("e.toml", text)
    iolab("run", "e.toml", status=2).assert_one_clear_line(2, "e.toml:6", "cpu_quota")


def test_a_resumed_run_says_what_it_starts(tmp_path: Path) -> None:
    from iolab.files.experiment import loads
    from iolab.studies.run.origin import deeds

    text = experiment('kind = "directory"', settings='[settings.a]\nbackground = "rm -rf x"\n')
    assert 'run sh -c "rm -rf x" beside the load (setting a)' in deeds(loads(text, "e.toml"))


def with_settings(inside: str, workload: str = READS) -> str:
    return experiment(SCRATCH, workload=workload, settings=f"[settings.limited]\n{inside}\n", rounds=1)


def running(marker: str) -> list[int]:
    """The processes that have the text in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in words:
                found.append(int(entry.name))
    return found


def groups() -> list[Path]:
    """Those of limits, other tests' too. Not by glob, which fails when a group goes while it looks."""
    return [Path(path) for path, _, _ in os.walk("/sys/fs/cgroup") if Path(path).name.startswith("iolab-limit-")]


def groups_that_a_run_leaves(iolab: CommandLine) -> list[Path]:
    ours: list[Path] = []

    def is_limited() -> bool:
        ours[:] = groups_of(iolab)
        return bool(ours)

    with iolab.start("run", "e.toml", "--out", "run") as process:
        wait_until(is_limited, "the limited load")
        process.ended()
    assert process.returncode == 0
    return [path for path in ours if path.exists()]


@pytest.mark.root
@pytest.mark.machine
def test_a_command_runs_beside_the_load_and_ends_with_the_trial(iolab: CommandLine) -> None:
    seen, marker = iolab.cwd / "seen", f"beside-{os.getpid()}"
    command = f"echo $TARGET $DEVICE $PWD > {seen}; : {marker}; sleep 1000 & while :; do sleep 1000; done"
    iolab.write("e.toml", with_settings(f'background = "{command}"'))
    iolab("run", "e.toml", "--out", "run")
    target, device, directory = seen.read_text().split()
    assert device.startswith("/dev/loop") and directory == target
    assert running(marker) == []
    assert "background" not in str(read(iolab.cwd / "run").remarks())


@pytest.mark.root
@pytest.mark.machine
def test_a_command_that_ended_too_early_is_noted(iolab: CommandLine) -> None:
    text = with_settings('background = "echo no such luck; exit 3"', READS.replace("60", "2000"))
    iolab.write("e.toml", text)
    iolab("run", "e.toml", "--out", "run")
    said = str(read(iolab.cwd / "run").remarks().to_dicts())
    assert "ended with exit status 3 before the trial was over: no such luck" in said


@pytest.mark.root
@pytest.mark.machine
def test_operations_are_limited(iolab: CommandLine) -> None:
    iolab.write("e.toml", with_settings("io_max = { read_iops = 20 }"))
    assert groups_that_a_run_leaves(iolab) == []
    values = iolab("show", "run", "--metric", "iops", "--json").json()["values"]
    assert 0 < values[0]["median"] < 40


@pytest.mark.root
@pytest.mark.machine
def test_cpu_time_is_limited(iolab: CommandLine) -> None:
    workload = '[workloads.w]\nengine = "null"\nfile_size = "4MiB"\nduration = "1s"\nqueue_depth = 8\n'
    iolab.write("e.toml", with_settings('cpu_quota = "10%"\nio_max = { read_iops = 1000000 }', workload))
    assert groups_that_a_run_leaves(iolab) == []
    rows = read(iolab.cwd / "run").metrics
    used = sum(rows.filter(key=key)["value"][0] for key in ("cpu_user_s", "cpu_system_s"))
    elapsed = rows.filter(key="elapsed_s")["value"][0]
    assert used < 0.25 * elapsed


@pytest.mark.root
@pytest.mark.machine
def test_a_kill_leaves_neither_command_nor_group(iolab: CommandLine) -> None:
    seen, marker = iolab.cwd / "seen", f"killed-{os.getpid()}"
    command = f": {marker}; while :; do date > {seen}; sleep 0.1; done"
    inside = f'background = "{command}"\ncpu_quota = 1\nio_max = {{ read_iops = 50 }}'
    iolab.write("e.toml", with_settings(inside, FOREVER))
    with iolab.start("run", "e.toml", "--out", "run") as process:
        wait_until(lambda: seen.exists() and bool(groups_of(iolab)), "the limited load")
        ours = groups_of(iolab)
        os.kill(process.pid, signal.SIGKILL)
        for pid in {pid for path in ours for pid in members(path)}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.ended()
    wait_until(lambda: not running(marker), "the command's end")
    iolab("restore")
    assert [path for path in ours if path.exists()] == []
    assert running(marker) == []


def groups_of(iolab: CommandLine) -> list[Path]:
    """Those with processes of this test's."""
    ours = {int(line.split()[0]) for line in look(iolab.cwd, iolab.state_dir).processes}
    return [path for path in groups() if ours & set(members(path))]


def members(group: Path) -> list[int]:
    return [int(pid) for pid in _read(group / "cgroup.procs").split()]


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
