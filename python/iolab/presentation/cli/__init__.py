"""The command line: arguments in, exit status out. One file per command."""

import signal
import sys


def main() -> None:
    """Entry point of the `iolab` program."""
    # In the middle of an import Ctrl-C would end in a traceback, or be lost if a library drops the exception: it waits
    # until the command is imported.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    from iolab.presentation.cli.invoke import invoke

    sys.exit(invoke(sys.argv[1:], mask))
