"""Devices that stop answering: a frozen filesystem under the target. Ctrl-C ends the run within seconds, nothing waits
without end, and when the device answers again `restore` puts all back.

A process of its own thaws each filesystem after THAW_S, whatever becomes of the kit.
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
from ground import Ground, ground, ill_told, mounted, run_to_end
from support.devices import MIB, attach, command, sparse_file
from support.leftovers import Leftovers, kill_processes, look

THAW_S = 15.0
INTERRUPT_S = 5.0
"""What Ctrl-C may take."""
RESTORE_S = 40.0
PATIENCE = "2s"
"""Given, for each of its few steps, to the `restore` that meets a frozen filesystem: by default it waits longer than
one is frozen here."""
SETTLE_S = 30.0
EXPERIMENT = """\
rounds = 2
seed = 1
[target]
{target}
[workloads.load]
pattern = "random"
read_percent = {read_percent}
file_size = "4MiB"
duration = "1s"
[settings.a]
{setting}
"""


class Hung:
    def __init__(self, own: Ground, frozen: Path, device: Path) -> None:
        self.own = own
        self.frozen = frozen
        """Where a filesystem is mounted that nothing else lives on."""
        self.device = device
        """A loop device on a file in it."""

    def __call__(self, case: int) -> Outcome:
        rng = self.own.lane.random("hung", case)
        kind = ("directory", "device", "scratch")[case % 3]
        text = self._experiment(kind, rng)
        (self.own.work / "experiment.toml").write_text(text)
        before = look(self.own.directory, self.own.state)
        entries = sorted(path.name for path in self.frozen.iterdir())
        wrong = self._frozen_run(rng, ends=rng.choice([signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGKILL]))
        wrong += self._restored(before, entries)
        self.own.clear()
        return Outcome(1, [f"{kind}: {line}" for line in wrong])

    def _experiment(self, kind: str, rng: random.Random) -> str:
        target = {
            "directory": f'kind = "directory"\npath = "{self.frozen}"',
            "device": f'kind = "device"\npath = "{self.device}"\ndestroy = true',
            "scratch": f'kind = "scratch"\nsize = "16MiB"\nbacking = "{self.frozen}"',
        }[kind]
        setting = rng.choice(["", 'scheduler = "mq-deadline"', "nomerges = 2"])
        return EXPERIMENT.format(target=target, read_percent=rng.choice([0, 50]), setting=setting)

    def _frozen_run(self, rng: random.Random, ends: signal.Signals) -> list[str]:
        wrong = []
        with self.own.iolab.start_program("run", "experiment.toml", "--out", "run") as process:
            self._wait_for_journal(process)
            time.sleep(rng.uniform(0.0, 1.2))
            with frozen(self.frozen):
                time.sleep(rng.uniform(0.2, 1.0))
                began = time.monotonic()
                if ends == signal.SIGKILL:
                    kill_processes(self.own.state)
                    wrong += self._restore_meanwhile()
                else:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, ends)
                try:
                    stdout, stderr = process.communicate(timeout=INTERRUPT_S + 1.0)
                except subprocess.TimeoutExpired:
                    wrong.append(f"{ends.name} has not ended the run after {time.monotonic() - began:.1f} s")
            if wrong:
                kill_processes(self.own.state)
            with suppress(subprocess.TimeoutExpired, ValueError):
                stdout, stderr = process.communicate(timeout=SETTLE_S)
                if "Traceback" in stdout + stderr:
                    wrong.append(f"a traceback: {(stdout + stderr)[-300:]!r}")
        return wrong

    def _restore_meanwhile(self) -> list[str]:
        """It may say that it can't, but it reports it before the device answers."""
        began = time.monotonic()
        outcome = run_to_end(self.own.iolab, "restore", "--patience", PATIENCE, time_limit_s=RESTORE_S)
        took = time.monotonic() - began
        waited = [f"restore waited {took:.1f} s for a frozen filesystem"] * (took > THAW_S - 1.0)
        return waited + ill_told(outcome, statuses=(0, 1, 2, 3))

    def _wait_for_journal(self, process: subprocess.Popen[str]) -> None:
        give_up = time.monotonic() + 20
        undo = self.own.state / "undo"
        while process.poll() is None and time.monotonic() < give_up and not list(undo.glob("*.jsonl")):
            time.sleep(0.01)

    def _restored(self, before: Leftovers, entries: list[str]) -> list[str]:
        give_up = time.monotonic() + SETTLE_S
        while look(self.own.directory, self.own.state).processes and time.monotonic() < give_up:
            time.sleep(0.1)
        outcome = run_to_end(self.own.iolab, "restore", time_limit_s=RESTORE_S)
        wrong = ill_told(outcome, statuses=(0,))
        while True:
            found = look(self.own.directory, self.own.state).since(before)
            left = [f"left behind: {kind} {items}" for kind, items in found.items()]
            left += [f"undo journal left: {path.name}" for path in (self.own.state / "undo").glob("*.jsonl")]
            now = sorted(path.name for path in self.frozen.iterdir())
            left += [f"left in the directory: {now}, was {entries}"] * (now != entries)
            if not left or time.monotonic() > give_up:
                return wrong + left
            time.sleep(0.2)


@contextmanager
def frozen(directory: Path) -> Iterator[None]:
    """Never longer than THAW_S: another process sees to that, too."""
    timer = ["sh", "-c", f'sleep {THAW_S}; fsfreeze --unfreeze "{directory}"']
    watch = subprocess.Popen(
        timer, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    command("fsfreeze", "--freeze", directory)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", directory], capture_output=True, check=False)
        with suppress(ProcessLookupError):
            os.killpg(watch.pid, signal.SIGKILL)
        watch.wait()


@contextmanager
def lane(lane: Lane) -> Iterator[Attack]:
    with ground(lane) as own:
        disk = own.device("disk.img", 96 * MIB)
        command("mkfs.ext4", "-q", disk)
        with mounted(disk, own.directory / "frozen") as directory:
            device = attach(sparse_file(directory / "device.img", 16 * MIB))
            try:
                yield Hung(own, directory, device)
            finally:
                own.clear()
                subprocess.run(["losetup", "--detach", device], capture_output=True, check=False)


FAMILY = Family(
    name="hung",
    what="filesystems frozen under a run, which is then interrupted or killed",
    attacks=30,
    attacks_quick=1,
    lane=lane,
    needs_root=True,
    lanes=1,
)
