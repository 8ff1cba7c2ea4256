"""Files that somebody else wrote, changed: experiments, job files, machines, importers' files, undo journals."""

import random
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from family import Family
from in_child import lane_of
from mutate import mutated, mutated_json

TOP = Path(__file__).parents[1]
IMPORTED = sorted((TOP / "tests/imported").glob("*.*")) + sorted((TOP / "docs/samples").glob("*.*"))
EXPERIMENTS = sorted((TOP / "experiments").glob("[ec]*/*.toml"))
MACHINES = sorted((TOP / "machines").glob("*.toml"))
JOBS = sorted((TOP / "experiments").rglob("*.fio"))
SAMPLE_BYTES_MAX = 8 << 10
"""The size of a sample that is changed: a longer one is cut, so that a case takes milliseconds."""
TABLES = ("plain", "plain", "csv", "json", "markdown", "mmtests", "tiobench", "iozone", "fs_mark", "iostest", "cycles")
JOB_FILES = (
    "[global]\nioengine=io_uring\ndirect=1\nsize=128m\nruntime=2\ntime_based\n[r]\nrw=randread\nbs=4k\niodepth=32\n",
    "[global]\nbssplit=4k/60:64k/40\nrwmixread=70\nsize=${SIZE}\n[a]\nrw=randrw\nnumjobs=3\n[b]\nstonewall\nrw=write\n",
    "[w]\nfilename=one:two\nrw=rw\nrate=1m,2m\nthinktime=10\nioengine=libaio\nsize=1g\noffset=1m\nloops=2\n",
    "[l]\nrw=randwrite\nrandom_distribution=zipf:1.2\nverify=crc32c\nblocksize_range=4k-64k\nsize=20%\nfsync=16\n",
)
SIMULATED = '[workloads.w]\npattern = "random"\nfile_size = "1MiB"\nduration = "10ms"\n[settings.a]\n[settings.b]\n'


