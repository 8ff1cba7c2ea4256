"""Control groups of version 2 beside systemd's: each key on NVMe and md, what a user may, and a kill."""

import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from iolab.files.store import read
from support.command_line import CommandLine, wait_until
from support.devices import command, queue_attribute
from support.experiments import SCRATCH, experiment
from support.host import HOW, USER, scope_of_user
from support.leftovers import kill_processes
from support.runs import faults, notes, statuses

ROOT = Path("/sys/fs/cgroup")
MIX = """\
[workloads.tenants]
kind = "mix"
duration = "{duration}"
{more}
[workloads.tenants.groups.slice]
cpu_weight = 50
[workloads.tenants.groups.web]
inside = "slice"
memory_max = "256MiB"
[workloads.tenants.groups.batch]
inside = "slice"
{batch}
[workloads.tenants.jobs.reads]
group = "web"
jobs = 2
file_size = "4MiB"
[workloads.tenants.jobs.scan]
group = "batch"
file_size = "4MiB"
[settings.only]
{setting}
"""
KEYS = {
    "io_max": ("io_max = { read_iops = 20 }", "BLK_DEV_THROTTLING"),
    "io_latency": ('io_latency = "50ms"', "BLK_CGROUP_IOLATENCY"),
    "io_prio_class": ('io_prio_class = "idle"', "BLK_CGROUP_IOPRIO"),
    "memory_high": ('memory_high = "128MiB"', "MEMCG"),
}
"""Each with what the kernel's configuration calls it."""


def mix(device: Path, batch: str, *, more: str = "", setting: str = "", duration: str = "1s") -> str:
    workload = MIX.format(duration=duration, batch=batch, more=more, setting=setting)
    return experiment(f'kind = "device"\npath = "{device}"', workload=workload, settings="", rounds=1)


def configured(option: str) -> bool:
    kernel = os.uname().release
    return f"CONFIG_{option}=y" in Path(f"/boot/config-{kernel}").read_text().splitlines()


def groups() -> list[str]:
    """Those of iolab."""
    return [path for path, _, _ in os.walk(ROOT) if Path(path).name.startswith("iolab-")]


def iops(run: Path) -> dict[str, float]:
    """By group."""
    rows = read(run).job_metrics().filter(metric="iops", op="all")
    return dict(rows.select("job", "value").iter_rows())


@pytest.mark.parametrize("iolab_by", ["root", "root in a scope"], indirect=True)
@pytest.mark.parametrize("name", ["nvme", "array"])
def test_one_group_of_a_slice_is_limited(iolab_by: CommandLine, name: str, request: pytest.FixtureRequest) -> None:
    controllers = (ROOT / "cgroup.subtree_control").read_text()
    iolab_by.write("e.toml", mix(request.getfixturevalue(name), KEYS["io_max"][0]))
    iolab_by("run", "e.toml", "--out", "run")
    run = iolab_by.cwd / "run"
    assert statuses(run) == ["ok"], faults(run)
    print(*notes(run), sep="\n")
    rates = iops(run)
    assert 0 < rates["batch"] <= 40 < rates["web"]
    assert not groups()
    assert (ROOT / "cgroup.subtree_control").read_text() == controllers


@pytest.mark.parametrize("key", [key for key in KEYS if key != "io_max"])
def test_a_key_acts_or_names_the_configuration_that_lacks(iolab: CommandLine, nvme: Path, key: str) -> None:
    text, option = KEYS[key]
    iolab.write("e.toml", mix(nvme, text))
    told = iolab("run", "e.toml", "--out", "run", status=None)
    if configured(option):
        assert statuses(iolab.cwd / "run") == ["ok"], faults(iolab.cwd / "run")
    else:
        told.assert_one_clear_line(3, key, f"CONFIG_{option}=y")
    assert not groups()


def test_weights_act_by_bfq(iolab: CommandLine, nvme: Path) -> None:
    before = queue_attribute(nvme, "scheduler")
    iolab.write("e.toml", mix(nvme, "io_weight = 300", setting='scheduler = "bfq"'))
    iolab("run", "e.toml", "--out", "run")
    assert statuses(iolab.cwd / "run") == ["ok"], faults(iolab.cwd / "run")
    assert min(iops(iolab.cwd / "run").values()) > 0
    assert queue_attribute(nvme, "scheduler") == before
    assert not groups()


def test_weights_act_by_the_model_of_io_cost(iolab: CommandLine, nvme: Path) -> None:
    model = 'io_cost_model = "rbps=500000000 rseqiops=50000 rrandiops=5000"'
    iolab.write("e.toml", mix(nvme, "io_weight = 300", more=model))
    told = iolab("run", "e.toml", "--out", "run", status=None)
    if not configured("BLK_CGROUP_IOCOST"):
        told.assert_one_clear_line(3, "io.cost")
        return
    assert statuses(iolab.cwd / "run") == ["ok"], faults(iolab.cwd / "run")
    number = command("lsblk", "--nodeps", "--noheadings", "--output", "MAJ:MIN", nvme)
    shown = (ROOT / "io.cost.qos").read_text().splitlines()
    assert all("enable=0" in line for line in shown if line.startswith(f"{number} "))
    assert not groups()


@pytest.fixture
def io_delegated() -> Iterator[None]:
    """The controller io too, to all users."""
    place = Path("/run/systemd/system/user@.service.d/tests.conf")
    place.parent.mkdir(parents=True)
    place.write_text("[Service]\nDelegate=cpu io memory pids\n")
    again = ("systemctl", "restart", f"user@{command('id', '--user', USER)}.service")
    command("systemctl", "daemon-reload")
    command(*again)
    yield
    shutil.rmtree(place.parent)
    command("systemctl", "daemon-reload")
    command(*again)


