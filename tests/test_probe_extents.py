"""Where files lie: real filesystems on loop devices, and the probe's numbers and table."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
from iolab import _native
from iolab.domain.metric import METRICS
from iolab.domain.phase_record import probes_of
from iolab.files import store
from iolab.machines.host.extents import evenly
from iolab.presentation.table import render
from support.command_line import CommandLine
from support.devices import attach, command, detach, sparse_file
from support.experiments import SCRATCH, experiment

BLOCK = 4096
MAKERS = {
    "ext2": ("mkfs.ext2", "-q", "-F", "-b", "4096"),
    "ext3": ("mkfs.ext3", "-q", "-F", "-b", "4096"),
    "ext4": ("mkfs.ext4", "-q", "-F", "-b", "4096"),
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
}
PREALLOCATES, SHARES = ("ext4", "xfs", "btrfs"), ("xfs", "btrfs")

Json = dict[str, Any]


@contextmanager
def mounted(path: Path, filesystem: str) -> Iterator[Path]:
    device = attach(sparse_file(path / "image", 400 << 20))
    point = path / "mounted"
    point.mkdir()
    try:
        command(*MAKERS[filesystem], device)
        command("mount", device, point)
        try:
            yield point
        finally:
            command("umount", point)
    finally:
        detach(device)


def examine(*paths: Path, method: str | None = None, extents_max: int = 10_000, listed_max: int = 1000) -> Json:
    bounds = {"extents_max": extents_max, "listed_max": listed_max, "method": method}
    found: Json = json.loads(_native.extents([str(path) for path in paths], json.dumps(bounds)))
    return found


def write_in_turn(paths: list[Path], blocks: int, *, sync: bool) -> None:
    """A block of each file, again and again."""
    files = [os.open(path, os.O_CREAT | os.O_WRONLY) for path in paths]
    for _ in range(blocks):
        for file in files:
            os.write(file, b"x" * BLOCK)
            if sync:
                os.fsync(file)
    for file in files:
        os.close(file)


@pytest.mark.root
@pytest.mark.parametrize("filesystem", MAKERS)
def test_layouts_on_a_real_filesystem(tmp_path: Path, filesystem: str) -> None:
    with mounted(tmp_path, filesystem) as point:
        pair = [point / "first", point / "second"]
        write_in_turn(pair, 20, sync=True)
        sparse = point / "sparse"
        with sparse.open("wb") as file:
            file.write(b"x" * 2 * BLOCK)
            file.seek(256 * BLOCK)
            file.write(b"y" * BLOCK)
            file.truncate(512 * BLOCK)
        found = examine(*pair, sparse)
        first, second, holed = found["files"]
        assert [file["method"] for file in found["files"]] == ["fiemap"] * 3
        for file in (first, second):
            assert file["complete"]
            assert (file["size_bytes"], file["mapped_bytes"], file["hole_bytes"]) == (20 * BLOCK, 20 * BLOCK, 0)
            assert sum(length for _, _, length, _ in file["listed"]) == 20 * BLOCK
            assert file["extents"] > 1
        assert (holed["mapped_bytes"], holed["hole_bytes"]) == (3 * BLOCK, 509 * BLOCK)
        assert [logical for logical, *_ in holed["listed"]] == [0, 256 * BLOCK]
        (between,) = examine(*pair)["interleaving"]
        assert between["files"] == 2 and between["switches"] > 1
        assert 0 < between["share"] <= 1
        assert between["stretch_bytes_mean"] == between["bytes"] / (between["switches"] + 1)


@pytest.mark.root
@pytest.mark.parametrize("filesystem", PREALLOCATES)
def test_what_is_allocated_and_not_written_is_told(tmp_path: Path, filesystem: str) -> None:
    with mounted(tmp_path, filesystem) as point:
        path = point / "allocated"
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 64 * BLOCK)
            file.write(b"x" * BLOCK)
        command("fallocate", "--keep-size", "--offset", str(64 * BLOCK), "--length", str(64 * BLOCK), path)
        (found,) = examine(path)["files"]
        assert dict(found["bytes_by_flag"])["unwritten"] == 127 * BLOCK
        assert (found["mapped_bytes"], found["beyond_end_bytes"]) == (128 * BLOCK, 64 * BLOCK)
        assert (found["size_bytes"], found["hole_bytes"]) == (64 * BLOCK, 0)


@pytest.mark.root
@pytest.mark.parametrize("filesystem", SHARES)
def test_shared_extents_are_told_and_counted_once(tmp_path: Path, filesystem: str) -> None:
    with mounted(tmp_path, filesystem) as point:
        (point / "one").write_bytes(b"x" * 16 * BLOCK)
        command("cp", "--reflink=always", point / "one", point / "other")
        found = examine(point / "one", point / "other")
        assert [dict(file["bytes_by_flag"])["shared"] for file in found["files"]] == [16 * BLOCK] * 2
        assert found["interleaving"][0]["bytes"] == 16 * BLOCK


@pytest.mark.root
def test_small_files_in_the_inode_have_no_place(tmp_path: Path) -> None:
    with mounted(tmp_path, "btrfs") as point:
        (point / "small").write_bytes(b"x" * 99)
        found = examine(point / "small")
        ((_, physical, _, flags),) = found["files"][0]["listed"]
        assert physical is None and "inline" in flags
        assert found["interleaving"] == []


@pytest.mark.root
@pytest.mark.parametrize("filesystem", ["ext2", "ext4"])
def test_block_by_block_tells_the_same(tmp_path: Path, filesystem: str) -> None:
    with mounted(tmp_path, filesystem) as point:
        paths = [point / "first", point / "second"]
        write_in_turn(paths, 16, sync=True)
        by_extent, by_block = examine(*paths), examine(*paths, method="fibmap")
        assert [file["method"] for file in by_block["files"]] == ["fibmap"] * 2
        assert [file["listed"] for file in by_block["files"]] == [file["listed"] for file in by_extent["files"]]
        assert by_block["interleaving"] == by_extent["interleaving"]


@pytest.mark.root
def test_bounds_are_kept_and_told(tmp_path: Path) -> None:
    with mounted(tmp_path, "xfs") as point:
        paths = [point / "first", point / "second"]
        write_in_turn(paths, 16, sync=True)
        (cut,) = examine(paths[0], extents_max=2, listed_max=1)["files"]
        assert (cut["extents"], cut["complete"], cut["hole_bytes"], len(cut["listed"])) == (2, False, None, 1)


def test_a_filesystem_in_memory_has_none() -> None:
    path = Path("/dev/shm") / f"iolab-test-extents-{os.getpid()}"
    path.write_bytes(b"x" * BLOCK)
    try:
        (found,) = examine(path)["files"]
    finally:
        path.unlink()
    assert "no extents to show" in found["absent"]


def test_malformed_bounds_are_refused() -> None:
    with pytest.raises(ValueError, match="bounds of extents"):
        _native.extents([], '{"extents_max": 1}')


@pytest.mark.parametrize(("there", "wanted"), [(0, 3), (3, 3), (10, 3), (7, 6)])
def test_of_too_many_files_some_are_taken_evenly(there: int, wanted: int) -> None:
    chosen = evenly(list(range(there)), wanted)
    assert len(chosen) == min(there, wanted)
    assert chosen == sorted(set(chosen)) and chosen[:1] == list(range(there))[:1]
    gaps = {after - before for before, after in pairwise(chosen)}
    assert not gaps or max(gaps) - min(gaps) <= 1


def layout(extents: int, mapped: int, **more: object) -> Json:
    return {"extents": extents, "mapped_bytes": mapped, "hole_bytes": 0, "bytes_by_flag": [], **more}


def value(metric: str, found: Json) -> float | None:
    class Seen:
        probes: ClassVar = {"extents": found}

    return METRICS[metric].of(Seen())  # type: ignore[arg-type]


def test_metrics_come_of_all_files_that_were_told() -> None:
    device = {"files": 2, "extents": 6, "bytes": 600, "switches": 4, "stretch_bytes_mean": 120.0, "share": 0.75}
    found = {
        "files": [layout(4, 400, bytes_by_flag=[["shared", 7]]), {"absent": "gone"}, layout(2, 200)],
        "interleaving": [device],
    }
    assert value("extents_per_file_mean", found) == 3
    assert value("extents_per_file_max", found) == 4
    assert value("extent_bytes_mean", found) == 100
    assert value("interleave_switches", found) == 4
    assert value("interleave_share", found) == 0.75
    assert value("stretch_bytes_mean", found) == 120
    assert value("file_shared_bytes", found) == 7
    assert value("file_unwritten_bytes", found) == 0


@pytest.mark.root
def test_a_run_shows_where_its_files_lie(iolab: CommandLine, tmp_path: Path) -> None:
    workload = '[workloads.writers]\nkind = "tiobench"\nfile_size = "2MiB"\nthreads = 2\n'
    settings = '[probes]\nextents = { listed = 3 }\n[settings.a]\nfilesystem = "xfs"\n'
    target = SCRATCH.replace('filesystem = "ext4"', "").replace("64MiB", "320MiB")
    iolab.write("files.toml", experiment(target, workload=workload, settings=settings, rounds=1))
    iolab("run", "files.toml", "--out", "run")
    run = store.read(tmp_path / "run")
    (first, *_) = run.record(0).phases
    found = probes_of(first)["extents"]
    assert [file["path"] for file in found["files"]] == ["thread.0", "thread.1"]
    assert (found["files_found"], found["files_left_out"]) == (2, 0)
    text = render(run, "extents")
    assert "writers, sequential_write, a" in text
    assert "thread.1: 1048576 bytes in" in text
    assert "as after sequential_write" in text
