"""Fixtures for all tests, and the loud count of what was skipped."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings
from iolab.machines import fork_server
from support import leftovers as _leftovers
from support import prepared
from support.command_line import CommandLine, as_nobody
from support.devices import attach, detach, loops_backed_under, sparse_file
from support.machine_lock import machine_alone, machine_shared

NEEDS_ROOT = "needs root"
MACHINE_BEFORE = pytest.StashKey[_leftovers.Leftovers]()
FIRST_SEEN = pytest.StashKey[dict[str, str]]()
"""The test after which something was first seen on the machine that is nobody's own."""

# For a machine with the devices that tools/test_host.py gives it.
collect_ignore = [] if "IOLAB_TESTS_OF_HOST" in os.environ else ["host"]

# A busy machine is no failure.
settings.register_profile("others", deadline=None)
settings.register_profile("the same", settings.get_profile("others"), derandomize=True, max_examples=20)
settings.load_profile("others")

# What no device is made of lies in memory: storing a run durably waits for a disk more than it computes.
if Path("/dev/shm").is_mount():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")

# The Python that runs the tests is the one that their programs find, not a shim that starts ten shells to choose one.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

# Tables are as wide as the console, and the processes that share the tests are told how wide that is.
os.environ.pop("COLUMNS", None)


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # Until all tests are collected: none of them is garbage, and looking takes a third of the time.
    # A shell starts what runs in its background with SIGINT ignored, and what tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # As in the Makefile: with the long tests, property tests draw other cases each time, and more of them.
    if "not long" in config.option.markexpr:
        settings.load_profile("the same")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Those that have the machine for themselves come first and those that share it last: processes take the tests from
    # several places of the list, so that few of the second wait for the first.
    items.sort(key=_order)
    if os.geteuid() != 0:
        for item in items:
            if item.get_closest_marker("root"):
                item.add_marker(pytest.mark.skip(reason=NEEDS_ROOT))


def pytest_collection_finish(session: pytest.Session) -> None:
    # Seven thousand tests are a heap that every full collection would walk, here and in each process that is forked.
    gc.collect()
    gc.freeze()
    gc.enable()


def _order(item: pytest.Item) -> int:
    if _is_alone(item):
        return 0
    return 2 if _shares_the_machine(item) else 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with machine_alone() if _is_alone(item) else machine_shared() if _shares_the_machine(item) else nullcontext():
        result = yield
    if _is_alone(item) or _shares_the_machine(item):
        for found in _leftovers.look_at_machine().items():
            item.config.stash[FIRST_SEEN].setdefault(found, item.nodeid)
    return result


def _is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("machine") is not None


def _shares_the_machine(item: pytest.Item) -> bool:
    return item.get_closest_marker("root") is not None


# What the tests that share the machine have changed all the same shows when all are over.
def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[FIRST_SEEN] = dict.fromkeys(_leftovers.look_at_machine().items(), "the start")
    if not _is_one_of_several(session):
        with machine_shared():
            session.config.stash[MACHINE_BEFORE] = _leftovers.look_at_machine()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    for found, test in getattr(node, "workeroutput", {}).get("first_seen", {}).items():
        node.config.stash[FIRST_SEEN].setdefault(found, test)


def pytest_sessionfinish(session: pytest.Session) -> None:
    first_seen = session.config.stash[FIRST_SEEN]
    if _is_one_of_several(session):
        session.config.workeroutput["first_seen"] = first_seen
        return
    with machine_shared():
        left = _leftovers.difference_after(session.config.stash[MACHINE_BEFORE])
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        # After all else: the end of a log is what is kept of it.
        session.config.add_cleanup(lambda: print(_left_behind(left, first_seen)))


def _left_behind(left: dict[str, list[str]], first_seen: dict[str, str]) -> str:
    lines = [
        f"{kind} {item}, first seen after {first_seen.get(f'{kind} {item}', 'the last test')}"
        for kind, items in left.items()
        for item in items
    ]
    return "\n".join(["FAILED: tests left something behind on the machine:", *lines])


def _is_one_of_several(session: pytest.Session) -> bool:
    return hasattr(session.config, "workerinput")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    count = sum(NEEDS_ROOT in str(report.longrepr) for report in terminalreporter.getreports("skipped"))
    if count:
        terminalreporter.write_line(f"{count} tests skipped because they need root", yellow=True, bold=True)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """On a disk for a test that makes devices, since swap on a device over memory would wait for itself, and for one
    that is marked `disk`: memory has no extents, and lies below /dev."""
    markers = {marker.name for marker in request.node.iter_markers()}
    if not markers & {"machine", "root", "disk"}:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="iolab-test-", dir="/var/tmp", ignore_cleanup_errors=True) as path:
        yield Path(path)


@pytest.fixture
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's iolab keeps its undo journals and scratch files."""
    path = tmp_path / "state"
    path.mkdir()
    monkeypatch.setenv("IOLAB_STATE_DIR", str(path))
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's directory, in which it runs."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def own_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test beside the others takes no lock that one of them could be refused."""
    if not _is_alone(request.node) and not _shares_the_machine(request.node):
        from iolab.machines.system import state

        where = request.getfixturevalue("tmp_path_factory").getbasetemp() / "locks"
        where.mkdir(mode=0o700, exist_ok=True)
        monkeypatch.setattr(state, "locks_directory", lambda: where)


@pytest.fixture(autouse=True)
def prepared_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials' processes come from one that has imported what they need, as they do of a program without threads."""
    monkeypatch.setattr(fork_server, "module_process", SimpleNamespace(start=prepared.start_module))


@pytest.fixture
def kernel_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's directory, in which sys/... and proc/... stand for the kernel's own files."""
    from iolab.machines.system.action import kernel_setting

    def is_setting(path: Path) -> bool:
        return path.is_relative_to(tmp_path) and kernel_setting.is_named_as_setting(
            Path("/") / path.relative_to(tmp_path)
        )

    monkeypatch.setattr(kernel_setting, "is_setting", is_setting)
    return tmp_path


@pytest.fixture
def leftovers(request: pytest.FixtureRequest, tmp_path: Path, state_dir: Path) -> Iterator[None]:
    """Fails the test if the machine is not as it was before."""
    alone = _is_alone(request.node)
    before = _leftovers.look(tmp_path, state_dir)
    yield
    difference = _leftovers.difference_after(before, tmp_path, state_dir, alone=alone)
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
def stack() -> Iterator[ExitStack]:
    """What a test makes and is to end with it."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def loop_device(tmp_path: Path) -> Iterator[Path]:
    """An empty block device of 64 MiB."""
    device = attach(sparse_file(tmp_path / "loop.img", 64 << 20))
    yield device
    if str(device) in loops_backed_under(tmp_path):
        detach(device)
