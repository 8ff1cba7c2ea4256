"""The system's own tools: what they say when they fail, and that one that hangs does not hang a trial."""

import time

import pytest
from iolab.base.errors import MachineError
from iolab.machines.system import command


def test_a_tool_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "TIME_LIMIT_S", 0.2)
    began = time.monotonic()
    with pytest.raises(MachineError, match=r"^/dev/x: sleep 600 did not end within 0.2 s"):
        command.run(["sleep", "600"], package="coreutils", where="/dev/x")
    assert time.monotonic() - began < 300


def test_a_tool_that_fails_says_why() -> None:
    assert command.run(["echo", "done"], package="coreutils", where="here") == "done\n"
    with pytest.raises(command.CommandFailed, match=r"ls /nowhere/at/all failed: .*No such file or directory"):
        command.run(["ls", "/nowhere/at/all"], package="coreutils", where="here")
