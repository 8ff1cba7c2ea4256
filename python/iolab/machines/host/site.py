"""Where a trial's I/O goes: what a target becomes once it is prepared, and how a phase's file names map to it."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from iolab.base.errors import InputError, MachineError
from iolab.base.plain_text import counted
from iolab.base.quantity import size_in_words
from iolab.domain import native_types as native
from iolab.domain.trial import (
    DeviceIdentity,
    DeviceTarget,
    DirectoryTarget,
    FileTarget,
    LoadPhase,
    Phase,
    ScratchTarget,
    Target,
)
from iolab.machines.system import filesystem, own_file, rights, safety, scratch, state
from iolab.machines.system.beneath import Directory, itself
from iolab.machines.system.block import BlockDevice, device_at, device_under
from iolab.machines.system.mounts import check_keeps_files
from iolab.machines.system.own_directory import make_own_directory
from iolab.machines.system.own_file import OwnFile
from iolab.machines.system.undo import UndoJournal

REGION_ALIGN_BYTES = 1 << 20

Files = list[native.FileSpec]


@dataclass(frozen=True)
class TargetPlace:
    """One of a target's devices, or its one directory or file: either a `directory` for files, or `regions`."""

    label: str
    """The user's name for it, for error lines."""
    device: BlockDevice | None
    """Whose queue the I/O goes through; None if there is none (tmpfs, network)."""
    directory: Directory | None = None
    regions: Path | None = None
    capacity_bytes: int | None = None
    """The capacity of `regions`; None: the target is a file that grows."""
    file: OwnFile | None = None
    """Whether `regions` is a file that is written to."""
    own_directory: Path | None = None
    """A directory of iolab's own, to mount a device in on which phases make filesystems."""
    stays: bool = False
    """When the trial is over: what phases made on the device has to go."""
    filesystem: filesystem.Choice = filesystem.DEFAULT
    """What such phases make by default."""

    known: DeviceIdentity | None = None
    """The identity of a named device, checked before each write to it."""

    @property
    def path(self) -> Path:
        """The directory for files, or the file or node that regions lie in."""
        path = self.directory.path if self.directory else self.regions
        assert path is not None
        return path


@dataclass(frozen=True)
class Site:
    """A prepared target: where the trial's files and regions may be."""

    label: str
    places: list[TargetPlace]
    """One per device of the target, in its order."""
    reads_only_what_is_there: bool = False
    """An existing file or devices that the trial only reads: nothing is laid out."""
    backing_directory: Path | None = None
    """The directory of a scratch device's sparse file: its free space limits the device too."""
    backing_share: float = 1.0
    """Bytes of such files for each byte of the target: more than one if layers keep copies or parity."""
    notes: list[str] = field(default_factory=list)


def prepare(target: Target, phases: Sequence[Phase], undo: UndoJournal, stack: ExitStack) -> Site:
    """Makes the target ready; what it holds on to is released with the stack, what it makes is undone by the journal.

    Raises:
        InputError, MachineError: see `safety` and `scratch`.
    """
    assert target.kind != "drives", "a simulated machine has no place here"
    takes_devices = any(phase.takes_devices for phase in phases)
    if target.kind == "scratch":
        return _scratch(target, undo, bare=takes_devices)
    if target.kind == "device":
        return _devices_to_format(target, undo) if takes_devices else _devices(target, phases, stack)
    if takes_devices:
        raise InputError(
            "the workload makes filesystems, and this is no device",
            where=target.path,
            remedy='use [target] kind = "scratch"',
        )
    return _directory(target, undo) if target.kind == "directory" else _file(target, phases, undo, stack)


