"""Counts the paths of the suite under the kernels that are compared, a run directory for each path.

question.json    what is compared: a directory is continued by the same question alone
NAME/            the run of the path of that name (`iolab show DIR/NAME --as symbols` has all of its functions)
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from iolab.base import beneath, replaceable, strict_json
from iolab.base.bounded_file import MIB, read_bounded
from iolab.base.durable import write_atomically
from iolab.base.errors import InputError, InterruptedRun, MachineError
from iolab.domain.cost.path_cost import PathCost, path_cost
from iolab.domain.cost.report import CostReport, PatchCost
from iolab.domain.executor import Display, Executor
from iolab.domain.phase_record import InstructionsObservation, probes_of
from iolab.files.store import RunData, read
from iolab.studies import run as runs
from iolab.studies.cost.kernels import BASE, Versions
from iolab.studies.cost.paths import SuitePath, circumstances, experiment_of, text_of

FORMAT = 1
QUESTION = "question.json"
_FACTS_MAX_BYTES = MIB


@dataclass(frozen=True)
class Effort:
    """How much is counted. `rounds`: boots of each path and kernel; `seed`: of all that is random; None: the paths'
    own; `memory`: count accesses to memory too; `config`: of a tree's kernels."""

    rounds: int
    seed: int | None = None
    memory: bool = False
    config: str | None = None


@dataclass(frozen=True)
class Measured:
    """A path after its run. `why`: not empty if it could not be run."""

    path: SuitePath
    run: RunData | None
    why: str = ""


def measure(
    versions: Versions,
    paths: Sequence[SuitePath],
    effort: Effort,
    out: Path,
    *,
    executor: Executor,
    progress: Display,
) -> list[Measured]:
    """Counts each path, or continues what was counted in `out`. A path that a kernel cannot run is reported with the
    reason, and the others go on.

    Raises:
        InputError: `out` holds something else.
        InterruptedRun: after Ctrl-C; the same command goes on.
    """
    texts = {
        path.name: text_of(path, versions.kernels, effort.rounds, effort.config, memory=effort.memory) for path in paths
    }
    _open(out, versions, effort)
    found = []
    for number, path in enumerate(paths, 1):
        progress.report_line(f"path {number} of {len(paths)}: {path.name}")
        try:
            place = _run(texts[path.name], path, effort, out / path.name, executor, progress)
        except InterruptedRun as stopped:
            again = f"continue with the same command and --out {out}"
            raise InterruptedRun(f"{path.name}: {stopped.what}", remedy=again) from None
        except MachineError as error:
            found.append(Measured(path, None, error.what))
            continue
        found.append(Measured(path, read(place)))
    return found


def report(versions: Versions, measured: Sequence[Measured], command: str, notes: Sequence[str] = ()) -> CostReport:
    """The report of what was counted, base against tip, and each patch against the kernel before it."""
    observed = {one.path.name: {} if one.run is None else observations(one.run) for one in measured}
    tip = versions.tip.setting

    def costs(before: str, after: str) -> list[PathCost]:
        return [_cost(one, observed[one.path.name], before, after) for one in measured]

    patches = [
        PatchCost(after.label, costs(before.setting, after.setting)) for before, after in pairwise(versions.kernels)
    ]
    return CostReport(
        versions.base,
        versions.tip,
        costs(BASE, tip),
        machine=next((counted_by(one.run) for one in measured if one.run is not None), ""),
        command=command,
        patches=patches if len(versions.kernels) > 2 else [],
        notes=list(notes),
    )


def observations(run: RunData) -> dict[str, dict[int, InstructionsObservation]]:
    """By setting, by round, what was counted of the path; rounds that failed are missing."""
    found: dict[str, dict[int, InstructionsObservation]] = {}
    for trial, setting, number in run.trials.select("trial", "setting", "round").sort("trial").iter_rows():
        for phase in run.record(trial).phases:
            counted = probes_of(phase).get("instructions")
            if counted is not None and counted["operations"]:
                found.setdefault(setting, {})[number] = counted
    return found


def counted_by(run: RunData) -> str:
    """The emulator and its processor, as machine.json has them."""
    emulator = cast(Any, run.machine.get("guest", {}))
    processor = emulator.get("cpu", {}).get("model", "unknown")
    return f"QEMU {emulator.get('qemu', 'of unknown version')} (TCG), processor {processor}, one virtual CPU"


def _cost(
    one: Measured, observed: Mapping[str, Mapping[int, InstructionsObservation]], before: str, after: str
) -> PathCost:
    name, title = one.path.name, one.path.title
    if one.run is None:
        return PathCost(name, title, why=one.why)
    sides = observed.get(before, {}), observed.get(after, {})
    common = sorted(sides[0].keys() & sides[1].keys())
    if not common:
        why = _why_missing(one.run, after if sides[0] else before)
        return PathCost(name, title, why=why, is_broken=bool(sides[0]))
    base, tip = ([side[number] for number in common] for side in sides)
    return path_cost(name, title, circumstances(one.run.experiment), base, tip)


def _why_missing(run: RunData, setting: str) -> str:
    """The reason of the setting's first trial that has no counts."""
    for trial, of in run.trials.select("trial", "setting").sort("trial").iter_rows():
        if of != setting:
            continue
        record = run.record(trial)
        reasons = [*(fault.what for fault in record.faults), *record.controls_absent.values()]
        reasons += [why for phase in record.phases for why in phase.get("probes_absent", {}).values()]
        return f"{setting}: {reasons[0] if reasons else record.status}"
    return f"{setting}: no trial was run"


def _run(text: str, path: SuitePath, effort: Effort, place: Path, executor: Executor, progress: Display) -> Path:
    if os.path.lexists(place):
        return runs.resume(place, executor=executor, progress=progress, rounds=effort.rounds).path
    experiment = experiment_of(text, path.name)
    return runs.run(experiment, place, executor=executor, progress=progress, seed=effort.seed).path


def _open(out: Path, versions: Versions, effort: Effort) -> None:
    """Makes the directory, or sees that it is one of the same question."""
    asked = {
        "format": FORMAT,
        "kernels": {one.setting: one.kernel for one in versions.kernels},
        "seed": effort.seed,
        "memory": effort.memory,
        "config": effort.config,
    }
    text = strict_json.dumps(asked)
    if not os.path.lexists(out):
        replaceable.refuse_strangers(out.parent)
        try:
            beneath.make_directories(out.parent)
            beneath.make_directory(out)
        except OSError as error:
            raise InputError(
                f"can't be made: {error.strerror}", where=str(out), remedy="choose another --out"
            ) from None
        write_atomically(out / QUESTION, text.encode())
        return
    remedy = "choose another --out"
    if not beneath.is_file(out / QUESTION, out):
        raise InputError("exists already, and holds no counts of this command", where=str(out), remedy=remedy)
    if read_bounded(out / QUESTION, _FACTS_MAX_BYTES, "a question", within=out).decode(errors="replace") != text:
        raise InputError("holds the counts of other kernels, or of another effort", where=str(out), remedy=remedy)


def executed(run: RunData, setting: str = BASE) -> set[str]:
    """The functions that a path executes under the setting."""
    return {symbol for counted in observations(run).get(setting, {}).values() for symbol in counted["symbols"]}
