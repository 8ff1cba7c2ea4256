"""What mpstat, iostat and sar have in common: reports over time, columns named by a header, CPU states, and several of
their outputs in one text."""

from __future__ import annotations

import re
import statistics
from abc import abstractmethod
from collections.abc import Sequence

from typing_extensions import override

from iolab.base.quantity import scale_for
from iolab.domain.lead import OF_DEVICE
from iolab.files.importer.format import TableReader
from iolab.files.importer.results import Results, Row
from iolab.files.importer.series import Series
from iolab.files.importer.shell_commands import command_of
from iolab.files.importer.source import Line, Source
from iolab.files.importer.titles import may_name

NS_PER_S = 1e9
PEAK_REPORTS_MIN = 4
PEAK_MIN = 20
"""By so many percent of the time, and twice as busy, the busiest report is far from the median one. Chosen."""
CPU_STATES = {
    "usr": "user",
    "user": "user",
    "nice": "nice",
    "sys": "system",
    "system": "system",
    "iowait": "iowait",
    "irq": "irq",
    "soft": "softirq",
    "steal": "steal",
    "guest": "guest",
    "gnice": "guest_nice",
    "idle": "idle",
}
"""Columns of all versions, without the percent sign -> the state's name in `cpu_STATE_percent`."""

_DECIMAL_COMMA = re.compile(r"\d+,\d{1,2}[BkMGTP%]?")
AVERAGE = r"[^\W\d]\S*+(?:\s++:)?"
"""`Average:` in any language, before the averages that a report ends with."""
TIME = r"(?>(?:(?:上午|下午|午前|午後|오전|오후)\s?+)?)\d\d?[:時时시]\s?\d\d[:分분]\s?\d\d[秒초]?+(?:\s++[AP]M)?"
"""Before each line of a report, in the languages that write it in another way too."""
_BANNER = re.compile(r"\s*+Linux \S++ \([^()]*+\)\s")
"""What every output begins with, unless it was left out by whoever posted it."""
_CLOCK = re.compile(r"(?P<hour>\d{1,2}):(?P<minute>\d\d):(?P<second>\d\d)$")

Means = dict[tuple[str, str, str], Series]
"""(metric, op, job) -> its samples."""


def cpu_metric(column: str) -> str | None:
    """The metric of a CPU state's column: `%usr` -> `cpu_user_percent`; None for any other column."""
    state = CPU_STATES.get(column.removeprefix("%").lower())
    return f"cpu_{state}_percent" if column.startswith("%") and state else None


def decimal_point(word: str) -> str:
    """`12,50`, as sysstat writes it in many languages, as `12.50`. It separates no thousands, and prints at most two
    decimals."""
    return word.replace(",", ".") if _DECIMAL_COMMA.fullmatch(word) else word


def clock_s(word: str) -> int | None:
    """`21:16:11` -> seconds since midnight."""
    found = _CLOCK.match(word)
    return int(found["hour"]) * 3600 + int(found["minute"]) * 60 + int(found["second"]) if found else None


def sample(means: Means, metric: str, value: float, *, op: str = "all", job: str = "all", weight: float = 1.0) -> None:
    """Adds one value to the metric's series, with the weight that it has in the mean."""
    means.setdefault((metric, op, job), Series()).add(value, weight)


def add_means(row: Row, means: Means, interval_s: float | None) -> None:
    """The mean over the samples, and the series if they are spaced evenly."""
    for (metric, op, job), series in means.items():
        row.add(metric, series.mean, op=op, job=job, absent="no request in any report")
        if interval_s and series.count > 1:
            for start, value in series.intervals():
                row.interval(metric, start * interval_s * NS_PER_S, value, op=op, job=job)


def state_peak(name: str, means: Means, results: Results, times: Sequence[str] = (), *, first: int = 1) -> None:
    """Says when a device was busiest, if that was far from its usual state: a mean over a night hides its hour.
    `times`: those of the reports, if they are known; `first`: the number of the first."""
    series = means.get((OF_DEVICE, "all", "all"))
    busy = dict(series.intervals()) if series is not None else {}
    if len(busy) < PEAK_REPORTS_MIN:
        return
    usual, place = statistics.median(busy.values()), max(busy, key=lambda one: busy[one])
    if busy[place] < max(2 * usual, usual + PEAK_MIN):
        return
    facts = [f"{busy[place]:.3g} % of the time"]
    for (metric, op, _), one in means.items():
        if metric == "latency_ns_mean" and (took := dict(one.intervals()).get(place)) is not None:
            facts.append(f"{scale_for('ns', [took]).with_unit(took)} a {'request' if op == 'all' else op}")
    when = f"at {times[place]}" if place < len(times) else f"in report {place + first}"
    results.problem(f"{name} was busiest {when}: {', '.join(facts)}; in the median report {usual:.3g} %")


class OutputReader(TableReader):
    """Reads a text that may hold several outputs: a banner, a command, or a line that may be a title, begins the
    next."""

    def __init__(self, source: Source, results: Results) -> None:
        super().__init__(source, results)
        self._has_banner = any(map(_BANNER.match, source.text_lines))

    @classmethod
    def parse(cls, source: Source, results: Results) -> None:
        """Reads all outputs of the text, each of which is added when it is over."""
        reader = cls(source, results)
        reader.read()
        reader.finish()

    def finish(self) -> None:
        """The last output is over."""

    @abstractmethod
    def begin(self, *, continues: bool) -> None:
        """What follows is another output, or, if it `continues`, a later part of the same one under another title."""

    @override
    def between(self, line: Line) -> None:
        begins = bool(_BANNER.match(line.text) or command_of(line.text))
        if begins or may_name(line.text):
            self.begin(continues=self._has_banner and not begins)
