"""How much a ratio differs between hosts: on planted truth, and what must hold of any numbers."""

from pathlib import Path

import numpy as np
import pytest
from fake_machine import SilentDisplay, experiment, record_of
from hypothesis import given
from hypothesis import strategies as st
from iolab.domain.executor import OnProgress, ShouldStop
from iolab.domain.hosts import host_comparisons
from iolab.domain.record import Record
from iolab.domain.summary import summarise
from iolab.domain.trial import Trial
from iolab.domain.verdict.host_spread import logs_by_host, spread
from iolab.files.store import read
from iolab.presentation.table import render
from iolab.studies.run import run
from scipy.stats import f_oneway, ttest_ind

NOISE = 0.05
values = st.floats(0.5, 2.0)
rounds = st.lists(st.tuples(values, values, st.sampled_from(["a", "b", "c"])), min_size=6, max_size=30)


def planted(rng: np.random.Generator, between: float, hosts: int, each: int) -> dict[str, np.ndarray]:
    """By host, logarithms of ratios: a true one of its own, and the noise of its rounds."""
    return {str(host): rng.normal(rng.normal(0, between), NOISE, each) for host in range(hosts)}


@pytest.mark.parametrize("hosts", [2, 4])
def test_hosts_that_are_alike_are_rarely_said_to_differ(hosts: int) -> None:
    rng = np.random.default_rng(1)
    found = [spread(planted(rng, 0.0, hosts, 5)).p_value for _ in range(1500)]  # type: ignore[union-attr]
    assert 0.02 < np.mean([p is not None and p < 0.05 for p in found]) < 0.067  # three standard errors of 0.0056


def test_the_spread_is_that_which_was_planted() -> None:
    rng = np.random.default_rng(2)
    found = [spread(planted(rng, 0.1, 4, 5)) for _ in range(600)]
    assert np.sqrt(np.mean([one.between**2 for one in found if one])) == pytest.approx(0.1, rel=0.1)
    assert np.mean([one.p_value < 0.05 for one in found if one and one.p_value is not None]) > 0.8


@given(rounds)
def test_what_must_hold_of_any_rounds(drawn: list[tuple[float, float, str]]) -> None:
    ours, theirs, hosts = ([*column] for column in zip(*drawn, strict=True))
    logs = logs_by_host(ours, theirs, hosts)
    found, swapped = spread(logs), spread(logs_by_host(theirs, ours, hosts))
    scaled = spread(logs_by_host([3 * one for one in ours], theirs, hosts))
    if found is None:
        assert swapped is None and sum(len(one) > 1 for one in logs.values()) < 2
        return
    assert swapped is not None and scaled is not None
    assert 0 <= found.between <= np.ptp([one.mean() for one in logs.values()]) + 1e-12
    assert swapped.between == pytest.approx(found.between, abs=1e-9)
    assert scaled.between == pytest.approx(found.between, abs=1e-9)
    if found.p_value is not None:
        assert 0 <= found.p_value <= 1
        of_two = [one for one in logs.values() if len(one) > 1]
        if len(of_two) == 2:
            oracle = ttest_ind(*of_two, equal_var=False).pvalue
            assert found.p_value == pytest.approx(oracle, rel=1e-6, abs=1e-9)


def test_equal_variances_and_many_rounds_are_the_classic_test() -> None:
    logs = planted(np.random.default_rng(3), 0.02, 3, 400)
    found = spread(logs)
    assert found is not None
    assert found.p_value == pytest.approx(f_oneway(*logs.values()).pvalue, rel=0.05)


@pytest.mark.parametrize("logs", [{}, {"a": np.ones(9)}, {"a": np.ones(9), "b": np.ones(1)}])
def test_one_host_has_no_spread(logs: dict[str, np.ndarray]) -> None:
    assert spread(logs) is None


def test_rounds_without_noise_have_a_spread_and_no_p_value() -> None:
    found = spread({"a": np.zeros(3), "b": np.full(3, 0.2)})
    assert found is not None and found.p_value is None
    assert found.share == pytest.approx(np.expm1(0.2 / np.sqrt(2)))


class TwoHosts:
    """Rounds on `a` and `b` in turns; on `b` the setting `pinned` is as fast as the other, on `a` twice as fast."""

    def expect(self, trials: object) -> None: ...

    def admit(self, trial: Trial, should_stop: ShouldStop) -> list[object]:
        return []

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        host = "ab"[trial.round % 2]
        record = record_of(trial, speed=2.0 if trial.setting == "pinned" and host == "a" else 1.0)
        return record.model_copy(update={"observed": {"host": {"name": host}}})


def test_a_run_on_two_hosts_says_on_which_it_is_faster(tmp_path: Path, state_dir: Path) -> None:
    run(experiment(), tmp_path / "run", executor=TwoHosts(), progress=SilentDisplay(), rounds=10)  # type: ignore[arg-type]
    data = read(tmp_path / "run")
    found = {(one.overall.workload, one.overall.metric): one for one in host_comparisons(data, summarise(data))}
    rate = found["reads", "rate_bytes_per_s"]
    assert {host: one.judgement.n for host, one in rate.by_host.items()} == {"a": 5, "b": 5}
    assert rate.by_host["a"].judgement.verdict == "faster"
    assert rate.by_host["b"].judgement.verdict != "faster"
    assert rate.spread is not None and rate.spread.p_value is not None and rate.spread.p_value < 0.01
    assert rate.spread.share == pytest.approx(np.expm1(np.log(2) / np.sqrt(2)), rel=0.1)
    text = render(data, "hosts")
    assert "faster on a" in text and "they differ" in text
