"""A run as a list of runs has it: a line's worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from iolab.base.strict_json import JsonObject
from iolab.domain.definition import Verdict

State = Literal["done", "running", "unfinished", "unreadable"]
"""done: its last event reports it. running: a process holds its journal. unfinished: neither; it can be resumed."""
ID_LENGTH = 12
"""Hexadecimal digits of a run's id: among 10,000 runs two are alike once in 5 million collections."""
Id = Annotated[str, Field(pattern=r"^[0-9a-f]*$")]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Nanoseconds = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True)
class Labels:
    """What people say of a run: the one thing here that is not derived from it."""

    tags: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Main:
    """The number that stands for a run in a row of many: of its first workload under the baseline, the first metric
    that it compares. `typical` and `spread` as in `iolab.domain.summary.Cell`."""

    workload: str
    setting: str
    metric: str
    typical: Finite
    spread: Finite | None


@dataclass(frozen=True)
class Entry:
    """A run in a few words and counts."""

    id: Id
    """The digest of the run's first event: a copy of the run has the same."""
    name: str
    """Its path below the collection's directory."""
    title: str
    started_unix_ns: Nanoseconds | None
    machine: str
    """`host`, `model:NAME`, `guest:KERNEL` or `imported`; empty if it is lost."""
    hostname: str
    kernel: str
    settings: tuple[str, ...]
    workloads: tuple[str, ...]
    rounds: Count
    trials: Count
    trials_not_ok: Count
    verdicts: Mapping[Verdict, Count]
    """How many comparisons came to each verdict."""
    problems: tuple[str, ...]
    benchmark: Id
    """The id of what it repeats (`iolab.domain.collection.benchmark`)."""
    hardware: Id
    """The id of what it ran on (`iolab.domain.collection.hardware`)."""
    hardware_in_words: str
    state: State
    main: Main | None = None
    labels: Labels = field(default_factory=Labels)

    @property
    def date(self) -> str:
        """`2026-11-23 16:54`, in UTC; empty if unknown."""
        if self.started_unix_ns is None:
            return ""
        return datetime.fromtimestamp(self.started_unix_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M")

    def as_dict(self) -> JsonObject:
        """One JSON object: the schema stands in docs/collections.md."""
        return {
            "run": self.name,
            "id": self.id,
            "title": self.title,
            "started_unix_ns": self.started_unix_ns,
            "machine": self.machine,
            "hostname": self.hostname,
            "kernel": self.kernel,
            "settings": list(self.settings),
            "workloads": list(self.workloads),
            "rounds": self.rounds,
            "trials": self.trials,
            "trials_not_ok": self.trials_not_ok,
            "verdicts": dict(self.verdicts),
            "state": self.state,
            "tags": list(self.labels.tags),
            "note": self.labels.note,
            "problems": list(self.problems),
        }
