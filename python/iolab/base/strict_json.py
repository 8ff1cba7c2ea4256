"""Strict JSON: a number that JSON has no word for (NaN, infinity) becomes null, anything unknown its text. What is read
has none of these, and no deeper nesting than its readers can follow."""

from __future__ import annotations

import json
from typing import Any, Never

from iolab.base.plain_text import escaped_for_json

DEPTH_MAX = 100

JsonObject = dict[str, object]
"""A JSON object, or a dict that becomes one. Its members can be anything, so that who reads one has to look what it is;
documents whose members are known have types of their own (`iolab.domain.native_types`, TypedDicts)."""


def dumps(payload: Any) -> str:
    """A document that a terminal may be shown: characters that it would obey stand in texts only, and are escaped."""
    text = json.dumps(_finite(payload), indent=2, ensure_ascii=False, allow_nan=False, default=str)
    return escaped_for_json(text)


def by_row(value: Any, indent: str = "") -> str:
    """A document to be kept under version control: its innermost objects and lists are rows, so that a difference shows
    each cell of a table that changed, as one."""
    items = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(items, list) or not any(isinstance(item, dict | list) for item in items):
        return json.dumps(value, ensure_ascii=False)
    rows = [by_row(item, indent + " ") for item in items]
    if isinstance(value, dict):
        rows = [f"{json.dumps(key, ensure_ascii=False)}: {row}" for key, row in zip(value, rows, strict=True)]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    inside = f",\n{indent} ".join(rows)
    return f"{begin}\n{indent} {inside}\n{indent}{end}"


def loads(content: bytes) -> Any:
    """The value. ValueError if it is no JSON in UTF-8, has numbers beyond all bounds, or is nested beyond DEPTH_MAX."""
    try:
        value = json.loads(content.decode(), parse_constant=_refuse)
        if _depth_within(value, DEPTH_MAX):
            return value
    except RecursionError:
        pass
    raise ValueError(f"nested more than {DEPTH_MAX} deep")


def _refuse(name: str) -> Never:
    raise ValueError(f"{name} is no number in JSON")


def _depth_within(value: Any, most: int) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return not isinstance(value, list) or (most > 0 and all(_depth_within(item, most - 1) for item in value))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0.0 else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
