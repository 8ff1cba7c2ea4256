"""A trial's specification, and the seeds of its parts."""

from __future__ import annotations

from hashlib import blake2b
from typing import Annotated, Final, Literal

from pydantic import Field

from iolab.base.strict_json import JsonObject
from iolab.domain import native_types as native
from iolab.domain.trial.guest import GuestMachine
from iolab.domain.trial.phase import Phase
from iolab.domain.trial.target import DOCUMENT, DeviceIdentity, Spec, Target

FORMAT: Final = 1
Kind = Literal["host", "guest", "model"]
"""The kinds of machines: this one, an emulated one, a simulated one (iolab.domain.machine)."""


class Trial(Spec):
    """One workload under one setting, once: all that whoever runs it needs to know."""

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
    controls: JsonObject
    """The setting's controls by name (python/iolab/domain/control/), validated, units resolved."""
    probes: dict[str, JsonObject] = Field(default_factory=dict)
    """The probes that are on by name (python/iolab/domain/probe/), each with its options, units in their names."""
    model: Annotated[native.MachineFile, DOCUMENT] | None = None
    """The simulated machine (docs/reference/machines.md), devices in place of their names, settings applied; None: a
    host."""
    guest: GuestMachine | None = Field(default=None, exclude_if=lambda guest: guest is None)
    """The guest machine, settings applied; None: any other."""
    phases: list[Phase]

    @property
    def kind(self) -> Kind:
        """The kind of the machine that the trial runs on."""
        if self.model is not None:
            return "model"
        return "host" if self.guest is None else "guest"

    @property
    def is_of_host(self) -> bool:
        """Whether it runs on this machine itself, and may change it."""
        return self.kind == "host"

    @property
    def writes(self) -> bool:
        """Whether any phase overwrites what the target holds."""
        return any(phase.overwrites for phase in self.phases)

    @property
    def has_flash(self) -> bool:
        """Whether a drive of its simulated machine is of flash; no other machine shows what that programs."""
        return self.model is not None and any(drive["device"]["kind"] == "flash" for drive in self.model["drives"])

    def on_devices(self, admitted: list[DeviceIdentity]) -> Trial:
        """The same, on these very devices: for a device target."""
        return self.model_copy(update={"target": self.target.model_copy(update={"admitted": admitted})})


SEED_MAX = 2**63 - 1
"""Fits a signed 64-bit column."""


def derive_seed(seed: int, *names: str | int) -> int:
    """A seed for a round, trial, phase or job, so that each draws from a stream of its own: it depends on
    `seed` and on every name, and is the same on any host and Python version."""
    text = "\x1f".join([str(seed), *(f"{type(name).__name__}:{name}" for name in names)])
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") & SEED_MAX
