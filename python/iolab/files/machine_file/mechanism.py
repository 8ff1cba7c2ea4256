"""What the simulated machine has mechanisms for and what not, by a phase alone; the model itself refuses the
rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from iolab.base.plain_text import counted, listed
from iolab.domain import native_model
from iolab.domain import native_types as native
from iolab.domain.simulated_machine import InvalidMachine, cpu_count, is_detailed, scheduler_of, with_groups
from iolab.domain.trial import LoadPhase, MetadataPhase, Phase, SortPhase, WeightedLoadPhase
from iolab.domain.trial.control_group import KEYS_EVERYWHERE

_PROBES = ("block", "extents", "io_cost")
"""The probes that any simulated machine has."""
_PROBES_OF_DETAILED_CPUS = ("cpu", "counters")
_SIMPLE_CPUS = "the machine's CPUs have no places; it takes a [cpus] table with topology (docs/reference/machines.md)"
_MAKES_FILES = 'filesystem = { kind = "xfs" }, ext2, ext3 or ext4 of drive 0'
_FILES_MADE_IN = ("xfs", "ext2", "ext3", "ext3_windows", "ext4")
_SHOWS_SWITCHES = 'filesystem = { kind = "xfs" } of drive 0'
_NO_MECHANISM = "the simulated machine has no mechanism for"
_KINDS = {
    "command": ("kind", "running programs"),
    "commands": ("kind", "running programs"),
    "fio": ("runner", 'fio itself; set runner = "iolab"'),
}
"""The option to blame for phases that no simulated machine runs, and what there is no mechanism for."""
_OF_GROUPS: dict[
    Literal["sqpoll", "uncached", "atomic_writes", "hybrid_poll", "registered_waits", "nowait_reads"], str
] = {
    "sqpoll": "a kernel thread that submits",
    "uncached": "I/O that leaves the page cache at once",
    "atomic_writes": "atomic writes",
    "hybrid_poll": "hybrid polling",
    "registered_waits": "registered waits",
    "nowait_reads": "reads that do not wait",
}

_ALIKE = {"libaio": "io_uring", "pvsync": "psync"}
"""Engines that the model has at the same cost as another."""
_UNREAD_OF_GROUPS = ("fixed_buffers", "registered_files", "fresh_data", "sqpoll_cpu")


@dataclass(frozen=True)
class Refusal:
    """Why a simulated machine cannot run a phase, and which option of the workload is to blame."""

    key: str
    """The option to blame."""
    what: str
    job: str | None = None
    """Whose option it is; None: the workload's."""


def used(phases: Sequence[Phase], machine: native.MachineFile) -> frozenset[str]:
    """The mechanisms that decide what the phases come to on this machine, in words: schedulers, devices, caches,
    filesystems, mounts, CPUs."""
    found = {"detailed CPUs" if is_detailed(machine) else "simple CPUs"}
    loads = [phase for phase in phases if isinstance(phase, LoadPhase)]
    if any(isinstance(phase, MetadataPhase) for phase in phases):
        kind = str(_filesystem_of(machine, 0))
        found.add(f"metadata of {'XFS' if kind == 'xfs' else kind}")
    if any(isinstance(phase, SortPhase) for phase in phases):
        found.add("memory pressure")
    places = {file.get("place") or 0 for phase in loads for file in phase.load["files"]}
    for place in places:
        found |= _of_drive(machine, place) if place < len(machine["drives"]) else {"NFS over RDMA"}
    if any(not group["direct"] for phase in loads for group in phase.load["groups"]):
        found.add(f"page cache of {_series(machine['kernel'])}")
        filesystems = [drive.get("filesystem") for drive in machine["drives"]]
        found |= {f"{filesystem['kind']} files" for filesystem in filesystems if filesystem is not None}
    return frozenset(found)


def _of_drive(machine: native.MachineFile, place: int) -> set[str]:
    drive = machine["drives"][place]
    scheduler = scheduler_of(drive).get("name")
    named = f"scheduler {scheduler}" if scheduler else f"default scheduler of {_series(machine['kernel'])}"
    return {named, f"{drive['device']['kind']} device"}


def _series(kernel: str) -> str:
    """`2.6` of `2.6.35-rc5`, `6` of `6.1`: within it the caches are much alike."""
    major, minor, *_ = f"{kernel}.0".split(".")
    return f"{major}.{minor}" if int(major) < 3 else major


