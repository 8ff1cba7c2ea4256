"""The main of a process that does one part of a phase, in a control group of its own.

The first line of standard input is the task. When it says that it is ready, whoever started it moves it into its group;
the second line states when to start on the monotonic clock, which all processes share. Standard output gets JSON lines:
{"ready": ...}, {"progress": ...} and, last, {"record": ...} or {"error": ...}. When standard input closes, it stops.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any, Protocol

from iolab import _native
from iolab.base.errors import InputError
from iolab.base.strict_json import JsonObject
from iolab.domain.executor import error_to_json
from iolab.machines.host.load import POLL_S, refused

NS_PER_S = 1e9


class UnderWay(Protocol):
    """What the engine hands out for a load and for a sort alike."""

    def snapshot(self) -> str:
        """JSON of the progress until now."""

    def stop(self) -> None:
        """Asks it to end early; `wait` then has its record."""

    def wait(self, timeout_s: float) -> str | None:
        """JSON of the record, None while running. OSError when the engine broke down."""


def main() -> int:
    """Does the task; 0 when the answer was a record."""
    task = json.loads(sys.stdin.readline())
    # Loaded before the process is moved: its memory must not count towards the group's.

    memory = _native.Memory()
    _say({"ready": True})
    line = sys.stdin.readline()
    if not line:
        return 0
    time.sleep(max(0.0, json.loads(line)["start_monotonic_ns"] / NS_PER_S - time.monotonic()))
    try:
        started = _start(task, memory)
        threading.Thread(target=_stop_when_input_closes, args=(started,), daemon=True).start()
        while (record := started.wait(POLL_S)) is None:
            _say({"progress": json.loads(started.snapshot())})
    except ValueError as error:
        _say({"error": error_to_json(InputError(str(error), where=task["name"]))})
        return 1
    except OSError as error:
        _say({"error": error_to_json(refused(error, task["name"]))})
        return 1
    _say({"record": json.loads(record)})
    return 0


def _start(task: JsonObject, memory: Any) -> UnderWay:
    spec = json.dumps(task["spec"])
    return _native.Sort.start(spec) if task["work"] == "sort" else _native.Load.start(spec, memory)


def _stop_when_input_closes(started: UnderWay) -> None:
    # Not through the buffered reader: the main thread's last read may hold its lock.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    started.stop()


def _say(message: JsonObject) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # Not through the interpreter's own exit: a parent that is gone is no reason to complain.
    try:
        status = main()
    except BrokenPipeError:
        status = 1
    os._exit(status)
