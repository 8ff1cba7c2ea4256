"""Runs one phase on the engine: starts it, shows its progress, stops it when asked, returns its record."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from iolab import _native
from iolab.base.errors import InputError, MachineError
from iolab.domain.executor import OnProgress, Progress, ShouldStop
from iolab.machines.system import rights

if TYPE_CHECKING:
    from iolab.domain import native_types as native
    from iolab.domain.phase_record import PhaseRecord
    from iolab.domain.trial import LoadPhase, PhaseSpec
    from iolab.machines.host.surroundings import Surroundings

POLL_S = 0.1


class EngineHandle(Protocol):
    """What the engine runs, or the model: `iolab._native`'s handles."""

    def snapshot(self) -> str:
        """JSON of the progress until now."""

    def stop(self) -> None:
        """Asks it to end early; `wait` then has its record."""

    def wait(self, timeout_s: float) -> str | None:
        """JSON of the record, None while running. OSError when the engine broke down."""


def run(phase: LoadPhase, around: Surroundings) -> PhaseRecord:
    """The engine's phase record (crates/measure/workload/src/record.rs); its `stopped` is true when `should_stop`
    became so.

    Raises:
        InputError: the engine finds the phase impossible.
        MachineError: the kernel refuses.
    """

    def start() -> _native.Load:
        return _native.Load.start(json.dumps(phase.load), around.memory)

    return follow(phase, start, around)


class Watcher(Protocol):
    """Who gets the progress, and decides when to stop."""

    @property
    def on_progress(self) -> OnProgress:
        """Called some times per second with what the phase is doing."""

    @property
    def should_stop(self) -> ShouldStop:
        """Whether the phase is to end early."""


def follow(phase: PhaseSpec, start: Callable[[], EngineHandle], around: Watcher) -> PhaseRecord:
    """The record of what `start` begins; shows its progress, stops it when asked. Raises as `run` does."""
    try:
        load = start()
        stopping = False
        while (record := load.wait(POLL_S)) is None:
            around.on_progress(progress(phase, json.loads(load.snapshot())))
            if not stopping and around.should_stop():
                load.stop()
                stopping = True
    except ValueError as error:
        raise InputError(str(error), where=f"phase {phase.name}") from error
    except OSError as error:
        raise refused(error, f"phase {phase.name}") from error
    done: PhaseRecord = json.loads(record)
    return done


def records_of(done: PhaseRecord) -> list[PhaseRecord]:
    """The record of each phase that ran, if several began together; what probes saw of all stands in the first."""
    together: dict[str, Any] = dict(done)
    if "phases" not in together:
        return [done]
    first, *others = together["phases"]
    probes = {key: together[key] for key in ("probes",) if key in together}
    return [{**first, **probes}, *others]


RING = "io_uring"
"""The file that the engine names when the kernel makes no ring."""
IO_URING_REMEDY = (
    'engine = "libaio", or sudo sysctl kernel.io_uring_disabled=0; a container also needs a seccomp profile '
    "that allows io_uring"
)


def refused(error: OSError, where: str) -> MachineError:
    """The kernel's refusal as one line; `where` is blamed when the kernel names no file."""
    reason = os.strerror(error.errno) if error.errno else ""
    what = error.strerror or str(error)
    line = what if not reason or reason in what else f"{what}: {reason}"
    denied = isinstance(error, PermissionError)
    remedy = rights.AS_ROOT if denied and os.geteuid() != 0 else None
    of_a_ring = error.errno in (errno.EPERM, errno.ENOSYS) and error.filename in (None, RING)
    if of_a_ring and not json.loads(_native.features())["io_uring"]["usable"]:
        remedy = IO_URING_REMEDY
    return MachineError(line, where=str(error.filename) if error.filename else where, remedy=remedy)


def progress(phase: PhaseSpec, snapshot: native.Snapshot) -> Progress:
    """The progress in the engine's snapshot (crates/measure/workload/src/record.rs)."""
    return Progress(
        phase=phase.name,
        doing="running" if phase.measured else "laying out",
        elapsed_ns=snapshot["elapsed_ns"],
        ops=snapshot["ops"],
        bytes=snapshot["bytes"],
        errors=snapshot["errors"],
        fraction=snapshot["fraction"],
        warming_up=snapshot["warming_up"],
    )
