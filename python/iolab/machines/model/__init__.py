"""Trials on simulated machines: nothing of this machine is touched, so there is nothing to lock and nothing to undo."""

from __future__ import annotations

from iolab.machines.model.ahead import RunAhead

__all__ = ["RunAhead"]
