"""A trial on this machine: what it does to targets, what its record says, and that nothing is left behind."""

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from iolab.base.errors import InputError, MachineError
from iolab.domain.executor import Progress
from iolab.domain.record import Record
from iolab.domain.trial import Trial
from iolab.machines.host import host, load, outcome
from iolab.machines.host.host import sync_filesystem
from iolab.machines.host.local_process import LocalProcess
from iolab.machines.system import lock, loop
from iolab.machines.system.action import Unmount
from iolab.machines.system.undo import restore_abandoned
from support import workers
from support.devices import MIB, attach, command, detach, queue_attribute, sparse_file
from support.trials import io_trial, scratch_target


def run(trial: Trial, seen: list[Progress] | None = None) -> Record:
    collect = (lambda progress: None) if seen is None else seen.append
    return host.execute(trial, on_progress=collect, should_stop=lambda: False)


def directory(path: Path) -> dict[str, Any]:
    return {"kind": "directory", "path": str(path)}


def file(path: Path) -> dict[str, Any]:
    return {"kind": "file", "path": str(path)}


def device(path: Path, *, destroy: bool = False) -> dict[str, Any]:
    return {"kind": "device", "path": str(path), "destroy": destroy}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def ops(record: Record) -> int:
    jobs = [job for phase in record.phases for group in phase["groups"] for job in group["jobs"]]
    return sum(job["read"]["count"] + job["write"]["count"] for job in jobs)


@pytest.fixture
def place(tmp_path: Path, leftovers: None) -> Iterator[Path]:
    """A directory that is empty again when the test is over."""
    path = tmp_path / "place"
    path.mkdir()
    yield path
    assert list(path.iterdir()) == []


def test_a_directory_gets_a_directory_of_ours_and_loses_it(place: Path) -> None:
    seen: list[Progress] = []
    record = run(io_trial(directory(place), read_share=0.5, duration_ns=400_000_000), seen)
    assert record.status == "ok", record.faults
    assert ops(record) > 0
    assert [phase["phase"] for phase in record.phases] == ["main"]
    assert seen[0].doing == "preparing"
    assert {progress.doing for progress in seen} >= {"preparing", "running", "restoring"}


@pytest.mark.root
def test_a_scratch_trial_applies_its_controls_and_leaves_nothing(state_dir: Path, leftovers: None) -> None:
    controls = {
        "filesystem": "btrfs",
        "mount_options": "noatime",
        "scheduler": {"name": "bfq", "slice_idle": "0"},
        "nr_requests": 64,
        "cpus": [0],
        "drop_caches": True,
    }
    record = run(io_trial(scratch_target(), controls=controls, verify=True))
    assert record.status == "ok", record.faults
    assert record.controls_applied["scheduler"]["applied"]["name"] == "bfq"
    assert record.controls_applied["scheduler"]["applied"]["slice_idle"] == "0"
    assert record.controls_applied["nr_requests"] == {"before": "256", "applied": "64"}
    assert record.observed["filesystem"]["type"] == "btrfs"
    assert "noatime" in record.observed["filesystem"]["options"]
    assert record.observed["device"]["queue"]["nr_requests"] == "64"
    assert record.observed["device"]["scheduler"].count("[bfq]") == 1
    assert list((state_dir / "undo").iterdir()) == []
    assert list((state_dir / "scratch").iterdir()) == []


@pytest.mark.root
@pytest.mark.parametrize("files", [1, 3])
def test_on_a_bare_scratch_device_files_are_regions(files: int, leftovers: None) -> None:
    """Overlapping regions would show as wrong data."""
    record = run(io_trial(scratch_target(filesystem=None), verify=True, files=files, file_bytes=3 * MIB + 4096))
    assert record.status == "ok", record.faults


@pytest.mark.root
@pytest.mark.parametrize(("planned_for", "got"), [("ext4", "none"), (None, "ext4")])
def test_a_setting_may_give_and_take_the_filesystem(planned_for: str | None, got: str, leftovers: None) -> None:
    trial = io_trial(scratch_target(filesystem=planned_for), controls={"filesystem": got}, verify=True)
    if planned_for is None:
        for phase in trial.phases:
            for number, region in enumerate(phase.load["files"]):
                region |= {"path": "", "base_bytes": number * region["size_bytes"], "create": False}
    assert run(trial).status == "ok"


