"""Durations in texts, and what took so long by its label."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.files.importer.durations import in_seconds, seconds
from test_importer_headings import figures, refusal


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7m30s", 450),
        ("65m39.250s", 3939.25),
        ("1h2m", 3720),
        ("1h51m3s", 6663),
        ("2 minutes 18.17 seconds", 138.17),
        ("2 hours 7 minutes 38.05 seconds", 7658.05),
        ("1 day, 2 hours", 93_600),
        ("0:27.27", 27.27),
        ("4:30 min", 270),
        ("5 min", 300),
        ("7m", None),
        ("07:19", None),
        ("10:32:05", None),
        ("12 s", None),
        ("7", None),
        ("", None),
    ],
)
def test_a_duration_is_read_where_it_is_sure(text: str, value: float | None) -> None:
    assert seconds(text) == (None if value is None else pytest.approx(value))


def test_what_may_be_something_else_is_a_duration_where_that_is_known() -> None:
    assert seconds("7m", is_duration=True) == 420
    assert seconds("10:32:05", is_duration=True) == 37_925
    assert seconds("07:19", is_duration=True) is None


@given(st.text(alphabet="0123456789.: dhmsecondiutay,", max_size=80))
def test_any_text_is_a_duration_or_none(text: str) -> None:
    assert (seconds(text, is_duration=True) or 0) >= 0
    in_seconds(text)


def test_minutes_are_durations_beside_others_and_below_such_a_name(tmp_path: Path) -> None:
    beside = "tool | full | changed\n-- | -- | --\nalpha | 1h2m | 7m\nbeta | 58m30s | 9m\n"
    wanted = {("full", "alpha", "time_ns"): 3720e9, ("changed", "beta", "time_ns"): 540e9}
    assert figures(tmp_path, beside, wanted) == []
    below = "tool | total time | files\n-- | -- | --\nalpha | 62m | 1000\nbeta | 7m | 2000\n"
    assert figures(tmp_path, below, {("alpha", "table", "elapsed_s"): 3720, ("beta", "table", "elapsed_s"): 420}) == []


def test_minutes_beside_seven_millions_are_left_out(tmp_path: Path) -> None:
    text = "tool | backup time | ops\n-- | -- | --\nalpha | 7m | 7m\nbeta | 9m | 8m\n"
    (problem,) = figures(tmp_path, text, {("alpha", "table", "backup time_ns"): 420e9})
    assert "2 cells without a single figure, such as '7m': left out" in problem


def test_what_took_seconds_is_read_by_its_label_and_what_was_asked_for_is_not(tmp_path: Path) -> None:
    text = "On the new array:\n\ncopy files: 12.3 s\nunpack: 45 s\nrm -rf: 1m05s\nwarmup: 30 s\ntimeout: 60 s\n"
    (problem,) = figures(
        tmp_path,
        text,
        {
            ("posted", "list", "copy files_ns"): 12.3e9,
            ("posted", "list", "unpack_ns"): 45e9,
            ("posted", "list", "rm -rf_ns"): 65e9,
        },
    )
    assert "2 lines have figures of no metric that iolab knows: left out, 'warmup: 30 s' first" in problem


def test_durations_behind_labels_that_come_again_are_of_what_stands_above(tmp_path: Path) -> None:
    text = (
        "small (1 GB):\nfirst tool: 2 minutes 18.5 seconds\nsecond tool: 0m3.75s\n\n"
        "big (90 GB):\nfirst tool: 2 hours 1 minutes 1 seconds\nsecond tool: 4m40.5s\n"
    )
    wanted = {
        ("small (1 GB)", "list", "first tool_ns"): 138.5e9,
        ("big (90 GB)", "list", "first tool_ns"): 7261e9,
        ("big (90 GB)", "list", "second tool_ns"): 280.5e9,
    }
    assert figures(tmp_path, text, wanted) == []


def test_a_time_of_day_is_no_duration(tmp_path: Path) -> None:
    assert "unrecognised" in refusal(tmp_path, "started: 10:32:05\nended: 10:40:07\n")
