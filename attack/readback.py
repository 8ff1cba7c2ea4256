"""What iolab wrote and reads back, changed: indexes of collections, searches, tuners' directories, runs that search,
labels, and traces. Whatever lies in them, a command ends in time with clear lines, and an index is healed by it."""

import json
import os
import random
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from family import Family
from in_child import lane_of
from mutate import mutated, mutated_json

TOP = Path(__file__).parents[1]
TRACES = sorted(path for path in (TOP / "tests/traces").iterdir() if path.suffix != ".md")
TRACE_BYTES_MAX = 64 << 10
RUN = """\
title = "Small"
rounds = {rounds}
seed = 7
machine = "model:quad-7200"
[workloads.reads]
pattern = "sequential"
direct = false
file_size = "8MiB"
duration = "20ms"
"""


def _settings(prefix: str, how_many: int) -> str:
    return "".join(
        f"[settings.{prefix}{number}]\nread_ahead_kb = {8 * (1 + (number > 3))}\n" for number in range(how_many)
    )


TUNE = """
[settings.short]
read_ahead_kb = 8
[tune]
objectives = ["rate_bytes_per_s"]
trials = 6
per_round = 3
key_rounds = 2
confirm = 5
[tune.space]
read_ahead_kb = { low = 8, high = 512, log = true }
nr_requests = [64, 128]
"""
MEASURE = 'read v < version; n=${v#v}; [ "$n" = 2 ] && exit 1; [ "$n" -gt 5 ] && echo 20 || echo 10'
LYING: list[Any] = [
    None,
    "",
    "x",
    -1,
    0,
    1,
    1.5,
    1e308,
    10**30,
    True,
    [],
    {},
    [[]],
    "a\0b",
    "\ud800",
    "\u2028",
    [1] * 99,
]
STRANGE = [b"", b"\0" * 300, b"[" * 50_000, zlib.compress(b"[" * 10**6), os.urandom(64), b"{}\n", b"null", b"\xff\xfe"]
ANSWERED = (0, 1, 2, 3)


