"""fio job files: how they are read, and what is said of one that is wrong."""

import json
import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.domain.workload.fio_file import job_file, value
from iolab.domain.workload.fio_file.ini import JobFileProblems, only
from iolab.domain.workload.fio_file.job_file import FioJob, Runner, is_job_file
from iolab.domain.workload.fio_file.option import OPTIONS, known
from iolab.domain.workload.fio_file.translate import phases, plan
from iolab.machines.system import command

NEEDS_FIO = pytest.mark.skipif(command.find("fio") is None, reason="fio is not installed")


def read(text: str, runner: Runner = "iolab", **environment: str) -> list[FioJob]:
    problems = JobFileProblems("job.fio")
    jobs = job_file.read(text, problems, runner=runner, environment=environment)
    problems.raise_any()
    return list(jobs.jobs)


def the_job(text: str, **environment: str) -> FioJob:
    [job] = read(text, **environment)
    return job


def the_problem(text: str, runner: Runner = "iolab") -> str:
    with pytest.raises(InputError) as raised:
        read(text, runner)
    return str(raised.value)


def test_globals_count_for_the_jobs_below_them_and_a_jobs_own_options_win() -> None:
    jobs = read("[global]\nbs=8k\niodepth=4\n[a]\n[b]\nbs=16k\n[global]\niodepth=8\n[c]\n")
    assert [(job.name, job["bs"].read, job["iodepth"]) for job in jobs] == [
        ("a", 8192, 4),
        ("b", 16384, 4),
        ("c", 8192, 8),
    ]


def test_comments_spaces_and_options_without_a_value() -> None:
    job = the_job("; a comment\n  # another\n\n[ a job ]\n direct = 1 ; why\ntime_based\nsize=1m # so much\n")
    assert (job.name, job["direct"], job["time_based"], job["size"]) == ("a job", True, True, 2**20)


def test_aliases_are_the_same_option_and_the_later_entry_wins() -> None:
    job = the_job("[a]\nblocksize=4k\nreadwrite=randread\nbs=8k\nnr_files=3\n")
    assert (job["bs"].read, job["rw"], job["nrfiles"]) == (8192, ("randread", 0), 3)


def test_a_name_names_its_job_and_one_in_global_names_none() -> None:
    assert [job.name for job in read("[global]\nname=all\n[a]\n[b]\nname=other\n")] == ["a", "other"]


def test_variables_come_from_the_environment() -> None:
    assert the_job("[a]\nsize=${SIZE}m\n", SIZE="3")["size"] == 3 * 2**20
    line = "job.fio:2: size: the environment has no SIZE; run with SIZE=... iolab run ..."
    assert the_problem("[a]\nsize=${SIZE}\n") == line


