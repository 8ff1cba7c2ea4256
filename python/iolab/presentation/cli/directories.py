"""Directories that iolab made of several runs: what a command that takes one run makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from iolab.base import beneath
from iolab.base.errors import InputError
from iolab.domain.comparison import Comparison
from iolab.domain.summary import summarise
from iolab.files.collection.place import runs_below
from iolab.files.store import read
from iolab.files.store.sweep_directory import SweepDirectory, is_sweep
from iolab.studies.run import search_file
from iolab.studies.tuner.directory import is_tune

NAMED_MAX = 3
CONFIRM = "confirm"


def answer_lines(path: Path) -> list[str] | None:
    """What a search found, of a directory of `iolab tune` or of a search among commits; None for any other. InputError
    for a damaged one."""
    if is_tune(path):
        from iolab.presentation.table.tune_answer import lines
        from iolab.studies.tuner import tuner

        fresh = path / CONFIRM
        runs = ["", f"Its fresh rounds: iolab show {fresh}"] if fresh.is_dir() else []
        return [*lines(tuner.found_in(path)), *runs]
    if beneath.is_file(path / search_file.NAME):
        from iolab.presentation.table import commits as table
        from iolab.studies.run import commits

        return list(table.lines(commits.finding_in(path)))
    return None


def one_run(path: Path) -> Path:
    """The run that stands for what a directory found: of a tuner its fresh rounds. InputError for a directory that
    holds runs and is none, with some of them."""
    if not path.is_dir() or beneath.is_file(path / "journal.jsonl"):
        return path
    if is_tune(path) and beneath.is_file(path / CONFIRM / "journal.jsonl"):
        return path / CONFIRM
    if found := runs_below(path):
        more = f", and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
        raise InputError(
            "holds runs, and is none itself",
            where=str(path),
            remedy=f"name one of them: {', '.join(map(str, found[:NAMED_MAX]))}{more}",
        )
    if beneath.is_file(path / search_file.NAME):
        raise InputError(
            "is a search among commits, which has no run", where=str(path), remedy=f"iolab bisect {path} shows it"
        )
    return path


def sweep_comparisons(path: Path, metrics: Sequence[str]) -> tuple[list[Comparison], list[str]] | None:
    """The comparisons of each cell of a sweep, and what is wrong with its runs; None for any other directory."""
    if not is_sweep(path):
        return None
    found: list[Comparison] = []
    problems: list[str] = []
    for cell in SweepDirectory.open(path).cells:
        place = f"{cell.experiment} on {cell.machine}"
        if cell.impossible is not None:
            problems.append(f"{place}: {cell.impossible}")
            continue
        try:
            summary = summarise(read(path / cell.run), metrics=metrics)
        except InputError as error:
            problems.append(f"{place}: {error}")
            continue
        found += [replace(one, workload=f"{place}: {one.workload}") for one in summary.comparisons]
        problems += [f"{place}: {problem}" for problem in summary.problems]
    return found, problems
