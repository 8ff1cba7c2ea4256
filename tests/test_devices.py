"""Targets of several devices: where files go, that controls reach every queue, and that nothing is left."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from iolab.base.errors import InputError
from iolab.domain.record import Record
from iolab.domain.trial import DeviceTarget, LoadPhase, Trial
from iolab.files.experiment import loads
from iolab.machines.host import host
from iolab.machines.host.site import place_of
from iolab.machines.system import lock
from iolab.machines.system.safety import signatures
from iolab.studies.run import plan
from support.devices import MIB, attach, detach, queue_attribute, sparse_file

SCRATCH = "[target]\nkind = 'scratch'\nsize = '64MiB'\ndevices = 3\nfilesystem = '{filesystem}'\n"


def trial(target: str, workload: str, setting: str = "") -> Trial:
    return plan.trials(loads(f"{target}[workloads.w]\n{workload}\n[settings.s]\n{setting}", "x.toml"), 1, seed=1)[0]


def run(trial: Trial) -> Record:
    return host.execute(trial, on_progress=lambda _: None, should_stop=lambda: False)


def places(trial: Trial) -> dict[str, int]:
    """Device of each file of the measured phase."""
    phase = trial.phases[-1]
    assert isinstance(phase, LoadPhase)
    return {file["path"]: place_of(file) for file in phase.load["files"]}


@pytest.fixture
def two_devices(tmp_path: Path) -> Iterator[list[Path]]:
    found = [attach(sparse_file(tmp_path / f"image.{number}", 64 * MIB)) for number in range(2)]
    yield found
    for device in found:
        detach(device)


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        ("operations = 1\njobs = 4", {"job.0": 0, "job.1": 1, "job.2": 2, "job.3": 0}),
        ("operations = 1\njobs = 2\nfiles_per_job = 2", {"job.0": 0, "job.1": 0, "job.2": 1, "job.3": 1}),
        ("operations = 1\nfiles_per_job = 3", {"job.0": 0, "job.1": 1, "job.2": 2}),
        ("operations = 1\njobs = 3\ndevices = [2, 0]", {"job.0": 2, "job.1": 0, "job.2": 2}),
        ("kind = 'mix'\njobs.a.operations = 1\njobs.b.operations = 1", {"a.0": 0, "b.0": 1}),
        ("kind = 'tiobench'\nthreads = 4\nfile_size = '1MiB'", {f"thread.{n}": n % 3 for n in range(4)}),
    ],
)
def test_jobs_take_devices_in_turn(workload: str, expected: dict[str, int]) -> None:
    assert places(trial("[target]\nkind = 'scratch'\ndevices = 3\n", workload)) == expected


@pytest.mark.parametrize("devices", ["[]", "[-1]"])
def test_devices_are_numbers_from_0(devices: str) -> None:
    with pytest.raises(InputError, match=r"x.toml:3: workloads.w.devices: expected a list of device numbers"):
        loads(f"[workloads.w]\noperations = 1\ndevices = {devices}", "x.toml")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("path = '/dev/a'\npaths = ['/dev/b']", "keep one of the two"),
        ("paths = []", "several in paths"),
        ("paths = ['/dev/a', '/dev/a']", "the same device twice"),
    ],
)
def test_a_device_target_names_each_device_once(target: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        loads(f"[target]\nkind = 'device'\n{target}\n[workloads.w]\noperations = 1", "x.toml")


def test_a_trial_of_one_device_and_one_kind_still_reads() -> None:
    """As written before there were several of either."""
    now = trial("[target]\nkind = 'device'\npath = '/dev/sdx'\n", "operations = 1").model_dump(mode="json")
    before = {
        **now,
        "target": {"kind": "device", "path": "/dev/sdx", "destroy": False},
        "phases": [{key: value for key, value in phase.items() if key != "kind"} for phase in now["phases"]],
    }
    assert Trial.model_validate_json(json.dumps(before)) == Trial.model_validate(now)


@pytest.mark.root
@pytest.mark.parametrize("filesystem", ["ext4", "none"])
def test_every_device_gets_its_files_and_its_queue_settings(filesystem: str, state_dir: Path, leftovers: None) -> None:
    """Two files in one place would show as wrong data."""
    spec = trial(
        SCRATCH.format(filesystem=filesystem),
        "jobs = 4\nfile_size = '4MiB'\noperations = 300\nread_percent = 50\nverify = true",
        "nr_requests = 32\n[settings.s.scheduler]\nname = 'bfq'",
    )
    record = run(spec)
    assert record.status == "ok", record.faults
    seen: list[dict[str, Any]] = [record.observed, *record.observed["further"]]
    assert len({one["device"]["name"] for one in seen}) == 3
    assert {one["device"]["scheduler"].partition("[")[2].partition("]")[0] for one in seen} == {"bfq"}
    assert {one["device"]["queue"]["nr_requests"] for one in seen} == {"32"}
    assert record.controls_applied["nr_requests"]["applied"] == "32"


@pytest.mark.root
def test_a_device_that_is_not_there_is_named(state_dir: Path, leftovers: None) -> None:
    with pytest.raises(InputError, match="uses device 3, the target has 3"):
        run(trial(SCRATCH.format(filesystem="ext4"), "operations = 1\nfile_size = '1MiB'\ndevices = [3]"))


@pytest.mark.root
def test_named_devices_are_all_claimed_and_locked(two_devices: list[Path], state_dir: Path) -> None:
    target = f"[target]\nkind = 'device'\npaths = {[str(path) for path in two_devices]}\n"
    before = [queue_attribute(path, "nomerges") for path in two_devices]
    spec = trial(target, "jobs = 2\nfile_size = '4MiB'\noperations = 300\nread_percent = 0", "nomerges = 2")
    assert run(spec).status == "ok"
    assert [queue_attribute(path, "nomerges") for path in two_devices] == before
    second = DeviceTarget(paths=[str(two_devices[1])], destroy=False)
    with lock.of_target(second), pytest.raises(Exception, match=str(two_devices[1])):
        run(spec)
    assert [signatures(path) for path in two_devices] == [[], []]