def probe_refused(name: str, machine: native.MachineFile) -> str | None:
    """Why this machine has no such probe; None: it has."""
    if name in _PROBES:
        return None
    if name == "nfs":
        return None if machine.get("mounts") else "the machine has no [[mounts]]"
    if name == "switches":
        if _filesystem_of(machine, 0) != "xfs":
            return f"only where files are made: {_SHOWS_SWITCHES}"
        return None if is_detailed(machine) else _SIMPLE_CPUS
    if name not in _PROBES_OF_DETAILED_CPUS:
        known = ", ".join((*_PROBES, "nfs", "switches", *_PROBES_OF_DETAILED_CPUS))
        return f"the simulated machine has no such probe; there are: {known}"
    return None if is_detailed(machine) else _SIMPLE_CPUS


def unread(machine: native.MachineFile, phases: Sequence[Phase], keys: Sequence[str]) -> dict[str, str | None]:
    """The `keys` of the machine's file (dotted paths) that nothing reads while the phases run, each with the condition
    under which it would be read; None: never. The model determines it, for phases that it can run
    (crates/model/stack/src/key_reader.rs)."""
    if not keys:
        return {}
    return native_model.unread_keys(machine, [_as_used(phase) for phase in phases], keys)


def _as_used(phase: Phase) -> dict[str, object]:
    if isinstance(phase, LoadPhase):
        return {"kind": "load", **phase.load}
    return {"kind": phase.kind, **(phase.metadata if isinstance(phase, MetadataPhase) else {})}


def caches_files(phases: Sequence[Phase]) -> bool:
    """Whether a measured phase does anything but direct I/O."""
    loads = [phase for phase in phases if phase.measured and isinstance(phase, LoadPhase)]
    others = any(phase.measured and not isinstance(phase, LoadPhase) for phase in phases)
    return others or any(not group["direct"] for phase in loads for group in phase.load["groups"])


def as_read(phase: Phase, machine: native.MachineFile) -> object:
    """The phase without what this machine does not read of it: phases that are equal so come to the same."""
    if not isinstance(phase, LoadPhase):
        return phase
    polls = any(drive.get("queue", {}).get("io_poll") for drive in machine["drives"])
    groups = [_group_as_read(group, polls=polls) for group in phase.load["groups"]]
    cached = any(not group["direct"] for group in phase.load["groups"])
    load = {**phase.load, "groups": groups, "drop_caches": phase.load["drop_caches"] and cached}
    return phase.model_copy(update={"load": load})


def _group_as_read(group: native.GroupSpec, *, polls: bool) -> dict[str, object]:
    """Rings differ from io_submit in who syncs, and not in what a call costs."""
    syncs = any(
        job.get("sync") is not None or job["sync_at_end"] or job.get("dsync_every") or job.get("osync_every")
        for job in group["jobs"]
    )
    alike = _ALIKE.get(group["engine"], group["engine"]) if not syncs else group["engine"]
    kept = {key: value for key, value in group.items() if key not in _UNREAD_OF_GROUPS}
    return {**kept, "engine": alike, "poll": group["poll"] and polls}


def refused(phase: Phase, machine: native.MachineFile) -> Iterator[Refusal]:
    """Each thing in the phase that cannot be run on this machine, which the model has checked."""
    if phase.kind in _KINDS:
        key, what = _KINDS[phase.kind]
        yield Refusal(key, f"{_NO_MECHANISM} {what}")
        return
    if isinstance(phase, MetadataPhase):
        yield from _of_metadata(phase, machine)
        return
    if isinstance(phase, SortPhase):
        yield from _of_sort(phase, machine)
        return
    assert isinstance(phase, LoadPhase)
    own = list(_of_load(phase, machine))
    yield from own
    if phase.measured and not own:
        yield from _by_the_model(phase.load, machine)


def _of_load(phase: LoadPhase, machine: native.MachineFile) -> Iterator[Refusal]:
    if phase.verifies:
        yield Refusal("verify", f"{_NO_MECHANISM} data: nothing that is written can be read back")
    if isinstance(phase, WeightedLoadPhase):
        yield from _of_controller(phase, machine)
    for group in phase.load["groups"]:
        yield from _of_group(group, machine)
        yield from _of_depth(group) if phase.measured else ()
    yield from _of_places(phase, machine)


def _by_the_model(load: native.Phase, machine: native.MachineFile) -> Iterator[Refusal]:
    """What the model itself refuses of a load, by the option of the same name."""
    try:
        native_model.check_load(machine, load)
    except ValueError as error:
        wrong = InvalidMachine.from_native(error)
        yield Refusal(wrong.key.rpartition(".")[2], wrong.what, _user_of(wrong.path, load))


