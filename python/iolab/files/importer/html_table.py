"""Tables of HTML and of MediaWiki, as the source of a page has them, as tables with bars between their columns."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from iolab.files.importer.posted import NumberedLine

ROW_CHARS_MAX = 1 << 13
BEGINS = re.compile(r"[<\[]t(?:able|r)\b", re.IGNORECASE)
_TABLE = re.compile(r"<table\b", re.IGNORECASE)
_ROW = re.compile(r"<tr\b[^<>]*+>(?P<cells>.*?)(?:</tr\s*>|(?=<tr\b)|(?=</table))", re.IGNORECASE)
_CELL = re.compile(r"<t[hd]\b(?P<more>[^<>]*+)>(?P<text>.*?)(?=<t[hd]\b|$)", re.IGNORECASE)
_SPAN = re.compile(r"colspan\s*=\s*[\"']?(?P<columns>\d{1,2})", re.IGNORECASE)
_ROWSPAN = re.compile(r"rowspan\s*=\s*[\"']?(?P<rows>\d{1,2})", re.IGNORECASE)
_DATA = re.compile(r"<td\b", re.IGNORECASE)
_ENDS = re.compile(r"</?t(?:r|able)\b", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_TAGS_ALONE = re.compile(r"\s*+(?>(?:</?t(?:able|head|body|foot)\b[^<>]*>\s*+)+)$", re.IGNORECASE)


WIKI_BEGINS = re.compile(r"\s*+\{\|")
_WIKI_STYLE = re.compile(r"^[^|\[\]=]{0,40}=[^|]{0,120}\|")
_WIKI_LINK = re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]")


def wiki_with_bars(lines: Iterable[NumberedLine]) -> Iterator[NumberedLine]:
    """The lines, with `| a | b |` in place of each row between `{|` and `|}`, and a rule below the first."""
    cells: list[str] = []
    begun, is_within, is_first = 0, False, True
    for number, line in lines:
        short = line.strip()
        if WIKI_BEGINS.match(line):
            is_within, is_first = True, True
        elif is_within and short.startswith(("|-", "|}")):
            if cells:
                yield begun, f"| {' | '.join(cells)} |"
            if cells and is_first:
                yield begun, "|---" * len(cells) + "|"
            is_first, is_within, cells = is_first and not cells, short[1] == "-", []
        elif is_within and short.startswith("|+"):
            yield number, short[2:].strip()
        elif is_within and short[:1] in ("!", "|"):
            parts = re.split(r"!!|\|\|" if short[0] == "!" else r"\|\|", _WIKI_LINK.sub(r"\1", short[1:]))
            begun = begun if cells else number
            cells += [_WIKI_STYLE.sub("", part).replace("|", "/").strip(" '") for part in parts]
        else:
            yield number, line


def with_bars(lines: Iterable[NumberedLine]) -> Iterator[NumberedLine]:
    """The lines, with `| a | b |` in place of each row of a table, and a rule below the first, or below the rows of
    names, which are made one. What spans rows is in each of them."""
    text, begun, is_first = "", 0, True
    names: list[_Names] = []
    spans: _Spans = {}
    for number, line in lines:
        if not text and not BEGINS.search(line):
            if not _TAGS_ALONE.match(line):
                yield number, line
            continue
        begun = begun or number
        text = f"{text} {line}".strip()
        end = 0
        for row in _ROW.finditer(text) if _ENDS.search(line) else ():
            if _TABLE.search(text, end, row.start()):
                is_first, spans = True, {}
            end = row.end()
            found = list(_CELL.finditer(row["cells"]))
            if is_first and (names or any(_ROWSPAN.search(cell["more"]) for cell in found)) and not _of_data(row):
                names.append(_Names(begun, found))
                continue
            if names:
                yield from _with_rule(names[0].line, _joined(names))
                names, is_first = [], False
            cells = _with_spans(found, spans)
            yield from _with_rule(begun, cells) if is_first else [(begun, _in_bars(cells))]
            is_first = False
        text = text[end:]
        if end:
            begun = number
        if not BEGINS.search(text) or len(text) > ROW_CHARS_MAX:
            if rest := _TAG.sub(" ", text).strip():
                yield begun, rest
            text, begun = "", 0
    if text:
        yield begun, text


_Spans = dict[int, tuple[int, str]]
"""By column: in how many rows more a cell is that spans them, and its text."""


def _with_spans(found: Sequence[re.Match[str]], spans: _Spans) -> list[str]:
    """The cells of a row with those above that span it."""
    cells: list[str] = []

    def spanned() -> None:
        while (above := spans.pop(len(cells), None)) is not None:
            rows, text = above
            if rows > 1:
                spans[len(cells)] = (rows - 1, text)
            cells.append(text)

    for one in found:
        spanned()
        if (down := _ROWSPAN.search(one["more"])) and int(down["rows"]) > 1:
            spans[len(cells)] = (int(down["rows"]) - 1, _cells(one)[0])
        cells += _cells(one)
    spanned()
    return cells


class _Names(NamedTuple):
    """A row of names of columns."""

    line: int
    cells: list[re.Match[str]]


def _of_data(row: re.Match[str]) -> bool:
    return bool(_DATA.search(row["cells"]))


def _in_bars(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _with_rule(line: int, cells: Sequence[str]) -> Iterator[NumberedLine]:
    yield line, _in_bars(cells)
    yield line, "|---" * len(cells) + "|"


def _joined(rows: Sequence[_Names]) -> list[str]:
    """The names of columns that several rows state together: a name is over all columns, and rows, that it spans."""
    places: dict[tuple[int, int], str] = {}
    for row, (_, cells) in enumerate(rows):
        column = 0
        for found in cells:
            while (row, column) in places:
                column += 1
            across, down = (int(one[1]) if (one := span.search(found["more"])) else 1 for span in (_SPAN, _ROWSPAN))
            for below in range(min(down, len(rows) - row)):
                for beside in range(across):
                    places[row + below, column + beside] = "" if below else _cells(found)[0]
            column += across
    columns = 1 + max(column for _, column in places)
    return [" ".join(filter(None, (places.get((row, at), "") for row in range(len(rows))))) for at in range(columns)]


def _cells(found: re.Match[str]) -> list[str]:
    span = _SPAN.search(found["more"])
    text = " ".join(html.unescape(_TAG.sub(" ", found["text"])).replace("|", "/").split())
    return [text, *([""] * (int(span["columns"]) - 1 if span else 0))]
