"""Mixtures of two settings in which every key's effect follows from all trials at once.

Rows of a Hadamard matrix, each followed by its complement: every key is at each side in half of the rows, no two keys
go together, and no interaction of two keys looks like the effect of a third (a design of resolution IV: Box, Hunter and
Hunter, *Statistics for Experimenters*, 2005, chapter 6).
"""

from __future__ import annotations

from iolab.base.plain_text import counted

KEYS_MAX = 127


def mixtures(keys: int) -> list[tuple[bool, ...]]:
    """Rows of which side each key is at; the first are all and none. ValueError for no key, or too many."""
    if not 1 <= keys <= KEYS_MAX:
        raise ValueError(f"{counted(keys, 'key')}; expected 1 to {KEYS_MAX}")
    order = 2
    while order < keys + 1:
        order *= 2
    # Sylvester's matrix: the sign is the parity of the bits that row and column have in common. Column 0 is constant.
    rows = [tuple((row & column).bit_count() % 2 == 0 for column in range(1, keys + 1)) for row in range(order)]
    both = [one for row in rows for one in (row, tuple(not at for at in row))]
    return list(dict.fromkeys(both))
