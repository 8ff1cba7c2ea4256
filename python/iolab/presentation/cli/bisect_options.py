"""The options of `iolab bisect`, and what they give: each option is here once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from iolab.base.errors import InputError, unknown
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import duration_s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from iolab.files.experiment import Experiment
    from iolab.studies.run.question import Question

CONFIDENCE_LEAST = 0.5
MOST_MAX, CONFIRM_MAX, SPREAD_MAX = 10_000, 1_000, 1_000
CONDITIONS = ("regressed", "changed")

What = Annotated[
    Path | None,
    typer.Argument(
        metavar="[EXPERIMENT.toml|RUN|GOOD..BAD]",
        help="An experiment whose settings are the versions, oldest first: kernels of a simulated machine, values "
        "of a tunable, anything that a setting can change. A run's directory: the answer of its trials, without "
        "further ones. With --versions, a range of them. "
        "With --git, a range of commits; or an experiment for guest machines, whose kernels are then the commits "
        "from --good to --bad.",
        autocompletion=complete.experiments,
    ),
]

Good = Annotated[
    str | None,
    typer.Option(
        metavar="SETTING|VERSION",
        help="The oldest version of the search.  [default: the first]",
        autocompletion=complete.settings,
    ),
]

Bad = Annotated[
    str | None,
    typer.Option(
        metavar="SETTING|VERSION",
        help="The newest version of the search.  [default: the last]",
        autocompletion=complete.settings,
    ),
]

Metrics = Annotated[
    list[str] | None,
    typer.Option(
        metavar="METRIC",
        help="What changed. May be given several times: each has an answer, from the same trials.  [default: the "
        "first that the experiment compares]",
        autocompletion=complete.metrics,
    ),
]

Workload = Annotated[str | None, typer.Option(metavar="NAME", help="The workload to measure, of several.")]

Confidence = Annotated[float, typer.Option(help="Stop when one account of the history has this probability.")]

Most = Annotated[int, typer.Option(help="Stop after this many trials of the search.")]

Confirm = Annotated[
    int, typer.Option(help="Measure each named version against the version before it in this many fresh rounds.")
]

Time = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="Stop after this time, such as 8h; --resume continues for the same time."),
]

Spread = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Name no change before a version of each N-th of the range was measured: a change that is reversed "
        "between two measured versions is not seen. 0: in the fewest trials.  [default: an eighth of the "
        "versions, 8 to 24]",
    ),
]

FailOn = Annotated[
    str | None,
    typer.Option(
        metavar="CONDITION",
        help="Exit with status 1 if a change for the worse was found (regressed), or any change (changed).",
    ),
]

Git = Annotated[
    Path | None,
    typer.Option("--git", metavar="REPO", help="Search among commits of this repository, which is only read."),
]

Versions = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Search among the versions that this file lists, a line each, oldest first. Commands get the version "
        "as $IOLAB_VERSION.",
    ),
]

AllParents = Annotated[
    bool, typer.Option("--all-parents", help="By commands: continue among the commits of a merge that is named.")
]

Measure = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="By commands: what is measured, in a shell, in the directory $IOLAB_BUILD of the commit's build.",
    ),
]

Build = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="By commands: builds a commit in its checked-out files, and leaves in $IOLAB_BUILD what is measured. "
        "Exit status 125: can't be built, skip it.  [default: the commit's files are copied there]",
    ),
]

Value = Annotated[
    str | None,
    typer.Option(
        metavar="wall|cpu|printed",
        help="By commands: the command's wall time, its CPU time, or the number that ends its last line.  "
        "[default: wall]",
    ),
]

HigherIsBetter = Annotated[bool, typer.Option("--higher-is-better", help="With --value printed: higher is better.")]

SameWithin = Annotated[
    float | None, typer.Option(metavar="SHARE", help="By commands: a change up to this size is none.  [default: 0.02]")
]

BuildLimit = Annotated[
    str | None, typer.Option(metavar="DURATION", help="By commands: a build is killed after this time.  [default: 1h]")
]

MeasureLimit = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION", help="By commands: a measured command is killed after this time.  [default: 10min]"
    ),
]


@dataclass(frozen=True)
class Effort:
    """What a search may cost, and when it ends."""

    confidence: float
    most: int
    confirm: int
    spread: int | None
    time_s: float | None

    def check(self) -> None:
        """InputError names the option."""
        if not CONFIDENCE_LEAST <= self.confidence < 1:
            raise InputError(f"{self.confidence:g} given; expected 0.5 or more, below 1", where="--confidence")
        for option, value, least, largest in (
            ("--most", self.most, 6, MOST_MAX),
            ("--confirm", self.confirm, 0, CONFIRM_MAX),
            ("--spread", self.spread or 0, 0, SPREAD_MAX),
        ):
            if not least <= value <= largest:
                raise InputError(f"{value} given; expected {least} to {largest:,}", where=option)


@dataclass(frozen=True)
class ExperimentBisectOptions:
    """What goes with an experiment alone."""

    good: str | None
    bad: str | None
    metrics: list[str] | None
    workload: str | None
    machine: str | None

    @property
    def given(self) -> Mapping[str, object]:
        """By option."""
        return {
            "--good": self.good,
            "--bad": self.bad,
            "--metric": self.metrics,
            "--workload": self.workload,
            "--machine": self.machine,
        }

    def question(self, experiment: Experiment, effort: Effort, *, most: int | None, confirm: int) -> Question:
        """The question about the experiment."""
        from iolab.studies.run.question import question

        return question(
            experiment,
            workload=self.workload,
            metrics=self.metrics or (),
            good=self.good,
            bad=self.bad,
            confidence=effort.confidence,
            most=most,
            confirm=confirm,
            spread=effort.spread,
            time_s=effort.time_s,
        )


@dataclass(frozen=True)
class CommandBisectOptions:
    """What goes with commands that build and measure a version alone."""

    measure: str | None
    build: str | None
    value: str | None
    higher_is_better: bool
    same_within: float | None
    build_limit: str | None
    measure_limit: str | None
    all_parents: bool

    @property
    def given(self) -> Mapping[str, object]:
        """By option."""
        return {
            "--measure": self.measure,
            "--build": self.build,
            "--value": self.value,
            "--same-within": self.same_within,
            "--build-limit": self.build_limit,
            "--measure-limit": self.measure_limit,
            "--all-parents": self.all_parents or None,
        }

    @property
    def command(self) -> str:
        """The one that measures. InputError without one."""
        if self.measure is None:
            remedy = 'such as --measure "./program --size 10"'
            raise InputError("no command to measure", where="--measure", remedy=remedy)
        return self.measure

    @property
    def known_value(self) -> Literal["wall", "cpu", "printed"]:
        """InputError for another word."""
        from iolab.studies.run.commits import VALUES

        value = self.value or "wall"
        for known in VALUES:
            if value == known:
                return known
        raise InputError(f"{value}: {unknown('value', value, VALUES)}", where="--value")

    @property
    def share(self) -> float:
        """The largest difference that counts as none, as a share of the level. InputError if it is no share."""
        given = 0.02 if self.same_within is None else self.same_within
        if not 0 <= given < 1:
            what = f"{given:g} given; expected a share from 0 to below 1, such as 0.02"
            raise InputError(what, where="--same-within")
        return given


def refuse(given: Mapping[str, object], why: str) -> None:
    """InputError if one of these options is given."""
    for option, value in given.items():
        if value is not None:
            raise InputError(why, where=option, remedy="leave it out")


def limit_s(option: str, text: str) -> float:
    """InputError if the option is no duration that a command can be given."""
    from iolab.studies.run.search_file import LIMIT_S_MAX

    found = duration_s(option, text)
    if not 0 < found <= LIMIT_S_MAX:
        what = f"expected a duration above 0, up to {LIMIT_S_MAX:,} s"
        raise InputError(what, where=option, remedy="for instance 30s or 5min")
    return found
