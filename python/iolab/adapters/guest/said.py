"""What a guest's agent says (crates/engine/src/bin/guest-agent), held to one schema.

A kernel from elsewhere may say anything in its place: a line is read once it is whole, no line is longer than what may
come next, and whatever the agent would not say at that point ends the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Generic, Literal, Never, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator, from_json

from iolab.base.plain_text import is_one_line, one_line
from iolab.base.strict_json import JsonObject
from iolab.domain import native_types as native

LINE_BYTES_MAX = 64 << 10
RECORD_BYTES_MAX = 32 << 20
"""Of a line with a phase's record."""
SYMBOLS_BYTES_MAX = 64 << 20
COUNT_MAX = 2**53
"""104 days in nanoseconds, 8 PiB; what JSON's other readers keep exact."""
UNIX_NS_MAX = 2**62
"""The year 2116."""
VALUES_MAX = 1_000_000
"""In one line."""
TEXT_MAX = 4096
QUOTED_MAX = 120
MISTAKES_MAX = 100
"""To list more would take a guest's gigabytes."""
ROUNDING = 1e-9
_KEY = re.compile(rb'\s*\{\s*"([a-z]+)"\s*:')


class Unsaid(ValueError):
    """No agent says that; the text says what, and where."""


def _checked_numbers(value: Any) -> Any:
    """Of a record: each number is one that a phase can come to."""
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
Count = Annotated[int, Field(ge=0, le=COUNT_MAX)]
A = TypeVar("A")


class Said(BaseModel):
    """No key beside those named, no number that is a text or a truth, no infinity."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


class Up(Said):
    """It runs."""

    up: Text
    """The kernel's release."""


class Bytes(Said):
    """What comes next is no line."""

    bytes: Annotated[int, Field(ge=0, le=SYMBOLS_BYTES_MAX)]
    """So many follow, of symbols."""


class End(Said):
    """All is done."""

    end: Literal[True]


class Failure(Said):
    """Why the plan ended early."""

    what: str
    errno: Annotated[int, Field(ge=0, le=4095)] | None
    step: Count | None
    of_plan: bool
    """Whether the plan asks for something impossible, as opposed to a kernel that refuses."""


class Failed(Said):
    """The plan ended early."""

    failed: Failure


class Done(Said, Generic[A]):
    """Of a step."""

    step: Count
    told: A


class Written(Said):
    """Of a kernel's file."""

    before: str
    after: str


class Absent(Said):
    """Of a kernel's file that is not there, or refused."""

    absent: str
    """Why the file cannot be written."""


class Exited(Said):
    """Of a program on the console."""

    status: Annotated[int, Field(ge=0, le=255)] | None
    """None: a signal ended it."""


class Loaded(Said):
    """Of I/O."""

    record: Annotated[native.PhaseRecordOfJobRecord, AfterValidator(_checked_numbers)]
    ops: Count


class Made(Said):
    """Of files that were made."""

    record: Annotated[native.MetadataRecord, AfterValidator(_checked_numbers)]
    ops: Count


Swapped = dict[Literal["swap_in_bytes", "swap_out_bytes"], Count]


class Sorts(Said):
    """What processes that sorted came to, and what was swapped meanwhile."""

    records: Annotated[list[native.SortRecord], AfterValidator(_checked_numbers)]
    before: Swapped
    first: Swapped | None
    after: Swapped
    swap_bytes_max: Count | None
    memory_bytes_max: Count | None


class Sorted(Said):
    """Of memory that was sorted."""

    record: Sorts
    ops: Count


Answer = Written | Absent | Exited | Loaded | Made | Sorted | None
_ANSWERS: dict[str, Any] = {
    "write": Written | Absent,
    "console": Exited,
    "load": Loaded,
    "metadata": Made,
    "sort": Sorted,
}
"""By what a step does; the others tell nothing."""
_RECORDS = ("load", "metadata", "sort")
SYMBOLS = "symbols"


@dataclass
class Told:
    """What the agent told, in its order."""

    up: str | None = None
    """The kernel's release, once it runs."""
    steps: list[Answer] = field(default_factory=list)
    symbols: bytes | None = None
    ended: bool = False
    failed: Failure | None = None

    def answer(self, step: int) -> Answer:
        """Of the step with that number; None also of one that was not done."""
        return self.steps[step] if step < len(self.steps) else None

    @property
    def is_over(self) -> bool:
        """Nothing more is to be said."""
        return self.ended or self.failed is not None


