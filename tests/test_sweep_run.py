"""`iolab sweep`: a matrix of experiments and machines, killed anywhere, goes on; nothing is lost or counted twice."""

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from conftest import CommandLine
from fake_machine import SilentDisplay
from iolab.base.errors import InputError, InterruptedRun
from iolab.domain.executor import OnProgress, ShouldStop
from iolab.domain.record import Record
from iolab.domain.trial import Trial
from iolab.files.store import read, trial_file
from iolab.files.store.journal import Journal
from iolab.files.store.sweep_directory import SweepDirectory
from iolab.machines.model import ModelExecutor
from iolab.studies.run import cells, origin
from iolab.studies.run.cells import CellRequest, Source, SweepResult
from iolab.studies.run.machine_executor import MachineExecutor
from support.runs import events, times_finished
from test_run_ahead import Recording

EXPERIMENT = """\
machine = "model:one_disk"
rounds = 2
[workloads.reads]
pattern = "random"
file_size = "64MiB"
duration = "20ms"
[settings.none]
scheduler = "none"
[settings.deadline]
scheduler = "mq-deadline"
"""
MACHINES = ["model:one_disk", "model:nvme", "model:no_such_machine"]
TRIALS = 2 * 2 * 2


class Killed(BaseException):
    """A kill -9: nothing after it runs."""


def made(out: Path, *machines: str) -> SweepDirectory:
    source = Source(Path("reads.toml"), EXPERIMENT)
    return cells.create([CellRequest(source, machine) for machine in machines or MACHINES], out, seed=7)


def complete(out: Path, simulate: Callable[[Trial, OnProgress, ShouldStop], Record] | None = None) -> SweepResult:
    with ModelExecutor(cores=3, simulate=simulate or Recording()) as executor:
        return cells.complete(SweepDirectory.open(out), executor=executor, progress=SilentDisplay())


def finished(out: Path) -> list[int]:
    """How often each run and trial counts."""
    return [times for _, run in SweepDirectory.open(out).runs for times in times_finished(run).values()]


def test_every_cell_is_a_run_and_one_that_cannot_be_says_why(tmp_path: Path) -> None:
    directory = made(tmp_path / "out")
    done = complete(tmp_path / "out")
    assert [cell.run for cell in directory.cells] == ["reads.one_disk", "reads.nvme", "reads.no_such_machine"]
    assert "no_such_machine" in (directory.cells[2].impossible or "")
    assert (done.runs, done.impossible, done.trials_by_status) == (2, 1, {"ok": TRIALS})
    assert finished(tmp_path / "out") == [1] * TRIALS
    for _, run in directory.runs:
        data = read(run)
        assert data.problems == [] and data.seed == 7 and data.state.ended
    again = Recording()
    assert complete(tmp_path / "out", again).trials_by_status == {"ok": TRIALS}
    assert again.begun == []


