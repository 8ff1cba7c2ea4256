"""Signals that ask to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stop_flag() -> Iterator[threading.Event]:
    """An event that the signals to stop set while the context lasts. Outside the main thread nothing sets it."""
    flag = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return

    def raise_flag(_signal: int, _frame: FrameType | None) -> None:
        flag.set()

    before = {number: signal.signal(number, raise_flag) for number in STOP_SIGNALS}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
