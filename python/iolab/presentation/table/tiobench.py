"""`show --as tiobench`: the classic table, four blocks with a line per setting and thread count.

Units are the tool's: megabytes are 2^20 bytes, latencies milliseconds, CPU% the time of the threads per wall time (more
than 100 % is more than one CPU), CPU efficiency the rate divided by that share. Values are means over the rounds, the
maximum latency is the highest of all rounds. `tiobench_sums` prints latencies as `tiobench.pl --numruns` does:
the script adds up means, maxima and shares above 2 and 10 s over its runs, and never divides them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.domain.comparison import Numbers
from iolab.domain.summary import values_by_setting
from iolab.domain.workload.tiobench import TiobenchOptions

if TYPE_CHECKING:
    from iolab.files.store import RunData

BLOCKS = {
    "sequential_read": "Sequential Reads",
    "random_read": "Random Reads",
    "sequential_write": "Sequential Writes",
    "random_write": "Random Writes",
}
"""Phase -> heading, in the classic order."""

MEGABYTE = 2**20
IDENTIFIER_WIDTH_MIN = 12
ABSENT = "-"


@dataclass(frozen=True)
class Shape:
    """The workload's fixed part: blocks of different shapes are printed apart."""

    file_bytes: int
    block_bytes: int
    runs: int
    """How many runs' latencies are added up."""

    @property
    def heading(self) -> str:
        """The four lines that the tool prints above its tables, and what sums are."""
        sums = (
            f"Latency and Lat% are sums of {self.runs} runs, as tiobench.pl --numruns {self.runs} prints them: "
            f"of one run they are 1/{self.runs}\n"
        )
        return (
            f"file size = {self.file_bytes / MEGABYTE:.0f} megs\n"
            f"block size = {self.block_bytes} bytes\n"
            "rate in megabytes/second\n"
            "latency in milliseconds\n"
            f"{sums if self.runs > 1 else ''}"
        )


@dataclass(frozen=True)
class Line:
    """One setting with one number of threads in one test. None if it could not be measured."""

    identifier: str
    threads: int
    rate_mb_per_s: float | None
    cpu_percent: float | None
    latency_ms_mean: float | None
    latency_ms_max: float | None
    over_2s_percent: float | None
    over_10s_percent: float | None

    @property
    def cpu_efficiency(self) -> float | None:
        """Megabytes per second over the share of a CPU that they took; None if either is missing."""
        if self.rate_mb_per_s is None or not self.cpu_percent:
            return None
        return self.rate_mb_per_s / (self.cpu_percent / 100)

    def text(self, width: int) -> str:
        """The line as the tool prints it, its identifier `width` characters wide."""
        return " ".join(
            (
                f"{self.identifier:<{width}}",
                f"{self.threads:>3d}",
                _number(self.rate_mb_per_s, "7.2f"),
                _percent(self.cpu_percent),
                _number(self.latency_ms_mean, "9.3f"),
                _number(self.latency_ms_max, "11.2f"),
                _number(self.over_2s_percent, "8.5f"),
                _number(self.over_10s_percent, "8.5f"),
                _number(self.cpu_efficiency, "5.0f"),
            )
        )


def render(run: RunData, metrics: Sequence[str] = (), *, sums: bool = False) -> str:
    """The table. `sums`: with latencies added up over the runs. InputError if the run has no workload of kind tiobench,
    or if metrics are asked for."""
    if metrics:
        raise InputError("the tiobench table has fixed columns", where="--metric", remedy="leave --metric out")
    parts = []
    for shape, lines_by_phase in _lines(run, sums=sums).items():
        parts.append(shape.heading)
        parts += [_block(heading, lines_by_phase[phase]) for phase, heading in BLOCKS.items() if lines_by_phase[phase]]
    return "\n".join(parts)


def _block(heading: str, lines: list[Line]) -> str:
    width = max(IDENTIFIER_WIDTH_MIN, *(len(line.identifier) for line in lines))
    return "\n".join(
        (
            heading,
            f"{'':<{width}} Num                   Avg       Maximum     Lat%     Lat%   CPU",
            f"{'Identifier':<{width}} Thr    Rate (CPU%)   Latency     Latency      >2s     >10s   Eff",
            f"{'-' * width} --- ------- ------ --------- ----------- -------- -------- -----",
            *(line.text(width) for line in lines),
            "",
        )
    )


def _lines(run: RunData, *, sums: bool) -> dict[Shape, dict[str, list[Line]]]:
    """Lines by shape and phase: settings in the experiment's order, rising thread counts within."""
    rounds = run.trials["round"].n_unique()
    lines: dict[Shape, dict[str, list[Line]]] = {}
    values = values_by_setting(run, [key for key in run.keys if "/" in key])
    for setting in run.settings:
        for workload in run.workloads:
            options = run.experiment.workload_under(workload, setting).options
            if not isinstance(options, TiobenchOptions):
                continue
            runs = (options.runs if "runs" in options.model_fields_set else rounds) if sums else 1
            shape = Shape(options.file_size, options.block_size, runs)
            by_phase = lines.setdefault(shape, {phase: [] for phase in BLOCKS})
            for phase, of_phase in by_phase.items():
                found = {
                    key.removeprefix(f"{phase}/"): by_setting.get(setting, [])
                    for (name, key), by_setting in values.items()
                    if name == workload and key.startswith(f"{phase}/")
                }
                if any(found.values()):
                    of_phase.append(_line(setting, options.threads, found, runs))
    if not lines:
        raise InputError(
            "the run has no workload of kind tiobench",
            where=str(run.path),
            remedy="show it as plain, csv, markdown or json",
        )
    for by_phase in lines.values():
        for of_phase in by_phase.values():
            order = {name: place for place, name in enumerate(dict.fromkeys(line.identifier for line in of_phase))}
            of_phase.sort(key=lambda line: (order[line.identifier], line.threads))
    return lines


def _line(setting: str, threads: int, found: dict[str, Numbers], runs: int) -> Line:
    def value(key: str, scale: float, summary: Callable[[list[float]], float] = fmean) -> float | None:
        numbers = [number for number in found.get(key, ()) if number is not None]
        return summary(numbers) * scale if numbers else None

    return Line(
        identifier="_".join(setting.split()),
        threads=threads,
        rate_mb_per_s=value("rate_bytes_per_s", 1 / MEGABYTE),
        cpu_percent=value("cpu_percent", 1),
        latency_ms_mean=value("latency_ns_mean", 1e-6 * runs),
        latency_ms_max=value("latency_ns_max", 1e-6 * runs, fmean if runs > 1 else max),
        over_2s_percent=value("latency_share_over_2s", 100 * runs),
        over_10s_percent=value("latency_share_over_10s", 100 * runs),
    )


def _number(value: float | None, form: str) -> str:
    width = int(form.partition(".")[0])
    return f"{value:{form}}" if value is not None else f"{ABSENT:>{width}}"


def _percent(value: float | None) -> str:
    """Six characters with as many decimals as fit: `4.951%`, `46.70%`, `179.9%`."""
    if value is None:
        return f"{ABSENT:>6}"
    decimals = max(0, 4 - len(f"{value:.0f}"))
    return f"{value:.{decimals}f}%".rjust(6)
