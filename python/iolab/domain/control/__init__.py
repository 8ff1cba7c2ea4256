"""The controls that a setting may use: the one home of their names, help, units and allowed values.

`iolab list controls`, docs/reference/settings.md, validation and error messages come from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iolab.base.errors import InputError, unknown
from iolab.domain.control import (
    affinity,
    background,
    cache,
    cpu,
    filesystem,
    interrupt,
    layers,
    limit,
    model,
    power,
    priority,
    queue,
    writeback,
)
from iolab.domain.control.control import Control, UnsupportedSetting
from iolab.domain.trial import Trial
from iolab.domain.trial.target import Reach

__all__ = [
    "CONTROLS",
    "Control",
    "UnsupportedSetting",
    "amend",
    "in_order",
    "reach",
    "settings_table",
    "validate",
]

_FAMILIES = (
    *(model, layers, filesystem, queue, interrupt, writeback, power),
    *(cpu, background, priority, limit, cache, affinity),
)

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
    for control, value in in_order(trial.controls):
        if trial.model is None or not control.on_model(value, trial.target.devices):  # else the trial's model has it
            trial = control.amend(trial, value)
    return trial


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


def in_order(controls: Mapping[str, Any]) -> list[tuple[Control, Any]]:
    """Each control with its value, as they are applied. InputError for a name of none."""
    for name in controls:
        if name not in CONTROLS:
            raise InputError(unknown(f"setting {name!r}", name, CONTROLS), remedy="see: iolab list controls")
    return [(control, controls[name]) for name, control in CONTROLS.items() if name in controls]
