"""The keys of machine files with unit, range and reader, from the schema that Rust exports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from iolab import _native
from iolab.base.toml import KeyPath
from iolab.domain import native_model

_Schema = dict[str, Any]
ELEMENT = "N"
"""In a path: the number of an array's element."""
_UNITS = {
    "ns": "ns",
    "bytes": "bytes",
    "kb": "KiB",
    "bytes_per_s": "bytes/s",
    "per_s": "1/s",
    "hz": "1/s",
    "per_minute": "1/min",
    "percent": "%",
    "per_mille": "1/1000",
    "cycles": "cycles",
    "lines": "cache lines",
    "sectors": "sectors of 512 bytes",
    "blocks": "blocks of 4 KiB",
    "jitter": "share",
    "spread": "share",
}
"""How the name of a key ends, `_max` and `_min` left out -> its unit."""
_ANY_MACHINE = {
    "kernel": "6.1",
    "cpus": {"count": 1, "time_slice_ns": 1, "call_ns": 0, "completion_ns": 0, "page_copy_ns": 0, "jitter": 0.0},
    "drives": [{"device": {"kind": "null", "capacity_bytes": 1 << 30, "latency_ns": 0, "queue_depth": 1}}],
}
"""One that can be built: who reads a key does not depend on it."""


@dataclass(frozen=True)
class Key:
    """A key that holds a value, not a table."""

    path: KeyPath
    """With `ELEMENT` in place of numbers: `drives.N.queue.nr_requests`."""
    kind: str | None
    """The kind of the device, or the filesystem xfs, that the key belongs to."""
    takes: str
    """`integer`, `number`, `boolean`, `string`, or the words that it may be."""
    least: float | None
    most: float | None
    required: bool
    help: str

    @property
    def name(self) -> str:
        """The dotted path."""
        return ".".join(self.path)

    @property
    def unit(self) -> str:
        """By the end of its name, or of the table's that it is in (`cycles.begin`); empty: a count or a word."""
        if self.takes not in ("integer", "number"):
            return ""
        for part in reversed(self.path[-2:]):
            plain = re.sub(r"_(max|min)$", "", part)
            ends = [end for end in _UNITS if plain == end or plain.endswith(f"_{end}")]
            if ends:
                return _UNITS[max(ends, key=len)]
        return ""


def keys() -> list[Key]:
    """Every key of the schema, in the order of their names; those of an array's disk are those of a disk."""
    native_model.required()
    definitions: dict[str, _Schema] = json.loads(_native.schema())["$defs"]
    return list(_Walk(definitions).inside(definitions["MachineFile"], (), None))


def read_when(names: Sequence[str]) -> dict[str, str]:
    """When a machine reads each key, by its dotted path, as a phrase; a key that nothing reads is left out."""
    numbered = {re.sub(rf"\b{ELEMENT}\b", "0", name): name for name in names}
    found = native_model.unread_keys(_ANY_MACHINE, [], list(numbered))
    return {numbered[key]: when for key, when in found.items() if when is not None}


class _Walk:
    def __init__(self, definitions: dict[str, _Schema]) -> None:
        self._definitions = definitions

    def inside(self, schema: _Schema, path: KeyPath, kind: str | None) -> Iterator[Key]:
        """The keys in a table, in arrays of tables and in the alternatives of either."""
        if "$ref" in schema:
            yield from self.inside(self._target(schema), path, kind)
        properties: dict[str, _Schema] = schema.get("properties", {})
        kind = next((str(one["const"]) for one in properties.values() if "const" in one), kind)
        for one in _alternatives(schema):
            yield from self.inside(one, path, kind)
        if isinstance(schema.get("items"), dict):
            yield from self._key(schema["items"], (*path, ELEMENT), kind, required=True)
        for name, inner in sorted(properties.items()):
            if "const" not in inner and not (kind == "array" and name == "disk"):
                yield from self._key(inner, (*path, name), kind, required=name in schema.get("required", ()))

    def _key(self, schema: _Schema, path: KeyPath, kind: str | None, *, required: bool) -> Iterator[Key]:
        takes = self._takes(schema)
        if takes is None:
            yield from self.inside(schema, path, kind)
            return
        help_text = " ".join(schema.get("description", "").split())
        yield Key(path, kind, takes, schema.get("minimum"), schema.get("maximum"), required, help_text)

    def _takes(self, schema: _Schema) -> str | None:
        """None: tables, or an array."""
        if "$ref" in schema:
            return self._takes(self._target(schema))
        if "const" in schema:
            return str(schema["const"])
        if "enum" in schema:
            return " or ".join(map(str, schema["enum"]))
        types = schema.get("type")
        plain = [one for one in ([types] if isinstance(types, str) else types or ()) if one != "null"]
        if plain:
            return None if plain[0] in ("object", "array") else str(plain[0])
        taken = [self._takes(one) for one in _alternatives(schema) if one.get("type") != "null"]
        return None if not taken or None in taken else " or ".join(one for one in taken if one)

    def _target(self, schema: _Schema) -> _Schema:
        return self._definitions[schema["$ref"].rpartition("/")[2]]


def _alternatives(schema: _Schema) -> list[_Schema]:
    return [one for name in ("anyOf", "oneOf", "allOf") for one in schema.get(name, ())]
