"""What the Phoronix Test Suite prints: the trial runs of each test, below a line of its options, and their average.

Trials are rounds, a test is a workload `phoronix TEST OPTIONS`; the unit stands beside the average."""

from __future__ import annotations

import re

from iolab.files.importer.format import Format
from iolab.files.importer.metric_names import metric_of
from iolab.files.importer.quantity_cell import quantity
from iolab.files.importer.results import Results
from iolab.files.importer.source import Source
from iolab.files.importer.written_number import number

_TEST = re.compile(r"\s*+(?:pts|system|local)/(?P<test>[\w.-]{1,60}+)(?:\s++\[(?P<options>[^\]]{1,200})\])?")
_TRIAL = re.compile(r"\s++(?P<value>\d[\d.,]{0,20}+)\s*+$")
_AVERAGE = re.compile(r"\s*+Average: (?P<value>\d[\d.,]{0,20}+) (?P<unit>\S.{0,40}?)\s*+$")


def _parse(source: Source, results: Results) -> None:
    workload, trials = "phoronix", list[float]()
    for line in source.lines(results.problem):
        if found := _TEST.match(line.text):
            workload, trials = " ".join(filter(None, ("phoronix", found["test"], found["options"]))), []
        elif (found := _TRIAL.match(line.text)) and (value := number(found["value"])) is not None:
            trials.append(value)
        elif (found := _AVERAGE.match(line.text)) and (value := number(found["value"])) is not None:
            one = quantity(f"1 {found['unit']}")
            metric = (one.metric_called("latency") if one else None) or metric_of(found["unit"])[2]
            for trial in trials or [value]:
                row = results.table(line.number).row(source.stem_without_round, workload)
                row.add(metric, trial * (one.value if one else 1.0))
            trials = []


FORMAT = Format(
    name="phoronix",
    help="what the Phoronix Test Suite prints: each trial is a round",
    recognises=lambda source: source.has_line(_AVERAGE) and any(map(_TEST.match, source.text_lines)),
    parse=_parse,
    words=("pts/", "Average:", "Deviation:", "Trial Run", "Started Run"),
)