def test_records_are_stored_as_they_end_whatever_their_order(tmp_path: Path) -> None:
    made(tmp_path / "out", "model:one_disk", "model:nvme")
    recording = Recording()
    slow: list[str] = []

    def simulate(trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        if trial.trial == 0 and trial.machine == "model:one_disk":
            while len(finished(tmp_path / "out")) < TRIALS - 1:
                assert not should_stop()
            slow.append(trial.machine)
        return recording(trial, on_progress, should_stop)

    complete(tmp_path / "out", simulate)
    assert slow == ["model:one_disk"]
    assert finished(tmp_path / "out") == [1] * TRIALS


@pytest.mark.parametrize("write", range(0, 2 * TRIALS, 3))
def test_a_kill_at_any_write_loses_nothing_that_was_finished(
    tmp_path: Path, write: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before that of the journals' lines and trials' files; what was finished before is not run again."""
    made(tmp_path / "out", "model:one_disk", "model:nvme")
    left = [write]

    def counted(function: Callable[..., object]) -> Callable[..., object]:
        def counting(*arguments: object, **options: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return function(*arguments, **options)

        return counting

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "append", counted(Journal.append))
        patched.setattr(trial_file, "write", counted(trial_file.write))
        with pytest.raises(Killed):
            complete(tmp_path / "out")
    before = sum(finished(tmp_path / "out"))
    files = len(list((tmp_path / "out").glob("*/trials/*.parquet")))
    again = Recording()
    complete(tmp_path / "out", again)
    assert finished(tmp_path / "out") == [1] * TRIALS
    assert before <= files == TRIALS - len(again.begun)


def test_a_stop_keeps_what_is_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    made(tmp_path / "out", "model:one_disk", "model:nvme")
    recording = Recording()

    def simulate(trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        if len(recording.begun) == 5:
            raise InterruptedRun("somebody said so")
        return recording(trial, on_progress, should_stop)

    with pytest.raises(InterruptedRun, match=r"continue with: iolab sweep --resume"):
        complete(tmp_path / "out", simulate)
    assert 0 < sum(finished(tmp_path / "out")) < TRIALS
    assert [event for _, run in SweepDirectory.open(tmp_path / "out").runs for event in events(run, "run_interrupted")]
    complete(tmp_path / "out")
    assert finished(tmp_path / "out") == [1] * TRIALS


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    directory = made(tmp_path / "out", "model:one_disk")
    with directory.locked(), pytest.raises(InputError, match="another iolab is running here"):
        complete(tmp_path / "out")


ON_THIS_MACHINE = """\
rounds = 2
target = {{ kind = "directory", path = "{place}" }}
[workloads.reads]
file_size = "1MiB"
duration = "20ms"
[settings.one]
[settings.two]
workload = {{ queue_depth = 2 }}
"""


def test_trials_of_this_machine_come_first_and_one_at_a_time(tmp_path: Path) -> None:
    """Whatever ran beside them would show in their numbers."""
    source = Source(Path("reads.toml"), ON_THIS_MACHINE.format(place=tmp_path))
    machines = ("model:one_disk", "host", "model:nvme")
    directory = cells.create([CellRequest(source, machine) for machine in machines], tmp_path / "out", seed=7)
    with MachineExecutor() as executor:
        executor._model = ModelExecutor(cores=2, simulate=Recording())
        done = cells.complete(directory, executor=executor, progress=SilentDisplay())
    assert done.trials_by_status == {"ok": 3 * 4}
    ends = {cell.run: [one["monotonic_ns"] for one in events(run, "trial_finished")] for cell, run in directory.runs}
    begins = [one["monotonic_ns"] for one in events(tmp_path / "out" / "reads.host", "trial_started")]
    of_models = [*ends["reads.one_disk"], *ends["reads.nvme"]]
    assert max(ends["reads.host"]) < min(of_models)
    assert all(began >= ended for began, ended in zip(begins[1:], ends["reads.host"], strict=False))


def test_a_cluster_takes_no_trials_of_this_machine(tmp_path: Path) -> None:
    class Cluster(ModelExecutor):
        def pin(self, host_of: Mapping[int, str]) -> None: ...

    source = Source(Path("reads.toml"), ON_THIS_MACHINE.format(place=tmp_path))
    directory = cells.create([CellRequest(source, "host")], tmp_path / "out", seed=7)
    with Cluster(cores=1) as executor, pytest.raises(InputError, match="a cluster's hosts are other ones"):
        cells.complete(directory, executor=executor, progress=SilentDisplay())


def test_what_somebody_else_made_is_not_run_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(Path("reads.toml"), ON_THIS_MACHINE.format(place=tmp_path))
    directory = cells.create([CellRequest(source, "host")], tmp_path / "out", seed=7)
    monkeypatch.setattr(origin, "is_ours", lambda experiment, state: False)
    refused = pytest.raises(InputError, match="has something run here, and was made by somebody else")
    with MachineExecutor() as executor, refused:
        cells.complete(directory, executor=executor, progress=SilentDisplay())


SWEEP = """\
seed = 3
[[sweep]]
experiments = ["reads.toml"]
machines = ["model:one_disk", "model:nvme"]
rounds = 1
[[sweep]]
experiments = ["reads.toml", "more/reads.toml"]
"""


def test_a_sweep_is_a_file(iolab: CommandLine) -> None:
    iolab.write("reads.toml", EXPERIMENT)
    (iolab.cwd / "more").mkdir()
    iolab.write("more/reads.toml", EXPERIMENT.replace("rounds = 2", "rounds = 3"))
    iolab.write("all.toml", SWEEP)
    iolab("sweep", "all.toml", "--out", "out")
    runs = [read(run) for _, run in SweepDirectory.open(iolab.cwd / "out").runs]
    assert [(run.path.name, run.machine_name, run.trials.height // 2) for run in runs] == [
        ("reads.one_disk", "model:one_disk", 1),
        ("reads.nvme", "model:nvme", 1),
        ("reads", "model:one_disk", 2),
        ("reads-2", "model:one_disk", 3),
    ]
    assert {run.seed for run in runs} == {3}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SWEEP.replace("rounds = 1", "rounds = 0"), "all.toml:5: sweep.0.rounds"),
        (SWEEP.replace('"model:nvme"', '"nvm"'), "nvm: no machine"),
        (SWEEP.replace("rounds = 1", "machine = 1"), "all.toml:5"),
        (SWEEP.replace('"model:one_disk", "model:nvme"', ""), "all.toml:4: sweep.0.machines: an empty list"),
        ("sweep = 1\n", "all.toml:1: sweep"),
    ],
)
def test_a_mistake_in_a_sweeps_file_is_one_line(iolab: CommandLine, text: str, said: str) -> None:
    iolab.write("reads.toml", EXPERIMENT)
    (iolab.cwd / "more").mkdir()
    iolab.write("more/reads.toml", EXPERIMENT)
    iolab.write("all.toml", text)
    iolab("sweep", "all.toml", "--out", "out", status=2).assert_one_clear_line(2, said)
    assert not (iolab.cwd / "out").exists()


def test_a_sweeps_file_names_its_machines_and_stands_alone(iolab: CommandLine) -> None:
    iolab.write("reads.toml", EXPERIMENT)
    iolab.write("all.toml", SWEEP)
    iolab("sweep", "all.toml", "--machine", "model:nvme", status=2).assert_one_clear_line(2, "leave it out")
    iolab("sweep", "all.toml", "reads.toml", status=2).assert_one_clear_line(2, "give it alone")


def test_a_sweep_from_the_command_line_and_its_grid(iolab: CommandLine) -> None:
    iolab.write("reads.toml", EXPERIMENT)
    machines = ("--machine", "model:one_disk", "--machine", "model:nvme")
    done = iolab("sweep", "reads.toml", *machines, "--seed", "1", "--out", "out")
    assert "2 machines, 2 comparisons" in done.stdout
    assert "model:one_disk" in done.stdout and "deadline" in done.stdout
    assert "! compared too, and not shown here: latency mean" in done.stdout
    tails = iolab("show", "out", "--metric", "latency_ns_p99").stdout
    assert "reads on model:one_disk: no setting has a value of latency p99: of fewer than" in " ".join(tails.split())
    assert "one setting" not in tails and "not shown here" not in tails
    rows = list(csv.DictReader(io.StringIO(iolab("show", "out", "--as", "csv").stdout)))
    assert [(row["machine"], row["setting"], row["against"]) for row in rows] == [
        ("model:one_disk", "deadline", "none"),
        ("model:nvme", "deadline", "none"),
    ]
    cells = iolab("show", "out", "--json").json()["cells"]
    assert [str(cell["ratio"]) for cell in cells] == [row["ratio"] for row in rows]
    assert cells == iolab("sweep", "--resume", "out", "--json").json()["cells"]
    iolab("show", "out", "--as", "tiobench", status=2).assert_one_clear_line(2, "is a table of one run")
    iolab("sweep", status=2).assert_one_clear_line(2, "name experiments")
    iolab("sweep", "reads.toml", "--machine", "nvme", status=2).assert_one_clear_line(2, "--machine")
