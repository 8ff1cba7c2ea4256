"""Imported results as a run: in memory for showing and comparing, or written as a run directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from iolab.base.errors import InputError
from iolab.base.strict_json import JsonObject
from iolab.base.toml import written
from iolab.base.version import VERSION
from iolab.domain.baseline import baseline_of, earlier_of
from iolab.domain.experiment import IMPORTED
from iolab.domain.lead import OF_DEVICE, SYNC_RATE, SYNC_TIMES
from iolab.domain.metric import OPS, describe, is_unknown
from iolab.domain.record import Record
from iolab.domain.trial import FileTarget, Trial
from iolab.files.importer.results import ImportedTrial, Results
from iolab.files.store import imported_experiment, index, trial_file
from iolab.files.store.directory import RunDirectory, create
from iolab.files.store.event import RunStarted, TrialFinished
from iolab.files.store.examine import Examination
from iolab.files.store.journal import FORMAT, Journal
from iolab.files.store.read import RunData
from iolab.files.store.state import RunState, describe_finished
from iolab.files.store.trial_file import TrialFileDigest, table_schema

if TYPE_CHECKING:
    import polars

    from iolab.files.experiment import Experiment


ROWS = "csv"
"""The format whose rows may stand in any order."""
NOT_MEASURED = "imported; not measured by iolab"


@dataclass
class ImportedRun(RunData):
    """A run that lies in memory only. `path` is the file that it was read from."""

    text: str
    imported: dict[int, ImportedTrial]
    table: polars.DataFrame
    """All rows of all trials, columns as in a trial's file."""

    @cached_property
    @override
    def experiment_text(self) -> str:
        return self.text

    @cached_property
    @override
    def experiment(self) -> Experiment:
        return imported_experiment.parse(self.text, str(self.path))

    @cached_property
    @override
    def metrics(self) -> polars.DataFrame:
        import polars as pl

        chosen = self.table.filter(pl.col("what") == "metric", pl.col("job") == "all")
        return self._judged(chosen.select(index.COLUMNS).sort("trial", maintain_order=True))

    def record(self, trial: int) -> Record:
        """The trial's names; there is nothing else on record."""
        if trial not in self.imported:
            raise InputError(f"there is no trial {trial}", where=str(self.path))
        return _record(self.imported[trial], self.path)

    def _rows_of(self, workload: str | None, setting: str | None) -> polars.LazyFrame:
        import polars as pl

        rows = self.table.lazy()
        for column, wanted in (("workload", workload), ("setting", setting)):
            if wanted is not None:
                rows = rows.filter(pl.col(column) == wanted)
        return rows


def in_memory(path: Path, results: Results, sources: Sequence[tuple[str, str]]) -> ImportedRun:
    """The results as a run that behaves as one read from a directory."""
    text = experiment_text(results, path.name, sources)
    started = _started(results)
    finished = {trial.trial: _finished(trial, path, TrialFileDigest(0, "")) for trial in results.trials}
    return ImportedRun(
        directory=RunDirectory(path),
        state=RunState(sessions=[started], rounds=started["rounds"], finished=finished, ended=True),
        machine=_machine(results, sources),
        found=Examination(trials=finished),
        problems=list(results.problems),
        text=text,
        imported={trial.trial: trial for trial in results.trials},
        table=_frame(results.trials),
    )


def write(path: Path, results: Results, sources: Sequence[tuple[str, str]]) -> RunDirectory:
    """Makes a run directory of the results. InputError if `path` is taken or can't be made."""
    directory = create(
        path,
        experiment_text=experiment_text(results, path.name, sources),
        machine=_machine(results, sources),
        first_event=_started(results),
    )
    origin = Path(sources[0][0])
    with Journal(directory.journal_file) as journal:
        for trial in results.trials:
            stored = trial_file.write(directory.trial_file(trial.trial), _record(trial, origin), trial.rows)
            journal.append(**_finished(trial, origin, stored))
        for text in results.problems:
            journal.append("import_problem", text=text)
        journal.append("run_finished")
    return directory


def _started(results: Results) -> RunStarted:
    return {
        "event": "run_started",
        "format": FORMAT,
        "seed": 0,
        "rounds": max((trial.round + 1 for trial in results.trials), default=0),
        "until_decided": False,
        "machine": IMPORTED,
        "workloads": list(dict.fromkeys(trial.workload for trial in results.trials)),
        "settings": list(dict.fromkeys(trial.setting for trial in results.trials)),
        "iolab_version": VERSION,
        "fingerprint": {"kernel": IMPORTED},
    }


def _machine(results: Results, sources: Sequence[tuple[str, str]]) -> JsonObject:
    return {IMPORTED: [f"{path} ({format_name})" for path, format_name in sources], **results.machine}


def _finished(trial: ImportedTrial, origin: Path, stored: TrialFileDigest) -> TrialFinished:
    event = describe_finished(_record(trial, origin), stored, attempt=1, duration_ns=None)
    return {**event, "source": trial.source, "line": trial.line}


