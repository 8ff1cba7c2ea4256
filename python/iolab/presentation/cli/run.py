"""`iolab run`: an experiment into a run directory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from iolab.base.errors import InputError, unknown
from iolab.presentation.cli import complete
from iolab.presentation.cli.consent import TrustRun, consent_of
from iolab.presentation.cli.options import FailOn, Json, On, Out, Patience, seconds
from iolab.presentation.cli.outcome import check_conditions, refuse_without_comparison, show_outcome
from iolab.presentation.cli.placement import executor_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolab.files.experiment import Experiment

ENGINES = ("iolab", "fio")


def run(
    experiment: Annotated[
        Path | None,
        typer.Argument(
            metavar="[EXPERIMENT.toml]",
            help="The experiment, a fio job file, or the name of an experiment that comes with iolab: iolab list "
            "experiments",
            autocompletion=complete.experiments,
        ),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            help="Where trials run, instead of the experiment's machine: host, a simulated machine, model:NAME, or a "
            "guest, guest:KERNEL. See: iolab list machines, iolab list kernels",
            autocompletion=complete.machines,
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(help="Number of rounds, instead of the experiment's. With --until-decided: the largest number."),
    ] = None,
    until_decided: Annotated[
        bool,
        typer.Option(
            "--until-decided",
            help="Add rounds until no comparison is undecided: at most --rounds or the experiment's `rounds`, else 50 "
            "(with --part, boots of each part). The test is sequential: a look after every round does not "
            "invalidate the verdicts.",
        ),
    ] = False,
    out: Out = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Continue the run in DIR, after a kill or for more rounds. Finished trials are kept. The experiment "
            "is the run's own.",
            autocompletion=complete.runs,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of the order of trials and of all random offsets.  [default: the experiment's, else drawn and "
            "recorded]"
        ),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="With --resume: run failed trials again.")
    ] = False,
    trust_run: TrustRun = False,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="iolab|fio", help="What runs a fio job file: iolab's engine or the installed fio.  [default: iolab]"
        ),
    ] = None,
    section: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Run only this job of a fio job file. May be given several times.  [default: all]"
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONTROL=VALUE",
            help="Of a fio job file: a setting to compare, such as scheduler=bfq; several controls with ; between "
            "them. May be given several times; the first is the baseline.  [default: everything as it is]",
            autocompletion=complete.controls,
        ),
    ] = None,
    probe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Switch this probe on, with its default options, in addition to the experiment's. May be given "
            "several times. See: iolab list probes",
            autocompletion=complete.probes,
        ),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The part that this boot provides, if the experiment's settings belong to parts, such as two kernels: "
            "measure its next block, then report what to boot next. --out DIR names the run, the same at every boot.",
        ),
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Instead of an experiment: time this shell command in the current directory. Several are "
            "compared with the first. Words after -- are one command: iolab run -- make -j2",
        ),
    ] = None,
    prepare: Annotated[
        str | None, typer.Option(metavar="TEXT", help="With --command: a shell command before each, not timed.")
    ] = None,
    on: On = None,
    patience: Patience = None,
    fail_on: FailOn = None,
    json: Json = False,
) -> None:
    """Run an experiment: each workload under each setting once per round, in random order.

    Each finished trial is on disk before the next one starts. --resume continues a run that was interrupted or killed.
    iolab restores whatever a setting changes after each trial. If a trial makes no progress for --patience (5 minutes
    by default), iolab gives it up, and the run with it.
    """
    patience_s = seconds(patience)
    conditions = check_conditions(fail_on)
    again = f"iolab run --resume {resume}"
    if part is not None and experiment is not None:
        if out is None:
            raise InputError("the boots are of one run", where="--part", remedy="name its directory with --out DIR")
        again = f"iolab run {experiment} --out {out}"
        if (out / "journal.jsonl").is_file():
            _check_same(experiment, out)
            experiment, resume, out = None, out, None
    if sum(given is not None for given in (experiment, resume, command or None)) != 1:
        raise InputError(
            "name one of an experiment file, a run to continue (--resume DIR), and a command (iolab run -- COMMAND)",
            where="iolab run",
        )
    if prepare is not None and not command:
        raise InputError("is for --command", where="--prepare")
    if resume is not None:
        given = {"--out": out, "--seed": seed, "--machine": machine, "--engine": engine, "--probe": probe}
        _refuse_with_resume({**given, "--section": section, "--setting": setting})
    elif retry_failed or trust_run:
        option = "--retry-failed" if retry_failed else "--trust-run"
        raise InputError(f"{option} is for --resume", where="iolab run")

    probes = _known_probes(probe or [])

    from iolab.machines.system import bounded_call
    from iolab.presentation.progress import display
    from iolab.studies.run import resume as go_on
    from iolab.studies.run import run as start

    if patience_s is not None:
        bounded_call.set_patience(min(patience_s, bounded_call.PATIENCE_S))
    progress = display(as_json=json)
    with executor_on(on, patience_s) as executor:
        if resume is not None:
            done = go_on(
                resume,
                executor=executor,
                progress=progress,
                rounds=rounds,
                until_decided=until_decided or None,
                retry_failed=retry_failed,
                consent=consent_of(resume, trusted=trust_run),
                part=part,
                on=on,
            )
        else:
            if command:
                _refuse_with_command({"--engine": engine, "--section": section, "--setting": setting})
                loaded = _of_commands(command, prepare, machine, probes)
            else:
                assert experiment is not None
                loaded = load(experiment, machine, engine, probes, sections=section or (), settings=setting or ())
                _report_missing_target(loaded, experiment)
            if len(loaded.settings) == 1:
                refuse_without_comparison(conditions)
            done = start(
                loaded,
                out,
                executor=executor,
                progress=progress,
                rounds=rounds,
                until_decided=until_decided,
                seed=seed,
                probes=probes,
                part=part,
                on=on,
            )
    show_outcome(done.path, as_json=json, fail_on=conditions, again=again)


def _check_same(experiment: Path, run: Path) -> None:
    """InputError if the run in a directory is not one of this experiment, word for word."""
    from iolab.files.experiment.parse import read_text
    from iolab.files.store.directory import RunDirectory

    if read_text(experiment) != RunDirectory.open(run).experiment_text():
        raise InputError(
            "is not the experiment that the run was started with",
            where=str(experiment),
            remedy=f"put the text of {run}/experiment.toml back, or choose another --out",
        )


def _known_probes(names: list[str]) -> list[str]:
    from iolab.domain.probe import PROBES

    for name in names:
        if name not in PROBES:
            raise InputError(f"{name}: {unknown('probe', name, PROBES)}", where="--probe")
    return list(dict.fromkeys(names))


def load(
    path: Path,
    machine: str | None,
    engine: str | None,
    probes: list[str],
    *,
    tuned: bool = False,
    sections: Sequence[str] = (),
    settings: Sequence[str] = (),
) -> Experiment:
    """The experiment of a file, a fio job file or a name, for the machine and engine asked for. InputError names what
    is wrong with it. `tuned`: it is for `iolab tune`, which alone reads [tune]."""
    from iolab.domain.machine import kind_of, unknown_machine

    if machine is not None and kind_of(machine) is None:
        raise InputError(f"{machine}: {unknown_machine(machine)}", where="--machine")
    from iolab.files.experiment import loads
    from iolab.files.experiment.from_fio import is_job_file, text_of
    from iolab.files.experiment.parse import find, read_text
    from iolab.machines.system.block import device_bytes

    path = find(path)
    text = read_text(path)
    if not is_job_file(path, text):
        if engine is not None or sections or settings:
            where = "--engine" if engine is not None else "--section" if sections else "--setting"
            raise InputError(
                "only for a fio job file", where=where, remedy="an experiment's workloads and settings have their own"
            )
        found = loads(text, str(path), probes=probes, machine=machine)
        if found.tuning is not None and not tuned:
            raise InputError("[tune] asks for a search", where=str(path), remedy=f"begin it with: iolab tune {path}")
        return found
    if engine not in (None, *ENGINES):
        raise InputError(f"{engine}: {unknown('engine', str(engine), ENGINES)}", where="--engine")
    text, without_effect = text_of(
        path,
        text,
        device_bytes,
        "fio" if engine == "fio" else "iolab",
        sections,
        settings,
        fio_can_run=kind_of(machine or "host") == "host",
    )
    if without_effect:
        print(f"{path}: without effect on iolab's engine: {', '.join(without_effect)}", file=sys.stderr)
    return loads(text, str(path), probes=probes, machine=machine)


def _refuse_with_command(given: dict[str, object]) -> None:
    for option, value in given.items():
        if value is not None:
            raise InputError("only for a fio job file", where=option, remedy="leave it out")


def _of_commands(commands: list[str], prepare: str | None, machine: str | None, probes: list[str]) -> Experiment:
    from iolab.files.experiment import loads
    from iolab.files.experiment.from_commands import text_of

    if machine not in (None, "host"):
        raise InputError(
            "a command is timed on this host",
            where="--machine",
            remedy='leave it out; an experiment with kind = "command" takes a guest',
        )
    return loads(text_of(commands, prepare, Path.cwd()), "--command", probes=probes)


def _report_missing_target(experiment: Experiment, path: Path) -> None:
    """Reports that the target is ignored if an experiment for a host runs on a model by choice of the command line."""
    import tomllib

    from iolab.domain.machine import Model

    if isinstance(experiment.machine, Model) and "target" in tomllib.loads(experiment.text):
        print(f"{path}: [target] is left out: files lie on the drives of {experiment.machine.name}", file=sys.stderr)


def _refuse_with_resume(given: dict[str, object]) -> None:
    for option, value in given.items():
        if value is not None:
            raise InputError(
                "a resumed run keeps its own",
                where=option,
                remedy="leave it out, or start a new run without --resume",
            )
