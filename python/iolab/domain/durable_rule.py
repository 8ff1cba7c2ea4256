"""etcd's rule for the storage below a log: 99 % of its syncs take less than 10 ms.

Source: etcd's FAQ, on slow disks: the 99th percentile of `wal_fsync_duration_seconds` should be below 10 ms. That is
the time of fdatasync alone, and so is the figure here; if writes are durable themselves, it is that of a commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolab.base.plain_text import counted, listed
from iolab.base.quantity import scale_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolab.domain.measured_run import MeasuredRun

LIMIT_NS = 10_000_000
TAIL, MEAN = "latency_ns_p99", "latency_ns_mean"
UNKNOWN = "unknown, with fewer than 1,000 syncs in a round, of"
SETTINGS_NAMED_MAX = 4
"""Settings that a sentence names for each answer; more are counted."""


def rule_sentences(run: MeasuredRun) -> list[str]:
    """A sentence per workload that writes a log: under which settings it keeps the rule, in which rounds if not in all,
    and the least and the highest tail of the rounds."""
    logs = [name for name in run.workloads if (shape := run.shapes.get(name)) is not None and shape.commits]
    found = [(name, _answers(run, name)) for name in logs]
    return [
        f"etcd's rule, p99 of a sync below 10 ms{f', on {name}' if len(logs) > 1 else ''}: {'; '.join(answers)}."
        for name, answers in found
        if answers
    ]


def _answers(run: MeasuredRun, workload: str) -> list[str]:
    """`kept by a (0.2 ms) and b (0.4 to 0.5 ms)`, `missed by c (31 ms)`."""
    by_answer: dict[str, list[str]] = {}
    for setting in run.settings:
        tails, rounds = _tails_ns(run, workload, setting)
        if rounds and len(tails) == rounds:
            by_answer.setdefault(_answer(tails), []).append(f"{setting} ({_span(tails)})")
        else:
            of_some = f" ({_span(tails)} in {len(tails)} of {counted(rounds, 'round')})" if tails else ""
            by_answer.setdefault(UNKNOWN, []).append(f"{setting}{of_some}")
    if by_answer.keys() == {UNKNOWN}:
        return []
    return [f"{answer} {listed(named, SETTINGS_NAMED_MAX)}" for answer, named in by_answer.items()]


def _tails_ns(run: MeasuredRun, workload: str, setting: str) -> tuple[list[float], int]:
    """The p99 of its syncs, or of its commits if nothing was synced, of each round that has one; and the rounds."""
    means = _values(run, workload, setting, f"sync.{MEAN}")
    op = "sync" if means else "commit"
    rounds = len(means or _values(run, workload, setting, f"commit.{MEAN}"))
    return _values(run, workload, setting, f"{op}.{TAIL}"), rounds


def _values(run: MeasuredRun, workload: str, setting: str, metric: str) -> list[float]:
    keys = [key for key in run.keys if key.rpartition("/")[2] == metric]
    frames = [run.values(key, workload) for key in keys]
    return [float(value) for frame in frames if setting in frame.columns for value in frame[setting].drop_nulls()]


def _answer(tails_ns: Sequence[float]) -> str:
    kept = sum(tail < LIMIT_NS for tail in tails_ns)
    if kept == len(tails_ns):
        return "kept by"
    return f"kept in {kept} of {counted(len(tails_ns), 'round')} by" if kept else "missed by"


def _span(tails_ns: Sequence[float]) -> str:
    """`0.2 ms`, or from the least to the highest."""
    least, most = min(tails_ns), max(tails_ns)
    scale = scale_for("ns", (most,))
    ends = dict.fromkeys((scale.number(least), scale.number(most)))
    return scale.with_unit(most) if len(ends) == 1 else f"{scale.number(least)} to {scale.with_unit(most)}"
