"""A trial in a thread of its own, watched by the main thread: when it is to stop and waits for a device without end,
the main thread undoes what it changed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from iolab.base.errors import MachineError
from iolab.domain.executor import Answer, error_to_json
from iolab.machines.system import life
from iolab.machines.system.undo import UndoJournal

POLL_S = 0.1
QUIET_S = 1.0
"""A trial that is to stop, and that shows no sign of life for so long, is stuck."""
STOP_PATIENCE_S = 30.0
"""One that does, but has not begun to restore by then, is given up as well."""


def watch(trial: Callable[[], Answer], stop: threading.Event) -> Answer:
    """The trial's answer; {"error": ..., "stuck": true} of one that was given up: its thread still waits in the kernel,
    and this process should end."""
    answers: list[Answer] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(trial())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    signs = life.Watch()
    asked_s: float | None = None
    while thread.is_alive():
        thread.join(POLL_S)
        if not stop.is_set():
            continue
        asked_s = asked_s or time.monotonic()
        signs.look([os.getpid()], without_thread=threading.main_thread().native_id)
        journal = UndoJournal.latest
        if journal is not None and journal.restoring:
            asked_s = time.monotonic()  # each change has its own time limit
        elif signs.quiet_s > QUIET_S or time.monotonic() - asked_s > STOP_PATIENCE_S:
            return _given_up(signs, journal)
    if failures:
        raise failures[0]
    return answers[0]


def _given_up(signs: life.Watch, journal: UndoJournal | None) -> Answer:
    who = life.description(signs.stuck())
    problems = journal.take_over()[1] if journal is not None else []
    stays = "".join(f"; not restored: {problem}" for problem in problems)
    error = MachineError(f"does not stop: {who or 'it shows no sign of life'}{stays}", where=f"process {os.getpid()}")
    return {"error": error_to_json(error), "stuck": True}
