"""Imports stand at the top of their module, but for heavy libraries and for what a command of the CLI needs, and go in
no circle."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import iolab
import pytest

pytestmark = pytest.mark.source

HEAVY = {"jinja2", "markupsafe", "numpy", "optuna", "plotly", "polars", "pydantic", "rich", "scipy"}
PACKAGE = Path(iolab.__file__).parent
COMMANDS = PACKAGE / "presentation" / "cli"


def imports_in_functions(text: str) -> Iterator[tuple[int, str]]:
    """Line and top-level package of each."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    for node in (inner for function in functions for inner in ast.walk(function)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, str(node.module).partition(".")[0]


def test_only_heavy_libraries_are_imported_inside_functions() -> None:
    files = [path for path in PACKAGE.rglob("*.py") if not path.is_relative_to(COMMANDS)]
    assert len(files) > 100
    found = {
        f"{path.relative_to(PACKAGE)}:{line}: {package}"
        for path in files
        for line, package in imports_in_functions(path.read_text())
        if package not in HEAVY
    }
    assert not found


def test_an_import_inside_a_function_is_found() -> None:
    text = "import os\n\ndef f():\n    import json\n    def g():\n        from iolab.base import toml\n"
    assert set(imports_in_functions(text)) == {(4, "json"), (6, "iolab")}


def check_circles(package: str) -> None:
    """`lint-imports` compares siblings: what a package and its own modules import of each other stays unseen."""
    graph = grimp.build_graph(package, cache_dir=None)
    TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()


def test_modules_import_each_other_in_no_circle() -> None:
    check_circles("iolab")


def test_a_circle_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "circular").mkdir()
    (tmp_path / "circular" / "__init__.py").write_text("from circular.part import NAME\n")
    (tmp_path / "circular" / "part.py").write_text("def f():\n    import circular\n\nNAME = 1\n")
    with pytest.raises(CycleError):
        check_circles("circular")
