"""Who shares a device by weights here, and the control groups that set them.

- bfq: the scheduler shares its queue (block/bfq-cgroup.c): blkio.bfq.weight in version 1, io.bfq.weight in version 2.
- cfq: the same of kernels before 5.0: blkio.weight.
- cost: io.cost shares what its model says the device can do (block/blk-iocost.c); version 2 only: io.weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iolab.base.errors import MachineError
from iolab.machines.system import cgroup, io_cost, scheduler
from iolab.machines.system.block import BlockDevice, shown
from iolab.machines.system.cgroup import Hierarchy
from iolab.machines.system.undo import UndoJournal

WITHOUT = 'run the groups without weights: controller = "none" of iostest, no io_weight in a mix'


@dataclass(frozen=True)
class Sharing:
    """Where a group's weight goes."""

    hierarchy: Hierarchy
    file: str
    notes: list[str]


def prepare(
    controller: str,
    devices: Sequence[tuple[str, BlockDevice | None]],
    undo: UndoJournal,
    *,
    cost_model: str | None = None,
    cost_qos: str | None = None,
) -> Sharing:
    """Who shares the target's devices; io.cost is switched on if it is the one, journaled first.

    Args:
        controller: auto, bfq, cfq or cost.
        devices: each with its name, as a user knows it.
        cost_model: parameters of io.cost's model, if that is who shares; None: the kernel's. cost_qos: likewise.

    Raises:
        MachineError: this cannot be enforced here; states what is missing and how to get it.
    """
    hierarchy = cgroup.find("blkio", "io")
    if hierarchy is None:
        raise cgroup.missing("weights need the I/O controller", "blkio", "io")
    found: dict[str, list[str]] = {}
    for label, device in devices:
        if device is None:
            raise MachineError(
                "weights need a block device with a queue, and this target has none", where=label, remedy=WITHOUT
            )
        disk = device.disk
        chosen = _choose(hierarchy, disk) if controller == "auto" else controller
        notes = found.setdefault(_FILES[chosen](hierarchy, disk), [])
        if chosen == "cost":
            notes += io_cost.enable(hierarchy.root, disk, cost_model, undo, qos=cost_qos)
        else:
            notes += _notes(chosen, disk)
    if len(found) > 1:
        raise MachineError(
            "the target's devices do not share by weights in one way", where=", ".join(label for label, _ in devices),
            remedy='give them one scheduler, such as scheduler = "bfq" in the setting',
        )  # fmt: skip
    ((file, notes),) = found.items()
    return Sharing(hierarchy, file, list(dict.fromkeys(notes)))


def _choose(hierarchy: Hierarchy, disk: BlockDevice) -> str:
    in_force = _scheduler(disk)
    if in_force in ("bfq", "cfq"):
        return in_force
    if hierarchy.version == 2 and io_cost.is_there(hierarchy.root):
        return "cost"
    instead = (
        "this kernel has no io.cost"
        if hierarchy.version == 2
        else f"io.cost needs control groups version 2, and here {hierarchy.root} is version 1"
    )
    raise MachineError(
        f"nothing shares {disk.name} by weights: its scheduler is {in_force}, and {instead}",
        where=str(disk.queue / "scheduler"),
        remedy=f"{_get_bfq(disk)}; or {WITHOUT}",
    )


def _bfq_file(hierarchy: Hierarchy, disk: BlockDevice) -> str:
    in_force = _scheduler(disk)
    if in_force != "bfq":
        raise MachineError(
            f"controller bfq needs the scheduler bfq, and {disk.name} has {in_force}",
            where=str(disk.queue / "scheduler"),
            remedy=f"{_get_bfq(disk)}; or {WITHOUT}",
        )
    return "blkio.bfq.weight" if hierarchy.version == 1 else "io.bfq.weight"


def _cfq_file(hierarchy: Hierarchy, disk: BlockDevice) -> str:
    in_force = _scheduler(disk)
    if in_force != "cfq" or hierarchy.version != 1:
        raise MachineError(
            f"controller cfq needs the scheduler cfq and version 1 of control groups; here are {in_force} and "
            f"version {hierarchy.version}",
            where=str(disk.queue / "scheduler"),
            remedy=f'cfq left the kernel with 5.0: use controller = "bfq"; or {WITHOUT}',
        )
    return "blkio.weight"


def _cost_weight_file(hierarchy: Hierarchy, disk: BlockDevice) -> str:
    if hierarchy.version == 1:
        raise MachineError(
            "controller cost needs version 2 of control groups; here the I/O controller is mounted as version 1",
            where=str(hierarchy.root),
            remedy=f"boot with cgroup_no_v1=blkio (systemd: systemd.unified_cgroup_hierarchy=1); or {WITHOUT}",
        )
    if not io_cost.is_there(hierarchy.root):
        raise MachineError(
            "controller cost: this kernel has no io.cost",
            where=str(hierarchy.root / io_cost.QOS),
            remedy=f"build it with CONFIG_BLK_CGROUP_IOCOST=y; or {WITHOUT}",
        )
    return "io.weight"


_FILES: dict[str, Callable[[Hierarchy, BlockDevice], str]] = {
    "bfq": _bfq_file,
    "cfq": _cfq_file,
    "cost": _cost_weight_file,
}
"""The file of a group that takes its weight; MachineError when nothing would come of writing it."""


def _notes(chosen: str, disk: BlockDevice) -> list[str]:
    low_latency = disk.queue / "iosched" / "low_latency"
    if chosen == "bfq" and low_latency.exists() and shown(low_latency) == "1":
        return [
            "bfq raises the weight of queues that look interactive (low_latency = 1); "
            'with scheduler = { name = "bfq", low_latency = 0 } the groups\' weights alone count'
        ]
    return []


def _scheduler(disk: BlockDevice) -> str:
    return shown(disk.queue / "scheduler")


def _get_bfq(disk: BlockDevice) -> str:
    setting = 'set scheduler = "bfq" in the setting'
    return setting if "bfq" in scheduler.available(disk) else f"load bfq (sudo modprobe bfq) and {setting}"
