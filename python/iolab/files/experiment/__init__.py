"""Experiments: a TOML file in; what to run, and what to compare, out."""

from __future__ import annotations

from iolab.domain.experiment import Experiment
from iolab.files.experiment.parse import load, loads

__all__ = ["Experiment", "load", "loads"]
