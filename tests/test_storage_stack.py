"""What swap would lie on: the way down to the storage is followed to its end, and memory and networks are refused.

Swapping to memory stops the kernel for good. So nothing here makes a swap area: what finds the way down is tested by
itself, and the command line has no mkswap to get past a refusal with, and sorts so little that nothing would swap.
"""

import os
import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.machines.system import storage_stack, swap
from iolab.machines.system.block import BlockDevice
from support.command_line import CommandLine
from support.devices import MIB, attach, command, detach, have_device_mapper, mounted, sparse_file

SMALL_SORT = """\
rounds = 1
seed = 1
[target]
{target}
[workloads.sorter]
kind = "qsbench"
processes = 1
share = 5
memory_limit = "64MiB"
swap_size = "1MiB"
[settings.only]
"""


@pytest.fixture
def tmpfs(tmp_path: Path, stack: ExitStack) -> Path:
    directory = tmp_path / "in-memory"
    directory.mkdir()
    command("mount", "-t", "tmpfs", "-o", "size=128m", "none", directory)
    stack.callback(command, "umount", directory)
    return directory


def loop_on(file: Path, stack: ExitStack) -> Path:
    device = attach(file)
    stack.callback(detach, device)
    return device


def way(path: Path) -> list[str]:
    return [layer.name for layer in storage_stack.layers(path)]


@pytest.mark.root
def test_a_loop_device_on_a_disk_s_filesystem_may_be_swapped_to(loop_device: Path) -> None:
    found = way(loop_device)
    assert found[0] == str(loop_device)
    assert found[1].endswith("loop.img")
    assert found[-1].startswith("/dev/")
    storage_stack.check_swap(loop_device)


@pytest.mark.root
def test_the_way_ends_in_memory_below_several_loop_devices(tmp_path: Path, tmpfs: Path, stack: ExitStack) -> None:
    lower = loop_on(sparse_file(tmpfs / "lower.img", 32 * MIB), stack)
    command("mkfs.ext4", "-q", lower)
    directory = stack.enter_context(mounted(lower, tmp_path / "mount"))
    upper = loop_on(sparse_file(directory / "upper.img", 8 * MIB), stack)
    top = loop_on(upper, stack)
    expected = [str(top), str(upper), f"{directory}/upper.img", f"ext4 at {directory}", str(lower)]
    assert way(top) == [*expected, f"{tmpfs}/lower.img", f"tmpfs at {tmpfs}"]
    for refuse in (storage_stack.check_swap, swap.make, swap.on):
        with pytest.raises(InputError, match=r"wait for itself .* tmpfs at .* is memory; choose storage") as refused:
            refuse(top)
        assert refused.value.where == str(top)
    assert "swap" not in command("blkid", "--probe", "--output", "value", upper, ok=(0, 2))


@pytest.mark.root
def test_a_file_that_was_deleted_or_has_no_name_is_still_found_in_memory(tmpfs: Path, stack: ExitStack) -> None:
    deleted = loop_on(sparse_file(tmpfs / "image", MIB), stack)
    (tmpfs / "image").unlink()
    nameless = os.memfd_create("image")
    stack.callback(os.close, nameless)
    os.ftruncate(nameless, MIB)
    for device in (deleted, loop_on(Path(f"/proc/{os.getpid()}/fd/{nameless}"), stack)):
        with pytest.raises(InputError, match="memory"):
            storage_stack.check_swap(device)


@pytest.mark.root
@pytest.mark.parametrize("kind", ["ramfs", "overlay"])
def test_other_filesystems_in_memory_are_seen(kind: str, tmp_path: Path, tmpfs: Path, stack: ExitStack) -> None:
    directory = tmp_path / "mount"
    for path in (directory, tmpfs / "lower", tmpfs / "upper", tmpfs / "work"):
        path.mkdir()
    options = f"lowerdir={tmpfs}/lower,upperdir={tmpfs}/upper,workdir={tmpfs}/work" if kind == "overlay" else "rw"
    command("mount", "-t", kind, "-o", options, "none", directory)
    stack.callback(command, "umount", directory)
    device = loop_on(sparse_file(directory / "image", MIB), stack)
    with pytest.raises(InputError, match=f"{kind} at {directory}.* is memory"):
        storage_stack.check_swap(device)


@pytest.mark.root
def test_device_mapper_is_followed_down(tmpfs: Path, stack: ExitStack) -> None:
    if not have_device_mapper():
        pytest.skip("this kernel has no device mapper")
    lower = loop_on(sparse_file(tmpfs / "image", 8 * MIB), stack)
    command("dmsetup", "create", "iolab-backing", "--table", f"0 16384 linear {lower} 0")
    stack.callback(command, "dmsetup", "remove", "iolab-backing")
    with pytest.raises(InputError, match=f"on {lower} on .*tmpfs"):
        storage_stack.check_swap(Path("/dev/mapper/iolab-backing"))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("zram0", "memory"),
        ("ram3", "memory"),
        ("nbd0", "network"),
        ("nbd0p1", "network"),
        ("rbd12", "network"),
        ("etherd!e0.1", "network"),
        ("ublkb0", "process"),
        ("sda", None),
        ("nvme0n1p2", None),
        ("vda", None),
        ("md127", None),
    ],
)
def test_devices_are_known_by_their_names(name: str, why: str | None, tmp_path: Path) -> None:
    directory = tmp_path / name
    directory.mkdir()
    (directory / "dev").write_text("250:9\n")
    (layer,) = storage_stack._Descent().device(BlockDevice((250, 9), directory))
    assert (layer.unfit is None) if why is None else (why in str(layer.unfit))


@pytest.mark.parametrize(("transport", "unfit"), [("pcie", False), ("tcp", True), ("rdma", True)])
def test_nvme_is_a_network_or_not(transport: str, unfit: bool, tmp_path: Path) -> None:
    directory = tmp_path / "nvme0" / "nvme0n1"
    directory.mkdir(parents=True)
    (directory.parent / "transport").write_text(f"{transport}\n")
    (layer,) = storage_stack._Descent().device(BlockDevice((250, 9), directory))
    assert (layer.unfit is not None) == unfit


@pytest.mark.root
@pytest.mark.parametrize("kind", ["scratch", "device"])
def test_a_run_refuses_before_anything_is_made(kind: str, iolab: CommandLine, tmpfs: Path, stack: ExitStack) -> None:
    target = f'kind = "scratch"\nsize = "16MiB"\nbacking = "{tmpfs}"'
    if kind == "device":
        device = loop_on(sparse_file(tmpfs / "image", 8 * MIB), stack)
        target = f'kind = "device"\npath = "{device}"'
    iolab.write("experiment.toml", SMALL_SORT.format(target=target))
    no_mkswap = replace(iolab, prefix=("env", f"PATH={_tools_that_fail(iolab.cwd)}:{os.environ['PATH']}"))
    outcome = no_mkswap("run", "experiment.toml", "--out", "run", status=None)
    outcome.assert_one_clear_line(2, "wait for itself", "tmpfs", "memory", "backing")
    assert not (iolab.cwd / "mkswap-was-called").exists()


def _tools_that_fail(directory: Path) -> Path:
    """Should the refusal itself fail, then nothing makes a swap area all the same."""
    tools = directory / "tools"
    tools.mkdir()
    for name in ("mkswap", "swapon"):
        (tools / name).write_text(f"#!/bin/sh\ntouch {directory}/mkswap-was-called\nexit 1\n")
        (tools / name).chmod(0o755)
    assert shutil.which("mkswap", path=f"{tools}:{os.environ['PATH']}") == str(tools / "mkswap")
    return tools
