"""Replays of traces: what of a trace is offered, on simulated machines and here, and how faithfully."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from iolab import _native
from iolab.base.errors import InputError
from iolab.base.trace_files import trace_of
from iolab.domain.summary import summarise
from iolab.domain.trial import LoadPhase
from iolab.domain.workload import KINDS
from iolab.domain.workload.trace import TraceOptions, copy_choice
from iolab.files.experiment import loads
from iolab.files.store import read
from iolab.machines.guest.plan import Plan, _with_traces
from iolab.machines.system import tracefs
from iolab.presentation.cli.invoke import invoke
from iolab.studies.trace import export
from iolab.studies.trace.export import frames
from iolab.studies.trace.replay import expected, experiment, place_of

RECORDED = Path(__file__).parent / "traces" / "trace-cmd-7.dat"
NO_TRACEFS = tracefs.root() is None or os.geteuid() != 0


def options(**given: Any) -> TraceOptions:
    return TraceOptions.model_validate({"file": str(RECORDED), **given})


def refusals(**given: Any) -> str:
    return "; ".join(conflict.what for conflict in KINDS["trace"].conflicts(options(**given)))


def table(path: Path, lines: list[str]) -> Path:
    """A trace of a line per I/O: `time:us,latency:us,operation,offset,size,pid`."""
    path.write_text("\n".join(lines) + "\n")
    return path


COLUMNS = "time:us,latency:us,operation,offset:B,size:B,pid"


@pytest.mark.parametrize("side", ["issued", "queued"])
def test_a_runs_copy_is_the_same_schedule_as_the_trace(side: str, tmp_path: Path) -> None:
    original = options(side=side)
    (text,) = original.attachments.values()
    copy = tmp_path / "copy.csv"
    copy.write_text(text)
    again = json.loads(_native.TraceSchedule.open(json.dumps(copy_choice(str(copy)))).summary(2**20))
    assert again == original.schedule
    assert original.schedule["ios"] > 20 and original.schedule["ended_share"] > 0.9


def test_every_request_of_the_recording_is_offered_once() -> None:
    rows = pl.concat(list(frames(trace_of([RECORDED]))))
    found = options().schedule
    data = rows.filter((rows["sectors"] > 0) & rows["operation"].is_in(["read", "write"]))
    assert sum(one["reads"] + one["writes"] for one in found["processes"]) == len(data)
    assert found["largest_bytes"] == int(data["sectors"].max() or 0) * 512  # type: ignore[arg-type]
    (phase,) = (phase for phase in KINDS["trace"].phases(options(), 1) if phase.measured)
    jobs = [job for group in phase.load["groups"] for job in group["jobs"]]
    assert sum(job["until"]["ops"] for job in jobs) == found["ios"]
    _native.check_load(json.dumps(phase.load))


def test_what_can_not_be_replayed_is_refused_with_its_key(tmp_path: Path) -> None:
    arrivals = table(tmp_path / "arrivals.csv", ["1,R,0,4096", "2,R,4096,4096"])
    assert "it is unknown what waited" in refusals(
        file=str(arrivals), columns="time:us,operation,offset:B,size:B", timing="dependent"
    )
    assert "above 0" in refusals(time_scale=0.0)
    assert "holds no I/O of 64KiB" in refusals(file_size="4KiB")
    assert "no such file" in refusals(file=str(tmp_path / "absent"))
    assert "nothing to replay of the device 1:2" in refusals(device="1:2")


def test_a_part_of_a_trace_and_another_pace(tmp_path: Path) -> None:
    path = table(tmp_path / "ten.csv", [f"{1000 * number},100,R,{4096 * number},4096,1" for number in range(10)])
    part = options(file=str(path), columns=COLUMNS, skip="3ms", take="4ms", time_scale=2.0)
    assert (part.schedule["ios"], part.schedule["elapsed_ns"]) == (4, 3_000_000)
    assert part.bytes_per_file(1) == 2**20


@pytest.mark.usefixtures("state_dir")
def test_one_command_compares_schedulers_by_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two processes of a simulated disk; the trace may be gone afterwards, for the run has its I/Os."""
    monkeypatch.chdir(tmp_path)
    lines = [
        f"{500 * number},100,{'RW'[number % 3 == 0]},{(number * 7919 % 3000) * 65536},{4096 << number % 3},{number % 2}"
        for number in range(300)
    ]
    path = table(tmp_path / "trace.csv", [*lines, "150001,50,F,0,0,1", "150002,50,D,0,65536,1", "150003,5,N,0,8,1"])
    command = ["replay", str(path), "--columns", COLUMNS, "--on", "model:ssd-2010", "--rounds", "1", "--seed", "3"]
    settings = ["--setting", "scheduler=deadline", "--setting", "scheduler=cfq"]
    assert invoke([*command, *settings, "--out", "run"]) == 0
    printed = capsys.readouterr()
    told = printed.out
    assert "left out: 1 of the trace's I/Os" in printed.err
    assert "cfq:" in told and "deadline:" in told and "of arrivals late, by more than 100 µs" in told
    path.unlink()
    data = read(Path("run"))
    values = {
        (row["setting"], row["metric"]): row["value"]
        for row in data.metrics.iter_rows(named=True)
        if row["op"] == "all"
    }
    for setting in ("deadline", "cfq"):
        assert values[setting, "ops"] == 300
        assert values[setting, "refused_discards"] == 0
        assert values[setting, "arrival_rate_share"] == pytest.approx(1, abs=0.01)
        assert values[setting, "queue_depth_distance"] > 0
    jobs = {group["name"] for group in data.record(0).phases[0]["groups"]}
    assert jobs == {"task-0", "task-1"}
    assert data.experiment.workloads["trace"].options.attachments  # of the copy