def _record(trial: ImportedTrial, origin: Path) -> Record:
    """As much of a record as there is: the names, and that iolab did not measure it."""
    spec = Trial(
        trial=trial.trial,
        round=trial.round,
        position=0,
        workload=trial.workload,
        setting=trial.setting,
        seed=0,
        machine=IMPORTED,
        target=FileTarget(path=str(origin)),
        controls={},
        phases=[],
    )
    return Record(
        spec=spec,
        status="faulty" if trial.faulty else "ok",
        started_unix_ns=trial.started_unix_ns,
        ended_unix_ns=trial.started_unix_ns,
        controls_applied={},
        controls_absent={},
        phases=[],
        observed={},
        faults=[],
        notes=[NOT_MEASURED],
    )


def _frame(trials: Sequence[ImportedTrial]) -> polars.DataFrame:
    import polars as pl

    schema = table_schema()
    rows = [(trial.trial, trial.round, trial.workload, trial.setting, *row) for trial in trials for row in trial.rows]
    return pl.DataFrame(rows, schema=schema, orient="row")


LOADS = ("queue_depth_mean", "device_busy_percent", "tasks_blocked_mean", "cpu_iowait_percent", "cpu_idle_percent")
"""Shown unasked, though neither more nor less of them is better: whoever reads iostat's report looks for them."""


def experiment_text(results: Results, title: str, sources: Sequence[tuple[str, str]]) -> str:
    """experiment.toml of the results; `sources` are files with their formats."""
    lines = ["# Made by `iolab import`. The numbers come from these files; iolab did not measure them.", ""]
    lines += [f"title = {written(title)}", f"machine = {written(IMPORTED)}", ""]
    for path, format_name in sources:
        lines += ["[[sources]]", f"path = {written(path)}", f"format = {written(format_name)}", ""]
    for workload in _names(results, "workload"):
        lines += _table("workloads", workload, results.workloads.get(workload, {}))
    for setting in _names(results, "setting"):
        lines += _table("settings", setting, results.settings.get(setting, {}))
    by_workload: dict[str, set[str]] = {}
    for trial in results.trials:
        by_workload.setdefault(trial.workload, set()).add(trial.setting)
    # A setting that has no workload of another's has nothing to be compared in.
    shared = set[str]().union(*(settings for settings in by_workload.values() if len(settings) > 1))
    names = [trial.setting for trial in results.trials if trial.setting in shared or not shared]
    # Rows of measurements may be in any order; whoever writes a table for people puts first what comes first.
    are_rows = all(format_name == ROWS for _, format_name in sources)
    baseline = baseline_of(names) if are_rows else earlier_of(names) or next(iter(names), "")
    lines += ["[compare]", f"baseline = {written(baseline)}"]
    lines += ["metrics = [", *(f"    {written(key)}," for key in compared_keys(results)), "]", ""]
    return "\n".join(lines)


def compared_keys(results: Results) -> list[str]:
    """The keys that are compared unasked: those with a better direction, and those of which nobody knows one, in the
    order of the source, the times of a load's syncs first, then how busy the device and the CPUs were. If all
    operations were reads, `read.iops` is `iops` again, and is left out. What jobs have and all of them together have
    not, such as quantiles, is kept: it is stated why."""
    values: dict[str, dict[int, float]] = {}
    of_all = set()
    for trial in results.trials:
        for row in trial.rows:
            if row.what == "metric" and row.key and row.job == "all":
                of_all.add(row.key)
            if row.what == "metric" and row.key and row.value is not None:
                of_key = values.setdefault(row.key, {})
                if row.job == "all":
                    of_key[trial.trial] = row.value
    values = {key: by_trial for key, by_trial in values.items() if key in of_all}
    keys = [key for key, by_trial in values.items() if values.get(_of_all_operations(key)) != by_trial]
    with_direction = [key for key in keys if describe(key).better is not None or is_unknown(key)]
    if not any(key.endswith(OF_DEVICE) for key in keys):
        with_direction.sort(key=lambda key: key.rpartition("/")[2] not in (SYNC_RATE, *SYNC_TIMES))
    loads = [key for key in keys if key.rpartition("/")[2] in LOADS or key.rpartition(".")[2] in results.shown]
    return [*with_direction, *loads] if with_direction else keys


def _of_all_operations(key: str) -> str:
    """`phase/iops` for `phase/read.iops`; empty for what is of all already."""
    phase, slash, rest = key.rpartition("/")
    op, dot, metric = rest.rpartition(".")
    return f"{phase}{slash}{metric}" if dot and op in OPS else ""


def _names(results: Results, what: str) -> list[str]:
    return list(dict.fromkeys(getattr(trial, what) for trial in results.trials))


def _table(section: str, name: str, values: JsonObject) -> Iterator[str]:
    yield f"[{section}.{written(name)}]"
    for key, value in values.items():
        yield f"{written(key)} = {written(value)}"
    yield ""
