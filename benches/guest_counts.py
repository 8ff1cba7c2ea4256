"""Instructions that a [guest machine](../guest.md) counts: how far they vary from boot to boot, what counting costs,
whether the function is named that has 50 instructions more than before, and how long a trial takes.

Boots differ in their seed, which moves the load's memory and draws other offsets. The change is planted in a kernel
that is built from Debian's source (tools/kernel_tree.py): 50 instructions at the start of each request. The tree and
its builds stay in the cache of kernels; the first build takes some ten minutes. *Named wrongly* is a function that was
not changed, *missed* the changed function if it is not named. Without QEMU or a kernel nothing is measured.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from alternate import cpu_of_children_s
from result import NotMeasured, Result, at_most, bounded, paired, plain

ROOT = Path(__file__).resolve().parents[1]
BOOTS = 20
PLANTED, IN = 50, "blk_mq_start_request"
SIDE = 3
VERDICTS = 5
"""So many times a change is planted and looked for, in boots of their own."""
COST_ROUNDS = 5
COST_OPERATIONS = 200_000


@dataclass(frozen=True)
class Load:
    name: str
    filesystem: str
    text: str


READS = Load(
    "4 KiB null_blk read",
    "none",
    'operations = 5000\npattern = "random"\nengine = "psync"\nblock_size = "4KiB"\nfile_size = "32MiB"',
)
CREATES = Load("XFS create", "xfs", 'kind = "fs_mark"\nfiles = 2000\nfile_size = "0"\nsync = "none"\nkeep = true')


def measure(quick: bool) -> list[Result]:
    kernel = chosen_kernel()
    boots = 2 if quick else BOOTS
    found = []
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        for load in (READS, CREATES):
            run = boot(kernel, load, boots, place / load.filesystem)
            command = f"iolab run with machine = guest:{kernel}, {boots} rounds, filesystem {load.filesystem}"
            found += spread(load.name, [one["total"] / one["operations"] for one in run.counts], [command])
            if load == READS:
                found += wrongly_named("nothing planted", run.counts, run.counts, of_one=True)
            found.append(bounded(f"{load.name}: a trial", "s", run.trials_s, limit=20))
            found.append(plain(f"{load.name}: processor time of a trial", "s", [run.processor_s / boots]))
        found.append(cold_start(kernel, place, 1 if quick else 3))
        if not quick:
            found += planted(place)
        found.append(overhead(kernel, place, 1 if quick else COST_ROUNDS))
    return found


def chosen_kernel(*, newest: bool = False) -> str:
    from iolab.base.errors import IolabError
    from iolab.machines.guest import kernel, programs

    try:
        programs.qemu(), programs.agent(), programs.counter()
        cached = [one["name"] for one in kernel.listed() if one["state"] == "cached" and "-cloud" in one["name"]]
        known = [one["name"] for one in kernel.listed() if one["name"].endswith("-cloud")]
        if not cached and not known:
            raise NotMeasured("no kernel is cached, and the package index has none")
        name = (cached or known)[-1 if newest else 0]
        kernel.find(name)
    except IolabError as error:
        raise NotMeasured(str(error)) from error
    return name


@dataclass(frozen=True)
class Booted:
    """A run of as many trials as boots."""

    counts: list[Any]
    """Observations of the probe `instructions`; empty if nothing was counted."""
    trials_s: list[float]
    """Wall time of each, from the first step to the record."""
    command_s: float
    """Wall time of `iolab run`."""
    processor_s: float
    """CPU time of the command and its guests, which a busy machine does not lengthen."""


def boot(kernel: str, load: Load, boots: int, run: Path, *, counting: bool = True, cache: Path | None = None) -> Booted:
    """Args:
    cache: another directory of caches than the user's.
    """
    from iolab.files.store import read

    probes = "" if counting else "[probes]\ninstructions = false\n"
    path = run.with_suffix(".toml")
    path.write_text(
        f'machine = "guest:{kernel}"\nrounds = {boots}\nseed = 1\n{probes}'
        f'[target]\nkind = "scratch"\nsize = "512MiB"\nfilesystem = "{load.filesystem}"\n'
        f"[workloads.load]\n{load.text}\n"
    )
    iolab = Path(sys.executable).parent / "iolab"
    environment = {**os.environ, **({} if cache is None else {"XDG_CACHE_HOME": str(cache)})}
    began, used = time.monotonic(), cpu_of_children_s()
    done = subprocess.run(
        [iolab, "run", path, "--out", run], capture_output=True, text=True, env=environment, check=False
    )
    took = time.monotonic() - began
    used = cpu_of_children_s() - used
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    data = read(run)
    records = [data.record(trial) for trial in data.trials["trial"].to_list()]
    failed = [record.faults for record in records if record.status != "ok"]
    if failed:
        raise RuntimeError(f"a guest failed: {failed[0]}")
    counts = [record.phases[-1]["probes"]["instructions"] for record in records] if counting else []
    return Booted(counts, [(record.ended_unix_ns - record.started_unix_ns) / 1e9 for record in records], took, used)


def spread(name: str, per_op: Sequence[float], commands: list[str]) -> list[Result]:
    """From lowest to highest, and between halves of the boots."""
    middle = sum(per_op) / len(per_op)
    halves = [sum(per_op[half::2]) / len(per_op[half::2]) for half in (0, 1)]
    widest = 100 * (max(per_op) - min(per_op)) / middle
    apart = 100 * abs(halves[0] - halves[1]) / middle
    return [
        bounded(f"{name}: lowest to highest of {len(per_op)} boots", "%", [widest], limit=0.1, commands=commands),
        bounded(f"{name}: between halves of the boots", "%", [apart], limit=0.02, commands=commands),
    ]


def cold_start(kernel: str, place: Path, rounds: int) -> Result:
    """The first boot of a kernel that is cached: its functions are read before it boots."""
    from iolab.machines.guest import cache

    took = []
    for number in range(rounds):
        own = place / f"cache-{number}"
        (own / "iolab" / "kernels").mkdir(parents=True)
        (own / "iolab" / "kernels" / "debian").symlink_to(cache.directory("debian"))
        took.append(boot(kernel, READS, 1, place / f"cold-{number}", cache=own).command_s)
    return bounded("first figure of a kernel that is cached and never booted", "s", took, limit=60)


def planted(place: Path) -> list[Result]:
    """Two kernels built of one tree, of which one spends 50 instructions more at the start of each request."""
    tree = kernel_tree()
    boots = SIDE * VERDICTS
    base, fifty = (
        boot(f"{tree}@{branch}", READS, boots, place / f"tree-{branch}").counts for branch in ("base", "fifty")
    )
    commands = [f"{SIDE} boots of each kernel, {VERDICTS} times; tools/kernel_tree.py TREE --branches fifty"]
    found = wrongly_named(f"{PLANTED} instructions planted", base, fifty, commands=commands)
    called = [one["calls"][one["symbols"].index(IN)] / one["operations"] for one in base]
    ours, peer = ([own(one) for one in side] for side in (fifty, base))
    changes = [(after - before) / calls for after, before, calls in zip(ours, peer, called, strict=True)]
    exact = bounded(f"instructions that were found, of {PLANTED} planted in {IN}", "per call", changes, limit=PLANTED)
    within = all(abs(change - PLANTED) < 1 for change in changes)
    return [*found, replace(exact, target=f"{PLANTED} within 1", met=within)]


def own(counts: Any) -> float:
    """The function's own instructions per operation."""
    return float(counts["instructions"][counts["symbols"].index(IN)]) / float(counts["operations"])