@pytest.mark.usefixtures("state_dir")
def test_the_latest_replay_stands_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table(
        tmp_path / "trace.csv", [f"{number},100,R,{number * 7919 % 3000 * 65536},4096,1" for number in range(300)]
    )
    command = ["replay", str(path), "--columns", COLUMNS, "--on", "model:one_disk", "--rounds", "1", "--seed", "3"]
    settings = ["--setting", "scheduler=bfq", "--setting", "scheduler=mq-deadline", "--setting", "scheduler=none"]
    run = tmp_path / "run"
    assert invoke([*command, *settings, "--time-scale", "0.001", "--out", str(run)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "of arrivals late" in line]
    found = [re.search(r"([\d.,]+) % of arrivals late.*99 % within ([\d.,]+) µs", line) for line in lines]
    late = [tuple(float(number.replace(",", "")) for number in one.groups()) for one in found if one is not None]
    assert len(set(late)) == 3, lines
    assert late == sorted(late, reverse=True)


@pytest.mark.usefixtures("state_dir")
def test_a_drive_that_takes_no_discards_refuses_them_and_that_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = table(tmp_path / "trace.csv", ["0,100,R,0,4096,1", "1000,50,D,0,65536,1", "2000,50,WZ,65536,65536,1"])
    command = ["replay", str(path), "--columns", COLUMNS, "--rounds", "1", "--seed", "3", "--timing", "dependent"]
    for place, refused in (("model:one_disk", 1), ("model:nvme", 0)):
        out = tmp_path / place.replace(":", "-")
        assert invoke([*command, "--on", place, "--out", str(out)]) == 0
        assert ("discards refused: 1 (" in capsys.readouterr().out) == bool(refused)
        (job,) = read(out).record(0).phases[0]["groups"][0]["jobs"]
        assert (job["replay"]["refused"], job["errors"]) == (refused, [])
        assert (job["discard"]["count"], job["discard"]["bytes"]) == (2 - refused, 65536 * (2 - refused))


@pytest.mark.usefixtures("state_dir")
@pytest.mark.parametrize("engine", ["io_uring", "libaio"])
def test_files_get_holes_and_zeroes(tmp_path: Path, engine: str) -> None:
    """Or refuse them, where their filesystem has none."""
    path = table(tmp_path / "trace.csv", ["0,100,W,0,65536,1", "1000,50,D,0,65536,1", "2000,50,WZ,65536,65536,1"])
    given = {"columns": COLUMNS, "timing": "dependent", "engine": engine, "direct": False}
    (tmp_path / "files").mkdir()
    text = experiment(path, place_of(str(tmp_path / "files"), destroy=False), [], given, rounds=1)
    (tmp_path / "x.toml").write_text(text)
    assert invoke(["run", str(tmp_path / "x.toml"), "--out", str(tmp_path / "run")]) == 0
    (job,) = read(tmp_path / "run").record(0).phases[0]["groups"][0]["jobs"]
    assert job["errors"] == [] and job["write"]["count"] == 1
    assert job["discard"]["count"] + job["replay"]["refused"] == 2


def test_the_place_decides_target_and_room(tmp_path: Path) -> None:
    directory = place_of(str(tmp_path), destroy=False)
    assert directory.room_bytes is None and directory.target[0] == 'kind = "directory"'
    model = place_of("model:nvme", destroy=False)
    assert model.room_bytes is not None and model.room_bytes > 2**30
    text = experiment(RECORDED, directory, ["scheduler=none;nr_requests=64", "scheduler=bfq"], {}, rounds=2)
    loaded = loads(text, "test")
    assert list(loaded.settings) == ["none-64", "bfq"]
    with pytest.raises(InputError, match="no such place"):
        place_of(str(tmp_path / "absent"), destroy=False)
    with pytest.raises(InputError, match="CONTROL=VALUE"):
        experiment(RECORDED, directory, ["bfq"], {}, rounds=1)


def test_a_device_of_large_blocks_gets_whole_ones(loop_device: Path) -> None:
    backing = subprocess.run(["losetup", "-nO", "BACK-FILE", loop_device], capture_output=True, text=True, check=True)
    command = ["losetup", "--find", "--show", "--sector-size", "4096", backing.stdout.strip()]
    large = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    try:
        text = experiment(RECORDED, place_of(large, destroy=True), [], {}, rounds=1)
    finally:
        subprocess.run(["losetup", "-d", large], check=True)
    assert loads(text, "test").workloads["trace"].options.align == 4096  # type: ignore[attr-defined]
    assert "align" not in experiment(RECORDED, place_of(str(loop_device), destroy=True), [], {}, rounds=1)


def test_a_guest_reads_the_trace_from_its_own_files(tmp_path: Path) -> None:
    phase = KINDS["trace"].phases(options(side="queued", timing="dependent"), 1)[-1]
    assert isinstance(phase, LoadPhase)
    plan = Plan(seed=1)
    load = _with_traces(plan, phase.load)
    replay = load["groups"][0]["jobs"][0]["replay"]
    (path,) = replay["trace"]["paths"]
    assert path in plan.archive
    packed = plan.packed()
    begin = packed.index(b"time,latency,operation")
    copy = tmp_path / "copy.csv"
    copy.write_bytes(packed[begin : packed.index(b"\0", begin)])
    again = _native.TraceSchedule.open(json.dumps(copy_choice(str(copy))))
    assert json.loads(again.summary(2**20))["digest"] == replay["digest"]


@contextmanager
def without_discards(directory: Path) -> Iterator[Path]:
    """A loop device of a file in memory of a filesystem that has no holes to punch."""
    directory.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "ramfs", str(directory)], check=True)
    try:
        file = directory / "image"
        with file.open("wb") as image:
            image.truncate(16 << 20)
        command = ["losetup", "--find", "--show", str(file)]
        device = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        try:
            yield Path(device)
        finally:
            subprocess.run(["losetup", "-d", device], check=True)
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