class Cases:
    """In the child."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.seed = seed
        self.directory = directory
        self.case = directory / "case"
        self.state = directory / "state"
        self.samples = {kind: [_sample(path) for path in paths] for kind, paths in SAMPLES.items()}
        self.samples["job"] += [text.encode() for text in JOB_FILES]
        self.undo = _undo_journals(directory)
        stop_after_planning()
        self.precious = {directory / name: name.encode() * 50 for name in ("mine", "file", "device")}
        for path, content in self.precious.items():
            path.write_bytes(content)

    def __call__(self, case: int) -> list[str]:
        rng = random.Random(f"{self.seed} inputs {case}")
        shutil.rmtree(self.case, ignore_errors=True)
        self.case.mkdir()
        kind = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        make: Callable[[random.Random], list[str]] = getattr(self, f"_{kind}")
        return make(rng)

    def _imported(self, rng: random.Random) -> list[str]:
        path = self._changed("imported", rng, rng.choice(IMPORTED).name)
        command = rng.choices(["show", "compare", "report"], [8, 2, 1])[0]
        if command == "show":
            named = ["--from", rng.choice(_formats())] if rng.random() < 0.1 else []
            return _told("show", str(path), "--as", rng.choice(TABLES), *named)
        if command == "compare":
            return _told("compare", str(path), *(["--json"] if rng.random() < 0.3 else []))
        return _told("report", str(path), "-o", str(self.case / "report.html"))

    def _experiment(self, rng: random.Random) -> list[str]:
        return _told("run", str(self._changed("experiment", rng, "experiment.toml")), statuses=PLANNED)

    def _job(self, rng: random.Random) -> list[str]:
        engine = ["--engine", "fio"] if rng.random() < 0.3 else []
        return _told("run", str(self._changed("job", rng, "job.fio")), *engine, statuses=PLANNED)

    def _machine(self, rng: random.Random) -> list[str]:
        path = self._changed("machine", rng, "machine.toml")
        experiment = self.case / "experiment.toml"
        experiment.write_text(f'machine = "model:{path}"\nrounds = 1\nseed = 1\n{SIMULATED}')
        return _told("run", str(experiment), statuses=PLANNED)

    def _journal(self, rng: random.Random) -> list[str]:
        """A restore never touches what iolab did not make, whatever a damaged journal says."""
        shutil.rmtree(self.state, ignore_errors=True)
        (self.state / "undo").mkdir(parents=True, mode=0o700)
        self.state.chmod(0o700)
        path = self.state / "undo" / "4000000-0badc0de.jsonl"
        path.write_bytes(_changed_lines(rng.choice(self.undo), rng))
        path.chmod(0o600)
        wrong = _told("restore")
        for victim, content in self.precious.items():
            if not victim.exists() or victim.read_bytes() != content:
                wrong.append(f"{victim.name} was changed by a damaged undo journal")
                victim.write_bytes(content)
        return wrong

    def _changed(self, kind: str, rng: random.Random, name: str) -> Path:
        path = self.case / name
        content = rng.choice(self.samples[kind])
        path.write_bytes(
            mutated_json(content, rng)
            if content.startswith(b"{") and rng.random() < 0.5
            else mutated(content, rng, self.samples[kind])
        )
        return path


WEIGHTS = {"imported": 45, "experiment": 25, "job": 12, "machine": 10, "journal": 8}
SAMPLES = {"imported": IMPORTED, "experiment": EXPERIMENTS, "machine": MACHINES, "job": JOBS}
PLANNED = (0, 1, 2, 3, 130)


def stop_after_planning() -> None:
    import iolab.studies.run

    iolab.studies.run.run = planned_only


def planned_only(experiment: Any, *arguments: Any, **options: Any) -> Any:
    """In the place of `iolab.studies.run.run`: everything before the first trial, with the first round planned."""
    from iolab.base.errors import InterruptedRun
    from iolab.studies.run.plan import Plan

    Plan(experiment, 1).check()
    raise InterruptedRun("planned")


def _told(*arguments: str, statuses: tuple[int, ...] = (0, 1, 2, 3)) -> list[str]:
    from child import call

    return call(*arguments, statuses=statuses)[1]


def _formats() -> list[str]:
    from iolab.files.importer.formats import FORMATS

    return list(FORMATS)


def _sample(path: Path) -> bytes:
    content = path.read_bytes()
    if len(content) <= SAMPLE_BYTES_MAX or path.suffix == ".json":
        return content
    return content[: content.rfind(b"\n", 0, SAMPLE_BYTES_MAX) + 1]


def _undo_journals(directory: Path) -> list[bytes]:
    """What runs here wrote to theirs, and one that names files that are somebody's."""
    from iolab.base import checked_lines

    precious: list[dict[str, Any]] = [
        {"action": "RemoveFile", "path": str(directory / "mine")},
        {"action": "TruncateFile", "path": str(directory / "file"), "size_bytes": 0},
        {"action": "RemoveTree", "path": str(directory), "token": "0123456789abcdef"},
        {"action": "WriteFile", "path": str(directory / "device"), "previous": "x"},
        {"action": "Unmount", "path": str(directory)},
        {"action": "DetachLoop", "backing_file": str(directory / "device")},
    ]
    lines: list[dict[str, Any]] = [{"boot_id": "00000000-0000-0000-0000-000000000000", "pid": 1}]
    lines += [{"number": number, **entry} for number, entry in enumerate(precious)]
    made = [_journal_of_a_run(directory, kind) for kind in ("directory", "file")]
    return [one for one in made if one] + [b"".join(map(checked_lines.encode, lines))]


def _journal_of_a_run(directory: Path, kind: str) -> bytes:
    """Its undo journal at its longest, copied while it ran."""
    place = directory / f"{kind}-target"
    if kind == "directory":
        place.mkdir(exist_ok=True)
    experiment = directory / f"{kind}.toml"
    experiment.write_text(f'rounds = 1\nseed = 1\n[target]\nkind = "{kind}"\npath = "{place}"\n{SIMULATED}')
    found, over = [b""], threading.Event()

    def copy() -> None:
        while not over.wait(0.001):
            for path in (directory / "state" / "undo").glob("*.jsonl"):
                with suppress(OSError):
                    found.append(path.read_bytes())

    copying = threading.Thread(target=copy)
    copying.start()
    _told("run", str(experiment), "--out", str(directory / f"{kind}-run"))
    over.set()
    copying.join()
    return max(found, key=len)


def _changed_lines(content: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.5:
        return mutated(content, rng, [content])
    lines = content.splitlines()
    at = rng.randrange(len(lines))
    lines[at] = mutated_json(lines[at], rng)
    return b"\n".join(lines) + b"\n"


FAMILY = Family(
    name="inputs",
    what="experiments, job files, machines, importers' files and undo journals with changes",
    attacks=100_000,
    attacks_quick=200,
    lane=lambda lane: lane_of("inputs", lane),
)
