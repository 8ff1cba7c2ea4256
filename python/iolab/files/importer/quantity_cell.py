"""Numbers with their units, as people write them into tables: `151.0 MB/s`, `65.5k`, `1.2 ms`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from iolab.files.importer.durations import seconds
from iolab.files.importer.written_number import number

THINGS = (
    r"(?i:file|op|operation|req|request|object|obj|IO|io|transaction|txn?|completion|commit|event|insert|elem|row|record"
    r"|fsync|sync|message|msg|key|val|value|item|page|call|lookup|create|delete|read|write|stat|seek|iter(?:ation)?)"
)
_CELL = re.compile(
    r"(?P<number>[-+]?[\d.,]{1,40}+(?>(?:e[-+]\d{1,3}+)?))\s*+"
    rf"(?P<unit>(?:[kKMG] ?)?{THINGS}s?/s(?:ec)?"
    rf"|[mnuµμ]?s/{THINGS}|(?:micro|milli|nano)?seconds?|[a-zA-Zµμ%]{{0,6}}+(?i:/s(?:ecs?)?|/seconds?|ps)?)\Z"
)
SPACED = re.compile(r"(?<!\S)[-+~]?(?P<digits>\d{1,3}(?:[ '\u2009\u2019\u202f]\d{3})+)(?![\d'\u2019])")
SPACED_NUMBER = r"\d{1,3}(?>(?:[ \u2009\u202f]\d{3})+)(?!\d)"
ALIKE = 2.0
"""Figures that differ by no more may be runs: `212 209`. Chosen."""
_TWO = re.compile(
    r"(?P<first>[^()]{1,40}?)\s*+\((?P<inside>[^()]{1,40})\)\Z"
    r"|(?P<before>[^()/]{1,40}(?:/s)?) / (?P<after>[^()]{1,40})\Z"
)
_ABOUT = re.compile(r"(?:[~≈]|(?:about|approx(?:imately|\.)?|roughly|around|ca\.?) )\s*+", re.IGNORECASE)
_OF_HEADER = re.compile(
    r"\s*[(\[](?P<unit>[^()\[\]\d]{1,12})[)\]]\s*:?\s*$"
    r"|(?:^|[\s,_]|\sin\s)(?P<bare>[kKMGT]?i?(?:B|bits?)/s(?:ec)?|(?<=\S\s)[mnuµμ]s(?:ec)?|(?<=\sin\s)s)\s*:?\s*$"
)
"""`Bandwidth (MiB/s)`, `Bandwidth in MiB/s`, `p99 us`."""
WAY = r"(?:(?<!th)read(?!-?_?ahead)|write(?!-?_?(?:back|through|around|cache)))"
"""What was done, in a name, and no mode of a cache."""
_SHARE = re.compile(rf"(?<![\d.])(?P<share>\d{{1,3}}(?:\.\d+)?) ?% (?P<way>{WAY})", re.IGNORECASE)
REQUESTS_PER_S = ("tps", "qps", "rps")
AS_ROUNDED = 0.03
"""By so much `15,425 MB/s` and `(15.4 GB/s)` may differ. Chosen."""
_APART = re.compile(r"(?<=[kKM]) (?=IOPS|[tqr]ps)", re.IGNORECASE)
OPERATION_BYTES_MIN, OPERATION_BYTES_MAX = 500, 1 << 24
"""Of an operation, to which a count and a rate beside it have to come. Chosen."""
_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "m": 1e6, "M": 1e6, "G": 1e9}
_BYTES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40}
_OF_RATE = re.compile(r"\b(?:bw|bandwidth|throughput|iops|c?lat(?:ency)?)\b", re.IGNORECASE)
_AMOUNT = re.compile(r"[\d.,]{1,20} ?[kKMGT]i?B")
"""`25.4MB` below `BW` is a rate."""
_LONG = (("nano", "ns"), ("micro", "us"), ("milli", "ms"), ("", "s"))
_TIMES = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "usec": 1e3, "ms": 1e6, "msec": 1e6, "s": 1e9, "sec": 1e9}
_TIMES |= {f"{unit}s": _TIMES[unit] for unit in ("usec", "msec", "sec")}
_TIMES |= {f"{word}second{end}": _TIMES[unit] for word, unit in _LONG for end in ("", "s")}
_EACH = re.compile(rf"(?P<prefix>[kKMG]?) ?{THINGS}s?/s(?:ec)?|(?P<time>[mnuµμ]?s)/{THINGS}")
"""`25.8 files/s`, `38.80 ms/file`."""
LATENCY = re.compile(
    r"(?:\b|_)c?lat(?:\b|_)|c?latenc(?:y|ies)(?![a-z])|(?:\b|_)(?:access|response|resp|seek|service)[ _]?time(?:\b|_)",
    re.IGNORECASE,
)
_PERCENTILE = re.compile(
    r"(?<![a-z0-9])(?:p(?P<after>\d\d(?:[._]?9{1,2})?)"
    r"|(?<!\.)(?P<before>\d\d(?:\.(?:9{1,2}|00?))?)(?:(?:th|%)(?:-?ile)?|(?= percentile)))(?![0-9.])",
    re.IGNORECASE,
)
_AMONG = re.compile(r"[,;]\s+|\s+/\s+")
_NAMED = re.compile(
    r"(?P<name>p\d\d(?:[._]\d{1,2})?|(?:avg|mean|median|min|max)(?: c?lat(?:ency)?)?|c?lat(?:ency)?)"
    r"\s*+[:=]?\s*+(?P<figure>[~\d].{1,40})",
    re.IGNORECASE,
)
_RATE_NAMED = re.compile(r"(?:(?P<iops>IOPS)|BW|bandwidth) ?[=:] ?(?P<figure>~?\d\S{0,20})", re.IGNORECASE)
_NAMED_BEHIND = re.compile(
    r"(?P<figure>~?\d[\d.,]{0,20} ?[mnuµμ]?s(?:ec)?) "
    r"(?P<name>(?:p\d\d(?:[._]\d{1,2})?|avg|mean|median|min|max)(?: c?lat(?:ency)?)?|c?latency|(?:access|response) time"
    r")",
    re.IGNORECASE,
)
"""`1.41 ms avg`."""
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_STATISTICS = {
    **dict.fromkeys(("max", "maximum", "worst", "peak"), "max"),
    **dict.fromkeys(("min", "minimum", "best"), "min"),
    **dict.fromkeys(("stdev", "stddev", "std", "sd", "deviation", "jitter"), "stddev"),
    "median": "p50",
}
"""Words of a latency's name that say that it is no mean."""


