"""Where an experiment's trials run: this host, a guest or a simulated machine.

Each kind is read from an experiment by its `Reader` (files/experiment/machine.py), answers for itself before trials
run as a `Port` (machines/ports.py), and runs trials in the worker (machines/worker.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypedDict, TypeVar

from typing_extensions import override

from iolab.base.errors import unknown
from iolab.base.strict_json import JsonObject
from iolab.domain import native_types as native
from iolab.domain.trial import GuestMachine, Phase, Target
from iolab.domain.trial.guest import PREFIX as GUEST_PREFIX
from iolab.domain.trial.trial import Kind

HOST = "host"
"""This machine, as an experiment names it."""
MODEL_PREFIX = "model:"
"""How the name of a simulated machine begins; its file follows."""
CLUSTER = "ray"
"""No machine: where many hosts run trials, as --on names it."""


def kind_of(name: object) -> Kind | None:
    """The kind of the machine that an experiment names; None if `name` is not a machine's name."""
    if not isinstance(name, str):
        return None
    if name.startswith(MODEL_PREFIX):
        return "model"
    if name.startswith(GUEST_PREFIX) and len(name) > len(GUEST_PREFIX):
        return "guest"
    return "host" if name == HOST else None


def unknown_machine(name: str) -> str:
    """What is wrong with a name that `kind_of` does not know."""
    if name == CLUSTER or name.startswith(f"{CLUSTER}://"):
        return f"a cluster, and no machine; name it as --on {name}"
    return unknown("machine", name, [HOST, f"{MODEL_PREFIX}NAME", f"{GUEST_PREFIX}KERNEL"])


class TrialMachine(TypedDict, total=False):
    """A trial's facts about its machine, beside the name."""

    model: native.MachineFile
    guest: GuestMachine


@dataclass(frozen=True)
class _NamedMachine:
    """An experiment's facts about its machine, of any kind."""

    name: str
    """As the experiment names it."""

    kind: ClassVar[Kind]
    """By which its `Reader`, its `Port` and who runs its trials are found."""
    is_of_host: ClassVar[bool] = False
    """Whether trials run on this machine itself, and may change it."""
    acts_here: ClassVar[bool] = True
    """Whether something runs on this machine: its own trials, or an emulator with a kernel."""

    @property
    def kernels(self) -> list[str]:
        """Those that the settings ask for, each once; empty on a host."""
        return []

    @property
    def attachments(self) -> Mapping[str, str]:
        """The files that it was read from, which a run keeps: name of the copy -> text."""
        return {}

    @property
    def deeds(self) -> list[str]:
        """What is done on this machine to have it, a line each."""
        return []

    def of_trial(self, setting: str) -> TrialMachine:
        """A trial's facts about it under the setting, beside its name."""
        return {}

    def phases(self, setting: str, phases: list[Phase]) -> list[Phase]:
        """A workload's phases as this machine has them."""
        return phases

    def with_seed(self, seed: int | None) -> str:
        """Its name; with the seed, if that suffices to have the same numbers again."""
        return self.name


@dataclass(frozen=True)
class Host(_NamedMachine):
    """This machine itself, or other hosts in its place."""

    name: str = HOST
    target_by_default: bool = False
    """Whether the experiment names no target."""

    kind: ClassVar[Kind] = "host"
    is_of_host: ClassVar[bool] = True


@dataclass(frozen=True)
class Guest(_NamedMachine):
    """An emulated machine that boots a kernel of the user's choice."""

    under: Mapping[str, GuestMachine]
    """By setting: as changed by it."""

    kind: ClassVar[Kind] = "guest"

    @property
    @override
    def kernels(self) -> list[str]:
        return list(dict.fromkeys(guest.kernel for guest in self.under.values()))

    @property
    @override
    def deeds(self) -> list[str]:
        found = []
        for guest in self.under.values():
            found.append(f"boot the kernel {guest.kernel} in an emulated machine")
            if guest.modules is not None:
                found.append(f"load its modules from {guest.modules}")
        return list(dict.fromkeys(found))

    @override
    def of_trial(self, setting: str) -> TrialMachine:
        return {"guest": self.under[setting]}


@dataclass(frozen=True)
class Model(_NamedMachine):
    """A simulated machine: tables as docs/reference/machines.md describes them, devices in place of their names."""

    as_filed: native.MachineFile
    under: Mapping[str, native.MachineFile]
    """By setting: as changed by it."""
    files: Mapping[str, str]
    """What it was read from: name of a run's copy -> text."""

    kind: ClassVar[Kind] = "model"
    acts_here: ClassVar[bool] = False

    @property
    @override
    def kernels(self) -> list[str]:
        return list(dict.fromkeys(machine["kernel"] for machine in self.under.values()))

    @property
    @override
    def attachments(self) -> Mapping[str, str]:
        return self.files

    @override
    def of_trial(self, setting: str) -> TrialMachine:
        return {"model": self.under[setting]}

    @override
    def phases(self, setting: str, phases: list[Phase]) -> list[Phase]:
        memory = self.under[setting].get("memory")
        return phases if memory is None else [phase.in_memory(memory["bytes"]) for phase in phases]

    @override
    def with_seed(self, seed: int | None) -> str:
        return f"{self.name} (simulated, seed {seed})"


Machine = Host | Guest | Model
Settings = Mapping[str, Mapping[str, Any]]
"""By name, the controls' values."""
M_contra = TypeVar("M_contra", bound=Machine, contravariant=True)


class Port(Protocol[M_contra]):
    """Who answers for a kind of machine before trials run there."""

    def describe(self, machine: M_contra, target: Target) -> JsonObject:
        """Its facts for machine.json. MachineError if there can be none here."""

    def preflight(
        self,
        target: Target,
        settings: Settings,
        probes: Iterable[str],
        report_line: Callable[[str], None],
    ) -> None:
        """Sees that trials can run: what a killed run left is put back, what is needed answers. MachineError if not."""

    def announcement(self, machine: M_contra, seed: int) -> str | None:
        """What is worth knowing before the first trial."""
