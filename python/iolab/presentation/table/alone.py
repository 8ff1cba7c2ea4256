"""What a run of one setting shows, before any table: a sentence per workload with its first figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iolab.base.plain_text import counted, listed
from iolab.base.quantity import scale_for
from iolab.domain.experiment import IMPORTED
from iolab.domain.lead import OF_DEVICE, SYNC_RATE, SYNC_TIMES
from iolab.domain.summary import Cell, Row, Summary
from iolab.presentation.table.words import beside, label, unit_of

FIGURES_MAX = 3
"""Figures that a sentence has."""
WORKLOADS_MAX = 4
"""Workloads that have a sentence."""
PARTS_MAX = 8
"""Parts of a workload that one sentence names with a figure each."""
IDLE_MAX = 4
"""Workloads without activity that are named."""
RATES = ("iops", "_per_s", "_per_min")
TELLING = (RATES, ("latency_ns_mean",), ("latency_ns_p99",), ("latency_ns_p95",), ("latency_ns_max",))
"""Ends of metrics' names, the most telling first."""
TELLING_OF_DEVICE = ((OF_DEVICE,), *TELLING[1:], RATES)
"""The same of a device that was watched: how busy it is, and how long it takes, before what was asked of it."""
SYNCS = (SYNC_RATE, *SYNC_TIMES)

Parts = dict[tuple[str, str], list[tuple["Row", "Cell"]]]
"""By workload and phase (empty: all of it, or iolab's own run), the rows that have a value."""


def alone(summary: Summary) -> list[str]:
    """A sentence per workload: its first metrics, those that are zero last, as is how long it ran if a rate is known
    and reads and writes apart if both together are, and from where to where its rounds reach. One line names the
    workloads without activity.

    Other tools' files have figures in the order in which they are printed: of these, syncs lead if there are some, then
    come rates and latencies; of devices that were watched, how busy they were leads, before what processors did. Each
    part of a workload (fio's groups, dbench's operations) has a sentence, unless the whole has a rate. Settings are
    named if there are several and no two have the same measurement: nothing is compared.
    """
    if any(row.comparisons for row in summary.rows):
        return []
    parts = _parts(summary)
    active = {place for (place, _), rows in parts.items() if any(cell.typical for _, cell in rows)}
    idle = list(dict.fromkeys(place for place, _ in parts if place not in active))
    if not active or not idle:
        return _sentences(parts)
    sentences = _sentences({part: rows for part, rows in parts.items() if part[0] in active}, named=True)
    return [*sentences, f"No activity: {listed(idle, IDLE_MAX)}."]


def _parts(summary: Summary) -> Parts:
    is_imported = summary.machine.name == IMPORTED
    parts: Parts = {}
    several = len(summary.settings) > 1
    for row in summary.rows:
        for setting, cell in row.cells.items():
            if cell.typical is not None:
                phase = row.metric.rpartition("/")[0] if is_imported else ""
                place = f"{row.place} under {setting}" if several else row.place
                parts.setdefault((place, phase), []).append((row, cell))
    if not is_imported:
        return parts
    wholes = {place for (place, phase), rows in parts.items() if not phase and any(_is_rate(row) for row, _ in rows)}
    return {
        part: sorted(
            rows, key=_rank_of_device if any(row.metric.endswith(OF_DEVICE) for row, _ in rows) else _rank_of_load
        )
        for part, rows in sorted(parts.items(), key=lambda one: _is_of_cpus(one[1]))
        if not part[1] or part[0] not in wholes
    }


def _is_of_cpus(rows: Sequence[tuple[Row, Cell]]) -> bool:
    """Whether nothing but processors was watched, which is no answer beside devices."""
    return all(row.metric.startswith("cpu_") for row, _ in rows)


def _sentences(parts: Parts, *, named: bool = False) -> list[str]:
    """A sentence per part, or per workload if there are too many. `named`: with the workload's name if it is the only
    one, too."""
    places = list(dict.fromkeys(place for place, _ in parts))
    in_full = len(parts) <= WORKLOADS_MAX or len(places) == len(parts)
    texts = list(_of_parts(parts) if in_full else _of_workloads(parts))
    with_names = [f"{place}: {text}." if (named or len(places) > 1) and place else f"{text}." for place, text in texts]
    more = len(texts) - WORKLOADS_MAX
    rest = f"And {counted(more, 'more workload')}; see the tables."
    return [*with_names[:WORKLOADS_MAX], *([rest] if more > 0 else [])]


def _of_parts(parts: Parts) -> Iterator[tuple[str, str]]:
    for (place, phase), rows in parts.items():
        has_rate = any(_is_rate(row) for row, _ in rows)
        wholes = {row.metric for row, _ in rows}
        used = [
            (row, cell)
            for row, cell in rows
            if cell.typical and not (has_rate and _is_length(row)) and _of_all(row.metric) not in wholes
        ]
        rest = [one for one in rows if one not in used]
        shown = [*used, *rest][:FIGURES_MAX]
        levels = [_level(row, cell, label(row.metric.removeprefix(f"{phase}/"))) for row, cell in shown]
        part = f"{phase.replace('_', ' ')}: " if phase else ""
        yield place, f"{part}{listed(levels)}"


def _of_workloads(parts: Parts) -> Iterator[tuple[str, str]]:
    """The first figure of each part."""
    by_place: dict[str, list[str]] = {}
    for (place, _), rows in parts.items():
        row, cell = rows[0]
        by_place.setdefault(place, []).append(_level(row, cell, label(row.metric)))
    for place, levels in by_place.items():
        yield place, listed(levels, PARTS_MAX)


def _of_all(metric: str) -> str | None:
    """Of reads or writes, the metric of both together; None for any other."""
    phase, slash, name = metric.rpartition("/")
    op, dot, of = name.partition(".")
    return f"{phase}{slash}{of}" if dot and op in ("read", "write") else None


def _is_rate(row: Row) -> bool:
    return row.metric.endswith(RATES)


def _is_length(row: Row) -> bool:
    return row.metric.endswith("elapsed_s")


def _rank_of_load(one: tuple[Row, Cell]) -> int:
    name = one[0].metric.rpartition("/")[2]
    return SYNCS.index(name) - len(SYNCS) if name in SYNCS else _rank(one)


def _rank_of_device(one: tuple[Row, Cell]) -> int:
    return _rank(one, TELLING_OF_DEVICE)


def _rank(one: tuple[Row, Cell], telling: Sequence[tuple[str, ...]] = TELLING) -> int:
    metric = one[0].metric.rpartition("/")[2].rpartition(".")[2]
    return next((rank for rank, ends in enumerate(telling) if metric.endswith(ends)), len(telling))


def _level(row: Row, cell: Cell, name: str) -> str:
    """`rate 459.2 MiB/s (410.0 to 480.3)`: typical, and the least and most of the rounds."""
    values = [value for value in cell.rounds if value is not None]
    assert cell.typical is not None, "a level is of what has one"
    scale = scale_for(unit_of(row.metric), (cell.typical,))
    spread = f" ({scale.number(min(values))} to {scale.number(max(values))})" if len(values) > 1 else ""
    return f"{name} {beside(name, scale, cell.typical)}{spread}"
