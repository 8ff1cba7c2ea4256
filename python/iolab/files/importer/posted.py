"""What posting does to a text: marks of quoting, quoted-printable, and what a log writes before each line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from iolab.files.importer.bare_rates import spelled_out, thing_of
from iolab.files.importer.decimal_commas import pattern_of, with_points

NumberedLine = tuple[int, str]
LOG_LINES_MIN = 5
LOG_LINES_LOOKED_AT = 2000
ENCODED_LINES_MIN = 3

_QUOTE = re.compile(r"\s{0,3}(?>(?:>(?!=) ?)+)")
_BOLD = re.compile(r"\s*+(?:\*\*|__|`)(?=\w)(?P<figure>[^*`]{1,160}[:=] ?<?[\w.][^*`]{0,160})(?:\*\*|__|`)\s*+$")
_ITALIC = re.compile(r"(?P<before>\s*+)_(?P<text>[^\W_][^_]{0,80}?)(?P<colon>:?)_(?P<more>:?)\s*+$")
"""A title in one pair of underscores."""
_CODE = re.compile(r"\s*+`(?:.*[=:].*|\d[^`]*)`(?:\*\*)?_?\s*+$")
"""A line of output that a page shows as code, perhaps with a figure in bold."""
_CODE_BEGINS = re.compile(r"^(\s*+)`(?=\w[^`]*+$)")
_CODE_ENDS = re.compile(r"(?<=\w)`\s*+$")
"""Where code begins in one line, and ends in another."""
_TAGS = re.compile(
    r"\[/?(?:code|icode|quote|pre|spoiler)(?:=[^\[\]\n]{0,40})?\]|</?blockquote>|<br ?/?>\s*+$", re.IGNORECASE
)
"""Tags of forums around output, and line ends and quotations of HTML."""
_OF_TABLE = re.compile(r"\[(/?(?:table|tr|td|th)(?:=[^\[\]\n]{0,60})?)\]", re.IGNORECASE)
"""A forum's tags of a table, which are those of HTML in other brackets."""
_LINK = re.compile(r"\[([^\[\]\n]{1,160})\]\((?:https?://|#|\.{0,2}/)[^()\s]{1,400}\)")
_MARKS_OF_CODE = re.compile(r"_?\*\*_?|`")
_QUOTED_LINE = re.compile(r"^\s{0,3}>", re.MULTILINE)
_ENCODING = re.compile(r"Content-Transfer-Encoding:\s*+(?P<name>[\w-]{1,40}+)\s*+$", re.IGNORECASE)
_ENCODED = re.compile(r"=3D(?=.)")
_CODES = re.compile(r"(?>(?:=[0-9A-F]{2})+)")
_TIME = r"\d\d:\d\d:\d\d(?>(?:[.,]\d{1,9}+)?)"
LOG_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        # Containers: kubectl logs --timestamps, and the runtime's own files.
        rf"\[?\d{{4}}-\d\d-\d\dT{_TIME}(?>(?:Z|[+-]\d\d:?\d\d)?)\]? (?>(?:(?:stdout|stderr) [FP] )?)",
        # syslog and journalctl.
        rf"[A-Z][a-z][a-z] [ \d]\d {_TIME} [\w.-]{{1,64}}+ [\w./@-]{{1,64}}+(?>(?:\[\d{{1,9}}+\])?): ",
        # Test harnesses: a level, with or without the time before it.
        rf"(?>(?:\[?(?>(?:\d{{4}}[-/]\d\d[-/]\d\d[T ])?){_TIME}\]? +)?)\[?(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR)\b\]?"
        r" ?[|:]? ?(?>(?:\[\w{1,20}+\] ?)?)",
        # docker compose.
        r"[\w.-]{1,64}+ {1,20}+\| ",
        # Remarks of scripts and programs.
        *(rf"{mark} ?" for mark in ("#", "//", ";", r"\*(?!\*)", "--")),
        # Lines that a change adds, as a review shows them.
        r"@@ [-+,\d ]{3,40}+@@.*|\+(?:(?![\d+])|(?=\d{1,2}\. ))",
    )
)
OF_LOGS = 3
"""So many of these, the first, begin no line of anything else: other lines may stand around such a log."""

