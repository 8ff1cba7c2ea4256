"""What stands above each table in a text: a short line that ends in a colon, a heading of Markdown, or, without any of
these, a short line that stands right above what a tool printed.

Tables of the same measurement under different titles are settings, not rounds: *Before this change:* and *After this
change:*. Titles that only number the tables are none, nor are lines that the tool prints each time.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from iolab.domain.parameter import SIZE, named_amount
from iolab.files.importer.columns import CHANGES, MEASURED
from iolab.files.importer.shell_commands import COMMAND_MAX, OF_CHANGE, command_of, host_of
from iolab.files.importer.source import Line

OF_ANY_RUN = re.compile(
    r"(?:(?:here|this|below|following)(?:'s| is| are)? |for )?(?:(?:the|an?|some|my) )?(?:full |fio )?"
    r"(?:results?|outputs?|logs?|commands?|summary|details?|examples?|numbers|screen ?shots?|pictures?|images?|photos?"
    r"|attachments?|graphs?|charts?)",
    re.IGNORECASE,
)
"""A heading that distinguishes no run from the next; that of the section does."""
TITLE_MAX = 100
OWN_BELOW_MAX = 4
"""Lines from a title to one that the tool prints below it. Chosen."""
BARE_MIN = 2
BARE_WORDS_MAX = 8
"""Of a title without a mark: a longer line is a sentence."""
ITEM_WORDS_MAX = 14
"""Of one that is an item of a list."""
_FIGURE = re.compile(r"\d[\d.,]*+")
_SIZE = re.compile(r"(?<![\w.])0 ?[kKMGT]i?B\b")
"""Of a figure: a tool prints MB/s or GB/s, whichever it comes to."""
_NOT_BARE = re.compile(r":(?! [A-Za-z\d(])|[=|{}<>;\"\t]|[.,!?]$|^[^\w#*=~(\[-]|^\d+(?:\.\d+)?\s|^\d+\+\d+ ")
"""Parts of figures, sentences and code."""
_LABEL_OF_TOOL = re.compile(r"[^:]{1,40}: ~?\d[\d.,]*+[kKMGT%]?(?:i?B)?$")
"""A name and a figure: tools print such."""
_DRIVE = re.compile(r"\s*+(?P<path>/dev/[\w/-]{1,60}):\s*+")
_HEADING = re.compile(
    r"#{2,6}\s++(?P<title>\S.*)|\*\*(?P<bold>[^*]++)\*\*(?: \([^()]*+\))?$|//+ ?(?P<remark>[^/\s].*)"
    r"|(?:=|[=~*-]{2,}) ?=* ?(?P<ruled>[^=~*\s-](?:[^=~*]{0,80}[^=~*\s-])?) [=~*-]+$"
    r"|[=~*-]{2,} (?P<numbered>(?i:round|run|iteration|iter|pass|trial|loop) ?\d{1,4}: [^=~*\s][^~*]{0,80})$"
    rf"|# ?(?P<change>(?i:{OF_CHANGE}))$"
    r"|(?i:running|starting|testing|performing) (?P<begun>[^.]{2,60}?) ?(?:\.\.\.|\u2026)$"
)
_VERSIONED = re.compile(
    r"(?!(?:run|round|test|iter\w*|trial|job)[-_]?\d)[A-Za-z][A-Za-z.+-]{1,20}\d[\w.+-]{0,20}"
    r"|v?\d{1,3}\.\d{1,3}(?:[.+-]\w{1,20}){0,3}(?: (?:output|results?))?",
    re.IGNORECASE,
)
"""`ext4`, `v6.1`, `6.14 output`: names that differ by their figures."""
_OPTION = re.compile(r"\s-{1,2}[A-Za-z]")
"""What a command has: the line below it begins anew."""
_OPTION_WITH_VALUE = re.compile(r"-{1,2}[A-Za-z]\S*(?: [^-\s]\S*)?")
OPTIONS_MAX = 3
"""Of those in which commands differ, that a name has. Chosen."""
_RULER = re.compile(r"\s*+[-=~_]{3,}+\s*+")
"""Below a title, or between outputs."""
_QUOTED = re.compile(r"\s*+(?:[\"\u201c](?P<text>[^\"\u201c\u201d]+)[\"\u201d]|'(?P<single>[^']+)')\s*+")
ATTRIBUTION = re.compile(r"(?:wrote|(?-i:[A-Z]\S+ [A-Z]\S+|>) writes|said|schrieb|a écrit|написал)\s*:$", re.IGNORECASE)
_OF_TOOL = re.compile(
    r"#(?!\d)|[$|]|/(?!dev/\S+ \()|(?:real|user|sys) +\d|Compare |Test (?:if|open_sync|\S+ with) |Non-[Ss]ync|Options?:"
    r"|statement latencies |Running the test |[sc]?lat percentiles |Run status group |Disk stats |change:$"
)
"""Lines of tools, of commands and of remarks that look like titles."""
_COUNT = r"(?:\d+(?:st|nd|rd|th)?|first|second|third|fourth|fifth|last)"
_ROUND = r"(?:round|run|iteration|iter|pass|attempt|trial|try|test|time|loop|repeat)"
NUMBERED_ROUND = r"(?i:(?:round|run|iteration|iter|repeat|rep|trial|pass|attempt)[ _.#-]{0,2}|#)\d{1,4}"
"""A name that only numbers what was repeated: `run 3`. What *test 3* is may differ from *test 2*."""
_NUMBERING = re.compile(rf"\W*\b(?:{_ROUND}\W?{_COUNT}|{_COUNT} {_ROUND}|#\d+)\b\W*|^\W*\d+\W*$", re.IGNORECASE)
_FILE_ENDING = re.compile(r"(?<=\w)\.(?:png|jpe?g|gif|bmp|txt|log|json|csv|out|pdf)$", re.IGNORECASE)
"""Of a name that is a file's."""
_TEST = re.compile(
    r"\b(?:(?:initial|random(?:ly)?|rand|sequential(?:ly)?|seq|mixed|pure|re|rnd)[- ]?){0,3}"
    r"(?:reads?|writes?|(?:read|writ)(?:ing|ers?)|re-?reads?|re-?writes?|trims?|discards?|fsyncs?)\b",
    re.IGNORECASE,
)
_ASSIGNMENT = re.compile(r"(?!p\d\d)[A-Za-z][\w.-]*+=[^\s=,;]+")
_NAMED_OPTION = re.compile(r"(?<!\S)[A-Za-z][\w.-]*+=(?:[A-Za-z][\w.-]*+|\d++[kKMG](?:i?B)?)(?=,?\s|$)")
"""`bus=virtio`, `msize=512k`, in a title that says more: no figure, as `IOPS=400` is."""
CHANGED = re.compile(
    rf"(?:{CHANGES}|with(?:out)?|w/o?)(?: (?:this|the|these|my))?"
    r"(?: (?:patch(?:e[ds]|set)?|changes?|series|fix|commit))?(?: set| series)?"
    r"(?: kernel)?(?: (?:applied|results?))?(?: ?\([^()]{1,40}\))?",
    re.IGNORECASE,
)
"""Titles of what was changed: those of what was done stand above them, or below."""
KERNEL = re.compile(
    r"(?:linux[ -])?v?[2-7]\.\d{1,2}(?:\.\d{1,3})?(?:-\w\S*?)?(?: ?\+ ?[a-z][^:+]{1,40})?", re.IGNORECASE
)
"""`5.10-rc5`, `5.10-rc5+all patches`."""
_ITEM = re.compile(r"\s*+\d{1,2}[.)] (?P<text>\S.*)")
_IN_BRACKETS = re.compile(r"\s*+\[[^\[\]]{1,60}\]\s*+")
_FENCE = re.compile(r"\s*+(?:```|~~~)")
_TAG = re.compile(r"</?(?:details|summary|b|i|strong|em|p|br|code|pre|u|h[1-6])\b[^<>]{0,40}>", re.IGNORECASE)
DETAILS = re.compile(r"\s*+</?(?:details|summary)\b", re.IGNORECASE)
"""Tags in which people fold results away."""
_TITLE_TAG = re.compile(r"\s*+(?:<details\b[^<>]{0,40}>\s*+)?<(?:summary|h[1-6])\b", re.IGNORECASE)
_BEFORE_TITLE = re.compile(
    r"(?:\S+ ){2,30}\S*[^\W\d]{4}[.!?] (?=\S)"
    rf"|.*, (?:and )?(?=(?:{CHANGES}|with|without|old|new)\b[^,]*:$)",
    re.IGNORECASE,
)
"""What a line says before the title that it ends in: `We moved the log to NVMe. fsync tests, before:`."""
_MARKS = "*_`#:= \t"
_BULLET = re.compile(r"^\s*[-+*•]\s+")


