"""What a host's devices are used for is left alone."""

from pathlib import Path

from support.command_line import CommandLine
from support.devices import command, mounted
from support.experiments import experiment
from support.host import blank, drive


def refused(iolab: CommandLine, device: Path, *words: str) -> None:
    """With the permission to destroy, and so for another reason than data."""
    target = f'kind = "device"\npath = "{device}"\ndestroy = true'
    writes = '[workloads.w]\npattern = "random"\nread_percent = 0\nfile_size = "8MiB"\nduration = "100ms"\n'
    iolab.write("e.toml", experiment(target, workload=writes, rounds=1))
    iolab("run", "e.toml", "--out", "run", status=None).assert_one_clear_line(2, str(device), *words)
    assert not (iolab.cwd / "run" / "trials").exists() or not list((iolab.cwd / "run" / "trials").iterdir())


def test_the_disk_of_the_root_filesystem(iolab: CommandLine) -> None:
    refused(iolab, Path(command("findmnt", "--noheadings", "--output", "SOURCE", "/")), "root")


def test_a_mounted_device(iolab: CommandLine, nvme: Path, tmp_path: Path) -> None:
    command("mkfs.ext4", "-q", nvme)
    with mounted(nvme, tmp_path / "mounted"):
        refused(iolab, nvme, "mounted")


def test_a_member_of_an_array(iolab: CommandLine, array: Path) -> None:
    refused(iolab, drive("scsi-a"), array.name)


def test_what_device_mapper_holds(iolab: CommandLine, linear: Path, other_nvme: Path) -> None:
    refused(iolab, other_nvme, linear.resolve().name)


def test_an_array_with_a_mounted_filesystem(iolab: CommandLine, array: Path, tmp_path: Path) -> None:
    command("mkfs.ext4", "-q", array)
    with mounted(array, tmp_path / "mounted"):
        refused(iolab, array, "mounted")
        refused(iolab, drive("scsi-b"), array.name)


def test_a_partition_in_use_and_its_disk(iolab: CommandLine, nvme: Path, tmp_path: Path) -> None:
    command("sh", "-c", f"echo ',64M' | sfdisk --quiet --label gpt {nvme}")
    command("udevadm", "settle")
    partition = Path(f"{nvme}p1")
    command("mkfs.xfs", "-q", "-f", "-m", "crc=1", "-d", "size=64m", partition, ok=(0, 1))
    command("mkfs.ext4", "-q", "-F", partition)
    with mounted(partition, tmp_path / "mounted"):
        refused(iolab, partition, "mounted")
        refused(iolab, nvme, partition.name)
    blank(nvme)
    command("blockdev", "--rereadpt", nvme)


def test_a_physical_volume_that_holds_a_volume(iolab: CommandLine, nvme: Path) -> None:
    command("vgcreate", "--quiet", "tests", nvme)
    command("lvcreate", "--quiet", "--yes", "--size=64M", "--name=one", "tests")
    try:
        refused(iolab, nvme, "held")
    finally:
        command("vgremove", "--quiet", "--force", "--yes", "tests")
        command("pvremove", "--quiet", nvme)


def test_swap_space_in_use(iolab: CommandLine, nvme: Path) -> None:
    command("mkswap", nvme)
    command("swapon", nvme)
    try:
        refused(iolab, nvme, "swap")
    finally:
        command("swapoff", nvme)
