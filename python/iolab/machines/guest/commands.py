"""A shell command in a guest: this machine's shell, and the programs that the command names."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.domain.phase_record import PhaseRecord, Usage, group_record, job_record, phase_record
from iolab.machines.guest import programs
from iolab.machines.system import command
from iolab.machines.system.shell import ShellResult

if TYPE_CHECKING:
    from iolab.domain.trial import TimedCommandPhase
    from iolab.machines.guest.agent_message import CommandEnd
    from iolab.machines.guest.steps import Plan

SHELL = "sh"
PLACES = ("/tmp",)
"""Directories that programs expect, in the machine's memory."""


def add(plan: Plan, phase: TimedCommandPhase, directory: str, disk: str) -> None:
    """The step of the phase, in `directory` of the guest.

    Raises:
        InputError: the command names a script, which needs more than the libraries of a program.
        MachineError: this machine has no shell.
    """
    shell = programs.pack(plan.archive, SHELL, "dash")
    for name in _named(phase.command):
        programs.pack(plan.archive, name, name)
    for place in (*PLACES, directory):
        plan.add("directory", path=place)
    fields = {
        "shell": shell,
        "text": phase.command,
        "directory": directory,
        "device": f"/dev/{disk}",
        "cpus": phase.cpus,
    }
    plan.phases[plan.add("command", command=fields, drop_caches=phase.drop_caches)] = phase


def record(phase: TimedCommandPhase, end: CommandEnd) -> PhaseRecord:
    """The record of what the agent reported (crates/measure/guest-agent/src/timed_command.rs)."""
    status = end.status if end.status is not None else -(end.signal or 0)
    ended = ShellResult(status, end.output, stopped=False)
    job = job_record("command", finished_ns=end.elapsed_ns)
    failed = ended.failure(phase.command)
    if failed is not None:
        job = {**job, "output": end.output}
    return phase_record(
        phase.name,
        started_unix_ns=end.started_unix_ns,
        elapsed_ns=end.elapsed_ns,
        groups=[group_record("command", Usage(*end.used), [job])],
        failures=[] if failed is None else [{"job": "command", "what": failed}],
    )


def _named(text: str) -> list[str]:
    """The words of a command that are programs of this machine; arguments may be among them, and do no harm."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = dict.fromkeys(lexer)
    except ValueError:
        # The shell reports what is wrong with its quotes.
        words = dict.fromkeys(text.split())
    found = []
    for word in words:
        path = command.find(word) if "/" not in word else None
        if path is None:
            continue
        with Path(path).open("rb") as file:
            if file.read(2) == b"#!":
                raise InputError(
                    f"{word} is a script; a guest machine has programs and their libraries, and no files beside them",
                    where="command",
                    remedy="name a program, or time it on the host",
                )
        found.append(word)
    return found