_COMMIT = re.compile(r"[>\s]{0,8}commit [0-9a-f]{7,64}\b")
_OF_COMMIT = re.compile(r"[>\s]{0,8}(?:Author|Merge|tree|parent)\b")
_MESSAGE_INDENT = " " * 4
"""What `git log` and `git show` put before each line of a commit's message."""
_FENCE = re.compile(r"\s*+(?:`{3,}+|~{3,}+)\s*+(?P<rest>.*)")
_LANGUAGE = re.compile(r"[\w+-]{0,20}\s*+$")
_OF_CHANGE = re.compile(r"(?:diff|patch)\s*+$")
_REMOVED = re.compile(r"-|\+{3} |@@ |index [0-9a-f]|diff --")
"""Lines of a change that are not in the file after it."""


_OCTETS = re.compile(r"(?<![A-Za-z])([kKMGT]i?)o(?=/s\b)")
"""French for a byte."""
_WIDE = {0xFF01 + place: chr(0x21 + place) for place in range(0x5E)}
_WIDE |= {ord(sign): f"{_WIDE[ord(sign)]} " for sign in "\uff1a\uff0c\uff1b"} | {0x3000: " "}
"""Forms of ASCII that are as wide as Chinese signs; a colon, a comma and a semicolon have a space in them."""
_PLOT = re.compile(
    r"^(?P<name>\s*+[\w.-]+(?: [\w.-]+){0,4}(?:\s*+[|:])?\s++)(?:[#*=\u2580-\u259f\u25a0])\S*"
    r"(?<=[#*=\u2580-\u259f\u25a0]{3})\s++(?=~?\d[\d.,]*+\s?\S{0,6}$)"
)
"""A bar that is drawn with signs, between a name and its figure."""


def plain(text: str) -> str:
    """The line without quoting prefix (`> `, `>> `), no-break spaces, NULs and addresses of links, with plain colons;
    not in bold if it has a figure."""
    plain = text.removeprefix("\ufeff").replace("\u00a0", " ").replace("\0", " ")
    plain = plain if plain.isascii() else plain.translate(_WIDE)
    if "[" in plain or "<" in plain:
        plain = _LINK.sub(r"\1", _OF_TABLE.sub(r"<\1>", _TAGS.sub("", plain)))
    quote = _QUOTE.match(plain)
    unquoted = plain[quote.end() :] if quote else plain
    if italic := _ITALIC.match(unquoted):
        return f"{italic['before']}{italic['text']}{italic['colon'] or italic['more']}"
    if _CODE.match(unquoted):
        return _MARKS_OF_CODE.sub("", unquoted)
    if unquoted.count("`") == 1:
        return _CODE_ENDS.sub("", _CODE_BEGINS.sub(r"\1", unquoted))
    bold = _BOLD.match(unquoted)
    return bold["figure"] if bold else unquoted


def is_quoted(text: str) -> bool:
    """Whether a line of the text has a quoting prefix."""
    return bool(_QUOTED_LINE.search(text))


