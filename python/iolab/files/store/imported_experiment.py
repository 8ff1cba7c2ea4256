"""The experiment of an imported run, read back: names, kinds and what is compared. Nothing in it can be run."""

from __future__ import annotations

import tomllib

from pydantic import ValidationError

from iolab.base.errors import InputError
from iolab.base.option import Options
from iolab.base.toml import TomlTable
from iolab.domain.experiment import IMPORTED, Comparison, CompiledWorkload, Experiment
from iolab.domain.machine import Host
from iolab.domain.trial import FileTarget
from iolab.domain.workload import KINDS


def parse(text: str, name: str) -> Experiment:
    """An imported run's experiment. InputError if the text is not one."""
    try:
        table = tomllib.loads(text)
        workloads = table.get("workloads", {})
        return Experiment(
            title=str(table["title"]),
            machine=Host(IMPORTED),
            rounds=1,
            seed=None,
            target=FileTarget(path=table["sources"][0]["path"]),
            workloads={workload: _compiled(options) for workload, options in workloads.items()},
            settings=table.get("settings", {}),
            variants={},
            compare=Comparison(table["compare"]["baseline"], list(table["compare"]["metrics"]), same_within=0.02),
            text=text,
        )
    except (tomllib.TOMLDecodeError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise InputError(f"is not what `iolab import` wrote: {error!r}", where=name) from None


def _compiled(options: TomlTable) -> CompiledWorkload:
    """With its kind's options, if the source has them, so that the classic tool's table can be shown."""

    kind = options.get("kind")
    if kind in KINDS:
        try:
            known = {name: value for name, value in options.items() if name != "kind"}
            return CompiledWorkload(kind, KINDS[kind].options.model_validate(known))
        except ValidationError:
            pass
    return CompiledWorkload(IMPORTED, Options())
