"""What was changed between two settings: controls, options of the workload, and between runs the target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iolab.base.strict_json import JsonObject
from iolab.domain.explain.place import Name

if TYPE_CHECKING:
    from iolab.domain.experiment import Experiment

NOT_COMPARED = frozenset({"layout", "seed"})
"""Options of a workload that follow from others."""
TREE = "machine"
"""The control whose value is a table of keys of its own."""


@dataclass(frozen=True)
class Change:
    """One thing that differs between two settings."""

    setting: str
    """The control; `workload.KEY` for an option of the workload, `target.KEY` of the target, `machine.KEY` of a
    simulated machine."""
    baseline: Any
    """None: not set, the machine's own value holds."""
    candidate: Any

    def as_dict(self) -> JsonObject:
        """The documented JSON of a change."""
        return {"setting": self.setting, "baseline": self.baseline, "candidate": self.candidate}


Changes = Mapping[Name, list[Change]]
"""By (workload, baseline, candidate)."""


def changes_within(experiment: Experiment, workload: str, baseline: str, candidate: str) -> list[Change]:
    """Between two settings of one experiment."""
    return changes_between(experiment, baseline, experiment, candidate, workload)


def changes_between(ours: Experiment, baseline: str, theirs: Experiment, candidate: str, workload: str) -> list[Change]:
    """Between a setting of one experiment and one of another; nothing if a setting or workload is not known."""
    if baseline not in ours.settings or candidate not in theirs.settings:
        return []
    found = list(_differences(_flat(ours.settings[baseline]), _flat(theirs.settings[candidate])))
    if workload in ours.workloads and workload in theirs.workloads:
        options = [one.workload_under(workload, of).options for one, of in ((ours, baseline), (theirs, candidate))]
        before, after = (
            {key: value for key, value in one.model_dump(mode="json").items() if key not in NOT_COMPARED}
            for one in options
        )
        found += _differences(before, after, "workload.")
    if ours is not theirs:
        if ours.machine != theirs.machine:
            found.append(Change("machine", ours.machine, theirs.machine))
        found += _differences(ours.target.model_dump(mode="json"), theirs.target.model_dump(mode="json"), "target.")
    return found


def _differences(before: Mapping[str, Any], after: Mapping[str, Any], prefix: str = "") -> Iterator[Change]:
    for key in dict.fromkeys((*before, *after)):
        if before.get(key) != after.get(key):
            yield Change(f"{prefix}{key}", before.get(key), after.get(key))


def _flat(controls: Mapping[str, Any]) -> JsonObject:
    """The keys of a simulated machine one by one."""
    flat: JsonObject = {}
    for name, value in controls.items():
        if name == TREE and isinstance(value, dict):
            flat |= {f"{TREE}.{key}": one for key, one in value.items()}
        else:
            flat[name] = value
    return flat