def _user_of(path: tuple[str, ...], load: native.Phase) -> str | None:
    """Whose key of a load that is: the group's, or that of the first group that has the file."""
    match path:
        case ("groups", number, *_):
            return _job_of(load["groups"][int(number)])
        case ("files", number, *_):
            users = (group for group in load["groups"] if any(int(number) in job["files"] for job in group["jobs"]))
            return next(map(_job_of, users), None)
    return None


def holes(phases: Sequence[Phase], machine: native.MachineFile) -> Iterator[Refusal]:
    """Jobs that only read files of a filesystem to which none of the phases writes: their reads would find holes."""
    loads = [phase.load for phase in phases if isinstance(phase, LoadPhase)]
    if len(loads) < len(phases):
        return
    jobs = [(load, group, job) for load in loads for group in load["groups"] for job in group["jobs"]]
    written = {load["files"][file]["path"] for load, _, job in jobs if job["read_share"] < 1 for file in job["files"]}
    for load, group, job in jobs:
        files = [load["files"][file] for file in job["files"]]
        on = [_filesystem_of(machine, file.get("place") or 0) for file in files]
        does_io = group["engine"] != "null" and job.get("replay") is None
        if does_io and all(on) and not any(file["path"] in written for file in files):
            what = f"false on a drive with {on[0]}: nothing writes the files, so that reads would find holes"
            yield Refusal("layout", f"{what}; leave it out, or read a drive without a filesystem", _job_of(group))


def _of_places(phase: LoadPhase, machine: native.MachineFile) -> Iterator[Refusal]:
    """Files' places count drives first, then mounts."""
    drives, mounts = len(machine["drives"]), len(machine.get("mounts", ()))
    places = [file.get("place") or 0 for file in phase.load["files"]]
    most = max(places, default=0)
    if most >= drives + mounts:
        here = f"{drives}, from 0" if not mounts else f"{drives} and {counted(mounts, 'mount')}, from 0"
        yield Refusal("devices", f"uses drive {most}, the machine has {here}")
        return
    for group in phase.load["groups"]:
        own = [places[file] for job in group["jobs"] for file in job["files"]]
        if not group["direct"] and max(own, default=0) >= drives:
            what = f"{_NO_MECHANISM} buffered I/O on a mount; set direct = true"
            yield Refusal("direct", what, _job_of(group))


def _of_metadata(phase: MetadataPhase, machine: native.MachineFile) -> Iterator[Refusal]:
    if _filesystem_of(machine, 0) not in _FILES_MADE_IN:
        yield Refusal("kind", f"{_NO_MECHANISM} making files, except with {_MAKES_FILES}")
        return
    threads = phase.metadata["threads"]
    if any(thread["place"] > 0 for thread in threads):
        yield Refusal("devices", "the model makes files on drive 0 only")
    if phase.drop_caches:
        yield Refusal("drop_caches", f"{_NO_MECHANISM} reading directories and inodes back")


def _filesystem_of(machine: native.MachineFile, drive: int) -> str | None:
    drives = machine["drives"]
    filesystem = drives[drive].get("filesystem") if drive < len(drives) else None
    return None if filesystem is None else str(filesystem["kind"])


def _of_sort(phase: SortPhase, machine: native.MachineFile) -> Iterator[Refusal]:
    missing = [f"[{table}]" for table in ("memory", "swap") if machine.get(table) is None]
    if missing:
        yield Refusal("kind", f"sorting more than there is memory takes a machine with {' and '.join(missing)}")
    if phase.swappiness is not None:
        yield Refusal("swappiness", f"{_NO_MECHANISM} swappiness, which its kernels of 2003 do not have")
    if phase.cpus is not None:
        yield Refusal("cpus", f"{_NO_MECHANISM} choosing a process's CPUs")


def _of_groups(phase: WeightedLoadPhase) -> Iterator[Refusal]:
    """Of groups that a mix makes, the model has one level, weights and limits."""
    loads = [(phase.group_of[group["jobs"][0]["name"]], group) for group in phase.load["groups"]]
    polling = {name for name, group in loads if group["poll"]}
    buffered = {
        name for name, group in loads if not group["direct"] and any(job["read_share"] < 1 for job in group["jobs"])
    }
    by_cost = "io_cost" if phase.controller == "cost" else None
    for group in phase.control_groups:
        unknown = sorted(set(group.given) - KEYS_EVERYWHERE)
        if group.inside is not None:
            yield Refusal("groups", f"{_NO_MECHANISM} groups inside groups ({group.name} inside {group.inside})")
        elif unknown:
            yield Refusal(
                "groups",
                f"{_NO_MECHANISM} {unknown[0]} of a group ({group.name}); it has {listed(sorted(KEYS_EVERYWHERE))}",
            )
        else:
            keys = {*group.given, by_cost}
            yield from _of_limits(group.name, keys, buffered=group.name in buffered, polling=group.name in polling)


