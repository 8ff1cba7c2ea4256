"""Experiments on simulated machines, written into the current directory and run there."""

from __future__ import annotations

from pathlib import Path

from fake_machine import SilentDisplay
from iolab.files.experiment import Experiment, load
from iolab.files.store import RunData, read
from iolab.machines.model import ModelExecutor
from iolab.studies.run import run as run_experiment


def experiment(text: str) -> Experiment:
    Path("x.toml").write_text(text)
    return load(Path("x.toml"))


def run(text: str, out: str = "out", *, cores: int = 1, seed: int = 7) -> RunData:
    with ModelExecutor(cores=cores) as executor:
        run_experiment(experiment(text), Path(out), executor=executor, progress=SilentDisplay(), seed=seed)
    return read(Path(out))
