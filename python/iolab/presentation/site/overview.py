"""The first page, the list of all runs, and what is in progress."""

from __future__ import annotations

from collections.abc import Sequence

from iolab.base.errors import IolabError
from iolab.base.plain_text import one_line
from iolab.base.quantity import steps_of_units
from iolab.base.version import VERSION
from iolab.domain.collection.benchmark import Benchmark
from iolab.domain.collection.entry import Entry
from iolab.domain.collection.extract import Extract
from iolab.domain.collection.query import KEYS
from iolab.domain.definition import LOSSES, VERDICTS
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
    RunList,
    RunRow,
    Spark,
    Step,
)
from iolab.presentation.site.parts import metrics_of, run_row

SPARK_RUNS = 60
BENCHMARKS_MAX = 300
CHANGES_MAX = 200
NEWEST_MAX = 30
LOSSES_MAX = 50
RUNS_PER_CHUNK = 10_000
LIVE_TRIALS_MAX = 200
LIVE_RUNS_MAX = 20
CODED = (
    *("title", "machine", "kernel", "settings", "workloads", "verdicts", "state", "tags", "note", "benchmark"),
    "hardware",
)
COLUMNS = ("id", "name", "started_s", *CODED, "trials", "trials_not_ok", "problems")


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
    """Regressions first, then benchmarks, then the newest runs."""
    found = runs.benchmarks()
    changes, pending = _changes(runs, found)
    rows = [_benchmark_row(runs, one) for one in found[:BENCHMARKS_MAX]]
    newest_of = [one.entries[-1] for one in found]
    losses = [one for one in newest_of if any(one.verdicts.get(verdict) for verdict in LOSSES)]
    keys = [*(row.spark.metric for row in rows if row.spark), *(row.change.metric for row in changes[:CHANGES_MAX])]
    return Overview(
        metrics=metrics_of(keys),
        changes=changes[:CHANGES_MAX],
        changes_total=len(changes),
        pending=pending,
        losses=[run_row(one) for one in losses[:LOSSES_MAX]],
        benchmarks=rows,
        benchmarks_total=len(found),
        newest=[run_row(one) for one in runs.entries[:NEWEST_MAX]],
    )


def run_list(runs: Collection, chunk: int) -> RunList:
    """A part of the list of all runs, in as few bytes as it takes."""
    entries = runs.entries[chunk * RUNS_PER_CHUNK : (chunk + 1) * RUNS_PER_CHUNK]
    places: dict[str, int] = {}
    rows: list[list[str | int | None]] = []
    for one in entries:
        row = run_row(one)
        texts = (
            *(row.title, row.machine, row.kernel, "\n".join(row.settings), "\n".join(one.workloads)),
            "\n".join(f"{row.verdicts[verdict]} {verdict}" for verdict in VERDICTS if row.verdicts.get(verdict)),
            *(row.state, "\n".join(row.tags), row.note, row.benchmark, row.hardware),
        )
        started_s = None if row.started_unix_ns is None else row.started_unix_ns // 10**9
        coded = [places.setdefault(text, len(places)) for text in texts]
        rows.append([row.id, row.name, started_s, *coded, row.trials, row.trials_not_ok, row.problems])
    return RunList(
        total=len(runs.entries),
        chunks=chunks(runs),
        columns=list(COLUMNS),
        coded=list(CODED),
        texts=list(places),
        rows=rows,
    )


def chunks(runs: Collection) -> int:
    """How many parts the list of all runs has; one at least."""
    return max(1, -(-len(runs.entries) // RUNS_PER_CHUNK))


def live(runs: Collection) -> Live:
    """The runs in progress, with the trials that they have finished."""
    entries = [one for one in runs.entries if one.state == "running"][:LIVE_RUNS_MAX]
    pairs = {one.id: extract for one, extract in runs.extracts(entries)}
    found = [made for one in entries if (made := _live_run(runs, one, pairs.get(one.id)))]
    metrics = metrics_of(one.metric for one in found if one.metric)
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
        spark=_spark(one.entries[-SPARK_RUNS:]),
        regressions=None if changes is None else sum(change.regressed for change in changes),
    )


def _spark(entries: Sequence[Entry]) -> Spark | None:
    """The line of the metric that leads the newest run which has one; other runs join it if theirs is the same."""
    main = next((one.main for one in reversed(entries) if one.main), None)
    if main is None:
        return None
    place = (main.workload, main.setting, main.metric)
    same = [
        one.main if one.main and (one.main.workload, one.main.setting, one.main.metric) == place else None
        for one in entries
    ]
    return Spark(
        metric=main.metric,
        workload=main.workload,
        setting=main.setting,
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
    started = next(reversed(state.attempts), None)
    if started is not None and started not in state.finished:
        trials.append(
            LiveTrial(trial=started, round=0, workload="", setting="", status="running", duration_ns=None, value=None)
        )
    return LiveRun(
        run=_as_now(entry, len(finished)),
        trials_done=len(finished),
        trials_expected=_expected(state),
        metric=metric,
        trials=trials[-LIVE_TRIALS_MAX:],
    )


def _as_now(entry: Entry, done: int) -> RunRow:
    return run_row(entry).model_copy(update={"trials": done})


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


def _expected(state: RunState) -> int | None:
    started = state.started
    if started is None or started["until_decided"] or "question" in started:
        return None
    return state.rounds * len(started["workloads"]) * len(started["settings"])
