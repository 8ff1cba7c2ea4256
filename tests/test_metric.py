"""Metrics: their values from a record, and their names."""

import bisect
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fake_machine import job_of
from hypothesis import given, settings
from hypothesis import strategies as st
from iolab.base import histogram
from iolab.base.errors import InputError
from iolab.domain import metric
from iolab.domain.definition import TOOL_METRICS
from iolab.domain.metric import DEFAULT_COMPARED, METRICS, Key, Row, describe, key_of, parse_key
from iolab.domain.observation import observe
from iolab.domain.phase_record import Usage, group_record, job_record, phase_record
from iolab.domain.record import Fault
from iolab.domain.trial import CommandsPhase, Trial
from iolab.files.experiment import loads
from iolab.studies.run import plan
from support.growth import assert_linear
from support.trials import record

MS = 1_000_000


def trial(workload: str) -> Trial:
    return plan.trials(loads(f"[workloads.w]\n{workload}\n", "x.toml"), 1, seed=1)[0]


ONE_READER = trial("duration = '1s'")
TWO_MIXED = trial("duration = '1s'\njobs = 2\nread_percent = 50\nverify = true\nfsync_every = 2")


UNITS = {"rate": {"bytes/s", "1/s", "1/min"}, "time": {"ns", "s"}}


def test_a_rate_or_a_time_is_in_such_a_unit() -> None:
    for one in (*METRICS.values(), *TOOL_METRICS.values()):
        assert one.unit in UNITS.get(one.nature, {one.unit}), one.name


def test_what_is_spent_or_spread_is_no_time_that_anybody_waits_for() -> None:
    for one in (*METRICS.values(), *TOOL_METRICS.values()):
        if re.search(r"(^|_)(cpu(?!_wait)|stddev|cycles)(_|$)", one.name):
            assert one.nature not in ("rate", "time"), one.name


@pytest.mark.parametrize(
    ("column", "nature"),
    [
        *(("MB/s", "rate"), ("tps", "rate"), ("reads_per_second", "rate"), ("read throughput", "rate")),
        *(("lat_us", "time"), ("run time", "time"), ("elapsed_s", "time"), ("seconds", "time")),
        *(("cpu time", "cost"), ("lat_stddev", "cost"), ("io errors", "cost"), ("cost_x", "cost")),
        *(
            ("miss_rate", "cost"),
            ("MissRate", "cost"),
            ("PacketLoss", "cost"),
            ("cache miss rate (%)", "cost"),
            ("drop_rate", "cost"),
            ("timeout_rate", "cost"),
        ),
        *(("failed_requests_per_s", "cost"), ("errors/s", "cost"), ("packet_loss", "cost"), ("retransmits", "cost")),
        *(("WAF", "cost"), ("wear", "cost"), ("erases", "cost"), ("%iowait", "cost"), ("steal %", "cost")),
        *(("hit_rate", "rate"), ("fault_latency_ns", "time"), ("hit_miss_ratio", "neutral"), ("foo", "neutral")),
        *(("iops after drop", "neutral"), ("MB/s after drop_caches", "neutral"), ("iops_stddev", "cost")),
        *(("score", "benefit"), ("score_x", "benefit"), ("frames", "benefit"), ("queue_depth_mean", "neutral")),
        *(("util %", "neutral"), ("%util", "neutral"), ("temperature", "neutral"), ("queue", "neutral")),
        *(("aqu-sz", "neutral"), ("MB", "neutral"), ("cpu idle %", "neutral"), ("Q5", "neutral"), ("size", "neutral")),
        *(("p99", "time"), ("p99.9", "time"), ("r_await", "time"), ("wall clock", "time"), ("iops_p99", "rate")),
        *(("score (lower is better)", "cost"), ("energy, higher is better", "benefit"), ("x_less_is_better", "cost")),
        *(("time saved (s)", "neutral"), ("ops until failure", "neutral"), ("time between errors", "neutral")),
        *(("overhead", "cost"), ("energy_j", "cost"), ("cache hits", "benefit"), ("performance per watts", "neutral")),
    ],
)
def test_the_nature_of_a_column_is_told_by_its_words(column: str, nature: str) -> None:
    assert describe(column).nature == nature


