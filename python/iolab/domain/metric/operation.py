"""The operations that metrics are kept for."""

from __future__ import annotations

ALL = "all"
TRANSFERS = ("read", "write")
OPS: dict[str, str] = {
    "read": "a read",
    "write": "a write",
    "sync": "an fsync or fdatasync",
    "mkdir": "a mkdir",
    "create": "an open that makes a file",
    "fsync": "an fsync; of a file that is opened again for it, open and close too",
    "system_sync": "a sync of the whole system",
    "close": "a close",
    "unlink": "an unlink",
    ALL: "reads and writes together, and what is said of a phase as a whole",
}
"""Every operation that some kind of phase counts. Each phase has its own (`PhaseSpec.offered`)."""