def test_stonewall_divides_stages() -> None:
    problems = JobFileProblems("job.fio")
    text = "[a]\nstonewall\n[b]\n[c]\nwait_for_previous\n[d]\nstonewall=0\n"
    stages = job_file.read(text, problems, environment={}).stages
    assert [[job.name for job in stage] for stage in stages] == [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[a]\nbogosity=1\n", "job.fio:2: bogosity: neither fio 3.42 nor iolab has this option"),
        ("[a]\niodept=1\n", "job.fio:2: iodept: neither fio 3.42 nor iolab has this option; did you mean iodepth?"),
        (
            "[a]\nflow=1\n",
            "job.fio:2: flow: fio has this option, iolab does not; leave it out, or let fio run it: --engine fio",
        ),
        ("[a]\n\nsize=7x\n", 'job.fio:3: size: "7x" given; expected a whole number such as 4096, 4k or 1m'),
        ("[a]\nsize=50%\n", 'job.fio:2: size: "50%" given; iolab needs a number of bytes, such as 1g'),
        ("[a]\nrw=randred\n", 'job.fio:2: rw: "randred": unknown value; did you mean randread?'),
        (
            "[a]\nrw=trim\n",
            'job.fio:2: rw: "trim": iolab has no trims; it has read, write, randread, randwrite, rw, readwrite, randrw',
        ),
        (
            "[a]\nioengine=rbd\n",
            'job.fio:2: ioengine: "rbd": fio has it, iolab has not; '
            "iolab runs io_uring, io_uring_cmd, libaio, psync, sync, pvsync, pvsync2, mmap, null",
        ),
        (
            "[a]\nexec_prerun=rm\n",
            "job.fio:2: exec_prerun: iolab does not let a job file do this: it runs a command",
        ),
        ("\nbs=4k\n", 'job.fio:2: there is no section in this file; expected one such as "[job]" above all options'),
        ("bs=4k\n[a]\n", 'job.fio:1: "bs=4k" stands above the first section; expected a section such as "[job]"'),
        ("[a\nbs=4k\n", 'job.fio:1: "[a" is no section; expected a name in brackets such as "[job]"'),
        ("[a]\n=4k\n", 'job.fio:2: "=4k" is no option; expected name=value'),
        ("[a]\ninclude other.fio\n", "job.fio:2: include: not supported; put the lines of the included file here"),
        ("[global]\nbs=4k\n", 'job.fio: no job; expected a section such as "[job]" with options below it'),
        (
            "[a]\nbssplit=4k/60:8k/30\n",
            'job.fio:2: bssplit: "4k/60:8k/30" given; '
            "expected sizes with percentages that sum to 100, such as 4k/60:64k/40",
        ),
        ("[a]\nkb_base=1\n", "job.fio:2: kb_base: 1 given; expected 1000 or 1024"),
    ],
)
def test_a_mistake_is_told_by_file_line_and_option(text: str, line: str) -> None:
    assert the_problem(text) == line


def test_every_mistake_is_told_at_once_in_the_order_of_the_file() -> None:
    lines = the_problem("[a]\nsize=x\n[b]\nbs=y\nbogus=1\n").split("\n")
    assert [line.split(" ")[0] for line in lines] == ["job.fio:2:", "job.fio:4:", "job.fio:5:"]


def test_a_mistake_in_global_is_told_once() -> None:
    assert the_problem("[global]\nsize=x\n[a]\n[b]\n").count("\n") == 0


def test_what_only_fio_has_is_handed_on_when_fio_runs_the_job() -> None:
    [job] = read("[a]\nflow=8\nrandom_distribution=zoned:50/5:50/95\n", "fio")
    assert job.texts == {"flow": "8", "random_distribution": "zoned:50/5:50/95"}


@pytest.mark.parametrize(
    "option", ["rw=trim", "ioengine=exec", "exec_postrun=ls", "read_iolog=/x", "zonemode=zbd", "mem=mmap:/x", "uid=0"]
)
def test_what_reaches_beyond_the_target_is_refused_for_fio_too(option: str) -> None:
    assert the_problem(f"[a]\n{option}\n", "fio").startswith("job.fio:2: ")


@pytest.mark.parametrize(
    ("text", "kb_base", "bytes_"),
    [
        ("4096", 1024, 4096),
        ("4k", 1024, 4096),
        ("4kb", 1024, 4096),
        ("1MB", 1024, 2**20),
        ("1ki", 1024, 1024),
        ("1kib", 1024, 1000),
        ("1MiB", 1024, 10**6),
        ("0x1000", 1024, 4096),
        ("1k", 1000, 1000),
        ("1KiB", 1000, 1024),
        ("1MiB", 1000, 2**20),
        ("1t", 1024, 2**40),
    ],
)
def test_sizes_by_kb_base(text: str, kb_base: int, bytes_: int) -> None:
    assert value.size(text, kb_base) == bytes_


