"""Whether the model can be such a machine, asked before anything runs, and what is wrong with one that it cannot be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import deepcopy
from math import prod
from typing import Any, cast

from iolab.base.toml import TomlTable
from iolab.domain import native_model
from iolab.domain import native_types as native
from iolab.domain.trial import Phase
from iolab.domain.trial.control_group import WEIGHT_DEFAULT, ControlGroup
from iolab.domain.trial.phase import WeightedLoadPhase

Table = TomlTable
"""A machine's file, whole or in part."""


_GIVEN = re.compile(
    r"invalid (?:type|value|length): (?:(?P<kind>map|sequence|null|unit value|Option value)|"
    r"(?:string|integer|floating point|boolean|character) (?P<value>`[^`]*`|\"(?:[^\"\\]|\\.)*\")), "
    r"expected (?P<expected>.*)",
    re.DOTALL,
)
_KINDS = {
    "map": "a table",
    "sequence": "an array",
    "null": "nothing",
    "unit value": "nothing",
    "Option value": "nothing",
}
_EXPECTED = (
    (re.compile(r"\bu8\b"), "a whole number from 0 to 255"),
    (re.compile(r"\bu16\b"), "a whole number from 0 to 65535"),
    (re.compile(r"\b(?:u32|u64|u128|usize)\b"), "a whole number, not negative"),
    (re.compile(r"\b(?:i8|i16|i32|i64|i128|isize)\b"), "a whole number"),
    (re.compile(r"\bf(?:32|64)\b"), "a number"),
    (re.compile(r"\bstring or map\b"), "a text or a table"),
    (re.compile(r"\ba map\b"), "a table"),
    (re.compile(r"\ba sequence\b"), "an array"),
    (re.compile(r"\ba boolean\b"), "true or false"),
    (re.compile(r"\ba string\b"), "a text"),
    (re.compile(r"\ba nonzero (\S+)"), r"\1 but 0"),
    (
        re.compile(
            r"\b(?:internally tagged |adjacently tagged )?(?:struct|enum|tuple struct|tuple variant|newtype struct) \w+"
        ),
        "a table",
    ),
    (re.compile(r"\ban? (?:tuple|array) of (?:length|size) (\d+)"), r"an array of \1"),
)
"""What serde calls a type -> what a machine's file calls it."""


def in_plain_words(what: str) -> str:
    """A deserializer's message without its language's types: `"four" given; expected a whole number, not negative`."""
    found = _GIVEN.fullmatch(what)
    given, expected = (
        (_KINDS.get(found["kind"]) or found["value"].strip("`"), found["expected"]) if found else ("", what)
    )
    for pattern, words in _EXPECTED:
        expected = pattern.sub(words, expected)
    return f"{given} given; expected {expected}" if found else expected


class InvalidMachine(Exception):
    """`key` is the dotted path in the machine's file, such as `drives.0.device.zones.3.cylinders`."""

    def __init__(self, key: str, what: str) -> None:
        self.key = key
        self.what = what
        super().__init__(f"{key}: {what}" if key else what)

    @classmethod
    def from_native(cls, error: ValueError) -> InvalidMachine:
        """The error that the model reports as (key, what)."""
        key, what = error.args if len(error.args) == 2 else ("", str(error))
        return cls(str(key), in_plain_words(str(what)))

    @property
    def path(self) -> tuple[str, ...]:
        """The key in its parts; empty if no key is to blame."""
        return tuple(self.key.split(".")) if self.key else ()

    @property
    def is_of_cell(self) -> bool:
        """Whether it is about where a drive's application runs and its requests are queued and completed."""
        return self.path[:1] == ("drives",) and self.path[2:3] == ("affinity",)


def check(table: native.MachineFile) -> None:
    """Raises InvalidMachine with the key and the reason; a reason that a key is missing names all that are."""
    if (wrong := _wrong_in(table)) is not None:
        raise _with_all_missing(table, wrong) if _MISSING.fullmatch(wrong.what) else wrong


def _wrong_in(table: native.MachineFile) -> InvalidMachine | None:
    try:
        native_model.switched_on(table)
    except ValueError as error:
        return InvalidMachine.from_native(error)
    return None


