"""Guests that lie: agents that say anything, counters and symbols that are none, kernels that hang or are damaged,
modules in circles, parameters that mean more than they say. QEMU's place is taken by a program that states what a
kernel could have said, but for the kernels with changed headers, which QEMU boots."""

from __future__ import annotations

import json
import lzma
import os
import random
import shlex
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from family import Family
from in_child import lane_of
from mutate import EXTREMES, mutated, mutated_json

if TYPE_CHECKING:
    from iolab.domain.record import Record
    from iolab.domain.trial import Trial

HEAD = 'machine = "guest:{kernel}"\nrounds = 1\nseed = 1\n[target]\nkind = "scratch"\nsize = "64MiB"\n'
LOAD = f"""{HEAD}filesystem = "none"
[workloads.both]
engine = "psync"
file_size = "1MiB"
read_percent = 50
jobs = 2
layout = false
operations = 1000
"""
FILES = f'{HEAD}filesystem = "ext4"\n[workloads.files]\nkind = "fs_mark"\nfiles = 100\nthreads = 2\n'
SORT = f"""{HEAD}
[workloads.sort]
kind = "qsbench"
memory_limit = "32MiB"
processes = 2
share = 80
swap_size = "60MiB"
"""
COUNTED, UNCOUNTED = "[probes]\ninstructions = { chains = true }\n", "[probes]\ninstructions = false\n"
KERNEL = 0xFFFFFFFF81000000
SYMBOLS = b"ffffffff81000000 T entry\nffffffff81000100 t helper\nffffffffc0000000 t read_page\t[null_blk]\n"
ENDLESS = (
    'exec yes \'{"up":"x"}\'',
    'echo \'{"up":"x"}\'; exec yes \'{"step":0,"value":null}\'',
    "exec yes ''",
    "exec cat /dev/zero",
    "exec tr '\\0' '[' < /dev/zero",
    "exec tr '\\0' '\\377' < /dev/zero",
)
HANG_S = 0.2
BOOT_S = 1.0
"""Wall time that a damaged kernel is given."""
LATE_S = 10.0
"""Beyond a trial's limit; a machine may be busy."""
QEMU_NAMES = ("romfile", "drive", "pmrdev", "subsys", "iothread", "failover_pair_id", "addr", "bus", "id", "share-rw")
VALUES: list[Any] = [
    *("/etc/passwd", "x,romfile=/etc/passwd", "1,romfile=/etc/passwd", "on,x=y", "=", ",,", "../x", "a b"),
    *(True, False, 7, -1, 1, 2, "4KiB", "on"),
]


