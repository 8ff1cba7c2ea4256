"""Controls of how the CPUs idle and how fast they run."""

from __future__ import annotations

from typing import Any, ClassVar

from typing_extensions import override

from iolab.domain.control.control import Control, Number, Switch
from iolab.domain.trial.target import Reach

MACHINE: frozenset[Reach] = frozenset({"machine"})


class IdleStatesDisabled(Control):
    """Idle states that no CPU enters."""

    reach: ClassVar[frozenset[Reach]] = MACHINE
    takes_list: ClassVar[bool] = True

    @override
    def validate(self, value: Any) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(name, str) and name.strip() for name in value):
            raise self.expected(value)
        return list(dict.fromkeys(value))


class Governor(Control):
    """What chooses every CPU's frequency."""

    reach: ClassVar[frozenset[Reach]] = MACHINE

    @override
    def validate(self, value: Any) -> str:
        if not isinstance(value, str) or not value.isidentifier():
            raise self.expected(value)
        return value


class Boost(Switch):
    """Whether frequencies above the nominal one are used."""

    reach: ClassVar[frozenset[Reach]] = MACHINE


CONTROLS: tuple[Control, ...] = (
    IdleStatesDisabled(
        "cpu_idle_states_disabled",
        "Idle states that no CPU may enter, by the names in cpuidle/state*/name; an empty list enables all.",
        values="a list of names",
        example='["C6"]',
    ),
    Number(
        "cpu_idle_latency_us_max",
        "Longest time that a CPU may take to wake up: deeper idle states are not entered. Held through "
        "/dev/cpu_dma_latency while the trial runs.",
        at_most=2**31 - 1,
        values="a whole number",
        unit="us",
        example="20",
    ),
    Governor(
        "cpu_governor",
        "Frequency governor of every CPU.",
        values="a name as in cpufreq/scaling_available_governors",
        example='"performance"',
    ),
    Boost(
        "cpu_boost",
        "Whether CPUs may run above their nominal frequency.",
        values="true or false",
        example="true",
    ),
)
