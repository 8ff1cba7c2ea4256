"""A trial as the steps of the guest's agent (crates/measure/guest-agent/src/step.rs), and what they need."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, cast

from iolab import _native
from iolab.base.errors import InputError
from iolab.base.strict_json import dumps
from iolab.domain import control, layer
from iolab.domain import native_types as native
from iolab.domain.filesystem_options import checked_mount_options
from iolab.domain.trial import (
    LoadPhase,
    MetadataPhase,
    Phase,
    ScratchTarget,
    SortPhase,
    TimedCommandPhase,
    Trial,
    WeightedLoadPhase,
)
from iolab.domain.trial.trial import derive_seed
from iolab.domain.workload.trace import copy_choice
from iolab.machines.guest import commands, groups, layers, limits, programs, sorts
from iolab.machines.guest.modules import Modules
from iolab.machines.guest.steps import Plan
from iolab.machines.host import metadata
from iolab.machines.host.site import TargetPlace, in_regions, located, place_of, sends_commands
from iolab.machines.system.filesystem import FILESYSTEMS, making

_MODULES_OF = {
    "null_blk": ("null_blk",),
    "scsi_debug": ("sd_mod", "scsi_debug"),
    "virtio-blk": ("virtio_pci", "virtio_blk"),
    "nvme": ("nvme",),
}
_LETTERED = {"scsi_debug": "sd", "virtio-blk": "vd"}
"""What the names of drives begin with that have letters for numbers."""
_FILESYSTEMS = {"ext2": ("ext2", "ext4"), "ext3": ("ext3", "ext4")}
"""Modules of which each has the filesystem, if it has not the filesystem's name."""
_SCHEDULERS = {"bfq": "bfq", "kyber": "kyber-iosched", "mq-deadline": "mq-deadline"}
_AWAIT_S = 60.0
_MIB = 1 << 20
_NEEDING_MEMORY = {"cache_size", "discard"}
"""The options of null_blk that have an effect only with memory."""
_CONFIGFS = "/sys/kernel/config/nullb"
_ALIGNMENT_NS = 100_000_000
"""Where time is instructions: more than most steps take, and free, as nobody waits for time in which nothing runs."""


def make(trial: Trial, modules: Modules) -> Plan:
    """The steps of a trial, its controls worked into it (`control.amend`).

    Raises:
        InputError: its files do not fit, or something has no meaning there.
        MachineError: the kernel has no such module, or this machine no such mkfs.
    """
    machine, target = trial.guest, trial.target
    assert machine is not None and isinstance(target, ScratchTarget), "an experiment with another target is refused"
    plan = Plan(trial.seed, machine.virtual_time_limit_ns)
    if machine.accelerator == "tcg" and machine.cpus == 1:
        plan.alignment_ns = _ALIGNMENT_NS
    own = {name.replace("-", "_"): dict(given) for name, given in machine.module_parameters.items()}
    if machine.drive == "null_blk":
        own["null_blk"] = {"nr_devices": "0", **own.get("null_blk", {})}
    if machine.drive == "scsi_debug":
        own["scsi_debug"] = {**_scsi_debug(target), **machine.drive_parameters, **own.get("scsi_debug", {})}
    plan.parameters += [f"{name}.{key}={value}" for name, given in own.items() for key, value in given.items()]
    scheduler = str(cast(Any, trial.controls.get("scheduler", {})).get("name"))
    wanted = [*machine.module_parameters, *_MODULES_OF[machine.drive]]
    wanted += [_SCHEDULERS[scheduler]] if scheduler in _SCHEDULERS else []
    takes_devices = any(phase.takes_devices for phase in trial.phases)
    filesystem = None if takes_devices else target.filesystem
    if filesystem is not None:
        having = _FILESYSTEMS.get(filesystem, (filesystem,))
        wanted.append(next(filter(modules.has, having), having[0]))
    if sends_commands(trial.phases) and (machine.drive != "nvme" or filesystem is not None or target.layers):
        raise InputError(
            "engine io_uring_cmd sends commands of NVMe to a drive of its own",
            where="target",
            remedy='say drive = "nvme" in [guest], and filesystem = "none" without layers in [target]',
        )
    wanted += layers.modules_of(layer.read(target.layers), modules)
    plan.load_modules(modules, wanted, own)
    drives = [disk_name(machine.drive, number) for number in range(target.drives)]
    if machine.drive == "null_blk":
        plan.add("mount", source="configfs", place="/sys/kernel/config", filesystem="configfs", options="")
        for drive in drives:
            _make_null_blk(plan, drive, target, null_blk_parameters(trial))
    for drive in drives:
        plan.add("await", path=f"/dev/{drive}", seconds=_AWAIT_S)
    if machine.drive != "scsi_debug":
        for drive in drives:
            plan.add("tags", disk=drive)
    _apply(plan, trial, drives)
    disks = layers.add(plan, target, drives)
    for number, disk in enumerate(disks):
        if filesystem is not None:
            _make_filesystem(plan, target, number, disk)
    is_limited = "io_max" in trial.controls
    if is_limited:
        limits.add(plan, cast(Any, trial.controls["io_max"]), disks)
    for phase in _placed(trial.phases, target, disks):
        if is_limited:
            limits.put_load(plan, inside=phase.measured)
        if isinstance(phase, TimedCommandPhase):
            commands.add(plan, phase, f"{_root(0)}/command", disks[0])
            if not phase.measured:
                plan.add("sync")
        elif isinstance(phase, SortPhase):
            sorts.add(plan, phase, machine, [(f"/dev/{disk}", target.size_bytes) for disk in disks])
        else:
            _run(plan, phase, disks)
    plan.add("symbols", all=False)
    return plan


