"""The control `io_max` in a guest machine: a control group of version 2 that holds the agent, and with it the load and
all that it starts, during measured phases. Source: the kernel's Documentation/admin-guide/cgroup-v2.rst ("IO")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iolab.machines.guest.steps import Plan
from iolab.machines.host.groups import IO_MAX

_ROOT = "/limits"
"""Not `steps.CGROUPS`: workloads mount controllers of version 1 there."""
_GROUP = f"{_ROOT}/iolab"
_AGENT = "1"
"""The agent is the guest's first process."""


def add(plan: Plan, limits: Mapping[str, int], disks: Sequence[str]) -> None:
    """The steps that make the group with its limits of the target's devices. A kernel without io.max is reported as one
    that lacks the control."""
    plan.add("mount", source="cgroup2", place=_ROOT, filesystem="cgroup2", options="")
    plan.add("write", path=f"{_ROOT}/cgroup.subtree_control", value="+io", optional=False)
    plan.add("directory", path=_GROUP)
    words = " ".join(f"{IO_MAX[key][1]}={limit}" for key, limit in limits.items())
    for disk in disks:
        source = f"/sys/block/{disk}/dev"
        step = plan.add("copy", source=source, words=words, path=f"{_GROUP}/io.max", optional=True)
        plan.controls[step] = "io_max"


def put_load(plan: Plan, *, inside: bool) -> None:
    """The step that moves the agent into the group, or out of it."""
    place = _GROUP if inside else _ROOT
    plan.add("write", path=f"{place}/cgroup.procs", value=_AGENT, optional=False)
