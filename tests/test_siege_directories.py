"""Directories of other users: nothing of root's is overwritten, removed or shown, and nothing runs unasked."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from iolab.base import beneath, checked_lines
from iolab.base.errors import InputError
from iolab.files.collection import labels, removal
from iolab.files.collection.collection import Collection
from iolab.files.experiment import loads
from iolab.files.store import directory, examine
from iolab.machines.guest.directory import made_directory
from iolab.machines.host import control
from iolab.machines.host.control import Context
from iolab.machines.system import group
from iolab.machines.system.action import CannotUndo, DetachLoop, RemoveTree
from iolab.machines.system.block import device_at
from iolab.machines.system.own_directory import make_own_directory
from iolab.machines.system.undo import UndoJournal, restore_abandoned
from iolab.studies.run.origin import deeds
from iolab.studies.tuner import tuner
from iolab.studies.tuner.directory import TuneDirectory
from support.command_line import CommandLine, wait_until
from support.devices import MIB, attach, command, detach, loops_backed_under, mounted, sparse_file
from support.leftovers import processes_in
from support.stored import stored_run

ANOTHER = 65534
PRECIOUS = "what somebody keeps here\n"
MODEL = """\
machine = "model:dram-nvme"
rounds = 1
[workloads.x]
duration = "2ms"
"""


def give(path: Path) -> Path:
    """To another user, with all that is in it."""
    for one in (path, *path.rglob("*")):
        os.lchown(one, ANOTHER, ANOTHER)
    return path


def contents(path: Path) -> object:
    return tree(path) if path.is_dir() else path.read_bytes()


def tree(path: Path) -> dict[str, bytes | None]:
    return {str(one): one.read_bytes() if one.is_file() else None for one in sorted(path.rglob("*"))}


# What runs.


def search(iolab: CommandLine, out: str, measure: str) -> Path:
    versions = iolab.write("versions", "a\nb\nc\n")
    iolab("bisect", "--versions", versions, "--measure", measure, "--out", out, "--most", "6", "--confirm", "1")
    return iolab.cwd / out


def test_a_search_of_somebody_else_runs_nothing_unasked(iolab: CommandLine) -> None:
    path = search(iolab, "search", "echo ran >> ../../../ran")
    (iolab.cwd / "ran").unlink()
    iolab("bisect", "--resume", path)
    other = replace(iolab, state_dir=iolab.cwd / "state of another user")
    outcome = other("bisect", "--resume", path, status=None)
    outcome.assert_one_clear_line(2, "was not made here by this user", "--trust-run")
    assert "run sh -c" in outcome.stderr and not (iolab.cwd / "ran").exists()
    assert "somebody else" in other("bisect", "--resume", path, "--trust-run").stderr
    assert "somebody else" not in other("bisect", "--resume", path).stderr, "it was trusted before"


def test_a_search_whose_command_was_changed_is_somebody_elses(iolab: CommandLine) -> None:
    path = search(iolab, "search", "true")
    journal = path / "search.jsonl"
    first, *rest = journal.read_bytes().splitlines(keepends=True)
    question = checked_lines.read(first).entries[0]
    question["measure"] = "touch ../../../planted"
    journal.write_bytes(checked_lines.encode(question) + b"".join(rest))
    iolab("bisect", "--resume", path, status=None).assert_one_clear_line(2, "was not made here by this user")
    assert not (iolab.cwd / "planted").exists()


def test_a_tune_of_somebody_else_does_nothing_unasked(tmp_path: Path, state_dir: Path) -> None:

    path = Path(__file__).parents[1] / "experiments" / "tune" / "sequential-reads.toml"
    experiment = loads(path.read_text(), str(path), machine="host")
    made = TuneDirectory.create(tmp_path / "tune", experiment, 1)
    asked: list[str] = []

    def consent_of(path: Path) -> Callable[[list[str]], None]:
        def consent(to_do: list[str]) -> None:
            asked.extend([str(path), *to_do])
            raise InputError("no")

        return consent

    nobody: Any = None
    with pytest.raises(InputError, match=r"^no$"):
        tuner.resume(made.path, executor=nobody, progress=nobody, consent_of=consent_of)
    assert asked[0] == str(made.path) and any(line.startswith("try values of") for line in asked)
    with pytest.raises(InputError, match="was not made here by this user"):
        tuner.resume(made.path, executor=nobody, progress=nobody)


def test_of_a_guest_it_is_said_which_kernel_boots() -> None:
    text = """\
    machine = "guest:/tmp/bzImage"
    rounds = 1
    [target]
    kind = "scratch"
    size = "64MiB"
    filesystem = "none"
    [workloads.x]
    file_size = "1MiB"
    duration = "10ms"
    """
    experiment = loads(text, "x.toml", already_run=True)
    assert experiment.machine.acts_here and not experiment.machine.is_of_host
    assert "boot the kernel /tmp/bzImage in an emulated machine" in deeds(experiment)


def test_daemons_of_a_measured_command_are_gone_with_it(tmp_path: Path) -> None:
    script = (
        "setsid sh -c 'echo $$ > daemon; sleep 1000 & echo $! > child; wait' & "
        "setsid env -i sh -c 'echo $$ > bare; exec sleep 1000' & "
        "while ! [ -s daemon ] || ! [ -s child ] || ! [ -s bare ]; do :; done"
    )
    ended = group.run(script, cwd=tmp_path, variables={}, output=tmp_path / "output", limit_s=60)
    assert ended.status == 0
    assert processes_in(tmp_path) == []


@pytest.mark.root
def test_what_a_measured_command_started_ends_with_a_killed_search(tmp_path: Path, iolab: CommandLine) -> None:
    (tmp_path / "versions").write_text("a\nb\nc\n")
    measure = f"cd {tmp_path}; setsid sleep 1000 & sleep 1000"
    search = ("--versions", "versions", "--measure", measure, "--value", "printed", "--out", "hunt")
    with iolab.start("bisect", *search) as process:
        wait_until(lambda: sum("sleep 1000" in line for line in processes_in(tmp_path)) >= 3, "the command's processes")
        process.kill()
        process.communicate()
    wait_until(lambda: processes_in(tmp_path) == [], "their end")


# What is overwritten.


@pytest.mark.root
def test_root_goes_on_with_nothing_where_another_user_can_put_a_link(iolab: CommandLine) -> None:
    iolab("run", iolab.write("x.toml", MODEL), "--out", "theirs/run")
    search(iolab, "theirs/search", "true")
    theirs = give(iolab.cwd / "theirs")
    before = tree(theirs)
    for arguments in (
        ("run", "--resume", "theirs/run", "--rounds", "2"),
        ("run", "x.toml", "--out", "theirs/new"),
        ("bisect", "--resume", "theirs/search"),
        ("bisect", "--versions", "versions", "--measure", "true", "--out", "theirs/other"),
        ("sweep", "x.toml", "--out", "theirs/sweep"),
        ("site", "theirs", "--out", "theirs/site"),
    ):
        outcome = iolab(*arguments, status=None)
        outcome.assert_one_clear_line(2, "root would write where another user can put a link", "sudo -u nobody")
    assert tree(theirs) == before


@pytest.mark.root
def test_who_calls_sudo_is_trusted_with_runs(iolab: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    (iolab.cwd / "home").mkdir()
    give(iolab.cwd / "home")
    monkeypatch.setenv("SUDO_UID", str(ANOTHER))
    iolab("run", iolab.write("x.toml", MODEL), "--out", "home/run")
    iolab("run", "--resume", "home/run", "--rounds", "2")


@pytest.mark.parametrize("name", ["journal.jsonl", "trials", "index"])
def test_no_part_of_a_run_that_is_a_link_is_written_through(name: str, iolab: CommandLine) -> None:
    iolab("run", iolab.write("x.toml", MODEL), "--out", "run")
    place = iolab.cwd / "run" / name
    away = iolab.cwd / "away"
    place.rename(away)
    place.symlink_to(away)
    before = contents(away)
    outcome = iolab("run", "--resume", "run", "--rounds", "2", status=None)
    outcome.assert_one_clear_line(2, f"run/{name}: is a symbolic link")
    assert contents(away) == before


@pytest.mark.parametrize("content", ["text\n", "\0" * 100, "\x7fELF\x01"])
def test_the_journal_of_a_search_that_is_a_link_is_left(content: str, iolab: CommandLine) -> None:
    path = search(iolab, "search", "true")
    victim = iolab.write("victim", content)
    (path / "search.jsonl").unlink()
    (path / "search.jsonl").symlink_to(victim)
    assert iolab("bisect", "--resume", path, status=None).status == 2
    (path / "search.jsonl").unlink()
    shutil.copy(victim, path / "search.jsonl")
    iolab("bisect", "--resume", path, status=None).assert_one_clear_line(2, "search.jsonl")
    assert victim.read_text() == content == (path / "search.jsonl").read_text()


@pytest.mark.parametrize("content", [None, "", "SQLite format 3\0"])
def test_an_index_that_is_a_link_is_left(content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    runs, victim = tmp_path / "runs", tmp_path / "victim"
    stored_run(runs / "run")
    if content is not None:
        victim.write_text(content)
    (runs / ".iolab-index").mkdir()
    (runs / ".iolab-index" / "index.sqlite").symlink_to(victim)
    found = Collection(runs)
    found.refresh()
    assert [one.name for one in found.entries] == ["run"]
    assert (victim.read_text() if victim.exists() else None) == content
    assert found.index_file.is_relative_to(tmp_path / "cache")


@pytest.mark.root
def test_the_index_of_a_directory_of_others_is_in_ones_own_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    stored_run(tmp_path / "runs" / "run")
    give(tmp_path / "runs")
    found = Collection(tmp_path / "runs")
    found.refresh()
    assert [one.name for one in found.entries] == ["run"] and not (tmp_path / "runs" / ".iolab-index").exists()


def test_labels_are_written_over_no_link(tmp_path: Path) -> None:
    stored_run(tmp_path / "run")
    victim = tmp_path / "victim"
    victim.write_text(PRECIOUS)
    for name in (f".labels.json.{os.getpid()}.tmp", "labels.json"):
        (tmp_path / "run" / name).symlink_to(victim)
    with pytest.raises(InputError, match="symbolic link"):
        labels.tag(tmp_path / "run", ("good",))
    (tmp_path / "run" / "labels.json").unlink()
    labels.tag(tmp_path / "run", ("good",))
    assert victim.read_text() == PRECIOUS and labels.read(tmp_path / "run").tags == ("good",)


def test_a_directory_that_is_called_like_a_nursery_stays(tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    mine = [tmp_path / f".run.{dead.pid}.new", tmp_path / ".run.0123456789abcdef.tmp"]
    for one in mine:
        one.mkdir()
        (one / "kept").touch()
    abandoned = tmp_path / ".run.0123456789abcde0.tmp"
    (abandoned / "trials").mkdir(parents=True)
    directory.create(tmp_path / "run", experiment_text="", machine={}, first_event={"event": "run_started"})  # type: ignore[typeddict-item]
    assert all((one / "kept").exists() for one in mine) and not abandoned.exists()


# What is removed.


@pytest.mark.root
def test_a_run_that_is_swapped_for_a_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    precious = tmp_path / "precious"
    stored_run(precious)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    shutil.copytree(precious, theirs / "run")
    before = tree(precious)
    rename, swaps = os.rename, []

    def swapped(source: str, target: str, **where: int) -> None:
        if not swaps:
            swaps.append(source)
            (theirs / "run").rename(theirs / "aside")
            (theirs / "run").symlink_to(precious)
        rename(source, target, **where)

    monkeypatch.setattr(os, "rename", swapped)
    with pytest.raises(InputError, match="another directory took its place"):
        removal.remove(theirs / "run")
    assert swaps and tree(precious) == before
    assert {one.name for one in theirs.iterdir()} == {"run", "aside"}


@pytest.mark.root
def test_a_filesystem_that_is_mounted_in_a_run_stays_and_the_run_too(tmp_path: Path) -> None:
    stored_run(tmp_path / "run")
    inside = tmp_path / "run" / "trials" / "mounted here"
    inside.mkdir()
    command("mount", "-t", "tmpfs", "none", inside)
    try:
        (inside / "precious").write_text(PRECIOUS)
        with pytest.raises(InputError, match=r"mounted here: a filesystem is mounted in it"):
            removal.remove(tmp_path / "run")
        parent = os.open(tmp_path, beneath.LISTED)
        with pytest.raises(OSError, match="mounted"):
            beneath.remove_tree("run", parent)
        os.close(parent)
        assert (inside / "precious").read_text() == PRECIOUS
    finally:
        command("umount", inside)


def test_a_run_that_cannot_be_removed_has_its_name_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored_run(tmp_path / "run")

    def refused(name: str, parent: int) -> None:
        raise OSError(1, "Operation not permitted", name)

    monkeypatch.setattr(beneath, "remove_tree", refused)
    with pytest.raises(InputError, match="Operation not permitted"):
        removal.remove(tmp_path / "run")
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith((".run", "run"))] == ["run"]


# What is left on.


def die(journal: UndoJournal) -> None:
    """As a kill leaves it."""
    journal._file.close()
    journal._closed = journal._taken_over = True


def test_a_guests_directory_is_in_the_undo_journal(tmp_path: Path, state_dir: Path) -> None:
    for parent in (None, str(tmp_path)):
        made = made_directory(parent)
        place = made.__enter__()
        (place / "drive0").write_text("an image")
        journal = UndoJournal.latest
        assert journal is not None
        die(journal)
        assert restore_abandoned() == [f"removed {place}"]
        assert not place.exists()
        made.__exit__(None, None, None)


@pytest.mark.root
def test_a_loop_device_of_another_mount_namespace_is_detached(tmp_path: Path, state_dir: Path) -> None:
    seen, own = tmp_path / "seen", "iolab-0123456789abcdef"
    (seen / own).mkdir(parents=True)
    device = attach(sparse_file(seen / own / "image", MIB))
    unseen = tmp_path / "only in the other namespace" / own
    try:
        with pytest.raises(CannotUndo, match="another mount namespace"):
            RemoveTree(str(unseen), "token").undo()
        outcome = DetachLoop(str(unseen / "image")).undo()
        assert outcome is not None and str(device) in outcome.line
        # The kernel detaches it when nobody has it open, as whoever looks at all devices has for a moment.
        wait_until(lambda: not loops_backed_under(seen), "the device to be detached")
    finally:
        for left in loops_backed_under(seen):  # the number may be somebody else's by now
            detach(Path(left))


@pytest.mark.root
def test_a_share_of_dirty_pages_comes_back_as_fine_as_it_was(tmp_path: Path, state_dir: Path) -> None:

    node = attach(sparse_file(tmp_path / "backing", MIB))
    try:
        device = device_at(node)
        fine = device.directory / "bdi" / "max_ratio_fine"
        if not fine.exists():
            pytest.skip("this kernel has no finer file")
        fine.write_text("555555")
        for value in (30, 55):
            with UndoJournal.open() as undo:
                control.apply({"bdi_max_ratio": value}, Context("loop", device, undo))
                assert fine.read_text().strip() == str(value * 10_000)
            assert fine.read_text().strip() == "555555"
    finally:
        detach(node)


def test_the_sweeps_own_list_is_read_through_no_link(iolab: CommandLine) -> None:
    iolab("sweep", iolab.write("x.toml", MODEL), "--out", "sweep")
    listed = iolab.cwd / "sweep" / "sweep.json"
    assert json.loads(listed.read_text())["format"] == 1
    listed.rename(iolab.cwd / "away.json")
    listed.symlink_to(iolab.cwd / "away.json")
    iolab("sweep", "--resume", "sweep", status=None).assert_one_clear_line(2, "sweep")


def test_a_run_that_goes_away_while_it_is_read_is_no_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored_run(tmp_path / "runs" / "run")
    scan = examine._scan

    def gone(trials: Path) -> dict[str, os.stat_result]:
        shutil.rmtree(tmp_path / "runs" / "run")
        return scan(trials)

    monkeypatch.setattr(examine, "_scan", gone)
    found = Collection(tmp_path / "runs")
    found.refresh()
    assert not any("defect" in problem for entry in found.entries for problem in entry.problems)


@pytest.mark.root
def test_a_directory_on_a_filesystem_that_is_not_mounted_waits_for_it(tmp_path: Path, state_dir: Path) -> None:
    """As after a run that was killed with its mount namespace."""

    place = tmp_path / "place"
    place.mkdir()
    image = sparse_file(tmp_path / "image", 64 * MIB)
    command("mkfs.ext4", "-q", image)
    device = attach(image)
    try:
        journal = UndoJournal.open()
        with mounted(device, place):
            own = make_own_directory(place, journal).path
            die(journal)
        waits = f"cannot remove {own}: it is on a filesystem that is not mounted here; mount it at {place}, then: "
        assert [line.startswith(waits) for line in restore_abandoned()] == [True]
        with mounted(device, place):
            assert restore_abandoned() == [f"removed {own}"]
            assert not own.exists()
        assert restore_abandoned() == []
    finally:
        detach(device)
