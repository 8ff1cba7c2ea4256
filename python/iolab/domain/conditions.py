"""Whether what is compared can be compared: what differs between the arms beside the numbers, and what is unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iolab.base.option import Options, extras, written
from iolab.base.plain_text import counted
from iolab.base.strict_json import JsonObject
from iolab.domain.experiment import IMPORTED
from iolab.domain.machine import Model
from iolab.domain.workload.fio import FioOptions
from iolab.domain.workload.trace import TraceOptions

if TYPE_CHECKING:
    from iolab.domain.arms import Arm
    from iolab.domain.measured_run import MeasuredRun

FACTS = {
    "kernel": "kernel.release",
    "kernel build": "kernel.version",
    "kernel command line": "kernel.command_line",
    "distribution": "kernel.distribution",
    "machine": "hostname",
    "CPU": "cpu.model",
    "CPUs": "cpu.count_online",
    "CPUs usable": "cpu.count_usable",
    "SMT": "cpu.smt",
    "CPU governor": "cpu.governor",
    "turbo": "cpu.turbo",
    "memory": "memory.total",
    "virtualization": "virtualization.machine",
    "clock": "clock.source",
    "transparent huge pages": "memory.transparent_huge_pages",
    "dirty ratio": "kernel.dirty_ratio",
    "dirty background ratio": "kernel.dirty_background_ratio",
    "filesystem": "target.filesystem.type",
    "mount options": "target.filesystem.options",
    "device": "target.device.name",
    "device model": "target.device.model",
    "device size": "target.device.size_bytes",
    "scheduler": "target.device.scheduler",
    "queue requests": "target.device.queue.nr_requests",
    "read-ahead": "target.device.queue.read_ahead_kb",
    "iolab": "versions.iolab",
}
"""What a reader calls it -> where the description of a machine has it."""
NEEDED = ("kernel", "machine", "CPU", "CPUs", "filesystem", "device", "scheduler")
"""What has to be known of both for a comparison to be complete."""
FIO = "fio version"
OF_FIO = "fio: "
"""What its options begin with: of all jobs, or of the one that follows."""
UNDER = " under "
"""Between a workload and a setting that changes its options."""
OF_MODEL = "simulated machine: "
OF_FILE = "machine file: "
"""A simulated machine's description, by the keys of its file."""
FILE_KEYS_MAX = 8
"""Keys of machine files that differ and are named; more are counted."""
FOLLOWS = {
    "kernel build": "kernel",
    "device size": "device model",
    f"{OF_FILE}title": f"{OF_MODEL}title",
    f"{OF_FILE}kernel": "kernel",
    f"{OF_FILE}cpus.count": "CPUs",
}
"""Facts that are reported only if the other does not differ already."""
SAME_MEMORY_WITHIN = 0.02
"""What kernels keep for themselves differs."""
BOOT_ARGUMENTS = re.compile(r"(?:BOOT_IMAGE|initrd)=\S*\s*")
DIFFERENCES_MAX = 40


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same in all arms."""

    what: str
    values: dict[str, str]
    """By arm."""

    def __str__(self) -> str:
        return f"{self.what}: " + ", ".join(f"{value or 'not given'} ({arm})" for arm, value in self.values.items())


@dataclass(frozen=True)
class Conditions:
    """Under what the arms were measured."""

    differs: list[Difference]
    unknown: list[str]
    """What could not be compared, because one of the arms, or none, has it on record."""

    @property
    def conclusion(self) -> str | None:
        """What the differences mean for the comparison; None if nothing was to be compared."""
        if not self.differs:
            return "nothing that is on record" if len(self.unknown) < len(NEEDED) else None
        if len(self.differs) == 1:
            return f"{self.differs[0].what} is the one thing that differs: it is what is compared"
        return f"{len(self.differs)} things differ: the numbers compare all of them together"

    def as_dict(self) -> JsonObject:
        """`differs`, `conclusion`, `not_compared`, as JSON shows them."""
        return {
            "differs": [{"what": one.what, "values": one.values} for one in self.differs],
            "conclusion": self.conclusion,
            "not_compared": self.unknown,
        }


def conditions_of(arms: Sequence[Arm]) -> Conditions:
    """What differs between the arms: machine, kernel, target, and the options of workloads and settings."""
    named = {arm.name: _joined([dict(_facts(run)) for run in arm.runs]) for arm in arms}
    return _compared(named, _only_one_has(arms))


def conditions_within(run: MeasuredRun) -> Conditions | None:
    """The same of the settings of an imported run; None of one that iolab measured, whose settings state what
    differs."""
    if run.machine_name != IMPORTED or len(run.settings) < 2:
        return None
    named = {setting: dict(_imported_facts(run, [setting])) for setting in run.settings}
    return _compared(named, []) if any(named.values()) else None


def facts_of(run: MeasuredRun) -> dict[str, str]:
    """What is on record of the machine, the target and the options of a run."""
    return dict(_facts(run))


def differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """What differs between two records of facts: what, and both values."""
    found = _compared({"ours": dict(ours), "theirs": dict(theirs)}, []).differs
    return [(one.what, one.values["ours"], one.values["theirs"]) for one in found]


def alike(what: str, ours: str, theirs: str) -> bool:
    """Whether a fact is the same of both."""
    return _alike(what, [ours, theirs])


def _compared(named: dict[str, dict[str, str]], lacking: list[str]) -> Conditions:
    differs, unknown = [], []
    for what in dict.fromkeys([*NEEDED, *(name for facts in named.values() for name in facts)]):
        values = {arm: _value(facts, what) for arm, facts in named.items()}
        lacks = [facts for arm, facts in named.items() if values[arm] is None]
        if any(_has_of_each_job(facts, what) for facts in lacks):
            continue
        # Elsewhere, a fact of only one arm is a difference: an option that the other did not give.
        if lacks and (what in FACTS or what == FIO or not all(_records(facts, what) for facts in lacks)):
            if what in NEEDED or any(values.values()):
                unknown.append(what)
            continue
        known = {arm: value or "" for arm, value in values.items()}
        if not _alike(what, list(known.values())):
            differs.append(Difference(what, known))
    names = {one.what for one in differs}
    differs = [one for one in differs if FOLLOWS.get(one.what) not in names]
    of_all = [one for one in differs if UNDER not in one.what]
    differs = of_all + [one for one in differs if UNDER in one.what and not _is_of_workload(one, of_all)]
    return Conditions(_shortened(differs, named)[:DIFFERENCES_MAX], [*unknown, *lacking])


def _shortened(differs: list[Difference], named: Mapping[str, Mapping[str, str]]) -> list[Difference]:
    """With the first of the keys of machine files, and none if an arm was measured on no such machine."""
    of_files = [one for one in differs if one.what.startswith(OF_FILE)]
    if not all(any(what.startswith(OF_FILE) for what in facts) for facts in named.values()):
        return [one for one in differs if one not in of_files]
    if not (more := of_files[FILE_KEYS_MAX:]):
        return differs
    machines = {arm: f"as in {facts.get(f'{OF_MODEL}name', 'its file')}" for arm, facts in named.items()}
    rest = Difference(f"{OF_FILE}{counted(len(more), 'more key')}", machines)
    return [*(one for one in differs if one not in more), rest]


def _value(facts: Mapping[str, str], what: str) -> str | None:
    """An option of one of fio's jobs is the same as that of all, if all have it."""
    option = what.rpartition(": ")[2]
    return facts.get(what, facts.get(f"{OF_FIO}{option}") if what.startswith(OF_FIO) else None)


