"""Experiments: a TOML file in; what to run, and what to compare, out."""

from __future__ import annotations

from iolab.adapters.experiment.parse import load, loads
from iolab.domain.experiment import Comparison, CompiledWorkload, Experiment

__all__ = ["Comparison", "CompiledWorkload", "Experiment", "load", "loads"]
