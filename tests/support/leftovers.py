"""What a test might leave on the machine: loop devices, mounts, swaps, cgroups and their controllers, tracing
instances, dm devices, tunables, processes.

Only what belongs to the test counts (loop devices whose backing file lies in its directory, processes that carry its
state directory), so that tests don't blame each other or whoever else uses the machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from dataclasses import dataclass, fields
from pathlib import Path

from iolab.machines.system import driver_tags, tracefs
from iolab.machines.system.action import RemoveTraceInstance
from iolab.machines.system.block import device_in

from support.devices import loops_backed_under

LASTING_TUNABLES = ("scheduler", "nomerges", "rq_affinity", "nr_requests")
"""Those that a loop device keeps when it is detached; attaching computes the others anew."""
MOUNTS = Path("/proc/self/mountinfo")
PATIENCE_S = 30.0
NOWHERE = Path("/nonexistent")
OF_THE_MACHINE = frozenset({"cgroups", "controllers", "dm_devices", "tunables"})
"""The kinds of which nothing says which test they are of."""


@dataclass(frozen=True)
class Leftovers:
    loops: frozenset[str]
    mounts: frozenset[str]
    swaps: frozenset[str]
    cgroups: frozenset[str]
    controllers: frozenset[str]
    """Enabled below the root of version 2."""
    trace_instances: frozenset[str]
    dm_devices: frozenset[str]
    tunables: frozenset[tuple[str, str]]
    processes: frozenset[str]

    def items(self) -> list[str]:
        """Each with its kind."""
        return [f"{field.name} {item}" for field in fields(self) for item in getattr(self, field.name)]

    def since(self, before: Leftovers) -> dict[str, list[str]]:
        """What differs from `before`, by kind; empty when all is as it was."""
        added = {field.name: set(getattr(self, field.name) - getattr(before, field.name)) for field in fields(self)}
        known = {path for path, _ in before.tunables}  # of devices that nobody used before either
        added["tunables"] = {(path, value) for path, value in added["tunables"] if path in known}
        return {kind: sorted(map(str, items)) for kind, items in added.items() if items}


def look(directory: Path, state_dir: Path) -> Leftovers:
    loops = frozenset(loops_backed_under(directory))
    return Leftovers(
        loops=loops,
        mounts=frozenset(_mounts(directory, loops)),
        swaps=frozenset(line.split()[0] for line in _lines("/proc/swaps")[1:] if line.split()[0] in loops),
        cgroups=frozenset(_cgroups(state_dir)),
        controllers=frozenset(_controllers()),
        trace_instances=frozenset(map(str, trace_instances(state_dir))),
        dm_devices=frozenset(content(path) for path in Path("/sys/block").glob("dm-*/dm/name")),
        tunables=frozenset(_tunables_of_free_loops()),
        processes=frozenset(f"{pid} {command}" for pid, command in processes_with(state_dir).items()),
    )


def look_at_machine() -> Leftovers:
    """Only what is nobody's own."""
    return look(NOWHERE, NOWHERE)


def difference_after(
    before: Leftovers, directory: Path = NOWHERE, state_dir: Path = NOWHERE, *, alone: bool = True
) -> dict[str, list[str]]:
    """The kernel takes loop devices and processes apart a moment after their last use: this waits a little. A test that
    is not alone with the machine answers only for what is its own."""
    give_up = time.monotonic() + PATIENCE_S
    while True:
        found = look(directory, state_dir).since(before)
        difference = {kind: items for kind, items in found.items() if alone or kind not in OF_THE_MACHINE}
        if not difference or time.monotonic() > give_up:
            return difference
        time.sleep(0.1)


def kill_processes(state_dir: Path) -> None:
    """At one moment: all are stopped first, so that none sees another die and begins to put things back."""
    found = processes_with(state_dir)
    for signal_ in (signal.SIGSTOP, signal.SIGKILL):
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal_)


def trace_instances(state_dir: Path) -> set[Path]:
    """Those that are there now and in an undo journal: what tells them from other tests' is the journal."""
    names = set()
    for journal in (state_dir / "undo").glob("*.jsonl"):
        # A worker that is still taking back its own removes its journal when it has.
        with contextlib.suppress(FileNotFoundError):
            entries = [json.loads(line) for line in _lines(journal) if line.endswith("}")]
            names |= {entry["name"] for entry in entries if entry.get("action") == RemoveTraceInstance.__name__}
    return {found for name in names for found in tracefs.instances(name)}


def _mounts(directory: Path, loops: frozenset[str]) -> list[str]:
    found = []
    for line in _lines(MOUNTS):
        mount_point = line.split()[4]
        source = line.split(" - ")[1].split()[1]
        if mount_point.startswith(f"{directory}/") or source in loops:
            found.append(f"{source} on {mount_point}")
    return found


def _cgroups(state_dir: Path) -> list[str]:
    """Less those with processes of another test's iolab in them."""
    ours = {str(pid) for pid in processes_with(state_dir)}
    found = []
    # Not by glob, which fails when a group goes while it looks.
    for path, _, _ in os.walk("/sys/fs/cgroup"):
        with contextlib.suppress(OSError):
            if "iolab" in Path(path).name and ours.issuperset(_lines(Path(path) / "cgroup.procs")):
                found.append(path)
    return found


def _controllers() -> list[str]:
    roots = [Path(line.split()[4]) for line in _lines(MOUNTS) if " - cgroup2 " in line]
    return [name for root in roots for name in content(root / "cgroup.subtree_control").split()]


def _tunables_of_free_loops() -> list[tuple[str, str]]:
    queues = [queue for queue in Path("/sys/block").glob("loop*/queue") if not (queue.parent / "loop").exists()]
    shown = [(str(queue / name), content(queue / name)) for queue in queues for name in LASTING_TUNABLES]
    return shown + [(str(queue / "tags"), str(driver_tags.of(device_in(queue.parent.resolve())))) for queue in queues]


def processes_with(state_dir: Path) -> dict[int, str]:
    """The command lines, by number, of the processes that were started with this state directory."""
    wanted = f"IOLAB_STATE_DIR={state_dir}".encode()
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (process / "environ").read_bytes().split(b"\0") and process.name != str(os.getpid()):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found[int(process.name)] = command
    return found


def has_files(pid: int) -> bool:
    """Whether a thread of the process may have files open: one is neither gone nor merely waited for."""
    for thread in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            if thread.read_text().rpartition(")")[2].split()[0] not in "ZX":
                return True
    return False


def processes_in(directory: Path) -> list[str]:
    """The command lines of processes whose current directory it is: a process has another number in its own namespace
    than here."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink() == directory and (line := (process / "cmdline").read_bytes()):
                found.append(line.replace(b"\0", b" ").decode())
    return found


def _lines(path: str | Path) -> list[str]:
    return Path(path).read_text().splitlines()


def content(path: Path) -> str:
    """Without the space around it; what opening it gave, if it can't be read."""
    try:
        return path.read_text().strip()
    except OSError as error:
        return f"errno {error.errno}"
