"""Runs on the devices that a host has: NVMe with several queues, md, device mapper, null_blk, SCSI, a zoned one."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from iolab.domain.phase_record import probes_of
from iolab.domain.probe.nvme import UNIT_BYTES
from iolab.files import store
from support.command_line import CommandLine, wait_until
from support.devices import command, mounted
from support.experiments import experiment
from support.host import blank, drive
from support.leftovers import kill_processes
from support.runs import events, faults, notes, statuses

VERIFIED = """
[workloads.writes]
pattern = "random"
read_percent = 50
verify = true
queue_depth = 4
file_size = "8MiB"
duration = "150ms"
"""
LIMITED = '[settings.free]\n[settings.limited]\nio_max = { read_iops = 20, write_iops = 20 }\ncpu_quota = "90%"\n'
TUNED = '[settings.as-it-is]\n[settings.tuned]\nscheduler = "mq-deadline"\nread_ahead_kb = 64\nnr_requests = 16\n'


@pytest.fixture
def null_block() -> Iterator[Path]:
    """In memory, four queues."""
    command("modprobe", "null_blk", "nr_devices=1", "memory_backed=1", "gb=1", "submit_queues=4")
    command("udevadm", "settle")
    yield Path("/dev/nullb0")
    command("modprobe", "-r", "null_blk")


@pytest.fixture
def scsi() -> Path:
    return blank(drive("scsi-a"))


def queue_settings(device: Path) -> dict[str, str]:
    """What the queue's directory shows. A device that is stacked on others has files that nobody can read."""
    found = {}
    for path in sorted((Path("/sys/block") / device.resolve().name / "queue").rglob("*")):
        with suppress(OSError):
            found[str(path)] = path.read_text()
    return found


@contextmanager
def unchanged(device: Path) -> Iterator[None]:
    before = queue_settings(device)
    yield
    assert queue_settings(device) == before


def run(iolab: CommandLine, device: Path, settings: str, workload: str = VERIFIED, *more: str) -> None:
    target = f'kind = "device"\npath = "{device}"'
    iolab.write("e.toml", experiment(target, workload=workload, settings=settings, rounds=1))
    iolab("run", "e.toml", "--out", "run", *more)
    assert set(statuses(iolab.cwd / "run")) == {"ok"}, faults(iolab.cwd / "run")
    print(*notes(iolab.cwd / "run"), sep="\n")


@pytest.mark.parametrize("name", ["nvme", "array", "linear", "encrypted", "null_block", "scsi"])
def test_a_load_is_verified_and_limited(iolab: CommandLine, name: str, request: pytest.FixtureRequest) -> None:
    device = request.getfixturevalue(name)
    with unchanged(device):
        run(iolab, device, LIMITED)
    values = iolab("show", "run", "--metric", "iops", "--json").json()["values"]
    (limited,) = (value["median"] for value in values if value["setting"] == "limited")
    assert 0 < limited < 60


def test_a_drive_counts_what_the_host_writes(iolab: CommandLine, nvme: Path) -> None:
    """QEMU's have no page of what was programmed."""
    workload = '[workloads.w]\nread_percent = 0\nblock_size = "64KiB"\nfile_size = "64MiB"\namount = "64MiB"\n'
    run(iolab, nvme, "[settings.as-it-is]\n", workload, "--probe", "nvme")
    (phase,) = (phase for phase in store.read(iolab.cwd / "run").record(0).phases if probes_of(phase))
    ((_, counted),) = probes_of(phase)["nvme"]["drives"].items()
    assert abs(counted["host_bytes_written"] - 64 * 2**20) <= UNIT_BYTES
    assert "media_bytes_written" not in counted
    assert -10 < counted["celsius"] < 100


def test_commands_with_a_hint_take_a_drive_with_placement_handles(iolab: CommandLine, nvme: Path) -> None:
    workload = VERIFIED + 'engine = "io_uring_cmd"\nwrite_hint = "short"\n'
    iolab.write("e.toml", experiment(f'kind = "device"\npath = "{nvme}"', workload=workload, rounds=1))
    iolab("run", "e.toml", "--out", "run", status=None).assert_one_clear_line(2, "no placement handles")


@pytest.mark.parametrize("name", ["nvme", "null_block", "scsi"])
def test_a_queue_is_tuned_and_put_back(iolab: CommandLine, name: str, request: pytest.FixtureRequest) -> None:
    device = request.getfixturevalue(name)
    with unchanged(device):
        run(iolab, device, TUNED)


@pytest.mark.parametrize("name", ["array", "linear"])
def test_a_queue_without_schedulers_is_refused(iolab: CommandLine, name: str, request: pytest.FixtureRequest) -> None:
    device = request.getfixturevalue(name)
    target = f'kind = "device"\npath = "{device}"'
    iolab.write("e.toml", experiment(target, settings=TUNED, rounds=1))
    with unchanged(device):
        iolab("run", "e.toml", "--out", "run", status=None).assert_one_clear_line(3, "scheduler")


@pytest.mark.parametrize("name", ["nvme", "array", "encrypted"])
def test_after_a_kill_restore_puts_everything_back(
    iolab: CommandLine, name: str, request: pytest.FixtureRequest
) -> None:
    device = request.getfixturevalue(name)
    settings = "[settings.a]\nread_ahead_kb = 64\ncpu_quota = 1\nio_max = { read_iops = 50 }\n"
    target = f'kind = "device"\npath = "{device}"'
    iolab.write("e.toml", experiment(target, workload=VERIFIED.replace("150ms", "3600s"), settings=settings, rounds=1))
    with unchanged(device):
        ahead = Path("/sys/block") / device.resolve().name / "queue" / "read_ahead_kb"
        with iolab.start("run", "e.toml", "--out", "run") as process:
            wait_until(lambda: ahead.read_text() == "64\n" or process.poll() is not None, "the setting")
            assert process.poll() is None, process.communicate()
            os.killpg(process.pid, signal.SIGKILL)
            kill_processes(iolab.state_dir)
            process.ended()
        assert ahead.read_text() == "64\n"
        iolab("restore")


def test_a_filesystem_on_an_encrypted_disk_is_a_directory_target(
    iolab: CommandLine, encrypted: Path, tmp_path: Path
) -> None:
    command("mkfs.ext4", "-q", encrypted)
    with unchanged(encrypted), mounted(encrypted, tmp_path / "mounted") as place:
        iolab.write("e.toml", experiment(f'kind = "directory"\npath = "{place}"', settings=LIMITED, rounds=1))
        iolab("run", "e.toml", "--out", "run")
    assert set(statuses(iolab.cwd / "run")) == {"ok"}, faults(iolab.cwd / "run")


def test_a_zoned_device_takes_no_random_writes(iolab: CommandLine) -> None:
    device = drive("zoned")
    target = f'kind = "device"\npath = "{device}"'
    iolab.write("e.toml", experiment(target, workload=VERIFIED, rounds=1))
    iolab("run", "e.toml", "--out", "run", status=None).assert_one_clear_line(2, str(device), "zone")
    assert not events(iolab.cwd / "run", "trial_finished")
