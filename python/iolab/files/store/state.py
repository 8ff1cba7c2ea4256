"""What a journal's events amount to: which trials are finished, and in which sessions they were measured."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from iolab.domain.record import Record
from iolab.domain.trial import DeviceIdentity
from iolab.domain.validity import doubts
from iolab.files.store.event import (
    DevicesAdmitted,
    Event,
    Look,
    RunStarted,
    SessionEvent,
    TrialAbandoned,
    TrialFinished,
    TrialStarted,
)
from iolab.files.store.trial_file import TrialFileDigest

SESSION_EVENTS = ("run_started", "run_resumed")
CLOCK_SHIFT_TOLERATED_NS = 1_000_000_000


@dataclass
class RunState:
    """A run as its journal has it."""

    sessions: list[SessionEvent] = field(default_factory=list)
    """`run_started`, then a `run_resumed` for each time the run went on: kernel, boot, build."""
    rounds: int = 0
    """How many were asked for last."""
    finished: dict[int, TrialFinished] = field(default_factory=dict)
    """`trial_finished` by trial, the last one of each."""
    attempts: dict[int, int] = field(default_factory=dict)
    """How often each trial was started."""
    looks: dict[int, list[str]] = field(default_factory=dict)
    """What was undecided after so many rounds, of a run that goes on until it is decided."""
    devices: list[DeviceIdentity] = field(default_factory=list)
    """What the target's devices are known by, once they were written to; empty: they were not, or there are none."""
    measured: bool = False
    """A trial of this session, or of one before, has a record, though perhaps not yet on disk."""
    ended: bool = False
    """The last thing that happened is that the run was complete."""

    @property
    def started(self) -> RunStarted | None:
        """The `run_started` event; None if it can't be read any more."""
        is_there = bool(self.sessions) and self.sessions[0]["event"] == "run_started"
        return cast(RunStarted, self.sessions[0]) if is_there else None

    def sha256_of(self) -> dict[int, str]:
        """By finished trial, the SHA-256 of its file in hexadecimal."""
        return {trial: event["sha256"] for trial, event in self.finished.items()}


def fold(events: Iterable[Event]) -> RunState:
    """Goes through the events in order, which are checked (`read_journal`); unknown ones, of a later iolab, are passed
    over."""
    state = RunState()
    for event in events:
        name = event["event"]
        if name in SESSION_EVENTS:
            session = cast(SessionEvent, event)
            state.sessions.append(session)
            state.rounds = session["rounds"]
        elif name == "trial_started":
            started = cast(TrialStarted, event)
            state.attempts[started["trial"]] = started["attempt"]
        elif name == "trial_finished":
            finished = cast(TrialFinished, event)
            state.finished[finished["trial"]] = finished
            state.measured = True
        elif name == "trial_abandoned":
            state.finished.pop(cast(TrialAbandoned, event)["trial"], None)
        elif name == "look":
            look = cast(Look, event)
            state.looks[look["rounds"]] = look["undecided"]
        elif name == "devices_admitted":
            admitted = cast(DevicesAdmitted, event)["devices"]
            state.devices = [DeviceIdentity.model_validate_json(json.dumps(device)) for device in admitted]
        state.ended = name == "run_finished"
    return state


def describe_finished(
    record: Record, stored: TrialFileDigest, *, attempt: int, duration_ns: int | None
) -> TrialFinished:
    """The content of a `trial_finished` event: enough to list the trial and to recognise its file.
    ValueError if it was interrupted: then it is not finished."""
    spec = record.spec
    if record.status == "interrupted":
        raise ValueError("holds an interrupted trial, which has to be run again")
    finished: TrialFinished = {
        "event": "trial_finished",
        "trial": spec.trial,
        "round": spec.round,
        "position": spec.position,
        "workload": spec.workload,
        "setting": spec.setting,
        "seed": spec.seed,
        "status": record.status,
        "attempt": attempt,
        "started_unix_ns": record.started_unix_ns,
        "duration_ns": duration_ns,
        "size_bytes": stored.size_bytes,
        "sha256": stored.sha256,
    }
    if record.status == "impossible":
        finished["impossible"] = record.controls_absent
    if "host" in record.observed:
        finished["host"] = str(record.observed["host"].get("name", ""))
    if found := doubts(record):
        finished["doubts"] = found
    return finished


def clock_problems(events: Iterable[Event]) -> list[str]:
    """Where the wall clock moved against the monotonic clock within a session, a line each."""
    problems: list[str] = []
    offset_ns: int | None = None
    for event in events:
        wall_unix_ns, monotonic_ns = event.get("wall_unix_ns"), event.get("monotonic_ns")
        if not isinstance(wall_unix_ns, int) or not isinstance(monotonic_ns, int):
            continue
        now_ns = wall_unix_ns - monotonic_ns
        shift_ns = 0 if offset_ns is None or event["event"] in SESSION_EVENTS else now_ns - offset_ns
        if abs(shift_ns) > CLOCK_SHIFT_TOLERATED_NS:
            problems.append(
                f"the wall clock moved by {shift_ns / 1e9:+.1f} s before {event['event']}"
                f"{' of trial ' + str(event['trial']) if 'trial' in event else ''}; "
                "durations are from the monotonic clock and not affected"
            )
        offset_ns = now_ns
    return problems
