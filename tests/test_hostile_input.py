"""Experiments and job files that nobody means: refused in a line, or read in time that grows no faster than they do."""

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from iolab.base import bounded_file
from iolab.base.errors import InputError
from iolab.base.toml import parse
from iolab.files.experiment import loads
from iolab.files.experiment.from_fio import text_of
from iolab.machines.system.block import device_bytes
from iolab.presentation.cli.invoke import invoke
from iolab.studies.run import plan
from support.growth import assert_linear

pytestmark = pytest.mark.usefixtures("state_dir")

START = """\
rounds = 1
[target]
kind = "directory"
path = "."
[workloads.reads]
engine = "null"
duration = "1ms"
file_size = "1MiB"
"""


SIMULATED = """\
machine = "model:one_disk"
[workloads.reads]
duration = "1ms"
[settings.a.machine]
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = " + "[" * 900 + "]" * 900, "nested more than 32 deep"),
        ("x = " + "[" * 100_000, "nested more than 32 deep"),
        ("x = " + "{a=" * 900 + "1" + "}" * 900, "nested more than 32 deep"),
        ("\n[a]\n" + ".".join("a" * 100_000) + " = 1", ":3: a key of more than 32 parts"),
        ("[" + ".".join("a" * 100_000) + "]", ":1: a key of more than 32 parts"),
        ("x = {" + " . ".join(['"a"'] * 5000) + " = 1}", ":1: a key of more than 32 parts"),
        (
            "rounds = 1" + "0" * 23,
            "rounds: 100000000000000000000000 given; expected a whole number, at least 1 and at most 1000000",
        ),
        ("rounds = " + "9" * 5000, "a number of more than 4300 digits"),
        ("rounds = 0x" + "f" * 5000, "a number of more than 4300 digits"),
        ("x = {a = [1, -0b" + "1" * 20_000 + "]}", "not valid TOML"),
        ("x = {a = [1, 0b" + "1" * 20_000 + "]}", "a number of more than 4300 digits"),
        (
            '[settings.a]\nnr_requests = "' + "9" * 5000 + '"\n[settings.b]\ncompletion_affinity = "9"',
            "settings.a.nr_requests: nr_requests is '999",
        ),
        (SIMULATED + '"drives.' + "9" * 5000 + '.device" = 1', "expected a number from 0 to 0 in place of 999"),
        (SIMULATED + '"drives.' + "\u0661" * 20 + '.device" = 1', "expected a number from 0 to 0 in place of"),
        (SIMULATED + '"' + ".".join("a" * 10_000) + '" = 1', "a key of more than 32 parts"),
        (SIMULATED + '"drives.0.device" = "' + "9" * 5000 + '"', "drives.0.device"),
        ('machine = "model:' + "9" * 5000 + '.toml"', "File name too long"),
        ("rounds = 1e999", "rounds: Infinity given"),
        ('[workloads.q]\nkind = "qsbench"\nmemory_limit = ' + "9" * 400, "given; expected at most 9223372036854775807"),
        ('[compare]\nmetrics = ["iops/' + "iops" * 50_000 + '"]', "compare.metrics"),
        ("iops" * 50_000 + " = 1", "iops"),
        ('[target]\nkind = "directory"\npath = "a\\u0000b"', "path"),
        ('[settings."a\\u0000b"]\ncpus = [0]', "a name has printable characters"),
    ],
    ids=lambda value: value[:20].encode("unicode_escape").decode(),
)
def test_what_no_experiment_has_is_refused_in_a_line_each(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text(text)
    started = time.monotonic()
    assert invoke(["run", str(path)]) == 2
    assert time.monotonic() - started < 30
    said = capsys.readouterr().err
    assert says in said
    assert all(line.startswith("iolab: ") for line in said.splitlines())


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/full", "/dev/tty", "directory", "fifo", "nowhere"])
@pytest.mark.parametrize("suffix", ["", ".toml", ".fio"])
def test_what_is_no_file_is_refused(
    name: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bounded_file, "PIPE_PATIENCE_S", 0.2)
    path = tmp_path / f"place{suffix}"
    if name == "directory":
        path.mkdir()
    elif name == "fifo":
        os.mkfifo(path)
    elif name != "nowhere":
        path.symlink_to(name)
    assert invoke(["run", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"iolab: {path}: ")


@pytest.mark.parametrize("named", ['machine = "model:NAME"', '[workloads.jobs]\nkind = "fio"\nfile = "NAME"'])
def test_what_an_experiment_names_is_a_file_too(named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "endless.toml").symlink_to("/dev/zero")
    path = tmp_path / "experiment.toml"
    path.write_text(named.replace("NAME", str(tmp_path / "endless.toml")) + "\n")
    assert invoke(["run", str(path)]) == 2
    said = capsys.readouterr().err
    assert "is a character device; expected a" in said and "in a regular file" in said


def test_a_pipe_is_read_once_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text(START))
    writer.start()
    assert bounded_file.read_bounded(path, 1000, "an experiment", pipes=True) == START.encode()
    writer.join()


@pytest.mark.parametrize("is_pipe", [False, True])
def test_a_file_beyond_the_limit_is_refused(is_pipe: bool, tmp_path: Path) -> None:
    path = tmp_path / "long"

    def write() -> None:
        try:
            path.write_bytes(b"#" * 200_000)
        except BrokenPipeError:
            assert is_pipe

    if is_pipe:
        os.mkfifo(path)
    writer = threading.Thread(target=write)
    writer.start()
    if not is_pipe:
        writer.join()
    with pytest.raises(InputError, match="longer than 100000 bytes, the most for an experiment"):
        bounded_file.read_bounded(path, 100_000, "an experiment", pipes=True)
    writer.join()


def test_very_many_problems_are_counted(tmp_path: Path) -> None:
    text = START + "".join(f"[settings.s{number}]\nno_such = 1\n" for number in range(3000))
    with pytest.raises(InputError) as refusal:
        loads(text, "experiment.toml")
    assert len(str(refusal.value).splitlines()) == 101
    assert str(refusal.value).endswith("and 2900 more problems")


def settings(count: int) -> str:
    return START + "".join(f"[settings.s{number}]\ncpus = [0]\n" for number in range(count))


def matrix(count: int) -> str:
    values = list(range(1, 1 + 50))
    return START + "".join(f"[settings.s{number}]\nworkload.queue_depth = {values}\n" for number in range(count // 50))


def jobs(count: int) -> str:
    return "[global]\nioengine=null\nsize=1m\nfilename=x\n" + "".join(f"[j{n}]\nrw=write\n" for n in range(count))


def namesakes(count: int) -> str:
    return "[global]\nioengine=null\nsize=1m\nfilename=x\n" + "[j]\nrw=write\n" * count


def stages(count: int) -> str:
    return "[global]\nioengine=null\nsize=1m\nfilename=x\n" + "[j]\nrw=write\nstonewall\n" * count


def globals_(count: int) -> str:
    return "[global]\nioengine=null\nsize=1m\nfilename=x\n" + "[global]\nbs=4k\n[j]\nrw=write\n" * count


def unknown(count: int) -> str:
    return "[j]\n" + "".join(f"no_such_{number}=1\n" for number in range(count))


def of_experiment(text: str) -> None:
    plan.trials(loads(text, "experiment.toml"), 1, seed=1)


def of_job_file(text: str) -> None:
    try:
        written, _ = text_of(Path("job.fio"), text, device_bytes)
    except InputError:
        return
    of_experiment(written)


@pytest.mark.parametrize(
    ("make", "use", "count"),
    [
        (settings, of_experiment, 1000),
        pytest.param(matrix, of_experiment, 1000, marks=pytest.mark.long),
        (jobs, of_job_file, 500),
        (namesakes, of_job_file, 500),
        pytest.param(stages, of_job_file, 500, marks=pytest.mark.long),
        pytest.param(globals_, of_job_file, 500, marks=pytest.mark.long),
        (unknown, of_job_file, 250),
    ],
)
def test_time_grows_as_the_file_does(make: Callable[[int], str], use: Callable[[str], None], count: int) -> None:
    assert_linear(lambda size: partial(use, make(size)), 4 * count)


def long_keys(count: int) -> str:
    """Keys in a table whose name is as long as all the rest: to copy the name for each of them takes the square."""
    return f"[{'k' * 50 * count}]\n" + "".join(f"a{number} = 1\n" for number in range(10 * count))


def arrays(count: int) -> str:
    return "".join(f"[[a]]\nx = [{{ y = {number} }}, [[1]]]\n[a.b]\n" for number in range(count))


def parsed(text: str) -> None:
    parse(text, "experiment.toml")


@pytest.mark.parametrize("make", [long_keys, arrays, settings])
def test_lines_are_found_in_time_that_grows_as_the_file_does(make: Callable[[int], str]) -> None:
    """Whoever copies the rest for each of them takes the square."""
    assert_linear(lambda size: partial(parsed, make(size)), 4000)


def test_job_files_have_a_limit() -> None:
    shared = "".join(f"numjobs_{number}=1\n" for number in range(2000))
    jobs = f"[global]\n{shared}" + "".join(f"[j{number}]\nrw=read\n" for number in range(600))
    with pytest.raises(InputError, match="more than 1000000 options in all"):
        text_of(Path("job.fio"), jobs, device_bytes)


def test_keys_of_meant_depth_are_read() -> None:
    text = "a.b.c.d.e.f = 1\n[g.h.'i.j'.k]\nl = {m = {n = [[1], [2]]}}\n"
    document = parse(text, "experiment.toml")
    assert document.line(("g", "h", "i.j", "k", "l", "m", "n")) == 3
