"""Patterns mean the same under every Python that iolab runs on."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.source

PYTHON = Path(__file__).parent.parent / "python" / "iolab"
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{\{?[\d,]+\}\}?)\+")


def test_no_group_is_possessive() -> None:
    """Before 3.11.5, which Debian 12 does not have, a possessive group that backtracks loses matches (gh-106052): an
    atomic group, `(?>(?:a|b)+)` for `(?:a|b)++`, does not."""
    found = [
        f"{path.relative_to(PYTHON)}:{number}"
        for path in sorted(PYTHON.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if POSSESSIVE_GROUP.search(line)
    ]
    assert not found
    assert POSSESSIVE_GROUP.search("(?:a|b)++") and POSSESSIVE_GROUP.search("(?:a){{1,5}}+")
