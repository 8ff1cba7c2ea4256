"""The command kind: what is timed, where it runs, what failures say, and that nothing stays."""

import json
import pwd
from pathlib import Path
from typing import Any

import pytest
from iolab.base.errors import InputError
from iolab.domain.phase_record import Usage, jobs_of
from iolab.domain.record import Record
from iolab.files.experiment import loads
from iolab.files.experiment.from_commands import text_of
from iolab.machines.host import host
from iolab.machines.system import shell
from iolab.studies.run import plan
from support.command_line import CommandLine
from support.leftovers import processes_in


def run(directory: Path, options: str) -> Record:
    text = f"[target]\nkind = 'directory'\npath = '{directory}'\n[workloads.c]\nkind = 'command'\n{options}\n"
    trial = plan.trials(loads(f"{text}[settings.s]\n", "x.toml"), 1, seed=1)[0]
    return host.execute(trial, on_progress=lambda _: None, should_stop=lambda: False)


@pytest.mark.root
def test_it_runs_in_an_empty_directory_of_the_target(tmp_path: Path, state_dir: Path) -> None:
    record = run(tmp_path, f"command = 'pwd >{tmp_path}/where; touch here; ls >{tmp_path}/what'")
    assert record.status == "ok", record.faults
    where = Path((tmp_path / "where").read_text().strip())
    assert where.parent == tmp_path and not where.exists()
    assert (tmp_path / "what").read_text() == "here\n"


@pytest.mark.root
def test_the_time_is_the_commands_own(tmp_path: Path, state_dir: Path) -> None:
    """Not that of what was prepared, nor of making a namespace."""
    record = run(tmp_path, f"directory = '{tmp_path}'\nprepare = 'sleep 0.5; echo one >out'\ncommand = 'cat out'")
    (phase,) = record.phases
    assert phase["phase"] == "command"
    assert phase["elapsed_ns"] < record.ended_unix_ns - record.started_unix_ns - 500_000_000
    assert (tmp_path / "out").read_text() == "one\n"


@pytest.mark.root
def test_a_command_that_fails_is_named_with_what_it_said(tmp_path: Path, state_dir: Path) -> None:
    record = run(tmp_path, "command = 'echo no room >&2; exit 3'")
    assert record.status == "failed"
    assert [fault.what for fault in record.faults] == ["echo no room >&2; exit 3 failed with exit status 3: no room"]
    assert [job["output"] for job in jobs_of(record.phases[0]).values()] == ["no room\n"]


@pytest.mark.root
def test_nothing_that_it_started_stays(tmp_path: Path, state_dir: Path) -> None:
    run(tmp_path, f"directory = '{tmp_path}'\ncommand = 'setsid sleep 1000 & exec setsid -w true'")
    assert processes_in(tmp_path) == []


