"""The registry of metrics, and their values from a record.

Each metric's name, unit, nature and help have their one home, in the file of its noun here or of the probe that
gives it. A value that could not be measured is None with a reason, never zero.
"""

from __future__ import annotations

from iolab.domain.definition import Metric
from iolab.domain.metric.aliases import meant
from iolab.domain.metric.registry import (
    ALL,
    DEFAULT_COMPARED,
    IN_INSTRUCTIONS,
    METRICS,
    OPS,
    TRANSFERS,
    Key,
    describe,
    is_unknown,
    ops_of,
    parse_key,
)
from iolab.domain.metric.row import Row, key_of, rows

__all__ = [
    "ALL",
    "DEFAULT_COMPARED",
    "IN_INSTRUCTIONS",
    "METRICS",
    "OPS",
    "TRANSFERS",
    "Key",
    "Metric",
    "Row",
    "describe",
    "is_unknown",
    "key_of",
    "meant",
    "ops_of",
    "parse_key",
    "rows",
]
