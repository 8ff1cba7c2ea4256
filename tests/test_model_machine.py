"""Experiments on simulated machines: what is refused and on which line, what settings change, and that a run is a
function of machine, experiment and seed."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import polars
import pytest
from fake_machine import SilentDisplay
from hypothesis import given, settings
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.files.store import read
from iolab.presentation.report import probes
from iolab.presentation.table import render
from iolab.studies.run import plan, resume
from iolab.studies.run.machine_executor import MachineExecutor
from support.command_line import CommandLine, wait_until
from support.machines import MACHINE, QUICK, READS, line_of, write_machine
from support.runs import journal
from support.simulated import experiment, refusals, run

pytestmark = pytest.mark.usefixtures("state_dir")

HEAD = 'machine = "model:small.toml"\nrounds = 2\n'


@pytest.fixture(autouse=True)
def small_machine(here: Path) -> None:
    write_machine(here)


def metrics(out: str) -> polars.DataFrame:
    return read(Path(out)).metrics


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ('engine = "mmap"', "workloads.reads.engine: the simulated machine has no mechanism for page faults"),
        ('engine = "null"', "workloads.reads.engine: null does no I/O"),
        ("layout = false", "workloads.reads.layout: false on a drive with ext3: nothing writes the files"),
        ("verify = true", "workloads.reads.verify: the simulated machine has no mechanism for data"),
        (
            "cpus = [0]",
            "workloads.reads.cpus: the machine's CPUs have no places; it takes a [cpus] table with topology",
        ),
        ("sqpoll = true", "workloads.reads.sqpoll: the simulated machine has no mechanism for a kernel thread"),
        ("direct = false", "workloads.reads.direct: the simulated machine has no mechanism for buffered I/O with"),
        ("devices = [2]", "workloads.reads.devices: uses drive 2, the machine has 2, from 0"),
    ],
)
def test_a_load_beyond_the_model_is_refused_on_its_line(option: str, said: str) -> None:
    depth = "" if "mmap" not in option else "queue_depth = 1\n"
    workload = READS.replace("queue_depth = 2\n", depth) if depth else READS
    text = f"{HEAD}{workload}{option}\n"
    lines = refusals(text)
    assert [line for line in lines if line.startswith(f"x.toml:{line_of(text, option)}: {said}")], lines


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (
            "kind = 'command'\ncommand = 'ls'",
            "x.toml:4: workloads.w.kind: the simulated machine has no mechanism for running",
        ),
        ("kind = 'make-sequence'", "x.toml:4: workloads.w.kind: the simulated machine has no mechanism for running"),
        (
            "kind = 'qsbench'",
            "x.toml:4: workloads.w.kind: sorting more than there is memory takes a machine with [swap]",
        ),
        (
            "kind = 'fio'\njob = '''\n[a]\nsize=1m\nrw=read\n'''\nrunner = 'fio'",
            "x.toml:10: workloads.w.runner: the simulated machine has no mechanism for fio itself",
        ),
        (
            "kind = 'iostest'\ncontroller = 'cost'",
            "x.toml:5: workloads.w.controller: io_cost: 2.6.35 has no io.cost; it came with 5.4",
        ),
        (
            "kind = 'mix'\n[workloads.w.jobs.a]\noperations = 1\n[workloads.w.jobs.b]\noperations = 1\nsqpoll = true",
            "x.toml:9: workloads.w.jobs.b.sqpoll: the simulated machine has no mechanism for a kernel thread",
        ),
        (
            "kind = 'mix'\n[workloads.w.jobs.a]\noperations = 1\n"
            "[workloads.w.jobs.b]\noperations = 1\nread_percent = 0\natomic_writes = true",
            "x.toml:10: workloads.w.jobs.b.atomic_writes: the simulated machine has no mechanism for atomic writes",
        ),
        (
            "operations = 1\nnowait_reads = true",
            "x.toml:5: workloads.w.nowait_reads: the simulated machine has no mechanism for reads that do not wait",
        ),
        (
            "operations = 1\npoll = true\nhybrid_poll = true",
            "x.toml:6: workloads.w.hybrid_poll: the simulated machine has no mechanism for hybrid polling",
        ),
        (
            "operations = 1\nregistered_waits = true",
            "x.toml:5: workloads.w.registered_waits: the simulated machine has no mechanism for registered waits",
        ),
        (
            "operations = 1\nengine = 'io_uring_cmd'",
            "x.toml:5: workloads.w.engine: the simulated machine has no mechanism for NVMe commands",
        ),
    ],
)
def test_a_kind_beyond_the_model_is_refused_on_its_line(workload: str, said: str) -> None:
    lines = refusals(f"{HEAD}[workloads.w]\n{workload}\n")
    assert lines[0].startswith(said), lines


def test_buffered_io_needs_memory(here: Path) -> None:
    write_machine(here, MACHINE.replace("[memory]\nbytes = 67108864\n", ""))
    text = f"{HEAD}{READS.replace('queue_depth = 2', 'direct = false')}"
    said = "workloads.reads.direct: the machine has no [memory], so there is no page cache to go through"
    assert refusals(text) == [f"x.toml:{line_of(text, 'direct')}: {said}"]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("workqueue_cpus = [0]", "settings.s.workqueue_cpus: the simulated machine has no mechanism for it"),
        ("irq_cpus = [0]", "settings.s.irq_cpus: drives.0"),
        ("rq_affinity = 1", "settings.s.rq_affinity: drives.0.queue"),
        ("affinity = { application = 'X', queue = 'A', completion = 'I' }", "settings.s.affinity: drives.0"),
        ("completion_affinity = 0", "settings.s.completion_affinity: drives.0"),
        ("queue_affinity = 'I'", "settings.s.queue_affinity: queue_affinity is 'I', expected -1"),
        ("cpus = [0]", "settings.s.cpus: the machine's CPUs have no places; it takes a [cpus] table with topology"),
        ("mount_options = 'noatime'", "settings.s.mount_options: the simulated machine has no mechanism for it"),
        ("nr_requests = 1", "settings.s.nr_requests: "),
        ("kernel = '1.2.13'", "settings.s.kernel: expected a version of Linux from 2.4 on"),
        ("scheduler = 'kyber'", "settings.s.scheduler: drives.0.scheduler"),
        (
            "scheduler = { name = 'deadline', slice_idle = 8 }",
            "settings.s.scheduler: drives.0.scheduler.slice_idle: ",
        ),
        ("scheduler = { name = 'cfq', quantum = 'many' }", "settings.s.scheduler: drives.0.scheduler.quantum: "),
        ("scheduler = { name = 'cfq', slice_idle = 'long' }", "settings.s.scheduler: scheduler.slice_idle: "),
        ("filesystem = 'xfs'", "settings.s.filesystem: drives.0.filesystem"),
        ("machine = { cpus.count = 0 }", "settings.s.machine.cpus.count: expected 1 to 1024"),
        ("machine = { cpus.coumt = 1 }", "settings.s.machine.cpus.coumt: "),
        ("machine = { 'drives.0.device' = 'quik' }", "settings.s.machine.drives.0.device: "),
        ("machine = { 'drives.7.device' = 'quick' }", "settings.s.machine.drives.7.device: "),
        ("machine = { 'drives.0.device.capacity_bytes' = 0 }", "settings.s.machine.drives.0.device.capacity_bytes: "),
        ("engine = 'null'", "settings.s.engine: null does no I/O"),
        ("probes = { memory = true }", "settings.s.probes.memory: the simulated machine has no such probe"),
        ("probes = { cpu = true }", "settings.s.probes.cpu: the machine's CPUs have no places"),
    ],
)
def test_what_a_setting_cannot_have_is_told_on_its_line(setting: str, said: str) -> None:
    text = f"{HEAD}{READS}[settings.as_is]\n[settings.s]\n{setting}\n"
    lines = refusals(text)
    assert lines[0].startswith(f"x.toml:{line_of(text, setting)}: {said}"), lines


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        ('kernel = "2.6.35"', 'kernel = "7"', "kernel"),
        ("jitter = 0.05", "jitter = 5", "cpus.jitter"),
        ("count = 2", 'count = "two"', "cpus.count"),
        ("call_ns = 2000", "call_ns = 18446744073709551615", "cpus.call_ns"),
        ("call_ns = 2000", "call_ns = 99999999999999999999999", "cpus.call_ns"),
        ("bytes = 67108864", "bytes = 0", "memory.bytes"),
        ('scheduler = { name = "cfq" }', 'scheduler = { name = "cfq", antic_expire = 6 }', "drives.0.scheduler"),
        ('filesystem = { kind = "ext3" }', 'filesystem = { kind = "ext9" }', "drives.0.filesystem"),
        ('filesystem = { kind = "ext3" }', 'filesystem = { kind = "ext3", blocks = 0 }', "drives.0.filesystem.blocks"),
        ("[memory]", "[memroy]", "memroy"),
    ],
)
def test_an_impossible_machine_is_told_on_its_line(here: Path, before: str, after: str, key: str) -> None:
    machine = MACHINE.replace(before, after)
    write_machine(here, machine)
    lines = refusals(f"{HEAD}{READS}")
    assert len(lines) == 1
    assert lines[0].startswith(f"small.toml:{line_of(machine, after)}: {key}"), lines


@pytest.mark.parametrize("after", ["capacity_bytes = 0", 'capacity_bytes = "large"', "capacity_bytes = 1000"])
def test_an_impossible_device_is_told_on_the_line_of_its_own_file(here: Path, after: str) -> None:
    write_machine(here, device=QUICK.replace("capacity_bytes = 1073741824", after))
    lines = refusals(f"{HEAD}{READS}")
    assert lines[0].startswith("devices/quick.toml:3: drives.0.device.capacity_bytes: "), lines


def test_what_no_longer_goes_with_a_setting_names_both_places(here: Path) -> None:
    lines = refusals(f"{HEAD}{READS}[settings.s]\nkernel = '2.4.20'\ndirty_ratio = 50\n")
    assert lines[0].startswith("x.toml:7: settings.s: drives."), lines
    assert lines[0].endswith(")") and "(small.toml:" in lines[0], lines


def test_a_target_is_for_hosts_and_a_kernel_for_models() -> None:
    target = '[target]\nkind = "scratch"\n'
    assert refusals(f"{HEAD}{target}{READS}")[0] == (
        "x.toml:3: target: a simulated machine takes no [target]: files lie on its drives"
    )
    assert refusals(f"{READS}[settings.s]\nkernel = '6.1'\n")[0] == (
        'x.toml:6: settings.s.kernel: only for a simulated machine, machine = "model:NAME"'
    )
    assert experiment(f"{target}{READS}", machine="model:small.toml").target.kind == "drives"


def test_a_trial_carries_its_machine_as_the_setting_made_it() -> None:
    written = READS.replace("queue_depth = 2", "direct = false\nread_percent = 50")
    found = experiment(
        f"{HEAD}{written}[settings.s]\nkernel = '2.6.32'\nnr_requests = 16\nfilesystem = 'ext2'\ndirty_expire = '10s'\n"
        "scheduler = { name = 'deadline', read_expire = '250ms' }\nmachine = { cpus.count = 1 }\n"
    )
    model = plan.trials(found, 1, seed=1)[0].model
    assert model is not None
    assert (model["kernel"], model["cpus"]["count"], model["memory"]["dirty_expire_ns"]) == ("2.6.32", 1, 10**10)
    for drive in model["drives"]:
        assert drive["scheduler"] == {"name": "deadline", "read_expire": "250"}
        assert (drive["queue"], drive["filesystem"]) == ({"nr_requests": 16}, {"kind": "ext2"})
    assert model["drives"][0]["device"]["latency_ns"] == 100_000


TWO = "[settings.one]\n[settings.two]\nnr_requests = 4\nscheduler = 'deadline'\n"


def test_the_same_seed_yields_the_same_numbers_on_any_number_of_cores() -> None:
    text = f"{HEAD}{READS}pattern = 'random'\njobs = 3\n[workloads.writes]\nread_percent = 0\noperations = 200\n{TWO}"
    for out, cores, seed in (("a", 1, 7), ("b", 4, 7), ("c", 4, 8)):
        run(text, out, cores=cores, seed=seed)
    assert metrics("a").equals(metrics("b"))
    assert not metrics("a").equals(metrics("c"))
    assert set(read(Path("a")).trials["status"]) == {"ok"}


def test_what_others_run_beside_it_does_not_change_a_trial() -> None:
    """The numbers of one setting alone are those that it has in company."""
    run(f"{HEAD}{READS}{TWO}", "both")
    run(f"{HEAD}{READS}[settings.two]\nnr_requests = 4\nscheduler = 'deadline'\n", "alone")

    def of_two(out: str) -> list[Any]:
        found = metrics(out).filter(polars.col("setting") == "two").sort("round", "phase", "op", "metric", "key")
        return found.select("round", "phase", "op", "metric", "key", "value").rows()

    assert of_two("both") == of_two("alone")


def test_a_run_says_what_it_is_a_simulation_of_and_keeps_its_files(here: Path) -> None:
    found = run(f"{HEAD}{READS}")
    assert found.machine["model"]["name"] == "model:small.toml"
    assert found.machine["kernel"]["release"] == "2.6.35"
    assert journal(found.path)[0]["seed"] == 7
    record = found.record(0)
    assert record.observed["model"]["seed"] == record.spec.seed
    assert record.observed["device"]["scheduler"] == "cfq"
    assert record.phases[0]["clock"] == "model"
    (here / "small.toml").unlink()
    from iolab.presentation.table.plain import render

    assert "2 rounds on model:small.toml (simulated, seed 7)" in render(read(found.path))


def test_a_setting_changes_what_is_measured() -> None:
    today = "kernel = '6.1'\nscheduler = 'none'\n"
    slower = "machine = { 'drives.0.device.latency_ns' = 1000000 }\n"
    found = run(f"{HEAD}{READS}devices = [0]\n[settings.quick]\n{today}[settings.slow]\n{today}{slower}")
    rate = found.metrics.filter((polars.col("metric") == "iops") & (polars.col("op") == "all"))
    by_setting = dict(rate.group_by("setting").agg(polars.col("value").mean()).rows())
    assert by_setting["quick"] > 5 * by_setting["slow"]


@pytest.mark.parametrize("kernel", ["2.4.20", "2.5.58"])
def test_a_file_larger_than_a_full_queue_is_laid_out_to_its_end(kernel: str) -> None:
    """Who waits until the queue is less full lets it run first; otherwise its plug stays for ever."""
    text = "rounds = 1\n[workloads.w]\npattern = 'random'\ndirect = false\nfile_size = '32MiB'\noperations = 20\n"
    found = run(f"machine = 'model:quad-7200'\n{text}[settings.s]\nkernel = '{kernel}'\n")
    assert found.trials["status"].to_list() == ["ok"]


def test_the_probes_of_the_model_see_what_those_of_a_host_do() -> None:
    found = run(f"{HEAD}{READS}devices = [0]\n[probes]\nextents = true\nblock = true\n")
    probes = found.record(0).phases[0]["probes"]
    assert probes["block"]["all"]["total"]["requests_issued"] > 0
    seen = probes["extents"]
    assert [file["path"] for file in seen["files"]] == ["job.0"]
    assert seen["files_found"] == 1


TENANTS = """\
[probes]
io_cost = { interval = "50ms" }
[workloads.tenants]
kind = "mix"
duration = "4s"
[workloads.tenants.groups.a]
[workloads.tenants.groups.b]
[workloads.tenants.jobs.x]
group = "a"
file_size = "16MiB"
queue_depth = 16
[workloads.tenants.jobs.y]
group = "b"
file_size = "16MiB"
queue_depth = 16
[settings.free]
kernel = "6.1"
scheduler = "none"
[settings.bounded]
kernel = "6.1"
scheduler = "none"
workload = { io_cost_qos = "rpct=90 rlat=10 min=50 max=100" }
"""


def test_the_rate_of_io_cost_is_plotted_where_it_is_on_and_absent_elsewhere() -> None:
    found = run(f"{HEAD.replace('2', '1')}{TENANTS}")
    rates = found.metrics.filter(polars.col("metric") == "vrate_percent_min")
    by_setting = {row["setting"]: row for row in rates.iter_rows(named=True)}
    assert by_setting["bounded"]["value"] == 50.0
    assert by_setting["free"]["value"] is None
    assert "io.cost is off" in by_setting["free"]["reason"]
    (plot,) = probes.figure(found, ["free", "bounded"], ["tenants"]).plots
    assert [trace["name"] for trace in plot.traces if trace.get("showlegend", True)] == ["bounded"]


WEIGHTED = """\
[workloads.groups]
kind = "iostest"
job = "bsr"
groups = 2
weights = [100, 400]
file_size = "64MiB"
duration = "1s"
[settings.on_a_disk]
machine = { "drives.0.device" = "sata_7200_2008" }
"""


def test_weighted_groups_are_control_groups_of_the_simulated_kernel() -> None:
    found = run(f"{HEAD.replace('2', '1')}{WEIGHTED}")
    assert set(found.trials["status"]) == {"ok"}, found.record(0).faults
    jobs = {job["name"]: job["read"]["bytes"] for group in found.record(0).phases[0]["groups"] for job in group["jobs"]}
    assert jobs["test2.bsr.1"] > 1.5 * jobs["test1.bsr.1"] > 0


def test_the_table_of_weighted_groups_says_which_machine_and_kernel() -> None:
    older = WEIGHTED.replace("[settings.on_a_disk]", '[settings.on_a_disk]\nkernel = "2.6.37"')
    text = render(run(f"{HEAD.replace('2', '1')}{older}"), "iostest")
    assert "Kernel=2.6.37\n" in text
    assert "DEV=model:" in text


def test_a_stopped_run_goes_on_with_the_machine_that_it_was_started_with(here: Path) -> None:
    text = f"{HEAD}{READS}{TWO}"
    run(text, "whole")
    run(text, "half", rounds=1)
    write_machine(here, MACHINE.replace("2.6.35", "2.4.20"), QUICK.replace("100000", "900000"))
    with MachineExecutor() as executor:
        resume(Path("half"), executor=executor, progress=SilentDisplay(), rounds=2)
    assert metrics("half").equals(metrics("whole"))


def test_a_run_killed_at_any_trial_comes_to_the_same_numbers(iolab: CommandLine) -> None:
    text = f"{HEAD.replace('2', '20')}{READS}{TWO}"
    run(text, "whole")
    with iolab.start("run", "x.toml", "--out", "killed", "--seed", "7") as process:
        finished = iolab.cwd / "killed" / "trials"
        wait_until(lambda: len(list(finished.glob("*.parquet"))) >= 3 or process.poll() is not None, "three trials")
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    iolab("run", "--resume", "killed")
    assert metrics("killed").equals(metrics("whole"))


def test_a_file_that_a_drive_has_no_room_for_is_refused_and_leaves_nothing(here: Path) -> None:
    with pytest.raises(InputError, match="size_bytes"):
        run(f"{HEAD}{READS.replace('4MiB', '2GiB')}devices = [1]\n")
    assert not (here / "out").exists()


@pytest.mark.parametrize(
    ("kernel", "more", "said"),
    [
        ("6.1", "", "tells the drive no hint"),
        ("6.16", "direct = false\nengine = 'psync'\n", "direct writes to a drive without a filesystem"),
        ("6.16", "", None),
        ("5.10", "direct = false\nengine = 'psync'\n", None),
    ],
)
def test_a_hint_that_the_kernel_tells_no_drive_is_refused(here: Path, kernel: str, more: str, said: str | None) -> None:
    writes = f"[workloads.w]\nread_percent = 0\nfile_size = '4MiB'\noperations = 9\nwrite_hint = 'short'\n{more}"
    text = f"machine = 'model:nvme'\nrounds = 1\n{writes}[settings.s]\nmachine = {{ kernel = '{kernel}' }}\n"
    if said is None:
        run(text)
        return
    with pytest.raises(InputError, match=rf"^x\.toml:7: workloads\.w\.write_hint: .*{said}"):
        run(text)
    assert not (here / "out").exists()


KEYS = ["kernel", "hz", "cpus.count", "cpus.jitter", "memory.bytes", "drives.0.queue.nr_requests", "drives.0.scheduler"]
KEYS += ["drives.0.scheduler.slice_idle", "drives.0.device", "drives.0.device.capacity_bytes", "drives.0.filesystem"]
VALUES = st.one_of(st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=8), st.booleans(), st.just("cfq"))


@given(st.sampled_from(KEYS), VALUES)
@settings(max_examples=60, deadline=None)
def test_any_key_with_any_value_is_taken_or_told_on_its_line(key: str, value: Any) -> None:
    shown = str(value) if isinstance(value, float) else json.dumps(value)
    text = f"{HEAD}{READS}[settings.s]\nmachine = {{ '{key}' = {shown} }}\n"
    try:
        experiment(text)
    except InputError as error:
        assert all(line.startswith("x.toml:8:") for line in str(error).splitlines()), str(error)


def test_a_job_that_polls_reads_faster_and_keeps_its_cpu_busy() -> None:
    text = """machine = "model:xpoint"
