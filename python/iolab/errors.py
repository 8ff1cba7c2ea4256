"""What a user's mistake or a machine's limit looks like: one clear line and an exit status, never a traceback."""

from __future__ import annotations

EXIT_DONE = 0
EXIT_CONDITION = 1
EXIT_INPUT = 2
EXIT_MACHINE = 3
EXIT_INTERRUPTED = 130


class IolabError(Exception):
    """Ends the command with its one line. `where` is a file:line, a key, a device; `remedy` says what to do."""

    exit_status = EXIT_INPUT

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None) -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        line = f"{self.where}: {self.what}" if self.where else self.what
        return f"{line}; {self.remedy}" if self.remedy else line


class InputError(IolabError):
    """The input is wrong."""

    exit_status = EXIT_INPUT


class MachineError(IolabError):
    """This machine can't do it; `remedy` names the command that would make it able."""

    exit_status = EXIT_MACHINE


class InterruptedRun(IolabError):
    """Stopped by Ctrl-C or a signal, everything restored."""

    exit_status = EXIT_INTERRUPTED
