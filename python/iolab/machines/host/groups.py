"""The control groups of a load: made before anything is laid out, each with what the kernel is told of it.

A group is a directory in each hierarchy that any of the groups needs: of version 2 there is one, of version 1 one for
each controller. Sources: the kernel's Documentation/admin-guide/cgroup-v2.rst ("io.max", "io.latency", "io.prio.class",
"memory.max", "cpu.weight") and cgroup-v1/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolab.base.errors import MachineError
from iolab.domain.trial import ControlGroup, Phase, WeightedLoadPhase
from iolab.domain.trial.control_group import from_the_top
from iolab.machines.host import weights
from iolab.machines.system import cgroup

if TYPE_CHECKING:
    from iolab.machines.host.site import TargetPlace
    from iolab.machines.system.cgroup import Cgroup, Hierarchy
    from iolab.machines.system.undo import UndoJournal

IO, MEMORY, CPU = ("blkio", "io"), ("memory", "memory"), ("cpu", "cpu")
"""Controllers, as each version calls them."""
IO_MAX = {
    "read": ("blkio.throttle.read_bps_device", "rbps"),
    "write": ("blkio.throttle.write_bps_device", "wbps"),
    "read_iops": ("blkio.throttle.read_iops_device", "riops"),
    "write_iops": ("blkio.throttle.write_iops_device", "wiops"),
}
"""By key: the file of version 1, and the word in io.max of version 2."""
PRESSURE = "io.pressure"
AS_VERSION_2 = "boot with cgroup_no_v1=all (systemd: systemd.unified_cgroup_hierarchy=1)"

Writes = Iterator[tuple[str, str]]
"""Files of a group, with what is written to each."""


def io_max(version: int, value: dict[str, int], device: str) -> Writes:
    """Args: device: its number, such as 8:0."""
    if version == 2:
        yield "io.max", f"{device} {' '.join(f'{IO_MAX[key][1]}={limit}' for key, limit in value.items())}"
        return
    for key, limit in value.items():
        yield IO_MAX[key][0], f"{device} {limit}"


def _io_latency(version: int, value: int, device: str) -> Writes:
    yield "io.latency", f"{device} target={value // 1000}"


def _io_prio_class(version: int, value: str, device: str) -> Writes:
    yield f"{'io' if version == 2 else 'blkio'}.prio.class", value


def _memory_max(version: int, value: int, device: str) -> Writes:
    yield "memory.max" if version == 2 else "memory.limit_in_bytes", str(value)


def _memory_high(version: int, value: int, device: str) -> Writes:
    yield "memory.high", str(value)


def _cpu_weight(version: int, value: int, device: str) -> Writes:
    # Version 1 counts a group without one as 1024, version 2 as 100.
    yield ("cpu.weight", str(value)) if version == 2 else ("cpu.shares", str(max(2, value * 1024 // 100)))


@dataclass(frozen=True)
class _Key:
    controller: tuple[str, str]
    writes: Callable[[int, Any, str], Writes]
    config: str
    """The kernel's configuration that grants it."""
    per_device: bool = False
    version_2_only: bool = False


_KEYS = {
    "io_max": _Key(IO, io_max, "CONFIG_BLK_DEV_THROTTLING", per_device=True),
    "io_latency": _Key(IO, _io_latency, "CONFIG_BLK_CGROUP_IOLATENCY", per_device=True, version_2_only=True),
    "io_prio_class": _Key(IO, _io_prio_class, "CONFIG_BLK_CGROUP_IOPRIO"),
    "memory_max": _Key(MEMORY, _memory_max, "CONFIG_MEMCG"),
    "memory_high": _Key(MEMORY, _memory_high, "CONFIG_MEMCG", version_2_only=True),
    "cpu_weight": _Key(CPU, _cpu_weight, "CONFIG_FAIR_GROUP_SCHED"),
}
"""Beside io_weight, whose file depends on who shares the device (weights.py)."""


def writes(key: str, version: int, value: Any, device: str) -> Writes:
    """What the key of a group comes to in that version. `device`: its number, such as 8:0."""
    return _KEYS[key].writes(version, value, device)


def is_of_device(key: str) -> bool:
    """Whether the kernel is told so of each device."""
    return _KEYS[key].per_device


@dataclass(frozen=True)
class Groups:
    """The control groups of a phase, and notes on them."""

    of: dict[str, tuple[Cgroup, ...]]
    """By name: the group in each hierarchy."""
    notes: list[str] = field(default_factory=list)

    def stalled_us(self) -> dict[str, int]:
        """By group: for how long some of its processes have waited for I/O so far, as far as the kernel shows it."""
        found = {}
        for name, cgroups in self.of.items():
            shown = [text for one in cgroups if (text := one.get(PRESSURE))]
            if shown:
                found[name] = int(shown[0].splitlines()[0].rpartition("total=")[2])
        return found


NONE = Groups({})


def check(phases: Iterable[Phase]) -> None:
    """What this machine has no hierarchy or permission for is refused before anything is made.

    Raises:
        MachineError: names the group, what is missing and what grants it.
    """
    for phase in phases:
        if phase.control_groups and (shows := cgroup.version_2() or cgroup.find(*IO)) is not None:
            cgroup.require(shows)
        if isinstance(phase, WeightedLoadPhase) and phase.controller != "none":
            cgroup.require(_hierarchy("weights need the I/O controller", IO))
        for group in phase.control_groups:
            for key in group.given:
                if key in _KEYS:
                    _check(group.name, key, _KEYS[key])


