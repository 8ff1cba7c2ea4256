"""From a command line to an exit status. What a command needs, it imports when called."""

from __future__ import annotations

import functools
import os
import shlex
import signal
import sys
import warnings
from collections.abc import Iterable, Sequence

import typer
from typer.core import TyperGroup
from typer.main import get_command

from iolab.base.errors import (
    EXIT_DONE,
    EXIT_INPUT,
    EXIT_INTERRUPTED,
    NO_ROOM,
    InputError,
    IolabError,
    RenamedKeyWarning,
    from_os_error,
)
from iolab.base.plain_text import one_line, whole_number
from iolab.presentation.cli.app import NAMES, app_of
from iolab.presentation.cli.output import begin_command, report_defect, report_error, silence_standard_streams
from iolab.presentation.terminal import guarded_streams

EXIT_DEFECT = 70
"""A defect in iolab itself (EX_SOFTWARE of sysexits.h): none of the documented outcomes of a command."""

POLARS_THREADS = "POLARS_MAX_THREADS"
POLARS_THREADS_MAX = 1024

EXIT_BROKEN_PIPE = 141
"""What a shell shows for a program that SIGPIPE ended: the reader of our output has left."""


def invoke(arguments: Sequence[str], mask: Iterable[int] | None = None) -> int:
    """Runs one command line and returns its exit status; every failure becomes one line on stderr. An empty command
    line asks for help. `mask`: the signals to be blocked from when the command is imported."""
    with guarded_streams(), warnings.catch_warnings():
        warnings.simplefilter("once", RenamedKeyWarning)
        warnings.showwarning = _show_warning
        return _invoke(arguments or ["--help"], mask)


@functools.cache
def _command(only: str | None) -> TyperGroup:
    command = get_command(app_of(only))
    assert isinstance(command, TyperGroup)
    return command


def _invoke(arguments: Sequence[str], mask: Iterable[int] | None) -> int:
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    as_json = "--json" in arguments
    begin_command()
    try:
        _check(arguments)
        only = arguments[0] if arguments and arguments[0] in NAMES else None
        command = _command(only)
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        status = command.main(_with_command(arguments), prog_name="iolab", standalone_mode=False)
        sys.stdout.flush()
        if status == EXIT_INTERRUPTED:  # what newer versions of typer make of Ctrl-C
            raise KeyboardInterrupt
        return status if isinstance(status, int) else EXIT_DONE
    except IolabError as error:
        report_error(error, as_json=as_json)
        return error.exit_status
    except usage_error as error:
        report_error(_as_input_error(error), as_json=as_json)
        return EXIT_INPUT
    except (KeyboardInterrupt, typer.Abort):
        print("iolab: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        silence_standard_streams()
        return EXIT_BROKEN_PIPE
    except OSError as error:
        known = from_os_error(error)
        if known is None:
            report_defect(error, as_json=as_json)
            return EXIT_DEFECT
        no_room = error.errno in NO_ROOM
        if no_room:
            silence_standard_streams()
        report_error(known, as_json=as_json and not no_room)
        return known.exit_status
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of the engine or of the store's decoder is no Exception
        report_defect(error, as_json=as_json)
        return EXIT_DEFECT


def _with_command(arguments: Sequence[str]) -> list[str]:
    """`run ... -- WORDS` as `run ... --command WORDS`: the words are no arguments of ours."""
    if "--" not in arguments or arguments[0] != "run":
        return list(arguments)
    at = list(arguments).index("--")
    words = arguments[at + 1 :]
    return [*arguments[:at], *(["--command", shlex.join(words)] if words else [])]


def _check(arguments: Sequence[str]) -> None:
    """What no command could use: pages, journals and frames hold text, and polars ends a process over its threads."""
    for given in arguments:
        try:
            given.encode()
        except UnicodeEncodeError:
            raise InputError("is not UTF-8", where=given, remedy="rename it, or name it by a link") from None
    threads = os.environ.get(POLARS_THREADS)
    if threads is not None and not 1 <= (whole_number(threads) or 0) <= POLARS_THREADS_MAX:
        what = f"{threads}: expected a whole number from 1 to {POLARS_THREADS_MAX}"
        raise InputError(what, where=POLARS_THREADS, remedy=f"unset {POLARS_THREADS}")


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """A line, as errors are, instead of a place in our code."""
    print(f"iolab: warning: {one_line(str(message))}", file=sys.stderr)


def _as_input_error(error: BaseException) -> IolabError:
    format_message = getattr(error, "format_message", error.__str__)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "iolab"
    return InputError(format_message().rstrip(".") + _what_is_missing(error), remedy=f"see {command} --help")


def _what_is_missing(error: BaseException) -> str:
    """The first sentence of a missing option's help, which states what to give."""
    if type(error).__name__ != "MissingParameter":
        return ""
    sentence = (getattr(getattr(error, "param", None), "help", None) or "").partition(". ")[0].rstrip(".")
    return f": {sentence[0].lower()}{sentence[1:]}" if sentence else ""