@pytest.mark.parametrize(
    ("column", "unit"),
    [
        *(("throughput_mb_s", "mb/s"), ("MB_s", "MB/s"), ("bw_mib_s", "mib/s"), ("mb_per_s", "mb/s")),
        *(("ops_s", "1/s"), ("reads_s", "1/s"), ("iops_s", "1/s"), ("requests_sec", "1/s")),
    ],
)
def test_what_is_counted_in_a_second_is_a_rate_with_or_without_per(column: str, unit: str) -> None:
    found = describe(column)
    assert (found.nature, found.unit) == ("rate", unit)


@pytest.mark.parametrize("column", ["q1_s", "gc_pauses_s", "p99_lat_s", "mount_s"])
def test_any_other_name_that_ends_with_a_second_is_a_time(column: str) -> None:
    found = describe(column)
    assert (found.nature, found.unit) == ("time", "s")


def op(*latencies_ns: int, block: int = 4096) -> dict[str, Any]:
    """An operation's record, each latency in a bucket of its own width."""
    n = len(latencies_ns)
    if not n:
        return {"count": 0, "bytes": 0, "latency": None}
    mean = sum(latencies_ns) / n
    return {
        "count": n,
        "bytes": n * block,
        "latency": {
            "min_ns": min(latencies_ns),
            "max_ns": max(latencies_ns),
            "mean_ns": mean,
            "stddev_ns": (sum((x - mean) ** 2 for x in latencies_ns) / n) ** 0.5,
            "histogram": [[x, x, latencies_ns.count(x)] for x in sorted(set(latencies_ns))],
        },
    }


def job(name: str, **ops: dict[str, Any]) -> dict[str, Any]:
    parts = [ops.get(kind, op()) for kind in ("read", "write", "sync")]
    return {**job_of(name, parts), "finished_ns": 0, "intervals": []}


def test_the_wait_for_a_cpu_is_known_if_all_threads_tell() -> None:
    reader = job("job", read=op(100, 200, 300, 400))
    waited, silent = {**group(reader), "cpu_wait_ns": 1000}, group(job("other", read=op(100)))
    assert values(metric.rows(record(ONE_READER, phase(waited))))["cpu_wait_ns_per_io"] == 250
    for groups in ((silent,), ({**waited, "cpu_wait_ns": None},)):
        (row,) = [
            one
            for one in metric.rows(record(ONE_READER, phase(*groups)))
            if (one.metric, one.op, one.job) == ("cpu_wait_ns_per_io", "all", "all")
        ]
        assert row.value is None and row.reason is not None and "schedstat" in row.reason


def group(*jobs: dict[str, Any], **usage: int) -> dict[str, Any]:
    return dict(group_record(jobs[0]["name"], Usage(**usage), jobs))


def phase(*groups: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "phase": "main",
        "elapsed_ns": 3000 * MS,
        "measured_from_ns": 1000 * MS,
        "measured_to_ns": 3000 * MS,
        "transient": None,
        "groups": list(groups),
        "process_cpu_user_ns": 0,
        "process_cpu_system_ns": 0,
        **changes,
    }


def values(found: list[Row], op: str = "all", job: str = "all") -> dict[str, float | None]:
    return {row.metric: row.value for row in found if (row.op, row.job) == (op, job)}


def test_rates_latencies_and_cpu_of_one_job() -> None:
    usage = {
        "cpu_user_ns": 300,
        "cpu_system_ns": 700,
        "context_switches_voluntary": 7,
        "context_switches_involuntary": 3,
    }
    reader = job("job", read=op(100, 200, 300, 400))
    found = values(metric.rows(record(ONE_READER, phase(group(reader, **usage), process_cpu_user_ns=4000))))
    assert found["rate_bytes_per_s"] == 4 * 4096 / 2
    assert found["iops"] == 2
    assert (found["ops"], found["bytes"]) == (4, 4 * 4096)
    assert found["latency_ns_mean"] == 250
    assert found["latency_ns_stddev"] == pytest.approx(12500**0.5)
    assert (found["latency_ns_min"], found["latency_ns_max"]) == (100, 400)
    assert found["latency_ns_p50"] is None  # of three reads none is told
    assert found["cpu_ns_per_io"] == 250
    assert found["process_cpu_ns_per_io"] == 1000
    assert found["cpu_percent"] == pytest.approx(100 * 1000e-9 / 2)
    assert found["context_switches_per_io"] == 2.5
    assert (found["elapsed_s"], found["measured_s"], found["errors"]) == (3, 2, 0)


