"""A benchmark on one hardware: its runs and the metrics it compares; one metric over the runs; kernels x settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iolab.base.errors import InputError
from iolab.domain.collection.benchmark import Benchmark, natural_order
from iolab.domain.collection.entry import Entry
from iolab.domain.collection.extract import Extract, Judged, Measured, judged_of
from iolab.domain.comparison import Pair, compare_pairs
from iolab.files.collection.collection import Collection
from iolab.presentation.site.page_types import (
    BenchmarkPage,
    Cell,
    Elsewhere,
    KernelRow,
    LineOfRuns,
    Matrix,
    MatrixPage,
    MetricPage,
    Series,
    WorkloadLines,
)
from iolab.presentation.site.parts import metric_id, metrics_of, run_point, run_row

SPARK_RUNS = 60
RUNS_MAX = 500
"""Rows of the table of runs."""
SERIES_MAX = 400
LINES_MAX = 60
NUMBERS_MAX = 60_000
"""The numbers of one metric over the runs: typical values, spreads and rounds, of about 10 bytes each."""
HISTORY_MAX = 730
MATRICES_MAX = 60
SeriesKey = tuple[str, str, str]
Pairs = Sequence[tuple[Entry, Extract]]


def find(runs: Collection, id: str, hardware: str) -> Benchmark:
    """InputError if there is none of these ids."""
    for one in runs.benchmarks():
        if (one.id, one.hardware) == (id, hardware):
            return one
    raise InputError("there is no such benchmark", where=f"{id}-{hardware}")


def page(runs: Collection, one: Benchmark) -> BenchmarkPage:
    """The benchmark's runs, and its series as small lines."""
    pairs = runs.extracts(one.entries[-SPARK_RUNS:])
    compared = pairs[-1][1].compared if pairs else []
    by_place = _by_place(pairs, compared)
    order = {metric: place for place, metric in enumerate(compared)}
    valued = [place for place, of_place in by_place.items() if any(it.typical is not None for it in of_place.values())]
    places = sorted(valued, key=lambda place: (natural_order(place[0]), order[place[2]], place[1]))
    series = [_series(place, by_place[place], pairs) for place in places[:SERIES_MAX]]
    same = [other for other in runs.benchmarks() if other.id == one.id and other.hardware != one.hardware]
    measured = [one for one in (pairs[-1][1].measured if pairs else ()) if one.typical is not None]
    keys = dict.fromkeys([*compared, *(one.metric for one in measured)])
    return BenchmarkPage(
        id=one.id,
        hardware=one.hardware,
        title=one.title,
        hardware_in_words=one.entries[-1].hardware_in_words,
        elsewhere=[
            Elsewhere(
                hardware=other.hardware,
                hardware_in_words=other.entries[-1].hardware_in_words,
                runs=len(other.entries),
            )
            for other in same
        ],
        metrics=metrics_of(keys),
        compared=compared,
        runs=[run_row(entry) for entry in reversed(one.entries[-RUNS_MAX:])],
        runs_total=len(one.entries),
        series=series,
        series_left_out=max(0, len(places) - SERIES_MAX),
        changes=runs.known_changes(one),
    )


