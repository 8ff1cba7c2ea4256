"""Runs, files and groups of them side by side: what `iolab compare` and `iolab.compare` show."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from iolab.base.errors import InputError, unknown
from iolab.base.plain_text import listed
from iolab.base.strict_json import JsonObject
from iolab.domain.arms import Arm, arm_names, compare_arms, levels_of, not_shared
from iolab.domain.baseline import how_chosen
from iolab.domain.comparison import Comparison
from iolab.domain.conditions import Conditions, conditions_of, conditions_within
from iolab.domain.definition import Better
from iolab.domain.experiment import IMPORTED
from iolab.domain.measured_run import MeasuredRun
from iolab.domain.summary import Jobs, chosen_keys, has_key, judged_together, left_out_of, summarise
from iolab.domain.validity import lines
from iolab.files.importer.groups import Group, groups_of
from iolab.files.importer.metric_names import plain_name
from iolab.files.importer.run_import import open_files, open_run
from iolab.files.store import RunData
from iolab.presentation.table import axis
from iolab.presentation.table.words import lacking, undirected, without_values

NAMED_MAX = 4
"""Workloads in a line."""


@dataclass(frozen=True)
class ComparisonResult:
    """What is shown of a comparison."""

    comparisons: Sequence[Comparison]
    sweeps: Sequence[JsonObject] = ()
    """The axes that the settings or workloads make, as `iolab.presentation.table.axis` has them for programs."""
    conditions: Conditions | None = None
    """The conditions of the arms, if they may differ in more than the setting."""
    read_as: str | None = None
    """How names were read as settings and rounds, if they were, or how the baseline was chosen of rows in any order."""
    title: str = "Comparison"
    trials_not_ok: int = 0
    problems: Sequence[str] = ()
    """What is wrong with the runs or files."""
    doubts: Sequence[str] = ()
    """Why numbers may not mean what they seem to, such as a page cache that served reads."""
    left_out: Collection[str] = ()
    """Keys of metrics that tables leave out for their length."""
    without_values: str = ""
    """Why none of the metrics can be compared, though there are settings."""
    lacking: Sequence[str] = ()
    """Metrics that were named and have no value under any setting, each with its workload."""

    @property
    def swept(self) -> list[str]:
        """What each sweep comes to, a sentence each."""
        return [str(one["text"]) for one in self.sweeps if one["text"]]

    @property
    def remarks(self) -> list[str]:
        """Both, for people."""
        return [*self.problems, *self.doubts]


@dataclass(frozen=True)
class ComparisonRequest:
    """What is compared, from any kind of input."""

    metrics: Sequence[str] = ()
    """Keys; empty: what the experiment compares."""
    baseline: str | None = None
    """A setting; of several arms, the arm. None: the experiment's, or the first."""
    same_within: float | None = None
    """The margin of the verdict `same`, a share; None: the experiment's."""
    by_job: bool = False
    job: str | None = None
    """This one of each workload only."""
    better: Mapping[str, Better] = field(default_factory=dict)
    """Which way is better of a metric or a file's column, where its name does not decide."""
    on_command_line: bool = True
    """Messages name options as they are given there, else as arguments."""

    def __post_init__(self) -> None:
        """InputError for options that exclude each other."""
        if self.by_job and self.job is not None:
            raise InputError(f"{self.option('by-job')} is given too; keep one of the two", where=self.option("job"))

    def option(self, name: str) -> str:
        """`--group-by`, or `group_by`."""
        return f"--{name}" if self.on_command_line else name.replace("-", "_")


def compare_paths(
    paths: Sequence[Path], wanted: ComparisonRequest, *, group_by: str | None, from_: str | None
) -> ComparisonResult:
    """Run directories, files of other tools, and directories of both, grouped by `groups_of`. InputError for what
    can't be read or compared."""
    groups = groups_of(paths, group_by)
    are_settings = len(groups.groups) > 1
    arms = [Arm(one.name, _opened(one, from_, is_setting=one.named or are_settings)) for one in groups.groups]
    found = compare_several(arms, wanted)
    return replace(found, read_as=groups.read_as or found.read_as, problems=[*groups.problems, *found.problems])


def compare_runs(runs: Sequence[RunData], wanted: ComparisonRequest) -> ComparisonResult:
    """Runs that are open already, the first the baseline. InputError as `compare_paths`."""
    return compare_several([Arm(name, [run]) for name, run in zip(arm_names(runs), runs, strict=True)], wanted)


def compare_several(arms: list[Arm], wanted: ComparisonRequest) -> ComparisonResult:
    """The other arms with the first, or, of a single run, its settings with each other."""
    jobs = Jobs("each" if wanted.by_job else "kinds", wanted.job)
    if len(arms) == 1 and len(arms[0].runs) == 1:
        return _within(arms[0], wanted, jobs)
    return _across(_baseline_first(arms, wanted), wanted, jobs)