def test_jobs_are_merged_exactly() -> None:
    reads, more, writes = (100, 200, 5000), (300, 700), (50, 60, 70, 80)
    two = phase(group(job("job.0", read=op(*reads))), group(job("job.1", read=op(*more), write=op(*writes))))
    found = metric.rows(record(TWO_MIXED, two))
    merged, every = values(found, "read"), (*reads, *more)
    mean = sum(every) / 5
    assert merged["latency_ns_mean"] == pytest.approx(mean)
    assert merged["latency_ns_stddev"] == pytest.approx((sum((x - mean) ** 2 for x in every) / 5) ** 0.5)
    assert (merged["latency_ns_min"], merged["latency_ns_max"]) == (100, 5000)
    assert values(found, "write")["iops"] == 2
    assert values(found)["ops"] == 9
    assert values(found)["latency_ns_mean"] == pytest.approx((sum(every) + sum(writes)) / 9)


def test_several_jobs_have_rows_of_their_own() -> None:
    two = phase(group(job("job.0", read=op(100))), group(job("job.1", read=op(300, 300, 300))))
    found = metric.rows(record(TWO_MIXED, two))
    of_job = {"rate_bytes_per_s": 3 * 4096 / 2, "iops": 1.5, "latency_ns_mean": 300, "elapsed_s": 0}
    assert values(found, job="job.1").items() >= of_job.items()
    assert values(found)["fairness_jain"] == pytest.approx((1 + 3) ** 2 / (2 * (1 + 9)))
    alone = metric.rows(record(ONE_READER, phase(group(job("job", read=op(100))))))
    assert {row.job for row in alone} == {"all"}
    assert values(alone)["fairness_jain"] is None


def test_rows_of_many_jobs_take_time_by_their_number() -> None:
    def of_size(jobs: int) -> Callable[[], object]:
        ran = phase(*(group(job(f"job.{number}", read=op(100))) for number in range(jobs)))
        found = record(trial(f"duration = '1s'\njobs = {jobs}\nfile_size = '1MiB'"), ran)
        return lambda: list(metric.rows(found))

    assert_linear(of_size, 512)


def test_syncs_are_apart_from_reads_and_writes() -> None:
    syncing = job("job", write=op(10, 20), sync=op(9000))
    found = metric.rows(record(TWO_MIXED, phase(group(syncing))))
    assert values(found)["ops"] == 2
    assert values(found)["latency_ns_max"] == 20
    assert values(found, "sync")["latency_ns_max"] == 9000
    assert "rate_bytes_per_s" not in values(found, "sync")


def test_nothing_is_said_of_operations_that_were_not_asked_for() -> None:
    found = metric.rows(record(ONE_READER, phase(group(job("job", read=op(1))))))
    assert {row.op for row in found} == {"read", "all"}


@pytest.mark.parametrize(
    ("share", "needed"), [(0.5, 20), (0.9, 100), (0.99, 1000), pytest.param(0.999, 10_000, marks=pytest.mark.long)]
)
def test_a_percentile_is_told_where_ten_operations_lie_beyond_it(share: float, needed: int) -> None:
    def seen(count: int) -> float | None:
        reader = job("job", read=op(*range(1, count + 1)))
        return observe(ONE_READER.phases[-1], phase(group(reader))).latency_quantile(share)

    assert seen(needed - 1) is None
    found = seen(needed)
    assert found is not None and found <= needed  # no percentile is above the highest


def test_what_could_not_be_measured_is_absent_with_a_reason() -> None:
    found = metric.rows(record(TWO_MIXED, phase(group(job("job", write=op(1))))))
    reads = {row.metric: row for row in found if row.op == "read"}
    assert reads["iops"].value == 0
    assert reads["latency_ns_p99"].value is None
    assert "no such operation" in str(reads["latency_ns_mean"].reason)
    assert "fewer than 1,000 values, fewer than 10 lie beyond it" in str(reads["latency_ns_p99"].reason)
    assert all((row.value is None) == (row.reason is not None) for row in found)


