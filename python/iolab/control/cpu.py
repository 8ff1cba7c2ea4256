"""Controls of where the jobs run."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from iolab.control.control import Applied, Context, Control
from iolab.errors import MachineError

if TYPE_CHECKING:
    from iolab.trial import Trial


class Cpus(Control):
    def validate(self, value: Any) -> list[int]:
        """`[0, 1]`, `3` or `"0-3,5"` -> sorted CPU numbers."""
        cpus = _listed(value) if isinstance(value, str) else [value] if isinstance(value, int) else value
        if not isinstance(cpus, list) or not cpus:
            raise self.expected(value)
        if any(isinstance(cpu, bool) or not isinstance(cpu, int) or cpu < 0 for cpu in cpus):
            raise self.expected(value)
        return sorted(set(cpus))

    def amend(self, trial: Trial, value: list[int]) -> Trial:
        phases = [phase.on_cpus(value) for phase in trial.phases]
        return trial.model_copy(update={"phases": phases})

    def apply(self, context: Context, value: list[int]) -> Applied:
        allowed = sorted(os.sched_getaffinity(0))
        missing = [cpu for cpu in value if cpu not in allowed]
        if missing:
            raise MachineError(
                f"cpus: CPU {', '.join(map(str, missing))} is not available here",
                remedy=f"choose from {_text(allowed)}",
            )
        return Applied(allowed, value)


def _listed(text: str) -> list[int] | None:
    """The kernel's list format, `0-3,5`; None when it isn't."""
    cpus: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,5})(?:-(\d{1,5}))?\s*", part)
        if match is None:
            return None
        first = int(match.group(1))
        cpus.extend(range(first, int(match.group(2) or first) + 1))
    return cpus


def _text(cpus: list[int]) -> str:
    return ", ".join(map(str, cpus))


CONTROLS: tuple[Control, ...] = (
    Cpus(
        "cpus",
        "CPUs that the jobs' threads may run on, instead of what the workload says; one CPU is a pin.",
        values="a list of CPU numbers, one number, or a string like '0-3,5'",
        example="[0]",
    ),
)
