"""`kind = "together"`: workloads of other kinds at once, on one machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import ValidationError

from iolab.base.errors import unknown
from iolab.base.option import Options, explain, option, shown
from iolab.base.toml import TomlTable
from iolab.domain.trial import Phase
from iolab.domain.trial.phase import PhaseOverlap
from iolab.domain.trial.trial import derive_seed
from iolab.domain.workload import fs_mark, io, mix, qsbench
from iolab.domain.workload.job import JobOptions
from iolab.domain.workload.kind import Conflict, Kind, refuse_unknown

PARTS: dict[str, Kind] = {kind.name: kind for kind in (io.KIND, mix.KIND, fs_mark.KIND, qsbench.KIND)}
"""What runs beside others: kinds that can be one measured phase."""


class TogetherOptions(Options):
    """The workloads that begin together, and whose end is the end of all."""

    takes: ClassVar[tuple[type[Options], ...]] = tuple(kind.options for kind in PARTS.values())

    parts: dict[str, dict[str, Any]] = option(
        ...,
        f"A table per workload, [workloads.NAME.parts.PART], with its `kind` ({', '.join(PARTS)}) and the options "
        "of that kind.",
        expected="a table of workloads",
    )
    ends_with: str | None = option(
        None, "The part whose end stops the others.", default_is="each part runs to its own end"
    )

    def part(self, name: str) -> tuple[Kind, Options]:
        """The part's kind and its options. ValidationError, or KeyError for the kind, if they are wrong."""
        table = dict(self.parts[name])
        kind = PARTS[table.pop("kind", "io")]
        return kind, kind.options.model_validate(table)


def _conflicts(options: TogetherOptions) -> Iterator[Conflict]:
    if len(options.parts) < 2:
        yield Conflict(("parts",), "expected two or more, each a table [workloads.NAME.parts.PART]")
    if options.ends_with is not None and options.ends_with not in options.parts:
        yield Conflict(("ends_with",), unknown("part", options.ends_with, options.parts))
    of_kind: dict[str, str] = {}
    for name, table in options.parts.items():
        at = ("parts", name)
        if not re.fullmatch(r"[\w-]+", name):
            yield Conflict(at, 'a part\'s name has letters, digits, "_" and "-" only')
        if (kind := table.get("kind", "io")) not in PARTS:
            yield Conflict((*at, "kind"), f"{shown(kind)}: {unknown('kind', str(kind), PARTS)}")
            continue
        found = list(_of_part(options, name))
        for conflict in found:
            yield Conflict((*at, *map(str, conflict.key)), conflict.what)
        if found:
            continue
        measured = [phase for phase in _of(options, name, 0, 1) if phase.measured]
        if any(phase.control_groups for phase in measured):
            yield Conflict((*at, "groups"), "a part has none of its own; make all of it one mix with groups")
        elif len(measured) != 1:
            what = f"{len(measured)} measured phases, one after the other; a part is one"
            yield Conflict((*at, "loops") if "loops" in table else at, what)
        elif other := of_kind.get(measured[0].kind):
            what = f"{other} offers I/O of the same sort; make both jobs of one part of kind mix"
            yield Conflict(at, what if measured[0].kind == "load" else f"{other} is of the same kind; give one of them")
        else:
            of_kind[measured[0].kind] = name


def _of_part(options: TogetherOptions, name: str) -> Iterator[Conflict]:
    try:
        kind, own = options.part(name)
    except ValidationError as error:
        kind = PARTS[options.parts[name].get("kind", "io")]
        for detail in error.errors():
            key, what = explain(detail, kind.options, f"kind {kind.name}", f"iolab list workloads {kind.name}")
            yield Conflict(tuple(map(str, key)), what)
        return
    yield from kind.conflicts(own)


def _of(options: TogetherOptions, name: str, seed: int, devices: int) -> list[Phase]:
    kind, own = options.part(name)
    return kind.phases(own, derive_seed(seed, name), devices)


def _phases(options: TogetherOptions, seed: int, devices: int = 1) -> list[Phase]:
    """What parts lay out comes first, one after the other; then all measured phases, named as their parts, at once."""
    before: list[Phase] = []
    at_once: list[Phase] = []
    for name in options.parts:
        for phase in _of(options, name, seed, devices):
            if not phase.measured:
                before.append(phase.of_part(name, f"{name} {phase.name}"))
                continue
            beside = PhaseOverlap(follows=bool(at_once), stops_others=name == options.ends_with)
            at_once.append(phase.of_part(name, name).model_copy(update={"beside": beside}))
    return [*before, *at_once]


def _override(table: TomlTable, changes: Mapping[str, Any]) -> TomlTable:
    """Options of parts by their tables; any other goes to each part whose kind has it."""
    own = TogetherOptions.model_fields
    of_parts = changes.get("parts", {})
    parts = {}
    refuse_unknown("parts", table.get("parts", {}), of_parts)
    for name, part in table.get("parts", {}).items():
        kind = PARTS.get(part.get("kind", "io"), io.KIND)
        rest = {key: value for key, value in part.items() if key != "kind"}
        given = {key: value for key, value in changes.items() if key not in own and _takes(kind, key)}
        changed = kind.override(rest, {**given, **of_parts.get(name, {})})
        parts[name] = {**({"kind": part["kind"]} if "kind" in part else {}), **changed}
    taken = {key for key in changes for part in parts.values() if key not in own and key in _keys(part)}
    others = {key: value for key, value in changes.items() if key != "parts" and key not in taken}
    return {**table, "parts": parts, **others}


def _takes(kind: Kind, key: str) -> bool:
    return key in kind.options.model_fields or (kind is mix.KIND and key in JobOptions.model_fields)


def _keys(part: TomlTable) -> set[str]:
    jobs = part.get("jobs")
    of_jobs = {key for job in jobs.values() for key in job} if isinstance(jobs, dict) else set()
    return {*part, *of_jobs}


def _file_bytes(options: TogetherOptions) -> int:
    return sum(kind.file_bytes(own) for kind, own in map(options.part, options.parts))


KIND = Kind(
    name="together",
    help="Workloads of other kinds at once: files made or memory sorted beside reads and writes.",
    options=TogetherOptions,
    conflicts=_conflicts,
    phases=_phases,
    override=_override,
    file_bytes=_file_bytes,
    compared=("rate_bytes_per_s", "latency_ns_mean", "latency_ns_p99", "files_per_s", "elapsed_s"),
)
