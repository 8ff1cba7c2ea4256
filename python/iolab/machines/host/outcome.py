"""What in a phase's record a reader must know before the numbers: faults, and what was not done as asked."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Literal

from iolab.base.plain_text import counted
from iolab.domain import native_types as native
from iolab.domain.phase_record import (
    AnyObservation,
    PhaseRecord,
    any_probes_of,
    failures_of,
    jobs_of,
    probes_absent_of,
)
from iolab.domain.record import Fault

CLOCK_SHIFT_NOTED_NS = 100_000_000
"""Slewing (at most 500 ppm, adjtimex(2)) stays below this for phases of minutes; a step does not."""


Status = Literal["ok", "faulty", "failed", "impossible", "interrupted"]


def status(faults: list[Fault], *, interrupted: bool, failed: bool, impossible: bool = False) -> Status:
    """A trial's, as `Record.status` explains them; the gravest of what holds."""
    if interrupted:
        return "interrupted"
    if impossible:
        return "impossible"
    if failed:
        return "failed"
    return "faulty" if faults else "ok"


def faults(phase: PhaseRecord) -> list[Fault]:
    """I/O errors, short transfers, wrong blocks and failures of one phase record (`iolab.domain.phase_record`)."""
    found = []
    for job in jobs_of(phase).values():
        found_in = partial(Fault, phase=phase["phase"], job=job["name"])
        for error in job["errors"]:
            place = f"first at {error['first_path']} offset {error['first_offset']}"
            what = f"{error['op']}: {error['name']}, {place}"
            found.append(found_in(what=what, errno=error["errno"] or None, count=error["count"]))
        if job["mismatches_count"]:
            found.append(found_in(what=_mismatch(job["mismatches"]), count=job["mismatches_count"]))
    found += (Fault(phase=phase["phase"], **failure) for failure in failures_of(phase))
    return found


def notes(phase: PhaseRecord) -> list[str]:
    """One line each, equal lines of several groups once."""
    name = phase["phase"]
    lines = Counter(note for group in phase["groups"] for note in group["notes"])
    found = [f"{name}: {line}" if times == 1 else f"{name}: {line} ({times} groups)" for line, times in lines.items()]
    found += (f"{name}: probe {probe}: {reason}" for probe, reason in probes_absent_of(phase).items())
    found += (
        f"{name}: probe {probe}: {line}" for probe, seen in any_probes_of(phase).items() for line in _doubts(seen)
    )
    transient = phase["transient"]
    if transient is not None and not transient["steady"]:
        found.append(f"{name}: no steady state was reached; the numbers cover everything after warm-up")
    shift_ns = phase["wall_clock_shift_ns"]
    if abs(shift_ns) >= CLOCK_SHIFT_NOTED_NS:
        found.append(
            f"{name}: the wall clock jumped by {shift_ns / 1e9:+.3f} s; durations are from the monotonic clock and hold"
        )
    if phase["build_profile"] == "debug":
        found.append(f"{name}: measured with a debug build; its numbers are not to be reported")
    return found


def _doubts(observation: AnyObservation) -> list[str]:
    """What a probe's figures do not cover: lost events, and what it notes itself."""
    lost = observation.get("trace_events_lost") or observation.get("samples_lost") or 0
    of_lost = [f"{counted(lost, 'event')} found the buffers full: its numbers are incomplete"] if lost else []
    return [*of_lost, *observation.get("notes", [])]


def _mismatch(mismatches: list[native.MismatchRecord]) -> str:
    if not mismatches:
        return "wrong data"
    first = mismatches[0]
    return (
        f"wrong data, first in {first['path']} at offset {first['offset']}: "
        f"expected {first['expected']}, found {first['found']}"
    )
