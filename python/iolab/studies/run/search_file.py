"""`search.jsonl`, read back: every line of a type below, or an error that names file, line and key."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from iolab.base import checked_lines
from iolab.base.bounded_file import read_bounded
from iolab.base.checked_lines import Lines
from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.base.schema import checked
from iolab.domain.bisect.search import VALUE_MAX

NAME = "search.jsonl"
BYTES_MAX = 2**30
LIMIT_S_MAX = 2_000_000
"""The limit of a command: about three weeks, the longest time in milliseconds that the kernel can wait for."""
REMEDY = "remove the line: what it holds is measured again"

Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
Place = Annotated[int, Field(ge=0)]
Value = Annotated[float, Field(ge=-VALUE_MAX, le=VALUE_MAX)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]
LimitSeconds = Annotated[float, Field(gt=0, le=LIMIT_S_MAX)]
_STRICT = ConfigDict(strict=True, extra="forbid")


@with_config(_STRICT)
class BuildEnded(TypedDict):
    """A build has ended. `place`: of the commit; `status`: None if its time was over."""

    event: Literal["built"]
    place: Place
    seconds: Seconds
    status: int | None


@with_config(_STRICT)
class MeasurementEnded(TypedDict):
    """A measurement has ended. `of`, `round`: of one that confirms, the place of the named commit, and which round."""

    event: Literal["measured"]
    place: Place
    value: Value
    seconds: Seconds
    of: Place | None
    round: Place | None


@with_config(_STRICT)
class CommitUnmeasurable(TypedDict):
    """A commit can't be built or measured."""

    event: Literal["unmeasurable"]
    place: Place
    why: str


Entry = Annotated[BuildEnded | MeasurementEnded | CommitUnmeasurable, Field(discriminator="event")]


def lines(search: Path) -> Lines:
    """The lines of a search's file; the last may be torn. InputError for a damaged one."""
    path = search / NAME
    found = checked_lines.read(read_bounded(path, BYTES_MAX, "a search's journal", within=search))
    if found.damaged:
        number, reason = found.damaged[0]
        raise InputError(reason, where=f"{path}:{number}", remedy=REMEDY)
    return found


def entries(
    search: Path, found: Lines, commits: int, confirm: int
) -> Iterator[BuildEnded | MeasurementEnded | CommitUnmeasurable]:
    """What stands after the question. InputError for what no search of this many commits wrote."""
    for number, given in list(zip(found.numbers, found.entries, strict=True))[1:]:
        try:
            entry = checked(_entry(), given)
            _check_places(entry, commits, confirm)
        except ValueError as error:
            raise InputError(str(error), where=f"{search / NAME}:{number}", remedy=REMEDY) from None
        yield entry


def _check_places(entry: BuildEnded | MeasurementEnded | CommitUnmeasurable, commits: int, confirm: int) -> None:
    if entry["place"] >= commits:
        raise ValueError(f"place: {entry['place']}, of {counted(commits, 'commit')} from 0 on")
    if entry["event"] != "measured":
        return
    of, turn = entry["of"], entry["round"]
    if (of is None) != (turn is None):
        raise ValueError("round: goes with `of`")
    if of is not None and turn is not None:
        if not (0 < of < commits and entry["place"] in (of - 1, of)):
            raise ValueError(f"of: {of}, which place {entry['place']} does not confirm")
        if turn >= confirm:
            raise ValueError(f"round: {turn}, of {confirm} from 0 on")


@cache
def _entry() -> TypeAdapter[Any]:
    return TypeAdapter(Entry)
