"""What each event of a journal must have for a reader to rely on it. Keys beyond these are left as they are."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from iolab.domain.trial import DeviceIdentity

Event = dict[str, Any]
"""`event` (its name), `wall_unix_ns`, `monotonic_ns` (since the machine's boot), and what belongs to the event."""

INT64_MAX = 2**63 - 1
TRIAL_MAX = 10**9
NAME_CHARACTERS_MAX = 10_000

Number = Annotated[int, Field(ge=0, le=TRIAL_MAX)]
Nanoseconds = Annotated[int, Field(ge=-INT64_MAX, le=INT64_MAX)]
Count = Annotated[int, Field(ge=0, le=INT64_MAX)]
Name = Annotated[str, Field(max_length=NAME_CHARACTERS_MAX)]
Sha256 = Annotated[str, Field(max_length=64)]


class _Any(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    event: Name
    wall_unix_ns: Nanoseconds = 0
    monotonic_ns: Nanoseconds = 0


class _Session(_Any):
    rounds: Number
    fingerprint: dict[str, str] = {}
    build_profile: str = ""
    part: Name = ""
    block: Number = 0
    boot: Name = ""
    facts: dict[str, str] = {}


class _RunStarted(_Session):
    format: Number
    seed: Count
    until_decided: bool
    machine: Name
    probes: list[Name] = []
    workloads: list[Name]
    settings: list[Name]
    experiment_sha256: Sha256 = ""
    machine_sha256: Sha256 = ""
    iolab_version: Name


class _OfTrial(_Any):
    trial: Number


class _TrialStarted(_OfTrial):
    attempt: Number


class _TrialFinished(_OfTrial):
    round: Number
    position: Number
    workload: Name
    setting: Name
    seed: Count
    status: Literal["ok", "faulty", "failed", "impossible"]
    impossible: dict[str, str] = {}
    doubts: dict[str, float] = {}
    attempt: Number
    started_unix_ns: Nanoseconds
    duration_ns: Nanoseconds | None
    size_bytes: Count
    sha256: Sha256
    source: Number = 0


class _DevicesAdmitted(_Any):
    devices: list[dict[str, Any]]

    @field_validator("devices")
    @classmethod
    def _are_devices(cls, given: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for device in given:
            DeviceIdentity.model_validate_json(json.dumps(device))
        return given


class _Look(_Any):
    rounds: Number
    undecided: list[str]


class _ImportProblem(_Any):
    text: str


_KINDS: dict[str, type[_Any]] = {
    "run_started": _RunStarted,
    "run_resumed": _Session,
    "trial_started": _TrialStarted,
    "trial_finished": _TrialFinished,
    "trial_abandoned": _OfTrial,
    "look": _Look,
    "devices_admitted": _DevicesAdmitted,
    "import_problem": _ImportProblem,
}


def check(event: Event) -> None:
    """ValueError says in a line what of the event no reader could rely on. Events of a later iolab have only clocks."""
    name = event.get("event")
    if not isinstance(name, str):
        raise ValueError("not a journal entry")
    try:
        _KINDS.get(name, _Any).model_validate(event)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"not a journal entry: {key[:80]} of {name[:80]!r}: {first['msg']}") from None
