"""What tables say of a guest machine: what was counted, in instructions, and what its kernel was asked for."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from iolab.base.errors import InputError
from iolab.domain.comparison import Pair, compare_pairs, margin_of
from iolab.domain.phase_record import InstructionsObservation
from iolab.domain.summary import compared_keys
from iolab.files.experiment import loads
from iolab.presentation.table import symbols
from iolab.presentation.table.probe_observations import PlaceObservations
from iolab.presentation.table.symbols import stepped, system_calls
from iolab.studies.run.bisect import margin_in_words


def run_with(**values: float | None) -> Any:
    """A run of one workload with a value of each metric."""

    def of(key: str, workload: str) -> pl.DataFrame:
        return pl.DataFrame({"round": [0], "a": [values[key]]})

    compare = SimpleNamespace(metrics=None)
    experiment = SimpleNamespace(workloads={"reads": SimpleNamespace(kind="io")}, compare=compare)
    return SimpleNamespace(
        keys=list(values), workloads=["reads"], settings=["a"], values=of, experiment=experiment, shapes={}
    )


EXPERIMENT = """
machine = "guest:6.1.0-1-cloud"
[target]
kind = "scratch"
size = "64MiB"
[workloads.reads]
operations = 2000
file_size = "8MiB"
"""
TIMES = {"rate_bytes_per_s": 1.0, "cpu_ns_per_io": 7.0}


def test_what_a_guest_counts_stands_in_the_table_where_it_was_asked_for() -> None:
    assert compared_keys(run_with(**TIMES)) == ["rate_bytes_per_s", "cpu_ns_per_io"]
    unasked = {"kernel_instructions_per_op": 3.0, "memory_reads_per_op": None}
    assert compared_keys(run_with(**TIMES, **unasked)) == ["kernel_instructions_per_op", "rate_bytes_per_s"]
    asked = {"kernel_instructions_per_op": 3.0, "memory_reads_per_op": 2.0, "modelled_cache_misses_per_op": 1.0}
    assert compared_keys(run_with(**TIMES, **asked)) == [*asked, "rate_bytes_per_s"]


def test_writes_and_syncs_are_told_apart_where_there_are_both() -> None:
    counted = {"kernel_instructions_per_op": 3.0, "write_call_instructions": 2.0}
    assert "write_call_instructions" not in compared_keys(run_with(**counted, sync_call_instructions=None))
    assert compared_keys(run_with(**counted, sync_call_instructions=9.0))[-1] == "sync_call_instructions"


def test_system_calls_are_told_per_operation_and_per_call() -> None:
    calls = {"names": ["fsync", "pwrite64", "nanosleep"], "instructions": [5000, 4000, 1], "calls": [1, 10, 1]}
    found: Any = {"operations": 10, "system_calls": calls}
    rounds: list[InstructionsObservation] = [found, found]
    assert system_calls("writes", rounds).splitlines()[1:] == [
        "system call  calls per op  per call  per op",
        "fsync                 0.1   5,000.0   500.0",
        "pwrite64                1     400.0   400.0",
    ]
    uncounted: Any = {"operations": 10}
    assert system_calls("writes", [uncounted]) == ""


def test_functions_that_step_in_a_search_are_told_with_the_versions_around() -> None:
    versions = [f"c{number}" for number in range(8)]
    measured = [0, 7, 0, 7, 0, 7, 3, 4, 5, 6]

    def record(place: int) -> Any:
        amounts = [850 + 50 * (measured[place] >= 5), 130_000 + 400 * (place % 3)]
        counts = {"symbols": ["dispatch", "alloc"], "modules": ["", ""], "instructions": amounts, "calls": [1, 1]}
        observed = {"operations": 10, "user": 0, "total": sum(amounts), **counts}
        return SimpleNamespace(phases=[{"phase": "main", "probes": {"instructions": observed}}])

    columns = {"trial": range(10), "workload": ["reads"] * 10, "setting": [versions[one] for one in measured]}
    run: Any = SimpleNamespace(trials=pl.DataFrame({**columns, "round": [0] * 10}), record=record)
    assert stepped(run, "reads", versions, set()).splitlines() == [
        "reads, main: functions that changed once, and exactly",
        "function  module  before  after  change    between",
        "dispatch            85.0   90.0    +5.0  c4 and c5",
    ]
    assert stepped(run, "reads", versions, {"c5"}) == ""


def test_the_margin_of_counts_may_be_said_in_instructions() -> None:
    def verdict(metric: str, change: float, same_instructions: float | None = None) -> str:
        values = [14_000.0 + one / 4 for one in range(8)]
        pair = Pair(metric, "reads", "old", "new", values, [value + change for value in values])
        (one,) = compare_pairs([pair], same_within=0.02, same_instructions=same_instructions)
        return one.judgement.verdict

    assert verdict("kernel_instructions_per_op", 41) == "same"
    assert verdict("kernel_instructions_per_op", 41, same_instructions=20) == "worse"
    assert verdict("main/sync_call_instructions", 41, same_instructions=20) == "worse"
    assert verdict("kernel_instructions_per_op", 9, same_instructions=20) == "same"
    # Of what is no count of instructions the share stays the margin.
    assert verdict("latency_ns_mean", 41, same_instructions=20) == "same"
    assert margin_of("instructions_per_op", [1.0, None], 0.02, 20.0) == 0.99
    asked = loads(f"{EXPERIMENT}[compare]\nsame_instructions = 20\n", "guest.toml").compare
    assert (asked.same_within, asked.same_instructions) == (0.02, 20.0)
    assert margin_in_words("kernel_instructions_per_op", asked) == "20 instructions"
    assert margin_in_words("latency_ns_mean", asked) == "2 %"
    share_only = loads(EXPERIMENT, "guest.toml").compare
    assert margin_in_words("kernel_instructions_per_op", share_only) == "2 %"


def test_two_runs_are_compared_function_by_function(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(name: str, setting: str, amount: int) -> Any:
        counts = {"symbols": ["start"], "modules": [""], "instructions": [amount], "calls": [1]}
        observed = {"operations": 1, "user": 0, "total": amount, **counts}
        return SimpleNamespace(
            path=Path(name), seen=[PlaceObservations("reads", setting, "main", [observed, observed])]
        )

    monkeypatch.setattr(symbols, "observations_of", lambda run, probe: run.seen)
    told = symbols.across(run("old", "v1", 37), run("new", "v2", 87)).splitlines()
    assert told[0] == "reads, main: v2 in new against v1 in old"
    assert told[2].split() == ["start", "37.0", "87.0", "+50.0", "*"]

    def nothing(run: object, probe: str) -> list[Any]:
        raise InputError("the probe instructions was off")

    monkeypatch.setattr(symbols, "observations_of", nothing)
    assert symbols.across(run("old", "v1", 37), run("new", "v2", 87)) == ""
