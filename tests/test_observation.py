"""What a phase showed of several jobs that differ: sums of their own rates, spread within them."""

from typing import Any

import pytest
from iolab.domain.observation import Observation, observe
from iolab.domain.trial import LoadPhase
from iolab.domain.workload import KINDS

MIB = 2**20
S = 10**9


def job(name: str, *, mib: int, finished_s: float, mean_ns: float, stddev_ns: float) -> dict[str, Any]:
    latency = {"min_ns": 1, "max_ns": 9, "mean_ns": mean_ns, "stddev_ns": stddev_ns, "histogram": []}
    none: dict[str, Any] = {"count": 0, "bytes": 0, "latency": None}
    done = {"count": mib, "bytes": mib * MIB, "latency": latency}
    return {"name": name, "finished_ns": round(finished_s * S), "read": done, "write": none, "sync": none, "errors": []}


def observed(*jobs: dict[str, Any], measured_from_s: float = 0.0, measured_to_s: float) -> Observation:
    kind = KINDS["iozone"]
    phase = kind.phases(kind.options.model_validate({"tests": ["read"]}), 1)[-1]
    assert isinstance(phase, LoadPhase)
    groups = [{"name": one["name"], "jobs": [one]} for one in jobs]
    return observe(
        phase,
        {"groups": groups, "measured_from_ns": round(measured_from_s * S), "measured_to_ns": round(measured_to_s * S)},
    )


def test_the_sum_of_own_rates_exceeds_the_rate_when_jobs_end_apart() -> None:
    early = job("a", mib=100, finished_s=1, mean_ns=5, stddev_ns=1)
    late = job("b", mib=100, finished_s=2, mean_ns=5, stddev_ns=1)
    seen = observed(early, late, measured_to_s=2)
    assert seen.per_second(seen.bytes) == pytest.approx(100 * MIB)
    assert seen.rate_sum() == pytest.approx(150 * MIB)
    assert seen.of_job("a").rate_sum() == pytest.approx(100 * MIB)


def test_own_rates_count_the_measured_part_only() -> None:
    one = job("a", mib=100, finished_s=5, mean_ns=5, stddev_ns=1)
    assert observed(one, measured_from_s=2, measured_to_s=4).rate_sum() == pytest.approx(50 * MIB)


def test_a_job_without_measured_time_has_no_rate() -> None:
    one = job("a", mib=1, finished_s=1, mean_ns=5, stddev_ns=1)
    assert observed(one, measured_from_s=1, measured_to_s=4).rate_sum() is None


def test_the_mean_of_standard_deviations_leaves_out_what_jobs_differ_by() -> None:
    fast = job("a", mib=10, finished_s=1, mean_ns=100, stddev_ns=10)
    slow = job("b", mib=10, finished_s=1, mean_ns=900, stddev_ns=30)
    seen = observed(fast, slow, measured_to_s=1)
    assert seen.latency_stddev_job_mean() == pytest.approx(20)
    assert (seen.latency_stddev() or 0) > 400
