"""A trial: one workload under one setting, once. A self-contained unit: this specification in, a record out.

Whoever runs it (this process's child, later another host) needs nothing but the JSON of a `Trial`.
"""

from __future__ import annotations

from iolab.domain.trial.control_group import ControlGroup
from iolab.domain.trial.guest import GuestMachine
from iolab.domain.trial.phase import (
    CommandsPhase,
    FioPhase,
    LoadPhase,
    MetadataPhase,
    Phase,
    PhaseSpec,
    SortPhase,
    TimedCommandPhase,
    WeightedGroup,
    WeightedLoadPhase,
)
from iolab.domain.trial.target import (
    DeviceIdentity,
    DeviceTarget,
    DirectoryTarget,
    DrivesTarget,
    FileTarget,
    ScratchTarget,
    SideDevice,
    Target,
)
from iolab.domain.trial.trial import Trial

__all__ = [
    "CommandsPhase",
    "ControlGroup",
    "DeviceIdentity",
    "DeviceTarget",
    "DirectoryTarget",
    "DrivesTarget",
    "FileTarget",
    "FioPhase",
    "GuestMachine",
    "LoadPhase",
    "MetadataPhase",
    "Phase",
    "PhaseSpec",
    "ScratchTarget",
    "SideDevice",
    "SortPhase",
    "Target",
    "TimedCommandPhase",
    "Trial",
    "WeightedGroup",
    "WeightedLoadPhase",
]
