"""iolab from Python: `iolab.run`, `load`, `compare`, `explain`, `report`. docs/reference/python.md explains them.

What they return shows itself in a notebook as the command line prints it on a terminal. Every mistake is an exception
of iolab's own with one line, an `IolabError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from iolab.base.errors import InputError, from_os_error, unknown
from iolab.domain.comparison import Comparison
from iolab.domain.explain import Cause, Explanation, causes
from iolab.domain.explain import explain as explained
from iolab.domain.explain.inputs import of_run, of_two_runs
from iolab.domain.probe import PROBES
from iolab.domain.summary import summarise
from iolab.files.experiment import loads
from iolab.files.experiment.parse import find, read_text
from iolab.files.importer.run_import import open_files, open_run
from iolab.files.store import RunData, read
from iolab.presentation.frame import FrameColumns, compare_frame
from iolab.presentation.notebook import html
from iolab.presentation.progress import display
from iolab.presentation.progress.plain import PlainDisplay
from iolab.presentation.report import write
from iolab.presentation.report.figures import figures
from iolab.presentation.report.plot import literal
from iolab.presentation.side_by_side import ComparisonRequest, ComparisonResult, compare_paths, compare_runs
from iolab.presentation.table import cause
from iolab.presentation.table.explanation import explanations
from iolab.presentation.table.plain import tables
from iolab.presentation.table.verdicts import condition_lines, verdicts
from iolab.studies.run import run as start
from iolab.studies.run.machine_executor import MachineExecutor

if TYPE_CHECKING:
    import polars as pl
    from plotly.graph_objects import Figure
    from rich.console import RenderableType

    from iolab.domain.definition import Better
    from iolab.domain.experiment import Experiment

Source = str | PathLike[str]
"""The path of a run directory, or of a file of another tool."""

T = TypeVar("T")
FIGURES = ("differences", "rounds", "time", "latency")
"""Kinds that most runs have; a workload kind or a probe may add its own."""


class Run:
    """A run that was measured, simulated or imported. Frames are polars, read when first asked for; `.to_pandas()`
    turns one into a pandas frame."""

    def __init__(self, data: RunData) -> None:
        """`data` as `iolab.files.store.read` gives it; users call `iolab.load` or `iolab.run`."""
        self._data = data

    @property
    def path(self) -> Path:
        """Its directory, or the file that it was read from."""
        return self._data.path

    @property
    def problems(self) -> list[str]:
        """What is wrong with it, a line each: damaged files, doubtful trials. The rest is read nevertheless."""
        return self._data.problems

    @property
    def workloads(self) -> list[str]:
        """Names, in the experiment's order."""
        return self._data.workloads

    @property
    def settings(self) -> list[str]:
        """Names, in the experiment's order."""
        return self._data.settings

    @property
    def keys(self) -> list[str]:
        """Every metric's key that any trial has: `[phase/][operation.]metric`, the unit in its name."""
        return self._data.keys

    @property
    def trials(self) -> pl.DataFrame:
        """A row per trial: trial, round, position, workload, setting, status, seed, attempt, started_unix_ns,
        duration_ns (null if it is not known)."""
        return self._data.trials

    @property
    def metrics(self) -> pl.DataFrame:
        """A row per trial and metric, aggregates over all jobs: trial, round, workload, setting, phase, op, metric,
        key, value (null if it could not be measured), reason (why)."""
        return self._data.metrics

    @property
    def job_metrics(self) -> pl.DataFrame:
        """The same of each job by itself, and of each kind of job whose copies run beside others, with a column `job`;
        empty if no workload has several jobs."""
        with _own_errors():
            return self._data.job_metrics()

    def wide(self, keys: Sequence[str] | None = None) -> pl.DataFrame:
        """A row per trial: the columns of `trials`, and one per metric in `keys` (default: all).

        Raises:
            InputError: the run has no metric of that key.
        """
        for key in keys or ():
            if key not in self.keys:
                raise InputError(f"{key}: {unknown('metric', key, self.keys)}", where=str(self.path))
        return self._data.wide(None if keys is None else list(keys))

    def values(self, key: str, workload: str | None = None) -> pl.DataFrame:
        """One metric of one workload: a row per round, a column `round` and one per setting; null: no value.

        Args:
            key: as in `keys`. workload: may be left out if the run has only one.

        Raises:
            InputError: there is no such metric or workload, or several workloads and none is named.
        """
        if key not in self.keys:
            raise InputError(f"{key}: {unknown('metric', key, self.keys)}", where=str(self.path))
        return self._data.values(key, self._workload(workload))

    def latency_counts(self, workload: str | None = None) -> pl.DataFrame:
        """The latency histogram of one workload, all rounds and jobs together: phase, op, setting, latency_ns (the
        bucket's upper bound, rising), count. Raises InputError as `values`."""
        return self._data.latency_counts(self._workload(workload))

    def intervals(self, workload: str | None = None, setting: str | None = None) -> pl.DataFrame:
        """Time series of what was measured: trial, round, workload, setting, phase, job, op, metric, start_ns (since
        the phase's start), value."""
        return self._data.intervals(workload=workload, setting=setting)

    def series(self, workload: str | None = None, setting: str | None = None) -> pl.DataFrame:
        """Time series of probes: trial, round, workload, setting, phase, job (of what: `all`, `cpu0`, ...), metric,
        probe, at_ns (since the probe's start), value."""
        return self._data.series(workload=workload, setting=setting)

    def remarks(self) -> pl.DataFrame:
        """Faults and notes of trials: trial, round, workload, setting, phase, job, what (`fault` or `note`), count,
        text."""
        return self._data.remarks()

    def compare(
        self,
        *others: Run | Source,
        metrics: Sequence[str] = (),
        baseline: str | None = None,
        same_within: float | None = None,
    ) -> Comparisons:
        """`iolab.compare` of this run, alone or with others."""
        return compare(self, *others, metrics=metrics, baseline=baseline, same_within=same_within)

    def explain(
        self, *, metrics: Sequence[str] = (), baseline: str | None = None, workload: str | None = None
    ) -> Explanations:
        """`iolab.explain` of this run."""
        return explain(self, metrics=metrics, baseline=baseline, workload=workload)

    def report(self, path: Source, *, metrics: Sequence[str] = ()) -> Path:
        """`iolab.report` of this run."""
        return report(self, path, metrics=metrics)

    def figures(self, kind: str | None = None, *, metrics: Sequence[str] = ()) -> list[Figure]:
        """The report's plots as plotly figures, which a notebook shows and lets one change.

        Args:
            kind: `differences` (intervals of the ratios to the baseline), `rounds` (throughput per trial), `time`
                (throughput within a trial), `latency` (percentiles), or what a probe adds; None: all.
            metrics: of the differences; default: what the experiment compares.

        Returns:
            A figure per workload and phase, its title the plot's caption. A kind of `FIGURES` that the run has no data
            for has none.

        Raises:
            InputError: there is no such kind.
        """
        from plotly.graph_objects import Figure

        with _own_errors():
            found = figures(self._data, summarise(self._data, metrics=metrics))
        known = list(dict.fromkeys((*FIGURES, *(one.id for one in found))))
        if kind is not None and kind not in known:
            raise InputError(f"{kind}: {unknown('kind of figure', kind, known)}", where="figures")
        drawn = []
        for plot in (plot for one in found if kind in (None, one.id) for plot in one.plots):
            figure = Figure(plot.figure())
            figure.update_layout(template="plotly", title={"text": literal(plot.caption), "y": 0.98}, margin={"t": 90})
            drawn.append(figure)
        return drawn

    def __repr__(self) -> str:
        names = f"workloads={self.workloads}, settings={self.settings}"
        return f"Run({str(self.path)!r}, {names}, trials={self.trials.height}, problems={len(self.problems)})"

    def _repr_html_(self) -> str:

        with _own_errors():
            return html(tables(summarise(self._data)))

    def _workload(self, name: str | None) -> str:
        if name is None and len(self.workloads) == 1:
            return self.workloads[0]
        if name not in self.workloads:
            what = "name one of the workloads" if name is None else f"{name}: no such workload"
            raise InputError(f"{what}: {', '.join(self.workloads)}", where=str(self.path))
        return name