SPREAD = re.compile(
    r"(?P<value>[^±]{1,40}?)\s*+(?:±|\+/?-)\s*+(?>(?:[\d.,]|(?<=\d) (?=\d{3})){1,20})(?>(?:[kKMG](?=\s))?)"
    r"\s*+(?P<unit>[a-zA-Zµμ%/]{0,8})\Z"
)
"""`12.0 ± 3.7 ms`: a figure with its spread."""
_SPREAD_AMONG = re.compile(r"\s*+(?:±|\+/?-)\s*+[\d.,]{1,20}+\s*+[a-zA-Zµμ%]{0,8}(?=\s*/\s*[\d.-])")
_SPREAD_INSIDE = re.compile(r"(?<=\S)\s*+\((?:±|\+/?-)\s*+[\d.,]{1,20}+\s*+[a-zA-Zµμ%/]{0,8}\)\s*+$")
_CHANGE_INSIDE = re.compile(r"(?<=\S)\s*+\([-+\u2212]\s*+[\d.,]{1,20}+\s*+%\)\s*+$")
_BARE = re.compile(r"\d[\d.]*+(?:[kKM](?![A-Za-z]))?")
_RANGE_INSIDE = re.compile(
    r"(?P<value>[^()]{1,40}\S)\s*+\((?P<low>[\d.,]{1,20}+ ?[kM]?) ?(?:-|\u2013|\.\.|to) ?"
    r"(?P<high>[\d.,]{1,20}+ ?[a-zA-Z\u00b5/]{0,8})\)"
)
"""`341,127 (334,187-346,283)`."""
_SPREAD_NAMED = re.compile(
    r"\s*+(?:±|\+/?-)\s*+(?:(?:std|standard)[ ._-]?(?:dev\w*|err\w*)|\w{1,12}|\u03c3)(?:\.)?", re.IGNORECASE
)
NAME_OF_SPREAD = re.compile(
    r"\b(?:(?:std|standard)[._ -]*dev(?:iation)?|stdev|deviation|s\.d|r?sd)(?!\w)\.?", re.IGNORECASE
)
STATISTIC = r"(?:min|max|minimum|maximum|mean|avg|average|median|mdev|std_?dev|sd|p\d\d(?:\.\d+)?)\.?"
_SEVERAL = re.compile(rf"(?P<names>\b{STATISTIC}(?: ?/ ?{STATISTIC})+)(?!\w)", re.IGNORECASE)
_UNITS = re.compile(r"[(\[](?P<units>[^()\[\]\d]{3,60})[)\]]")
_BETWEEN = re.compile(r"\s*/\s*(?=[\d.-])")


