"""docs/reference/benchmarks.md: the results as a page, with the machine, the versions and the commands."""

import importlib
import inspect
import os
import platform
import re
import subprocess
import textwrap
from collections.abc import Sequence
from pathlib import Path

from result import Result

COLUMNS = 100
"""Widest line of prose on the page."""
PREFACE = """# Benchmarks

iolab against comparable tools, and against its own limits. `make bench` (`benches/run.py`) measures
and writes this page; `make bench ONLY=name` measures one bench again and keeps the others. The same
figures are in [benchmarks.json](benchmarks.json).

*ours* is iolab, *peer* the other tool. The two alternate, so that a drift of the machine affects
both alike. The figures are medians over the rounds. *ratio* is the median of the ratios within each
round, *range* the range of those ratios. Below each table stands why a target is missed, with the
date on which the cause was found.
"""


def render(results: Sequence[Result], benches: Sequence[str], known_machine: str | None = None) -> str:
    """`known_machine`: the line of the page before, if nothing was measured since."""
    parts = [PREFACE, known_machine or machine()]
    for name in benches:
        own = [one for one in results if one.bench == name]
        if own:
            about = prose(inspect.getdoc(importlib.import_module(name)) or "")
            parts.append(f"## {name}\n\n{about}\n\n{table(own)}\n{misses(own)}{commands(own)}")
    return "\n".join(parts)


def prose(text: str) -> str:
    """Its paragraphs in the page's width; lists and indented lines stay as they are."""
    paragraphs = text.split("\n\n")
    plain = [not re.search(r"^([-*+] |\d+\. |[| ])", one, re.MULTILINE) for one in paragraphs]
    filled = [textwrap.fill(one, COLUMNS, break_long_words=False, break_on_hyphens=False) for one in paragraphs]
    return "\n\n".join(new if wraps else old for old, new, wraps in zip(paragraphs, filled, plain, strict=True))


def table(results: Sequence[Result]) -> str:
    lines = [
        "| what | unit | ours | peer | peer's name | ratio | range | target | met |",
        "|---|---|--:|--:|---|--:|---|---|---|",
    ]
    lines += [f"| {' | '.join(cells(one))} |" for one in results]
    return "\n".join(lines) + "\n"


def cells(one: Result) -> list[str]:
    return [
        one.name,
        one.unit,
        number(one.ours),
        number(one.peer),
        one.peer_name or "-",
        number(one.ratio),
        f"{number(one.ratio_min)} to {number(one.ratio_max)}" if one.ratio_min is not None else "-",
        one.target or "-",
        {True: "yes", False: "**no**", None: "-"}[one.met],
    ]


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def misses(results: Sequence[Result]) -> str:
    """A paragraph for each cause, with the rows that miss their targets by it."""
    rows_of: dict[tuple[str, str], list[str]] = {}
    for one in results:
        if one.met is False:
            rows_of.setdefault((one.cause or "no cause is known", one.date), []).append(f"*{one.name}*")
    texts = [
        f"Missed{f', cause found on {date}' if date else ''}: {'; '.join(rows)}. {cause}"
        for (cause, date), rows in rows_of.items()
    ]
    return "".join(f"{prose(text)}\n\n" for text in texts)


def commands(results: Sequence[Result]) -> str:
    distinct = list(dict.fromkeys(line for one in results for line in one.commands))
    if not distinct:
        return ""
    return "<details><summary>Commands</summary>\n\n```\n" + "\n".join(distinct) + "\n```\n\n</details>\n"


def machine() -> str:
    memory_kib = next(int(line.split()[1]) for line in lines("/proc/meminfo") if line.startswith("MemTotal"))
    models = [line.partition(": ")[2] for line in lines("/proc/cpuinfo") if line.startswith("model name")]
    facts = {
        "CPU": f"{models[0] if models else platform.machine()}, {os.cpu_count()} CPUs",
        "memory": f"{memory_kib / (1 << 20):.0f} GiB",
        "kernel": platform.release(),
        "Python": platform.python_version(),
        "Rust": version("rustc", "--version"),
        "fio": version("fio", "--version"),
        "virtual machine": version("systemd-detect-virt"),
    }
    text = "Machine of the last run: " + "; ".join(f"{name} {value}" for name, value in facts.items()) + "."
    return textwrap.fill(text, COLUMNS, break_on_hyphens=False) + "\n"


def machine_in(page: str) -> str | None:
    """The line about the machine in a page that is there."""
    found = re.search(r"^Machine of the last run: .*?\n(?=\n)", page, re.MULTILINE | re.DOTALL)
    return found[0] if found else None


def version(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    except FileNotFoundError:
        return "not installed"


def lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