_PROSE = re.compile(r"(?:[^\W\d_][\w'./-]*+[,;:!?)]*+(?:\s++|$)(?:\(?\d\S*+\s++)?\(?){7}")
"""Seven words or more from the line's beginning on, of which few are figures."""
_DATED = re.compile(r"(?:[A-Z][a-z]{2} ){2}[ \d]\d \d\d:\d\d:\d\d (?:[A-Z]{2,5} )?\d{4}\s+\S")
"""What a script writes above its next part."""
Numbered = tuple[int, str]
"""The number of a line, and its title or text."""


class Titles:
    """The titles of a text, line by line."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._lines = [
            (line.number, (found["text"] or found["single"]) if (found := _QUOTED.fullmatch(line.text)) else line.text)
            for line in lines
            if not _RULER.fullmatch(line.text)
        ]

    @cached_property
    def _numbers(self) -> list[int]:
        return [number for number, _ in self._lines]

    @cached_property
    def _shapes(self) -> Counter[str]:
        return Counter(_shape(text) for _, text in self._lines)

    def marked(self, tables: Sequence[int]) -> dict[int, str | None]:
        """By line of each table, the title in force there that a colon or a heading marks; None before the first."""
        lines = [one for place, one in enumerate(self._lines) if not self._begins_list(place)]
        found = [(line, title) for line, text in lines if (title := title_of(text) or self._drive(text))]
        whole = [(line, title) for line, text in lines if (title := title_of(text, whole=True))]
        if len({title for _, title in whole}) > len({title for _, title in found}):
            found = whole
        found = _less_below_others(found)
        count = Counter(title for _, title in found)
        # What stands below the last table too is the tool's own, and what stands above each.
        own = {title for line, title in found if line > max(tables) and count[title] > 1}
        above_each = {title for title, often in count.items() if often >= max(2, len(tables))}
        if len(above_each) == 1 and (commands := self._commands_below(found, above_each)):
            return _in_force(commands, tables)
        own |= above_each
        return _in_force([one for one in found if one[1] not in own], tables)

    def _drive(self, text: str) -> str | None:
        """The path of a drive in a line of its own, unless it is hdparm that prints such lines."""
        found = _DRIVE.fullmatch(text)
        return found["path"] if found and not self._is_of_hdparm else None

    @cached_property
    def _is_of_hdparm(self) -> bool:
        return any(text.lstrip().startswith("Timing ") for _, text in self._lines)

    def _begins_list(self, place: int) -> bool:
        """Whether the line is a sentence whose colon is of the items below it, which are no figures."""
        text = self._lines[place][1].strip()
        if not text.endswith(":") or not _PROSE.match(text):
            return False
        below = next((text for _, text in self._lines[place + 1 : place + 4] if text.strip()), "")
        return bool(_BULLET.match(below)) and not MEASURED.search(below)

    def _commands_below(self, titles: Sequence[Numbered], same: set[str]) -> list[Numbered]:
        """What distinguishes the commands right below equal titles, such as `With:`; none if not each has one."""
        texts = dict(self._lines)
        lines = [line for line, title in titles if title in same]
        below = [texts.get(line + 1) or texts.get(line + 2, "") for line in lines]
        if not all(len(_OPTION.findall(text)) > 1 and not MEASURED.search(text) for text in below):
            return []
        options = [_OPTION_WITH_VALUE.findall(text) for text in below]
        common = set.intersection(*map(set, options))
        names = [" ".join([one for one in of if one not in common][:OPTIONS_MAX]) for of in options]
        return list(zip(lines, names, strict=True)) if len(set(names)) == len(names) and all(names) else []

    def changes(self, tables: Sequence[int]) -> dict[int, tuple[str, str | None]]:
        """By line of each table, the last title above it that says what was changed, and the last of any other kind;
        none unless there is such a title above each, and they differ."""
        found = [(line, title) for line, text in self._lines if (title := title_of(text) or _bare_title(text))]
        count = Counter(title for _, title in found)
        for name in (CHANGED, KERNEL):
            changed = _in_force([one for one in found if name.fullmatch(one[1])], tables)
            others = [one for one in found if not name.fullmatch(one[1]) and count[one[1]] < max(2, len(tables))]
            done = _in_force(others, tables)
            known = {line: (title, done[line]) for line, title in changed.items() if title is not None}
            if len(known) == len(set(tables)) and len(set(changed.values())) > 1:
                return known
        return {}

    def bare(self, tables: Sequence[int], outputs: int) -> dict[int, str | None]:
        """The same of short lines without a mark, right above a line that each output has. `outputs`: how often the
        tool's output stands in the text."""
        shapes = self._shapes
        texts = Counter(text.strip() for _, text in self._lines)
        found = [
            one
            for one in _above_output(self._lines, {shape for shape, count in shapes.items() if count >= outputs})
            if (shapes[_shape(one[1])] < outputs and _may_be_title(one[1]))
            or (texts[one[1].strip()] < outputs and (_is_amount(one[1]) or _is_versioned(one[1])))
        ]
        if not found:
            found = self._first_lines(tables, outputs, shapes)
        return _in_force([(line, _without_numbering(text.strip())) for line, text in found], tables)

    def commands(self, tables: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """By line of each table, the commands of a shell that were given since the table before, or the last ones, each
        with the lines that it goes on in."""
        found: dict[int, tuple[str, ...]] = {}
        given: tuple[str, ...] = ()
        lines = iter(self._lines)
        for table in sorted(tables):
            since: list[str] = []
            begun = ""
            for number, text in lines:
                whole, begun = f"{begun}{text.lstrip(' >')}" if begun else text, ""
                if whole.endswith("\\") and len(whole) < COMMAND_MAX:
                    begun = whole[:-1]
                elif command := command_of(whole):
                    since.append(command)
                if number >= table:
                    break
            given = tuple(since) or given
            found[table] = given
        return found

    def hosts(self, tables: Sequence[int]) -> dict[int, str | None]:
        """By line of each table, the host in the prompt of the last command above it."""
        return _in_force([(line, host) for line, text in self._lines if (host := host_of(text))], tables)

    def prose_between(self, first: int, last: int) -> str | None:
        """A line of prose between two tables, by their lines: one that the tool does not print each time."""
        numbers = self._numbers
        between = self._lines[bisect_right(numbers, first) : bisect_left(numbers, last)]
        of_once = (text for _, text in between if self._shapes[_shape(text)] == 1)
        found = (text.strip() for text in of_once if _PROSE.match(text.strip().replace("*", "")) or _DATED.match(text))
        return next(found, None)

    def _first_lines(self, tables: Sequence[int], outputs: int, shapes: Counter[str]) -> list[Numbered]:
        """The first line of each output, if these lines differ by their figures: `kernel 6.1`, `kernel 6.6`."""
        own = [one for one in self._lines if one[1].strip() and shapes[_shape(one[1])] >= outputs]
        found = [one for one in own if _shape(one[1]) == _shape(own[0][1])]
        texts = {text.strip() for _, text in found}
        is_above = len(found) == len(tables) and all(
            line < table for (line, _), table in zip(found, sorted(tables), strict=True)
        )
        return found if is_above and len(texts) > 1 and all(map(_may_be_title, texts)) else []


def _less_below_others(titles: Sequence[Numbered]) -> list[Numbered]:
    """The titles less those of a tool's own, which come again, each time right below another."""
    below: dict[str, list[bool]] = {}
    for place, (line, title) in enumerate(titles):
        above = titles[place - 1] if place else (0, title)
        below.setdefault(title, []).append(above[1] != title and line - above[0] <= OWN_BELOW_MAX)
    own = {title for title, are_below in below.items() if len(are_below) > 1 and all(are_below)}
    return [one for one in titles if one[1] not in own]


def _in_force(titles: Sequence[Numbered], tables: Sequence[int]) -> dict[int, str | None]:
    lines = [line for line, _ in titles]
    places = {table: bisect_right(lines, table) for table in tables}
    return {table: titles[place - 1][1] if place else None for table, place in places.items()}


def _above_output(lines: Sequence[Numbered], own: set[str]) -> Iterator[Numbered]:
    """Lines that begin after a blank line, a command or the tool's output, with a line of the output (`own` shapes)
    below."""
    written = [one for one in lines if one[1].strip()]
    shapes = [_shape(text) for _, text in written]
    for place in range(len(written) - 1):
        text = written[place][1]
        apart = place == 0 or shapes[place - 1] in own or written[place - 1][0] < written[place][0] - 1
        begins = apart or _is_amount(text) or _IN_BRACKETS.fullmatch(text) or _OPTION.search(written[place - 1][1])
        if begins and shapes[place + 1] in own:
            yield written[place]


def _shape(text: str) -> str:
    """The line without its figures: what a tool prints each time."""
    return " ".join(_SIZE.sub("0 B", _FIGURE.sub("0", text)).split())


def _may_be_title(text: str) -> bool:
    short = text.strip()
    return (
        not (": " in short and (MEASURED.search(short) or _LABEL_OF_TOOL.match(short)))
        and BARE_MIN <= len(short) <= TITLE_MAX
        and len(short.split()) <= (ITEM_WORDS_MAX if _BULLET.match(text) else BARE_WORDS_MAX)
        and not _NOT_BARE.search(_NAMED_OPTION.sub("option", short))
        and not _OF_TOOL.match(short)
        and bool(re.search(r"[^\W\d_]", title := _without_numbering(short)))
        and not OF_ANY_RUN.fullmatch(title)
    )


def _bare_title(text: str) -> str | None:
    """The line as a title if it says what was changed and nothing else, or if it is a short item of a numbered list."""
    short = _without_numbering(text.strip())
    if CHANGED.fullmatch(short) or (KERNEL.fullmatch(short) and re.search(r"[a-z]", short)):
        return short
    item = _ITEM.fullmatch(text)
    return item["text"].strip() if item and _may_be_title(item["text"]) else None


def _is_versioned(text: str) -> bool:
    """`ext4`, or `raidz2: 6 disks`."""
    return bool(_VERSIONED.fullmatch(text.partition(": ")[0].strip())) and (": " not in text or _may_be_title(text))


def _is_amount(text: str) -> bool:
    """`bs=64k iodepth=8`, `threads 16`, `16 threads`, `64k`: what a script writes above each output. Such lines
    differ by their figures alone, as lines of tools do."""
    short = re.sub(r" = (?=\S+$)", "=", text.strip(_MARKS + "-"))
    words = short.split()
    if not words or len(short) > TITLE_MAX:
        return False
    reversed_ = f"{words[-1]} {words[0]}" if len(words) == 2 else ""
    return (
        all(map(_ASSIGNMENT.fullmatch, words))
        or any(map(named_amount, (short, reversed_)))
        or bool(SIZE.fullmatch(short))
    )


def may_name(text: str) -> bool:
    """Whether the line may be a title, with a mark or without."""
    return title_of(text) is not None or _may_be_title(text) or _is_amount(text)


def without_markup(text: str) -> tuple[str, bool]:
    """The line without tags of HTML, empty if it is a fence of Markdown; and whether its tags make it a title."""
    return ("" if _FENCE.match(text) else _TAG.sub("", text)), bool(_TITLE_TAG.match(text))


def title_of(text: str, *, whole: bool = False) -> str | None:
    """The line as a title, without marks and numbering; None for any other line. `whole`: with what stands before it
    in the line."""
    plain, is_tagged = without_markup(text)
    short = plain.strip()
    if not short or len(short) > TITLE_MAX:
        return None
    found = _HEADING.match(short)
    if not found and not is_tagged and (not short.endswith(":") or _OF_TOOL.match(short) or ATTRIBUTION.search(short)):
        return None
    text = next(filter(None, found.groups()), "") if found else short if whole else _BEFORE_TITLE.sub("", short)
    title = _FILE_ENDING.sub("", _without_numbering(text))
    names = re.search(r"[^\W\d_]", title) or (_VERSIONED.fullmatch(title) and (not found or KERNEL.fullmatch(title)))
    return title if names and not OF_ANY_RUN.fullmatch(title) else None


def differ_by_tests(titles: Sequence[str]) -> bool:
    """Whether each names an operation and the rest is the same: `Test readers results` and `Test writers results`."""
    rests = {" ".join(_TEST.sub(" ", title).split()).lower() for title in titles}
    return len(set(titles)) > 1 and len(rests) == 1 and all(map(_TEST.search, titles))


def _without_numbering(text: str) -> str:
    bare = _BULLET.sub("", text.replace("`", ""))
    return re.sub(r"(?i)^and ", "", " ".join(_NUMBERING.sub(" ", bare).strip(_MARKS).split()))