_MISSING = re.compile(r"missing field `(\w+)`")
_SOME_VALUES: tuple[object, ...] = (1, "", True, {}, [])
"""One of each type, to stand in for a missing key while the next is looked for."""


def _with_all_missing(table: native.MachineFile, first: InvalidMachine) -> InvalidMachine:
    """The model names one missing key at a time: each gets a value of the right type until it names no more."""
    missing: dict[tuple[str, ...], list[str]] = {}
    made: set[tuple[str, ...]] = set()
    filled = deepcopy(table)
    wrong: InvalidMachine | None = first
    while wrong is not None and (found := _MISSING.fullmatch(wrong.what)):
        # What a table lacks that is missing itself is not known: it depends on what stands in it.
        if not any(wrong.path[: len(path)] == path for path in made):
            missing.setdefault(wrong.path, []).append(f"`{found[1]}`")
            made.add((*wrong.path, found[1]))
        wrong = _filled_in(filled, wrong.path, found[1])
    own, *others = ((".".join(path), ", ".join(names)) for path, names in missing.items())
    if not others and "," not in own[1]:
        return first
    also = (f"; {path or 'the file'} lacks {names}" for path, names in others)
    return InvalidMachine(first.key, f"missing field{'s' * (',' in own[1])} {own[1]}{''.join(also)}")


def _filled_in(table: native.MachineFile, path: tuple[str, ...], key: str) -> InvalidMachine | None:
    """Gives the key a value that the model takes; what is wrong next."""
    place: Any = table
    for part in path:
        place = place[int(part) if isinstance(place, list) else part]
    wrong = None
    for place[key] in _SOME_VALUES:
        wrong = _wrong_in(table)
        if wrong is None or _MISSING.fullmatch(wrong.what):
            break
    return wrong


def with_groups(table: native.MachineFile, phases: Sequence[Phase]) -> native.MachineFile:
    """The machine with a control group for each one of the phases, and with io.cost if that is who shares."""
    groups = {group.name: group for phase in phases for group in phase.control_groups}
    if not groups:
        return table
    made: native.MachineFile = {**table, "cgroups": [_cgroup(group) for group in groups.values()]}
    for phase in phases:
        if isinstance(phase, WeightedLoadPhase) and phase.controller == "cost":
            made["io_cost"] = {"model": _numbers(phase.cost_model), "qos": _numbers(phase.cost_qos)}
    return made


def _numbers(line: str | None) -> Any:
    """The parameters of a line as io.cost's files take it."""
    pairs = (word.partition("=") for word in (line or "").split())
    return {key: float(value) if "." in value else int(value) for key, _, value in pairs}


def _cgroup(group: ControlGroup) -> native.CgroupSpec:
    made: native.CgroupSpec = {"name": group.name, "weight": group.io_weight or WEIGHT_DEFAULT}
    if group.io_max is not None:
        made["io_max"] = cast("native.IoMaxSpec", group.io_max)
    if group.io_latency is not None:
        made["io_latency_ns"] = group.io_latency
    if group.io_prio_class is not None:
        made["io_prio_class"] = group.io_prio_class
    return made


def is_detailed(machine: native.MachineFile) -> bool:
    """Whether its CPUs have places, contexts and interrupts of their own (docs/model/processors.md)."""
    cpus: object = machine.get("cpus")
    return isinstance(cpus, dict) and "topology" in cpus


def cpu_count(machine: native.MachineFile) -> int:
    """The CPUs of a machine that the model has checked."""
    if not is_detailed(machine):
        return cast(native.CpuSpec, machine["cpus"])["count"]
    topology = cast(native.DetailedCpusTable, machine["cpus"])["topology"]
    return int(prod(cast(dict[str, int], topology).values()))


def scheduler_of(drive: native.DriveSpec) -> dict[str, native.TunableValue]:
    """The drive's scheduler as a table, whichever way the file writes it; empty: the kernel's."""
    scheduler = drive.get("scheduler") or {}
    return {"name": scheduler} if isinstance(scheduler, str) else scheduler
