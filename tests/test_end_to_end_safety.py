"""Rule 7 by the real command line: what is in use, or holds data, is not written to."""

import resource
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.devices import MIB, attach, command, detach, have_device_mapper, mounted, partitioned, sparse_file
from support.experiments import DEFAULT_WORKLOAD, experiment

pytestmark = pytest.mark.root
READ_ONLY = "ro"
"""A filesystem mounted for writing changes its own superblock now and then."""
WRITES = DEFAULT_WORKLOAD + "read_percent = 50\n"


def refused(iolab: CommandLine, device: Path, *words: str, destroy: bool = False) -> None:
    """A writing experiment on the device is refused, and not a byte of the device changes."""
    before = command("sha256sum", device)
    refused_only(iolab, device, *words, destroy=destroy)
    assert command("sha256sum", device) == before


def refused_only(iolab: CommandLine, device: Path, *words: str, destroy: bool) -> None:
    target = f'kind = "device"\npath = "{device}"\ndestroy = {str(destroy).lower()}'
    iolab.write("danger.toml", experiment(target, workload=WRITES, rounds=1))
    iolab("run", "danger.toml", status=None).assert_one_clear_line(2, str(device), *words)


def test_data_without_a_signature_needs_the_flag(iolab: CommandLine, loop_device: Path) -> None:
    """As a database leaves it on a bare device; one place is enough. What a run wrote is data to the next."""
    with loop_device.open("r+b") as device:
        device.seek(32 * MIB + 100)
        device.write(b"row")
    refused(iolab, loop_device, "carries data", f"byte {32 * MIB + 100} is not zero", "destroy = true")
    accepted(iolab, loop_device, destroy=True)
    refused(iolab, loop_device, "carries data", "an earlier run")


def test_a_fio_job_file_overwrites_no_data(iolab: CommandLine, loop_device: Path) -> None:
    with loop_device.open("r+b") as device:
        device.write(b"row")
    before = command("sha256sum", loop_device)
    iolab.write("job.fio", f"[w]\nfilename={loop_device}\nrw=randwrite\nsize=1m\nruntime=1\n")
    iolab("run", "job.fio", status=None).assert_one_clear_line(2, str(loop_device), "carries data", "destroy")
    assert command("sha256sum", loop_device) == before


@pytest.mark.parametrize("fill", ["sequential twice", "random until steady"])
def test_filling_a_device_that_is_only_read_afterwards_overwrites_no_data(
    iolab: CommandLine, loop_device: Path, fill: str
) -> None:
    with loop_device.open("r+b") as device:
        device.write(b"row")
    before = command("sha256sum", loop_device)
    filled = DEFAULT_WORKLOAD + f'fill = "{fill}"\nsteady = {{ window = "50ms" }}\n'
    target = f'kind = "device"\npath = "{loop_device}"\n'
    iolab.write("fill.toml", experiment(target, workload=filled, rounds=1))
    iolab("run", "fill.toml", status=None).assert_one_clear_line(2, str(loop_device), "carries data", "destroy = true")
    assert command("sha256sum", loop_device) == before
    iolab.write("fill.toml", experiment(target + "destroy = true", workload=filled, rounds=1))
    iolab("run", "fill.toml")
    assert command("sha256sum", loop_device) != before


@pytest.mark.parametrize("at_end", [False, True])
def test_a_guid_partition_table_without_its_protecting_mbr_is_data(
    iolab: CommandLine, loop_device: Path, at_end: bool
) -> None:
    with loop_device.open("r+b") as device:
        device.seek(64 * MIB - 512 if at_end else 512)
        device.write(b"EFI PART")
    refused(iolab, loop_device, "a GUID partition table", "destroy")


@pytest.mark.parametrize(("tool", "first_bytes"), [("ext4", 4 * MIB), ("xfs", 4 * MIB)])
def test_a_backup_superblock_is_data(
    iolab: CommandLine, tmp_path: Path, stack: ExitStack, tool: str, first_bytes: int
) -> None:
    """What is left when the beginning and the end of a filesystem are zeroed."""
    device = attach(sparse_file(tmp_path / "image", 400 * MIB))
    stack.callback(detach, device)
    command(f"mkfs.{tool}", "-q", device)
    command("blkdiscard", "-z", "-l", str(first_bytes), device)
    assert "carries data" in _refusal(iolab, device)


def _refusal(iolab: CommandLine, device: Path) -> str:
    iolab.write("danger.toml", experiment(f'kind = "device"\npath = "{device}"', workload=WRITES, rounds=1))
    outcome = iolab("run", "danger.toml", status=2)
    return outcome.stderr


@pytest.mark.parametrize(
    "target",
    [
        'kind = "file"\npath = "/dev/iolab-test"',
        'kind = "file"\npath = "/dev/shm/../iolab-test"',
        'kind = "file"\npath = "/proc/sys/vm/drop_caches"',
        'kind = "directory"\npath = "/sys/fs/cgroup"',
        'kind = "directory"\npath = "/dev"',
        'kind = "directory"\npath = "/sys/kernel"',
        'kind = "scratch"\nbacking = "/sys/kernel/debug"',
    ],
)
def test_no_file_is_made_where_there_are_none(iolab: CommandLine, target: str) -> None:
    iolab.write("danger.toml", experiment(target, workload=WRITES, rounds=1))
    iolab("run", "danger.toml", status=None).assert_one_clear_line(2, "which is not for files")
    assert not list(Path("/dev").glob("iolab*"))


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


def first_page(device: Path) -> bytes:
    with device.open("rb") as file:
        return file.read(resource.getpagesize())


def test_swap_space_in_use_is_refused_even_with_the_flag(
    iolab: CommandLine, loop_device: Path, stack: ExitStack
) -> None:
    command("mkswap", loop_device)
    command("swapon", loop_device)
    stack.callback(command, "swapoff", loop_device)
    header = first_page(loop_device)
    refused_only(iolab, loop_device, "swap", destroy=True)
    # The kernel may put pages there meanwhile.
    assert first_page(loop_device) == header
    assert f"{loop_device} " in Path("/proc/swaps").read_text()


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


@pytest.mark.parametrize("options", ["-l logdev={}", "-r rtdev={}", "-L {}", "{}"])
def test_mkfs_options_that_name_a_device_are_refused(iolab: CommandLine, loop_device: Path, options: str) -> None:
    """mkfs is told not to ask, so it would overwrite what they name."""
    command("mkfs.ext4", "-q", loop_device)
    before = command("sha256sum", loop_device)
    target = f'kind = "scratch"\nsize = "384MiB"\nfilesystem = "xfs"\nmkfs_options = "{options.format(loop_device)}"'
    iolab.write("danger.toml", experiment(target, rounds=1))
    iolab("run", "danger.toml", status=None).assert_one_clear_line(2, "danger.toml:", "target.mkfs_options")
    assert command("sha256sum", loop_device) == before


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
