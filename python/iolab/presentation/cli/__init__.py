"""The command line: arguments in, exit status out. One file per command."""

from iolab.presentation.cli.invoke import main

__all__ = ["main"]