def test_a_new_file_is_made_and_removed(place: Path) -> None:
    path = place / "new"
    record = run(io_trial(file(path), read_share=0.5, verify=True))
    assert record.status == "ok", record.faults
    assert not path.exists()


def test_an_empty_file_is_empty_again(place: Path) -> None:
    path = place / "empty"
    path.touch()
    run(io_trial(file(path), read_share=0.0))
    assert path.read_bytes() == b""
    path.unlink()


def test_a_file_with_data_is_read_and_not_written(tmp_path: Path, leftovers: None) -> None:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(2 * MIB))
    before = digest(path)
    record = run(io_trial(file(path), file_bytes=MIB, direct=False, engine="psync"))
    assert record.status == "ok"
    assert any("nothing is laid out" in note for note in record.notes)
    with pytest.raises(InputError, match="that iolab did not write"):
        run(io_trial(file(path), file_bytes=MIB, read_share=0.9))
    with pytest.raises(InputError, match="cannot verify"):
        run(io_trial(file(path), file_bytes=MIB, verify=True))
    with pytest.raises(InputError, match="need 16 MiB, this has 2 MiB"):
        run(io_trial(file(path)))
    assert digest(path) == before


@pytest.mark.root
def test_a_device_is_written_only_when_it_is_empty_or_given_up(loop_device: Path, state_dir: Path) -> None:
    command("mkfs.ext4", "-q", loop_device)
    before = digest(loop_device)
    assert run(io_trial(device(loop_device))).status == "ok", "reading is always allowed"
    with pytest.raises(InputError, match="ext4 signature"):
        run(io_trial(device(loop_device), read_share=0.5))
    assert digest(loop_device) == before
    assert run(io_trial(device(loop_device, destroy=True), read_share=0.5, verify=True)).status == "ok"
    assert digest(loop_device) != before
    with pytest.raises(InputError, match="need"):
        run(io_trial(device(loop_device, destroy=True), read_share=0.5, file_bytes=64 * MIB))


@pytest.mark.root
def test_controls_on_a_device_are_restored(loop_device: Path, state_dir: Path, leftovers: None) -> None:
    # A loop device keeps what somebody else has set on it.
    before = queue_attribute(loop_device, "nomerges")
    other = "1" if before == "2" else "2"
    record = run(io_trial(device(loop_device), controls={"scheduler": {"name": "kyber"}, "nomerges": int(other)}))
    assert record.controls_applied["nomerges"] == {"before": before, "applied": other}
    assert queue_attribute(loop_device, "scheduler") == "none"
    assert queue_attribute(loop_device, "nomerges") == before


@pytest.mark.root
def test_an_error_in_the_middle_restores_what_was_done(loop_device: Path, leftovers: None) -> None:
    controls = {"scheduler": {"name": "kyber"}, "max_sectors_kb": 1 << 30}
    with pytest.raises(MachineError, match="max_sectors_kb"):
        run(io_trial(device(loop_device), controls=controls))
    assert queue_attribute(loop_device, "scheduler") == "none"


@pytest.mark.root
def test_two_runs_on_one_device_the_second_is_refused(loop_device: Path, state_dir: Path) -> None:
    trial = io_trial(device(loop_device))
    with lock.of_target(trial.target):
        with pytest.raises(MachineError, match=rf"another iolab run is using it \(process {os.getpid()}\)"):
            run(trial)
        with pytest.raises(MachineError, match="another iolab run"), LocalProcess() as executor:
            executor.run(trial, lambda progress: None, lambda: False)
    assert run(trial).status == "ok"


def test_a_path_that_leaves_the_target_is_refused(place: Path) -> None:
    trial = io_trial(directory(place))
    load = trial.phases[1].load
    load["files"][0]["path"] = "../elsewhere"
    with pytest.raises(InputError, match="leaves the target"):
        run(trial)


def test_an_impossible_phase_is_an_input_error(place: Path) -> None:
    trial = io_trial(directory(place))
    trial.phases[1].load["groups"][0]["jobs"][0]["files"] = [7]
    with pytest.raises(InputError):
        run(trial)


