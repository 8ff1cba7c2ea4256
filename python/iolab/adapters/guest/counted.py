"""What the counter wrote (counter.c), as the observation of the probe `instructions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iolab.adapters.guest.symbols import USER_MAX, Symbols
from iolab.domain.phase_record import InstructionsObservation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAGIC = int.from_bytes(b"iocount1", "little")
_HEADER = [(name, "<u8") for name in ("magic", "blocks", "task", "thread", "interrupt", "softirq")]
_BLOCK = [("start", "<u8"), ("bytes", "<u4"), ("instructions", "<u4"), ("executed", "<u8")]
UNKNOWN = "[unknown]"


@dataclass(frozen=True)
class Window:
    """The blocks that were executed between a begin and an end, and the kernel's instructions by context."""

    blocks: NDArray[np.void]
    task: int
    thread: int
    interrupt: int
    softirq: int


def windows(content: bytes) -> list[Window]:
    """One per phase, in their order. ValueError if the file is not whole."""
    import numpy as np

    head, block = np.dtype(_HEADER), np.dtype(_BLOCK)
    found, at = [], 0
    while at < len(content):
        if len(content) - at < head.itemsize:
            raise ValueError("the counts end in the middle")
        header = np.frombuffer(content, head, 1, at)[0]
        at += head.itemsize
        count = int(header["blocks"])
        if int(header["magic"]) != MAGIC or len(content) - at < count * block.itemsize:
            raise ValueError("the counts are damaged")
        blocks = np.frombuffer(content, block, count, at)
        at += count * block.itemsize
        found.append(Window(blocks, *(int(header[name]) for name in ("task", "thread", "interrupt", "softirq"))))
    return found


def observation(window: Window, symbols: Symbols, operations: int, *, contexts: bool) -> InstructionsObservation:
    """Each block's instructions are its symbol's; where several functions have one name in one module, together.

    Args:
        operations: that the phase completed.
        contexts: whether the counter told them apart.
    """
    import numpy as np

    blocks = window.blocks
    instructions = blocks["instructions"].astype(np.uint64) * blocks["executed"]
    in_kernel = blocks["start"] >= USER_MAX
    user = int(instructions[~in_kernel].sum())
    kernel = blocks[in_kernel]
    at = np.searchsorted(symbols.starts, kernel["start"], side="right").astype(np.int64) - 1
    begins = (at >= 0) & (symbols.starts[np.maximum(at, 0)] == kernel["start"])
    sums: dict[tuple[str, str], list[int]] = {}
    of_kernel = instructions[in_kernel].tolist()
    calls = np.where(begins, kernel["executed"], 0).tolist()
    for index, amount, called in zip(at.tolist(), of_kernel, calls, strict=True):
        key = (symbols.names[index], symbols.modules[index]) if index >= 0 else (UNKNOWN, "")
        entry = sums.setdefault(key, [0, 0])
        entry[0] += amount
        entry[1] += called
    dearest = sorted(sums, key=lambda key: (-sums[key][0], key))
    told = {"task": window.task - user, "kernel thread": window.thread}
    told |= {"interrupt": window.interrupt, "softirq": window.softirq}
    return {
        "operations": operations,
        "total": int(instructions.sum()),
        "user": user,
        "contexts": told if contexts else {},
        "symbols": [name for name, _ in dearest],
        "modules": [module for _, module in dearest],
        "instructions": [sums[key][0] for key in dearest],
        "calls": [sums[key][1] for key in dearest],
    }
