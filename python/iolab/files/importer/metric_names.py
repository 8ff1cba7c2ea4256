"""What metric the name of a column, or of a row, means."""

from __future__ import annotations

import re

from iolab.domain.metric import METRICS, OPS

_OF_OPERATIONS = re.compile(
    r"(?:(?P<before>read|write)[ _-])?iops"
    r"(?: ?[(\[]?(?:(?P<after>read|write)|avg|mean)[)\]]?)?",
    re.IGNORECASE,
)
"""`IOPS`, `Read IOPS`, `IOPS (write)`, `IOPS(avg)`."""
TRIAL_COLUMNS = frozenset(
    ("trial", "round", "position", "workload", "setting", "status", "seed", "attempt", "started_unix_ns", "duration_ns")
)


def metric_of(column: str) -> tuple[str, str, str]:
    """`random_read/read.iops`, as iolab writes it -> phase, operation, metric. Other names stay as they are, less the
    signs that a metric's key is made of: `MB/s` becomes `MB_per_s`. A run's column about each trial has such a name
    already: `status` becomes `status_`."""
    phase, _, rest = column.rpartition("/")
    op, _, name = rest.rpartition(".")
    if name in METRICS and (op or "all") in OPS and re.fullmatch(r"[a-z0-9_]*", phase):
        return phase or "main", op or "all", name
    if found := _OF_OPERATIONS.fullmatch(column):
        return "main", (found["before"] or found["after"] or "all").lower(), "iops"
    return "main", "all", plain_name(column)


def plain_name(column: str) -> str:
    """The name, less the signs that a metric's key is made of."""
    plain = column.rstrip(": ").replace("/", "_per_").replace(".", "_")
    return f"{plain}_" if plain in TRIAL_COLUMNS else plain
