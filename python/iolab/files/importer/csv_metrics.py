"""CSV files whose rows are metrics and whose columns are settings, as spreadsheets have them: `metric,none,bfq`. They
are read as such a table of Markdown is."""

from __future__ import annotations

import csv

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.files.importer.csv_layout import METRIC_COLUMN, head_rows
from iolab.files.importer.format import Format
from iolab.files.importer.quantity_cell import quantities
from iolab.files.importer.results import Results
from iolab.files.importer.source import Source
from iolab.files.importer.text import ABSENT
from iolab.files.importer.text_table import add


def _has_metrics(source: Source) -> bool:
    """Whether the first column says that rows are metrics."""
    try:
        _, _, (header, *body) = head_rows(source)
    except InputError:
        return False
    return header[0].strip().lower() in METRIC_COLUMN and bool(body) and len(header) > 1


def _parse(source: Source, results: Results) -> None:
    begin, separator, (header, *_) = head_rows(source)
    names = [name.strip() for name in header]
    lines = source.whole().encode()[begin:].decode(errors="replace").splitlines()
    rows = [[entry.strip() for entry in row] for row in csv.reader(lines, delimiter=separator) if row]
    whole = [row for row in rows if len(row) == len(names)]
    if len(whole) < len(rows):
        uneven = counted(len(rows) - len(whole), "line")
        results.problem(f"{uneven} with other numbers of fields than the header: left out")
    texts = {place for place in range(1, len(names)) if not any(map(_is_figure, (row[place] for row in whole)))}
    kept = [place for place in range(len(names)) if place not in texts or names[place].lower() in ("unit", "units")]
    label = [" ".join([row[0], *(row[place] for place in sorted(texts - set(kept)))]).strip() for row in whole]
    table = [[name, *(row[place] for place in kept[1:])] for name, row in zip(label, whole, strict=True)]
    add(results.table(source.first_line), [names[place] for place in kept], table, source, results)


def _is_figure(entry: str) -> bool:
    return entry.lower() not in ABSENT and bool(quantities(entry))


FORMAT = Format(
    name="csv-metrics",
    help="a CSV file whose rows are metrics and whose columns are settings",
    recognises=_has_metrics,
    parse=_parse,
    words=("metric,",),
    among_text=False,
)
