"""A sweep: settings or workloads of one matrix that differ in one number, which is an axis then and no list of names.

Read from the names that `iolab.base.matrix` gives (`reads[block_size=4KiB,queue_depth=8]`), or from names such as
`depth1`, `depth8`; `4k`, `64k`; or `bs=4k iodepth=1`, `bs=4k iodepth=8`. The knee is where more stops paying
(docs/reference/statistics.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from iolab.base.quantity import parse_bytes, parse_duration_ns
from iolab.domain.definition import BYTE_RATE
from iolab.domain.metric import Metric, describe
from iolab.domain.parameter import BLOCK_SIZES, SIZE, named_amount, plain
from iolab.domain.verdict.judgement import judge

if TYPE_CHECKING:
    from iolab.domain.comparison import Numbers
    from iolab.domain.summary import Levels, Row

VALUES_MIN = 3
"""Two values are a comparison, and not a curve."""
FLAT_BELOW = 1.05
"""The ratio of throughputs below which more of the parameter hardly pays."""
NAMES = frozenset(
    {"rq_affinity", "nomerges", "queue_affinity", "completion_affinity", "irq_cpus", "workqueue_cpus", "cpus", "seed"}
)
"""Parameters whose numbers are names of something, and no amounts."""
THROUGHPUTS = ("iops", "rate_bytes_per_s", "files_per_s")
LATENCIES = ("latency_ns_mean", "latency_ns_p99", "latency_ns_p50")

_NAME = re.compile(r"(?P<base>[^\[\]]*)\[(?P<labels>[^\[\]]*)\]$")


@dataclass(frozen=True)
class Point:
    """One value of the parameter."""

    x: float
    text: str
    """As the experiment has it: `4KiB`."""
    workload: str
    setting: str


@dataclass(frozen=True)
class Line:
    """What is the same along the axis."""

    name: str
    """Empty if the sweep has one line."""
    points: list[Point]
    """By rising value."""


@dataclass(frozen=True)
class Sweep:
    """A matrix along one of its keys."""

    name: str
    """The matrix's own: that of its workload or setting before expansion; empty of names such as `depth1`."""
    parameter: str
    along: Literal["workload", "setting"]
    lines: list[Line]

    def throughput(self, metrics: Sequence[str]) -> str | None:
        """Which of the metrics is to rise along it: bytes where blocks differ in size, else operations, or what a file
        calls a rate in words of its own; None without any."""
        rates = [key for key in metrics if not isinstance(it := describe(key), Metric) and it.nature == "rate"]
        of_blocks = plain(self.parameter.rpartition(".")[2]) in BLOCK_SIZES
        of_bytes = [main_metric(metrics, ("rate_bytes_per_s",)), *filter(BYTE_RATE.search, rates)] if of_blocks else []
        return next(filter(None, [*of_bytes, main_metric(metrics, THROUGHPUTS), *rates]), None)

    @property
    def texts(self) -> list[str]:
        """Every value of the parameter, rising."""
        found = {point.x: point.text for line in self.lines for point in line.points}
        return [found[x] for x in sorted(found)]


def sweeps(summary: Levels) -> list[Sweep]:
    """Those of the run's workloads, then those of its settings; without any that has a single number only.

    A matrix with several axes is one sweep along the axis with the most values: the others distinguish its lines.
    """
    workloads = list(dict.fromkeys(row.workload for row in summary.rows))
    found = [_sweep(base, members, "workload", summary.settings) for base, members in _matrices(workloads)]
    swept = {point.workload for sweep in found if sweep for line in sweep.lines for point in line.points}
    rest = [workload for workload in workloads if workload not in swept]
    if rest:
        found += [_sweep(base, members, "setting", rest) for base, members in _matrices(summary.settings)]
    return [sweep for sweep in found if sweep is not None]


def rows_of(sweep: Sweep, summary: Levels) -> dict[str, dict[str, Row]]:
    """By metric, by workload: the summary's rows that the sweep's points are in, in the summary's order."""
    workloads = {point.workload for line in sweep.lines for point in line.points}
    by_metric: dict[str, dict[str, Row]] = {}
    for row in summary.rows:
        if row.workload in workloads and row.job is None:
            by_metric.setdefault(row.metric, {})[row.workload] = row
    return by_metric


def rounds_along(line: Line, rows: dict[str, Row]) -> list[Numbers]:
    """The values by round of each of the line's points, of one metric's rows by workload."""
    return [
        cell.rounds if (row := rows.get(point.workload)) and (cell := row.cells.get(point.setting)) else []
        for point in line.points
    ]


def values(line: Line, rows: dict[str, Row]) -> list[float | None]:
    """The typical value of each of the line's points, of one metric's rows by workload."""
    return [
        cell.typical if (row := rows.get(point.workload)) and (cell := row.cells.get(point.setting)) else None
        for point in line.points
    ]


def main_metric(metrics: Sequence[str], among: Sequence[str]) -> str | None:
    """The first of `among` that the run has, whatever its phase; of all operations rather than of one."""
    for name in among:
        found = (key for key in metrics if key.rpartition("/")[2].rpartition(".")[2] == name)
        ranked = sorted(found, key=lambda key: "." in key.rpartition("/")[2])
        if ranked:
            return ranked[0]
    return None


def knee(points: Sequence[Numbers]) -> int | None:
    """Which of the points is the knee of a rising curve, by rising parameter; each point has its values by round.

    The first from which on no further value pays: the interval of every later point against it ends below
    `FLAT_BELOW`, and its own against the first point lies above 1. None if more pays to the end, if nothing pays,
    or if the rounds are too few or too noisy to show one.
    """
    if len(points) < VALUES_MIN:
        return None
    for place in range(1, len(points) - 1):
        later = [_interval(points[place], one) for one in points[place + 1 :]]
        if all(found is not None and found[1] < FLAT_BELOW for found in later):
            rise = _interval(points[0], points[place])
            return place if rise is not None and rise[0] > 1 else None
    return None


