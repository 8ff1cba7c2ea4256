"""A trial: one workload under one setting, once. A self-contained unit: this specification in, a record out.

Whoever runs it (this process's child, later another host) needs nothing but the JSON of a `Trial`.
"""

from __future__ import annotations

from iolab.trial.phase import (
    CommandsPhase,
    FioPhase,
    LoadPhase,
    MetadataPhase,
    Phase,
    PhaseSpec,
    SortPhase,
    WeightedGroup,
    WeightedLoadPhase,
)
from iolab.trial.target import DeviceTarget, DirectoryTarget, DrivesTarget, FileTarget, ScratchTarget, Target
from iolab.trial.trial import Trial

__all__ = [
    "CommandsPhase",
    "DeviceTarget",
    "DirectoryTarget",
    "DrivesTarget",
    "FileTarget",
    "FioPhase",
    "LoadPhase",
    "MetadataPhase",
    "Phase",
    "PhaseSpec",
    "ScratchTarget",
    "SortPhase",
    "Target",
    "Trial",
    "WeightedGroup",
    "WeightedLoadPhase",
]
