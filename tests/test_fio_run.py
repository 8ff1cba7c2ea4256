"""fio job files end to end: on the engine, by fio itself, both in one experiment, on files, devices and examples."""

import importlib.util
import json
import os
import re
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from iolab.files import store
from iolab.files.importer.run_import import open_run
from iolab.machines.host.fio_record import bucket
from iolab.machines.system import command
from support.command_line import CommandLine, wait_until
from support.devices import MIB, attach, detach, sparse_file
from support.runs import faults, statuses

# A path below /dev, where memory is mounted, is a device to a job file.
pytestmark = pytest.mark.disk
ROOT = Path(__file__).parents[1]
NEEDS_FIO = pytest.mark.skipif(command.find("fio") is None, reason="fio is not installed")

JOBS = """\
[global]
bs=4k
size=2m
ioengine=psync
[readers]
rw=randread
numjobs=2
[writer]
stonewall
rw=write
verify=crc32c
[mix]
stonewall
rw=randrw
rwmixread=70
nrfiles=2
"""
BOTH = """\
rounds = 1
[target]
kind = "directory"
path = "."
[workloads.job]
kind = "fio"
file = "job.fio"
[settings.iolab]
[settings.fio]
workload = { runner = "fio" }
"""


def values(run: Path, metric: str) -> dict[tuple[str, str], float]:
    """(setting, phase) -> the metric, of all operations."""
    frame = store.read(run).metrics
    return {
        (row["setting"], row["phase"]): row["value"]
        for row in frame.iter_rows(named=True)
        if row["metric"] == metric and row["op"] == "all" and row["value"] is not None
    }


@NEEDS_FIO
def test_both_runners_do_the_same_operations(iolab: CommandLine) -> None:
    iolab.write("job.fio", JOBS)
    iolab("run", iolab.write("both.toml", BOTH), "--out", "out")
    assert statuses(iolab.cwd / "out") == ["ok", "ok"]
    ops = values(iolab.cwd / "out", "ops")
    expected = {"readers": 1024, "writer": 512, "mix": 512}
    assert ops == {(setting, phase): count for setting in ("iolab", "fio") for phase, count in expected.items()}
    latency = values(iolab.cwd / "out", "latency_ns_p90")
    assert set(ops) == set(latency)
    assert min(latency.values()) > 0


@NEEDS_FIO
def test_time_bound_jobs_last_as_long_with_either(iolab: CommandLine) -> None:
    iolab.write("job.fio", "[a]\nrw=randread\nsize=1m\nioengine=psync\nruntime=400ms\ntime_based\nramp_time=200ms\n")
    iolab("run", iolab.write("both.toml", BOTH), "--out", "out")
    measured = values(iolab.cwd / "out", "measured_s")
    # Without its time, each ends when it has read 1 MiB; beside another load, each may end later.
    assert min(measured["iolab", "main"], measured["fio", "main"]) > 0.3


@pytest.mark.parametrize("engine", [pytest.param("fio", marks=NEEDS_FIO), "iolab"])
def test_a_job_file_runs_by_itself(iolab: CommandLine, engine: str) -> None:
    (iolab.cwd / "data").mkdir()
    iolab.write("job.fio", f"[global]\ndirectory={iolab.cwd}/data\n{JOBS.removeprefix('[global]')}")
    iolab("run", "job.fio", "--engine", engine, "--out", "out")
    assert statuses(iolab.cwd / "out") == ["ok"]
    assert not any((iolab.cwd / "data").iterdir())


def test_a_run_keeps_the_job_file_and_resumes_without_it(iolab: CommandLine) -> None:
    iolab.write("job.fio", "[a]\nrw=read\nsize=1m\nioengine=psync\n")
    text = BOTH.partition("[settings.iolab]")[0]
    iolab("run", iolab.write("one.toml", text), "--out", "out")
    (iolab.cwd / "job.fio").unlink()
    iolab("run", "--resume", "out", "--rounds", "2")
    assert statuses(iolab.cwd / "out") == ["ok", "ok"]


def test_a_file_that_holds_data_is_read_and_not_written_to(iolab: CommandLine) -> None:
    data = iolab.write("precious", "x" * MIB)
    iolab.write("read.fio", f"[a]\nrw=randread\nfilename={data}\nioengine=psync\n")
    iolab("run", "read.fio", "--out", "out")
    iolab.write("write.fio", f"[a]\nrw=randwrite\nsize=1m\nfilename={data}\n")
    for engine in ("iolab", "fio"):
        refused = iolab("run", "write.fio", "--engine", engine, status=2)
        refused.assert_one_clear_line(2, "precious", "holds 1 MiB that iolab did not write")
    assert data.read_text() == "x" * MIB


