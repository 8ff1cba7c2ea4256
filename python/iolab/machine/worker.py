"""The main of the child process that runs trials.

Each line of standard input is a trial; standard output gets JSON lines: {"progress": ...} and, last of each trial,
{"record": ...} or {"error": ...}. When standard input closes (the parent stopped it or died), or on SIGTERM, SIGINT or
SIGHUP, the trial is stopped, everything is restored and the process ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import asdict
from queue import SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, Any

from iolab.errors import IolabError, MachineError
from iolab.executor import OnProgress, Progress, ShouldStop, error_to_json

if TYPE_CHECKING:
    from iolab.record import Record
    from iolab.trial import Trial


def main() -> int:
    """Runs the trials on standard input until it closes; 0 when the last answer was a record."""
    stop = threading.Event()
    _stop_on_signals(stop)
    trials: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(trials, stop), daemon=True).start()
    status = 0
    while line := trials.get():
        answer = _answer(line, stop)
        _say(answer, stop)
        status = 0 if "record" in answer else 1
    return status


def _answer(line: bytes, stop: threading.Event) -> dict[str, Any]:
    from iolab.trial import Trial

    def on_progress(progress: Progress) -> None:
        _say({"progress": asdict(progress)}, stop)

    try:
        record = _execute(Trial.model_validate_json(line), on_progress, stop.is_set)
        return {"record": record.model_dump(mode="json")}
    except IolabError as error:
        return {"error": error_to_json(error)}
    except OSError as error:
        return {"error": error_to_json(MachineError(error.strerror or str(error), where=error.filename))}


def _execute(trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
    if trial.model is not None:
        from iolab.machine.model import simulation

        return simulation.execute(trial, on_progress, should_stop)
    from iolab.machine import host

    return host.execute(trial, on_progress=on_progress, should_stop=should_stop, locked=True)


def _stop_on_signals(stop: threading.Event) -> None:
    def request_stop(number: int, frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, request_stop)


def _read(trials: SimpleQueue[bytes], stop: threading.Event) -> None:
    """Hands on line after line, and at the end none."""
    for line in sys.stdin.buffer:
        trials.put(line)
    stop.set()
    trials.put(b"")


def _say(message: dict[str, Any], stop: threading.Event) -> None:
    """A parent that is gone is no reason to die before everything is restored."""
    try:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        stop.set()


if __name__ == "__main__":
    status = main()
    # Not through the interpreter's own exit: flushing a closed standard output would complain.
    os._exit(status)
