"""`iolab bisect`: which of many versions changed a metric."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.errors import InputError, unknown
from iolab.presentation.cli import bisect_commits
from iolab.presentation.cli import bisect_options as options
from iolab.presentation.cli.bisect_answer import show_run
from iolab.presentation.cli.bisect_options import CommandBisectOptions, Effort, ExperimentBisectOptions, limit_s, refuse
from iolab.presentation.cli.consent import TrustRun, consent_of
from iolab.presentation.cli.options import InsteadOfMachine, Json, Out, Patience, ResumeSearch, Seed, seconds

if TYPE_CHECKING:
    from iolab.files.experiment import Experiment


def bisect(
    experiment: options.What = None,
    good: options.Good = None,
    bad: options.Bad = None,
    metric: options.Metrics = None,
    workload: options.Workload = None,
    confidence: options.Confidence = 0.95,
    most: options.Most = 200,
    confirm: options.Confirm = 8,
    time: options.Time = None,
    spread: options.Spread = None,
    fail_on: options.FailOn = None,
    out: Out = None,
    resume: ResumeSearch = None,
    trust_run: TrustRun = False,
    repository: options.Git = None,
    versions: options.Versions = None,
    all_parents: options.AllParents = False,
    measure: options.Measure = None,
    build: options.Build = None,
    value: options.Value = None,
    higher_is_better: options.HigherIsBetter = False,
    same_within: options.SameWithin = None,
    build_limit: options.BuildLimit = None,
    measure_limit: options.MeasureLimit = None,
    machine: InsteadOfMachine = None,
    seed: Seed = None,
    patience: Patience = None,
    json: Json = False,
) -> None:
    """Find the version that changed a metric: which one, how sure, how much, in few trials.

    The next trial measures the version that is expected to show most. The answer is a version, several, a creep over
    many, or none, with its probability. Each named version is then measured again, paired with the version before it.
    """
    if versions is not None and experiment is not None and ".." in str(experiment):
        (good, bad), experiment = bisect_commits.range_of(str(experiment)), None
    if [experiment is None, resume is None, versions is None].count(False) != 1:
        what = "name one of an experiment, a list (--versions FILE), or a search to continue (--resume DIR)"
        raise InputError(what, where="iolab bisect")
    if fail_on is not None and fail_on not in options.CONDITIONS:
        raise InputError(f"{fail_on}: {unknown('condition', fail_on, options.CONDITIONS)}", where="--fail-on")
    effort = Effort(confidence, most, confirm, spread, None if time is None else limit_s("--time", time))
    how = CommandBisectOptions(
        measure, build, value, higher_is_better, same_within, build_limit, measure_limit, all_parents
    )
    which = ExperimentBisectOptions(good, bad, metric, workload, machine)
    if _is_by_commands(experiment, resume, repository, versions, measure):
        of_list = ("--good", "--bad") if versions is not None else ()
        of_experiment = {option: value for option, value in which.given.items() if option not in of_list}
        refuse(of_experiment, "is for experiments, and this search is by commands")
        if resume is not None:
            refuse({"--git": repository, **how.given}, "is known from the beginning of the search")
            bisect_commits.go_on(resume, fail_on, trusted=trust_run, as_json=json)
            return
        effort.check()
        if versions is not None:
            refuse({"--git": repository}, "goes without --versions")
            asked, name = bisect_commits.among_versions(versions, (good, bad), effort, how, seed), versions.stem
        else:
            assert experiment is not None and repository is not None
            place = repository.resolve()
            asked, name = bisect_commits.among_commits(str(experiment), place, effort, how, seed), place.name
        bisect_commits.start(asked, name, out, fail_on, as_json=json)
        return
    refuse(how.given, "goes with --git or --versions, and a range of commits or a list")
    if experiment is not None and experiment.is_dir():
        of_new = {"--git": repository, "--machine": machine, "--out": out, "--time": time}
        refuse(of_new, "goes with an experiment")
        _show_stored(experiment, which, effort, fail_on, as_json=json)
        return

    from iolab.presentation.progress import display
    from iolab.studies.run import resume as go_on
    from iolab.studies.run import run as start
    from iolab.studies.run.bisect import check_search, findings_in
    from iolab.studies.run.machine_executor import MachineExecutor

    progress = display(as_json=json)
    with MachineExecutor(seconds(patience)) as executor:
        if resume is not None:
            check_search(resume)
            consent = consent_of(resume, trusted=trust_run)
            path = go_on(resume, executor=executor, progress=progress, consent=consent).path
        else:
            assert experiment is not None
            effort.check()
            loaded, which = _loaded(experiment, which, repository)
            question = which.question(loaded, effort, most=most, confirm=confirm)
            begun = start(loaded, out, executor=executor, progress=progress, rounds=most, seed=seed, question=question)
            path = begun.path
    show_run(path, findings_in(path), fail_on, as_json=json)


def _is_by_commands(
    experiment: Path | None, resume: Path | None, repository: Path | None, versions: Path | None, measure: str | None
) -> bool:
    """Whether versions are built and measured by commands, not by trials of an experiment."""
    from iolab.studies.run import commits

    if versions is not None or (resume is not None and commits.is_search(resume)):
        return True
    is_range = experiment is not None and ".." in experiment.name and not experiment.exists()
    of_kernels = measure is None and experiment is not None and not is_range
    return repository is not None and not of_kernels


def _show_stored(
    run: Path, which: ExperimentBisectOptions, effort: Effort, fail_on: str | None, *, as_json: bool
) -> None:
    """The answer from the trials of a run, without further ones."""
    from iolab.files.store import read
    from iolab.studies.run.bisect import findings_of_stored

    asked = which.question(read(run).experiment, effort, most=None, confirm=0)
    show_run(run, findings_of_stored(run, asked), fail_on, as_json=as_json, stored=True)


def _loaded(
    path: Path, which: ExperimentBisectOptions, repository: Path | None
) -> tuple[Experiment, ExperimentBisectOptions]:
    """The experiment, and the question about it; with a repository, its settings are the commits from good to bad."""
    from iolab.files.experiment import loads
    from iolab.files.experiment.parse import find, read_text
    from iolab.presentation.cli.run import load
    from iolab.studies.run.commit_settings import with_commits

    if repository is None:
        return load(path, which.machine, None, []), which
    if which.good is None or which.bad is None:
        what = "the commits from which to which?"
        raise InputError(what, where="--good and --bad", remedy="such as --good v6.1 --bad HEAD")
    found = find(path)
    text = with_commits(read_text(found), str(found), repository, which.good, which.bad, which.machine)
    return loads(text, str(found), machine=which.machine), replace(which, good=None, bad=None)
