"""Large inputs for `show` and `compare`: a run of many trials, written by iolab's own loop, and a table of numbers."""

import io
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import ours
from iolab.domain.executor import OnProgress, ShouldStop
from iolab.domain.phase_record import PhaseRecord
from iolab.domain.record import Record
from iolab.domain.trial import DeviceIdentity, Trial
from iolab.files import experiment
from iolab.presentation.progress.plain import PlainDisplay
from iolab.studies.run import run

EXPERIMENT = """
seed = 1
[target]
kind = "directory"
path = "."
[workloads.reads]
queue_depth = 32
duration = "1s"
[settings.a]
[settings.b]
workload = { queue_depth = 64 }
"""
A_NULL_PHASE: dict[str, Any] = {"engine": "null", "queue_depth": 32, "operations": 100_000}
SPREAD = 0.05


class Synthetic:
    """An executor that answers with one phase's record, its times stretched by some noise."""

    def __init__(self) -> None:
        self._template, _ = ours.record_and_peak_memory(ours.phase(Path("null"), 1 << 40, A_NULL_PHASE))

    def expect(self, trials: Iterable[Trial]) -> None: ...

    def admit(self, trial: Trial, should_stop: ShouldStop) -> list[DeviceIdentity]:
        return []

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        stretch = random.Random(trial.seed).lognormvariate(0, SPREAD)
        measured_to_ns = round(self._template["measured_to_ns"] * stretch)
        return Record(
            spec=trial,
            status="ok",
            started_unix_ns=self._template["started_unix_ns"],
            ended_unix_ns=self._template["started_unix_ns"],
            controls_applied={},
            controls_absent={},
            phases=[cast(PhaseRecord, {**self._template, "measured_to_ns": measured_to_ns})],
            observed={},
            faults=[],
            notes=[],
        )


def write_run(path: Path, trials: int) -> None:
    parsed = experiment.loads(EXPERIMENT, "synthetic.toml")
    rounds = trials // (len(parsed.workloads) * len(parsed.settings))
    run(parsed, path, executor=Synthetic(), progress=PlainDisplay(io.StringIO(), brief=True), rounds=rounds, machine={})


def write_csv(path: Path, *, rounds: int, metrics: int) -> None:
    draw = random.Random(1)
    lines = [",".join(["setting", "round", *(f"metric_{number}" for number in range(metrics))])]
    for turn in range(rounds):
        for setting in ("a", "b"):
            values = (f"{draw.lognormvariate(0, SPREAD):.6f}" for _ in range(metrics))
            lines.append(",".join([setting, str(turn), *values]))
    path.write_text("\n".join(lines) + "\n")
