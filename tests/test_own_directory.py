"""The directory that iolab makes for itself: nobody else's directory, and no link, ever takes its place."""

import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath

import pytest
from iolab.base import replaceable
from iolab.base.errors import InputError, IolabError
from iolab.base.replaceable import weakness_of
from iolab.machines.host import host, site
from iolab.machines.system import beneath, own_file
from iolab.machines.system.action import MARKER, RemoveTree
from iolab.machines.system.beneath import Directory
from iolab.machines.system.own_directory import make_own_directory
from iolab.machines.system.undo import UndoJournal
from support.command_line import CommandLine
from support.experiments import DEFAULT_WORKLOAD, experiment
from support.trials import io_trial

USER, ANOTHER = 65534, 1
"""nobody and daemon, whom every system has."""
PRECIOUS = b"what somebody keeps here"
WRITES = DEFAULT_WORKLOAD + "read_percent = 50\n"


def directory(path: Path, *, owner: int = 0, mode: int = 0o755) -> Path:
    path.mkdir()
    path.chmod(mode)
    os.chown(path, owner, -1)
    return path


@pytest.fixture
def place() -> Iterator[Path]:
    """Where other users may go too, which they may not below pytest's directory."""
    path = directory(Path(f"/tmp/iolab-test-{secrets.token_hex(4)}"))
    yield path
    shutil.rmtree(path)


@pytest.mark.root
def test_a_filesystem_that_is_mounted_read_only_is_said_to_be(place: Path) -> None:
    subprocess.run(["mount", "--bind", place, place], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)
        with UndoJournal.open() as undo, pytest.raises(IolabError, match="its filesystem is mounted read-only"):
            make_own_directory(place, undo)
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.root
@pytest.mark.parametrize("where", ["itself", "above"])
@pytest.mark.parametrize(
    ("owner", "mode", "words"),
    [
        (USER, 0o755, "belongs to nobody; run as that user: sudo -u nobody iolab run"),
        (0, 0o775, "can be written by its group; chmod go-w"),
        (0, 0o777, "can be written by everybody; chmod go-w"),
    ],
)
def test_root_does_not_write_where_others_can_put_a_link_in_its_way(
    tmp_path: Path, state_dir: Path, where: str, owner: int, mode: int, words: str
) -> None:
    weak = directory(tmp_path / "weak", owner=owner, mode=mode)
    path = weak if where == "itself" else directory(weak / "below")
    (path / "empty").touch()
    with ExitStack() as stack, UndoJournal.open() as journal:
        for write in (
            lambda: make_own_directory(path, journal),
            lambda: own_file.take(path / "new", journal, stack),
            lambda: own_file.take(path / "empty", journal, stack),
        ):
            with pytest.raises(InputError) as refused:
                write()
            assert f"{weak} {words}" in str(refused.value)
    assert [entry.name for entry in path.iterdir()] == ["empty"]


@pytest.mark.root
def test_a_user_s_directory_is_refused_in_one_line(iolab: CommandLine, tmp_path: Path) -> None:
    path = directory(tmp_path / "nobody's", owner=USER)
    scratch = f'kind = "scratch"\nsize = "64MiB"\nfilesystem = "ext4"\nbacking = "{path}"'
    for target in (f'kind = "directory"\npath = "{path}"', scratch):
        iolab.write("experiment.toml", experiment(target, workload=WRITES))
        outcome = iolab("run", "experiment.toml", status=None)
        outcome.assert_one_clear_line(2, "belongs to nobody", "sudo -u nobody iolab run")
    assert list(path.iterdir()) == []


@pytest.mark.root
def test_who_could_lead_a_path_elsewhere(place: Path) -> None:
    """Also by a link on the way, and by what lies on the way of that."""
    sticky = directory(place / "sticky", mode=0o1777)
    own = directory(sticky / "own")
    anothers = directory(sticky / "another's", owner=USER)
    ways = {
        "own": own,
        "another's": anothers,
        "through my link": place / "mine",
        "through another's link": sticky / "theirs",
        "into another's": place / "into",
        "up": anothers / ".." / "own",
    }
    (place / "mine").symlink_to("sticky/own")
    (sticky / "theirs").symlink_to(own)
    os.chown(sticky / "theirs", USER, -1, follow_symlinks=False)
    (place / "into").symlink_to(anothers / ".." / "own")
    found = {name: weakness_of(path) for name, path in ways.items()}
    assert {name: weakness.path for name, weakness in found.items() if weakness} == {
        "another's": anothers,
        "through another's link": sticky / "theirs",
        "into another's": anothers,
        "up": anothers,
    }


