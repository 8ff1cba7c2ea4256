"""Devices and command lines for the tests of a host."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.devices import command
from support.host import HOW, USER, blank, drive

CGROUPS = Path("/sys/fs/cgroup")
CONTROLLERS_OF_CRUN = {"hugetlb", "misc", "rdma"}
"""Which systemd does not manage."""


class Failures:
    """Shows each failure when it happens: the machine may end before its tests do."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._reporter.write_line(f"\n{report.longreprtext}")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if reporter := config.pluginmanager.get_plugin("terminalreporter"):
        config.pluginmanager.register(Failures(reporter))
    # The kernel loads it when it is first asked for, and shows it at every queue from then on.
    command("modprobe", "bfq")
    # crun enables them for a container, and leaves them to nobody.
    for controller in CONTROLLERS_OF_CRUN & set((CGROUPS / "cgroup.controllers").read_text().split()):
        (CGROUPS / "cgroup.subtree_control").write_text(f"+{controller}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker("machine")


@pytest.fixture
def nvme() -> Path:
    """Four queues, nothing on it."""
    return blank(drive("four-queues"))


@pytest.fixture
def other_nvme() -> Path:
    """One queue, nothing on it."""
    return blank(drive("one-queue"))


@pytest.fixture
def array(tmp_path: Path) -> Iterator[Path]:
    """RAID 1 over both SCSI disks."""
    disks = [blank(drive(name)) for name in ("scsi-a", "scsi-b")]
    node = Path("/dev/md/tests")
    common = ("--level=1", "--raid-devices=2", "--metadata=1.2", "--assume-clean", "--run", "--size=131072")
    command("mdadm", "--create", node, *common, *disks)
    command("udevadm", "settle")
    yield node.resolve()
    command("mdadm", "--stop", node.resolve())
    for disk in disks:
        command("mdadm", "--zero-superblock", disk)


@pytest.fixture
def linear(other_nvme: Path) -> Iterator[Path]:
    """256 MiB of a drive, through device mapper."""
    command("dmsetup", "create", "tests-linear", "--table", f"0 524288 linear {other_nvme} 2048")
    command("udevadm", "settle")
    yield Path("/dev/mapper/tests-linear")
    command("dmsetup", "remove", "--retry", "tests-linear")


@pytest.fixture
def encrypted(other_nvme: Path) -> Iterator[Path]:
    """256 MiB of a drive, through dm-crypt."""
    key = ("--type=plain", "--key-file=/dev/zero", "--size=524288", "--cipher=aes-xts-plain64", "--key-size=256")
    command("cryptsetup", "open", *key, other_nvme, "tests-crypt")
    command("udevadm", "settle")
    # What an empty drive decrypts to is no zeros.
    command("dd", "if=/dev/zero", "of=/dev/mapper/tests-crypt", "bs=1M", "count=256", "conv=fsync")
    yield Path("/dev/mapper/tests-crypt")
    command("cryptsetup", "close", "tests-crypt")


@pytest.fixture(params=HOW)
def iolab_by(request: pytest.FixtureRequest, iolab: CommandLine, tmp_path: Path) -> CommandLine:
    """The command line as root and as a user, each in a session of this machine's and in a scope of systemd's."""
    if request.param.startswith("user"):
        subprocess.run(["chown", "-R", USER, tmp_path], check=True)
        tmp_path.chmod(0o755)
    return replace(iolab, prefix=HOW[request.param])
