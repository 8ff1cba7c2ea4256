"""Reads a run back: frames for whoever studies it, and every problem named. Reading changes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from iolab.base import strict_json
from iolab.base.bounded_file import EXPERIMENT_BYTES_MAX, read_bounded
from iolab.base.errors import InputError, unknown
from iolab.base.plain_text import counted
from iolab.base.strict_json import JsonObject
from iolab.domain.arms import interleaved, spans
from iolab.domain.comparison import in_turns
from iolab.domain.experiment import IMPORTED
from iolab.domain.lead import OF_DEVICE, Shape, kinds_of, shape_of
from iolab.files.experiment import Experiment, loads
from iolab.files.store import imported_experiment, index
from iolab.files.store.directory import RunDirectory
from iolab.files.store.examine import Examination, examine, problem_of_content
from iolab.files.store.journal import read_journal
from iolab.files.store.parquet import decoding
from iolab.files.store.state import RunState, clock_problems, fold
from iolab.files.store.trial_file import TableSchema, read_record, table_schema

if TYPE_CHECKING:
    import polars

    from iolab.domain.comparison import Pairing
    from iolab.domain.record import Record

TRIALS_NAMED_MAX = 5
FAILED_ELSEWHERE = "it failed, by the source's own report"
_DELETE_INDEX = "delete the run's index directory, so that every file is examined and damaged ones are left out"
NAMES = ("trial", "round", "workload", "setting")
"""Columns of every frame of rows."""
_Rows = tuple[list[str], list[int], list[float | None]]
"""Settings, rounds and values of a metric."""


def read(path: Path, within: Path | None = None) -> RunData:
    """Reads the run in directory `path`. InputError if it isn't one; anything less is listed in `problems`.

    Args:
        within: the directory of a collection that it was found in; no link below that is followed.
    """
    directory = RunDirectory.open(path, within)
    journal = read_journal(directory.journal_file, directory.root)
    state = fold(journal.events)
    found = examine(directory, state)
    started = state.started
    machine, machine_problems = _read_machine(directory, None if started is None else started.get("machine_sha256"))
    # A line of the import stands in the journal for what failed by another tool's report.
    imports = [str(event["text"]) for event in journal.events if event["event"] == "import_problem"]
    problems = [
        *journal.problems,
        *found.problems,
        *machine_problems,
        *_experiment_problems(directory, None if started is None else started.get("experiment_sha256")),
        *_session_problems(state),
        *_unfinished(state, found, path),
        *imports,
        *clock_problems(journal.events),
        *([] if imports else _status_problems(found)),
    ]
    return RunData(directory, state, machine, found, problems)


@dataclass
class RunData:
    """A run, read. Frames are loaded when first asked for; metrics are columns of numbers, never parsed text."""

    directory: RunDirectory
    state: RunState
    machine: JsonObject
    """machine.json, empty if unreadable."""
    found: Examination
    problems: list[str]
    """What is wrong with the run, a line each: damaged files, doubtful trials, clocks, builds."""

    @property
    def path(self) -> Path:
        """The run's directory."""
        return self.directory.path

    @property
    def build_profile(self) -> str:
        """The build to trust least of the sessions: `debug` (no number is fit for a report), `checked`, `release`."""
        used = {session.get("build_profile") for session in self.state.sessions}
        return next((profile for profile in ("debug", "checked") if profile in used), "release")

    @cached_property
    def experiment_text(self) -> str:
        """The text of experiment.toml. InputError if it cannot be read."""
        return self.directory.experiment_text()

    @cached_property
    def experiment(self) -> Experiment:
        """InputError if this iolab doesn't understand the text."""
        if self.machine_name == IMPORTED:
            return imported_experiment.parse(self.experiment_text, str(self.directory.experiment_file))
        return loads(
            self.experiment_text,
            str(self.directory.experiment_file),
            probes=[] if self.state.started is None else self.state.started.get("probes", []),
            machine=self.machine_name,
            already_run=True,
            copies=self.directory.files,
        )

    def against(self, baseline: str) -> RunData:
        """The same run, whose settings are compared with this one. InputError if it has no such setting."""
        if baseline not in self.settings:
            raise InputError(f"{baseline}: {unknown('setting', baseline, self.settings)}", where="--baseline")
        run = replace(self)
        run.experiment = replace(self.experiment, compare=replace(self.experiment.compare, baseline=baseline))
        return run

    @property
    def machine_name(self) -> str | None:
        """See `iolab.domain.measured_run`."""
        return None if self.state.started is None else self.state.started["machine"]

    @property
    def seed(self) -> int | None:
        """See `iolab.domain.measured_run`."""
        return None if self.state.started is None else self.state.started["seed"]

    @property
    def rounds_until_decided(self) -> int | None:
        """See `iolab.domain.measured_run`."""
        started = self.state.started
        return started["rounds"] if started is not None and started["until_decided"] else None

    @property
    def impossible(self) -> set[tuple[str, str]]:
        """Each (workload, setting) that the machine could not run."""
        events = self.found.trials.values()
        return {(event["workload"], event["setting"]) for event in events if event["status"] == "impossible"}

    @property
    def is_search(self) -> bool:
        """See `iolab.domain.measured_run`."""
        return self.state.started is not None and "question" in self.state.started

    def pairing(self, baseline: str, candidate: str) -> Pairing:
        """See `iolab.domain.measured_run`. Imported numbers have rounds in common if one file holds both settings, and
        numbers their rounds or has them in turns, or if the clock shows that they were measured so."""
        if self.is_search:
            return "none"
        if self.machine_name != IMPORTED:
            parts = self.experiment.parts
            return "round" if parts.get(baseline) == parts.get(candidate) else "boot"
        ours, theirs = (self._sources_of(setting) for setting in (baseline, candidate))
        if not (ours and theirs) or interleaved(spans(self, baseline), spans(self, candidate)):
            return "round"
        sources = {source for source, _ in ours} & {source for source, _ in theirs}
        return "none" if not sources or _are_apart(ours, theirs) else "round"

    def _sources_of(self, setting: str) -> dict[tuple[int, str], list[int]]:
        """Where an imported setting's rounds come from: by file and workload, the lines of their tables; empty of runs
        that don't report it."""
        found: dict[tuple[int, str], list[int]] = {}
        for _, event in sorted(self.found.trials.items()):
            if event["setting"] == setting and "source" in event:
                found.setdefault((event["source"], event["workload"]), []).append(event.get("line", 0))
        return found

    @property
    def host_of_round(self) -> dict[int, str]:
        """See `iolab.domain.measured_run`."""
        return {event["round"]: event["host"] for event in self.found.trials.values() if "host" in event}

    @property
    def doubts(self) -> list[tuple[str, str, dict[str, float]]]:
        """See `iolab.domain.measured_run`."""
        events = (event for _, event in sorted(self.found.trials.items()))
        return [(event["workload"], event["setting"], event.get("doubts", {})) for event in events]

    @property
    def workloads(self) -> list[str]:
        """In the experiment's order."""
        return self._in_order("workload", [] if self.state.started is None else self.state.started["workloads"])

    @property
    def settings(self) -> list[str]:
        """In the experiment's order, the first is the baseline unless [compare] names another."""
        return self._in_order("setting", [] if self.state.started is None else self.state.started["settings"])

    @cached_property
    def trials(self) -> polars.DataFrame:
        """One row per trial with a whole file: trial, round, position, workload, setting, status, seed, attempt,
        started_unix_ns, duration_ns (null if a kill lost it)."""
        import polars as pl

        schema = {
            "trial": pl.Int64,
            "round": pl.Int64,
            "position": pl.Int64,
            "workload": pl.String,
            "setting": pl.String,
            "status": pl.String,
            "seed": pl.Int64,
            "attempt": pl.Int64,
            "started_unix_ns": pl.Int64,
            "duration_ns": pl.Int64,
        }
        events: list[Mapping[str, object]] = list(self.found.trials.values())
        return pl.DataFrame({name: [event[name] for event in events] for name in schema}, schema=schema)

    @cached_property
    def metrics(self) -> polars.DataFrame:
        """Aggregates over all jobs, one row per trial and metric: trial, round, workload, setting, phase, op, metric,
        key, value (null when absent), reason (why)."""
        import polars as pl

        parts = []
        if self.found.index_files:
            parts.append(index.scan(self.found.index_files, self.directory).select(index.COLUMNS))
        if self.found.trial_files:
            parts.append(index.scan_trial_files(self.found.trial_files, self.directory))
        if not parts:
            return pl.DataFrame(schema=_schema(index.COLUMNS))
        with self._decoding():
            return self._judged(pl.concat(parts).sort("trial", maintain_order=True).collect())

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """See `iolab.domain.measured_run`. Of imported numbers, by the jobs and operations that they are of."""
        if self.machine_name != IMPORTED:
            devices = self.experiment.target.devices
            known = self.experiment.workloads.items()
            return {name: shape_of(one.phases(seed=0, devices=devices)) for name, one in known}
        jobs: dict[str, dict[str, None]] = {}
        for workload, job in self.job_metrics().select("workload", "job").iter_rows():
            jobs.setdefault(workload, {})[job] = None
        keys = {workload: self.keys_of(workload) for workload in self.workloads}
        syncs = {
            workload: any("sync." in key for key in of) and not any(key.endswith(OF_DEVICE) for key in of)
            for workload, of in keys.items()
        }
        return {
            workload: Shape(tuple(kinds_of(list(jobs.get(workload, {})))), syncs[workload])
            for workload in self.workloads
        }

    @cached_property
    def keys(self) -> list[str]:
        """Every metric's key that any trial has, in the order of the files."""
        return self.metrics["key"].unique(maintain_order=True).to_list()

    def keys_of(self, workload: str) -> list[str]:
        """The keys that trials of this workload have."""
        return list(self._metrics_by_place.get(workload, {}))

    def values(self, key: str, workload: str) -> polars.DataFrame:
        """One metric of one workload, as the verdict takes it: a row per round, a column `round` and one per setting;
        null if there is no value. If a setting is called `round`, the first column is `round_`."""
        import polars as pl

        rows = self._metrics_by_place.get(workload, {}).get(key)
        if rows is None:
            return pl.DataFrame(schema={"round": pl.Int64})
        by_setting: dict[str, dict[int, float | None]] = {}
        for setting, turn, value in zip(*rows, strict=True):
            by_setting.setdefault(setting, {})[turn] = value
        turns = sorted(set(rows[1]))
        index = "round"
        while index in by_setting:
            index += "_"
        columns = {index: turns} | {
            setting: [by_setting[setting].get(turn) for turn in turns]
            for setting in self.settings
            if setting in by_setting
        }
        return pl.DataFrame(columns, schema={name: pl.Int64 if name == index else pl.Float64 for name in columns})

    def wide(self, keys: list[str] | None = None) -> polars.DataFrame:
        """One row per trial: the columns of `trials`, and one for each metric in `keys` (default: all)."""
        import polars as pl

        wanted = self.keys if keys is None else keys
        values = self.metrics.filter(pl.col("key").is_in(wanted)).pivot(on="key", index="trial", values="value")
        return self.trials.join(values, on="trial", how="left", maintain_order="left")

    def job_metrics(self, *, workload: str | None = None, setting: str | None = None) -> polars.DataFrame:
        """Each job's own metrics, if a trial has several jobs: the columns of `metrics`, and job."""
        columns = ("phase", "job", "op", "metric", "key", "value", "reason")
        return self._judged(self._rows("metric", workload, setting, columns))

    def histograms(self, *, workload: str | None = None, setting: str | None = None) -> polars.DataFrame:
        """Latency counts by bucket: trial, round, workload, setting, phase, job ("all" or one's name), op,
        latency_ns (the highest counted in the bucket), count."""
        rows = self._rows("histogram", workload, setting, ("phase", "job", "op", "at", "value"))
        return rows.rename({"at": "latency_ns", "value": "count"})

    def intervals(self, *, workload: str | None = None, setting: str | None = None) -> polars.DataFrame:
        """Time series: trial, round, workload, setting, phase, job, op, metric, start_ns (since the phase's start),
        value."""
        rows = self._rows("interval", workload, setting, ("phase", "job", "op", "metric", "at", "value"))
        return rows.rename({"at": "start_ns"})

    def series(self, *, workload: str | None = None, setting: str | None = None) -> polars.DataFrame:
        """Time series of probes: trial, round, workload, setting, phase, job (what a series is of: `all`, `cpu0`, ...),
        metric (the column), probe, at_ns (since the probe's start), value."""
        rows = self._rows("series", workload, setting, ("phase", "job", "metric", "key", "at", "value"))
        return rows.rename({"key": "probe", "at": "at_ns"})

    def latency_counts(self, workload: str) -> polars.DataFrame:
        """The histograms of all rounds and jobs together: phase, op, setting, latency_ns (rising), count."""
        import polars as pl

        counts = (
            self._rows_of(workload, None)
            .filter(pl.col("what") == "histogram", pl.col("job") == "all")
            .group_by("phase", "op", "setting", pl.col("at").alias("latency_ns"))
            .agg(pl.col("value").sum().alias("count"))
            .sort("latency_ns", "phase", "op", "setting")
        )
        with self._decoding():
            return counts.collect(engine="streaming")

    def latency_over_time(self, workload: str) -> polars.DataFrame:
        """Latency classes of half a power of two over time, of all jobs, reads and writes together: trial, setting,
        phase, start_ns (of the interval, since the phase's start), latency_ns (the class's highest), count. Empty if
        the records do not hold it."""
        import polars as pl

        rows = self._rows("interval_histogram", workload, None, ("phase", "key", "at", "value"))
        return rows.select(
            "trial",
            "setting",
            "phase",
            pl.col("key").cast(pl.Float64).alias("start_ns"),
            pl.col("at").alias("latency_ns"),
            pl.col("value").alias("count"),
        )

    def remarks(self) -> polars.DataFrame:
        """Faults and notes of the trials: trial, round, workload, setting, phase, job, what ("fault" or "note"),
        count, text."""
        import polars as pl

        columns = (*NAMES, "phase", "job", "what", pl.col("value").alias("count"), pl.col("reason").alias("text"))
        rows = self._rows_of(None, None).filter(pl.col("what").is_in(["fault", "note"])).select(columns)
        with self._decoding():
            return rows.collect().sort("trial", "what", maintain_order=True)

    def record(self, trial: int) -> Record:
        """What one trial yielded, without histograms and intervals. InputError if the run has no such trial, or its
        file is damaged."""
        if trial not in self.found.trials:
            name = f"trials/{self.directory.trial_file(trial).name}"
            why = next((problem for problem in self.found.problems if problem.startswith(name)), None)
            raise InputError(why or f"there is no trial {trial}", where=str(self.path))
        self._check_indexed([trial])
        try:
            return read_record(self.directory.trial_file(trial), self.directory.root)
        except ValueError as error:
            raise InputError(str(error), where=str(self.directory.trial_file(trial)), remedy=_DELETE_INDEX) from None

    @cached_property
    def _metrics_by_place(self) -> dict[str, dict[str, _Rows]]:
        """Workload -> key -> its rows: parted once, since asking for each metric would look at all rows each time."""
        import polars as pl

        places: dict[str, dict[str, _Rows]] = {}
        columns = [pl.col("setting"), pl.col("round"), pl.col("value")]
        for workload, key, *rows in self.metrics.group_by("workload", "key", maintain_order=True).agg(columns).rows():
            places.setdefault(workload, {})[key] = (rows[0], rows[1], rows[2])
        return places

    def _judged(self, rows: polars.DataFrame) -> polars.DataFrame:
        """The rows, without the values of what failed by the words of another tool, which measured to an unknown point.
        What iolab measured itself is `failed` then, or has its errors counted."""
        import polars as pl

        faulty = self.trials.filter(status="faulty")["trial"].to_list() if self.machine_name == IMPORTED else []
        if not faulty:
            return rows
        is_whole = ~pl.col("trial").is_in(faulty)
        return rows.with_columns(
            pl.when(is_whole).then("value").alias("value"),
            pl.when(is_whole).then("reason").otherwise(pl.lit(FAILED_ELSEWHERE)).alias("reason"),
        )

    def _in_order(self, column: Literal["workload", "setting"], known: list[str]) -> list[str]:
        events = self.found.trials.values()
        seen = dict.fromkeys(event["workload"] if column == "workload" else event["setting"] for event in events)
        return [name for name in known if name in seen] + [name for name in seen if name not in known]

    def _rows(self, what: str, workload: str | None, setting: str | None, columns: tuple[str, ...]) -> polars.DataFrame:
        import polars as pl

        rows = self._rows_of(workload, setting).filter(pl.col("what") == what)
        if what == "metric":
            rows = rows.filter(pl.col("job") != "all")
        with self._decoding():
            return rows.select(*NAMES, *columns).collect()

    def _rows_of(self, workload: str | None, setting: str | None) -> polars.LazyFrame:
        """All rows of the trials that are of this workload and setting, None: of any."""
        import polars as pl

        chosen = [
            trial
            for trial, event in self.found.trials.items()
            if workload in (None, event["workload"]) and setting in (None, event["setting"])
        ]
        self._check_indexed(chosen)
        files = [self.directory.trial_file(trial) for trial in chosen]
        return index.scan(files, self.directory) if files else pl.LazyFrame(schema=table_schema())

    def _check_indexed(self, trials: list[int]) -> None:
        """InputError if a trial's file, which so far was known by its date and the index alone, is damaged."""
        read_whole = {path.name for path in self.found.trial_files}
        for trial in trials:
            path = self.directory.trial_file(trial)
            if path.name in read_whole or trial in self._checked:
                continue
            if problem := problem_of_content(path, self.found.trials[trial], self.directory.root):
                raise InputError(problem, where=str(path), remedy=_DELETE_INDEX)
            self._checked.add(trial)

    @cached_property
    def _checked(self) -> set[int]:
        return set()

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        """InputError of one line for a file that changed since it was examined."""
        try:
            with decoding():
                yield
        except ValueError as error:
            raise InputError(str(error), where=str(self.path), remedy="read the run again: its files changed") from None


