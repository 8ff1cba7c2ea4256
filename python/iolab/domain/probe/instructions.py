"""Instructions that a guest machine executed for its load, by symbol and by context."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from iolab.base.option import Bytes, Options, option
from iolab.domain.phase_record import InstructionsObservation
from iolab.domain.probe.probe import Probe, ProbeReader

if TYPE_CHECKING:
    from iolab.domain.observation import Observation

NAME = "instructions"
ONLY_ON_GUESTS = 'only a guest machine reports it, machine = "guest:KERNEL"'
READER = ProbeReader[InstructionsObservation](NAME, lambda probes: probes.get("instructions"))
_NO_OPERATION = "no operation completed"
_NOT_COUNTED = f"not asked for by the probe's options, or {_NO_OPERATION}"


class InstructionsOptions(Options):
    """The options of the probe `instructions`; each costs time of the trial."""

    chains: bool = option(False, "Follow calls and returns, for call chains and flame graphs.")
    memory: bool = option(False, "Count memory accesses.")
    inlined: bool = option(
        False,
        "Count functions that the compiler inlined as themselves, and report lines. Needs the kernel's file with debug "
        "information, [guest] debug; for modules, a directory with their files.",
    )
    cache: Bytes | None = option(
        None,
        "Count misses of a simple model of a cache of this size: lines of 64 bytes, 8 ways, the least recently used "
        "is evicted; one for each virtual CPU, without coherence or prefetching.",
        default_is="no cache",
        unit="bytes",
        ge=4096,
        le=2**26,
    )


def per_operation(found: InstructionsObservation, amount: float) -> float | None:
    """The amount over the operations of the phase, warm-up included; of files if the phase makes files, of a process's
    passes if it sorts."""
    return amount / found["operations"] if found["operations"] else None


def calls_of(found: InstructionsObservation, *symbols: str) -> int:
    """How often the functions began."""
    calls = dict(zip(found["symbols"], found["calls"], strict=True))
    return sum(calls.get(symbol, 0) for symbol in symbols)


COPIES = frozenset(
    {
        *("memcpy", "memcpy_orig", "__memcpy", "memmove", "__memmove", "memset", "memset_orig", "__memset"),
        *("clear_page_orig", "clear_page_rep", "clear_page_erms", "copy_page", "copy_page_regs", "copy_mc_fragile"),
        *("copy_user_generic_unrolled", "copy_user_generic_string", "copy_user_enhanced_fast_string"),
        *("rep_movs_alternative", "rep_stos_alternative", "clear_user_original", "clear_user_rep_good"),
    }
)
"""Copying functions. The kernel has several, and chooses one by the processor's flags."""


def copied(found: InstructionsObservation) -> tuple[float, float]:
    """The bytes of string instructions per operation, each of which is one instruction whatever it copies, and the
    share of the kernel's instructions that copying functions took."""
    in_strings = sum(found.get("string_bytes", ()))
    in_copies = sum(
        amount
        for symbol, amount in zip(found["symbols"], found["instructions"], strict=True)
        if symbol.partition(".")[0] in COPIES
    )
    of_kernel = found["total"] - found["user"]
    return in_strings / max(found["operations"], 1), in_copies / of_kernel if of_kernel else 0.0


SWITCH = ("__switch_to_asm",)
"""The function that switches between tasks."""
MESSAGES = (
    "sysvec_call_function_single",
    "sysvec_call_function",
    "sysvec_reschedule_ipi",
)
"""The handlers of what CPUs send to each other."""
Of = Callable[[InstructionsObservation], float | None]


def _per_operation(of: Of) -> Callable[[Observation, InstructionsObservation], float | None]:
    def read(_: Observation, found: InstructionsObservation) -> float | None:
        amount = of(found)
        return None if amount is None else per_operation(found, amount)

    return read


def _context(name: str) -> Of:
    return lambda found: found["contexts"].get(name)


