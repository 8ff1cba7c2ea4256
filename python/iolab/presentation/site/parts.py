"""What several pages have: rows of runs, words of metrics."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from iolab.domain.collection.entry import Entry
from iolab.domain.metric import describe
from iolab.presentation.site.page_types import MetricInfo, Metrics, RunPoint, RunRow
from iolab.presentation.table.words import label, unit_of

METRIC_ID_DIGITS = 8


def run_row(one: Entry) -> RunRow:
    """A run in a line."""
    return RunRow(
        id=one.id,
        name=one.name,
        title=one.title,
        started_unix_ns=one.started_unix_ns,
        machine=" ".join(part for part in (one.machine, one.hostname) if part),
        kernel=one.kernel,
        settings=list(one.settings),
        verdicts={str(verdict): count for verdict, count in one.verdicts.items()},
        state=one.state,
        tags=list(one.labels.tags),
        note=one.labels.note,
        trials=one.trials,
        trials_not_ok=one.trials_not_ok,
        benchmark=one.benchmark,
        hardware=one.hardware,
        problems=len(one.problems),
    )


def run_point(one: Entry) -> RunPoint:
    """A run of a history."""
    return RunPoint(id=one.id, name=one.name, started_unix_ns=one.started_unix_ns, kernel=one.kernel)


def metric_id(key: str) -> str:
    """Short enough for an address."""
    return blake2b(key.encode(), digest_size=METRIC_ID_DIGITS // 2).hexdigest()


def metrics_of(keys: Iterable[str]) -> Metrics:
    """What pages show of each metric."""
    found = {}
    for key in dict.fromkeys(keys):
        known = describe(key)
        found[key] = MetricInfo(
            id=metric_id(key), label=label(key), unit=unit_of(key), nature=known.nature, help=known.help
        )
    return found
