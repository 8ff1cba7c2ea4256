"""`kind = "command"`: any command, timed from its start to its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iolab.base.option import Options, option
from iolab.domain.trial import Phase, TimedCommandPhase
from iolab.domain.workload.conflict import cpus_conflicts
from iolab.domain.workload.kind import Conflict, Kind, cpus_option, replace_options


class CommandOptions(Options):
    """The options of `kind = "command"`."""

    command: str = option(..., "Shell command to time.", lines=True)
    prepare: str | None = option(
        None, "Shell command before it, not timed, such as make clean.", default_is="nothing", lines=True
    )
    directory: str | None = option(
        None,
        "Directory that both run in.",
        default_is="an empty one on the target",
        expected='a path such as "/usr/src/linux"',
    )
    cpus: list[int] | None = cpus_option("CPUs that the commands may run on.")
    drop_caches: bool = option(False, "Sync and drop the page cache before the command.")


def _conflicts(options: CommandOptions) -> Iterator[Conflict]:
    yield from cpus_conflicts(options.cpus)
    for key, text in (("command", options.command), ("prepare", options.prepare)):
        if text is not None and not text.strip():
            yield Conflict((key,), "is empty; expected a shell command")


def _phases(options: CommandOptions, seed: int, devices: int = 1) -> list[Phase]:
    def phase(name: str, text: str, *, measured: bool) -> TimedCommandPhase:
        return TimedCommandPhase(
            name=name,
            measured=measured,
            command=text,
            directory=options.directory,
            cpus=options.cpus,
            drop_caches=measured and options.drop_caches,
        )

    prepared = [phase("prepare", options.prepare, measured=False)] if options.prepare is not None else []
    return [*prepared, phase("command", options.command, measured=True)]


def _file_bytes(options: Any) -> int:
    """What a command writes is known only when it has."""
    return 0


KIND = Kind(
    name="command",
    help="Any shell command, timed. On a host, or in a guest, with the programs that it names.",
    options=CommandOptions,
    conflicts=_conflicts,
    phases=_phases,
    override=replace_options,
    file_bytes=_file_bytes,
    compared=("elapsed_s", "cpu_user_s", "cpu_system_s"),
)