def test_a_phase_without_time_has_no_rates() -> None:
    empty = phase(group(job("job", read=op())), measured_to_ns=1000 * MS)
    found = {row.metric: row for row in metric.rows(record(ONE_READER, empty)) if row.op == "all"}
    assert found["rate_bytes_per_s"].value is None
    assert found["rate_bytes_per_s"].reason == "no time was measured"
    assert found["cpu_ns_per_io"].value is None


@pytest.mark.parametrize(("status", "phases"), [("failed", 1), ("interrupted", 0)])
def test_a_trial_without_numbers_says_why(status: str, phases: int) -> None:
    measured = [phase(group(job("job", read=op(1))), failures=[{"job": "job", "what": "no space"}])] * phases
    failed = record(ONE_READER, *measured, status=status, faults=[Fault(what="no space left on device", errno=28)])
    found = metric.rows(failed)
    assert {row.metric for row in found} == {
        name for name, one in METRICS.items() if one.scope not in ("measure", "flash", "probe")
    }
    assert {row.value for row in found} == {None}
    assert all("no space left on device" in str(row.reason) for row in found)


def test_a_phase_before_the_one_that_failed_keeps_its_numbers() -> None:
    whole = phase(group(job("job", read=op(1))))
    failed = record(ONE_READER, whole, status="failed", faults=[Fault(what="laying out again failed", errno=28)])
    assert values(metric.rows(failed))["rate_bytes_per_s"]


def test_errors_mismatches_and_transients_are_counted() -> None:
    broken = job("job", read=op(1))
    broken |= {"errors": [{"count": 3}, {"count": 2}], "mismatches_count": 4}
    cut = phase(group(broken), transient={"cut_ns": 500 * MS, "steady": True})
    found = values(metric.rows(record(TWO_MIXED, cut)))
    assert (found["errors"], found["mismatches"], found["transient_s"]) == (5, 4, 0.5)
    assert values(metric.rows(record(ONE_READER, phase(group(broken)))))["mismatches"] is None


def test_shares_over_two_and_ten_seconds() -> None:
    slow = op(1, 1, 1, 1, 1, 3 * 10**9, 3 * 10**9, 11 * 10**9)
    found = values(metric.rows(record(ONE_READER, phase(group(job("job", read=slow))))))
    assert (found["latency_share_over_2s"], found["latency_share_over_10s"]) == (3 / 8, 1 / 8)


def test_the_phases_of_tiobench_are_apart() -> None:
    spec = trial("kind = 'tiobench'")
    names = ("sequential_write", "random_write", "sequential_read", "random_read")
    phases = [
        phase(group(job("thread.0", **{"write" if "write" in name else "read": op(5)})), phase=name) for name in names
    ]
    found = metric.rows(record(spec, *phases))
    assert list(dict.fromkeys(row.phase for row in found)) == list(names)
    rates = [key_of(row, one_phase=False) for row in found if row.metric == "rate_bytes_per_s" and row.op == "all"]
    assert rates == [f"{name}/rate_bytes_per_s" for name in names]


def test_other_kinds_count_operations_of_their_own_and_measure_what_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    class Creating(CommandsPhase):
        offered = property(lambda self: ("create",))
        measures = property(lambda self: ("files_per_s",))

    creating = Creating(
        name="main",
        measured=True,
        command=None,
        environment={},
        makes_filesystem=False,
        filesystem=None,
        mkfs_options=None,
        mount_options=None,
        tarball=None,
        source_tree=None,
        cpus=None,
        drop_caches=False,
    )
    files_per_s = replace(
        METRICS["measured_s"], name="files_per_s", scope="measure", of=lambda s: s.measure("files_per_s")
    )
    monkeypatch.setitem(METRICS, "files_per_s", replace(files_per_s, per_job=True))
    monkeypatch.setitem(metric.OPS, "create", "a file made")
    jobs = [
        job_record(f"job.{n}", finished_ns=n * MS, ops={"create": op(n * 10)}, measures={"files_per_s": n})
        for n in (1, 2)
    ]
    done = phase_record(
        "main",
        started_unix_ns=0,
        elapsed_ns=2 * MS,
        groups=[group_record(one["name"], Usage(cpu_user_ns=7), [one]) for one in jobs],
        measures={"files_per_s": None},
    )
    found = metric.rows(record(ONE_READER.model_copy(update={"phases": [creating]}), done))
    assert values(found, "create")["latency_ns_max"] == 20
    assert {row.op for row in found} == {"create", "all"}
    assert not {"iops", "rate_bytes_per_s", "cpu_ns_per_io"} & set(values(found))
    assert values(found)["cpu_user_s"] == 14e-9
    assert values(found)["files_per_s"] is None
    assert values(found, job="job.2") == {"elapsed_s": 0.002, "files_per_s": 2}
    assert parse_key("create.latency_ns_p99") == Key(None, "create", "latency_ns_p99")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("latency_ns_p99", Key(None, "all", "latency_ns_p99")),
        ("read.latency_ns_p99", Key(None, "read", "latency_ns_p99")),
        ("random_read/rate_bytes_per_s", Key("random_read", "all", "rate_bytes_per_s")),
        ("random_read/read.iops", Key("random_read", "read", "iops")),
    ],
)
def test_keys(text: str, key: Key) -> None:
    assert parse_key(text) == key
    assert str(key) == text


