"""The kind iozone: what its options become, and the tool's tables, read back by the importer."""

from pathlib import Path
from typing import Any

import pytest
from iolab.base.errors import InputError
from iolab.domain.trial import LoadPhase
from iolab.domain.workload import KINDS
from iolab.domain.workload.iozone import CLASSIC
from iolab.files.importer.run_import import open_run
from iolab.files.store import RunData
from iolab.presentation.table import render
from iolab.presentation.table.iozone import MATRIX_HEADINGS
from support.stored import stored_run

KIB = 1024
EXPERIMENT = """\
rounds = 2
seed = 7
[target]
kind = "directory"
path = "."
[workloads.classic]
kind = "iozone"
file_size = "4MiB"
threads = [1, 4]
tests = ["write", "rewrite", "read", "random_read"]
[settings.plain]
[settings.pinned]
cpus = [0]
"""
POSTED_ROW = "          102400       4     2689     3151     9640     9720     8995     2452" + " " * 58
"""The matrix of a board's SD card, as posted with -i 0 -i 1 -i 2: where the tool's numbers stand."""


def phases(devices: int = 1, **options: Any) -> dict[str, LoadPhase]:
    kind = KINDS["iozone"]
    accepted = kind.options.model_validate(options)
    assert not list(kind.conflicts(accepted))
    made = kind.phases(accepted, 1, devices)
    assert all(isinstance(phase, LoadPhase) for phase in made)
    return {phase.name: phase for phase in made if isinstance(phase, LoadPhase)}


def job(phase: LoadPhase) -> dict[str, Any]:
    found: dict[str, Any] = phase.load["groups"][0]["jobs"][0]
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return stored_run(tmp_path_factory.mktemp("iozone") / "run", EXPERIMENT)


def test_all_tests_run_in_the_tools_order_and_writes_are_synced_after() -> None:
    made = phases(file_size="1MiB")
    assert [name for name, phase in made.items() if phase.measured] == CLASSIC
    unmeasured = [name for name, phase in made.items() if not phase.measured]
    assert unmeasured == ["sync write", "sync rewrite", "sync random_write", "sync record_rewrite"]
    assert all(job(made[name])["sync_at_end"] for name in unmeasured)
    assert not any(job(made[name])["sync_at_end"] for name in CLASSIC)


def test_each_test_goes_over_the_file_once() -> None:
    for name, phase in phases(file_size="1000KiB", record_size="64KiB", stride=3).items():
        if phase.measured:
            assert job(phase)["until"]["bytes"] == 15 * 64 * KIB, name


def test_fsync_counts_where_it_is_asked_for() -> None:
    made = phases(tests=["read", "write"], fsync=True)
    assert list(made) == ["write", "read"]
    assert job(made["write"])["sync_at_end"]
    assert not job(made["read"])["sync_at_end"]


def test_without_write_the_files_are_written_first() -> None:
    made = phases(tests=["read"])
    assert [(name, phase.measured) for name, phase in made.items()] == [("layout", False), ("read", True)]
    assert made["layout"].writes
    assert job(made["layout"])["sync_at_end"]


@pytest.mark.parametrize(
    ("test", "pattern"),
    [
        ("backward_read", {"kind": "backward"}),
        ("random_read", {"kind": "permutation"}),
        ("stride_read", {"kind": "strided", "stride_bytes": 17 * 4096}),
    ],
)
def test_patterns(test: str, pattern: dict[str, Any]) -> None:
    assert job(phases()[test])["pattern"] == pattern


def test_files_grow_and_carry_the_same_data_as_the_tools() -> None:
    for phase in phases(tests=["write"], close=True).values():
        assert not any(file["extend"] for file in phase.load["files"])
        (group,) = phase.load["groups"]
        assert not group["fresh_data"]
        assert group["close_in_time"] == phase.measured
    (mapped, _) = phases(tests=["write"], engine="mmap", fresh_data=True).values()
    assert mapped.load["files"][0]["extend"]
    assert mapped.load["groups"][0]["fresh_data"]


@pytest.mark.parametrize(
    ("options", "ends"), [({"threads": 4}, True), ({"threads": 4, "stop_with_first": False}, False), ({}, False)]
)
def test_the_first_thread_that_finishes_ends_the_measured_tests_of_several(options: dict[str, Any], ends: bool) -> None:
    for phase in phases(tests=["rewrite", "read"], **options).values():
        assert phase.load["ends_with_first"] == (ends and phase.measured), phase.name


