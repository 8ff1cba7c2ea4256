"""What a user without root has: files and directories, traces refused in one line, and nothing left after a kill."""

import os
import signal
from pathlib import Path

import pytest
from iolab.domain.phase_record import probes_absent_of, probes_of
from iolab.files import store
from support.command_line import CommandLine, wait_until
from support.experiments import DEFAULT_WORKLOAD, experiment
from support.host import drive
from support.leftovers import kill_processes
from support.runs import faults, statuses

pytestmark = pytest.mark.parametrize("iolab_by", ["user", "user in a scope"], indirect=True)
PROBES = ("block", "switches", "cpu", "memory", "extents")


def own_directory(iolab: CommandLine, workload: str = DEFAULT_WORKLOAD) -> Path:
    """A directory of the user's, and an experiment in it."""
    place = iolab.cwd / "data"
    place.mkdir()
    os.chown(place, iolab.cwd.stat().st_uid, iolab.cwd.stat().st_gid)
    target = f'kind = "directory"\npath = "{place}"'
    iolab.write("e.toml", experiment(target, workload=workload, settings="[settings.a]\n", rounds=1))
    return place


def test_a_load_on_a_directory_with_probes(iolab_by: CommandLine) -> None:
    place = own_directory(iolab_by, DEFAULT_WORKLOAD + "read_percent = 50\nverify = true\n")
    iolab_by("run", "e.toml", *(word for probe in PROBES for word in ("--probe", probe)), "--out", "run")
    run = iolab_by.cwd / "run"
    assert statuses(run) == ["ok"], faults(run)
    (phase,) = store.read(run).record(0).phases
    absent = probes_absent_of(phase)
    assert {*probes_of(phase), *absent} >= set(PROBES)
    assert all(absent.values()), absent
    assert not list(place.iterdir())


def test_a_device_of_root_is_refused_in_one_line(iolab_by: CommandLine) -> None:
    device = drive("four-queues")
    for workload in (DEFAULT_WORKLOAD, DEFAULT_WORKLOAD + "read_percent = 0\n"):
        text = experiment(f'kind = "device"\npath = "{device}"', workload=workload, rounds=1)
        iolab_by.write("e.toml", text)
        iolab_by("run", "e.toml", "--out", "run", status=None).assert_one_clear_line(3, str(device), "permission")


def test_a_recording_is_refused_in_one_line(iolab_by: CommandLine) -> None:
    told = iolab_by("record", drive("four-queues"), "-o", "t.dat", "--", "true", status=None)
    told.assert_one_clear_line(3, "root")
    assert not (iolab_by.cwd / "t.dat").exists()


def test_after_a_kill_restore_removes_the_files(iolab_by: CommandLine) -> None:
    place = own_directory(iolab_by, DEFAULT_WORKLOAD.replace("150ms", "3600s"))
    with iolab_by.start("run", "e.toml", "--out", "run") as process:
        wait_until(lambda: bool(list(place.iterdir())) or process.poll() is not None, "files")
        assert process.poll() is None, process.communicate()
        os.killpg(process.pid, signal.SIGKILL)
        kill_processes(iolab_by.state_dir)
        process.ended()
    assert list(place.iterdir())
    iolab_by("restore")
    assert not list(place.iterdir())