@contextmanager
def as_user(user: int, do: Callable[[], None]) -> Iterator[None]:
    """Does it again and again beside, in a process of that user's."""
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            while True:
                do()
        os._exit(0)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def swap(name: Path, trap: Path) -> None:
    """iolab's directory for a link to the trap."""
    with suppress(OSError):
        name.rename(name.with_name(f"moved-{secrets.token_hex(8)}"))
        name.symlink_to(trap)


def swap_all(shared: Path, trap: Path) -> None:
    for name in shared.glob("iolab-*"):
        if not name.is_symlink():
            time.sleep(random.uniform(0, 0.06))  # now early, now late in the trial
            swap(name, trap)


TRIALS = 12
REPLACED = (
    "another (file|directory) is there now than the one that iolab made|cannot open iolab's directory: No such file"
)
MIB = 1 << 20


def trials_in(shared: Path, state: Path, trap: Path) -> list[str]:
    """How each of some trials in that directory ends: its status, or its error line. In the first the directory is
    swapped as soon as it is made, whatever the other process does."""
    os.environ["IOLAB_STATE_DIR"] = str(state)
    make = site.make_own_directory

    def made_and_swapped(parent: Path, undo: UndoJournal) -> Directory:
        site.make_own_directory = make
        own = make(parent, undo)
        swap(own.path, trap)
        return own

    site.make_own_directory = made_and_swapped
    ends: list[str] = []
    for _ in range(TRIALS):
        trial = io_trial(
            {"kind": "directory", "path": str(shared)}, file_bytes=MIB, duration_ns=50_000_000, read_share=0.0
        )
        try:
            record = host.execute(trial, on_progress=lambda progress: None, should_stop=lambda: False)
            ends.append(record.status)
        except IolabError as error:
            ends.append(str(error))
    return ends


