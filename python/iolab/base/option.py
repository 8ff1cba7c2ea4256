"""Options: declared once as pydantic fields, from which parsing, error messages, help and documentation are made."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, cast, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from iolab.base import quantity
from iolab.base.errors import nearest, unknown
from iolab.base.plain_text import clipped, is_one_line

SHOWN_MAX = 300
"""Characters of a value that a message quotes."""

LISTED_MAX = 12
"""Most options that an error line names; for more, it states where they are listed."""

Unit = Literal["bytes", "ns", "bytes/s", "1/s", "percent"]


class Options(BaseModel):
    """A table of options. Strict: a number in quotes is not a number."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)

    called: ClassVar[str] = "a job"
    """Whose options they are, as a table within another one."""
    takes: ClassVar[tuple[type[BaseModel], ...]] = ()
    """Models of tables that an option takes as they are written, and that are checked later."""

    @field_validator("*", mode="before")
    @classmethod
    def _is_one_line(cls, given: object, info: ValidationInfo) -> object:
        """An option's text ends up in other programs' lines, in paths and on terminals, so it stays on one line."""
        wrong = next((text for text in _texts(given) if not is_one_line(text)), None)
        if wrong is not None:
            field = cls.model_fields[str(info.field_name)]
            if not extras(field).get("lines") and get_args(inner_type(field)) != (str, Any):
                why = f"{shown(wrong)} given; expected a text on one line, without control characters"
                raise PydanticCustomError("quantity", "{why}", {"why": why})
        return given

    @property
    def attachments(self) -> dict[str, str]:
        """Texts of other files that the options are made of, by the names under which a run keeps them."""
        return {}

    @property
    def named_paths(self) -> list[str]:
        """Absolute paths that the options' own files say I/O goes to: the target has to be them, or hold them."""
        return []


def option(
    default: Any,
    help: str,
    *,
    unit: Unit | None = None,
    default_is: str | None = None,
    expected: str | None = None,
    lines: bool = False,
    **bounds: float,
) -> Any:
    """A field. `default_is` states in words what a default of None comes to; `expected` overrides the derived text;
    with `lines` a text may have several."""
    extra = {"unit": unit, "default_is": default_is, "expected": expected, "lines": lines}
    noted: dict[str, Any] = {key: value for key, value in extra.items() if value}
    return Field(default, description=help, json_schema_extra=noted, **cast(Any, bounds))


def _texts(given: object) -> Iterator[str]:
    """The texts of a value as TOML has it: itself, a list's, a table's with its keys."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, list):
        yield from (text for text in given if isinstance(text, str))
    elif isinstance(given, dict):
        yield from (text for pair in given.items() for text in pair if isinstance(text, str))


PLAIN_MAX = 2**63 - 1
"""The largest quantity without its unit: the kernel and the engine count in signed 64 bits."""

_EXPECTED_BY_UNIT = {
    "bytes": 'a size such as "4KiB"',
    "ns": 'a duration such as "2s" or "500ms"',
    "bytes/s": 'a rate such as "100MiB/s"',
    "percent": 'a percentage such as 20 or "20%"',
}


def _quantity(parse: Callable[[str], float], unit: Unit, *, plain: Callable[[object], bool]) -> BeforeValidator:
    """Text with a unit, or a plain number if `plain` permits it because it can't be misread."""

    def read(given: object) -> object:
        if isinstance(given, str):
            try:
                return parse(given)
            except ValueError as error:
                raise PydanticCustomError("quantity", "{why}", {"why": clipped(str(error), 2 * SHOWN_MAX)}) from None
        if isinstance(given, bool) or not plain(given):
            why = f"{shown(given)} given; expected {_EXPECTED_BY_UNIT[unit]}"
            raise PydanticCustomError("quantity", "{why}", {"why": why})
        if isinstance(given, int) and given > PLAIN_MAX:
            why = f"{shown(given)} given; expected at most {PLAIN_MAX}"
            raise PydanticCustomError("quantity", "{why}", {"why": why})
        return given

    return BeforeValidator(read)


Bytes = Annotated[int, _quantity(quantity.parse_bytes, "bytes", plain=lambda given: isinstance(given, int))]
"""A size: `"4KiB"`, or a number of bytes."""
Duration = Annotated[int, _quantity(quantity.parse_duration_ns, "ns", plain=lambda given: given == 0)]
"""A duration in nanoseconds: `"2s"`, or 0; any other plain number would leave its unit to guess."""
Rate = Annotated[float, _quantity(quantity.parse_rate, "bytes/s", plain=lambda given: isinstance(given, int | float))]
"""`"100MiB/s"`, or a number of bytes per second."""
Percent = Annotated[
    float, _quantity(quantity.parse_percent, "percent", plain=lambda given: isinstance(given, int | float))
]
"""`"20%"`, or 20."""


def shown(value: object) -> str:
    """A value as it would stand in TOML, near enough for an error message: of a long one the beginning and the end."""
    return clipped(json.dumps(value, default=str), SHOWN_MAX)


def written(value: object, unit: str | None) -> str:
    """A parsed value as an experiment's author writes it: 4096 bytes -> `"4KiB"`."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int) and not isinstance(value, bool) and value:
        if unit == "bytes":
            return f'"{quantity.format_bytes(value)}"'
        if unit == "ns":
            return f'"{quantity.format_duration_ns(value)}"'
    return shown(value)


def extras(field: FieldInfo) -> dict[str, Any]:
    """What `option` noted beside the field: unit, default_is, expected."""
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def inner_type(field: FieldInfo) -> Any:
    """The field's type, without `| None`."""
    types = [kind for kind in get_args(field.annotation) if kind is not type(None)]
    optional = type(None) in get_args(field.annotation)
    return types[0] if optional else field.annotation


