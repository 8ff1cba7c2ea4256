"""pgbench: its summary, the lines of --progress, and the logs of -l, one line a transaction or, with
--aggregate-interval, a line an interval.

tps is without the time of connecting if pgbench prints both. The logs of one run's threads (NAME.PID, NAME.PID.1 and so
on) are read together.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from iolab.base.errors import InputError
from iolab.base.histogram import few, known_quantile
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Row
from iolab.files.importer.series import Series
from iolab.files.importer.source import Line, Source
from iolab.files.importer.written_number import number

NS_PER_MS, NS_PER_S, NS_PER_US = 1e6, 1e9, 1e3
LINES_LOOKED_AT = 20
SECONDS_MAX = 200_000
"""More seconds than a log spans make one of another kind."""
BUCKETS_PER_OCTAVE = 64
"""A bucket of the histogram is at most 1.6 % wide."""
QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999))

_TYPE = re.compile(r"transaction type:\s*+(?P<type>.*+)$")
_COUNT = re.compile(
    r"(?P<what>scaling factor|number of clients|number of threads|number of failed transactions):\s*+(?P<n>\d{1,15}+)"
)
_LATENCY = re.compile(r"latency (?P<what>average|stddev)(?:\s*+=|:)\s*+(?P<ms>\d[\d.]*+) ms")
_TPS = re.compile(r"tps = (?P<tps>\d[\d.]*+) ?(?:\((?P<which>\w++))?")
_TPS_ALONE = re.compile(r"\s*+tps = \d[\d.]*+ ?\((?:including|excluding|without)\b")
_SHORT = re.compile(rf"{_TPS_ALONE.pattern}|scaling factor: \d|latency average(?:\s*+=|:)\s*+\d[\d.]*+ ms\s*+$")
"""Of a summary, all that many posts have."""
_DURATION = re.compile(r"duration:\s*+(?P<s>\d{1,9}+) s\s*+$")
_PROGRESS = re.compile(
    r"(?:\+\s*+)?progress: (?P<at>\d[\d.]*+) s, (?P<tps>\d[\d.]*+) tps(?:, lat (?P<lat>\d[\d.]*+) ms)?", re.IGNORECASE
)
_LOG = re.compile(
    r"\d{1,9} \d{1,15} (?:\d{1,15}|skipped|failed) \d{1,4} \d{9,11} \d{1,6}(?: \d{1,15}){0,2}(?: [a-z]\w{1,30})?\s*+$"
)
_AGGREGATE = re.compile(r"\d{9,11}(?: \d{1,30}){5,15}\s*$")
_PID = re.compile(r"\.\d{1,10}(?:\.\d{1,5})?$")
_THREAD = re.compile(r"(?P<first>.+\.\d{1,10})\.\d{1,5}")


class _Summaries:
    """The summaries of a text with summaries and lines of progress."""

    def __init__(self, source: Source, results: Results) -> None:
        self.source = source
        self.results = results
        self.row: Row | None = None
        self.facts: dict[str, str] = {}
        self.begun: int | None = None
        self.pending: dict[str, float] = {}
        self._forget_progress()

    def _forget_progress(self) -> None:
        self.first = 0
        self.last_s = 0.0
        self.period_s = 0.0
        self.transactions = 0.0
        self.series = {"transactions_per_s": Series(), "latency_ns_mean": Series()}

    def read(self) -> None:
        for line in self.source.lines(self.results.problem):
            self._line(line)
        self._finish()
        if self.first:
            row = self.results.table(self.first).row(self.source.stem_without_round, "pgbench")
            row.add("transactions_per_s", self.transactions / self.last_s if self.last_s else None)
            self._add_series(row)

    def _line(self, line: Line) -> None:
        text = line.text.strip()
        if found := _PROGRESS.match(text):
            self._progress(line, found)
        elif found := _TYPE.match(text):
            self._finish()
            self.begun, self.facts = line.number, {"type": found["type"].strip("<>").removeprefix("builtin: ")[:60]}
        elif self.begun is None and not _SHORT.match(text):
            return
        elif self.begun is None or self._begins_anew(text):
            self._finish()
            self.begun, self.facts = line.number, {}
            self._line(line)
        elif found := _COUNT.match(text):
            if found["what"] == "number of failed transactions":
                self.pending["transactions_failed"] = float(found["n"])
            else:
                self.facts[found["what"]] = found["n"]
        elif found := _DURATION.match(text):
            self.pending["elapsed_s"] = float(found["s"])
        elif found := _LATENCY.match(text):
            metric = {"average": "latency_ns_mean", "stddev": "latency_ns_stddev"}[found["what"]]
            self._set(metric, number(found["ms"]), NS_PER_MS)
        elif (found := _TPS.match(text)) and not (
            found["which"] == "including" and "transactions_per_s" in self.pending
        ):
            self._set("transactions_per_s", number(found["tps"]), 1.0)

    def _begins_anew(self, text: str) -> bool:
        """Whether the line is the first of another summary without its head."""
        is_over = "type" not in self.facts and "transactions_per_s" in self.pending
        return is_over and bool(_SHORT.match(text)) and not _TPS_ALONE.match(text)

    def _set(self, metric: str, value: float | None, scale: float) -> None:
        if value is not None:
            self.pending[metric] = value * scale

    def _progress(self, line: Line, found: re.Match[str]) -> None:
        at, tps, latency = (number(found[name] or "") for name in ("at", "tps", "lat"))
        if at is None or tps is None:
            return
        if at <= self.last_s or (self.begun is not None and self.pending.get("transactions_per_s") is not None):
            self._finish()
            self._forget_progress()
        self.first = self.first or line.number
        self.period_s = self.period_s or at
        self.transactions += tps * (at - self.last_s)
        self.last_s = at
        self.series["transactions_per_s"].add(tps)
        if latency is not None:
            self.series["latency_ns_mean"].add(latency * NS_PER_MS, tps)

    def _finish(self) -> None:
        """The row of the summary that ends here, with the lines of progress before it."""
        if self.begun is None or not self.pending:
            return
        row = self.results.table(self.begun).row(self.source.stem_without_round, self._workload())
        leading = [metric for metric in ("transactions_per_s", "latency_ns_mean") if metric in self.pending]
        for metric in dict.fromkeys([*leading, *self.pending]):
            row.add(metric, self.pending[metric])
        self._add_series(row)
        self.begun, self.pending = None, {}
        self._forget_progress()

    def _add_series(self, row: Row) -> None:
        for metric, series in self.series.items():
            for place, mean in series.intervals():
                row.interval(metric, place * self.period_s * NS_PER_S, mean)

    def _workload(self) -> str:
        names = {"clients": "number of clients", "threads": "number of threads", "scale": "scaling factor"}
        parts = [self.facts.get("type") or ("script" if self.facts else "shortened")]
        parts += [f"{name}={self.facts[label]}" for name, label in names.items() if label in self.facts]
        workload = f"pgbench[{','.join(parts)}]"
        self.results.workloads.setdefault(workload, {"kind": "pgbench"})
        return workload


class _Log:
    """The transactions of one run, in any order of threads; a bounded histogram and sums by second."""

    def __init__(self) -> None:
        self.count = self.skipped = self.failed = 0
        self.first_s, self.last_s = math.inf, -math.inf
        self.sum_us = self.squares = 0.0
        self.least_us, self.most_us = math.inf, 0.0
        self.buckets: Counter[int] = Counter()
        self.by_second: dict[int, list[float]] = {}

    def transaction(self, latency: str, at_s: int, at_us: int) -> None:
        """One line of -l; its time is when the transaction ended."""
        self._second(at_s)
        end_s = at_s + at_us / 1e6
        if latency in ("skipped", "failed"):
            self.skipped += latency == "skipped"
            self.failed += latency == "failed"
            return
        us = float(latency)
        self.first_s, self.last_s = min(self.first_s, end_s - us / 1e6), max(self.last_s, end_s)
        self._add(1, us, us * us, us, us, at_s)
        self.buckets[_bucket(us)] += 1

    def aggregate(self, words: list[str]) -> None:
        """One line of an interval: when it began, transactions, sum and sum of squares, least and most latency."""
        at_s, count = int(words[0]), int(words[1])
        self._second(at_s)
        self.first_s, self.last_s = min(self.first_s, at_s), max(self.last_s, at_s)
        if count:
            total_us, squares, least, most = (float(word) for word in words[2:6])
            self._add(count, total_us, squares, least, most, at_s)

    def _second(self, at_s: int) -> None:
        self.by_second.setdefault(at_s, [0.0, 0.0])
        if len(self.by_second) > SECONDS_MAX:
            raise ValueError(f"more than {SECONDS_MAX:,} seconds")

    def _add(self, count: int, total_us: float, squares: float, least: float, most: float, at_s: int) -> None:
        self.count += count
        self.sum_us += total_us
        self.squares += squares
        self.least_us, self.most_us = min(self.least_us, least), max(self.most_us, most)
        second = self.by_second[at_s]
        second[0] += count
        second[1] += total_us

    def add_to(self, row: Row, *, period_s: float | None) -> None:
        """`period_s`: of an aggregated log, the length of an interval."""
        elapsed_s = self.last_s - self.first_s + (period_s or 0.0) if self.count else 0.0
        row.add("transactions_per_s", self.count / elapsed_s if elapsed_s > 0 else None, absent="no time passes in it")
        row.add("ops", float(self.count))
        if self.failed or self.skipped:
            row.add("transactions_failed", float(self.failed))
            row.add("transactions_skipped", float(self.skipped))
        if self.count:
            mean = self.sum_us / self.count
            spread = math.sqrt(max(0.0, self.squares / self.count - mean * mean))
            for name, value in (("mean", mean), ("stddev", spread), ("min", self.least_us), ("max", self.most_us)):
                row.add(f"latency_ns_{name}", value * NS_PER_US)
        if self.buckets:
            bounds = [(int(_bound_us(place) * NS_PER_US), count) for place, count in sorted(self.buckets.items())]
            row.histogram(bounds, op="all")
            for short, share in QUANTILES:
                found = known_quantile([(at, at, count) for at, count in bounds], share, self.most_us * NS_PER_US)
                row.add(f"latency_ns_{short}", found, absent=few(share))
        self._add_series(row, period_s or 1.0)

    def _add_series(self, row: Row, period_s: float) -> None:
        rates, means = Series(), Series()
        for _, (count, total_us) in sorted(self.by_second.items()):
            rates.add(count / period_s)
            means.add(total_us / count * NS_PER_US if count else 0.0, count)
        for metric, series in (("transactions_per_s", rates), ("latency_ns_mean", means)):
            for place, mean in series.intervals():
                row.interval(metric, place * period_s * NS_PER_S, mean)


def _bucket(us: float) -> int:
    return math.ceil(math.log2(us) * BUCKETS_PER_OCTAVE) if us >= 1 else 0


def _bound_us(place: int) -> float:
    return math.pow(2.0, place / BUCKETS_PER_OCTAVE)


def _parse(source: Source, results: Results) -> None:
    if _is_log(source):
        _parse_log(source, results)
    else:
        _Summaries(source, results).read()


def _parse_log(source: Source, results: Results) -> None:
    log = _Log()
    aggregated = bool(_AGGREGATE.match(_first_lines(source)[0]))
    pattern = _AGGREGATE if aggregated else _LOG
    for line in _whole_lines(source, results, pattern):
        words = line.words
        try:
            if aggregated:
                log.aggregate(words)
            else:
                log.transaction(words[2], int(words[4]), int(words[5]))
        except ValueError as error:
            raise InputError(str(error), where=f"{source.name}:{line.number}") from None
    times = sorted(log.by_second)
    period_s = float(min((b - a for a, b in pairwise(times)), default=1)) if aggregated else None
    results.workloads.setdefault("pgbench", {"kind": "pgbench"})
    setting = source.label or _PID.sub("", source.stem_without_round)
    log.add_to(results.table(1).row(setting, "pgbench"), period_s=period_s)


def _whole_lines(source: Source, results: Results, pattern: re.Pattern[str]) -> Iterator[Line]:
    """Those that the pattern matches; any other is a problem, and of a truncated one the last."""
    for line in source.lines(results.problem):
        if pattern.match(line.text):
            yield line
        elif line.text.strip():
            results.problem("no line of a pgbench log, left out", line.number)


def _first_lines(source: Source) -> list[str]:
    return [line for line in source.text_lines if line.strip()][:LINES_LOOKED_AT] or [""]


def _is_log(source: Source) -> bool:
    """Whether the lines are a log's; the last one looked at may be cut off."""
    lines = _first_lines(source)
    whole = lines[: max(1, len(lines) - 1)]
    return any(all(pattern.match(line) for line in whole) for pattern in (_LOG, _AGGREGATE))


def thread_of(source: Source) -> str | None:
    """The path of the first thread's log, `NAME.PID`, for one of a further thread, `NAME.PID.3`; None for any other
    file."""
    found = _THREAD.fullmatch(source.path.name)
    return str(source.path.with_name(found["first"])) if found and _is_log(source) else None


FORMAT = Format(
    name="pgbench",
    own=re.compile(r".{0,8}progress: \d|duration: |initial connection time = |\s++[\d.]++\s++\d*+\s++\S"),
    help="pgbench's summary and lines of --progress",
    recognises=lambda source: any(source.has_line(pattern) for pattern in (_TYPE, _PROGRESS, _TPS_ALONE)),
    parse=_parse,
    words=("pgbench", "transaction type", "scaling factor", "latency average", "tps ="),
    titled=True,
)
LOG_FORMAT = Format(
    name="pgbench-log",
    help="pgbench -l: a line per transaction, or with --aggregate-interval per interval",
    recognises=_is_log,
    parse=_parse_log,
    words=("pgbench_log", "skipped"),
    among_text=False,
)
