"""Kills, interruptions and damage: nothing is measured twice or lost, and the machine is as before."""

import os
import signal
import time
from pathlib import Path

import pytest
from support.command_line import CommandLine, Started, wait_until
from support.devices import loops_backed_under
from support.experiments import SCRATCH, TWO_SCHEDULERS, experiment, reads_for
from support.leftovers import look
from support.runs import events, faults, journal, statuses, times_finished

TRIALS = 6
DIRECTORY = 'kind = "directory"\npath = "."'


def start(iolab: CommandLine, target: str, duration: str = "700ms") -> Started:
    settings = TWO_SCHEDULERS if target is SCRATCH else "[settings.a]\n[settings.b]\nworkload = { queue_depth = 8 }\n"
    text = experiment(target, workload=reads_for(duration), settings=settings, rounds=TRIALS // 2)
    iolab.write("experiment.toml", text)
    return iolab.start("run", "experiment.toml", "--out", "run")


def wait_for_trial(run: Path, number: int, process: Started) -> None:
    """Until the trial that starts as the `number`th is well under way."""

    def reached() -> bool:
        assert process.poll() is None, process.communicate()
        return len(events(run, "trial_started")) >= number

    wait_until(reached, f"trial {number}")
    time.sleep(0.4)


def check_complete(run: Path) -> None:
    """Every trial finished for good exactly once, and well."""
    assert times_finished(run) == dict.fromkeys(range(TRIALS), 1)
    assert set(statuses(run)) == {"ok"}, faults(run)
    assert len(list((run / "trials").glob("*.parquet"))) == TRIALS
    assert journal(run)[-1]["event"] == "run_finished"


@pytest.mark.root
@pytest.mark.parametrize(
    ("number", "whole_group"),
    [
        pytest.param(1, False, id="first, parent"),
        pytest.param(3, True, id="middle, group"),
        pytest.param(TRIALS, False, id="last, parent", marks=pytest.mark.long),
        pytest.param(1, True, id="first, group", marks=pytest.mark.long),
        pytest.param(3, False, id="middle, parent", marks=pytest.mark.long),
        pytest.param(TRIALS, True, id="last, group", marks=pytest.mark.long),
    ],
)
def test_a_killed_run_resumes_where_it_was(iolab: CommandLine, number: int, whole_group: bool) -> None:
    run = iolab.cwd / "run"
    with start(iolab, SCRATCH) as process:
        wait_for_trial(run, number, process)
        if whole_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    finished = {path.name: path.read_bytes() for path in (run / "trials").glob("*.parquet")}
    assert len(finished) >= number - 1
    iolab("run", "--resume", "run")
    check_complete(run)
    for name, content in finished.items():
        assert (run / "trials" / name).read_bytes() == content, f"{name} was measured again"


@pytest.mark.root
def test_restore_takes_back_what_a_killed_run_left(iolab: CommandLine, tmp_path: Path) -> None:
    with start(iolab, SCRATCH) as process:
        wait_for_trial(iolab.cwd / "run", 1, process)
        os.killpg(process.pid, signal.SIGKILL)
    wait_until(lambda: "worker" not in processes_of(iolab), "the trial's process to be gone")
    left = loops_backed_under(tmp_path)
    told = iolab("restore").stdout
    assert not loops_backed_under(tmp_path)
    for device in left:
        assert device in told
    assert iolab("restore").stdout.count("\n") <= 1


def processes_of(iolab: CommandLine) -> str:
    return " ".join(look(iolab.cwd, iolab.state_dir).processes)


@pytest.mark.parametrize("target", [DIRECTORY, pytest.param(SCRATCH, marks=pytest.mark.root)], ids=["plain", "scratch"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_stops_soon_and_restores_everything(
    iolab: CommandLine, target: str, number: signal.Signals
) -> None:
    with start(iolab, target, duration="60s") as process:
        wait_for_trial(iolab.cwd / "run", 1, process)
        os.killpg(process.pid, number)
        _, stderr = process.ended()
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert "ok" not in statuses(iolab.cwd / "run")


@pytest.mark.root
def test_two_runs_on_one_device_the_second_is_refused(iolab: CommandLine, loop_device: Path) -> None:
    target = f'kind = "device"\npath = "{loop_device}"'
    with start(iolab, target, duration="30s") as first:
        wait_for_trial(iolab.cwd / "run", 1, first)
        iolab("run", "experiment.toml", "--out", "second", status=None).assert_one_clear_line(3, str(loop_device))
        assert first.poll() is None
        os.killpg(first.pid, signal.SIGINT)
        first.ended()
    assert not events(iolab.cwd / "second", "trial_finished")


def test_two_processes_in_one_run_directory_the_second_is_refused(iolab: CommandLine) -> None:
    with start(iolab, DIRECTORY, duration="30s") as first:
        wait_for_trial(iolab.cwd / "run", 1, first)
        iolab("run", "--resume", "run", status=None).assert_one_clear_line(2, "another iolab")
        os.killpg(first.pid, signal.SIGINT)
        first.ended()


@pytest.fixture
def finished_run(iolab: CommandLine) -> Path:
    with start(iolab, DIRECTORY, duration="60ms") as process:
        _, stderr = process.ended()
    assert process.returncode == 0, stderr
    check_complete(iolab.cwd / "run")
    return iolab.cwd / "run"


def test_a_torn_journal_tail_is_reported_and_the_rest_is_read(iolab: CommandLine, finished_run: Path) -> None:
    path = finished_run / "journal.jsonl"
    os.truncate(path, path.stat().st_size - 20)
    outcome = iolab("show", finished_run)
    assert "torn" in outcome.text
    assert "reads" in outcome.stdout
    iolab("run", "--resume", finished_run)
    check_complete(finished_run)
    assert "torn last line" not in iolab("show", finished_run).text


def test_a_truncated_trial_is_reported_the_rest_is_read_and_resuming_measures_it_again(
    iolab: CommandLine, finished_run: Path
) -> None:
    victim = sorted((finished_run / "trials").glob("*.parquet"))[2]
    os.truncate(victim, victim.stat().st_size // 2)
    outcome = iolab("show", finished_run)
    assert victim.name in outcome.text
    assert "reads" in outcome.stdout
    iolab("compare", finished_run)
    iolab("run", "--resume", finished_run)
    check_complete(finished_run)


def test_a_trial_file_that_is_gone_is_reported(iolab: CommandLine, finished_run: Path) -> None:
    victim = sorted((finished_run / "trials").glob("*.parquet"))[0]
    victim.unlink()
    assert victim.name in iolab("show", finished_run).text
