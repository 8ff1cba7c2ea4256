"""A sweep as one table, a line per value of the parameter, and one sentence that states where its knee is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from iolab.base.plain_text import counted
from iolab.base.quantity import change, scale_for
from iolab.domain.matrix_axis import FLAT_BELOW, LATENCIES, knee_of, main_metric, rounds_along, rows_of, sweeps, values
from iolab.presentation.table.layout import Footnotes
from iolab.presentation.table.words import beside, label, unit_of

if TYPE_CHECKING:
    from rich.table import Table

    from iolab.base.strict_json import JsonObject
    from iolab.domain.matrix_axis import Line, Point, Sweep
    from iolab.domain.summary import Levels, Row

METRICS_MAX = 4
"""Metrics that the table has columns for; the report has all."""
LINES_TOLD_MAX = 4
KNEE_CHARACTERS_MAX = 40
LINES_MAX = 6
"""Lines of a sweep that a table has room for; of more, each workload keeps a table of its own."""


def title(sweep: Sweep) -> str:
    """`reads over queue_depth`."""
    return f"{sweep.name} over {sweep.parameter}" if sweep.name else f"over {sweep.parameter}"


def table(sweep: Sweep, summary: Levels, footnotes: Footnotes) -> Table:
    """Columns: the parameter, then for each metric a value per line of the sweep, with the change and the verdict of
    those that were compared."""
    return _table(sweep, summary, footnotes, list(_measured(sweep, summary).items())[:METRICS_MAX])


def tables_by_metric(sweep: Sweep, summary: Levels, footnotes: Footnotes) -> list[Table]:
    """The same as a table per metric, for a narrow console."""
    return [_table(sweep, summary, footnotes, [one]) for one in _measured(sweep, summary).items()]


def tables_by_line(sweep: Sweep, summary: Levels, footnotes: Footnotes) -> list[Table]:
    """The same as a table per metric and line, for a console narrower still."""
    lines = [replace(sweep, lines=[line]) for line in sweep.lines]
    return [_table(one, summary, footnotes, [rows]) for rows in _measured(sweep, summary).items() for one in lines]


def absent(sweep: Sweep, summary: Levels) -> list[str]:
    """`latency p99: the trial failed`, of each metric that no point has."""
    measured = _measured(sweep, summary)
    return [
        f"{label(metric)}: {'; '.join(_reasons(rows)) or 'no trial has a value'}"
        for metric, rows in rows_of(sweep, summary).items()
        if metric not in measured
    ]


def has_values(sweep: Sweep, summary: Levels) -> bool:
    """Whether some point has some metric."""
    return bool(_measured(sweep, summary))


def _reasons(rows: Mapping[str, Row]) -> dict[str, None]:
    return dict.fromkeys(cell.reason for row in rows.values() for cell in row.cells.values() if cell.reason)


def _measured(sweep: Sweep, summary: Levels) -> dict[str, dict[str, Row]]:
    """By metric, those that some point has; first what the sweep's sentence is about."""
    found = rows_of(sweep, summary)
    first = [sweep.throughput(list(found)), main_metric(list(found), LATENCIES)]
    return {
        metric: found[metric]
        for metric in dict.fromkeys([*filter(None, first), *found])
        if any(one is not None for line in sweep.lines for one in values(line, found[metric]))
    }


def _table(sweep: Sweep, summary: Levels, footnotes: Footnotes, shown: Sequence[tuple[str, dict[str, Row]]]) -> Table:
    from rich import box
    from rich.table import Table

    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    drawn.add_column(sweep.parameter, justify="right", no_wrap=True)
    scales = {}
    for metric, rows in shown:
        scale = scales[metric] = scale_for(unit_of(metric), (one for line in sweep.lines for one in values(line, rows)))
        unit = f", {scale.suffix}" if scale.suffix and scale.suffix not in label(metric) else ""
        for line in sweep.lines:
            below = f"\n{line.name}".replace(", ", "\n") if line.name else ""
            heading = f"{label(metric)}{unit}{below}"
            drawn.add_column(heading, justify="right", no_wrap=True)
    knees = knee_texts(sweep, summary)
    if knees:
        drawn.add_column("", no_wrap=True)
    for text in sweep.texts:
        cells = []
        for metric, rows in shown:
            for line in sweep.lines:
                point = next((one for one in line.points if one.text == text), None)
                cells.append("" if point is None else _cell(point, rows, scales[metric].number, footnotes))
        drawn.add_row(text, *cells, *([knees.get(text, "")] if knees else []))
    return drawn


NEARLY = 0.9
"""The part of the highest rate whose first value is named if no knee is shown."""


def sentences(summary: Levels) -> list[str]:
    """What each sweep of the summary comes to; none for a sweep without a throughput."""
    return [text for one in sweeps(summary) if (text := sentence(one, summary))]


def as_dicts(summary: Levels) -> list[JsonObject]:
    """The sweeps for programs, those without a sentence too."""
    return [
        {"name": one.name, "parameter": one.parameter, "values": one.texts, "text": sentence(one, summary)}
        for one in sweeps(summary)
    ]