@pytest.mark.skipif(NO_TRACEFS, reason="needs root and a mounted tracefs")
@pytest.mark.parametrize("engine", ["io_uring", pytest.param("libaio", marks=pytest.mark.long)])
def test_discards_of_a_trace_reach_the_device(loop_device: Path, tmp_path: Path, engine: str) -> None:
    """One that takes none refuses them, and no write comes instead. Neither has FUA: a flush follows the last write."""
    lines = ["0,100,W,0,4096,1", "1000,90,D,1048576,2097152,1", "3000,90,WF,0,4096,1"]
    path = table(tmp_path / "trace.csv", lines)
    given = {"columns": COLUMNS, "timing": "dependent", "engine": engine}
    with without_discards(tmp_path / "ram") as other:
        for device, refused in ((loop_device, 0), (other, 1)):
            text = experiment(path, place_of(str(device), destroy=True), ["scheduler=none"], given, rounds=1)
            (tmp_path / "x.toml").write_text(text)
            recorded, out = tmp_path / f"{refused}.dat", tmp_path / f"run-{refused}"
            run = ["run", str(tmp_path / "x.toml"), "--out", str(out)]
            code = f"from iolab.presentation.cli.invoke import invoke; raise SystemExit(invoke({run!r}))"
            assert invoke(["record", str(device), "-o", str(recorded), "--", sys.executable, "-c", code]) == 0
            (job,) = read(out).record(0).phases[0]["groups"][0]["jobs"]
            assert (job["replay"]["refused"], job["errors"], "discard" in job) == (refused, [], not refused)
            (copy,) = options(file=str(recorded)).attachments.values()
            rows = [line.split(",")[2:5] for line in copy.splitlines()[1:]]
            assert (["D", "1048576", "2097152"] in rows) == (not refused)
            assert [row[0] for row in rows if row[0] != "R"] == ["W", *["D"] * (1 - refused), "W", "F"]


