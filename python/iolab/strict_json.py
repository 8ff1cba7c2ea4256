"""Strict JSON: a number that JSON has no word for (NaN, infinity) becomes null, anything unknown its text."""

from __future__ import annotations

import json
from typing import Any


def dumps(payload: Any) -> str:
    return json.dumps(_finite(payload), indent=2, ensure_ascii=False, allow_nan=False, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0.0 else None
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