@NEEDS_FIO
@pytest.mark.parametrize("text", ["64k", "64kb", "64ki", "64KiB", "1m", "1mi", "0x10000", "1MB", "1MiB"])
@pytest.mark.parametrize("kb_base", [1000, 1024])
def test_sizes_are_read_as_fio_reads_them(text: str, kb_base: int) -> None:
    fio = command.find("fio")
    job = f"[a]\nioengine=null\nkb_base={kb_base}\nbs=8\nsize={text}\n"
    done = subprocess.run(
        [str(fio), "-", "--output-format=json"], input=job, capture_output=True, text=True, check=True
    )
    fios = json.loads(done.stdout)["jobs"][0]["read"]["io_bytes"]
    assert value.size(text, kb_base) // 8 * 8 == fios


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("500ms", 0.5), ("5m", 300), ("2h", 7200), ("10s", 10), ("7usec", 7e-6)]
)
def test_times(text: str, seconds: float) -> None:
    assert value.duration_ns(1_000_000_000)(text) == seconds * 1e9


def test_directions_ranges_and_lists() -> None:
    whole = value.directions(value.whole)
    assert whole("4k") == (4096, 4096)
    assert whole("4k,8k") == (4096, 8192)
    assert whole(",8k") == (None, 8192)
    assert value.block_range("1k-4k") == {1024: 1, 2048: 1, 3072: 1, 4096: 1}
    assert value.block_split("4k/10:64k/50:32k/40") == {4096: 10, 65536: 50, 32768: 40}
    assert value.block_split("4k/50:8k:16k") == {4096: 50, 8192: 25, 16384: 25}
    assert value.cpu_list("0-2,5") == [0, 1, 2, 5]
    assert value.cpu_mask("0x5") == [0, 2]
    assert value.paths("a:b\\:c") == ["a", "b:c"]


@given(st.lists(st.text("abc:/.", min_size=1), min_size=1).filter(lambda names: not any("\\" in n for n in names)))
def test_joined_paths_are_read_back(names: list[str]) -> None:
    assert value.paths(value.joined(names)) == names


def test_every_registered_option_is_one_of_fios() -> None:
    assert {known().names.get(name) for name in OPTIONS} == set(OPTIONS)


OPTION_LINES = st.builds(
    lambda name, text: f"{name}={text}",
    st.sampled_from(sorted(known().names)),
    st.one_of(st.sampled_from(["1", "4k", "-1", "", "0", "a:b", "1-2", "x,y,z,w", "${A}", "9" * 30]), st.text()),
)


@settings(max_examples=3 * settings().max_examples)
@given(st.lists(st.one_of(st.sampled_from(["[global]", "[a]", "[b]"]), OPTION_LINES, st.text())), st.booleans())
def test_whatever_the_text_it_is_read_or_told_what_is_wrong(lines: list[str], for_fio: bool) -> None:
    problems = JobFileProblems("job.fio")
    jobs = job_file.read("\n".join(lines), problems, runner="fio" if for_fio else "iolab", environment={})
    is_job_file("\n".join(lines))
    if not problems.lines():
        found = plan(jobs, default_size=2**20, problems=problems, runner="iolab")
    if not problems.lines() and found.files and len(found.files) < 1000:
        assert phases(found, seed=1, devices=1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(2 * 4k + 512)", 2 * 4096 + 512),
        ("(1m - 4k * 2) ", 2**20 - 8192),
        ("$pagesize * (2 + 3) - 1", os.sysconf("SC_PAGE_SIZE") * 5 - 1),
        ("(7 / 2 * 2 % 5)", 1),
    ],
)
def test_expressions_of_several_operations(text: str, value: int) -> None:
    assert the_job(f"[a]\nsize={text}\n")["size"] == value


@pytest.mark.parametrize(("text", "first"), [("2*8m", "2"), ("8m*2", "8m"), ("8m + 4k", "8m"), ("1m/2", "1m")])
def test_operations_without_parentheses_are_not_cut_off_in_silence(text: str, first: str) -> None:
    """fio 3.33 writes 8 MiB for size=8m*2, and refuses the 2 bytes of 2*8m."""
    told = the_problem(f"[a]\nsize={text}\n")
    assert "job.fio:2: size" in told and "write (" + text + ")" in told
    assert f"fio reads {first} and drops the rest" in told


