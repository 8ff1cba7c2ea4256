"""`iolab bisect`: which of many versions changed a metric."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from iolab.base.errors import InputError, unknown
from iolab.base.plain_text import one_line
from iolab.presentation.cli import complete
from iolab.presentation.cli.bisect_answer import show_commits, show_run
from iolab.presentation.cli.consent import TrustRun, consent_of
from iolab.presentation.cli.options import InsteadOfMachine, Json, Out, Patience, ResumeSearch, Seed, seconds

if TYPE_CHECKING:
    from iolab.files.experiment import Experiment

CONFIDENCE_LEAST = 0.5
MOST_MAX, CONFIRM_MAX, SPREAD_MAX = 10_000, 1_000, 1_000
VERSIONS_LEAST = 2
CONDITIONS = ("regressed", "changed")


def bisect(
    experiment: Annotated[
        Path | None,
        typer.Argument(
            metavar="[EXPERIMENT.toml|RUN|GOOD..BAD]",
            help="An experiment whose settings are the versions, oldest first: kernels of a simulated machine, values "
            "of a tunable, anything that a setting can change. A run's directory: the answer of its trials, without "
            "further ones. "
            "With --git, a range of commits; or an experiment for guest machines, whose kernels are then the commits "
            "from --good to --bad.",
            show_default=False,
            autocompletion=complete.experiments,
        ),
    ] = None,
    good: Annotated[
        str | None,
        typer.Option(
            metavar="SETTING",
            help="The oldest version to look at.  [default: the first]",
            show_default=False,
            autocompletion=complete.settings,
        ),
    ] = None,
    bad: Annotated[
        str | None,
        typer.Option(
            metavar="SETTING",
            help="The newest version to look at.  [default: the last]",
            show_default=False,
            autocompletion=complete.settings,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC",
            help="What changed. May be given several times: each has an answer, from the same trials.  [default: the "
            "first that the experiment compares]",
            show_default=False,
            autocompletion=complete.metrics,
        ),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The workload to measure, of several.", show_default=False),
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="Stop when one account of the history has this probability.")
    ] = 0.95,
    most: Annotated[int, typer.Option(help="Stop after this many trials of the search.")] = 200,
    confirm: Annotated[
        int, typer.Option(help="Measure each named version against the version before it in this many fresh rounds.")
    ] = 8,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Stop after this time, such as 8h; --resume goes on for the same time.",
            show_default=False,
        ),
    ] = None,
    spread: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Name no change before a version of each N-th of the range was measured: a change that is reversed "
            "between two measured versions is not seen. 0: in the fewest trials.  [default: an eighth of the "
            "versions, 8 to 24]",
            show_default=False,
        ),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="Exit with status 1 if a change for the worse was found (regressed), or any change (changed).",
            show_default=False,
        ),
    ] = None,
    out: Out = None,
    resume: ResumeSearch = None,
    trust_run: TrustRun = False,
    repository: Annotated[
        Path | None,
        typer.Option(
            "--git",
            metavar="REPO",
            help="Search among commits of this repository, which is only read.",
            show_default=False,
        ),
    ] = None,
    versions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Search among the versions that this file lists, a line each, oldest first. Commands get the version "
            "as $IOLAB_VERSION.",
            show_default=False,
        ),
    ] = None,
    all_parents: Annotated[
        bool,
        typer.Option(
            "--all-parents", help="By commands: if the answer is a merge, go on among the commits that it merged."
        ),
    ] = False,
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="By commands: the command to measure, in a shell, in the directory $IOLAB_BUILD of the commit's "
            "build.",
            show_default=False,
        ),
    ] = None,
    build: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="By commands: builds a commit in its checked-out files, and leaves in $IOLAB_BUILD what is measured. "
            "Exit status 125: can't be built, skip it.  [default: the commit's files are copied there]",
            show_default=False,
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(
            metavar="wall|cpu|printed",
            help="By commands: the command's wall time, its CPU time, or the number that ends its last line.  "
            "[default: wall]",
            show_default=False,
        ),
    ] = None,
    higher_is_better: Annotated[
        bool, typer.Option("--higher-is-better", help="With --value printed: higher is better.")
    ] = False,
    same_within: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="By commands: changes up to this size do not count.  [default: 0.02]",
            show_default=False,
        ),
    ] = None,
    build_limit: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="By commands: a build is killed after this time.  [default: 1h]",
            show_default=False,
        ),
    ] = None,
    measure_limit: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="By commands: a measured command is killed after this time.  [default: 10min]",
            show_default=False,
        ),
    ] = None,
    machine: InsteadOfMachine = None,
    seed: Seed = None,
    patience: Patience = None,
    json: Json = False,
) -> None:
    """Find the version that changed a metric: which one, how sure, how much, in few trials.

    The next trial measures the version that is expected to show most. The answer is a version, several, a creep over
    many, or none, with its probability. Each named version is then measured again, paired with the version before it.
    """
    if [experiment is None, resume is None, versions is None].count(False) != 1:
        what = "name one of an experiment, a list (--versions FILE), or a search to go on with (--resume DIR)"
        raise InputError(what, where="iolab bisect")
    of_git = {
        "--measure": measure,
        "--build": build,
        "--value": value,
        "--same-within": same_within,
        "--build-limit": build_limit,
        "--measure-limit": measure_limit,
        "--all-parents": all_parents or None,
    }
    if fail_on is not None and fail_on not in CONDITIONS:
        raise InputError(f"{fail_on}: {unknown('condition', fail_on, CONDITIONS)}", where="--fail-on")
    time_s = None if time is None else _limit_s("--time", time)
    of_experiments = {"--good": good, "--bad": bad, "--metric": metric, "--workload": workload, "--machine": machine}
    from iolab.studies.run import commits

    of_kernels = repository is not None and measure is None and experiment is not None and not _is_range(experiment)
    if versions is not None or (
        (repository is not None and not of_kernels) or (resume is not None and commits.is_search(resume))
    ):
        _refuse(of_experiments, "is for experiments, and this is a search among commits")
        if resume is not None:
            _refuse({"--git": repository, **of_git}, "is known from the beginning of the search")
            found = commits.resume(resume, _say(as_json=json), consent_of(resume, trusted=trust_run))
            show_commits(found, resume, fail_on, as_json=json)
            return
        _check(confidence, most, confirm, spread)
        if versions is not None:
            _refuse({"--git": repository}, "goes without --versions")
            listed = _listed(versions)
            asked_repository, good_bad, name = "", (listed[0], listed[-1]), versions.stem
        else:
            assert experiment is not None and repository is not None
            listed = ()
            asked_repository, good_bad = str(repository.resolve()), _range(str(experiment))
            name = repository.resolve().name
        asked_of_git = commits.GitQuestion(
            asked_repository,
            *good_bad,
            build,
            _required(measure),
            _one_of_values(value or "wall"),
            higher_is_better,
            _share(0.02 if same_within is None else same_within),
            confidence,
            most,
            confirm,
            _limit_s("--build-limit", build_limit or "1h"),
            _limit_s("--measure-limit", measure_limit or "10min"),
            1 if seed is None else seed,
            spread,
            listed,
            time_s,
            all_parents,
        )
        from iolab.files.store.directory import default_path

        path = out or default_path(f"bisect {name}")
        show_commits(commits.start(asked_of_git, path, _say(as_json=json)), path, fail_on, as_json=json)
        return
    _refuse(of_git, "goes with --git or --versions, and a range of commits or a list")

    from iolab.presentation.cli.run import load
    from iolab.presentation.progress import display
    from iolab.studies.run import resume as go_on
    from iolab.studies.run import run as start
    from iolab.studies.run.bisect import check_search, findings_in, findings_of_stored, question
    from iolab.studies.run.by_machine import ByMachine

    if experiment is not None and experiment.is_dir():
        _refuse({"--git": repository, "--machine": machine, "--out": out, "--time": time}, "goes with an experiment")
        from iolab.files.store import read

        asked = question(
            read(experiment).experiment,
            workload=workload,
            metrics=metric or (),
            good=good,
            bad=bad,
            confidence=confidence,
            most=None,
            confirm=0,
            spread=spread,
        )
        show_run(experiment, findings_of_stored(experiment, asked), fail_on, as_json=json, stored=True)
        return
    progress = display(as_json=json)
    with ByMachine(seconds(patience)) as executor:
        if resume is not None:
            check_search(resume)
            consent = consent_of(resume, trusted=trust_run)
            path = go_on(resume, executor=executor, progress=progress, consent=consent).path
        else:
            assert experiment is not None
            _check(confidence, most, confirm, spread)
            if repository is None:
                loaded = load(experiment, machine, None, [])
            else:
                loaded = _of_commits(experiment, machine, repository, good, bad)
                good = bad = None
            asked = question(
                loaded,
                workload=workload,
                metrics=metric or (),
                good=good,
                bad=bad,
                confidence=confidence,
                most=most,
                confirm=confirm,
                spread=spread,
                time_s=time_s,
            )
            path = start(loaded, out, executor=executor, progress=progress, rounds=most, seed=seed, question=asked).path
    show_run(path, findings_in(path), fail_on, as_json=json)


def _refuse(given: Mapping[str, object], why: str) -> None:
    for option, value in given.items():
        if value is not None:
            raise InputError(why, where=option, remedy="leave it out")


def _is_range(experiment: Path) -> bool:
    return ".." in experiment.name and not experiment.exists()


def _of_commits(
    experiment: Path, machine: str | None, repository: Path, good: str | None, bad: str | None
) -> Experiment:
    """The experiment with the commits as its settings."""
    from iolab.files.experiment import loads
    from iolab.files.experiment.commits import with_commits
    from iolab.files.experiment.parse import find, read_text

    if good is None or bad is None:
        what = "the commits from which to which?"
        raise InputError(what, where="--good and --bad", remedy="such as --good v6.1 --bad HEAD")
    path = find(experiment)
    text = with_commits(read_text(path), str(path), repository, good, bad, machine)
    return loads(text, str(path), machine=machine)


def _listed(path: Path) -> tuple[str, ...]:
    from iolab.base.bounded_file import EXPERIMENT_BYTES_MAX, read_bounded

    text = read_bounded(path, EXPERIMENT_BYTES_MAX, "a list of versions", pipes=True).decode(errors="replace")
    found = tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))
    if len(found) < VERSIONS_LEAST or len(set(found)) < len(found):
        what = f"{len(found)} versions, {len(set(found))} of them different; expected two or more, a line each"
        raise InputError(what, where=str(path))
    return found


def _range(text: str) -> tuple[str, str]:
    good, dots, bad = text.partition("..")
    if not (good and dots and bad) or bad.startswith("."):
        raise InputError(f"{text}: expected a range of commits", where="iolab bisect", remedy="such as v1.0..main")
    return good, bad


def _required(measure: str | None) -> str:
    if measure is None:
        raise InputError("no command to measure", where="--measure", remedy='such as --measure "./program --size 10"')
    return measure


def _one_of_values(value: str) -> Literal["wall", "cpu", "printed"]:
    from iolab.studies.run.commits import VALUES

    for known in VALUES:
        if value == known:
            return known
    raise InputError(f"{value}: {unknown('value', value, VALUES)}", where="--value")


def _share(given: float) -> float:
    if not 0 <= given < 1:
        raise InputError(f"{given:g} given; expected a share from 0 to below 1, such as 0.02", where="--same-within")
    return given


def _limit_s(option: str, text: str) -> float:
    from iolab.base.quantity import parse_duration_ns
    from iolab.studies.run.search_file import LIMIT_S_MAX

    try:
        found = parse_duration_ns(text) / 1e9
    except ValueError as error:
        raise InputError(str(error), where=option, remedy="a duration such as 30s or 5min") from error
    if not 0 < found <= LIMIT_S_MAX:
        what = f"expected a duration above 0, up to {LIMIT_S_MAX:,} s"
        raise InputError(what, where=option, remedy="for instance 30s or 5min")
    return found


def _say(*, as_json: bool) -> Callable[[str], None]:
    """Reports how the search goes, on stderr."""

    def say(line: str) -> None:
        if not as_json:
            print(one_line(line), file=sys.stderr)

    return say


def _check(confidence: float, most: int, confirm: int, spread: int | None) -> None:
    if not CONFIDENCE_LEAST <= confidence < 1:
        raise InputError(f"{confidence:g} given; expected 0.5 or more, below 1", where="--confidence")
    for option, value, least, largest in (
        ("--most", most, 6, MOST_MAX),
        ("--confirm", confirm, 0, CONFIRM_MAX),
        ("--spread", spread or 0, 0, SPREAD_MAX),
    ):
        if not least <= value <= largest:
            raise InputError(f"{value} given; expected {least} to {largest:,}", where=option)
