"""What grants a right that this process lacks: root, or, in a container's root, more of the machine."""

from __future__ import annotations

import os

AS_ROOT = "run as root: sudo iolab run ..."
IN_A_CONTAINER = "in a container, start it with --privileged --cgroupns=host"
"""Its root has /sys mounted read-only otherwise, and its control group for the top of them all."""


def remedy() -> str:
    """For whoever may not write to one of the kernel's files."""
    return IN_A_CONTAINER if os.geteuid() == 0 else AS_ROOT
