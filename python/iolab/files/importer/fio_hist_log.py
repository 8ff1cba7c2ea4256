"""fio's logs of histograms (write_hist_log): `time in ms, direction, block size, count, count, ...`.

A line has the counts of one window. The bins are those of fio's JSON: exact up to 127, then 64 for each doubling
(stat.c, plat_val_to_idx); of log_hist_coarseness N, 2^N of them are one. fio 3 counts nanoseconds; fio 2, which had
fewer bins, microseconds.
"""

from __future__ import annotations

import re
from collections import Counter

from iolab.base.errors import InputError
from iolab.base.histogram import few, known_quantile
from iolab.domain.fio_report.job import WAYS, latency_of_bin
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results
from iolab.files.importer.source import Source

BITS = 6
BINS_NS, BINS_US = 29 << BITS, 19 << BITS
COARSENESS_MAX = 6
DIRECTIONS = tuple(WAYS.values())
BEFORE = 3
"""Columns before the counts."""
_NAME = re.compile(r".*_(?P<kind>clat|slat|lat)_hist(?:\.\d{1,9})?\.log$")
_LINE = re.compile(r"\s*+\d{1,20}+,\s*+[0-3],\s*+\d{1,20}+(?>(?:,\s*+\d{1,15}+){19,}),?\s*+$")


def _parse(source: Source, results: Results) -> None:
    named = _NAME.match(source.file_name)
    counts: dict[int, Counter[int]] = {}
    step, us = 0, False
    for line in source.lines(results.problem):
        if not _LINE.match(line.text):
            if line.text.strip():
                results.problem("no line of a log of histograms, left out", line.number)
            continue
        cells = line.text.rstrip(", \t").split(",")
        found = _bins(len(cells) - BEFORE)
        if found is None or (step and found != (step, us)):
            results.problem(f"{len(cells) - BEFORE:,} counts, not as many as fio has bins: left out", line.number)
            continue
        step, us = found
        bins = counts.setdefault(int(cells[1]), Counter())
        for place, cell in enumerate(cells[BEFORE:]):
            if cell.strip() != "0":
                bins[place] += int(cell)
    if not counts:
        raise InputError("no line of a log of histograms", where=source.name, remedy="expected fio's write_hist_log")
    kind = named["kind"] if named else "clat"
    row = results.table(1).row(source.stem_without_round, f"fio {kind} histogram log")
    for direction, bins in sorted(counts.items()):
        op = DIRECTIONS[direction]
        at = {place: _middle_ns(place, step, us) for place in bins}
        ops = sum(bins.values())
        if not ops:
            continue
        row.add("ops", float(ops), op=op)
        row.add("latency_ns_mean", sum(at[place] * count for place, count in bins.items()) / ops, op=op)
        buckets = [(at[place], count) for place, count in sorted(bins.items())]
        for short, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)):
            value = known_quantile([(ns, ns, count) for ns, count in buckets], share, buckets[-1][0])
            row.add(f"latency_ns_{short}", value, op=op, absent=few(share))
        row.histogram(buckets, op=op)


def _bins(count: int) -> tuple[int, bool] | None:
    """How many of fio's bins each count is of, and whether they are of microseconds."""
    for whole, us in ((BINS_NS, False), (BINS_US, True)):
        for coarseness in range(COARSENESS_MAX + 1):
            if count == whole >> coarseness:
                return 1 << coarseness, us
    return None


def _middle_ns(place: int, step: int, us: bool) -> int:
    first, last = latency_of_bin(place * step, BITS), latency_of_bin(place * step + step - 1, BITS)
    return (first + last) // 2 * (1000 if us else 1)


FORMAT = Format(
    name="fio-hist-log",
    help="fio's write_hist_log: latency counts by window",
    recognises=lambda source: source.has_line(_LINE),
    parse=_parse,
    words=("_clat_hist.", ".log"),
    among_text=False,
)