@pytest.mark.root
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("command = ' '", "c.command: is empty; expected a shell command"),
        ("", "c.command: missing; expected a text"),
        ("command = 'true'\ndirectory = '/nonexistent'", "/nonexistent: no such directory"),
    ],
)
def test_what_can_not_run_is_refused(tmp_path: Path, state_dir: Path, options: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(tmp_path, options)


def run_here(iolab: CommandLine, *arguments: str) -> dict[str, Any]:
    outcome = iolab("run", "--rounds", "2", "--json", *arguments)
    document: dict[str, Any] = json.loads(outcome.stdout)
    return document


def test_words_behind_two_dashes_are_a_command_in_the_current_directory(iolab: CommandLine) -> None:
    run_here(iolab, "--", "sh", "-c", "echo $0 >>seen", "a b")
    assert (Path(iolab.cwd) / "seen").read_text() == "a b\na b\n"


@pytest.mark.root
def test_a_user_without_root_times_a_command(iolab_as_nobody: CommandLine) -> None:
    run_here(iolab_as_nobody, "--", "sh", "-c", "id -u >who")
    assert (Path(iolab_as_nobody.cwd) / "who").read_text() == f"{pwd.getpwnam('nobody').pw_uid}\n"


@pytest.mark.root
def test_who_may_not_drop_caches_is_told_so(iolab_as_nobody: CommandLine) -> None:
    place = Path(iolab_as_nobody.cwd)
    (place / "e.toml").write_text(
        f"[target]\nkind = 'directory'\npath = '{place}'\n[workloads.c]\nkind = 'command'\n"
        "command = 'true'\ndrop_caches = true\n[settings.s]\n"
    )
    outcome = iolab_as_nobody("run", "e.toml", "--rounds", "1", status=3)
    assert "to drop the page cache needs root" in outcome.stderr


def test_what_went_before_the_command_is_not_its_cpu_time(tmp_path: Path) -> None:
    """The process's fork and the namespace's, which cost more than `true` does."""
    ended = shell.run("true", directory=tmp_path, environment={}, should_stop=lambda: False)
    assert ended.spent_ns > 0
    usage = Usage(cpu_user_ns=3_000, cpu_system_ns=1_000)
    assert usage.less_cpu(1_000) == Usage(cpu_user_ns=2_250, cpu_system_ns=750)
    assert usage.less_cpu(5_000) == Usage() == Usage().less_cpu(5)


def test_commands_are_compared_with_the_first(iolab: CommandLine) -> None:
    run_here(iolab, "--command", "echo one >>seen", "--command", "echo two >>seen", "--prepare", "echo before >>seen")
    said = (Path(iolab.cwd) / "seen").read_text().split()
    assert said[::2] == ["before"] * 4 and sorted(said[1::2]) == ["one", "one", "two", "two"]


def test_a_setting_is_named_as_its_command_is_written() -> None:
    commands = ["head -c 1M /dev/zero\t>a", 'tr "[a-z]" x <a; sync | cat & é']
    written = loads(text_of(commands, None, Path("/tmp")), "x.toml")
    assert list(written.settings) == ["head -c 1M /dev/zero >a", 'tr "_a-z_" x <a; sync | cat & _']


def test_commands_that_begin_alike_are_named_by_what_differs() -> None:
    begin = "dd if=/dev/zero of=f bs=64k count=1024 oflag=direct conv="
    written = loads(text_of([f"{begin}fsync", f"{begin}fdatasync"], None, Path("/tmp")), "x.toml")
    assert list(written.settings) == ["dd if=/dev/zer ... conv=fsync", "dd if=/dev/zer ... conv=fdatasync"]


def test_names_of_commands_end_with_a_word_and_show_what_differs() -> None:
    dd = "dd if=/dev/zero of=x bs={} count=20 conv={}"
    commands = [dd.format("1M", "fsync"), dd.format("1M", "fdatasync"), dd.format("4k", "fsync")]
    written = loads(text_of(commands, None, Path("/tmp")), "x.toml")
    assert list(written.settings) == [
        "dd if=/dev/zer ... bs=1M conv=fsync",
        "dd if=/dev/zer ... bs=1M conv=fdatasync",
        "dd if=/dev/zer ... bs=4k conv=fsync",
    ]
    alike = [f"sleep {'0.' + '0' * 60}{end}" for end in (1, 2)]
    written = loads(text_of(alike, None, Path("/tmp")), "x.toml")
    assert [name[:9] for name in written.settings] == ["1: sleep ", "2: sleep "]


def test_a_command_that_always_fails_beside_a_good_one_is_said_first_and_ends_with_1(iolab: CommandLine) -> None:
    outcome = iolab("run", "--command", "true", "--command", "exit 3", "--rounds", "2", "--out", "here", status=1)
    sentence = next(line for line in outcome.stdout.splitlines() if line[:1] in "●○!")
    assert "exit 3 failed in each of 2 trials: exit 3 failed with exit status 3" in sentence
    assert "no trial was measured to its end under exit 3" in outcome.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--"], "name one of an experiment file"),
        (["x.toml", "--", "true"], "name one of an experiment file"),
        (["--machine", "model:quad-7200", "--", "true"], "--machine: a command is timed on this host"),
        (["--section", "one", "--", "true"], "--section: only for a fio job file"),
        (["--prepare", "true"], "name one of an experiment file"),
        (["--command", "true", "--command", "true"], "--command: the same command twice"),
    ],
)
def test_a_command_line_that_asks_for_two_things_is_refused(
    iolab: CommandLine, arguments: list[str], said: str
) -> None:
    outcome = iolab("run", *arguments, status=2)
    assert said in outcome.stderr
