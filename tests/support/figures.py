"""Files of published figures, as text."""

from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.studies.reproduction.publication import Publication, loads


def figures(text: str) -> Publication:
    return loads(text, Path("figures.toml"))


def expect_problem(text: str, line: int, words: tuple[str, ...]) -> None:
    """The first problem is on that line and says all of it."""
    with pytest.raises(InputError) as raised:
        figures(text)
    message = str(raised.value).splitlines()[0]
    assert message.startswith(f"figures.toml:{line}:"), message
    for word in words:
        assert word in message


def expect_understood_or_refused(text: str, line: int, instead: str) -> None:
    """With another line in this place: read, or refused with the place of a problem."""
    lines = text.splitlines()
    lines[line] = instead
    try:
        figures("\n".join(lines))
    except InputError as error:
        assert str(error).startswith("figures.toml:")
