"""What an error shows of a text that no format reads: the line whose figures matter, and the heading of a CSV file for
such figures, by the units that stand behind them, or in the names above."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from iolab.base.plain_text import counted
from iolab.files.importer.columns import MEASURED
from iolab.files.importer.quantity_cell import THINGS
from iolab.files.importer.shell_commands import command_of

SEEN_MAX = 60
"""Of a line that an error shows."""
FIGURES_MIN = 3
"""So many figures make a row, where none has its unit."""
ABOVE_MAX = 3
"""The lines above a row in which what its figures are is looked for."""
COLUMNS_MAX = 4
UNSTATED = "value (unit)"
"""The column of figures of which nothing states what they are."""
_NO_FIGURE = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d[:-]\d\d(?:[:-]\d\d)?Z?)?|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"
    r"|\b\d\d:\d\d(?::\d\d)?\b(?!\.\d)|\bv?\d+\.\d+\.\d[\w.-]*|(?<![\w.])[A-Za-z_][\w-]*\d[\w.-]*"
)
"""Dates, times of day, versions, and names with digits."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_ALONE = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?P<prefix>[kKMG]?)(?![\w-])")
_OPTION = re.compile(r"\s-{1,2}[A-Za-z]")
_WORD = re.compile(r"[^\W\d_]{2,}")
_CLOCK = r"\d{1,3}:\d\d\.\d+|\d+m ?[\d.]+s\b"
_TIMED = re.compile(rf"\b(?:{_CLOCK}|\d[\d.,]* ?(?:s|sec|seconds)\b)")
_UNIT = re.compile(
    rf"(?<=\d) ?\(?(?P<figure>[kKMG]? ?(?:IOPS|[TQR]PS|{THINGS}s?/s(?:ec)?)\b|[kKMGT]?i?(?-i:B)(?:ytes)?/s(?:ec)?\b"
    r"|[nuµm]s(?:ec)?\b|/s\b)"
    r"|(?<![A-Za-z])(?P<named>IOPS|[TQR]PS|NOPM|TPM)[ :=]{1,3}~?\d"
    rf"|(?P<clock>{_CLOCK})|\d ?(?P<time>s|sec|seconds|min(?:ute)?s?|hours?)\b",
    re.IGNORECASE,
)
_NAMED = re.compile(
    rf"(?<![A-Za-z])(?P<figure>IOPS|[kKMGT]?i?(?-i:B)(?:ytes)?/s(?:ec)?|{THINGS}s?/s(?:ec)?|TPS|QPS|RPS|NOPM|TPM)\b"
    r"|(?:[(\[/]|\b(?:in|are) |, )(?P<short>[nuµm]s(?:ec)?)\b"
    r"|(?P<long>nano|micro|milli)seconds\b|(?P<time>\bseconds\b|[(\[](?:s|sec)[)\]]|\bin s\b|\btime/op\b)",
    re.IGNORECASE,
)
_COLUMNS = {
    "tps": "transactions_per_s",
    "qps": "queries_per_s",
    "rps": "operations_per_s",
    "tpm": "transactions_per_min",
    "nopm": "new_orders_per_min",
}
_LONG = {"nano": "ns", "micro": "us", "milli": "ms"}

_HEADER = re.compile(
    r"(?:commit|From|index) [0-9a-f]{7,64}\b"
    r"|(?:Subject|Date|From|To|Cc|(?:In-)?Reply-To|Message-ID|References|User-Agent|Link|Received|X-[\w-]+): "
)
"""Of a mail or a commit."""


class _Seen(NamedTuple):
    """A line as it stands, and without what is no figure."""

    number: int
    text: str
    bare: str


def seen(lines: Sequence[str]) -> str:
    """Which lines have figures with units, or rows of them, that no format reads."""
    found = _with_figures(lines)
    if not found:
        counts = ((*_bare(line), -number) for number, line in enumerate(lines, 1))
        _, count, number = max(counts, default=(0, 0, 0))
        if not count:
            return "; no line of it has figures"
        which = "its unit beside it" if _units_named(lines) else "a unit that iolab knows"
        return f"; no figure of it has {which}, such as {shown(-number, lines[-number - 1])}"
    first = _that_matter(found)[0]
    return (
        f"; {counted(len(found), 'line')} with figures that no format reads, such as {shown(first.number, first.text)}"
    )


