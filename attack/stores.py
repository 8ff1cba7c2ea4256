"""Damaged stores: files cut, flipped, swapped, gone; lines of the journal changed; values of every wrong type.

What is shown of a trial is what was measured, or the trial is left out with a line that reports it; the rest is shown.
"""

import json
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from family import Family
from in_child import lane_of
from mutate import VALUES, mutated

EXPERIMENT = """\
rounds = 4
seed = 5
[target]
kind = "directory"
path = "."
[workloads.load]
engine = "null"
read_percent = 50
file_size = "1MiB"
duration = "5ms"
interval = "5ms"
[settings.a]
[settings.b]
workload = { queue_depth = 2 }
"""
TRIALS = 8
RESUMED = 0.12
"""The share of cases that are resumed: starting a process takes most of their time."""
READERS = (["show"], ["compare"], ["report", "-o", "report.html"], ["show", "--as", "json"], ["explain"])


@dataclass
class Damage:
    trials: set[int] = field(default_factory=set)
    """Whose file or line was touched."""
    whole: bool = False
    """Something that all depend on was touched."""
    said: str = ""


class Cases:
    """In the child."""

    def __init__(self, seed: int, directory: Path) -> None:
        from child import call

        self.call = call
        self.seed = seed
        self.directory = directory
        self.sound = directory / "sound"
        self.run = directory / "run"
        if not self.sound.exists():
            (directory / "experiment.toml").write_text(EXPERIMENT)
            outcome, wrong = call("run", str(directory / "experiment.toml"), "--out", str(self.sound))
            if wrong or outcome.status:
                raise RuntimeError(f"no run to damage: {outcome.text}")
        self.rows = self._rows(self.sound)
        assert len(self.rows) == TRIALS

    def __call__(self, case: int) -> list[str]:
        rng = random.Random(f"{self.seed} stores {case}")
        self._copy()
        damage = Damage()
        for _ in range(rng.choice([1, 1, 1, 2])):
            rng.choice(KINDS)(self.run, rng, damage)
        if rng.random() < 0.3:
            shutil.rmtree(self.run / "index", ignore_errors=True)
        wrong = self._shown(damage)
        reader, *options = rng.choice(READERS)
        wrong += self.call(
            reader, str(self.run), *(f"{self.directory}/{one}" if "." in one else one for one in options)
        )[1]
        if rng.random() < RESUMED:
            wrong += self._resumed(damage)
        return [f"{line} [{damage.said.strip()}]" for line in wrong]

    def _copy(self) -> None:
        _remove(self.run)
        shutil.copytree(self.sound, self.run)

    def _shown(self, damage: Damage) -> list[str]:
        outcome, wrong = self.call("show", str(self.run), "--as", "csv")
        if outcome.status:
            if not damage.whole:
                wrong.append(f"nothing is shown for the sake of one trial: {outcome.stderr[-300:]!r}")
            return wrong
        return wrong + self._compared(_table(outcome.stdout), damage)

    def _compared(self, rows: dict[str, dict[str, str]], damage: Damage) -> list[str]:
        wrong = []
        for trial, sound in self.rows.items():
            row = rows.get(trial)
            if row is None:
                if int(trial) not in damage.trials and not damage.whole:
                    wrong.append(f"trial {trial} is not shown, and nothing of it was damaged")
            elif int(trial) not in damage.trials and (other := _different(row, sound)):
                wrong.append(f"wrong number: trial {trial} {other}")
        strangers = {one for one in rows if one not in self.rows and not damage.whole}
        return wrong + [f"trials that never were: {sorted(strangers)[:3]}"] * bool(strangers)

    def _resumed(self, damage: Damage) -> list[str]:
        outcome, wrong = self.call("run", "--resume", str(self.run), statuses=(0, 1, 2, 3))
        if outcome.status in (2, 3) or wrong:
            return wrong
        again, more = self.call("show", str(self.run), "--as", "csv")
        rows = _table(again.stdout) if again.status == 0 else {}
        if set(self.rows) - set(rows):
            more.append(f"resumed, and only trials {sorted(rows)} are there")
        return more + self._compared(rows, Damage(damage.trials, whole=True))

    def _rows(self, run: Path) -> dict[str, dict[str, str]]:
        outcome, wrong = self.call("show", str(run), "--as", "csv")
        assert not wrong, wrong
        return _table(outcome.stdout)