@pytest.mark.long
@pytest.mark.root
@pytest.mark.parametrize("user", [USER, 0], ids=["a user", "root"])
def test_no_link_that_takes_the_place_of_iolab_s_directory_is_followed(
    place: Path, user: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where root would write in a directory that it refuses."""
    shared = directory(place / "shared", owner=ANOTHER, mode=0o777)
    state = directory(place / "state", owner=user, mode=0o700)
    home = directory(place / "home", owner=user, mode=0o700)
    victim = home / "precious"
    victim.write_bytes(PRECIOUS)
    os.chown(victim, user, -1)
    trap = directory(place / "trap", owner=ANOTHER)
    (trap / "file.0").symlink_to(victim)
    (trap / "file.1").symlink_to(home / "new")
    monkeypatch.setattr(replaceable, "refuse_for_root", lambda path: None)
    with as_user(ANOTHER, lambda: swap_all(shared, trap)):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                if user:
                    os.setgroups([])
                    os.setresgid(user, user, user)
                    os.setresuid(user, user, user)
                told = "\n".join(trials_in(shared, state, trap))
            except BaseException:
                told = traceback.format_exc()
            with os.fdopen(write, "w") as pipe:
                pipe.write(told)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            ends = pipe.read().splitlines()
        os.waitpid(child, 0)
    assert len(ends) == TRIALS, "\n".join(ends)
    assert re.search(REPLACED, ends[0]), ends
    assert victim.read_bytes() == PRECIOUS
    assert list(home.iterdir()) == [victim]
    assert sorted(entry.name for entry in trap.iterdir()) == ["file.0", "file.1"]
    assert list((state / "undo").iterdir()) == []


@pytest.mark.root
def test_a_directory_that_somebody_moves_away_at_once_is_one_line(
    place: Path, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made_and_moved(parent: Path, undo: UndoJournal) -> Directory:
        own = make_own_directory(parent, undo)
        own.path.rename(place / "moved")
        return own

    monkeypatch.setattr(site, "make_own_directory", made_and_moved)
    trial = io_trial({"kind": "directory", "path": str(place)}, file_bytes=MIB, duration_ns=50_000_000, read_share=0.0)
    with pytest.raises(IolabError, match="cannot open iolab's directory: No such file"):
        host.execute(trial, on_progress=lambda progress: None, should_stop=lambda: False)


@pytest.mark.root
def test_a_directory_of_ours_that_somebody_moves_into_place_keeps_what_it_holds(
    place: Path, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the making of iolab's directory and its opening."""
    ours = directory(place / "ours")
    (ours / "file").write_bytes(PRECIOUS)
    mkdir = os.mkdir

    def moved(name: str | Path, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        mkdir(name, mode, dir_fd=dir_fd)
        if str(name).startswith("iolab-"):
            (place / name).rename(place / "aside")
            ours.rename(place / name)

    monkeypatch.setattr(os, "mkdir", moved)
    with UndoJournal.open() as journal:
        with pytest.raises(InputError, match="another directory"):
            make_own_directory(place, journal)
        _, problems = journal.restore()
        assert [problem for problem in problems if "not empty" in problem]
        (kept,) = place.glob("iolab-*")
        kept.rename(ours)
    assert (ours / "file").read_bytes() == PRECIOUS
    assert [entry.name for entry in ours.iterdir()] == ["file"]


def test_nobody_else_may_look_into_iolab_s_directory(tmp_path: Path, state_dir: Path) -> None:
    with UndoJournal.open() as journal:
        own = make_own_directory(tmp_path, journal)
        assert own.path.stat().st_mode & 0o777 == 0o700
        token = (own.path / MARKER).read_text()
        assert (own.path / MARKER).stat().st_mode & 0o777 == 0o600
        assert token not in own.path.name
        assert token in journal._file.path.read_text()


def test_a_link_in_place_of_iolab_s_directory_is_left_alone(tmp_path: Path, state_dir: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    with UndoJournal.open() as journal:
        own = make_own_directory(tmp_path, journal)
        shutil.copy2(own.path / MARKER, precious)
        own.path.rename(tmp_path / "moved")
        own.path.symlink_to(precious)
        with pytest.raises(IolabError), own.opened():
            pass
        outcomes, problems = journal.restore()
    assert problems == []
    assert [outcome.line for outcome in outcomes] == [
        f"{own.path} is not the directory that iolab made, and is left alone"
    ]
    assert own.path.is_symlink()
    assert (precious / MARKER).exists()


def test_a_link_above_iolab_s_directory_is_not_followed(tmp_path: Path, state_dir: Path) -> None:
    parent = tmp_path / "parent"
    parent.mkdir()
    with UndoJournal.open() as journal:
        own = make_own_directory(parent, journal)
        parent.rename(tmp_path / "moved")
        parent.symlink_to("moved")
        outcomes, _ = journal.restore()
    assert "a directory above it was replaced" in outcomes[0].line
    assert (tmp_path / "moved" / own.path.name / MARKER).exists()


def test_a_kill_while_the_marker_is_written_leaves_nothing(tmp_path: Path, state_dir: Path) -> None:
    path = tmp_path / "iolab-0"
    path.mkdir()
    (path / MARKER).touch()
    assert RemoveTree(str(path), "token").undo() is not None
    assert not path.exists()


def test_directories_are_entered_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a")
    with beneath.opened(tmp_path / "a" / "b") as fd:
        assert os.path.samestat(os.fstat(fd), (tmp_path / "a" / "b").stat())
    with pytest.raises(NotADirectoryError), beneath.opened(tmp_path / "link" / "b"):
        pass
    root = Directory.at(tmp_path)
    root.make_parents(PurePosixPath("a/c/d/file"))
    assert (tmp_path / "a" / "c" / "d").is_dir()
    with pytest.raises(NotADirectoryError):
        root.make_parents(PurePosixPath("link/c/file"))


def test_another_program_is_told_of_files_by_descriptor(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "file").write_bytes(PRECIOUS)
    (tmp_path / "target").write_bytes(b"target")
    status = (tmp_path / "target").stat()
    below = {"path": f"{tmp_path}/own/file", "beneath": Directory.at(tmp_path / "own").as_json(), "identity": None}
    known = {
        "path": f"{tmp_path}/target",
        "beneath": None,
        "identity": {"device": status.st_dev, "inode": status.st_ino},
    }
    plain = {"path": "/dev/null"}
    with ExitStack() as stack:
        names, fds = beneath.held([below, known, plain, below], stack)
        (tmp_path / "own").rename(tmp_path / "moved")
        (tmp_path / "target").rename(tmp_path / "moved.target")
        assert Path(names[0]).read_bytes() == Path(names[3]).read_bytes() == PRECIOUS
        assert Path(names[1]).read_bytes() == b"target"
        assert (names[2], len(fds)) == ("/dev/null", 2)
    (tmp_path / "own").mkdir()
    (tmp_path / "target").touch()
    for file in (below, known):
        with ExitStack() as stack, pytest.raises(InputError, match="is there now"):
            beneath.held([file], stack)
