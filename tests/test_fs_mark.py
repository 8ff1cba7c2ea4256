"""`kind = "fs_mark"`: what its options become, what its tables look like, how it runs and fails on a real kernel."""

import json
import os
import re
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from iolab import _native
from iolab.domain.trial import MetadataPhase
from iolab.domain.workload import KINDS
from iolab.files.importer.run_import import open_run
from iolab.files.store import read
from iolab.presentation.table import render
from support.command_line import CommandLine, wait_until
from support.experiments import SCRATCH, experiment
from support.runs import events, faults, statuses, times_finished

KIND = KINDS["fs_mark"]
TOOL_HEADER = (
    "FSUse%        Count         Size    Files/sec     App Overhead        CREAT (Min/Avg/Max)        "
    "WRITE (Min/Avg/Max)        FSYNC (Min/Avg/Max)         SYNC (Min/Avg/Max)        CLOSE (Min/Avg/Max)       "
    "UNLINK (Min/Avg/Max)"
)
"""The heading of fs_mark 3.3 -v."""
TOOL_ROW = (
    "     9         1000         4096       6330.0            45344        1        3      764        1        1       "
    "76        0        0        0        0   106919        0        1        0        2        2       10     7694"
)
"""The line under it, of a run of the tool."""
DIRECTORY = 'kind = "directory"\npath = "."'
FILLED = (("create", "ops"), ("write", "bytes"))
ONE_SETTING = "[settings.as_is]\n"


def workload(**options: object) -> str:
    return "\n".join(
        ['[workloads.creates]\nkind = "fs_mark"', *(f"{key} = {json.dumps(options[key])}" for key in options), ""]
    )


def phases(**options: Any) -> list[dict[str, Any]]:
    accepted = KIND.options.model_validate(options)
    assert not list(KIND.conflicts(accepted))
    found = KIND.phases(accepted, 1)
    return [phase.metadata for phase in found if isinstance(phase, MetadataPhase)]


def conflict(**options: Any) -> str:
    (found,) = KIND.conflicts(KIND.options.model_validate(options))
    return f"{found.key[0]}: {found.what}"


@pytest.mark.parametrize(
    ("options", "key"), [({"keep": False}, "keep"), ({"files": 10}, "files"), ({"loops": 2}, "loops")]
)
def test_filling_keeps_files_and_counts_neither_these_nor_loops(options: dict[str, Any], key: str) -> None:
    (loop,) = phases(fill=True)
    assert all(thread["job"]["keep"] and thread["job"]["until_full"] for thread in loop["threads"])
    assert conflict(fill=True, **options).startswith(f"{key}: ")


def test_by_default_it_is_the_tool_s_default() -> None:
    (loop,) = phases()
    (thread,) = loop["threads"]
    job = thread["job"]
    assert (job["files"], job["file_bytes"], job["write_bytes"], job["sync"]) == (1000, 51200, 16384, "before_close")
    assert (job["names"]["bytes"], job["names"]["random_bytes"]) == (40, 24)
    assert (job["keep"], job["subdirectories"], thread["paths"]) == (False, None, "full")


def test_threads_share_directories_evenly_and_count_on_from_loop_to_loop() -> None:
    loops = phases(threads=4, directories=2, files=10, loops=2)
    assert [loop["name"] for loop in loops] == ["loop.1", "loop.2"]
    directories = [thread["directory"] for thread in loops[0]["threads"]]
    assert directories == ["directory.0", "directory.1", "directory.0", "directory.1"]
    numbers = [
        thread["job"]["names"]["first"] + file * thread["job"]["names"]["step"]
        for loop in loops
        for thread in loop["threads"]
        for file in range(10)
    ]
    assert sorted(numbers) == list(range(80))
    assert all(thread["job"]["keep"] for loop in loops for thread in loop["threads"])
    assert len({thread["job"]["seed"] for loop in loops for thread in loop["threads"]}) == 8


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"files_per_subdirectory": 5}, {"files": 5}),
        ({"subdirectory_time": "2s"}, {"time_ns": 2 * 10**9}),
        ({}, {"time_ns": 180 * 10**9}),
    ],
)
def test_subdirectories_take_turns(options: dict[str, Any], expected: dict[str, int]) -> None:
    loops = phases(threads=2, subdirectories=7, loops=20, **options)
    walks = [[thread["job"]["subdirectories"] for thread in loop["threads"]] for loop in loops]
    assert all(one["next_after"] == expected and one["count"] == 7 for loop in walks for one in loop)
    assert all(one["first"] == loop[0]["first"] for loop in walks for one in loop)
    assert len({loop[0]["first"] for loop in walks}) > 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"threads": 3, "directories": 2}, "directories: 3 threads"),
        ({"name_length": 10, "random_name_length": 11}, "random_name_length: "),
        ({"name_length": 2, "random_name_length": 0}, "name_length: 2 sequential and 0 random"),
        ({"files_per_subdirectory": 5}, "files_per_subdirectory: only with subdirectories"),
        ({"subdirectories": 2, "first_subdirectory": 2}, "first_subdirectory: there are 2"),
        ({"subdirectories": 2, "files_per_subdirectory": 1, "subdirectory_time": "1s"}, "subdirectory_time: not with"),
        ({"cpus": []}, "cpus: "),
    ],
)
def test_options_that_make_no_sense_together(options: dict[str, Any], told: str) -> None:
    assert conflict(**options).startswith(told)


