"""The messages of a guest's agent (crates/measure/guest-agent): their schema, and the checks of their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator
from pydantic_core import SchemaValidator, from_json

from iolab.base.plain_text import is_one_line
from iolab.base.strict_json import JsonObject
from iolab.domain import native_types as native
from iolab.domain.phase_record import ENGINE_OPS

SYMBOLS_BYTES_MAX = 64 << 20
COUNT_MAX = 2**53
"""104 days in nanoseconds, 8 PiB; what JSON's other readers keep exact."""
UNIX_NS_MAX = 2**62
"""The year 2116."""
TEXT_MAX = 4096
ROUNDING = 1e-9


def _checked_numbers(value: Any) -> Any:
    """The record. ValueError if a number in it is none that a phase can yield."""
    for name, number in _numbers(value):
        low, high = -COUNT_MAX if name == "wall_clock_shift_ns" else 0, COUNT_MAX
        if name == "started_unix_ns":
            high = UNIX_NS_MAX
        if not low <= number <= high:
            raise ValueError(f"{name} is {number:g}, beyond {low} to {high}")
    return value


def _numbers(value: Any) -> Iterator[tuple[str, float]]:
    left: list[tuple[str, Any]] = [("", value)]
    while left:
        name, one = left.pop()
        if isinstance(one, dict):
            left += one.items()
        elif isinstance(one, list | tuple):
            left += ((name, each) for each in one)
        elif isinstance(one, int | float) and not isinstance(one, bool):
            yield name, one
        elif isinstance(one, str) and not _is_text(one):
            raise ValueError(f"{name} is no text of one line")


def _is_text(text: str) -> bool:
    return len(text) <= TEXT_MAX and is_one_line(text)


def _checked_text(text: str) -> str:
    if not _is_text(text):
        raise ValueError(f"no text of one line, of at most {TEXT_MAX} characters")
    return text


Text = Annotated[str, AfterValidator(_checked_text)]
OUTPUT_CHARS_MAX = 8 << 10
"""Of a command, its end: as the agent keeps it."""
Count = Annotated[int, Field(ge=0, le=COUNT_MAX)]
A = TypeVar("A")


class AgentMessage(BaseModel):
    """No key beside those named, no number that is a text or a truth, no infinity."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class BootMessage(AgentMessage):
    """It runs."""

    up: Text
    """The kernel's release."""


class BytesMessage(AgentMessage):
    """What comes next is no line."""

    bytes: Annotated[int, Field(ge=0, le=SYMBOLS_BYTES_MAX)]
    """So many follow, of symbols."""


class EndMessage(AgentMessage):
    """All is done."""

    end: Literal[True]


class Failure(AgentMessage):
    """Why the plan ended early."""

    what: str
    errno: Annotated[int, Field(ge=0, le=4095)] | None
    step: Count | None
    of_plan: bool
    """Whether the plan asks for something impossible, as opposed to a kernel that refuses."""


class FailureMessage(AgentMessage):
    """The plan ended early."""

    failed: Failure


class StepMessage(AgentMessage, Generic[A]):
    """The message that a step is done. The first key of a message, in the order of the alphabet, is its kind."""

    step: Count
    value: A


class WriteAnswer(AgentMessage):
    """The message that a kernel's file was written."""

    before: str
    after: str


class AbsentFileAnswer(AgentMessage):
    """The message that a kernel's file does not exist, or refused the value."""

    absent: str
    """Why the file cannot be written."""


class ExitAnswer(AgentMessage):
    """The message that a program on the console has ended."""

    status: Annotated[int, Field(ge=0, le=255)] | None
    """None: a signal ended it."""


class LoadAnswer(AgentMessage):
    """The message that a load of I/O has ended."""

    record: Annotated[native.PhaseRecordOfJobRecord, AfterValidator(_checked_numbers)]
    ops: Count


class MemberRecords(AgentMessage):
    """What each process of a load came to."""

    records: Annotated[list[native.PhaseRecordOfJobRecord], AfterValidator(_checked_numbers)]


class MembersAnswer(AgentMessage):
    """The message that a load in processes has ended."""

    record: MemberRecords
    ops: Count


class MetadataAnswer(AgentMessage):
    """The message that files were made."""

    record: Annotated[native.MetadataRecord, AfterValidator(_checked_numbers)]
    ops: Count


SwapCounts = dict[Literal["swap_in_bytes", "swap_out_bytes"], Count]


class SortRecords(AgentMessage):
    """What processes that sorted came to, and what was swapped meanwhile."""

    records: Annotated[list[native.SortRecord], AfterValidator(_checked_numbers)]
    before: SwapCounts
    first: SwapCounts | None
    after: SwapCounts
    swap_bytes_max: Count | None
    memory_bytes_max: Count | None


class SortAnswer(AgentMessage):
    """The message that memory was sorted."""

    record: SortRecords
    ops: Count


