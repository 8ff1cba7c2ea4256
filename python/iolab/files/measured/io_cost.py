"""The six rates of io.cost.model as cells: of a line of the kernel's or of resctl-demo, or of a result in JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from iolab.domain.calibration import iocost
from iolab.files.measured.found import MeasuredCells

_LINE = re.compile(r"\b(" + "|".join(iocost.RATES) + r")=(\d+)\b")
DEPTH_MAX = 40


def read(text: str) -> MeasuredCells | None:
    """The cells, of the last place in the text that has all six rates; None if there is none."""
    rates = _of_lines(text) or _of_json(text)
    return None if rates is None else MeasuredCells(iocost.cells(rates))


def _of_lines(text: str) -> dict[str, float] | None:
    for line in reversed(text.splitlines()):
        rates = {name: float(rate) for name, rate in _LINE.findall(line)}
        if _has_all(rates):
            return rates
    return None


def _of_json(text: str) -> dict[str, float] | None:
    try:
        return _inside(json.loads(text), 0)
    except (ValueError, RecursionError):
        return None


def _inside(content: Any, depth: int) -> dict[str, float] | None:
    """The last object within that has the six rates as numbers, wherever the tool's version has it."""
    if isinstance(content, dict) and all(isinstance(content.get(name), int | float) for name in iocost.RATES):
        rates = {name: float(content[name]) for name in iocost.RATES}
        if _has_all(rates):
            return rates
    members = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    found = (_inside(member, depth + 1) for member in members) if depth < DEPTH_MAX else ()
    return next((rates for rates in reversed(list(found)) if rates is not None), None)


def _has_all(rates: dict[str, float]) -> bool:
    return all(rates.get(name, 0) > 0 for name in iocost.RATES)
