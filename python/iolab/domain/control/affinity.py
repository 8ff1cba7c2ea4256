"""The control of where application, queueing and completion happen; `cell.py` determines what is possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from iolab.domain.control import cell
from iolab.domain.control.cell import Part
from iolab.domain.control.control import (
    Control,
    ModelKeys,
    of_each_drive,
)
from iolab.domain.trial.target import Reach


class Affinity(Control):
    """The CPUs on which an application, its requests' queueing and their completion run: A, Q and C."""

    reach: ClassVar[frozenset[Reach]] = frozenset({"queue", "machine"})

    def validate(self, value: Any) -> dict[str, Part]:
        """The cell that the value names: for each part a CPU's number or a word (`cell.WORDS`), letters made words.
        InputError otherwise."""
        if not isinstance(value, Mapping) or set(value) != set(cell.PARTS):
            raise self.expected(value)
        parts = {name: _word(value[name]) for name in cell.PARTS}
        if not all(_is_part(part) for part in parts.values()) or parts["application"] == "application":
            raise self.expected(value)
        return parts

    def axis(self, path: tuple[str, ...], value: Any) -> str | None:
        """How a matrix labels a part: `A=X` for an application on any other CPU; None for what is no part."""
        if len(path) != 2 or path[1] not in cell.PARTS:
            return None
        return f"{cell.PARTS[path[1]]}={cell.letter(_word(value))}"

    def on_model(self, value: dict[str, Part], drives: int) -> ModelKeys:
        """The words as they are: what is elsewhere, the model knows from its CPUs' topology."""
        return of_each_drive(drives, "affinity", value=value)


def _word(part: Any) -> Any:
    return cell.LETTERS.get(part, part) if isinstance(part, str) else part


def _is_part(part: Any) -> bool:
    return part in cell.WORDS or (isinstance(part, int) and not isinstance(part, bool) and part >= 0)


CONTROLS: tuple[Control, ...] = (
    Affinity(
        "affinity",
        "Where the application runs (A), requests are queued (Q) and complete (C). Lists make the matrix; cells that "
        "the device cannot do are left out, with the reason: docs/reference/affinity.md.",
        values='a table { application, queue, completion }, each a CPU number, "application" (A), "interrupt" (I) or '
        '"other" (X)',
        example='{ application = "other", queue = "application", completion = "interrupt" }',
        excludes=("cpus", "rq_affinity"),
    ),
)
