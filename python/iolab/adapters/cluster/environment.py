"""What a child process that uses Ray is given."""

from __future__ import annotations

import os

from iolab.base import child_process


def environment() -> dict[str, str]:
    """That of every Python child of iolab's, and Ray's own variables, such as those of its TLS."""
    of_ray = {name: text for name, text in os.environ.items() if name.startswith("RAY_")}
    return {**child_process.python_environment(), **of_ray, "RAY_DEDUP_LOGS": "0"}
