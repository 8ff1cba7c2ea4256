"""What grants a right that this process lacks: root, or, in a container's root, more of the machine."""

from __future__ import annotations

import os
import re
from pathlib import Path

CAP_SYS_ADMIN = 21
"""Mounting, loop devices, most of the kernel's files (include/uapi/linux/capability.h, Linux 6.18)."""
AS_ROOT = "run as root: sudo iolab run ..."
IN_A_CONTAINER = "in a container, start it with --privileged --cgroupns=host"
"""Its root has /sys mounted read-only otherwise, and its control group for the top of them all."""


def administers() -> bool:
    """Whether this process has CAP_SYS_ADMIN, which a container's root may lack."""
    held = re.search(r"^CapEff:\s*([0-9a-f]+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    return held is not None and bool(int(held[1], 16) >> CAP_SYS_ADMIN & 1)


def remedy() -> str:
    """For whoever may not write to one of the kernel's files."""
    return IN_A_CONTAINER if os.geteuid() == 0 else AS_ROOT