def _table(text: str) -> dict[str, dict[str, str]]:
    """Trial -> column -> cell."""
    import csv

    return {row["trial"]: row for row in csv.DictReader(text.splitlines())}


def _different(row: dict[str, str], sound: dict[str, str]) -> str:
    """The first cell that differs; a column that only some trials have may be missing."""
    for name, value in sound.items():
        if row.get(name, value) != value:
            return f"{name} is {row[name]}, was {value}"
    return ""


def _trial_file(run: Path, rng: random.Random, damage: Damage) -> Path | None:
    files = sorted((run / "trials").glob("*.parquet"))
    if not files:
        return None
    chosen = rng.choice(files)
    damage.trials.add(int(chosen.stem))
    return chosen


def _file_changed(run: Path, rng: random.Random, damage: Damage) -> None:
    path = _trial_file(run, rng, damage)
    if path is not None and path.is_file():
        path.write_bytes(mutated(path.read_bytes(), rng, []))
        damage.said += f" changed {path.name}"


def _file_flipped(run: Path, rng: random.Random, damage: Damage) -> None:
    """Not in length."""
    path = _trial_file(run, rng, damage)
    if path is not None and path.is_file() and path.stat().st_size:
        content = bytearray(path.read_bytes())
        for _ in range(rng.choice([1, 3, 40])):
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        damage.said += f" flipped bits in {path.name}"


def _file_gone(run: Path, rng: random.Random, damage: Damage) -> None:
    path = _trial_file(run, rng, damage)
    if path is None or not path.is_file():
        return
    path.unlink()
    kind = rng.randrange(5)
    if kind == 1:
        path.mkdir()
    elif kind == 2:
        path.write_bytes(b"")
    elif kind == 3:
        path.symlink_to(rng.choice(["/dev/zero", "nowhere", str(path), "/dev/full"]))
    elif kind == 4:
        import os

        os.mkfifo(path)
    damage.said += f" replaced {path.name} ({kind})"


def _files_swapped(run: Path, rng: random.Random, damage: Damage) -> None:
    one, other = _trial_file(run, rng, damage), _trial_file(run, rng, damage)
    if one and other and one.is_file() and other.is_file():
        first, second = one.read_bytes(), other.read_bytes()
        one.write_bytes(second)
        if rng.random() < 0.5:
            other.write_bytes(first)
        damage.said += f" swapped {one.name} and {other.name}"


def _file_unlisted(run: Path, rng: random.Random, damage: Damage) -> None:
    """Changed, and its line gone: what reads it has nothing to hold it against."""
    path = _trial_file(run, rng, damage)
    if path is None:
        return
    lines = _lines(run)
    needle = f'"trial":{int(path.stem)},'.encode()
    _write_lines(run, [line for line in lines if needle not in line or b"trial_finished" not in line])
    _file_changed_in_place(path, rng)
    damage.said += f" unlisted and changed {path.name}"


def _file_changed_in_place(path: Path, rng: random.Random) -> None:
    if path.is_file():
        path.write_bytes(mutated(path.read_bytes(), rng, []))


def _line_changed(run: Path, rng: random.Random, damage: Damage) -> None:
    lines = _lines(run)
    at = rng.randrange(len(lines))
    _touches(lines[at], damage)
    lines[at] = mutated(lines[at], rng, lines)
    _write_lines(run, lines)
    damage.said += f" changed line {at + 1} of the journal"