rounds = 1
[workloads.reads]
pattern = "random"
file_size = "64MiB"
duration = "10ms"
poll = [false, true]
[settings.only]
"""
    of_all = run(text).metrics.filter(polars.col("op") == "all")

    def value(metric: str, poll: str) -> float:
        of_one = (polars.col("metric") == metric) & (polars.col("workload") == f"reads[poll={poll}]")
        return float(of_all.filter(of_one)["value"].item())

    assert value("iops", "true") > 1.05 * value("iops", "false")
    assert value("cpu_percent", "true") > 98 > 60 > value("cpu_percent", "false")


PROMISED = """machine = "model:nvme"
rounds = 2
[workloads.pair]
kind = "mix"
duration = "100ms"
[workloads.pair.groups.database]
[workloads.pair.groups.backup]
[workloads.pair.jobs.query]
group = "database"
[workloads.pair.jobs.copy]
group = "backup"
[settings.plain]
[settings.sorted]
scheduler = { name = "mq-deadline" }
[settings.promised]
workload = { groups = { database = { io_latency = "10s" } } }
"""


def test_a_setting_that_changes_no_value_is_said_to(iolab: CommandLine) -> None:
    iolab.write("promise.toml", PROMISED)
    (doubt,) = iolab("run", "promise.toml", "--out", "run", "--json").json()["doubts"]
    assert doubt.startswith("promised differs from plain in no value of any round: this load has no use")
