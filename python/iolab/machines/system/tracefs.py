"""The kernel's tracing directory, and instances in it: buffers and event switches of one's own beside everybody else's.

Documentation/trace/ftrace.rst, "Instances": a mkdir in `instances` makes one, an rmdir removes it; EBUSY while somebody
has one of its files open.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from pathlib import Path

ROOTS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
"""Where tracefs is mounted; the second by a debugfs of old."""

REMOVE_PATIENCE_S = 10.0
"""A killed process has its files open until it is gone."""


def root() -> Path | None:
    """The first of `ROOTS` at which tracefs is mounted and may be entered; None if there is none."""
    # Below a root that this user may not enter, `Path.is_dir` raises PermissionError.
    return next((root for root in ROOTS if os.access(root / "instances", os.X_OK)), None)


def is_in_kernel() -> bool:
    """Whether the kernel has it, mounted or not."""
    try:
        return "tracefs" in Path("/proc/filesystems").read_text().split()
    except OSError:
        return True


def instances(name: str) -> list[Path]:
    """The instance of this name: one, or none. Both roots may show it; it is the same one."""
    return [path for path in (root / "instances" / name for root in ROOTS) if path.is_dir()][:1]


def remove(instance: Path) -> bool:
    """Switches its events off and removes it; False when it was gone. OSError if the kernel refuses."""
    deadline = time.monotonic() + REMOVE_PATIENCE_S
    while True:
        try:
            for switch in ("tracing_on", "events/enable"):
                with contextlib.suppress(FileNotFoundError):
                    (instance / switch).write_text("0")
            instance.rmdir()
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return True