class Cases:
    """In the child."""

    def __init__(self, seed: int, directory: Path) -> None:
        from iolab.machines.guest import programs

        self.seed = seed
        self.case = directory / "case"
        self.cache = directory / "cache"
        os.environ["XDG_CACHE_HOME"] = str(self.cache)
        self.kernel = directory / "kernel"
        self.kernel.write_bytes(b"a kernel")
        self.real_qemu = shutil.which(programs.QEMU)
        programs.agent = programs.counter = lambda: Path("/dev/null")
        programs.qemu = lambda: str(self.case / "qemu")
        programs.pack = lambda archive, name, package: f"/sbin/{name}"
        self.samples = [_sample(text.format(kernel=self.kernel)) for text in (LOAD, FILES, SORT)]

    def __call__(self, case: int) -> list[str]:
        from iolab.base.errors import IolabError

        rng = random.Random(f"{self.seed} guests {case}")
        shutil.rmtree(self.case, ignore_errors=True)
        self.case.mkdir()
        kind = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        make: Callable[[random.Random], list[str]] = getattr(self, f"_{kind}")
        try:
            return [f"{kind}: {line}" for line in make(rng)]
        except IolabError as error:
            # A file has a line for each of its problems, with its place.
            stray = [line for line in str(error).splitlines()[1:] if not line.startswith("guest.toml:")]
            return [f"{kind}: not in a line: {error}"] if stray else []
        except (ArithmeticError, LookupError, OSError, RecursionError, TypeError, ValueError, AttributeError) as defect:
            return [f"{kind}: a defect: {defect!r} at {_place(defect)}"]

    def _said(self, rng: random.Random) -> list[str]:
        """The whole way: what the agent says becomes a run, and its table."""
        text, messages = rng.choice(self.samples)
        self._speaks(rng, _changed(messages, rng))
        return self._told_of_a_run(f"{text}{UNCOUNTED}", rng)

    def _counted(self, rng: random.Random) -> list[str]:
        """Symbols and counts, either or both of them changed."""
        text, messages = self.samples[0]
        known = SYMBOLS if rng.random() < 0.5 else mutated(SYMBOLS, rng, [SYMBOLS])
        loaded = SYMBOLS if rng.random() < 0.5 else mutated(SYMBOLS, rng, [SYMBOLS])
        counts = _counts() if rng.random() < 0.3 else mutated(_counts(), rng, [_counts()])
        said = _lines(messages[:-3], [{"bytes": len(loaded)}]) + loaded + _lines(messages[-2:])
        of_end = _lines([{"step": 0, "value": None}, {"end": True}])
        learnt = _lines([{"up": "x"}, {"bytes": len(known)}]) + known + of_end
        (self.case / "counts").write_bytes(counts)
        (self.case / "learnt").write_bytes(learnt)
        where = 'for word; do case "$word" in *,out=*) out=${word#*,out=}; out=${out%%,*};; esac; done'
        learn = f'[ -n "$out" ] || exec cat {self.case}/learnt; cp {self.case}/counts $out'
        self._speaks(rng, said, f"{where}\n{learn}")
        shutil.rmtree(self.cache, ignore_errors=True)
        return self._told_of_a_run(f"{text}{COUNTED}", rng)

    def _endless(self, rng: random.Random) -> list[str]:
        self._emulator(rng.choice(ENDLESS))
        return _not_failed(self._run(_trial(f"{self.samples[0][0]}{UNCOUNTED}")))

    def _hung(self, rng: random.Random) -> list[str]:
        """After some of what it should say, while symbols are learnt or afterwards."""
        said = _lines(self.samples[0][1][: rng.randrange(6)])
        (self.case / "said").write_bytes(said[: rng.randrange(len(said) + 1)])
        self._emulator(f"cat {self.case}/said; exec tail -f /dev/null")
        shutil.rmtree(self.cache, ignore_errors=True)
        probes = rng.choice([COUNTED, UNCOUNTED])
        return self._within(_trial(f"{self.samples[0][0]}{probes}", HANG_S), HANG_S)

    def _booted(self, rng: random.Random) -> list[str]:
        """By QEMU: a kernel whose header or code is changed."""
        from iolab.machines.guest import programs
        from support.tiny_kernels import image, speaks

        if self.real_qemu is None:
            return []
        kept, programs.qemu = programs.qemu, lambda: str(self.real_qemu)
        try:
            path = image(self.case / "kernel", speaks(self.samples[0][1]))
            content = path.read_bytes()
            path.write_bytes(mutated(content[:64], rng, [content]) + content[64:])
            text = self.samples[0][0].replace(str(self.kernel), str(path))
            return self._within(_trial(f'{text}{UNCOUNTED}[guest]\nmemory = "128MiB"\n', BOOT_S), BOOT_S)
        finally:
            programs.qemu = kept

    def _session(self, rng: random.Random) -> list[str]:
        from iolab.machines.guest import session

        messages = [{"up": "x"}, {"step": 0, "value": {"status": 0}}, {"end": True}]
        where = 'for word; do case "$word" in file,id=agent,path=*) exec > "${word##*=}";; esac; done'
        self._speaks(rng, _changed(messages, rng), where)
        status = session.run(str(self.kernel), ["true"], memory_bytes=2**28, cpus=1, modules=[])
        return [] if isinstance(status, int) and 0 <= status <= 255 else [f"exit status {status!r}"]

    def _modules(self, rng: random.Random) -> list[str]:
        """Needs at random, circles among them; files that are damaged, packed, or none."""
        from iolab.machines.guest.modules import Modules

        directory = self.case / "modules"
        directory.mkdir()
        names = [f"m{number}" for number in range(rng.choice([2, 5, 20, 300]))]
        for number, name in enumerate(names):
            later = names[number + 1 :] if rng.random() < 0.95 else names
            needs = rng.sample(later, min(len(later), rng.choice([0, 1, 1, 2])))
            content = b"\x7fELF\0depends=" + ",".join(needs).encode() + b"\0intree=Y\0"
            packed = rng.random() < 0.2
            content = lzma.compress(content, preset=0) if packed else content
            if rng.random() < 0.05:
                content = mutated(content, rng, [content])
            (directory / f"{name}.ko{'.xz' if packed else ''}").write_bytes(content)
        if rng.random() < 0.2:
            (directory / "modules.builtin").write_bytes(mutated(b"kernel/m1.ko\nkernel/m2.ko\n", rng, []))
        if rng.random() < 0.1:
            (directory / "m0.ko").unlink(missing_ok=True)
            (directory / "m0.ko").symlink_to(rng.choice(["/etc/passwd", "/dev/zero", "m0.ko", "nowhere"]))
        found = [name for name, _ in Modules(directory).needed([names[0], names[-1]])]
        return [] if len(set(found)) == len(found) else ["a module twice"]

    def _parameters(self, rng: random.Random) -> list[str]:
        """Whatever a drive accepts, QEMU is told no path, and nothing beside the property."""
        from iolab.domain.trial.drive_properties import PROPERTIES
        from iolab.files.experiment import loads
        from iolab.machines.guest import guest, qemu

        drive = rng.choice(list(PROPERTIES))
        known = [*PROPERTIES[drive], *QEMU_NAMES]
        given = {}
        for _ in range(rng.choice([1, 1, 3])):
            name = rng.choice(known) + (rng.choice([",x", "=y,romfile", " "]) if rng.random() < 0.2 else "")
            given[name] = rng.choice([*VALUES, rng.choice(EXTREMES).decode(errors="ignore")])
        table = "".join(f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in given.items())
        text = self.samples[0][0].replace(str(self.kernel), "6.1.0-1-cloud")
        experiment = loads(f'{text}[guest]\ndrive = "{drive}"\n[guest.drive_parameters]\n{table}', "guest.toml")
        (trial,) = _round(experiment)
        drives = guest._drives(trial, self.case)
        words = qemu.Board(self.kernel, self.kernel, 1, 2**28, drives=drives).arguments(self.case / "console")
        wrong = []
        for word in (word for word in words if word.startswith(("nvme,", "virtio-blk-pci,"))):
            for name, _, value in (part.partition("=") for part in word.split(",")[1:]):
                if name not in {*PROPERTIES[drive], "drive"} or "/" in value:
                    wrong.append(f"QEMU is told {word!r}")
        return wrong

    def _told_of_a_run(self, text: str, rng: random.Random) -> list[str]:
        from child import call
        from fake_machine import FakeExecutor
        from support.stored import stored_run

        run = self._run

        class Guests(FakeExecutor):
            def run(self, trial: Trial, on_progress: Any, should_stop: Any) -> Record:
                return run(trial)

        stored = stored_run(self.case / "run", text, executor=Guests())
        record = stored.record(0)
        # A sort may fail with a record: the memory was not in order.
        wrong = _not_failed(record) if record.status == "failed" and not record.phases else []
        table = rng.choice(["plain", "json", "csv", "markdown", "symbols", "folded"])
        return [*wrong, *call("show", str(self.case / "run"), "--as", table)[1]]

    def _within(self, trial: Trial, limit_s: float) -> list[str]:
        began = time.monotonic()
        record = self._run(trial)
        took_s = time.monotonic() - began
        late = [f"it took {took_s:.1f} s of {limit_s:g} s"] if took_s > limit_s + LATE_S else []
        return late + ([] if record.status == "ok" else _not_failed(record))

    @staticmethod
    def _run(trial: Trial) -> Record:
        from iolab.machines.guest import guest

        return guest.execute(trial, lambda _: None, lambda: False)

    def _speaks(self, rng: random.Random, said: bytes, before: str = "") -> None:
        (self.case / "said").write_bytes(said)
        self._emulator(f"{before}\nexec cat {shlex.quote(str(self.case / 'said'))}")

    def _emulator(self, commands: str) -> None:
        path = self.case / "qemu"
        path.write_text(f"#!/bin/sh\n{commands}\n")
        path.chmod(0o755)


