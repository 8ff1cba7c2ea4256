"""`show --as cycles`: cycles per byte and per I/O in both readings of utilisation, the CPU split, and stalled cycles.

Values are means over the rounds. docs/reference/cycles.md explains what each column is and where published figures went
wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.domain.cycles import (
    Processors,
    absolute_cycles_per_s,
    per,
    processors,
    relative_cycles_per_s,
    relative_percent_of,
)
from iolab.domain.workload.iozone import IozoneOptions
from iolab.presentation.table.means import PhaseMeans, phase_means

if TYPE_CHECKING:
    from iolab.files.store import RunData

ABSENT = "-"
MIB = 2**20
SPLIT = {
    "% user": ("user", "nice"),
    "% sys": ("system", "irq", "softirq"),
    "% iowait": ("iowait",),
    "% idle": ("idle",),
}
"""As CPU splits are posted: the kernel and its interrupts together."""

Cells = Sequence[str]


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """The tables that the run has numbers for. InputError if that is none, or if metrics are asked for."""
    if metrics:
        raise InputError("the cycles table has fixed columns", where="--metric", remedy="leave --metric out")
    found, cpus = list(phase_means(run)), processors(run.machine)
    parts = [*_costs(run, found, cpus), *_splits(found), *_stalls(found)]
    if not parts:
        raise InputError(
            "the run has neither CPU times nor cycles",
            where=str(run.path),
            remedy="measure with [probes] cpu = true",
        )
    return "\n".join(parts)


def _costs(run: RunData, found: list[PhaseMeans], cpus: Processors) -> Iterator[str]:
    """A block per workload and phase: what a byte and an I/O took."""
    having = [place for place in found if place.get("cpu_percent") is not None]
    if having:
        yield _about(cpus)
    for (workload, phase), of_block in groupby(having, key=lambda place: (place.workload, place.phase)):
        rows = [_cost(run, place, cpus) for place in of_block]
        yield _table(
            f"{workload}{': ' if phase else ''}{phase}",
            [
                ("", ("setting",)),
                ("", ("MiB/s", "I/O/s")),
                ("100 % is one CPU", ("CPU %", "cycles/B", "cycles/IO")),
                ("100 % is all CPUs", ("CPU %", "cycles/B", "cycles/IO")),
                ("all cycles", ("cycles/B", "cycles/IO")),
            ],
            rows,
        )


def _about(cpus: Processors) -> str:
    count = ABSENT if cpus.count is None else str(cpus.count)
    frequency = ABSENT if cpus.frequency_hz is None else f"{cpus.frequency_hz / 1e9:g} GHz"
    return f"CPUs: {count}, frequency: {frequency}\n"


def _cost(run: RunData, place: PhaseMeans, cpus: Processors) -> Cells:
    measured_hz = place.get("cpu_frequency_hz")
    if measured_hz is not None:
        cpus = Processors(cpus.count, measured_hz)
    rate, iops = _rates(run, place)
    threads_percent, machine_percent = place.get("cpu_percent"), place.get("cpu_busy_percent")
    # Without a look at the whole machine, that of the threads: the same time over all CPUs.
    relative_percent = relative_percent_of(threads_percent, cpus) if machine_percent is None else machine_percent
    absolute = absolute_cycles_per_s(threads_percent, cpus)
    relative = relative_cycles_per_s(relative_percent, cpus)
    return (
        place.setting,
        _number(None if rate is None else rate / MIB, "{:.2f}"),
        _number(iops, "{:.0f}"),
        _number(threads_percent, "{:.2f}"),
        _number(_measured(place, "cycles_per_byte", per(absolute, rate)), "{:.2f}"),
        _number(_measured(place, "cycles_per_io", per(absolute, iops)), "{:,.0f}"),
        _number(relative_percent, "{:.2f}"),
        _number(_measured(place, "machine_cycles_per_byte", per(relative, rate)), "{:.2f}"),
        _number(_measured(place, "machine_cycles_per_io", per(relative, iops)), "{:,.0f}"),
        _number(_all_cycles(cpus, place.inverse("rate_bytes_per_s"), rate), "{:.2f}"),
        _number(_all_cycles(cpus, place.inverse("iops"), iops), "{:,.0f}"),
    )


def _measured(place: PhaseMeans, metric: str, computed: float | None) -> float | None:
    """The probe's own figure, which is of the measured part alone, before one from the means."""
    value = place.get(metric)
    return computed if value is None else value


def _all_cycles(cpus: Processors, inverse: float | None, rate: float | None) -> float | None:
    """What the CPUs had, per byte or per I/O: a mean over the rounds, as the columns beside it are."""
    if inverse is None or cpus.all_cycles_per_s is None:
        return per(cpus.all_cycles_per_s, rate)
    return cpus.all_cycles_per_s * inverse


