"""`iolab compare`: is the difference real?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.base.errors import InputError, unknown
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import (
    CsvColumns,
    FailOn,
    From,
    HigherIsBetter,
    Json,
    LowerIsBetter,
    Metrics,
    RoundColumn,
    SettingColumn,
    WorkloadColumn,
)
from iolab.presentation.cli.outcome import check_conditions, exit_if_met
from iolab.presentation.cli.output import print_json, print_lines

if TYPE_CHECKING:
    from iolab.adapters.importer.groups import Group
    from iolab.adapters.store import RunData
    from iolab.domain.across import Arm, Jobs
    from iolab.domain.comparable import Conditions
    from iolab.domain.compare import Comparison

JOBS_UNASKED_MAX = 8
"""Of more, only the total is compared unless asked for."""


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN|FILE|DIR...",
            autocompletion=complete.runs_and_files,
            help="A run directory, a file of another tool, including any CSV, or a directory of such. Of several, the "
            "first is the baseline. Names such as old-1, old-2, new-1, new-2 are rounds of the settings old and new.",
            show_default=False,
        ),
    ],
    group_by: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX",
            help="What in DIRECTORY/NAME is the setting: the group named `setting`, (?P<setting>...), else the first "
            "group. Files or runs of the same setting are its rounds.",
            show_default=False,
        ),
    ] = None,
    setting_column: SettingColumn = None,
    round_column: RoundColumn = None,
    workload_column: WorkloadColumn = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The setting to compare the others with; of several runs or files, the run or file.  "
            "[default: the first; of a run its experiment's]",
            show_default=False,
        ),
    ] = None,
    metric: Metrics = None,
    by_job: Annotated[
        bool, typer.Option("--by-job", help="Compare each job of a workload too, not only all together.")
    ] = False,
    job: Annotated[
        str | None, typer.Option(metavar="NAME", help="Compare only this job of each workload.", show_default=False)
    ] = None,
    lower_is_better: LowerIsBetter = None,
    higher_is_better: HigherIsBetter = None,
    same_within: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Margin of the verdict `same`, such as 2%.  [default: the experiment's, else 2%]",
            show_default=False,
        ),
    ] = None,
    from_: From = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html",
            help="Write the comparison as one HTML page too; replaced if it exists.",
            show_default=False,
        ),
    ] = None,
    fail_on: FailOn = None,
    json: Json = False,
) -> None:
    """Judge for each metric whether a setting is faster or slower, the same within a margin, or undecided.

    Within a run, settings are compared within rounds. Each comparison shows both typical values, the change with its
    95 % interval, p, q (p adjusted for the number of comparisons), the verdict, and how many more rounds would decide.
    Of several runs or files, the first lines say what differs between them: machine, kernel, options. Their rounds are
    not interleaved, so they are not paired, and drift is in the difference.
    Rates and times are faster or slower, other metrics better or worse; those of which neither way is better are higher
    or lower.
    """
    conditions = check_conditions(fail_on)
    margin = _share(same_within)
    columns = CsvColumns(setting_column, round_column, workload_column, lower_is_better, higher_is_better)
    if runs[0].is_file() and columns:
        if len(runs) > 1:
            raise InputError("a second run goes with a run, not with a file", where=str(runs[1]))
        _refuse_for_csv({"--group-by": group_by, "--job": job, "--by-job": by_job or None, "--output": output})
        from iolab.domain.compare import compare_csv

        found = compare_csv(
            runs[0],
            *columns.required(runs[0], baseline),
            metric,
            same_within=0.02 if margin is None else margin,
            workload_column=workload_column,
            better=columns.better,
        )
        _finish(Compared(found), conditions, None, json=json)
        return
    columns.refuse_for(runs[0])
    if by_job and job is not None:
        raise InputError("--by-job is given too; keep one of the two", where="--job")

    from iolab.adapters.importer.groups import groups_of
    from iolab.domain.across import Arm, Jobs

    groups = groups_of(runs, group_by)
    arms = [Arm(group.name, _opened(group, from_)) for group in groups.groups]
    jobs = Jobs(each=by_job or (job is None and _has_few_jobs(arms)), only=job)
    compared = _compare_one(arms[0], metric or (), baseline, margin, jobs) if _is_one_run(arms) else None
    compared = compared or _compare_several(_baseline_first(arms, baseline), metric or (), margin, jobs)
    compared = replace(compared, read_as=groups.read_as, problems=[*groups.problems, *compared.problems])
    _finish(compared, conditions, output, json=json)


@dataclass(frozen=True)
class Compared:
    """What is told of a comparison."""

    comparisons: Sequence[Comparison]
    conditions: Conditions | None = None
    """Under which the arms were measured, where they may differ in more than the setting."""
    read_as: str | None = None
    title: str = "Comparison"
    trials_not_ok: int = 0
    problems: Sequence[str] = ()


def _opened(group: Group, from_: str | None) -> list[RunData]:
    """The runs of a group: files make one together."""
    from iolab.adapters.importer import open_files, open_run

    files = [path for path in group.paths if path.is_file()]
    if not files:
        return [open_run(path) for path in group.paths]
    if len(files) < len(group.paths):
        raise InputError(f"{group.name} has runs and files", where=str(files[0]), remedy="compare the one or the other")
    return [open_files(files, from_, group.name if group.named else None)]


def _is_one_run(arms: Sequence[Arm]) -> bool:
    return len(arms) == 1 and len(arms[0].runs) == 1


def _has_few_jobs(arms: Sequence[Arm]) -> bool:
    """Of another tool's files: whether their workloads have a few jobs of different names, each of interest by itself.
    Of a run of iolab's, the experiment says what is compared."""
    from iolab.domain.experiment import IMPORTED

    runs = [run for arm in arms for run in arm.runs]
    if any(run.started.get("machine") != IMPORTED for run in runs):
        return False
    names = {name for run in runs for name in run.job_metrics()["job"].unique().to_list()}
    return 1 < len(names) <= JOBS_UNASKED_MAX


