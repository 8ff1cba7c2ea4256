"""Progress on a terminal: a bar for the run and a line for the trial, redrawn in place."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from iolab.base.plain_text import counted, one_line
from iolab.domain.executor import Display, Progress
from iolab.presentation import terminal
from iolab.presentation.progress import words
from iolab.presentation.progress.pace import Pace, Speedometer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from iolab.domain.record import Record
    from iolab.domain.trial import Trial

REFRESH_PER_SECOND = 8
BAR_WIDTH = 40


class LiveDisplay(Display):
    """Draws on stderr; lines that should stay (`report_line`, trials that went wrong) scroll by above the bar."""

    def __init__(self, console: Console | None = None) -> None:
        from rich.live import Live

        self._console = console or terminal.console(sys.stderr)
        self._pace = Pace()
        self._speedometer = Speedometer()
        self._finished = 0
        self._trial: Trial | None = None
        self._trial_started_ns = 0
        self._activity = ""
        self._look = ""
        self._live = Live(
            console=self._console,
            get_renderable=self._drawing,
            refresh_per_second=REFRESH_PER_SECOND,
            transient=True,
            redirect_stdout=False,
        )

    @override
    def begin(self, path: Path, *, finished: int) -> None:
        self._finished = finished
        self.report_line(f"run in {path}" + (f": {counted(finished, 'trial')} finished before" if finished else ""))
        self._live.start()

    @override
    def planned(self, trials_by_workload: Mapping[str, int]) -> None:
        self._pace.plan(trials_by_workload)

    @override
    def trial_started(self, trial: Trial) -> None:
        self._trial = trial
        self._trial_started_ns = time.monotonic_ns()
        self._speedometer = Speedometer()
        self._activity = "starting"

    @override
    def trial_progress(self, progress: Progress) -> None:
        self._activity = words.activity(progress, self._speedometer.rate(progress))

    @override
    def trial_finished(self, trial: Trial, record: Record, duration_ns: int) -> None:
        self._trial = None
        self._finished += 1
        self._pace.finished(trial.workload, duration_ns)
        if record.status != "ok":
            self.report_line(f"{words.title(trial)}: {words.outcome(record, duration_ns)}")

    @override
    def report_line(self, line: str) -> None:
        self._console.print(one_line(line), soft_wrap=True)

    @override
    def report_look(self, line: str) -> None:
        self._look = one_line(line)

    @override
    def end(self) -> None:
        self._trial = None
        self._live.stop()

    def _drawing(self) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        total = self._finished + self._pace.to_come
        spent_ns = time.monotonic_ns() - self._trial_started_ns if self._trial else 0
        left = words.time_left(self._pace.left_ns(spent_on_current_ns=spent_ns))
        overall = Table.grid(padding=(0, 1))
        overall.add_row(
            ProgressBar(total=max(total, 1), completed=self._finished, width=BAR_WIDTH),
            Text(f"{self._finished} of {counted(total, 'trial')}{left}"),
        )
        lines = [f"{words.title(self._trial)}: {self._activity}"] if self._trial else []
        lines += [self._look] if self._look else []
        return Group(overall, *(Text(line, overflow="ellipsis", no_wrap=True) for line in lines))
