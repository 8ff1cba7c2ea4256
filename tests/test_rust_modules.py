"""No circles among the files of a crate, and no way up among the wings of the workspace.

Crates cannot depend on each other in a circle. Within one, nothing but this test keeps its files in layers. The rule is
the one for Python's packages: of the files and folders that lie side by side, in `src` or in any folder below, none may
take something, by any path, from one that takes something from it. A file takes what another passes on (`pub use`) from
the file that has it. A module's own file and those below it belong together. Tests may take everything.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

CRATES = Path(__file__).parent.parent / "crates"
SOURCES = sorted(CRATES.rglob("src"))
Module = tuple[str, ...]
"""Its path below the crate's own, which is empty."""

_USE = re.compile(r"\b(pub(?:\([\w ]+\))? )?use ([^;]+);")
_PATH = re.compile(r"\b(?:crate|self|super)(?:::\w+)+")


@dataclass
class File:
    """What a module's file takes, as paths from the crate's root."""

    taken: set[Module] = field(default_factory=set)
    passed_on: dict[str, Module] = field(default_factory=dict)
    """Names that it has from elsewhere."""


def one_by_one(tree: str) -> Iterator[str]:
    """`a::{b, c::{d, e}}` -> `a::b`, `a::c::d`, `a::c::e`."""
    prefix, brace, inside = tree.strip().partition("{")
    if not brace:
        yield prefix.partition(" as ")[0].strip().removesuffix("::self")
        return
    depth, part = 0, ""
    for letter in inside.rpartition("}")[0] + ",":
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            yield from (prefix + path for path in one_by_one(part) if path)
            part = ""
        else:
            part += letter


def without_tests(text: str) -> str:
    code = re.sub(r"//.*", "", text)
    code = re.sub(r"#\[cfg\(test\)\]\s*(?:mod \w+|use [^;]+);", "", code)
    return re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", code)[0]


def module_of(path: Path, source: Path) -> Module:
    parts = path.relative_to(source).with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts


def from_root(path: str, module: Module, modules: set[Module]) -> Module | None:
    """The path from the crate's root; None: it leads out of the crate."""
    first, *rest = path.split("::")
    if first == "crate":
        return tuple(rest)
    if first == "self":
        return (*module, *rest)
    if first == "super":
        above = module[:-1]
        while rest and rest[0] == "super":
            above, rest = above[:-1], rest[1:]
        return (*above, *rest)
    return (*module, first, *rest) if (*module, first) in modules else None


def read(source: Path) -> dict[Module, File]:
    """The files of a crate, tests apart."""
    texts = {module_of(path, source): path.read_text() for path in sorted(source.rglob("*.rs"))}
    tests = {
        (*module, name) for module, text in texts.items() for name in re.findall(r"#\[cfg\(test\)\]\s*mod (\w+);", text)
    }
    modules = {module for module in texts if not any(module[: len(test)] == test for test in tests)}
    files: dict[Module, File] = {}
    for module in sorted(modules):
        file = files[module] = File()
        code = without_tests(texts[module])
        for match in _USE.finditer(code):
            for used in one_by_one(match[2]):
                if (taken := from_root(used, module, modules)) is not None:
                    file.taken.add(taken)
                    file.passed_on[taken[-1] if taken else ""] = taken
        for used in _PATH.findall(_USE.sub("", code)):
            if (taken := from_root(used, module, modules)) is not None:
                file.taken.add(taken)
    return files


def home(path: Module, files: Mapping[Module, File], seen: frozenset[Module] = frozenset()) -> Module:
    """The module that has what the path names."""
    module = next(path[:end] for end in range(len(path), -1, -1) if path[:end] in files)
    rest = path[len(module) :]
    passed_on = files[module].passed_on.get(rest[0]) if rest else None
    if passed_on is None or path in seen:
        return module
    return home((*passed_on, *rest[1:]), files, seen | {path})


def edges(source: Path) -> dict[str, set[str]]:
    """What each file or folder takes from which of those beside it, by their names."""
    files = read(source)
    found: dict[str, set[str]] = defaultdict(set)
    for module, file in files.items():
        for other in {home(path, files) for path in file.taken}:
            above = commonpath(module, other)
            if above < len(module) and above < len(other):
                found["::".join(module[: above + 1])].add("::".join(other[: above + 1]))
    return found


def commonpath(one: Module, other: Module) -> int:
    """How many parts both begin with."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: str(source.parent.relative_to(CRATES)))
def test_the_files_of_a_crate_have_no_circle(source: Path) -> None:
    crate = str(source.parent.relative_to(CRATES))
    try:
        TopologicalSorter(edges(source)).prepare()
    except CycleError as error:
        pytest.fail(f"crates/{crate}: {' <- '.join(error.args[1])}: move what they share to a file below them")


def test_a_circle_is_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "lib.rs").write_text("#[cfg(test)]\nmod tried;\npub use b::B;\nmod a;\nmod b;\nmod c;\n")
    (tmp_path / "a" / "mod.rs").write_text("mod deep;\npub use deep::{Deep, other::Other as Another};\nfn a() {}\n")
    (tmp_path / "a" / "deep.rs").write_text("use super::wide::Wide;\nuse crate::{B, c::{self, C}};\n")
    (tmp_path / "a" / "wide.rs").write_text("use super::{a, Deep};\n")
    (tmp_path / "b.rs").write_text("fn b() { super::a::Deep::new(); } // crate::c\n")
    (tmp_path / "c.rs").write_text("use std::fs;\n#[cfg(test)]\nmod tests { use crate::b; }\n")
    (tmp_path / "tried.rs").write_text("use crate::a;\n")
    graph = edges(tmp_path)
    assert graph == {"a": {"b", "c"}, "b": {"a"}, "a::deep": {"a::wide"}, "a::wide": {"a::deep"}}
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()


def wings() -> dict[str, set[str]]:
    """Each crate's folder -> the folders of those of the workspace that it is built on."""
    workspace = tomllib.loads((CRATES.parent / "Cargo.toml").read_text())["workspace"]["dependencies"]
    folders = {
        name: spec["path"].removeprefix("crates/")
        for name, spec in workspace.items()
        if isinstance(spec, dict) and "path" in spec
    }
    manifests = {str(path.parent.relative_to(CRATES)): path for path in CRATES.rglob("Cargo.toml")}
    return {
        crate: {folders[name] for name in tomllib.loads(path.read_text())["dependencies"] if name in folders}
        for crate, path in manifests.items()
    }


def test_no_wing_is_built_on_one_that_is_not_below_it() -> None:
    below = {
        "base": set[str](),
        "measure": {"base"},
        "model": {"base", "measure"},
        "bindings": {"base", "measure", "model"},
    }
    wrong = [
        f"{crate} on {other}"
        for crate, others in wings().items()
        for other in others
        if other.partition("/")[0] not in below[crate.partition("/")[0]] | {crate.partition("/")[0]}
    ]
    assert not wrong, wrong


def test_parts_of_the_model_know_nothing_of_jobs_unless_they_do_them() -> None:
    """`workload` is a job's contract: filesystems make a metadata load's files, and the machine runs the phases."""
    built_on = {
        crate for crate, others in wings().items() if "measure/workload" in others and crate.startswith("model/")
    }
    assert built_on == {"model/filesystems", "model/stack"}
    assert "measure/engine" not in {
        other for crate, others in wings().items() if crate.startswith("model/") for other in others
    }