def _has_of_each_job(facts: Mapping[str, str], what: str) -> bool:
    option = what.removeprefix(OF_FIO)
    return option != what and any(name.startswith(OF_FIO) and name.endswith(f": {option}") for name in facts)


def _records(facts: Mapping[str, str], what: str) -> bool:
    """Whether options that were given would be on record."""
    return not what.startswith(OF_FIO) or any(name.startswith(OF_FIO) for name in facts)


def _is_of_workload(one: Difference, of_all: Sequence[Difference]) -> bool:
    """Whether the workload itself differs likewise, whatever the setting."""
    workload, _, option = one.what.partition(UNDER)
    return Difference(f"{workload}:{option.rpartition(':')[2]}", one.values) in of_all


def _alike(what: str, values: list[str]) -> bool:
    if what == "memory":
        sizes = [float(digits[0]) for value in values if (digits := re.findall(r"\d+", value))]
        return len(sizes) == len(values) and max(sizes) - min(sizes) <= SAME_MEMORY_WITHIN * max(sizes)
    return len(set(values)) == 1


def _only_one_has(arms: Sequence[Arm]) -> list[str]:
    """Workloads that are not in all arms."""
    workloads = [{workload for run in arm.runs for workload in run.workloads} for arm in arms]
    every = dict.fromkeys(workload for arm in arms for run in arm.runs for workload in run.workloads)
    missing = [workload for workload in every if not all(workload in of_arm for of_arm in workloads)]
    return [f"workload {workload}, which is not in all" for workload in missing]