def knee_of(line: Line, rows: dict[str, Row]) -> int | None:
    """Which of the line's points is the knee of the metric that the rows are of; None without one."""
    found = [(place, one) for place, one in enumerate(rounds_along(line, rows)) if any(n is not None for n in one)]
    at = knee([one for _, one in found])
    return None if at is None else found[at][0]


def _interval(lower: Numbers, upper: Numbers) -> tuple[float, float] | None:
    """The interval of the ratio of two points; None without one."""
    rounds = max(len(lower), len(upper))
    x, y = (one + [None] * (rounds - len(one)) for one in (lower, upper))
    found = judge(x, y, nature="rate")
    return None if found.ci_low is None or found.ci_high is None else (found.ci_low, found.ci_high)


def _matrices(names: Sequence[str]) -> list[tuple[str, dict[str, dict[str, str]]]]:
    """By the name before expansion, the labels of each member by its full name."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for name in names:
        if match := _NAME.match(name):
            pairs = [label.partition("=") for label in match["labels"].split(",")]
            if all(between for _, between, _ in pairs):
                found.setdefault(match["base"], {})[name] = {key: value for key, _, value in pairs}
    return list(found.items()) or _assigned(names) or _numbered(names)


def _assigned(names: Sequence[str]) -> list[tuple[str, dict[str, dict[str, str]]]]:
    """The same of names such as `bs=4k iodepth=8`, if all of them have the same other words and the same keys."""
    found: dict[str, dict[str, str]] = {}
    others = set()
    for name in names:
        pairs = dict(word.split("=", 1) for word in name.split() if "=" in word)
        others.add((" ".join(word for word in name.split() if "=" not in word), tuple(pairs)))
        found[name] = pairs
    if len(others) != 1 or not all(found.values()):
        return []
    varied = {key for pairs in found.values() for key in pairs if len({one[key] for one in found.values()}) > 1}
    base = " ".join(word for word in names[0].split() if word.partition("=")[0] not in varied)
    return [(base, {name: {key: pairs[key] for key in pairs if key in varied} for name, pairs in found.items()})]


def _numbered(names: Sequence[str]) -> list[tuple[str, dict[str, dict[str, str]]]]:
    """The same of names such as `depth1`, `depth8`, or of sizes, if all of them are of one parameter."""
    pairs = {name: named_amount(name) or (("size", name) if SIZE.fullmatch(name) else None) for name in names}
    keys = {pair[0] if pair else None for pair in pairs.values()}
    key = keys.pop() if len(keys) == 1 else None
    return [("", {name: {key: pair[1]} for name, pair in pairs.items() if pair})] if key else []


def _sweep(
    base: str, members: dict[str, dict[str, str]], along: Literal["workload", "setting"], others: Sequence[str]
) -> Sweep | None:
    """`others`: settings that each member of a workload's matrix ran under, or workloads under a setting's."""
    parameter = _axis(members)
    if parameter is None:
        return None
    xs = _numbers([labels[parameter] for labels in members.values()])
    assert xs is not None, "an axis has numbers only"
    spelled = {x: text for text, x in reversed(xs.items())}
    lines: dict[str, list[Point]] = {}
    for name, labels in members.items():
        fixed = [f"{key}={value}" for key, value in labels.items() if key != parameter]
        for other in others:
            workload, setting = (name, other) if along == "workload" else (other, name)
            line = ", ".join([*fixed, other] if len(others) > 1 else fixed)
            x = xs[labels[parameter]]
            lines.setdefault(line, []).append(Point(x, spelled[x], workload, setting))
    if any(len({point.x for point in points}) < len(points) for points in lines.values()):
        return None
    ordered = [Line(name, sorted(points, key=lambda point: point.x)) for name, points in lines.items()]
    return Sweep(base, parameter, along, ordered)


def _axis(members: dict[str, dict[str, str]]) -> str | None:
    """The key with the most values, all of them numbers; of equals the last, which varies fastest."""
    best, most = None, VALUES_MIN - 1
    for key in dict.fromkeys(key for labels in members.values() for key in labels):
        if key.rpartition(".")[2] in NAMES:
            continue
        texts = list(dict.fromkeys(labels.get(key, "") for labels in members.values()))
        if len(texts) >= max(most, VALUES_MIN) and _numbers(texts) is not None:
            best, most = key, len(texts)
    return best


def _numbers(texts: Sequence[str]) -> dict[str, float] | None:
    """Numbers and sizes (`4KiB`, `4k`, in bytes), else numbers and durations (`8ms`, in ns); None if one is none."""
    for readers in ((float, _short_size, parse_bytes), (float, parse_duration_ns)):
        found = {text: _number(text, readers) for text in texts}
        known = {text: x for text, x in found.items() if x is not None}
        if len(known) == len(found):
            return known
    return None


def _number(text: str, readers: Sequence[Callable[[str], float]]) -> float | None:
    for read in readers:
        try:
            found = float(read(text))
        except ValueError:
            continue
        return found if found == found and abs(found) != float("inf") else None
    return None


def _short_size(text: str) -> float:
    """`64k`, `1M`; ValueError for anything else, `64KB` too: its unit is the metric one."""
    found = SIZE.fullmatch(text)
    if found is None or not text.endswith(found["unit"]):
        raise ValueError(text)
    return float(int(found["count"]) * 1024 ** ("kmgt".index(found["unit"].lower()) + 1))
