"""What a count of a path cannot see, stated for the figures that are likely to depend on it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iolab.domain.phase_record import InstructionsObservation
from iolab.domain.probe.instructions import copied
from iolab.domain.symbols import Difference

ALWAYS = (
    "A count is no time: the emulated processor has no caches, no memory latency, no branch predictor and no "
    "contention. Only hardware shows whether an operation is faster."
)
HOST_DRIVES = ("virtio-blk", "nvme")
STRING_BYTES_FROM = 64.0
COPY_SHARE_FROM = 0.02
_SHARED = re.compile(
    r"spin_(un)?lock|mutex|rwsem|down_(read|write)|up_(read|write)|percpu_(ref|counter)|atomic|refcount|lockref|sbitmap"
    r"|qspin|wake|rcu"
)


@dataclass(frozen=True)
class Circumstances:
    """What a path's experiment asks for, as far as counts depend on it."""

    drive: str
    threads: int = 1
    polls: bool = False


def unseen(
    how: Circumstances,
    base: Sequence[InstructionsObservation],
    tip: Sequence[InstructionsObservation],
    changed: Sequence[Difference],
) -> list[str]:
    """A line for each thing that the path's figures are likely to depend on and no count shows.

    Args:
        changed: the functions that differ.
    """
    return list(_lines(how, base, tip, changed))


def _lines(
    how: Circumstances,
    base: Sequence[InstructionsObservation],
    tip: Sequence[InstructionsObservation],
    changed: Sequence[Difference],
) -> Iterator[str]:
    if how.drive in HOST_DRIVES:
        yield (
            "the emulator completes the requests 10 us after the first, by the machine's own clock: how many an "
            "interrupt serves, and whether its task sleeps, depends on this delay"
        )
    if how.threads > 1:
        yield "the threads take turns on one virtual CPU: nothing that they share is ever contended"
    if how.polls:
        yield "the drive is done when it is first polled: the turns of a loop that waits for a drive are missing"
    sides = [[copied(one) for one in side] for side in (base, tip) if side]
    in_strings = max((amount for side in sides for amount, _ in side), default=0.0)
    in_copies = max((share for side in sides for _, share in side), default=0.0)
    if in_strings >= STRING_BYTES_FROM or in_copies >= COPY_SHARE_FROM:
        yield (
            "bytes are copied or cleared: by string instructions, each counted once however long, or by loops, as the "
            "kernel chooses by the processor's flags; their time depends on caches"
        )
    if any(_SHARED.search(one.symbol) for one in changed):
        yield (
            "functions changed that lock, wake or count what CPUs share: cache lines that move, and waiting, cost time "
            "and no instructions"
        )
