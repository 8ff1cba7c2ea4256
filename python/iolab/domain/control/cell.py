"""A cell of the A x Q x C matrix: on which CPUs the application runs, requests are queued, and requests complete; and
what of it a kernel of today can do.

It has two means. A request is queued by whoever submits it: the application, or io_uring's kernel thread pinned
elsewhere (IORING_SETUP_SQPOLL). It completes where its interrupt comes (rq_affinity 0) or on the CPU that queued it
(rq_affinity 2), and nowhere else (block/blk-mq.c, blk_mq_complete_request_remote).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iolab.base import cpu_list
from iolab.domain.control.control import UnsupportedSetting

Part = int | str
"""A CPU's number, or one of `WORDS`."""

LETTERS = {"A": "application", "I": "interrupt", "X": "other"}
WORDS = tuple(LETTERS.values())
PARTS = {"application": "A", "queue": "Q", "completion": "C"}
"""The words of a cell, and their letter in tables."""


@dataclass(frozen=True)
class Cell:
    """The CPUs on which the application runs, requests are queued, completions are handled and interrupts come, by
    number."""

    application: int
    queue: int
    completion: int
    interrupt: int

    @property
    def rq_affinity(self) -> int:
        """If both would do, the interrupt's CPU is taken, because it needs no message between CPUs."""
        return 0 if self.completion == self.interrupt else 2


def letter(part: Part) -> str:
    """A part's value as tables show it: `X` for other, `3` for CPU 3."""
    return next((letter for letter, word in LETTERS.items() if word == part), str(part))


def resolve(asked: Mapping[str, Part], allowed: Sequence[int], interrupt: int) -> Cell:
    """The CPUs of a cell: `other` is the first allowed CPU that none of the parts before it and no interrupt is on.

    Raises:
        UnsupportedSetting: there are too few CPUs, or the kernel completes nothing there.
    """
    taken = {interrupt}
    cpus: dict[str, int] = {"interrupt": interrupt}
    for name in PARTS:
        part = asked[name]
        cpus[name] = _other(name, allowed, taken) if part == "other" else part if isinstance(part, int) else cpus[part]
        if cpus[name] not in allowed:
            raise UnsupportedSetting(f"{name}: CPU {cpus[name]} is not available here, only {cpu_list.text(allowed)}")
        taken.add(cpus[name])
    cell = Cell(**cpus)
    if cell.completion not in (cell.queue, cell.interrupt):
        raise UnsupportedSetting(
            f"completion on CPU {cell.completion}: this kernel completes a request where its interrupt comes "
            f"(CPU {interrupt}) or where it was queued (CPU {cell.queue})"
        )
    return cell


def _other(name: str, allowed: Sequence[int], taken: set[int]) -> int:
    free = [cpu for cpu in allowed if cpu not in taken]
    if not free:
        raise UnsupportedSetting(
            f"{name} on another CPU: all there are ({cpu_list.text(allowed)}) have the application, the queueing or "
            "the interrupt"
        )
    return free[0]
