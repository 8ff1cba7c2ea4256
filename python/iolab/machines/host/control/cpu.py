"""Where the jobs run: the phases pin their threads, this checks whether they can."""

from __future__ import annotations

import os

from typing_extensions import override

from iolab.base import cpu_list
from iolab.base.errors import MachineError
from iolab.machines.host.control.applier import AppliedValue, Applier, Context


class Cpus(Applier):
    """Checks that this process may run on the CPUs."""

    @override
    def apply(self, context: Context, value: list[int]) -> AppliedValue:
        allowed = sorted(os.sched_getaffinity(0))
        missing = [cpu for cpu in value if cpu not in allowed]
        if missing:
            raise MachineError(
                f"cpus: CPU {cpu_list.text(missing)} is not available here",
                remedy=f"choose from {cpu_list.text(allowed)}",
            )
        return AppliedValue(allowed, value)


APPLIERS: tuple[Applier, ...] = (Cpus("cpus"),)
