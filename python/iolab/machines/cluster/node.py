"""The main of the child process that is a host's node of the cluster: `python -P -m iolab.machines.cluster.node ADDRESS
NAME`.

Starts Ray's own processes and ends them all when its standard input closes, so that none outlives the agent, also when
the agent is killed. Prints `started`, and at the end why it ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

from iolab.base import child_process
from iolab.machines.cluster.environment import environment
from iolab.machines.cluster.message import HOST_RESOURCE

STARTED = "Ray runtime started"
OBJECT_STORE_BYTES = 80 << 20
"""The least that Ray takes: records are small."""
END_S = 5.0
POLL_S = 0.1
KEPT = 50
"""The lines of Ray's message beside the first."""


def main() -> int:
    """Until standard input closes or Ray ends; 1 then."""
    address, name = sys.argv[1:]
    node = subprocess.Popen(
        [
            *(*child_process.python("ray.scripts.scripts"), "start", "--block", "--disable-usage-stats"),
            *("--address", address),
            *("--num-cpus", "0", "--object-store-memory", str(OBJECT_STORE_BYTES)),
            *("--resources", json.dumps({f"{HOST_RESOURCE}{name}": 1})),
        ],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    closed = threading.Event()
    threading.Thread(target=_wait_for_end_of_input, args=(closed,), daemon=True).start()
    output: list[str] = []
    reader = threading.Thread(target=_read, args=(node, output), daemon=True)
    reader.start()
    try:
        while not closed.is_set() and node.poll() is None:
            time.sleep(POLL_S)
    finally:
        _end(node)
    if not closed.is_set():
        reader.join(END_S)  # why it ended may still be in the pipe
        print(_why(output), flush=True)
    return 1


def _why(output: list[str]) -> str:
    """Why Ray did not start. What the processes of a node that ran log as they end is no reason."""
    if any(STARTED in line for line in output):
        return "its node on this host ended"
    return next((line for line in reversed(output) if "rror" in line), output[-1] if output else "it ended")


def _wait_for_end_of_input(closed: threading.Event) -> None:
    # Not through the buffered reader, whose lock a thread that waits would hold when the process ends.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    closed.set()


def _read(node: subprocess.Popen[str], output: list[str]) -> None:
    assert node.stdout is not None
    for line in node.stdout:
        if STARTED in line:
            print("started", flush=True)
            output.insert(0, STARTED)
        if line.strip():
            output.append(" ".join(line.split()))
            del output[1:-KEPT]


def _end(node: subprocess.Popen[str]) -> None:
    """Ray's processes are of the group of the one that was started; the last are killed."""
    with suppress(ProcessLookupError):
        os.killpg(node.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        node.wait(END_S)
    with suppress(ProcessLookupError):
        os.killpg(node.pid, signal.SIGKILL)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    sys.exit(main())
