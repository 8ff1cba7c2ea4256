"""Imports stand at the top of their module, but for heavy libraries and for what a command of the CLI needs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import iolab

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


def test_an_experiment_is_parsed_without_what_changes_machines() -> None:
    code = "import sys, iolab.files.experiment; print([name for name in sys.modules if name.startswith('iolab.m')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