def _bare(line: str) -> tuple[int, int]:
    """How many figures without a prefix the line has, and with one; none if it is a command."""
    prefixes = [] if _OPTION.search(line) else [one["prefix"] for one in _ALONE.finditer(_NO_FIGURE.sub(" ", line))]
    return prefixes.count(""), len(prefixes)


def into_csv(lines: Sequence[str]) -> str:
    """How to write these figures into a CSV file: its heading, and what to put into it."""
    found = _with_figures(lines)
    units = [match for one in found for match in _UNIT.finditer(one.bare)]
    first = _that_matter(found)[0].number if found else 0
    above = [line for line in lines[: max(first - 1, 0)] if line.strip()][-ABOVE_MAX:]
    units = units or _units_named((*above, *lines[first - 1 : first])) or _units_named(lines)
    columns = list(dict.fromkeys(map(_column, units)))[:COLUMNS_MAX]
    heading = ",".join(("setting", "round", *(columns or [UNSTATED])))
    way = f"put its figures into a CSV file, a row per run, such as {heading}"
    if not columns:
        return f"{way}, with their unit, which nothing states, in the place of 'unit', such as (MB/s) or (s)"
    return f"{way} (1:10 is 70)" if any(match.groupdict().get("clock") for match in units) else way


def _units_named(lines: Sequence[str]) -> list[re.Match[str]]:
    return [match for line in lines for match in _NAMED.finditer(line)]


def shown(number: int, line: str) -> str:
    """A line as an error shows it."""
    return f"{number}: {line.strip()[:SEEN_MAX]!r}"


def has_unit(line: str) -> bool:
    """Whether the line has a figure with its unit."""
    return bool(_UNIT.search(_NO_FIGURE.sub(" ", line)))


def _with_figures(lines: Sequence[str]) -> list[_Seen]:
    return list(_found_in(lines))


def _found_in(lines: Sequence[str]) -> Iterator[_Seen]:
    for number, text in enumerate(lines, 1):
        is_heading = text.rstrip().endswith(":") or text.lstrip().startswith("#")
        if is_heading or is_header(text) or command_of(text):
            continue
        one = _Seen(number, text, _NO_FIGURE.sub(" ", text))
        if _UNIT.search(one.bare) or _is_row(one):
            yield one


def is_header(text: str) -> bool:
    """Whether the line is a header of a mail or of a commit."""
    return bool(_HEADER.match(text))


def is_row(text: str) -> bool:
    """Whether the line is one of figures, without names enough for a sentence."""
    return _is_row(_Seen(0, text, _NO_FIGURE.sub(" ", text)))


def _is_row(one: _Seen) -> bool:
    """Whether figures are as many as words: `20 users, 100 warehouses, 3 hours` is a sentence."""
    figures, words = _shape(one)
    return figures >= FIGURES_MIN and figures >= words


def _shape(one: _Seen) -> tuple[int, int]:
    """How many figures the line has, and words: rows of a table have as many."""
    return len(_NUMBER.findall(one.bare)), len(_WORD.findall(one.bare))


def _that_matter(found: Sequence[_Seen]) -> Sequence[_Seen]:
    """Of lines with figures, those with rates or latencies; else rows, or what took seconds, whichever are more."""
    measured = [one for one in found if MEASURED.search(one.bare)]
    timed = [one for one in found if _TIMED.search(one.bare)]
    by_shape: dict[tuple[int, int], list[_Seen]] = {}
    for one in found:
        if one not in timed and _is_row(one):
            by_shape.setdefault(_shape(one), []).append(one)
    rows = max(by_shape.values(), key=len, default=[])
    return measured or (rows if len(rows) > len(timed) else timed) or found


def _column(found: re.Match[str]) -> str:
    """What the column of a CSV file for figures of such a unit is called."""
    groups = found.groupdict()
    if long := groups.get("long"):
        return f"latency ({_LONG[long.lower()]})"
    unit = next((groups[name] for name in ("figure", "named", "short") if groups.get(name)), "").strip()
    unit = re.sub(r"sec$", "s", unit, flags=re.IGNORECASE)
    bare = unit.lower()
    if not unit:
        return "elapsed_s"
    if bare.endswith("iops"):
        return "iops"
    if (known := _COLUMNS.get(bare[-3:]) or _COLUMNS.get(bare)) is not None:
        return known
    if bare == "/s" or "op" in bare:
        return "ops/s"
    return f"rate ({unit})" if "/" in unit else f"latency ({unit})"
