"""The counter itself (machines/guest/counter): it counts programs of known length, booted without a kernel."""

import subprocess
from pathlib import Path

import pytest
from iolab.base.errors import IolabError
from iolab.machines.guest import counter_output, programs, qemu
from iolab.machines.system import command

BOOTED = """
.set MAGIC, 0x1BADB002
.section .text
.long MAGIC, 0, -MAGIC
.globl _start
_start:
    cld
{before}
    .byte 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x01, 0x4c, 0x4f, 0x49
{program}
    .byte 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x02, 0x4c, 0x4f, 0x49
    mov $0x10, %eax
    out %eax, $0xf4
    hlt
"""
"""A multiboot kernel: marks, a program between them, and the end of the machine."""
WAIT = """
    rdtsc
    mov %eax, %ebx
    xor %ecx, %ecx
wait: inc %ecx
    pause
    rdtsc
    sub %ebx, %eax
    cmp ${ns}, %eax
    jb wait
"""
"""Spins for a time, as a kernel does that measures a clock; ECX has the number of its turns then."""


def count(program: str, directory: Path, *options: str, before: str = "") -> counter_output.Window:
    """What was counted of the program, the mark of its end included."""
    try:
        emulator, counter = programs.qemu(), programs.counter()
    except IolabError as error:
        pytest.skip(str(error))
    if command.find("as") is None or command.find("ld") is None:
        pytest.skip("binutils is not installed")
    source, kernel, counts = directory / "a.s", directory / "kernel", directory / "counts"
    source.write_text(BOOTED.format(program=program, before=before))
    (directory / "functions").write_text("")
    subprocess.run(["as", "--32", "-o", directory / "a.o", source], check=True)
    subprocess.run(["ld", "-melf_i386", "-N", "-Ttext=0x100000", "-o", kernel, directory / "a.o"], check=True)
    plugin = ",".join([f"{counter},out={counts},functions={directory / 'functions'},cpus=1", *options])
    machine = [emulator, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-accel", "tcg"]
    machine += ["-m", "32M", "-icount", "shift=0,sleep=off"]
    ending = ["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]
    subprocess.run([*machine, "-kernel", kernel, *ending, "-plugin", plugin], timeout=60, check=False)
    (window,) = counter_output.windows(counts.read_bytes(), 1)
    return window


def total(window: counter_output.Window) -> int:
    return int(counter_output.instructions_of(window.blocks).sum())


@pytest.mark.parametrize("before_page_end", range(9))
def test_an_instruction_that_crosses_a_page_counts_once(tmp_path: Path, before_page_end: int) -> None:
    """A call of five bytes, the last of several instructions, from wholly before a page's end to wholly behind it."""
    program = f"""
    mov $100, %ecx
    jmp again
    .org 0x1000 - {before_page_end} - 2
again:
    nop
    nop
    call callee
    loop again
    jmp done
callee: ret
done:
"""
    window = count(program, tmp_path)
    instructions = total(window)
    # Of each turn nop, nop, call, ret, loop; then jmp, and the block with the mark of the end, of three.
    assert instructions == 100 * 5 + 1 + 3
    assert window.task + window.thread == instructions
    assert len(window.sizes) == window.blocks["instructions"].sum()


@pytest.mark.parametrize(
    ("instruction", "repetitions", "moved"),
    [
        ("rep movsb", 100, 100),
        ("rep movsl", 64, 256),
        ("rep movsw", 3, 6),
        ("rep stosl", 1000, 4000),
        ("rep stosb", 0, 0),
        ("rep lodsb", 7, 7),
        ("repe cmpsb", 5, 5),
    ],
)
@pytest.mark.parametrize("place", ["alone", "behind another"])
def test_a_string_instruction_counts_once_and_its_bytes_apart(
    tmp_path: Path, instruction: str, repetitions: int, moved: int, place: str
) -> None:
    jump = "jmp 1f\n1:" if place == "alone" else "nop"
    program = f"""
    mov $0x200000, %esi
    mov $0x200000, %edi
    mov $10, %edx
    jmp again
again:
    mov ${repetitions}, %ecx
    {jump}
    {instruction}
    dec %edx
    jnz again
    jmp done
done:
"""
    window = count(program, tmp_path)
    assert total(window) == 10 * 5 + 1 + 3
    assert window.task + window.thread == total(window)
    assert window.blocks["repetitions"].sum() == 10 * repetitions
    assert window.blocks["moved"].sum() == 10 * moved


@pytest.mark.parametrize(
    ("instruction", "is_locked"),
    [
        ("lock addl $1, (%esi)", True),
        ("lock incl (%esi)", True),
        ("lock cmpxchgl %eax, (%esi)", True),
        ("lock xaddl %eax, (%esi)", True),
        ("lock btsl $3, (%esi)", True),
        ("lock cmpxchg8b (%esi)", True),
        ("xchgl %eax, (%esi)", True),
        # As a kernel with one CPU has it: the prefix of the data segment in the place of the lock's.
        (".byte 0x3e, 0xff, 0x06", True),
        (".byte 0x3e, 0x0f, 0xb1, 0x06", True),
        ("addl $1, (%esi)", False),
        ("xchgl %eax, %ebx", False),
        (".byte 0x3e, 0x8b, 0x06", False),
        (".byte 0x3e, 0x0f, 0xba, 0x26, 0x03", False),
        ("cmpl $1, (%esi)", False),
        ("movl %eax, (%esi)", False),
    ],
)
def test_what_locks_memory_is_counted_apart(tmp_path: Path, instruction: str, is_locked: bool) -> None:
    program = f"""
    mov $0x200000, %esi
    mov $9, %edi
    jmp again
again:
    {instruction}
    dec %edi
    jnz again
    jmp done
done:
"""
    window = count(program, tmp_path)
    assert (window.locked * window.blocks["executed"].astype(int)).sum() == 9 * is_locked
    assert total(window) == 9 * 3 + 1 + 3


def test_a_qemu_that_does_not_let_drives_complete_at_a_fixed_time_is_told(tmp_path: Path) -> None:
    said = qemu.COMPLETES_AT_ANY_TIME.decode()
    source = Path(qemu.__file__).with_name("counter") / "counter.c"
    assert f'"{said}: ' in source.read_text()
    (tmp_path / qemu.ERRORS).write_text(f"qemu: a warning\n{said}: this QEMU lacks a function\n")
    assert qemu.completes_at_any_time(tmp_path)
    (tmp_path / qemu.ERRORS).write_text("qemu: a warning\n")
    assert not qemu.completes_at_any_time(tmp_path)


def test_a_program_without_a_drive_counts_the_same_if_drives_complete_at_a_fixed_time(tmp_path: Path) -> None:
    program = "    mov $100, %ecx\nagain: mov %ecx, 0x200000\n    loop again\n"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert total(count(program, tmp_path / "a")) == total(count(program, tmp_path / "b", "completion=own"))


def test_a_wait_of_the_boot_takes_few_instructions_and_one_of_the_load_takes_its_time(tmp_path: Path) -> None:
    (tmp_path / "boot").mkdir()
    (tmp_path / "load").mkdir()
    turns = "again: loop again\n"
    of_boot = total(count(turns, tmp_path / "boot", before=WAIT.format(ns=100_000_000)))
    assert 1_000 < of_boot < 11_000, "the clock leaps by 10 us with each turn"
    of_load = total(count(WAIT.format(ns=1_000_000), tmp_path / "load"))
    assert 990_000 < of_load < 1_010_000, "an instruction takes a nanosecond"
