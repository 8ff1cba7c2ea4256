"""Controls that limit the load by a control group of its own: I/O of the target's devices, CPU time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from iolab.base.errors import InputError, nearest
from iolab.base.quantity import parse_rate
from iolab.domain.control.control import Control, GuestFiles
from iolab.domain.trial import Trial
from iolab.domain.trial.target import Reach

CPU_PERIOD_US = 100_000
CPU_QUOTA_MIN_US = 1_000
"""The kernel takes no less (kernel/sched/core.c)."""
CPUS_MAX = 4096

LIMITS = ("read", "write", "read_iops", "write_iops")


class Limit(Control):
    """A limit of either kind; it conflicts with workloads that make control groups themselves."""

    def amend(self, trial: Trial, value: Any) -> Trial:
        """The trial as it is. InputError for a workload whose groups are control groups already."""
        if any(phase.control_groups for phase in trial.phases):
            raise InputError(
                f"{self.name}: this workload's groups have control groups of their own",
                remedy=f'{self.name} of a mix\'s groups is a key of each group; of iostest, set controller = "none"',
            )
        return trial


class IoMax(Limit):
    """Bytes and operations per second, by key (`LIMITS`)."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"queue"})
    """So that it is applied to each of the target's devices."""

    def validate(self, value: Any) -> dict[str, int]:
        """`{ read = "100MiB/s", write_iops = 500 }` -> bytes or operations per second."""
        if not isinstance(value, Mapping) or not value:
            raise self.expected(value)
        found: dict[str, int] = {}
        for key, given in value.items():
            if key not in LIMITS:
                close = nearest(str(key), LIMITS)
                hint = f"did you mean {close}?" if close else f"it has {', '.join(LIMITS)}"
                raise InputError(f"{self.name}: unknown key {str(key)!r}", remedy=hint)
            found[key] = _operations(self, key, given) if key.endswith("iops") else _rate(self, key, given)
        return found

    @override
    def on_guest(self, value: Any) -> GuestFiles:
        """Nothing: the group is made, and the load put into it, by machines/guest/limits.py."""
        return []


class CpuQuota(Limit):
    """CPU time per wall time, in CPUs."""

    def validate(self, value: Any) -> float:
        """CPUs' worth of time: 0.5, 2, or `"50%"` of one."""
        if isinstance(value, str) and (found := re.fullmatch(r"(\d{1,7}(?:\.\d{1,3})?) ?%", value.strip())):
            value = float(found[1]) / 100
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.expected(value)
        if not CPU_QUOTA_MIN_US / CPU_PERIOD_US <= value <= CPUS_MAX:
            raise self.expected(value)
        return float(value)


def _rate(control: Control, key: str, given: Any) -> int:
    if isinstance(given, str):
        try:
            given = parse_rate(given)
        except ValueError as error:
            raise InputError(f"{control.name}.{key}: {error}") from error
    if isinstance(given, bool) or not isinstance(given, int | float) or not 1 <= given < 2**63:
        raise InputError(f'{control.name}.{key} is {given!r}, expected a rate such as "100MiB/s"')
    return int(given)


def _operations(control: Control, key: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given < 2**32:
        raise InputError(f"{control.name}.{key} is {given!r}, expected a whole number of operations per second, from 1")
    return given


CONTROLS: tuple[Control, ...] = (
    IoMax(
        "io_max",
        "Limits of the load's I/O on the target's devices, by a control group: bytes (read, write) and operations "
        "(read_iops, write_iops) per second. Buffered writes are limited with version 2 of control groups only.",
        values="a table of read, write, read_iops, write_iops",
        example='{ read = "100MiB/s", write_iops = 500 }',
    ),
    CpuQuota(
        "cpu_quota",
        "CPU time that the load's threads and processes have together, by a control group: 0.5 is half a CPU's.",
        values='a number of CPUs from 0.01, or a percentage of one such as "50%"',
        unit="CPUs",
        example="0.5",
    ),
)
