"""Outputs of commands against devices, inputs and other users' links: nothing but a regular file is ever replaced."""

import os
import pty
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from iolab.machines.system import tracefs
from support.command_line import PROGRAM, CommandLine, wait_until
from support.devices import MIB, attach, command, detach, sparse_file
from support.leftovers import trace_instances
from support.stored import stored_run

TRACES = Path(__file__).parent / "traces"
TRACE = TRACES / "trace-cmd-7.dat"
FORMS = ("perfetto", "blktrace", "iolog", "parquet")
ANOTHER = 65534
PRECIOUS = b"what somebody keeps here" * 200


def target_of(form: str, path: Path) -> Path:
    """The file that an export to `path` writes first."""
    return path.with_name(f"{path.name}.blktrace.0") if form == "blktrace" else path


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    backing = sparse_file(tmp_path / "backing", 4 * MIB)
    with backing.open("r+b") as file:
        file.write(PRECIOUS)
    device = attach(backing)
    yield device
    detach(device)


@pytest.mark.root
@pytest.mark.parametrize("form", FORMS)
def test_an_export_writes_onto_no_disk(form: str, iolab: CommandLine, disk: Path) -> None:
    if form == "blktrace":
        name = iolab.cwd / "out"
        os.mknod(target_of(form, name), 0o600 | 0o060000, disk.stat().st_rdev)
    else:
        name = disk
    outcome = iolab("trace", TRACE, "--to", form, "-o", name, status=None)
    outcome.assert_one_clear_line(2, str(target_of(form, name)))
    command("blockdev", "--flushbufs", disk)
    assert disk.read_bytes()[: len(PRECIOUS)] == PRECIOUS


@pytest.mark.root
@pytest.mark.parametrize("place", ["disk", "/dev/null"])
def test_no_files_of_blktrace_are_named_after_a_device(place: str, iolab: CommandLine, disk: Path) -> None:
    name = disk if place == "disk" else Path(place)
    iolab("trace", TRACE, "--to", "blktrace", "-o", name, status=None).assert_one_clear_line(2, str(name))
    assert not target_of("blktrace", name).exists()


@pytest.mark.parametrize("form", FORMS)
def test_an_export_leaves_the_trace_that_it_reads(form: str, iolab: CommandLine) -> None:
    source = iolab.cwd / "source.dat"
    shutil.copy(TRACE, source)
    name = source
    if form == "blktrace":
        iolab("trace", TRACE, "--to", "blktrace", "-o", "set")
        source, name = iolab.cwd / "set.blktrace.0", iolab.cwd / "set"
    before = source.read_bytes()
    (iolab.cwd / "link").symlink_to(source)
    iolab("trace", source, "--to", form, "-o", name, status=None).assert_one_clear_line(2, "is what is read")
    if form != "blktrace":
        iolab("trace", source, "--to", form, "-o", "link", status=None).assert_one_clear_line(2, "is what is read")
    assert source.read_bytes() == before
    assert not list(iolab.cwd.glob(".*.tmp"))


@pytest.mark.long
def test_no_page_is_written_over_what_it_shows(iolab: CommandLine) -> None:
    stored_run(iolab.cwd / "run")
    stored_run(iolab.cwd / "again")
    table = iolab.write("table.csv", "setting,round,iops\na,0,1000\nb,0,1100\na,1,1001\nb,1,1102\n")
    shutil.copy(TRACE, iolab.cwd / "trace.dat")
    inputs = [table, iolab.cwd / "trace.dat", *(iolab.cwd / "run").rglob("*"), *(iolab.cwd / "again").rglob("*")]
    before = {path: path.read_bytes() for path in inputs if path.is_file()}
    for arguments in (
        ("report", table, "-o", table),
        ("report", "run", "-o", "run/journal.jsonl"),
        ("compare", "run", "again", "-o", "again/machine.json"),
        ("report", "run", "-o", "run/trials/000000.parquet"),
        ("trace", "trace.dat", "-o", "trace.dat"),
        ("characterise", "trace.dat", "-o", "trace.dat"),
    ):
        iolab(*arguments, status=None).assert_one_clear_line(2, "is what is read")
    assert {path: path.read_bytes() for path in before} == before
    iolab("report", "run", "-o", "run/report.html")
    iolab("report", "run", "-o", "run/report.html")


