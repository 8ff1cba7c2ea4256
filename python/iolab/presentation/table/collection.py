"""A list of runs, for people and for spreadsheets: a line per run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from iolab.base.plain_text import counted, no_formula, one_line
from iolab.domain.definition import LOSSES, VERDICTS, Verdict

if TYPE_CHECKING:
    from iolab.domain.collection.entry import Entry

HEAD = ("run", "date", "title", "machine", "kernel", "settings", "verdicts")
WIDTHS = {"run": 44, "title": 44, "machine": 24, "kernel": 24, "settings": 30}
"""The widest that a column becomes, in characters; the last, of verdicts, is not cut."""
CACHED_MAX = 4096
"""Texts of which it is remembered how they are shown: many runs share a title, a machine and settings."""
COLUMNS = (
    *("run", "id", "title", "started_unix_ns", "date", "machine", "hostname", "kernel", "settings", "workloads"),
    *("rounds", "trials", "trials_not_ok", "verdicts", "state", "tags", "note"),
)


def lines(entries: Sequence[Entry]) -> Iterator[str]:
    """A heading and a line per run, in columns; the line of a run with tags or a note ends with them."""
    # Column by column, of ten thousand runs in a third of the time of row by row.
    columns = [[name, *cells] for name, cells in zip(HEAD, _columns(entries), strict=True)]
    for place, name in enumerate(HEAD[:-1]):
        columns[place] = _padded(columns[place], WIDTHS.get(name, 20))
    for cells in zip(*columns, strict=True):
        yield "  ".join(cells).rstrip()


def as_csv(entries: Sequence[Entry]) -> str:
    """A row per run; several names in a cell are separated by `; `."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in entries:
        known = {**one.as_dict(), "date": one.date, "verdicts": in_words(one.verdicts)}
        writer.writerow([_cell(known[name]) for name in COLUMNS])
    return text.getvalue()


def in_words(verdicts: Mapping[Verdict, int]) -> str:
    """`1 slower, 2 same`, in the order of the output; empty if nothing was compared."""
    return ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in VERDICTS if verdicts.get(verdict))


def state_in_words(entry: Entry) -> str:
    """The verdicts of a run that is done; for another, its state and the verdicts until now."""
    if entry.state == "unreadable":
        return f"unreadable: {entry.problems[0]}" if entry.problems else "unreadable"
    text = in_words(entry.verdicts) or ("nothing to compare" if entry.trials else "no trial yet")
    failed = f"; {entry.trials_not_ok} of {counted(entry.trials, 'trial')} not ok" if entry.trials_not_ok else ""
    return (text if entry.state == "done" else f"{entry.state}: {text}") + failed


def summary(entries: Sequence[Entry], among: int) -> str:
    """`3 runs, 1 of them with a loss`; `among`: how many there are in all."""
    losses = sum(any(one.verdicts.get(verdict) for verdict in LOSSES) for one in entries)
    of = "" if len(entries) == among else f"{len(entries):,} of "
    return f"{of}{counted(among, 'run')}, {losses:,} with a verdict of slower or worse"


def _columns(entries: Sequence[Entry]) -> list[list[str]]:
    return [
        [_line(one.name) for one in entries],
        [one.date for one in entries],
        [_line(one.title) for one in entries],
        [_line(f"{one.machine} {one.hostname}".strip()) for one in entries],
        [_line(one.kernel) for one in entries],
        [_line(", ".join(one.settings)) for one in entries],
        [_line(_state(one)) for one in entries],
    ]


def _state(one: Entry) -> str:
    text, labels = state_in_words(one), one.labels
    if not labels.tags and not labels.note:
        return text
    return " ".join([f"{text} ", *(f"#{tag}" for tag in labels.tags), *([f"({labels.note})"] if labels.note else [])])


@lru_cache(CACHED_MAX)
def _line(text: str) -> str:
    """Most texts of ten thousand runs are a line already."""
    return text if text.isprintable() and len(text) < WIDTHS["run"] and "  " not in text else one_line(text)


def _padded(cells: Sequence[str], most: int) -> list[str]:
    """All as wide as the widest; what is wider than `most` is cut."""
    width = max(map(len, cells))
    if width > most:
        cells, width = [one if len(one) <= most else f"{one[: most - 3]}..." for one in cells], most
    return [one.ljust(width) for one in cells]


def _cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, list):
        value = "; ".join(map(str, value))
    return no_formula(value) if isinstance(value, str) else value
