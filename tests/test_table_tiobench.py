"""`show --as tiobench`: the classic table, read back by a parser that also reads tables from mailing lists."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from iolab.base.errors import InputError
from iolab.files.store import RunData
from iolab.presentation.table import render
from iolab.presentation.table.tiobench import BLOCKS
from support.stored import TIOBENCH, stored_run

POSTED = """\
file size = 8192 megs
block size = 4096 bytes

Sequential Writes
Num Avg Maximum Lat% Lat% CPU
Identifier Thr Rate (CPU%) Latency Latency >2s >10s Eff
------------ --- ------ ------ --------- ----------- -------- -------- -----
2.5.51-mm1 1 55.58 46.70% 0.234 18461.07 0.00834 0.00000 119
2.5.51-mm1 2 38.00 31.54% 0.563 18460.95 0.00896 0.00000 120
"""
"""As posted on 2003-01-16 to a kernel mailing list (2.5.51-mm1, ext3), its columns' spaces lost."""


class Line(NamedTuple):
    identifier: str
    threads: int
    rate: float
    cpu_percent: float
    latency_mean_ms: float
    latency_max_ms: float
    over_2s_percent: float
    over_10s_percent: float
    efficiency: float


def parse(text: str) -> dict[str, list[Line]]:
    """Block heading -> its lines."""
    blocks: dict[str, list[Line]] = {}
    heading = ""
    for line in text.splitlines():
        if re.fullmatch(r"(Sequential|Random) (Reads|Writes)", line):
            heading = line
        elif (fields := line.split()) and len(fields) == len(Line._fields) and fields[1].isdecimal():
            identifier, threads, rate, cpu, *rest = fields
            assert cpu.endswith("%")
            found = Line(identifier, int(threads), float(rate), float(cpu[:-1]), *map(float, rest))
            blocks.setdefault(heading, []).append(found)
    return blocks


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return stored_run(tmp_path_factory.mktemp("tiobench") / "run", TIOBENCH)


def test_the_parser_reads_a_posted_table() -> None:
    assert parse(POSTED)["Sequential Writes"][0] == Line(
        "2.5.51-mm1", 1, 55.58, 46.70, 0.234, 18461.07, 0.00834, 0, 119
    )


def test_it_has_four_blocks_with_a_line_per_setting_and_thread_count(run: RunData) -> None:
    blocks = parse(render(run, "tiobench"))
    assert (
        list(blocks)
        == list(BLOCKS.values())
        == [
            "Sequential Reads",
            "Random Reads",
            "Sequential Writes",
            "Random Writes",
        ]
    )
    for lines in blocks.values():
        places = [(line.identifier, line.threads) for line in lines]
        assert places == [(name, threads) for name in ("plain", "with_words") for threads in (1, 2, 16)]


def test_its_values_are_those_of_the_records_in_the_classic_units(run: RunData) -> None:
    line = parse(render(run, "tiobench"))["Random Reads"][0]
    value = {key: run.values(f"random_read/{key}", "classic[threads=1]")["plain"].to_list() for key in (
        "rate_bytes_per_s", "cpu_percent", "latency_ns_mean", "latency_ns_max")}  # fmt: skip
    assert line.rate == pytest.approx(sum(value["rate_bytes_per_s"]) / 2 / 2**20, abs=0.005)
    assert line.cpu_percent == pytest.approx(sum(value["cpu_percent"]) / 2, rel=0.01)
    assert line.latency_mean_ms == pytest.approx(sum(value["latency_ns_mean"]) / 2 / 1e6, abs=0.0005)
    assert line.latency_max_ms == pytest.approx(max(value["latency_ns_max"]) / 1e6, abs=0.005)
    assert line.efficiency == pytest.approx(line.rate / (line.cpu_percent / 100), abs=1)


def test_its_columns_stand_below_each_other(run: RunData) -> None:
    block = render(run, "tiobench").split("Random Reads\n")[1].split("\n\n")[0].splitlines()
    assert len({len(line) for line in block[2:]}) == 1
    assert "file size = 64 megs\nblock size = 4096 bytes\n" in render(run, "tiobench")


def test_sums_are_those_of_the_runs_that_the_workload_or_the_rounds_say(run: RunData, tmp_path: Path) -> None:
    three = stored_run(tmp_path / "run", TIOBENCH.replace("threads =", "runs = 3\nthreads ="))
    assert "sums of 2 runs, as tiobench.pl --numruns 2 prints them: of one run they are 1/2" in render(
        run, "tiobench_sums"
    )
    assert "sums of" not in render(run, "tiobench")
    for of, runs in ((run, 2), (three, 3)):
        one, summed = (parse(render(of, name))["Random Reads"][0] for name in ("tiobench", "tiobench_sums"))
        assert (summed.rate, summed.cpu_percent, summed.efficiency) == (one.rate, one.cpu_percent, one.efficiency)
        assert summed.latency_mean_ms == pytest.approx(runs * one.latency_mean_ms, abs=0.001 * runs)
        maxima = of.values("random_read/latency_ns_max", "classic[threads=1]")["plain"].to_list()
        assert summed.latency_max_ms == pytest.approx(runs * sum(maxima) / len(maxima) / 1e6, abs=0.006)


def test_its_columns_are_fixed(run: RunData) -> None:
    with pytest.raises(InputError, match="fixed columns"):
        render(run, "tiobench", ["iops"])


def test_a_run_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no workload of kind tiobench"):
        render(stored_run(tmp_path / "run"), "tiobench")
