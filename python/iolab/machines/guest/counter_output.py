"""What the counter wrote (counter/counter.c), as the observation of the probe `instructions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iolab.base.bounded_file import read_bounded
from iolab.base.errors import InputError
from iolab.domain.chains import OUTSIDE
from iolab.domain.phase_record import Chains, InstructionsObservation, SystemCalls
from iolab.machines.guest.debug_files import Source
from iolab.machines.guest.source_lines import lines_of
from iolab.machines.guest.symbols import USER_MAX, Symbols

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

MAGIC = int.from_bytes(b"iocount6", "little")
_LOCKED = 0x80
_CONTEXTS = ("task", "thread", "interrupt", "softirq")
_MEMORY = ("reads", "writes", "misses")
_HEADER = [(name, "<u8") for name in ("magic", "blocks", *_CONTEXTS, *_MEMORY, "chains", "calls")]
_BLOCK = [("start", "<u8"), ("bytes", "<u4"), ("instructions", "<u4"), ("executed", "<u8")]
_BLOCK += [("repetitions", "<u8"), ("moved", "<u8")]
_CHAIN = [("function", "<u8"), ("instructions", "<u8"), ("parent", "<u4"), ("unused", "<u4")]
_CALL = [("function", "<u8"), ("instructions", "<u8"), ("executed", "<u8")]
_CALL_PREFIX = "__x64_sys_"
UNKNOWN = "[unknown]"
CONTENT_MAX_BYTES = 2 << 30
CHAINS_FROM = 1e-5
"""A chain with a smaller share of the instructions is its caller's."""


@dataclass(frozen=True)
class Window:
    """The blocks that were executed between a begin and an end, and the kernel's instructions by context."""

    blocks: NDArray[np.void]
    sizes: NDArray[np.uint8]
    """Bytes of each instruction, block by block."""
    locked: NDArray[np.int64]
    """How many instructions of each block are locked."""
    chains: NDArray[np.void]
    """The chains of calls: where the last function begins, the instructions that it executed itself, its caller's
    chain."""
    calls: NDArray[np.void]
    """System calls: the function that does each, its instructions, how often it was made."""
    task: int
    thread: int
    interrupt: int
    softirq: int
    reads: int
    writes: int
    misses: int


def windows(content: bytes, phases: int) -> list[Window]:
    """One per phase, in their order. ValueError if the file is not whole, or of other phases: a guest may mark them as
    often as it likes."""
    import numpy as np

    head, block, chain, call = np.dtype(_HEADER), np.dtype(_BLOCK), np.dtype(_CHAIN), np.dtype(_CALL)
    found: list[Window] = []
    at = 0
    while at < len(content):
        if len(found) == phases:
            raise ValueError(f"more than {phases} phases were marked")
        if len(content) - at < head.itemsize:
            raise ValueError("the counts end in the middle")
        header = np.frombuffer(content, head, 1, at)[0]
        at += head.itemsize
        count, of_chains, of_calls = (int(header[name]) for name in ("blocks", "chains", "calls"))
        due = count * block.itemsize + of_chains * chain.itemsize + of_calls * call.itemsize
        if int(header["magic"]) != MAGIC or len(content) - at < due:
            raise ValueError("the counts are damaged")
        blocks = np.frombuffer(content, block, count, at)
        chains = np.frombuffer(content, chain, of_chains, at + count * block.itemsize)
        calls = np.frombuffer(content, call, of_calls, at + count * block.itemsize + of_chains * chain.itemsize)
        at += due
        of_sizes = int(blocks["instructions"].sum())
        if len(content) - at < of_sizes or (chains["parent"] > np.maximum(np.arange(of_chains), 1) - 1).any():
            raise ValueError("the counts are damaged")
        marked = np.frombuffer(content, np.uint8, of_sizes, at)
        at += of_sizes
        sizes = (marked & (_LOCKED - 1)).astype(np.uint8)
        amounts = (int(header[name]) for name in (*_CONTEXTS, *_MEMORY))
        found.append(Window(blocks, sizes, _locked(blocks, marked), chains, calls, *amounts))
    if len(found) < phases:
        raise ValueError(f"{len(found)} phases of {phases} were marked")
    return found