@dataclass(frozen=True)
class Quantity:
    """A number and what its unit says of it."""

    value: float
    """In bytes per second, operations per second, ns, or as written."""
    metric: str | None
    """`rate_bytes_per_s`, `iops`, `ns` for a time; None: a bare number."""

    def metric_called(self, name: str) -> str | None:
        """The metric of a time, by what it is called; None if it has no unit or the name says nothing."""
        if self.metric != "ns":
            return self.metric
        statistic = _statistic(name)
        if statistic is None and not LATENCY.search(name):
            return None
        if statistic in ("max", "min", "stddev") and not LATENCY.search(name):
            return None
        return f"latency_ns_{statistic or 'mean'}"


def _statistic(name: str) -> str | None:
    """`p99` of `lat p99`, `99th percentile` and `p99_us`; `max` of `Max latency`; None for a mean."""
    if found := _PERCENTILE.search(name):
        digits = re.sub(r"\.00?$|[._]", "", found["after"] or found["before"])
        return f"p{digits}"
    words = re.split(r"[^a-z]+", _CAMEL.sub(" ", name).lower())
    return next((_STATISTICS[word] for word in words if word in _STATISTICS), None)


def ways_in(text: str) -> list[str]:
    """Which of reads and writes a name speaks of; `threads` and `writeback` are none, `0% read` is a write, and
    `70% read` is both."""
    text = _SHARE.sub(_of_share, text)
    return [way for way in ("read", "write") if re.search(rf"{WAY}(?<={way})", text, re.IGNORECASE)]


def _of_share(found: re.Match[str]) -> str:
    others = {"read": "write", "write": "read"}
    way = found["way"].lower()
    return {100.0: way, 0.0: others[way]}.get(float(found["share"]), "read write")


def quantities(cell: str) -> list[Quantity]:
    """What a cell holds: one quantity, or two of different kinds, as in `475 MB/s (116K IOPS)`; none if it holds
    something else. The same again in another unit, or a remark, may stand in parentheses: `15,425 MB/s (15.4 GB/s)`."""
    if whole := quantity(cell) or _named(cell):
        return [whole]
    several = [quantity(part) or _named(part) for part in _AMONG.split(cell.strip())]
    metrics = {one.metric for one in several if one is not None and one.metric is not None}
    if len(several) > 1 and len(metrics) == len(several):
        return [one for one in several if one is not None]
    found = _TWO.match(cell.strip())
    both = [quantity(part) for part in found.groups() if part] if found else []
    known = [one for one in both if one is not None and one.metric is not None]
    if len({one.metric for one in known}) == 2:
        return known
    if both and len(known) == 1 and _is_count_of(both[0], known[0]):
        return [Quantity(both[0].value, "iops"), known[0]] if both[0] else known
    inside = (found and found["inside"]) or ""
    is_remark = bool(inside) and both[0] in known
    says_again = len(known) == 2 and abs(known[1].value - known[0].value) <= AS_ROUNDED * known[0].value
    return known[:1] if is_remark and (both[1] is None or says_again or inside.endswith("%")) else []


def _is_count_of(count: Quantity | None, rate: Quantity) -> bool:
    """Whether a bare figure before a rate in parentheses counts its operations, as in `286 (4.5 MB/s)`."""
    if count is None or count.metric is not None or rate.metric != "rate_bytes_per_s" or count.value <= 0:
        return False
    return OPERATION_BYTES_MIN <= rate.value / count.value <= OPERATION_BYTES_MAX


def _named(text: str) -> Quantity | None:
    """A latency or a rate behind its name: `p50 184 us`, `IOPS=93.7k`."""
    if of_rate := _RATE_NAMED.fullmatch(text):
        rate = quantity(f"{of_rate['figure']} {of_rate['iops'] or ''}".strip())
        return rate if rate and rate.metric in ("iops", "rate_bytes_per_s") else None
    found = _NAMED.fullmatch(text) or _NAMED_BEHIND.fullmatch(text)
    one = quantity(found["figure"]) if found else None
    if found is None or one is None or one.metric != "ns":
        return None
    return Quantity(one.value, f"latency_ns_{_statistic(found['name']) or 'mean'}")


def quantities_below(cell: str, header: str) -> list[Quantity]:
    """What a cell holds with the unit of its column's header, which may be that of the figure in parentheses:
    `142.02 MB/s (35.5k)` below `4k (IOPS)`."""
    found = _TWO.match(cell.strip())
    if found is not None and found["inside"]:
        inside = with_unit(found["inside"], header)
        return quantities(f"{found['first']} ({inside})")
    if _OF_RATE.search(header) and _AMOUNT.fullmatch(cell.strip()):
        return quantities(f"{cell.strip()}/s")
    return quantities(with_unit(cell, header))


