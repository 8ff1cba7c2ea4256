"""The main of a process that does one part of a phase, in a control group of its own.

The first line of standard input is the task. When it says that it is ready, whoever started it moves it into its group;
the second line states when to start on the monotonic clock, which all processes share. Standard output gets JSON lines:
{"ready": ...}, {"progress": ...} and, last, {"record": ...} or {"error": ...}. When standard input closes, it stops; if
that is before the second line, it starts and stops at once, and its record is that of a task that was stopped.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

from iolab import _native
from iolab.base.errors import InputError
from iolab.base.strict_json import JsonObject
from iolab.domain.executor import error_to_json
from iolab.machines.host.load import POLL_S, EngineHandle, refused

NS_PER_S = 1e9


def main() -> int:
    """Does the task; 0 when the answer was a record."""
    task = json.loads(sys.stdin.readline())
    # Loaded before the process is moved: its memory must not count towards the group's.

    memory = _native.Memory()
    _send({"ready": True})
    if line := sys.stdin.readline():
        time.sleep(max(0.0, json.loads(line)["start_monotonic_ns"] / NS_PER_S - time.monotonic()))
    try:
        started = _start(task, memory)
        threading.Thread(target=_stop_when_input_closes, args=(started,), daemon=True).start()
        while (record := started.wait(POLL_S)) is None:
            _send({"progress": json.loads(started.snapshot())})
    except ValueError as error:
        _send({"error": error_to_json(InputError(str(error), where=task["name"]))})
        return 1
    except OSError as error:
        _send({"error": error_to_json(refused(error, task["name"]))})
        return 1
    _send({"record": json.loads(record)})
    return 0


def _start(task: JsonObject, memory: Any) -> EngineHandle:
    spec = json.dumps(task["spec"])
    return _native.Sort.start(spec) if task["work"] == "sort" else _native.Load.start(spec, memory)


def _stop_when_input_closes(started: EngineHandle) -> None:
    # Not through the buffered reader: the main thread's last read may hold its lock.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    started.stop()


def _send(message: JsonObject) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # Not through the interpreter's own exit: a parent that is gone is no reason to complain.
    try:
        status = main()
    except BrokenPipeError:
        status = 1
    os._exit(status)
