"""The names that fio 3.33 gives its options and engines. Made by tools/fio_options.py."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class Known:
    source: str
    engines: frozenset[str]
    names: dict[str, str]
    """Every name, aliases too -> the name that fio lists it by."""


@cache
def known() -> Known:
    data = json.loads(resources.files("iolab.domain.workload.fio_file").joinpath("options.json").read_text())
    names = {alias: name for name, aliases in data["options"].items() for alias in aliases}
    return Known(data["source"], frozenset(data["engines"]), {**names, **{name: name for name in data["options"]}})