def _memory(kind: str) -> Of:
    return lambda found: found["memory"][kind] if "memory" in found else None


_METRICS: tuple[tuple[str, str, str, Of], ...] = (
    ("instructions_per_op", "All instructions, per operation.", _NO_OPERATION, lambda f: f["total"]),
    ("user_instructions_per_op", "Instructions in user mode, per operation.", _NO_OPERATION, lambda f: f["user"]),
    (
        "kernel_instructions_per_op",
        "Instructions of the kernel, per operation.",
        _NO_OPERATION,
        lambda f: f["total"] - f["user"],
    ),
    (
        "interrupt_instructions_per_op",
        "The kernel's instructions in interrupt handlers, without soft interrupts.",
        _NO_OPERATION,
        _context("interrupt"),
    ),
    (
        "softirq_instructions_per_op",
        "The kernel's instructions in soft interrupts.",
        _NO_OPERATION,
        _context("softirq"),
    ),
    (
        "kthread_instructions_per_op",
        "The kernel's instructions in its own threads, the idle task among them.",
        _NO_OPERATION,
        _context("kernel thread"),
    ),
    (
        "switches_per_op",
        "Switches between tasks, of all tasks, per operation.",
        _NO_OPERATION,
        lambda f: calls_of(f, *SWITCH),
    ),
    (
        "cpu_messages_per_op",
        "Interrupts that one CPU sent to another, to call a function or to schedule, per operation.",
        _NO_OPERATION,
        lambda f: calls_of(f, *MESSAGES),
    ),
    (
        "string_bytes_per_op",
        "Bytes that repeated string instructions of the kernel moved, filled or compared, per operation: each is one "
        "instruction, however long.",
        f"several virtual CPUs, on which each repetition is an instruction, or {_NO_OPERATION}",
        lambda found: sum(found["string_bytes"]) if "string_bytes" in found else None,
    ),
    ("memory_reads_per_op", "Reads of memory, of all modes, per operation.", _NOT_COUNTED, _memory("read")),
    ("memory_writes_per_op", "Writes of memory, of all modes, per operation.", _NOT_COUNTED, _memory("write")),
    (
        "modelled_cache_misses_per_op",
        "Misses in the model of a cache that the option cache describes, per operation.",
        _NOT_COUNTED,
        lambda found: found.get("cache_misses"),
    ),
)

_SYSTEM_CALLS: dict[str, tuple[str, ...]] = {
    "read": ("read", "pread64", "readv", "preadv", "preadv2"),
    "write": ("write", "pwrite64", "writev", "pwritev", "pwritev2"),
    "sync": ("fsync", "fdatasync", "sync_file_range", "syncfs", "sync", "msync"),
}
"""By the kind of a load's operation."""


def _per_call(kind: str) -> Callable[[Observation, InstructionsObservation], float | None]:
    def read(_: Observation, found: InstructionsObservation) -> float | None:
        system_calls = found.get("system_calls")
        if system_calls is None:
            return None
        made = [at for at, name in enumerate(system_calls["names"]) if name in _SYSTEM_CALLS[kind]]
        calls = sum(system_calls["calls"][at] for at in made)
        return sum(system_calls["instructions"][at] for at in made) / calls if calls else None

    return read


PROBE = Probe(
    NAME,
    "Instructions of a guest machine, by symbol and by context. On by default there; on no other machine.",
    InstructionsOptions,
    ("guest machine",),
    tuple(
        READER.metric_per_io(name, "count", "cost", help, absent, _per_operation(of))
        for name, help, absent, of in _METRICS
    )
    + tuple(
        READER.metric_per_io(
            f"{kind}_call_instructions",
            "count",
            "cost",
            f"The kernel's instructions of a system call that {what}, from entry to return, without interrupts.",
            f"no system call {what}",
            _per_call(kind),
        )
        for kind, what in (("read", "reads"), ("write", "writes"), ("sync", "syncs"))
    ),
)