def sentence(sweep: Sweep, summary: Levels) -> str | None:
    """The point at which the throughput stops rising, and the latency beyond it; None without a throughput."""
    by_metric = rows_of(sweep, summary)
    throughput = sweep.throughput(list(by_metric))
    if throughput is None:
        return None
    sentences = [_of_line(line, by_metric, throughput) for line in sweep.lines[:LINES_TOLD_MAX]]
    more = len(sweep.lines) - LINES_TOLD_MAX
    rest = f"; {counted(more, 'more line')} in the table" if more > 0 else ""
    return f"{title(sweep)}: {'; '.join(sentences)}{rest}."


def knee_texts(sweep: Sweep, summary: Levels) -> dict[str, str]:
    """By value of the parameter: `knee`, with the names of the lines that have theirs there, if not all do."""
    by_metric = rows_of(sweep, summary)
    throughput = sweep.throughput(list(by_metric))
    found: dict[str, list[str]] = {}
    for line in sweep.lines if throughput else ():
        if (at := knee_of(line, by_metric[throughput or ""])) is not None:
            found.setdefault(line.points[at].text, []).append(line.name)
    return {text: _knee_of(names, len(sweep.lines)) for text, names in found.items()}


def _knee_of(names: list[str], lines: int) -> str:
    if len(names) == lines:
        return "knee"
    knees = f"knee: {'; '.join(names)}"
    return knees if len(knees) <= KNEE_CHARACTERS_MAX else f"knee of {len(names)} of {counted(lines, 'line')}"


def curve(line: Line, rows: dict[str, Row]) -> tuple[list[Point], list[float]]:
    """The line's points that have a value, and the values."""
    pairs = [(point, one) for point, one in zip(line.points, values(line, rows), strict=True) if one is not None]
    return [point for point, _ in pairs], [one for _, one in pairs]


def _of_line(line: Line, by_metric: dict[str, dict[str, Row]], throughput: str) -> str:
    points, heights = curve(line, by_metric[throughput])
    prefix = f"{line.name}: " if line.name else ""
    name = label(throughput)
    if not heights or max(heights) <= 0:
        return f"{prefix}no value of {name}"
    scale = scale_for(unit_of(throughput), heights)
    if len(heights) == 1:
        return f"{prefix}{name} is {beside(name, scale, heights[0])}, at {points[0].text} alone"
    if min(heights) > 0 and max(heights) / min(heights) < FLAT_BELOW:
        ends = list(dict.fromkeys(beside(name, scale, end) for end in (min(heights), max(heights))))
        return f"{prefix}{name} is {' to '.join(ends)} at all values"
    best = max(range(len(heights)), key=heights.__getitem__)
    knee = knee_of(line, by_metric[throughput])
    if knee is None:
        near = next(place for place, height in enumerate(heights) if height >= NEARLY * heights[best])
        early = f", {100 * heights[near] / heights[best]:.0f} % of it at {points[near].text}" if near != best else ""
        highest = f"{points[best].text}, {beside(name, scale, heights[best])}"
        latency = "".join(_latency(points, by_metric, line, best, max(0, best - 1)))
        text = f"{prefix}{name} is highest at {highest}{early}"
        rounds = (sum(one is not None for one in of) for of in rounds_along(line, by_metric[throughput]))
        return f"{text}{latency}; one round shows no knee" if max(rounds) == 1 else f"{text}, without a knee{latency}"
    at = points.index(line.points[knee])
    share = f"{100 * heights[at] / heights[best]:.0f} % of the highest"
    text = f"{prefix}more than {points[at].text} does not pay: {name} {beside(name, scale, heights[at])}, {share}"
    return text + "".join(_latency(points, by_metric, line, at, len(points) - 1))


def _latency(
    points: list[Point], by_metric: dict[str, dict[str, Row]], line: Line, at: int, beside_at: int
) -> Iterator[str]:
    """What the latency is at the point that the sentence is about, and at another."""
    latency = main_metric(list(by_metric), LATENCIES)
    if latency is None:
        return
    by_text = {point.text: one for point, one in zip(line.points, values(line, by_metric[latency]), strict=True)}
    here, there = by_text.get(points[at].text), by_text.get(points[beside_at].text)
    if here:
        yield f", at a {label(latency)} of {scale_for(unit_of(latency), [here]).with_unit(here)}"
    if here and there and at != beside_at:
        value = scale_for(unit_of(latency), [there]).with_unit(there)
        yield f" ({value} at {points[beside_at].text})"


def _cell(point: Point, rows: dict[str, Row], number: Callable[[float | None], str], footnotes: Footnotes) -> str:
    row = rows.get(point.workload)
    cell = row.cells.get(point.setting) if row else None
    if cell is not None and cell.typical is None and cell.reason:
        return f"{number(None)} {footnotes.mark(cell.reason)}"
    text = number(cell.typical if cell else None)
    comparison = row.comparisons.get(point.setting) if row else None
    if comparison is None or comparison.judgement.ratio is None:
        return text
    return f"{text} {change(comparison.judgement.ratio)} {comparison.judgement.verdict}"
