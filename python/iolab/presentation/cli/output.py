"""What commands print: text for people, strict JSON for programs, one line for an error."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from iolab.base.errors import EXIT_INPUT, EXIT_INTERRUPTED, EXIT_MACHINE, IolabError
from iolab.base.plain_text import one_line
from iolab.base.strict_json import dumps

_KINDS = {EXIT_INPUT: "input", EXIT_MACHINE: "machine", EXIT_INTERRUPTED: "interrupted"}

_is_printed: ContextVar[bool] = ContextVar("whether this command has printed its JSON document", default=False)


def begin_command() -> None:
    """Before each command: none has printed a document yet."""
    _is_printed.set(False)


def print_json(payload: Any) -> None:
    """Prints `payload` as one JSON document; numbers that JSON has no word for (NaN, infinity) become null."""
    print(dumps(payload))
    _is_printed.set(True)


def print_lines(lines: Iterable[str], mark: str = "") -> None:
    """A line each, whatever text they quote."""
    for line in lines:
        print(f"{mark}{one_line(line)}")


def report_error(error: IolabError, *, as_json: bool) -> None:
    """A line per problem: an experiment may have several, each with its own place. No second document: a result that
    is printed before its gate is refused is the one."""
    for line in str(error).splitlines():
        print(f"iolab: {line}", file=sys.stderr)
    if as_json and not _is_printed.get():
        kind = _KINDS.get(error.exit_status, "other")
        print_json({"error": {"kind": kind, "what": error.what, "where": error.where, "remedy": error.remedy}})


def report_defect(error: BaseException, *, as_json: bool) -> None:
    """An unforeseen exception: one line, and the traceback on request."""
    what = one_line(f"{type(error).__name__}: {error}")
    if os.environ.get("IOLAB_TRACEBACK"):
        traceback.print_exception(error)
    print(f"iolab: {what}; this is a defect in iolab; run with IOLAB_TRACEBACK=1 for the traceback", file=sys.stderr)
    if as_json and not _is_printed.get():
        print_json({"error": {"kind": "defect", "what": what, "where": None, "remedy": None}})


def silence_standard_streams() -> None:
    """Points stdout at nothing, so that the interpreter's last flush can't complain about a reader who left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
