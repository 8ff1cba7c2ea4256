"""No circles among the modules of a crate: what Cargo does for crates, this does for the files and folders below `src`.

Crates cannot depend on each other in a circle. Within one, nothing but this test keeps its modules in layers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

CRATES = Path(__file__).parent.parent / "crates"
_PATH = re.compile(r"\b(crate|(?:super::)*super)::(\w+)")


def modules_of(source: Path) -> dict[str, set[str]]:
    """What each top-level module below `source` takes from the others, tests apart."""
    names = {path.stem for path in source.iterdir() if path.is_dir() or path.suffix == ".rs"} - {"lib", "main", "bin"}
    taken: dict[str, set[str]] = defaultdict(set)
    for path in sorted(source.rglob("*.rs")):
        inside = path.relative_to(source).with_suffix("").parts
        if inside[-1] == "mod":
            inside = inside[:-1]
        if inside[0] not in names or any(part == "tests" or part.endswith("_tests") for part in inside):
            continue
        code = re.sub(r"//.*", "", path.read_text().split("#[cfg(test)]")[0])
        for start, name in _PATH.findall(code):
            at_root = start == "crate" or len(start.split("::")) == len(inside)
            if at_root and name in names and name != inside[0]:
                taken[inside[0]].add(name)
    return taken


@pytest.mark.parametrize("crate", sorted(str(path.parent.relative_to(CRATES)) for path in CRATES.glob("**/src")))
def test_the_modules_of_a_crate_have_no_circle(crate: str) -> None:
    try:
        TopologicalSorter(modules_of(CRATES / crate / "src")).prepare()
    except CycleError as error:
        pytest.fail(f"crates/{crate}: {' <- '.join(error.args[1])}: move what they share to a module below them")


def test_a_circle_is_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mod.rs").write_text("use crate::b::B;\n")
    (tmp_path / "b.rs").write_text("use super::a::A; // crate::c\n")
    (tmp_path / "c.rs").write_text("use crate::a;\n#[cfg(test)]\nmod tests { use crate::b; }\n")
    assert modules_of(tmp_path) == {"a": {"b"}, "b": {"a"}, "c": {"a"}}
