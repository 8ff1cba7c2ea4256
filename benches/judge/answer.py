"""Asks a configuration of the guest or of the model, and keeps the guest's answers: one file for each configuration.

An answer is a number per cell: operations per second, median and 99th percentile of each job's reads and writes, and of
its fsyncs.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.base.strict_json import by_row

from judge import question
from judge.configuration import Configuration, from_json

Cells = dict[str, float]
"""By name, such as `j0/read.iops`; times in nanoseconds."""
KINDS = ("read", "write")
TIMES = ("latency_ns_p50", "latency_ns_p99")
ENOUGH = 30
"""Operations below which a rate or a time is no cell."""


@dataclass(frozen=True)
class Answer:
    """What one side said."""

    cells: Cells
    refusal: str = ""
    """Why there are none."""

    def as_json(self) -> dict[str, Any]:
        return {"cells": self.cells, "refusal": self.refusal}


def of_guest(asked: Configuration) -> Answer:
    """Boots the kernel; about ten seconds of CPU time."""
    with tempfile.TemporaryDirectory(prefix="iolab-judge-") as place:
        return _asked(asked, Path(place), question.of_guest(asked))


def of_model(asked: Configuration) -> Answer:
    with tempfile.TemporaryDirectory(prefix="iolab-judge-") as place:
        (Path(place) / "machine.toml").write_text(question.machine_file(asked))
        return _asked(asked, Path(place), question.of_model(asked, "machine.toml"))


def _asked(asked: Configuration, place: Path, text: str) -> Answer:
    experiment, out = place / "experiment.toml", place / "run"
    experiment.write_text(text)
    command = [
        sys.executable,
        "-c",
        "from iolab.presentation.cli import main; main()",
        "run",
        str(experiment),
        "--out",
        str(out),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return Answer({}, lines[-1])
    return Answer(_cells(asked, out))


def _cells(asked: Configuration, out: Path) -> Cells:
    from iolab.domain.metric import ALL
    from iolab.files.store import read
    from iolab.studies.reproduction.run_values import RunValues

    values = RunValues(read(out))
    trial = (question.WORKLOAD, question.SETTING)
    found: Cells = {}
    for name, job in zip(question.names(asked), asked.jobs, strict=True):
        place = name if len(asked.jobs) > 1 else ALL
        for kind in KINDS:
            if job.read_percent == {"read": 0, "write": 100}[kind]:
                continue
            pure = job.read_percent in (0, 100)
            prefix = "" if pure and not job.fsync_every and len(asked.jobs) > 1 else f"{kind}."
            rate = values.mean(trial, f"{prefix}iops", place).value
            if rate is None:
                continue
            found[f"{name}/{kind}.iops"] = rate
            if rate * asked.duration_ms < 1000 * ENOUGH:
                continue
            for time in TIMES:
                value = values.mean(trial, f"{prefix}{time}", place).value
                if value is not None:
                    found[f"{name}/{kind}.{time}"] = value
        if job.fsync_every:
            value = values.mean(trial, "sync.latency_ns_p50", place).value
            if value is not None:
                found[f"{name}/sync.latency_ns_p50"] = value
    return found


@dataclass(frozen=True)
class Answers:
    """The directory of what guests answered. A file is whole or absent: a campaign may be killed at any time."""

    directory: Path

    def stored(self, asked: Configuration) -> Answer | None:
        path = self._path(asked)
        if not path.exists():
            return None
        found = json.loads(path.read_text())
        return Answer(found["cells"], found["refusal"])

    def store(self, asked: Configuration, answer: Answer) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self._path(asked)
        beside = path.with_suffix(f".{os.getpid()}")
        beside.write_text(by_row({"configuration": asked.as_json(), **answer.as_json()}) + "\n")
        beside.rename(path)

    def guest(self, asked: Configuration) -> Answer:
        """The stored answer, or a new one, which is stored unless it is a refusal: that may be this machine's."""
        found = self.stored(asked)
        if found is None:
            found = of_guest(asked)
            if not found.refusal:
                self.store(asked, found)
        return found

    def all(self) -> list[tuple[Configuration, Answer]]:
        found = []
        for path in sorted(self.directory.glob("*.json")):
            one = json.loads(path.read_text())
            found.append((from_json(one["configuration"]), Answer(one["cells"], one["refusal"])))
        return found

    def _path(self, asked: Configuration) -> Path:
        return self.directory / f"{asked.key}.json"
