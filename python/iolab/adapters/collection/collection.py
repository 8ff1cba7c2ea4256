"""The runs below a directory, as they are now."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.adapters.collection.index import Index, Row
from iolab.adapters.collection.place import check, journals_held, places
from iolab.base.errors import InputError
from iolab.domain.collection.entry import ID_LENGTH, Entry

if TYPE_CHECKING:
    from iolab.domain.collection.benchmark import Benchmark, Changed
    from iolab.domain.collection.extract import Extract

BATCH_S = 2.0
"""What was read is kept so often, so that a kill loses little."""
EXTRACTS_KEPT = 300
HISTORY_MAX = 730
"""The newest runs of a benchmark that are looked at."""


class Collection:
    """Runs below a directory. `refresh` looks at all of them and reads what is new; the rest answers from what was seen
    then."""

    def __init__(self, directory: Path) -> None:
        """InputError if it is no directory that can be read; MachineError if there is no place for the index."""
        self.directory = directory
        check(directory)
        self._index = Index(directory)
        self._entries: list[Entry] = []
        self._keys: dict[str, str] = {}
        self._running: set[str] = set()
        self._changes: dict[tuple[str, str], tuple[str, list[Changed]]] | None = None
        self.changed = 0
        """Grows whenever a refresh found something new."""
        self._parsed = lru_cache(EXTRACTS_KEPT)(self._parse)

    @property
    def index_file(self) -> Path:
        """Where the index is kept."""
        return self._index.path

    def refresh(self, on_read: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Looks which runs there are, and reads those that changed. `on_read`: told how many of how many are read."""
        found = places(self.directory)
        keys = {one.name: one.key for one in found}
        known = self._index.keys()
        if gone := known.keys() - keys.keys():
            self._index.drop(gone)
        stale = [name for name, key in keys.items() if known.get(name) != key]
        if stale:
            self._read(stale, keys, on_read)
        held = journals_held()
        running = {one.name for one in found if one.inode in held}
        if not stale and (keys, running) == (self._keys, self._running):
            return
        entries = [self._as_is(entry, ended, running) for entry, ended in self._index.entries()]
        entries = _with_ids_of_their_own(
            sorted(entries, key=lambda one: (one.started_unix_ns or 0, one.name), reverse=True)
        )
        if entries != self._entries:
            self._entries, self.changed = entries, self.changed + 1
        self._keys, self._running = keys, running

    def _read(self, stale: Sequence[str], keys: dict[str, str], on_read: Callable[[int, int], None]) -> None:
        from iolab.adapters.collection.reading import read_runs

        rows: list[Row] = []
        kept_at = time.monotonic()
        for one in read_runs(self.directory, sorted(stale), lambda done: on_read(done, len(stale))):
            text = None if one.extract is None else one.extract.model_dump_json()
            rows.append((one.entry.name, keys[one.entry.name], one.ended, one.entry, text))
            if time.monotonic() - kept_at > BATCH_S:
                self._index.put(rows)
                rows, kept_at = [], time.monotonic()
        self._index.put(rows)

    @staticmethod
    def _as_is(entry: Entry, ended: bool, running: set[str]) -> Entry:
        """A run in progress ends without a word where it is killed: only the kernel knows."""
        if entry.name in running and entry.state != "unreadable":
            return replace(entry, state="running")
        return entry

    @property
    def entries(self) -> list[Entry]:
        """The newest first."""
        return self._entries

    def entry(self, id: str) -> Entry:
        """The run of this id, or of this name. InputError if there is none."""
        found = next((one for one in self._entries if id in (one.id, one.name)), None)
        if found is None:
            raise InputError("there is no such run", where=id)
        return found

    def path(self, entry: Entry) -> Path:
        """The run's directory."""
        return self.directory / entry.name

    def extracts(self, entries: Sequence[Entry]) -> list[tuple[Entry, Extract]]:
        """Each run with what is kept of it; without those that could not be read."""
        found = []
        texts = self._index.extracts([one.name for one in entries])
        for one in entries:
            with suppress(KeyError):
                found.append((one, self._parsed(texts[one.name])))
        return found

    @staticmethod
    def _parse(text: str) -> Extract:
        from iolab.domain.collection.extract import Extract

        return Extract.model_validate_json(text)

    def benchmarks(self) -> list[Benchmark]:
        """Runs that repeat the same on the same hardware, the newest first."""
        from iolab.domain.collection.benchmark import benchmarks

        return benchmarks(self._entries)

    def changes(self, of: Benchmark) -> list[Changed]:
        """What changed in the history of a benchmark; looked for once per state of its runs, and kept."""
        from iolab.domain.collection.benchmark import changes_of

        known = self.known_changes(of)
        if known is not None:
            return known
        entries = _looked_at(of)
        found = changes_of(self.extracts(entries))
        state = self._state_of(entries)
        self._index.put_changes(of.id, of.hardware, state, [one.model_dump() for one in found])
        self._known()[of.id, of.hardware] = (state, found)
        return found

    def known_changes(self, of: Benchmark) -> list[Changed] | None:
        """The same as far as it was looked for already; None where it was not."""
        from iolab.domain.history.changes import FEWEST

        entries = _looked_at(of)
        if len(entries) < FEWEST:
            return []
        state, found = self._known().get((of.id, of.hardware), ("", []))
        return found if state == self._state_of(entries) else None

    def _known(self) -> dict[tuple[str, str], tuple[str, list[Changed]]]:
        """By benchmark and hardware, what was found, and of what state of its runs."""
        from iolab.domain.collection.benchmark import Changed

        if self._changes is None:
            self._changes = {
                where: (state, [Changed.model_validate(one) for one in content])
                for where, (state, content) in self._index.changes().items()
            }
        return self._changes

    def _state_of(self, entries: Sequence[Entry]) -> str:
        text = "\n".join(f"{one.name} {self._keys.get(one.name)}" for one in entries)
        return blake2b(text.encode(), digest_size=16).hexdigest()


def _looked_at(of: Benchmark) -> list[Entry]:
    return [one for one in of.entries if one.state != "running"][-HISTORY_MAX:]


def _with_ids_of_their_own(entries: Sequence[Entry]) -> list[Entry]:
    """Copies of a run have its first event, and so its id: each but the first gets another, of its name too."""
    seen: set[str] = set()
    found = []
    for one in entries:
        if one.id in seen:
            id = blake2b(f"{one.id} {one.name}".encode(), digest_size=ID_LENGTH // 2).hexdigest()
            one = replace(one, id=id)
        seen.add(one.id)
        found.append(one)
    return found
