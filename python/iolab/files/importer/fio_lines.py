"""Single lines of fio's rates, shortened by whoever posted them: `read: IOPS=4257, BW=16.6MiB/s`, also behind a name.
Those that state amount and time are read as fio's output is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from iolab.files.importer.figures import Rule, figures_format, of, rule
from iolab.files.importer.listed import SETTING
from iolab.files.importer.source import Source
from iolab.files.importer.titles import NUMBERED_ROUND

_FIGURES = (
    r"IOPS=(?P<iops>[\d.]{1,20}+)(?P<iops_unit>[kM]?),? BW=(?P<rate>[\d.]{1,20}+)(?P<rate_unit>[KMG]?i?B)/s"
    r"(?: \([\d.]++ ?[kKMG]?B/s\))?(?:\s+[^\w\s]{1,20}+)?\s*+$"
)
_WAY = r"(?:read|write)\s*+: ?"
_LABEL = rf"(?:(?:{NUMBERED_ROUND}|(?P<setting>(?i:{SETTING.pattern}))|(?P<workload>[^\s:=][^:=]{{0,60}}?))\s*+:\s*+)"
"""A name of what was changed, such as a filesystem, or of what was done, or the number of a round."""
_MORE = re.compile(r"\b(?:[sc]?lat|sync)\s*+(?:percentiles )?\([mun]sec\)|\d\.\d+th=\[")
"""Latencies, whose jobs are not in such a text. Wherever they stand: lines may have been joined."""


def _rules() -> Iterator[Rule]:
    for op in ("read", "write"):
        yield rule(
            rf"{_LABEL}?{op}\s*+: ?{_FIGURES}",
            iops=of("iops", op=op),
            rate=of("rate_bytes_per_s", op=op),
        )
    yield rule(_LABEL + _FIGURES, iops=of("iops"), rate=of("rate_bytes_per_s"))


_ALL = figures_format(
    "fio-lines",
    "single lines of fio's rates without amount and time: IOPS= and BW=",
    recognised_by=re.sub(r"\(\?P<(?:setting|workload)>", "(?:", rf"(?:{_LABEL}(?:{_WAY})?|{_WAY}){_FIGURES}"),
    words=("IOPS=", "BW="),
    rules=list(_rules()),
    titled=True,
)


def _recognises(source: Source) -> bool:
    return _ALL.recognises(source) and not any(map(_MORE.search, source.text_lines))


FORMAT = replace(_ALL, recognises=_recognises)