@pytest.mark.root
def test_a_layout_that_does_not_fit_fails_the_trial_without_numbers(tmp_path: Path, state_dir: Path) -> None:
    node = attach(sparse_file(tmp_path / "image", 24 * MIB))
    command("mkfs.ext2", "-q", "-b", "1024", "-m", "0", node)
    mount_point = tmp_path / "mnt"
    mount_point.mkdir()
    command("mount", node, mount_point)
    # A file of all that is free does not fit: it needs blocks for its block numbers besides.
    found = os.statvfs(mount_point)
    file_bytes = (found.f_bfree * found.f_frsize - 24 * 1024) // 4096 * 4096
    try:
        record = run(io_trial(directory(mount_point), file_bytes=file_bytes, files=1))
        assert sorted(path.name for path in mount_point.iterdir()) == ["lost+found"]
    finally:
        Unmount(str(mount_point)).undo()  # waits for the ring's files, which the kernel closes a moment later
        detach(node)
    assert record.status == "failed"
    assert record.phases == []
    assert record.faults[0].errno == 28


def test_stopping_yields_an_interrupted_record_soon(place: Path) -> None:
    stop = threading.Event()

    def stop_when_running(progress: Progress) -> None:
        if progress.doing == "running":
            stop.set()

    started = time.monotonic()
    trial = io_trial(directory(place), duration_ns=60_000_000_000)
    record = host.execute(trial, on_progress=stop_when_running, should_stop=stop.is_set)
    assert record.status == "interrupted"
    assert time.monotonic() - started < 30


def in_child(trial: Trial, seen: list[Progress] | None = None) -> Record:
    collect = (lambda progress: None) if seen is None else seen.append
    with LocalProcess() as executor:
        return executor.run(trial, collect, lambda: False)


def test_a_child_process_gives_the_same_record(place: Path) -> None:
    seen: list[Progress] = []
    trial = io_trial(directory(place))
    record = in_child(trial, seen)
    assert record.status == "ok"
    assert record.spec == trial
    assert {progress.doing for progress in seen} >= {"preparing", "running", "restoring"}


def test_a_child_s_error_is_raised_again_here(tmp_path: Path, state_dir: Path) -> None:
    with pytest.raises(InputError) as caught:
        in_child(io_trial(device(tmp_path)))
    assert caught.value.where == str(tmp_path)
    assert "lsblk" in (caught.value.remedy or "")


@pytest.mark.root
@pytest.mark.parametrize("doing", ["preparing", "laying out", "running"])
def test_a_killed_child_is_a_failed_trial_and_everything_is_restored(doing: str, leftovers: None) -> None:
    def kill(progress: Progress) -> None:
        if progress.doing == doing:
            os.kill(workers.of_this_process(), signal.SIGKILL)

    controls = {"scheduler": {"name": "bfq"}}
    trial = io_trial(scratch_target(), controls=controls, duration_ns=10_000_000_000, file_bytes=32 * MIB)
    with LocalProcess() as executor:
        record = executor.run(trial, kill, lambda: False)
    assert record.status == "failed"
    assert "SIGKILL" in record.faults[0].what
    assert restore_abandoned() == []


@pytest.mark.root
def test_a_terminated_child_restores_by_itself(leftovers: None) -> None:
    def terminate(progress: Progress) -> None:
        if progress.doing == "running":
            os.kill(workers.of_this_process(), signal.SIGTERM)

    with LocalProcess() as executor:
        record = executor.run(io_trial(scratch_target(), duration_ns=60_000_000_000), terminate, lambda: False)
    assert record.status == "interrupted"