def takes_list(field: FieldInfo) -> bool:
    """Whether the option's one value is itself a list, so that only a list of lists is a matrix."""
    return get_origin(inner_type(field)) is list


def expected(field: FieldInfo) -> str:
    """What the option takes, in words, with its range or an example."""
    noted = extras(field)
    if "expected" in noted:
        return str(noted["expected"])
    text = _EXPECTED_BY_UNIT.get(noted.get("unit", "")) or _expected_by_type(inner_type(field))
    return text + _limits(field)


def _expected_by_type(kind: Any) -> str:
    if get_origin(kind) is Literal:
        words = ", ".join(map(str, get_args(kind)))
        return f"one of {words}" if len(get_args(kind)) > 1 else shown(words)
    if takes := {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}.get(kind):
        return takes
    return "a table"


def _limits(field: FieldInfo) -> str:
    bounds = {
        name: getattr(bound, name)
        for bound in field.metadata
        for name in ("ge", "gt", "le", "lt")
        if hasattr(bound, name)
    }
    shown_bounds = {name: written(value, extras(field).get("unit")).strip('"') for name, value in bounds.items()}
    match shown_bounds:
        case {"ge": low, "le": high}:
            return f" from {low} to {high}"
        case {"ge": low}:
            return f", at least {low}"
        case {"gt": low}:
            return f", above {low}"
    return ""


def explain(
    error: ErrorDetails, model: type[BaseModel], subject: str, listed_by: str | None = None
) -> tuple[tuple[str | int, ...], str]:
    """A pydantic error as (key path inside the table, one line). `subject` is who takes the options: `kind io`;
    `listed_by` the command that lists them when they are too many for a line."""
    path = error["loc"]
    outer = path[:-1] if error["type"] in ("extra_forbidden", "missing") else path
    owner, depth = _owner(model, outer)
    key = str(path[depth]) if depth < len(path) else ""
    field = owner.model_fields.get(key)
    given = shown(error["input"])
    if error["type"] == "extra_forbidden":
        taker = f"{getattr(owner, 'called', 'a job')} of {subject}" if owner is not model else subject
        return path, f"unknown option; {_instead(key, list(owner.model_fields), taker, listed_by)}"
    if depth == len(path):
        return path, f"{given} given; expected a table"
    if field is None or error["type"] == "quantity":
        return path, error["msg"]
    if error["type"] == "missing":
        return path, f"missing; expected {expected(field)}"
    if error["type"] == "literal_error" and isinstance(error["input"], str):
        return path[: depth + 1], f"{given}: {unknown(key, error['input'], map(str, get_args(inner_type(field))))}"
    if isinstance(error["input"], int) and error["input"] > 0:
        given = written(error["input"], extras(field).get("unit"))
    return path[: depth + 1], f"{given} given; expected {expected(field)}"


WORDS_OF_OTHERS = {
    **dict.fromkeys(("bs", "blocksize", "record_size", "request_size"), "block_size"),
    **dict.fromkeys(("iodepth", "io_depth", "qd", "depth"), "queue_depth"),
    **dict.fromkeys(("numjobs", "threads", "processes", "copies", "clients"), "jobs"),
    **dict.fromkeys(("runtime", "time", "seconds", "length"), "duration"),
    **dict.fromkeys(("rw", "readwrite", "operation", "op", "read", "reads", "write", "writes"), "read_percent"),
    **dict.fromkeys(("read_only", "write_only", "rwmixread", "rwmixwrite", "read_share"), "read_percent"),
    **dict.fromkeys(("ioengine", "io_engine"), "engine"),
    **dict.fromkeys(("size", "filesize"), "file_size"),
    **dict.fromkeys(("nrfiles", "numfiles"), "files_per_job"),
    **dict.fromkeys(("fsync", "sync"), "fsync_every"),
    **dict.fromkeys(("fdatasync",), "fdatasync_every"),
    **dict.fromkeys(("buffered", "o_direct"), "direct"),
    **dict.fromkeys(("ramp_time", "ramp", "warmup"), "warm_up"),
}
"""What other tools call an option; looked up before the spelling is."""


def _instead(key: str, options: list[str], taker: str, listed_by: str | None) -> str:
    if (meant := WORDS_OF_OTHERS.get(key.lower())) in options:
        return f"did you mean {meant}?"
    if close := nearest(key, options):
        return f"did you mean {close}?"
    if listed_by is None or len(options) <= LISTED_MAX:
        return f"{taker} takes: {', '.join(options)}"
    return f"see: {listed_by}"


def _owner(model: type[BaseModel], path: tuple[str | int, ...]) -> tuple[type[BaseModel], int]:
    """The model whose key `path` leads to, and the place of that key in `path`: an option may be a table, or tables by
    name."""
    depth = 0
    while depth < len(path) and (field := model.model_fields.get(str(path[depth]))):
        kind = inner_type(field)
        by_name = get_args(kind)
        inner, steps = (by_name[-1], 2) if by_name else (kind, 1)
        if len(path) < depth + steps or not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            break
        model, depth = inner, depth + steps
    return model, depth


@cache
def natural_lists(model: type[BaseModel]) -> frozenset[str]:
    """The options of `model`, and of the tables it holds by name, whose one value is a list."""
    names = {name for name, field in model.model_fields.items() if takes_list(field)}
    for field in model.model_fields.values():
        for value in get_args(inner_type(field)):
            if isinstance(value, type) and issubclass(value, BaseModel):
                names |= natural_lists(value)
    for held in getattr(model, "takes", ()):
        names |= natural_lists(held)
    return frozenset(names)
