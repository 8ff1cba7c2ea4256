"""Controls of where the jobs run."""

from __future__ import annotations

from typing import Any, ClassVar

from typing_extensions import override

from iolab.base import cpu_list
from iolab.domain.control.control import Control, GuestFiles, ModelKeys
from iolab.domain.trial import Trial

CPU_MAX = 99_999


VALUES = "a list of CPU numbers, one number, or a string like '0-3,5'"


class CpuList(Control):
    """Some CPUs of the machine."""

    takes_list: ClassVar[bool] = True

    @override
    def validate(self, value: Any) -> list[int]:
        """`[0, 1]`, `3` or `"0-3,5"` -> sorted CPU numbers."""
        cpus = cpu_list.parse(value) if isinstance(value, str) else [value] if isinstance(value, int) else value
        if not isinstance(cpus, list) or not cpus:
            raise self.expected(value)
        if any(isinstance(cpu, bool) or not isinstance(cpu, int) or not 0 <= cpu <= CPU_MAX for cpu in cpus):
            raise self.expected(value)
        return sorted(set(cpus))


class Cpus(CpuList):
    """The CPUs that every job's threads may run on."""

    @override
    def on_model(self, value: list[int], drives: int) -> ModelKeys:
        return {}

    @override
    def on_guest(self, value: list[int]) -> GuestFiles:
        return []

    @override
    def amend(self, trial: Trial, value: list[int]) -> Trial:
        phases = [phase.on_cpus(value) for phase in trial.phases]
        return trial.model_copy(update={"phases": phases})


CONTROLS: tuple[Control, ...] = (
    Cpus(
        "cpus",
        "CPUs that the jobs' threads may run on, instead of the workload's; one CPU is a pin.",
        values=VALUES,
        example="[0]",
    ),
)