def _rates(run: RunData, place: PhaseMeans) -> tuple[float | None, float | None]:
    """Bytes and I/Os per second; if a text has only the time, those of the amount that its options name."""
    rate, iops = place.get("rate_bytes_per_s"), place.get("iops")
    amount, record = _amount(run, place)
    elapsed_s = place.get("elapsed_s")
    if rate is None and amount and elapsed_s:
        rate = amount / elapsed_s
    if iops is None and rate is not None and record:
        iops = rate / record
    return rate, iops


def _amount(run: RunData, place: PhaseMeans) -> tuple[int | None, int | None]:
    """What one test of iozone transfers, and its record size, both in bytes."""
    options = run.experiment.workload_under(place.workload, place.setting).options
    if not isinstance(options, IozoneOptions):
        return None, None
    return options.file_size * options.threads, options.record_size


def _splits(found: list[PhaseMeans]) -> Iterator[str]:
    """The CPU split, in percent of all CPUs."""

    def share(place: PhaseMeans, states: Sequence[str]) -> float | None:
        values = [place.get(f"cpu_{state}_percent") for state in states]
        present = [value for value in values if value is not None]
        return sum(present) if present else None

    def cells(place: PhaseMeans) -> Cells:
        return [f"{_number(share(place, states), '{:.3f}%')}" for states in SPLIT.values()]

    yield from _by_kernel(found, list(SPLIT), lambda place: place.get("cpu_idle_percent") is not None, cells)


def _stalls(found: list[PhaseMeans]) -> Iterator[str]:
    """Cycles, and those that waited for data or a unit."""
    header = ["CPU_CYCLES", "BACK END BUBBLES", "100.0 * (BEB/CC)"]

    def cells(place: PhaseMeans) -> Cells:
        cycles, stalled = place.get("cpu_cycles"), place.get("stalled_cycles")
        percent = 100 * stalled / cycles if stalled is not None and cycles else None
        return _number(cycles, "{:,.0f}"), _number(stalled, "{:,.0f}"), _number(percent, "{:.1f}%")

    yield from _by_kernel(found, header, lambda place: place.get("cpu_cycles") is not None, cells)


def _by_kernel(
    found: list[PhaseMeans], header: list[str], has: Callable[[PhaseMeans], bool], cells: Callable[[PhaseMeans], Cells]
) -> Iterator[str]:
    """`NAME : figures`, a block per workload and phase; `iolab show` reads such text again."""
    having = [place for place in found if has(place)]
    for (workload, phase), of_block in groupby(having, key=lambda place: (place.workload, place.phase)):
        rows = [(place.setting, cells(place)) for place in of_block]
        first = max(len("Kernel"), *(len(setting) for setting, _ in rows))
        widths = [max(map(len, column)) for column in zip(header, *(own for _, own in rows), strict=True)]

        def line(name: str, between: str, own: Cells, first: int = first, widths: list[int] = widths) -> str:
            figures = " ".join(cell.rjust(width) for cell, width in zip(own, widths, strict=True))
            return f"{name:<{first}} {between} {figures}"

        title = f"{workload}{': ' if phase else ''}{phase}"
        rule = line("-" * first, "-", ["-" * width for width in widths])
        lines = [line("Kernel", " ", header), rule, *(line(name, ":", own) for name, own in rows)]
        yield "\n".join([title, "", *lines, ""])


def _table(title: str, groups: list[tuple[str, tuple[str, ...]]], rows: list[Cells]) -> str:
    """Columns under the headings of their groups, bars between the groups."""
    names = [name for _, columns in groups for name in columns]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    sections = []
    first = 0
    for heading, columns in groups:
        last = first + len(columns)
        room = sum(widths[first:last]) + 2 * (len(columns) - 1)
        if len(heading) > room:
            widths[last - 1] += len(heading) - room
        sections.append((heading, first, last))
        first = last

    def line(cells: Cells) -> str:
        padded = [cell.ljust(width) if not place else cell.rjust(width) for place, (cell, width) in _paired(cells)]
        return " | ".join("  ".join(padded[first:last]) for _, first, last in sections).rstrip()

    def _paired(cells: Cells) -> Iterator[tuple[int, tuple[str, int]]]:
        return enumerate(zip(cells, widths, strict=True))

    headings = " | ".join(
        heading.ljust(sum(widths[first:last]) + 2 * (last - first - 1)) for heading, first, last in sections
    )
    rule = "-+-".join("-" * (sum(widths[first:last]) + 2 * (last - first - 1)) for _, first, last in sections)
    return "\n".join([title, headings.rstrip(), line(names), rule, *(line(row) for row in rows), ""])


def _number(value: float | None, form: str) -> str:
    return ABSENT if value is None else form.format(value)
