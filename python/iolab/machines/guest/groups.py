"""The control groups of a load in a guest machine.

Version 1 of control groups gives I/O to threads, so that one process with a thread for each group does. io.latency and
io.cost are of version 2 alone, which gives I/O to whole processes: then each group is one
(crates/measure/guest-agent/src/members.rs).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iolab.domain import members_of
from iolab.domain import native_types as native
from iolab.domain.trial import ControlGroup, WeightedLoadPhase
from iolab.domain.trial.control_group import WEIGHT_DEFAULT
from iolab.machines.guest.steps import CGROUPS, Plan
from iolab.machines.host.groups import is_of_device, writes
from iolab.machines.system import io_cost


def add(plan: Plan, phase: WeightedLoadPhase, disks: Sequence[str]) -> WeightedLoadPhase:
    """The steps that make the phase's groups; the phase with its jobs in them. Of groups that have weights alone, the
    first that is done ends the measured part of all, as on a host."""
    load = {**phase.load, "ends_with_first": not phase.groups}
    if phase.control_groups:
        version = 2 if phase.needs_version_2 else 1
        _mount(plan, version)
        if phase.controller == "cost":
            _switch_on_cost(plan, phase, disks)
        for group in phase.control_groups:
            _make(plan, phase, group, version, disks)
        if version == 1:
            load["groups"] = [
                {**group, "cgroup": _directory(phase.group_of[group["jobs"][0]["name"]])}
                for group in phase.load["groups"]
            ]
    return phase.model_copy(update={"load": load})


def add_members(plan: Plan, phase: WeightedLoadPhase, placed: Callable[[native.Phase], native.Phase]) -> int:
    """The step that offers the load, a process for each group; its number."""
    members = [
        {"phase": placed(members_of.share(phase, member)), "group": _directory(member.name)} for member in phase.members
    ]
    return plan.add("members", members=members, drop_caches=phase.load["drop_caches"])


def _directory(group: str) -> str:
    return f"{CGROUPS}/{group}"


def _mount(plan: Plan, version: int) -> None:
    if version == 1:
        plan.add("mount", source="cgroup", place=CGROUPS, filesystem="cgroup", options="blkio")
        return
    plan.add("mount", source="cgroup2", place=CGROUPS, filesystem="cgroup2", options="")
    plan.add("write", path=f"{CGROUPS}/cgroup.subtree_control", value="+io", optional=False)


def _switch_on_cost(plan: Plan, phase: WeightedLoadPhase, disks: Sequence[str]) -> None:
    if phase.cost_model is not None:
        _tell(plan, f"{CGROUPS}/{io_cost.MODEL}", f"ctrl=user model=linear {phase.cost_model}", disks)
    qos = "" if phase.cost_qos is None else f" ctrl=user {phase.cost_qos}"
    _tell(plan, f"{CGROUPS}/{io_cost.QOS}", f"enable=1{qos}", disks)


def _make(plan: Plan, phase: WeightedLoadPhase, group: ControlGroup, version: int, disks: Sequence[str]) -> None:
    directory = _directory(group.name)
    plan.add("directory", path=directory)
    if phase.controller != "none":
        file = "io.weight" if phase.controller == "cost" else ("blkio.bfq.weight", "io.bfq.weight")[version - 1]
        plan.add("write", path=f"{directory}/{file}", value=str(group.io_weight or WEIGHT_DEFAULT), optional=False)
    for key in sorted(set(group.given) - {"io_weight"}):
        for file, text in writes(key, version, group.given[key], ""):
            if is_of_device(key):
                _tell(plan, f"{directory}/{file}", text.strip(), disks)
            else:
                plan.add("write", path=f"{directory}/{file}", value=text, optional=False)


def _tell(plan: Plan, path: str, words: str, disks: Sequence[str]) -> None:
    """Of each disk, whose number comes first."""
    for disk in disks:
        plan.add("copy", source=f"/sys/block/{disk}/dev", words=words, path=path, optional=False)