@given(sequential=st.integers(0, 6), random=st.integers(0, 14), files=st.integers(1, 100_000))
def test_names_that_are_accepted_are_long_enough(sequential: int, random: int, files: int) -> None:
    options = KIND.options.model_validate(
        {"name_length": max(sequential + random, 1), "random_name_length": random, "files": files}
    )
    if not list(KIND.conflicts(options)):
        assert 16 ** (max(sequential + random, 1) - random) >= files or 36**random > files**2


OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "threads": st.integers(1, 3),
    "directories": st.integers(1, 3),
    "file_size": st.integers(0, 3000),
    "write_size": st.integers(1, 4000),
    "sync": st.sampled_from(["none", "before_close", "reverse", "in_order"]),
    "subdirectories": st.integers(1, 4),
    "files_per_subdirectory": st.integers(1, 9),
    "subdirectory_time": st.integers(1, 1000).map(lambda us: f"{us}us"),
    "first_subdirectory": st.integers(0, 4),
    "loops": st.integers(1, 2),
    "keep": st.booleans(),
    "name_length": st.integers(1, 255),
    "random_name_length": st.integers(0, 255),
    "paths": st.sampled_from(["full", "relative"]),
}


@settings(deadline=None, max_examples=30)
@given(st.fixed_dictionaries({"files": st.integers(1, 20)}, optional=OPTIONS))
def test_the_engine_takes_what_the_kind_accepts(options: dict[str, Any]) -> None:
    accepted = KIND.options.model_validate(options)
    assume(not list(KIND.conflicts(accepted)))
    with tempfile.TemporaryDirectory() as root:
        for loop in phases(**options):
            threads = [
                {**{key: value for key, value in thread.items() if key != "place"}, "directory": f"{root}/{number}"}
                for number, thread in enumerate(loop["threads"])
            ]
            record = _native.MetadataLoad.start(json.dumps({**loop, "threads": threads})).wait(20)
            assert record is not None
            jobs = [job for group in json.loads(record)["groups"] for job in group["jobs"]]
            assert all(job["ops"]["create"]["count"] == options["files"] and not job["errors"] for job in jobs)


def finished(iolab: CommandLine, text: str) -> Path:
    iolab.write("experiment.toml", text)
    iolab("run", "experiment.toml", "--out", "run")
    return iolab.cwd / "run"


def test_the_table_has_the_tool_s_columns(iolab: CommandLine) -> None:
    text = workload(files=50, threads=2, file_size=5000, sync="system_then_in_order", loops=2, keep=False)
    run = read(finished(iolab, experiment(DIRECTORY, workload=text, settings=ONE_SETTING, rounds=2)))
    lines = render(run, "fs_mark_verbose").splitlines()
    header = lines.index(TOOL_HEADER)
    ends = [match.end() for match in re.finditer(r"\S+", TOOL_ROW)]
    for number, line in enumerate(lines[header + 1 : header + 3], start=1):
        assert [match.end() for match in re.finditer(r"\S+", line)] == ends
        _, count, size, files_per_s, *rest = line.split()
        assert (int(count), int(size)) == (100 * number, 5000)
        assert float(files_per_s) > 0 and all(cell.isdecimal() for cell in rest)
    assert render(run, "fs_mark").splitlines()[header] == TOOL_HEADER.partition("        CREAT")[0]


def test_a_table_without_fs_mark_says_so(iolab: CommandLine) -> None:
    plain = '[workloads.reads]\nengine = "null"\noperations = 10\n'
    iolab.write("experiment.toml", experiment(DIRECTORY, workload=plain, settings=ONE_SETTING, rounds=1))
    iolab("run", "experiment.toml", "--out", "run")
    outcome = iolab("show", "run", "--as", "fs_mark", status=2)
    assert "no workload of kind fs_mark" in outcome.stderr


