"""Rates of the kind `tiobench` against tiotest 0.3 (the program that tiobench.pl calls): the same
four tests with the same sizes, 128 MiB in blocks of 4 KiB on ext4 on a loop device on tmpfs, from
the page cache, by 1 to 32 threads. On both sides, each call is timed, files grow as they are first
written, each write uses the same buffer, and a file's fsync and close count. The tool opens its
files within the time, iolab before it. Rates are bytes over the time from the common start to the
last thread's end.

Version 0.4 of the tool is not a valid peer: it gives its files their full size before it writes,
and counts a whole file's blocks in the random tests, whatever the number of calls.
"""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import classic
import loop_device
from alternate import alternate
from classic import Rates, Tool
from result import NotMeasured, Result

FILE_MIB = 128
RANDOM_OPS = 20_000
TESTS = {
    "Write": "sequential_write",
    "Random Write": "random_write",
    "Read": "sequential_read",
    "Random Read": "random_read",
}
LINE = re.compile(
    r"^\|\s*(Write|Random Write|Read|Random Read)\s+\d+ MBs \|\s*[\d.]+ s \|\s*([\d.]+) MB/s", re.MULTILINE
)


def measure(quick: bool) -> list[Result]:
    source = "tiobench 0.3.5 (github.com/mkuoppal/tiobench at commit 02985bd) and make tiotest"
    program = classic.tool("tiotest", "TIOTEST", source, version=("-h", r"tiotest v.*"))
    if " v0.3" not in program.version:
        raise NotMeasured(f"{program.version} counts blocks that it has not moved; get {source}")
    rounds = 1 if quick else 7
    return [result for threads in (1, 2, 8, 32) for result in measure_case(program, threads, rounds)]


def measure_case(program: Tool, threads: int, rounds: int) -> list[Result]:
    ops = RANDOM_OPS // threads
    options = {"file_size": f"{FILE_MIB}MiB", "threads": threads, "random_ops": ops}
    command = [
        program.path,
        "-t",
        str(threads),
        "-f",
        str(FILE_MIB // threads),
        "-r",
        str(ops),
        "-b",
        "4096",
        "-d",
        ".",
    ]
    with loop_device.empty("ext4", size_mib=FILE_MIB + 256) as root:
        arms: dict[str, Callable[[], Rates]] = {
            "iolab": partial(run_ours, options, root),
            "tiotest": partial(run_peer, command, root),
        }
        samples = alternate(arms, rounds)
    case = f"{threads} thread{'s' if threads > 1 else ''}"
    return classic.compared(case, "tiotest", samples, classic.command_lines("tiobench", options, program, command))


def run_ours(options: dict[str, object], root: Path) -> Rates:
    return Rates({test: classic.rate(record) for test, record in classic.run_phases("tiobench", options, root).items()})


def run_peer(command: list[str], root: Path) -> Rates:
    rates = {TESTS[test]: float(mb) * 2**20 for test, mb in LINE.findall(classic.output(command, root))}
    return Rates({test: rates[test] for test in TESTS.values()})
