"""What stands on each page, as JSON: the interface of `iolab serve` and the files of `iolab site`.

Times are Unix times in ns, UTC. Values are in the unit that their metric names. Ids are hexadecimal.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from iolab.domain.collection.benchmark import Changed
from iolab.domain.collection.entry import State
from iolab.domain.collection.extract import Judged, Measured, Swept
from iolab.domain.definition import Nature


class Page(BaseModel):
    """Any part of a page."""

    model_config = ConfigDict(frozen=True)


class MetricInfo(Page):
    """What is known of a metric by its key."""

    id: str = Field(description="in addresses")
    label: str
    unit: str
    nature: Nature
    help: str


Metrics = dict[str, MetricInfo]


class Step(Page):
    """From which value on a unit has which name."""

    divisor: float
    suffix: str


class Meta(Page):
    """What all pages need: meta.json."""

    version: str
    live: bool = Field(description="served, so that comparisons and runs in progress can be asked for")
    title: str = Field(description="the collection's directory")
    runs: int
    changed: int = Field(description="grows when runs change")
    units: dict[str, list[Step]]
    query_keys: list[str]


class RunRow(Page):
    """A run in a line."""

    id: str
    name: str
    title: str
    started_unix_ns: int | None
    machine: str
    kernel: str
    settings: list[str]
    verdicts: dict[str, int]
    state: State
    tags: list[str]
    note: str
    trials: int
    trials_not_ok: int
    benchmark: str
    hardware: str
    problems: int


class RunColumns(Page):
    """Runs by column: `pandas.DataFrame(columns)` has a row per run. The names are those of `RunRow`."""

    id: list[str]
    name: list[str]
    title: list[str]
    started_unix_ns: list[int | None]
    machine: list[str]
    kernel: list[str]
    settings: list[list[str]]
    workloads: list[list[str]]
    verdicts: list[dict[str, int]]
    state: list[State]
    tags: list[list[str]]
    note: list[str]
    trials: list[int]
    trials_not_ok: list[int]
    benchmark: list[str]
    hardware: list[str]
    problems: list[int]


class RunList(Page):
    """Every run in short: runs/N.json, 5,000 in each, the newest first."""

    total: int
    chunks: int
    columns: RunColumns


class Spark(Page):
    """A small line: typical values by date, the newest last; of the series that changed, if one did."""

    metric: str
    workload: str
    setting: str
    typical: list[float | None]
    spread: list[float | None]


class BenchmarkRow(Page):
    """A benchmark on one hardware in a line."""

    id: str
    hardware: str
    title: str
    hardware_in_words: str
    runs: int
    newest: RunRow
    spark: Spark | None
    regressions: int | None = Field(description="null: not looked for yet")


class ChangeRow(Page):
    """A change in a benchmark's history, with the page to look at."""

    benchmark: str
    hardware: str
    title: str
    hardware_in_words: str
    change: Changed


class LiveTrial(Page):
    """A trial of a run in progress. `value`: of the first metric that is compared; null if it has none yet."""

    trial: int
    round: int
    workload: str
    setting: str
    status: str
    duration_ns: int | None
    value: float | None


class LiveRun(Page):
    """A run in progress. `trials_expected`: null if unknown, as of a run until it is decided."""

    run: RunRow
    trials_done: int
    trials_expected: int | None
    left_s: float | None = Field(description="at the pace of the trials so far; null if unknown")
    metric: str | None
    trials: list[LiveTrial] = Field(description="the newest last")
    sentences: list[str] = Field(description="what the verdicts up to now come to")
    judged: list[Judged] = Field(description="the verdicts up to now")
    same_within: float


class Live(Page):
    """What is in progress: live.json, of `iolab serve` alone."""

    changed: int
    running: list[LiveRun]
    metrics: Metrics


class Overview(Page):
    """The first page: overview.json."""

    metrics: Metrics
    changes: list[ChangeRow] = Field(description="those that regressed and stand first, then the newest")
    changes_total: int
    pending: int = Field(description="benchmarks whose history is still to be looked at")
    benchmarks: list[BenchmarkRow]
    benchmarks_total: int
    trade_offs: list[RunRow] = Field(
        description="newest runs of a benchmark in which a setting is slower or worse than the baseline; no regression"
    )
    newest: list[RunRow]


