"""What fio job files come to on iolab's engine; and the complaints of fio's users that must not be true here."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iolab import _native
from iolab.base.errors import InputError
from iolab.domain.trial import FioPhase, LoadPhase, Phase
from iolab.domain.workload.fio_file import job_file
from iolab.domain.workload.fio_file.ini import JobFileProblems
from iolab.domain.workload.fio_file.job_file import Runner
from iolab.domain.workload.fio_file.translate import Plan, phases, plan

Json = dict[str, Any]
MIB = 2**20


def planned(text: str, runner: Runner = "iolab", default_size: int | None = None) -> Plan:
    problems = JobFileProblems("job.fio")
    jobs = job_file.read(text, problems, runner=runner, environment={})
    found = plan(jobs, default_size=default_size, problems=problems, runner=runner)
    problems.raise_any()
    return found


def translated(text: str, runner: Runner = "iolab") -> list[Phase]:
    return phases(planned(text, runner), seed=1, devices=1)


def measured(text: str) -> list[Json]:
    return [phase.load for phase in translated(text) if phase.measured and isinstance(phase, LoadPhase)]


def jobs_in(load: Json) -> list[Json]:
    return [job for group in load["groups"] for job in group["jobs"]]


def the_job(options: str) -> Json:
    [load] = measured(f"[job]\nsize=1m\n{options}\n")
    [job] = jobs_in(load)
    return job


def the_problem(options: str, runner: Runner = "iolab") -> str:
    with pytest.raises(InputError) as raised:
        planned(f"[job]\n{options}\n", runner)
    return str(raised.value)


def run(load: Json) -> Json:
    """On the engine; the null engine needs no file."""
    handle = _native.Load.start(json.dumps(load), _native.Memory())
    while (record := handle.wait(1.0)) is None:
        pass
    done: Json = json.loads(record)
    return done


def zones(*each: tuple[int, int]) -> list[Json]:
    return [{"weight": float(weight), "length_bytes": length} for weight, length in each]


def test_a_plain_job_reads_its_size_once_in_sequence() -> None:
    job = the_job("")
    assert job["pattern"] == {"kind": "sequential"}
    assert job["until"] == {"ops": None, "bytes": MIB, "duration_ns": None}
    assert (job["read_share"], job["queue_depth"], job["length_bytes"]) == (1.0, 1, MIB)


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ("rw=read", {"kind": "sequential"}),
        ("rw=read:4k", {"kind": "strided", "stride_bytes": 8192}),
        ("rw=read:-8k", {"kind": "backward"}),
        ("rw=randread", {"kind": "permutation"}),
        ("rw=randread\nnorandommap", {"kind": "uniform"}),
        ("rw=randread\nbssplit=4k/50:8k/50", {"kind": "uniform"}),
        ("rw=randread\nrandom_distribution=zipf:1.2", {"kind": "zipf", "theta": 1.2}),
        ("rw=randread\nrandom_distribution=zipf:1.2:0.5", {"kind": "zipf", "theta": 1.2}),
        ("rw=randread\nrandom_distribution=pareto:0.3", {"kind": "pareto", "h": 0.3}),
        ("rw=randread\nrandom_distribution=normal:20", {"kind": "normal", "deviation_percent": 20.0}),
        (
            "rw=randread\nrandom_distribution=zoned:50/5:30/15:20/80",
            {"kind": "zoned", "zones": zones((50, 52428), (30, 157287), (20, 838861))},
        ),
        (
            # The last zone has what the others leave: fio's examples/rand-zones.fio.
            "rw=randread\nrandom_distribution=zoned:50/5:30/15:20/",
            {"kind": "zoned", "zones": zones((50, 52428), (30, 157287), (20, 838861))},
        ),
        (
            "rw=randread\nrandom_distribution=zoned_abs:60/20k:40/80k",
            {"kind": "zoned", "zones": zones((60, 20480), (40, 81920))},
        ),
    ],
)
def test_patterns(options: str, pattern: Json) -> None:
    assert the_job(options)["pattern"] == pattern


@pytest.mark.parametrize(
    ("options", "until"),
    [
        ("loops=3", {"ops": None, "bytes": 3 * MIB, "duration_ns": None}),
        ("io_size=10k", {"ops": None, "bytes": 12288, "duration_ns": None}),
        ("runtime=2", {"ops": None, "bytes": MIB, "duration_ns": 2 * 10**9}),
        ("runtime=2\ntime_based", {"ops": None, "bytes": None, "duration_ns": 2 * 10**9}),
        ("time_based", {"ops": None, "bytes": MIB, "duration_ns": None}),
        ("runtime=2\ntime_based\nramp_time=1", {"ops": None, "bytes": None, "duration_ns": 3 * 10**9}),
        ("number_ios=7", {"ops": 7, "bytes": MIB, "duration_ns": None}),
        ("rw=read:4k", {"ops": 128, "bytes": MIB, "duration_ns": None}),
        ("nrfiles=4", {"ops": None, "bytes": MIB, "duration_ns": None}),
        ("filesize=4m", {"ops": None, "bytes": MIB, "duration_ns": None}),
    ],
)
def test_bounds(options: str, until: Json) -> None:
    assert the_job(options)["until"] == until


def test_sizes_of_reads_and_writes_are_their_own_in_a_mix() -> None:
    job = the_job("rw=randrw\nbs=8k,64k")
    assert job["blocks"] == [{"bytes": 8192, "weight": 1.0}]
    assert job["writes"] == {"blocks": [{"bytes": 65536, "weight": 1.0}], "align_bytes": 65536}
    assert (job["align_bytes"], job["pattern"]) == (8192, {"kind": "permutation"})


@pytest.mark.parametrize(
    ("options", "reads", "writes"),
    [
        ("bs=8k,64k,4k", [8192], [65536]),
        ("bs=,64k", [4096], [65536]),
        ("bs=8k,", [8192], [4096]),
        ("bsrange=4k-8k,16k-32k", [4096, 8192], [16384, 32768]),
        ("bssplit=4k/50:8k/50,64k/100", [4096, 8192], [65536]),
    ],
)
def test_all_options_of_sizes_take_a_value_for_each_direction(
    options: str, reads: list[int], writes: list[int]
) -> None:
    job = the_job(f"rw=rw\n{options}")
    assert [block["bytes"] for block in job["blocks"]] == reads
    assert [block["bytes"] for block in job["writes"]["blocks"]] == writes
    for direction, sizes in (("read", reads), ("write", writes)):
        of_one = the_job(f"rw={direction}\n{options}")
        assert [block["bytes"] for block in of_one["blocks"]] == sizes
        assert "writes" not in of_one


def test_equal_sizes_are_one_and_offsets_follow_ba() -> None:
    assert "writes" not in the_job("rw=randrw\nbs=8k,8k")
    job = the_job("rw=randrw\nbs=8k,16k\nba=4k,32k")
    assert (job["align_bytes"], job["writes"]["align_bytes"]) == (4096, 32768)
    assert job["pattern"] == {"kind": "uniform"}


def test_a_rate_in_bytes_is_of_its_direction() -> None:
    job = the_job("rw=randrw\nrwmixread=75\nbs=8k,64k\nrate=800k,6400k")
    assert (job["arrival"]["rate_per_s"], job["read_share"]) == (200, 0.5)
    job = the_job("rw=randwrite\nbs=64k\nrate=1k,6400k")
    assert (job["arrival"]["rate_per_s"], job["read_share"]) == (100, 0)


def test_each_job_has_its_own_delay_and_runtime_counts_from_it() -> None:
    text = "[global]\nsize=1m\nruntime=2\ntime_based\n[a]\n[b]\nstartdelay=500ms\n[c]\nstartdelay=3\nnumjobs=2\n"
    [load] = measured(text)
    jobs = jobs_in(load)
    assert [(job["name"], job.get("start_ns")) for job in jobs] == [
        ("a", None),
        ("b", 500_000_000),
        ("c.0", 3_000_000_000),
        ("c.1", 3_000_000_000),
    ]
    assert [job["until"]["duration_ns"] for job in jobs] == [2 * 10**9, 25 * 10**8, 5 * 10**9, 5 * 10**9]


def test_a_latency_target_is_a_search_for_a_queue_depth() -> None:
    options = "ioengine=io_uring\niodepth=32\nlatency_target=500\nlatency_window=2s\nlatency_percentile=99.9"
    job = the_job(options)
    assert job["queue_depth"] == 32
    search = {"target_ns": 500_000, "window_ns": 2 * 10**9, "share": pytest.approx(0.999), "goes_on": False}
    assert job["depth_search"] == search
    assert the_job(f"{options}\nlatency_run=1")["depth_search"]["goes_on"] is True
    [phase] = (phase for phase in translated(f"[job]\nsize=1m\n{options}\n") if phase.measured)
    assert phase.measures == ("queue_depth_found",)


def test_a_job_runs_until_it_is_steady_as_fio_defines_it() -> None:
    job = the_job("ss=iops_slope:2%\nss_dur=10\nss_ramp=3\nss_interval=2\ntime_based\nruntime=60")
    wanted = {"of": "operations", "by": "slope", "limit": 2, "in_percent": True}
    lengths = {"window_ns": 10**10, "interval_ns": 2 * 10**9, "ramp_ns": 3 * 10**9}
    assert job["steady_state"] == wanted | lengths
    assert the_job("ss_dur=10")["steady_state"]["limit"] == 0.01, "fio's default, iops_slope:0.01%"
    assert "steady_state" not in the_job("runtime=1")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("ss=iops:2%", "job.fio:3: steadystate: nothing is looked at without steadystate_duration"),
        ("ss=iops:2%\nss_dur=1", "job.fio:4: steadystate_duration: expected 2 to 43,200 whole intervals"),
        ("ss=iops:2%\nss_dur=1ms\nss_interval=1us", "job.fio:5: steadystate_check_interval: expected 10ms or more"),
        ("ss=iops:2%\nss_dur=5\nnumjobs=2\ngroup_reporting", "job.fio:3: steadystate: with group_reporting fio looks"),
    ],
)
def test_what_does_not_go_with_a_steady_state_is_told(options: str, told: str) -> None:
    assert the_problem(f"size=1m\n{options}").startswith(told)


@pytest.mark.parametrize(
    ("window", "runtime", "reached_ns", "note"),
    [
        ("300ms", "60", 300_000_000, "steady state reached after 300ms: largest distance of the IOPS from the mean"),
        ("3s", "1", None, "steady state not reached: it ended before a window of 3s was full"),
    ],
)
def test_a_load_ends_when_it_is_steady_or_at_its_bounds(
    window: str, runtime: str, reached_ns: int | None, note: str
) -> None:
    steady = f"ss=iops:1000000\nss_dur={window}\nss_interval=100ms"
    [load] = measured(f"[job]\nsize=1m\nioengine=null\n{steady}\ntime_based\nruntime={runtime}\nrate_iops=1000\n")
    [group] = run(load)["groups"]
    found = group["jobs"][0]["steady_state"]
    assert (found["reached_ns"], found["mean_per_s"] is None) == (reached_ns, reached_ns is None)
    assert note in group["notes"][-1]


def test_a_searching_job_has_its_stage_for_itself() -> None:
    search = "ioengine=io_uring\niodepth=8\nlatency_target=500\nlatency_window=1\n"
    for text in (f"[a]\nsize=1m\n{search}[b]\nsize=1m\n", f"[a]\nsize=1m\nnumjobs=2\n{search}"):
        with pytest.raises(InputError, match="latency_target"):
            planned(text)
    assert len(planned(f"[a]\nsize=1m\n{search}[b]\nsize=1m\nstonewall\n").stages) == 2


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ("verify=crc32c", None),
        ("verify=pattern\nverify_pattern=0xdeadbeef", {"bytes": [0xDE, 0xAD, 0xBE, 0xEF], "alone": True}),
        ("verify_pattern=0xabc", {"bytes": [0x0A, 0xBC], "alone": True}),
        ('verify=md5\nverify_pattern="abcd"-12', {"bytes": [*b"abcd", 0xF4, 0xFF, 0xFF, 0xFF], "alone": False}),
        ("verify_pattern=305419896", {"bytes": [0x78, 0x56, 0x34, 0x12], "alone": True}),
        ("verify_pattern=0xff0x14", {"bytes": [0xFF, 0x14], "alone": True}),
        ("verify_pattern=0", {"bytes": [0], "alone": True}),
    ],
)
def test_verified_blocks_are_filled_as_fio_fills_them(options: str, pattern: Json | None) -> None:
    """The bytes are those that fio 3.33 wrote for the same options."""
    loads = [
        phase.load for phase in translated(f"[job]\nsize=1m\nrw=randrw\n{options}\n") if isinstance(phase, LoadPhase)
    ]
    assert [load["name"] for load in loads] == ["layout", "main", "verify main job.0"]
    for load in loads:
        assert load["verify"]
        assert load.get("pattern") == pattern


def test_jobs_of_one_file_agree_on_what_blocks_hold() -> None:
    with pytest.raises(InputError, match=r"job.fio:7: verify_pattern: a and b verify blocks with other contents"):
        planned("[global]\nsize=1m\nrw=write\n[a]\nverify_pattern=1\n[b]\nverify_pattern=2\n")


def test_a_range_begins_at_the_offset_and_the_file_reaches_to_its_end() -> None:
    [load] = measured("[a]\nsize=1m\noffset=4m\noffset_increment=8m\nnumjobs=2\nfilename=f\n")
    assert [job["offset_bytes"] for job in jobs_in(load)] == [4 * MIB, 12 * MIB]
    assert [(file["path"], file["size_bytes"]) for file in load["files"]] == [("f", 13 * MIB)]


def test_clones_have_files_of_their_own_unless_they_are_named() -> None:
    [load] = measured("[a]\nsize=1m\nnumjobs=2\nnrfiles=2\n")
    assert [file["path"] for file in load["files"]] == ["a.0.0", "a.0.1", "a.1.0", "a.1.1"]
    assert [job["files"] for job in jobs_in(load)] == [[0, 1], [2, 3]]
    [load] = measured("[a]\nsize=1m\nnumjobs=2\nfilename=x:y\ndirectory=d\n")
    assert [file["path"] for file in load["files"]] == ["d/x", "d/y"]
    assert [job["files"] for job in jobs_in(load)] == [[0, 1], [0, 1]]


def test_stages_are_phases_and_what_is_read_is_laid_out_first() -> None:
    found = translated("[global]\nsize=1m\n[w]\nrw=write\n[r]\nstonewall\nrw=randread\n[r]\nstonewall\nrw=read\n")
    assert [(phase.name, phase.measured) for phase in found] == [
        ("layout", False),
        ("w", True),
        ("r", True),
        ("r-2", True),
    ]
    assert isinstance(found[0], LoadPhase)
    assert [file["path"] for file in found[0].load["files"]] == ["r.0.0"]


def test_an_absolute_name_stays_inside_the_target() -> None:
    [load] = measured("[a]\nsize=1m\nfilename=/etc/passwd\n")
    assert [file["path"] for file in load["files"]] == ["etc/passwd"]
    assert planned("[a]\nsize=1m\nfilename=/etc/passwd\n").named_paths == ["/etc/passwd"]
    assert "leaves its directory" in the_problem("size=1m\nfilename=../x")
    assert "/x and x would be the same file" in the_problem("size=1m\nfilename=/x:x")


def test_cpus_are_split_over_clones_when_asked() -> None:
    text = "[a]\nsize=1m\nnumjobs=3\ncpus_allowed=0-1\n"
    assert [group["cpus"] for group in measured(text)[0]["groups"]] == [[0, 1]] * 3
    split = measured(f"{text}cpus_allowed_policy=split\n")
    assert [group["cpus"] for group in split[0]["groups"]] == [[0], [1], [0]]


def test_verified_writes_are_read_back_after_their_stage() -> None:
    found = translated("[a]\nsize=1m\nrw=randwrite\nverify=md5\n")
    assert [(phase.name, phase.measured, phase.verifies) for phase in found] == [
        ("main", True, True),
        ("verify main a.0", False, True),
    ]


def test_fio_gets_the_same_files_and_phases() -> None:
    text = "[global]\nsize=1m\n[a]\nrw=randread\nnumjobs=2\n[b]\nstonewall\nrw=write\n"
    ours, fios = translated(text), translated(text, "fio")
    assert [(phase.name, phase.measured) for phase in ours] == [(phase.name, phase.measured) for phase in fios]
    assert [type(phase) for phase in fios] == [LoadPhase, FioPhase, FioPhase]
    for one, other in zip(ours, fios, strict=True):
        assert isinstance(one, LoadPhase)
        assert isinstance(other, LoadPhase)
        assert one.load == other.load


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("rw=read", "job.fio:1: job: no size; set one, such as size=1g"),
        ("size=1k", "job.fio:2: job: no block of 4 KiB fits into files of 0 bytes"),
        (
            "size=1m\nrw=randrw\nverify=pattern",
            "job.fio:4: verify: pattern needs verify_pattern, such as verify_pattern=0xdeadbeef",
        ),
        (
            "size=1m\nverify_pattern=%o",
            "job.fio:3: verify_pattern: '%o' given; iolab has no %o, as its own stamps hold the offset",
        ),
        (
            "size=1m\nstartdelay=1\nruntime=2\nramp_time=1",
            "job.fio:3: startdelay: ramp_time counts from the start of the stage here; keep one of the two, or "
            "let fio run it: --engine fio",
        ),
        ("size=1m\nstartdelay=1-2", 'job.fio:3: startdelay: "1-2" given; expected a time such as 30, 500ms or 5m'),
        (
            "size=1m\nioengine=libaio\nlatency_target=100",
            "job.fio:4: latency_target: needs latency_window, how long each depth is tried, such as latency_window=2s",
        ),
        (
            "size=1m\nlatency_target=100\nlatency_window=1s",
            "job.fio:3: latency_target: ioengine=psync has one I/O in flight; take io_uring or libaio",
        ),
        (
            "size=1m\nlatency_percentile=99",
            "job.fio:3: latency_percentile: nothing is looked for without latency_target",
        ),
        ("size=1m\ndirect=1\nbs=1000", "job.fio:4: bs: direct I/O needs multiples of 512 bytes"),
        (
            "size=1m\nramp_time=1",
            "job.fio:3: ramp_time: needs runtime: "
            "a job that ends by its size is measured from its first byte to its last",
        ),
    ],
)
def test_what_makes_no_sense_together_is_told_by_line(options: str, line: str) -> None:
    assert the_problem(options) == line


JOBS = st.fixed_dictionaries(
    {
        "rw": st.sampled_from(["read", "write", "randread", "randwrite", "rw", "randrw", "read:4k", "read:-8k"]),
        "size": st.sampled_from(["64k", "1m", "3m"]),
    },
    optional={
        "nrfiles": st.sampled_from(["1", "3"]),
        "numjobs": st.sampled_from(["1", "2"]),
        "io_size": st.sampled_from(["16k", "130k", "2m"]),
        "loops": st.sampled_from(["1", "2"]),
        "iodepth": st.sampled_from(["1", "7"]),
        "norandommap": st.just("1"),
        "rwmixread": st.sampled_from(["0", "30", "100"]),
        "offset": st.sampled_from(["0", "64k"]),
        "file_service_type": st.sampled_from(["random", "roundrobin", "sequential"]),
        "fsync": st.just("3"),
        "number_ios": st.just("5"),
    },
)


@settings(max_examples=60, deadline=None)
@given(JOBS)
def test_the_engine_runs_what_is_translated_and_ends_where_it_should(options: dict[str, str]) -> None:
    lines = "\n".join(f"{name}={text}" for name, text in options.items())
    [load] = measured(f"[job]\nioengine=null\n{lines}\n")
    done = {job["name"]: job for group in run(load)["groups"] for job in group["jobs"]}
    for job in jobs_in(load):
        count = done[job["name"]]["null"]["count"]
        assert done[job["name"]]["read"]["count"] == done[job["name"]]["write"]["count"] == 0
        bounds = [job["until"]["bytes"] // 4096, job["until"]["ops"]]
        assert count == min(bound for bound in bounds if bound is not None)


def test_issue_130_every_interval_is_in_the_record() -> None:
    options = "ioengine=null\nrw=randread\nrate_iops=5000\ntime_based\nruntime=500ms"
    [load] = measured(f"[job]\nsize=1g\n{options}\n")
    [group] = run(load)["groups"]
    intervals = group["jobs"][0]["intervals"]
    assert len(intervals) >= 4
    assert sum(part["null_ops"] for part in intervals) == group["jobs"][0]["null"]["count"]


def _measured_s(record: dict[str, Any]) -> float:
    """A job that is not let run ends late."""
    return (record["measured_to_ns"] - record["measured_from_ns"]) / 1e9


def test_issue_1290_poisson_with_bssplit_keeps_the_rate() -> None:
    options = "ioengine=null\nrw=randread\nbssplit=4k/70:64k/30\nrate_process=poisson\ntime_based\nruntime=1"
    for rate in ("rate_iops=20000", f"rate={20000 * (4096 * 7 + 65536 * 3) // 10}"):
        [load] = measured(f"[job]\nsize=1g\n{options}\n{rate}\n")
        record = run(load)
        [job] = [job for group in record["groups"] for job in group["jobs"]]
        assert jobs_in(load)[0]["arrival"] == {"kind": "open", "rate_per_s": 20000.0, "spacing": "poisson"}
        # Five standard deviations of a Poisson count, in the time that the job was let run.
        due = 20_000 * _measured_s(record)
        assert abs(job["null"]["count"] - due) < 5 * due**0.5


def test_issue_1320_the_end_of_ramp_time_causes_no_burst() -> None:
    options = "ioengine=null\nrw=randread\nrate_iops=20000\ntime_based\nramp_time=300ms\nruntime=600ms"
    [load] = measured(f"[job]\nsize=1g\n{options}\n")
    record = run(load)
    [job] = [job for group in record["groups"] for job in group["jobs"]]
    due = 20_000 * _measured_s(record)
    # The ramp's operations at once would be half as many again; a tenth is made up for if the job is not let run.
    assert abs(job["null"]["count"] - due) < due * 0.25


def test_each_direction_of_a_mix_goes_at_its_own_rate() -> None:
    """fio 3.33 does 299 reads and 50 writes a second of the first, and 300 of both of the second."""
    for rates, reads, writes in (("300,50", 300, 50), ("300", 300, 300)):
        job = the_job(f"rw=randrw\nrwmixread=75\nrate_iops={rates}")
        assert job["arrival"] == {"kind": "open", "rate_per_s": reads + writes, "spacing": "constant_each"}
        assert job["read_share"] == pytest.approx(reads / (reads + writes))
    job = the_job("rw=randrw\nrwmixread=50\nrate=40k")
    assert (job["arrival"]["rate_per_s"], job["read_share"]) == (20, 0.5)


def test_a_mix_of_which_one_direction_has_a_rate_is_fios_alone() -> None:
    told = the_problem("size=1m\nrw=randrw\nrate_iops=300,")
    assert told.startswith("job.fio:4: rate_iops: writes of the mix have no rate, as many as fit in; give both, or ")
    assert planned("[a]\nsize=1m\nrw=randrw\nrate_iops=300,\n", "fio")


def test_commands_of_nvme_go_to_the_block_device_of_their_character_device() -> None:
    text = "[a]\nioengine=io_uring_cmd\ncmd_type=nvme\nfilename=/dev/ng0n1\nsize=1m\nrw=randwrite\nsqthread_poll=1\n"
    found = planned(text)
    assert found.named_paths == ["/dev/nvme0n1"]
    [load] = measured(text)
    assert [(group["engine"], group["direct"], group["sqpoll"]) for group in load["groups"]] == [
        ("io_uring_cmd", True, True)
    ]
    assert "character device" in the_problem("ioengine=io_uring_cmd\nsize=1m", "fio")


def test_zones_are_written_in_sequence() -> None:
    assert the_job("zonemode=zbd\nrw=write\ndirect=1")["pattern"] == {"kind": "sequential"}
    assert "in sequence" in the_problem("zonemode=zbd\nrw=randwrite\ndirect=1\nsize=1m")


def test_a_hint_is_of_the_files_that_the_job_writes() -> None:
    reader, writer, hint = "[r]\nrw=randread\nfilename=a\n", "[w]\nrw=write\nfilename=b\n", "write_hint=short\n"
    text = f"[global]\nsize=1m\n{hint}{reader}{writer}"
    layout, load = (phase.load for phase in translated(text) if isinstance(phase, LoadPhase))
    assert [file.get("write_hint") for file in load["files"]] == [None, "short"]
    assert "write_hint" not in layout["files"][0]
    [fio] = [phase for phase in translated(text, "fio") if isinstance(phase, FioPhase)]
    assert fio.options["w"]["write_hint"] == "short"
    assert all("write_hint" not in file for file in fio.load["files"])
    with pytest.raises(InputError, match=r"^job.fio:13: write_hint: another job hints short for b"):
        planned(f"{text}[again]\nrw=write\nfilename=b\nwrite_hint=long\n")
    assert the_problem("size=1m\nrw=write\nwrite_hint=3").startswith("job.fio:4: write_hint: ")
