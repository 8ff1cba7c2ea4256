"""The control groups of a mix: their options, which of them make no sense, and the phase that they become."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from iolab.base.errors import IolabError, unknown
from iolab.base.option import Bytes, Duration, Options, option
from iolab.domain import control
from iolab.domain.trial import ControlGroup, LoadPhase, WeightedGroup, WeightedLoadPhase
from iolab.domain.trial.control_group import IoPriorityClass, entitlements
from iolab.domain.workload.job import PhaseOptions
from iolab.domain.workload.kind import Conflict

WEIGHT_MAX = 1000
"""BFQ's; io.cost takes ten times as much."""
_QOS = r"(?:[rw](?:pct|lat)|min|max)=\d+(?:\.\d+)?"
_COST = r"[rw](?:bps|seqiops|randiops)=[1-9]\d*"
COST_QOS = re.compile(rf"{_QOS}(?: {_QOS})*")
COST_MODEL = re.compile(rf"{_COST}(?: {_COST})*")
COST_MODEL_EXPECTED = (
    "expected whole numbers for some of rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops, such as "
    '"rbps=2000000000 rrandiops=90000"'
)


def _limits(given: object) -> object:
    try:
        return control.validate("io_max", given)
    except IolabError as error:
        what = str(error).removeprefix("io_max: ")
        raise PydanticCustomError("quantity", "{why}", {"why": what}) from None


IoLimits = Annotated[dict[str, int], BeforeValidator(_limits)]


class GroupOptions(Options):
    """A control group that jobs of a mix run in, or that holds others. What is left out is as the kernel makes it."""

    called: ClassVar[str] = "a group"

    inside: str | None = option(None, "The group that this one lies in.", default_is="none")
    io_max: IoLimits | None = option(
        None,
        "Limits of its I/O on the target's devices, in bytes (read, write) and operations (read_iops, write_iops) per "
        "second.",
        expected="a table of read, write, read_iops, write_iops",
    )
    io_weight: int | None = option(
        None,
        "Its share of its parent's part, by bfq or cfq if that is the scheduler, else by io.cost.",
        ge=1,
        le=WEIGHT_MAX,
        default_is="100",
    )
    io_latency: Duration | None = option(
        None, "Latency that the kernel protects by throttling groups with a higher one (version 2).", unit="ns", ge=1000
    )
    io_prio_class: IoPriorityClass | None = option(None, "What becomes of the priority class of its I/O.")
    memory_max: Bytes | None = option(None, "Most memory, page cache included.", unit="bytes", ge=2**20)
    memory_high: Bytes | None = option(
        None, "Memory beyond which its processes are throttled and reclaimed from (version 2).", unit="bytes", ge=2**20
    )
    cpu_weight: int | None = option(None, "Its share of CPU time.", ge=1, le=10_000, default_is="100")


class CostOptions(PhaseOptions):
    """io.cost of the target's device, which has one for all groups."""

    io_cost_model: str | None = option(
        None,
        "What the device can do, as io.cost.model takes it; groups then share by io.cost, whatever the scheduler is.",
        default_is="the kernel's guess",
        expected='parameters such as "rbps=2000000000 rseqiops=200000 rrandiops=90000"',
    )
    io_cost_qos: str | None = option(
        None,
        "The latencies at which io.cost throttles the whole device, as io.cost.qos takes them; likewise.",
        default_is="the kernel's",
        expected='parameters such as "rpct=95 rlat=5000 min=50 max=150"',
    )


