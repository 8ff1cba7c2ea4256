"""What a user's mistake looks like on the screen: the user's words and units, and what to do."""

import re
from pathlib import Path

import pytest
from iolab.base.quantity import size_in_words
from iolab.domain.metric import METRICS, meant
from iolab.domain.simulated_machine import in_plain_words
from iolab.machines.system import safety
from iolab.machines.system.block import device_numbered
from support.command_line import CommandLine
from support.experiments import experiment

RUST = re.compile(r"\b[uif](?:8|16|32|64|128|size)\b|Option<|struct|invalid type|sequence|\bmap\b")
SIMULATED = 'machine = "model:m.toml"\nrounds = 1\n[workloads.w]\nfile_size = "1MiB"\nduration = "1ms"\n[settings.a]\n'
MACHINE = """
title = "one disk"
kernel = "6.1"
[cpus]
count = 4
time_slice_ns = 4000000
call_ns = 1500
completion_ns = 2500
page_copy_ns = 500
jitter = 0.05
[[drives]]
device = "g4_4tb"
"""


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [
        *((0, "0 bytes"), (512, "512 bytes"), (1024, "1 KiB"), (1000, "1000 bytes"), (1536, "1.5 KiB")),
        *((4097, "4097 bytes"), (64 << 20, "64 MiB"), (300 << 30, "300 GiB")),
        *((65_546_241, "62.51 MiB (65546241 bytes)"), (64_870_825_984, "60.42 GiB (64870825984 bytes)")),
    ],
)
def test_sizes_are_in_units(size_bytes: int, words: str) -> None:
    assert size_in_words(size_bytes) == words


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("invalid type: boolean `true`, expected u64", "true given; expected a whole number, not negative"),
        ('invalid type: string "x", expected f64', '"x" given; expected a number'),
        ("invalid type: map, expected a string", "a table given; expected a text"),
        ("invalid value: integer `-1`, expected u16", "-1 given; expected a whole number from 0 to 65535"),
        ("invalid type: sequence, expected struct NfsSpec", "an array given; expected a table"),
        ("missing field `count`", "missing field `count`"),
        ("the machine has 2 drives, from 0", "the machine has 2 drives, from 0"),
    ],
)
def test_types_are_in_the_words_of_the_file(told: str, words: str) -> None:
    assert in_plain_words(told) == words


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("count = 4", 'count = "four"'), ("m.toml:5", "cpus.count", '"four" given; expected a whole number')),
        (("jitter = 0.05", "jitter = [1]"), ("m.toml:10", "an array given; expected a number")),
        (("[cpus]\ncount = 4", "cpus = 4\n[x]\ncount = 4"), ("cpus", "given; expected a table")),
    ],
)
def test_no_message_names_a_type_of_rust(wrong: tuple[str, str], words: tuple[str, ...], iolab: CommandLine) -> None:
    assert wrong[0] in MACHINE
    iolab.write("m.toml", MACHINE.replace(*wrong))
    iolab.write("e.toml", SIMULATED)
    outcome = iolab("run", "e.toml", status=2)
    outcome.assert_one_clear_line(2, *words)
    assert not RUST.search(outcome.stderr), outcome.stderr


@pytest.mark.parametrize(
    ("word", "first"),
    [
        *(("p99", "latency_ns_p99"), ("p99.9", "latency_ns_p999"), ("lat", "latency_ns_mean")),
        *(("latency", "latency_ns_mean"), ("avg_lat", "latency_ns_mean"), ("bw", "rate_bytes_per_s")),
        *(("throughput", "rate_bytes_per_s"), ("median", "latency_ns_p50"), ("clat_p99", "latency_ns_p99")),
    ],
)
def test_a_metric_is_suggested_by_its_meaning(word: str, first: str) -> None:
    assert meant(word, METRICS)[0] == first


def test_what_means_nothing_has_no_suggestion() -> None:
    assert meant("zebra", METRICS) == [] == meant("", METRICS) == meant("__", METRICS)


