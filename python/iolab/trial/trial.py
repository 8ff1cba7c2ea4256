"""A trial's specification."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from iolab.trial.phase import Phase
from iolab.trial.spec import Spec
from iolab.trial.target import Target

FORMAT: Final = 1


class Trial(Spec):
    format: Literal[1] = FORMAT
    trial: int
    round: int
    position: int
    """Place within the round, from 0."""
    workload: str
    setting: str
    seed: int
    machine: str
    target: Target
    controls: dict[str, Any]
    """The setting's controls by name (python/iolab/control/), validated, units resolved."""
    probes: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """The probes that are on by name (python/iolab/probe/), each with its options, units in their names."""
    model: dict[str, Any] | None = None
    """The modelled machine (docs/machines.md), devices in place of their names, settings applied; None: a host."""
    phases: list[Phase]
