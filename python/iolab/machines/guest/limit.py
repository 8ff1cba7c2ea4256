"""The wall time that a trial on a guest machine may take, of everything from its kernel's being there to its record."""

from __future__ import annotations

import time
from dataclasses import dataclass

from iolab.base.errors import MachineError


class GuestEnded(MachineError):
    """The guest ended before its plan did, and why: its trial fails, and reports it."""


@dataclass(frozen=True)
class Deadline:
    """Until when, on the monotonic clock."""

    limit_s: float
    at: float

    @staticmethod
    def after(limit_s: float) -> Deadline:
        """So long from now."""
        return Deadline(limit_s, time.monotonic() + limit_s)

    def within(self, limit_s: float) -> Deadline:
        """The same, or this long from now if that is earlier."""
        other = Deadline.after(limit_s)
        return other if other.at < self.at else self

    @property
    def left_s(self) -> float:
        """None is left at 0."""
        return max(0.0, self.at - time.monotonic())

    @property
    def passed(self) -> str | None:
        """The message about a guest that is over its limit; None until then."""
        return None if self.left_s else f"the guest did not end within {self.limit_s:g} s"

    def check(self, doing: str, where: str) -> None:
        """GuestEnded if the time is over."""
        if self.passed:
            raise GuestEnded(f"{self.passed}, {doing} included", where=where, remedy="raise guest.time_limit")
