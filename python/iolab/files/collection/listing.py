"""The runs below a directory, as they are now: a line of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from iolab.base.errors import InputError
from iolab.base.plain_text import one_line
from iolab.domain.collection.entry import ID_LENGTH, Entry
from iolab.files.collection.index import DamagedIndex, Index, Row
from iolab.files.collection.place import check, journals_held, places

if TYPE_CHECKING:
    from iolab.files.collection.run_reader import Read

Reader = Callable[[Path, Sequence[str], Callable[[int], None]], "Iterable[Read]"]
T = TypeVar("T")
BATCH_S = 2.0
"""What was read is kept so often, so that a kill loses little."""


class Listing:
    """Runs below a directory, a line of each. `refresh` looks at all of them and reads what is new; the rest answers
    from what was seen then. Loads no more than a list takes: what reads runs is handed in."""

    def __init__(self, directory: Path, read: Reader, report_line: Callable[[str], None] = lambda line: None) -> None:
        """`read`: `run_reader.read_runs`; `report_line`: gets a line about what was wrong with the index, and about
        directories that are left out. InputError if it is no directory that can be read; MachineError if there is no
        place for the index."""
        self.directory = directory
        self._read_runs = read
        self._report_line = report_line
        check(directory)
        self._index = Index(directory, report_line)
        self._entries: list[Entry] = []
        self._keys: dict[str, str] = {}
        self._running: set[str] = set()
        self._left_out: set[str] = set()
        self.changed = 0
        """Grows whenever a refresh found something new."""

    @property
    def index_file(self) -> Path:
        """Where the index is kept."""
        return self._index.path

    def refresh(self, on_read: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Looks which runs there are, and reads those that changed. `on_read`: gets how many of how many are read."""
        try:
            self._refresh(on_read)
        except DamagedIndex:
            self._keys = {}
            self._refresh(on_read)

    def _refresh(self, on_read: Callable[[int, int], None]) -> None:
        # Before the journals are read: what ends meanwhile has a last event by then. And after: what began meanwhile.
        held = journals_held()
        found = [one for one in places(self.directory) if self._has_a_name(one.name)]
        keys = {one.name: one.key for one in found}
        known = self._index.keys()
        if gone := known.keys() - keys.keys():
            self._index.drop(gone)
        stale = [name for name, key in keys.items() if known.get(name) != key]
        if stale:
            self._read(stale, keys, on_read)
        held |= journals_held()
        running = {one.name for one in found if one.inode in held}
        if not stale and (keys, running) == (self._keys, self._running):
            return
        entries = [self._as_is(entry, running) for entry, _ in self._index.entries()]
        entries = _with_ids_of_their_own(
            sorted(entries, key=lambda one: (one.started_unix_ns or 0, one.name), reverse=True)
        )
        if entries != self._entries:
            self._entries, self.changed = entries, self.changed + 1
        self._keys, self._running = keys, running

    def _has_a_name(self, name: str) -> bool:
        """Whether it can be written down; a directory whose name is no text can't."""
        try:
            name.encode()
        except UnicodeEncodeError:
            if name not in self._left_out:
                self._left_out.add(name)
                where = one_line(f"{self.directory}/{name}")
                self._report_line(f"{where}: left out: its name is not UTF-8; rename it, and it is listed")
            return False
        return True

    def _answer(self, question: Callable[[], T]) -> T:
        """The answer of an intact index: if something in it was wrong, all runs are read again."""
        try:
            return question()
        except DamagedIndex:
            self.refresh()
            return question()

    def _read(self, stale: Sequence[str], keys: dict[str, str], on_read: Callable[[int, int], None]) -> None:
        rows: list[Row] = []
        kept_at = time.monotonic()
        for one in self._read_runs(self.directory, sorted(stale), lambda done: on_read(done, len(stale))):
            text = None if one.extract is None else one.extract.model_dump_json()
            rows.append((one.entry.name, keys[one.entry.name], one.ended, one.entry, text))
            if time.monotonic() - kept_at > BATCH_S:
                self._index.put(rows)
                rows, kept_at = [], time.monotonic()
        self._index.put(rows)

    @staticmethod
    def _as_is(entry: Entry, running: set[str]) -> Entry:
        """A run in progress that is killed writes nothing about it: only the kernel shows it."""
        return replace(entry, state="running") if entry.name in running and entry.state == "unfinished" else entry

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
