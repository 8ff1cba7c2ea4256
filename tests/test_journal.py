"""The journal: what was appended is there, whatever tears or locks it."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.files.store.journal import Clocks, Journal, read_journal
from iolab.files.store.state import clock_problems, fold

NS_PER_S = 1_000_000_000
STARTED = {
    "format": 2,
    "seed": 7,
    "rounds": 1,
    "until_decided": False,
    "machine": "host",
    "workloads": ["reads"],
    "settings": ["plain"],
    "iolab_version": "1",
}
FINISHED = {
    "trial": 0,
    "round": 0,
    "position": 0,
    "workload": "reads",
    "setting": "plain",
    "seed": 7,
    "status": "ok",
    "attempt": 1,
    "started_unix_ns": 0,
    "duration_ns": None,
    "size_bytes": 100,
    "sha256": "00",
}


def write(path: Path, *names: str) -> bytes:
    with Journal(path) as journal:
        for number, name in enumerate(names):
            journal.append(name, number=number)
    return path.read_bytes()


def test_events_come_back_in_order_with_both_clocks(tmp_path: Path) -> None:
    write(tmp_path / "journal.jsonl", "one", "two")
    contents = read_journal(tmp_path / "journal.jsonl")
    assert [(event["event"], event["number"]) for event in contents.events] == [("one", 0), ("two", 1)]
    assert all(event["wall_unix_ns"] > 0 and event["monotonic_ns"] > 0 for event in contents.events)
    assert not contents.problems


def test_a_torn_tail_at_any_byte_loses_only_the_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    whole = write(path, "one", "two", "three")
    starts = [0] + [place + 1 for place, byte in enumerate(whole) if byte == ord("\n")]
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        contents = read_journal(path)
        assert len(contents.events) == sum(start <= length for start in starts[1:])
        assert bool(contents.problems) == (length not in starts)


def test_a_torn_tail_is_named_by_line_and_cut_by_the_next_writer(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    whole = write(path, "one", "two")
    path.write_bytes(whole[:-5])
    assert "journal.jsonl:2: torn last line" in read_journal(path).problems[0]
    write(path, "three")
    contents = read_journal(path)
    assert [event["event"] for event in contents.events] == ["one", "torn_line_cut", "three"]
    assert not contents.problems


def test_a_damaged_line_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    lines = write(path, "one", "two", "three").splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\x00\xff nonsense\n" + lines[2])
    contents = read_journal(path)
    assert [event["event"] for event in contents.events] == ["one", "three"]
    assert contents.problems == ["journal.jsonl:2: not a journal entry, left out"]


@given(content=st.binary(max_size=300))
@settings(max_examples=3 * settings().max_examples)
def test_any_bytes_can_be_read_and_written_on(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "journal.jsonl"
    path.write_bytes(content)
    before = read_journal(path).events
    write(path, "next")
    after = read_journal(path).events
    assert after[: len(before)] == before
    assert after[-1]["event"] == "next"
    fold(after)


def test_a_second_writer_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path), pytest.raises(InputError, match="another iolab is running here"):
        Journal(path)
    Journal(path).close()


def test_a_line_is_one_json_object_whatever_the_text(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append("odd", text='new\nline "quoted" ü \u2028')
    (line,) = path.read_bytes().splitlines()
    assert json.loads(line)["text"] == 'new\nline "quoted" ü \u2028'


def test_a_wall_clock_that_jumps_is_a_problem_and_a_resumed_session_is_not(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    wall, monotonic = [1_700_000_000 * NS_PER_S], [500 * NS_PER_S]
    with Journal(path, clocks=Clocks(lambda: wall[0], lambda: monotonic[0])) as journal:
        journal.append("run_started", **STARTED)
        wall[0], monotonic[0] = wall[0] + NS_PER_S, monotonic[0] + NS_PER_S
        journal.append("trial_started", trial=0, attempt=1)
        wall[0], monotonic[0] = wall[0] - 3600 * NS_PER_S, monotonic[0] + NS_PER_S
        journal.append("trial_finished", **FINISHED)
        monotonic[0] = 3 * NS_PER_S
        journal.append("run_resumed", rounds=1)
    (problem,) = clock_problems(read_journal(path).events)
    assert "moved by -3601.0 s before trial_finished of trial 0" in problem


def test_the_last_word_on_a_trial_holds(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append("run_started", **{**STARTED, "rounds": 3})
        journal.append("trial_started", trial=0, attempt=1)
        journal.append("trial_finished", **{**FINISHED, "trial": 0, "status": "failed"})
        journal.append("trial_abandoned", trial=0, reason="to be tried again")
        journal.append("trial_started", trial=0, attempt=2)
        journal.append("trial_finished", **{**FINISHED, "trial": 0, "status": "ok"})
        journal.append("trial_finished", **{**FINISHED, "trial": 1, "status": "ok"})
        journal.append("trial_abandoned", trial=1, reason="its file is missing")
    state = fold(read_journal(path).events)
    assert {trial: event["status"] for trial, event in state.finished.items()} == {0: "ok"}
    assert state.attempts == {0: 2}