def kernel_tree() -> Path:
    from iolab.machines.guest import cache

    tree = cache.directory("bench") / "linux"
    if not tree.exists():
        beside = tree.with_suffix(".new")
        subprocess.run(["rm", "-rf", beside], check=True)
        done = subprocess.run(
            [sys.executable, ROOT / "tools" / "kernel_tree.py", beside, "--branches", "fifty"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NotMeasured(f"no kernel tree: {done.stderr.strip()}")
        beside.rename(tree)
    return tree


def wrongly_named(
    what: str, before: Sequence[Any], after: Sequence[Any], *, of_one: bool = False, commands: Sequence[str] = ()
) -> list[Result]:
    """Args:
    of_one: the sides are boots of one kernel, three and three of `before`.
    """
    from iolab.domain.symbols import differences, per_operation

    sides = [[per_operation(one) for one in side] for side in (before, after)]
    if of_one:
        groups = in_threes(sides[0])
        pairs = list(zip(groups[::2], groups[1::2], strict=False))
    else:
        pairs = list(zip(*map(in_threes, sides), strict=True))
    if not pairs:
        return []
    expected = set() if of_one else {IN}
    wrong = [float(len({one.symbol for one in differences(*pair) if one.is_named} ^ expected)) for pair in pairs]
    name = f"functions named wrongly or missed, {what}, {SIDE} boots a side"
    all_right = bounded(name, "count", wrong, limit=0.5, commands=commands)
    return [replace(all_right, target="none", met=max(wrong) == 0)]


def in_threes(boots: Sequence[Any]) -> list[Sequence[Any]]:
    """Without those that are left."""
    return [boots[first : first + SIDE] for first in range(0, len(boots) - SIDE + 1, SIDE)]


def overhead(kernel: str, place: Path, rounds: int) -> Result:
    """Wall time of a trial that counts over one that does not: both boot, make and load the same."""
    load = replace(READS, text=READS.text.replace("5000", str(COST_OPERATIONS)))
    times: dict[bool, list[float]] = {True: [], False: []}
    for number in range(rounds):
        for counting in (False, True):
            run = boot(kernel, load, 1, place / f"cost-{number}-{counting}", counting=counting)
            times[counting] += run.trials_s
    name = f"wall time of a trial of {COST_OPERATIONS:,} reads that counts"
    return paired(name, "s", times[True], times[False], "the same trial without counting", target=at_most(2.5))