class Comparisons(Sequence["Comparison"]):
    """Verdicts, a `Comparison` each: metric, workload, setting, against, judgement."""

    def __init__(self, compared: ComparisonResult) -> None:
        """Users call `iolab.compare`."""
        self._comparisons = list(compared.comparisons)
        self.sweeps = compared.swept
        """What each axis of settings or workloads comes to, a sentence each: where more stops paying."""
        self.problems = list(compared.problems)
        """What is wrong with the runs, a line each."""
        self.doubts = list(compared.doubts)
        """Why numbers may not mean what they seem to, a line each: reads from the page cache, no steady state, ..."""
        read_as = [compared.read_as] if compared.read_as else []
        self.conditions = [*read_as, *(condition_lines(compared.conditions) if compared.conditions else ())]
        """A line each: how names were read, and what else differs between the runs: machine, kernel, options."""

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A row per comparison: metric, workload, setting, against, verdict, ratio (candidate by baseline), its 95 %
        interval ci_low and ci_high, p, q, n and further fields of `iolab compare --json`; notes are one text."""
        return _frame([{**one.as_dict(), "notes": "; ".join(one.notes)} for one in self._comparisons])

    @overload
    def __getitem__(self, index: int) -> Comparison: ...
    @overload
    def __getitem__(self, index: slice) -> list[Comparison]: ...
    def __getitem__(self, index: int | slice) -> Comparison | list[Comparison]:
        return self._comparisons[index]

    def __len__(self) -> int:
        return len(self._comparisons)

    def __repr__(self) -> str:
        return f"Comparisons({len(self)}: {', '.join(one.judgement.verdict for one in self)})"

    def _repr_html_(self) -> str:

        return html(
            verdicts(self._comparisons, swept=self.sweeps, about=self.conditions),
            *_remarks([*self.problems, *self.doubts]),
        )


class Explanations(Sequence["Explanation"]):
    """What moved together with each result, an `Explanation` each: result, why_not, looked_at, findings, ..."""

    def __init__(self, explained: Sequence[Explanation], causes: Sequence[Cause], problems: Sequence[str]) -> None:
        """Users call `iolab.explain`."""
        self._explained = list(explained)
        self.causes = list(causes)
        """Per pair of settings and workload, the mechanism that moved first (`first.mechanism.name`, None if none is
        seen to have moved), what follows from it, and the latency budget; docs/why.md."""
        self.problems = list(problems)
        """What is wrong with the numbers, a line each."""

    @cached_property
    def frame(self) -> pl.DataFrame:
        """A row per result and metric that was looked at, the strongest evidence first: workload, setting, against,
        result (the metric explained), metric, kind (`both`, `setting`, `result`, `contrary` or `neither`)."""
        rows = [
            {
                "workload": one.result.workload,
                "setting": one.result.setting,
                "against": one.result.against,
                "result": one.result.metric,
                "metric": finding.metric,
                "kind": finding.kind,
            }
            for one in self._explained
            for finding in one.looked_at
        ]
        return _frame(rows)

    @overload
    def __getitem__(self, index: int) -> Explanation: ...
    @overload
    def __getitem__(self, index: slice) -> list[Explanation]: ...
    def __getitem__(self, index: int | slice) -> Explanation | list[Explanation]:
        return self._explained[index]

    def __len__(self) -> int:
        return len(self._explained)

    def __repr__(self) -> str:
        return f"Explanations({', '.join(f'{one.result.metric}: {len(one.findings)} findings' for one in self)})"

    def _repr_html_(self) -> str:

        return html(cause.causes(self.causes), explanations(self._explained), *_remarks(self.problems))


def run(
    experiment: Source,
    *,
    out: Source | None = None,
    machine: str | None = None,
    rounds: int | None = None,
    until_decided: bool = False,
    seed: int | None = None,
    probes: Sequence[str] = (),
    progress: bool = False,
) -> Run:
    """Runs an experiment, here or on a simulated machine, as `iolab run` does.

    Args:
        experiment: its file, its text (a string with a line break), or the name of one that comes with iolab. out: the
        run directory to make; default: a new one in ./iolab-runs. machine: instead of the experiment's: `host`, or
        `model:NAME`. rounds: instead of the experiment's; with `until_decided` the most. until_decided: adds rounds
        until no comparison is undecided. seed: of the order of trials and all random offsets; default: the
        experiment's, else drawn and recorded. probes: names of probes, on in addition to the experiment's. progress:
        shows on standard error how the run goes.

    Raises:
        InputError: the experiment is wrong (a line per mistake), or `out` is taken.
        MachineError: this machine can't do it; the line states what would make it able.
        InterruptedRun: by Ctrl-C, everything restored; `iolab run --resume` continues it.
    """

    for name in probes:
        if name not in PROBES:
            raise InputError(f"{name}: {unknown('probe', name, PROBES)}", where="probes")
    with _own_errors(), MachineExecutor() as executor:
        done = start(
            _experiment(experiment, machine, probes),
            None if out is None else Path(out),
            executor=executor,
            progress=display() if progress else PlainDisplay(StringIO(), brief=True),
            rounds=rounds,
            until_decided=until_decided,
            seed=seed,
            probes=list(dict.fromkeys(probes)),
        )
        return Run(read(done.path))


def load(path: Source, *more: Source, format: str | None = None) -> Run:
    """Reads a run directory, or files of other tools: fio, tiobench, iozone, fs_mark, mmtests, any CSV ...

    Args:
        path: a run directory or a file.
        more: further files, read together as `iolab import` does.
        format: of files whose content is not recognised, as `iolab import --from` takes it.

    Raises:
        InputError: it is neither, can't be read, or its format is not known.
    """

    paths = [Path(one) for one in (path, *more)]
    with _own_errors():
        return Run(open_files(paths, format) if more else open_run(paths[0], format))


def compare(
    data: Run | Source | Any,
    *others: Run | Source,
    metrics: Sequence[str] = (),
    baseline: str | None = None,
    same_within: float | None = None,
    group_by: str | None = None,
    by_job: bool = False,
    job: str | None = None,
    setting_column: str | None = None,
    round_column: str | None = None,
    workload_column: str | None = None,
    better: Mapping[str, Better] | None = None,
) -> Comparisons:
    """Judges for each metric whether a setting is faster, slower, the same within a margin, or undecided.

    The verdict on a metric that is no rate and no time is better or worse, or higher or lower.

    Args:
        data: a `Run`, a path of what `iolab compare` reads, or a polars or pandas frame with a row per setting and
            round.
        others: further runs or paths, any number; each is compared with the first. Paths alone are grouped as the
            command line does: `old-1`, `old-2`, `new-1` are rounds of the settings old and new.
        metrics: keys; default: what the experiment compares. For a frame, columns; default: all others with numbers.
        baseline: the setting to compare with; default: the experiment's. With several runs, the run, and in a frame
            the setting; default: as the command line chooses it, mostly the first.
        same_within: the margin of the verdict `same`, 0.02 for 2 %; default: the experiment's, else 0.02.
        group_by: for paths, a regular expression: what in DIRECTORY/NAME is the setting.
        by_job: compares each job of a workload too.
        job: compares only this job of each workload.
        setting_column: for a frame. Columns that are not named are found by their usual names, as in a CSV file.
        round_column: for a frame; rows of one round are paired. Without one, rows are rounds in their order.
        workload_column: for a frame, if it has several workloads.
        better: by metric or column `higher` or `lower`, if its name does not show it.

    Raises:
        InputError: a name that is not there, an argument that does not fit, numbers that can't be compared.
    """

    if same_within is not None and not 0 < same_within < 1:
        raise InputError(
            f"{same_within!r} given; expected a share above 0 and below 1, such as 0.02", where="same_within"
        )
    columns = {
        "setting_column": setting_column,
        "round_column": round_column,
        "workload_column": workload_column,
    }
    if hasattr(data, "columns") and hasattr(data, "to_dict"):
        if others:
            raise InputError("further runs go with a run, not with a frame", where="others")
        if group_by is not None or by_job or job is not None:
            raise InputError("group_by, by_job and job are for runs", where="compare", remedy="leave them out")
        with _own_errors():
            given_columns = FrameColumns(setting_column, round_column, workload_column, better)
            wanted = ComparisonRequest(metrics, baseline, same_within, on_command_line=False)
            return Comparisons(compare_frame(_as_polars(data), given_columns, wanted))
    for name, given in columns.items():
        if given is not None:
            raise InputError("is for frames", where=name, remedy="load(PATH).wide() is one")
    wanted = ComparisonRequest(metrics, baseline, same_within, by_job, job, better or {}, on_command_line=False)
    with _own_errors():
        if not any(isinstance(one, Run) for one in (data, *others)):
            paths = [Path(_source(one)) for one in (data, *others)]
            return Comparisons(compare_paths(paths, wanted, group_by=group_by, from_=None))
        if group_by is not None:
            raise InputError("is for paths", where="group_by", remedy="give paths instead of runs")
        return Comparisons(compare_runs([_run_of(one) for one in (data, *others)], wanted))


def explain(
    data: Run | Source,
    other: Run | Source | None = None,
    *,
    metrics: Sequence[str] = (),
    baseline: str | None = None,
    workload: str | None = None,
) -> Explanations:
    """Which mechanism moved first, and what moved together with each metric that is faster or slower.

    Args:
        data: a `Run`, or a path that `load` reads.
        other: a second run, as in `compare`.
        metrics: keys of what is to be explained; default: what the experiment compares.
        baseline: the setting to compare with; default: the experiment's.
        workload: this one only.

    Raises:
        InputError: a name that is not there.
    """

    with _own_errors():
        first = _run_of(data)
        if other is None:
            inputs = of_run(first, metrics, baseline)
        elif baseline is not None:
            raise InputError("two runs are compared setting by setting", where="baseline", remedy="leave it out")
        else:
            inputs = of_two_runs(first, _run_of(other), metrics)
        inputs = inputs.of_workload(workload)
        found = causes(inputs.frame, inputs.results, inputs.changes)
        return Explanations(explained(inputs.frame, inputs.results), found, inputs.problems)


def report(data: Run | Source, path: Source, *, metrics: Sequence[str] = ()) -> Path:
    """Writes a run as one HTML file that opens without a network, and returns its path. A file there is replaced.

    Args:
        data: a `Run`, or a path that `load` reads.
        path: the file to write.
        metrics: keys; default: what the experiment compares.

    Raises:
        InputError: it can't be written there, or the run was measured with a debug build.
        MachineError: there is no room.
    """

    with _own_errors():
        write(_run_of(data), Path(path), metrics)
    return Path(path)


def _experiment(source: Source, machine: str | None, probes: Sequence[str]) -> Experiment:

    if isinstance(source, str) and "\n" in source:
        return loads(source, "experiment", probes=list(probes), machine=machine)
    path = find(Path(source))
    return loads(read_text(path), str(path), probes=list(probes), machine=machine)


def _run_of(source: Run | Source) -> RunData:
    return (source if isinstance(source, Run) else load(_source(source)))._data


def _source(given: Source | Any) -> Source:
    if not isinstance(given, (str, PathLike)):
        raise InputError(f"{type(given).__name__} given; expected a run of iolab.load or a path", where="run")
    return given


def _as_polars(data: Any) -> pl.DataFrame:
    import polars as pl

    if isinstance(data, pl.DataFrame):
        return data
    return pl.DataFrame({str(name): column.tolist() for name, column in data.items()}, strict=False)


def _frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(rows, infer_schema_length=None)


def _lines(lines: Sequence[str]) -> Iterator[RenderableType]:
    from rich.text import Text

    yield from (Text(line, style="dim") for line in lines)


def _remarks(problems: Sequence[str]) -> Iterator[RenderableType]:
    from rich.text import Text

    yield from (Text(f"! {problem}", style="yellow") for problem in problems)


@contextmanager
def _own_errors() -> Iterator[None]:
    """What the system refuses as an error of iolab's own; a defect stays what it is, with its traceback."""
    try:
        yield
    except OSError as error:
        if (known := from_os_error(error)) is None:
            raise
        raise known from error
