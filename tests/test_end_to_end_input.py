"""Wrong input by the real command line: one clear line, exit status 2 or 3, nothing begun."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.command_line import CommandLine
from support.devices import attach, command, detach, sparse_file
from support.experiments import DEFAULT_WORKLOAD, TWO_SCHEDULERS, experiment

DIRECTORY = 'kind = "directory"\npath = "."'


def refused(iolab: CommandLine, text: str, *words: str, status: int = 2) -> None:
    """Running an experiment of this text ends with one line that has the words, and leaves no run."""
    iolab.write("bad.toml", text)
    iolab("run", "bad.toml", "--out", "run", status=None).assert_one_clear_line(status, *words)
    assert not (iolab.cwd / "run").exists()


def test_malformed_toml_is_refused_with_its_line(iolab: CommandLine) -> None:
    refused(iolab, 'rounds = 2\ntitle = "no end\n', "bad.toml:2", "TOML")


def test_an_unknown_key_is_refused_with_the_nearest_right_word(iolab: CommandLine) -> None:
    text = experiment(DIRECTORY, workload=DEFAULT_WORKLOAD.replace("queue_depth", "queue_dept"))
    line = text.splitlines().index("queue_dept = 4") + 1
    refused(iolab, text, f"bad.toml:{line}", "queue_dept", "did you mean queue_depth")


def test_an_impossible_combination_is_refused(iolab: CommandLine) -> None:
    text = experiment(DIRECTORY, workload=DEFAULT_WORKLOAD + 'engine = "psync"\n', settings="[settings.a]\n")
    refused(iolab, text, "bad.toml:", "queue_depth", "psync")


def test_unaligned_direct_io_is_refused(iolab: CommandLine) -> None:
    text = experiment(DIRECTORY, workload=DEFAULT_WORKLOAD + "block_size = 1000\n")
    refused(iolab, text, "bad.toml:", "block_size", "512")


def test_files_that_do_not_fit_are_refused_before_any_is_laid_out(iolab: CommandLine) -> None:
    workload = DEFAULT_WORKLOAD + "files_per_job = 2\n"
    workload = re.sub(r"(?m)^file_size = .*\n", "", workload) + 'file_size = "300TiB"\n'
    refused(iolab, experiment(DIRECTORY, workload=workload), "the workload's files need 600 TiB, this has", "free")
    assert {path.name for path in iolab.cwd.iterdir()} <= {"bad.toml", "state"}


def test_thousands_of_metrics_are_refused_by_their_number(iolab: CommandLine) -> None:
    names = ", ".join(f'"latencx_{number}"' for number in range(1001))
    text = f"{experiment(DIRECTORY)}\n[compare]\nmetrics = [{names}]\n"
    refused(iolab, text, "compare.metrics: 1,001 keys; expected at most 1,000")


def test_an_unknown_value_and_a_wrong_type_are_refused(iolab: CommandLine) -> None:
    workload = DEFAULT_WORKLOAD.replace('"random"', '"randm"')
    refused(iolab, experiment(DIRECTORY, workload=workload), "bad.toml:", "pattern", "random")
    refused(iolab, experiment(DIRECTORY).replace("rounds = 2", 'rounds = "two"'), "bad.toml:1", "rounds")


def test_missing_files_are_named(iolab: CommandLine) -> None:
    iolab("run", "absent.toml", status=None).assert_one_clear_line(2, "absent.toml")
    for asking in (("show", "absent"), ("compare", "absent"), ("report", "absent", "-o", "x.html")):
        iolab(*asking, status=None).assert_one_clear_line(2, "absent")


def test_a_missing_device_is_named(iolab: CommandLine) -> None:
    target = 'kind = "device"\npath = "/dev/absent"'
    iolab.write("bad.toml", experiment(target))
    outcome = iolab("run", "bad.toml", "--out", "run", status=None)
    outcome.assert_one_clear_line(outcome.status, "/dev/absent")
    assert outcome.status in (2, 3)


def test_a_missing_directory_is_named(iolab: CommandLine) -> None:
    iolab.write("bad.toml", experiment('kind = "directory"\npath = "absent"'))
    iolab("run", "bad.toml", "--out", "run", status=None).assert_one_clear_line(2, "absent")


def test_a_file_that_is_no_run_is_refused(iolab: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    iolab("show", "empty", status=None).assert_one_clear_line(2, "empty")


def test_a_csv_without_the_columns_is_refused(iolab: CommandLine) -> None:
    iolab.write("numbers.csv", "arm,turn,seconds\na,1,2.5\nb,1,2.4\n")
    options = ("--setting-column", "setting", "--round-column", "turn", "--baseline", "a")
    iolab("compare", "numbers.csv", *options, status=None).assert_one_clear_line(2, "setting", "arm")


def test_unknown_options_are_refused(iolab: CommandLine) -> None:
    iolab("run", "--roundz", "3", status=None).assert_one_clear_line(2, "--roundz")


@pytest.mark.root
def test_without_root_a_scratch_device_is_refused_with_the_remedy(iolab_as_nobody: CommandLine) -> None:
    iolab_as_nobody.write("bad.toml", experiment('kind = "scratch"\nsize = "64MiB"'))
    outcome = iolab_as_nobody("run", "bad.toml", "--out", "run", status=None)
    outcome.assert_one_clear_line(3, "root", "directory")


@pytest.mark.root
def test_without_permission_a_device_is_refused_with_the_remedy(
    iolab_as_nobody: CommandLine, loop_device: Path
) -> None:
    writes = DEFAULT_WORKLOAD + "read_percent = 0\n"
    iolab_as_nobody.write("bad.toml", experiment(f'kind = "device"\npath = "{loop_device}"', workload=writes))
    outcome = iolab_as_nobody("run", "bad.toml", "--out", "run", status=None)
    outcome.assert_one_clear_line(3, str(loop_device), "permission")


@pytest.mark.root
def test_without_permission_a_directory_is_refused(iolab_as_nobody: CommandLine, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o755)
    iolab_as_nobody.write("bad.toml", experiment(f'kind = "directory"\npath = "{closed}"'))
    outcome = iolab_as_nobody("run", "bad.toml", "--out", "run", status=None)
    assert outcome.status in (2, 3)
    outcome.assert_one_clear_line(outcome.status, str(closed))


CLOSED = f"/proc/{os.getpid()}/root"
"""A way to / that only root may go, also where the ordinary user got the capability to enter any directory."""


@pytest.mark.root
@pytest.mark.parametrize(
    "target",
    [
        'kind = "directory"\npath = "{closed}"',
        'kind = "directory"\npath = "{closed}/tmp"',
        'kind = "file"\npath = "{closed}/etc/hostname"',
        'kind = "file"\npath = "{closed}/tmp/absent"',
        'kind = "scratch"\nsize = "64MiB"\nbacking = "{closed}/tmp"',
        'kind = "device"\npath = "{closed}/dev/loop0"',
    ],
)
def test_a_target_that_the_user_may_not_go_to_is_refused_with_the_remedy(
    iolab_as_nobody: CommandLine, target: str
) -> None:
    iolab_as_nobody.write("bad.toml", experiment(target.format(closed=CLOSED)))
    outcome = iolab_as_nobody("run", "bad.toml", "--out", "run", status=None)
    outcome.assert_one_clear_line(3, CLOSED, "permission", "name a place")
    assert not (iolab_as_nobody.cwd / "run").exists()


@pytest.mark.root
def test_a_run_where_the_user_may_not_go_is_refused_with_the_remedy(iolab_as_nobody: CommandLine) -> None:
    iolab_as_nobody.write("good.toml", experiment(DIRECTORY))
    out = Path(CLOSED, "tmp", "run")
    for asking in (("run", "good.toml", "--out", out), ("show", out), ("report", out, "-o", "report.html")):
        iolab_as_nobody(*asking, status=None).assert_one_clear_line(3, CLOSED, "permission", "name a place")
    stateless = replace(iolab_as_nobody, state_dir=Path(CLOSED, "tmp"))
    stateless("run", "good.toml", status=None).assert_one_clear_line(3, CLOSED, "permission", "name a place")


@pytest.mark.parametrize("target", ['kind = "file"\npath = "absent/file"', 'kind = "directory"\npath = "absent/one"'])
def test_a_target_in_a_missing_directory_is_named(iolab: CommandLine, target: str) -> None:
    refused(iolab, experiment(target), "absent", "mkdir")


def test_what_is_refused_can_be_put_right_and_run_again(iolab: CommandLine, tmp_path: Path) -> None:
    """The refused try leaves nothing that would be in the way of the next."""
    (tmp_path / "file").write_bytes(b"data" * 1000)
    iolab.write(
        "bad.toml", experiment('kind = "file"\npath = "file"', workload=DEFAULT_WORKLOAD + "read_percent = 0\n")
    )
    for _ in range(2):
        outcome = iolab("run", "bad.toml", "--out", "deep/run", status=None)
        outcome.assert_one_clear_line(2, "file", "did not write")
    assert not (tmp_path / "deep").exists()


@pytest.mark.root
def test_direct_io_below_the_sector_size_of_the_device_is_refused_or_marked(iolab: CommandLine, tmp_path: Path) -> None:
    """512-byte direct reads of a device with 4096-byte sectors: only the device itself can say no."""
    device = attach(sparse_file(tmp_path / "sectors.img", 64 << 20), "--sector-size", "4096")
    try:
        workload = DEFAULT_WORKLOAD + 'block_size = "512B"\n'
        iolab.write("bad.toml", experiment(f'kind = "device"\npath = "{device}"', workload=workload, rounds=1))
        outcome = iolab("run", "bad.toml", "--out", "run", "--fail-on", "faulty", status=None)
        assert outcome.status in (1, 2, 3), outcome.text
        assert "Traceback" not in outcome.text
    finally:
        detach(device)


@pytest.mark.root
def test_a_scheduler_that_the_kernel_does_not_have_is_refused(iolab: CommandLine) -> None:
    text = experiment('kind = "scratch"\nsize = "64MiB"', settings=TWO_SCHEDULERS.replace("mq-deadline", "elevator9"))
    iolab.write("bad.toml", text)
    outcome = iolab("run", "bad.toml", "--out", "run", status=None)
    assert outcome.status in (2, 3)
    outcome.assert_one_clear_line(outcome.status, "elevator9", "scheduler")


def test_setpriv_really_drops_root() -> None:
    """The tests above would prove nothing if `nobody` still had root's powers."""
    if os.geteuid() == 0:
        assert command("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "id", "-u") != "0"
