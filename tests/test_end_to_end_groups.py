"""Control groups and swap, end to end: weighted groups compete, sorters swap, and nothing of either stays behind."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest
from iolab.files.store import read
from iolab.machines.system import cgroup, io_cost, lock
from iolab.machines.system.action import EraseSwap
from support import workers
from support.command_line import CommandLine, Started, wait_until
from support.devices import command
from support.leftovers import look
from support.runs import events, faults, statuses

pytestmark = [pytest.mark.root, pytest.mark.machine]

IOSTEST = """\
rounds = 1
seed = 1
[target]
kind = "scratch"
size = "256MiB"
filesystem = "{filesystem}"
[workloads.readers]
kind = "iostest"
job = "{job}"
groups = 2
weights = [100, 300]
jobs_per_group = 2
file_size = "16MiB"
duration = "{duration}"
controller = "{controller}"
[settings.only]
scheduler = {{ name = "{scheduler}" }}
"""
QSBENCH = """\
rounds = 1
seed = 1
[target]
kind = "scratch"
size = "{size}"
[workloads.sorters]
kind = "qsbench"
processes = 2
share = 75
memory_limit = "{limit}"
passes = {passes}
swappiness = 100
swap_size = "{size}"
[settings.only]
"""

NEIGHBOURS = """\
rounds = 1
seed = 1
[target]
kind = "scratch"
size = "64MiB"
[workloads.tenants]
kind = "mix"
duration = "{duration}"
{more}
[workloads.tenants.groups.slice]
cpu_weight = 50
[workloads.tenants.groups.web]
inside = "slice"
io_weight = 300
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
{ends}
[settings.only]
scheduler = "bfq"
"""


def neighbours(
    *, duration: str = "400ms", batch: str = "io_max = { read_iops = 50 }", more: str = "", ends: str = ""
) -> str:
    return NEIGHBOURS.format(duration=duration, batch=batch, more=more, ends=ends)


def iostest(
    *,
    job: str = "drr",
    controller: str = "auto",
    scheduler: str = "bfq",
    duration: str = "400ms",
    filesystem: str = "ext4",
) -> str:
    return IOSTEST.format(job=job, controller=controller, scheduler=scheduler, duration=duration, filesystem=filesystem)


def qsbench(*, size: str = "128MiB", limit: str = "32MiB", passes: int = 1) -> str:
    return QSBENCH.format(size=size, limit=limit, passes=passes)


def run(iolab: CommandLine, text: str) -> Path:
    iolab.write("experiment.toml", text)
    iolab("run", "experiment.toml", "--out", "run")
    path = iolab.cwd / "run"
    assert statuses(path) == ["ok"], faults(path)
    return path


def refused(iolab: CommandLine, text: str, status: int, *words: str) -> None:
    iolab.write("experiment.toml", text)
    iolab("run", "experiment.toml", "--out", "run", status=None).assert_one_clear_line(status, *words)


@pytest.fixture(autouse=True)
def needs_bfq(request: pytest.FixtureRequest) -> None:
    # A distribution's kernel has it as a module, and lists it when it is loaded.
    with suppress(FileNotFoundError):
        subprocess.run(["modprobe", "--quiet", "bfq"], check=False)
    known = " ".join(path.read_text() for path in Path("/sys/block").glob("*/queue/scheduler"))
    if "bfq" not in known:
        pytest.skip("this kernel has no bfq")


@pytest.mark.parametrize(
    ("job", "filesystem"), [("drr", "none"), ("bsr", "ext4"), ("bsw", "none"), ("brr+dsw", "ext4")]
)
def test_groups_compete_in_control_groups_of_their_own(iolab: CommandLine, job: str, filesystem: str) -> None:
    path = run(iolab, iostest(job=job, filesystem=filesystem))
    data = read(path)
    values = data.job_metrics().filter(metric="rate_bytes_per_s")
    rates = dict(values.select("job", "value").iter_rows())
    for group in ("test1", "test2"):
        assert rates[group] == pytest.approx(sum(rate for name, rate in rates.items() if name.startswith(f"{group}.")))
        assert rates[group] > 0
    shown = iolab("show", path, "--as", "iostest").stdout
    assert f"AVERAGE[{job}]" in shown
    assert "iosched=bfq" in shown
    notes = " ".join(data.remarks()["text"])
    assert ("buffered writes" in notes) == (job == "bsw")
    assert "low_latency" in notes


def test_without_a_controller_there_are_no_control_groups(iolab: CommandLine) -> None:
    run(iolab, iostest(controller="none", scheduler="none"))


@pytest.mark.parametrize(
    ("scheduler", "controller", "words"),
    [
        ("none", "auto", ("by weights", 'scheduler = "bfq"', 'controller = "none"')),
        ("none", "bfq", ("needs the scheduler bfq",)),
        ("bfq", "cfq", ("needs the scheduler cfq",)),
    ],
)
def test_weights_that_nothing_enforces_are_refused(
    iolab: CommandLine, scheduler: str, controller: str, words: tuple[str, ...]
) -> None:
    if controller == "auto" and io_version() == 2:
        pytest.skip("io.cost may share here")
    refused(iolab, iostest(scheduler=scheduler, controller=controller), 3, *words)


def test_io_cost_shares_by_its_model_and_is_set_back(iolab: CommandLine) -> None:
    if io_version() != 2 or (files := io_cost_files()) is None:
        pytest.skip("io.cost is not there with version 2 of the I/O controller")
    before = {line for file in files for line in file.read_text().splitlines()}
    model = 'cost_model = "rbps=500000000 rseqiops=50000 rrandiops=5000"'
    text = iostest(controller="cost", scheduler="none").replace("groups = 2", f"groups = 2\n{model}")
    path = run(iolab, f"{text}\n[probes]\nio_cost = true\n")
    assert "controller=cost" in iolab("show", path, "--as", "iostest").stdout
    assert "vrate percent mean" in iolab("show", path).stdout
    after = {line for file in files for line in file.read_text().splitlines()}
    assert before <= after
    assert all("enable=0" in line or "ctrl=auto" in line for line in after - before)


def io_version() -> int | None:
    found = cgroup.find("blkio", "io")
    return found.version if found else None


def io_cost_files() -> list[Path] | None:
    found = cgroup.find("blkio", "io")
    if found is None or not io_cost.is_there(found.root):
        return None
    return [found.root / io_cost.QOS, found.root / io_cost.MODEL]


def test_a_controller_of_the_other_version_is_refused(iolab: CommandLine) -> None:
    found = cgroup.find("blkio", "io")
    if found is None or found.version != 1:
        pytest.skip("the I/O controller is not mounted as version 1 here")
    refused(iolab, iostest(controller="cost"), 3, "version 2", str(found.root))


def test_a_target_without_a_queue_is_refused(iolab: CommandLine, tmp_path: Path) -> None:
    text = iostest().replace('scheduler = { name = "bfq" }', "")
    target = 'kind = "scratch"\nsize = "256MiB"\nfilesystem = "ext4"'
    refused(iolab, text.replace(target, 'kind = "directory"\npath = "/dev/shm"'), 3, "block device", "/dev/shm")


def test_a_mix_runs_in_nested_groups_with_a_limit(iolab: CommandLine) -> None:
    path = run(iolab, neighbours())
    data = read(path)
    rows = data.job_metrics()
    of_batch = dict(rows.filter(job="batch").select("metric", "value").iter_rows())
    of_web = dict(rows.filter(job="web").select("metric", "value").iter_rows())
    assert 0 < of_batch["iops"] <= 75  # 50 a second, and the first at once
    both = of_web["iops"] + of_batch["iops"]
    assert of_web["share_of_entitlement"] == pytest.approx(of_web["iops"] / both / 0.75)
    assert of_batch["share_of_entitlement"] == pytest.approx(of_batch["iops"] / both / 0.25)
    assert rows.filter(job="reads.1", metric="iops")["value"].min() > 0


def test_the_end_of_a_job_ends_the_other_groups(iolab: CommandLine) -> None:
    text = neighbours(more='ends_with = "scan"', ends="operations = 20").replace('duration = "400ms"\n', "")
    path = run(iolab, text)
    rows = read(path).job_metrics().filter(op="all", metric="bytes")
    size = dict(rows.select("job", "value").iter_rows())
    # The others have no end of their own, and on a busy machine one of them may not have begun.
    assert size["scan"] == 20 * 4096 and {"batch", "reads.0", "reads.1"} < size.keys(), size


def test_a_key_of_the_other_version_is_refused_before_anything_is_made(iolab: CommandLine) -> None:
    if io_version() != 1:
        pytest.skip("the I/O controller is not mounted as version 1 here")
    text = neighbours(batch='io_latency = "5ms"')
    refused(iolab, text, 3, "io_latency of group batch needs version 2", "cgroup_no_v1=all")
    assert not list(iolab.state_dir.glob("scratch/*"))


def test_sorters_swap_to_the_scratch_device(iolab: CommandLine) -> None:
    path = run(iolab, qsbench())
    data = read(path)
    values = dict(data.metrics.filter(op="all").select("key", "value").iter_rows())
    assert values["swap_out_bytes"] > 8 << 20
    assert values["swap_bytes_max"] > 4 << 20
    assert values["memory_bytes_max"] <= 32 << 20
    assert values["faults_major"] > 0
    finished = data.job_metrics().filter(metric="elapsed_s")
    assert finished["job"].to_list() == ["sort.1", "sort.2"]
    assert max(finished["value"]) == pytest.approx(values["elapsed_s"])
    iolab("show", path)


@pytest.mark.long
def test_a_device_has_no_swap_area_left_and_takes_one_trial_after_the_other(
    iolab: CommandLine, loop_device: Path
) -> None:
    text = qsbench(size="64MiB", limit="48MiB").replace(
        'kind = "scratch"\nsize = "64MiB"', f'kind = "device"\npath = "{loop_device}"'
    )
    iolab.write("experiment.toml", text.replace("rounds = 1", "rounds = 2").replace('swap_size = "64MiB"\n', ""))
    iolab("run", "experiment.toml", "--out", "run")
    assert statuses(iolab.cwd / "run") == ["ok", "ok"], faults(iolab.cwd / "run")
    assert command("wipefs", "--no-act", loop_device) == ""


def test_a_killed_run_s_swap_area_is_erased_and_another_one_is_left(iolab: CommandLine, loop_device: Path) -> None:
    text = (
        LONG["qsbench"]
        .replace('swap_size = "128MiB"\n', "")
        .replace('memory_limit = "32MiB"', 'memory_limit = "48MiB"')
    )
    text = text.replace('kind = "scratch"\nsize = "128MiB"', f'kind = "device"\npath = "{loop_device}"')
    with start(iolab, text) as process:
        os.killpg(process.pid, signal.SIGKILL)
    outcome = iolab("restore")
    assert f"erased the swap area that was made on {loop_device}" in outcome.stdout
    assert command("wipefs", "--no-act", loop_device) == ""
    uuid, others = (str(uuid4()) for _ in range(2))
    command("mkswap", "--uuid", others, loop_device)
    assert EraseSwap(str(loop_device), uuid).undo() is None
    assert others in command("wipefs", "--no-act", loop_device)


def test_swap_that_is_too_small_is_refused(iolab: CommandLine) -> None:
    refused(iolab, qsbench(size="16MiB", limit="64MiB"), 2, "swap", "[target] size")


def test_swap_on_what_is_no_device_is_refused(iolab: CommandLine) -> None:
    text = qsbench().replace('kind = "scratch"\nsize = "128MiB"', 'kind = "directory"\npath = "."')
    refused(iolab, text, 2, "device")


LONG = {
    "iostest": iostest(duration="30s"),
    "buffered": iostest(duration="30s", job="bsw"),
    "qsbench": qsbench(passes=99),
    "neighbours": neighbours(duration="30s"),
}


def start(iolab: CommandLine, text: str) -> Started:
    """Until its members are in their groups and at work."""
    iolab.write("experiment.toml", text)
    process = iolab.start("run", "experiment.toml", "--out", "run")

    def at_work() -> bool:
        assert process.poll() is None, process.communicate()
        groups = [Path(path) for path in look(iolab.cwd, iolab.state_dir).cgroups]
        try:
            return sum(bool((group / "cgroup.procs").read_text()) for group in groups) >= (
                1 if "qsbench" in text else 2
            )
        except FileNotFoundError:
            return False

    wait_until(at_work, "processes in control groups")
    return process


@pytest.mark.parametrize(
    "kind", ["iostest", "buffered", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("qsbench", "neighbours"))]
)
@pytest.mark.parametrize(
    "whole_group", [pytest.param(False, id="parent", marks=pytest.mark.long), pytest.param(True, id="group")]
)
def test_a_killed_run_is_taken_back_and_resumes(iolab: CommandLine, kind: str, whole_group: bool) -> None:
    with start(iolab, LONG[kind]) as process:
        if whole_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    iolab("restore")
    left = look(iolab.cwd, iolab.state_dir)
    assert not left.swaps
    assert not events(iolab.cwd / "run", "trial_finished")


@pytest.mark.parametrize("kind", ["iostest", pytest.param("qsbench", marks=pytest.mark.long)])
def test_a_killed_worker_fails_its_trial_only(iolab: CommandLine, kind: str) -> None:
    with start(iolab, LONG[kind]) as process:
        (worker,) = workers.of(iolab.state_dir)
        os.kill(worker, signal.SIGKILL)
        process.ended()
    assert statuses(iolab.cwd / "run") == ["failed"]


@pytest.mark.parametrize("kind", [pytest.param("iostest", marks=pytest.mark.long), "qsbench"])
def test_a_killed_member_is_named(iolab: CommandLine, kind: str) -> None:
    with start(iolab, LONG[kind]) as process:
        victim = next(
            line for line in look(iolab.cwd, iolab.state_dir).processes if "iolab.machines.host.member" in line
        )
        os.kill(int(victim.split()[0]), signal.SIGKILL)
        _, stderr = process.ended()
    assert process.returncode == 3, stderr
    assert "SIGKILL" in stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize("kind", ["iostest", pytest.param("qsbench", marks=pytest.mark.long)])
def test_an_interrupted_run_stops_soon(iolab: CommandLine, kind: str) -> None:
    with start(iolab, LONG[kind]) as process:
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.ended()
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert "ok" not in statuses(iolab.cwd / "run")


@pytest.mark.parametrize("kind", ["iostest", "qsbench"])
def test_what_all_runs_share_is_not_changed_under_another_run(iolab: CommandLine, kind: str) -> None:
    """Controllers are enabled for all groups, io.cost for a disk, swappiness for the machine."""
    with lock.of_machine():
        refused(iolab, {"iostest": iostest, "qsbench": qsbench}[kind](), 3, "settings of the whole machine")
