"""What was read back, checked against its type: the value, or a line that names the key that is wrong."""

from __future__ import annotations

from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")
KEY_MAX = 80


def checked(kind: TypeAdapter[T], value: object) -> T:
    """The value as this type. ValueError states in a line what is wrong, and at which key."""
    try:
        return kind.validate_python(value, strict=True)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None


def checked_json(kind: TypeAdapter[T], text: str | bytes) -> T:
    """The same of a JSON document."""
    try:
        return kind.validate_json(text, strict=True)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None


def first_problem(error: ValidationError) -> str:
    """`started_unix_ns: Input should be a valid integer`."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    key = ".".join(str(part) for part in first["loc"])[:KEY_MAX]
    return f"{key}: {first['msg']}" if key else str(first["msg"])
