"""A run whose settings need several boots: which block this boot measures, and what to boot next.

A part is what one boot provides, a kernel for instance. Each boot measures one block: `rounds_per_boot` rounds of the
settings of its part. Blocks of the parts come in turns, A B B A A B ..., so that a steady drift falls on all parts
alike; block i of one part is compared with block i of the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iolab.base.errors import InputError, MachineError, unknown
from iolab.base.plain_text import counted
from iolab.base.strict_json import JsonObject
from iolab.domain.conditions import alike, machine_facts
from iolab.domain.experiment import Experiment
from iolab.domain.verdict.looks import FIRST_LOOK
from iolab.files.store.event import SessionEvent
from iolab.files.store.state import RunState
from iolab.studies.run.goal import Goal

KERNEL = ("kernel", "kernel build", "kernel command line")
"""What two parts differ in."""
OF_EACH = ("boot of each part is", "boots of each part are")
OF_THE_MACHINE = (
    "distribution",
    "machine",
    "CPU",
    "CPUs",
    "CPUs usable",
    "SMT",
    "memory",
    "virtualization",
    "filesystem",
    "device model",
    "device size",
    "iolab",
)
"""What must not differ. The rest, schedulers or governors, is what a kernel chooses by itself: it is only reported."""


@dataclass(frozen=True)
class Block:
    """What one boot measures."""

    part: str
    number: int
    """From 0, among those of its part."""
    rounds: range
    settings: list[str]
    boot: str
    """The kernel's id of this boot."""
    facts: dict[str, str]
    """What the machine is, under this boot."""


@dataclass(frozen=True)
class Progress:
    """How far a run with parts is."""

    done: dict[str, int]
    """Whole blocks of each part."""
    blocks: int
    """The blocks of each part that make the run complete."""
    next_part: str | None
    """What to boot next; None: it is enough."""
    kernels: dict[str, str]
    """By part: the kernel that it was seen with."""
    differs: list[str]
    """What the parts differ in, beside their kernels."""
    decided: bool = False
    """A look left nothing undecided, after `blocks` boots of each part."""
    until_decided: bool = False

    def as_dict(self) -> JsonObject:
        """As JSON shows it."""
        return {
            "boots_measured": self.done,
            "boots_of_each": self.blocks,
            "next": self.next_part,
            "decided": self.decided if self.until_decided else None,
            "kernels": self.kernels,
            "differs": self.differs,
        }


def check_part(experiment: Experiment, part: str | None) -> None:
    """InputError if `part` is none of the experiment's, or missing."""
    names = list(dict.fromkeys(experiment.parts.values()))
    if part is None:
        if names:
            raise InputError(
                f"the settings need several boots: {', '.join(names)}",
                where="--part",
                remedy=f"name this one, such as --part {names[0]}",
            )
        return
    if not names:
        raise InputError(
            "no setting of the experiment belongs to a part", where="--part", remedy='give each one, part = "old"'
        )
    if part not in names:
        raise InputError(f"{part}: {unknown('part', part, names)}", where="--part")


def check_rounds(experiment: Experiment, goal: Goal) -> None:
    """InputError if they are no whole number of boots, or too few of them for a first look."""
    per_boot = experiment.rounds_per_boot
    if goal.rounds % per_boot:
        what = f"{goal.rounds} given; expected a multiple of rounds_per_boot = {per_boot}"
        raise InputError(what, where="--rounds")
    if experiment.parts and goal.until_decided and goal.rounds // per_boot < FIRST_LOOK:
        boots = goal.rounds // per_boot
        what = f"{counted(boots, *OF_EACH)} the most, and the first look is after {FIRST_LOOK}"
        raise InputError(what, where="--until-decided", remedy=f"allow more: --rounds {FIRST_LOOK * per_boot} or above")


def next_block(experiment: Experiment, state: RunState, part: str, machine: Mapping[str, Any]) -> Block:
    """The part's next block on this machine, as it is described. MachineError if this boot can't measure it: another
    part's turn, the wrong kernel, not rebooted, another machine. InputError if the run is complete."""
    done = _done(experiment, state)
    now = progress(experiment, state)
    if now.next_part is None:
        more = f"for more, add --rounds {(now.blocks + 1) * experiment.rounds_per_boot}"
        raise InputError(
            f"complete: {counted(now.blocks, *OF_EACH)} measured{', and everything is decided' * now.decided}",
            where="--part",
            remedy="for more, start a new run" if now.until_decided else more,
        )
    number = done[part]
    if number > min(done.values()):
        raise MachineError(
            f"part {part} is a boot ahead", where="--part", remedy=f"boot {_called(now, now.next_part)} next"
        )
    per_boot = experiment.rounds_per_boot
    block = Block(
        part=part,
        number=number,
        rounds=range(number * per_boot, (number + 1) * per_boot),
        settings=[setting for setting, of in experiment.parts.items() if of == part],
        boot=str(_kernel_of(machine).get("boot_id", "")),
        facts=machine_facts(machine),
    )
    for session in state.sessions:
        _check_against(session, block, now)
    return block


