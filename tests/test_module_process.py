"""A child that is a fork of this process is as good as a new Python."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from iolab.machines import module_process

LOOK = """
import json, os, signal, socket, sys
channel = socket.socket(fileno=int(sys.argv[-1]))
channel.send(json.dumps({
    "arguments": sys.argv[1:],
    "command": open("/proc/self/cmdline").read().rstrip(chr(0)).split(chr(0)),
    "descriptors": sorted(map(int, os.listdir("/proc/self/fd")))[:-1],
    "streams": [os.readlink(f"/proc/self/fd/{n}") for n in (0, 1)],
    "environment": sorted(os.environ),
    "handled": [n for n in signal.valid_signals() if callable(signal.getsignal(n)) and n != signal.SIGINT],
    "name": __name__,
    "places": sys.path,
}).encode())
"""
PARENT = """
import os, signal, socket, sys, tempfile
sys.path.insert(1, {directory!r})
from iolab.machines import module_process
signal.signal(signal.SIGTERM, lambda *_: None)
held = tempfile.TemporaryFile()
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
{before}
child = module_process.start("look", ["a", str(theirs.fileno())], theirs.fileno())
theirs.close()
print(type(child).__name__, ours.recv(1 << 16).decode())
child.wait()
assert child.poll() is not None
"""


def observation(tmp_path: Path, before: str = "", **environment: str) -> tuple[str, dict[str, list[object]]]:
    """The kind of child, and what it saw."""
    (tmp_path / "look.py").write_text(LOOK)
    text = textwrap.dedent(PARENT).format(directory=str(tmp_path), before=before)
    program = tmp_path / "parent.py"
    program.write_text(text)
    here = {name: text for name, text in os.environ.items() if not name.startswith(module_process.AT_START)}
    given = {**here, "PYTHONPATH": str(tmp_path), **environment}
    done = subprocess.run([sys.executable, str(program)], env=given, capture_output=True, text=True, check=True)
    kind, text = done.stdout.split(maxsplit=1)
    return kind, json.loads(text)


def test_the_child_has_what_a_new_python_has(tmp_path: Path) -> None:
    forked_kind, forked = observation(tmp_path)
    started_kind, started = observation(tmp_path, before="module_process._may_fork = lambda: False")
    assert (forked_kind, started_kind) == ("Fork", "Popen")
    assert forked.pop("command") == ["look", "a", forked["arguments"][-1]]
    assert started.pop("command")[-3:] == ["look", "a", started["arguments"][-1]]
    assert len(forked["descriptors"]) == len(started["descriptors"])
    assert set(map(str, started.pop("places"))) <= set(map(str, forked.pop("places")))
    del forked["descriptors"], started["descriptors"]  # the number of theirs, not its value, is promised
    assert forked == started


@pytest.mark.parametrize(
    ("before", "environment"),
    [
        ("import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()", {}),
        ("", {"MALLOC_ARENA_MAX": "1"}),
        ("", {"PYTHONHASHSEED": "1"}),
    ],
)
def test_a_fork_that_would_differ_is_a_new_python(tmp_path: Path, before: str, environment: dict[str, str]) -> None:
    assert observation(tmp_path, before, **environment)[0] == "Popen"


def test_what_the_parent_has_not_yet_written_is_written_once(tmp_path: Path) -> None:
    program = tmp_path / "parent.py"
    (tmp_path / "nothing.py").write_text("raise SystemExit")
    program.write_text(
        "import socket, sys\n"
        f"sys.path.insert(1, {str(tmp_path)!r})\n"
        "from iolab.machines import module_process\n"
        "print('once')\n"
        "ours, theirs = socket.socketpair()\n"
        "child = module_process.start('nothing', [], theirs.fileno())\n"
        "child.wait()\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    assert done.stdout == "once\n"
