"""Modules that the running kernel could load."""

from __future__ import annotations

import subprocess

from iolab.base import child_process
from iolab.machines.system import command


def loads(alias: str) -> bool:
    """Whether there is such a module for this kernel, or it is built in, by name or alias. Nothing is loaded."""
    modprobe = command.find("modprobe")
    if modprobe is None:
        return False
    arguments = [modprobe, "--dry-run", "--quiet", alias]
    return subprocess.run(arguments, env=child_process.environment(), capture_output=True, check=False).returncode == 0
