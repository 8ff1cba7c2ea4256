"""`show --as symbols`: what functions cost in a guest machine, per operation, and where settings differ.

First the most expensive functions and system calls of each workload and phase under each setting, then for each other
setting the functions that differ from the baseline's. One that has another name now stands as `old -> new`. The changes
shown, with the line of all others, add up to that of the totals. A function that its only caller took into itself
stands as `caller + function`; if calls were not followed, the caller is inferred, and the name says so. A star: the
rounds of both settings lie further apart than those of either among themselves.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from iolab.base.errors import InputError
from iolab.base.plain_text import listed
from iolab.base.quantity import plain
from iolab.domain import chains
from iolab.domain.bisect.functions import steps_of_functions
from iolab.domain.phase_record import InstructionsObservation, probes_of
from iolab.domain.probe.instructions import NAME
from iolab.domain.symbol_changes import compared
from iolab.domain.symbols import Difference, Key, means, per_operation
from iolab.presentation.table.probe_observations import PlaceObservations, columns, observations_of

if TYPE_CHECKING:
    from iolab.files.store import RunData

ROWS_SHOWN = 25
OTHERS = "all others"
CALL_SHARE_MIN = 0.01
CHANGES_NAMED_MAX = 3


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """The tables. InputError if the run is no guest machine's, or if metrics are asked for."""
    if metrics:
        raise InputError("the symbols have fixed columns", where="--metric", remedy="leave --metric out")
    places: list[PlaceObservations[InstructionsObservation]] = observations_of(run, NAME)
    blocks = ["".join(counted_by(run))]
    for (workload, phase), group in groupby(sorted(places, key=_place), key=lambda one: (one.workload, one.phase)):
        of_settings = list(group)
        rounds = {one.setting: [per_operation(round) for round in one.observations] for one in of_settings}
        blocks += [_dearest(f"{workload}, {setting}, {phase}", found) for setting, found in rounds.items()]
        blocks += [system_calls(f"{workload}, {one.setting}, {phase}", one.observations) for one in of_settings]
        baseline = run.experiment.compare.baseline
        observations = {one.setting: one.observations for one in of_settings}
        if baseline in observations:
            blocks += [
                _compared(f"{workload}, {phase}: {setting} against {baseline}", compared(observations[baseline], found))
                for setting, found in observations.items()
                if setting != baseline
            ]
    return "\n".join(block for block in blocks if block)


def counted_by(run: RunData) -> Iterator[str]:
    """What determines counts, apart from the kernel's source: a line about the emulator, and one for each kernel."""
    emulator = cast(Any, run.machine.get("guest", {}))
    processor = emulator.get("cpu")
    if processor is not None:
        flags = f" ({' '.join(processor['flags'])})" if processor["flags"] else ""
        yield f"counted by QEMU {emulator['qemu']}, processor {processor['model']}{flags}\n"
    lines: dict[str, None] = {}
    for trial in run.trials["trial"].to_list():
        record = run.record(trial)
        guest = cast(Any, record.observed.get("guest", {}))
        how = [f"configured as {guest['configuration']}"] if "configuration" in guest else []
        how += [f"built by {guest['compiler']}"] if "compiler" in guest else []
        if how:
            lines[f"{cast(Any, record.spec.guest).kernel}: {', '.join(how)}\n"] = None
    yield from lines


def between(run: RunData, workload: str, before: str, after: str) -> str:
    """The functions of a workload that differ between two settings, a table for each phase. Empty for runs in which no
    instructions were counted."""
    try:
        places: list[PlaceObservations[InstructionsObservation]] = observations_of(run, NAME)
    except InputError:
        return ""
    found = {(one.phase, one.setting): one.observations for one in places if one.workload == workload}
    blocks = []
    for phase in dict.fromkeys(phase for phase, _ in found):
        sides = [found.get((phase, setting), []) for setting in (before, after)]
        if all(sides):
            title = f"{workload}, {phase}: {after} against {before}"
            blocks.append(_compared(title, compared(*sides)))
    return "\n".join(blocks)


def dearest_changes(run: RunData, workload: str, before: str, after: str) -> Iterator[str]:
    """A sentence for each phase: the functions that make most of the difference between two settings, if instructions
    were counted."""
    try:
        places: list[PlaceObservations[InstructionsObservation]] = observations_of(run, NAME)
    except InputError:
        return
    found = {(one.phase, one.setting): one.observations for one in places if one.workload == workload}
    for phase in dict.fromkeys(phase for phase, _ in found):
        sides = [found.get((phase, setting), []) for setting in (before, after)]
        changes = compared(*sides) if all(sides) else []
        total = sum(one.change for one in changes)
        named = [f"{one.symbol} ({one.change:+,.0f})" for one in changes[:CHANGES_NAMED_MAX] if one.change * total > 0]
        if named:
            yield (
                f"{workload}, {phase}: {after} takes {total:+,.0f} instructions per operation against {before}, most "
                f"of them in {listed(named)}."
            )


def across(baseline: RunData, candidate: RunData) -> str:
    """The functions of each workload and setting that differ between two runs, a table for each phase; if either run
    has a single setting, that one, whatever its name. Empty unless instructions were counted in both."""
    try:
        sides: list[list[PlaceObservations[InstructionsObservation]]] = [
            observations_of(run, NAME) for run in (baseline, candidate)
        ]
    except InputError:
        return ""
    one_setting = all(len({one.setting for one in side}) == 1 for side in sides)
    blocks = []
    for before in sides[0]:
        for after in sides[1]:
            if (before.workload, before.phase) != (after.workload, after.phase):
                continue
            if one_setting or before.setting == after.setting:
                title = f"{before.workload}, {before.phase}: {after.setting} in {candidate.path.name} "
                title += f"against {before.setting} in {baseline.path.name}"
                blocks.append(_compared(title, compared(before.observations, after.observations)))
    return "\n".join(blocks)