def _baseline_first(arms: list[Arm], baseline: str | None) -> list[Arm]:
    """InputError if there is no arm of that name, if two have the same, or if there is only one."""
    names = [arm.name for arm in arms]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise InputError("is given twice", where=repeated[0])
    if len(arms) == 1:
        raise InputError(
            "nothing to compare with: all are rounds of one setting",
            where=names[0],
            remedy="name another run, or say with --group-by what the settings are",
        )
    if baseline is None:
        return arms
    wanted = baseline.rstrip("/")
    found = next((arm for arm in arms if wanted in (arm.name, *(str(run.path) for run in arm.runs))), None)
    if found is None:
        raise InputError(f"{baseline}: {unknown('run or setting', baseline, names)}", where="--baseline")
    return [found, *(arm for arm in arms if arm is not found)]


def _compare_one(
    arm: Arm, metrics: Sequence[str], baseline: str | None, same_within: float | None, jobs: Jobs
) -> Compared:
    """The settings of one run with each other."""
    from iolab.domain.comparable import conditions_within
    from iolab.domain.summary import compare_jobs, summarise
    from iolab.domain.validity import lines

    (run,) = arm.runs
    summary = summarise(run, metrics=metrics, baseline=baseline, same_within=same_within)
    found = summary.comparisons
    if jobs.each or jobs.only is not None:
        found = compare_jobs(run, metrics, baseline, same_within, jobs.only)
    return Compared(
        found,
        conditions_within(run),
        title=summary.title,
        trials_not_ok=summary.trials_not_ok,
        problems=[*run.problems, *lines(run)],
    )


def _compare_several(arms: list[Arm], metrics: Sequence[str], same_within: float | None, jobs: Jobs) -> Compared:
    """The other arms with the first."""
    from iolab.domain.across import compare_arms
    from iolab.domain.comparable import conditions_of
    from iolab.domain.validity import lines

    runs = [run for arm in arms for run in arm.runs]
    return Compared(
        compare_arms(arms, metrics=metrics, same_within=same_within, jobs=jobs),
        conditions_of(arms),
        title=f"{', '.join(arm.name for arm in arms[1:])} against {arms[0].name}",
        trials_not_ok=sum(int((~run.trials["status"].is_in(["ok", "impossible"])).sum()) for run in runs),
        problems=[
            f"{arm.name}: {problem}" for arm in arms for run in arm.runs for problem in (*run.problems, *lines(run))
        ],
    )


def _finish(compared: Compared, fail_on: list[str], output: Path | None, *, json: bool) -> None:
    from iolab.presentation.table.verdicts import condition_lines, verdicts

    lines = [compared.read_as] if compared.read_as else []
    lines += [] if compared.conditions is None else condition_lines(compared.conditions)
    if output is not None:
        from iolab.presentation.report.comparison import write

        write(output, compared.title, lines, compared.comparisons, compared.problems)
    if json:
        conditions = None if compared.conditions is None else compared.conditions.as_dict()
        print_json(
            {
                **({} if conditions is None else conditions),
                **({"names": compared.read_as} if compared.read_as else {}),
                "comparisons": [comparison.as_dict() for comparison in compared.comparisons],
                "problems": list(compared.problems),
            }
        )
    else:
        from iolab.presentation.terminal import show

        print_lines(lines)
        show(verdicts(compared.comparisons, compared.problems))
        if output is not None:
            print(f"Report: {output}")
    exit_if_met(fail_on, compared.comparisons, trials_not_ok=compared.trials_not_ok)


def _refuse_for_csv(given: dict[str, object]) -> None:
    for option, value in given.items():
        if value is not None:
            raise InputError("does not go with columns named by hand", where=option, remedy="leave one of them out")


def _share(text: str | None) -> float | None:
    """`2%` or `0.02` -> 0.02."""
    if text is None:
        return None
    from pydantic import ValidationError

    from iolab.adapters.experiment.options import CompareOptions

    try:
        given = text if text.endswith("%") else float(text)
        return CompareOptions.model_validate({"same_within": given}).same_within
    except (ValidationError, ValueError):
        raise InputError(
            f"{text!r} given; expected a share such as 2% or 0.02, above 0 and below 1", where="--same-within"
        ) from None
