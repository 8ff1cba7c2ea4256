"""Experiments on simulated machines, written into the current directory and run there."""

from pathlib import Path

import pytest
from fake_machine import SilentDisplay
from iolab.base.errors import InputError
from iolab.files.experiment import Experiment, load
from iolab.files.store import RunData, read
from iolab.machines.model import ModelExecutor
from iolab.studies.run import run as run_experiment

SMALL_FLASH = ", ".join(
    f'"drives.0.device.geometry.{key}" = {value}'
    for key, value in {
        "blocks_per_plane": 64,
        "pages_per_block": 16,
        "channels": 2,
        "dies_per_channel": 2,
        "over_provision_per_mille": 200,
    }.items()
)
"""Of `machine` in a setting: a flash drive that is soon full."""


def experiment(text: str, machine: str | None = None) -> Experiment:
    Path("x.toml").write_text(text)
    return load(Path("x.toml"), machine=machine)


def refusals(text: str) -> list[str]:
    """What is wrong with it, a line each."""
    with pytest.raises(InputError) as raised:
        experiment(text)
    return str(raised.value).splitlines()


def run(text: str, out: str = "out", *, cores: int = 1, seed: int = 7, rounds: int | None = None) -> RunData:
    loaded = experiment(text)
    with ModelExecutor(cores=cores) as executor:
        run_experiment(loaded, Path(out), executor=executor, progress=SilentDisplay(), seed=seed, rounds=rounds)
    return read(Path(out))