def quantity(cell: str) -> Quantity | None:
    """The quantity in a cell; None if it holds something else. `MB` is 10^6 bytes, `MiB` 2^20."""
    if (duration := seconds(cell.strip())) is not None:
        return Quantity(duration * 1e9, "ns")
    found = _CELL.match(_APART.sub("", without_spaces(_ABOUT.sub("", cell.strip(), count=1))))
    value = number(found["number"]) if found else None
    if found is None or value is None:
        return None
    unit = re.sub(r"(?i)/s(?:ecs?|econds?)?\Z", "/s", found["unit"])
    unit = re.sub(r"(?i)bytes/s\Z", "B/s", unit)
    if unit == "m":
        # A million, or a minute.
        return None
    if unit == "%" or unit in _PREFIXES:
        return Quantity(value * _PREFIXES.get(unit, 1.0), None)
    if unit.lower() in _TIMES:
        return Quantity(value * _TIMES[unit.lower()], "ns")
    if unit in ("/s", "r/s", "w/s"):
        return Quantity(value, "operations_per_s")
    if (each := _EACH.fullmatch(unit)) is not None:
        if each["time"]:
            return Quantity(value * _TIMES[each["time"]], "ns")
        return Quantity(value * _PREFIXES[each["prefix"]], "operations_per_s")
    if unit.lower().endswith("iops") and unit[:-4] in _PREFIXES:
        return Quantity(value * _PREFIXES[unit[:-4]], "iops")
    if unit.lower()[-3:] in REQUESTS_PER_S and unit[:-3] in _PREFIXES:
        return Quantity(value * _PREFIXES[unit[:-3]], "operations_per_s")
    if bits := re.fullmatch(r"(?P<prefix>[kKMGT]?i?)bits?/s", unit):
        return Quantity(value * _BYTES[bits["prefix"].lower()] / 8, "rate_bytes_per_s")
    for end in ("b/s", "bps"):
        prefix = unit.lower().removesuffix(end)
        if unit.lower().endswith(end) and prefix in _BYTES:
            # Mbps and Mb/s may be bits.
            return Quantity(value * _BYTES[prefix], "rate_bytes_per_s") if "B" in unit else None
    return None


def without_spaces(cell: str) -> str:
    """`41 712 IOPS` -> `41712 IOPS`, if spaces part thousands and no figures that are alike."""
    found = SPACED.match(cell)
    if found is None:
        return cell
    first, *others = re.split(r"\D", found["digits"])
    are_thousands = " " not in found["digits"] or any(
        one[0] == "0" or not 1 / ALIKE <= int(one) / max(int(first), 1) <= ALIKE for one in others
    )
    bare = "".join((first, *others))
    return f"{cell[: found.start('digits')]}{bare}{cell[found.end() :]}" if are_thousands else cell


def with_thousands(rows: list[list[str]]) -> list[list[str]]:
    """The cells without spaces between thousands, if one is surely such a number: then all are."""
    found = [cell for row in rows for cell in row if SPACED.fullmatch(cell)]
    if not any(without_spaces(cell) != cell for cell in found):
        return rows
    return [[re.sub(r"(?<=\d)\D(?=\d)", "", cell) if SPACED.fullmatch(cell) else cell for cell in row] for row in rows]


def with_unit_of_last(parts: list[str]) -> list[str]:
    """`1012, 1005, 998 MB/s`: each with the unit of the last, if the others are bare."""
    unit = _BARE.sub("", parts[-1], count=1).strip()
    return [*(f"{part} {unit}" if _BARE.fullmatch(part) else part for part in parts[:-1]), parts[-1]]


def without_spread(cell: str) -> str:
    """`12.0 ± 3.7 ms` -> `12.0 ms`, `1 / 2 ± 0.4 / 5` -> `1 / 2 / 5`, `12 (±3%)`, `12 (+10%)` and
    `12 (11-13)` -> `12`; any other cell as it is."""
    if (of := _RANGE_INSIDE.fullmatch(cell.strip())) and (one := quantity(of["value"])) is not None:
        ends = [end for part in with_unit_of_last([of["low"], of["high"]]) if (end := quantity(part)) is not None]
        if len(ends) == 2 and ends[0].value <= one.value <= ends[1].value:
            return of["value"]
    cell = _CHANGE_INSIDE.sub("", _SPREAD_INSIDE.sub("", _SPREAD_AMONG.sub("", cell)))
    found = SPREAD.match(cell.strip())
    if found is None:
        return cell
    bare = quantity(found["value"])
    unit = "" if found["unit"] == "%" else found["unit"]
    return f"{found['value']} {unit}".strip() if bare and bare.metric is None else found["value"]


