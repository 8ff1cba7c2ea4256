"""A command line of fio as a job file: `fio --name=a --rw=randread ...`, as scripts and mails have it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from iolab.base.errors import InputError

_COMMAND = re.compile(
    r"[ \t]*+(?>(?:[$#>] ?)?)(?>(?:\w+=\S*+ +)*)"
    r"(?>(?:(?:sudo|time|nice|numactl|taskset|env)(?>(?: +(?:-\S++|\d[\d,-]*+))*) +)*)(?:\S*/)?fio +(?=[^\s=])"
)
_CONTINUED = re.compile(r"\\\r?\n[ \t]*")
OF_THE_PROGRAM = frozenset(
    (
        *("output", "output-format", "append-terse", "minimal", "terse-version", "eta", "eta-newline", "eta-interval"),
        *("status-interval", "bandwidth-log", "parse-only", "warnings-fatal", "max-jobs", "alloc-size", "idle-prof"),
        *("debug", "aux-path"),
    )
)
"""Options of fio itself that concern no job (fio --help); those that run elsewhere or something else are not here."""
WITHOUT_VALUE = frozenset(("minimal", "append-terse", "bandwidth-log", "parse-only", "warnings-fatal"))


def job_text(text: str, where: str) -> str | None:
    """The job file that says the same as the command line in `text`; None if there is none.

    A pipe or a redirection ends the command. InputError for several commands, for a script, and for what is no option
    of a job.
    """
    lines = [line for line in _CONTINUED.sub(" ", text).splitlines() if line.strip()]
    commands = [line for line in lines if _COMMAND.match(line)]
    if not commands:
        return None
    if any(line not in commands and not line.lstrip().startswith("#") for line in lines):
        raise InputError("a script with commands of fio", where=where, remedy="expected one command line of fio alone")
    if len(commands) > 1:
        raise InputError(
            f"{len(commands)} commands of fio; expected one", where=where, remedy="give each a file of its own"
        )
    found = _COMMAND.match(commands[0])
    assert found is not None
    return "\n".join(_job_lines(_words(commands[0][found.end() :], where), where)) + "\n"


def _words(text: str, where: str) -> list[str]:
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError as error:
        raise InputError(f"not a command line: {str(error).lower()}", where=where) from None
    end = next((place for place, word in enumerate(words) if word[0] in "|&;<>"), len(words))
    # `2>&1` has its number before the mark.
    return words[: end - 1] if end < len(words) and words[end - 1 : end] in (["1"], ["2"]) else words[:end]


def _job_lines(words: Sequence[str], where: str) -> Iterator[str]:
    """As fio reads them: options before the first name are for all jobs, and each name begins a job."""
    section = ""
    left = iter(words)
    for word in left:
        if not word.startswith("-"):
            raise InputError(f"{word}: a job file beside options", where=where, remedy="run the job file by itself")
        name, equals, value = word.lstrip("-").partition("=")
        if name in OF_THE_PROGRAM:
            if not equals and name not in WITHOUT_VALUE:
                next(left, None)
            continue
        if name == "name":
            section = value if equals else next(left, "")
            yield f"[{section}]"
            continue
        if not section:
            section = "global"
            yield "[global]"
        yield f"{name}={value}" if equals else name