@pytest.mark.skipif(NO_TRACEFS, reason="needs root and a mounted tracefs")
def test_the_trace_of_a_replay_has_the_same_requests_in_the_same_order(loop_device: Path, tmp_path: Path) -> None:
    """Recorded while it runs, on a loop device without a scheduler that could merge or sort. Each I/O of the trace
    ended before the next, so that they come one by one on a busy machine too."""
    lines = [
        f"{2000 * number},1900,{'RW'[number % 3 == 0]},{(number * 37 % 400) * 65536},{4096 << number % 4},7"
        for number in range(200)
    ]
    path = table(tmp_path / "trace.csv", [*lines, "401000,50,F,0,0,7"])
    where = place_of(str(loop_device), destroy=True)
    given = {"columns": COLUMNS, "layout": False, "timing": "dependent", "time_scale": 0.1}
    (tmp_path / "x.toml").write_text(experiment(path, where, ["scheduler=none"], given, rounds=1))
    recorded = tmp_path / "again.dat"
    run = ["run", str(tmp_path / "x.toml"), "--out", str(tmp_path / "run")]
    code = f"from iolab.presentation.cli.invoke import invoke; raise SystemExit(invoke({run!r}))"
    command = [sys.executable, "-c", code]
    assert invoke(["record", str(loop_device), "-o", str(recorded), "--", *command]) == 0
    log = tmp_path / "log"
    export(trace_of([recorded]), "iolog", log)
    seen = [tuple(line.split()[2:]) for line in log.read_text().splitlines()[3:-1]]
    words = {"R": "read", "W": "write"}
    expected = [
        (words[operation], offset, size) for _, _, operation, offset, size, _ in (line.split(",") for line in lines)
    ]
    # iolab looks at a device before it writes to it.
    first = next(at for at in range(len(seen)) if seen[at : at + 5] == expected[:5])
    assert [one for one in seen[first:] if one[0] != "sync"][: len(expected)] == expected
    (trial,) = read(tmp_path / "run").trials["trial"]
    (job,) = read(tmp_path / "run").record(trial).phases[0]["groups"][0]["jobs"]
    assert job["replay"]["arrivals"] == len(lines) + 1
    assert job["sync"]["count"] == 1


@pytest.mark.parametrize(("apart_ns", "is_full"), [(10_000_000, False), (200, True)])
def test_whether_a_device_keeps_up_is_said_before_the_replay(
    apart_ns: int, is_full: bool, loop_device: Path, tmp_path: Path
) -> None:
    """A hundred reads a second, of which 64 are in flight if each takes 0.6 s, and five million."""
    lines = [f"{apart_ns * number},R,{(number * 7919 % 16000) * 4096},4096" for number in range(3000)]
    path = table(tmp_path / "trace.csv", lines)
    given = {"columns": "time:ns,operation,offset:B,size:B"}
    found = expected(path, str(loop_device), place_of(str(loop_device), destroy=True), given)
    assert found is not None
    assert found.offered_per_s == pytest.approx(1e9 / apart_ns, rel=0.01)
    assert found.is_full == is_full, found
    assert ("because the queue is full" in str(found)) == is_full


def test_nothing_is_read_before_a_replay_that_has_no_times_of_its_own(loop_device: Path, tmp_path: Path) -> None:
    place = place_of(str(loop_device), destroy=True)
    assert expected(RECORDED, str(loop_device), place, {"time_scale": 0.0, "timing": "dependent"}) is None
    assert expected(RECORDED, str(tmp_path), place_of(str(tmp_path), destroy=False), {}) is None


@pytest.mark.usefixtures("state_dir")
def test_a_replay_that_is_late_is_said_first_and_judges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reads at random, a hundred times as many as a disk does in that time."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{50 * number},20,R,{(number * 7919 % 30000) * 65536},4096,1" for number in range(2000)]
    path = table(tmp_path / "trace.csv", lines)
    command = ["replay", str(path), "--columns", COLUMNS, "--on", "model:quad-7200", "--rounds", "4", "--seed", "3"]
    settings = ["--setting", "scheduler=deadline", "--setting", "scheduler=noop"]
    assert invoke([*command, *settings, "--out", "run"]) == 0
    told = capsys.readouterr().out.splitlines()
    late = next(place for place, line in enumerate(told) if "of a replay's arrivals were late" in line)
    verdicts = [place for place, line in enumerate(told) if "undecided" in line]
    assert late < 6 and "arrivals were up to" in "".join(told[late : late + 4])
    assert all(place > late for place in verdicts[1:])
    summary = summarise(read(Path("run")))
    assert {one.judgement.verdict for one in summary.comparisons} == {"undecided"}
