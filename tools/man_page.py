"""The man page of iolab, from the help of its command line. `make wheel` puts it into each wheel."""

import textwrap
from collections.abc import Iterator

import typer
from iolab import __version__
from iolab.presentation.cli.app import app_of
from typer.main import get_command

INSTALLED = f"iolab-{__version__}.data/data/share/man/man1/iolab.1"
"""Its name in a wheel: below share/man of the environment that the wheel is installed in."""


def render() -> str:
    """The page, for man(1)."""
    program = get_command(app_of())
    context = typer.Context(program, info_name="iolab", help_option_names=["-h", "--help"])
    summary = str(program.help).partition(":")[0]
    lines = [
        f'.TH IOLAB 1 "" "iolab {__version__}"',
        ".SH NAME",
        f"iolab \\- {_text(summary[0].lower() + summary[1:])}",
        *(".SH SYNOPSIS", *_usage(context)),
        *(".SH DESCRIPTION", *_paragraphs(program.help)),
        *(".SH OPTIONS", *_options(context)),
        ".SH COMMANDS",
    ]
    for name, command in program.commands.items():  # type: ignore[attr-defined]
        inner = typer.Context(command, info_name=name, parent=context)
        lines += [f".SS iolab {name}", *_usage(inner), *_paragraphs(command.help), *_options(inner)]
    return "\n".join(lines) + "\n"


def _usage(context: typer.Context) -> list[str]:
    return [".PP", f".B {_text(context.get_usage().removeprefix('Usage: '))}"]


def _paragraphs(text: str | None) -> Iterator[str]:
    for paragraph in textwrap.dedent(text or "").split("\n\n"):
        yield from (".PP", _text(paragraph))


def _options(context: typer.Context) -> Iterator[str]:
    for parameter in context.command.get_params(context):
        if record := parameter.get_help_record(context):
            yield from (".TP", f".B {_text(record[0])}", _text(record[1] or ""))


def _text(text: str) -> str:
    """One line of roff that prints as the text: hyphens to be copied, and no request at the beginning."""
    line = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line


if __name__ == "__main__":
    print(render(), end="")
