"""Where a trial's I/O goes: what a target becomes once it is prepared, and how a phase's file names map to it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from iolab.errors import InputError, MachineError
from iolab.machine import safety, scratch
from iolab.machine.action import RemoveFile, TruncateFile
from iolab.machine.block import BlockDevice, device_at, device_under
from iolab.machine.own_directory import make_own_directory
from iolab.machine.undo import UndoJournal
from iolab.trial import LoadPhase

if TYPE_CHECKING:
    from iolab.trial import DeviceTarget, DirectoryTarget, FileTarget, Phase, ScratchTarget, Target

REGION_ALIGN_BYTES = 1 << 20


@dataclass(frozen=True)
class Site:
    """A prepared target: either a `directory` for files, or `regions` of one file or device."""

    label: str
    """As a user knows it, for error lines."""
    device: BlockDevice | None
    """Whose queue the I/O goes through; None where there is none (tmpfs, network)."""
    directory: Path | None = None
    regions: Path | None = None
    capacity_bytes: int | None = None
    """Of `regions`; None: grows."""
    reads_only_what_is_there: bool = False
    """An existing file or device that the trial only reads: nothing is laid out."""
    backing_directory: Path | None = None
    """Of a scratch device's sparse file: its space counts too."""
    notes: list[str] = field(default_factory=list)

    @property
    def path(self) -> Path:
        path = self.directory or self.regions
        assert path is not None
        return path


def prepare(target: Target, phases: Sequence[Phase], undo: UndoJournal, stack: ExitStack) -> Site:
    """Makes the target ready; what it holds on to is released with the stack, what it makes is undone by the journal.

    Raises:
        InputError, MachineError: see `safety` and `scratch`.
    """
    if target.kind == "scratch":
        return _scratch(target, undo)
    if target.kind == "directory":
        return _directory(target, undo)
    if target.kind == "file":
        return _file(target, phases, undo)
    return _device(target, phases, stack)


def place(site: Site, phases: Sequence[Phase]) -> list[Phase]:
    """The phases with absolute paths, leaving out what must not or need not be done.

    Raises:
        InputError: a path leaves the site, or the files do not fit.
        MachineError: a scratch device's backing file cannot grow to what is laid out.
    """
    kept = [phase for phase in phases if phase.measured or not site.reads_only_what_is_there]
    _check_backing_space(site, kept)
    if site.regions is not None:
        return _in_regions(site, site.regions, kept)
    return _with_files(kept, lambda file: _in_directory(site, file))


def writes(phases: Sequence[Phase]) -> bool:
    """Whether any measured phase writes."""
    return any(phase.measured and phase.writes for phase in phases)


def _scratch(target: ScratchTarget, undo: UndoJournal) -> Site:
    made = scratch.make(target, undo)
    return Site(
        label=f"scratch device {made.node}",
        device=made.device,
        directory=made.mount_point,
        regions=None if made.mount_point else made.node,
        capacity_bytes=made.device.size_bytes,
        backing_directory=made.backing_directory,
        notes=made.notes,
    )


def _directory(target: DirectoryTarget, undo: UndoJournal) -> Site:
    path = Path(target.path)
    own = make_own_directory(path, undo)
    return Site(label=str(path), device=device_under(own), directory=own)


def _file(target: FileTarget, phases: Sequence[Phase], undo: UndoJournal) -> Site:
    path = Path(target.path)
    label = str(path)
    if path.is_dir() or path.is_block_device():
        kind = "directory" if path.is_dir() else "device"
        raise InputError(f"expected a file, this is a {kind}", where=label, remedy=f'say kind = "{kind}" in [target]')
    if not writes(phases) and path.exists():
        size = path.stat().st_size
        return _existing(label, path, device_under(path), size, phases)
    safety.check_file_writable(path)
    if path.exists():
        undo.before(TruncateFile(str(path.resolve()), 0))
    else:
        path = path.absolute()
        undo.before(RemoveFile(str(path)))
        _create(path)
    return Site(label=label, device=device_under(path), regions=path)


