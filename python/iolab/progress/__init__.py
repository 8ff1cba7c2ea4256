"""What a run shows while it goes on: live on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from iolab.executor import Progress
    from iolab.record import Record
    from iolab.trial import Trial


class Display(Protocol):
    """Told by the loop (`iolab.run`) what happens. Calls come from one thread, in this order."""

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


def display(*, as_json: bool = False) -> Display:
    """The display for this process's stderr: live on a terminal, else plain lines; with `as_json` few of them."""
    if sys.stderr.isatty() and not as_json:
        from iolab.progress.live import LiveDisplay

        return LiveDisplay()
    from iolab.progress.plain import PlainDisplay

    return PlainDisplay(sys.stderr, brief=as_json)
