"""What is known of the runs below a directory, kept between commands: an SQLite file, derived and safe to delete.

Any number of processes read and write it at once: SQLite keeps them apart, readers wait for nobody (its write-ahead
log), and a kill leaves the state before or after. A row is as good as the key beside it, which is the date and size of
the run's journal and labels: what has another is read again.

Nothing in the file is believed: its schema must be ours to the letter before anything is asked, every row is checked,
and a question has limits of time and size. A file that is damaged, or that another iolab made, is made anew.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, NoReturn

from pydantic import TypeAdapter

from iolab.base import beneath, replaceable
from iolab.base.errors import InputError, MachineError
from iolab.base.gc_pause import gc_paused
from iolab.base.plain_text import one_line
from iolab.base.schema import checked, checked_json
from iolab.base.version import VERSION
from iolab.domain.collection.entry import Entry

FOLDER = ".iolab-index"
FILE = "index.sqlite"
SUFFIXES = ("", "-wal", "-shm", "-journal")
"""The suffixes of the files that SQLite makes."""
FORMAT = 5
PATIENCE_S = 30.0
"""How long a writer waits for another."""
QUESTION_S = 60.0
"""How long a question may take: a view without an end is none of ours, but may be planted after we looked."""
STEPS = 1_000_000
"""The steps of SQLite's virtual machine between two looks at the clock."""
FILE_BYTES_MAX = 16 << 30
CELL_BYTES_MAX = 64 << 20
EXTRACT_BYTES_MAX = 256 << 20
ENTRIES_BYTES_MAX = 1 << 30
"""The bytes of all entries together, which are read at once."""
NAMED_MAX = 80
SCHEMA = """
create table about (format integer, version text);
create table run (name text primary key, key text not null, ended integer not null, entry text not null) without rowid;
create table extract (name text primary key, content blob not null);
create table changes (benchmark text, hardware text, of text not null, content text not null,
                      primary key (benchmark, hardware)) without rowid;
"""
_TABLES = "select type, name, tbl_name, sql from sqlite_master order by name"
_OUT_OF_OUR_HANDS = {"SQLITE_BUSY", "SQLITE_CANTOPEN", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_LOCKED", "SQLITE_NOMEM",
                     "SQLITE_PERM", "SQLITE_PROTOCOL", "SQLITE_READONLY"}  # fmt: skip
"""SQLite's errors that are about the machine, not about the file."""

Row = tuple[str, str, bool, Entry, str | None]
"""Name, key, whether it is complete, entry, extract as JSON."""


class DamagedIndex(MachineError):
    """Something in the index was wrong. It is gone: all runs have to be read again before the next question."""


