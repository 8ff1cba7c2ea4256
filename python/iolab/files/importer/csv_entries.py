"""What the entries of a CSV file's column are: numbers, parameters, names, numbers with units."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from iolab.base.csv_table import ABSENT
from iolab.base.errors import InputError
from iolab.domain import parameter
from iolab.files.importer.quantity_cell import Quantity, quantity
from iolab.files.importer.source import Source
from iolab.files.importer.text import QUOTED_MAX
from iolab.files.importer.written_number import is_number

PARAMETERS = parameter.AMOUNTS | {
    *(
        "rw",
        "pattern",
        "op",
        "operation",
        "op type",
        "optype",
        "phase",
        "mode",
        "device",
        "disk",
        "dev",
        "filesystem",
        "fs",
    ),
}
"""How columns are called that state what was measured."""

Kind = Literal["names", "constant", "distinct", "dates", "numbers with units"]

_NUMBER = r"[-+]?(?:\d{1,3}(?>(?:,\d{3})+)|\d++)(?:[.,]\d++)?(?:[eE][-+]?\d++)?"
_WITH_UNIT = re.compile(rf"[~<>=≈]?\s*+{_NUMBER}\s*+(?:[^\W\d_]{{1,5}}|%)?(?:(?:/|p)\w{{1,4}})?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2}:\d\d")
_COMMA = re.compile(r"[-+]?\d++,\d++(?:[eE][-+]?\d++)?").fullmatch
_POINT = re.compile(r"[-+]?\d++\.\d++(?:[eE][-+]?\d++)?").fullmatch
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}").fullmatch
_POINTED = re.compile(r"[1-9]\d{0,2}\.\d{3}").fullmatch
_SPACES = str.maketrans(dict.fromkeys("\u00a0\u202f\u2009", " ") | {"\u2019": "'"})
"""Characters that separate thousands beside the space and the apostrophe."""


class Notation(NamedTuple):
    """How the numbers of a file are written."""

    decimal: str = "."
    grouping: str = ""
    """What stands between thousands; empty if nothing does."""


PLAIN = Notation()
GERMAN = Notation(",", ".")


def _grouped(notation: Notation) -> re.Pattern[str]:
    group, point = re.escape(notation.grouping), re.escape(notation.decimal)
    return re.compile(rf"[-+]?(?:[1-9]\d{{0,2}}(?>(?:{group}\d{{3}})+)|\d++)(?:{point}\d++)?")


_GROUPED = {
    notation: _grouped(notation)
    for notation in (GERMAN, Notation(".", ","), Notation(".", " "), Notation(",", " "), Notation(".", "'"))
}
_CERTAIN = re.compile(
    r"[-+]?[1-9]\d{0,2}(?:\.\d{3}(?:(?>(?:\.\d{3})+)(?:,\d++)?|,\d++)|,\d{3}(?:(?>(?:,\d{3})+)(?:\.\d++)?|\.\d++)"
    r"|(?>(?: \d{3})+)(?:[.,]\d++)?|(?>(?:'\d{3})+)(?:\.\d++)?)"
).fullmatch
"""A number whose thousands are separated beyond doubt."""

_OPERATION = re.compile(
    r"(?:seq(?:uential)?|rand(?:om)?|rnd)?[ _-]?(?:reads?|writes?|rw|mix(?:ed)?|trims?|discards?"
    r"|(?:re|over)-?(?:read|write)s?|f?(?:data)?sync|(?:read|write)_?random|remove|stat|create|delete"
    r"|init|prepare|cleanup|dispose|list|get|put|head|mkdirs?|rmdirs|rmfiles|statfiles)",
    re.IGNORECASE,
)


def number(entry: str, notation: Notation) -> float | None:
    """NaN if it is missing, None if it is neither that nor a number."""
    entry = entry.strip()
    if entry.lower() in ABSENT:
        return float("nan")
    if notation.grouping:
        entry = entry.translate(_SPACES)
        if _GROUPED[notation].fullmatch(entry):
            return float(entry.replace(notation.grouping, "").replace(notation.decimal, "."))
    try:
        if notation.decimal == ".":
            return float(entry)
        return None if "." in entry else float(entry.replace(notation.decimal, "."))
    except ValueError:
        return None


def are_numbers(entries: Sequence[str], notation: Notation) -> bool:
    """Mostly numbers, so that what else stands in the column is a mistake."""
    present = _present(entries)
    return bool(present) and 2 * sum(number(entry, notation) is not None for entry in present) > len(present)


def unit_of_all(entries: Sequence[str]) -> Quantity | None:
    """What one of the unit is that all entries are in, as `905 IOPS` and `1.2 ms` are; None if they are in several
    kinds of units, or a comma in one may be a decimal sign."""
    found = [quantity(entry.strip()) for entry in _present(entries)]
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found) or len({one.metric for one in known}) > 1 or "," in "".join(entries):
        return None
    return None if known[0].metric is None and all(map(is_number, map(str.strip, entries))) else known[0]


def are_whole(entries: Sequence[str]) -> bool:
    """Whether the numbers are whole: those of a parameter are, such as a queue depth."""
    return all(entry.strip().isdecimal() for entry in _present(entries))


def is_parameter(name: str) -> bool:
    """Whether a column of this name states what was measured: `Queue Depth`, `bs (KiB)`."""
    return parameter.plain(name) in PARAMETERS


IDS = frozenset(
    (
        *("node", "host", "machine", "server", "socket", "numa", "numanode", "vm", "guest", "container", "client"),
        *("instance", "worker", "rank", "slot", "lun", "osd", "brick", "replica", "shard", "partition", "channel"),
        *("drive", "ssd", "namespace", "port", "core", "cpu", "thread", "site", "rack", "pool"),
    )
)
"""How columns are called, with or without `id`, whose numbers are names, if these come again."""
_ID = re.compile(r"(?P<of>.*?)(?:id|no|nr|number|index)?")


def is_id(name: str, entries: Sequence[str]) -> bool:
    """Whether the numbers of such a column tell things apart, such as machines: whole and few. Those of CPUs, cores
    and threads count from 0 or 1, since a column of that name may hold their use."""
    found = _ID.fullmatch(parameter.plain(name))
    present = [entry.strip() for entry in _present(entries)]
    numbers = {int(entry) for entry in present if entry.isdecimal()}
    if found is None or found["of"] not in IDS or not are_whole(entries) or 2 * len(numbers) > len(present):
        return False
    return found["of"] not in ("cpu", "core", "thread") or sorted(numbers) in (
        list(range(len(numbers))),
        list(range(1, len(numbers) + 1)),
    )


def is_access(name: str) -> bool:
    """Whether such a column states how it was accessed, which is no setting: `rw`, `bs`. A device or a filesystem may
    be one."""
    return is_parameter(name) and parameter.plain(name) not in ("device", "disk", "dev", "filesystem", "fs")


REMARKS = ("comment", "comments", "note", "notes", "remark", "remarks", "bemerkung", "kommentar", "remarque")
"""Columns about how it went, whatever comes again in them."""


def kind_of(name: str, entries: Sequence[str]) -> Kind:
    """What a column of text holds. Names distinguish rows, and come again; what is distinct may be a remark. An entry
    that is empty comes again no more than a remark does."""
    present = [entry.strip() for entry in _present(entries)]
    different = len(set(present))
    if is_parameter(name):
        return "names"
    if name.lower() in REMARKS:
        return "distinct"
    if any(map(_DATE.match, present)):
        return "dates"
    comes_again = 2 * different <= len(present)
    if sum(map(bool, map(_WITH_UNIT.fullmatch, present))) * 2 > len(present) and not comes_again:
        return "numbers with units"
    if different < 2 and len(present) == len(entries):
        return "constant"
    return "names" if comes_again else "distinct"


def are_operations(entries: Sequence[str]) -> bool:
    """Whether a column has nothing but names of operations: it distinguishes what was measured, and is no setting."""
    present = _present(entries)
    return bool(present) and all(_OPERATION.fullmatch(entry.strip()) for entry in present)


def notation(source: Source, columns: Mapping[str, Sequence[str]]) -> Notation:
    """The comma is the decimal sign if no number of these columns has a point. Thousands are separated if a number is
    so written that nothing else can be meant, and all of that column can be read so. InputError if a comma may
    be either."""
    entries = {name: [entry.strip().translate(_SPACES) for entry in column] for name, column in columns.items()}
    every = [entry for column in entries.values() for entry in column]
    certain = [_present(column) for column in entries.values() if any(map(_CERTAIN, column))]
    fitting = [one for one, form in _GROUPED.items() if any(all(map(form.fullmatch, column)) for column in certain)]
    if fitting:
        return max(fitting, key=lambda one: sum(number(entry, one) is not None for entry in every))
    commas = list(filter(_COMMA, every))
    points = list(filter(_POINT, every))
    if commas and points and not all(map(_THOUSANDS, commas)) and all(map(_GROUPED[GERMAN].fullmatch, points)):
        return GERMAN
    for name, column in entries.items():
        present = _present(column)
        whole = [entry for entry in present if entry.isdecimal()]
        if not commas and all(map(_POINTED, points)) and 0 < len(whole) < len(present) and _may_be_thousands(present):
            first = next(filter(_POINTED, present))
            raise InputError(
                f"'{first}' may be {first} or {first.replace('.', '')}, as whole numbers stand beside it",
                where=f"{source.name}, column {name[:QUOTED_MAX]}",
                remedy="write all of them with as many decimals, or without points between thousands",
            )
    if not commas or points:
        return PLAIN
    if all(map(_THOUSANDS, commas)):
        name = next(name for name, column in entries.items() if commas[0] in column)
        raise InputError(
            f"'{commas[0]}' may be {commas[0].replace(',', '.')} or {commas[0].replace(',', '')}",
            where=f"{source.name}, column {name[:QUOTED_MAX]}",
            remedy="write numbers without commas between thousands, or with a decimal point",
        )
    return Notation(",")


def _may_be_thousands(entries: Sequence[str]) -> bool:
    """Whether what has a point is not below 1,000 if the point parts thousands, and what has none is."""
    return all(_POINTED(entry) or re.fullmatch(r"[1-9]\d{0,2}", entry) for entry in entries)


def _present(entries: Sequence[str]) -> list[str]:
    return [entry for entry in entries if entry.strip().lower() not in ABSENT]
