"""Writes the table of fio's own example jobs into docs/reference/workloads/fio.md: what runs on the engine, what not,
and why.

Needs the examples (Debian: fio-examples). `python tools/fio_examples.py [--check]`
"""

import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from iolab.base.plain_text import markdown_table
from iolab.domain.workload.fio_file import job_file
from iolab.domain.workload.fio_file.ini import JobFileProblems
from iolab.domain.workload.fio_file.job_file import Runner
from iolab.domain.workload.fio_file.translate import plan

EXAMPLES = Path("/usr/share/doc/fio/examples")
PAGE = Path(__file__).parents[1] / "docs/reference/workloads/fio.md"
TABLE = re.compile(r"(?<=<!-- fio's examples -->\n\n).*?(?=\n<!-- end of fio's examples -->)", re.DOTALL)
SIZE_WHERE_NONE_IS_GIVEN = 2**30
REASONS_SHOWN = 2


class AnyVariable(dict[str, str]):
    """Variables that the examples want set."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "randread" if name.endswith("_RW") else "4k"


@dataclass(frozen=True)
class Example:
    name: str
    parses: bool
    """Whether it is read, and has options of fio's only."""
    on_engine: list[str]
    """Why iolab's engine does not run it; empty when it does."""
    on_fio: list[str]
    """Why iolab does not let fio run it."""


def survey() -> list[Example]:
    return [
        Example(path.name, job_file.is_job_file(path.read_text()), _problems(path, "iolab"), _problems(path, "fio"))
        for path in sorted(EXAMPLES.glob("*.fio"))
    ]


def _problems(path: Path, runner: Runner) -> list[str]:
    problems = JobFileProblems("")
    environment: Mapping[str, str] = AnyVariable()
    jobs = job_file.read(path.read_text(), problems, runner=runner, environment=environment)
    if not problems.lines():
        plan(jobs, default_size=SIZE_WHERE_NONE_IS_GIVEN, problems=problems, runner=runner)
    return [line.partition(": ")[2] for line in problems.lines()]


def text(examples: list[Example]) -> str:
    """A sentence of counts, and a row for each that does not run on the engine."""
    runs = [example.name for example in examples if not example.on_engine]
    only_fio = [example for example in examples if example.on_engine and not example.on_fio]
    neither = [example for example in examples if example.on_engine and example.on_fio]
    counts = _filled(
        f"{sum(example.parses for example in examples)} of the {len(examples)} examples of fio 3.33 parse, "
        f"{len(runs)} run on iolab's engine, {len(only_fio)} more with `--engine fio`, and {len(neither)} with "
        "neither."
    )
    listed = _filled("On the engine: " + ", ".join(f"`{name.removesuffix('.fio')}`" for name in runs) + ".")
    rows = [
        (f"`{example.name.removesuffix('.fio')}`", "yes" if not example.on_fio else "no", ", ".join(_why(example)))
        for example in (*only_fio, *neither)
    ]
    return counts + listed + markdown_table(("not on the engine", "with fio", "because of"), rows)


def _filled(paragraph: str) -> str:
    return textwrap.fill(paragraph, 100, break_long_words=False, break_on_hyphens=False) + "\n\n"


def _why(example: Example) -> Iterator[str]:
    """The options, or the engine, that stand in the way of the engine; of those that fio may not run, in fio's way."""
    lines = example.on_fio or example.on_engine
    named = dict.fromkeys(_blamed(line) for line in lines)
    yield from list(named)[:REASONS_SHOWN]
    if len(named) > REASONS_SHOWN:
        yield f"and {len(named) - REASONS_SHOWN} more"


def _blamed(line: str) -> str:
    option, _, rest = line.partition(": ")
    value = re.match(r'"([^"]*)"', rest)
    return f"`{option}={value[1]}`" if value else f"`{option}`"


def main() -> int:
    page = PAGE.read_text()
    fresh = TABLE.sub(lambda _: text(survey()), page)
    if "--check" in sys.argv:
        return int(fresh != page)
    PAGE.write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main())