def _within(arm: Arm, wanted: ComparisonRequest, jobs: Jobs) -> ComparisonResult:
    """The settings of one run with each other."""
    (run,) = arm.runs
    better = _better([run], wanted)
    summary = summarise(
        run, metrics=wanted.metrics, baseline=wanted.baseline, same_within=wanted.same_within, jobs=jobs, better=better
    )
    return ComparisonResult(
        summary.comparisons,
        axis.as_dicts(summary),
        conditions_within(run),
        _how_chosen(run, summary.baseline) if wanted.baseline is None else None,
        title=summary.title,
        trials_not_ok=summary.trials_not_ok,
        problems=run.problems,
        doubts=[
            *lines(run),
            *judged_together(run, jobs),
            *undirected(summary.comparisons),
            *_of_one_setting(run),
            *_of_no_other(run),
        ],
        left_out=summary.left_out,
        without_values=without_values(run, summary),
        lacking=lacking(summary),
    )


def _of_one_setting(run: MeasuredRun) -> list[str]:
    """Of an imported text that names no settings, though its workloads may be what somebody compares."""
    if run.machine_name != IMPORTED or len(run.settings) > 1 or len(run.workloads) < 2:
        return []
    names = listed([repr(name) for name in run.workloads], NAMED_MAX)
    return [f"nothing names settings of the same work: {names} are taken as {len(run.workloads)} workloads"]


def _of_no_other(run: MeasuredRun) -> list[str]:
    """Of an imported text: the work that one setting alone has, beside work that several have."""
    if run.machine_name != IMPORTED:
        return []
    settings: dict[str, set[str]] = {}
    for workload, setting in run.trials.select("workload", "setting").unique(maintain_order=True).iter_rows():
        settings.setdefault(workload, set()).add(setting)
    alone = [f"{workload!r} ({next(iter(of))})" for workload, of in settings.items() if len(of) == 1]
    if not alone or len(alone) == len(settings):
        return []
    return [f"of one setting alone, and not compared; iolab show prints it: {listed(alone, NAMED_MAX)}"]


def _how_chosen(run: MeasuredRun, baseline: str) -> str | None:
    """Of an imported run, whose rows may be in any order: how the baseline was chosen."""
    if run.machine_name != IMPORTED:
        return None
    first = run.trials.sort("trial").unique(["workload", "round"], keep="first", maintain_order=True)["setting"]
    return how_chosen(run.settings, baseline, in_any_order=first.n_unique() > 1)


def _across(arms: list[Arm], wanted: ComparisonRequest, jobs: Jobs) -> ComparisonResult:
    """The other arms with the first."""
    runs = [run for arm in arms for run in arm.runs]
    doubts = [
        f"{arm.name}: {doubt}"
        for arm in arms
        for run in arm.runs
        for doubt in (*lines(run), *judged_together(run, jobs))
    ]
    judged = compare_arms(
        arms, metrics=wanted.metrics, same_within=wanted.same_within, jobs=jobs, better=_better(runs, wanted)
    )
    return ComparisonResult(
        judged,
        axis.as_dicts(levels_of(arms, wanted.metrics, jobs)),
        conditions_of(arms),
        title=f"{', '.join(arm.name for arm in arms[1:])} against {arms[0].name}",
        trials_not_ok=sum(int((~run.trials["status"].is_in(["ok", "impossible"])).sum()) for run in runs),
        problems=[f"{arm.name}: {problem}" for arm in arms for run in arm.runs for problem in run.problems],
        doubts=[*dict.fromkeys(doubts), *([] if wanted.metrics else not_shared(arms)), *undirected(judged)],
        left_out=() if wanted.metrics else left_out_of(runs, judged),
    )


def _better(runs: Sequence[MeasuredRun], wanted: ComparisonRequest) -> dict[str, Better]:
    """By key, which way is better as the user says. InputError for a name that no run has."""
    found: dict[str, Better] = {}
    for name, way in wanted.better.items():
        called = [text for text in dict.fromkeys((name, plain_name(name))) if any(text in run.keys for run in runs)]
        for text in called or [name]:
            having = [run for run in runs if has_key(run, text)] or runs[:1]
            found |= dict.fromkeys((key for run in having for key in chosen_keys(run, [text])), way)
    return found


def _opened(group: Group, from_: str | None, *, is_setting: bool) -> list[RunData]:
    """The runs of a group: files make one together, named after the group if it is a setting."""
    files = [path for path in group.paths if path.is_file()]
    if not files:
        return [open_run(path) for path in group.paths]
    if len(files) < len(group.paths):
        raise InputError(f"{group.name} has runs and files", where=str(files[0]), remedy="compare the one or the other")
    return [open_files(files, from_, group.name if is_setting else None)]


def _baseline_first(arms: list[Arm], wanted: ComparisonRequest) -> list[Arm]:
    """InputError if there is no arm of that name, if two have the same, or if there is only one."""
    names = [arm.name for arm in arms]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise InputError("is given twice", where=repeated[0])
    if len(arms) == 1:
        raise InputError(
            "nothing to compare with: all are rounds of one setting",
            where=names[0],
            remedy=f"name another run, or define the settings with {wanted.option('group-by')}",
        )
    if wanted.baseline is None:
        return arms
    name = wanted.baseline.rstrip("/")
    found = next((arm for arm in arms if name in (arm.name, *(str(run.path) for run in arm.runs))), None)
    if found is None:
        raise InputError(
            f"{wanted.baseline}: {unknown('run or setting', wanted.baseline, names)}", where=wanted.option("baseline")
        )
    return [found, *(arm for arm in arms if arm is not found)]
