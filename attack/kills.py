"""Kills at random instants of a command, its preparation and its restoring; of `restore` too.

A case is a command that is killed and gone on with a few times, then finished. After each kill and `restore`:
nothing is left, all is set as before, what was measured is there byte for byte. In the end each trial was measured
once.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from family import Attack, Family, Lane, Outcome
from ground import Ground, digest, ground, ill_told, mounted, run_to_end
from iolab.machines.system import tracefs
from support.devices import MIB, command
from support.leftovers import LASTING_TUNABLES, Leftovers, content, look
from support.runs import events
from victims import Victim, victim

KILLS_PER_CASE = 4
SETTLE_S = 40.0
"""A worker whose parent was killed restores by itself first."""
GONE_S = 5.0
LOOK_S = 3.0
"""So long for the undo journal to grow: some commands change nothing."""
MACHINE_SETTINGS = ("vm/dirty_ratio", "vm/dirty_bytes", "vm/dirty_background_ratio", "vm/dirty_background_bytes")
OTHER_LANES_MAY_CHANGE = {"cgroups", "controllers", "dm_devices", "trace_instances"}


class Kills:
    def __init__(self, own: Ground, disk: Path, bare: Path) -> None:
        self.own = own
        self.disk = disk
        """The device below `place`."""
        self.place = own.directory / "place"
        self.bare = bare
        self.run = own.work / "run"

    def __call__(self, case: int) -> Outcome:
        rng = self.own.lane.random("kills", case)
        chosen = victim(rng, self.own, self.place, self.bare)
        before, files = self._look(), self._settings()
        wrong: list[str] = []
        kills = 0
        kept: dict[str, str] = {}
        for _ in range(KILLS_PER_CASE):
            who = rng.choice(["all", "all", "parent", "worker"])
            killed = self._kill_a_command(rng, who, chosen)
            kills += killed
            if killed and rng.random() < 0.3:
                kills += self._kill_a_restore(rng)
            wrong += self._restored(before, files, chosen)
            wrong += self._kept(kept)
            if not killed or wrong:
                break
        wrong = wrong or self._finished(chosen, kept) + self._restored(before, files, chosen)
        if wrong:
            written = self.own.work / "experiment.toml"
            wrong.append(f"{chosen.begin}: {written.read_text() if written.exists() else ''!r}")
        self._clean(chosen)
        return Outcome(kills, wrong)

    def _start(self, chosen: Victim) -> subprocess.Popen[str]:
        return self.own.iolab.start_program(*(chosen.go_on if chosen.made.exists() else chosen.begin))

    def _kill_a_command(self, rng: random.Random, who: str, chosen: Victim) -> int:
        """1, or 0 when it was over before."""
        entries = rng.choice([0, 1, 1, 2, 3, 4, 6, 8, 12])
        delay_s = rng.uniform(0.0, 0.15) if entries else rng.uniform(0.0, 1.5)
        give_up = time.monotonic() + LOOK_S
        with self._start(chosen) as process:
            while process.poll() is None and _entries(self.own.state) < entries and time.monotonic() < give_up:
                time.sleep(0.002)
            time.sleep(delay_s)
            killed = process.poll() is None
            if killed:
                _kill(process, who, self.own.state)
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=SETTLE_S)
        self._settle()
        return int(killed)

    def _kill_a_restore(self, rng: random.Random) -> int:
        with self.own.iolab.start_program("restore") as process:
            time.sleep(rng.uniform(0.05, 0.35))
            killed = process.poll() is None
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        self._settle()
        return int(killed)

    def _settle(self) -> None:
        give_up = time.monotonic() + SETTLE_S
        while look_processes(self.own.state) and time.monotonic() < give_up:
            time.sleep(0.02)

    def _restored(self, before: Leftovers, settings: dict[Path, str], chosen: Victim) -> list[str]:
        wrong = ill_told(run_to_end(self.own.iolab, "restore"), statuses=(0,))
        give_up = time.monotonic() + GONE_S
        while True:
            found = self._differences(before, settings, chosen)
            if not found or time.monotonic() > give_up:
                return wrong + found
            time.sleep(0.05)

    def _differences(self, before: Leftovers, settings: dict[Path, str], chosen: Victim) -> list[str]:
        found = [f"left behind: {kind} {items}" for kind, items in self._look().since(before).items()]
        found += [
            f"{path} is {content(path)!r}, was {value!r}" for path, value in settings.items() if content(path) != value
        ]
        found += [f"undo journal left: {path.name}" for path in (self.own.state / "undo").glob("*.jsonl")]
        for name in ("scratch", "mounts", "guests"):
            found += [f"left in the state directory: {path}" for path in (self.own.state / name).glob("*")]
        return found + chosen.left()

    def _look(self) -> Leftovers:
        found = look(self.own.work, self.own.state)
        scratch = look(self.own.state, self.own.state)
        everything = {name: getattr(found, name) | getattr(scratch, name) for name in Leftovers.__dataclass_fields__}
        everything["trace_instances"] = frozenset(map(str, tracefs.instances("iolab*")))
        if not self.own.lane.has_the_machine:
            everything |= dict.fromkeys(OTHER_LANES_MAY_CHANGE, frozenset())
        return Leftovers(**everything)

    def _settings(self) -> dict[Path, str]:
        queues = [Path("/sys/block", device.name, "queue") for device in (self.disk, self.bare)]
        paths = [queue / name for queue in queues for name in (*LASTING_TUNABLES, "read_ahead_kb", "max_sectors_kb")]
        if self.own.lane.has_the_machine:
            paths += [Path("/proc/sys", name) for name in MACHINE_SETTINGS]
        return {path: content(path) for path in paths}

    def _kept(self, kept: dict[str, str]) -> list[str]:
        """Trials that finished well stay as they are."""
        wrong = []
        for name, before in kept.items():
            path = self.run / "trials" / name
            if not path.exists():
                wrong.append(f"a finished trial is gone: {name}")
            elif digest(path) != before:
                wrong.append(f"a finished trial changed: {name}")
        for event in events(self.run, "trial_finished"):
            name = f"{event['trial']:06d}.parquet"
            if event["status"] == "ok" and name not in kept and (self.run / "trials" / name).exists():
                kept[name] = digest(self.run / "trials" / name)
        return wrong

    def _finished(self, chosen: Victim, kept: dict[str, str]) -> list[str]:
        outcome = chosen.end(chosen.go_on if chosen.made.exists() else chosen.begin, self.own)
        return chosen.finished(outcome) + self._kept(kept)

    def _clean(self, chosen: Victim) -> None:
        self.own.clear()
        chosen.clean()


def _kill(process: subprocess.Popen[str], who: str, state: Path) -> None:
    workers = [int(line.split()[0]) for line in look_processes(state)]
    victims = {
        "all": [process.pid, *workers],
        "parent": [process.pid],
        "worker": [pid for pid in workers if pid != process.pid] or [process.pid],
    }[who]
    for number in (signal.SIGSTOP, signal.SIGKILL):  # so that none sees another die
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def look_processes(state: Path) -> list[str]:
    """iolab's, with this state directory; those that are dead already and not waited for have no environment."""
    wanted = f"IOLAB_STATE_DIR={state}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                found.append(process.name)
    return found


def _entries(state: Path) -> int:
    """How many lines all undo journals have."""
    lines = 0
    for path in (state / "undo").glob("*.jsonl"):
        with suppress(OSError):
            lines += path.read_bytes().count(b"\n")
    return lines


@contextmanager
def lane(lane: Lane) -> Iterator[Attack]:
    with ground(lane) as own:
        disk = own.device("disk.img", 64 * MIB)
        bare = own.device("bare.img", 16 * MIB)
        command("mkfs.ext4", "-q", disk)
        with mounted(disk, own.directory / "place"):
            yield Kills(own, disk, bare)


FAMILY = Family(
    name="kills",
    what="commands and restores killed at random instants: run, tune, bisect, replay, record, serve, guest",
    attacks=500,
    attacks_quick=5,
    lane=lane,
    needs_root=True,
)
