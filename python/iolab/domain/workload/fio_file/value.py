"""How fio reads values. Each reader takes the text and `kb_base`, and raises ValueError with what was expected."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from iolab.base.errors import unknown

Reader = Callable[[str, int], Any]
"""A reader of an option's text; its second argument is `kb_base`."""

KB_BASE = 1024
_PREFIXES = "kmgtp"
_TIME_NS = {
    **dict.fromkeys(("us", "usec"), 1_000),
    **dict.fromkeys(("ms", "msec"), 1_000_000),
    **dict.fromkeys(("s", "sec"), 1_000_000_000),
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
_LARGEST = 2**63 - 1
RANGE_STEPS_MAX = 1024


class Directions(NamedTuple):
    """A value for reads and one for writes; None if none is given. A value for trims is read and not kept."""

    read: Any
    write: Any


def whole(text: str, kb_base: int = KB_BASE) -> int:
    """A number with fio's suffixes: with kb_base 1024, `k` is 1024 and `kib` 1000; with 1000 the other way round.

    fio's manual states the same for `ki`, but fio 3.33 reads that as `k`, and so does this.
    """
    evaluated = _evaluated(text).lower()
    if re.fullmatch(r"0x[0-9a-f]{1,15}", evaluated):
        return int(evaluated, 16)
    found = re.fullmatch(r"(-?\d{1,19})(?:([kmgtp])(ib|i?b?)|b?)", evaluated)
    if not found:
        _refuse_bare_arithmetic(text, evaluated)
        raise ValueError(f'"{text}" given; expected a whole number such as 4096, 4k or 1m')
    digits, prefix, rest = found.groups()
    base = 1024 if (kb_base == 1024) != (rest == "ib") else 1000
    value = int(digits) * int(base ** (_PREFIXES.index(prefix) + 1 if prefix else 0))
    if abs(value) > _LARGEST:
        raise ValueError(f'"{text}" given; expected a number below 2^63')
    return value


def positive(text: str, kb_base: int = KB_BASE) -> int:
    """A whole number above 0, with fio's suffixes. ValueError for any other."""
    value = whole(text, kb_base)
    if value < 1:
        raise ValueError(f'"{text}" given; expected a number above 0')
    return value


def up_to(largest: int) -> Reader:
    """A reader of whole numbers from 1 to `largest`."""

    def read(text: str, kb_base: int = KB_BASE) -> int:
        value = positive(text, kb_base)
        if value > largest:
            raise ValueError(f'"{text}" given; expected a number from 1 to {largest}')
        return value

    return read


def count(text: str, kb_base: int = KB_BASE) -> int:
    """A whole number, 0 or more, with fio's suffixes. ValueError for any other."""
    value = whole(text, kb_base)
    if value < 0:
        raise ValueError(f'"{text}" given; expected a number, 0 or more')
    return value


def size(text: str, kb_base: int = KB_BASE) -> int:
    """A number of bytes, 0 or more; 0, which is as large as what is there, for all of it. ValueError for any other, and
    for fio's percentages of a file or device."""
    if text == "100%":
        return 0
    if text.endswith("%"):
        raise ValueError(f'"{text}" given; iolab needs a number of bytes, such as 1g')
    return count(text, kb_base)


def percent(text: str, kb_base: int = KB_BASE) -> int:
    """A whole percentage from 0 to 100, with or without the sign. ValueError for any other."""
    value = count(text.removesuffix("%"), kb_base)
    if value > 100:
        raise ValueError(f'"{text}" given; expected a percentage from 0 to 100')
    return value


def boolean(text: str, kb_base: int = KB_BASE) -> bool:
    """An option without a value is true."""
    try:
        return {"": True, "0": False, "1": True, "true": True, "false": False}[text.lower()]
    except KeyError:
        raise ValueError(f'"{text}" given; expected 0 or 1') from None


def word(*words: str) -> Reader:
    """A reader of one of these words; its ValueError names the word that is nearest."""

    def read(text: str, kb_base: int = KB_BASE) -> str:
        if text not in words:
            raise ValueError(f'"{text}": {unknown("value", text, words)}')
        return text

    return read


def plain(text: str, kb_base: int = KB_BASE) -> str:
    """The text as it stands."""
    return text


def nonempty(text: str, kb_base: int = KB_BASE) -> str:
    """The text as it stands. ValueError if it is empty."""
    if not text:
        raise ValueError("no value given; expected a text")
    return text


def duration_ns(unit_ns: int) -> Reader:
    """A time; a plain number is in `unit_ns`."""

    def read(text: str, kb_base: int = KB_BASE) -> int:
        found = re.fullmatch(r"(\d{1,19})([a-z]*)", _evaluated(text).lower())
        if not found or (found[2] and found[2] not in _TIME_NS):
            raise ValueError(f'"{text}" given; expected a time such as 30, 500ms or 5m')
        value = int(found[1]) * (_TIME_NS[found[2]] if found[2] else unit_ns)
        if value > _LARGEST:
            raise ValueError(f'"{text}" given; expected a time below 290 years')
        return value

    return read


def directions(reader: Reader) -> Reader:
    """`read,write,trim`: one value is for all, an empty place is no value; with fewer, the last stands for the rest."""

    def read(text: str, kb_base: int = KB_BASE) -> Directions:
        parts = [part.strip() for part in text.split(",")]
        if len(parts) > 3:
            raise ValueError(f'"{text}" given; expected at most three values: reads, writes, trims')
        values = [reader(part, kb_base) if part else None for part in parts]
        return Directions(values[0], values[0] if len(values) == 1 else values[1])

    return read


def block_range(text: str, kb_base: int = KB_BASE) -> dict[int, float]:
    """`1k-4k` -> sizes with weights: fio draws uniformly and rounds down to multiples of the smallest."""
    found = re.fullmatch(r"([^-:]+)[-:]([^-:]+)", text)
    if not found:
        raise ValueError(f'"{text}" given; expected a range such as 4k-64k')
    low, high = sorted(positive(part.strip(), kb_base) for part in found.groups())
    if high // low > RANGE_STEPS_MAX:
        raise ValueError(f'"{text}" given; expected at most {RANGE_STEPS_MAX} multiples of the smallest size')
    return {low * step: 1.0 for step in range(1, high // low + 1)}


def block_split(text: str, kb_base: int = KB_BASE) -> dict[int, float]:
    """`4k/60:64k/40` -> sizes with weights; sizes without a percentage share what is left evenly."""
    pairs = [part.partition("/") for part in text.split(":") if part]
    given = {positive(name, kb_base): percent(share) if share else None for name, _, share in pairs}
    left = 100 - sum(share for share in given.values() if share is not None)
    open_sizes = sum(share is None for share in given.values())
    if not given or left < 0 or (left > 0 and not open_sizes):
        raise ValueError(f'"{text}" given; expected sizes with percentages that sum to 100, such as 4k/60:64k/40')
    weights = {name: left / open_sizes if share is None else float(share) for name, share in given.items()}
    return {name: weight for name, weight in weights.items() if weight > 0}


PATTERN_BYTES_MAX = 512


def pattern(text: str, kb_base: int = KB_BASE) -> bytes:
    """The bytes that a `verify_pattern` names, one part after the other: `0xdeadbeef` in the order of its digits, a
    decimal number with its lowest byte first, `"text"` as it stands."""
    found = bytearray()
    rest = text
    while rest:
        part = _PATTERN_PART.match(rest)
        if part is None:
            hint = {"%": "iolab has no %o, as its own stamps hold the offset", "'": "iolab reads no file for it"}
            what = hint.get(rest[0], 'expected parts such as 0xdeadbeef, 255 or "text"')
            raise ValueError(f"{text!r} given; {what}")
        rest = rest[part.end() :]
        if (digits := part["hex"]) is not None:
            found += bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}")
        elif part["number"] is not None:
            found += _number_bytes(int(part["number"]), text)
        else:
            found += part["text"].encode()
    if not 0 < len(found) <= PATTERN_BYTES_MAX:
        raise ValueError(f"{len(found)} bytes given; expected 1 to {PATTERN_BYTES_MAX}")
    return bytes(found)


_PATTERN_PART = re.compile(
    r"""0[xX](?P<hex>[0-9a-fA-F]+?)(?=0[xX]|[^0-9a-fA-F]|$) | (?P<number>-?\d{1,10})(?!\d) | "(?P<text>[^"]*)" """,
    re.VERBOSE,
)


def _number_bytes(value: int, text: str) -> bytes:
    """As many as it has, and one for 0; a negative number has four."""
    if not -(2**31) <= value < 2**31:
        raise ValueError(f"{text!r} given; expected decimal numbers from -2^31 to 2^31 - 1")
    return (value % 2**32).to_bytes(4 if value < 0 else max(1, -(-value.bit_length() // 8)), "little")


def percentile(text: str, kb_base: int = KB_BASE) -> float:
    """A percentage above 0, up to 100, with or without a fraction."""
    if not re.fullmatch(r"\d{1,3}(\.\d{1,10})?", text.strip()) or not 0 < float(text) <= 100:
        raise ValueError(f'"{text}" given; expected a percentage such as 99 or 99.9, above 0 and up to 100')
    return float(text)


class SteadyRate(NamedTuple):
    """What has to be steady, and how: fio's `steadystate`."""

    of: Literal["operations", "bytes"]
    by: Literal["deviation", "slope"]
    limit: float
    in_percent: bool


STEADY_BY_DEFAULT = SteadyRate("operations", "slope", 0.01, True)
"""fio's own, with a steadystate_duration and no steadystate."""


def steady_rate(text: str, kb_base: int = KB_BASE) -> SteadyRate:
    """`iops:1%`, `bw_slope:10k`: a criterion and its limit, a share of the mean or a rate."""
    found = re.fullmatch(r"(iops|bw)(_slope)?:\s*(\d{1,15}(?:\.\d{1,9})?)\s*(%?)", text)
    size = re.fullmatch(r"bw(_slope)?:(.+)", text)
    if found:
        of: Literal["operations", "bytes"] = "operations" if found[1] == "iops" else "bytes"
        rate = SteadyRate(of, "slope" if found[2] else "deviation", float(found[3]), bool(found[4]))
    elif size:
        rate = SteadyRate("bytes", "slope" if size[1] else "deviation", float(whole(size[2], kb_base)), False)
    else:
        raise ValueError(f'"{text}" given; expected iops, iops_slope, bw or bw_slope with a limit, such as iops:1%')
    if rate.limit <= 0:
        raise ValueError(f'"{text}" given; expected a limit above 0')
    return rate


def cpu_list(text: str, kb_base: int = KB_BASE) -> list[int]:
    """CPU numbers of a list in the kernel's form: `0-3,6`. ValueError for any other."""
    cpus: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,5})(?:-(\d{1,5}))?\s*", part)
        if not found or int(found[2] or found[1]) < int(found[1]):
            raise ValueError(f'"{text}" given; expected CPUs such as 0-3 or 0,2')
        cpus += range(int(found[1]), int(found[2] or found[1]) + 1)
    return sorted(set(cpus))


def cpu_mask(text: str, kb_base: int = KB_BASE) -> list[int]:
    """CPU numbers of a mask in which bit n stands for CPU n. ValueError for any other."""
    mask = positive(text, kb_base)
    return [cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1]


def paths(text: str, kb_base: int = KB_BASE) -> list[str]:
    r"""Names separated by colons; `\:` is a colon."""
    return [part.replace("\\:", ":") for part in re.split(r"(?<!\\):", nonempty(text)) if part]


def joined(names: Sequence[str]) -> str:
    """The names in one text, which `paths` reads back."""
    return ":".join(name.replace(":", "\\:") for name in names)


def _refuse_bare_arithmetic(text: str, evaluated: str) -> None:
    """fio 3.33 accepts `2*8m` (--parse-only too), and goes on with 2 bytes."""
    first = re.match(r"\d+[kmgtp]?(?=\s*[-+*/%])", evaluated)
    if first is not None and _Expression(evaluated).value() is not None:
        raise ValueError(f'"{text}" given; fio reads {first[0]} and drops the rest; write ({text.strip()})')


def _evaluated(text: str) -> str:
    """With fio's variables and operations between whole numbers: `8*$mb_memory`, `(2 * 4k + 512)`."""
    text = text.strip()
    if "$" not in text and not (text.startswith("(") and text.endswith(")")):
        return text
    known = {
        "pagesize": os.sysconf("SC_PAGE_SIZE"),
        "mb_memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "ncpus": os.cpu_count() or 1,
    }
    filled = re.sub(r"\$(pagesize|mb_memory|ncpus)", lambda found: str(known[found[1]]), text)
    value = _Expression(filled).value()
    if value is None:
        raise ValueError(
            f'"{text}" given; iolab reads numbers, $pagesize, $mb_memory and $ncpus, with + - * / % and parentheses'
        )
    return str(value)


EXPRESSION_CHARS_MAX = 200


class _Expression:
    """Whole numbers, with suffixes of 1024, and the operations between them; divisions are cut off, as bc does."""

    def __init__(self, text: str) -> None:
        bare = "".join(text.split()).lower()
        self.tokens: list[str] = re.findall(r"\d{1,18}[kmgtp]?|[-+*/%()]", bare)
        self.is_whole = "".join(self.tokens) == bare and len(bare) <= EXPRESSION_CHARS_MAX
        self.place = 0

    def value(self) -> int | None:
        """None for what is no expression, divides by zero, or has no 64 bits."""
        try:
            value = self._sum() if self.is_whole else None
        except (ArithmeticError, ValueError):
            return None
        return value if value is not None and self.place == len(self.tokens) and abs(value) <= _LARGEST else None

    def _sum(self) -> int:
        value = self._product()
        while (operation := self._next("+", "-")) is not None:
            value += self._product() * (1 if operation == "+" else -1)
        return value

    def _product(self) -> int:
        value = self._number()
        while (operation := self._next("*", "/", "%")) is not None:
            right = self._number()
            if operation == "*":
                value *= right
            else:
                quotient = abs(value) // abs(right) * (1 if (value < 0) == (right < 0) else -1)
                value = quotient if operation == "/" else value - quotient * right
        return value

    def _number(self) -> int:
        sign = 1
        while self._next("-") is not None:
            sign = -sign
        if self._next("(") is not None:
            value = self._sum()
            if self._next(")") is None:
                raise ValueError
            return sign * value
        if self.place >= len(self.tokens) or not self.tokens[self.place][0].isdigit():
            raise ValueError
        token = self.tokens[self.place]
        self.place += 1
        digits = token.rstrip(_PREFIXES)
        unit = 1 << (10 * (_PREFIXES.index(token[-1]) + 1)) if token != digits else 1
        return sign * int(digits) * unit

    def _next(self, *operations: str) -> str | None:
        if self.place < len(self.tokens) and self.tokens[self.place] in operations:
            self.place += 1
            return self.tokens[self.place - 1]
        return None
