"""Where others could put files, iolab keeps and reads none."""

import os
from pathlib import Path

import pytest
from iolab.base.errors import MachineError
from iolab.machines.system import state, trust

NOBODY = 65534


def test_missing_directories_are_made_for_this_user_alone(tmp_path: Path) -> None:
    made = trust.make_private_directory(tmp_path / "a" / "b")
    assert made == tmp_path / "a" / "b"
    assert [made.stat().st_mode & 0o777, made.parent.stat().st_mode & 0o777] == [0o700, 0o700]


def test_what_others_could_read_they_can_no_longer(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    trust.make_private_directory(tmp_path / "a")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o757])
def test_a_directory_that_all_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    for attempt in (trust.make_private_directory, trust.check_directory):
        with pytest.raises(MachineError, match="all users"):
            attempt(tmp_path / "open")
    if mode & 0o1000:  # as in /tmp, nobody can replace what is another's
        trust.make_private_directory(tmp_path / "open" / "own")
    else:
        with pytest.raises(MachineError, match="all users"):
            trust.make_private_directory(tmp_path / "open" / "own")


def test_a_link_of_one_s_own_is_followed_and_where_it_leads_is_checked(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert trust.check_directory(tmp_path / "link" / "below") is None
    assert trust.make_private_directory(tmp_path / "link" / "below") == tmp_path / "real" / "below"
    (tmp_path / "real").chmod(0o777)
    with pytest.raises(MachineError, match="real: can be written by all users"):
        trust.make_private_directory(tmp_path / "link" / "below")


def test_links_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(MachineError, match="links"):
        trust.check_directory(tmp_path / "one")


@pytest.mark.root
def test_what_another_user_has_or_can_replace_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    (theirs / "undo").mkdir(parents=True)
    os.chown(theirs, NOBODY, NOBODY)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    os.lchown(link, NOBODY, NOBODY)
    shared = tmp_path / "shared"
    shared.mkdir()
    os.chown(shared, 0, NOBODY)
    shared.chmod(0o770)
    for path, why in ((theirs / "undo", "user nobody"), (link / "undo", "user nobody"), (shared, "group nogroup")):
        with pytest.raises(MachineError, match=why):
            trust.make_private_directory(path)


@pytest.mark.parametrize("plant", ["link", "hard link", "directory", "fifo", "open"])
def test_only_a_plain_file_of_one_s_own_is_opened(tmp_path: Path, plant: str) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    path = tmp_path / "1.lock"
    match plant:
        case "link":
            path.symlink_to(precious)
        case "hard link":
            path.hardlink_to(precious)
        case "directory":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "open":
            path.touch()
            path.chmod(0o666)
    with pytest.raises((MachineError, OSError)):
        trust.open_own_file(path, os.O_RDWR | os.O_CREAT)
    assert precious.read_text() == "kept"


def test_locks_are_the_machine_s_whatever_the_state_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = set()
    for name in ("one", "two"):
        monkeypatch.setenv("IOLAB_STATE_DIR", str(tmp_path / name))
        found.add(state.locks_directory())
    assert len(found) == 1
    assert found.pop().stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("shown", "user"), [("0 0 4294967295", 0), ("0 1000 1", 1000), ("0 0 1\n1 5 9", 0)])
def test_root_of_a_user_namespace_is_the_user_that_it_is_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: str, user: int
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(trust, "UID_MAP", tmp_path / "uid_map")
    trust.UID_MAP.write_text(f"{shown}\n")
    assert trust.user_of_machine() == user