WEIGHTS = {
    "said": 55,
    "counted": 12,
    "session": 8,
    "modules": 10,
    "parameters": 10,
    "endless": 2,
    "hung": 2,
    "booted": 1,
}


def _sample(text: str) -> tuple[str, list[Any]]:
    """An experiment, and what an honest agent would say in it."""
    from iolab.domain import control
    from iolab.machines.guest import plan
    from iolab.machines.guest.modules import Modules
    from support.agents import answers, record

    trial = _trial(f"{text}{UNCOUNTED}")
    made = plan.make(control.amend(trial), Modules(None))
    records = [record(trial, phase) for phase in made.phases.values()]
    return text, json.loads(json.dumps(answers(made, records)))


def _changed(messages: list[Any], rng: random.Random) -> bytes:
    kind = rng.random()
    if kind < 0.2:
        return mutated(_lines(messages), rng, [_lines(messages)])
    changed = list(messages)
    for _ in range(rng.choice([1, 1, 1, 2])):
        at, other = rng.randrange(len(changed)), rng.randrange(len(changed))
        if kind < 0.8:
            # What phases told is most of what there is to lie about.
            values = [one.get("value") if isinstance(one, dict) else None for one in changed]
            told = [number for number, one in enumerate(values) if isinstance(one, dict) and "record" in one]
            at = rng.choice(told) if told and rng.random() < 0.7 else at
            if kind < 0.4:
                changed[at] = _odd(changed[at], rng)
                continue
            text = mutated_json(json.dumps(changed[at]).encode(), rng)
            try:
                changed[at] = json.loads(text)
            except ValueError:
                return _lines(changed[:at]) + text + b"\n" + _lines(changed[at + 1 :])
        elif kind < 0.9:
            changed.insert(at, changed[other])
        else:
            del changed[at]
            changed = changed or [None]
    return _lines(changed)


