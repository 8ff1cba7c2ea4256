"""Tables of many settings: readable at any width, whichever layout that takes.

The golden ones are what `iolab show|compare tests/imported/schedulers.csv` prints with COLUMNS set.
"""

from pathlib import Path

import pytest
from conftest import CommandLine
from fake_machine import FakeExecutor
from hypothesis import given, settings
from hypothesis import strategies as st
from iolab.presentation.table import render
from iolab.presentation.table.layout import Alternatives, text_lines
from iolab.presentation.table.plain import empty_table, indented
from rich.console import Console
from rich.text import Text
from support.stored import TWO_SETTINGS, stored_run

SCHEDULERS = Path(__file__).parent / "imported" / "schedulers.csv"
GOLDEN = Path(__file__).parent / "golden" / "tables"


@pytest.mark.parametrize(
    ("name", "columns", "arguments"),
    [
        ("show-80", 80, ["show"]),
        ("show-110", 110, ["show"]),
        ("show-200", 200, ["show"]),
        ("compare-80", 80, ["compare"]),
        ("compare-120", 120, ["compare"]),
        ("show-markdown", 80, ["show", "--as", "markdown"]),
    ],
)
def test_many_settings_are_golden(
    name: str, columns: int, arguments: list[str], iolab: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    command, *options = arguments
    shown = iolab(command, SCHEDULERS, *options).stdout
    assert shown == (GOLDEN / f"{name}.txt").read_text()
    widest = max(map(len, shown.splitlines()))
    assert widest <= columns or "markdown" in options


def test_a_pipe_breaks_no_line_and_has_the_baseline_first(iolab: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = iolab("show", SCHEDULERS).stdout.splitlines()
    assert max(map(len, lines)) <= 120
    first = next(number for number, line in enumerate(lines) if line.split() == ["IOPS", "IOPS"]) + 1
    assert [line.split()[0] for line in lines[first : first + 2]] == ["none", "mq-deadline"]


def test_a_console_gets_the_first_drawing_that_it_has_room_for() -> None:
    @given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.integers(1, 60))
    @settings(max_examples=50)
    def holds(widths: list[int], columns: int) -> None:
        drawings = [str(number) * width for number, width in enumerate(widths)]
        console = Console(width=columns)
        with console.capture() as captured:
            console.print(Alternatives(*drawings))
        fitting = [number for number, width in enumerate(widths) if width <= columns]
        assert captured.get()[0] == str(fitting[0] if fitting else len(widths) - 1)

    holds()


def test_a_large_table_is_written_as_rich_would_draw_it() -> None:

    cells = st.sampled_from(["", "a", "value 12", "長い", "two\nlines"])

    @given(st.lists(st.tuples(cells, cells, st.booleans()), min_size=1, max_size=6))
    @settings(max_examples=50)
    def holds(rows: list[tuple[str, str, bool]]) -> None:
        table = empty_table()
        table.add_column("metric")
        table.add_column("value", justify="right")
        for name, value, ends in rows:
            table.add_row(indented(name) if name and "\n" not in name else Text(name), Text(value), end_section=ends)
        console = Console(width=200, color_system=None)
        with console.capture() as captured:
            console.print(table)
        assert text_lines(table) == [line.rstrip() for line in captured.get().splitlines()]

    holds()


@pytest.mark.parametrize("form", ["plain", "markdown"])
def test_a_run_that_failed_says_why_once(form: str, tmp_path: Path) -> None:
    run = stored_run(tmp_path / "run", executor=FakeExecutor(status_of=lambda _: "failed"))
    shown = render(run, form)
    assert shown.count("it broke") == 1
    assert "No value of rate, CPU per I/O: the trial failed: it broke" in shown
    assert "alike" not in shown, "no empty columns"


@pytest.mark.parametrize("form", ["plain", "markdown"])
def test_a_setting_that_failed_keeps_its_place_and_says_why_once(form: str, tmp_path: Path) -> None:
    failing = FakeExecutor(status_of=lambda trial: "failed" if trial.setting == "fast" else "ok")
    shown = render(stored_run(tmp_path / "run", TWO_SETTINGS, executor=failing), form)
    assert "fast" in shown and "the trial failed: it broke" in shown


def test_more_sentences_than_anybody_reads_are_counted(iolab: CommandLine, tmp_path: Path) -> None:
    rows = [
        f"{setting},{number},{100 + number + (40 if setting == 's30' else 0)}"
        for number in range(5)
        for setting in [f"s{index}" for index in range(40)]
    ]
    table = iolab.write("many.csv", "\n".join(["setting,round,iops", *rows]) + "\n")
    shown = iolab("show", table).stdout
    sentences = [line for line in shown.splitlines() if line.startswith("● ")]
    assert sentences[-1] == "● And 27 more settings: 27 same; see the tables." and len(sentences) == 13
    assert sentences[0] == "● s30 is faster than s0 in IOPS (+39.2 %)."
