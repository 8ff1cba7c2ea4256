"""`iolab run`: an experiment into a run directory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.cli.fail_on import check_conditions
from iolab.cli.options import FailOn, Json
from iolab.cli.outcome import show_outcome
from iolab.errors import InputError
from iolab.nearest import unknown

if TYPE_CHECKING:
    from iolab.experiment import Experiment

ENGINES = ("iolab", "fio")


def run(
    experiment: Annotated[
        Path | None,
        typer.Argument(metavar="[EXPERIMENT.toml]", help="The experiment, or a fio job file.", show_default=False),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            help="Where trials run, instead of the experiment's machine: host, or a modelled one, model:NAME. "
            "See: iolab list machines",
            show_default=False,
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help="How many rounds, instead of the experiment's number; with --until-decided the most.",
            show_default=False,
        ),
    ] = None,
    until_decided: Annotated[
        bool,
        typer.Option(
            "--until-decided",
            help="Go on until no comparison is undecided. The stopping rule is sequential: looking after every round "
            "does not spoil the verdicts.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The run directory to make.  [default: a new one in iolab-runs]", show_default=False
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Go on with the run in DIR, after a kill or for more rounds. Finished trials are kept; the experiment "
            "is the run's own.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of the order of trials and of all random offsets.  [default: the experiment's, else drawn and "
            "recorded]",
            show_default=False,
        ),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="With --resume: run trials that failed again.")
    ] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="iolab|fio",
            help="Who runs a fio job file: iolab's engine or the fio that is installed.  [default: iolab]",
            show_default=False,
        ),
    ] = None,
    probe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Switch this probe on, with its default options, besides the experiment's own; may be given again. "
            "See: iolab list probes",
            show_default=False,
        ),
    ] = None,
    fail_on: FailOn = None,
    json: Json = False,
) -> None:
    """Run an experiment: every workload under every setting, round after round, in an order shuffled anew each round.

    Each finished trial is on disk before the next starts; a run that was interrupted or killed goes on with --resume.
    What the settings change is put back after each trial.
    """
    conditions = check_conditions(fail_on)
    if (experiment is None) == (resume is None):
        raise InputError("name an experiment file, or a run to go on with (--resume DIR), not both", where="iolab run")
    if resume is not None:
        _refuse_with_resume({"--out": out, "--seed": seed, "--machine": machine, "--engine": engine, "--probe": probe})
    elif retry_failed:
        raise InputError("--retry-failed is for --resume", where="iolab run")

    probes = _known_probes(probe or [])

    from iolab.executor import ByMachine
    from iolab.progress import display
    from iolab.run import resume as go_on
    from iolab.run import run as start

    progress = display(as_json=json)
    with ByMachine() as executor:
        if resume is not None:
            done = go_on(
                resume,
                executor=executor,
                progress=progress,
                rounds=rounds,
                until_decided=until_decided or None,
                retry_failed=retry_failed,
            )
        else:
            assert experiment is not None
            loaded = _load(experiment, machine, engine, probes)
            _say_if_target_is_left_out(loaded, experiment)
            done = start(
                loaded,
                out,
                executor=executor,
                progress=progress,
                rounds=rounds,
                until_decided=until_decided,
                seed=seed,
                probes=probes,
            )
    show_outcome(done.path, as_json=json, fail_on=conditions)


def _known_probes(names: list[str]) -> list[str]:
    from iolab.probe import PROBES

    for name in names:
        if name not in PROBES:
            raise InputError(f"{name}: {unknown('probe', name, PROBES)}", where="--probe")
    return list(dict.fromkeys(names))


def _load(path: Path, machine: str | None, engine: str | None, probes: list[str]) -> Experiment:
    from iolab.machine_file import is_model

    if machine is not None and machine != "host" and not is_model(machine):
        raise InputError(f"{machine}: {unknown('machine', machine, ['host', 'model:NAME'])}", where="--machine")
    from iolab.experiment import load, loads
    from iolab.fio.experiment import is_job_file, text_of

    if not is_job_file(path):
        if engine is not None:
            raise InputError(
                "only for a fio job file", where="--engine", remedy="an experiment's workloads and settings say theirs"
            )
        return load(path, probes=probes, machine=machine)
    if engine not in (None, *ENGINES):
        raise InputError(f"{engine}: {unknown('engine', str(engine), ENGINES)}", where="--engine")
    text, without_effect = text_of(path, "fio" if engine == "fio" else "iolab")
    if without_effect:
        print(f"{path}: without effect on iolab's engine: {', '.join(without_effect)}", file=sys.stderr)
    return loads(text, str(path), probes=probes, machine=machine)


def _say_if_target_is_left_out(experiment: Experiment, path: Path) -> None:
    """Of an experiment that was written for a host and runs on a model by choice of the command line."""
    import tomllib

    if experiment.modelled is not None and "target" in tomllib.loads(experiment.text):
        print(f"{path}: [target] is left out: files lie on the drives of {experiment.machine}", file=sys.stderr)


def _refuse_with_resume(given: dict[str, object]) -> None:
    for option, value in given.items():
        if value is not None:
            raise InputError(
                "a run that goes on keeps its own",
                where=option,
                remedy="leave it out, or start a new run without --resume",
            )
