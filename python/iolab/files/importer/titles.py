"""What stands above each table in a text: a short line that ends in a colon, or a heading of Markdown.

Tables of the same measurement under different titles are settings, not rounds: *Before this change:* and *After this
change:*. Titles that only number the tables are none.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from iolab.files.importer.source import Line

OF_ANY_RUN = re.compile(
    r"(?:the )?(?:full |fio )?(?:results?|outputs?|logs?|commands?|summary|details?)", re.IGNORECASE
)
"""A heading that distinguishes no run from the next; that of the section does."""
TITLE_MAX = 80
_HEADING = re.compile(r"#{2,6}\s++(?P<title>\S.*)|\*\*(?P<bold>[^*]++)\*\*$|=+ (?P<ruled>[^=]++) =+$")
_ATTRIBUTION = re.compile(r"(?:wrote|writes|said|schrieb|a écrit|написал)\s*:$", re.IGNORECASE)
_OF_TOOL = re.compile(r"[#$|/]|Compare |Test(?: if)? |Non-[Ss]ync|Options?:")
"""Lines of tools, of commands and of remarks that look like titles."""
_COUNT = r"(?:\d+(?:st|nd|rd|th)?|first|second|third|fourth|fifth|last)"
_ROUND = r"(?:round|run|iteration|iter|pass|attempt|trial|try|test|time|loop|repeat)"
_NUMBERING = re.compile(rf"\W*\b(?:{_ROUND}\W?{_COUNT}|{_COUNT} {_ROUND}|#\d+)\b\W*|^\W*\d+\W*$", re.IGNORECASE)
_FENCE = re.compile(r"\s*+(?:```|~~~)")
_TAG = re.compile(r"</?(?:details|summary|b|i|strong|em|p|br|code|pre|u|h[1-6])\b[^<>]{0,40}>", re.IGNORECASE)
DETAILS = re.compile(r"\s*+</?(?:details|summary)\b", re.IGNORECASE)
"""Tags in which people fold results away."""
_TITLE_TAG = re.compile(r"\s*+<(?:summary|h[1-6])\b", re.IGNORECASE)
_MARKS = "*_`#:= \t"


class Titles:
    """The titles of a text, line by line."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines: list[int] = []
        self._titles: list[str] = []
        for line in lines:
            if title := title_of(line.text):
                self._lines.append(line.number)
                self._titles.append(title)

    def above(self, line: int) -> str | None:
        """The title in force at a line; None before the first."""
        place = bisect_right(self._lines, line)
        return self._titles[place - 1] if place else None


def without_markup(text: str) -> tuple[str, bool]:
    """The line without tags of HTML, empty if it is a fence of Markdown; and whether its tags make it a title."""
    return ("" if _FENCE.match(text) else _TAG.sub("", text)), bool(_TITLE_TAG.match(text))


def title_of(text: str) -> str | None:
    """The line as a title, without marks and numbering; None for any other line."""
    plain, is_tagged = without_markup(text)
    short = plain.strip()
    if not short or len(short) > TITLE_MAX:
        return None
    found = _HEADING.match(short)
    if not found and not is_tagged and (not short.endswith(":") or _OF_TOOL.match(short) or _ATTRIBUTION.search(short)):
        return None
    whole = next(filter(None, found.groups()), "") if found else short
    title = " ".join(_NUMBERING.sub(" ", whole).strip(_MARKS).split()).removeprefix("and ")
    return title if re.search(r"[^\W\d_]", title) and not OF_ANY_RUN.fullmatch(title) else None
