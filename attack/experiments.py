"""Very short experiments of every kind of target, under settings that change what can be changed."""

import json
import random
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QUEUE: list[Callable[[random.Random], dict[str, Any]]] = [
    lambda rng: {"scheduler": rng.choice(["none", "mq-deadline", "bfq", "kyber"])},
    lambda rng: {"scheduler": {"name": "mq-deadline", "read_expire": rng.choice(["100ms", "200ms"])}},
    lambda rng: {"scheduler": {"name": "bfq", "slice_idle": "0"}},
    lambda rng: {"scheduler": "mq-deadline", "nr_requests": rng.choice([16, 64])},
    lambda rng: {"nomerges": rng.choice([0, 1, 2])},
    lambda rng: {"rq_affinity": rng.choice([0, 1, 2])},
    lambda rng: {"read_ahead_kb": rng.choice([0, 64, 512])},
    lambda rng: {"max_sectors_kb": rng.choice([64, 128])},
]
MACHINE: list[Callable[[random.Random], dict[str, Any]]] = [
    lambda rng: {"dirty_ratio": rng.choice([5, 12, 33])},
    lambda rng: {"dirty_bytes": "64MiB"},
    lambda rng: {"dirty_background_ratio": rng.choice([0, 3, 7])},
    lambda rng: {"dirty_background_bytes": "16MiB"},
]
ANY: list[Callable[[random.Random], dict[str, Any]]] = [
    lambda rng: {"nice": rng.choice([0, 5])},
    lambda rng: {"cpus": [0]},
    lambda rng: {"drop_caches": False},
]
LOAD = """\
[workloads.load]
pattern = "random"
read_percent = {read_percent}
queue_depth = 2
file_size = "1MiB"
duration = "20ms"
interval = "10ms"
"""
GROUPS = """\
[workloads.load]
kind = "iostest"
job = "dr{direction}"
groups = 2
file_size = "1MiB"
duration = "20ms"
interval = "10ms"
drop_caches = false
"""
ROUNDS = 2
SETTINGS = 2


@dataclass(frozen=True)
class Experiment:
    text: str
    trials: int
    prepare: Callable[[], None]
    left: Callable[[], list[str]]
    """What of the target is not as before."""
    clean: Callable[[], None]


def drawn(rng: random.Random, *, place: Path, device: Path, machine: bool) -> Experiment:
    """On `place`, a directory on a disk of its own, on `device`, or on a scratch device; `machine`: may change what is
    nobody's own."""
    kind = rng.choice(["scratch", "scratch", "directory", "file", "file", "device"])
    target, prepare, left, clean = {
        "scratch": _scratch,
        "directory": _directory,
        "file": _file,
        "device": _device,
    }[kind](rng, place, device)
    probes = "[probes]\nblock = true\nswitches = true\n" if machine and rng.random() < 0.25 else ""
    weighted = machine and kind == "scratch" and rng.random() < 0.3
    workload = (
        GROUPS.format(direction=rng.choice("rw"))
        if weighted
        else LOAD.format(read_percent=rng.choice([0, 50] if kind == "file" else [0, 50, 100]))
    )
    text = f"rounds = {ROUNDS}\nseed = {rng.randrange(1000)}\n[target]\n{target}\n{workload}{probes}"
    for name in ("a", "b"):
        text += f"[settings.{name}]\n"
        chosen = {"scheduler": "bfq"} if weighted else _setting(rng, machine)
        text += "".join(f"{key} = {_toml(value)}\n" for key, value in chosen.items())
    return Experiment(text, ROUNDS * SETTINGS, prepare, left, clean)


def _setting(rng: random.Random, machine: bool) -> dict[str, Any]:
    """Thresholds exclude one another, a later choice of the same control replaces an earlier one."""
    found: dict[str, Any] = {}
    for makers in (QUEUE, QUEUE, ANY, *([MACHINE] if machine else [])):
        if rng.random() < 0.7:
            found |= rng.choice(makers)(rng)
    return found


Parts = tuple[str, Callable[[], None], Callable[[], list[str]], Callable[[], None]]


def _scratch(rng: random.Random, place: Path, device: Path) -> Parts:
    filesystem = rng.choice(["ext4", "ext2", "none"])
    return f'kind = "scratch"\nsize = "16MiB"\nfilesystem = "{filesystem}"', _nothing, list, _nothing


def _directory(rng: random.Random, place: Path, device: Path) -> Parts:
    mine = place / "mine"

    def left() -> list[str]:
        other = sorted(path.name for path in place.iterdir() if path.name not in ("mine", "lost+found"))
        kept = mine.read_text() == "untouched" if mine.exists() else False
        return [f"left in the directory: {other}"] * bool(other) + ["somebody's file changed"] * (not kept)

    return f'kind = "directory"\npath = "{place}"', lambda: _write(mine, "untouched"), left, mine.unlink


def _file(rng: random.Random, place: Path, device: Path) -> Parts:
    path = place / "file"
    was_there = rng.random() < 0.5

    def left() -> list[str]:
        if not was_there:
            return [f"{path} is left"] * path.exists()
        return [] if path.exists() and path.stat().st_size == 0 else [f"{path} was empty, and is not now"]

    prepare = (lambda: _write(path, "")) if was_there else _nothing
    return f'kind = "file"\npath = "{path}"', prepare, left, lambda: path.unlink(missing_ok=True)


def _device(rng: random.Random, place: Path, device: Path) -> Parts:
    def clear() -> None:
        subprocess.run(["blkdiscard", "--force", device], capture_output=True, check=False)

    return f'kind = "device"\npath = "{device}"\ndestroy = true', clear, list, clear


def _write(path: Path, text: str) -> None:
    path.write_text(text)


def _nothing() -> None:
    pass


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)
