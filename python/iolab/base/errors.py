"""What a user's mistake or a machine's limit looks like: one clear line and an exit status, never a traceback."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache

from iolab.base.plain_text import one_line

EXIT_DONE = 0
EXIT_CONDITION = 1
EXIT_INPUT = 2
EXIT_MACHINE = 3
EXIT_INTERRUPTED = 130

PROBLEMS_MAX = 100
"""So many lines an error has; of more problems it states how many."""


class IolabError(Exception):
    """Ends the command with its one line. `where` is a file:line, a key, a device; `remedy` states what to do."""

    exit_status = EXIT_INPUT

    def __init__(self, what: str | Sequence[str], *, where: str | None = None, remedy: str | None = None) -> None:
        """
        Args:
            what: in one line, or a line for each of several problems. What it quotes of files is written out, and cut
                where it is long.
        """
        lines = [what] if isinstance(what, str) else list(what)
        kept = lines if len(lines) <= PROBLEMS_MAX + 1 else lines[:PROBLEMS_MAX]
        shown = [one_line(line) for line in kept]
        if len(kept) < len(lines):
            shown.append(f"and {len(lines) - len(kept)} more problems")
        self.what = "\n".join(shown)
        self.where = None if where is None else one_line(where)
        self.remedy = None if remedy is None else one_line(remedy)
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


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
"""Error numbers of a device that is full, or fails."""
NO_NAME = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EROFS)
"""The errors of a name that leads nowhere on this machine, whichever user tries it."""


def from_os_error(error: OSError) -> IolabError | None:
    """What the system refuses a user: a permission, room, a name. None for any other, which is a defect."""
    if error.errno in NO_NAME and error.filename is not None:
        return InputError(f"can't be used: {error.strerror}", where=str(error.filename), remedy="name another place")
    if error.errno == errno.ENOENT and _has_no_current_directory():
        return InputError("the current directory has been removed", remedy="cd to another, and try again")
    if isinstance(error, PermissionError):
        where = None if error.filename is None else str(error.filename)
        remedy = "name a place that you may use, or run as a user who may"
        return MachineError("no permission", where=where, remedy=remedy)
    if error.errno not in NO_ROOM:
        return None
    where = "standard output" if error.filename is None else str(error.filename)
    return MachineError(f"can't be written: {error.strerror}", where=where, remedy="make room")


def _has_no_current_directory() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 (asks the kernel and nothing else)
    except FileNotFoundError:
        return True
    return False


class RenamedKeyWarning(FutureWarning):
    """A file uses a name that the next version does not know."""


LONGEST_WORD = 200
"""In characters: comparing takes the product of two words' lengths."""


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The word most like `word`, or None when none is close, or `word` is too long to compare."""
    if len(word) > LONGEST_WORD:
        return None
    return _nearest(word, tuple(each for each in words if len(each) <= LONGEST_WORD))


@lru_cache(maxsize=1024)
def _nearest(word: str, words: tuple[str, ...]) -> str | None:
    """Kept: a list may repeat one mistake thousands of times."""
    return next(iter(get_close_matches(word, words, cutoff=0.6)), None)


def unknown(what: str, word: str, words: Iterable[str]) -> str:
    """`unknown option; did you mean block_size?`, or all the words when none is close."""
    choices = list(words)
    close = nearest(word, choices)
    return f"unknown {what}; did you mean {close}?" if close else f"unknown {what}; there are: {', '.join(choices)}"