_LIMITS = {"io_max": "limits", "io_latency": "a latency", "io_prio_class": "the class", "io_cost": "the cost"}
"""What such a key of a group, or of the mix, is in words."""


def _of_limits(group: str, keys: AbstractSet[str | None], *, buffered: bool, polling: bool) -> Iterator[Refusal]:
    for key in (key for key in _LIMITS if key in keys):
        if buffered:
            what = f"{_LIMITS[key]} of buffered writes ({key} of {group}); say direct = true, or leave one of them out"
            yield Refusal("groups", f"{_NO_MECHANISM} {what}")
        elif polling:
            what = f"{_LIMITS[key]} of a group that polls ({key} of {group}); leave poll or {key} out"
            yield Refusal("groups", f"{_NO_MECHANISM} {what}")


def _of_controller(phase: WeightedLoadPhase, machine: native.MachineFile) -> Iterator[Refusal]:
    yield from _of_groups(phase)
    if phase.controller in ("bfq", "cfq"):
        names = [scheduler_of(drive).get("name") for drive in machine["drives"]]
        others = [name for name in names if name not in (None, phase.controller)]
        if others:
            yield Refusal("controller", f"{phase.controller} enforces no weights, the drive's scheduler is {others[0]}")
    elif phase.controller == "auto" and not _enforces_weights(phase, machine):
        instead = "io_cost_model or io_cost_qos" if phase.groups else 'controller = "cost" or "none"'
        what = f"nothing enforces weights here: take scheduler bfq, or cfq from 2.6.33 on, or set {instead}"
        yield Refusal("groups" if phase.groups else "weights", what)


def _enforces_weights(phase: WeightedLoadPhase, machine: native.MachineFile) -> bool:
    """Groups of one weight need no enforcement."""
    if len({group.io_weight for group in phase.control_groups}) == 1:
        return True
    in_groups = phase.model_copy(
        update={
            "load": {**phase.load, "groups": [{**group, "cgroup": group["name"]} for group in phase.load["groups"]]}
        }
    )
    weight = "cgroups.0.weight"
    return weight not in unread(with_groups(machine, [phase]), [in_groups], [weight])


def _of_group(group: native.GroupSpec, machine: native.MachineFile) -> Iterator[Refusal]:
    job = _job_of(group)
    if group["engine"] == "mmap":
        yield Refusal("engine", f"{_NO_MECHANISM} page faults (mmap)", job)
    elif group["engine"] == "io_uring_cmd":
        yield Refusal("engine", f"{_NO_MECHANISM} NVMe commands; take io_uring", job)
    elif group["engine"] == "null":
        yield Refusal("engine", "null does no I/O, there is nothing to model", job)
    elif not group["direct"] and machine.get("memory") is None:
        yield Refusal("direct", "the machine has no [memory], so there is no page cache to go through", job)
    if (cpus := group.get("cpus")) is not None:
        yield from _of_cpus(cpus, machine, job)
    for key, what in _OF_GROUPS.items():
        if group.get(key):
            yield Refusal(key, f"{_NO_MECHANISM} {what}", job)


def _of_cpus(cpus: list[int], machine: native.MachineFile, job: str | None) -> Iterator[Refusal]:
    if not is_detailed(machine):
        yield Refusal("cpus", _SIMPLE_CPUS, job)
    elif missing := [cpu for cpu in cpus if cpu >= cpu_count(machine)]:
        yield Refusal("cpus", f"CPU {missing[0]} given; the machine has 0 to {cpu_count(machine) - 1}", job)


def _of_depth(group: native.GroupSpec) -> Iterator[Refusal]:
    deepest = max(job["queue_depth"] for job in group["jobs"])
    if group["engine"] in ("io_uring", "libaio") and not group["direct"] and deepest > 1:
        what = f"{_NO_MECHANISM} buffered I/O with queue_depth = {deepest}; set direct = true, or queue_depth = 1"
        yield Refusal("direct", what, _job_of(group))


def _job_of(group: native.GroupSpec) -> str:
    """`readers.3` is the fourth copy of the job readers."""
    return str(group["name"]).partition(".")[0]