def _odd(message: Any, rng: random.Random) -> Any:
    """With other numbers, some of which a guest may well tell, and with lists that are empty."""
    made = json.loads(json.dumps(message))
    places: list[tuple[Any, Any]] = []
    left = [made]
    while left:
        holder = left.pop()
        for key in holder if isinstance(holder, dict) else range(len(holder)):
            places += [(holder, key)] if type(holder[key]) in (int, float, list) else []
            left += [holder[key]] if isinstance(holder[key], dict | list) else []
    for holder, key in rng.sample(places, min(len(places), rng.choice([1, 2, 10]))):
        value = holder[key]
        holder[key] = [] if isinstance(value, list) else rng.choice([0, 1, value + 1, value * 1000, 2**53, 2**53 - 1])
    return made


def _lines(*messages: list[Any]) -> bytes:
    return "".join(f"{json.dumps(one)}\n" for part in messages for one in part).encode()


def _counts() -> bytes:
    """As the counter writes them: two functions, two chains."""
    blocks = [(0x401000, 7, 10), (KERNEL, 3, 100), (KERNEL + 0x100, 2, 50)]
    chains = [(0, 70, 0), (KERNEL, 300, 0), (KERNEL + 0x100, 100, 1)]
    header = struct.pack("<10Q", int.from_bytes(b"iocount3", "little"), len(blocks), 70, 0, 0, 0, 1, 2, 3, len(chains))
    of_blocks = b"".join(struct.pack("<QIIQ", start, 4, count, times) for start, count, times in blocks)
    of_chains = b"".join(struct.pack("<QQII", *chain, 0) for chain in chains)
    return header + of_blocks + of_chains + b"\1" * sum(count for _, count, _ in blocks)


def _trial(text: str, limit_s: float = 60.0) -> Trial:
    from iolab.files.experiment import loads

    (trial,) = _round(loads(text, "guest.toml"))
    assert trial.guest is not None
    return trial.model_copy(update={"guest": trial.guest.model_copy(update={"time_limit_ns": int(limit_s * 1e9)})})


def _round(experiment: Any) -> list[Trial]:
    from iolab.studies.run.plan import Plan

    return list(Plan(experiment, 1).round(0))


def _not_failed(record: Record) -> list[str]:
    """What is wrong with how a guest's end is told: in one line of a failed trial, which says something."""
    what = [fault.what for fault in record.faults]
    wrong = [] if record.status == "failed" and len(what) == 1 and not record.phases else [f"{record.status}: {what}"]
    return wrong + [f"no line of its own: {one!r}" for one in what if "\n" in one or len(one) > 1500 or not one]


def _place(defect: BaseException) -> str:
    at = defect.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return "?" if at is None else f"{Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}"


FAMILY = Family(
    name="guests",
    what="agents that lie, kernels that hang, modules in circles, parameters with commas",
    attacks=10_000,
    attacks_quick=200,
    lane=lambda lane: lane_of("guests", lane),
)
