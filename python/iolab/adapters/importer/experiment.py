"""The experiment of an imported run: what was imported, and what a table of it shows. Nothing in it can be run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from iolab.adapters.importer.results import Results
from iolab.domain.experiment import IMPORTED
from iolab.domain.metric import describe

METRICS_SHOWN_MAX = 40


def text_of(results: Results, title: str, sources: Sequence[tuple[str, str]]) -> str:
    """experiment.toml of the results; `sources` are files with their formats."""
    lines = ["# Made by `iolab import`. The numbers come from these files; iolab did not measure them.", ""]
    lines += [f"title = {_quoted(title)}", f"machine = {_quoted(IMPORTED)}", ""]
    for path, format_name in sources:
        lines += ["[[sources]]", f"path = {_quoted(path)}", f"format = {_quoted(format_name)}", ""]
    for workload in _names(results, "workload"):
        lines += _table("workloads", workload, results.workloads.get(workload, {}))
    for setting in _names(results, "setting"):
        lines += _table("settings", setting, results.settings.get(setting, {}))
    baseline = results.trials[0].setting if results.trials else ""
    lines += ["[compare]", f"baseline = {_quoted(baseline)}"]
    lines += ["metrics = [", *(f"    {_quoted(key)}," for key in compared_keys(results)), "]", ""]
    return "\n".join(lines)


def compared_keys(results: Results) -> list[str]:
    """The keys that a table shows unasked: those that say which way is better, in the order of the source."""
    rows = [row for trial in results.trials for row in trial.rows if row.what == "metric" and row.job == "all"]
    keys = list(dict.fromkeys(row.key for row in rows if row.key and row.value is not None))
    with_direction = [key for key in keys if describe(key).better is not None]
    return (with_direction or keys)[:METRICS_SHOWN_MAX]


def _names(results: Results, what: str) -> list[str]:
    return list(dict.fromkeys(getattr(trial, what) for trial in results.trials))


def _table(section: str, name: str, values: dict[str, Any]) -> Iterator[str]:
    yield f"[{section}.{_quoted(name)}]"
    for key, value in values.items():
        yield f"{_quoted(key)} = {_quoted(value) if isinstance(value, str) else json.dumps(value)}"
    yield ""


def _quoted(text: str) -> str:
    """A basic string of TOML. Escapes are JSON's, and DEL, which TOML wants escaped too."""
    return json.dumps(text, ensure_ascii=True).replace("\x7f", "\\u007f")
