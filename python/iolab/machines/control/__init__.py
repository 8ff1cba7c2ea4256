"""The controls that a setting may use: the one home of their names, help, units and allowed values.

`iolab list controls`, docs/reference/settings.md, validation and error messages come from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from iolab.base.errors import InputError, unknown
from iolab.domain.trial.target import Reach
from iolab.machines.control import (
    affinity,
    background,
    cache,
    cpu,
    filesystem,
    interrupt,
    kernel_file,
    limit,
    model,
    power,
    priority,
    queue,
    writeback,
)
from iolab.machines.control.control import Applied, Context, Control, UnsupportedSetting

if TYPE_CHECKING:
    from iolab.domain.trial import Phase, Trial

__all__ = [
    "CONTROLS",
    "Applied",
    "Context",
    "Control",
    "UnsupportedSetting",
    "amend",
    "apply",
    "place",
    "reaches",
    "settings_table",
    "validate",
]

_FAMILIES = (model, filesystem, queue, interrupt, writeback, power, cpu, background, priority, limit, cache, affinity)

CONTROLS: dict[str, Control] = {control.name: control for family in _FAMILIES for control in family.CONTROLS}
"""In the order in which they are applied: what resets another, or decides what another finds, comes before it."""


def validate(name: str, value: Any) -> Any:
    """The normalized value of a control.

    Raises:
        InputError: no such control, or a value that it does not take.
    """
    control = CONTROLS.get(name)
    if control is None:
        raise InputError(unknown(f"setting {name!r}", name, CONTROLS), remedy="see: iolab list controls")
    return control.validate(value)


def amend(trial: Trial) -> Trial:
    """The trial with its controls worked into its target and phases.

    Raises:
        InputError: a control has no meaning for the trial's target.
    """
    for control, value in _in_order(trial.controls):
        if trial.model is None or not control.on_model(value, trial.target.devices):  # else the trial's model has it
            trial = control.amend(trial, value)
    return trial


def apply(controls: Mapping[str, Any], *contexts: Context) -> dict[str, Applied]:
    """Changes the machine, each change journaled first. By control name, what was changed.

    Args:
        contexts: one for each of the target's devices; what is not a matter of devices is changed once.

    Raises:
        MachineError, InputError: see `Control.apply`; what was changed before is in the journal.
        UnsupportedSetting: this device or kernel has no such thing.
    """
    changed = {}
    for control, value in _in_order(controls):
        chosen = contexts if "queue" in control.reach else contexts[:1]
        with _naming(control):
            changes = [(context.label, control.apply(context, value)) for context in chosen]
        made = [(label, change) for label, change in changes if change is not None]
        if made:
            changed[control.name] = kernel_file.together(made)
    return changed


def place(phases: Sequence[Phase], applied: Mapping[str, Applied]) -> Sequence[Phase]:
    """The phases with what was only known once the controls were applied.

    Raises UnsupportedSetting as `Control.place`.
    """
    for name, change in applied.items():
        with _naming(CONTROLS[name]):
            phases = CONTROLS[name].place(phases, change.applied)
    return phases


def reach(controls: Mapping[str, Any]) -> set[Reach]:
    """What they change that other runs share."""
    return {what for name in controls if name in CONTROLS for what in CONTROLS[name].reach}


def settings_table() -> str:
    """All controls as a Markdown table: docs/reference/settings.md."""
    rows = ["| setting | value | unit | what it does | example |", "|---|---|---|---|---|"]
    rows += [
        f"| `{control.name}` | {control.values} | {control.unit or ''} | {control.help} | `{control.example_line}` |"
        for control in CONTROLS.values()
    ]
    return "\n".join(rows) + "\n"


@contextmanager
def _naming(control: Control) -> Iterator[None]:
    try:
        yield
    except UnsupportedSetting as error:
        error.control = control.name
        raise


def _in_order(controls: Mapping[str, Any]) -> list[tuple[Control, Any]]:
    for name in controls:
        if name not in CONTROLS:
            raise InputError(unknown(f"setting {name!r}", name, CONTROLS), remedy="see: iolab list controls")
    return [(control, controls[name]) for name, control in CONTROLS.items() if name in controls]
