"""Whether a run or a search was made by this user on this machine, and what one does that was not: continuing it runs
its commands, boots its kernels and writes to its target. All commands that continue one ask here."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from iolab.base.errors import InputError
from iolab.base.option import shown
from iolab.domain.trial import CommandsPhase, FioPhase, Phase, Target, TimedCommandPhase
from iolab.files.experiment import Experiment
from iolab.files.store.state import RunState
from iolab.machines.system.state import state_directory

KEY_BYTES = 32
Consent = Callable[[list[str]], None]
"""Gets what would be done, a line each, and raises to have nothing done."""


def mark(experiment: Experiment, seed: int) -> str | None:
    """For the event of a session: what it runs, signed with a key that only this user reads. None if no key can be
    kept: the run then counts as one of somebody else's."""
    return signature(_signed(experiment, seed)) if experiment.machine.acts_here else None


def signature(signed: list[Any]) -> str | None:
    """By this user, of what can be JSON. None as of `mark`."""
    key = _key() or _new_key()
    return None if key is None else _signature(key, signed)


def is_signed(signed: list[Any], given: object) -> bool:
    """Whether this user gave that signature."""
    key = _key()
    return (
        key is not None
        and isinstance(given, str)
        and hmac.compare_digest(given.encode(), _signature(key, signed).encode())
    )


def is_ours(experiment: Experiment, state: RunState) -> bool:
    """Whether this user began the run, or went on with it, as it is now."""
    if state.started is None:
        return False
    signed = _signed(experiment, state.started["seed"])
    return any(is_signed(signed, session.get("origin")) for session in state.sessions)


def is_marked(experiment: Experiment, seed: int, given: object) -> bool:
    """Whether `mark` gave that."""
    return is_signed(_signed(experiment, seed), given)


def ask_about_run(path: Path, experiment: Experiment, state: RunState, consent: Consent | None) -> None:
    """Before anything is done. No one is asked about runs on a model alone. InputError if no one can be asked."""
    if experiment.machine.acts_here and not is_ours(experiment, state):
        ask(path, deeds(experiment), consent)


def ask(path: Path, to_do: list[str], consent: Consent | None) -> None:
    """About what this user did not make. InputError if no one can be asked."""
    if consent is None:
        raise InputError(
            f"was not made here by this user, and is to {'; '.join(to_do)}",
            where=str(path),
            remedy="read what it does; to continue it: --resume with --trust-run",
        )
    consent(to_do)


def deeds(experiment: Experiment) -> list[str]:
    """What the run does to this machine, a line each: where it writes, what it sets, what it runs."""
    found = dict.fromkeys([_place(experiment.target), *experiment.machine.deeds])
    for setting, controls in experiment.settings.items():
        found |= dict.fromkeys(
            f"run sh -c {shown(value)} beside the load (setting {setting})"
            if name == "background"
            else f"set {name} = {shown(value)} (setting {setting})"
            for name, value in controls.items()
        )
        for workload in experiment.workloads:
            compiled = experiment.workload_under(workload, setting)
            for phase in compiled.phases(seed=0, devices=experiment.target.devices):
                found |= dict.fromkeys(_runs(phase))
    return list(found)


def _runs(phase: Phase) -> Iterator[str]:
    if isinstance(phase, CommandsPhase):
        if phase.tarball is not None:
            yield f"unpack {phase.tarball}"
        if phase.command is not None:
            yield f"run sh -c {shown(phase.command)}"
    elif isinstance(phase, TimedCommandPhase):
        where = f" in {phase.directory}" if phase.directory else ""
        yield f"run sh -c {shown(phase.command)}{where}"
    elif isinstance(phase, FioPhase):
        for job, options in phase.options.items():
            sentence = " ".join(f"{name}={text}" if text else name for name, text in options.items())
            yield f"run fio with the job {job}: {sentence}"


def _place(target: Target) -> str:
    if target.kind == "scratch":
        return "make a scratch device, which it removes again"
    if target.kind == "device":
        anyway = ", whatever it holds (destroy = true)" if target.destroy else ""
        return f"read or write the device {', '.join(target.paths)}{anyway}"
    if target.kind == "drives":
        return "nothing: the machine is a simulated one"
    return f"read or write in the {target.kind} {Path(target.path).absolute()}"


def _signed(experiment: Experiment, seed: int) -> list[Any]:
    probes = {setting: sorted(on) for setting, on in experiment.probes.items()}
    return [experiment.text, sorted(experiment.attachments.items()), experiment.machine.name, seed, probes]


def _signature(key: bytes, signed: list[Any]) -> str:
    return hmac.new(key, json.dumps(signed).encode(), hashlib.sha256).hexdigest()


def _key_file() -> Path:
    return state_directory() / "origin.key"


def _key() -> bytes | None:
    """None if there is none that only this user could have written and read."""
    try:
        descriptor = os.open(_key_file(), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        is_private = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
        key = os.read(descriptor, KEY_BYTES + 1) if is_private else b""
    finally:
        os.close(descriptor)
    return key if len(key) == KEY_BYTES else None


def _new_key() -> bytes | None:
    path = _key_file()
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
        try:
            os.link(temporary, path)
        except FileExistsError:
            if _key() is None:  # others could read it, or a power cut emptied it; else another run was quicker
                temporary.replace(path)
    with suppress(OSError):
        temporary.unlink()
    return _key()