class Posting:
    """How a text was posted, as its first lines show; `lines` takes that away."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._is_encoded = _looks_encoded(lines)
        """From the first line on; a header begins it elsewhere."""
        decoded = [line for _, line in self._decoded(enumerate(lines))]
        first = log_prefix(decoded)
        # A change that adds remarks has both before each line.
        second = log_prefix([first.sub("", line, count=1) for line in decoded]) if first else None
        self._prefixes = [one for one in (first, second) if one]
        self._thing = thing_of(decoded)
        self.commas = pattern_of(decoded)
        """Those of its figures that are decimal ones; None if none is."""
        self._indent = _MESSAGE_INDENT if _is_message(lines) else ""
        self._has_commits = any(_COMMIT.match(line) and _OF_COMMIT.match(below) for line, below in pairwise(lines))

    @property
    def is_wrapped(self) -> bool:
        """Whether lines differ from those before by more than marks of quoting."""
        return self._is_encoded or bool(self._prefixes)

    def lines(self, lines: Iterable[NumberedLine]) -> Iterator[NumberedLine]:
        """The lines as they were before, each with the number of the first that it stood in."""
        is_change = False
        for number, text in self._decoded(lines):
            for prefix in self._prefixes:
                text = text[found.end() :] if (found := prefix.match(text)) else text
            shown = plain(text)
            shown = shown.removeprefix(_MESSAGE_INDENT if self._has_commits else self._indent)
            if fence := _FENCE.match(shown):
                is_change = bool(_OF_CHANGE.match(fence["rest"]))
                shown = "" if _LANGUAGE.match(fence["rest"]) else fence["rest"]
            elif is_change and _REMOVED.match(shown):
                continue
            elif is_change:
                shown = shown[1:]
            shown = _PLOT.sub(r"\g<name>  ", shown)
            yield number, with_points(spelled_out(_OCTETS.sub(r"\1B", shown), self._thing), self.commas)

    def _decoded(self, lines: Iterable[NumberedLine]) -> Iterator[NumberedLine]:
        """Quoted-printable as text (RFC 2045, section 6.7), in the parts of a mail that say so."""
        is_encoded, begun = self._is_encoded, (0, "")
        for number, text in lines:
            if header := _ENCODING.match(text):
                is_encoded = header["name"].lower() == "quoted-printable"
            if not is_encoded:
                yield number, text
                continue
            begun = (begun[0] or number, begun[1] + text.rstrip(" \t"))
            if begun[1].endswith("="):
                begun = (begun[0], begun[1][:-1])
                continue
            yield begun[0], _CODES.sub(_of_code, begun[1])
            begun = (0, "")
        if begun[0]:
            yield begun[0], _CODES.sub(_of_code, begun[1])


def log_prefix(lines: Sequence[str]) -> re.Pattern[str] | None:
    """What a log wrote before each line, if all have it, or, of logs with dates and levels, half of a text do."""
    written = [line for line in lines[:LOG_LINES_LOOKED_AT] if line.strip()]
    if len(written) < LOG_LINES_MIN or _is_table(written):
        return None
    for place, prefix in enumerate(LOG_PREFIXES):
        count = sum(map(bool, map(prefix.match, written)))
        if count == len(written) or (place < OF_LOGS and count >= LOG_LINES_MIN and 2 * count >= len(written)):
            return prefix
    return None


def _is_message(lines: Sequence[str]) -> bool:
    """Whether all lines are indented as those of a commit's message, and one of them is a title."""
    written = [line for line in lines[:LOG_LINES_LOOKED_AT] if line.strip()]
    are_indented = len(written) >= LOG_LINES_MIN and all(line.startswith(_MESSAGE_INDENT) for line in written)
    return are_indented and any(re.match(r" {4}\w.*:\s*$", line) for line in written)


def _is_table(lines: Sequence[str]) -> bool:
    """Whether the lines are rows of a table without bars at its sides, whose names look like those of containers."""
    bars = {line.rstrip("| ").count("|") for line in lines}
    return len(bars) == 1 and bars.pop() > 1 and not any(re.match(r"[^|]*\|\s*\|", line) for line in lines)


def _looks_encoded(lines: Sequence[str]) -> bool:
    """Of a part that was copied without its header: equals signs are written as codes, and lines go on."""
    if any(map(_ENCODING.match, lines)):
        return False
    return sum(map(bool, map(_ENCODED.search, lines))) >= ENCODED_LINES_MIN and any(
        line.rstrip().endswith("=") for line in lines
    )


def _of_code(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("=", "")).decode(errors="replace")
