"""What an importer is: a name, how its files are known by their content, and how they become results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from iolab.adapters.importer.results import Results
from iolab.adapters.importer.source import Source


@dataclass(frozen=True)
class Format:
    name: str
    help: str
    recognises: Callable[[Source], bool]
    parse: Callable[[Source, Results], None]
    """Adds what it finds; problems that leave something to be read are added to the results. InputError otherwise."""
    words: tuple[str, ...]
    """Typical of such files: an unrecognised file's nearest formats are told by them."""
    among_text: bool = True
    """A text table that may stand in a mail with others; False: the whole file is of this format or not at all."""
    resembles: Callable[[Source], bool] = lambda source: False
    """Whether a file that no format recognises is meant to be one of this: then `parse` says what is wrong with it."""
