"""Seeds derived from seeds: one per round, trial, phase and job, so that each draws from a stream of its own."""

from __future__ import annotations

from hashlib import blake2b

SEED_MAX = 2**63 - 1
"""Fits a signed 64-bit column."""


def derive(seed: int, *names: str | int) -> int:
    """A seed that depends on `seed` and on every name, the same on any host and Python version."""
    text = "\x1f".join([str(seed), *(f"{type(name).__name__}:{name}" for name in names)])
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") & SEED_MAX