def disk_name(drive: str, number: int) -> str:
    """As the kernel names the drive with this number."""
    if drive == "null_blk":
        return f"nullb{number}"
    if drive == "nvme":
        return f"nvme{number}n1"
    letters = ""
    while number >= 0:
        letters = chr(ord("a") + number % 26) + letters
        number = number // 26 - 1
    return f"{_LETTERED[drive]}{letters}"


def _scsi_debug(target: ScratchTarget) -> dict[str, str]:
    """A host for each drive, with memory of its own."""
    size = str(-(-target.drive_bytes // _MIB))
    found = {"dev_size_mb": size, "add_host": str(target.drives), "per_host_store": "1"}
    return found | ({} if target.sector_bytes is None else {"sector_size": str(target.sector_bytes)})


def null_blk_parameters(trial: Trial) -> dict[str, str]:
    """What the trial's drives are set to. They keep what is written if somebody reads it: a copy costs what the
    processor's string instructions make of it, which no drive of hardware asks of it."""
    assert trial.guest is not None
    needs = reads_what_it_wrote(trial) or not _NEEDING_MEMORY.isdisjoint(trial.guest.drive_parameters)
    own = {"memory_backed": str(int(needs)), "irqmode": "0", "submit_queues": "1"}
    return {**own, **trial.guest.drive_parameters}


def reads_what_it_wrote(trial: Trial) -> bool:
    """Whether anything of the trial depends on what its drives hold; with KVM, which is for time, it is taken to."""
    assert trial.guest is not None and isinstance(trial.target, ScratchTarget)
    if trial.guest.accelerator == "kvm":
        return True
    if any(each.keeps_metadata for each in layer.read(trial.target.layers)):
        return True
    takes_devices = any(phase.takes_devices for phase in trial.phases)
    has_filesystem = trial.target.filesystem is not None and not takes_devices
    return has_filesystem or any(
        isinstance(phase, SortPhase) or (isinstance(phase, LoadPhase) and phase.load["verify"])
        for phase in trial.phases
    )


def _make_null_blk(plan: Plan, disk: str, target: ScratchTarget, parameters: dict[str, str]) -> None:
    """As in Documentation/block/null_blk.rst."""
    place = f"{_CONFIGFS}/{disk}"
    plan.add("directory", path=place)
    own = {"size": str(-(-target.drive_bytes // _MIB))}
    own |= {} if target.sector_bytes is None else {"blocksize": str(target.sector_bytes)}
    for name, value in {**own, **parameters, "power": "1"}.items():
        plan.add("write", path=f"{place}/{name}", value=value, optional=False)


def _apply(plan: Plan, trial: Trial, disks: Sequence[str]) -> None:
    for name, value in trial.controls.items():
        for template, text in control.CONTROLS[name].on_guest(value) or ():
            paths = {template.format(queue=f"/sys/block/{disk}/queue", disk=f"/sys/block/{disk}") for disk in disks}
            for path in sorted(paths):
                plan.controls[plan.add("write", path=path, value=text, optional=True)] = name


def _make_filesystem(plan: Plan, target: ScratchTarget, number: int, disk: str) -> None:
    name = target.filesystem
    assert name is not None
    # The same in every round: where names lie in directories follows from it.
    own = uuid.UUID(int=derive_seed(0, "filesystem", number), version=4)
    tool, *arguments = making(name, f"/dev/{disk}", target.mkfs_options, str(own))
    path = programs.pack(plan.archive, tool, FILESYSTEMS[name].package)
    plan.add("run", argv=[path, *arguments])
    options = checked_mount_options(name, target.mount_options)
    plan.add("mount", source=f"/dev/{disk}", place=_root(number), filesystem=name, options=options)


def _root(number: int) -> str:
    return f"/target/{number}"


def _placed(phases: Sequence[Phase], target: ScratchTarget, disks: Sequence[str]) -> list[Phase]:
    """With absolute paths: in the drives' filesystems, else in regions of the drives."""
    loads = [phase for phase in phases if isinstance(phase, LoadPhase)]
    files = [file for phase in loads for file in phase.load["files"]]
    last = max(map(place_of, files), default=0)
    if last >= target.devices:
        raise InputError(f"the workload uses device {last}, the target has {target.devices}, from 0", where="target")
    if target.filesystem is not None:
        return [
            phase.with_files([_in_filesystem(file) for file in phase.load["files"]])
            if isinstance(phase, LoadPhase)
            else phase
            for phase in phases
        ]
    placers = [
        in_regions(
            TargetPlace(disk, None, regions=Path(f"/dev/{disk}"), capacity_bytes=target.size_bytes),
            [file for file in files if place_of(file) == number],
            None,
        )
        for number, disk in enumerate(disks)
    ]
    return [
        phase.with_files([placers[place_of(file)](file) for file in phase.load["files"]])
        if isinstance(phase, LoadPhase)
        else phase
        for phase in phases
    ]


def _in_filesystem(file: native.FileSpec) -> native.FileSpec:
    name = PurePosixPath(file["path"] or f"region-{file['base_bytes']}")
    if name.is_absolute() or ".." in name.parts:
        raise InputError(f"the file name {str(name)!r} leaves the target", where="target")
    return located(file, Path(_root(place_of(file))) / name, base_bytes=0, create=True)


def _run(plan: Plan, phase: Phase, disks: Sequence[str]) -> None:
    if isinstance(phase, MetadataPhase):
        drives = 1 + max(thread["place"] for thread in phase.metadata["threads"])
        document = metadata.placed(phase, [Path(_root(number)) for number in range(drives)])
        for directory in dict.fromkeys(thread["directory"] for thread in document["threads"]):
            plan.add("directory", path=str(Path(directory).parent))
        step = plan.add("metadata", phase=document, drop_caches=phase.drop_caches)
    else:
        assert isinstance(phase, LoadPhase), "an experiment with other phases is refused before it runs"
        if isinstance(phase, WeightedLoadPhase):
            phase = groups.add(plan, phase, disks)
        parents = (str(Path(file["path"]).parent) for file in phase.load["files"])
        for parent in dict.fromkeys(parent for parent in parents if parent != "/dev"):
            plan.add("directory", path=parent)
        if isinstance(phase, WeightedLoadPhase) and phase.needs_version_2:
            step = groups.add_members(plan, phase, partial(_with_traces, plan))
        else:
            step = plan.add("load", phase=_with_traces(plan, phase.load))
    plan.phases[step] = phase
    if not phase.measured:
        plan.add("sync")


def _with_traces(plan: Plan, load: native.Phase) -> native.Phase:
    """The load, the traces that it replays read from the guest's own files: tables of their I/Os."""
    groups: list[native.GroupSpec] = []
    for group in load["groups"]:
        jobs: list[native.JobSpec] = []
        for job in group["jobs"]:
            if (replay := job.get("replay")) is not None:
                path = f"/replay/{replay['digest']}.csv"
                if path not in plan.archive:
                    plan.archive.add(path, _native.TraceSchedule.open(dumps(replay["trace"])).table().encode())
                of_copy: native.TraceChoice = {**replay["trace"], **copy_choice(path)}
                job = {**job, "replay": {**replay, "trace": of_copy}}
            jobs.append(job)
        groups.append({**group, "jobs": jobs})
    return {**load, "groups": groups}
