"""The order of versions: numbers by their size, and what precedes a release before it."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAME = r"(?P<name>(?>(?:[A-Za-z][A-Za-z_/ -]*+)?))"
_VERSION = re.compile(_NAME + r"\d[A-Za-z0-9]*+(?>(?:[.\-_+~]++[A-Za-z0-9]++)*)")
_PLAIN = re.compile(_NAME + r"\d++(?>(?:[.-]\d++)*)(?>(?:[.-]?rc\d++)?)")
_HASH = re.compile(r"[0-9a-f]{7,40}|[0-9a-f]{64}")
_PART = re.compile(r"\d+|[a-z]+")
_BEFORE_RELEASE = ("dev", "next", "pre", "preview", "alpha", "a", "beta", "b", "rc")
"""Words of what becomes a release, from the earliest to the last."""

Order = tuple[tuple[int, int, str], ...]


def version_order(text: str) -> Order:
    """Sorts `6.1-rc2` before `6.1`, that before `6.1.1`, and `6.9` before `6.12`."""
    parts: list[tuple[int, int, str]] = []
    for part in _PART.findall(text.lower()):
        if part.isdecimal():
            parts.append((3, int(part), ""))
        elif part in _BEFORE_RELEASE:
            parts.append((0, _BEFORE_RELEASE.index(part), ""))
        else:
            parts.append((2, 0, part))
    return (*parts, (1, 0, ""))


def are_versions(entries: Sequence[str], *, called_so: bool) -> bool:
    """Whether all entries are numbers or versions of one thing. `called_so`: their column is called as versions are,
    so that they may have other words in them, such as `6.1.0-47-amd64`."""
    form = _VERSION if called_so else _PLAIN
    found = [form.fullmatch(entry) for entry in entries]
    hashes = all(map(_HASH.fullmatch, entries)) and not all(entry.isdecimal() for entry in entries)
    return not hashes and len({one and one["name"] for one in found}) == 1 and None not in found
