"""elbencho's files: results (--csvfile), a row for each phase, and progress (--livecsv), a row for each interval.

Of results, the figures at the end of the last thread are read, as of its table. Of what was measured (threads, block
size, depth), what differs among the rows is part of the workload's name. Of progress, the rows of all threads together.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping

from iolab.files.importer.figures import MIB, US, phase_name
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Row
from iolab.files.importer.source import Line, Source
from iolab.files.importer.sysstat import Means, add_means, sample
from iolab.files.importer.written_number import number

WORKLOAD = "elbencho"
_RESULTS = "ISO date,label,path type,"
_LIVE = "ISO Date,Label,Phase,RuntimeMS,"
_CASES = ("hosts", "threads", "dirs", "files", "file size", "block size", "direct IO", "random", "IO depth")
_FIGURES = {
    "time ms [last]": ("elapsed_s", 1e-3),
    "entries/s [last]": ("files_per_s", 1.0),
    "IOPS [last]": ("iops", 1.0),
    "MiB/s [last]": ("rate_bytes_per_s", MIB),
    "MiB [last]": ("bytes", MIB),
    **{
        f"IO lat us [{short}]": (f"latency_ns_{name}", US)
        for short, name in (("min", "min"), ("avg", "mean"), ("max", "max"))
    },
}
_LIVE_FIGURES = {"MiB/s": ("rate_bytes_per_s", MIB), "IOPS": ("iops", 1.0), "Entries/s": ("files_per_s", 1.0)}

Fields = Mapping[str, str]


def _records(source: Source, results: Results) -> Iterator[tuple[Line, Fields]]:
    """Each row below a header, by the header's names; files that were appended to have it again."""
    names: list[str] = []
    for line in source.lines(results.problem):
        if line.text.startswith((_RESULTS, _LIVE)):
            names = next(csv.reader([line.text]))
        elif names and line.text.strip():
            cells = next(csv.reader([line.text]), [])
            if len(cells) < len(names) - 2:
                results.problem(f"{len(cells)} fields, and the header names {len(names)}: left out", line.number)
                continue
            yield line, dict(zip(names, cells, strict=False))


def _parse(source: Source, results: Results) -> None:
    records = list(_records(source, results))
    whole = [(line, fields) for line, fields in records if "operation" in fields]
    varied = [name for name in _CASES if len({fields.get(name, "") for _, fields in whole}) > 1]
    for line, fields in whole:
        case = ",".join(f"{name}={fields.get(name, '')}" for name in varied)
        setting = fields["label"] or source.stem_without_round
        workload = f"{WORKLOAD}[{case}]" if case else WORKLOAD
        row = results.table(line.number).row(setting, workload, phase_name(fields["operation"]))
        for name, (metric, scale) in _FIGURES.items():
            if (value := number(fields.get(name, ""))) is not None:
                row.add(metric, value * scale)
    _add_live(source, results, [fields for _, fields in records if "Phase" in fields])


def _add_live(source: Source, results: Results, records: list[Fields]) -> None:
    table = results.table(1)
    rows: dict[tuple[str, str], Row] = {}
    means: dict[tuple[str, str], Means] = {}
    for fields in records:
        if fields.get("Rank") != "Total":
            continue
        place = (fields["Label"] or source.stem_without_round, phase_name(fields["Phase"]))
        if place not in rows:
            rows[place], means[place] = table.row(place[0], WORKLOAD, place[1]), {}
        operations = number(fields.get("IOPS", "")) or 0.0
        for name, (metric, scale) in _LIVE_FIGURES.items():
            value = number(fields.get(name, ""))
            if value is not None and (value or metric != "files_per_s"):
                sample(means[place], metric, value * scale)
        if latency := number(fields.get("Lat IO us", "")):
            sample(means[place], "latency_ns_mean", latency * US, weight=operations)
    for place, row in rows.items():
        add_means(row, means[place], interval_s=None)


FORMAT = Format(
    name="elbencho-csv",
    help="elbencho's --csvfile, a row for each phase, and --livecsv",
    recognises=lambda source: any(line.startswith((_RESULTS, _LIVE)) for line in source.text_lines),
    parse=_parse,
    words=("ISO date", "path type", "IOPS [last]", "MiB/s [last]", "RuntimeMS"),
)
