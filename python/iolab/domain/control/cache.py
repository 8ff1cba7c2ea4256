"""Controls of what the page cache holds when a phase starts."""

from __future__ import annotations

from typing_extensions import override

from iolab.domain.control.control import Control, GuestFiles, ModelKeys, Switch
from iolab.domain.trial import Trial


class DropCaches(Switch):
    """Whether the page cache is emptied before each measured phase."""

    @override
    def on_model(self, value: bool, drives: int) -> ModelKeys:
        return {}

    @override
    def on_guest(self, value: bool) -> GuestFiles:
        return []

    @override
    def amend(self, trial: Trial, value: bool) -> Trial:
        phases = [phase.dropping_caches(value) if phase.measured else phase for phase in trial.phases]
        return trial.model_copy(update={"phases": phases})


CONTROLS: tuple[Control, ...] = (
    DropCaches(
        "drop_caches",
        "Sync and drop the page cache before each measured phase; without root only the files' own pages.",
        values="true or false",
        example="true",
    ),
)
