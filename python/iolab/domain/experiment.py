"""A validated experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from iolab.base.option import Options
from iolab.base.strict_json import JsonObject
from iolab.domain.machine import Machine
from iolab.domain.probe import Probes
from iolab.domain.trial import Phase, Target
from iolab.domain.tune.tuning import Tuning
from iolab.domain.workload import KINDS

IMPORTED = "imported"
"""The machine of a run whose numbers iolab did not measure."""


@dataclass(frozen=True)
class CompiledWorkload:
    """One workload, its matrix expanded and its options checked."""

    kind: str
    options: Options

    def phases(self, seed: int, devices: int) -> list[Phase]:
        """The phases of a trial on so many devices, in order; the same for the same arguments."""
        return KINDS[self.kind].phases(self.options, seed, devices)

    @property
    def file_bytes(self) -> int:
        """What the workload's files hold together, in bytes."""
        return KINDS[self.kind].file_bytes(self.options)


@dataclass(frozen=True)
class Comparison:
    """What [compare] asks for."""

    baseline: str
    metrics: list[str] | None
    """Keys (`iolab.domain.metric.parse_key`); None: the default ones."""
    same_within: float
    """Margin of the verdict `same`, as a share: 0.02 is 2 %."""
    same_instructions: float | None = None
    """The same of metrics that count instructions, in instructions; None: the share."""


@dataclass(frozen=True)
class Experiment:
    """An experiment that can be run: every name, option and value checked, every matrix expanded."""

    title: str
    machine: Machine
    rounds: int
    seed: int | None
    """None: to be drawn by the run, and recorded."""
    target: Target
    workloads: dict[str, CompiledWorkload]
    """By expanded name."""
    settings: dict[str, JsonObject]
    """By expanded name: the controls, validated. What a setting changes in the workloads is in `variants`."""
    variants: Mapping[tuple[str, str], CompiledWorkload]
    """(workload, setting) -> the workload under that setting, if the setting overrides its options."""
    compare: Comparison
    text: str
    """The file, exactly."""
    probes: Mapping[str, Probes] = field(default_factory=dict)
    """By setting: the probes that are on."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """By setting: what the machine is booted with for it. Empty if all settings run under one boot."""
    rounds_per_boot: int = 1
    own_draws: bool = False
    """Whether each trial of a round draws its own offsets, and does not share them with the other settings."""
    tuning: Tuning | None = None
    """What to tune, if the file has [tune]."""

    @property
    def attachments(self) -> dict[str, str]:
        """The files that it names, which a run keeps: name of the copy -> text."""
        found = dict(self.machine.attachments)
        for workload in (*self.workloads.values(), *self.variants.values()):
            found |= workload.options.attachments
        return found

    def workload_under(self, workload: str, setting: str) -> CompiledWorkload:
        """The workload of this name, with what the setting changes in its options. KeyError for unknown names."""
        return self.variants.get((workload, setting), self.workloads[workload])
