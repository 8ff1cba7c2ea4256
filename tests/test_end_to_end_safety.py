"""Rule 7 by the real command line: what is in use, or holds data, is not written to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.devices import attach, command, detach, have_device_mapper, mounted, partitioned
from support.experiments import DEFAULT_WORKLOAD, experiment

pytestmark = pytest.mark.root
READ_ONLY = "ro"
"""A filesystem mounted for writing changes its own superblock now and then."""
WRITES = DEFAULT_WORKLOAD + "read_percent = 50\n"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def refused(iolab: CommandLine, device: Path, *words: str, destroy: bool = False) -> None:
    """A writing experiment on the device is refused, and not a byte of the device changes."""
    before = command("sha256sum", device)
    target = f'kind = "device"\npath = "{device}"\ndestroy = {str(destroy).lower()}'
    iolab.write("danger.toml", experiment(target, workload=WRITES, rounds=1))
    iolab("run", "danger.toml", status=None).assert_one_clear_line(2, str(device), *words)
    assert command("sha256sum", device) == before


def accepted(iolab: CommandLine, device: Path, *, destroy: bool) -> None:
    target = f'kind = "device"\npath = "{device}"\ndestroy = {str(destroy).lower()}'
    iolab.write("danger.toml", experiment(target, workload=WRITES, rounds=1))
    iolab("run", "danger.toml", "--out", "accepted")


def test_an_empty_device_is_used(iolab: CommandLine, loop_device: Path) -> None:
    accepted(iolab, loop_device, destroy=False)


def test_a_mounted_device_is_refused_even_with_the_flag(
    iolab: CommandLine, loop_device: Path, tmp_path: Path, stack: ExitStack
) -> None:
    command("mkfs.ext4", "-q", loop_device)
    stack.enter_context(mounted(loop_device, tmp_path / "mnt", READ_ONLY))
    refused(iolab, loop_device, "mounted")
    refused(iolab, loop_device, "mounted", destroy=True)


def test_the_disk_of_a_mounted_partition_is_refused_even_with_the_flag(
    iolab: CommandLine, loop_device: Path, tmp_path: Path, stack: ExitStack
) -> None:
    partition = stack.enter_context(partitioned(loop_device, sectors=100_000))
    command("mkfs.ext4", "-q", partition)
    refused(iolab, loop_device, "partition")
    stack.enter_context(mounted(partition, tmp_path / "mnt", READ_ONLY))
    refused(iolab, loop_device, "mounted", destroy=True)


def test_a_filesystem_that_is_not_mounted_needs_the_flag(iolab: CommandLine, loop_device: Path) -> None:
    command("mkfs.ext4", "-q", loop_device)
    refused(iolab, loop_device, "ext4", "destroy")
    accepted(iolab, loop_device, destroy=True)


def test_a_swap_signature_needs_the_flag(iolab: CommandLine, loop_device: Path) -> None:
    command("mkswap", loop_device)
    refused(iolab, loop_device, "swap", "destroy")


def test_swap_space_in_use_is_refused_even_with_the_flag(
    iolab: CommandLine, loop_device: Path, stack: ExitStack
) -> None:
    command("mkswap", loop_device)
    command("swapon", loop_device)
    stack.callback(command, "swapoff", loop_device)
    refused(iolab, loop_device, "swap", destroy=True)


def test_a_device_under_another_loop_device_is_refused_even_with_the_flag(
    iolab: CommandLine, loop_device: Path, stack: ExitStack
) -> None:
    stack.callback(detach, attach(loop_device))
    refused(iolab, loop_device, "loop", destroy=True)


@pytest.mark.skipif(not have_device_mapper(), reason="this kernel has no device mapper")
def test_a_device_under_device_mapper_is_refused_even_with_the_flag(
    iolab: CommandLine, loop_device: Path, stack: ExitStack
) -> None:
    sectors = command("blockdev", "--getsz", loop_device)
    command("dmsetup", "create", "iolab-test", "--table", f"0 {sectors} linear {loop_device} 0")
    stack.callback(command, "dmsetup", "remove", "iolab-test")
    refused(iolab, loop_device, "held", destroy=True)


def test_a_file_with_data_is_refused(iolab: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"data" * 1000)
    iolab.write("danger.toml", experiment('kind = "file"\npath = "precious"', workload=WRITES, rounds=1))
    iolab("run", "danger.toml", "--out", "run", status=None).assert_one_clear_line(2, "precious")
    assert (tmp_path / "precious").read_bytes() == b"data" * 1000


def test_a_directory_target_leaves_other_files_alone(iolab: CommandLine, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "mine").write_text("untouched")
    iolab.write("writes.toml", experiment('kind = "directory"\npath = "place"', workload=WRITES, rounds=1))
    iolab("run", "writes.toml", "--out", "run")
    assert [(path.name, path.read_text()) for path in place.iterdir()] == [("mine", "untouched")]