class CommandEnd(AgentMessage):
    """How a shell command ended, and what it used."""

    started_unix_ns: Annotated[int, Field(ge=0, lt=1 << 63)]
    elapsed_ns: Count
    used: Annotated[list[Count], Field(min_length=6, max_length=6)]
    """Fields of `Usage`, in its order."""
    status: Annotated[int, Field(ge=0, le=255)] | None
    signal: Annotated[int, Field(ge=1, le=64)] | None
    output: Annotated[str, Field(max_length=OUTPUT_CHARS_MAX)]

    @model_validator(mode="after")
    def _ended_in_one_way(self) -> Self:
        if (self.status is None) == (self.signal is None):
            raise ValueError("it ended by itself, or by a signal")
        return self


class CommandAnswer(AgentMessage):
    """The message that a command has ended."""

    record: CommandEnd
    ops: Count


Answer = (
    WriteAnswer
    | AbsentFileAnswer
    | ExitAnswer
    | LoadAnswer
    | MembersAnswer
    | MetadataAnswer
    | SortAnswer
    | CommandAnswer
    | None
)
_ANSWERS: dict[str, Any] = {
    "write": WriteAnswer | AbsentFileAnswer,
    "copy": WriteAnswer | AbsentFileAnswer,
    "console": ExitAnswer,
    "load": LoadAnswer,
    "members": MembersAnswer,
    "metadata": MetadataAnswer,
    "sort": SortAnswer,
    "command": CommandAnswer,
}
"""By what a step does; the others report nothing."""


@cache
def step_message(does: str) -> Any:
    """The message that such a step is done."""
    return StepMessage[_ANSWERS.get(does, type(None))]  # type: ignore[misc]


def read(model: Any, line: bytes) -> Any:
    """The line as such a message. ValueError if it is none."""
    # Not `validate_json`: each of its mistakes makes all that it lies in anew.
    return _validator(model).validate_python(from_json(line, allow_inf_nan=False))


@cache
def _validator(model: Any) -> SchemaValidator:
    """It ends at the first mistake of a list: a line has room for a million. That takes the schema of a model that was
    not built yet, as what is built is used as it is."""
    return SchemaValidator(_of_json(TypeAdapter(model | None).core_schema))


def _of_json(schema: Any) -> Any:
    """Lists end at their first mistake, and tuples may be lists."""
    if isinstance(schema, list):
        return [_of_json(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _of_json(one) for key, one in schema.items()}
    if made.get("type") == "tuple":
        made["strict"] = False
    return {**made, "fail_fast": True} if made.get("type") in ("list", "tuple") else made


def check_sense(step: Mapping[str, Any], answer: Answer) -> None:
    """ValueError: the answer is of the right shape, and is none to this step."""
    if isinstance(answer, LoadAnswer):
        _check_load(step["phase"], answer.record)
    elif isinstance(answer, MembersAnswer):
        if len(answer.record.records) != len(step["members"]):
            raise ValueError("a record for each process was due")
        for member, record in zip(step["members"], answer.record.records, strict=True):
            _check_load(member["phase"], record)
    elif isinstance(answer, MetadataAnswer):
        _check_phase(
            step["phase"]["name"], {thread["job"]["name"] for thread in step["phase"]["threads"]}, answer.record
        )
    elif isinstance(answer, SortAnswer):
        if len(answer.record.records) != len(step["processes"]):
            raise ValueError("a record for each process was due")
        for later in (answer.record.first, answer.record.after):
            if later is not None and (
                later.keys() != answer.record.before.keys()
                or any(later[name] < value for name, value in answer.record.before.items())
            ):
                raise ValueError("swapped less than before")
    elif isinstance(answer, AbsentFileAnswer) and not step["optional"]:
        raise ValueError("the file is not optional")


def _check_load(phase: Any, record: Any) -> None:
    jobs = {job["name"] for group in phase["groups"] for job in group["jobs"]}
    _check_phase(phase["name"], jobs, record)


def _check_phase(name: str, jobs: set[str], record: Any) -> None:
    if record["phase"] != name:
        raise ValueError(f"the phase {name} was due")
    if record["measured_from_ns"] > record["measured_to_ns"]:
        raise ValueError("the measured part ends before it begins")
    answer = [job["name"] for group in record["groups"] for job in group["jobs"]]
    if not record["groups"] or len(set(answer)) != len(answer) or not jobs.issuperset(answer):
        raise ValueError("its jobs are not those of the phase")
    for group in record["groups"]:
        for job in group["jobs"]:
            for op in _ops(job):
                _check_op(op)


def _ops(job: JsonObject) -> Iterator[Any]:
    named: Any = job.get("ops", {})
    yield from named.values()
    yield from (op for name in ENGINE_OPS if (op := job.get(name)) is not None)


def _check_op(op: native.OpRecord) -> None:
    latency = op["latency"]
    if (latency is None) != (op["count"] == 0):
        raise ValueError("only what was done has a latency")
    if latency is None:
        return
    last = -1
    for low, high, count in latency["histogram"]:
        if not last < low <= high or not count:
            raise ValueError("the histogram is out of order")
        last = high
    if sum(count for *_, count in latency["histogram"]) != op["count"]:
        raise ValueError("the histogram counts other operations")
    if not latency["min_ns"] * (1 - ROUNDING) <= latency["mean_ns"] <= latency["max_ns"] * (1 + ROUNDING):
        raise ValueError("the mean latency is not between the least and the most")
