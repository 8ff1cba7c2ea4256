"""CSV files whose columns are rounds: `setting,run1,run2,run3`, `test,iops_1,iops_2`, `kernel,run1_lat,run2_lat`.

The metric stands in the columns' names, else in a column of metrics, else in the row's own name if that is one; the
other columns of text are setting and workload. Means and deviations beside the rounds are left out.
"""

from __future__ import annotations

import csv
import re
from typing import NamedTuple

from iolab.base.errors import InputError
from iolab.domain.metric import METRICS
from iolab.files.importer.columns import OF_RESULT, OF_TEST, unit_in
from iolab.files.importer.csv_layout import METRIC_COLUMN, ROUND, SETTING, WORKLOAD, head_rows
from iolab.files.importer.format import Format
from iolab.files.importer.metric_names import metric_of
from iolab.files.importer.quantity_cell import LATENCY, quantities_below, ways_in, without_unit
from iolab.files.importer.results import Results
from iolab.files.importer.source import Source
from iolab.files.importer.text import QUOTED_MAX

OF_NO_NAME = "value"
_ROUND = re.compile(
    r"(?:(?P<before>.{1,60}?)[ _.:-]{1,3})?(?:round|run|iteration|iter|repeat|rep|trial|(?P<test>test)|r|#)[ _.-]?"
    r"(?P<number>\d{1,4})(?:[ _.:-]{1,3}(?P<after>.{1,60}))?",
    re.IGNORECASE,
)
_OF_METRIC = re.compile(r"(?P<before>.{1,60}?)[ _.-](?P<number>\d{1,4})", re.IGNORECASE)
"""`iops_1`: of a metric, which may be followed by a number of another kind elsewhere."""
_OF_ALL = re.compile(r"\b(?:avg|average|mean|median|std\w*)\b", re.IGNORECASE)
"""What a column is called that sums up those beside it."""


class _Rounds(NamedTuple):
    """Which column is what."""

    separator: str
    names: list[str]
    labels: list[int]
    """Columns of text, by place."""
    rounds: dict[int, tuple[int, str]]
    """Place -> number of the round, and the metric's name; empty if the column has none."""
    left_out: list[str]


def _round_of(name: str, *, may_be_test: bool) -> tuple[int, str] | None:
    if (found := _ROUND.fullmatch(name)) and (may_be_test or not found["test"]):
        return int(found["number"]), (found["before"] or found["after"] or "").strip()
    found = _OF_METRIC.fullmatch(name)
    return (int(found["number"]), found["before"]) if found and OF_RESULT.search(found["before"]) else None


def _layout(source: Source) -> _Rounds | None:
    try:
        _, separator, (header, *body) = head_rows(source)
    except InputError:
        return None
    names = [name.strip() for name in header]
    rows = [row for row in body if len(row) == len(names)]
    if any(name.lower() in ROUND for name in names):
        return None
    # Tests are of one thing if somebody made a mean of them.
    of_one = any(map(_OF_ALL.search, names))
    rounds = {place: found for place, name in enumerate(names) if (found := _round_of(name, may_be_test=of_one))}
    by_metric: dict[str, list[int]] = {}
    for number, metric in rounds.values():
        by_metric.setdefault(metric, []).append(number)
    numbered = all(
        len(numbers) > 1 and sorted(numbers) == list(range(min(numbers), min(numbers) + len(numbers)))
        for numbers in by_metric.values()
    )
    if not rounds or not rows or not numbered or any(min(numbers) > 1 for numbers in by_metric.values()):
        return None
    others = [place for place in range(len(names)) if place not in rounds]
    known = {*SETTING, *WORKLOAD, *METRIC_COLUMN}
    labels = [
        place
        for place in others
        if names[place].lower() in known or not all(quantities_below(row[place], "") for row in rows if row[place])
    ]
    filled = all(not row[place].strip() or quantities_below(row[place], "") for row in rows for place in rounds)
    left_out = [names[place] for place in others if place not in labels]
    return _Rounds(separator, names, labels, rounds, left_out) if filled and len(labels) <= len(rounds) else None


def _place(layout: _Rounds, known: tuple[str, ...]) -> int | None:
    return next((place for place in layout.labels if layout.names[place].lower() in known), None)


def _parse(source: Source, results: Results) -> None:
    layout = _layout(source)
    if layout is None:
        raise InputError("no columns of rounds", where=source.name, remedy="expected such as setting,run1,run2,run3")
    if layout.left_out:
        results.problem(f"columns beside the rounds are left out: {', '.join(layout.left_out)[:QUOTED_MAX]}")
    setting, workload, metric = (_place(layout, known) for known in (SETTING, WORKLOAD, METRIC_COLUMN))
    free = [place for place in layout.labels if place not in (setting, workload, metric)]
    rows = _rows(source, layout)
    if metric is None:
        metric = next((place for place in free if all(map(_is_metric, (row[place] for row in rows)))), None)
        free = [place for place in free if place != metric]
    if setting is None and free:
        setting = free.pop(0)
    of_all = {name for _, name in layout.rounds.values()}
    cases = setting if metric is None and len(of_all) > 1 and not any(map(_says_metric, of_all)) else None
    if cases is not None and not all(OF_TEST.search(row[cases]) for row in rows):
        cases = None
    table = results.table(source.first_line)
    for place in sorted(layout.rounds, key=lambda place: layout.rounds[place]):
        of_columns = layout.rounds[place][1]
        for row in rows if cases is not None else ():
            found = quantities_below(row[place], layout.names[cases or 0])
            key = found[0].metric if found and found[0].metric not in (None, "ns") else None
            made = table.row(of_columns, row[cases or 0])
            made.add(key or OF_NO_NAME, found[0].value if found else None, absent="empty in the file")
        for row in rows if cases is None else ():
            parts = [row[one] for one in (workload, *free) if one is not None and row[one]]
            named = row[metric] if metric is not None else of_columns or OF_NO_NAME
            label = " ".join((named, *parts))
            found = quantities_below(row[place], named) and quantities_below(row[place], f"{named} {unit_in(label)}")
            phase, op, plain = metric_of(without_unit(named).strip())
            called = found[0].metric_called(label) if found else None
            said = label if called else named
            op = next(iter(ways_in(said)), op)
            made = table.row(
                source.stem_without_round if setting is None else row[setting], " ".join(parts) or "csv", phase
            )
            key = called or ("iops" if "iops" in plain.lower() else plain)
            made.add(key, found[0].value if found else None, op=op, absent="empty in the file")


def _rows(source: Source, layout: _Rounds) -> list[list[str]]:
    begin = head_rows(source)[0]
    lines = source.whole().encode()[begin:].decode(errors="replace").splitlines()
    found = csv.reader(lines, delimiter=layout.separator)
    return [[entry.strip() for entry in row] for row in found if len(row) == len(layout.names)]


def _says_metric(name: str) -> bool:
    return not name or _is_metric(name) or bool(LATENCY.search(name) or unit_in(name) or OF_TEST.search(name))


def _is_metric(name: str) -> bool:
    return metric_of(name)[2] in METRICS or bool(OF_RESULT.search(name))


FORMAT = Format(
    name="csv-rounds",
    help="a CSV file whose columns are rounds of one metric or several",
    recognises=lambda source: _layout(source) is not None,
    parse=_parse,
    words=("run1", "run2", "run3"),
    among_text=False,
)
