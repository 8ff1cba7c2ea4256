"""Lines of `NAME average context switch rate NUMBER`, as they are posted: a line per setting, per second."""

from __future__ import annotations

import re

from iolab.files.importer.format import Format
from iolab.files.importer.results import Results
from iolab.files.importer.source import Source
from iolab.files.importer.written_number import number

WORKLOAD = "context switches"
_RATE = re.compile(r"\scontext switch(?:es)? rate[\s:=]++(?P<rate>\d[\d,]*+(?:\.\d++)?)\s*+$", re.IGNORECASE)
_AVERAGE = re.compile(r"(?<!\S)average$", re.IGNORECASE)


def _setting_and_rate(text: str) -> tuple[str, float] | None:
    found = _RATE.search(text)
    rate = number(found["rate"].replace(",", "")) if found else None
    if found is None or rate is None:
        return None
    name = text[: found.start()].strip()
    setting = _AVERAGE.sub("", name).strip()
    return (setting or name, rate) if name else None


def _parse(source: Source, results: Results) -> None:
    for line in source.lines(results.problem):
        if found := _setting_and_rate(line.text):
            setting, rate = found
            results.table(line.number).row(setting, WORKLOAD).add("context_switches_per_s", rate)


FORMAT = Format(
    name="context-switches",
    help="lines of NAME average context switch rate NUMBER",
    recognises=lambda source: any(map(_setting_and_rate, source.text_lines)),
    parse=_parse,
    words=("context switch rate", "average context switch"),
)