class Index:
    """The file, opened for the time of each question."""

    def __init__(self, directory: Path, report_line: Callable[[str], None]) -> None:
        """The index of the runs below the directory. `report_line`: is called with the reason if the index is made
        anew. MachineError if there is no place to keep it."""
        self.path = _place(directory)
        self._report_line = report_line

    def keys(self) -> dict[str, str]:
        """By name, the key of the run as it was read."""
        with self._open() as db:
            return dict(self._checked("run", _pairs(), db.execute("select name, key from run").fetchall()))

    def entries(self) -> list[tuple[Entry, bool]]:
        """Every entry, and whether its run is complete. DamagedIndex: see there."""
        rows: list[tuple[str, bool, str]] = []
        total_bytes = 0
        with self._open() as db:
            for name, ended, text in db.execute("select name, ended, entry from run"):
                if not (isinstance(name, str) and isinstance(text, str) and ended in (0, 1)):
                    self.refuse(f"run {_named(name)}: name, entry or ended is of a wrong type")
                total_bytes += len(text)
                if total_bytes > ENTRIES_BYTES_MAX:
                    self.refuse(f"its entries have more than {ENTRIES_BYTES_MAX >> 20} MiB")
                rows.append((name, bool(ended), text))
        with gc_paused():
            # One document costs less to read than one per run.
            try:
                found = checked_json(_entries(), f"[{','.join(text for _, _, text in rows)}]")
                if len(found) != len(rows):
                    raise ValueError("an entry is none, or several")
            except ValueError:
                found = [self._checked(f"run {_named(name)}: entry", _entry(), text) for name, _, text in rows]
        for (name, _, _), one in zip(rows, found, strict=True):
            if one.name != name or (one.state == "unreadable") != (one.benchmark == ""):
                self.refuse(f"run {_named(name)}: entry: name or state is another's")
        return [(one, ended) for one, (_, ended, _) in zip(found, rows, strict=True)]

    def put(self, rows: Sequence[Row]) -> None:
        """Takes the place of what is known of these runs."""
        with self._open() as db, db:
            for name, key, ended, entry, extract in rows:
                text = json.dumps(asdict(entry), separators=(",", ":"))
                db.execute("insert or replace into run values (?, ?, ?, ?)", (name, key, ended, text))
                if extract is None:
                    db.execute("delete from extract where name = ?", (name,))
                else:
                    packed = zlib.compress(extract.encode(), 1)
                    db.execute("insert or replace into extract values (?, ?)", (name, packed))

    def drop(self, names: Iterable[str]) -> None:
        """Forgets runs that are gone."""
        gone = [(name,) for name in names]
        if gone:
            with self._open() as db, db:
                db.executemany("delete from run where name = ?", gone)
                db.executemany("delete from extract where name = ?", gone)

    def extracts(self, names: Sequence[str]) -> dict[str, str]:
        """By name, the extract as JSON, which nobody has looked at yet; without those that have none. DamagedIndex: see
        there."""
        found = {}
        with self._open() as db:
            for name in names:
                row = db.execute("select content from extract where name = ?", (name,)).fetchone()
                if row:
                    try:
                        found[name] = _unpacked(row[0])
                    except ValueError as error:
                        self.refuse(f"run {_named(name)}: extract: {error}")
        return found

    def changes(self) -> Mapping[tuple[str, str], tuple[str, str]]:
        """By benchmark and hardware, what was found in the history as JSON, which nobody has looked at yet, and of what
        state of its runs. DamagedIndex: see there."""
        with self._open() as db:
            rows = db.execute("select benchmark, hardware, of, content from changes").fetchall()
        known = self._checked("changes", _quadruples(), rows)
        return {(benchmark, hardware): (of, content) for benchmark, hardware, of, content in known}

    def put_changes(self, benchmark: str, hardware: str, of: str, content: Any) -> None:
        """What was found in the history of these runs."""
        with self._open() as db, db:
            text = json.dumps(content, separators=(",", ":"))
            db.execute("insert or replace into changes values (?, ?, ?, ?)", (benchmark, hardware, of, text))

    def refuse(self, what: str) -> NoReturn:
        """Removes the index, in which this was found, and reports it. DamagedIndex."""
        self._remove(what)
        raise DamagedIndex(f"the index was damaged: {what}", where=str(self.path), remedy="try again: it is made anew")

    def _checked(self, where: str, kind: TypeAdapter[Any], value: object) -> Any:
        try:
            return checked_json(kind, value) if isinstance(value, str) else checked(kind, value)
        except ValueError as error:
            self.refuse(f"{where}: {error}")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Opens an index of this iolab, as whole as a look shows, and makes it anew if it is not. DamagedIndex if a
        query shows damage later; MachineError if the machine can't open it."""
        try:
            with closing(self._looked_at()) as db:
                yield db
        except (sqlite3.Error, UnicodeError, OverflowError) as error:
            self._refuse_for_the_machine(error)
            self.refuse(str(error))

    def _looked_at(self) -> sqlite3.Connection:
        beneath.make_directories(self.path.parent)
        wrong = self._odd_file()
        if wrong is None:
            db = _connected(self.path)
            try:
                wrong = _foreign(db)
            except sqlite3.Error as error:
                db.close()
                self._refuse_for_the_machine(error)
                wrong = str(error)
            if wrong is None:
                return db
            db.close()
        self._remove(wrong)
        db = _connected(self.path)
        _foreign(db)
        return db

    def _odd_file(self) -> str | None:
        for suffix in SUFFIXES:
            try:
                found = self._file(suffix).lstat()
            except FileNotFoundError:
                continue
            if not stat.S_ISREG(found.st_mode):
                return "it is no regular file"
            if found.st_size > FILE_BYTES_MAX:
                return f"it has more than {FILE_BYTES_MAX >> 30} GiB"
        return None

    def _refuse_for_the_machine(self, error: Exception) -> None:
        name = getattr(error, "sqlite_errorname", "")
        if any(name.startswith(kind) for kind in _OUT_OF_OUR_HANDS):
            remedy = "see that it can be written, or remove it: it is derived"
            raise MachineError(f"the index can't be used: {error}", where=str(self.path), remedy=remedy) from None

    def _remove(self, why: str) -> None:
        for suffix in SUFFIXES:
            try:
                beneath.remove_file(self._file(suffix))
            except OSError as error:
                what = f"the index can't be made anew: {error.strerror}"
                raise MachineError(what, where=str(self._file(suffix)), remedy="remove it: it is derived") from None
        self._report_line(one_line(f"{self.path}: {why}; the index is made anew"))

    def _file(self, suffix: str) -> Path:
        return self.path.with_name(f"{self.path.name}{suffix}")


