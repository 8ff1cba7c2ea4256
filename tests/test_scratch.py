"""The scratch device: made, used, gone."""

import os
from pathlib import Path

import pytest
from iolab.base.errors import InputError, IolabError, MachineError
from iolab.domain.filesystem_options import HAVE_LOG_DEVICES
from iolab.domain.trial import ScratchTarget
from iolab.machines.system import mounts, scratch
from iolab.machines.system.block import shown
from iolab.machines.system.filesystem import FILESYSTEMS
from iolab.machines.system.undo import UndoJournal
from support.devices import detach, loops_backed_under
from support.trials import scratch_target

SIZE_BYTES = 384 << 20
"""mkfs.xfs wants 300 MiB at least."""


def target(**changes: object) -> ScratchTarget:
    return scratch_target(**{"size_bytes": SIZE_BYTES, **changes})


pytestmark = pytest.mark.root


@pytest.mark.parametrize("name", FILESYSTEMS)
def test_each_filesystem_is_made_mounted_and_removed(name: str, state_dir: Path, leftovers: None) -> None:
    with UndoJournal.open() as undo:
        made = scratch.make(target(filesystem=name, mount_options="noatime"), undo)
        assert made.mount_point is not None
        mount = mounts.mount_at(made.mount_point)
        assert mount is not None
        assert mount.filesystem == name
        assert "noatime" in mount.options.split(",")
        (made.mount_point / "file").write_bytes(b"x")
    assert list((state_dir / "scratch").iterdir()) == []


@pytest.mark.parametrize("name", HAVE_LOG_DEVICES)
def test_a_log_has_a_device_of_its_own(name: str, tmp_path: Path, state_dir: Path, leftovers: None) -> None:
    """Its sparse file lies where it is told, and goes with the other."""
    place = tmp_path / "place"
    place.mkdir()
    log = {"size_bytes": 64 << 20, "backing_directory": str(place)}
    with UndoJournal.open() as undo:
        made = scratch.make(target(filesystem=name, log=log), undo)
        assert made.mount_point is not None and made.sides.log is not None
        assert f"{place}/" in loops_backed_under(tmp_path)[str(made.sides.log)]
        with pytest.raises(OSError, match="busy"):
            os.open(made.sides.log, os.O_RDONLY | os.O_EXCL)
        (made.mount_point / "file").write_bytes(b"x")
    assert [*place.iterdir(), *(state_dir / "scratch").iterdir()] == []


def test_a_realtime_section_is_made_or_the_kernel_said_to_have_none(state_dir: Path, leftovers: None) -> None:
    realtime = {"size_bytes": 64 << 20, "backing_directory": None}
    with UndoJournal.open() as undo:
        try:
            made = scratch.make(target(filesystem="xfs", realtime=realtime), undo)
        except MachineError as error:
            assert "CONFIG_XFS_RT" in str(error)
        else:
            assert made.mount_point is not None
            assert "rtdev=" in getattr(mounts.mount_at(made.mount_point), "options", "")


def test_a_bare_device_with_large_sectors(leftovers: None) -> None:
    with UndoJournal.open() as undo:
        made = scratch.make(target(filesystem=None, sector_bytes=4096), undo)
        assert made.mount_point is None
        assert shown(made.device.queue / "logical_block_size") == "4096"
        assert made.device.size_bytes == SIZE_BYTES


def test_it_lies_where_it_is_told(tmp_path: Path, leftovers: None) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with UndoJournal.open() as undo:
        scratch.make(target(backing_directory=str(place)), undo)
        assert len(list(place.glob("iolab-*/image"))) == 1
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"mkfs_options": "--no-such-option"},
        {"mkfs_options": "-b '"},
        {"mount_options": "no_such_option"},
        {"filesystem": "xfs", "size_bytes": 1 << 20},
        {"filesystem": "zzz"},
        {"backing_directory": "/nonexistent"},
    ],
)
def test_what_mkfs_and_mount_refuse_is_an_error_and_leaves_nothing(changes: dict[str, object], leftovers: None) -> None:
    with pytest.raises(InputError), UndoJournal.open() as undo:
        scratch.make(target(**changes), undo)


def test_without_root_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch, state_dir: Path) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(IolabError, match="sudo iolab run"), UndoJournal.open() as undo:
        scratch.make(target(), undo)


@pytest.mark.machine
def test_it_starts_with_the_kernel_s_default_scheduler(leftovers: None, loop_device: Path) -> None:
    """A loop device keeps its scheduler when it is detached; what an earlier user left comes back afterwards."""
    scheduler = Path("/sys/block") / loop_device.name / "queue" / "scheduler"
    scheduler.write_text("bfq")
    detach(loop_device)
    try:
        with UndoJournal.open() as undo:
            made = scratch.make(target(filesystem=None), undo)
            assert made.node == loop_device, "a program beside the tests took the loop device meanwhile"
            assert shown(scheduler) == "none"
        assert shown(scheduler) == "bfq"
    finally:
        scheduler.write_text("none")
