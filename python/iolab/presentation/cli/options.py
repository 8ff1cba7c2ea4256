"""Options and arguments that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from iolab.base.errors import InputError
from iolab.presentation.cli import complete

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from iolab.domain.definition import Better
    from iolab.domain.summary import Jobs

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

Patience = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="How long to wait for something that does not answer: a trial without progress, a device, a mount.",
    ),
]

Out = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The run directory to make.  [default: a new one in iolab-runs]")
]

InsteadOfMachine = Annotated[
    str | None,
    typer.Option(
        "--machine", help="Where trials run, instead of the experiment's machine.", autocompletion=complete.machines
    ),
]

Seed = Annotated[int | None, typer.Option(help="Seed of all that is random.  [default: drawn and recorded]")]

ResumeSearch = Annotated[
    Path | None,
    typer.Option("--resume", metavar="DIR", help="Continue the search in DIR.", autocompletion=complete.runs),
]

On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="ray|ray://HOST:PORT",
        help="Run trials on the nodes of a Ray cluster. ray: the cluster that this machine is a node of; "
        "ray://HOST:PORT: the cluster with this port for clients.  [default: here]",
    ),
]

RunDirectory = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory, as `iolab run` leaves it.")]

Collection = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="A directory that holds runs, or directories of runs.", show_default=True),
]

RunOrFile = Annotated[
    Path,
    typer.Argument(
        metavar="RUN|FILE",
        help="A run directory, or a file of another tool: fio, tiobench, iozone, fs_mark, mmtests, any CSV ...",
        autocompletion=complete.runs_and_files,
    ),
]

From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FORMAT",
        help="The format of a file, if its content is not recognised. See `iolab import --help`.",
    ),
]

GroupBy = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX",
        help="The part of DIRECTORY/NAME that is the setting: the group named `setting`, (?P<setting>...), else the "
        "first group. Files or runs of the same setting are its rounds.",
    ),
]

Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="KEY",
        help="Key of a metric, [phase/][operation.]metric: latency_ns_p99, read.iops, random_read/rate_bytes_per_s. "
        "May be given several times. See `iolab list metrics`.",
        autocompletion=complete.metrics,
    ),
]

ByJob = Annotated[
    bool,
    typer.Option(
        "--by-job", help="Show each job of a workload, copies too. Without it: each kind of job, if there are few."
    ),
]

OneJob = Annotated[str | None, typer.Option("--job", metavar="NAME", help="Show only this job.")]

FailOn = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="CONDITION",
        help="Exit with status 1 if a comparison is slower (or worse: the metric changed in its bad direction), "
        "faster (or better) or undecided; or if a trial had I/O errors or wrong data, or failed: faulty. May be given "
        "several times.",
    ),
]

SettingColumn = Annotated[str | None, typer.Option(metavar="COLUMN", help="CSV: the column that names the setting.")]

RoundColumn = Annotated[str | None, typer.Option(metavar="COLUMN", help="CSV: the column that numbers the round.")]

WorkloadColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="CSV: the column that names the workload, if any.")
]

Baseline = Annotated[
    str | None,
    typer.Option(
        metavar="SETTING",
        help="The setting to compare the others with.  [default in a run: its experiment's]",
        autocompletion=complete.settings,
    ),
]

LowerIsBetter = Annotated[
    list[str] | None,
    typer.Option(metavar="METRIC", help="Lower is better of this metric or CSV column. Otherwise its name decides."),
]

HigherIsBetter = Annotated[
    list[str] | None, typer.Option(metavar="METRIC", help="Higher is better of this metric or CSV column.")
]


def ways(lower: Sequence[str] | None, higher: Sequence[str] | None) -> dict[str, Better]:
    """By name, which way is better as the two options give it. InputError for a name that both have."""
    if both := set(lower or ()) & set(higher or ()):
        raise InputError(f"{min(both)}: --higher-is-better has it too", where="--lower-is-better")
    found: dict[str, Better] = dict.fromkeys(lower or (), "lower")
    return found | dict.fromkeys(higher or (), "higher")


class CsvReading(NamedTuple):
    """How a CSV file is read whose columns are given by hand."""

    setting: str
    round: str | None
    workload: str | None
    baseline: str
    metrics: list[str]
    """Empty: all."""
    better: dict[str, Better]
    """By column, the direction that the options give it; others are left to their names."""
    text: pl.DataFrame | None
    """As in `iolab.base.csv_table.read`."""
    left_out: list[str]
    """Columns of text."""


@dataclass(frozen=True)
class CsvColumns:
    """What the columns of a CSV file are, as given by hand."""

    setting: str | None
    round: str | None
    workload: str | None
    lower_is_better: list[str] | None
    higher_is_better: list[str] | None

    def __bool__(self) -> bool:
        return any(self._given.values())

    @property
    def better(self) -> dict[str, Better]:
        """By column, the direction that is given."""
        return ways(self.lower_is_better, self.higher_is_better)

    def read(self, path: Path, baseline: str | None, metrics: Sequence[str] | None) -> CsvReading:
        """What the file's columns are: those that are not given are found by the usual names, and the baseline by
        `baseline_of`. InputError states what can't be found."""
        from iolab.base.csv_table import entries
        from iolab.domain.baseline import baseline_of
        from iolab.files.importer.csv_file import plain_table
        from iolab.files.importer.csv_layout import layout_of
        from iolab.files.importer.source import Source

        plain = plain_table(path)
        setting, round_, workload = self.setting, self.round, self.workload
        by_hand = {setting, round_, workload, *(metrics or ())}
        try:
            layout = layout_of(Source(path))
        except InputError:
            # What is all named by hand is read however the rest of the file looks.
            if setting is None or round_ is None:
                raise
        else:
            found = layout.setting, layout.round, layout.workload
            setting, round_, workload = (
                given or (usual if usual not in by_hand else None)
                for given, usual in zip((setting, round_, workload), found, strict=True)
            )
        if not setting:
            raise InputError(
                "no column is called as one of settings usually is",
                where=str(path),
                remedy="give --setting-column; see iolab compare --help",
            )

        def called(names: Sequence[str] | None) -> list[str]:
            return [plain.renamed.get(name, name) for name in names or ()]

        return CsvReading(
            setting,
            round_,
            workload,
            baseline_of(entries(path, setting, plain.text)) if baseline is None else baseline,
            called(metrics),
            {plain.renamed.get(name, name): way for name, way in self.better.items()},
            plain.text,
            [name for name in plain.left_out if name not in (setting, round_, workload)],
        )

    def refuse_for(self, path: Path) -> None:
        """InputError if any is given for what is no CSV file."""
        for name, given in self._given.items():
            if given is not None:
                raise InputError("is for CSV files, and this is none", where=name, remedy=f"leave it out for {path}")

    @property
    def _given(self) -> dict[str, object]:
        return {
            "--setting-column": self.setting,
            "--round-column": self.round,
            "--workload-column": self.workload,
            "--lower-is-better": self.lower_is_better,
            "--higher-is-better": self.higher_is_better,
        }