def _device(target: DeviceTarget, phases: Sequence[Phase], stack: ExitStack) -> Site:
    path = Path(target.path)
    device = device_at(path)
    if not writes(phases):
        return _existing(str(path), path, device, device.size_bytes, phases)
    claim = safety.claim_device(path, destroy=target.destroy)
    stack.callback(os.close, claim)
    return Site(label=str(path), device=device, regions=path, capacity_bytes=device.size_bytes)


def _existing(label: str, path: Path, device: BlockDevice | None, size: int, phases: Sequence[Phase]) -> Site:
    if not os.access(path, os.R_OK):
        raise MachineError("no permission to read it", where=label, remedy="run as root: sudo iolab run ...")
    if any(phase.measured and phase.verifies for phase in phases):
        raise InputError(
            "a workload that only reads cannot verify what iolab did not write",
            where=label,
            remedy="drop verify, or choose a target that iolab may write to",
        )
    note = f"{label}: the workload only reads, so nothing is laid out and what is there is read"
    return Site(label, device, regions=path, capacity_bytes=size, reads_only_what_is_there=True, notes=[note])


def _create(path: Path) -> None:
    try:
        path.open("xb").close()
    except OSError as error:
        raise MachineError(
            f"cannot make the file: {error.strerror}", where=str(path), remedy="name a place that you may write to"
        ) from error


def _in_directory(site: Site, file: dict[str, Any]) -> dict[str, Any]:
    """A file that was planned as a region (no name) gets one: a control may have given a bare target a filesystem."""
    assert site.directory is not None
    name = PurePosixPath(file["path"] or f"region-{file['base_bytes']}")
    if name.is_absolute() or ".." in name.parts:
        raise InputError(f"the file name {str(name)!r} leaves the target", where=site.label)
    path = site.directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return {**file, "path": str(path), "base_bytes": 0, "create": True}


def _in_regions(site: Site, path: Path, phases: list[Phase]) -> list[Phase]:
    """Each named file becomes a region of its own, one after the other, in the order in which the phases name them;
    a file without a name is a region already."""
    bases, end = _regions(phases)
    if site.capacity_bytes is None:
        os.truncate(path, end)
    elif end > site.capacity_bytes:
        raise InputError(
            f"the workload's {len(bases)} files need {end} bytes, this has {site.capacity_bytes}",
            where=site.label,
            remedy="lower file_size or the number of files, or take a larger target",
        )
    return _with_files(
        phases,
        lambda file: {
            **file,
            "path": str(path),
            "base_bytes": bases[file["path"], file["base_bytes"]],
            "create": False,
        },
    )


def _regions(phases: list[Phase]) -> tuple[dict[tuple[str, int], int], int]:
    """Where each file, by name and base, begins, and where the last one ends."""
    sizes: dict[tuple[str, int], int] = {}
    for file in _files(phases):
        key = (file["path"], file["base_bytes"])
        sizes[key] = max(sizes.get(key, 0), file["size_bytes"])
    bases: dict[tuple[str, int], int] = {}
    end = 0
    for (name, base), size in sizes.items():
        begin = -(-end // REGION_ALIGN_BYTES) * REGION_ALIGN_BYTES if name else base
        bases[name, base] = begin
        end = max(end, begin + size)
    return bases, end


def _check_backing_space(site: Site, phases: list[Phase]) -> None:
    """A sparse file that cannot grow shows as I/O errors of the scratch device, far from their cause."""
    if site.backing_directory is None:
        return
    sizes = {file["path"]: file["size_bytes"] for file in _files([phase for phase in phases if not phase.measured])}
    needed = sum(sizes.values())
    free = shutil.disk_usage(site.backing_directory).free
    if needed > free:
        raise MachineError(
            f"the workload's files need {needed} bytes, {site.backing_directory} has {free} free",
            where=site.label,
            remedy='lower file_size, or choose another place: [target] backing = "/dir"',
        )


def _files(phases: Sequence[Phase]) -> list[dict[str, Any]]:
    return [file for phase in phases if isinstance(phase, LoadPhase) for file in phase.load["files"]]


def _with_files(phases: Sequence[Phase], placed: Callable[[dict[str, Any]], dict[str, Any]]) -> list[Phase]:
    """Phases of other kinds name no files."""
    return [
        phase.with_files([placed(file) for file in phase.load["files"]]) if isinstance(phase, LoadPhase) else phase
        for phase in phases
    ]
