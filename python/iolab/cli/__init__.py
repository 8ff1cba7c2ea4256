"""The command line: arguments in, exit status out. One file per command."""

from iolab.cli.invoke import main

__all__ = ["main"]
