"""Rates of the kind `iozone` against iozone 3: the same tests with the same sizes, 256 MiB on ext4
on a loop device on tmpfs, from the page cache. One thread uses records of 4 KiB and 64 KiB. With
four threads, both rates are the sum of the threads' own, and the first thread to finish does not
stop the others (`-x`). On both sides, files grow as they are first written, each write uses the
same buffer, and neither sync nor close counts. iolab times each call; the tool does not.
"""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import classic
import loop_device
from alternate import alternate
from classic import Rates, Tool
from result import Result

FILE_MIB = 256
TESTS = (
    "write",
    "rewrite",
    "read",
    "reread",
    "random_read",
    "random_write",
    "backward_read",
    "record_rewrite",
    "stride_read",
)
"""In the matrix's order."""
OF_SEVERAL_THREADS = {
    "initial writers": "write",
    "rewriters": "rewrite",
    "readers": "read",
    "re-readers": "reread",
    "random readers": "random_read",
    "random writers": "random_write",
    "reverse readers": "backward_read",
    "stride readers": "stride_read",
}
NUMBERS = re.compile(r"^\s*\d+\s+\d+(?:\s+\d+){9}\s*$", re.MULTILINE)
CHILDREN = re.compile(r"Children see throughput for\s+\d+ ([\w -]+?)\s*=\s*([\d.]+) kB/sec")


def measure(quick: bool) -> list[Result]:
    source = "iozone 3 (iozone.org; Debian's iozone3 in non-free)"
    program = classic.tool("iozone", "IOZONE", source, version=("-v", r"Version .*\d"))
    rounds = 1 if quick else 7
    return [
        result
        for threads, record_kib in ((1, 4), (1, 64), (4, 4))
        for result in measure_case(program, threads, record_kib, rounds)
    ]


def measure_case(program: Tool, threads: int, record_kib: int, rounds: int) -> list[Result]:
    tests = list(TESTS) if threads == 1 else [test for test in TESTS if test in OF_SEVERAL_THREADS.values()]
    file_mib = FILE_MIB // threads
    options = {
        "file_size": f"{file_mib}MiB",
        "record_size": f"{record_kib}KiB",
        "threads": threads,
        "tests": tests,
        "stop_with_first": False,
    }
    command = [program.path, *(f"-i{number}" for number in range(6)), "-s", f"{file_mib}m", "-r", f"{record_kib}k"]
    if threads > 1:
        command += ["-x", "-T", "-t", str(threads), "-F", *(f"f{number}" for number in range(threads))]
    with loop_device.empty("ext4", size_mib=FILE_MIB + 256) as root:
        arms: dict[str, Callable[[], Rates]] = {
            "iolab": partial(run_ours, options, root),
            "iozone": partial(run_peer, command, root),
        }
        samples = alternate(arms, rounds)
    case = f"{threads} thread{'s' if threads > 1 else ''}, {record_kib} KiB"
    told = {key: value for key, value in options.items() if key != "tests"}
    return classic.compared(case, "iozone", samples, classic.command_lines("iozone", told, program, command))


def run_ours(options: dict[str, object], root: Path) -> Rates:
    return Rates(
        {test: classic.rate_sum(record) for test, record in classic.run_phases("iozone", options, root).items()}
    )


def run_peer(command: list[str], root: Path) -> Rates:
    text = classic.output(command, root)
    if found := NUMBERS.search(text):
        return Rates({test: float(kib) * 1024 for test, kib in zip(TESTS, found[0].split()[2:], strict=True)})
    rates = {OF_SEVERAL_THREADS[who]: float(kib) * 1024 for who, kib in CHILDREN.findall(text)}
    return Rates({test: rates[test] for test in TESTS if test in rates})
