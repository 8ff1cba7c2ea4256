"""Tables of HTML and of MediaWiki, as the source of a page has them, as tables with bars between their columns."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator

from iolab.files.importer.posted import NumberedLine

ROW_CHARS_MAX = 1 << 13
BEGINS = re.compile(r"<t(?:able|r)\b", re.IGNORECASE)
_TABLE = re.compile(r"<table\b", re.IGNORECASE)
_ROW = re.compile(r"<tr\b[^<>]*+>(?P<cells>.*?)(?:</tr\s*>|(?=<tr\b)|(?=</table))", re.IGNORECASE)
_CELL = re.compile(r"<t[hd]\b(?P<more>[^<>]*+)>(?P<text>.*?)(?=<t[hd]\b|$)", re.IGNORECASE)
_SPAN = re.compile(r"colspan\s*=\s*[\"']?(?P<columns>\d{1,2})", re.IGNORECASE)
_ENDS = re.compile(r"</?t(?:r|able)\b", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_TAGS_ALONE = re.compile(r"\s*+(?:</?t(?:able|head|body|foot)\b[^<>]*>\s*+)++$", re.IGNORECASE)


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
    """The lines, with `| a | b |` in place of each row of a table, and a rule below the first."""
    text, begun, is_first = "", 0, True
    for number, line in lines:
        if not text and not BEGINS.search(line):
            if not _TAGS_ALONE.match(line):
                yield number, line
            continue
        begun = begun or number
        text = f"{text} {line}".strip()
        end = 0
        for row in _ROW.finditer(text) if _ENDS.search(line) else ():
            is_first = is_first or bool(_TABLE.search(text, end, row.start()))
            cells = [cell for found in _CELL.finditer(row["cells"]) for cell in _cells(found)]
            yield begun, f"| {' | '.join(cells)} |"
            if is_first:
                yield begun, "|---" * len(cells) + "|"
            is_first, end = False, row.end()
        text = text[end:]
        if end:
            begun = number
        if not BEGINS.search(text) or len(text) > ROW_CHARS_MAX:
            if rest := _TAG.sub(" ", text).strip():
                yield begun, rest
            text, begun = "", 0
    if text:
        yield begun, text


def _cells(found: re.Match[str]) -> list[str]:
    span = _SPAN.search(found["more"])
    text = " ".join(html.unescape(_TAG.sub(" ", found["text"])).replace("|", "/").split())
    return [text, *([""] * (int(span["columns"]) - 1 if span else 0))]
