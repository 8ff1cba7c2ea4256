"""Runs that repeat the same: a benchmark. Those on the same hardware are a history, in the order of time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from pydantic import BaseModel, ConfigDict

from iolab.domain.collection.entry import Entry, Nanoseconds
from iolab.domain.collection.extract import Extract
from iolab.domain.definition import Verdict
from iolab.domain.history.history import History, HistoryFinding, Moment, Series, found_in

ID_LENGTH = 10
FALSE_ALARMS = 0.05
"""The share of histories without a change that may show one, as in `iolab history`."""
_MEMBER = re.compile(r"\[[^\[\]]*\]$")
_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True)
class Benchmark:
    """What repeats the same on one hardware; entries by date, oldest first, of which none is unreadable."""

    id: str
    hardware: str
    title: str
    entries: Sequence[Entry]


def benchmark_id(title: str, workloads: Sequence[str]) -> str:
    """The same for runs with the same title and the same workloads; settings, kernels and rounds may differ."""
    return blake2b(repr((title, sorted(workloads))).encode(), digest_size=ID_LENGTH // 2).hexdigest()


def benchmark_title(title: str, workloads: Sequence[str]) -> str:
    """The experiment's title; of one without, the names of its workloads, a matrix once."""
    return title or ", ".join(dict.fromkeys(_MEMBER.sub("", name) for name in workloads)) or "untitled"


def benchmarks(entries: Sequence[Entry]) -> list[Benchmark]:
    """By benchmark and hardware, those with the newest runs first."""
    found: dict[tuple[str, str], list[Entry]] = {}
    for one in sorted(entries, key=lambda entry: (entry.started_unix_ns or 0, entry.name)):
        if one.state != "unreadable":
            found.setdefault((one.benchmark, one.hardware), []).append(one)
    made = [
        Benchmark(benchmark, hardware, benchmark_title(members[-1].title, members[-1].workloads), members)
        for (benchmark, hardware), members in found.items()
    ]
    return sorted(made, key=lambda one: -(one.entries[-1].started_unix_ns or 0))


class Differs(BaseModel):
    """Something else that changed at the place of a change."""

    model_config = ConfigDict(frozen=True)

    what: str
    before: str
    after: str


class Changed(BaseModel):
    """A change in a benchmark's history, as `iolab history` finds it. `since`, `earliest`, `latest`: ids of runs; `low`
    and `high`: the 95 % interval of `after` less `before`; `regressed`: it is for the worse, and stands."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    workload: str
    setting: str
    metric: str
    verdict: Verdict
    regressed: bool
    stands: bool
    since: str
    since_unix_ns: Nanoseconds | None
    earliest: str
    latest: str
    before: float
    after: float
    low: float
    high: float
    p: float
    differs: list[Differs]


def changes_of(runs: Sequence[tuple[Entry, Extract]]) -> list[Changed]:
    """What `iolab history` finds over these runs, oldest first, in the metrics that the newest compares."""
    if not runs:
        return []
    found = found_in(_history(runs, runs[-1][1].compared), false_alarms=FALSE_ALARMS, looks=1, same_within=0.0)
    return [_changed(one, [entry for entry, _ in runs]) for one in found]


def _history(runs: Sequence[tuple[Entry, Extract]], metrics: Sequence[str]) -> History:
    """A value per run, the typical one of its rounds."""
    moments = [Moment(entry.name, entry.started_unix_ns, extract.facts) for entry, extract in runs]
    wanted = set(metrics)
    columns: dict[tuple[str, str, str], list[float | None]] = {}
    for place, (_, extract) in enumerate(runs):
        for one in extract.measured:
            if one.metric in wanted:
                column = columns.setdefault((one.workload, one.setting, one.metric), [None] * len(runs))
                column[place] = one.typical
    return History(moments, [Series(*where, values) for where, values in columns.items()], "time", [])


def _changed(one: HistoryFinding, entries: Sequence[Entry]) -> Changed:
    it = one.change
    return Changed(
        workload=one.series.workload,
        setting=one.series.setting,
        metric=one.series.metric,
        verdict=one.verdict,
        regressed=one.regressed,
        stands=one.stands,
        since=entries[it.at].id,
        since_unix_ns=entries[it.at].started_unix_ns,
        earliest=entries[it.earliest].id,
        latest=entries[it.latest].id,
        before=it.before,
        after=it.after,
        low=it.low,
        high=it.high,
        p=it.p,
        differs=[Differs(what=what, before=before, after=after) for what, before, after in one.differs],
    )


def natural_order(text: str) -> tuple[tuple[int, int | str], ...]:
    """`6.9` before `6.12`."""
    return tuple((0, int(part)) if part.isdecimal() else (1, part) for part in _NUMBER.split(text) if part)
