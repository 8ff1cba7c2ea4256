"""Reads the messages of a guest's agent, line by line.

A kernel from elsewhere may say anything in its place: a line is read once it is whole, no line is longer than what may
come next, and whatever the agent would not say at that point (`agent_message`) ends the machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Never

from pydantic import ValidationError

from iolab.base.plain_text import one_line
from iolab.machines.guest.agent_message import (
    Answer,
    BootMessage,
    BytesMessage,
    EndMessage,
    Failure,
    FailureMessage,
    check_sense,
    read,
    step_message,
)

LINE_BYTES_MAX = 64 << 10
RECORD_BYTES_MAX = 32 << 20
"""The length of a line with a phase's record."""
VALUES_MAX = 1_000_000
"""In one line."""
QUOTED_MAX = 120
MISTAKES_MAX = 100
"""To list more would take a guest's gigabytes."""
RECORDS = ("load", "members", "metadata", "sort", "command")
SYMBOLS = "symbols"
_KEY = re.compile(rb'\s*\{\s*"([a-z]+)"\s*:')


class InvalidMessage(ValueError):
    """No agent sends that; the text states what, and where."""


@dataclass
class AgentReport:
    """What the agent reported, in its order."""

    up: str | None = None
    """The kernel's release, once it runs."""
    steps: list[Answer] = field(default_factory=list)
    symbols: bytes | None = None
    ended: bool = False
    failed: Failure | None = None

    def answer(self, step: int) -> Answer:
        """The answer of the step with that number; None also if the step was not done."""
        return self.steps[step] if step < len(self.steps) else None

    @property
    def is_over(self) -> bool:
        """Nothing more is to be said."""
        return self.ended or self.failed is not None


class Reader:
    """Puts the agent's lines together: JSON, and after a line `{"bytes": N}` so many bytes of symbols."""

    def __init__(self, steps: Sequence[Mapping[str, Any]]) -> None:
        """`steps`: of the plan, each of which is answered once, in its order."""
        self.report = AgentReport()
        self._steps = steps
        self._buffer = bytearray()
        self._looked = 0
        """So much of the buffer has no end of a line."""
        self._bytes_due: int | None = None
        self._line = 0

    def take(self, chunk: bytes) -> None:
        """InvalidMessage if no agent sends it."""
        self._buffer += chunk
        at = 0
        while (end := self._end(at)) is not None:
            part = bytes(self._buffer[at:end])
            at = end
            if self._bytes_due is None:
                self._line += 1
                self._take_message(part)
            else:
                self.report.symbols, self._bytes_due = part, None
        del self._buffer[:at]

    def _end(self, at: int) -> int | None:
        """Where what begins at `at` is whole."""
        if self._bytes_due is not None:
            end = at + self._bytes_due
            return end if end <= len(self._buffer) else None
        most = RECORD_BYTES_MAX if self._next_step_kind in RECORDS else LINE_BYTES_MAX
        found = self._buffer.find(b"\n", max(at, self._looked), at + most)
        if found < 0:
            if len(self._buffer) - at >= most:
                self._line += 1
                self._refuse(f"longer than {most >> 10} KiB", bytes(self._buffer[at : at + QUOTED_MAX]))
            self._looked = len(self._buffer) - at
            return None
        self._looked = 0
        return found + 1

    @property
    def _next_step_kind(self) -> str:
        """What the step does that is to be answered next; nothing after the last."""
        number = len(self.report.steps)
        return str(self._steps[number]["do"]) if number < len(self._steps) else ""

    def _take_message(self, line: bytes) -> None:
        takes = {
            b"up": self._take_up,
            b"step": self._take_step,
            b"bytes": self._take_bytes,
            b"failed": self._take_failed,
            b"end": self._take_end,
        }
        key = _KEY.match(line)
        take = takes.get(key[1]) if key else None
        try:
            if take is None:
                raise ValueError(f"expected {', '.join(map(bytes.decode, takes))}")
            if line.count(b",") > VALUES_MAX:
                raise ValueError(f"more than {VALUES_MAX:,} values")
            if self.report.is_over:
                raise ValueError("nothing comes after the end")
            take(line)
        except ValueError as error:
            self._refuse(_reason(error), line)

    def _take_up(self, line: bytes) -> None:
        if self.report.up is not None:
            raise ValueError("it is up already")
        self.report.up = read(BootMessage, line).up

    def _take_bytes(self, line: bytes) -> None:
        if self._next_step_kind != SYMBOLS or self.report.symbols is not None:
            raise ValueError("no symbols were asked for")
        self._bytes_due = read(BytesMessage, line).bytes

    def _take_step(self, line: bytes) -> None:
        number = len(self.report.steps)
        if self.report.up is None or not self._next_step_kind:
            raise ValueError("no step is to be answered")
        answered = read(step_message(self._next_step_kind), line)
        if answered.step != number:
            raise ValueError(f"step {number} was to be answered")
        check_sense(self._steps[number], answered.value)
        self.report.steps.append(answered.value)

    def _take_failed(self, line: bytes) -> None:
        failure = read(FailureMessage, line).failed
        if failure.step is not None and failure.step != len(self.report.steps):
            raise ValueError("another step was under way")
        self.report.failed = failure

    def _take_end(self, line: bytes) -> None:
        read(EndMessage, line)
        if self.report.up is None or self._next_step_kind:
            raise ValueError("not all steps were answered")
        self.report.ended = True

    def _refuse(self, why: str, line: bytes) -> Never:
        shown = one_line(line[: 4 * QUOTED_MAX].decode(errors="backslashreplace"), QUOTED_MAX)
        raise InvalidMessage(f"sent what iolab's agent never sends, in line {self._line}: {why}: {shown}")


def _reason(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    if error.error_count() > MISTAKES_MAX:
        return f"{error.error_count()} mistakes"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    what = first["msg"].removeprefix("Value error, ")
    return one_line(f"{key}: {what}" if key else what, QUOTED_MAX * 2)
