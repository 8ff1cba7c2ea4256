"""JSON of other tools: read whole, after a look at how much it would become."""

from __future__ import annotations

import re

from iolab.adapters.importer.source import Source
from iolab.base.errors import InputError

VALUES_MAX = 10_000_000
"""Each takes up to 240 bytes of memory once it is decoded."""
DIGITS_MAX = 400
"""Of one number: no double has more before its point, and Python decodes no integer of 4,300."""

_LONG_NUMBER = re.compile(rf"(?<!\d)\d{{{DIGITS_MAX + 1}}}")


def text_of(source: Source) -> str:
    """The file as text that can be decoded. InputError for more than 256 MiB, 10 million values, or 400 digits."""
    text = source.whole()
    values = sum(map(text.count, ",[{"))
    if values > VALUES_MAX:
        raise InputError(
            f"about {values:,} values, expected at most {VALUES_MAX:,}", where=source.name, remedy="split the file"
        )
    if found := _LONG_NUMBER.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise InputError(f"a number of more than {DIGITS_MAX} digits", where=f"{source.name}:{line}")
    return text
