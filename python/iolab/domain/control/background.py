"""A command that runs beside the load: a noisy neighbour, a backup, a monitor."""

from __future__ import annotations

from typing import Any

from iolab.base.plain_text import is_one_line
from iolab.domain.control.control import Control


class Background(Control):
    """A shell command, as text."""

    def validate(self, value: Any) -> str:
        """The command without spaces around it. InputError for what is no text on one line."""
        if not isinstance(value, str) or not value.strip() or not is_one_line(value):
            raise self.expected(value)
        return value.strip()


CONTROLS: tuple[Control, ...] = (
    Background(
        "background",
        "A shell command that runs beside the load, from before the first phase to the trial's end, when it is killed "
        "with all that it started; needs root. It finds TARGET and DEVICE, and starts in the target's directory.",
        values="a shell command on one line",
        example='"while :; do dd if=/dev/zero of=other bs=1M count=64 conv=fsync; done"',
    ),
)
