"""Trials simulated ahead of the one that is asked for: in any order, on any number of cores, the same records."""

import threading
from collections.abc import Iterator

import pytest
from fake_machine import record_of
from iolab.base.errors import InputError
from iolab.domain.executor import OnProgress, Progress, ShouldStop
from iolab.domain.record import Record
from iolab.domain.trial import DrivesTarget, Trial
from iolab.machines.model import ModelExecutor


def trial(number: int) -> Trial:
    return Trial(
        trial=number,
        round=0,
        position=number,
        workload="w",
        setting="s",
        seed=number,
        machine="model:none",
        target=DrivesTarget(devices=1),
        controls={},
        model={},
        phases=[],
    )


TRIALS = [trial(number) for number in range(20)]


class Recording:
    """Simulates nothing; remembers what was begun."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        self.begun.append(trial.trial)
        on_progress(Progress("main", "running", fraction=0.5))
        while not self.go_on.wait(0.01):
            if should_stop():
                return record_of(trial, status="interrupted")
        if trial.trial == 13:
            raise InputError("there is no such machine")
        return record_of(trial)


def ignore(_: Progress) -> None: ...


@pytest.mark.parametrize("cores", [1, 3])
def test_records_come_in_the_order_asked_for_and_each_is_simulated_once(cores: int) -> None:
    simulate = Recording()
    with ModelExecutor(cores=cores, simulate=simulate) as executor:
        executor.expect(TRIALS[:10])
        found = [executor.run(one, ignore, lambda: False).spec.trial for one in TRIALS[:10]]
    assert found == list(range(10))
    assert sorted(simulate.begun) == list(range(10))


def test_what_is_expected_is_taken_as_cores_become_free() -> None:
    taken = []

    def planned() -> Iterator[Trial]:
        for one in TRIALS:
            taken.append(one.trial)
            yield one

    with ModelExecutor(cores=2, simulate=Recording()) as executor:
        executor.expect(planned())
        executor.run(TRIALS[0], ignore, lambda: False)
        assert 2 <= len(taken) <= 6


def test_trials_that_nobody_expected_run_and_those_left_out_are_skipped() -> None:
    with ModelExecutor(cores=2, simulate=Recording()) as executor:
        executor.expect([TRIALS[1], TRIALS[2], TRIALS[5]])
        assert executor.run(TRIALS[7], ignore, lambda: False).spec.trial == 7
        assert executor.run(TRIALS[5], ignore, lambda: False).spec.trial == 5


def test_an_error_is_that_of_the_trial_asked_for() -> None:
    with ModelExecutor(cores=4, simulate=Recording()) as executor:
        executor.expect(TRIALS[12:15])
        assert executor.run(TRIALS[12], ignore, lambda: False).status == "ok"
        with pytest.raises(InputError, match="no such machine"):
            executor.run(TRIALS[13], ignore, lambda: False)
        assert executor.run(TRIALS[14], ignore, lambda: False).status == "ok"


def test_a_stop_reaches_everything_that_was_begun() -> None:
    simulate = Recording()
    simulate.go_on.clear()
    seen: list[Progress] = []
    with ModelExecutor(cores=(cores := 2), simulate=simulate) as executor:
        executor.expect(TRIALS)
        record = executor.run(TRIALS[0], seen.append, lambda: bool(seen))
    assert record.status == "interrupted"
    assert seen[-1].fraction == 0.5
    assert len(simulate.begun) <= 1 + 2 * cores, "the trial asked for, and two for each core"
