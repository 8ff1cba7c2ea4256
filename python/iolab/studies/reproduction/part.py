"""What `iolab reproduce --json` prints, as types: `as_json` makes it, `scorecard` reads it again.

Keys that are not required repeat the file of figures: they are printed, but not stored beside it.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from iolab.base.strict_json import JsonObject
from iolab.studies.reproduction.tables import Role


class Aim(TypedDict):
    """What was aimed at beside what came out (`iolab.studies.reproduction.score.Claim`)."""

    text: str
    met: bool
    date: str | None


class CellPart(TypedDict):
    """A published figure. One that is compared has `error` and `factor`, one that is not has `reason`."""

    row: str
    column: str
    role: Role
    follows: bool
    published: float
    simulated: NotRequired[float | None]
    error: NotRequired[float]
    factor: NotRequired[float]
    reason: NotRequired[str]


class NullPart(TypedDict):
    """The best null predictor of a table (`iolab.studies.reproduction.null.NullPredictor`)."""

    words: str
    cells: int
    factor: float
    model_factor: float
    as_good: bool


class FilePart(TypedDict):
    """What all objects of a file have, by the file's own words."""

    name: str
    title: NotRequired[str]
    case_study: str
    source: NotRequired[str]
    aims: list[Aim]


class TablePart(FilePart):
    """A published table. `fitted` and `chosen` are what serves its cells, as the file has it."""

    kind: Literal["table"]
    experiment: NotRequired[str | None]
    rounds: int
    unit: NotRequired[str]
    cells: list[CellPart]
    not_compared: list[CellPart]
    typical_factor: dict[str, float | None]
    """By role."""
    independent: int
    null: NullPart | None
    mechanisms: list[str]
    notes: NotRequired[dict[str, str]]
    fitted: NotRequired[dict[str, JsonObject]]
    chosen: NotRequired[dict[str, JsonObject]]


class StatementPart(TypedDict):
    """A statement beside the result of a run."""

    name: str
    text: NotRequired[str]
    who: NotRequired[str]
    workload: NotRequired[str]
    metric: NotRequired[str]
    per: NotRequired[str | None]
    job: NotRequired[str]
    baseline: NotRequired[str | None]
    setting: NotRequired[str]
    verdicts: NotRequired[list[str]]
    above: NotRequired[float | None]
    below: NotRequired[float | None]
    served: bool
    met: bool
    absent: str | None
    found: JsonObject


class StatementsPart(FilePart):
    """All statements of a file."""

    kind: Literal["statements"]
    experiment: NotRequired[str | None]
    rounds: int
    statements: list[StatementPart]
    fitted: NotRequired[dict[str, JsonObject]]
    chosen: NotRequired[dict[str, JsonObject]]


class DistributionPart(FilePart):
    """A published distribution."""

    kind: Literal["distribution"]
    unit: NotRequired[str]
    rounds: int
    rows: dict[str, JsonObject]
    readings: list[JsonObject]


Part = TablePart | StatementsPart | DistributionPart
"""An object as `iolab reproduce --json` prints it; `kind` states which."""
