"""Runs one shell command in a directory and times it."""

from __future__ import annotations

import os
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.domain.executor import Progress
from iolab.domain.phase_record import PhaseRecord, Usage, group_record, job_record, phase_record
from iolab.machines.system import page_cache, shell

if TYPE_CHECKING:
    from iolab.domain.trial import TimedCommandPhase
    from iolab.machines.host.surroundings import Surroundings


def run(phase: TimedCommandPhase, around: Surroundings) -> PhaseRecord:
    """The phase's record; a command that fails is a failure of the phase.

    Raises:
        InputError: the target is no directory, or there is no such directory.
        MachineError: see `shell.run` and `page_cache.drop_all`.
    """
    directory = _directory(phase, around)
    if phase.drop_caches:
        page_cache.drop_all()
    around.on_progress(Progress(phase.name, "running"))
    before, started_unix_ns = _usage(), time.time_ns()
    with ThreadPoolExecutor(1) as thread:  # of its own, so that its CPUs are its own too
        ended = thread.submit(_run, phase, directory, around).result()
    used = (_usage() - before).less_cpu(ended.spent_ns)
    job = job_record("command", finished_ns=ended.elapsed_ns)
    failed = None if ended.stopped else ended.failure(phase.command)
    return phase_record(
        phase.name,
        started_unix_ns=started_unix_ns,
        elapsed_ns=ended.elapsed_ns,
        groups=[group_record("command", used, [job if failed is None else {**job, "output": ended.output}])],
        stopped=ended.stopped,
        failures=[] if failed is None else [{"job": "command", "what": failed}],
    )


def _directory(phase: TimedCommandPhase, around: Surroundings) -> Path:
    if phase.directory is not None:
        directory = Path(phase.directory).absolute()
        if not directory.is_dir():
            raise InputError("no such directory", where=str(directory), remedy="make it, or leave `directory` out")
        return directory
    place = around.site.places[0]
    if place.directory is None:
        what = "a command runs in a directory, and the target has none"
        raise InputError(what, where=place.label, remedy="give the target a filesystem, or the workload a `directory`")
    return place.directory.path


def _run(phase: TimedCommandPhase, directory: Path, around: Surroundings) -> shell.ShellResult:
    if phase.cpus is not None:
        os.sched_setaffinity(0, phase.cpus)
    device = around.site.places[0].device
    environment = {} if device is None else {"DEVICE": f"/dev/{device.name}"}
    return shell.run(phase.command, directory=directory, environment=environment, should_stop=around.should_stop)


def _usage() -> Usage:
    return Usage.of(resource.getrusage(resource.RUSAGE_CHILDREN))