class Elsewhere(Page):
    """The same benchmark on other hardware."""

    hardware: str
    hardware_in_words: str
    runs: int


class Series(Page):
    """A metric of a workload under a setting over the runs; the newest last."""

    workload: str
    setting: str
    metric: str
    typical: list[float | None]
    last: float | None
    last_spread: float | None
    last_n: int
    last_run: str | None


class BenchmarkPage(Page):
    """benchmarks/ID-HARDWARE.json: the metrics that its newest run compares."""

    id: str
    hardware: str
    title: str
    hardware_in_words: str
    elsewhere: list[Elsewhere]
    metrics: Metrics
    compared: list[str]
    runs: list[RunRow] = Field(description="the newest first")
    runs_total: int
    series: list[Series]
    series_left_out: int
    changes: list[Changed] | None


class LineOfRuns(Page):
    """A metric under a setting, a value per run: typical value, half the interquartile range, values of the rounds."""

    setting: str
    typical: list[float | None]
    spread: list[float | None]
    rounds: list[list[float | None]]


class RunPoint(Page):
    """A run of a history, oldest first."""

    id: str
    name: str
    started_unix_ns: int | None
    kernel: str


class WorkloadLines(Page):
    """A workload's lines, one per setting; settings in alphabetical order, whatever is shown."""

    workload: str
    lines: list[LineOfRuns]


class MetricPage(Page):
    """benchmarks/ID-HARDWARE/METRIC.json: one metric over the runs."""

    id: str
    hardware: str
    title: str
    hardware_in_words: str
    metric: str
    metrics: Metrics
    runs: list[RunPoint]
    runs_total: int
    workloads: list[WorkloadLines]
    lines_left_out: int
    changes: list[Changed] | None


class Cell(Page):
    """A cell of a matrix. `by_setting`: against the baseline on the same kernel; `by_kernel`: the same setting against
    the first kernel, whose runs are not interleaved with these."""

    setting: str
    run: str
    typical: float | None
    spread: float | None
    by_setting: Judged | None
    by_kernel: Judged | None


class KernelRow(Page):
    """A kernel's cells; of several runs the newest counts."""

    kernel: str
    cells: list[Cell]


class Matrix(Page):
    """Kernel x setting, of a metric on a workload."""

    workload: str
    metric: str
    settings: list[str]
    rows: list[KernelRow]


class MatrixPage(Page):
    """benchmarks/ID-HARDWARE/matrix.json: the metrics that are compared."""

    id: str
    hardware: str
    title: str
    hardware_in_words: str
    metrics: Metrics
    matrices: list[Matrix]
    same_within: float


class RunPage(Page):
    """run/ID.json. The exact experiment is run/ID/experiment.toml, the machine run/ID/machine.json, a record
    run/ID/trials/N.json."""

    run: RunRow
    hardware_in_words: str
    baseline: str
    same_within: float
    rounds: int
    workloads: list[str]
    compared: list[str]
    metrics: Metrics
    sentences: list[str] = Field(description="what the verdicts come to, as `iolab show` begins")
    judged: list[Judged]
    measured: list[Measured]
    measured_left_out: int
    trials: dict[str, dict[str, list[int | None]]]
    sweeps: list[Swept]
    facts: dict[str, str]
    problems: list[str]
    doubts: list[str]
    changes: list[Changed] = Field(description="changes over time that began with this run")
    previous: RunPoint | None
    next: RunPoint | None


class Difference(Page):
    """Something that is not the same of both."""

    what: str
    baseline: str
    candidate: str


class ComparisonPage(Page):
    """compare/BASELINE/CANDIDATE.json, of `iolab serve` alone. `judged` is null if the hardware is not alike and
    nobody asked for it all the same."""

    baseline: RunRow
    candidate: RunRow
    unlike: list[Difference]
    differs: list[Difference]
    not_compared: list[str]
    conclusion: str | None
    sentences: list[str]
    """What the verdicts come to."""
    metrics: Metrics
    judged: list[Judged] | None
    same_within: float
    problems: list[str]


class Problem(Page):
    """Why there is no answer."""

    what: str