def test_metrics_agree_with_each_other(iolab: CommandLine) -> None:
    text = workload(files=300, threads=3, directories=3, file_size=100, sync="none")
    run = read(finished(iolab, experiment(DIRECTORY, workload=text, settings=ONE_SETTING, rounds=1)))
    values = {row["key"]: row["value"] for row in run.metrics.to_dicts()}
    assert values["create.ops"] == values["close.ops"] == values["write.ops"] == values["unlink.ops"] == 900
    assert "fsync.ops" not in values and "mkdir.ops" not in values
    assert 0 < values["files_per_s_wall"] <= values["files_per_s"] * 1.01
    of_threads = run.job_metrics().to_dicts()
    own = [row["value"] for row in of_threads if row["metric"] == "files_per_s"]
    assert len(own) == 3 and sum(own) == pytest.approx(values["files_per_s"])


def test_the_tools_figures_have_the_names_of_ours(iolab: CommandLine) -> None:
    """So that a comparison pairs them: all that the tool's -v says is also among a run's own metrics."""
    text = workload(files=20, file_size=100, sync="system_then_first")
    own = set(read(finished(iolab, experiment(DIRECTORY, workload=text, settings=ONE_SETTING, rounds=1))).keys)
    posted = iolab.cwd / "posted.txt"
    posted.write_text(f"{TOOL_HEADER}\n{TOOL_ROW}\n")
    tool = set(open_run(posted).keys)
    never_called = {key for key in tool if key.startswith("fsync.")}
    assert tool - never_called <= own
    assert {f"{call}.latency_ns_mean" for call in ("create", "write", "system_sync", "close", "unlink")} <= tool


@pytest.mark.root
def test_kept_files_fill_a_scratch_filesystem_and_the_rest_is_gone(iolab: CommandLine) -> None:
    text = workload(files=200, file_size=65536, loops=3, subdirectories=4, files_per_subdirectory=60)
    run = read(finished(iolab, experiment(SCRATCH, workload=text, settings=ONE_SETTING, rounds=1)))
    used = [run.values(f"loop.{loop}/filesystem_used_percent", "creates")["as_is"].item() for loop in range(1, 4)]
    assert used[0] < used[1] < used[2]
    assert run.values("loop.1/fsync.ops", "creates")["as_is"].item() == 200


@pytest.mark.root
@pytest.mark.parametrize(
    "options", [{"file_size": 65536, "files": 510}, {"file_size": 0, "files": 20_000}], ids=["space", "inodes"]
)
def test_a_full_filesystem_ends_it_and_is_told(iolab: CommandLine, options: dict[str, int]) -> None:
    text = workload(**options, threads=2, sync="none", keep=True)
    iolab.write("experiment.toml", experiment(SCRATCH, workload=text, settings=ONE_SETTING, rounds=1))
    outcome = iolab("run", "experiment.toml", "--out", "run", "--fail-on", "faulty", status=1)
    assert "Traceback" not in outcome.text
    run = iolab.cwd / "run"
    assert statuses(run) == ["faulty"]
    assert any("ENOSPC" in text for text in faults(run))
    iolab("show", "run", "--as", "fs_mark")


@pytest.mark.root
def test_filling_a_filesystem_ends_when_it_is_full_and_that_is_no_fault(iolab: CommandLine) -> None:
    text = workload(fill=True, file_size=100_000, threads=2, sync="none", subdirectories=3, files_per_subdirectory=50)
    run = read(finished(iolab, experiment(SCRATCH, workload=text, settings=ONE_SETTING, rounds=1)))
    assert statuses(run.path) == ["ok"]
    assert run.values("filesystem_used_percent", "creates")["as_is"].item() > 95
    files, written = (run.values(f"{op}.{what}", "creates")["as_is"].item() for op, what in FILLED)
    assert (files - 2) * 100_000 <= written < files * 100_000


@pytest.mark.root
def test_a_bare_device_is_refused(iolab: CommandLine) -> None:
    target = SCRATCH.replace('"ext4"', '"none"')
    iolab.write("experiment.toml", experiment(target, workload=workload(files=10), settings=ONE_SETTING, rounds=1))
    outcome = iolab("run", "experiment.toml", "--out", "run", status=2)
    assert "no filesystem" in outcome.stderr


@pytest.mark.long
@pytest.mark.root
def test_killed_in_the_middle_it_resumes_and_leaves_nothing(iolab: CommandLine) -> None:
    text = workload(files=30_000, file_size=0, sync="none", threads=2)
    settings = '[settings.a]\nfilesystem = "xfs"\n[settings.b]\nfilesystem = "xfs"\n'
    target = SCRATCH.replace("64MiB", "512MiB")
    iolab.write("experiment.toml", experiment(target, workload=text, settings=settings, rounds=1))
    run = iolab.cwd / "run"
    with iolab.start("run", "experiment.toml", "--out", "run") as process:
        wait_until(lambda: len(events(run, "trial_started")) >= 1, "the first trial")
        time.sleep(0.7)
        os.killpg(process.pid, signal.SIGKILL)
    iolab("run", "--resume", "run")
    assert times_finished(run) == {0: 1, 1: 1}
    assert set(statuses(run)) == {"ok"}
