"""What is known of the runs below a directory, kept between commands: an SQLite file, derived and safe to delete.

Any number of processes read and write it at once: SQLite keeps them apart, readers wait for nobody (its write-ahead
log), and a kill leaves the state before or after. A row is as good as the key beside it, which is the date and size of
the run's journal and labels: what has another is read again. A file that is damaged, or that another iolab made, is
made anew.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any

import iolab
from iolab.base import beneath, replaceable
from iolab.base.errors import InputError, MachineError
from iolab.base.uncollected import uncollected
from iolab.domain.collection.entry import Entry, Labels, Main

FOLDER = ".iolab-index"
FILE = "index.sqlite"
SUFFIXES = ("", "-wal", "-shm", "-journal")
"""Of the files that SQLite makes."""
FORMAT = 1
UNLABELLED = Labels()
PATIENCE_S = 30.0
"""How long a writer waits for another."""
SCHEMA = """
create table about (format integer, version text);
create table run (name text primary key, key text not null, ended integer not null, entry text not null) without rowid;
create table extract (name text primary key, content blob not null);
create table changes (benchmark text, hardware text, of text not null, content text not null,
                      primary key (benchmark, hardware)) without rowid;
"""

Row = tuple[str, str, bool, Entry, str | None]
"""Name, key, whether it is complete, entry, extract as JSON."""


class Index:
    """The file, opened for the time of each question."""

    def __init__(self, directory: Path) -> None:
        """Of the runs below the directory. MachineError if there is no place to keep it."""
        self.path = _place(directory)
        self._is_checked = False

    def keys(self) -> dict[str, str]:
        """By name, the key of the run as it was read."""
        with self._open() as db:
            return dict(db.execute("select name, key from run"))

    def entries(self) -> list[tuple[Entry, bool]]:
        """Every entry, and whether its run is complete."""
        with self._open() as db:
            rows = db.execute("select entry, ended from run").fetchall()
        with uncollected():
            # One document costs less to read than one per run.
            found = json.loads(f"[{','.join(entry for entry, _ in rows)}]")
            return [(_entry(one), bool(ended)) for one, (_, ended) in zip(found, rows, strict=True)]

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
        """By name, the extract as JSON; without those that have none."""
        found = {}
        with self._open() as db:
            for name in names:
                row = db.execute("select content from extract where name = ?", (name,)).fetchone()
                if row:
                    found[name] = zlib.decompress(row[0]).decode()
        return found

    def changes(self) -> dict[tuple[str, str], tuple[str, Any]]:
        """By benchmark and hardware, what was found in the history, and of what state of its runs."""
        with self._open() as db:
            rows = db.execute("select benchmark, hardware, of, content from changes").fetchall()
        return {(benchmark, hardware): (of, json.loads(content)) for benchmark, hardware, of, content in rows}

    def put_changes(self, benchmark: str, hardware: str, of: str, content: Any) -> None:
        """What was found in the history of these runs."""
        with self._open() as db, db:
            text = json.dumps(content, separators=(",", ":"))
            db.execute("insert or replace into changes values (?, ?, ?, ?)", (benchmark, hardware, of, text))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """MachineError if SQLite can't use the file; it is looked at again by whoever comes next."""
        try:
            if not self._is_checked:
                self._make_usable()
                self._is_checked = True
            with closing(_connected(self.path)) as db:
                yield db
        except sqlite3.Error as error:
            self._is_checked = False
            if not isinstance(error, sqlite3.OperationalError):  # damaged
                self._remove()
            remedy = "try again: it is made anew where it was damaged"
            raise MachineError(f"the index can't be used: {error}", where=str(self.path), remedy=remedy) from None

    def _make_usable(self) -> None:
        """Makes the file, anew where it is damaged or another iolab's. sqlite3.Error if that can't be done."""
        beneath.make_directories(self.path.parent)
        try:
            if self._is_usable():
                return
        except sqlite3.DatabaseError as error:
            if "locked" in str(error):
                raise
        self._remove()
        self._is_usable()

    def _remove(self) -> None:
        for suffix in SUFFIXES:
            beneath.remove_file(self.path.with_name(f"{self.path.name}{suffix}"))

    def _is_usable(self) -> bool:
        """Whether this iolab made it, and it is whole; an empty one is filled."""
        with closing(_connected(self.path)) as db:
            db.execute("pragma journal_mode = wal").fetchone()
            with db:
                db.execute("begin immediate")
                if not db.execute("select count(*) from sqlite_master where name = 'about'").fetchone()[0]:
                    for statement in SCHEMA.split(";"):
                        db.execute(statement)
                    db.execute("insert into about values (?, ?)", _about())
                known = db.execute("select format, version from about").fetchone()
            db.execute("select count(entry) from run").fetchone()  # an error where the file is cut or damaged
            return bool(known == _about())


def _about() -> tuple[int, str]:
    return FORMAT, iolab.__version__


def _connected(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=PATIENCE_S)
    db.execute("pragma synchronous = off")  # derived: after a power cut it may be damaged, and is made anew
    return db


def _is_ours(inside: Path) -> bool:
    """Whether this user may write what is in it, and it is no link: SQLite would follow one."""
    if not os.access(inside, os.W_OK) or replaceable.weakness_of(inside, caller=True) is not None:
        return False
    present = [file for suffix in SUFFIXES if os.path.lexists(file := inside / f"{FILE}{suffix}")]
    return all(beneath.is_file(file, inside.parent) and os.access(file, os.W_OK) for file in present)


def _entry(found: dict[str, Any]) -> Entry:
    given, main = found.pop("labels"), found.pop("main")
    for name in ("settings", "workloads", "problems"):
        found[name] = tuple(found[name])
    found["main"] = Main(**main) if main else None
    found["labels"] = Labels(tuple(given["tags"]), given["note"]) if given["tags"] or given["note"] else UNLABELLED
    made = object.__new__(Entry)
    made.__dict__.update(found)  # ten thousand times: to set each field of a frozen class by itself takes longer
    return made


def _place(directory: Path) -> Path:
    """In the directory itself, where this user may write and nobody else can put a link in the way; else in the user's
    own cache."""
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
