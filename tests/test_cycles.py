"""Cycles per byte and per I/O: the arithmetic against posted figures, and the tables."""

from pathlib import Path
from statistics import fmean

import pytest
from iolab.base.errors import InputError
from iolab.domain.cycles import (
    Processors,
    absolute_cycles_per_s,
    per,
    processors,
    relative_cycles_per_s,
    relative_percent_of,
)
from iolab.files.store import RunData
from iolab.presentation.table import render
from iolab.presentation.table.means import phase_means
from support.command_line import CommandLine
from support.stored import stored_run

IMPORTED = Path(__file__).parent / "imported"
GOLDEN = Path(__file__).parent / "golden" / "cycles"
POSTED = Processors(12, 1.6e9)
RATE, IOPS = 12 * 2**30 / 496, 25161863 / 996


def test_the_posted_figures_are_all_cycles_whatever_the_utilisation() -> None:
    assert int(per(POSTED.all_cycles_per_s, 25973227) or 0) == 739  # posted as 740
    assert round(per(POSTED.all_cycles_per_s, IOPS) or 0) == pytest.approx(760004, rel=1e-4)


def test_both_readings_of_the_same_time_give_the_same_cycles() -> None:
    absolute = absolute_cycles_per_s(163.84, POSTED)
    relative = relative_cycles_per_s(relative_percent_of(163.84, POSTED), POSTED)
    assert absolute == pytest.approx(relative)
    assert per(absolute, RATE) == pytest.approx(100.9, abs=0.1)
    # A factor of the CPUs lies between a percentage and its misreading.
    assert relative_cycles_per_s(163.84, POSTED) == pytest.approx(12 * (absolute or 0))


def test_what_is_not_known_is_absent() -> None:
    assert absolute_cycles_per_s(50, Processors(count=4)) is None
    assert relative_cycles_per_s(50, Processors(frequency_hz=1e9)) is None
    assert relative_percent_of(50, Processors()) is None
    assert per(1e9, 0) is None
    assert per(None, 5) is None


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        ({"cpu": {"count_online": 2, "frequency_mhz": "2100.000"}}, Processors(2, 2.1e9)),
        ({"cpu": {"count_online": 2, "frequency_mhz": {"absent": "no such field"}}}, Processors(2, None)),
        ({"cpu": {"frequency_mhz": "fast"}}, Processors()),
        ({}, Processors()),
    ],
)
def test_a_machines_description_says_what_it_can(machine: dict[str, object], expected: Processors) -> None:
    assert processors(machine) == expected


@pytest.mark.parametrize("name", ["iozone-cpu", "kernels", "mpstat"])
def test_imported_text_has_the_table(iolab: CommandLine, name: str) -> None:
    shown = iolab("show", IMPORTED / f"{name}.txt", "--as", "cycles").stdout
    assert shown == (GOLDEN / f"{name}.txt").read_text()


def test_a_split_and_its_stalls_are_read_again(iolab: CommandLine) -> None:
    shown = iolab("show", IMPORTED / "kernels.txt", "--as", "cycles").stdout
    again = iolab.write("again.txt", shown)
    assert iolab("show", again, "--as", "cycles").stdout == shown


@pytest.fixture
def run(tmp_path: Path) -> RunData:
    return stored_run(tmp_path / "run")


def test_a_run_without_the_probe_has_the_threads_share(run: RunData) -> None:
    text = render(run, "cycles")
    assert "cycles/IO" in text
    assert text.splitlines()[0].startswith("CPUs: ")
    assert {"plain", "fast", "alike"} <= {line.split()[0] for line in text.splitlines() if line}


def test_what_is_per_something_is_a_mean_over_the_rounds(run: RunData) -> None:
    place = next(place for place in phase_means(run) if place.get("iops"))
    of_rounds = run.values("iops", place.workload)[place.setting].to_list()
    assert len(set(of_rounds)) > 1
    assert place.inverse("iops") == pytest.approx(fmean(1 / value for value in of_rounds))


def test_metrics_cannot_be_chosen(run: RunData) -> None:
    for name in ("cycles", "extents"):
        with pytest.raises(InputError, match="fixed columns"):
            render(run, name, ["iops"])