class Reader:
    """Puts the agent's lines together: JSON, and after a line `{"bytes": N}` so many bytes of symbols."""

    def __init__(self, steps: Sequence[Mapping[str, Any]]) -> None:
        """`steps`: of the plan, each of which is answered once, in its order."""
        self.told = Told()
        self._steps = steps
        self._buffer = bytearray()
        self._looked = 0
        """So much of the buffer has no end of a line."""
        self._bytes_due: int | None = None
        self._line = 0

    def take(self, chunk: bytes) -> None:
        """Unsaid if no agent says it."""
        self._buffer += chunk
        at = 0
        while (end := self._end(at)) is not None:
            part = bytes(self._buffer[at:end])
            at = end
            if self._bytes_due is None:
                self._line += 1
                self._say(part)
            else:
                self.told.symbols, self._bytes_due = part, None
        del self._buffer[:at]

    def _end(self, at: int) -> int | None:
        """Where what begins at `at` is whole."""
        if self._bytes_due is not None:
            end = at + self._bytes_due
            return end if end <= len(self._buffer) else None
        most = RECORD_BYTES_MAX if self._does in _RECORDS else LINE_BYTES_MAX
        found = self._buffer.find(b"\n", max(at, self._looked), at + most)
        if found < 0:
            if len(self._buffer) - at >= most:
                self._line += 1
                self._refuse(f"longer than {most >> 10} KiB", bytes(self._buffer[at : at + QUOTED_MAX]))
            self._looked = len(self._buffer) - at
            return None
        self._looked = 0
        return found + 1

    @property
    def _does(self) -> str:
        """What the step does that is to be answered next; nothing after the last."""
        number = len(self.told.steps)
        return str(self._steps[number]["do"]) if number < len(self._steps) else ""

    def _say(self, line: bytes) -> None:
        takes = {
            b"up": self._take_up,
            b"step": self._take_step,
            b"bytes": self._take_bytes,
            b"failed": self._take_failed,
            b"end": self._take_end,
        }
        key = _KEY.match(line)
        take = takes.get(key[1]) if key else None
        try:
            if take is None:
                raise ValueError(f"expected {', '.join(map(bytes.decode, takes))}")
            if line.count(b",") > VALUES_MAX:
                raise ValueError(f"more than {VALUES_MAX:,} values")
            if self.told.is_over:
                raise ValueError("nothing comes after the end")
            take(line)
        except ValueError as error:
            self._refuse(_reason(error), line)

    def _take_up(self, line: bytes) -> None:
        if self.told.up is not None:
            raise ValueError("it is up already")
        self.told.up = _validated(Up, line).up

    def _take_bytes(self, line: bytes) -> None:
        if self._does != SYMBOLS or self.told.symbols is not None:
            raise ValueError("no symbols were asked for")
        self._bytes_due = _validated(Bytes, line).bytes

    def _take_step(self, line: bytes) -> None:
        number = len(self.told.steps)
        if self.told.up is None or not self._does:
            raise ValueError("no step is to be answered")
        done = _validated(_done(self._does), line)
        if done.step != number:
            raise ValueError(f"step {number} was to be answered")
        _check_sense(self._steps[number], done.told)
        self.told.steps.append(done.told)

    def _take_failed(self, line: bytes) -> None:
        failure = _validated(Failed, line).failed
        if failure.step is not None and failure.step != len(self.told.steps):
            raise ValueError("another step was under way")
        self.told.failed = failure

    def _take_end(self, line: bytes) -> None:
        _validated(End, line)
        if self.told.up is None or self._does:
            raise ValueError("not all steps were answered")
        self.told.ended = True

    def _refuse(self, why: str, line: bytes) -> Never:
        shown = one_line(line[: 4 * QUOTED_MAX].decode(errors="backslashreplace"), QUOTED_MAX)
        raise Unsaid(f"said what no agent of iolab's says, in line {self._line}: {why}: {shown}")


def _reason(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    if error.error_count() > MISTAKES_MAX:
        return f"{error.error_count()} mistakes"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    what = first["msg"].removeprefix("Value error, ")
    return one_line(f"{key}: {what}" if key else what, QUOTED_MAX * 2)


@cache
def _done(does: str) -> Any:
    return Done[_ANSWERS.get(does, type(None))]  # type: ignore[misc]


def _validated(model: Any, line: bytes) -> Any:
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


def _check_sense(step: Mapping[str, Any], told: Answer) -> None:
    """ValueError: the answer is of the right shape, and is none to this step."""
    if isinstance(told, Loaded):
        jobs = {job["name"] for group in step["phase"]["groups"] for job in group["jobs"]}
        _check_phase(step["phase"]["name"], jobs, told.record)
    elif isinstance(told, Made):
        _check_phase(step["phase"]["name"], {thread["job"]["name"] for thread in step["phase"]["threads"]}, told.record)
    elif isinstance(told, Sorted):
        if len(told.record.records) != len(step["processes"]):
            raise ValueError("a record for each process was to be told")
        for later in (told.record.first, told.record.after):
            if later is not None and (
                later.keys() != told.record.before.keys()
                or any(later[name] < value for name, value in told.record.before.items())
            ):
                raise ValueError("swapped less than before")
    elif isinstance(told, Absent) and not step["optional"]:
        raise ValueError("the file is not optional")


def _check_phase(name: str, jobs: set[str], record: Any) -> None:
    if record["phase"] != name:
        raise ValueError(f"the phase {name} was to be told")
    if record["measured_from_ns"] > record["measured_to_ns"]:
        raise ValueError("the measured part ends before it begins")
    told = [job["name"] for group in record["groups"] for job in group["jobs"]]
    if not record["groups"] or len(set(told)) != len(told) or not jobs.issuperset(told):
        raise ValueError("its jobs are not those of the phase")
    for group in record["groups"]:
        for job in group["jobs"]:
            for op in _ops(job):
                _check_op(op)


def _ops(job: JsonObject) -> Iterator[Any]:
    named: Any = job.get("ops", {})
    yield from named.values()
    yield from (op for name in ("read", "write", "sync", "discard", "null") if (op := job.get(name)) is not None)


def _check_op(op: native.OpRecord) -> None:
    latency = op["latency"]
    if (latency is None) != (op["count"] == 0):
        raise ValueError("latency is told of what was done, and of nothing else")
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
