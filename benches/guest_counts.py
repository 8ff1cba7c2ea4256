"""Instructions that a guest machine counts (docs/guest.md): how far they vary from boot to boot, what
counting costs, and whether a change of 50 instructions is named by its function.

Boots differ in their seed, which moves the load's memory and draws other offsets. The change is planted
in the counts' own input: the function gets 50 instructions more each time that it is called, in
three boots of six. Without QEMU or a kernel nothing is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from result import NotMeasured, Result, at_most, bounded, paired

BOOTS = 20
PLANTED, IN = 50, "blk_mq_start_request"
SIDE = 3
LOADS = {
    "4 KiB null_blk read": (
        "none",
        'operations = 5000\npattern = "random"\nengine = "psync"\nblock_size = "4KiB"\nfile_size = "32MiB"',
    ),
    "XFS create": ("xfs", 'kind = "fs_mark"\nfiles = 2000\nfile_size = "0"\nsync = "none"\nkeep = true'),
}


def measure(quick: bool) -> list[Result]:
    kernel = chosen_kernel()
    boots = 2 if quick else BOOTS
    found = []
    reads: list[Any] = []
    with tempfile.TemporaryDirectory() as directory:
        for name, (filesystem, load) in LOADS.items():
            run = Path(directory) / filesystem
            counts = counted(kernel, filesystem, load, boots, run)
            per_op = [one["total"] / one["operations"] for one in counts]
            command = f"iolab run with machine = guest:{kernel}, {boots} rounds, filesystem {filesystem}"
            found += spread(name, per_op, [command])
            reads = reads or counts
        found += planted(reads, [f"{PLANTED} instructions per call of {IN}, {SIDE} boots of each side"])
        found.append(overhead(kernel, Path(directory), 1 if quick else 3))
    return found


def chosen_kernel() -> str:
    from iolab.adapters.guest import kernel, programs
    from iolab.base.errors import IolabError

    try:
        programs.qemu(), programs.agent(), programs.counter()
        cached = [one["name"] for one in kernel.listed() if one["state"] == "cached" and "-cloud" in one["name"]]
        known = [one["name"] for one in kernel.listed() if one["name"].endswith("-cloud")]
        if not cached and not known:
            raise NotMeasured("no kernel is cached, and the package index has none")
        name = (cached or known)[0]
        kernel.find(name)
    except IolabError as error:
        raise NotMeasured(str(error)) from error
    return name


def counted(kernel: str, filesystem: str, load: str, boots: int, run: Path) -> list[Any]:
    """The observations of so many boots."""
    from iolab.adapters.store import read

    run_experiment(kernel, filesystem, load, boots, run, counting=True)
    data = read(run)
    records = [data.record(trial) for trial in data.trials["trial"].to_list()]
    failed = [record.faults for record in records if record.status != "ok"]
    if failed:
        raise RuntimeError(f"a guest failed: {failed[0]}")
    return [record.phases[-1]["probes"]["instructions"] for record in records]


def run_experiment(kernel: str, filesystem: str, load: str, boots: int, run: Path, *, counting: bool) -> None:
    probes = "" if counting else "[probes]\ninstructions = false\n"
    text = (
        f'machine = "guest:{kernel}"\nrounds = {boots}\nseed = 1\n{probes}'
        f'[target]\nkind = "scratch"\nsize = "512MiB"\nfilesystem = "{filesystem}"\n[workloads.load]\n{load}\n'
    )
    path = run.with_suffix(".toml")
    path.write_text(text)
    iolab = Path(sys.executable).parent / "iolab"
    done = subprocess.run([iolab, "run", path, "--out", run], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)


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


def planted(counts: Sequence[Any], commands: list[str]) -> list[Result]:
    """Functions named wrongly, or the planted one not named, over every split of the boots into sides."""
    from iolab.domain.symbols import differences, per_operation

    wrong = []
    for first in range(0, len(counts) - 2 * SIDE + 1, 2 * SIDE):
        before = [per_operation(one) for one in counts[first : first + SIDE]]
        after = [per_operation(changed(one)) for one in counts[first + SIDE : first + 2 * SIDE]]
        named = {one.symbol for one in differences(before, after) if one.is_named}
        wrong.append(float(len(named ^ {IN})))
    if not wrong:
        return []
    return [bounded(f"functions named wrongly or missed, {PLANTED} instructions planted", "count", wrong, limit=0.5)]


def changed(counts: Any) -> Any:
    """With the function dearer."""
    copy = json.loads(json.dumps(counts))
    at = copy["symbols"].index(IN)
    copy["instructions"][at] += PLANTED * copy["calls"][at]
    copy["total"] += PLANTED * copy["calls"][at]
    return copy


def overhead(kernel: str, directory: Path, rounds: int) -> Result:
    """Processor time of a trial that counts over one that does not: both boot, make and load the same."""
    filesystem, load = next(iter(LOADS.values()))
    load = load.replace("5000", "50000")
    times: dict[bool, list[float]] = {True: [], False: []}
    for number in range(rounds):
        for counting in (False, True):
            before = os.times()
            started = time.monotonic()
            run_experiment(kernel, filesystem, load, 1, directory / f"{number}-{counting}", counting=counting)
            after = os.times()
            used = after.children_user + after.children_system - before.children_user - before.children_system
            times[counting].append(used or time.monotonic() - started)
    name = "processor time of a trial that counts"
    return paired(name, "s", times[True], times[False], "the same trial without counting", target=at_most(2.5))
