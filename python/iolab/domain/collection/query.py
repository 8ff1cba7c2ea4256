"""Which runs are asked for: words of a query, each of which has to hold.

`kernel:6.12 verdict:slower not:tag:accepted since:2026-11-01 nightly`: a word alone is looked for in everything that a
run is called; `key:text` in that part of it; `not:` in front asks for those of which it does not hold. Case does not
matter. The pages read the same language (`presentation/site/static/query.js`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from iolab.base.errors import InputError, unknown
from iolab.domain.collection.entry import Entry

TEXTS: dict[str, Callable[[Entry], Sequence[str]]] = {
    "run": lambda one: (one.name, one.id),
    "title": lambda one: (one.title,),
    "machine": lambda one: (one.machine, one.hostname),
    "kernel": lambda one: (one.kernel,),
    "setting": lambda one: one.settings,
    "workload": lambda one: one.workloads,
    "verdict": lambda one: tuple(one.verdicts),
    "state": lambda one: (one.state,),
    "tag": lambda one: one.labels.tags,
    "note": lambda one: (one.labels.note,),
}
"""By key, the texts in which it is looked for."""
DATES = ("since", "until")
KEYS = (*TEXTS, *DATES)
IN_ALL = ("run", "title", "machine", "kernel", "setting", "workload", "tag", "note")
"""Where a word without a key is looked for."""
NOT = "not:"
MACHINES = ("model", "guest")
"""Names of machines have a colon themselves."""


@dataclass(frozen=True)
class Condition:
    """A word of a query. `key`: empty, if the word may be anywhere."""

    key: str
    text: str
    negated: bool

    def holds(self, entry: Entry) -> bool:
        """Whether the run is one of those that the word asks for."""
        return self._found(entry) != self.negated

    def _found(self, entry: Entry) -> bool:
        if self.key in DATES:
            if not entry.date:
                return False
            return entry.date >= self.text if self.key == "since" else entry.date < _after(self.text)
        keys = (self.key,) if self.key else IN_ALL
        return any(self.text in text.lower() for key in keys for text in TEXTS[key](entry))


def parse(words: Sequence[str]) -> list[Condition]:
    """The conditions of a query; InputError names a key that does not exist, and what is no date."""
    return [_parsed(word) for text in words for word in text.split()]


def chosen(entries: Sequence[Entry], conditions: Sequence[Condition]) -> list[Entry]:
    """Those of which every condition holds, in their order."""
    return [one for one in entries if all(condition.holds(one) for condition in conditions)]


def _parsed(word: str) -> Condition:
    rest = word.removeprefix(NOT)
    negated = rest != word
    key, colon, text = rest.partition(":")
    if not colon or key in MACHINES:
        return Condition("", rest.lower(), negated)
    if key not in KEYS:
        raise InputError(f"{key}: {unknown('key', key, KEYS)}", where=word, remedy="such as kernel:6.12")
    if key in DATES:
        try:
            datetime.fromisoformat(text)
        except ValueError:
            raise InputError(f"{text}: no date", where=word, remedy=f"such as {key}:2026-11-23") from None
    return Condition(key, text.lower(), negated)


def _after(date: str) -> str:
    """What comes after all times of a day, or after a time: compared as text."""
    return date + "~"
