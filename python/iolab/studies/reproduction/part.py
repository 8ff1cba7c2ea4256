"""What `iolab reproduce --json` prints, as types: `as_json` makes it, `scorecard` reads it again."""

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
    title: str
    case_study: str
    source: str
    aims: list[Aim]


class TablePart(FilePart):
    """A published table. `fitted` and `chosen` are what serves its cells, as the file has it."""

    kind: Literal["table"]
    experiment: str | None
    rounds: int
    unit: str
    cells: list[CellPart]
    not_compared: list[CellPart]
    typical_factor: dict[str, float | None]
    """By role."""
    independent: int
    null: NullPart | None
    mechanisms: list[str]
    notes: dict[str, str]
    fitted: dict[str, JsonObject]
    chosen: dict[str, JsonObject]


class StatementPart(TypedDict):
    """A statement beside the result of a run."""

    name: str
    text: str
    who: str
    workload: str
    metric: str
    per: str | None
    job: str
    baseline: str | None
    setting: str
    verdicts: list[str]
    above: float | None
    below: float | None
    served: bool
    met: bool
    absent: str | None
    found: JsonObject


class StatementsPart(FilePart):
    """All statements of a file."""

    kind: Literal["statements"]
    experiment: str | None
    rounds: int
    statements: list[StatementPart]
    fitted: dict[str, JsonObject]
    chosen: dict[str, JsonObject]


class DistributionPart(FilePart):
    """A published distribution."""

    kind: Literal["distribution"]
    unit: str
    rounds: int
    rows: dict[str, JsonObject]
    readings: list[JsonObject]


Part = TablePart | StatementsPart | DistributionPart
"""An object as `iolab reproduce --json` prints it; `kind` states which."""
