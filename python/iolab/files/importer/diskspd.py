"""DiskSpd's results, as text or XML (-Rxml): a row for all threads; reads and writes apart.

MiB and MB/s are 2^20 bytes, latencies milliseconds.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from iolab.base.errors import InputError
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results, Row
from iolab.files.importer.source import Source
from iolab.files.importer.written_number import number

MIB, MS = 2.0**20, 1e6
WORKLOAD = "diskspd"
QUANTILES = {f"{percent}th": f"p{percent}" for percent in (25, 50, 75, 90, 95, 99)}
QUANTILES |= {"3-nines": "p999", "4-nines": "p9999"}
BEYOND = "percentiles of five nines and more are left out"
EXTREMES = {"min": "min", "max": "max"}
OPS = {"Total": "all", "Read": "read", "Write": "write"}
_SECTION = re.compile(r"(?P<what>Total|Read|Write) IO\s*+$")
_TOTAL = re.compile(r"total:\s*+(?P<cells>\d[\d.\s|]*+)$")
_HEADER = re.compile(r"thread\s*+\|(?P<columns>\s*+bytes\s*+\|.*)")
_COLUMNS = {
    "bytes": ("bytes", 1.0),
    "I/Os": ("ops", 1.0),
    "MiB/s": ("rate_bytes_per_s", MIB),
    "MB/s": ("rate_bytes_per_s", MIB),
    "I/O per s": ("iops", 1.0),
    "AvgLat": ("latency_ns_mean", MS),
    "LatStdDev": ("latency_ns_stddev", MS),
}
"""Those of latencies need -L; with -D there is one more, which is not read."""
_THREAD = re.compile(r"\s*+\d++\s*+\|(?>(?:\s*+[\d.]++\s*+\|){4,})")
_PERCENTILES = re.compile(r"\s*+%-ile\s*+\|\s*+Read \(ms\)")
_QUANTILE = re.compile(r"\s*+(?P<which>[\w-]++)\s*+\|(?P<cells>[^|]*+\|[^|]*+\|[^|]*+)$")
_TIME = re.compile(r"(?:actual )?test time:\s++(?P<seconds>[\d.]++)s")
_BEGIN = re.compile(r"(?:Command Line:|Input parameters:)")
_XML = re.compile(r"\s*+(?:<\?xml[^>]*+>\s*+)?<Results>")


def _parse(source: Source, results: Results) -> None:
    if _XML.match(source.head):
        _parse_xml(source, results)
    else:
        _parse_text(source, results)


def _parse_text(source: Source, results: Results) -> None:
    row: Row | None = None
    has_percentiles = False
    op, seconds = "", None
    columns = list(_COLUMNS)
    last = None
    for line in source.lines(results.problem):
        last = line.number if op and _THREAD.match(line.text) else last
        if _BEGIN.match(line.text.strip()):
            row = None
        elif found := _TIME.match(line.text.strip()):
            row, seconds = None, number(found["seconds"])
        elif found := _SECTION.match(line.text.strip()):
            op = OPS[found["what"]]
        elif found := _HEADER.match(line.text.strip()):
            columns = [name.strip() for name in found["columns"].split("|")]
            # A table that somebody took out of a report has no line above it that says of what it is.
            row, op = (row, op) if op else (None, OPS["Total"])
        elif op and (found := _TOTAL.match(line.text.strip())):
            if row is None:
                row, has_percentiles = results.table(line.number).row(source.stem_without_round, WORKLOAD), False
                row.add("elapsed_s", seconds)
            for column, cell in zip(columns, found["cells"].split("|"), strict=False):
                value = number(cell.strip())
                if column == "bytes" and op != "all" and value == 0:
                    break
                if known := _COLUMNS.get(column):
                    metric, scale = known
                    row.add(metric, None if value is None else value * scale, op=op)
            op, last = "", None
        elif _PERCENTILES.match(line.text):
            if row is None or has_percentiles:
                row = results.table(line.number).row(source.stem_without_round, WORKLOAD)
            has_percentiles = True
        elif row is not None and (found := _QUANTILE.match(line.text)):
            name = QUANTILES.get(found["which"]) or EXTREMES.get(found["which"])
            if name is None and found["which"].endswith("-nines"):
                results.problem(BEYOND)
            for one, cell in zip(("read", "write", "all"), found["cells"].split("|"), strict=True):
                if name and (value := number(cell.strip())) is not None:
                    row.add(f"latency_ns_{name}", value * MS, op=one)
    if op and last is not None:
        results.problem("the text ends before the line of totals, which DiskSpd prints below its threads", last)


def _parse_xml(source: Source, results: Results) -> None:
    text = source.whole()
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InputError("XML with a document type, which DiskSpd does not write", where=source.name)
    try:
        root = ElementTree.fromstring(text.strip().lstrip("\ufeff"))
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError(f"no whole XML ({error})", where=source.name, remedy="was it cut off?") from None
    for span in root.iter("TimeSpan"):
        row = results.table(1).row(source.stem_without_round, WORKLOAD)
        seconds = _of(span, "TestTimeSeconds")
        row.add("elapsed_s", seconds)
        targets = [target for thread in span.iter("Thread") for target in thread.iter("Target")]
        for op, name in (("all", "IO"), ("read", "Read"), ("write", "Write")):
            ops = [_of(target, f"{name}Count") for target in targets]
            size = [_of(target, "BytesCount" if op == "all" else f"{name}Bytes") for target in targets]
            _add_sums(
                row, op, [one for one in ops if one is not None], [one for one in size if one is not None], seconds
            )
        latency = span.find("Latency")
        if latency is not None:
            _add_latency(row, latency)


def _add_sums(row: Row, op: str, ops: list[float], size: list[float], seconds: float | None) -> None:
    if not ops or (op != "all" and not sum(ops)):
        return
    row.add("ops", sum(ops), op=op)
    row.add("iops", sum(ops) / seconds if seconds else None, op=op)
    if size:
        row.add("bytes", sum(size), op=op)
        row.add("rate_bytes_per_s", sum(size) / seconds if seconds else None, op=op)


def _add_latency(row: Row, latency: ElementTree.Element) -> None:
    for what, op in OPS.items():
        for name, metric in ((f"Average{what}Milliseconds", "mean"), (f"{what}LatencyStdev", "stddev")):
            if (value := _of(latency, name)) is not None:
                row.add(f"latency_ns_{metric}", value * MS, op=op)
    wanted = {"0": "min", "100": "max", **{str(percent): f"p{percent}" for percent in (25, 50, 75, 90, 95, 99)}}
    wanted |= {"99.9": "p999", "99.99": "p9999"}
    for bucket in latency.iter("Bucket"):
        short = wanted.get((bucket.findtext("Percentile") or "").strip())
        for what, op in OPS.items():
            if short and (value := _of(bucket, f"{what}Milliseconds")) is not None:
                row.add(f"latency_ns_{short}", value * MS, op=op)


def _of(element: ElementTree.Element, name: str) -> float | None:
    return number((element.findtext(name) or "").strip())


def _recognises(source: Source) -> bool:
    if _XML.match(source.head):
        return "<TimeSpan>" in source.head or "<Profile>" in source.head
    table = re.compile(r"\s*+thread \|\s++bytes\s++\|\s++I/Os\s++\|")
    return source.has_line(table) or source.has_line(_PERCENTILES)


FORMAT = Format(
    name="diskspd",
    help="DiskSpd's results, as text or XML",
    recognises=_recognises,
    parse=_parse,
    words=("thread |", "I/Os", "MiB/s", "I/O per s", "AvgLat", "<TimeSpan>", "%-ile"),
    among_text=False,
    titled=True,
)
