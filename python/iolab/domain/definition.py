"""What a metric is: name, unit, direction and help, and for iolab's own how it is computed from an observation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from iolab.domain.observation import Observation

Scope = Literal["op", "transfer", "io", "phase", "measure", "probe"]
Better = Literal["higher", "lower"] | None


@dataclass(frozen=True)
class Described:
    """What is known of a metric, whoever measures it."""

    name: str
    unit: str
    """`bytes/s`, `1/s`, `Hz`, `bytes`, `ns`, `s`, `cycles`, `count`, `share` (0 to 1), `percent`; empty where it is not
    known."""
    better: Better
    help: str


@dataclass(frozen=True)
class Metric(Described):
    """One that is computed from a record."""

    scope: Scope
    """op: of each operation of a phase, and of all transfers; transfer: of reads, writes and both. With op all only:
    io, where a phase reads or writes; phase, of every phase; measure, where a phase says that it has it; probe, where
    the trial has the probe on."""
    of: Callable[[Observation], float | None]
    absent: str
    """The reason when there is no value."""
    per_job: bool = False
    """Also kept for each job, of all its operations, where a phase has several; and for each weighted group."""
    per_group: bool = False
    """Also kept for each weighted group."""
    probe: str | None = None
    """Which probe gives it; with scope probe only."""


NO_TIME = "no time was measured"
NO_OPERATION = "no such operation completed in the measured part"
NO_IO = "no I/O completed in the measured part"
"""Why several metrics may have no value."""
