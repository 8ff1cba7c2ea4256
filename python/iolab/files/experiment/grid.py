"""A range of [tune.space] as the values that are tried: numbers, sizes or durations."""

from __future__ import annotations

import math
import re
from typing import Any

from iolab.base.errors import InputError
from iolab.base.option import shown
from iolab.base.plain_text import counted
from iolab.base.quantity import format_bytes, format_duration_ns, parse_bytes, parse_duration_ns

VALUES_MAX = 64
GRID = 16
"""Steps of a range whose step is not given."""


def grid(low: Any, high: Any, step: Any, *, log: bool) -> tuple[tuple[Any, ...], tuple[float, ...]]:
    """The values of a range as a setting has them, and as numbers. InputError states what is wrong with it."""
    read, write = _reader(low, high)
    first, last = read(low), read(high)
    if not first < last:
        raise InputError(f"low is {shown(low)}, which is not below high, {shown(high)}")
    if log:
        if step is not None:
            raise InputError("step and log given; with log each value is twice the one before")
        if first <= 0:
            raise InputError(f"low is {shown(low)}; expected more than 0 with log")
        count = math.ceil(math.log2(last / first))
        sizes = [first * 2**power for power in range(count)] + [last]
    else:
        whole = all(isinstance(one, int) for one in (first, last))
        taken = read(step) if step is not None else _step(first, last) if whole else (last - first) / GRID
        if taken <= 0 or (last - first) / taken > VALUES_MAX:
            raise InputError(f"step is {shown(step)}; expected one that makes at most {VALUES_MAX} values")
        sizes = [first + taken * place for place in range(int((last - first) / taken) + 1)]
        sizes += [last] if sizes[-1] < last else []
    if len(sizes) > VALUES_MAX:
        raise InputError(f"{counted(len(sizes), 'value')}; expected at most {VALUES_MAX}")
    return tuple(write(one) for one in sizes), tuple(map(float, sizes))


def _step(first: int, last: int) -> int:
    """A sixteenth of a range of whole numbers, rounded up to what both ends are multiples of."""
    unit = math.gcd(first, last) if first and math.gcd(first, last) * GRID <= last - first else 1
    return math.ceil((last - first) / GRID / unit) * unit


def _reader(low: Any, high: Any) -> tuple[Any, Any]:
    """How an end of the range is read as a number, and a number written as a setting has it."""
    for one in (low, high):
        if isinstance(one, bool) or not isinstance(one, int | float | str):
            raise InputError(f'{shown(one)} given; expected a number, a size such as "4MiB" or a duration')
    if not isinstance(low, str) and not isinstance(high, str):
        return _plain, _plain
    texts = [one for one in (low, high) if isinstance(one, str)]
    if all(re.search(r"[iI]?[bB]$", one) for one in texts):
        return parse_bytes_of, format_bytes
    return parse_duration_of, format_duration_ns


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        raise InputError(f"{shown(value)} given beside numbers; expected a number")
    return value


def parse_bytes_of(value: Any) -> int:
    """A size in bytes, from a text or a number of bytes."""
    return parse_bytes(value) if isinstance(value, str) else int(value)


def parse_duration_of(value: Any) -> int:
    """A duration in ns, from a text or 0."""
    if isinstance(value, str):
        return parse_duration_ns(value)
    if value:
        raise InputError(f'{shown(value)} given; expected a duration such as "10ms"')
    return 0