def of_a_user(iolab: CommandLine, batch: str, duration: str = "1s", *, prefix: tuple[str, ...]) -> CommandLine:
    """A mix in the user's directory, and the user's command line."""
    workload = MIX.format(duration=duration, batch=batch, more="", setting="")
    iolab.write(
        "e.toml", experiment(f'kind = "directory"\npath = "{iolab.cwd}"', workload=workload, settings="", rounds=1)
    )
    command("chown", "-R", USER, iolab.cwd)
    iolab.cwd.chmod(0o755)
    return replace(iolab, prefix=prefix)


def test_a_user_in_a_delegated_scope_has_its_controllers(iolab: CommandLine) -> None:
    """By default systemd delegates neither io nor a scope that does not ask for it."""
    delegated = scope_of_user("Delegate=yes")
    user = of_a_user(iolab, KEYS["memory_high"][0], prefix=delegated)
    user("run", "e.toml", "--out", "run")
    assert statuses(iolab.cwd / "run") == ["ok"], faults(iolab.cwd / "run")
    assert not groups()
    limited = of_a_user(iolab, KEYS["io_max"][0], prefix=delegated)
    told = limited("run", "e.toml", "--out", "limited", status=None)
    told.assert_one_clear_line(3, "no controller io", "Delegate=cpu io memory pids", "user@.service.d")
    plain = replace(user, prefix=scope_of_user())
    plain("run", "e.toml", "--out", "plain", status=None).assert_one_clear_line(3, "need root", "Delegate=yes")
    assert not groups()


def test_a_user_with_the_controller_limits_a_group_and_a_load(iolab: CommandLine, io_delegated: None) -> None:
    user = of_a_user(iolab, KEYS["io_max"][0], prefix=scope_of_user("Delegate=yes"))
    user("run", "e.toml", "--out", "run")
    assert statuses(iolab.cwd / "run") == ["ok"], faults(iolab.cwd / "run")
    rates = iops(iolab.cwd / "run")
    assert 0 < rates["batch"] <= 40 < rates["web"]
    target = f'kind = "directory"\npath = "{iolab.cwd}"'
    settings = "[settings.limited]\nio_max = { read_iops = 20 }\ncpu_quota = 1\n"
    iolab.write("e.toml", experiment(target, settings=settings, rounds=2))
    user("run", "e.toml", "--out", "limited")
    assert statuses(iolab.cwd / "limited") == ["ok", "ok"], faults(iolab.cwd / "limited")
    values = user("show", "limited", "--metric", "iops", "--json").json()["values"]
    assert all(0 < value["median"] < 60 for value in values)
    assert not groups()


def test_after_a_kill_restore_moves_what_else_is_in_the_scope_back(iolab: CommandLine, io_delegated: None) -> None:
    """Without anything else in it, systemd removes the scope with all that is below."""
    beside = ("sh", "-c", 'setsid env -u IOLAB_STATE_DIR sleep 3600 & exec "$@"', "sh")
    user = of_a_user(iolab, KEYS["io_max"][0], "3600s", prefix=(*scope_of_user("Delegate=yes"), *beside))
    with user.start("run", "e.toml", "--out", "run") as process:
        wait_until(lambda: any(map(_has_processes, _of_loads())) or process.poll() is not None, "a process in a group")
        assert process.poll() is None, process.communicate()
        os.killpg(process.pid, signal.SIGKILL)
        kill_processes(iolab.state_dir)
        process.wait()
    (place,) = (group for group in groups() if _has_processes(group))
    (other,) = (Path(place) / "cgroup.procs").read_text().split()
    replace(user, prefix=HOW["user"])("restore")
    assert not groups()
    scope = Path(place).parent
    assert (scope / "cgroup.procs").read_text().split() == [other]
    assert not (scope / "cgroup.subtree_control").read_text().split()
    os.kill(int(other), signal.SIGKILL)


def _of_loads() -> list[str]:
    return [group for group in groups() if "-beside-" not in group]


@pytest.mark.parametrize("iolab_by", ["user", "user in a scope"], indirect=True)
def test_a_user_is_refused_groups_and_limits_in_one_line(iolab_by: CommandLine) -> None:
    target = f'kind = "directory"\npath = "{iolab_by.cwd}"'
    settings = "[settings.limited]\nio_max = { read_iops = 20 }\n"
    workload = MIX.format(duration="1s", batch="", more="", setting="")
    for text in (experiment(target, settings=settings), experiment(target, workload=workload, settings="", rounds=1)):
        iolab_by.write("e.toml", text)
        told = iolab_by("run", "e.toml", "--out", "run", status=None)
        told.assert_one_clear_line(3, "need root", "sudo iolab run")
        assert not groups()


def test_after_a_kill_restore_removes_the_groups(iolab: CommandLine) -> None:
    workload = MIX.format(duration="3600s", batch=KEYS["io_max"][0], more="", setting="")
    iolab.write("e.toml", experiment(SCRATCH, workload=workload, settings="", rounds=1))
    with iolab.start("run", "e.toml", "--out", "run") as process:
        wait_until(lambda: any(map(_has_processes, groups())) or process.poll() is not None, "a process in a group")
        assert process.poll() is None, process.communicate()
        os.killpg(process.pid, signal.SIGKILL)
        kill_processes(iolab.state_dir)
        process.ended()
    assert groups()
    iolab("restore")
    assert not groups()


def _has_processes(group: str) -> bool:
    try:
        return bool((Path(group) / "cgroup.procs").read_text())
    except FileNotFoundError:
        return False