def left_out_behind(cells: Iterable[str]) -> Iterator[str]:
    """What `without_spread` takes away from these cells, as problems."""
    parted = [cell for cell in cells if without_spread(cell) != cell]
    if any(map(_CHANGE_INSIDE.search, parted)):
        yield "changes behind figures are left out: they are computed anew"
    ranges = [cell for cell in parted if _RANGE_INSIDE.fullmatch(cell.strip())]
    if ranges:
        yield "ranges in brackets behind figures are left out: they are no rounds"
    if any(not _CHANGE_INSIDE.search(cell) for cell in parted if cell not in ranges):
        yield "what follows ± in a cell is left out: it is a spread, and no round"


def without_spread_name(header: str) -> str:
    """`latency mean ± sd` -> `latency mean`."""
    return _SPREAD_NAMED.sub("", header)


def statistics_in(header: str) -> tuple[str, list[str]] | None:
    """`latency (min/avg/max)` -> `latency`, and the three; None for a header that names no such."""
    found = _SEVERAL.search(header)
    if found is None:
        return None
    rest = re.sub(r"[(\[]\s*[)\]]", " ", f"{header[: found.start()]} {header[found.end() :]}")
    names = [re.sub(r"mdev", "stddev", name.strip(" ."), flags=re.IGNORECASE) for name in found["names"].split("/")]
    return " ".join(rest.split()).strip(" ,:-"), names


def units_in(header: str) -> list[str]:
    """`4k randread (IOPS / MB/s / ms)` -> the name of a column for each of its units; empty for any other header."""
    found = _UNITS.search(header)
    units = [unit.strip() for unit in re.split(r"\s+/\s+", found["units"])] if found else []
    known = [quantity(f"1 {unit}") for unit in units]
    if found is None or len(units) < 2 or any(one is None or one.metric is None for one in known):
        return []
    what = f"{header[: found.start()].strip()} {header[found.end() :].strip()}".strip()
    is_time = [one is not None and one.metric == "ns" for one in known]
    return [
        " ".join(filter(None, (what, "latency" if time else "", f"({unit})")))
        for unit, time in zip(units, is_time, strict=True)
    ]


def several(cell: str) -> list[str]:
    """`1.2 / 4.5 / 20.1 ms` -> each with the unit of the last, if it has none of its own; empty for any other cell."""
    parts = _BETWEEN.split(cell.strip())
    last = quantity(parts[-1])
    unit = parts[-1].lstrip("-+0123456789.,").strip() if last is not None and last.metric is not None else ""
    found = [(part, quantity(part)) for part in parts]
    if len(parts) < 2 or any(one is None for _, one in found):
        return []
    return [part if one is None or one.metric is not None else f"{part} {unit}".strip() for part, one in found]


def unit_of(header: str) -> tuple[str, Quantity] | None:
    """A header less its unit in parentheses, and what one of that unit is; None without a unit that is known."""
    found = _unit_in(header)
    # A byte that is no UTF-8 before an s is the micro sign of Windows' older encodings.
    one = quantity(f"1 {found[1].replace(chr(0xFFFD), 'u')}") if found else None
    return (found[0], one) if found and one else None


def _unit_in(header: str) -> tuple[str, str] | None:
    """A header less its unit, and the unit."""
    found = _OF_HEADER.search(header)
    if found is None or (found["unit"] == "min" and _OF_RATE.search(header)):
        return None
    bare, unit = header[: found.start()], found["unit"] or found["bare"]
    return bare, f"{unit}IOPS" if unit in ("k", "M") and bare.lower().endswith("iops") else unit


def with_unit(cell: str, header: str) -> str:
    """A cell with the unit that its column's header has in parentheses, if the cell is a bare number."""
    found = _unit_in(header)
    bare = quantity(cell)
    if found is None or bare is None or bare.metric is not None:
        return cell
    unit = found[1]
    joined = f"{cell}{unit}" if cell[-1:] in _PREFIXES and unit == "IOPS" else f"{cell} {unit}"
    return joined if quantity(f"1 {unit}") and quantity(joined) else cell


def without_unit(header: str) -> str:
    """The header less a unit that cells can have."""
    found = unit_of(header)
    return found[0] if found and found[1].metric else header
