"""Trials on simulated machines: nothing of this machine is touched, so there is nothing to lock and nothing to undo."""

from __future__ import annotations

from iolab.machines.model.executor import ModelExecutor

__all__ = ["ModelExecutor"]