def _lines_moved(run: Path, rng: random.Random, damage: Damage) -> None:
    lines = _lines(run)
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(4)
    for one in (at, other):
        _touches(lines[one], damage)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(other, lines[at])
    elif kind == 2:
        lines[at], lines[other] = lines[other], lines[at]
    else:
        for line in lines[at:]:
            _touches(line, damage)
        lines = lines[:at]
    _write_lines(run, lines)
    damage.said += f" moved lines {at + 1} and {other + 1} of the journal ({kind})"


def _value_wrong(run: Path, rng: random.Random, damage: Damage) -> None:
    """A value of another type, in a line without a checksum, as older versions wrote them."""
    lines = _lines(run)
    at = rng.randrange(len(lines))
    with suppress(ValueError):
        entry = json.loads(lines[at])
        if not isinstance(entry, dict) or not entry:
            return
        _touches(lines[at], damage)
        key = rng.choice(list(entry))
        entry[key] = rng.choice(VALUES)
        if key == "trial" and isinstance(entry[key], int):
            damage.trials.add(entry[key])
        for name in [name for name in entry if name in CHECKSUMS]:
            if rng.random() < 0.5:
                del entry[name]
        lines[at] = json.dumps(entry, ensure_ascii=False).encode(errors="replace")
        _write_lines(run, lines)
        damage.said += f" {key} = {str(entry.get(key))[:20]!r} in line {at + 1} of the journal"


def _journal_cut(run: Path, rng: random.Random, damage: Damage) -> None:
    path = run / "journal.jsonl"
    content = path.read_bytes() if path.is_file() else b""
    if not content:
        return
    at = rng.randrange(len(content) + 1)
    path.write_bytes(content[:at])
    damage.whole = True
    damage.said += f" cut the journal at {at}"


def _other_file(run: Path, rng: random.Random, damage: Damage) -> None:
    path = run / rng.choice(["machine.json", "machine.json", "experiment.toml"])
    if path.is_file():
        path.write_bytes(mutated(path.read_bytes(), rng, []))
        damage.whole = damage.whole or path.name == "experiment.toml"
        damage.said += f" changed {path.name}"


def _something_gone(run: Path, rng: random.Random, damage: Damage) -> None:
    path = run / rng.choice(["machine.json", "experiment.toml", "journal.jsonl", "trials", "index"])
    damage.whole = damage.whole or path.name not in ("machine.json", "index")
    if path.name == "trials":
        damage.trials |= set(range(TRIALS))
    _remove(path)
    kind = rng.randrange(3)
    if kind == 1:
        path.mkdir()
    elif kind == 2:
        path.write_bytes(b"\0" * 100)
    damage.said += f" replaced {path.name} ({kind})"


KINDS: list[Callable[[Path, random.Random, Damage], None]] = [
    *(_file_changed, _file_flipped, _file_gone, _files_swapped, _file_unlisted),
    *(_line_changed, _line_changed, _lines_moved, _value_wrong, _value_wrong),
    *(_journal_cut, _other_file, _something_gone),
]
CHECKSUMS = ("sum",)


def _touches(line: bytes, damage: Damage) -> None:
    """Notes whose line it is; the first lines are everybody's."""
    try:
        event: dict[str, Any] = json.loads(line)
        if event["event"] in ("run_started", "run_resumed"):
            damage.whole = True
        else:
            damage.trials |= {event["trial"]} if "trial" in event else set()
    except (ValueError, KeyError, TypeError):
        damage.whole = True


def _lines(run: Path) -> list[bytes]:
    path = run / "journal.jsonl"
    return (path.read_bytes() if path.is_file() else b"").split(b"\n")


def _write_lines(run: Path, lines: list[bytes]) -> None:
    path = run / "journal.jsonl"
    if not path.is_dir():
        path.write_bytes(b"\n".join(lines))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


FAMILY = Family(
    name="stores",
    what="stored runs with damage, shown, compared, reported and gone on with",
    attacks=2000,
    attacks_quick=25,
    lane=lambda lane: lane_of("stores", lane),
)
