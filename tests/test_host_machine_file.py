"""`iolab machine describe`: what sysfs shows becomes a machine that iolab simulates."""

import tomllib
from pathlib import Path

import pytest
from iolab.base.errors import MachineError
from iolab.files import machine_file as files
from iolab.machines.host import machine_file
from iolab.machines.system import block
from support.command_line import CommandLine

EXPERIMENT = """\
machine = "model:mine.toml"
rounds = 1
[workloads.reads]
operations = 20
file_size = "1MiB"
"""


def drive(sys: Path, name: str, number: str, sectors: int, **queue: str) -> Path:
    found = sys / "block" / name
    (found / "queue").mkdir(parents=True)
    (found / "dev").write_text(f"{number}\n")
    (found / "size").write_text(f"{sectors}\n")
    for key, value in {"scheduler": "[none] mq-deadline", **queue}.items():
        (found / "queue" / key).write_text(f"{value}\n")
    return found


@pytest.fixture
def sys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "sys"
    for module in (block, machine_file):
        monkeypatch.setattr(module, "SYS", found)
    drive(found, "loop0", "7:0", 1 << 21)
    cpus = found / "devices/system/cpu"
    for cpu in ("cpu0", "cpu1", "cpu2"):
        (cpus / cpu).mkdir(parents=True)
    (cpus / "cpu2/online").write_text("0\n")
    (cpus / "cpu0/cpufreq").mkdir()
    (cpus / "cpu0/cpufreq/cpuinfo_max_freq").write_text("1500000\n")
    return found


def test_drives_are_what_sysfs_shows(sys: Path, tmp_path: Path) -> None:
    nvme = drive(sys, "nvme0n1", "259:0", 1 << 31, nr_requests="1023", max_sectors_kb="128", rotational="0")
    for queue in range(4):
        (nvme / "mq" / str(queue)).mkdir(parents=True)
    (nvme / "device").mkdir()
    (nvme / "device/model").write_text("Samsung SSD 990 PRO 1TB   \n")
    drive(sys, "sda", "8:0", 1 << 30, rotational="1", scheduler="mq-deadline [bfq]", write_cache="write back")
    text = machine_file.text()
    flash, disk = tomllib.loads(text)["drives"]
    assert (flash["device"], flash["scheduler"]) == ("samsung_990_pro", {"name": "none"})
    expected = {"hardware_queues": 4, "nr_requests": 1023, "max_sectors_kb": 128, "rotational": 0}
    assert flash["queue"] == expected
    assert (disk["device"], disk["scheduler"]) == ("sata_7200_2008", {"name": "bfq"})
    assert "estimate, of the class of disks" in text
    cpus = tomllib.loads(text)["cpus"]
    assert (cpus["count"], cpus["call_ns"]) == (2, 2000)
    comment = "sda, a model that sysfs does not name, 550 GB: estimate, of the class of disks of 7200 rpm"
    assert machine_file.estimated_drives(text) == [("sata_7200_2008", comment)]
    (tmp_path / "mine.toml").write_text(text)
    assert files.read("model:mine.toml", tmp_path)


def test_a_machine_without_a_disk_is_one_clear_error(sys: Path) -> None:
    with pytest.raises(MachineError, match="no disk here that a simulated machine could have"):
        machine_file.text()


@pytest.mark.parametrize("name", [*machine_file.BY_MODEL.values(), *machine_file.BY_CLASS])
def test_each_device_file_is_shipped(name: str) -> None:
    assert (Path(__file__).parents[1] / "machines/devices" / f"{name}.toml").is_file()


@pytest.mark.skipif(not any(machine_file.disks()), reason="the kernel shows no disk here")
def test_this_machine_is_described_and_simulated(iolab: CommandLine) -> None:
    told = iolab("machine", "describe", "-o", "mine.toml").stderr
    shown = iolab("run", iolab.write("reads.toml", EXPERIMENT), "--out", "run").stdout
    estimated = machine_file.estimated_drives((iolab.cwd / "mine.toml").read_text())
    assert told.count("iolab machine calibrate /dev/") == len(estimated)
    assert shown.count("an estimate of its class, no measurement of ") == len(estimated)
    both = iolab("machine", "describe", "--json", "-o", "x.toml", status=None)
    both.assert_one_clear_line(2, "--json")


def test_a_drive_of_the_library_is_found_by_what_sysfs_calls_it(sys: Path) -> None:
    nvme = drive(sys, "nvme0n1", "259:0", 1 << 30)
    (nvme / "device").mkdir()
    (nvme / "device/model").write_text("Samsung SSD 970 PRO 512GB               \n")
    (flash,) = tomllib.loads(machine_file.text())["drives"]
    assert flash["device"] == "samsung_ssd_970_pro_512gb"


@pytest.mark.parametrize(("limit", "background", "taken"), [(20, 10, 10), (7, 10, 3), (10, 10, 5)])
def test_the_kernel_takes_half_for_a_background_limit_above_the_other(
    limit: int, background: int, taken: int, sys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive(sys, "sda", "8:0", 1 << 30)
    vm = tmp_path / "proc/sys/vm"
    vm.mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal:  1024 kB\n")
    (vm / "dirty_ratio").write_text(f"{limit}\n")
    (vm / "dirty_background_ratio").write_text(f"{background}\n")
    monkeypatch.setattr(machine_file, "PROC", tmp_path / "proc")
    assert tomllib.loads(machine_file.text())["memory"]["dirty_background_percent"] == taken