def metric_page(runs: Collection, one: Benchmark, id: str) -> MetricPage:
    """One metric over the newest runs, a line per workload and setting. InputError if the newest run lacks it."""
    newest = runs.extracts(one.entries[-1:])
    keys = dict.fromkeys(measured.metric for _, extract in newest for measured in extract.measured)
    key = next((key for key in keys if metric_id(key) == id), None)
    if key is None:
        raise InputError("the newest run has no such metric", where=id)
    newest_measured = [measured for measured in newest[0][1].measured if measured.metric == key]
    rounds = max((len(measured.rounds) for measured in newest_measured), default=1)
    lines = min(len(newest_measured), LINES_MAX) or 1
    most = max(20, min(HISTORY_MAX, NUMBERS_MAX // (lines * (rounds + 2))))
    pairs = runs.extracts(one.entries[-most:])
    by_place = _by_place(pairs, [key])
    if not any(measured.typical is not None for of_place in by_place.values() for measured in of_place.values()):
        raise InputError(f"no run has a value of {key}", where=one.title)
    places = sorted(by_place, key=lambda place: (natural_order(place[0]), place[1]))
    workloads: dict[str, list[LineOfRuns]] = {}
    for place in places[:LINES_MAX]:
        workloads.setdefault(place[0], []).append(_line(place[1], by_place[place], len(pairs)))
    changes = runs.known_changes(one)
    return MetricPage(
        id=one.id,
        hardware=one.hardware,
        title=one.title,
        hardware_in_words=one.entries[-1].hardware_in_words,
        metric=key,
        metrics=metrics_of([key]),
        runs=[run_point(entry) for entry, _ in pairs],
        runs_total=len(one.entries),
        workloads=[WorkloadLines(workload=workload, lines=found) for workload, found in workloads.items()],
        lines_left_out=max(0, len(places) - LINES_MAX),
        changes=None if changes is None else [change for change in changes if change.metric == key],
    )


def matrix_page(runs: Collection, one: Benchmark) -> MatrixPage:
    """Kernels x settings; of several runs on a kernel the newest."""
    newest: dict[str, Entry] = {entry.kernel: entry for entry in one.entries if entry.kernel}
    kernels = sorted(newest, key=natural_order)
    pairs = runs.extracts([newest[kernel] for kernel in kernels])
    last = runs.extracts(one.entries[-1:])
    compared = last[0][1].compared if last else []
    by_place = _by_place(pairs, compared)
    settings = list(dict.fromkeys(place[1] for place in by_place))
    names = list(dict.fromkeys((place[0], place[2]) for place in by_place))[:MATRICES_MAX]
    return MatrixPage(
        id=one.id,
        hardware=one.hardware,
        title=one.title,
        hardware_in_words=one.entries[-1].hardware_in_words,
        metrics=metrics_of(compared),
        matrices=[_matrix(workload, metric, settings, by_place, pairs) for workload, metric in names],
        same_within=last[0][1].same_within if last else 0.02,
    )


def _by_place(pairs: Pairs, metrics: Sequence[str]) -> dict[SeriesKey, dict[int, Measured]]:
    """By workload, setting and metric: by the run's place, what it measured."""
    wanted = set(metrics)
    found: dict[SeriesKey, dict[int, Measured]] = {}
    for number, (_, extract) in enumerate(pairs):
        for one in extract.measured:
            if one.metric in wanted:
                found.setdefault((one.workload, one.setting, one.metric), {})[number] = one
    return found


def _series(place: SeriesKey, by_run: dict[int, Measured], pairs: Pairs) -> Series:
    last = max((number for number, one in by_run.items() if one.typical is not None), default=None)
    it = None if last is None else by_run[last]
    return Series(
        workload=place[0],
        setting=place[1],
        metric=place[2],
        typical=[by_run[number].typical if number in by_run else None for number in range(len(pairs))],
        last=it.typical if it else None,
        last_spread=it.spread if it else None,
        last_n=it.n if it else 0,
        last_run=None if last is None else pairs[last][0].id,
    )


def _line(setting: str, by_run: dict[int, Measured], count: int) -> LineOfRuns:
    found = [by_run.get(number) for number in range(count)]
    return LineOfRuns(
        setting=setting,
        typical=[None if one is None else one.typical for one in found],
        spread=[None if one is None else one.spread for one in found],
        rounds=[[] if one is None else one.rounds for one in found],
    )


def _matrix(
    workload: str, metric: str, settings: Sequence[str], by_place: dict[SeriesKey, dict[int, Measured]], pairs: Pairs
) -> Matrix:
    by_kernel = dict(_against_first_kernel(workload, metric, settings, by_place, pairs))
    rows = []
    for number, (entry, extract) in enumerate(pairs):
        judged = {
            one.setting: one
            for one in extract.judged
            if (one.workload, one.job, one.metric) == (workload, None, metric)
        }
        cells = [
            Cell(
                setting=setting,
                run=entry.id,
                typical=it.typical,
                spread=it.spread,
                by_setting=judged.get(setting),
                by_kernel=by_kernel.get((number, setting)),
            )
            for setting in settings
            if (it := by_place.get((workload, setting, metric), {}).get(number))
        ]
        rows.append(KernelRow(kernel=entry.kernel, cells=cells))
    return Matrix(workload=workload, metric=metric, settings=list(settings), rows=rows)


def _against_first_kernel(
    workload: str, metric: str, settings: Sequence[str], by_place: dict[SeriesKey, dict[int, Measured]], pairs: Pairs
) -> Iterator[tuple[tuple[int, str], Judged]]:
    """By the kernel's place and the setting. Runs of two kernels are not interleaved: nothing is paired."""
    places, compared = [], []
    for setting in settings:
        by_run = by_place.get((workload, setting, metric), {})
        first = min(by_run, default=None)
        for number, one in by_run.items():
            if first is not None and number != first:
                ours, theirs = by_run[first], one
                kernels = pairs[first][0].kernel, pairs[number][0].kernel
                places.append((number, setting))
                compared.append(Pair(metric, workload, *kernels, ours.rounds, theirs.rounds, "none"))
    if pairs and compared:
        margin = pairs[-1][1].same_within
        for place, found in zip(places, compare_pairs(compared, same_within=margin), strict=True):
            yield place, judged_of(found)
