"""Which of several settings the others are compared with, if nobody names one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from iolab.domain.versions import version_order

EARLIER = frozenset(
    (
        "old",
        "before",
        "base",
        "baseline",
        "stock",
        "vanilla",
        "unpatched",
        "unmodified",
        "original",
        "without",
        "previous",
    )
)
"""Words in a name that say what others are compared with. A shell gives `after` before `before`."""
_VERSION = re.compile(r"(?P<what>(?>(?:[A-Za-z]++[ _-]?)*))(?P<numbers>\d{1,6}(?>(?:\.\d{1,6})+))(?P<rest>.*)")
_UNFINISHED = re.compile(r"[-_.~]?(?:rc|alpha|beta|pre|dev)[-_.]?\d{0,6}", re.IGNORECASE)


def earlier_of(names: Iterable[str]) -> str | None:
    """The only one that is called the earlier; None if none is, or several."""
    found = [name for name in dict.fromkeys(names) if EARLIER & set(re.split(r"[\W_]+", name.lower()))]
    return found[0] if len(found) == 1 else None


def oldest_of(names: Sequence[str]) -> str | None:
    """The oldest of versions of one thing: `6.9-rc2` before `6.9` before `6.10`; None if they are none, or the oldest
    is there several times, as `6.9` and `6.9-patched`. Shares such as 0.5 are no versions."""
    found = {name: _version_of(name) for name in dict.fromkeys(names)}
    known = [one for one in found.values() if one is not None]
    if len(known) < max(2, len(found)) or len({what for what, _ in known}) > 1:
        return None
    if all(re.fullmatch(r"\d+\.\d+", version) for _, version in known) and any(
        one.startswith("0.") for _, one in known
    ):
        return None
    order = {name: version_order(one[1]) for name, one in found.items() if one is not None}
    those = [name for name, one in order.items() if one == min(order.values())]
    return those[0] if len(those) == 1 else None


def baseline_of(names: Sequence[str]) -> str:
    """Of rows in any order: what is called the earlier, else the oldest version, else what comes first; empty if there
    is none."""
    return earlier_of(names) or oldest_of(names) or next(iter(names), "")


def how_chosen(names: Sequence[str], baseline: str, *, in_any_order: bool) -> str | None:
    """How the baseline was chosen that nobody named, if the names and their order, that of the rows, don't show it."""
    if len(set(names)) < 2 or earlier_of(names) == baseline:
        return None
    if oldest_of(names) == baseline:
        return f"baseline: {baseline}, the oldest version" if in_any_order or names[0] != baseline else None
    return f"baseline: {baseline}, the setting of the first row" if in_any_order else None


def _version_of(name: str) -> tuple[str, str] | None:
    """What the version is of, and the version without what follows a release or its candidate."""
    found = _VERSION.fullmatch(name.strip())
    if found is None:
        return None
    candidate = _UNFINISHED.match(found["rest"])
    what = re.sub(r"(?:^|[ _-])v$", "", found["what"], flags=re.IGNORECASE)
    return what.strip(" _-").lower(), found["numbers"] + (candidate[0] if candidate else "")
