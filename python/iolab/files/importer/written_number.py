"""Numbers as texts write them."""

from __future__ import annotations

import math
import re

NUMBER_CHARS_MAX = 64
"""As many as a double holds."""

_NUMBER = re.compile(r"[-+]?(?:[1-9]\d{0,2}(?:,\d{3})+|(?=\.?\d)\d*)(?:\.\d*)?(?:[eE][-+]?\d+)?", re.ASCII)


def number(word: str, scale: float = 1.0) -> float | None:
    """`1,234.5` -> 1234.5, `4.95%` -> 4.95; times `scale`. None for what is no number, longer than 64 characters, or
    too large for a double: every importer reads numbers here, so that each that it gets is finite."""
    if len(word) > NUMBER_CHARS_MAX:
        return None
    bare = word.rstrip("%")
    if not _NUMBER.fullmatch(bare):
        return None
    value = float(bare.replace(",", "")) * scale
    return value if math.isfinite(value) else None


def is_number(word: str) -> bool:
    """Whether `number` reads it; a percent sign is none of it."""
    return not word.endswith("%") and number(word) is not None
