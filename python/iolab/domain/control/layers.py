"""The control of the layers between a scratch target's devices and their drives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from typing_extensions import override

from iolab.base.errors import InputError
from iolab.base.plain_text import whole_number
from iolab.domain import layer
from iolab.domain.control.control import Control, GuestFiles
from iolab.domain.trial import Trial


class Layers(Control):
    """Other layers than the target's, or other options of some."""

    takes_list: ClassVar[bool] = True

    @override
    def validate(self, value: Any) -> Any:
        """A list of layers, or what changes in the target's by number. What comes of it is checked as a whole: by the
        experiment's reader, on each key's line, and by `amend`."""
        if isinstance(value, list):
            well_formed = all(isinstance(table, Mapping) for table in value)
        else:
            well_formed = isinstance(value, Mapping) and bool(value) and all(map(_changes_one, value.items()))
        if not well_formed:
            raise self.expected(value)
        return value

    @override
    def amend(self, trial: Trial, value: Any) -> Trial:
        target = trial.target
        if target.kind != "scratch":
            raise InputError(
                "layers need a scratch target: iolab puts them on devices of its own only",
                remedy='set [target] kind = "scratch"',
            )
        layers = layer.changed(target.layers, value)
        layer.refuse(layers, target.size_bytes)
        return trial.model_copy(update={"target": target.model_copy(update={"layers": layers})})

    @override
    def on_guest(self, value: Any) -> GuestFiles:
        return []


def _changes_one(change: tuple[str, Any]) -> bool:
    number, options = change
    return whole_number(number) is not None and isinstance(options, Mapping)


CONTROLS: tuple[Control, ...] = (
    Layers(
        "layers",
        "Layers of the kernel's between the target's device and its drives: a list, the top one first, replaces those "
        "of [target]; a table by number changes options of some, layers.0.no_read_workqueue = true.",
        values="a list of tables with a kind, or a table by the layer's number",
        example='[{ kind = "crypt", no_read_workqueue = true }]',
    ),
)
