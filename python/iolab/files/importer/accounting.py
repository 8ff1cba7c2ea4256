"""Which lines of a text have figures, and were not read: whatever formats it is in, such a line is read or named."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from iolab.base.plain_text import counted
from iolab.files.importer.columns import MEASURED
from iolab.files.importer.csv_in_text import tables as tables_of_csv
from iolab.files.importer.durations import in_seconds
from iolab.files.importer.format import Format
from iolab.files.importer.listed import entries, is_labelled
from iolab.files.importer.quantity_cell import Quantity, quantity
from iolab.files.importer.results import Results
from iolab.files.importer.shell_commands import command_of
from iolab.files.importer.source import Line, Source
from iolab.files.importer.unread import BESIDE, IF_ROUNDS, lone_figures
from iolab.files.importer.unread_figures import SEEN_MAX, has_unit, is_header, is_row

WARNINGS_MAX = 3
NAMED_MAX = 8
"""Of the ranges of lines that the note names."""
ALIKE = 0.011
"""A figure of a text is one that was read if it differs by no more: people round to two digits or three. Chosen."""
_AS_BINARY = (1.0, 1.024, 1.048576, 1.073741824)
"""`MB` of tools that count 2^20 bytes."""
_FIGURE = re.compile(rf"(?<![\w.])(?P<figure>\d[\d.,]*+(?<=\d)(?P<unit>{MEASURED.pattern[2:]}))")
_ITEM = re.compile(r"\s{0,12}(?:[-*+\u2022]|\d{1,2}[.)]) ")
"""Of a list: its times are results, where those of sentences are how long something ran."""

_WARNS = re.compile(
    r"\W{0,20}(?:warnings?|caution)\b\W"
    r"|.{0,100}\b(?:(?:measurement|result|number)s? (?:are|is|may be|might be) "
    r"(?:invalid|not (?:valid|reliable|accurate))|note: both iodepth >= 1 and synchronous I/O engine)",
    re.IGNORECASE,
)
"""What tools print about figures of their own that are none."""
_BELOW_ZERO = re.compile(r"\s*+(?i:min|max|average|mean|avg)\b[^:=\d]{0,30}[:=]\s*+-\d")


def state_warnings(source: Source, results: Results) -> None:
    """Adds the warnings that the text has of its figures, and names figures below zero that cannot be."""
    warnings = list(dict.fromkeys(text.strip() for text in source.text_lines if _WARNS.match(text)))
    for text in warnings[:WARNINGS_MAX]:
        results.problem(f"the text warns: {text[:SEEN_MAX]!r}")
    if below := [text.strip() for text in source.text_lines if _BELOW_ZERO.match(text)]:
        results.problem(f"{below[0][:SEEN_MAX]!r} is below zero: a counter of the tool ran over, maybe its maximum too")


def state_unread(source: Source, formats: Sequence[Format], results: Results) -> None:
    """Adds a problem that names the lines with figures of rates, times and operations that no format of the text read.
    For texts that are as short as mails."""
    if not source.is_short or not all(one.among_text for one in formats):
        return
    for rows in tables_of_csv(source):
        if not results.lines_read.intersection(line.number for line in rows):
            results.problem("a CSV table that is not read: give it alone, in a file of its own", rows[0].number)
            results.lines_read |= {line.number for line in rows}
    for unread in BESIDE:
        begins = (number for number, text in enumerate(source.text_lines, 1) if unread.line.search(text))
        if (begin := next(begins, 0)) > 0:
            results.problem(f"{unread.name} beside these figures is not read: {unread.remedy}", begin)
    is_written = all(one.is_written for one in formats)
    lines = [line for line in source.lines(lambda what, line: None) if line.number not in results.lines_read]
    found = [line for line in lines if _has_figures(line.text, is_written) and not _is_own(line.text, formats)]
    if found and (found := list(_unknown(found, results))):
        was = "line with figures was" if len(found) == 1 else "lines with figures were"
        first = found[0].text.strip()[:SEEN_MAX]
        places = _places([line.number for line in found])
        results.problem(f"{len(found):,} {was} not read: {places} (first: {first!r})")
    if is_written and (alone := lone_figures([line.text for line in lines])):
        results.problem(
            f"{counted(alone, 'line')} of a figure alone left out: nothing states what the figures are; name each, "
            f"such as 'TPS: 66225.3'; {IF_ROUNDS}"
        )


def _has_figures(text: str, is_written: bool) -> bool:
    is_title = text.rstrip().endswith(":")
    if is_title or command_of(text) or is_header(text):
        return False
    is_item = bool(_ITEM.match(text)) and has_unit(text)
    is_of_time = is_written and (in_seconds(text) != text or is_row(text) or is_item)
    return is_of_time or bool(MEASURED.search(text)) or is_labelled(text)


def _is_own(text: str, formats: Iterable[Format]) -> bool:
    return any(one.own is not None and one.own.match(text) for one in formats)


def _unknown(lines: Sequence[Line], results: Results) -> Iterator[Line]:
    """The lines less those that a problem names, that name a setting or a workload, or that repeat what was read."""
    values, names = results.values(), results.names()
    for line in lines:
        is_named = any(one.startswith(f"{results.source}:{line.number}:") for one in results.problems)
        title = line.text.strip(" \t:#*_")
        if not is_named and not any(title in name for name in names) and not _repeats(line.text, values):
            yield line


def _repeats(text: str, values: Mapping[str, Sequence[float]]) -> bool:
    """Whether the line's figures are values that were read, or zero."""
    known = [one for found in _FIGURE.finditer(text) if (one := quantity(found[0])) is not None and one.metric]
    known = known or [Quantity(one.value, "ns" if "_ns" in one.metric else one.metric) for one in entries(text)]
    return bool(known) and all(one.value == 0 or any(_ways_to_read(one, values)) for one in known)


def _ways_to_read(one: Quantity, values: Mapping[str, Sequence[float]]) -> Iterator[bool]:
    if one.metric == "ns":
        yield _is_among(one.value, values.get("ns", ()))
        yield _is_among(one.value / 1e9, values.get("s", ()))
    elif one.metric == "rate_bytes_per_s":
        yield from (_is_among(one.value * scale, values.get("bytes/s", ())) for scale in _AS_BINARY)
    else:
        yield _is_among(one.value, values.get("1/s", ()))
    yield _is_among(one.value, values.get("", ()))


def _is_among(figure: float, values: Sequence[float]) -> bool:
    place = bisect_left(values, figure * (1 - ALIKE))
    return place < len(values) and values[place] <= figure * (1 + ALIKE)


def _places(numbers: Sequence[int]) -> str:
    """`12, 40-44`."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    named = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:NAMED_MAX]]
    return ", ".join(named) + (", ..." if len(ranges) > NAMED_MAX else "")
