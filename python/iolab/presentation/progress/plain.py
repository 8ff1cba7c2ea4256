"""Progress without a terminal: one line per finished trial, and one every few seconds while a trial runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from typing_extensions import override

from iolab.base.plain_text import counted, one_line
from iolab.domain.executor import Display, Progress
from iolab.presentation.progress import words
from iolab.presentation.progress.pace import Pace, Speedometer

if TYPE_CHECKING:
    from iolab.domain.record import Record
    from iolab.domain.trial import Trial

LINE_EVERY_NS = 5_000_000_000
BRIEF_LINE_EVERY_NS = 30_000_000_000


class PlainDisplay(Display):
    """Writes to `stream`. With `brief`, finished trials are lines only when they went wrong."""

    def __init__(
        self, stream: TextIO, *, brief: bool = False, monotonic_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._stream = stream
        self._brief = brief
        self._monotonic_ns = monotonic_ns
        self._pace = Pace()
        self._speedometer = Speedometer()
        self._finished = 0
        self._trial: Trial | None = None
        self._last_line_ns = monotonic_ns()

    @override
    def begin(self, path: Path, *, finished: int) -> None:
        self._finished = finished
        self.report_line(f"run in {path}" + (f": {counted(finished, 'trial')} finished before" if finished else ""))

    @override
    def planned(self, trials_by_workload: Mapping[str, int]) -> None:
        self._pace.plan(trials_by_workload)

    @override
    def trial_started(self, trial: Trial) -> None:
        self._trial = trial
        self._speedometer = Speedometer()

    @override
    def trial_progress(self, progress: Progress) -> None:
        rate = self._speedometer.rate(progress)
        every_ns = BRIEF_LINE_EVERY_NS if self._brief else LINE_EVERY_NS
        if self._trial is None or self._monotonic_ns() - self._last_line_ns < every_ns:
            return
        self.report_line(
            f"{self._place(self._finished + 1)} {words.title(self._trial)}: {words.activity(progress, rate)}"
        )

    @override
    def trial_finished(self, trial: Trial, record: Record, duration_ns: int) -> None:
        self._trial = None
        self._finished += 1
        self._pace.finished(trial.workload, duration_ns)
        if not self._brief or record.status != "ok":
            left = words.time_left(self._pace.left_ns())
            place = self._place(self._finished)
            self.report_line(f"{place} {words.title(trial)}: {words.outcome(record, duration_ns)}{left}")

    @override
    def report_line(self, line: str) -> None:
        self._last_line_ns = self._monotonic_ns()
        print(one_line(line), file=self._stream, flush=True)

    @override
    def report_look(self, line: str) -> None:
        self.report_line(line)

    @override
    def end(self) -> None:
        self._trial = None

    def _place(self, number: int) -> str:
        return f"[{number}/{self._finished + self._pace.to_come}]"