def _are_apart(ours: dict[tuple[int, str], list[int]], theirs: dict[tuple[int, str], list[int]]) -> bool:
    """Whether in some file two settings did not take turns, as two loops leave them, of any workload; one against
    several did not. `ours`, `theirs`: by file and workload, the lines of the rounds, or of their tables."""
    both = [(ours[place], theirs[place]) for place in ours.keys() & theirs.keys()]
    return any(len({*x, *y}) > 2 and (min(len(x), len(y)) == 1 or not in_turns(x, y)) for x, y in both)


def _schema(columns: tuple[str, ...]) -> TableSchema:
    return {name: dtype for name, dtype in table_schema().items() if name in columns}


def _read_machine(directory: RunDirectory, sha256: str | None) -> tuple[JsonObject, list[str]]:
    name = directory.machine_file.name
    try:
        content = directory.machine_text()
        if sha256 and hashlib.sha256(content).hexdigest() != sha256:
            raise ValueError("not the bytes that were written")
        machine = strict_json.loads(content)
        if not isinstance(machine, dict):
            raise ValueError("not a table")
        return machine, []
    except InputError as error:
        return {}, [f"{name}: {error.what}"]
    except ValueError as error:
        return {}, [f"{name}: can't be read: {error}; left out"]


def _experiment_problems(directory: RunDirectory, sha256: str | None) -> list[str]:
    name = directory.experiment_file.name
    content = read_bounded(directory.experiment_file, EXPERIMENT_BYTES_MAX, "an experiment", within=directory.root)
    if sha256 and hashlib.sha256(content).hexdigest() != sha256:
        return [f"{name}: was changed since the run was started; names and comparisons may not be those of the run"]
    return []