def seconds(patience: str | None) -> float | None:
    """InputError if the option is no duration above 0."""
    if patience is None:
        return None
    found = duration_s("--patience", patience)
    if found <= 0:
        raise InputError("expected a duration above 0", where="--patience", remedy="for instance 30s or 5min")
    return found


def duration_s(option: str, text: str) -> float:
    """InputError if the option was given no duration."""
    from iolab.base.quantity import parse_duration_ns

    return _parsed(option, text, parse_duration_ns, "a duration such as 30s or 5min") / 1e9


def size_bytes(option: str, text: str) -> int:
    """InputError if the option was given no size."""
    from iolab.base.quantity import parse_bytes

    return _parsed(option, text, parse_bytes, "a size such as 64MiB or 1GiB")


def _parsed(option: str, text: str, parse: Callable[[str], int], remedy: str) -> int:
    try:
        return parse(text)
    except ValueError as error:
        raise InputError(str(error), where=option, remedy=remedy) from error


def jobs_of(job: str | None, *, by_job: bool) -> Jobs | None:
    """Which jobs the two options ask for; None: neither is given. InputError if both are."""
    from iolab.domain.summary import Jobs

    if by_job and job is not None:
        raise InputError("--by-job is given too; keep one of the two", where="--job")
    return Jobs("each" if by_job else "kinds", job) if by_job or job is not None else None