def test_the_nearest_metrics_are_named_on_the_screen(iolab: CommandLine) -> None:
    iolab.write("a.csv", "setting,round,read_latency_p99_ns,iops\na,1,5,2\nb,1,6,3\n")
    iolab("import", "a.csv", "--out", "run")
    iolab("show", "run", "--metric", "p99", status=2).assert_one_clear_line(
        2, "p99", "did you mean read_latency_p99_ns?"
    )
    said = iolab("show", "run", "--metric", "lat", status=2)
    said.assert_one_clear_line(2, "lat", "did you mean read_latency_p99_ns?")
    iolab.write("e.toml", experiment('kind = "directory"') + '[compare]\nmetrics = ["p99", "lat"]\n')
    said = iolab("run", "e.toml", status=2)
    assert "compare.metrics: p99: unknown metric; did you mean latency_ns_p99" in said.stderr
    assert "compare.metrics: lat: unknown metric; did you mean latency_ns_mean, " in said.stderr
    assert max(map(len, said.stderr.splitlines())) < 200


def test_the_seed_is_in_the_json(iolab: CommandLine) -> None:
    workload = '[workloads.w]\nfile_size = "1MiB"\noperations = 20\ndirect = false\n'
    iolab.write("e.toml", experiment('kind = "directory"', workload=workload, rounds=1, seed=4711))
    assert iolab("run", "e.toml", "--out", "run", "--json").json()["seed"] == 4711
    assert iolab("show", "run", "--json").json()["seed"] == 4711
    assert "simulated" not in iolab("show", "run").stdout


def test_until_decided_heeds_the_rounds_of_the_experiment(iolab: CommandLine) -> None:
    workload = '[workloads.w]\nfile_size = "1MiB"\noperations = 5\ndirect = false\n'
    iolab.write("e.toml", experiment('kind = "directory"', workload=workload, rounds=5))
    outcome = iolab("run", "e.toml", "--until-decided", "--out", "run")
    assert iolab("show", "run", "--json").json()["rounds"] == 5
    assert outcome.stderr.count("after 5 rounds of at most 5: ") == 1
    iolab.write("e.toml", experiment('kind = "directory"', workload=workload, rounds=3))
    few = iolab("run", "e.toml", "--until-decided", status=2)
    few.assert_one_clear_line(2, "--until-decided", "rounds = 3 is the most", "--rounds 50")


@pytest.mark.root
def test_where_files_go_without_root_is_said(iolab_as_nobody: CommandLine) -> None:
    workload = '[workloads.w]\nfile_size = "1MiB"\noperations = 5\ndirect = false\n'
    text = experiment("", workload=workload, rounds=1).replace("[target]\n", "")
    iolab_as_nobody.write("e.toml", text)
    said = f"without root and [target], files go to {iolab_as_nobody.cwd}"
    assert said in iolab_as_nobody("run", "e.toml", "--out", "run").stderr
    iolab_as_nobody.write("e.toml", experiment('kind = "directory"', workload=workload, rounds=1))
    assert said not in iolab_as_nobody("run", "e.toml", "--out", "run2").stderr


def test_the_disk_of_the_root_filesystem_is_called_so() -> None:
    number = _number_of_root()
    device = device_numbered(*number) if number else None
    if device is None:
        pytest.skip("/ lies on no block device here")
    assert "it is the disk of /, the root filesystem" in list(safety._uses(device))
    disk = device.disk
    if disk.number != device.number:
        assert f"its partition {device.name} is the disk of /, the root filesystem" in list(safety._uses(disk))


def _number_of_root() -> tuple[int, int] | None:
    lines = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    major, minor = next(line[2] for line in reversed(lines) if line[4] == "/").split(":")
    return (int(major), int(minor)) if int(major) else None


def test_columns_that_are_not_named_are_found(iolab: CommandLine) -> None:
    rows = "".join(f"{name},{n},a,{rate + n / 10}\n" for n in range(6) for name, rate in (("old", 5), ("new", 50)))
    iolab.write("a.csv", f"host,iteration,kernel,iops\n{rows}")
    found = iolab("compare", "a.csv", "--setting-column", "host", "--json").json()["comparisons"]
    assert [(one["setting"], one["against"], one["n"], one["verdict"]) for one in found] == [
        ("new", "old", 6, "faster")
    ]
    iolab.write("b.csv", f"host,number,kernel,iops\n{rows}")
    assert iolab("compare", "b.csv", "--setting-column", "host", "--json").json()["comparisons"] == found
    iolab.write("c.csv", "number,iops\n1,5\n2,6\n")
    refused = iolab("compare", "c.csv", "--round-column", "number", status=2)
    refused.assert_one_clear_line(2, "c.csv", "--setting-column")