@pytest.mark.parametrize(
    "text", ["", "iopz", "sync.rate_bytes_per_s", "write.cpu_percent", "raed.iops", "a/b/iops.read"]
)
def test_a_wrong_key_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_key(text)


def test_every_row_has_a_key_that_parses_back() -> None:
    found = metric.rows(record(TWO_MIXED, phase(group(job("job", read=op(1), write=op(1), sync=op(1))))))
    for row in found:
        assert parse_key(key_of(row, one_phase=False)) == Key("main", row.op, row.metric)
        assert parse_key(key_of(row, one_phase=True)) == Key(None, row.op, row.metric)


UNITS_OF_METRICS = {"bytes/s", "1/s", "bytes", "ns", "s", "count", "share", "ratio", "percent", "cycles", "Hz", "°C"}


def test_the_registry_is_whole() -> None:
    assert set(DEFAULT_COMPARED) <= set(METRICS)
    for name, entry in METRICS.items():
        assert entry.name == name
        assert entry.help.endswith(".")
        assert entry.unit in UNITS_OF_METRICS
        units_in_names = {"_ns": "ns", "_s": "s", "_percent": "percent", "_per_s": "1/s", "_bytes_per_s": "bytes/s"}
        suffix = max((end for end in units_in_names if name.endswith(end)), key=len, default=None)
        assert suffix is None or entry.unit == units_in_names[suffix]


BUCKETS = [(low, low + 9) for low in range(0, 1000, 10)]
COUNTS = st.lists(st.integers(0, 999), min_size=1, max_size=200)


def bucketed(sample: list[int]) -> list[list[int]]:
    lows = [low for low, _ in BUCKETS]
    places = [bisect.bisect_right(lows, value) - 1 for value in sample]
    return [[*BUCKETS[place], places.count(place)] for place in sorted(set(places))]


@settings(deadline=None)
@given(COUNTS, st.floats(0, 1))
def test_a_quantile_is_the_bucket_of_the_nearest_rank(sample: list[int], share: float) -> None:
    found = histogram.quantile(histogram.merged([bucketed(sample)]), share, most=None)
    assert found is not None
    at_most = sum(value <= found for value in sample)
    below = sum(value <= found - 10 for value in sample)
    assert at_most >= share * len(sample) - 1e-9
    assert below < max(1, share * len(sample) + 1e-9)


@settings(deadline=None)
@given(COUNTS, COUNTS)
def test_merging_histograms_is_bucketing_together(one: list[int], other: list[int]) -> None:
    together = histogram.merged([bucketed(one), bucketed(other)])
    assert together == [tuple(bucket) for bucket in bucketed(one + other)]


@settings(deadline=None)
@given(COUNTS, st.integers(-5, 1005))
def test_a_share_is_off_by_the_thresholds_bucket_at_most(sample: list[int], threshold: int) -> None:
    found = histogram.share_over(histogram.merged([bucketed(sample)]), threshold)
    assert found is not None
    over = sum(value > threshold for value in sample)
    straddling = sum(value // 10 == threshold // 10 for value in sample)
    assert abs(found - over / len(sample)) <= straddling / len(sample) + 1e-9


def test_an_empty_histogram_has_no_quantile() -> None:
    assert histogram.quantile([], 0.5, most=1) is None
    assert histogram.share_over([], 1) is None
