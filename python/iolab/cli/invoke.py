"""From a command line to an exit status. What a command needs, it imports when called."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from iolab.errors import EXIT_DONE, EXIT_INPUT, EXIT_INTERRUPTED, EXIT_MACHINE, IolabError

EXIT_DEFECT = 70
"""A defect in iolab itself (EX_SOFTWARE of sysexits.h): none of the documented outcomes of a command."""

EXIT_BROKEN_PIPE = 141
"""What a shell shows for a program that SIGPIPE ended: the reader of our output has left."""


def main() -> None:
    """Entry point of the `iolab` program."""
    sys.exit(invoke(sys.argv[1:]))


def invoke(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit status; every failure becomes one line on stderr."""
    import typer
    from typer.main import get_command

    from iolab.cli.app import app
    from iolab.cli.output import report_defect, report_error, silence_standard_streams

    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    as_json = "--json" in arguments
    try:
        status = get_command(app).main(list(arguments), prog_name="iolab", standalone_mode=False)
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
    except PermissionError as error:
        report_error(_as_machine_error(error), as_json=as_json)
        return EXIT_MACHINE
    except BrokenPipeError:
        silence_standard_streams()
        return EXIT_BROKEN_PIPE
    except Exception as error:
        report_defect(error, as_json=as_json)
        return EXIT_DEFECT


def _as_machine_error(error: PermissionError) -> IolabError:
    from iolab.errors import MachineError

    where = None if error.filename is None else str(error.filename)
    return MachineError("no permission", where=where, remedy="name a place that you may use, or run as a user who may")


def _as_input_error(error: BaseException) -> IolabError:
    from iolab.errors import InputError

    format_message = getattr(error, "format_message", error.__str__)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "iolab"
    return InputError(format_message().rstrip("."), remedy=f"see {command} --help")
