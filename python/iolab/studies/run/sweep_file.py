"""A sweep as a file: `[[sweep]]` tables, each with experiments, the machines that each of them runs on, and rounds.

```toml
[[sweep]]
experiments = ["boot.toml", "database.toml"]
machines = ["host", "model:one_disk"]
```
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from iolab.base.errors import InputError
from iolab.base.option import Options, option
from iolab.base.problem import Problems
from iolab.base.toml import parse
from iolab.domain.machine import MODEL_PREFIX, kind_of
from iolab.domain.trial.trial import SEED_MAX
from iolab.files.experiment.from_fio import is_job_file, text_of
from iolab.files.experiment.options import ROUNDS_MAX
from iolab.files.experiment.parse import find, read_text
from iolab.machines.system.block import device_bytes
from iolab.studies.run.cells import CellRequest, Source

SUFFIX = ".toml"


class _File(Options):
    """The top of a sweep's file."""

    title: str = option("", "The question the sweep asks.")
    seed: int | None = option(
        None,
        "Seed of every run.",
        ge=0,
        le=SEED_MAX,
        default_is="drawn, and recorded",
        expected="a whole number from 0 to 2^63 - 1",
    )
    sweep: list[dict[str, Any]] = option([], "A table for each part of the matrix, [[sweep]].", expected="tables")


class _Part(Options):
    """A `[[sweep]]`."""

    experiments: list[str] = option(..., "Experiments: files beside this one, or names of those that come with iolab.")
    machines: list[str] = option([], "Where each runs.", default_is="each experiment's own machine")
    rounds: int | None = option(
        None,
        "Rounds of each run.",
        ge=1,
        le=ROUNDS_MAX,
        default_is="the experiments'",
        expected="a whole number, at least 1 and at most 1000000",
    )


def is_sweep_file(source: Source) -> bool:
    """Whether it is a sweep's file and no experiment."""
    try:
        return "sweep" in tomllib.loads(source.text)
    except (ValueError, RecursionError):
        return False  # reading it as an experiment reports what is wrong


def cells_of(source: Source) -> tuple[list[CellRequest], int | None]:
    """The cells that the file asks for, and its seed. InputError names the line of each problem."""
    document = parse(source.text, str(source.path))
    problems = Problems(document)
    top = problems.validated(_File, document.values, (), "a sweep") or _File()
    asked: list[CellRequest] = []
    for number, table in enumerate(top.sweep):
        part = problems.validated(_Part, table, ("sweep", str(number)), "[[sweep]]")
        if part is None:
            continue
        for key in ("experiments", "machines"):
            if not table.get(key, True):
                problems.add(("sweep", number, key), "an empty list; name at least one, or leave the key out")
        machines: list[str | None] = [machine_named(name, "machines", source.path.parent) for name in part.machines]
        for name in part.experiments:
            experiment = source_of(_beside(name, source.path.parent))
            asked += [CellRequest(experiment, machine, part.rounds) for machine in machines or [None]]
    problems.raise_any()
    return asked, top.seed


def source_of(path: Path) -> Source:
    """The content of the file, or of the experiment of that name. InputError if there is none."""
    found = find(path)
    text = read_text(found)
    return Source(found, text_of(found, text, device_bytes)[0] if is_job_file(found, text) else text)


def machine_named(name: str, where: str = "--machine", directory: Path | None = None) -> str:
    """As an experiment names it. A file's path counts from `directory`, the current one by default. InputError if it is
    none that a sweep can run on."""
    kind = kind_of(name)
    if name.endswith(SUFFIX) and kind in ("model", None):
        return f"{MODEL_PREFIX}{((directory or Path()) / name.removeprefix(MODEL_PREFIX)).absolute()}"
    if kind is not None:
        return name
    raise InputError(
        f"{name}: no machine",
        where=where,
        remedy="expected host, model:NAME, FILE.toml or guest:KERNEL; see: iolab list machines",
    )


def _beside(name: str, directory: Path) -> Path:
    return directory / name if name.endswith(SUFFIX) or "/" in name else Path(name)