@pytest.mark.parametrize(
    ("percent", "readers"), [(None, [0, 2, 4]), (0, []), (34, [0, 3]), (50, [0, 2, 4]), (100, [0, 1, 2, 3, 4, 5])]
)
def test_some_threads_of_a_mixed_test_read(percent: float | None, readers: list[int]) -> None:
    mixed = phases(tests=["mixed"], threads=6, mixed_read_percent=percent, fsync=True)["mixed"]
    jobs = [group["jobs"][0] for group in mixed.load["groups"]]
    assert [thread for thread, job in enumerate(jobs) if job["read_share"] == 1] == readers
    assert [thread for thread, job in enumerate(jobs) if not job["sync_at_end"]] == readers


def test_tests_of_calls_make_those_and_need_no_layout_when_they_write_first() -> None:
    made = phases(tests=["pwritev", "pread", "repreadv"])
    engines = {name: phase.load["groups"][0]["engine"] for name, phase in made.items() if phase.measured}
    assert engines == {"pread": "psync", "pwritev": "pvsync", "repreadv": "pvsync"}
    assert "layout" in made
    assert "layout" not in phases(tests=["pwritev", "repreadv"])


def test_a_record_is_rewritten_in_place() -> None:
    assert job(phases(record_size="8KiB")["record_rewrite"])["length_bytes"] == 8 * KIB


def test_threads_have_files_of_their_own_and_take_devices_in_turn() -> None:
    load = phases(devices=2, threads=4, tests=["write"])["write"].load
    assert [file.get("place", 0) for file in load["files"]] == [0, 1, 0, 1]
    assert [group["jobs"][0]["files"] for group in load["groups"]] == [[0], [1], [2], [3]]


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"tests": ["write", "wirte"]}, "tests"),
        ({"tests": []}, "tests"),
        ({"file_size": 4096, "record_size": 8192}, "record_size"),
        ({"direct": True, "record_size": 1000}, "record_size"),
        ({"direct": True, "engine": "mmap"}, "direct"),
        ({"cpus": []}, "cpus"),
        ({"tests": ["mixed"]}, "tests"),
        ({"threads": 2, "mixed_read_percent": 50}, "mixed_read_percent"),
        ({"tests": ["pread"], "engine": "mmap"}, "engine"),
    ],
)
def test_what_makes_no_sense_is_named(options: dict[str, Any], key: str) -> None:
    kind = KINDS["iozone"]
    assert [conflict.key for conflict in kind.conflicts(kind.options.model_validate(options))] == [(key,)]


def test_the_matrix_stands_column_for_column_as_the_tools(run: RunData) -> None:
    lines = render(run, "iozone").splitlines()
    at = lines.index(MATRIX_HEADINGS[1])
    assert lines[at - 1] == MATRIX_HEADINGS[0]
    row = lines[at + 1]
    assert row.split()[:2] == ["4096", "4"]
    ends = [place for place in range(1, len(POSTED_ROW)) if POSTED_ROW[place - 1] != " " and POSTED_ROW[place] == " "]
    kb, reclen, write, rewrite, read, _, random_read, _ = ends
    assert [end for end in range(1, len(row)) if row[end - 1] != " " and row[end] == " "] == [
        kb,
        reclen,
        write,
        rewrite,
        read,
        random_read,
    ]


def test_values_are_the_records(run: RunData) -> None:
    text = render(run, "iozone")
    rate = run.values("write/rate_bytes_per_s", "classic[threads=1]")["plain"].mean()
    assert isinstance(rate, float)
    assert f"{round(rate / KIB):>9}" in text.splitlines()[5]
    children = run.values("read/rate_sum_bytes_per_s", "classic[threads=4]")["plain"].mean()
    assert f"Children see throughput for  4 readers          = {children / KIB:10.2f} kB/sec" in text  # type: ignore[operator]
    assert "Write test: CPU utilization: Wall time    1.000    CPU time    0.290    CPU utilization  29.00 %" in text


def test_the_importer_reads_it_back(run: RunData, tmp_path: Path) -> None:
    (tmp_path / "posted.txt").write_text(render(run, "iozone"))
    imported = open_run(tmp_path / "posted.txt")
    assert imported.settings == ["plain", "pinned"]
    mine = run.values("read/rate_bytes_per_s", "classic[threads=1]")["pinned"].mean()
    theirs = imported.values("read/rate_bytes_per_s", "iozone[file_kib=4096,record_kib=4]")
    assert theirs["pinned"].to_list() == pytest.approx([mine], rel=1e-3)
    several = "iozone[file_kib=4096,record_kib=4,threads=4]"
    assert imported.values("write/cpu_percent", several)["plain"].to_list() == pytest.approx([116])
    assert imported.values("random_read/transfer_bytes_min", several)["plain"].drop_nulls().len() == 1


def test_its_columns_are_fixed(run: RunData) -> None:
    with pytest.raises(InputError, match="fixed columns"):
        render(run, "iozone", ["iops"])


def test_a_run_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no workload of kind iozone"):
        render(stored_run(tmp_path / "run"), "iozone")
