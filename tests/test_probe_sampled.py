"""Probes that sample: what their series come to, the part that a phase was measured, and the readers in the engine."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from iolab import _native
from iolab.domain.metric import METRICS
from iolab.domain.phase_record import probes_absent_of
from iolab.domain.probe.probe import highest, mean, measured_span
from iolab.files import store
from support.command_line import CommandLine
from support.experiments import experiment, reads_for

Json = dict[str, Any]
SECOND = 10**9


def series(**columns: list[float | None]) -> Json:
    """A series of three seconds, a point each."""
    table = {"at_ns": [0, SECOND, 2 * SECOND], "columns": {"length_s": [1.0, 1.0, 1.0], **columns}}
    return {"times": {"started_unix_ns": 5 * SECOND}, "series": {"all": table}}


@dataclass
class Seen:
    """As much of an observation as metrics ask for: measured in the second of three seconds."""

    probes: Json
    bytes: int = 4096_000
    count: int = 1000
    measured_s: float = 1.0

    started_unix_ns: int = 5 * SECOND

    @property
    def record(self) -> Json:
        return {
            "started_unix_ns": self.started_unix_ns,
            "measured_from_ns": SECOND,
            "measured_to_ns": 2 * SECOND,
        }

    def of(self, op: str) -> Seen:
        assert op == "read"
        return self

    def cpu_ns(self) -> float:
        return 0.5e9

    def per_io(self, amount: float) -> float | None:
        return amount / self.count if self.count else None

    def per_second(self, amount: float) -> float:
        return amount / self.measured_s


def value(metric: str, seen: Seen) -> float | None:
    return METRICS[metric].of(seen)  # type: ignore[arg-type]


def test_means_are_weighted_by_time_and_by_the_part_that_is_looked_at() -> None:
    found = series(level=[1.0, None, 4.0])
    found["series"]["all"]["columns"]["length_s"][2] = 3.0
    assert mean(found, "level") == (1 + 3 * 4) / 4
    assert mean(found, "level", (SECOND // 2, 2 * SECOND + SECOND // 2)) == (1 + 4) / 2
    assert mean(found, "level", (SECOND, 2 * SECOND)) is None
    assert mean(found, "other") is None
    assert highest(found, "level") == 4
    assert mean({"times": {}}, "level") is None


def test_the_measured_part_counts_from_the_phases_start() -> None:
    seen = Seen({}, started_unix_ns=6 * SECOND)
    assert measured_span(seen, series()) == (2 * SECOND, 3 * SECOND)  # type: ignore[arg-type]


def cpu(frequency: Json | None) -> Json:
    states = {"user": 20.0, "system": 15.0, "iowait": 5.0, "idle": 50.0, "steal": 10.0}
    others = ("nice", "irq", "softirq", "guest", "guest_nice")
    shares = {f"{state}_percent": states.get(state, 0.0) for state in (*states, *others)}
    columns = series(busy_cpus=[9.0, 1.0, 9.0], interrupts_per_s=[1.0, 2.0, 3.0], switches_per_s=[4.0, 4.0, 4.0])
    return {**columns, "means": {"all": shares}, "frequency": frequency, "cpus_online": 2}


def test_cpu_time_and_cycles_are_of_the_measured_part() -> None:
    seen = Seen({"cpu": cpu({"hz_mean": 2e9, "hz_max": 2e9, "source": "/proc/cpuinfo"})})
    assert value("cpu_user_percent", seen) == 20
    assert value("cpu_busy_percent", seen) == 35
    assert value("interrupts_per_s", seen) == 2
    assert value("machine_switches_per_s", seen) == 4
    assert value("machine_cpu_ns_per_io", seen) == 1e9 / 1000
    assert value("machine_cycles_per_io", seen) == 2e9 / 1000
    assert value("machine_cycles_per_byte", seen) == 2e9 / 4096_000
    assert value("cycles_per_io", seen) == 1e9 / 1000
    assert value("cycles_per_byte", seen) == pytest.approx(1e9 / 4096_000)
    assert value("cpu_frequency_hz", seen) == 2e9


def test_what_needs_a_frequency_or_an_io_is_absent_without() -> None:
    without = Seen({"cpu": cpu(None)})
    assert value("cycles_per_io", without) is None
    assert value("cpu_frequency_hz", without) is None
    assert value("machine_cpu_ns_per_io", without) == 1e6
    idle = Seen({"cpu": cpu({"hz_mean": 2e9})}, bytes=0, count=0)
    assert value("cycles_per_io", idle) is None
    assert value("machine_cycles_per_byte", idle) is None


def test_counted_cycles_are_a_rate_over_a_rate() -> None:
    def event(count: float) -> Json:
        return {"value": count, "counted_share": 1.0}

    events = {"cycles": event(6e9), "instructions": event(3e9), "stalled-cycles-backend": event(1.5e9)}
    seen = Seen({"counters": {"elapsed_ns": 3 * SECOND, "events": events}})
    assert value("cpu_cycles", seen) == 6e9
    assert value("instructions_per_cycle", seen) == 0.5
    assert value("stalled_cycles_percent", seen) == 25
    assert value("counted_cycles_per_io", seen) == 2e9 / 1000
    assert value("cache_misses", seen) is None
    nothing = Seen({"counters": {"elapsed_ns": 3 * SECOND, "events": {}}})
    assert value("counted_cycles_per_io", nothing) is None
    assert value("stalled_cycles_percent", nothing) is None


@pytest.mark.parametrize(("taken_per_s", "share"), [(0.0, 1.0), (1024_000.0, 0.75), (9e9, 0.0), (None, None)])
def test_what_did_not_come_from_devices_was_cached(taken_per_s: float | None, share: float | None) -> None:
    seen = Seen({"memory": series(process_read_bytes_per_s=[9e9, taken_per_s, 9e9])})
    assert value("page_cache_hit_share", seen) == share


def test_memory_has_means_and_maxima() -> None:
    found = series(dirty_bytes=[1.0, 2.0, 3.0], dirty_bytes_max=[5.0, 9.0, 4.0], pressure_io_some_share=[0.0, 0.5, 1.0])
    seen = Seen({"memory": found})
    assert value("dirty_bytes_mean", seen) == 2
    assert value("dirty_bytes_max", seen) == 9
    assert value("pressure_io_some_share", seen) == 0.5
    assert value("pressure_io_full_share", seen) is None
    assert value("page_cache_hit_share", Seen({"memory": found}, bytes=0)) is None


def test_the_engine_reads_while_it_is_asked_to() -> None:
    spec = {"trace_instance": "iolab-test", "cpu": {"interval_ns": 10**6}, "memory": {"interval_ns": 10**6}}
    probes = _native.Probes.start(json.dumps(spec))
    time.sleep(0.05)
    found = json.loads(probes.stop())
    assert not found["absent"]
    for name in ("cpu", "memory"):
        observation = found["observations"][name]
        times = observation["times"]
        assert times["readings"] >= 2 and times["readings_failed"] == 0
        assert 0 < times["cost_cpu_ns"] < times["elapsed_ns"]
        for part in observation["series"].values():
            assert {len(column) for column in part["columns"].values()} == {len(part["at_ns"])}
            assert sum(part["columns"]["length_s"]) == pytest.approx(times["elapsed_ns"] / 1e9, rel=0.01)
    assert {"all", "cpu0"} <= found["observations"]["cpu"]["series"].keys()


def test_a_run_has_metrics_series_and_reasons(iolab: CommandLine, tmp_path: Path) -> None:
    probes = '[probes]\ncpu = { interval = "10ms" }\nmemory = { interval = "10ms" }\ncounters = true\n'
    settings = f"{probes}[settings.a]\n"
    text = experiment('kind = "directory"\npath = "."', workload=reads_for("200ms"), settings=settings, rounds=1)
    iolab.write("watched.toml", text)
    iolab("run", "watched.toml", "--out", "run")
    run = store.read(tmp_path / "run")
    values = dict(run.metrics.select("key", "value").iter_rows())
    reasons = dict(run.metrics.select("key", "reason").iter_rows())
    shares = [found for key, found in values.items() if key.startswith("cpu_") and key.endswith("_percent")]
    assert all(0 <= share <= 100 + 1e-9 for share in shares if share is not None)
    assert values["cached_bytes_max"] > 0
    assert 0 <= values["page_cache_hit_share"] <= 1
    assert values["cpu_ns_per_byte"] == pytest.approx(values["cpu_ns_per_io"] / 4096)
    if values["cycles_per_io"] is not None:
        assert values["cycles_per_io"] == pytest.approx(values["cpu_ns_per_io"] / 1e9 * values["cpu_frequency_hz"])
    main = run.record(0).phases[-1]
    counters_reason = probes_absent_of(main).get("counters")
    assert (values["cpu_cycles"] is None) == (reasons["cpu_cycles"] is not None)
    if counters_reason is not None:
        assert reasons["cpu_cycles"] == counters_reason
