"""Devices that are stacked on others, or have zones, on made-up sysfs trees: this kernel may have none."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from iolab.base.errors import InputError, MachineError
from iolab.machines.host import describe, doctor, site
from iolab.machines.host.control import Context, apply
from iolab.machines.system import block, command, kernel_module, safety
from iolab.machines.system.beneath import Directory
from iolab.machines.system.block import BlockDevice
from iolab.machines.system.undo import UndoJournal

Disk = Callable[..., BlockDevice]


@pytest.fixture
def disk(tmp_path: Path, kernel_tree: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Makes a disk of this name and its queue's files, stacked on those that were made before."""
    sys = tmp_path / "sys"
    monkeypatch.setattr(block, "SYS", sys)

    def make(name: str, *slaves: str, **queue: str) -> BlockDevice:
        directory = sys / "block" / name
        (directory / "slaves").mkdir(parents=True)
        (directory / "queue").mkdir()
        for file, text in {"dev": "253:0", "size": "1", "ro": "0"}.items():
            (directory / file).write_text(f"{text}\n")
        for file, text in {"logical_block_size": "512", "scheduler": "[none]", **queue}.items():
            (directory / "queue" / file).write_text(f"{text}\n")
        for slave in slaves:
            (directory / "slaves" / slave).symlink_to(sys / "block" / slave)
        return block.device_in(directory)

    return make


def test_the_disks_below_are_found_and_described(disk: Disk) -> None:
    disk("sda", scheduler="[mq-deadline] none")
    disk("sdb")
    disk("md0", "sda", "sdb")
    top = disk("dm-1", "md0", "sdb")
    shown = describe.block_device(top)
    assert shown["stacked_on"] == ["md0", "sdb"]
    assert [below["name"] for below in shown["disks_below"]] == ["sda", "sdb"]
    assert shown["disks_below"][0]["scheduler"] == "[mq-deadline] none"
    assert shown["disks_below"][0]["disks_below"] == []


def test_a_scheduler_is_refused_on_a_stacked_device_with_the_disks_to_set(disk: Disk, state_dir: Path) -> None:
    disk("sda")
    disk("sdb")
    top = disk("dm-0", "sda", "sdb")
    with UndoJournal.open() as undo, pytest.raises(MachineError) as caught:
        apply({"scheduler": {"name": "bfq"}}, Context("/dev/mapper/x", top, undo))
    line = str(caught.value)
    assert "the disks below, sda, sdb" in line
    assert f"echo bfq | sudo tee {block.SYS}/block/sda/queue/scheduler {block.SYS}/block/sdb/queue/scheduler" in line
    assert (top.queue / "scheduler").read_text() == "[none]\n"


def test_a_device_whose_zones_are_written_in_sequence_is_refused(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = tmp_path / "node"
    for zoned, refused in (("host-managed", True), ("none", False)):
        device = disk(f"nvme-{zoned}", zoned=zoned)
        assert device.is_written_in_sequence == refused
        monkeypatch.setattr(safety, "device_at", lambda path, device=device: device)
        with pytest.raises(InputError if refused else MachineError, match="host-managed" if refused else "open"):
            safety.claim_device(node, destroy=True)


def test_free_space_is_not_asked_of_a_directory_that_was_replaced(tmp_path: Path) -> None:
    place = tmp_path / "target"
    place.mkdir()
    fd = os.open(place, os.O_RDONLY)
    made = Directory.of(place, fd)
    assert site._free_bytes(made) > 0
    place.rename(tmp_path / "moved")
    with pytest.raises(MachineError, match="cannot open"):
        site._free_bytes(made)
    place.mkdir()
    with pytest.raises(InputError, match="another directory"):
        site._free_bytes(made)
    os.close(fd)


def test_the_doctor_names_io_cost_for_io_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "io.cost.qos").touch()
    monkeypatch.setattr(
        doctor.cgroup, "find", lambda v1, v2: doctor.cgroup.Hierarchy(2, v2, tmp_path, tmp_path), raising=True
    )
    found = {finding.what: finding.detail for finding in doctor._cgroups()}
    assert "io.cost" in found["I/O cgroups"]
    assert "io.cost" not in found["memory cgroups"]


@pytest.mark.parametrize(("status", "state"), [(0, "ok"), (1, "limited")])
def test_a_filesystem_whose_module_is_not_loaded_yet_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, state: str
) -> None:
    modprobe = tmp_path / "modprobe"
    modprobe.write_text(f'#!/bin/sh\n[ "$*" = "--dry-run --quiet fs-xfs" ] || exit 2\nexit {status}\n')
    modprobe.chmod(0o755)
    monkeypatch.setattr(command, "find", lambda tool: str(modprobe))
    monkeypatch.setattr(doctor, "_is_registered", lambda name: name != "xfs")
    xfs = next(finding for finding in doctor._filesystems() if finding.what == "xfs")
    assert xfs.state == state


def test_without_modprobe_no_module_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find", lambda tool: None)
    assert not kernel_module.loads("fs-xfs")


def test_a_device_is_found_where_a_container_hides_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = tmp_path / "class" / "block" / "sda"
    named.mkdir(parents=True)
    (named / "dev").write_text("8:0\n")
    monkeypatch.setattr(block, "SYS", tmp_path)
    found = block.device_numbered(8, 0)
    assert found is not None
    assert (found.number, found.directory) == ((8, 0), named)
    assert block.device_numbered(8, 1) is None
