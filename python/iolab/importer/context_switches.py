"""Lines of `NAME average context switch rate NUMBER`, as they are posted: a line per setting, per second."""

from __future__ import annotations

import re

from iolab.importer.format import Format
from iolab.importer.results import Results
from iolab.importer.source import Source
from iolab.importer.text import number

WORKLOAD = "context switches"
_LINE = re.compile(
    r"^\s*(?P<setting>\S.*?)\s+(?:average\s+)?context switch(?:es)? rate[\s:=]+(?P<rate>\d[\d,]*(?:\.\d+)?)\s*$",
    re.IGNORECASE,
)


def _parse(source: Source, results: Results) -> None:
    for line in source.lines():
        if found := _LINE.match(line.text):
            row = results.table(line.number).row(found["setting"], WORKLOAD)
            row.add("context_switches_per_s", number(found["rate"]))


FORMAT = Format(
    name="context-switches",
    help="lines of NAME average context switch rate NUMBER",
    recognises=lambda source: source.has_line(_LINE),
    parse=_parse,
    words=("context switch rate", "average context switch"),
)