def group_conflicts(
    groups: Mapping[str, GroupOptions], group_of: Mapping[str, str | None], phase: CostOptions
) -> Iterator[Conflict]:
    """Args: group_of: by job, None: in no group."""
    if not groups:
        for job, group in group_of.items():
            if group is not None:
                yield Conflict(("jobs", job, "group"), f"{group}: the mix has no groups; make [workloads.NAME.groups]")
        for key in ("io_cost_model", "io_cost_qos"):
            if getattr(phase, key) is not None:
                yield Conflict((key,), "only with groups that share the device")
        return
    yield from _of_tree(groups, group_of)
    for job, group in group_of.items():
        if group is None:
            yield Conflict(("jobs", job, "group"), "missing; in a mix with groups, each job is in one")
        elif group not in groups:
            yield Conflict(("jobs", job, "group"), unknown("group", group, groups))
    for key, pattern, expected in (
        ("io_cost_model", COST_MODEL, COST_MODEL_EXPECTED),
        ("io_cost_qos", COST_QOS, 'expected some of rpct, rlat, wpct, wlat, min, max, such as "rpct=95 rlat=5000"'),
    ):
        if (given := getattr(phase, key)) is not None and not pattern.fullmatch(given):
            yield Conflict((key,), expected)
    for key in ("verify", "cut_transient"):
        if getattr(phase, key):
            yield Conflict((key,), "not with groups: each is a process of its own")


def _of_tree(groups: Mapping[str, GroupOptions], group_of: Mapping[str, str | None]) -> Iterator[Conflict]:
    for name, group in groups.items():
        at = ("groups", name)
        if name in ("all", *group_of) or not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
            yield Conflict(
                at, 'a group\'s name has letters, digits, "_" and "-" only, and is neither "all" nor that of a job'
            )
        if group.inside is not None and group.inside not in groups:
            yield Conflict((*at, "inside"), unknown("group", group.inside, groups))
        elif name in list(_above(groups, name)):
            yield Conflict((*at, "inside"), f"{name} would lie inside itself")
        has_jobs = name in group_of.values()
        inner = [other for other, inside in groups.items() if inside.inside == name]
        if has_jobs and inner:
            what = f"has jobs, and {inner[0]} inside; the kernel takes processes in the innermost groups only"
            yield Conflict(at, what)
        elif not has_jobs and not inner:
            yield Conflict(at, f'no job is in it; give a job group = "{name}", or leave it out')


def _above(groups: Mapping[str, GroupOptions], name: str) -> Iterator[str]:
    """The groups that it lies in, from the inside out; ends with the first that comes twice."""
    seen: set[str] = set()
    at = groups[name].inside
    while at is not None and at in groups and at not in seen:
        seen.add(at)
        yield at
        at = groups[at].inside


def kept(groups: Mapping[str, GroupOptions], only: Sequence[str]) -> list[str]:
    """These groups and what they lie in or hold, in order."""
    return [
        name
        for name in groups
        if name in only or any(above in only for above in _above(groups, name))
        or any(name in _above(groups, one) for one in only)
    ]  # fmt: skip


def in_groups(
    main: LoadPhase,
    groups: Mapping[str, GroupOptions],
    jobs_of: Mapping[str, list[str]],
    options: CostOptions,
    *,
    ends_with: str | None,
) -> WeightedLoadPhase:
    """The phase with its jobs in these groups.

    Args:
        jobs_of: the engine's jobs of each group that has any. ends_with: the group whose end ends all.
    """
    of_cost = options.io_cost_model is not None or options.io_cost_qos is not None
    shared = any(group.io_weight is not None for group in groups.values())
    shares = entitlements(
        {name: group.inside for name, group in groups.items()},
        {name: group.io_weight for name, group in groups.items()},
    )
    members = [WeightedGroup(name=name, weight=shares[name], jobs=jobs) for name, jobs in jobs_of.items()]
    made: list[dict[str, Any]] = [{"name": name, **group.model_dump()} for name, group in groups.items()]
    return WeightedLoadPhase(
        name=main.name,
        measured=True,
        load={**main.load, "cut_transient": False},
        controller="cost" if of_cost else "auto" if shared else "none",
        members=members,
        cost_model=options.io_cost_model,
        cost_qos=options.io_cost_qos,
        groups=[ControlGroup(**group) for group in made],
        ends_with=ends_with,
    )