def _check(group: str, key: str, asked: _Key) -> None:
    hierarchy = _hierarchy(f"{key} of group {group}", asked.controller)
    if asked.version_2_only and hierarchy.version == 1:
        raise MachineError(
            f"{key} of group {group} needs version 2 of control groups, and here the controller {hierarchy.controller} "
            "is mounted as version 1",
            where=str(hierarchy.root),
            remedy=AS_VERSION_2,
        )
    cgroup.require(hierarchy)


def _hierarchy(what: str, controller: tuple[str, str]) -> Hierarchy:
    found = cgroup.find(*controller)
    if found is None:
        raise cgroup.missing(what, *controller)
    return found


def made(phases: Iterable[Phase], places: Sequence[TargetPlace], undo: UndoJournal) -> dict[str, Groups]:
    """By phase: its control groups. Raises as `make`."""
    return {
        phase.name: make(phase, places, undo)
        for phase in phases
        if isinstance(phase, WeightedLoadPhase) and phase.control_groups
    }


def make(phase: WeightedLoadPhase, places: Sequence[TargetPlace], undo: UndoJournal) -> Groups:
    """The phase's control groups; each step is in the undo journal before it is taken.

    Args:
        places: the target's devices.

    Raises:
        MachineError: the machine cannot do what a group asks for; names what grants it.
    """
    groups = from_the_top(phase.control_groups)
    sharing = None
    if phase.controller != "none":
        devices = [(place.label, place.device) for place in places]
        sharing = weights.prepare(phase.controller, devices, undo, cost_model=phase.cost_model, cost_qos=phase.cost_qos)
    found = _Tree(groups, undo)
    if phase.groups:
        found.show_pressure()
    for group in groups:
        for key, value in group.given.items():
            if key == "io_weight":
                if sharing is not None:
                    found.at(group, sharing.hierarchy).set(sharing.file, str(value))
                continue
            _tell(found, group, key, value, places)
    return Groups(found.of, [] if sharing is None else sharing.notes)


def _tell(tree: _Tree, group: ControlGroup, key: str, value: Any, places: Sequence[TargetPlace]) -> None:
    asked = _KEYS[key]
    own = tree.at(group, _hierarchy(f"{key} of group {group.name}", asked.controller))
    for device in _numbers(places, f"{key} of group {group.name}") if asked.per_device else [""]:
        for file, text in asked.writes(own.version, value, device):
            if not own.has(file):
                raise MachineError(
                    f"{key} of group {group.name}: this kernel has no {file}",
                    where=str(own.path),
                    remedy=f"run a kernel with {asked.config}=y",
                )
            own.set(file, text)


def _numbers(places: Sequence[TargetPlace], what: str) -> list[str]:
    for place in places:
        if place.device is None:
            raise MachineError(
                f"{what} needs a block device, and this target has none (tmpfs, overlay or network filesystem)",
                where=place.label,
                remedy='use [target] kind = "scratch", or a directory on a disk',
            )
    return [":".join(map(str, place.device.disk.number)) for place in places if place.device is not None]


class _Tree:
    """The groups in every hierarchy that one of them needs, and in version 2 for what the kernel shows of each."""

    def __init__(self, groups: Sequence[ControlGroup], undo: UndoJournal) -> None:
        self._groups = groups
        self._undo = undo
        self._enabled: set[tuple[Path, str]] = set()
        self.of: dict[str, tuple[Cgroup, ...]] = {group.name: () for group in groups}
        self._by_root: dict[Path, dict[str, Cgroup]] = {}

    def show_pressure(self) -> None:
        """Has the groups in version 2, which shows how long each waits even if version 1 has the controllers."""
        if (shows := cgroup.version_2()) is not None and (shows.root / PRESSURE).exists():
            self._grow(shows)

    def at(self, group: ControlGroup, hierarchy: Hierarchy) -> Cgroup:
        """The group where this controller is."""
        if hierarchy.root not in self._by_root:
            self._grow(hierarchy)
        own = self._by_root[hierarchy.root]
        if hierarchy.version == 2 and (hierarchy.root, hierarchy.controller) not in self._enabled:
            self._enabled.add((hierarchy.root, hierarchy.controller))
            above = [hierarchy.parent, *(own[name].path for name in self._with_groups())]
            for parent in above:
                cgroup.enable(replace(hierarchy, parent=parent), self._undo)
        return own[group.name]

    def _grow(self, hierarchy: Hierarchy) -> None:
        own = self._by_root[hierarchy.root] = {}
        for group in self._groups:
            parent = hierarchy.parent if group.inside is None else own[group.inside].path
            own[group.name] = cgroup.make(replace(hierarchy, parent=parent), group.name, self._undo)
            self.of[group.name] += (own[group.name],)

    def _with_groups(self) -> list[str]:
        """The groups that hold others, from the top."""
        inside = {group.inside for group in self._groups}
        return [group.name for group in self._groups if group.name in inside]
