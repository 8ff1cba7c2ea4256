"""Python's types of the documents that cross the border to Rust, made from `_native.schema()`.

Each definition of the schema that Python code names, and what it is made of, becomes a TypedDict or the name of a
union, in python/iolab/domain/native_types.py, which `make golden` rewrites and `make check` compares: a field that is
renamed in Rust is an error of mypy's in Python.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iolab import _native

Json = dict[str, Any]

HEAD = '''"""Documents that cross the border to Rust, made by `make golden` of crates/bindings/src/json_schema.rs.

They are plain dicts of JSON: Rust checks what it is given, and these types show mypy what it takes and gives. The
schema states what each field means, in which unit and range.
"""

from typing import {names}

from typing_extensions import TypedDict
'''
"""pydantic takes TypedDicts of the standard library's from Python 3.12 on only."""
LINE_CHARACTERS = 120
ROOT = Path(__file__).parents[1]
FOLDERS = ("python", "tests", "tools", "benches")
NAMED = re.compile(r"\bnative(?:_types)?\.(\w+)")
WORD = re.compile(r"\w+")
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


@dataclass
class Module:
    """A module under construction: definitions in the order in which each has what it needs."""

    definitions: dict[str, Json]
    written: dict[str, str] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)

    def add(self, name: str) -> str:
        """Writes the definition, unless it has been written, after all that it refers to. Its name in Python: a text
        where it refers to itself."""
        if name in self.begun and name not in self.written:
            return f'"{name}"'
        if name not in self.written:
            self.begun.add(name)
            self.written[name] = self._definition(name, self.definitions[name])
        return name

    def _definition(self, name: str, schema: Json) -> str:
        if "properties" in schema and not alternatives(schema):
            return self._table(name, schema)
        if schema.get("type") == "object" and not schema.get("additionalProperties") and not alternatives(schema):
            return self._table(name, schema)
        if "properties" in schema:
            return self._flattened(name, schema)
        members = [self._member(name, one) for one in alternatives(schema)]
        union = " | ".join(dict.fromkeys(members)) if members else self.type_of(schema, name)
        return f"{name} = {union_of_literals(union)}\n"

    def _member(self, name: str, schema: Json) -> str:
        """One of several. Tables that have no name of their own are named by their tag."""
        if "properties" not in schema:
            return self.type_of(schema, name)
        tags = [str(part["const"]) for part in schema["properties"].values() if "const" in part]
        of_reference = schema["$ref"].rpartition("/")[2] if "$ref" in schema else ""
        own = f"{of_reference}Of{name}" if of_reference else camel([*tags, *schema["properties"]][0]) + name
        if own in self.written:
            raise ValueError(f"{name}: two tables that tools/native_types.py would call {own}")
        self.written[own] = self._table(own, schema, base=self.add(of_reference) if of_reference else "TypedDict")
        return own

    def _flattened(self, name: str, schema: Json) -> str:
        """A table with keys of its own, and those of one of several others."""
        members = []
        for one in alternatives(schema):
            base = self._member(name, one)
            own = f"{base}Of{name}"
            self.written[own] = self._table(own, schema, base=base)
            members.append(own)
        return f"{name} = {' | '.join(members)}\n"

    def _table(self, name: str, schema: Json, base: str = "TypedDict") -> str:
        keys = []
        required = set(schema.get("required", ()))
        for key, part in schema.get("properties", {}).items():
            found = self.type_of(part, name + camel(key))
            keys.append(f"    {key}: {found if key in required else f'NotRequired[{found}]'}")
        return "\n".join([f"class {name}({base}):", *(keys or ["    pass"])]) + "\n"

    def type_of(self, schema: Json | bool, name: str) -> str:
        """The Python type of what the schema describes; `name` is for a table that has none.

        Raises:
            ValueError: the schema says something that no type here stands for.
        """
        if isinstance(schema, bool) or not schema.keys() - {"description", "default"}:
            return "Any"
        if "$ref" in schema:
            return self.add(schema["$ref"].rpartition("/")[2])
        if found := alternatives(schema):
            return " | ".join(dict.fromkeys(self.type_of(one, name) for one in found))
        if "const" in schema:
            return f"Literal[{json.dumps(schema['const'])}]"
        if "enum" in schema:
            return f"Literal[{', '.join(json.dumps(value) for value in schema['enum'] if value is not None)}]"
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return " | ".join(self._of_kind(kind, schema, name) for kind in kinds)

    def _of_kind(self, kind: str, schema: Json, name: str) -> str:
        if kind in SCALARS:
            return SCALARS[kind]
        if kind == "array":
            if "prefixItems" in schema:
                return f"tuple[{', '.join(self.type_of(one, name) for one in schema['prefixItems'])}]"
            return f"list[{self.type_of(schema['items'], name)}]"
        if kind == "object" and "properties" in schema:
            self.written[name] = self._table(name, schema)
            return name
        if kind == "object":
            return f"dict[str, {self.type_of(schema.get('additionalProperties', True), name)}]"
        raise ValueError(f"{name}: a JSON schema of type {kind}, for which tools/native_types.py has no type")


def alternatives(schema: Json) -> list[Json]:
    """What the described value is one of."""
    found: list[Json] = schema.get("oneOf") or schema.get("anyOf") or []
    return found


def union_of_literals(union: str) -> str:
    """Values side by side as one Literal."""
    parts = union.split(" | ")
    if len(parts) > 1 and all(part.startswith("Literal[") for part in parts):
        return f"Literal[{', '.join(part.removeprefix('Literal[').removesuffix(']') for part in parts)}]"
    return union


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def render() -> str:
    """The module's text, as ruff formats it: the types that Python code names, and what they are made of."""
    sources = [path.read_text() for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    named = {name for text in sources for name in NAMED.findall(text)}
    return rendered(json.loads(_native.schema())["$defs"], named)


def rendered(definitions: dict[str, Json], named: set[str]) -> str:
    """The same of given definitions, for code that names these types."""
    module = Module(definitions)
    for name in definitions:
        module.add(name)
    needed = set[str]()
    fresh = named & module.written.keys()
    while fresh:
        needed |= fresh
        fresh = {word for name in fresh for word in WORD.findall(module.written[name])} & module.written.keys() - needed
    body = "\n\n".join(text for name, text in module.written.items() if name in needed)
    names = [name for name in ("Any", "Literal", "NotRequired") if re.search(rf"\b{name}\b", body)]
    text = f"{HEAD.format(names=', '.join(names))}\n\n{body}"
    command = [sys.executable, "-m", "ruff", "format", "--line-length", str(LINE_CHARACTERS), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    print(render(), end="")