def place(site: Site, phases: Sequence[Phase], undo: UndoJournal) -> list[Phase]:
    """The phases with absolute paths, leaving out what must not or need not be done.

    Raises:
        InputError: a path leaves the site, the files do not fit, or a file is to lie on a device that is not there.
        MachineError: a scratch device's backing file cannot grow to what is laid out.
    """
    kept = [phase for phase in phases if phase.measured or not site.reads_only_what_is_there]
    _check_places(site, kept)
    if sends_commands(kept):
        for each in site.places:
            if each.regions is None or each.device is None or not _is_namespace(each.device):
                raise InputError("engine io_uring_cmd sends commands of NVMe", where=each.label, remedy=NAMESPACE)
    _check_backing_space(site, kept)
    _check_directories_space(site, kept)
    placers = [
        _in_directory(place.directory, place.label)
        if place.directory is not None
        else in_regions(place, [file for file in _files(kept) if place_of(file) == number], undo)
        for number, place in enumerate(site.places)
    ]
    return [
        phase.with_files([placers[place_of(file)](file) for file in phase.load["files"]])
        if isinstance(phase, LoadPhase)
        else phase
        for phase in kept
    ]


def place_of(file: native.FileSpec) -> int:
    """The number of the place that a phase's file is to lie on."""
    return file.get("place") or 0


NAMESPACE = 'name a whole namespace, such as /dev/nvme0n1, as [target] kind = "device", or take engine = "io_uring"'


def sends_commands(phases: Sequence[Phase]) -> bool:
    """Whether a phase passes the block layer by."""
    groups = (group for phase in phases if isinstance(phase, LoadPhase) for group in phase.load["groups"])
    return any(group["engine"] == "io_uring_cmd" for group in groups)


def _is_namespace(device: BlockDevice) -> bool:
    """By its name; the engine then looks for the character device and asks both which namespace they are."""
    return device.name.startswith("nvme") and not device.is_partition


def writes(phases: Sequence[Phase]) -> bool:
    """Whether any phase overwrites what is there."""
    return any(phase.overwrites for phase in phases)


def _scratch(target: ScratchTarget, undo: UndoJournal, *, bare: bool) -> Site:
    made = [scratch.make(target, undo, bare=bare) for _ in range(target.devices)]
    name = target.filesystem or filesystem.DEFAULT.name
    return Site(
        label=f"scratch device {', '.join(str(one.node) for one in made)}",
        places=[
            TargetPlace(
                label=f"scratch device {one.node}",
                device=one.device,
                directory=Directory.at(one.mount_point) if one.mount_point else None,
                regions=None if one.mount_point else one.node,
                capacity_bytes=one.device.size_bytes,
                own_directory=one.own_directory,
                filesystem=filesystem.Choice(name, target.mkfs_options, target.mount_options, one.sides),
            )
            for one in made
        ],
        backing_directory=made[0].backing_directory,
        backing_share=target.drives * target.drive_bytes / (target.devices * target.size_bytes),
        notes=[note for one in made for note in one.notes],
    )


def _directory(target: DirectoryTarget, undo: UndoJournal) -> Site:
    path = Path(target.path)
    own = make_own_directory(path, undo)
    with own.opened() as fd:
        device = device_under(Path(itself(fd)))
    return Site(str(path), [TargetPlace(str(path), device, directory=own)])


def _file(target: FileTarget, phases: Sequence[Phase], undo: UndoJournal, stack: ExitStack) -> Site:
    path = Path(target.path)
    label = str(path)
    if path.is_dir() or path.is_block_device():
        kind = "directory" if path.is_dir() else "device"
        raise InputError(f"expected a file, this is a {kind}", where=label, remedy=f'set kind = "{kind}" in [target]')
    if not writes(phases) and path.exists():
        size = path.stat().st_size
        return _existing(label, [TargetPlace(label, device_under(path), regions=path, capacity_bytes=size)], phases)
    if path.parent.exists():
        check_keeps_files(path.resolve().parent)
    file = own_file.take(path, undo, stack)
    return Site(label, [TargetPlace(label, device_under(Path(itself(file.fd))), regions=file.path, file=file)])


