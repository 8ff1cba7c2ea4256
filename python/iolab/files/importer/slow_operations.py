"""ext4slower, xfsslower, fileslower and the like of bcc and libbpf-tools, and fsyncsnoop: a line per operation of a
file that took long. Which are too short to be listed the text may state; what they took it does not."""

from __future__ import annotations

import re

from iolab.base.plain_text import counted
from iolab.files.importer.each_latency import add_latencies
from iolab.files.importer.format import Format
from iolab.files.importer.results import Results
from iolab.files.importer.source import Source
from iolab.files.importer.text import QUOTED_MAX
from iolab.files.importer.written_number import number

_HEADER = re.compile(
    r"\s*+TIME(?:\(\w+\))?\s+COMM\s+[PT]ID\s+(?P<between>(?:[TD]\s+)?(?:BYTES\s+)?(?:OFF_KB\s+)?(?:FILE\s+)?)"
    r"LAT(?:\((?P<unit>[mnu]?s)\)|_?(?P<bare>[mnu]s))?(?:\s+FILE(?:NAME)?)?\s*+$"
)
_CAPTION = re.compile(r"\s*+Tracing (?P<what>.{1,60}?)(?: slower than (?P<least>[\d.]+ ?[mnu]?s))?(?:\.{3}.*)?\s*+$")
_CALLED = re.compile(r"\b(?P<tool>\w{0,12}slower(?=\b|-)|fsyncsnoop)")
_CELLS = {"T": r"(?P<type>[A-Z])", "D": r"(?P<type>[A-Z])", "BYTES": r"(?P<bytes>\d{1,20})", "OFF_KB": r"\d{1,20}"}
_CELLS |= {"FILE": r"\S.{0,200}?"}
_SCALES = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
_OPS = {"R": "read", "W": "write", "S": "sync", "O": "open"}
SYNC = "S"
OF_ALL = "slow operations"


def _row(columns: list[str]) -> re.Pattern[str]:
    cells = "".join(rf"{_CELLS[name]}\s+" for name in columns)
    return re.compile(rf"\s*+\d[\d:.]*+\s+\S.{{0,40}}?\s+\d{{1,9}}\s+{cells}(?P<latency>\d[\d.]{{0,20}}+)(?:\s|$)")


def _parse(source: Source, results: Results) -> None:
    called, least, scale = OF_ALL, "", 1e6
    pattern: re.Pattern[str] | None = None
    found: dict[str, dict[str, list[float]]] = {}
    line_of: dict[str, int] = {}
    limits: dict[str, str] = {}
    others: list[str] = []
    for line in source.lines(results.problem):
        if header := _HEADER.match(line.text):
            pattern, scale = _row(header["between"].split()), _SCALES[header["unit"] or header["bare"] or "ms"]
            line_of.setdefault(called, line.number)
            limits.setdefault(called, least)
        elif caption := _CAPTION.match(line.text):
            least = caption["least"] or "0"
        elif pattern is not None and (row := pattern.match(line.text)):
            op = _OPS.get(row.groupdict().get("type") or SYNC)
            latency = number(row["latency"])
            if op is None or latency is None:
                others.append(line.text.strip())
                continue
            found.setdefault(called, {}).setdefault(op, []).append(latency * scale)
        elif tool := _CALLED.search(line.text):
            called, least, pattern = tool["tool"], "", None
        elif pattern is not None and line.text.strip(" .[]^C"):
            others.append(line.text.strip())
    for name, by_op in found.items():
        made = results.table(line_of[name]).row(source.stem_without_round, name)
        limit = limits[name]
        only = "" if limit == "0" else f"only operations slower than {limit or 'a limit'} are listed"
        for op, latencies in sorted(by_op.items()):
            add_latencies(made, op, latencies, only=only)
        if only:
            results.problem(f"{only}: how many there are and the longest are read, and no mean; with 0 it lists all")
    if others:
        of = counted(len(others), "line is no operation", "lines are no operations")
        results.problem(f"{of} that iolab knows: left out, {others[0][:QUOTED_MAX]!r} first")


FORMAT = Format(
    name="slow-operations",
    own=re.compile(r"Tracing .* slower than "),
    help="ext4slower, xfsslower, fileslower, fsyncsnoop and the like: how many slow operations, and the longest",
    recognises=lambda source: source.has_line(_HEADER),
    parse=_parse,
    words=("COMM", "BYTES", "OFF_KB", "LAT(ms)", "FILENAME"),
    titled=True,
)