def _locked(blocks: NDArray[np.void], marked: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Of each block, how many of its instructions carry the mark."""
    import numpy as np

    before = np.concatenate([[0], np.cumsum(marked & _LOCKED != 0, dtype=np.int64)])
    ends = np.cumsum(blocks["instructions"], dtype=np.int64)
    found: NDArray[np.int64] = before[ends] - before[ends - blocks["instructions"].astype(np.int64)]
    return found


def content_of(counts: Path) -> bytes:
    """What the counter wrote. ValueError if it is nothing, or too much."""
    try:
        return read_bounded(counts, CONTENT_MAX_BYTES, "what was counted")
    except InputError as error:
        raise ValueError(error.what) from None


def instructions_of(blocks: NDArray[np.void]) -> NDArray[np.uint64]:
    """The instructions of each block: a string instruction is one, however often it repeats."""
    import numpy as np

    executed = blocks["instructions"].astype(np.uint64) * blocks["executed"]
    found: NDArray[np.uint64] = executed - np.minimum(blocks["repetitions"], executed)
    return found


def observation(
    window: Window,
    symbols: Symbols,
    operations: int,
    *,
    memory: bool = False,
    cache: bool = False,
    one_cpu: bool = True,
    source: Source | None = None,
) -> InstructionsObservation:
    """Each block's instructions are its symbol's; if several functions have one name in one module, together.

    Args:
        operations: that the phase completed. memory: whether accesses were counted. cache: whether misses were.
        one_cpu: whether string instructions were counted apart from their repetitions. source: if functions that were
        inlined count as themselves, and lines are named.

    Raises:
        MachineError: the source cannot be read.
    """
    import numpy as np

    blocks = window.blocks
    instructions = instructions_of(blocks)
    in_kernel = blocks["start"] >= USER_MAX
    user = int(instructions[~in_kernel].sum())
    kernel = blocks[in_kernel]
    at = np.searchsorted(symbols.starts, kernel["start"], side="right").astype(np.int64) - 1
    begins = (at >= 0) & (symbols.starts[np.maximum(at, 0)] == kernel["start"])
    sums: dict[tuple[str, str], list[int]] = {}
    of_kernel = instructions[in_kernel].tolist()
    calls = np.where(begins, kernel["executed"], 0).tolist()
    locked = (window.locked[in_kernel] * kernel["executed"].astype(np.int64)).tolist()
    of_blocks = zip(at.tolist(), of_kernel, calls, kernel["moved"].tolist(), locked, strict=True)
    for index, amount, called, moved, of_locked in of_blocks:
        key = (symbols.names[index], symbols.modules[index]) if index >= 0 else (UNKNOWN, "")
        entry = sums.setdefault(key, [0, 0, 0, 0])
        entry[0] += amount
        entry[1] += called
        entry[2] += moved
        entry[3] += of_locked
    lines = None if source is None else lines_of(window.blocks, window.sizes, symbols, source, sums)
    dearest = sorted(sums, key=lambda key: (-sums[key][0], key))
    fields = {"task": window.task - user, "kernel thread": window.thread}
    fields |= {"interrupt": window.interrupt, "softirq": window.softirq}
    found: InstructionsObservation = {
        "operations": operations,
        "total": int(instructions.sum()),
        "user": user,
        "contexts": fields,
        "symbols": [name for name, _ in dearest],
        "modules": [module for _, module in dearest],
        "instructions": [sums[key][0] for key in dearest],
        "calls": [sums[key][1] for key in dearest],
        "locked": [sums[key][3] for key in dearest],
    }
    if one_cpu:
        found["string_bytes"] = [sums[key][2] for key in dearest]
    if len(window.calls):
        found["system_calls"] = _system_calls(window, symbols)
    if lines is not None:
        found["lines"] = lines
    if memory:
        found["memory"] = {"read": window.reads, "write": window.writes}
    if cache:
        found["cache_misses"] = window.misses
    if len(window.chains):
        found["chains"] = _chains(window, symbols, int(instructions.sum()))
    return found


def _system_calls(window: Window, symbols: Symbols) -> SystemCalls:
    """The most expensive first."""
    import numpy as np

    at = np.searchsorted(symbols.starts, window.calls["function"], side="right").astype(np.int64) - 1
    names = [symbols.names[index].removeprefix(_CALL_PREFIX) if index >= 0 else UNKNOWN for index in at.tolist()]
    counts = zip(names, window.calls["instructions"].tolist(), window.calls["executed"].tolist(), strict=True)
    dearest = sorted(counts, key=lambda one: (-one[1], one[0]))
    return {
        "names": [name for name, *_ in dearest],
        "instructions": [instructions for _, instructions, _ in dearest],
        "calls": [calls for *_, calls in dearest],
    }


def _chains(window: Window, symbols: Symbols, total: int) -> Chains:
    """The more expensive chains; each of the others is its caller's."""
    import numpy as np

    parents = window.chains["parent"].tolist()
    own = window.chains["instructions"].tolist()
    at = np.searchsorted(symbols.starts, window.chains["function"], side="right").astype(np.int64) - 1
    names = [symbols.names[index] if index >= 0 else UNKNOWN for index in at.tolist()]
    names[0] = OUTSIDE
    whole = list(own)
    for index in range(len(own) - 1, 0, -1):
        whole[parents[index]] += whole[index]
    kept: dict[int, int] = {0: 0}
    found: Chains = {"functions": [OUTSIDE], "callers": [0], "instructions": [own[0]]}
    for index in range(1, len(own)):
        parent = kept[parents[index]]
        if whole[index] < CHAINS_FROM * total:
            kept[index] = parent
            found["instructions"][parent] += own[index]
            continue
        kept[index] = len(found["functions"])
        found["functions"].append(names[index])
        found["callers"].append(parent)
        found["instructions"].append(own[index])
    return found
