"""A run: its verdicts and numbers, and where each comes from."""

from __future__ import annotations

from iolab.base import beneath
from iolab.base.errors import InputError
from iolab.domain.collection.benchmark import Benchmark
from iolab.domain.collection.entry import Entry
from iolab.domain.collection.extract import Extract, Judged
from iolab.domain.comparison import Comparison
from iolab.domain.verdict.judgement import Judgement
from iolab.files.collection.collection import Collection
from iolab.files.store import RunDirectory
from iolab.files.store.trial_file import read_record
from iolab.presentation.site.page_types import RunPage
from iolab.presentation.site.parts import metrics_of, run_point, run_row
from iolab.presentation.table.conclusions import conclusions

MEASURED_MAX = 4000
JUDGED_MAX = 2000
FACTS_MAX = 500


def page(runs: Collection, entry: Entry) -> RunPage:
    """InputError if nothing of the run can be read."""
    pairs = runs.extracts([entry])
    if not pairs:
        raise InputError(entry.problems[0] if entry.problems else "cannot be read", where=entry.name)
    extract = pairs[0][1]
    same = [
        one
        for one in runs.entries
        if one.benchmark and (one.benchmark, one.hardware) == (entry.benchmark, entry.hardware)
    ]
    place = next(number for number, one in enumerate(same) if one.id == entry.id)
    history = Benchmark(entry.benchmark, entry.hardware, entry.title, same[::-1])
    keys = [*extract.compared, *(one.metric for one in extract.measured)]
    return RunPage(
        run=run_row(entry),
        hardware_in_words=entry.hardware_in_words,
        baseline=extract.baseline,
        same_within=extract.same_within,
        rounds=entry.rounds,
        workloads=list(entry.workloads),
        compared=extract.compared,
        metrics=metrics_of(keys),
        sentences=sentences(extract),
        judged=extract.judged[:JUDGED_MAX],
        measured=extract.measured[:MEASURED_MAX],
        measured_left_out=max(0, len(extract.measured) - MEASURED_MAX) + extract.left_out,
        trials=extract.trials,
        sweeps=extract.sweeps,
        facts=dict(list(extract.facts.items())[:FACTS_MAX]),
        problems=[*entry.problems],
        doubts=extract.doubts,
        changes=[one for one in runs.known_changes(history) or () if one.since == entry.id],
        previous=run_point(same[place + 1]) if place + 1 < len(same) else None,
        next=run_point(same[place - 1]) if place > 0 else None,
    )


def sentences(extract: Extract) -> list[str]:
    """What the comparisons come to, as `iolab show` begins."""
    comparisons = [_comparison(one, extract.same_within) for one in extract.judged]
    return [one.text for one in conclusions(comparisons)]


def _comparison(one: Judged, same_within: float) -> Comparison:
    """The comparison again, as far as it is kept."""
    judgement = Judgement(
        one.baseline,
        one.candidate,
        one.n,
        one.ratio,
        one.ci_low,
        one.ci_high,
        one.p_value,
        one.q_value,
        one.verdict,
        one.rounds_to_decide,
        same_within,
        one.alpha,
        final=one.final,
        why=one.why,
    )
    workload, setting, against = one.workload or None, one.setting, one.against
    return Comparison(one.metric, workload, setting, against, judgement, one.nature, 0, job=one.job, leads=one.leads)


def experiment(runs: Collection, entry: Entry) -> bytes:
    """The exact text. InputError if it can't be read."""
    return _directory(runs, entry).experiment_text().encode()


def machine(runs: Collection, entry: Entry) -> bytes:
    """The description of the machine, as it was when the run began. InputError if it can't be read."""
    return _directory(runs, entry).machine_text()


def record(runs: Collection, entry: Entry, trial: int) -> bytes:
    """What one trial yielded, without histograms and time series. InputError if there is none that can be read."""
    directory = _directory(runs, entry)
    path = directory.trial_file(trial)
    if not beneath.is_file(path, directory.root):
        raise InputError(f"there is no trial {trial}", where=entry.name)
    try:
        return read_record(path, directory.root).model_dump_json(indent=1).encode()
    except ValueError as error:
        raise InputError(str(error), where=path.name) from None


def _directory(runs: Collection, entry: Entry) -> RunDirectory:
    """No link below the collection's directory is followed: pages go to others than who may read what it leads to."""
    return RunDirectory.open(runs.path(entry), runs.directory)
