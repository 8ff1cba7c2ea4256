"""What a run shows while it is in progress: live on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys

from iolab.domain.executor import Display
from iolab.presentation.progress.live import LiveDisplay
from iolab.presentation.progress.plain import PlainDisplay

__all__ = ["Display", "display"]


def display(*, as_json: bool = False) -> Display:
    """The display for this process's stderr: live on a terminal, else plain lines; with `as_json` few of them."""
    if sys.stderr.isatty() and not as_json:
        return LiveDisplay()

    return PlainDisplay(sys.stderr, brief=as_json)
