"""The file to be imported: its head to recognise it by, its lines to read it by, in bounded memory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.files.importer import separated_rows, stacked_cells
from iolab.files.importer.content import Content, content_of, content_with, name_unpacked, stem_of
from iolab.files.importer.html_table import BEGINS, WIKI_BEGINS, wiki_with_bars, with_bars
from iolab.files.importer.posted import NumberedLine, Posting, is_quoted, plain
from iolab.files.importer.wrapped import Wrapping, joined, wrappings_of

HEAD_BYTES = 1 << 20
MAIL_BYTES_MAX = 1 << 17
LINE_BYTES_MAX = 1 << 14
TEXT_BYTES_MAX = 1 << 30
WHOLE_BYTES_MAX = 1 << 28
READ_AS_TRACE = "read it with iolab trace"
SAVE_AS_CSV = "save its table as CSV"
BINARY = {
    b"\x17\x08\x44tracing": ("a trace of trace-cmd", READ_AS_TRACE),
    b"PERFILE2": ("a recording of perf", READ_AS_TRACE),
    b"\x07tae": ("a trace of blktrace", READ_AS_TRACE),
    b"\x08tae": ("a trace of blktrace", READ_AS_TRACE),
    b"PK\x03\x04": ("an archive or a spreadsheet", SAVE_AS_CSV),
    b"\xd0\xcf\x11\xe0": ("a spreadsheet", SAVE_AS_CSV),
    b"PAR1": ("a Parquet file", SAVE_AS_CSV),
    b"SQLite format 3\0": ("a database of SQLite", SAVE_AS_CSV),
}
"""What such a file is by its first bytes, and what to do with it."""
TAR_MAGIC, TAR_MAGIC_AT = b"ustar", 257

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
"""Sequences that set colours or move the cursor (ECMA-48)."""
_ROUND_NUMBER = re.compile(r"(?<=.)[-_.](?:round|run|r|iteration|iter)[-_.]?\d+$", re.IGNORECASE)


@dataclass(frozen=True)
class Line:
    """A line of a source, as importers look at it."""

    number: int
    """From 1."""
    text: str
    """Without line end, quoting prefix (`> `, `>> `) and no-break spaces."""

    @cached_property
    def words(self) -> list[str]:
        """The words between spaces."""
        return self.text.split()


@dataclass(frozen=True)
class Source:
    """A file to be imported, or several that are one text."""

    path: Path
    paths: tuple[Path, ...] = ()
    """More files whose lines follow; line numbers go on."""
    head_bytes: int = HEAD_BYTES
    label: str | None = None
    """What its setting is called, instead of the file's name."""
    wrapping: Wrapping | None = None
    """How its lines were wrapped, if they are to be joined."""
    part: str | None = None
    """The part of the file's text that it is, if it is not all of it."""
    first_line: int = 1
    """The number that its first line has in the file."""

    @property
    def name(self) -> str:
        """The first file's path, for error lines."""
        return str(self.path)

    @property
    def stem(self) -> str:
        """The file's name without extension: the setting's name if the file has none."""
        return self.label or stem_of(self.path.name) or self.file_name

    @property
    def file_name(self) -> str:
        """The file's name, without the ending of its packing."""
        return name_unpacked(self.path.name)

    @property
    def content(self) -> Content:
        """What the first file holds. Whoever opens its path refers to it until it is closed."""
        return content_of(self.path) if self.part is None else content_with(self.part)

    @property
    def stem_without_round(self) -> str:
        """`base` of `base-run3.json`. A bare number may be anything: a kernel's version, a queue depth."""
        return self.label or _ROUND_NUMBER.sub("", self.stem)

    @cached_property
    def head(self) -> str:
        """The first MiB (`head_bytes`) as text, quoting prefixes removed. InputError for what is no readable text."""
        content = self._head_bytes[self.begin :]
        for magic, (what, remedy) in BINARY.items():
            if content.startswith(magic):
                raise InputError(f"{what}, expected text", where=self.name, remedy=remedy)
        if content[TAR_MAGIC_AT:].startswith(TAR_MAGIC):
            raise InputError("an archive, expected text", where=self.name, remedy="unpack it: tar -xf; name its files")
        if b"\0" in content:
            raise InputError("a binary file, expected text", where=self.name)
        text = "\n".join(line for _, line in self._whole_lines(enumerate(self._raw_lines)))
        if not text.strip():
            raise InputError("the file is empty", where=self.name)
        return text

    @property
    def is_wrapped(self) -> bool:
        """Whether a log wrote something before each line, or a mail encoded them all."""
        return self._posting.is_wrapped

    @property
    def has_decimal_commas(self) -> bool:
        """Whether commas of its text are taken as decimal signs."""
        return self._posting.commas is not None

    @property
    def is_short(self) -> bool:
        """Whether it is no longer than mails are."""
        return len(self._head_bytes) <= MAIL_BYTES_MAX

    @cached_property
    def _raw_lines(self) -> list[str]:
        text = self._head_bytes[self.begin :].decode(errors="replace")
        return [_as_shown(line) for line in text.split("\n")]

    @cached_property
    def _posting(self) -> Posting:
        return Posting(self._raw_lines)

    @cached_property
    def _has_html(self) -> bool:
        return any(map(BEGINS.search, self._raw_lines))

    @cached_property
    def _has_wiki(self) -> bool:
        return any(map(WIKI_BEGINS.match, self._raw_lines))

    def has_line(self, pattern: re.Pattern[str]) -> bool:
        """Whether a line of the head matches from its start."""
        return any(pattern.match(line) for line in self.text_lines)

    @cached_property
    def text_lines(self) -> list[str]:
        """Those of the head that are short enough for a line of a text table."""
        return [line for line in self.head_lines if len(line) <= LINE_BYTES_MAX]

    @cached_property
    def head_lines(self) -> list[str]:
        """The lines of the head; the last one may be cut off."""
        return self.head.split("\n")

    @property
    def is_quoted(self) -> bool:
        """Whether the text begins as one that is quoted in a mail."""
        return self._head_bytes.lstrip().startswith(b">")

    @property
    def begin(self) -> int:
        """Where the text starts in the file, in bytes."""
        return len(BYTE_ORDER_MARK) if self._head_bytes.startswith(BYTE_ORDER_MARK) else 0

    def after_line(self, number: int) -> int:
        """Where in the file the line after that one starts, in bytes; the first is 1."""
        head, end = self._head_bytes, 0
        for _ in range(number):
            end = head.find(b"\n", end) + 1 or len(head)
        return end

    @property
    def lines_about(self) -> int:
        """How many lines the file has, estimated from its size and the length of the first ones."""
        ends = max(1, self._head_bytes.count(b"\n"))
        content = self.content
        return -(-content.path.stat().st_size * ends // max(1, len(self._head_bytes)))

    @cached_property
    def _head_bytes(self) -> bytes:
        content = self.content
        try:
            with content.path.open("rb") as file:
                return file.read(self.head_bytes)
        except OSError as error:
            raise InputError(error.strerror or str(error), where=self.name) from None

    def lines(self, problem: Callable[[str, int], None]) -> Iterator[Line]:
        """Line by line. `problem` is called for each that is longer than 16 KiB, which is left out. InputError above
        1 GiB."""
        for number, text in self._whole_lines(self._numbered_lines(problem)):
            yield Line(number, text)

    def _whole_lines(self, lines: Iterable[NumberedLine]) -> Iterator[NumberedLine]:
        posted = self._posting.lines(lines)
        posted = with_bars(posted) if self._has_html else posted
        posted = wiki_with_bars(posted) if self._has_wiki else posted
        if self.is_short:
            posted = separated_rows.with_bars(list(stacked_cells.with_bars(list(posted))))
        return posted if self.wrapping is None else joined(posted, self.wrapping)

    def joined(self, *, indented: bool) -> list[Source]:
        """The same with lines joined that a mail may have wrapped, for each way in which it may have; none if it is
        larger than mails are, or JSON. `indented`: whether what goes on may be indented."""
        is_mail = not self.paths and self.is_short and self.head.lstrip()[:1] not in "{["
        return [
            replace(self, wrapping=way) for way in (wrappings_of(self.head_lines, indented=indented) if is_mail else ())
        ]

    def _numbered_lines(self, problem: Callable[[str, int], None]) -> Iterator[NumberedLine]:
        number = size = 0
        for path in (self.path, *self.paths):
            content = self.content if path is self.path else content_of(path)
            with content.path.open("rb") as file:
                while line := file.readline(LINE_BYTES_MAX + 1):
                    number += 1
                    size += len(line)
                    is_long = len(line) > LINE_BYTES_MAX
                    rest = line
                    while is_long and rest and not rest.endswith(b"\n") and size <= TEXT_BYTES_MAX:
                        rest = file.readline(HEAD_BYTES)
                        size += len(rest)
                    if size > TEXT_BYTES_MAX:
                        raise self._too_large(TEXT_BYTES_MAX)
                    if is_long:
                        problem(f"the line is longer than {LINE_BYTES_MAX >> 10} KiB, left out", number)
                        continue
                    yield number, _as_shown(line.decode(errors="replace").rstrip("\n"))

    def whole(self) -> str:
        """All of it as text. InputError above 256 MiB."""
        content = self.content
        with content.path.open("rb") as file:
            text = file.read(WHOLE_BYTES_MAX + 1)
        if len(text) > WHOLE_BYTES_MAX:
            raise self._too_large(WHOLE_BYTES_MAX)
        return text.decode(errors="replace")

    def _too_large(self, bytes_max: int) -> InputError:
        return InputError(
            f"the file is larger than {bytes_max >> 20} MiB, the most that this format is read from",
            where=self.name,
            remedy="split it",
        )


def _as_shown(line: str) -> str:
    """The line as a terminal shows it: without colours, and what a carriage return writes over, such as a progress
    meter."""
    shown = line.rstrip("\r").rpartition("\r")[2]
    return _COLOURS.sub("", shown) if "\x1b" in shown else shown


VALUES_MAX = 10_000_000
"""Each takes up to 240 bytes of memory once it is decoded."""
DIGITS_MAX = 400
"""The digits of one number: no double has more before its point, and Python decodes no integer of 4,300."""

_LONG_NUMBER = re.compile(rf"(?<!\d)\d{{{DIGITS_MAX + 1}}}")


_OF_PYTHON = re.compile(r"'(?P<text>(?>(?:[^'\\]|\\.)*))'|\"(?>(?:[^\"\\]|\\.)*)\"|\b(?:True|False|None)\b")
"""What Python prints of a dictionary that JSON has not."""


def _in_json(found: re.Match[str]) -> str:
    if found["text"] is not None:
        return json.dumps(found["text"])
    return {"True": "true", "False": "false", "None": "null"}.get(found[0], found[0])


def json_text(source: Source) -> str:
    """The file as text that can be decoded, without the marks of quoting. InputError for more than 256 MiB, 10 million
    values, or 400 digits."""
    text = source.whole()
    if source.is_wrapped:
        text = "\n".join(line.text for line in source.lines(lambda what, line: None))
    elif is_quoted(text):
        text = "\n".join(map(plain, text.split("\n")))
    values = sum(map(text.count, ",[{"))
    if values > VALUES_MAX:
        raise InputError(
            f"about {counted(values, 'value')}, expected at most {VALUES_MAX:,}",
            where=source.name,
            remedy="split the file",
        )
    if "'jobname'" in text and '"jobname"' not in text:
        text = _OF_PYTHON.sub(_in_json, text)
    if found := _LONG_NUMBER.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise InputError(f"a number of more than {DIGITS_MAX} digits", where=f"{source.name}:{line}")
    return text
