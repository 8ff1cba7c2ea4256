"""What nr_requests hides: a driver's tags, which a change of scheduler leaves as they were."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from iolab.machines.host import doctor, host
from iolab.machines.host.control import apply
from iolab.machines.host.control.applier import Context
from iolab.machines.system import driver_tags, scratch
from iolab.machines.system.block import BlockDevice, device_at, shown
from iolab.machines.system.undo import UndoJournal
from support.trials import io_trial

pytestmark = pytest.mark.root
FEW = 8


@pytest.fixture
def disk(loop_device: Path, state_dir: Path) -> Iterator[BlockDevice]:
    """A disk without a scheduler that has few tags and shows all."""
    found = device_at(loop_device)
    queue = found.queue
    (queue / "scheduler").write_text("none")
    driver_tags.fill(found)
    tags = driver_tags.of(found)
    if tags is None:
        pytest.skip("the kernel shows no driver's tags: it has no debugfs, or is locked down")
    driver_tags.write(queue / "nr_requests", str(FEW))
    switch(found, "mq-deadline")
    switch(found, "none")
    assert shown(queue / "nr_requests") == str(tags.made) and used(found) == FEW
    try:
        yield found
    finally:
        switch(found, "none")
        driver_tags.fill(found)


def switch(disk: BlockDevice, scheduler: str) -> None:
    (disk.queue / "scheduler").write_text(scheduler)


def used(disk: BlockDevice) -> int:
    tags = driver_tags.of(disk)
    assert tags is not None
    return tags.used


@pytest.mark.parametrize("scheduler", ["none", "mq-deadline"])
def test_the_doctor_finds_them_and_its_remedy_gives_them_back(disk: BlockDevice, scheduler: str) -> None:
    switch(disk, scheduler)
    (found,) = [one for one in doctor.findings() if one.what == "driver's tags" and one.detail.startswith(disk.name)]
    assert f"holds {FEW} requests at most" in found.detail and found.remedy is not None
    subprocess.run(["sh", "-c", found.remedy.removeprefix("as root: ")], check=True)
    assert driver_tags.shortage(disk) is None and shown(disk.queue / "scheduler") == scheduler


def test_a_trial_notes_them(disk: BlockDevice) -> None:
    trial = io_trial({"kind": "device", "path": f"/dev/{disk.name}", "destroy": False})
    record = host.execute(trial, on_progress=lambda _: None, should_stop=lambda: False)
    assert any(note.startswith(f"{disk.name}: the driver holds {FEW} requests") for note in record.notes)


def test_a_number_that_is_shown_already_takes_effect(disk: BlockDevice) -> None:
    depth = int(shown(disk.queue / "nr_requests"))
    with UndoJournal.open() as undo:
        apply({"nr_requests": depth}, Context("test device", disk, undo))
        assert used(disk) == depth


def test_a_number_that_is_set_without_a_scheduler_is_no_shortage(disk: BlockDevice) -> None:
    driver_tags.write(disk.queue / "nr_requests", str(FEW))
    assert driver_tags.shortage(disk) is None
    switch(disk, "kyber")
    assert driver_tags.shortage(disk) is not None


def test_a_scratch_device_has_all_its_tags(disk: BlockDevice) -> None:
    with UndoJournal.open() as undo:
        scratch._reset_queue(disk, undo)
    assert driver_tags.shortage(disk) is None