def _devices(target: DeviceTarget, phases: Sequence[Phase], stack: ExitStack) -> Site:
    places = _bare(target)
    label = ", ".join(target.paths)
    if not writes(phases):
        return _existing(label, places, phases)
    for place in places:
        stack.callback(os.close, _claim(place, target))
    return Site(label, places)


def _devices_to_format(target: DeviceTarget, undo: UndoJournal) -> Site:
    """Nothing may hold a claim while mkfs and mount take theirs; between them the lock keeps other runs out."""
    places = []
    for place in _bare(target):
        os.close(_claim(place, target))
        own = make_own_directory(state.state_subdirectory("mounts"), undo).path
        places.append(replace(place, own_directory=own, stays=True))
    return Site(", ".join(target.paths), places)


def _bare(target: DeviceTarget) -> list[TargetPlace]:
    """Each device's own node: a link may lead elsewhere later."""
    places = []
    for path, known in target.with_identities:
        node = Path(path).resolve()
        device = device_at(node if node.exists() else Path(path))
        places.append(TargetPlace(path, device, regions=node, capacity_bytes=device.size_bytes, known=known))
    return places


def _claim(place: TargetPlace, target: DeviceTarget) -> int:
    return safety.claim_device(place.path, destroy=target.destroy, named=Path(place.label), known=place.known)


def _existing(label: str, places: list[TargetPlace], phases: Sequence[Phase]) -> Site:
    for place in places:
        if not os.access(place.path, os.R_OK):
            raise MachineError("no permission to read it", where=place.label, remedy=rights.AS_ROOT)
    if any(phase.measured and phase.verifies for phase in phases):
        raise InputError(
            "a workload that only reads cannot verify what iolab did not write",
            where=label,
            remedy="drop verify, or choose a target that iolab may write to",
        )
    note = f"{label}: the workload only reads, so nothing is laid out and what is there is read"
    return Site(label, places, reads_only_what_is_there=True, notes=[note])


Placer = Callable[[native.FileSpec], native.FileSpec]


def _in_directory(directory: Directory, label: str) -> Placer:
    """A file that was planned as a region (no name) gets one: a control may have given a bare target a filesystem."""

    def placed(file: native.FileSpec) -> native.FileSpec:
        name = PurePosixPath(file["path"] or f"region-{file['base_bytes']}")
        if name.is_absolute() or ".." in name.parts:
            raise InputError(f"the file name {str(name)!r} leaves the target", where=label)
        try:
            directory.make_parents(name)
        except OSError as error:
            raise MachineError(f"cannot make a directory for {name}: {error.strerror}", where=label) from error
        return {**located(file, directory.path / name, base_bytes=0, create=True), "beneath": directory.as_json()}

    return placed


def in_regions(place: TargetPlace, files: Files, undo: UndoJournal | None) -> Placer:
    """Each named file becomes a region of its own, one after the other, in the order in which the phases name them;
    a file without a name is a region already."""
    bases, end = _regions(files)
    if place.file is not None:
        assert undo is not None, "a file of this machine grows, and is cut back"
        place.file.grow(end, undo)
    elif place.capacity_bytes is not None and end > place.capacity_bytes:
        raise InputError(
            f"the workload's {counted(len(bases), 'file needs', 'files need')} {size_in_words(end)}, "
            f"this has {size_in_words(place.capacity_bytes)}",
            where=place.label,
            remedy="lower file_size or the number of files, or take a larger target",
        )
    identity = place.file.as_json() if place.file else None

    def placed(file: native.FileSpec) -> native.FileSpec:
        base_bytes = bases[file["path"], file["base_bytes"]]
        return {**located(file, place.path, base_bytes=base_bytes, create=False), "identity": identity}

    return placed


def located(file: native.FileSpec, path: Path, *, base_bytes: int, create: bool) -> native.FileSpec:
    """The file as the engine takes it."""
    located: native.FileSpec = {**file, "path": str(path), "base_bytes": base_bytes, "create": create}
    located.pop("place", None)
    return located


