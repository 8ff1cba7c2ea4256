"""iolab in a container of podman's, whose root filesystem is that of this machine."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.devices import command, mounted, queue_attribute
from support.experiments import DEFAULT_WORKLOAD, TWO_DEPTHS, TWO_SCHEDULERS, experiment
from support.runs import faults, statuses

LIMITED = "[settings.limited]\nio_max = { read_iops = 20 }\n"
LIBAIO = DEFAULT_WORKLOAD + 'engine = "libaio"\n'
"""podman's own profile refuses rings."""
WITHOUT_RINGS = {
    "defaultAction": "SCMP_ACT_ALLOW",
    "syscalls": [
        {"names": ["io_uring_setup", "io_uring_enter", "io_uring_register"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}
    ],
}
"""As docker's own profile has it."""


@pytest.fixture(scope="module")
def root_filesystem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Without what is mounted below it."""
    with mounted(Path("/"), tmp_path_factory.mktemp("container") / "root", "bind") as place:
        yield place


def contained(iolab: CommandLine, root: Path, *options: str | Path) -> CommandLine:
    """The command line in a container that is removed when it ends."""
    environment = ("--env=IOLAB_STATE_DIR", "--env=NO_COLOR", "--env=PATH")
    fixed = ("podman", "run", "--rm", "--network=none", "--log-driver=none", f"--workdir={iolab.cwd}", *environment)
    return replace(iolab, prefix=(*fixed, *map(str, options), "--rootfs", str(root)))


def test_the_doctor_names_what_the_container_hides(iolab: CommandLine, root_filesystem: Path) -> None:
    inside = contained(iolab, root_filesystem)
    found = {(line["area"], line["what"]): line for line in inside("doctor", "--json").json()["findings"]}
    print(*found.values(), sep="\n")
    assert found["privileges", "root"]["state"] != "missing"
    loops = found["scratch", "loop devices"]
    assert loops["state"] == "missing"
    assert "--device /dev/loop-control" in loops["remedy"]
    for what in ("I/O cgroups", "queue settings"):
        assert found["controls", what]["state"] == "limited"
        assert "--privileged" in found["controls", what]["remedy"]


def test_without_rings_the_remedy_is_named_and_libaio_runs(
    iolab: CommandLine, root_filesystem: Path, tmp_path: Path
) -> None:
    profile = tmp_path / "seccomp.json"
    profile.write_text(json.dumps(WITHOUT_RINGS))
    inside = contained(iolab, root_filesystem, f"--security-opt=seccomp={profile}")
    (ring,) = (line for line in inside("doctor", "--json").json()["findings"] if line["what"] == "io_uring")
    assert (ring["state"], "seccomp" in ring["remedy"]) == ("missing", True), ring
    inside.write("e.toml", experiment(f'kind = "directory"\npath = "{tmp_path}"', settings=TWO_DEPTHS, rounds=1))
    inside("run", "e.toml", "--out", "run", status=None).assert_one_clear_line(3, "io_uring", "seccomp")
    target = f'kind = "directory"\npath = "{tmp_path}"'
    inside.write("e.toml", experiment(target, workload=LIBAIO, settings=TWO_DEPTHS, rounds=1))
    inside("run", "e.toml", "--out", "libaio")
    assert set(statuses(iolab.cwd / "libaio")) == {"ok"}, faults(iolab.cwd / "libaio")


def test_the_demo_runs(iolab: CommandLine, root_filesystem: Path) -> None:
    told = contained(iolab, root_filesystem)("demo", "--quick", "--out", "run")
    assert "Traceback" not in told.text
    assert set(statuses(iolab.cwd / "run")) == {"ok"}, faults(iolab.cwd / "run")


@pytest.mark.parametrize(
    ("workload", "options"), [(LIBAIO, ()), (DEFAULT_WORKLOAD, ("--security-opt=seccomp=unconfined",))]
)
def test_a_device_that_was_handed_in_takes_a_load(
    iolab: CommandLine, root_filesystem: Path, nvme: Path, workload: str, options: tuple[str, ...]
) -> None:
    inside = contained(iolab, root_filesystem, f"--device={nvme}", *options)
    workload += "read_percent = 50\nverify = true\n"
    inside.write("e.toml", experiment(f'kind = "device"\npath = "{nvme}"', workload=workload, rounds=1))
    inside("run", "e.toml", "--out", "run")
    assert set(statuses(iolab.cwd / "run")) == {"ok"}, faults(iolab.cwd / "run")


@pytest.mark.parametrize("settings", [TWO_SCHEDULERS, LIMITED], ids=["scheduler", "io_max"])
def test_what_the_container_may_not_change_is_refused_in_one_line(
    iolab: CommandLine, root_filesystem: Path, nvme: Path, settings: str
) -> None:
    before = queue_attribute(nvme, "scheduler")
    inside = contained(iolab, root_filesystem, f"--device={nvme}")
    target = f'kind = "device"\npath = "{nvme}"'
    inside.write("e.toml", experiment(target, workload=LIBAIO, settings=settings, rounds=1))
    inside("run", "e.toml", "--out", "run", status=None).assert_one_clear_line(3, "container", "--privileged")
    assert queue_attribute(nvme, "scheduler") == before


@pytest.mark.parametrize("settings", [TWO_SCHEDULERS, LIMITED], ids=["scheduler", "io_max"])
def test_a_privileged_container_changes_and_puts_back(
    iolab: CommandLine, root_filesystem: Path, nvme: Path, settings: str
) -> None:
    before = queue_attribute(nvme, "scheduler")
    inside = contained(iolab, root_filesystem, "--privileged", "--cgroupns=host")
    inside.write("e.toml", experiment(f'kind = "device"\npath = "{nvme}"', settings=settings, rounds=1))
    inside("run", "e.toml", "--out", "run")
    assert set(statuses(iolab.cwd / "run")) == {"ok"}, faults(iolab.cwd / "run")
    assert queue_attribute(nvme, "scheduler") == before


def test_a_group_that_is_not_the_top_names_the_remedy(iolab: CommandLine, root_filesystem: Path, nvme: Path) -> None:
    inside = contained(iolab, root_filesystem, "--privileged", "--cgroupns=private")
    inside.write("e.toml", experiment(f'kind = "device"\npath = "{nvme}"', settings=LIMITED, rounds=1))
    inside("run", "e.toml", "--out", "run", status=None).assert_one_clear_line(3, "container", "--cgroupns=host")


def test_a_device_that_this_machine_has_mounted_is_refused_inside(
    iolab: CommandLine, root_filesystem: Path, nvme: Path, tmp_path: Path
) -> None:
    """Where the mount is not to be seen, the kernel's claim is."""
    command("mkfs.ext4", "-q", nvme)
    with mounted(nvme, tmp_path / "mounted"):
        inside = contained(iolab, root_filesystem, f"--device={nvme}")
        writes = DEFAULT_WORKLOAD + "read_percent = 0\n"
        target = f'kind = "device"\npath = "{nvme}"\ndestroy = true'
        inside.write("e.toml", experiment(target, workload=writes, rounds=1))
        inside("run", "e.toml", "--out", "run", status=None).assert_one_clear_line(2, str(nvme))
