"""`iolab bisect`: which of many versions changed a metric."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.base.errors import InputError
from iolab.base.plain_text import one_line
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import InsteadOfMachine, Json, Out, Patience, ResumeSearch, Seed, seconds
from iolab.presentation.cli.output import print_json

if TYPE_CHECKING:
    from iolab.adapters.experiment import Experiment
    from iolab.adapters.run.bisect import Finding
    from iolab.adapters.run.commits import GitFinding
    from iolab.base.strict_json import JsonObject
    from iolab.domain.verdict import Judgement

CONFIDENCE_LEAST = 0.5
MOST_MAX, CONFIRM_MAX, SPREAD_MAX = 10_000, 1_000, 1_000
VERSIONS_LEAST = 2


def bisect(
    experiment: Annotated[
        Path | None,
        typer.Argument(
            metavar="[EXPERIMENT.toml|GOOD..BAD]",
            help="An experiment whose settings are the versions, oldest first: kernels of a simulated machine, values "
            "of a tunable, anything that a setting says. With --git, a range of commits; or an experiment for guest "
            "machines, whose kernels are then the commits from --good to --bad.",
            show_default=False,
            autocompletion=complete.experiments,
        ),
    ] = None,
    good: Annotated[
        str | None,
        typer.Option(
            metavar="SETTING", help="The oldest version to look at.  [default: the first]", show_default=False
        ),
    ] = None,
    bad: Annotated[
        str | None,
        typer.Option(metavar="SETTING", help="The newest version to look at.  [default: the last]", show_default=False),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="What changed.  [default: the first that the experiment compares]",
            show_default=False,
            autocompletion=complete.metrics,
        ),
    ] = None,
    workload: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of several workloads, the one to measure.", show_default=False)
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="Stop when one account of the history has this probability.")
    ] = 0.95,
    most: Annotated[int, typer.Option(help="Stop after so many trials of the search.")] = 200,
    confirm: Annotated[
        int, typer.Option(help="Measure each version that is named against the one before it in so many fresh rounds.")
    ] = 8,
    spread: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Name no change before a version of each N-th of the range was measured: a change that is reversed "
            "between two measured versions is not seen.",
        ),
    ] = 0,
    out: Out = None,
    resume: ResumeSearch = None,
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
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="By commands: what is measured, in a shell, in the directory $IOLAB_BUILD of the commit's build.",
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
            help="By commands: a change that is no larger is none.  [default: 0.02]",
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

    Each next trial is of the version that tells most by what is known. The answer is a version, several, a creep over
    many, or none, with its probability. What is named is then measured again, paired with the version before it.
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
    }
    of_experiments = {"--good": good, "--bad": bad, "--metric": metric, "--workload": workload, "--machine": machine}
    from iolab.adapters.run import commits

    of_kernels = repository is not None and measure is None and experiment is not None and not _is_range(experiment)
    if versions is not None or (
        (repository is not None and not of_kernels) or (resume is not None and commits.is_search(resume))
    ):
        _refuse(of_experiments, "is for experiments, and this is a search among commits")
        if resume is not None:
            _refuse({"--git": repository, **of_git}, "is known from the beginning of the search")
            _show_commits(commits.resume(resume, _say(as_json=json)), resume, as_json=json)
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
        )
        from iolab.adapters.store.directory import default_path

        path = out or default_path(f"bisect {name}")
        _show_commits(commits.start(asked_of_git, path, _say(as_json=json)), path, as_json=json)
        return
    _refuse(of_git, "goes with --git or --versions, and a range of commits or a list")

    from iolab.adapters.run import resume as go_on
    from iolab.adapters.run import run as start
    from iolab.adapters.run.bisect import finding_in, question
    from iolab.adapters.run.by_machine import ByMachine
    from iolab.presentation.cli.run import load
    from iolab.presentation.progress import display

    progress = display(as_json=json)
    with ByMachine(seconds(patience)) as executor:
        if resume is not None:
            finding_in(resume)  # which says so where the run is no search
            path = go_on(resume, executor=executor, progress=progress).path
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
                metric=metric,
                good=good,
                bad=bad,
                confidence=confidence,
                most=most,
                confirm=confirm,
                spread=spread,
            )
            path = start(loaded, out, executor=executor, progress=progress, rounds=most, seed=seed, question=asked).path
    _show(path, as_json=json)


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
    from iolab.adapters.experiment import loads
    from iolab.adapters.experiment.commits import with_commits
    from iolab.adapters.experiment.parse import find, read_text

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


def _one_of_values(value: str) -> str:
    from iolab.adapters.run.commits import VALUES
    from iolab.base.errors import unknown

    if value not in VALUES:
        raise InputError(f"{value}: {unknown('value', value, VALUES)}", where="--value")
    return value


def _share(given: float) -> float:
    if not 0 <= given < 1:
        raise InputError(f"{given:g} given; expected a share from 0 to below 1, such as 0.02", where="--same-within")
    return given


def _limit_s(option: str, text: str) -> float:
    from iolab.base.quantity import parse_duration_ns

    try:
        found = parse_duration_ns(text) / 1e9
    except ValueError as error:
        raise InputError(str(error), where=option, remedy="a duration such as 30s or 5min") from error
    if found <= 0:
        raise InputError("expected a duration above 0", where=option, remedy="for instance 30s or 5min")
    return found


def _say(*, as_json: bool) -> Callable[[str], None]:
    """Tells how the search goes, on stderr."""

    def say(line: str) -> None:
        if not as_json:
            print(one_line(line), file=sys.stderr)

    return say


def _show_commits(found: GitFinding, path: Path, *, as_json: bool) -> None:
    from iolab.presentation.table import commits

    if as_json:
        print_json({"run": str(path), **commits.as_dict(found)})
        return
    from iolab.presentation.cli.output import print_lines

    print_lines(commits.lines(found))
    print(f"\nSearch: {path}")


def _check(confidence: float, most: int, confirm: int, spread: int) -> None:
    if not CONFIDENCE_LEAST <= confidence < 1:
        raise InputError(f"{confidence:g} given; expected 0.5 or more, below 1", where="--confidence")
    for option, value, least, largest in (
        ("--most", most, 6, MOST_MAX),
        ("--confirm", confirm, 0, CONFIRM_MAX),
        ("--spread", spread, 0, SPREAD_MAX),
    ):
        if not least <= value <= largest:
            raise InputError(f"{value} given; expected {least} to {largest:,}", where=option)


def _show(path: Path, *, as_json: bool) -> None:
    from iolab.adapters.run.bisect import finding_in
    from iolab.presentation.table.bisection import lines

    found = finding_in(path)
    if as_json:
        print_json({"run": str(path), **_as_dict(found)})
        return
    from iolab.presentation.terminal import show

    show(lines(found))
    for functions in _functions(path, found):
        print(f"\n{functions}")
    print(f"\nRun:    {path}")


def _functions(path: Path, found: Finding) -> Iterator[str]:
    """Of guest machines, the functions that each named version made dearer or cheaper."""
    from iolab.adapters.store import read
    from iolab.presentation.table.symbols import between

    for change in found.confirmations:
        before, after = found.versions[change - 1], found.versions[change]
        if functions := between(read(path), found.question.workload, before, after):
            yield functions.rstrip("\n")


def _as_dict(found: Finding) -> JsonObject:
    """The finding as JSON: the schema stands in docs/bisection.md."""
    answer, versions = found.answer, found.versions
    return {
        "metric": found.question.metric,
        "kind": answer.kind,
        "probability": answer.probability,
        "stopped": answer.stopped,
        "trials": answer.measurements,
        "changes": [
            {
                "first": versions[change.first],
                "last": versions[change.last],
                "probability": change.probability,
                "before": change.before,
                "after": change.after,
                "confirmed": _confirmed(found.confirmations.get(change.last)),
            }
            for change in answer.changes
        ],
        "unmeasurable": found.unmeasurable,
    }


def _confirmed(judgement: Judgement | None) -> JsonObject | None:
    return None if judgement is None else judgement.as_dict()
