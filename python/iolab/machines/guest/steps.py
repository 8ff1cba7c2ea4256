"""The plan of the guest's agent (crates/measure/guest-agent/src/main.rs), and the archive that holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from iolab.base.strict_json import JsonObject, dumps
from iolab.domain.trial import Phase
from iolab.machines.guest import programs
from iolab.machines.guest.initramfs import Archive
from iolab.machines.guest.modules import Modules

CGROUPS = "/control-groups"
"""Where the guest mounts its control groups."""


@dataclass
class Plan:
    """The steps until now, and the archive that the guest finds them in."""

    seed: int
    limit_ns: int = 600 * 10**9
    """The limit of the guest's own time."""
    alignment_ns: int = 0
    """Steps and loads begin at multiples of it of the guest's own time; 0: at once."""
    archive: Archive = field(default_factory=Archive)
    steps: list[JsonObject] = field(default_factory=list)
    phases: dict[int, Phase] = field(default_factory=dict)
    """By its step's number."""
    parameters: list[str] = field(default_factory=list)
    """The parameters of modules, in the form that the kernel's command line has for built-in ones."""
    controls: dict[int, str] = field(default_factory=dict)
    """By the number of a step that writes a kernel's file: the control that it is of."""

    def add(self, do: str, **words: object) -> int:
        """A step; its number."""
        self.steps.append({"do": do, **words})
        return len(self.steps) - 1

    def packed(self) -> bytes:
        """The initramfs."""
        self.archive.add("/init", programs.agent().read_bytes())
        self.archive.add(
            "/plan.json",
            dumps({name: getattr(self, name) for name in ("seed", "limit_ns", "alignment_ns", "steps")}).encode(),
        )
        return self.archive.packed()

    def load_modules(self, modules: Modules, names: Sequence[str], parameters: dict[str, dict[str, str]]) -> None:
        """Those modules and what they need. MachineError if this kernel has no such module."""
        for name, content in modules.needed(names):
            path = f"/modules/{name}.ko"
            if path not in self.archive:
                self.archive.add(path, content)
                given = " ".join(f"{key}={value}" for key, value in parameters.get(name, {}).items())
                self.add("module", path=path, parameters=given)
