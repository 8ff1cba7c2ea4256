"""What a control or a phase changes that other runs share: who changes it holds its lock
(`iolab.adapters.system.lock`)."""

from __future__ import annotations

from typing import Literal

Reach = Literal["queue", "machine"]
"""The settings of the queues of the target's devices, or those of the machine as a whole."""
