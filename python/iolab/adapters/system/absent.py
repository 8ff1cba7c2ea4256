"""Why something is not to be had on this machine."""

from __future__ import annotations


class Absent(Exception):
    """One line: what is lacking, and the command that grants it where there is one."""
