"""Control groups of a load: a tree, whose leaves hold jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from iolab.domain.trial.target import Spec

WEIGHT_DEFAULT = 100
"""The kernel's, of a group that nobody gave one (block/bfq-cgroup.c, block/blk-iocost.c)."""

KEYS_EVERYWHERE = frozenset({"io_latency", "io_max", "io_prio_class", "io_weight"})
"""What guest and simulated machines do of a mix's groups, which lie in no other there."""

IoPriorityClass = Literal["no-change", "promote-to-rt", "restrict-to-be", "idle"]


def _unless_given() -> Any:
    return Field(default=None, exclude_if=lambda value: value is None)


class ControlGroup(Spec):
    """One group, and what the kernel is told of it. None: as the kernel makes it."""

    name: str
    inside: str | None = _unless_given()
    """The group that it lies in; None: in none of the load's."""
    io_max: dict[str, int] | None = _unless_given()
    """Bytes or operations per second, by key as of the control `io_max`."""
    io_weight: int | None = _unless_given()
    io_latency: int | None = _unless_given()
    """The target, in nanoseconds."""
    io_prio_class: IoPriorityClass | None = _unless_given()
    memory_max: int | None = _unless_given()
    memory_high: int | None = _unless_given()
    """Both in bytes."""
    cpu_weight: int | None = _unless_given()

    @property
    def given(self) -> dict[str, Any]:
        """What the kernel is told, by key."""
        return self.model_dump(exclude={"name", "inside"}, exclude_none=True)


def entitlements(parents: Mapping[str, str | None], weights: Mapping[str, int | None]) -> dict[str, float]:
    """The share of the device that each leaf is entitled to; together 1. At each level of the tree, groups share what
    their parent has, in the proportion of their weights.

    Args:
        parents: of each group, by name; no group lies inside itself. weights: None: the kernel's default.
    """
    shares: dict[str, float] = {}

    def share_out(parent: str | None, share: float) -> None:
        siblings = {name: weights[name] or WEIGHT_DEFAULT for name, own in parents.items() if own == parent}
        total = sum(siblings.values())
        for name, weight in siblings.items():
            share_out(name, share * weight / total)
        if not siblings and parent is not None:
            shares[parent] = share

    share_out(None, 1.0)
    return shares


def from_the_top(groups: Sequence[ControlGroup]) -> list[ControlGroup]:
    """The same groups, each after the one that it lies in."""
    left = list(groups)
    found: list[ControlGroup] = []
    while left:
        made = {group.name for group in found}
        ready = [group for group in left if group.inside is None or group.inside in made]
        assert ready, "a group lies inside itself"
        found += ready
        left = [group for group in left if group not in ready]
    return found
