"""The table of the A x Q x C matrix: posted ones come back as they were, our own say why a cell is empty."""

from pathlib import Path
from typing import Any

import pytest
from fake_machine import FakeExecutor, record_of
from iolab.base.errors import InputError, MachineError
from iolab.domain.executor import OnProgress, ShouldStop
from iolab.domain.record import Record, impossible
from iolab.domain.summary import summarise
from iolab.domain.trial import Trial
from iolab.files.importer.run_import import open_run
from iolab.presentation.table import render
from support.stored import stored_run

POSTED = Path(__file__).parent / "imported" / "affinity.txt"
EXPERIMENT = """\
rounds = 1
seed = 1
[target]
kind = "directory"
path = "."
[workloads.reads]
engine = "null"
read_percent = 100
duration = "1s"
[settings.cell]
affinity = { application = ["X", "I"], queue = "A", completion = ["X", "A"] }
[settings.free]
rq_affinity = [0, 1]
"""
DEVICE: dict[str, Any] = {
    "queued_by_cpu": [900, 100],
    "completed_by_cpu": [30, 370],
    "total": {"queue_local": 1000, "queue_remote": 0, "completions_local": 360, "completions_remote": 40},
}
"""As far as the table reads what the block probe saw."""


def test_a_posted_table_comes_back_as_it_was() -> None:
    shown = render(open_run(POSTED), "affinity").splitlines()
    assert table_lines(shown) == table_lines(POSTED.read_text().splitlines())
    assert len({line.index("|") for line in shown if "|" in line}) == 1, "columns are aligned"


def table_lines(lines: list[str]) -> list[str]:
    """Captions and rows, less the space, and less the last rule: the first of the posted tables has lost its own."""
    found = [" ".join(line.split()) for line in lines if "|" in line or line.endswith(":")]
    last = {number + 1 for number, line in enumerate(found) if line.startswith("rq=1")}
    return [line for number, line in enumerate(found) if number not in last or not line.startswith("-")]


class OneInterruptOnCpu1(FakeExecutor):
    """Two CPUs; completion is possible where the interrupt or the application is."""

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        asked = trial.controls.get("affinity")
        if asked is None:
            return seen_by_probe(record_of(trial), {})
        if asked["completion"] == "other":
            self.ran.append(trial.trial)
            return impossible(trial, {"affinity": "nowhere"})
        application = 1 if asked["application"] == "interrupt" else 0
        return seen_by_probe(record_of(trial), {"affinity": {"applied": {"application": application, "interrupt": 1}}})


def seen_by_probe(record: Record, applied: dict[str, Any]) -> Record:
    phases = [
        {**phase, "probes": {"block": {"devices": [DEVICE], "events_lost": int(not applied)}}}
        for phase in record.phases
    ]
    return record.model_copy(update={"phases": phases, "controls_applied": applied})


def counts(row: str) -> list[str]:
    return [number for group in row.split("|")[2:] for number in group.split()]


def test_cells_are_counted_by_cpu_and_impossible_ones_say_why(tmp_path: Path) -> None:
    run = stored_run(tmp_path / "run", EXPERIMENT, executor=OneInterruptOnCpu1())
    shown = render(run, "affinity").splitlines()
    rows = {line.partition("|")[0].strip(): line for line in shown if "|" in line}
    assert counts(rows["X A A"]) == ["900.0", "100.0", "370.0", "30.0"]
    assert counts(rows["I A A"]) == ["100.0", "900.0", "370.0", "30.0"]
    assert counts(rows["rq=0"]) == ["1000.0", "0.0", "360.0", "40.0"]
    assert rows["X A X"].split("|")[1].split() == ["-", "-", "-"]
    assert shown[-2] == "X A X, I A X: impossible here: nowhere"
    assert shown[-1] == "rq=0, rq=1: the block probe lost 1 event, its counts are short of them"
    above_heavy = [shown[number - 1].split(" |")[0].strip() for number, line in enumerate(shown) if line[0] == "="]
    assert above_heavy == ["X A A", "I A A"], "where A changes, and before the rows that are no cells"


def test_what_was_not_run_is_no_fault_and_is_told(tmp_path: Path) -> None:
    executor = OneInterruptOnCpu1()
    run = stored_run(tmp_path / "run", EXPERIMENT.replace("rounds = 1", "rounds = 3"), executor=executor)
    assert len(executor.ran) == 2, "each of the two impossible cells is tried once"
    assert run.trials.height == 3 * 6
    assert "cell[A=X,C=X] is not run: nowhere" in run.problems
    summary = summarise(run)
    assert summary.trials_not_ok == 0
    assert not [one for one in summary.comparisons if "C=X" in one.setting or "C=X" in one.against]
    plain = render(run, "plain")
    assert "cell[A=X,C=X] is not run: nowhere" in plain


def test_a_run_of_which_nothing_is_possible_ends_with_the_reason(tmp_path: Path) -> None:
    text = EXPERIMENT.replace('["X", "A"]', '"X"').partition("[settings.free]")[0]
    with pytest.raises(MachineError, match=r"none of the trials can be run here.*nowhere"):
        stored_run(tmp_path / "run", text, executor=OneInterruptOnCpu1())


def test_a_run_without_cells_has_no_such_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no setting of the run"):
        render(stored_run(tmp_path / "run"), "affinity")
