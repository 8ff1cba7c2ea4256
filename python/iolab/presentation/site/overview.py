"""The first page, the list of all runs, and what is in progress."""

from __future__ import annotations

from collections.abc import Sequence

from iolab.base.errors import IolabError
from iolab.base.plain_text import one_line
from iolab.base.quantity import steps_of_units
from iolab.base.version import VERSION
from iolab.domain.collection.benchmark import Benchmark, Changed
from iolab.domain.collection.entry import Entry, Main
from iolab.domain.collection.extract import Extract, Measured, measured_at
from iolab.domain.collection.query import KEYS
from iolab.domain.definition import LOSSES
from iolab.files.collection.collection import Collection
from iolab.files.store.directory import RunDirectory
from iolab.files.store.event import TrialFinished
from iolab.files.store.journal import read_journal
from iolab.files.store.state import RunState, fold
from iolab.presentation.site.page_types import (
    BenchmarkRow,
    ChangeRow,
    Live,
    LiveRun,
    LiveTrial,
    Meta,
    Overview,
    RunColumns,
    RunList,
    RunRow,
    Spark,
    Step,
)
from iolab.presentation.site.parts import metrics_of, run_row
from iolab.presentation.site.run import sentences

SPARK_RUNS = 60
BENCHMARKS_MAX = 300
CHANGES_MAX = 200
NEWEST_MAX = 30
TRADE_OFFS_MAX = 50
RUNS_PER_CHUNK = 5_000
LIVE_TRIALS_MAX = 200
LIVE_RUNS_MAX = 20


def meta(runs: Collection, *, live: bool) -> Meta:
    """What all pages need."""
    units = {
        unit: [Step(divisor=divisor, suffix=suffix) for divisor, suffix in steps]
        for unit, steps in steps_of_units().items()
    }
    return Meta(
        version=VERSION,
        live=live,
        title=one_line(runs.directory.resolve().name),
        runs=len(runs.entries),
        changed=runs.changed,
        units=units,
        query_keys=list(KEYS),
    )


def overview(runs: Collection) -> Overview:
    """Regressions over time first, then benchmarks, trade-offs between settings, and the newest runs."""
    found = runs.benchmarks()
    changes, pending = _changes(runs, found)
    rows = [_benchmark_row(runs, one) for one in found[:BENCHMARKS_MAX]]
    newest_of = [one.entries[-1] for one in found]
    trade_offs = [one for one in newest_of if any(one.verdicts.get(verdict) for verdict in LOSSES)]
    keys = [*(row.spark.metric for row in rows if row.spark), *(row.change.metric for row in changes[:CHANGES_MAX])]
    return Overview(
        metrics=metrics_of(keys),
        changes=changes[:CHANGES_MAX],
        changes_total=len(changes),
        pending=pending,
        benchmarks=rows,
        benchmarks_total=len(found),
        trade_offs=[run_row(one) for one in trade_offs[:TRADE_OFFS_MAX]],
        newest=[run_row(one) for one in runs.entries[:NEWEST_MAX]],
    )


def run_list(runs: Collection, chunk: int) -> RunList:
    """A part of the list of all runs, by column."""
    entries = runs.entries[chunk * RUNS_PER_CHUNK : (chunk + 1) * RUNS_PER_CHUNK]
    rows = [run_row(one).model_dump() for one in entries]
    columns = {name: [row[name] for row in rows] for name in RunRow.model_fields}
    columns["workloads"] = [list(one.workloads) for one in entries]
    return RunList(total=len(runs.entries), chunks=chunks(runs), columns=RunColumns.model_validate(columns))


