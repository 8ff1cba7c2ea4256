"""Kind iostest: what its options come to, what is refused, and how fairness is judged."""

from typing import Any

import pytest
from fake_machine import record_of
from hypothesis import given
from hypothesis import strategies as st
from iolab.domain import metric
from iolab.domain.observation import observe
from iolab.domain.trial import Trial, WeightedLoadPhase
from iolab.domain.workload import KINDS
from iolab.domain.workload.iostest import IostestOptions
from iolab.files.experiment import loads
from support.trials import trial

KIND = KINDS["iostest"]


def phases(**options: Any) -> tuple[Any, WeightedLoadPhase]:
    layout, main = KIND.phases(IostestOptions(**options), seed=1)
    assert isinstance(main, WeightedLoadPhase)
    return layout, main


def conflicts(**options: Any) -> list[tuple[str, ...]]:
    return [conflict.key for conflict in KIND.conflicts(IostestOptions(**options))]


def trial_of(**options: Any) -> Trial:
    return trial(KIND.phases(IostestOptions(**options), seed=1))


@given(
    sorts=st.lists(
        st.sampled_from(["bsr", "brr", "bsw", "brw", "dsr", "drr", "dsw", "drw"]), min_size=1, max_size=3, unique=True
    ),
    groups=st.integers(1, 10),
    jobs=st.integers(1, 4),
)
def test_every_group_has_the_same_jobs_each_with_a_file_of_its_own(sorts: list[str], groups: int, jobs: int) -> None:
    layout, main = phases(job="+".join(sorts), groups=groups, jobs_per_group=jobs)
    files = [file["path"] for file in main.load["files"]]
    assert len(files) == len(set(files)) == groups * jobs * len(sorts)
    assert layout.load["files"] == main.load["files"]
    assert [member.weight for member in main.members] == [100 * number for number in range(1, groups + 1)]
    by_name = {group["name"]: group for group in main.load["groups"]}
    assert sorted(by_name) == sorted(name for member in main.members for name in member.jobs)
    for name, group in by_name.items():
        member, sort, _ = name.split(".")
        (job,) = group["jobs"]
        assert files[job["files"][0]] == name
        assert group["direct"] == (sort[0] == "d")
        assert job["pattern"]["kind"] == {"s": "sequential", "r": "uniform"}[sort[1]]
        assert job["read_share"] == {"r": 1.0, "w": 0.0}[sort[2]]
        assert name in next(one.jobs for one in main.members if one.name == member)


def test_a_cached_file_is_read_once() -> None:
    _, cached = phases(job="bsr", file_size=2**20)
    _, random = phases(job="brr", file_size=2**20)
    _, direct = phases(job="dsr", file_size=2**20)
    bounds = [main.load["groups"][0]["jobs"][0]["until"]["bytes"] for main in (cached, random, direct)]
    assert bounds == [2**20, None, None]


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"job": "xsr"}, "job"),
        ({"job": ""}, "job"),
        ({"job": "bsr+bsr"}, "job"),
        ({"job": "bsr,brr"}, "job"),
        ({"groups": 3, "weights": [100, 200]}, "weights"),
        ({"groups": 2, "weights": [100, 1001]}, "weights"),
        ({"groups": 2, "weights": [0, 100]}, "weights"),
        ({"groups": 11}, "weights"),
        ({"file_size": 2048}, "block_size"),
        ({"job": "dsr", "block_size": 1000}, "block_size"),
        ({"cost_model": "rbps=1000000"}, "cost_model"),
        ({"controller": "cost", "cost_model": "rbps=fast"}, "cost_model"),
        ({"controller": "cost", "cost_model": "rbps=1000 reads=7"}, "cost_model"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], key: str) -> None:
    assert conflicts(**options) == [(key,)]


def test_a_wrong_job_is_named_with_its_line() -> None:
    text = (
        'rounds = 1\n[target]\nkind = "scratch"\nsize = "4GiB"\n[workloads.w]\nkind = "iostest"\njob = "sequential"\n'
    )
    with pytest.raises(Exception, match=r"experiment.toml:7.*sequential.*such as \"bsr\""):
        loads(text + "[settings.a]\n", "experiment.toml")


def test_a_trial_survives_its_json() -> None:
    trial = trial_of()
    assert Trial.model_validate_json(trial.model_dump_json()) == trial
    assert isinstance(trial.phases[1], WeightedLoadPhase)


def observed_with(bytes_by_group: list[int], weights: list[int]) -> Any:
    trial = trial_of(groups=len(weights), weights=weights)
    (record,) = record_of(trial).phases
    for group, bytes_ in zip(record["groups"], bytes_by_group, strict=True):
        group["jobs"][0]["read"]["bytes"] = bytes_
    return observe(trial.phases[1], record)


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=8), st.integers(1, 10**6))
def test_rates_like_the_weights_are_wholly_fair(weights: list[int], unit: int) -> None:
    seen = observed_with([weight * unit for weight in weights], weights)
    assert seen.fairness_weighted() == pytest.approx(1)
    assert seen.share_of_entitlement() == pytest.approx(1)


def test_equal_rates_under_unequal_weights_are_not_fair() -> None:
    seen = observed_with([600, 600, 600], [100, 200, 300])
    # Rates per weight are 6, 3, 2.
    assert seen.fairness_weighted() == pytest.approx(11**2 / (3 * 49))
    assert seen.share_of_entitlement() == pytest.approx((1 / 3) / (3 / 6))


def test_one_group_that_has_everything() -> None:
    seen = observed_with([0, 0, 0, 600], [100] * 4)
    assert seen.fairness_weighted() == pytest.approx(0.25)
    assert seen.share_of_entitlement() == 0


def test_groups_have_rows_of_their_own() -> None:
    rows = metric.rows(record_of(trial_of(groups=2, jobs_per_group=2)))
    rates = {row.job: row.value for row in rows if row.metric == "rate_bytes_per_s" and row.op == "all"}
    assert set(rates) == {"all", "test1", "test2", *(f"test{group}.bsr.{job}" for group in (1, 2) for job in (1, 2))}
    assert rates["test1"] == pytest.approx(rates["test1.bsr.1"] + rates["test1.bsr.2"])
    assert {row.job for row in rows if row.metric == "share_of_entitlement"} == {"all", "test1", "test2"}
