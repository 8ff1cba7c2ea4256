"""Trials on simulated machines: nothing of this machine is touched, so there is nothing to lock and nothing to undo."""

from __future__ import annotations

from iolab.adapters.simulator.ahead import RunAhead
from iolab.adapters.simulator.describe import describe

__all__ = ["RunAhead", "describe"]