def _regions(files: Files) -> tuple[dict[tuple[str, int], int], int]:
    """Where each file, by name and base, begins, and where the last one ends."""
    sizes: dict[tuple[str, int], int] = {}
    for file in files:
        key = (file["path"], file["base_bytes"])
        sizes[key] = max(sizes.get(key, 0), file["size_bytes"])
    bases: dict[tuple[str, int], int] = {}
    end = 0
    for (name, base), size in sizes.items():
        begin = -(-end // REGION_ALIGN_BYTES) * REGION_ALIGN_BYTES if name else base
        bases[name, base] = begin
        end = max(end, begin + size)
    return bases, end


def _check_places(site: Site, phases: Sequence[Phase]) -> None:
    wanted = max(map(place_of, _files(phases)), default=0)
    if wanted >= len(site.places):
        raise InputError(
            f"the workload uses device {wanted}, the target has {len(site.places)}, from 0",
            where=site.label,
            remedy="name devices that there are, or give [target] more",
        )


def _check_backing_space(site: Site, phases: list[Phase]) -> None:
    """A sparse file that cannot grow shows as I/O errors of the scratch device, far from their cause."""
    if site.backing_directory is None:
        return
    laid_out = _files([phase for phase in phases if not phase.measured])
    files = {(place_of(file), file["path"]): file["size_bytes"] for file in laid_out}
    needed = int(site.backing_share * sum(files.values()))
    free = shutil.disk_usage(site.backing_directory).free
    if needed > free:
        raise MachineError(
            f"the workload's files need {size_in_words(needed)}, "
            f"{site.backing_directory} has {size_in_words(free)} free",
            where=site.label,
            remedy='lower file_size, or choose another place: [target] backing = "/dir"',
        )


def _check_directories_space(site: Site, phases: Sequence[Phase]) -> None:
    """Before anything is laid out: a disk that fills up fails every other program on it too."""
    for number, place in enumerate(site.places):
        if place.directory is None:
            continue
        files = _bytes_to_hold(number, phases)
        needed, free = sum(files.values()), _free_bytes(place.directory)
        if needed > free:
            raise InputError(
                f"the workload's files need {size_in_words(needed)}, this has {size_in_words(free)} free",
                where=place.label,
                remedy="lower file_size or the number of files, or take a target with more space",
            )


def _bytes_to_hold(number: int, phases: Sequence[Phase]) -> dict[str, int]:
    """By file on the place of this number: its size, where it is laid out or may be written to its end; less, where a
    job's operations or bytes end it before."""
    held: dict[str, int] = {}
    for phase in phases:
        if not isinstance(phase, LoadPhase):
            continue
        files = phase.load["files"]
        for job in (job for group in phase.load["groups"] if group["engine"] != "null" for job in group["jobs"]):
            if job["read_share"] >= 1.0:
                continue
            left = _most_written(job)
            for file in (files[index] for index in job["files"]):
                size = int(min(file["size_bytes"], left))
                left -= size
                if place_of(file) == number:
                    held[file["path"]] = max(held.get(file["path"], 0), size)
    return held


def _most_written(job: native.JobSpec) -> float:
    """Bytes that the job can write at most, whatever its files hold."""
    largest = max(block["bytes"] for block in job["blocks"])
    until = job["until"]
    by_bytes = math.inf if until["bytes"] is None else until["bytes"]
    by_ops = math.inf if until["ops"] is None else until["ops"] * largest
    return min(by_bytes, by_ops)


def _free_bytes(directory: Directory) -> int:
    """For this user: root may use what a filesystem reserves. Raises as `Directory.opened`."""
    with directory.opened() as fd:
        found = os.fstatvfs(fd)
    return found.f_frsize * (found.f_bfree if os.geteuid() == 0 else found.f_bavail)


def _files(phases: Sequence[Phase]) -> Files:
    return [file for phase in phases if isinstance(phase, LoadPhase) for file in phase.load["files"]]