@pytest.mark.root
def test_a_device_has_to_be_free_of_data(iolab: CommandLine) -> None:
    device = attach(sparse_file(iolab.cwd / "disk", 16 * MIB))
    try:
        iolab.write("job.fio", f"[a]\nrw=randwrite\nbs=64k\nfilename={device}\ndirect=1\nioengine=libaio\n")
        iolab("run", "job.fio", "--out", "out")
        assert values(iolab.cwd / "out", "bytes")["default", "main"] == 16 * MIB
        command.run(["mkfs.ext4", "-q", str(device)], package="e2fsprogs", where=str(device))
        for engine in ("iolab", "fio"):
            iolab("run", "job.fio", "--engine", engine, status=2).assert_one_clear_line(
                2, str(device), "ext4 signature"
            )
    finally:
        detach(device)


def test_an_experiment_names_the_places_that_its_job_file_names(iolab: CommandLine) -> None:
    iolab.write("job.fio", "[a]\nrw=read\nsize=1m\nfilename=/nowhere/x\nioengine=psync\n")
    text = BOTH.partition("[settings.iolab]")[0]
    refused = iolab("run", iolab.write("one.toml", text), status=2)
    refused.assert_one_clear_line(2, "one.toml:5:", "/nowhere/x", "[target]", "relocate = true")
    iolab("run", iolab.write("moved.toml", f"{text}relocate = true\n"), "--out", "out")
    assert statuses(iolab.cwd / "out") == ["ok"]


def test_a_wrong_job_file_is_told_by_its_own_lines(iolab: CommandLine) -> None:
    iolab.write("job.fio", "[a]\nrw=read\nsize=1m\nratemin=3\n")
    line = "job.fio:4: ratemin: fio has this option, iolab does not; leave it out, or let fio run it: --engine fio"
    assert iolab("run", "job.fio", status=2).stderr == f"iolab: {line}\n"
    refused = iolab("run", iolab.write("both.toml", BOTH), status=2)
    assert f"workloads.job.file: {line}" in refused.stderr


def ran(iolab: CommandLine, job: str) -> Path:
    """The run of a job file in the current directory."""
    iolab.write("job.fio", f"{job}directory=.\n")
    iolab("run", "job.fio", "--out", "out")
    assert statuses(iolab.cwd / "out") == ["ok"]
    return iolab.cwd / "out"


def metrics_by_key(run: Path) -> dict[str, float | None]:
    return dict(store.read(run).metrics.select("key", "value").iter_rows())


def test_reads_and_writes_of_a_mix_have_their_own_sizes(iolab: CommandLine) -> None:
    found = metrics_by_key(ran(iolab, "[mix]\nrw=randrw\nbs=8k,64k,4k\nsize=4m\nioengine=psync\n"))
    assert found["read.bytes"] == 8192 * (found["read.ops"] or 0) > 0
    assert found["write.bytes"] == 65536 * (found["write.ops"] or 0) > 0


def test_each_job_begins_after_its_own_delay(iolab: CommandLine) -> None:
    job = "[global]\nsize=64k\nrw=read\n[now]\n[soon]\nstartdelay=200ms\n[later]\nstartdelay=500ms\nnumjobs=2\n"
    run = ran(iolab, job.replace("[global]\n", "[global]\ndirectory=.\n") + "size=64k\n")
    (record,) = (one for one in store.read(run).record(0).phases if one["phase"] == "main")
    finished = {one["name"]: one["finished_ns"] for group in record["groups"] for one in group["jobs"]}
    assert finished["soon"] >= 200_000_000
    assert min(finished["later.0"], finished["later.1"]) >= 500_000_000
    intervals = store.read(run).intervals()
    active = intervals.filter((intervals["job"] == "later.0") & (intervals["op"] == "read") & (intervals["value"] > 0))
    assert active.height > 0
    assert active["start_ns"].min() >= 400_000_000, "intervals are 100 ms long"


SEARCH = "rw=randread\nsize=4m\nioengine=io_uring\niodepth=4\nlatency_window=20ms\ntime_based\nruntime=60\n"


def test_a_latency_that_every_depth_keeps_leads_to_the_deepest(iolab: CommandLine) -> None:
    run = ran(iolab, f"[deep]\n{SEARCH}latency_target=100s\nlatency_percentile=50\n")
    assert metrics_by_key(run)["queue_depth_found"] == 4
    (note,) = (note for note in store.read(run).record(0).notes if "queue depth 4 keeps" in note)
    assert "50 % of the I/Os within 100s" in note and "(tried: 1, 2, 4, 4)" in note