@pytest.mark.root
@pytest.mark.parametrize("form", FORMS)
def test_an_export_follows_no_link_of_another_user(form: str, iolab: CommandLine) -> None:
    victim, theirs = iolab.cwd / "victim", iolab.cwd / "theirs"
    victim.write_bytes(PRECIOUS)
    theirs.mkdir()
    link = target_of(form, theirs / "out")
    link.symlink_to(victim)
    (theirs / "away").symlink_to(iolab.cwd)
    for path in (theirs, link, theirs / "away"):
        os.lchown(path, ANOTHER, ANOTHER)
    iolab("trace", TRACE, "--to", form, "-o", theirs / "out", status=None).assert_one_clear_line(2, str(link))
    victim_of_form = target_of(form, iolab.cwd / "new")
    outcome = iolab("trace", TRACE, "--to", form, "-o", theirs / "away" / "new", status=None)
    outcome.assert_one_clear_line(2, "link that another user made")
    assert victim.read_bytes() == PRECIOUS and not victim_of_form.exists()


@pytest.mark.parametrize("form", FORMS)
def test_an_export_that_fails_leaves_the_old_file(form: str, iolab: CommandLine) -> None:
    broken = iolab.write("broken.txt", "this is no trace\n")
    old = target_of(form, iolab.cwd / "out")
    old.write_bytes(PRECIOUS)
    assert iolab("trace", broken, "--to", form, "-o", "out", status=None).status == 2
    assert old.read_bytes() == PRECIOUS
    assert {path.name for path in iolab.cwd.iterdir()} <= {"broken.txt", old.name, "state"}


@pytest.mark.parametrize("form", ["perfetto", "iolog", "parquet"])
def test_an_export_goes_down_a_pipe(form: str, iolab: CommandLine) -> None:
    iolab("trace", TRACE, "--to", form, "-o", "out")
    done = subprocess.run(
        [PROGRAM, "trace", TRACE, "--to", form, "-o", "/dev/stdout", "--json"],
        cwd=iolab.cwd,
        capture_output=True,
        check=True,
    )
    assert done.stdout.startswith((iolab.cwd / "out").read_bytes()[:64])


def test_parquet_is_not_written_to_a_terminal(iolab: CommandLine) -> None:
    main, terminal = pty.openpty()
    done = subprocess.run(
        [PROGRAM, "trace", TRACE, "--to", "parquet", "-o", "/dev/stdout"],
        cwd=iolab.cwd,
        stdout=terminal,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(terminal)
    os.close(main)
    assert done.returncode == 2 and "is a terminal" in done.stderr


@pytest.mark.root
def test_a_recording_writes_onto_no_disk_and_says_so_first(iolab: CommandLine, disk: Path) -> None:
    outcome = iolab("record", disk, "-o", disk, "--for", "1h", status=None)
    outcome.assert_one_clear_line(2, "is a block device")
    assert disk.read_bytes()[: len(PRECIOUS)] == PRECIOUS


@pytest.mark.root
def test_a_recording_that_is_told_to_end_is_kept_and_leaves_nothing_on(iolab: CommandLine, disk: Path) -> None:
    if tracefs.root() is None:
        pytest.skip("needs tracefs")
    for number in (signal.SIGTERM, signal.SIGKILL):
        with iolab.start("record", disk, "-o", "out.dat") as process:
            wait_until(lambda: any(map(is_on, trace_instances(iolab.state_dir))), "the recording to begin")
            (instance,) = trace_instances(iolab.state_dir)
            process.send_signal(number)
            stdout, stderr = process.communicate()
        if number == signal.SIGTERM:
            assert process.returncode == 0, stderr
            assert stdout.startswith("Recorded: out.dat") and (iolab.cwd / "out.dat").stat().st_size > 0
        else:
            assert "tracing instance" in iolab("restore").text
        assert not instance.exists()


def is_on(instance: Path) -> bool:
    """While the kernel makes an instance, its directory is there before its files."""
    switch = instance / "tracing_on"
    return switch.exists() and switch.read_text().strip() == "1"
