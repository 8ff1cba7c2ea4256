"""The controls that a setting may use: the one home of their names, help, units and allowed values.

`iolab list settings`, docs/settings.md, validation and error messages come from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from iolab.control import cache, cpu, filesystem, queue
from iolab.control.control import Applied, Context, Control
from iolab.errors import InputError
from iolab.nearest import unknown

if TYPE_CHECKING:
    from iolab.trial import Trial

__all__ = ["CONTROLS", "Applied", "Context", "Control", "amend", "apply", "settings_table", "tunes_queue", "validate"]

CONTROLS: dict[str, Control] = {
    control.name: control for family in (filesystem, queue, cpu, cache) for control in family.CONTROLS
}
"""In the order in which they are applied: what resets another comes before it."""

_QUEUE_NAMES = frozenset(control.name for control in queue.CONTROLS)


def validate(name: str, value: Any) -> Any:
    """The normalized value of a control.

    Raises:
        InputError: no such control, or a value that it does not take.
    """
    control = CONTROLS.get(name)
    if control is None:
        raise InputError(unknown(f"setting {name!r}", name, CONTROLS), remedy="see: iolab list settings")
    return control.validate(value)


def amend(trial: Trial) -> Trial:
    """The trial with its controls worked into its target and phases.

    Raises:
        InputError: a control has no meaning for the trial's target.
    """
    for control, value in _in_order(trial.controls):
        trial = control.amend(trial, value)
    return trial


def apply(controls: Mapping[str, Any], *contexts: Context) -> dict[str, Applied]:
    """Changes the machine, each change journaled first. By control name, what was changed.

    Args:
        contexts: one for each of the target's devices.

    Raises:
        MachineError, InputError: see `Control.apply`; what was changed before is in the journal.
    """
    applied = {
        control.name: _together([(context, control.apply(context, value)) for context in contexts])
        for control, value in _in_order(controls)
    }
    return {name: change for name, change in applied.items() if change is not None}


def _together(changes: list[tuple[Context, Applied | None]]) -> Applied | None:
    """Several devices' changes as one: a value by device where they differ."""
    made = {context.label: change for context, change in changes if change is not None}
    if not made:
        return None
    notes = tuple(dict.fromkeys(note for change in made.values() for note in change.notes))
    before, applied = ([getattr(change, what) for change in made.values()] for what in ("before", "applied"))
    return Applied(
        before[0] if all(value == before[0] for value in before) else dict(zip(made, before, strict=True)),
        applied[0] if all(value == applied[0] for value in applied) else dict(zip(made, applied, strict=True)),
        notes,
    )


def tunes_queue(controls: Mapping[str, Any]) -> bool:
    """Whether any of them changes a disk's queue."""
    return not _QUEUE_NAMES.isdisjoint(controls)


def settings_table() -> str:
    """All controls as a Markdown table: docs/settings.md."""
    rows = ["| setting | value | unit | what it does | example |", "|---|---|---|---|---|"]
    rows += [
        f"| `{control.name}` | {control.values} | {control.unit or ''} | {control.help} | `{control.example_line}` |"
        for control in CONTROLS.values()
    ]
    return "\n".join(rows) + "\n"


def _in_order(controls: Mapping[str, Any]) -> list[tuple[Control, Any]]:
    for name in controls:
        if name not in CONTROLS:
            raise InputError(unknown(f"setting {name!r}", name, CONTROLS), remedy="see: iolab list settings")
    return [(control, controls[name]) for name, control in CONTROLS.items() if name in controls]