def chunks(runs: Collection) -> int:
    """How many parts the list of all runs has; one at least."""
    return max(1, -(-len(runs.entries) // RUNS_PER_CHUNK))


def live(runs: Collection) -> Live:
    """The runs in progress, with the trials that they have finished."""
    entries = [one for one in runs.entries if one.state == "running"][:LIVE_RUNS_MAX]
    pairs = {one.id: extract for one, extract in runs.extracts(entries)}
    found = [made for one in entries if (made := _live_run(runs, one, pairs.get(one.id)))]
    metrics = metrics_of(key for one in found for key in (one.metric, *(judged.metric for judged in one.judged)) if key)
    return Live(changed=runs.changed, running=found, metrics=metrics)


def _changes(runs: Collection, found: Sequence[Benchmark]) -> tuple[list[ChangeRow], int]:
    rows, pending = [], 0
    for one in found:
        changes = runs.known_changes(one)
        if changes is None:
            pending += 1
            continue
        rows += [
            ChangeRow(
                benchmark=one.id,
                hardware=one.hardware,
                title=one.title,
                hardware_in_words=one.entries[-1].hardware_in_words,
                change=change,
            )
            for change in changes
        ]
    rows.sort(key=lambda row: (not row.change.regressed, -(row.change.since_unix_ns or 0)))
    return rows, pending


def _benchmark_row(runs: Collection, one: Benchmark) -> BenchmarkRow:
    newest = one.entries[-1]
    changes = runs.known_changes(one)
    return BenchmarkRow(
        id=one.id,
        hardware=one.hardware,
        title=one.title,
        hardware_in_words=newest.hardware_in_words,
        runs=len(one.entries),
        newest=run_row(newest),
        spark=_spark(runs, one, changes or []),
        regressions=None if changes is None else sum(change.regressed for change in changes),
    )


def _spark(runs: Collection, of: Benchmark, changes: Sequence[Changed]) -> Spark | None:
    """The line of the series whose change stands, a regression first, the newest before others; if none stands, of the
    metric that leads the newest run which has one."""
    entries = of.entries[-SPARK_RUNS:]
    moved = max(
        (one for one in changes if one.stands), key=lambda one: (one.regressed, one.since_unix_ns or 0), default=None
    )
    if moved is not None:
        place = (moved.workload, moved.setting, moved.metric)
        by_run = {entry.id: measured_at(extract, *place) for entry, extract in runs.extracts(entries)}
        same: list[Main | Measured | None] = [by_run.get(one.id) for one in entries]
    elif main := next((one.main for one in reversed(entries) if one.main), None):
        place = (main.workload, main.setting, main.metric)
        same = [
            one.main if one.main and (one.main.workload, one.main.setting, one.main.metric) == place else None
            for one in entries
        ]
    else:
        return None
    return Spark(
        workload=place[0],
        setting=place[1],
        metric=place[2],
        typical=[None if one is None else one.typical for one in same],
        spread=[None if one is None else one.spread for one in same],
    )


def _live_run(runs: Collection, entry: Entry, extract: Extract | None) -> LiveRun | None:
    try:
        state = fold(read_journal(RunDirectory(runs.path(entry)).journal_file, runs.directory).events)
    except IolabError:
        return None
    values, metric = _values(extract)
    finished = sorted(state.finished.values(), key=lambda event: event["started_unix_ns"])
    trials = [_live_trial(event, values.get(event["trial"])) for event in finished]
    expected = _expected(state)
    started = next(reversed(state.attempts), None)
    if started is not None and started not in state.finished:
        trials.append(
            LiveTrial(trial=started, round=0, workload="", setting="", status="running", duration_ns=None, value=None)
        )
    return LiveRun(
        run=run_row(entry).model_copy(update={"trials": len(finished)}),
        trials_done=len(finished),
        trials_expected=expected,
        left_s=_left_s(finished, expected),
        metric=metric,
        trials=trials[-LIVE_TRIALS_MAX:],
        sentences=sentences(extract) if extract else [],
        judged=extract.judged if extract else [],
        same_within=extract.same_within if extract else 0.0,
    )


def _live_trial(event: TrialFinished, value: float | None) -> LiveTrial:
    return LiveTrial(
        trial=event["trial"],
        round=event["round"],
        workload=event["workload"],
        setting=event["setting"],
        status=event["status"],
        duration_ns=event["duration_ns"],
        value=value,
    )


def _values(extract: Extract | None) -> tuple[dict[int, float], str | None]:
    """By trial, the first metric that is compared."""
    metric = next((one.metric for one in extract.measured), None) if extract else None
    found = {}
    for one in extract.measured if extract else ():
        if one.metric == metric:
            assert extract is not None
            of_rounds = extract.trials.get(one.workload, {}).get(one.setting, [])
            for trial, value in zip(of_rounds, one.rounds, strict=False):
                if trial is not None and value is not None:
                    found[trial] = value
    return found, metric


def _left_s(finished: Sequence[TrialFinished], expected: int | None) -> float | None:
    """How long the trials that are left take if they end as often as those before; `finished`: by their beginning."""
    if expected is None or not finished:
        return None
    ended_ns = max(event["started_unix_ns"] + (event["duration_ns"] or 0) for event in finished)
    pace_ns = (ended_ns - finished[0]["started_unix_ns"]) / len(finished)
    return max(0, expected - len(finished)) * pace_ns / 1e9


def _expected(state: RunState) -> int | None:
    started = state.started
    if started is None or started["until_decided"] or "question" in started:
        return None
    return state.rounds * len(started["workloads"]) * len(started["settings"])
