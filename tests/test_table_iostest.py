"""`show --as iostest`: the AVERAGE table, with the seed's columns, and read back by the importer's rules."""

import re
from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.files.store import RunData
from iolab.presentation.table import render
from support.command_line import CommandLine
from support.stored import TIOBENCH, stored_run

EXPERIMENT = """\
rounds = 2
seed = 7

[target]
kind = "directory"
path = "."

[workloads.readers]
kind = "iostest"
job = ["bsr", "bsr+drw"]
groups = 3
jobs_per_group = [2, 1]
controller = "none"

[settings.plain]

[settings.pinned]
cpus = [0]
"""


@pytest.fixture
def run(tmp_path: Path) -> RunData:
    return stored_run(tmp_path / "run", EXPERIMENT)


def tables(text: str) -> list[list[list[str]]]:
    """The rows of each AVERAGE table."""
    found: list[list[list[str]]] = []
    for line in text.splitlines():
        if line.split()[:3] == ["job", "Set", "NR"]:
            found.append([])
        elif found and re.match(r"\S+ +\d+ +\d+ +\d", line):
            found[-1].append(line.split())
    return found


def test_a_table_per_setting_and_job_with_a_column_per_group(run: RunData) -> None:
    text = render(run, "iostest")
    assert text.count("AVERAGE[bsr] [bw in KB/s]") == 2
    assert text.count("AVERAGE[bsr+drw] [bw in KB/s]") == 2
    assert re.search(r"^job +Set +NR +test1 +test2 +test3 +total$", text, re.MULTILINE)
    assert "GROUPMODE=0 NRGRP=3" in text
    assert "Filesz=512M bs=4K" in text
    assert "Kernel=6.1.0-test" in text
    assert text.startswith("*** plain\n")
    assert text.count("*** pinned\n") == 2
    assert "controller" not in text


def test_totals_add_up_and_lines_rise_in_jobs(run: RunData) -> None:
    alone, side_by_side, *_ = tables(render(run, "iostest"))
    assert [row[:3] for row in alone] == [["bsr", "1", "1"], ["bsr", "1", "2"]]
    sorts = ["bsr", "drw", "bsr+drw"]
    assert [row[:3] for row in side_by_side] == [[sort, "1", number] for number in ("1", "2") for sort in sorts]
    for row in (*alone, *side_by_side):
        *groups, total = map(int, row[3:])
        assert len(groups) == 3
        assert total == pytest.approx(sum(groups), abs=2)
    for column in range(3, 7):
        parts = int(side_by_side[0][column]) + int(side_by_side[1][column])
        assert int(side_by_side[2][column]) == pytest.approx(parts, abs=2)


def test_fairness_stands_below(run: RunData) -> None:
    lines = [line for line in render(run, "iostest").splitlines() if line.startswith("Jain's index")]
    assert len(lines) == 4
    for line in lines:
        # Equal rates under weights 100, 200, 300 (test_workload_iostest).
        assert re.search(r"NR=1 0\.82\d\d, NR=2 0\.82\d\d$", line)


def test_another_run_is_refused(tmp_path: Path, run: RunData) -> None:
    with pytest.raises(InputError, match="no workload of kind iostest"):
        render(stored_run(tmp_path / "other", TIOBENCH), "iostest")
    with pytest.raises(InputError, match="fixed columns"):
        render(run, "iostest", ["iops"])


def test_the_importer_reads_it_back(iolab: CommandLine, run: RunData) -> None:
    iolab.write("table.txt", render(run, "iostest"))
    shown = iolab("show", "table.txt").stdout
    for workload in ("bsr[jobs_per_group=1]", "bsr[jobs_per_group=2]", "bsr+drw[jobs_per_group=2]"):
        assert workload in shown
    assert "baseline plain" in shown
    assert "pinned" in shown


@pytest.mark.parametrize(("controller", "shown"), [("auto", "cost"), ("cost", "cost"), ("bfq", "bfq")])
def test_who_enforced_the_weights_is_in_the_header(tmp_path: Path, controller: str, shown: str) -> None:
    text = EXPERIMENT.replace('"none"', f'"{controller}"')
    assert f"controller={shown} weights=100,200,300" in render(stored_run(tmp_path / "run", text), "iostest")
