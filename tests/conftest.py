"""Fixtures for all tests, and the loud count of what was skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import leftovers as _leftovers
from support.command_line import CommandLine, as_nobody
from support.devices import attach, detach, loops_backed_under, sparse_file

SKIPPED_WITHOUT_ROOT = pytest.StashKey[int]()
REASON = "needs root"


def pytest_configure(config: pytest.Config) -> None:
    config.stash[SKIPPED_WITHOUT_ROOT] = 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.geteuid() == 0:
        return
    need_root = [item for item in items if item.get_closest_marker("root")]
    for item in need_root:
        item.add_marker(pytest.mark.skip(reason=REASON))
    config.stash[SKIPPED_WITHOUT_ROOT] = len(need_root)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    count = config.stash[SKIPPED_WITHOUT_ROOT]
    if count:
        terminalreporter.write_line(f"{count} tests skipped because they need root", yellow=True, bold=True)


@pytest.fixture
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's iolab keeps its undo journals and scratch files."""
    path = tmp_path / "state"
    path.mkdir()
    monkeypatch.setenv("IOLAB_STATE_DIR", str(path))
    return path


@pytest.fixture
def leftovers(tmp_path: Path, state_dir: Path) -> Iterator[None]:
    """Fails the test if the machine is not as it was before."""
    before = _leftovers.look(tmp_path, state_dir)
    yield
    difference = _leftovers.difference_after(before, tmp_path, state_dir)
    _leftovers.kill_processes(state_dir)
    assert not difference, f"left behind: {difference}"


@pytest.fixture
def iolab(tmp_path: Path, state_dir: Path, leftovers: None) -> CommandLine:
    """The command line, started in the test's directory; afterwards nothing may be left behind."""
    return CommandLine(cwd=tmp_path, state_dir=state_dir)


@pytest.fixture
def iolab_as_nobody(iolab: CommandLine, tmp_path: Path) -> Iterator[CommandLine]:
    """The same as an ordinary user, in a directory of that user's own (pytest's belong to root)."""
    home = Path(f"/tmp/iolab-nobody-{os.getpid()}")
    (home / "state").mkdir(parents=True)
    for path in (home, home / "state"):
        shutil.chown(path, "nobody", "nogroup")
    yield as_nobody(CommandLine(cwd=home, state_dir=home / "state"))
    shutil.rmtree(home)


@pytest.fixture
def loop_device(tmp_path: Path) -> Iterator[Path]:
    """An empty block device of 64 MiB."""
    device = attach(sparse_file(tmp_path / "loop.img", 64 << 20))
    yield device
    if str(device) in loops_backed_under(tmp_path):
        detach(device)
