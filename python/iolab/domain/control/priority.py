"""Controls of how urgent the load's I/O and its threads are."""

from __future__ import annotations

import re
from typing import Any

from typing_extensions import override

from iolab.domain.control.control import Control, ModelKeys

_NICE_RANGE = range(-20, 20)


class IoPriority(Control):
    """The I/O class and level of the jobs' threads."""

    def validate(self, value: Any) -> str:
        """`"be/7"`, `"be"` (level 4, the kernel's default), `"idle"`."""
        match = re.fullmatch(r"(rt|be)(?:/([0-7]))?|idle", value) if isinstance(value, str) else None
        if match is None:
            raise self.expected(value)
        return "idle" if value == "idle" else f"{match.group(1)}/{match.group(2) or 4}"

    @override
    def on_model(self, value: str, drives: int) -> ModelKeys:
        return {("io_priority",): value}


class Nice(Control):
    """The nice value of the jobs' threads."""

    @override
    def validate(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value not in _NICE_RANGE:
            raise self.expected(value)
        return value


CONTROLS: tuple[Control, ...] = (
    IoPriority(
        "io_priority",
        "Class and level of the load's I/O: rt before be before idle, level 0 before 7. Honoured by bfq, and its class "
        "by mq-deadline; rt needs root.",
        values='"rt/0" to "rt/7", "be/0" to "be/7", or "idle"',
        example='"be/7"',
    ),
    Nice(
        "nice",
        "Niceness of the load's threads and processes: -20 first, 19 last; below 0 needs root.",
        values="a whole number from -20 to 19",
        example="10",
    ),
)
