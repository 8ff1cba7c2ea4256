"""Sets of CPUs as the kernel writes them: lists like `0-3,5` and masks like `f,00000001` (lib/bitmap.c)."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MASK_WORD_BITS = 32


def parse(text: str) -> list[int] | None:
    """`0-3,5` -> [0, 1, 2, 3, 5]; None when it is no such list."""
    cpus: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,5})(?:-(\d{1,5}))?\s*", part)
        if match is None:
            return None
        first = int(match.group(1))
        cpus.extend(range(first, int(match.group(2) or first) + 1))
    return sorted(set(cpus))


def text(cpus: Iterable[int]) -> str:
    """CPUs as a list in the kernel's form: [0, 1, 2, 5] -> `0-2,5`."""
    ranges: list[tuple[int, int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], cpu)
        else:
            ranges.append((cpu, cpu))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def of_mask(mask: str) -> list[int]:
    """`f,00000001` -> [0, 32, 33, 34, 35]. ValueError when it is no mask."""
    bits = int(mask.strip().replace(",", ""), 16)
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1]


def mask(cpus: Iterable[int]) -> str:
    """CPUs as a mask in the kernel's form: [0, 32] -> `1,00000001`."""
    bits = sum(1 << cpu for cpu in set(cpus))
    words = [bits >> shift & 0xFFFFFFFF for shift in range(0, max(bits.bit_length(), 1), _MASK_WORD_BITS)]
    first, *rest = reversed(words)
    return ",".join([f"{first:x}", *(f"{word:08x}" for word in rest)])


def same_list(one: str, other: str) -> bool:
    """Whether two lists in the kernel's form name the same CPUs."""
    return parse(one) == parse(other)


def same_mask(one: str, other: str) -> bool:
    """Whether two masks in the kernel's form name the same CPUs."""
    return of_mask(one) == of_mask(other)
