"""How the CPUs idle and how fast they run.

Sources: Documentation/admin-guide/pm/cpuidle.rst and cpufreq.rst, Documentation/power/pm_qos_interface.rst.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from typing_extensions import override

from iolab.base.errors import MachineError, unknown
from iolab.machines.host.control import kernel_file
from iolab.machines.host.control.applier import AppliedValue, Applier, Context
from iolab.machines.system import block, rights

DMA_LATENCY = Path("/dev/cpu_dma_latency")


class IdleStatesDisabled(Applier):
    """cpuidle/state*/disable of every CPU."""

    def apply(self, context: Context, value: list[str]) -> AppliedValue:
        """All states are put as asked: those that `value` leaves out are enabled."""
        states = _idle_states(self.name)
        names = list(dict.fromkeys(name for _, name in states))
        for name in value:
            if name not in names:
                raise MachineError(unknown(f"{self.name}: idle state {name!r}", name, names))
        before = _disabled(states)
        for directory, name in states:
            kernel_file.write(self.name, directory / "disable", str(int(name in value)), context.undo)
        return AppliedValue(before, _disabled(states))


class IdleLatencyMax(Applier):
    """/dev/cpu_dma_latency, open for the trial: the kernel forgets the demand with the file's last user."""

    @override
    def apply(self, context: Context, value: int) -> AppliedValue:
        _idle_states(self.name)
        before = self.read(context)
        try:
            fd = os.open(DMA_LATENCY, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise MachineError(
                f"{self.name}: {error.strerror}", where=str(DMA_LATENCY), remedy=rights.AS_ROOT
            ) from error
        context.until_end.callback(os.close, fd)
        os.write(fd, struct.pack("=i", value))
        return AppliedValue(before, self.read(context))

    def read(self, context: Context) -> int | None:
        """The strictest demand of all processes."""
        try:
            return int(struct.unpack("=i", DMA_LATENCY.read_bytes()[:4])[0])
        except (OSError, struct.error):
            return None


class Governor(Applier):
    """cpufreq/scaling_governor of every CPU."""

    @override
    def apply(self, context: Context, value: str) -> AppliedValue:
        files = sorted(_cpus().glob("cpu[0-9]*/cpufreq/scaling_governor"))
        if not files:
            raise _lacking(self.name, "no control of CPU frequencies", "cpu0/cpufreq")
        offered = files[0].with_name("scaling_available_governors")
        names = offered.read_text().split() if offered.exists() else [value]
        if value not in names:
            raise MachineError(unknown(f"{self.name} {value!r}", value, names), where=str(offered))
        return kernel_file.together(
            [(file.parents[1].name, kernel_file.write(self.name, file, value, context.undo)) for file in files]
        )


class Boost(Applier):
    """cpufreq/boost, or its opposite intel_pstate/no_turbo."""

    @override
    def apply(self, context: Context, value: bool) -> AppliedValue:
        boost, no_turbo = _cpus() / "cpufreq" / "boost", _cpus() / "intel_pstate" / "no_turbo"
        inverted = not boost.exists() and no_turbo.exists()
        if not boost.exists() and not inverted:
            raise _lacking(self.name, "no frequencies that could be boosted", "cpufreq/boost")
        done = kernel_file.write(self.name, no_turbo if inverted else boost, str(int(value != inverted)), context.undo)
        return AppliedValue((done.before == "1") != inverted, (done.applied == "1") != inverted)


def _cpus() -> Path:
    return block.SYS / "devices" / "system" / "cpu"


def _idle_states(control: str) -> list[tuple[Path, str]]:
    """Every CPU's states: directory and name."""
    found = sorted(_cpus().glob("cpu[0-9]*/cpuidle/state[0-9]*"))
    if not found:
        raise _lacking(control, "no CPU idle states that Linux chooses", "cpu0/cpuidle")
    return [(directory, (directory / "name").read_text().strip()) for directory in found]


def _disabled(states: list[tuple[Path, str]]) -> list[str]:
    """Names of those that are disabled on any CPU."""
    return list(dict.fromkeys(name for directory, name in states if (directory / "disable").read_text().strip() != "0"))


def _lacking(control: str, what: str, path: str) -> MachineError:
    """Virtual machines leave this to their host."""
    return MachineError(
        f"{control}: this machine has {what}, there is no {_cpus() / path}",
        remedy="leave the setting out here; in a virtual machine its host decides",
    )


APPLIERS: tuple[Applier, ...] = (
    IdleStatesDisabled("cpu_idle_states_disabled"),
    IdleLatencyMax("cpu_idle_latency_us_max"),
    Governor("cpu_governor"),
    Boost("cpu_boost"),
)