def stepped(run: RunData, workload: str, versions: Sequence[str], known: Container[str]) -> str:
    """The functions that step once in a history of versions, a line each: also if the total does not show it. Empty
    for runs in which no instructions were counted.

    Args:
        known: versions of which functions are told already.
    """
    places = {version: place for place, version in enumerate(versions)}
    of_phases: dict[str, list[tuple[int, int, dict[Key, float]]]] = {}
    trials = run.trials.select("trial", "workload", "setting", "round").sort("trial")
    for trial, of, setting, turn in trials.iter_rows():
        if of == workload and setting in places:
            for done in run.record(trial).phases:
                if (counted := probes_of(done).get("instructions")) is not None:
                    one = (places[setting], turn, per_operation(counted))
                    of_phases.setdefault(done["phase"], []).append(one)
    blocks = []
    for phase, measured in of_phases.items():
        steps = [step for step in steps_of_functions(measured) if versions[step.version] not in known]
        if steps:
            rows: list[tuple[str, ...]] = [("function", "module", "before", "after", "change", "between")]
            for step in steps[:ROWS_SHOWN]:
                ends = f"{versions[step.before_version]} and {versions[step.version]}"
                levels = (_number(step.before), _number(step.after), f"{step.change:+,.1f}")
                rows.append((step.symbol, step.module, *levels, ends))
            blocks.append(f"{workload}, {phase}: functions that changed once, and exactly\n{columns(rows, left=2)}\n")
    return "\n".join(blocks)


def folded(run: RunData) -> str:
    """The chains of calls of each setting, workload and phase as folded stacks: `setting;workload;phase;function;... N`
    with instructions per operation, rounded. If calls were not followed, module and function stand for a chain."""
    lines = []
    for place in observations_of(run, NAME):
        followed = chains.means([chains.per_operation(round) for round in place.observations])
        found = followed or {
            (module or "kernel", symbol): amount
            for (symbol, module), amount in means([per_operation(round) for round in place.observations]).items()
        }
        for chain, amount in sorted(found.items(), key=lambda item: -item[1]):
            if round(amount):
                frames = (place.setting, place.workload, place.phase, *chain)
                lines.append(f"{';'.join(frame.replace(';', ':') for frame in frames)} {round(amount)}")
    return "\n".join(lines) + "\n"


def _place(one: PlaceObservations[InstructionsObservation]) -> tuple[str, str]:
    return one.workload, one.phase


def _dearest(title: str, rounds: Sequence[Mapping[Key, float]]) -> str:
    found = means(rounds)
    total = sum(found.values())
    if not total:
        return f"{title}\nno operation completed\n"
    dearest = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    rows: list[tuple[str, ...]] = [("function", "module", "per op", "share")]
    rows += [(*key, _number(amount), _share(amount, total)) for key, amount in dearest[:ROWS_SHOWN]]
    rest = sum(amount for _, amount in dearest[ROWS_SHOWN:])
    if rest:
        rows.append((OTHERS, "", _number(rest), _share(rest, total)))
    rows.append(("total", "", _number(total), _share(total, total)))
    return f"{title}\n{columns(rows, left=2)}\n"


def system_calls(title: str, rounds: Sequence[InstructionsObservation]) -> str:
    """The kernel's instructions by what it was asked for: of those that take a percent of them. Empty if calls were not
    counted."""
    sums: dict[str, list[float]] = {}
    for one in rounds:
        counted = one.get("system_calls")
        if counted is not None and one["operations"]:
            for name, instructions, calls in zip(
                counted["names"], counted["instructions"], counted["calls"], strict=True
            ):
                entry = sums.setdefault(name, [0.0, 0.0])
                entry[0] += instructions / one["operations"] / len(rounds)
                entry[1] += calls / one["operations"] / len(rounds)
    total = sum(instructions for instructions, _ in sums.values())
    dearest = sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))
    shown = [(name, amount, calls) for name, (amount, calls) in dearest if amount >= CALL_SHARE_MIN * total]
    if not shown:
        return ""
    rows: list[tuple[str, ...]] = [("system call", "calls per op", "per call", "per op")]
    rows += [(name, plain(calls, 3), _number(amount / calls), _number(amount)) for name, amount, calls in shown]
    return f"{title}\n{columns(rows, left=1)}\n"


def _compared(title: str, found: Sequence[Difference]) -> str:
    shown = [one for one in found if one.is_named or abs(one.change) >= 0.5][:ROWS_SHOWN]
    left = [one for one in found if one not in shown]
    rows: list[tuple[str, ...]] = [("function", "module", "before", "after", "change", "")]
    rows += [_row(one) for one in shown]
    if left:
        rows.append(_row(_sum(OTHERS, left)))
    rows.append(_row(_sum("total", found)))
    return f"{title}\n{columns(rows, left=2)}\n"


def _sum(name: str, parts: Sequence[Difference]) -> Difference:
    return Difference(name, "", sum(one.baseline for one in parts), sum(one.candidate for one in parts), is_named=False)


def _row(one: Difference) -> tuple[str, ...]:
    change = f"{one.change:+,.1f}"
    return one.symbol, one.module, _number(one.baseline), _number(one.candidate), change, "*" if one.is_named else ""


def _number(amount: float) -> str:
    return f"{amount:,.1f}"


def _share(amount: float, total: float) -> str:
    return f"{100 * amount / total:.1f} %"
