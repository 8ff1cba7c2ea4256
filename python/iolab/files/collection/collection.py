"""The runs below a directory with what pages need of them: numbers in short, what repeats, what changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from pydantic import TypeAdapter

from iolab.base.schema import checked_json
from iolab.domain.collection.benchmark import Benchmark, Changed, benchmarks, changes_of
from iolab.domain.collection.entry import Entry
from iolab.domain.collection.extract import Extract
from iolab.domain.history.changes import FEWEST
from iolab.files.collection.listing import Listing
from iolab.files.collection.run_reader import read_runs

EXTRACTS_KEPT = 300
_EXTRACT = TypeAdapter(Extract)
_CHANGES = TypeAdapter(list[Changed])
HISTORY_MAX = 730
"""The newest runs of a benchmark that are looked at."""


class Collection(Listing):
    """A listing whose runs can be looked into."""

    def __init__(self, directory: Path, report_line: Callable[[str], None] = lambda line: None) -> None:
        """As of `Listing`."""
        super().__init__(directory, read_runs, report_line)
        self._changes: dict[tuple[str, str], tuple[str, list[Changed]]] | None = None
        self._parsed = lru_cache(EXTRACTS_KEPT)(self._parse)

    def extracts(self, entries: Sequence[Entry]) -> list[tuple[Entry, Extract]]:
        """Each run with what is kept of it; without those that could not be read."""
        return self._answer(lambda: self._extracts(entries))

    def _extracts(self, entries: Sequence[Entry]) -> list[tuple[Entry, Extract]]:
        texts = self._index.extracts([one.name for one in entries])
        found = []
        for one in entries:
            if (text := texts.get(one.name)) is not None:
                try:
                    found.append((one, self._parsed(text)))
                except ValueError as error:
                    self._index.refuse(f"run {one.name}: extract: {error}")
        return found

    @staticmethod
    def _parse(text: str) -> Extract:
        return checked_json(_EXTRACT, text)

    def benchmarks(self) -> list[Benchmark]:
        """Runs that repeat the same on the same hardware, the newest first."""
        return benchmarks(self._entries)

    def changes(self, of: Benchmark) -> list[Changed]:
        """What changed in the history of a benchmark; looked for once per state of its runs, and kept."""
        known = self.known_changes(of)
        if known is not None:
            return known
        entries = _looked_at(of)
        found = changes_of(self.extracts(entries))
        state = self._state_of(entries)
        self._answer(lambda: self._index.put_changes(of.id, of.hardware, state, [one.model_dump() for one in found]))
        self._known()[of.id, of.hardware] = (state, found)
        return found

    def known_changes(self, of: Benchmark) -> list[Changed] | None:
        """The same as far as it was looked for already; None if it was not."""
        entries = _looked_at(of)
        if len(entries) < FEWEST:
            return []
        state, found = self._known().get((of.id, of.hardware), ("", []))
        return found if state == self._state_of(entries) else None

    def _known(self) -> dict[tuple[str, str], tuple[str, list[Changed]]]:
        """By benchmark and hardware, what was found, and of what state of its runs."""
        if self._changes is None:
            self._changes = self._answer(self._kept_changes)
        return self._changes

    def _kept_changes(self) -> dict[tuple[str, str], tuple[str, list[Changed]]]:
        try:
            return {
                where: (state, checked_json(_CHANGES, content))
                for where, (state, content) in self._index.changes().items()
            }
        except ValueError as error:
            self._index.refuse(f"changes: {error}")

    def _state_of(self, entries: Sequence[Entry]) -> str:
        text = "\n".join(f"{one.name} {self._keys.get(one.name)}" for one in entries)
        return blake2b(text.encode(), digest_size=16).hexdigest()


def _looked_at(of: Benchmark) -> list[Entry]:
    return [one for one in of.entries if one.state != "running"][-HISTORY_MAX:]
