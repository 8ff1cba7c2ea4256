"""Probes of kernel events: their metrics and tables, of observations that crates/measure/trace made of a recording."""

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
from fake_machine import FakeExecutor, record_of
from iolab.base.errors import InputError
from iolab.domain.executor import OnProgress, ShouldStop
from iolab.domain.probe import block, profile, switches
from iolab.domain.record import Record
from iolab.domain.trial import Trial
from iolab.files.store import RunData
from iolab.presentation.table import render
from support.stored import stored_run

GOLDEN = Path(__file__).parent / "golden" / "tables"
RECORDED = Path(__file__).parents[1] / "crates" / "measure" / "trace" / "tests" / "golden"
EXPERIMENT = """\
rounds = 2
seed = 1
[target]
kind = "directory"
path = "."
[probes]
block = true
switches = true
profile = true
[workloads.reads]
engine = "null"
read_percent = 100
duration = "1s"
"""
Json = dict[str, Any]


def recorded(name: str) -> Json:
    found: Json = json.loads((RECORDED / f"{name}.json").read_text())
    return {**found, "trace_events_lost": 3, "notes": []}


def shares(*own: float | None) -> Json:
    return {"own_shares": list(own), "total_shares": list(own)}


def function(name: str, own: float, total: float, peak: float, over_time: Json) -> Json:
    return {"function": name, "own_share": own, "total_share": total, "own_share_max": peak, **over_time}


PROFILE: Json = {
    "elapsed_ns": 4_500_000_000,
    "interval_ns": 1_000_000_000,
    "samples": 400,
    "samples_lost": 0,
    "functions": [
        function("xfs_log_force", 0.25, 0.3, 1.0, shares(0.0, 1.0, 0.0, None, 0.0)),
        function("copy_user_generic", 0.6, 0.6, 0.8, shares(0.8, 0.0, 0.8, None, 0.8)),
    ],
}


class Probed(FakeExecutor):
    """A machine with probes."""

    def __init__(self, probes: Json, absent: dict[str, str] | None = None) -> None:
        super().__init__()
        self.probes = probes
        self.absent = absent or {}

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        record = record_of(trial)
        seen = {"probes": self.probes, "probes_absent": self.absent}
        return record.model_copy(update={"phases": [{**phase, **seen} for phase in record.phases]})


def run_of(path: Path, probes: Json, absent: dict[str, str] | None = None) -> RunData:
    return stored_run(path / "run", EXPERIMENT, executor=Probed(probes, absent))


def values(probe: Any, observation: Json) -> dict[str, float | None]:
    class Seen:
        """A phase in which no I/O completed."""

        phase = None
        record: ClassVar[Json] = {"elapsed_ns": 10**9}
        measured_s = 1.0

        def per_io(self, amount: float) -> None:
            return None

        def latency_mean(self) -> None:
            return None

        probes: ClassVar = {probe.NAME: observation}

    return {metric.name: metric.of(Seen()) for metric in probe.PROBE.metrics}


def test_block_metrics_are_those_of_the_recording() -> None:
    found = values(block, recorded("block"))
    total = recorded("block")["all"]["total"]
    assert found["time_in_device_ns_mean"] == total["time_in_device_ns"]["mean"]
    assert found["time_in_scheduler_ns_p99"] == total["time_in_scheduler_ns"]["p99"]
    assert found["queue_local"] == total["queue_local"] == 107
    assert found["completions_remote"] == 36
    # 31 merges at the back and 15 at the front, beside 63 issued requests.
    assert found["merged_percent"] == pytest.approx(100 * 46 / 109)
    assert found["sequential_share"] == pytest.approx(10 / 59)
    assert found["block_events_lost"] == 3


def test_counts_are_per_device() -> None:
    one = recorded("block")
    two = {**one, "devices": one["devices"] * 2}
    assert values(block, two)["queue_local"] == 107
    assert values(block, two)["queue_depth_mean"] == pytest.approx(2 * one["devices"][0]["queue_depth_mean"])


def test_nothing_seen_is_absent_and_not_zero() -> None:
    empty: Json = {"mean": None, "p99": None, "count": 0}
    total: Json = dict.fromkeys(recorded("block")["all"]["total"], 0)
    for name in ("time_in_queue_ns", "time_in_scheduler_ns", "time_in_device_ns", "time_total_ns", "request_bytes"):
        total[name] = empty
    total["seek_sectors"] = {**empty, "count": 0}
    found = values(block, {"elapsed_ns": 10**9, "devices": [], "all": {"total": total}, "trace_events_lost": 0})
    present = {name: value for name, value in found.items() if value is not None}
    assert present == {
        "bios_queued_per_s": 0,
        "requests_issued_per_s": 0,
        "merges_per_s": 0,
        "block_events_lost": 0,
    }


def test_switch_metrics_are_those_of_the_recording() -> None:
    observation = recorded("sched")
    found = values(switches, observation)
    assert found["wakeup_latency_ns_mean"] == observation["wakeup_latency_ns"]["mean"]
    assert found["context_switches_per_s"] == pytest.approx(22 / (observation["elapsed_ns"] / 1e9))
    assert [name for name, value in found.items() if value is None] == []


def test_profile_metrics_are_those_of_the_samples() -> None:
    assert values(profile, PROFILE) == {"profile_samples": 400, "profile_samples_lost": 0}


@pytest.mark.parametrize(("name", "observation"), [("switches", recorded("sched")), ("profile", PROFILE)])
def test_tables_are_golden(name: str, observation: Json, tmp_path: Path) -> None:
    shown = render(run_of(tmp_path, {name: observation}), name)
    assert shown == (GOLDEN / f"{name}.txt").read_text()


def test_a_long_profile_fits_the_page_and_keeps_its_peak(tmp_path: Path) -> None:
    burst = [0.0] * 100
    burst[42] = 1.0
    long = {**PROFILE, "functions": [function("burst", 0.01, 0.01, 1.0, shares(*burst))]}
    shown = render(run_of(tmp_path, {"profile": long}), "profile")
    header, row = shown.splitlines()[-2:]
    assert header.split().count("s") <= 12
    assert row.split()[:4] == ["burst", "1.0", "1.0", "100.0"]


def test_without_stacks_the_tasks_are_shown_and_why(tmp_path: Path) -> None:
    bare = {**recorded("sched"), "sites": [], "notes": ["no stacks: perf is not allowed"]}
    shown = render(run_of(tmp_path, {"switches": bare}), "switches")
    assert "No kernel stacks: no stacks: perf is not allowed." in shown
    assert "dd" in shown


@pytest.mark.parametrize("name", ["switches", "profile"])
def test_a_run_without_the_probe_says_what_to_do(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"the probe {name} was off") as refused:
        render(stored_run(tmp_path / "off"), name)
    assert f"{name} = true" in str(refused.value)
    absent = run_of(tmp_path, {}, {name: "tracing is locked down"})
    with pytest.raises(InputError, match="tracing is locked down"):
        render(absent, name)
    with pytest.raises(InputError, match="fixed columns"):
        render(absent, name, ["iops"])
