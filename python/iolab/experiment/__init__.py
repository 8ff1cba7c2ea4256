"""Experiments: a TOML file in; what to run, and what to compare, out."""

from __future__ import annotations

from iolab.experiment.model import Comparison, CompiledWorkload, Experiment
from iolab.experiment.parse import load, loads

__all__ = ["Comparison", "CompiledWorkload", "Experiment", "load", "loads"]
