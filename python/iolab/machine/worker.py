"""The main of the child process that runs one trial.

The first line of standard input is the trial; standard output gets JSON lines: {"progress": ...} and, last, {"record":
...} or {"error": ...}. When standard input closes (the parent stopped it or died), or on SIGTERM, SIGINT or SIGHUP, the
trial is stopped, everything is restored and the process ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import asdict
from types import FrameType
from typing import Any

from iolab.errors import IolabError, MachineError
from iolab.executor import Progress, error_to_json


def main() -> int:
    """Runs the trial on standard input; 0 when the answer was a record."""
    stop = threading.Event()
    _stop_on_signals(stop)
    line = sys.stdin.buffer.readline()
    threading.Thread(target=_stop_when_input_closes, args=(stop,), daemon=True).start()
    answer = _answer(line, stop)
    _say(answer, stop)
    return 0 if "record" in answer else 1


def _answer(line: bytes, stop: threading.Event) -> dict[str, Any]:
    from iolab.machine import host
    from iolab.trial import Trial

    def on_progress(progress: Progress) -> None:
        _say({"progress": asdict(progress)}, stop)

    try:
        trial = Trial.model_validate_json(line)
        record = host.execute(trial, on_progress=on_progress, should_stop=stop.is_set, locked=True)
        return {"record": record.model_dump(mode="json")}
    except IolabError as error:
        return {"error": error_to_json(error)}
    except OSError as error:
        return {"error": error_to_json(MachineError(error.strerror or str(error), where=error.filename))}


def _stop_on_signals(stop: threading.Event) -> None:
    def request_stop(number: int, frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, request_stop)


def _stop_when_input_closes(stop: threading.Event) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    stop.set()


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