def progress(experiment: Experiment, state: RunState) -> Progress:
    """How far the run is, by its journal."""
    done = _done(experiment, state)
    per_boot = experiment.rounds_per_boot
    decided = [rounds // per_boot for rounds, undecided in state.looks.items() if not undecided]
    blocks = min(decided, default=state.rounds // per_boot)
    fewest = min(done.values())
    order = list(done) if fewest % 2 == 0 else list(reversed(done))
    first: dict[str, SessionEvent] = {}
    for session in state.sessions:
        first.setdefault(session.get("part", ""), session)
    return Progress(
        done=done,
        blocks=blocks,
        next_part=None if fewest >= blocks else next(part for part in order if done[part] == fewest),
        kernels={part: _facts(session).get("kernel", "") for part, session in first.items() if part},
        differs=_differences([session for part, session in first.items() if part]),
        decided=bool(decided),
        until_decided=state.started is not None and state.started["until_decided"],
    )


def lines(found: Progress, again: str) -> list[str]:
    """What a user does next. `again`: the command line that continues, without the part's name."""
    measured = ", ".join(f"{part} {count} of {found.blocks}" for part, count in found.done.items())
    most = ", at most" if found.until_decided and not found.decided else ""
    sentences = [f"Boots:  {measured}{most}"]
    sentences += [f"differs between the parts, beside the kernel: {one}" for one in found.differs]
    if found.decided:
        return [*sentences, f"Enough: everything is decided after {counted(found.blocks, 'boot')} of each part."]
    if found.next_part is None:
        return [*sentences, "Enough: every part has all its boots."]
    return [*sentences, f"Next:   boot {_called(found, found.next_part)}, then: {again} --part {found.next_part}"]


def _done(experiment: Experiment, state: RunState) -> dict[str, int]:
    """Whole blocks of each part, up to the first that is not."""
    measured = {(event["round"], event["workload"], event["setting"]) for event in state.finished.values()}
    done = {}
    for part in dict.fromkeys(experiment.parts.values()):
        settings = [setting for setting, of in experiment.parts.items() if of == part]
        rounds = 0
        while all((rounds, workload, setting) in measured for workload in experiment.workloads for setting in settings):
            rounds += 1
        done[part] = rounds // experiment.rounds_per_boot
    return done


def _check_against(session: SessionEvent, block: Block, found: Progress) -> None:
    """MachineError if this boot and that of an earlier session can't be of one run."""
    before = _facts(session)
    part, number = session.get("part"), session.get("block")
    if session.get("boot") == block.boot and (part, number) != (block.part, block.number):
        raise MachineError(
            f"this boot has measured boot {(number or 0) + 1} of part {part} already",
            where="--part",
            remedy=f"boot {_called(found, found.next_part or block.part)} first: a boot is a repetition",
        )
    kernel = [name for name in KERNEL if not _same(name, before, block.facts)]
    if part == block.part and kernel:
        raise MachineError(
            f"part {part} was measured with {_fact(kernel[0], before)}, and this is {_fact(kernel[0], block.facts)}",
            where="--part",
            remedy=f"boot {_called(found, block.part)}, or name the part that this is",
        )
    if part != block.part and not kernel:
        raise MachineError(
            f"part {block.part} has the kernel of part {part}, {before.get('kernel', '?')}, and its command line too",
            where="--part",
            remedy=f"boot what part {block.part} is about, or name the part that this is",
        )
    changed = [name for name in OF_THE_MACHINE if not _same(name, before, block.facts)]
    if changed:
        differs = "; ".join(f"{_fact(name, before)} is now {block.facts.get(name)}" for name in changed)
        raise MachineError(
            f"more than the kernel differs from the boot of part {part}: {differs}",
            where="--part",
            remedy="put it back, or start a new run",
        )


def _differences(sessions: list[SessionEvent]) -> list[str]:
    """A choice of the kernel's own, if the parts' first boots differ in it."""
    found = []
    chosen = dict.fromkeys(name for session in sessions for name in _facts(session))
    for name in chosen:
        if name in (*KERNEL, *OF_THE_MACHINE) or all(_same(name, _facts(sessions[0]), _facts(one)) for one in sessions):
            continue
        values = ", ".join(f"{_facts(one).get(name, 'unknown')} ({one['part']})" for one in sessions)
        found.append(f"{name}: {values}")
    return found


def _same(name: str, ours: Mapping[str, str], theirs: Mapping[str, str]) -> bool:
    return ours.get(name) == theirs.get(name) or (
        name in ours and name in theirs and alike(name, ours[name], theirs[name])
    )


def _fact(name: str, facts: Mapping[str, str]) -> str:
    return f"{name} {facts.get(name, 'unknown')}"


def _called(found: Progress, part: str) -> str:
    kernel = found.kernels.get(part)
    return f"part {part}" + (f" (kernel {kernel})" if kernel else "")


def _facts(session: SessionEvent) -> dict[str, str]:
    return session.get("facts", {})


def _kernel_of(machine: Mapping[str, Any]) -> Mapping[str, Any]:
    kernel = machine.get("kernel")
    return kernel if isinstance(kernel, Mapping) else {}
