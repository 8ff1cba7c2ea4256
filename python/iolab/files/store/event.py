"""What each event of a journal must have for a reader to rely on it. Keys beyond these are left as they are."""

from __future__ import annotations

import json
from functools import cache
from typing import Annotated, Literal, NotRequired

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from iolab.base.strict_json import JsonObject
from iolab.domain.trial import DeviceIdentity

Event = JsonObject
"""Any event, as a line has it: `event` (its name), `wall_unix_ns`, `monotonic_ns` (since the machine's boot), and what
belongs to the event. Once it is checked, it has the type below that its name gives."""

INT64_MAX = 2**63 - 1
TRIAL_MAX = 10**9
NAME_CHARACTERS_MAX = 10_000
CONFIRM_MAX = 1_000

Number = Annotated[int, Field(ge=0, le=TRIAL_MAX)]
Nanoseconds = Annotated[int, Field(ge=-INT64_MAX, le=INT64_MAX)]
Count = Annotated[int, Field(ge=0, le=INT64_MAX)]
Name = Annotated[str, Field(max_length=NAME_CHARACTERS_MAX)]
Sha256 = Annotated[str, Field(max_length=64)]


def _is_device(given: JsonObject) -> JsonObject:
    DeviceIdentity.model_validate_json(json.dumps(given))
    return given


@with_config(ConfigDict(extra="allow", strict=True))
class AnyEvent(TypedDict):
    """What every event has; one of a later iolab may have any other key."""

    event: Name
    wall_unix_ns: NotRequired[Nanoseconds]
    monotonic_ns: NotRequired[Nanoseconds]


class SessionEvent(AnyEvent):
    """`run_started`, and `run_resumed` each time the run went on: on which machine, with how many rounds to come."""

    rounds: Number
    fingerprint: NotRequired[dict[str, str]]
    build_profile: NotRequired[str]
    part: NotRequired[Name]
    block: NotRequired[Number]
    boot: NotRequired[Name]
    facts: NotRequired[dict[str, str]]
    origin: NotRequired[object]
    boot_id: NotRequired[str]
    on: NotRequired[Name]
    """The cluster's address as `--on` names it, for trials on other hosts."""


class AskedQuestion(TypedDict):
    """The question of a run that searches: `iolab.studies.run.question.Question`."""

    workload: Name
    metric: NotRequired[Name]
    """The metric of a run that an older iolab began."""
    metrics: NotRequired[list[Name]]
    good: Name
    bad: Name
    confidence: Annotated[float, Field(ge=0.5, lt=1)]
    most: Number | None
    confirm: Annotated[int, Field(ge=0, le=CONFIRM_MAX)]
    spread: NotRequired[Number | None]
    time_s: NotRequired[Annotated[float, Field(gt=0, allow_inf_nan=False)] | None]


class RunStarted(SessionEvent):
    """What the run is: `run_started`."""

    format: Number
    seed: Count
    until_decided: bool
    machine: Name
    probes: NotRequired[list[Name]]
    workloads: list[Name]
    settings: list[Name]
    experiment_sha256: NotRequired[Sha256]
    machine_sha256: NotRequired[Sha256]
    iolab_version: Name
    question: NotRequired[AskedQuestion]


class TrialAbandoned(AnyEvent):
    """A trial has to be run again: `trial_abandoned`."""

    trial: Number


class TrialStarted(AnyEvent):
    """`trial_started`."""

    trial: Number
    attempt: Number


class TrialFinished(AnyEvent):
    """Enough to list the trial and to recognise its file: `trial_finished`."""

    trial: Number
    round: Number
    position: Number
    workload: Name
    setting: Name
    seed: Count
    status: Literal["ok", "faulty", "failed", "impossible"]
    impossible: NotRequired[dict[str, str]]
    """Why it is impossible, by control."""
    doubts: NotRequired[dict[str, float]]
    attempt: Number
    started_unix_ns: Nanoseconds
    duration_ns: Nanoseconds | None
    size_bytes: Count
    """The size of the trial's file."""
    sha256: Sha256
    host: NotRequired[Name]
    """The host of the trial, in a run on several hosts."""
    source: NotRequired[Number]
    """The number of the imported file, from 0."""
    line: NotRequired[Number]
    """Where the table starts in it that this round is of."""
    adopted: NotRequired[bool]
    """A kill left the file without this entry, and a resumed run took it over."""


class DevicesAdmitted(AnyEvent):
    """What the target's devices are known by, before the first is written to: `devices_admitted`."""

    devices: list[Annotated[JsonObject, AfterValidator(_is_device)]]


class Look(AnyEvent):
    """What was undecided after so many rounds: `look`."""

    rounds: Number
    undecided: list[str]


class ImportProblem(AnyEvent):
    """What could not be imported: `import_problem`."""

    text: str


_KINDS: dict[str, type] = {
    "run_started": RunStarted,
    "run_resumed": SessionEvent,
    "trial_started": TrialStarted,
    "trial_finished": TrialFinished,
    "trial_abandoned": TrialAbandoned,
    "look": Look,
    "devices_admitted": DevicesAdmitted,
    "import_problem": ImportProblem,
}


@cache
def _validator(kind: str) -> TypeAdapter[AnyEvent]:
    return TypeAdapter(_KINDS.get(kind, AnyEvent))


def check(event: Event) -> None:
    """ValueError states in a line what of the event no reader could rely on. Events of a later iolab have only
    clocks."""
    name = event.get("event")
    if not isinstance(name, str):
        raise ValueError("not a journal entry")
    try:
        _validator(name if name in _KINDS else "").validate_python(event)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"not a journal entry: {key[:80]} of {name[:80]!r}: {first['msg']}") from None
