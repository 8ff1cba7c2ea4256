"""`iolab attribute`: which of many keys make the difference?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iolab.base.errors import InputError
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import InsteadOfMachine, Json, Out, Patience, Seed, seconds
from iolab.presentation.cli.output import print_json, print_lines

MOST_MAX = 1000


def attribute(
    experiment: Annotated[
        Path,
        typer.Argument(
            metavar="EXPERIMENT.toml|RUN",
            help="An experiment with two settings that differ in several keys; or the directory of such a run, to show "
            "its answer.",
            autocompletion=complete.experiments,
        ),
    ],
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="What differs.  [default: the first that the experiment compares]",
            autocompletion=complete.metrics,
        ),
    ] = None,
    workload: Annotated[
        str | None, typer.Option(metavar="NAME", help="The workload, if there are several.  [default: the first]")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Stop when a set of keys has this probability.")] = 0.95,
    most: Annotated[int, typer.Option(help="Stop after this many rounds, each with every mixture once.")] = 8,
    out: Out = None,
    machine: InsteadOfMachine = None,
    seed: Seed = None,
    patience: Patience = None,
    json: Json = False,
) -> None:
    """Find which of the keys in which two settings differ make the difference, and how much each.

    Every trial runs a mixture: half of the keys as in one setting and half as in the other. So each
    trial is evidence on every key. Rounds are added until a set of keys has the required probability. The answer may be
    that no key makes a difference, or that two do so together.
    """
    if not 0.5 <= confidence < 1:
        raise InputError(f"{confidence:g} given; expected 0.5 or more, below 1", where="--confidence")
    if not 1 <= most <= MOST_MAX:
        raise InputError(f"{most} given; expected 1 to {MOST_MAX:,}", where="--most")
    from iolab.presentation.table.attribution import as_dict, lines
    from iolab.studies.run import attribute as of_run

    path = experiment
    if experiment.is_dir():
        from iolab.files.store import read

        found = of_run.attributed(read(experiment), workload, metric, confidence)
    else:
        from iolab.presentation.cli.run import load
        from iolab.presentation.progress import display
        from iolab.studies.run.machine_executor import MachineExecutor

        loaded = of_run.mixed(load(experiment, machine, None, []))
        with MachineExecutor(seconds(patience)) as executor:
            path, found = of_run.start(
                loaded,
                out,
                executor=executor,
                progress=display(as_json=json),
                seed=seed,
                most=most,
                confidence=confidence,
                workload=workload,
                metric=metric,
            )
    if json:
        print_json({"run": str(path), **as_dict(found)})
    else:
        print_lines(lines(found))
        print(f"Run:  {path}\nNext: iolab show {path}")
