"""Runs a phase of commands: on each device mkfs or not, mount, the command, unmount; all devices at once."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from iolab.base.errors import InputError, MachineError
from iolab.domain.executor import Progress
from iolab.domain.phase_record import JobRecord, PhaseRecord, Usage, group_record, job_record, phase_record
from iolab.machines.host import source_tree
from iolab.machines.system import device_identity, filesystem, page_cache, shell
from iolab.machines.system.action import CannotUndo, EraseFilesystem, Unmount

if TYPE_CHECKING:
    from iolab.domain.trial import CommandsPhase
    from iolab.machines.host.site import TargetPlace
    from iolab.machines.host.surroundings import Surroundings

POLL_S = 0.1


def run(phase: CommandsPhase, around: Surroundings) -> PhaseRecord:
    """The phase's record, a job per device. A command that fails is a failure of the phase; the job has its output.

    Raises:
        InputError: there is no such tarball; mkfs or mount refuse their options.
        MachineError: a tool is missing.
    """
    environment = {**phase.environment, **_tarball(phase)}
    devices = [
        _Device(number, place, phase, environment, str(uuid4()) if phase.makes_filesystem and place.stays else None)
        for number, place in enumerate(around.site.places)
    ]
    for device in devices:
        device.mount_point.mkdir(exist_ok=True)
        if device.uuid is not None:
            around.undo.before(EraseFilesystem(str(device.node), device.uuid))
        around.undo.before(Unmount(str(device.mount_point)))
    if phase.drop_caches:
        page_cache.drop_all()
    before, started_unix_ns = _usage(), time.time_ns()
    done = _all_at_once(devices, around, phase.name)
    return phase_record(
        phase.name,
        started_unix_ns=started_unix_ns,
        elapsed_ns=max(one.elapsed_ns for one in done),
        groups=[group_record("devices", _usage() - before, [one.record() for one in done])],
        stopped=any(one.ended.stopped for one in done if one.ended),
        failures=[{"job": one.name, "what": what} for one in done if (what := one.failure())],
    )


@dataclass(frozen=True)
class _Device:
    number: int
    place: TargetPlace
    phase: CommandsPhase
    environment: dict[str, str]
    uuid: str | None
    """The UUID of the filesystem that is made, if it has to be recognised later; else None."""

    @property
    def mount_point(self) -> Path:
        assert self.place.own_directory is not None
        return self.place.own_directory / "mount"

    @property
    def node(self) -> Path:
        assert self.place.device is not None
        return Path("/dev") / self.place.device.name

    def run(self, should_stop: Callable[[], bool]) -> shell.ShellResult | None:
        """The phase on this device; how its command ended, if there is one."""
        if self.phase.cpus is not None:
            os.sched_setaffinity(0, self.phase.cpus)  # this thread's, which the processes that it starts inherit
        chosen = self.place.filesystem
        name = self.phase.filesystem or chosen.name
        if self.phase.makes_filesystem:
            device_identity.check_node(self.node, self.place.known)
            options = _first(self.phase.mkfs_options, chosen.mkfs_options)
            filesystem.make(name, self.node, options, uuid=self.uuid, sides=chosen.sides)
        options = _first(self.phase.mount_options, chosen.mount_options)
        filesystem.mount(name, self.node, self.mount_point, options, sides=chosen.sides)
        ended = None
        if self.phase.command is not None:
            ended = shell.run(
                self.phase.command,
                directory=self.mount_point,
                environment={**self.environment, "DEVICE": str(self.node)},
                should_stop=should_stop,
            )
        self._unmount()
        return ended

    def _unmount(self) -> None:
        try:
            Unmount(str(self.mount_point)).undo()
        except CannotUndo as problem:
            raise MachineError(str(problem), where=self.place.label) from problem


@dataclass(frozen=True)
class _FinishedCommand:
    device: _Device
    elapsed_ns: int
    ended: shell.ShellResult | None

    @property
    def name(self) -> str:
        return f"device.{self.device.number}"

    def record(self) -> JobRecord:
        job = job_record(self.name, finished_ns=self.elapsed_ns)
        return {**job, "output": self.ended.output} if self.ended and self.failure() else job

    def failure(self) -> str | None:
        if self.ended is None or self.ended.stopped:
            return None
        return self.ended.failure(f"{self.device.place.label}: {self.device.phase.command}")


def _all_at_once(devices: Sequence[_Device], around: Surroundings, phase_name: str) -> list[_FinishedCommand]:
    start = threading.Barrier(len(devices))
    gave_up = threading.Event()

    def run_one(device: _Device) -> _FinishedCommand:
        start.wait()
        started_ns = time.monotonic_ns()
        try:
            ended = device.run(lambda: gave_up.is_set() or around.should_stop())
        except BaseException:
            gave_up.set()
            raise
        return _FinishedCommand(device, time.monotonic_ns() - started_ns, ended)

    started_ns = time.monotonic_ns()
    with ThreadPoolExecutor(len(devices)) as threads:
        futures = [threads.submit(run_one, device) for device in devices]
        pending: set[Future[_FinishedCommand]] = {*futures}
        while pending:
            _, pending = wait(pending, POLL_S)
            share = 1 - len(pending) / len(devices)
            elapsed_ns = time.monotonic_ns() - started_ns
            around.on_progress(Progress(phase_name, "running", elapsed_ns=elapsed_ns, fraction=share or None))
    return [future.result() for future in futures]


def _tarball(phase: CommandsPhase) -> dict[str, str]:
    """What the command finds as TARBALL, made first if it is iolab's own tree."""
    if phase.source_tree is not None:
        return {"TARBALL": str(source_tree.tarball(**phase.source_tree))}
    if phase.tarball is None:
        return {}
    path = Path(phase.tarball).absolute()
    if not path.is_file():
        raise InputError(
            "no such tarball", where=str(path), remedy="leave tarball out to have iolab make a source tree"
        )
    return {"TARBALL": str(path)}


def _usage() -> Usage:
    """The usage of this process, which mounts and unmounts, and of all children that it has waited for."""
    return Usage.of(resource.getrusage(resource.RUSAGE_SELF)) + Usage.of(resource.getrusage(resource.RUSAGE_CHILDREN))


def _first(asked: str | None, otherwise: str) -> str:
    return otherwise if asked is None else asked
