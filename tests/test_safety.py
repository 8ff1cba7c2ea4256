"""What may be written to: rule by rule, on real devices."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.machines.system import block, loop, safety
from support.devices import MIB, attach, command, detach, have_device_mapper, sparse_file, write_partition_table


@contextmanager
def mounted(device: Path, mount_point: Path) -> Iterator[None]:
    mount_point.mkdir(exist_ok=True)
    command("mount", device, mount_point)
    try:
        yield
    finally:
        command("umount", mount_point)


def refusal(device: Path, *, destroy: bool) -> str:
    with pytest.raises(InputError) as caught:
        os.close(safety.claim_device(device, destroy=destroy))
    assert str(device) in str(caught.value)
    return str(caught.value)


def always_refused(device: Path, word: str) -> None:
    assert word in refusal(device, destroy=False)
    assert word in refusal(device, destroy=True)


@pytest.mark.root
def test_an_unused_empty_device_is_claimed_exclusively(loop_device: Path) -> None:
    claim = safety.claim_device(loop_device, destroy=False)
    with pytest.raises(OSError):
        os.close(os.open(loop_device, os.O_RDONLY | os.O_EXCL))
    os.close(claim)
    os.close(os.open(loop_device, os.O_RDONLY | os.O_EXCL))


@pytest.mark.root
@pytest.mark.parametrize("filesystem", ["ext4", "btrfs"])
def test_a_mounted_device_is_refused(tmp_path: Path, stack: ExitStack, filesystem: str) -> None:
    """btrfs shows another device number in the mount table than the device's."""
    device = attach(sparse_file(tmp_path / "image", 256 * MIB))
    stack.callback(detach, device)
    command(f"mkfs.{filesystem}", "-q", device)
    stack.enter_context(mounted(device, tmp_path / "mnt"))
    always_refused(device, f"it is mounted at {tmp_path / 'mnt'}")


@pytest.mark.root
def test_the_second_device_of_a_mounted_btrfs_is_refused(tmp_path: Path, stack: ExitStack) -> None:
    """The mount table does not name it at all."""
    devices = []
    for number in range(2):
        devices.append(attach(sparse_file(tmp_path / f"image{number}", 256 * MIB)))
        stack.callback(detach, devices[-1])
    command("mkfs.btrfs", "-q", *devices)
    stack.enter_context(mounted(devices[0], tmp_path / "mnt"))
    always_refused(devices[1], "exclusively")


@pytest.mark.root
def test_the_disk_of_a_mounted_partition_is_refused(tmp_path: Path, stack: ExitStack) -> None:
    image = sparse_file(tmp_path / "image", 64 * MIB)
    write_partition_table(image, sectors=100_000)
    disk = attach(image)
    stack.callback(detach, disk)
    command("partx", "--add", disk)
    stack.callback(command, "partx", "--delete", disk)
    partition = Path(f"{disk}p1")
    assert f"partition {partition.name}" in refusal(disk, destroy=False)
    os.close(safety.claim_device(disk, destroy=True))
    os.close(safety.claim_device(partition, destroy=False))
    command("mkfs.ext4", "-q", partition)
    assert "ext4 signature" in refusal(partition, destroy=False)
    stack.enter_context(mounted(partition, tmp_path / "mnt"))
    always_refused(disk, f"its partition {partition.name} is mounted")
    always_refused(partition, "it is mounted")


@pytest.mark.root
def test_swap_in_use_is_refused_and_a_swap_signature_needs_the_flag(loop_device: Path, stack: ExitStack) -> None:
    command("mkswap", loop_device)
    assert "swap signature" in refusal(loop_device, destroy=False)
    os.close(safety.claim_device(loop_device, destroy=True))
    command("swapon", loop_device)
    stack.callback(command, "swapoff", loop_device)
    always_refused(loop_device, "it is swap space in use")


@pytest.mark.root
def test_a_device_that_backs_a_loop_device_is_refused(loop_device: Path, tmp_path: Path, stack: ExitStack) -> None:
    """Also when it was attached by another node of the same device."""
    node = tmp_path / "node"
    os.mknod(node, 0o600 | 0o060000, loop_device.stat().st_rdev)
    upper = attach(node)
    stack.callback(detach, upper)
    always_refused(loop_device, f"it backs {upper}")


@pytest.mark.root
def test_a_device_that_somebody_holds_exclusively_is_refused(loop_device: Path, stack: ExitStack) -> None:
    held = os.open(loop_device, os.O_RDONLY | os.O_EXCL)
    stack.callback(os.close, held)
    always_refused(loop_device, "exclusively")


@pytest.mark.root
@pytest.mark.skipif(not have_device_mapper(), reason="this kernel has no device mapper")
def test_a_device_that_device_mapper_holds_is_refused(loop_device: Path, stack: ExitStack) -> None:
    command("dmsetup", "create", "iolab-safety", "--table", f"0 1024 linear {loop_device} 0")
    stack.callback(command, "dmsetup", "remove", "iolab-safety")
    always_refused(loop_device, "held by dm-")


@pytest.mark.root
def test_a_read_only_device_is_refused(tmp_path: Path, stack: ExitStack) -> None:
    device = attach(sparse_file(tmp_path / "image", MIB), "--read-only")
    stack.callback(detach, device)
    always_refused(device, "read-only")


def test_holders_are_read_from_sysfs(tmp_path: Path) -> None:
    """What dm and md show; this checks the reading where the kernel has neither."""
    (tmp_path / "holders" / "dm-3").mkdir(parents=True)
    (tmp_path / "dev").write_text("8:0\n")
    assert block.device_in(tmp_path).holders == ["dm-3"]


def test_a_missing_device_and_a_file_are_not_devices(tmp_path: Path) -> None:
    assert "no such device" in refusal(tmp_path / "missing", destroy=True)
    file = tmp_path / "file"
    file.write_text("")
    assert "expected a block device" in refusal(file, destroy=True)


def test_a_file_with_data_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    safety.check_file_writable(file, file.stat())
    file.write_text("precious")
    with pytest.raises(InputError, match="holds 8 bytes"):
        safety.check_file_writable(file, file.stat())


@pytest.mark.root
def test_a_file_that_backs_a_loop_device_is_not_overwritten(tmp_path: Path, loop_device: Path) -> None:
    link = tmp_path / "hard link"
    os.link(tmp_path / "loop.img", link)
    with pytest.raises(InputError, match=f"it backs {loop_device}"):
        safety.check_file_writable(link, link.stat())


@pytest.mark.root
def test_a_file_is_told_from_the_device_below_it(tmp_path: Path, loop_device: Path) -> None:
    assert [device.node for device in loop.backed_by_file((tmp_path / "loop.img").stat())] == [loop_device]
    assert loop.backed_by_device(block.device_at(loop_device).number) == []