def test_what_a_search_found_stands_on_the_screen(iolab: CommandLine) -> None:
    (iolab.cwd / "job.fio").write_text(f"[deep]\n{SEARCH}latency_target=100s\nlatency_percentile=50\n")
    experiment = BOTH.replace("rounds = 1", "rounds = 2").split("[settings")[0]
    said = iolab("run", iolab.write("search.toml", experiment), "--out", "out").stdout
    assert re.search(r"queue depth found\s+4\b", said)
    assert re.search(r"^Search: round 1: .*queue depth 4 keeps 50 % .*\(tried: 1, 2, 4, 4\)$", said, re.MULTILINE)
    (iolab.cwd / "job.fio").write_text(f"[fast]\n{SEARCH}bs=1m\nlatency_target=1us\n")
    said = iolab("run", "search.toml", "--out", "none").stdout
    assert "No value of queue depth found: no depth met the target" in said
    assert "no queue depth keeps 100 % of the I/Os within 1us" in said


def test_a_latency_that_no_depth_keeps_is_told_with_the_reason(iolab: CommandLine) -> None:
    run = ran(iolab, f"[fast]\n{SEARCH}bs=1m\nlatency_target=1us\n")
    frame = store.read(run).metrics
    (row,) = frame.filter(frame["key"] == "queue_depth_found").iter_rows(named=True)
    assert row["value"] is None
    assert row["reason"].startswith("no depth met the target")
    assert any("no queue depth keeps 100 % of the I/Os within 1us" in note for note in store.read(run).record(0).notes)


@pytest.mark.parametrize("options", ["verify_pattern=0xdeadbeef", 'verify=crc32c\nverify_pattern="abc"'])
def test_a_pattern_is_written_read_back_and_said_to_be_verified(iolab: CommandLine, options: str) -> None:
    iolab.write("job.fio", f"[filled]\nrw=randwrite\nbs=4k,8k\nsize=1m\ndirectory=.\n{options}\n")
    done = iolab("run", "job.fio", "--out", "out")
    assert "verified, all as written" in done.stdout


def test_null_operations_are_no_reads_in_any_table(iolab: CommandLine) -> None:
    run = ran(iolab, "[nothing]\nrw=randrw\nsize=4m\nioengine=null\n")
    data = store.read(run)
    assert set(data.metrics["op"].drop_nulls()) == {"null", "all"}
    found = metrics_by_key(run)
    assert found["null.ops"] == found["ops"] == 1024
    for table in ("plain", "csv", "json", "markdown"):
        shown = iolab("show", "out", "--as", table).stdout
        assert not re.search(r"\bread\b", shown), table
    intervals = data.intervals()
    assert not {"read", "write"} & set(intervals["op"])


def test_options_without_effect_are_told(iolab: CommandLine) -> None:
    iolab.write("job.fio", "[a]\nrw=read\nsize=1m\nthread\nwrite_bw_log=x\nioengine=null\ndirectory=.\n")
    done = iolab("run", "job.fio", "--out", "out")
    assert done.stderr.startswith("job.fio: without effect on iolab's engine: thread, write_bw_log\n")


def test_settings_in_words_are_compared_by_a_job_file(iolab: CommandLine) -> None:
    iolab.write("job.fio", "[a]\nrw=randread\nsize=1m\ndirect=1\nioengine=libaio\n")
    settings = ["--setting", "scheduler=none", "--setting", "scheduler=bfq;nr_requests=32"]
    iolab("run", "job.fio", "--machine", "model:ex920-2025", *settings, "--rounds", "2", "--out", "out")
    run = open_run(iolab.cwd / "out")
    assert sorted(set(run.metrics["setting"])) == ["bfq-32", "none"]
    wrong = iolab("run", "job.fio", "--setting", "bfq", status=2)
    wrong.assert_one_clear_line(2, "--setting bfq", "expected CONTROL=VALUE")
    iolab.write("x.toml", BOTH)
    iolab("run", "x.toml", "--setting", "scheduler=bfq", status=2).assert_one_clear_line(2, "only for a fio job file")


def test_what_is_no_job_file_takes_no_engine(iolab: CommandLine) -> None:
    path = iolab.write("x.toml", BOTH)
    iolab("run", path, "--engine", "fio", status=2).assert_one_clear_line(2, "--engine", "only for a fio job file")
    iolab.write("job.fio", JOBS)
    iolab("run", "job.fio", "--engine", "foi", status=2).assert_one_clear_line(2, "did you mean fio?")


