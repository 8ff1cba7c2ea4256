"""The report of `iolab cost`: paths under base and tip, and what determines their counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from iolab.base.plain_text import counted
from iolab.base.strict_json import JsonObject
from iolab.domain.cost.measure import CONFIDENCE
from iolab.domain.cost.path_cost import PathCost
from iolab.domain.cost.repeatable import REPEATABLE
from iolab.domain.cost.unseen import ALWAYS

FORMAT = 1


@dataclass(frozen=True)
class KernelVersion:
    """A kernel that was counted."""

    setting: str
    """Its setting in each path's experiment: `base`, `tip`, or `patch_N`."""
    kernel: str
    """As an experiment names it."""
    label: str
    """For people: the name, or a commit's short hash and subject."""
    how: str = ""
    """How it was configured and built, as far as that is known."""


@dataclass(frozen=True)
class PatchCost:
    """What one patch of a series changes, against the kernel before it."""

    label: str
    paths: list[PathCost]


@dataclass(frozen=True)
class CostReport:
    """What is reported. `command` repeats it; `machine`: what counted, in words."""

    base: KernelVersion
    tip: KernelVersion
    paths: list[PathCost]
    machine: str
    command: str
    patches: list[PatchCost] = field(default_factory=list)
    """Empty unless each patch was asked for."""
    notes: list[str] = field(default_factory=list)
    """What a reader has to know beside the numbers, such as files that were not built."""

    def of(self, outcome: str) -> list[PathCost]:
        """The paths with this outcome."""
        return [path for path in self.paths if path.outcome == outcome]

    @property
    def conclusion(self) -> str:
        """The report in a sentence."""
        measured = [path for path in self.paths if not path.why]
        if not measured:
            return "No path was measured."
        parts = []
        for outcome, words in (("more", "more"), ("less", "fewer")):
            if found := self.of(outcome):
                extreme = max(found, key=lambda path: abs(path.changes["kernel"].share or 0.0))
                share = 100 * (extreme.changes["kernel"].share or 0.0)
                parts.append(f"{words} on {len(found)} ({share:+.2f} % on {extreme.name}, the largest change)")
        for outcome, words in (("same", "as many"), ("unclear", "an unclear number")):
            if found := self.of(outcome):
                parts.append(f"{words} on {len(found)}")
        of = counted(len(measured), "path")
        total = f"Kernel instructions per operation of the tip, on {of}: {', '.join(parts)}."
        return " ".join((total, *self._of_repeatable()))

    def _of_repeatable(self) -> Iterator[str]:
        """What is certain of paths that have as many or an unclear number."""
        for sign, words in (("more", "more"), ("less", "fewer")):
            if found := [path for path in self.paths if path.of_repeatable == sign]:
                extreme = max(found, key=lambda path: abs(path.changes[REPEATABLE].difference))
                change = extreme.changes[REPEATABLE].difference
                yield (
                    f"Functions whose counts repeat have {words} on {len(found)} of these "
                    f"({change:+,.1f} on {extreme.name}, the largest change)."
                )
        if found := [path for path in self.paths if path.of_repeatable == "same"]:
            yield f"No function whose count repeats changed on {len(found)} of these."

    def as_dict(self) -> JsonObject:
        """As JSON has it."""
        return {
            "format": FORMAT,
            "base": _version(self.base),
            "tip": _version(self.tip),
            "confidence": CONFIDENCE,
            "conclusion": self.conclusion,
            "paths": [path.as_dict() for path in self.paths],
            "patches": [
                {"patch": patch.label, "paths": [path.as_dict() for path in patch.paths]} for patch in self.patches
            ],
            "counted_by": self.machine,
            "not_seen": ALWAYS,
            "notes": self.notes,
            "command": self.command,
        }


@dataclass(frozen=True)
class FunctionChange:
    """A function that differs on some paths."""

    symbol: str
    module: str
    changes: dict[str, float]
    """By path, in instructions per operation."""

    @property
    def largest(self) -> float:
        """The change that is furthest from 0."""
        return max(self.changes.values(), key=abs)


def functions_of(paths: Sequence[PathCost]) -> list[FunctionChange]:
    """The functions that differ on any path, the largest change first."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for path in paths:
        for one in path.functions:
            found.setdefault((one.symbol, one.module), {})[path.name] = one.change
    made = [FunctionChange(*key, changes) for key, changes in found.items()]
    return sorted(made, key=lambda one: (-abs(one.largest), one.symbol, one.module))


def unseen_of(paths: Sequence[PathCost]) -> dict[str, list[str]]:
    """What counts cannot see -> the paths that are likely to depend on it."""
    found: dict[str, list[str]] = {}
    for path in paths:
        for line in path.unseen:
            found.setdefault(line, []).append(path.name)
    return found


def _version(one: KernelVersion) -> JsonObject:
    return {"kernel": one.kernel, "label": one.label, "built": one.how or None}
