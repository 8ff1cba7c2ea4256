"""Lists with a line for each operation: what is stated of their latencies."""

from __future__ import annotations

from collections.abc import Sequence

from iolab.files.importer.results import Row

PERCENTILES = ((50, 20), (99, 1000))
"""Each with the number of operations from which on ten lie beyond it."""


def add_latencies(row: Row, op: str, latencies_ns: Sequence[float], *, only: str = "") -> None:
    """Adds how many operations there were, and their latencies. `only`: what is listed if not all are; then nothing can
    be said of all but the longest."""
    ordered = sorted(latencies_ns)
    count = len(ordered)
    row.add("ops", count, op=op)
    row.add("latency_ns_mean", None if only else sum(ordered) / count, op=op, absent=only)
    row.add("latency_ns_max", ordered[-1], op=op)
    for percent, least in PERCENTILES:
        at = ordered[min(count - 1, count * percent // 100)] if count >= least and not only else None
        row.add(f"latency_ns_p{percent}", at, op=op, absent=only or f"of {count} I/Os; expected {least:,} or more")