def test_without_fio_the_error_says_how_to_get_it(
    iolab: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from iolab.base.errors import MachineError
    from iolab.machines.host import fio

    monkeypatch.setattr(command, "find", lambda tool: None)
    with pytest.raises(MachineError, match=r"fio is not installed; install it: sudo apt-get install fio"):
        fio.run(a_fio_phase(), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("machine", ["host", "model:nvme"])
def test_whether_a_steady_state_was_reached_stands_on_the_screen(iolab: CommandLine, machine: str) -> None:
    job = "[a]\nrw=randread\nsize=1m\nss=iops:1000000000\nss_dur=200ms\nss_interval=100ms\ntime_based\nruntime=60\n"
    iolab.write("job.fio", job)
    # Reads from the page cache vary by a million a second if this process waits for a CPU.
    done = iolab("run", "job.fio", "--machine", machine, "--out", "out")
    assert 'Steady: round 1: main: job "a": steady state reached after 200ms: largest distance' in done.stdout
    [value] = iolab("show", "out", "--as", "csv", "--metric", "steady_after_ns").stdout.splitlines()[1:]
    assert value.endswith(",200000000.0") or ",200000000" in value


@NEEDS_FIO
def test_fios_own_verdict_on_a_steady_state_is_told(iolab: CommandLine) -> None:
    options = "ss=iops:1000000\nss_dur=2\ntime_based\nruntime=60\nrate_iops=100\ndirectory=.\n"
    iolab.write("job.fio", f"[a]\nrw=randread\nsize=1m\n{options}")
    done = iolab("run", "job.fio", "--engine", "fio", "--out", "out")
    assert 'job "a": steady state reached: ' in done.stdout and ", to be below 1e+06" in done.stdout


@NEEDS_FIO
def test_the_installed_fio_decides_which_options_there_are_before_anything_is_laid_out(iolab: CommandLine) -> None:
    iolab.write("job.fio", "[a]\nrw=read\nsize=1m\ndirectory=.\niodept=1\n")
    done = iolab("run", "job.fio", "--engine", "fio", "--out", "out", status=2)
    done.assert_one_clear_line(2, "phase main", "refuses the jobs", "Bad option <iodept=1>", "Did you mean iodepth?")
    iolab.write("flow.fio", "[a]\nrw=read\nsize=1m\ndirectory=.\nflow=1\nss=iops:10%\nss_dur=5\n")
    iolab("run", "flow.fio", "--engine", "fio", "--out", "flow")


def a_fio_phase() -> Any:
    from iolab.domain.workload.fio_file import job_file
    from iolab.domain.workload.fio_file.ini import JobFileProblems
    from iolab.domain.workload.fio_file.translate import phases, plan

    problems = JobFileProblems("job.fio")
    jobs = job_file.read("[a]\nsize=1m\nrw=write\n", problems, runner="fio", environment={})
    found = plan(jobs, default_size=None, problems=problems, runner="fio")
    return phases(found, seed=1, devices=1)[0]


@NEEDS_FIO
def test_killing_the_run_leaves_no_fio_behind(iolab: CommandLine, leftovers: None) -> None:
    iolab.write("job.fio", "[a]\nrw=randread\nsize=1m\nioengine=psync\nruntime=60\ntime_based\ndirectory=.\n")
    with iolab.start("run", "job.fio", "--engine", "fio", "--out", "out") as process:
        wait_until(lambda: bool(jobs_of_fio(iolab)), "fio to run")
        os.killpg(process.pid, signal.SIGKILL)
    wait_until(lambda: not jobs_of_fio(iolab), "fio to end")
    iolab("restore")


@NEEDS_FIO
def test_a_killed_fio_is_named_and_leaves_nothing(iolab: CommandLine, leftovers: None) -> None:
    iolab.write("job.fio", "[a]\nrw=randread\nsize=1m\nioengine=psync\nruntime=60\ntime_based\ndirectory=.\n")
    with iolab.start("run", "job.fio", "--engine", "fio", "--out", "out") as process:
        wait_until(lambda: bool(jobs_of_fio(iolab)), "fio to run")
        os.kill(jobs_of_fio(iolab)[0], signal.SIGKILL)
        _, stderr = process.ended()
    assert process.returncode == 3, stderr
    assert "fio was killed by SIGKILL" in stderr


def jobs_of_fio(iolab: CommandLine) -> list[int]:
    """Processes of fio that run jobs (not `fio --version`) and whose environment has this test's state directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = f"IOLAB_STATE_DIR={iolab.state_dir}".encode() in (process / "environ").read_bytes()
            if is_ours and b"--output-format=json+" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def test_issue_792_verifying_while_others_are_written_finds_no_false_mismatch(iolab: CommandLine) -> None:
    """Blocks are overwritten again and again, several at once, and some are read meanwhile."""
    options = "size=256k\nbs=4k\nio_size=16m\nnorandommap\niodepth=16\nioengine=io_uring\ndirectory=.\n"
    iolab.write("job.fio", f"[a]\nrw=randrw\nverify=crc32c\nverify_backlog=8\n{options}")
    iolab("run", "job.fio", "--out", "out")
    assert (faults(iolab.cwd / "out"), statuses(iolab.cwd / "out")) == ([], ["ok"])


@NEEDS_FIO
def test_issue_731_messages_do_not_mix_with_the_report(iolab: CommandLine) -> None:
    """fio warns of these options on the stream that its report goes to."""
    iolab.write("job.fio", "[a]\nrw=randread\nsize=1m\nioengine=psync\niodepth=8\ndirectory=.\nrandom_generator=lfsr\n")
    done = iolab("run", "job.fio", "--engine", "fio", "--out", "out", "--json")
    json.loads(done.stdout)
    assert statuses(iolab.cwd / "out") == ["ok"]


@NEEDS_FIO
def test_a_value_that_fio_refuses_is_wrong_input(iolab: CommandLine) -> None:
    iolab.write("job.fio", "[a]\nrw=read\nsize=1m\nioengine=psync\nrandom_distribution=bogus\ndirectory=.\n")
    failed = iolab("run", "job.fio", "--engine", "fio", "--out", "out", status=2)
    failed.assert_one_clear_line(2, "refuses the jobs", "bogus")


@pytest.mark.parametrize("value", [0, 1, 63, 127, 129, 131, 254, 258, 1012, 12224])
def test_fios_bins_have_the_bounds_that_stat_c_gives_them(value: int) -> None:
    low, high, count = bucket(value, 3)
    assert (low <= value <= high, count) == (True, 3)
    if value >= 128:
        assert low + (high - low + 1) // 2 == value
        assert (high - low + 1) == 2 ** (value.bit_length() - 7)


def survey_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fio_examples", ROOT / "tools/fio_examples.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


NEEDS_EXAMPLES = pytest.mark.skipif(
    not Path("/usr/share/doc/fio/examples").is_dir(), reason="fio's examples are not installed: fio-examples"
)


@NEEDS_EXAMPLES
def test_the_page_says_of_fios_examples_what_is_true() -> None:
    tool = survey_tool()
    assert tool.text(tool.survey()) in (ROOT / "docs/reference/workloads/fio.md").read_text()


@NEEDS_EXAMPLES
@pytest.mark.long
def test_fios_examples_run_where_the_page_says_so(iolab: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made small: a few mebibytes, half a second, in a directory, where no drive takes commands."""
    for variable, text in {"FIO_RW": "randread", "FIO_IODEPTH": "4", "FIO_BS": "4k"}.items():
        monkeypatch.setenv(variable, text)
    tool = survey_tool()
    names = [example.name for example in tool.survey() if not example.on_engine and "uring-cmd" not in example.name]
    experiment = 'rounds = 1\n[target]\nkind = "directory"\npath = "."\n'
    for name in names:
        small = 'size = "4m", runtime = "500ms", loops = 1'
        experiment += f'[workloads."{name}"]\nkind = "fio"\nfile = "{tool.EXAMPLES / name}"\nrelocate = true\n'
        experiment += f"size = 4194304\noptions = {{ {small} }}\n"
    iolab("run", iolab.write("examples.toml", experiment), "--out", "out", "--seed", "1")
    run = iolab.cwd / "out"
    assert (faults(run), statuses(run)) == ([], ["ok"] * len(names))


def test_how_much_was_verified_is_said(iolab: CommandLine) -> None:
    job = "[global]\nbs=4k\nsize=1m\nioengine=psync\n[w]\nrw=write\nverify=crc32c\n"
    iolab.write("job.fio", job)
    iolab.write("both.toml", BOTH.partition("[settings.fio]")[0])
    said = iolab("run", "both.toml", "--out", "run").stdout
    assert "Data:   256 blocks (1 MiB) verified, all as written" in said
    iolab.write("job.fio", job.replace("verify=crc32c\n", ""))
    assert "verified" not in iolab("run", "both.toml", "--out", "plain").stdout
