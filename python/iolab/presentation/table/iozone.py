"""`show --as iozone`: for one thread the classic matrix, for several the throughput blocks, with the lines of `-+u`.

kB are 1024 bytes. Values are means over the rounds; minima and maxima of threads are means of each round's. Wall time
is that of the whole test, CPU time and utilisation are those of the threads; 100 % is one CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.domain.metric import ALL
from iolab.domain.summary import values_by_setting
from iolab.domain.workload.iozone import IozoneOptions

if TYPE_CHECKING:
    from iolab.domain.comparison import Numbers
    from iolab.files.store import RunData

KB = 1024

MATRIX_HEADINGS = (
    " " * 62 + "random    random     bkwd    record    stride" + " " * 36,
    " " * 14 + "kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read"
    "   fwrite frewrite    fread  freread",
)
MATRIX_COLUMNS = {
    "write": 9,
    "rewrite": 9,
    "read": 9,
    "reread": 9,
    "random_read": 9,
    "random_write": 9,
    "backward_read": 9,
    "record_rewrite": 10,
    "stride_read": 10,
}
"""Phase -> the column's width, left to right. The tool's last four columns, of stdio calls, stay empty."""
STDIO_WIDTH = 35

BLOCKS = {
    "write": "initial writers",
    "rewrite": "rewriters",
    "read": "readers",
    "reread": "re-readers",
    "backward_read": "reverse readers",
    "record_rewrite": "record rewriters",
    "stride_read": "stride readers",
    "random_read": "random readers",
    "mixed": "mixed workload",
    "random_write": "random writers",
    "pwrite": "pwrite writers",
    "repwrite": "pwrite rewriters",
    "pread": "pread readers",
    "repread": "pread re-readers",
    "pwritev": "pwritev writers",
    "repwritev": "pwritev rewriters",
    "preadv": "preadv readers",
    "repreadv": "preadv re-readers",
}
"""Phase -> what the throughput mode calls the threads that do it, in its order."""
LABEL_WIDTH = 48

CPU_TESTS = {"write": "Write", "rewrite": "Re-write", "read": "Read", "reread": "Re-read"}
ABSENT = "-"
IMPORTED = "rate_per_process_bytes_per_s"
"""What the tool's own summaries of its threads' rates are imported as."""


@dataclass(frozen=True)
class Case:
    """What was measured of one workload under one setting."""

    setting: str
    workload: str
    options: IozoneOptions
    values: dict[str, Numbers]
    """Metric key -> its values over the rounds."""
    threads: dict[str, list[dict[str, list[float]]]]
    """Phase -> for each round, metric -> its values by thread."""

    def value(self, phase: str, metric: str) -> float | None:
        """The mean over the rounds of a metric of this phase; None if no round has a value."""
        key = metric if len(self.options.wanted_tests) == 1 else f"{phase}/{metric}"
        numbers = [number for number in self.values.get(key, ()) if number is not None]
        return fmean(numbers) if numbers else None

    def of_threads(
        self, phase: str, metric: str, summary: Callable[[list[float]], float], imported: str
    ) -> float | None:
        """A tool's output has no single threads, but the tool's own summary, under the name `imported`."""
        found = [summary(by_metric[metric]) for by_metric in self.threads.get(phase, ()) if by_metric.get(metric)]
        return fmean(found) if found else self.value(phase, imported)


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """The tables. InputError if the run has no workload of kind iozone, or if metrics are asked for."""
    if metrics:
        raise InputError("the iozone table has fixed columns", where="--metric", remedy="leave --metric out")
    cases = list(_cases(run))
    if not cases:
        raise InputError(
            "the run has no workload of kind iozone",
            where=str(run.path),
            remedy="show it as plain, csv, markdown or json",
        )
    # All of one form before the other, as two calls of the tool would print them.
    singles = [case for case in cases if case.options.threads == 1]
    several = [case for case in cases if case.options.threads > 1]
    lines: list[str] = []
    for setting, own in _by_setting(singles).items():
        lines += [f"*** {setting}", "", *_matrix(own), ""]
        for case in own:
            lines += [*_cpu_of_tests(case), ""]
    for setting, own in _by_setting(several).items():
        lines += [f"*** {setting}", ""]
        for case in own:
            lines += _throughput(case)
    return "\n".join(lines)


def _by_setting(cases: list[Case]) -> dict[str, list[Case]]:
    return {
        setting: [case for case in cases if case.setting == setting]
        for setting in dict.fromkeys(case.setting for case in cases)
    }


def _matrix(cases: list[Case]) -> Iterator[str]:
    yield "\tOutput is in kBytes/sec"
    yield from MATRIX_HEADINGS
    for case in cases:
        cells = [f"{case.options.file_bytes // KB:>16}{_kilobytes(case.options.record_size):>8}"]
        for phase, width in MATRIX_COLUMNS.items():
            rate = case.value(phase, "rate_bytes_per_s")
            wanted = phase in case.options.wanted_tests
            cells.append(f"{(ABSENT if rate is None else round(rate / KB)) if wanted else '':>{width}}")
        yield "".join(cells) + " " * STDIO_WIDTH


def _cpu_of_tests(case: Case) -> Iterator[str]:
    yield from _facts(case)
    for phase in case.options.wanted_tests:
        if phase not in MATRIX_COLUMNS:
            yield f"\t{phase}: {_number(case.value(phase, 'rate_bytes_per_s'), 1 / KB, '10.2f')} kB/sec"
        yield f"\t{CPU_TESTS.get(phase, phase)} test: {_cpu(case, phase)}"


def _throughput(case: Case) -> Iterator[str]:
    threads = case.options.threads
    yield from _facts(case)
    if not case.options.stop_with_first:
        yield "\tStonewall disabled"
    yield "\tOutput is in kBytes/sec"
    yield f"\tThroughput test with {threads} threads"
    size, record = case.options.file_bytes // KB, _kilobytes(case.options.record_size)
    yield f"\tEach thread writes a {size} kByte file in {record} kByte records"
    for phase, name in BLOCKS.items():
        if phase in case.options.wanted_tests:
            yield ""
            yield from _block(case, phase, f"{threads:>2} {name}")
    yield ""


def _block(case: Case, phase: str, who: str) -> Iterator[str]:
    own = "rate_sum_bytes_per_s"
    for label, value, unit in (
        (f"Children see throughput for {who}", case.value(phase, own), "kB/sec"),
        (f"Parent sees throughput for {who}", case.value(phase, "rate_bytes_per_s"), "kB/sec"),
        ("Min throughput per thread", case.of_threads(phase, own, min, f"{IMPORTED}_min"), "kB/sec"),
        ("Max throughput per thread", case.of_threads(phase, own, max, f"{IMPORTED}_max"), "kB/sec"),
        ("Avg throughput per thread", case.of_threads(phase, own, fmean, f"{IMPORTED}_mean"), "kB/sec"),
        ("Min xfer", case.of_threads(phase, "bytes", min, "transfer_bytes_min"), "kB"),
    ):
        yield f"\t{label:<{LABEL_WIDTH}}= {_number(value, 1 / KB, '10.2f')} {unit}"
    yield f"\t{_cpu(case, phase)}"


def _facts(case: Case) -> Iterator[str]:
    options = case.options
    yield f"\t{case.workload}"
    yield f"\tFile size set to {options.file_bytes // KB} kB"
    yield f"\tRecord Size {_kilobytes(options.record_size)} kB"
    if options.fsync:
        yield "\tInclude fsync in write timing"
    if options.close:
        yield "\tInclude close in write timing"
    if options.direct:
        yield "\tO_DIRECT feature enabled"
    if "stride_read" in options.wanted_tests:
        yield f"\tFile stride size set to {options.stride} * record size."


def _cpu(case: Case, phase: str) -> str:
    user, system = (case.value(phase, f"cpu_{mode}_s") for mode in ("user", "system"))
    cpu = case.value(phase, "cpu_s") if user is None or system is None else user + system
    wall, percent = case.value(phase, "elapsed_s"), case.value(phase, "cpu_percent")
    return (
        f"CPU utilization: Wall time {_number(wall, 1, '8.3f')}    CPU time {_number(cpu, 1, '8.3f')}"
        f"    CPU utilization {_number(percent, 1, '6.2f')} %"
    )


def _number(value: float | None, scale: float, form: str) -> str:
    return f"{ABSENT:>{form.partition('.')[0]}}" if value is None else f"{value * scale:{form}}"


def _kilobytes(size_bytes: int) -> str:
    """A whole number without a point: 4, 0.5."""
    return f"{size_bytes / KB:g}"


def _cases(run: RunData) -> Iterator[Case]:
    values = values_by_setting(run, run.keys)
    for setting in run.settings:
        for workload in run.workloads:
            options = run.experiment.workload_under(workload, setting).options
            if isinstance(options, IozoneOptions):
                own = {key: found.get(setting, []) for (name, key), found in values.items() if name == workload}
                yield Case(setting, workload, options, own, _by_thread(run, workload, setting, options))


def _by_thread(
    run: RunData, workload: str, setting: str, options: IozoneOptions
) -> dict[str, list[dict[str, list[float]]]]:
    if options.threads == 1:
        return {}
    found: dict[str, dict[int, dict[str, list[float]]]] = {}
    rows = run.job_metrics(workload=workload, setting=setting).drop_nulls("value").filter(op=ALL)
    for trial, phase, metric, value in rows.select("trial", "phase", "metric", "value").iter_rows():
        found.setdefault(phase, {}).setdefault(trial, {}).setdefault(metric, []).append(value)
    return {phase: list(by_trial.values()) for phase, by_trial in found.items()}