def _connected(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=PATIENCE_S)
    db.execute("pragma synchronous = off")  # derived: after a power cut it may be damaged, and is made anew
    db.execute("pragma trusted_schema = off")
    db.execute("pragma cell_size_check = on")
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, CELL_BYTES_MAX)
    until = time.monotonic() + QUESTION_S
    db.set_progress_handler(lambda: time.monotonic() > until, STEPS)
    return db


def _is_ours(inside: Path) -> bool:
    """Whether this user may write what is in it, and it is no link: SQLite would follow one."""
    if not os.access(inside, os.W_OK) or replaceable.weakness_of(inside, caller=True) is not None:
        return False
    present = [file for suffix in SUFFIXES if os.path.lexists(file := inside / f"{FILE}{suffix}")]
    return all(beneath.is_file(file, inside.parent) and os.access(file, os.W_OK) for file in present)


def _foreign(db: sqlite3.Connection) -> str | None:
    """Why it is not what this iolab made; an empty one is filled."""
    laid_out = db.execute(_TABLES).fetchall()
    if not laid_out:
        db.execute("pragma journal_mode = wal").fetchone()
        with db:
            db.execute("begin immediate")
            if not (laid_out := db.execute(_TABLES).fetchall()):
                _fill(db)
                return None
    if laid_out != _layout():
        return "it is not laid out as this iolab does"
    about = db.execute("select format, version from about").fetchall()
    return None if about == [(FORMAT, VERSION)] else "another iolab made it"


def _fill(db: sqlite3.Connection) -> None:
    for statement in SCHEMA.split(";"):
        db.execute(statement)
    db.execute("insert into about values (?, ?)", (FORMAT, VERSION))


@cache
def _layout() -> list[Any]:
    """SQLite's message about a file that iolab made."""
    with closing(sqlite3.connect(":memory:")) as db:
        _fill(db)
        return db.execute(_TABLES).fetchall()


def _unpacked(content: object) -> str:
    """ValueError states what it is instead."""
    if not isinstance(content, bytes):
        raise ValueError("no packed text")
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(content, EXTRACT_BYTES_MAX)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not unpacker.eof:
        whole = bool(unpacker.unconsumed_tail)
        raise ValueError(f"unpacks to more than {EXTRACT_BYTES_MAX >> 20} MiB" if whole else "has no end")
    return text.decode()


def _named(name: object) -> str:
    return str(name)[:NAMED_MAX]


@cache
def _entry() -> TypeAdapter[Entry]:
    return TypeAdapter(Entry)


@cache
def _entries() -> TypeAdapter[list[Entry]]:
    return TypeAdapter(list[Entry])


@cache
def _pairs() -> TypeAdapter[list[tuple[str, str]]]:
    return TypeAdapter(list[tuple[str, str]])


@cache
def _quadruples() -> TypeAdapter[list[tuple[str, str, str, str]]]:
    return TypeAdapter(list[tuple[str, str, str, str]])


def _place(directory: Path) -> Path:
    """In the directory itself, if this user may write there and no other user can put a link in the way; else in the
    user's own cache."""
    with suppress(OSError, InputError):
        if replaceable.weakness_of(directory, caller=True) is None:
            inside = directory / FOLDER
            beneath.make_directory(inside, exist_ok=True)
            if _is_ours(inside):
                return inside / FILE
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if base.startswith("/") else Path.home() / ".cache"
    name = blake2b(str(directory.resolve()).encode(), digest_size=8).hexdigest()
    folder = root / "iolab" / "collections" / name
    try:
        beneath.make_directories(folder)
    except OSError as error:
        raise MachineError(
            f"there is no place for the index: {error.strerror}",
            where=str(folder),
            remedy="make one of the two directories writable, or set XDG_CACHE_HOME",
        ) from None
    return folder / FILE
