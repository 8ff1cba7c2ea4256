"""`iolab tune`: which setting is best, and is it really better than the default?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from iolab.base.errors import InputError
from iolab.presentation.cli import complete
from iolab.presentation.cli.consent import TrustRun, consent_of
from iolab.presentation.cli.options import InsteadOfMachine, Json, Out, Patience, ResumeSearch, Seed, seconds
from iolab.presentation.cli.output import print_json, print_lines


def tune(
    experiment: Annotated[
        Path | None,
        typer.Argument(
            metavar="[EXPERIMENT.toml|DIR]",
            help="An experiment with a table [tune]; or a search's directory, to show its answer.",
            autocompletion=complete.experiments,
        ),
    ] = None,
    out: Out = None,
    resume: ResumeSearch = None,
    trust_run: TrustRun = False,
    machine: InsteadOfMachine = None,
    seed: Seed = None,
    patience: Patience = None,
    json: Json = False,
) -> None:
    """Find the best setting for a workload, and whether it is really better than the default.

    The table [tune] names the keys to try and the metrics to improve. Each candidate is measured in rounds with the
    default, promising ones more often. Fresh rounds then decide: the winner, a smaller setting that keeps the gain, or
    the default. Nothing stays changed on this machine.
    """
    if (experiment is None) == (resume is None):
        raise InputError("name an experiment, or a search to continue (--resume DIR), not both", where="iolab tune")
    loaded = None
    if experiment is not None and not experiment.is_dir():
        # A mistake is told before what a search needs is imported, which takes seconds.
        from iolab.presentation.cli.run import load

        loaded = load(experiment, machine, None, [], tuned=True)
    from iolab.presentation.table.tune_answer import as_dict, lines
    from iolab.studies.tuner import tuner

    if experiment is not None and experiment.is_dir():
        found = tuner.found_in(experiment)
    else:
        from iolab.files.store.directory import default_path
        from iolab.presentation.progress import display
        from iolab.studies.run.machine_executor import MachineExecutor

        if resume is not None and (out is not None or machine is not None or seed is not None):
            raise InputError("a resumed search keeps its own", where="--out, --machine, --seed")
        progress = display(as_json=True)
        with MachineExecutor(seconds(patience)) as executor:
            if resume is not None:
                ask = partial(consent_of, trusted=trust_run)
                found = tuner.resume(resume, executor=executor, progress=progress, consent_of=ask)
            else:
                assert loaded is not None
                path = out or default_path(f"tune {loaded.title}")
                found = tuner.start(loaded, path, executor=executor, progress=progress, seed=seed)
    if json:
        print_json({"run": str(found.directory.path), **as_dict(found)})
    else:
        print_lines(lines(found))
        print(f"\nSearch: {found.directory.path}")