def _session_problems(state: RunState) -> list[str]:
    problems = []
    if not state.sessions:
        problems.append("journal.jsonl: does not record how the run was started")
    if any(session.get("build_profile") == "debug" for session in state.sessions):
        problems.append("measured with a debug build of iolab: its numbers are not to be reported")
    kernels = list(dict.fromkeys(_kernels(state)))
    if len(kernels) > 1 and not any(session.get("part") for session in state.sessions):
        problems.append(f"measured on several kernels: {', '.join(kernels)}; rounds may not be comparable")
    return problems


def _unfinished(state: RunState, found: Examination, path: Path) -> Iterator[str]:
    """A line if the run's last event is not that it was complete."""
    if state.ended or (started := state.started) is None:
        return
    asked = state.rounds * len(started["workloads"]) * len(started["settings"])
    is_known = not started["until_decided"] and "question" not in started
    of = f" of {counted(asked, 'trial')}" if is_known else " trials"
    missing = [name for name in started["settings"] if all(one["setting"] != name for one in found.trials.values())]
    of += f", none under {', '.join(missing)}" if missing else ""
    yield f"unfinished, or still running: {len(found.trials)}{of}; continue it: iolab run --resume {path}"


def _kernels(state: RunState) -> Iterator[str]:
    return (kernel for session in state.sessions if (kernel := session.get("fingerprint", {}).get("kernel")))


def _status_problems(found: Examination) -> list[str]:
    by_status: dict[str, list[int]] = {}
    for trial, event in found.trials.items():
        by_status.setdefault(event["status"], []).append(trial)
    return [
        f"{len(trials)} of {counted(len(found.trials), 'trial')} {status}: {_some(trials)}"
        for status, trials in by_status.items()
        if status not in ("ok", "impossible")
    ] + [f"{setting} is not run: {reason}" for setting, reason in _impossible(found)]


def _impossible(found: Examination) -> list[tuple[str, str]]:
    """Settings that this device or kernel cannot do, and why."""
    reasons = {
        (event["setting"], "; ".join(event.get("impossible", {}).values())): None
        for _, event in sorted(found.trials.items())
        if event["status"] == "impossible"
    }
    return sorted(reasons)


def _some(trials: list[int]) -> str:
    named = ", ".join(map(str, trials[:TRIALS_NAMED_MAX]))
    return named if len(trials) <= TRIALS_NAMED_MAX else f"{named}, ..."
