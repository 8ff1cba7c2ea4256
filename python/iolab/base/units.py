"""Sizes, durations and rates as people write them. The rules have one home, `crates/workload/src/units.rs`.

Binary prefixes are powers of 1024 (KiB, MiB), decimal ones powers of 1000 (kB, MB). The extension is loaded when first
needed, so that importing this module costs nothing. All raise ValueError naming the text and what was expected.
"""

from __future__ import annotations

from iolab import _native


def parse_bytes(text: str) -> int:
    """`"4KiB"` -> 4096 bytes."""
    return _native.parse_bytes(text)


def parse_duration_ns(text: str) -> int:
    """`"8ms"` -> 8_000_000 ns."""
    return _native.parse_duration_ns(text)


def parse_rate(text: str) -> float:
    """`"100MiB/s"` -> bytes per second."""
    return _native.parse_rate(text)


def format_bytes(count: int) -> str:
    """4096 -> `4KiB`, exactly: what `parse_bytes` reads back."""
    return _native.format_bytes(count)


def format_duration_ns(duration_ns: int) -> str:
    """8_000_000 -> `8ms`."""
    return _native.format_duration_ns(duration_ns)