class Cases:
    """In the child."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.seed = seed
        self.whole = directory / "whole"
        self.case = directory / "case"
        self.pieces: list[bytes] = []
        if not self.whole.exists():
            shutil.rmtree(directory / "half", ignore_errors=True)
            _make(directory / "half")
            (directory / "half").rename(self.whole)
        self.pieces = [path.read_bytes()[:4096] for path in sorted(self.whole.rglob("*")) if path.is_file()]

    def __call__(self, case: int) -> list[str]:
        rng = random.Random(f"{self.seed} readback {case}")
        shutil.rmtree(self.case, ignore_errors=True)
        kind = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        make: Callable[[random.Random], list[str]] = getattr(self, f"_{kind}")
        return make(rng)

    def _index(self, rng: random.Random) -> list[str]:
        """Listed as the runs say, and healed by it."""
        runs = self._copy("runs")
        _told("ls", str(runs))
        path = runs / ".iolab-index" / "index.sqlite"
        (_lying_rows if rng.random() < 0.7 else _damaged)(path, rng, self.pieces)
        command = rng.choice(["ls", "ls", "site"])
        given = ["--json"] if command == "ls" else ["--out", str(self.case / "site")]
        wrong = _told(command, str(runs), *given, statuses=(0,))
        outcome, again = _call("ls", str(runs), "--json", statuses=(0,))
        if again or len(json.loads(outcome.stdout)["runs"]) != 2:
            wrong.append(f"the index was not healed: {again}")
        return wrong

    def _search(self, rng: random.Random) -> list[str]:
        hunt = self._copy("hunt")
        self._change(hunt / "search.jsonl", rng)
        return _told("bisect", "--resume", str(hunt), *(["--json"] if rng.random() < 0.5 else []))

    def _question(self, rng: random.Random) -> list[str]:
        """A run that searches."""
        run = self._copy("asked")
        self._change(self._some_file(run, rng), rng)
        resumed = ["--resume"] if rng.random() < 0.2 else []
        return _told("bisect", *resumed, str(run))

    def _tuner(self, rng: random.Random) -> list[str]:
        tuned = self._copy("tuned")
        self._change(self._some_file(tuned, rng), rng)
        return _told("tune", *(["--resume"] if rng.random() < 0.2 else []), str(tuned))

    def _collection(self, rng: random.Random) -> list[str]:
        """A collection in which a file of a run is damaged."""
        runs = self._copy("runs")
        self._change(self._some_file(runs / "one", rng), rng)
        command = rng.choice([["ls"], ["site", "--out", str(self.case / "site")], ["history"]])
        return _told(command[0], str(runs), *command[1:])

    def _labels(self, rng: random.Random) -> list[str]:
        runs = self._copy("runs")
        path = runs / "one" / "labels.json"
        path.write_text('{"tags": ["a", "b"], "note": "something"}')
        self._change(path, rng)
        command = rng.choice([["ls", str(runs)], ["tag", str(path.parent), "c"], ["note", str(path.parent), "other"]])
        return _told(*command)

    def _trace(self, rng: random.Random) -> list[str]:
        self.case.mkdir()
        original = rng.choice(TRACES)
        path = self.case / original.name
        content = original.read_bytes()[:TRACE_BYTES_MAX]
        path.write_bytes(mutated(content, rng, [other.read_bytes()[:4096] for other in TRACES]))
        named = str(path.with_name(original.name.split(".blktrace.")[0]))
        to = [
            ["--json"],
            ["-o", str(self.case / "page.html")],
            *(["--to", form, "-o", str(self.case / "out")] for form in FORMS),
        ]
        if rng.random() < 0.1:
            out = str(self.case / "run")
            return _told("replay", named, "--on", "model:quad-7200", "--rounds", "1", "--take", "1ms", "--out", out)
        return _told("trace", named, *rng.choice([[], *to]))

    def _copy(self, name: str) -> Path:
        self.case.mkdir()
        shutil.copytree(self.whole / name, self.case / name, copy_function=shutil.copy2)
        return self.case / name

    def _some_file(self, run: Path, rng: random.Random) -> Path:
        return rng.choice([path for path in sorted(run.rglob("*")) if path.is_file()])

    def _change(self, path: Path, rng: random.Random) -> None:
        content = path.read_bytes()
        if rng.random() < 0.05:
            path.unlink()
            return
        if rng.random() < 0.05:
            path.unlink()
            os.mkfifo(path) if rng.random() < 0.5 else path.symlink_to("/dev/zero")
            return
        if path.suffix == ".jsonl" and rng.random() < 0.7:
            path.write_bytes(_lying_lines(content, rng))
        elif path.suffix == ".json" and rng.random() < 0.5:
            path.write_bytes(mutated_json(content, rng))
        else:
            path.write_bytes(mutated(content, rng, self.pieces))


WEIGHTS = {"search": 40, "trace": 37, "labels": 8, "question": 5, "tuner": 4, "collection": 3, "index": 3}
FORMS = ("perfetto", "iolog", "parquet", "blktrace")


def _lying_lines(content: bytes, rng: random.Random) -> bytes:
    """Lines with right checksums that state what nobody wrote."""
    from iolab.base import checked_lines

    entries: list[Any] = checked_lines.read(content).entries
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(entries))
        kind = rng.random()
        if kind < 0.1:
            del entries[at]
        elif kind < 0.2:
            entries.insert(at, entries[rng.randrange(len(entries))])
        else:
            entries[at] = _lie(entries[at], rng)
        if not entries:
            break
    return b"".join(
        checked_lines.encode(entry) if isinstance(entry, dict) else json.dumps(entry).encode() + b"\n"
        for entry in entries
    )


def _lie(value: Any, rng: random.Random) -> Any:
    """The same document with one thing in it changed, somewhere."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice([*value])
        if rng.random() < 0.15:
            return {name: inner for name, inner in value.items() if name != key}
        if rng.random() < 0.05:
            return {**value, "unknown": rng.choice(LYING)}
        return {**value, key: _lie(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.7:
        at = rng.randrange(len(value))
        return [*value[:at], _lie(value[at], rng), *value[at + 1 :]]
    return rng.choice(LYING)


def _lying_rows(path: Path, rng: random.Random, _: list[bytes]) -> None:
    with sqlite3.connect(path) as db:
        kind = rng.randrange(5)
        if kind == 0:
            text = json.dumps(_lie(json.loads(db.execute("select entry from run").fetchone()[0]), rng))
            db.execute("update run set entry = ?", (text,))
        elif kind == 1:
            (packed,) = rng.choice(db.execute("select content from extract").fetchall())
            document = json.loads(zlib.decompress(packed))
            text = json.dumps(_lie(_lie(document, rng), rng))
            db.execute("update extract set content = ?", (zlib.compress(text.encode()),))
        elif kind == 2:
            table, column = rng.choice([("run", "entry"), ("run", "key"), ("run", "ended"), ("extract", "content")])
            value = rng.choice([*STRANGE, *(one for one in LYING if isinstance(one, int | float | str))])
            value = "\ufffd" if value == "\ud800" else 2**60 if value == 10**30 else value
            db.execute(f"update {table} set {column} = ?", (value,))
        elif kind == 3:
            db.execute("insert or replace into changes values ('b', 'h', 's', ?)", (rng.choice(STRANGE),))
        else:
            statement = rng.choice(
                ["drop table run", "create table t (a)", "create view v as select 1", "delete from about"]
            )
            db.execute(statement)
    db.close()


def _damaged(path: Path, rng: random.Random, pieces: list[bytes]) -> None:
    """The file itself, its log, or something else in their places."""
    at = path.with_name(f"{path.name}{rng.choice(['', '', '', '-wal', '-shm'])}")
    if rng.random() < 0.15:
        at.unlink(missing_ok=True)
        os.mkfifo(at) if rng.random() < 0.5 else at.symlink_to("/dev/zero")
    else:
        content = at.read_bytes() if at.exists() else rng.choice(pieces)
        at.write_bytes(mutated(content, rng, pieces))


def _make(whole: Path) -> None:
    """What is changed, made by the commands that make it."""
    whole.mkdir()
    for name in ("one", "two"):
        _write(whole / "e.toml", RUN.format(rounds=2) + _settings(f"{name}-", 2))
        _made("run", str(whole / "e.toml"), "--out", str(whole / "runs" / name))
    _write(whole / "e.toml", RUN.format(rounds=1) + _settings("v", 6))
    _made("bisect", str(whole / "e.toml"), "--most", "12", "--confirm", "2", "--out", str(whole / "asked"))
    _write(whole / "e.toml", RUN.replace("rounds = {rounds}\n", "") + TUNE)
    _made("tune", str(whole / "e.toml"), "--out", str(whole / "tuned"))
    _write(whole / "versions", "".join(f"v{number}\n" for number in range(9)))
    search = [
        "--versions",
        str(whole / "versions"),
        "--measure",
        MEASURE,
        "--value",
        "printed",
        "--confirm",
        "2",
        "--most",
        "40",
    ]
    _made("bisect", *search, "--out", str(whole / "hunt"))


def _write(path: Path, text: str) -> None:
    path.write_text(text)


def _made(*arguments: str) -> None:
    outcome, wrong = _call(*arguments)
    assert outcome.status == 0 and not wrong, (arguments, outcome.text, wrong)


def _told(*arguments: str, statuses: tuple[int, ...] = ANSWERED) -> list[str]:
    return _call(*arguments, statuses=statuses)[1]


def _call(*arguments: str, statuses: tuple[int, ...] = ANSWERED) -> tuple[Any, list[str]]:
    from child import call

    return call(*arguments, statuses=statuses)


FAMILY = Family(
    name="readback",
    what="what iolab wrote and reads back, changed: read, healed or refused in clear lines, in bounded time",
    attacks=100_000,
    attacks_quick=60,
    lane=lambda lane: lane_of("readback", lane),
)