@pytest.mark.root
def test_when_the_parent_dies_the_child_restores_everything(state_dir: Path, leftovers: None) -> None:
    trial = io_trial(scratch_target(), controls={"scheduler": {"name": "bfq"}}, duration_ns=60_000_000_000)
    arguments = [sys.executable, "-m", "iolab.machines.worker"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(trial.model_dump_json().encode() + b"\n")
        worker.stdin.flush()
        while json.loads(worker.stdout.readline())["progress"]["doing"] != "running":
            pass
        worker.stdout.close()
        worker.stdin.close()
        worker.wait(timeout=30)
    assert list((state_dir / "undo").iterdir()) == []


def test_stopping_the_executor_stops_the_child(place: Path) -> None:
    running = threading.Event()

    def notice(progress: Progress) -> None:
        if progress.doing == "running":
            running.set()

    with LocalProcess() as executor:
        record = executor.run(io_trial(directory(place), duration_ns=60_000_000_000), notice, running.is_set)
    assert record.status == "interrupted"


@pytest.mark.root
def test_a_child_that_hangs_is_killed_and_everything_is_restored(
    leftovers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iolab.machines.worker_process.STOP_PATIENCE_S", 0.5)
    hanging = threading.Event()

    def hang(progress: Progress) -> None:
        if progress.doing == "running" and not hanging.is_set():
            os.kill(workers.of_this_process(), signal.SIGSTOP)
            hanging.set()

    with LocalProcess() as executor:
        record = executor.run(io_trial(scratch_target(), duration_ns=60_000_000_000), hang, hanging.is_set)
    assert record.status == "interrupted"
    assert "did not stop" in record.faults[0].what
    assert any(note.startswith("unmounted") for note in record.notes)


PHASE: dict[str, Any] = {
    "phase": "main",
    "wall_clock_shift_ns": 0,
    "transient": None,
    "build_profile": "release",
    "groups": [{"notes": [], "jobs": [{"name": "job", "errors": [], "mismatches_count": 0, "mismatches": []}]}],
}


def test_a_clean_phase_has_no_faults_and_no_notes() -> None:
    assert outcome.faults(PHASE) == []
    assert outcome.notes(PHASE) == []


def test_faults_name_the_error_and_the_wrong_block() -> None:
    error = {"errno": 5, "name": "EIO", "op": "read", "count": 3, "first_path": "/x", "first_offset": 4096}
    wrong = {"path": "/y", "offset": 8192, "expected": "generation 2", "found": "generation 1"}
    job = {"name": "job", "errors": [error], "mismatches_count": 2, "mismatches": [wrong]}
    first, second = outcome.faults({**PHASE, "groups": [{"notes": [], "jobs": [job]}]})
    assert (first.errno, first.count, first.job) == (5, 3, "job")
    assert "EIO" in first.what
    assert "/x offset 4096" in first.what
    assert second.count == 2
    assert "/y at offset 8192: expected generation 2, found generation 1" in second.what


def test_a_clock_step_a_debug_build_and_a_moving_rate_are_noted() -> None:
    phase = {
        **PHASE,
        "wall_clock_shift_ns": -3_000_000_000,
        "build_profile": "debug",
        "transient": {"cut_ns": 0, "steady": False},
        "groups": [{"notes": ["polling refused"], "jobs": []}, {"notes": ["polling refused"], "jobs": []}],
    }
    notes = "\n".join(outcome.notes(phase))
    assert "jumped by -3.000 s" in notes
    assert "debug build" in notes
    assert "no steady state" in notes
    assert "polling refused (2 groups)" in notes


def test_what_a_probe_lost_is_noted() -> None:
    seen = {"block": {"trace_events_lost": 47, "notes": ["CPU 1 went offline"]}, "switches": {"trace_events_lost": 0}}
    assert outcome.notes({**PHASE, "probes": seen}) == [
        "main: probe block: 47 events found the buffers full: its numbers are incomplete",
        "main: probe block: CPU 1 went offline",
    ]


def test_a_filesystem_that_does_not_take_what_was_laid_out_is_an_error(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    sync_filesystem(fd)
    os.close(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        sync_filesystem(fd)


def test_a_refused_ring_names_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    denied = PermissionError(
        errno.EPERM, 'can\'t set up io_uring for group "main": Operation not permitted', "io_uring"
    )
    for usable, named in ((False, True), (True, False)):
        features = json.dumps({"io_uring": {"usable": usable}})
        monkeypatch.setattr("iolab.machines.host.load._native", SimpleNamespace(features=lambda text=features: text))
        assert ("sysctl kernel.io_uring_disabled=0" in str(load.refused(denied, "phase main").remedy)) == named
        of_a_file = PermissionError(errno.EPERM, "Operation not permitted", "/dev/x")
        assert "sysctl" not in str(load.refused(of_a_file, "phase main").remedy)


def test_a_machine_without_loop_devices_says_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "LOOP_CONTROL", tmp_path / "loop-control")
    with pytest.raises(MachineError) as caught:
        loop.attach(tmp_path / "file", sector_bytes=None)
    assert "modprobe loop" in str(caught.value.remedy) and "--device /dev/loop-control" in str(caught.value.remedy)
