"""The main of the child process that runs trials.

Each line of standard input is a trial; standard output gets JSON lines: {"progress": ...} and, last of each trial,
{"record": ...}, {"error": ...} or {"defect": ...}. A line {"admit": TRIAL} asks only whether its devices may be written
to; the answer is {"admitted": [what each is known by]}. When standard input closes (the parent stopped it or died), or
on SIGTERM, SIGINT or SIGHUP, the trial is stopped, everything is restored and the process ends.

The argument, if there is one, says for how many seconds undoing a change may show no sign of life. With `--serve FD`
after it, the process only forks workers, for requests on that socket: fork_server.py.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING

from iolab import _native
from iolab.base.errors import IolabError, MachineError
from iolab.base.gc_pause import gc_paused
from iolab.domain.executor import Answer, OnProgress, Progress, ShouldStop, error_to_json
from iolab.domain.trial import DeviceTarget, Trial
from iolab.machines import fork_server
from iolab.machines.host import host
from iolab.machines.host.watchdog import watch
from iolab.machines.system import bounded_call, safety, state

if TYPE_CHECKING:
    from iolab.domain.record import Record

    Execute = Callable[[Trial, OnProgress, ShouldStop], Record]

ADMIT = b'{"admit":'
DEFECT_CHARACTERS_MAX = 1000
ORPHAN_PATIENCE_S = 10.0
"""So long a stopped process may read and prepare what it was given last."""


def main() -> int:
    """Runs the trials on standard input until it closes; 0 when the last answer was a record."""
    if len(sys.argv) > 1:
        bounded_call.set_patience(min(bounded_call.PATIENCE_S, float(sys.argv[1])))
    stop = threading.Event()
    _stop_on_signals(stop)
    trials: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(trials, stop), daemon=True).start()
    status = 0
    while line := trials.get():
        answer = _answer(line, stop)
        _send(answer, stop)
        if answer.get("stuck"):
            return 1
        status = 0 if answer.keys() & {"record", "admitted"} else 1
    return status


def serve(number: int) -> None:
    """Forks workers for requests on this descriptor: returns in each of them. What all need is done once, before."""
    _native.calibrate_clock()
    fork_server.serve(number)


def _answer(line: bytes, stop: threading.Event) -> Answer:
    def on_progress(progress: Progress) -> None:
        _send({"progress": asdict(progress)}, stop)

    try:
        if line.startswith(ADMIT):
            asked = Trial.model_validate_json(line.rstrip()[len(ADMIT) : -1])
            return watch(lambda: _admitted(asked), stop)
        trial = Trial.model_validate_json(line)
        if not trial.is_of_host:
            return _record(trial, on_progress, stop.is_set)
        return watch(lambda: _record(trial, on_progress, stop.is_set), stop)
    except IolabError as error:
        return {"error": error_to_json(error)}
    except OSError as error:
        return {"error": error_to_json(MachineError(error.strerror or str(error), where=error.filename))}
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as defect:  # a panic of the engine is no Exception
        traceback.print_exception(defect)
        return {"defect": _description(defect)}


def _description(defect: BaseException) -> str:
    """What was raised, and where, in a line."""
    frames = traceback.extract_tb(defect.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    message = " ".join(str(defect).split())[:DEFECT_CHARACTERS_MAX]
    return f"{type(defect).__name__}: {message}{where}"


def _admitted(trial: Trial) -> Answer:
    assert isinstance(trial.target, DeviceTarget), "only named devices are asked about"
    return {"admitted": [device.model_dump(mode="json") for device in safety.admit(trial.target)]}


def _record(trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Answer:
    record = _execute(trial, on_progress, should_stop)
    with gc_paused():
        return {"record": record.model_dump(mode="json")}


def _execute(trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
    # A host, whose trials have a process each, imports nothing of what emulates machines.
    emulated = {"guest": "iolab.machines.guest.guest", "model": "iolab.machines.model.simulation"}
    execute: Execute = import_module(emulated[trial.kind]).execute if trial.kind in emulated else _on_this_host
    return execute(trial, on_progress, should_stop)


def _on_this_host(trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
    return host.execute(trial, on_progress=on_progress, should_stop=should_stop, locked=True)


def _stop_on_signals(stop: threading.Event) -> None:
    def request_stop(number: int, frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, request_stop)


def _read(trials: SimpleQueue[bytes], stop: threading.Event) -> None:
    """Hands on line after line, and at the end none. Then nobody waits for an answer any more: a process that is not
    done soon, with nothing to restore, ends here."""
    for line in sys.stdin.buffer:
        trials.put(line)
    stop.set()
    trials.put(b"")
    time.sleep(ORPHAN_PATIENCE_S)
    while _has_something_to_restore():
        time.sleep(1.0)
    os._exit(1)


def _has_something_to_restore() -> bool:
    """Whether this process has an undo journal; without one nothing was changed."""
    return any((state.state_directory() / "undo").glob(f"{os.getpid()}-*.jsonl"))


def _send(message: Answer, stop: threading.Event) -> None:
    """A parent that is gone is no reason to die before everything is restored."""
    try:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        stop.set()


if __name__ == "__main__":
    if sys.argv[2:3] == ["--serve"]:
        serve(int(sys.argv[3]))
    try:
        status = main()
    except BaseException:
        traceback.print_exc()
        status = 1
    # Not through the interpreter's own exit: it would abort because a thread still reads standard input, and flushing a
    # closed standard output would complain.
    sys.stderr.flush()
    os._exit(status)