@pytest.mark.parametrize("text", ["(1 / 0)", "(2 +)", "(2 * (3)", "(x)", "()", "(9" + "*9" * 99 + ")"])
def test_what_is_no_expression_is_told(text: str) -> None:
    assert "with + - * / % and parentheses" in the_problem(f"[a]\nsize={text}\n")


def test_options_of_newer_versions_of_fio() -> None:
    newer = ("ramp_size=1m", "end_syncfs=1", "write_zone_remainder=1", "comm=a", "rocm_io=posix")  # 3.42 has these
    for option in ("fdp=1", "dataplacement=fdp", "num_range=2", "priohint=1", "sprandom=1", *newer):
        told = the_problem(f"[a]\n{option}\n")
        assert "fio has this option, iolab does not" in told, told
        assert read(f"[a]\n{option}\n", "fio")
    assert read("[a]\nwholly_unheard_of=1\n", "fio"), "a newer fio may have it: it says so where not"
    assert read("[a]\niodept=1\n", "fio"), "like an option, and perhaps one of a newer fio"


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("iops:0.3%", ("operations", "deviation", 0.3, True)),
        ("iops_slope:20", ("operations", "slope", 20, False)),
        ("bw:10m", ("bytes", "deviation", 10 * 2**20, False)),
        ("bw_slope: 5 %", ("bytes", "slope", 5, True)),
    ],
)
def test_what_has_to_be_steady(text: str, rate: tuple[str, str, float, bool]) -> None:
    assert the_job(f"[a]\nss={text}\nss_dur=4\n")["steadystate"] == rate


@pytest.mark.parametrize("text", ["iops", "lat:5%", "iops:0%", "iops:", "bw:x", "iops:4k"])
def test_what_is_no_steady_rate_is_told(text: str) -> None:
    assert "job.fio:2: steadystate: " in the_problem(f"[a]\nsteadystate={text}\n")


def test_what_stays_as_it_is_has_no_effect() -> None:
    assert the_job("[a]\nallow_mounted_write=0\nthreads=1\nsize=1m\n")["size"] == 2**20
    assert "allow_mounted_write" in the_problem("[a]\nallow_mounted_write=1\n")


def test_all_of_what_is_there() -> None:
    assert not the_job("[a]\nsize=100%\n")["size"]


@pytest.mark.parametrize(
    "given",
    [
        "pareto:1.5",
        "normal:101",
        "zipf:1.2:7",
        "zoned:50/5",
        "zoned:50/60:50/60",
        "zoned:50/5:50/95,100/100",
        "zoned_abs:9",
    ],
)
def test_distributions_out_of_range_are_refused(given: str) -> None:
    problem = the_problem(f"[a]\nsize=1m\nrandom_distribution={given}\n")
    assert problem.startswith("job.fio:3: random_distribution: ")
    assert "expected" in problem or "the same zones" in problem


def test_sections_alone_keep_their_lines() -> None:
    text = "[global]\nsize=1m\n[a]\nbs=4k\n[b]\nbs=8k\n"
    assert only(text, ["b"], "job.fio") == "[global]\nsize=1m\n\n\n[b]\nbs=8k\n"
    with pytest.raises(InputError, match="--section: c: unknown section"):
        only(text, ["c"], "job.fio")


@pytest.mark.parametrize(
    ("fio_can_run", "remedy"), [(True, "leave it out, or let fio run it: --engine fio"), (False, "leave it out")]
)
def test_fio_is_the_way_out_only_if_it_can_run(fio_can_run: bool, remedy: str) -> None:
    problems = JobFileProblems("job.fio", fio_can_run=fio_can_run)
    job_file.read("[a]\nsize=1m\nnum_range=4\n", problems, environment={})
    assert problems.lines() == [f"job.fio:3: num_range: fio has this option, iolab does not; {remedy}"]
