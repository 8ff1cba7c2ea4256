"""What shows a run while it goes on: the loop calls it, `iolab.presentation.progress` draws."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from iolab.domain.executor import Progress
from iolab.domain.record import Record
from iolab.domain.trial import Trial


class Display(Protocol):
    """Told by the loop (`iolab.adapters.run`) what happens. Calls come from one thread, in this order."""

    def begin(self, path: Path, *, finished: int) -> None:
        """The run in `path` starts or goes on, with so many trials finished before."""

    def planned(self, trials_by_workload: Mapping[str, int]) -> None:
        """So many trials will run; called again when rounds are added."""

    def trial_started(self, trial: Trial) -> None: ...

    def trial_progress(self, progress: Progress) -> None: ...

    def trial_finished(self, trial: Trial, record: Record, duration_ns: int) -> None: ...

    def say(self, line: str) -> None:
        """Something worth knowing beside the trials: what was restored, what is still undecided."""

    def end(self) -> None:
        """No more trials; also after an error or an interruption."""
