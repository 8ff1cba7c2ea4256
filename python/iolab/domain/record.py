"""A record: what one trial yielded, as the machine hands it back (JSON) and as the store keeps it (rows)."""

from __future__ import annotations

import base64
import time
import zlib
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, ConfigDict, Field

from iolab.base.strict_json import JsonObject
from iolab.domain.phase_record import PhaseRecord
from iolab.domain.trial import Trial
from iolab.domain.trial.target import DOCUMENT

NOT_RESTORED = "not restored"
"""How a note begins that states what a trial changed and could not put back."""


Status = Literal["ok", "faulty", "failed", "impossible", "interrupted"]


class Fault(BaseModel):
    """Something that went wrong inside a trial, by errno if the kernel gave one."""

    model_config = ConfigDict(extra="forbid")

    what: str
    phase: str | None = None
    job: str | None = None
    errno: int | None = None
    count: int = 1


class ObservedTarget(TypedDict, total=False):
    """Filesystem and device of a place of the target; one that is none, or cannot be looked at, has `absent`: why."""

    filesystem: JsonObject
    device: JsonObject


class Verification(TypedDict):
    """What was read and checked."""

    blocks: int
    bytes: int
    wrong: int
    """Blocks that were not as written."""


class TargetObservation(ObservedTarget, total=False):
    """The target as it was before the phases, and what was verified."""

    further: list[ObservedTarget]
    """Its other places."""
    model: JsonObject
    """A simulated machine's name, kernel and seed."""
    guest: JsonObject
    """The same of a guest machine."""
    host: JsonObject
    """The name, kernel, cpu and boot_id of one of several hosts."""
    verified: Verification


class Record(BaseModel):
    """What a trial leaves behind: how it ended, what each phase measured, and under what it was measured."""

    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = 1
    spec: Trial
    status: Status
    """ok: all as asked. faulty: I/O errors, short transfers or wrong data, numbers to be read with care.
    failed: no numbers. impossible: not run, since the device or kernel cannot do what the setting asks for
    (controls_absent states why). interrupted: stopped from outside, to be run again."""
    started_unix_ns: int
    ended_unix_ns: int
    controls_applied: dict[str, JsonObject]
    """Control name -> {"before": ..., "applied": ...}, values as the kernel shows them."""
    controls_absent: dict[str, str]
    """Control name -> why it could not be set here."""
    phases: list[Annotated[PhaseRecord, DOCUMENT]]
    """The engine's phase records (crates/measure/workload/src/record.rs), measured phases only."""
    observed: Annotated[TargetObservation, DOCUMENT]
    """The target as it was before the phases: filesystem, device. What probes saw stands in the phases."""
    faults: list[Fault]
    notes: list[str]
    """What was asked for and not done, transients, clock steps: one line each."""
    traces: dict[str, str] = Field(default_factory=dict, exclude_if=lambda traces: not traces)
    """By file name, traces that a probe was asked for (trace_files.py); the store keeps them in files of their own."""


def impossible(trial: Trial, reasons: dict[str, str]) -> Record:
    """The record of a trial that is not run: why, by control."""
    return _of_nothing(trial, "impossible", reasons)


def interrupted(trial: Trial) -> Record:
    """The record of a trial that was stopped before it had one."""
    return _of_nothing(trial, "interrupted", {})


def _of_nothing(trial: Trial, status: Status, reasons: dict[str, str]) -> Record:
    now_unix_ns = time.time_ns()
    return Record(
        spec=trial,
        status=status,
        started_unix_ns=now_unix_ns,
        ended_unix_ns=now_unix_ns,
        controls_applied={},
        controls_absent=reasons,
        phases=[],
        observed={},
        faults=[],
        notes=[],
    )


def packed_trace(content: bytes) -> str:
    """A trace file of a simulated phase as a record carries it: compressed, in base64."""
    return base64.b64encode(zlib.compress(content, level=1)).decode()


def unpacked_trace(text: str) -> bytes:
    """The trace file again. ValueError if the text is not what `packed_trace` made."""
    try:
        return zlib.decompress(base64.b64decode(text, validate=True))
    except zlib.error as error:
        raise ValueError(f"not a packed trace: {error}") from None