def _joined(facts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The facts of runs that repeat the same experiment; all values if they differ."""
    names = dict.fromkeys(name for one in facts for name in one)
    return {name: " and ".join(dict.fromkeys(one[name] for one in facts if name in one)) for name in names}


def _facts(run: MeasuredRun) -> Iterator[tuple[str, str]]:
    if run.machine_name == IMPORTED:
        yield from _imported_facts(run, run.settings)
        return
    model = run.machine.get("model")
    if isinstance(model, Mapping):
        yield from _flat(model, OF_MODEL)
    if isinstance(run.experiment.machine, Model):
        yield from _flat(run.experiment.machine.as_filed, OF_FILE)
    yield from machine_facts(run.machine).items()
    if isinstance(asked := _table_at(run.machine, "target.asked_for"), Mapping):
        yield from _flat(asked, "target: ")
    experiment = run.experiment
    for name, workload in experiment.workloads.items():
        yield from _options(workload.options, f"workload {name}: ")
    one = len(experiment.settings) == 1
    for name, controls in experiment.settings.items():
        yield from _flat(controls, "setting: " if one else f"setting {name}: ")
    for (name, setting), workload in experiment.variants.items():
        yield from _options(workload.options, f"workload {name}: " if one else f"workload {name}{UNDER}{setting}: ")


def machine_facts(machine: Mapping[str, Any]) -> dict[str, str]:
    """The relevant facts of a machine's description, by the names of `FACTS`."""
    found = {}
    for what, place in FACTS.items():
        if (value := _at(machine, place)) is not None:
            found[what] = BOOT_ARGUMENTS.sub("", value).strip() if what == "kernel command line" else value
    return found


def _imported_facts(run: MeasuredRun, settings: Sequence[str]) -> Iterator[tuple[str, str]]:
    for setting in settings:
        for name, value in run.experiment.settings.get(setting, {}).items():
            yield {"fio_version": FIO, "device": "device"}.get(name, f"{OF_FIO}{name}"), str(value)


def _flat(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            yield from _flat({str(place): one for place, one in enumerate(value)}, f"{prefix}{name}.")
        elif value is not None:
            yield f"{prefix}{name}", str(value)


def _options(options: Options, where: str) -> Iterator[tuple[str, str]]:
    """Sizes and times with their units; of a job file each option, below its section."""
    for name, value in options.model_dump(mode="json").items():
        unit = extras(type(options).model_fields[name]).get("unit")
        if unit in ("bytes", "ns") and isinstance(value, int):
            yield f"{where}{name}", written(value, unit).strip('"')
        elif unit == "bytes" and isinstance(value, Mapping) and value:
            yield f"{where}{name}", _sizes(value)
        else:
            yield from _flat({name: value}, where)
    if isinstance(options, FioOptions):
        for text in options.attachments.values():
            yield from _job_file(text, where)
    elif isinstance(options, TraceOptions):
        yield f"{where}I/Os", options.schedule["digest"]


def _sizes(weights: Mapping[str, float]) -> str:
    """`4KiB`, or of several `4KiB: 70, 64KiB: 30`."""
    sizes = [(written(int(size), "bytes").strip('"'), weight) for size, weight in weights.items()]
    return sizes[0][0] if len(sizes) == 1 else ", ".join(f"{size}: {weight:g}" for size, weight in sizes)


def _job_file(text: str, where: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = f"{line} "
        elif line and line[0] not in "#;":
            name, _, value = line.partition("=")
            yield f"{where}{section}{name.strip()}", value.strip() or "given"


def _table_at(machine: Mapping[str, Any], place: str) -> Any:
    found: Any = machine
    for name in place.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _at(machine: Mapping[str, Any], place: str) -> str | None:
    """None if it is not on record, or has only a reason why not."""
    found = _table_at(machine, place)
    return None if found is None or isinstance(found, Mapping | list) else str(found)
