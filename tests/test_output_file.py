"""Where output goes: files are replaced whole, everything else is written to or refused and stays what it is."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from iolab.base import output_file
from iolab.base.errors import InputError, MachineError
from support.command_line import PROGRAM, CommandLine
from support.stored import stored_run

PAGE = b"<html>" + b"x" * 200_000


def test_a_new_file_has_the_mode_that_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        output_file.write(tmp_path / "new.html", PAGE)
    finally:
        os.umask(before)
    assert (tmp_path / "new.html").read_bytes() == PAGE
    assert stat.S_IMODE((tmp_path / "new.html").stat().st_mode) == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["new.html"]


def test_a_file_that_exists_keeps_its_mode_its_owner_and_the_links_to_it(tmp_path: Path) -> None:
    real, link = tmp_path / "real.html", tmp_path / "link.html"
    real.write_text("old")
    real.chmod(0o604)
    if os.geteuid() == 0:
        os.chown(real, 12345, 12346)
    link.symlink_to("real.html")
    before = real.stat()
    output_file.write(link, PAGE)
    assert link.is_symlink() and real.read_bytes() == PAGE
    after = real.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert {path.name for path in tmp_path.iterdir()} == {"real.html", "link.html"}


def test_a_fifo_is_written_to_and_stays(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
    reader.start()
    output_file.write(fifo, PAGE)
    reader.join()
    assert got == [PAGE] and stat.S_ISFIFO(fifo.stat().st_mode)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("directory", "is a directory"),
        ("dangling", "is a link to nowhere"),
        ("absent/x", "No such file"),
        ("x" * 300, "long"),
    ],
)
def test_what_can_be_no_file_is_refused_in_one_line(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(InputError, match=words):
        output_file.write(tmp_path / name, PAGE)
    assert {path.name for path in tmp_path.iterdir()} == {"directory", "dangling"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make device nodes")
def test_devices_stay_devices(tmp_path: Path) -> None:
    null, full, disk = (tmp_path / name for name in ("null", "full", "disk"))
    os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.mknod(full, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
    os.mknod(disk, 0o600 | stat.S_IFBLK, os.makedev(7, 255))
    output_file.write(null, PAGE)
    with pytest.raises(MachineError, match="No space left"):
        output_file.write(full, PAGE)
    with pytest.raises(InputError, match="is a block device"):
        output_file.write(disk, PAGE)
    kinds = [stat.S_IFMT(path.lstat().st_mode) for path in (null, full, disk)]
    assert kinds == [stat.S_IFCHR, stat.S_IFCHR, stat.S_IFBLK]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a link to another user")
def test_a_link_that_another_user_laid_where_everybody_writes_is_not_followed(tmp_path: Path) -> None:
    shared, victim = tmp_path / "shared", tmp_path / "victim"
    shared.mkdir()
    shared.chmod(0o1777)
    victim.write_text("precious")
    (shared / "report.html").symlink_to(victim)
    os.lchown(shared / "report.html", 12345, 12345)
    with pytest.raises(InputError, match="another user"):
        output_file.write(shared / "report.html", PAGE)
    assert victim.read_text() == "precious"


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    (tmp_path / "report.html").write_text("old")
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(MachineError, match="No space left"):
        output_file.write(tmp_path / "report.html", PAGE)
    monkeypatch.undo()
    assert (tmp_path / "report.html").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.long
def test_report_writes_where_it_is_told(iolab: CommandLine) -> None:
    stored_run(iolab.cwd / "run")
    for place in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        said = iolab("report", "run", "-o", place).stdout
        assert said.startswith("<!doctype html>") and said.rstrip().endswith("</html>"), place
    before = os.lstat("/dev/null")
    assert iolab("report", "run", "-o", "/dev/null").stdout == "Report: /dev/null\n"
    assert os.path.samestat(before, os.lstat("/dev/null"))
    iolab("report", "run", "-o", "run", status=None).assert_one_clear_line(2, "is a directory")
    iolab("report", "run", "--json", "-o", "-", status=None).assert_one_clear_line(2, "--json", "standard output")
    for command in ("import", "run"):
        (iolab.cwd / "link").unlink(missing_ok=True)
        (iolab.cwd / "link").symlink_to("nowhere")
        told = iolab.write("x.csv" if command == "import" else "x.toml", "[workloads.x]\nduration = '20ms'\n")
        iolab(command, told, "--out", "link", status=None).assert_one_clear_line(2, "link: is a symbolic link")
        outcome = iolab(command, told, "--out", "/dev/null", status=None)
        assert outcome.status == 2 and stat.S_ISCHR(Path("/dev/null").stat().st_mode), outcome.text


def test_standard_output_that_is_full_or_closed_is_one_clear_line(iolab: CommandLine) -> None:
    stored_run(iolab.cwd / "run")
    for arguments, redirect, status in (
        ("show run", ">/dev/full", 3),
        ("show run --json", ">/dev/full", 3),
        ("report run -o -", ">/dev/full", 3),
        ("list machines", ">&-", 0),
    ):
        done = subprocess.run(
            f"{PROGRAM} {arguments} {redirect}",
            shell=True,
            cwd=iolab.cwd,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert done.returncode == status, (arguments, done.stderr)
        assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) == (1 if status else 0), done.stderr


def test_the_program_ends_soon_and_not_before_others_have_said_their_last_words() -> None:
    """What is registered with atexit while a command runs is called, all is written, and the exit status is its own."""
    text = """
import atexit, os, sys
import iolab.presentation.cli.invoke as command

def invoke(arguments, mask):
    print("said")
    if os.fork() == 0:
        sys.exit(5)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
    atexit.register(print, "last words")
    return 3

command.invoke = invoke
from iolab.presentation.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.splitlines()[-2:] == ["5", "last words"]
