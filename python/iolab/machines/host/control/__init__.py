"""Applies the controls of a trial (domain/control) to this machine, and reads what is in force."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from iolab.domain.control import in_order
from iolab.domain.control.control import UnsupportedSetting
from iolab.domain.trial import Phase
from iolab.machines.host.control import (
    affinity,
    background,
    cache,
    cpu,
    interrupt,
    kernel_file,
    limit,
    power,
    priority,
    queue,
    writeback,
)
from iolab.machines.host.control.applier import AppliedValue, Applier, Context

__all__ = ["APPLIERS", "AppliedValue", "Context", "apply", "place"]

_FAMILIES = (queue, interrupt, writeback, power, cpu, background, priority, limit, cache, affinity)

APPLIERS: dict[str, Applier] = {applier.name: applier for family in _FAMILIES for applier in family.APPLIERS}
"""By control. Those that have none amend the trial, or mean nothing on this machine."""


def apply(controls: Mapping[str, Any], *contexts: Context) -> dict[str, AppliedValue]:
    """Changes the machine, each change journaled first. By control name, what was changed.

    Args:
        contexts: one for each of the target's devices; what is not a matter of devices is changed once.

    Raises:
        MachineError, InputError: see `Applier.apply`; what was changed before is in the journal.
        UnsupportedSetting: this device or kernel has no such thing.
    """
    changed = {}
    for control, value in in_order(controls):
        if (applier := APPLIERS.get(control.name)) is not None:
            chosen = contexts if "queue" in control.reach else contexts[:1]
            with _naming(control.name):
                made = [(context.label, applier.apply(context, value)) for context in chosen]
            changed[control.name] = kernel_file.together(made)
    return changed


def place(phases: Sequence[Phase], applied: Mapping[str, AppliedValue]) -> Sequence[Phase]:
    """The phases with what was only known once the controls were applied.

    Raises UnsupportedSetting as `Applier.place`.
    """
    for name, change in applied.items():
        with _naming(name):
            phases = APPLIERS[name].place(phases, change.applied)
    return phases


@contextmanager
def _naming(control: str) -> Iterator[None]:
    try:
        yield
    except UnsupportedSetting as error:
        error.control = control
        raise
