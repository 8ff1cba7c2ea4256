"""What was changed between two settings: controls, options of the workload, and between runs the target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iolab.base.strict_json import JsonObject
from iolab.domain import layer
from iolab.domain.explain.place import Name

if TYPE_CHECKING:
    from iolab.domain.experiment import Experiment

NOT_COMPARED = frozenset({"layout", "seed"})
"""Options of a workload that follow from others."""
LAYERS = "layers"
TARGET_KEYS = (LAYERS, "filesystem", "mkfs_options", "mount_options")
"""Controls that change the target."""
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
    sides = ((ours, baseline), (theirs, candidate))
    controls = [_flat(one.settings[of]) for one, of in sides]
    # What one setting changes of the target, the other has as the target states it.
    of_target = [key for key in TARGET_KEYS if any(key in one for one in controls)]
    before, after = (
        {**flat, **{key: _of_target(one, flat, key) for key in of_target}}
        for (one, _), flat in zip(sides, controls, strict=True)
    )
    found = list(_differences(before, after))
    if workload in ours.workloads and workload in theirs.workloads:
        options = [one.workload_under(workload, of).options for one, of in sides]
        before, after = (
            _with_groups({key: value for key, value in one.model_dump(mode="json").items() if key not in NOT_COMPARED})
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


def _of_target(experiment: Experiment, controls: Mapping[str, Any], key: str) -> Any:
    target = experiment.target.model_dump(mode="json")
    if key == LAYERS and experiment.target.kind == "scratch":
        layers = experiment.target.layers
        return layer.changed(layers, controls[key]) if key in controls else layers
    return controls.get(key) or target.get(key) or None


def _with_groups(options: JsonObject) -> JsonObject:
    """The limits of a mix's groups one by one."""
    groups = options.get("groups")
    if not isinstance(groups, dict):
        return options
    of_groups = {
        f"groups.{name}.{key}": value
        for name, group in groups.items()
        for key, value in (group if isinstance(group, dict) else {}).items()
    }
    return {**{key: value for key, value in options.items() if key != "groups"}, **of_groups}


def _flat(controls: Mapping[str, Any]) -> JsonObject:
    """The keys of a simulated machine one by one."""
    flat: JsonObject = {}
    for name, value in controls.items():
        if name == TREE and isinstance(value, dict):
            flat |= {f"{TREE}.{key}": one for key, one in value.items()}
        else:
            flat[name] = value
    return flat
