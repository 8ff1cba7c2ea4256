"""Workload kinds: what their options become, and that the engine takes all that they accept."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from iolab import _native
from iolab.base.option import natural_lists
from iolab.domain.trial import Phase
from iolab.domain.workload import KINDS, Kind


def compiled(kind: str = "io", seed: int = 1, **options: Any) -> list[Phase]:
    accepted = KINDS[kind].options.model_validate(options)
    assert not list(KINDS[kind].conflicts(accepted))
    return KINDS[kind].phases(accepted, seed)


def main(**options: Any) -> dict[str, Any]:
    return compiled(**options)[-1].load


def only_job(**options: Any) -> dict[str, Any]:
    (group,) = main(**options)["groups"]
    (job,) = group["jobs"]
    return job  # type: ignore[no-any-return]


def names(phases: list[Phase]) -> list[tuple[str, bool]]:
    return [(phase.name, phase.measured) for phase in phases]


def test_a_reader_lays_out_its_files_and_reads_them_directly() -> None:
    layout, measured = compiled(duration="2s", file_size="64MiB")
    assert names([layout, measured]) == [("layout job", False), ("main", True)]
    assert layout.load["files"] == measured.load["files"]
    (writer,) = layout.load["groups"][0]["jobs"]
    assert (writer["read_share"], writer["pattern"], writer["sync_at_end"]) == (0.0, {"kind": "sequential"}, True)
    assert writer["blocks"] == [{"bytes": 2**20, "weight": 1.0}]
    assert writer["until"]["bytes"] == 64 * 2**20
    assert measured.load["groups"][0]["engine"] == "io_uring"
    assert measured.load["groups"][0]["direct"]
    assert not measured.load["drop_caches"]
    assert measured.load["cut_transient"]


@pytest.mark.parametrize(
    ("options", "lays_out"),
    [
        ({}, True),
        ({"layout": False}, False),
        ({"read_percent": 0.0}, True),
        ({"read_percent": 0.0, "pattern": "sequential"}, False),
        ({"read_percent": 0.0, "pattern": "sequential", "layout": True}, True),
        ({"engine": "null"}, False),
    ],
)
def test_files_are_laid_out_when_their_contents_or_blocks_matter(options: dict[str, Any], lays_out: bool) -> None:
    assert (len(compiled(duration="1s", **options)) == 2) == lays_out


@pytest.mark.parametrize(
    ("options", "drops"),
    [
        ({"direct": False}, True),
        ({"engine": "mmap"}, True),
        ({"direct": False, "read_percent": 0.0}, False),
        ({"direct": False, "drop_caches": False}, False),
        ({"drop_caches": True}, True),
        ({"engine": "null"}, False),
    ],
)
def test_caches_are_dropped_before_buffered_reads(options: dict[str, Any], drops: bool) -> None:
    assert main(duration="1s", **options)["drop_caches"] == drops


def test_duration_is_measured_time() -> None:
    load = main(duration="2s", warm_up="500ms")
    assert load["warm_up_ns"] == 500_000_000
    assert load["groups"][0]["jobs"][0]["until"] == {"ops": None, "bytes": None, "duration_ns": 2_500_000_000}


def test_a_run_by_amount_is_measured_whole() -> None:
    assert not main(amount="1MiB")["cut_transient"]
    assert only_job(amount="1MiB", operations=7)["until"] == {"ops": 7, "bytes": 2**20, "duration_ns": None}


def test_copies_have_threads_files_and_seeds_of_their_own() -> None:
    load = main(duration="1s", jobs=3, files_per_job=2)
    assert [group["name"] for group in load["groups"]] == ["job.0", "job.1", "job.2"]
    jobs = [job for group in load["groups"] for job in group["jobs"]]
    assert [job["files"] for job in jobs] == [[0, 1], [2, 3], [4, 5]]
    assert len({job["seed"] for job in jobs}) == 3
    assert len({file["path"] for file in load["files"]}) == 6


def test_copies_may_share_thread_and_files() -> None:
    load = main(duration="1s", jobs=3, share_thread=True, shared_files=True)
    (group,) = load["groups"]
    assert [job["files"] for job in group["jobs"]] == [[0], [0], [0]]
    assert len(load["files"]) == 1


def test_block_sizes_have_weights_and_the_smallest_aligns() -> None:
    job = only_job(duration="1s", block_size={"4KiB": 70, "64KiB": 30})
    assert job["blocks"] == [{"bytes": 4096, "weight": 70.0}, {"bytes": 65536, "weight": 30.0}]
    assert job["align_bytes"] == 4096


def test_a_rate_in_bytes_is_one_in_operations_of_the_mean_size() -> None:
    sizes = {"4KiB": 1, "12KiB": 3}
    job = only_job(duration="1s", block_size=sizes, rate="10MiB/s", spacing="poisson")
    assert job["arrival"] == {"kind": "open", "rate_per_s": 10 * 2**20 / 10240, "spacing": "poisson"}
    assert only_job(duration="1s", rate=8192.0)["arrival"]["rate_per_s"] == 2
    assert only_job(duration="1s", rate_iops=250.5)["arrival"]["rate_per_s"] == 250.5


def test_think_time_closes_the_loop() -> None:
    arrival = only_job(duration="1s", think_time="1ms", think_every=4)["arrival"]
    assert arrival == {"kind": "closed", "think_ns": 1_000_000, "think_every": 4}


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"pattern": "random"}, {"kind": "uniform"}),
        ({"pattern": "strided", "stride": "64KiB"}, {"kind": "strided", "stride_bytes": 65536}),
        ({"pattern": "zipf"}, {"kind": "zipf", "theta": 1.1}),
        ({"pattern": "zipf", "zipf_theta": 0.8}, {"kind": "zipf", "theta": 0.8}),
        ({"pattern": "pareto"}, {"kind": "pareto", "h": 0.2}),
        ({"pattern": "normal", "normal_deviation": 25}, {"kind": "normal", "deviation_percent": 25.0}),
        (
            {"pattern": "zoned", "file_size": "4MiB", "zones": "90/25%:10/1MiB"},
            {
                "kind": "zoned",
                "zones": [{"weight": 90.0, "length_bytes": 2**20}, {"weight": 10.0, "length_bytes": 2**20}],
            },
        ),
        ({"pattern": "permutation"}, {"kind": "permutation"}),
    ],
)
def test_patterns(options: dict[str, Any], pattern: dict[str, Any]) -> None:
    assert only_job(duration="1s", **options)["pattern"] == pattern


def test_a_range_is_whole_blocks_inside_the_file() -> None:
    job = only_job(duration="1s", block_size=12288, file_size="1MB", range_start=12288)
    file_bytes = 1_000_000 // 4096 * 4096
    assert job["offset_bytes"] == 12288
    assert job["length_bytes"] == (file_bytes - 12288) // 12288 * 12288


def test_syncs() -> None:
    assert only_job(duration="1s", read_percent=0.0, fdatasync_every=8)["sync"] == {
        "kind": "fdatasync",
        "every_writes": 8,
    }
    assert only_job(duration="1s", read_percent=0.0, fsync_every=1)["sync"] == {"kind": "fsync", "every_writes": 1}
    assert only_job(duration="1s", read_percent=0.0, sync_at_end=True)["sync_at_end"]


def test_verification_covers_the_layout_too() -> None:
    assert [phase.load["verify"] for phase in compiled(duration="1s", verify=True)] == [True, True]


def test_a_mix_runs_its_jobs_at_once() -> None:
    jobs = {"readers": {"jobs": 2}, "writer": {"read_percent": 0.0, "pattern": "sequential", "file_size": "1MiB"}}
    phases = compiled("mix", duration="1s", jobs=jobs)
    assert names(phases) == [("layout readers", False), ("main", True)]
    load = phases[-1].load
    assert [group["name"] for group in load["groups"]] == ["readers.0", "readers.1", "writer"]
    assert [job["files"] for group in load["groups"] for job in group["jobs"]] == [[0], [1], [2]]
    writer = {"path": "writer.0", "base_bytes": 0, "size_bytes": 2**20, "create": True, "extend": True}
    assert load["files"][2] == writer


def test_jobs_of_a_mix_may_end_by_amount() -> None:
    phases = compiled("mix", jobs={"a": {"amount": "1MiB"}, "b": {"operations": 3}})
    assert not phases[-1].load["cut_transient"]


def test_tiobench_is_four_tests_in_the_tools_order() -> None:
    phases = compiled("tiobench", threads=4, file_size="10MiB", random_ops=50)
    assert names(phases) == [
        ("sequential_write", True),
        ("random_write", True),
        ("sequential_read", True),
        ("random_read", True),
    ]
    per_thread = 10 * 2**20 // 4 // 4096 * 4096
    for phase in phases:
        jobs = [job for group in phase.load["groups"] for job in group["jobs"]]
        assert [group["engine"] for group in phase.load["groups"]] == ["psync"] * 4
        assert not any(group["direct"] for group in phase.load["groups"])
        assert [job["files"] for job in jobs] == [[0], [1], [2], [3]]
        assert {file["size_bytes"] for file in phase.load["files"]} == {per_thread}
        writes, random = "write" in phase.name, "random" in phase.name
        for job in jobs:
            assert job["read_share"] == (0.0 if writes else 1.0)
            assert job["sync_at_end"] == writes
            assert job["until"]["ops" if random else "bytes"] == (50 if random else per_thread)
        assert not phase.load["drop_caches"]
        assert not phase.load["cut_transient"]


def test_phases_are_a_function_of_options_and_seed() -> None:
    assert compiled(duration="1s", jobs=2) == compiled(duration="1s", jobs=2)
    assert compiled(duration="1s") != compiled(duration="1s", seed=2)


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_every_option_says_what_it_is(kind: Kind) -> None:
    assert kind.help.endswith(".")
    for name, field in kind.options.model_fields.items():
        assert field.description and field.description.endswith("."), name


def test_only_cpus_devices_and_groups_are_lists_by_themselves() -> None:
    assert natural_lists(KINDS["io"].options) == {"cpus", "devices"}
    assert natural_lists(KINDS["mix"].options) == {"cpus", "devices", "only"}
    assert natural_lists(KINDS["tiobench"].options) == {"cpus"}


SIZES = st.sampled_from([512, 4096, 12288, 65536, 2**20])
BLOCKS = st.one_of(SIZES, st.dictionaries(SIZES, st.floats(0.1, 100), min_size=1, max_size=3))
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "pattern": st.sampled_from(["sequential", "backward", "strided", "random", "zipf", "permutation"]),
    "stride": SIZES,
    "zipf_theta": st.floats(0.1, 3),
    "read_percent": st.floats(0, 100),
    "block_size": BLOCKS,
    "align": SIZES,
    "queue_depth": st.integers(1, 64),
    "jobs": st.integers(1, 3),
    "share_thread": st.booleans(),
    "file_size": st.integers(4096, 2**22),
    "files_per_job": st.integers(1, 3),
    "shared_files": st.booleans(),
    "file_order": st.sampled_from(["sequential", "round_robin", "random"]),
    "range_start": st.integers(0, 2**12).map(lambda sectors: sectors * 512),
    "range_length": st.integers(1, 2**12).map(lambda sectors: sectors * 512),
    "amount": st.integers(1, 2**20),
    "rate_iops": st.floats(1000, 1e9),
    "spacing": st.sampled_from(["constant", "poisson"]),
    "fsync_every": st.integers(1, 10),
    "fdatasync_every": st.integers(1, 10),
    "sync_at_end": st.booleans(),
}


@settings(deadline=None, max_examples=60)
@given(st.fixed_dictionaries({}, optional=OPTIONS))
def test_the_engine_takes_what_the_kind_accepts(options: dict[str, Any]) -> None:
    """The same limits hold on both sides of the border: the null engine runs whatever has no conflicts."""
    kind = KINDS["io"]
    accepted = kind.options.model_validate({**options, "engine": "null", "operations": 20})
    assume(not list(kind.conflicts(accepted)))
    load = _native.Load.start(json.dumps(kind.phases(accepted, 1)[-1].load), _native.Memory())
    record = load.wait(20)
    assert record is not None
    assert all(not job["errors"] for group in json.loads(record)["groups"] for job in group["jobs"])


@pytest.mark.parametrize("verify", [False, True])
def test_a_small_workload_runs_on_real_files(tmp_path: Path, verify: bool) -> None:
    memory = _native.Memory()
    phases = compiled(
        operations=200,
        read_percent=50.0,
        file_size="1MiB",
        engine="psync",
        direct=False,
        verify=verify,
        drop_caches=False,
    )
    for phase in phases:
        files = [{**file, "path": str(tmp_path / file["path"])} for file in phase.load["files"]]
        record = _native.Load.start(json.dumps({**phase.load, "files": files}), memory).wait(20)
        assert record is not None
        (job,) = json.loads(record)["groups"][0]["jobs"]
        assert (job["errors"], job["mismatches_count"]) == ([], 0)
    assert job["read"]["count"] + job["write"]["count"] == 200


@pytest.mark.parametrize("kind", ["io", "mix", "aio-stream", "iostest"])
def test_the_measured_time_follows_the_warm_up(kind: str) -> None:
    """The engine counts a job's duration from the phase's start, an experiment from the end of the warm-up."""
    jobs = {"jobs": {"readers": {}, "writers": {"read_percent": 0.0}}} if kind == "mix" else {}
    load = compiled(kind, duration="2s", warm_up="500ms", **jobs)[-1].load
    assert load["warm_up_ns"] == 500_000_000
    durations = {job["until"]["duration_ns"] for group in load["groups"] for job in group["jobs"]}
    assert durations == {2_500_000_000}
