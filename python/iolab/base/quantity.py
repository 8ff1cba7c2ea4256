"""Numbers with their units. A row of a table has one scale, so that its cells compare at a glance.

Sizes, durations and rates as people write them are read by rules that have one home,
`crates/base/src/units.rs`: binary prefixes are powers of 1024 (KiB, MiB), decimal ones powers of 1000 (kB,
MB); what cannot be read raises ValueError naming the text and what was expected.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from iolab import _native

ABSENT = "-"

_COUNT = "count"
"""A unit whose values, if they are whole, have no decimals; its magnitudes are written as those of all rates are,
`12,345`."""
_STEPS: dict[str, list[tuple[float, str]]] = {
    "bytes/s": [(2**30, "GiB/s"), (2**20, "MiB/s"), (2**10, "KiB/s"), (1, "B/s")],
    "bytes": [(2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")],
    "ns": [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")],
    "s": [(1, "s"), (1e-3, "ms"), (1e-6, "µs")],
    "1/s": [(1, "/s")],
    "Hz": [(1e9, "GHz"), (1e6, "MHz"), (1, "Hz")],
    _COUNT: [(1, "")],
    "percent": [(1, "%")],
    "share": [(1, "")],
    "ratio": [(1, "")],
}

_BINARY = [(2**50, "PiB"), (2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")]
_SIGNIFICANT_DIGITS = 4
_SMALLEST_DIGITS = 2
_DECIMALS_MAX = 6
_PLAIN_DECIMALS_MAX = 9
MULTIPLE_FROM = 3
"""From here on a ratio is clearer than a percentage."""
MULTIPLE_SHOWN_MIN, MULTIPLE_SHOWN_MAX = 0.01, 999
_MULTIPLE_DIGITS = 3


@dataclass(frozen=True)
class Scale:
    """How a row's values are shown: divided by `divisor`, followed by `suffix`."""

    divisor: float
    suffix: str
    decimals: int

    def number(self, value: float | None) -> str:
        """`50,975`, or `-` for what is no number."""
        if value is None or not math.isfinite(value):
            return ABSENT
        return f"{value / self.divisor:,.{self.decimals}f}"

    def with_unit(self, value: float | None) -> str:
        """`number` with the scale's unit behind it, as in `183.4 MiB/s`."""
        number = self.number(value)
        gap = "" if self.suffix == "%" else " "
        return number if number == ABSENT or not self.suffix else f"{number}{gap}{self.suffix}"

    def with_spread(self, value: float | None, spread: float | None) -> str:
        """`183.4 ± 2.1`: the typical value and its spread, without the unit."""
        if value is None or spread is None or not math.isfinite(spread):
            return self.number(value)
        return f"{self.number(value)} ± {self.number(spread)}"


def scale_for(unit: str, values: Iterable[float | None]) -> Scale:
    """The scale that suits the largest of `values`, all given in `unit` (a metric's unit, as the registry has it).

    The largest has four digits; the smallest, if it is far smaller, at least two. Counts are whole if all are.
    """
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    largest, smallest = max(sizes, default=0.0), min(sizes, default=0.0)
    steps = _STEPS.get(unit, [(1, unit)])
    divisor, suffix = next(((step, name) for step, name in steps if largest >= step), steps[-1])
    if unit == _COUNT and all(size == math.floor(size) for size in sizes):
        return Scale(divisor, suffix, 0)
    decimals = max(
        _SIGNIFICANT_DIGITS - _digits_before_point(largest / divisor),
        _SMALLEST_DIGITS - _digits_before_point(smallest / divisor),
        0,
    )
    return Scale(divisor, suffix, min(decimals, _DECIMALS_MAX))


def steps_of_units() -> dict[str, list[tuple[float, str]]]:
    """By unit, from which value on it has which name, the largest first: for pages that scale numbers themselves."""
    return {unit: list(steps) for unit, steps in _STEPS.items()}


def plain(value: float, digits: int) -> str:
    """A number with this many significant digits, and never in powers of ten: `12,345`, `0.0123`."""
    decimals = max(0, digits - _digits_before_point(abs(value)))
    text = f"{value:,.{min(decimals, _PLAIN_DECIMALS_MAX)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def size_in_words(size_bytes: int) -> str:
    """`64 MiB`, `1.5 GiB`, `4097 bytes`: in the largest unit of which it has at most three decimals, else rounded to
    two and with the bytes behind: `62.51 MiB (65546241 bytes)`."""
    divisor, unit = next(((step, name) for step, name in _BINARY if size_bytes >= step), (1, "bytes"))
    size = size_bytes / divisor
    if divisor == 1 or size * 1000 % 1 == 0:
        return f"{size:.3f}".rstrip("0").rstrip(".") + f" {unit}"
    if size_bytes < 2**20:
        return f"{size_bytes} bytes"
    return f"{size:.2f} {unit} ({size_bytes} bytes)"


def change(ratio: float, *, as_multiple: bool | None = None) -> str:
    """`+3.1 %` for a ratio of 1.031, `4.93x` for one of 4.93. `as_multiple` chooses, if several ratios stand
    together and are to be read in one notation; None: by this ratio alone.
    """
    if not (ratio >= MULTIPLE_FROM if as_multiple is None else as_multiple):
        return f"{round((ratio - 1) * 100, 1) + 0.0:+.1f} %"  # adding 0.0 turns -0.0 into 0.0
    if ratio >= MULTIPLE_SHOWN_MAX:
        return f">{MULTIPLE_SHOWN_MAX}x"
    if ratio < MULTIPLE_SHOWN_MIN:
        return f"<{MULTIPLE_SHOWN_MIN}x"
    return f"{ratio:.{max(0, _MULTIPLE_DIGITS - max(1, _digits_before_point(ratio)))}f}x"


def _digits_before_point(number: float) -> int:
    """2 for 12.3, 0 for 0.12, -1 for 0.012."""
    return math.floor(math.log10(number)) + 1 if number else 1


def parse_bytes(text: str) -> int:
    """A size in bytes: `"4KiB"` -> 4096. ValueError states what was expected."""
    return _native.parse_bytes(text)


def parse_duration_ns(text: str) -> int:
    """A duration in ns: `"8ms"` -> 8_000_000. ValueError states what was expected."""
    return _native.parse_duration_ns(text)


def parse_rate(text: str) -> float:
    """A rate in bytes per second: `"100MiB/s"` -> 104857600.0. ValueError states what was expected."""
    return _native.parse_rate(text)


def parse_percent(text: str) -> float:
    """A percentage: `"20%"` -> 20.0. ValueError states what was expected."""
    number, sign, rest = text.partition("%")
    with suppress(ValueError):
        if sign and not rest.strip() and math.isfinite(percent := float(number)):
            return percent
    raise ValueError(f'"{text}" given; expected a percentage such as 20 or "20%"')


def format_bytes(count: int) -> str:
    """4096 -> `4KiB`, exactly: what `parse_bytes` reads back."""
    return _native.format_bytes(count)


def format_duration_ns(duration_ns: int) -> str:
    """A duration with the largest unit that is exact: 8_000_000 -> `8ms`; `parse_duration_ns` reads it back."""
    return _native.format_duration_ns(duration_ns)
