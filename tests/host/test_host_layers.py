"""Layers on scratch devices of a host: what they hold is verified, and a kill at any step leaves none behind."""

import json
import os
import signal
import traceback
from pathlib import Path
from typing import Any

import pytest
from iolab.machines.system import command, scratch
from iolab.machines.system.undo import UndoJournal
from support.command_line import CommandLine
from support.experiments import experiment
from support.runs import faults, statuses
from support.trials import scratch_target

SETTINGS = """
[settings.none]
[settings.crypt]
layers = [{ kind = "crypt" }]
[settings.crypt_without_workqueues]
layers = [{ kind = "crypt", no_read_workqueue = true, no_write_workqueue = true }]
[settings.deep]
layers = [{ kind = "linear" }, { kind = "raid", level = 5, members = 3, bitmap = "64KiB" }, { kind = "striped" }]
[settings.thin]
layers = [{ kind = "thin" }, { kind = "cache" }]
[settings.journal]
layers = [{ kind = "dm_raid", members = 3, journal = "writeback", journal_size = "8MiB" }]
[settings.mirrors]
layers = [{ kind = "raid", level = 10, members = 4 }, { kind = "delay", delay = "1ms" }]
"""
WORKLOAD = """
[workloads.writes]
read_percent = 50
verify = true
file_size = "4MiB"
operations = 200
"""
STACKS = (
    '[{"kind": "crypt"}, {"kind": "raid", "level": 5, "members": 3, "bitmap": "64KiB"}, {"kind": "linear"}]',
    '[{"kind": "raid", "level": 1, "members": 2}, {"kind": "striped"}]',
    '[{"kind": "thin"}, {"kind": "writecache"}]',
    '[{"kind": "dm_raid", "members": 3, "journal": "writeback", "journal_size": "8MiB"}, {"kind": "striped"}]',
)


def make_and_die(layers: list[dict[str, object]], place: Path, at: int) -> int:
    """Makes a scratch device in a child, which is killed after that many steps; its exit status, negative if killed."""
    child = os.fork()
    if child == 0:
        try:
            _make(layers, place, at)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _make(layers: list[dict[str, object]], place: Path, at: int) -> None:
    steps_left = iter(range(at - 1, -1, -1))

    def dying(function: Any) -> Any:
        def step(*given: Any, **named: Any) -> Any:
            done = function(*given, **named)
            if next(steps_left) == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return step

    for owner, name in ((UndoJournal, "before"), (command, "run"), (Path, "write_text")):
        setattr(owner, name, dying(getattr(owner, name)))
    target = scratch_target(size_bytes=32 << 20, filesystem=None, backing_directory=str(place), layers=layers)
    with UndoJournal.open() as undo:
        scratch.make(target, undo)


def left(scratch: Path) -> list[str]:
    """The devices and files that iolab made."""
    mapped = (file.read_text().strip() for file in Path("/sys/block").glob("dm-*/dm/name"))
    arrays = (path.name for path in Path("/sys/block").glob("md_iolab_*"))
    files = (file.read_text().strip() for file in Path("/sys/block").glob("loop*/loop/backing_file"))
    loops = (file for file in files if str(scratch) in file)
    return [*(name for name in mapped if name.startswith("iolab_")), *arrays, *loops, *map(str, scratch.iterdir())]


def test_what_layers_hold_is_verified_and_nothing_of_them_stays(iolab: CommandLine, tmp_path: Path) -> None:
    place = tmp_path / "scratch"
    place.mkdir()
    target = f'kind = "scratch"\nsize = "32MiB"\nfilesystem = "none"\nbacking = "{place}"'
    iolab.write("e.toml", experiment(target, workload=WORKLOAD, settings=SETTINGS, rounds=1))
    iolab("run", "e.toml", "--out", "run")
    assert set(statuses(iolab.cwd / "run")) == {"ok"}, faults(iolab.cwd / "run")
    assert left(place) == []


@pytest.mark.parametrize(("first", "stack"), list(enumerate(STACKS, start=1)))
def test_a_kill_at_any_step_leaves_no_layer_behind(iolab: CommandLine, tmp_path: Path, first: int, stack: str) -> None:
    """At every fourth: what the stacks have in common, at each of its steps in one of them."""
    place = tmp_path / "scratch"
    place.mkdir()
    layers = json.loads(stack)
    steps = first
    while (status := make_and_die(layers, place, steps)) == -signal.SIGKILL:
        iolab("restore")
        assert left(place) == [], f"killed after step {steps}"
        steps += len(STACKS)
    assert status == 0
    assert steps > 20
    assert left(place) == []
