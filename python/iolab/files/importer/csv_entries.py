"""What the entries of a CSV file's column are: numbers, parameters, names, numbers with units."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from iolab.base.csv_table import ABSENT
from iolab.base.errors import InputError
from iolab.domain import parameter
from iolab.files.importer.source import Source
from iolab.files.importer.text import QUOTED_MAX

PARAMETERS = parameter.AMOUNTS | {
    *("rw", "pattern", "op", "operation", "mode", "device", "disk", "dev", "filesystem", "fs"),
}
"""How columns are called that state what was measured."""

Kind = Literal["names", "constant", "distinct", "dates", "numbers with units"]

_NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})++|\d++)(?:[.,]\d++)?(?:[eE][-+]?\d++)?"
_WITH_UNIT = re.compile(rf"[~<>=≈]?\s*+{_NUMBER}\s*+(?:[^\W\d_]{{1,5}}|%)?(?:(?:/|p)\w{{1,4}})?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2}:\d\d")
_COMMA = re.compile(r"[-+]?\d++,\d++(?:[eE][-+]?\d++)?").fullmatch
_POINT = re.compile(r"[-+]?\d++\.\d++(?:[eE][-+]?\d++)?").fullmatch
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}").fullmatch

_OPERATION = re.compile(
    r"(?:seq(?:uential)?|rand(?:om)?|rnd)?[ _-]?(?:reads?|writes?|rw|mix(?:ed)?|trims?|discards?"
    r"|(?:re|over)-?(?:read|write)s?|f?(?:data)?sync|(?:read|write)_?random|remove|stat|create|delete)",
    re.IGNORECASE,
)


def number(entry: str, decimal: str) -> float | None:
    """NaN if it is missing, None if it is neither that nor a number."""
    entry = entry.strip()
    if entry.lower() in ABSENT:
        return float("nan")
    try:
        if decimal == ".":
            return float(entry)
        return None if "." in entry else float(entry.replace(decimal, "."))
    except ValueError:
        return None


def are_numbers(entries: Sequence[str], decimal: str) -> bool:
    """Mostly numbers, so that what else stands in the column is a mistake."""
    present = _present(entries)
    return bool(present) and 2 * sum(number(entry, decimal) is not None for entry in present) > len(present)


def are_whole(entries: Sequence[str]) -> bool:
    """Whether the numbers are whole: those of a parameter are, such as a queue depth."""
    return all(entry.strip().isdecimal() for entry in _present(entries))


def is_parameter(name: str) -> bool:
    """Whether a column of this name states what was measured: `Queue Depth`, `bs (KiB)`."""
    return parameter.plain(name) in PARAMETERS


def kind_of(name: str, entries: Sequence[str]) -> Kind:
    """What a column of text holds. Names distinguish rows, and come again; what is distinct may be a remark."""
    present = [entry.strip() for entry in _present(entries)]
    different = len(set(present))
    if is_parameter(name):
        return "names"
    if any(map(_DATE.match, present)):
        return "dates"
    comes_again = 2 * different <= len(entries)
    if sum(map(bool, map(_WITH_UNIT.fullmatch, present))) * 2 > len(present) and not comes_again:
        return "numbers with units"
    if different < 2:
        return "constant"
    return "names" if comes_again else "distinct"


def are_operations(entries: Sequence[str]) -> bool:
    """Whether a column has nothing but names of operations: it distinguishes what was measured, and is no setting."""
    present = _present(entries)
    return bool(present) and all(_OPERATION.fullmatch(entry.strip()) for entry in present)


def decimal(source: Source, separator: str, columns: Mapping[str, Sequence[str]]) -> str:
    """The comma, if it separates nothing else and no number of these columns has a point. InputError if it may as well
    separate thousands."""
    if separator == ",":
        return "."
    entries = {name: [entry.strip() for entry in column] for name, column in columns.items()}
    every = [entry for column in entries.values() for entry in column]
    commas = list(filter(_COMMA, every))
    if not commas or any(map(_POINT, every)):
        return "."
    if all(map(_THOUSANDS, commas)):
        name = next(name for name, column in entries.items() if commas[0] in column)
        raise InputError(
            f"'{commas[0]}' may be {commas[0].replace(',', '.')} or {commas[0].replace(',', '')}",
            where=f"{source.name}, column {name[:QUOTED_MAX]}",
            remedy="write numbers without commas between thousands, or with a decimal point",
        )
    return ","


def _present(entries: Sequence[str]) -> list[str]:
    return [entry for entry in entries if entry.strip().lower() not in ABSENT]
