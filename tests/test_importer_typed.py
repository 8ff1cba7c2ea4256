"""Tables, and lists, blocks and sentences, as people type them, drawn from seeds: each of their figures is read under
its setting, those of a list once and of what was done, or the text is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from iolab.base.errors import InputError
from iolab.files.importer.run_import import open_run
from iolab.files.store import RunData
from support.typed_posts import TypedPost, typed_post
from support.typed_tables import MIB, TypedTable, typed_table

NEAR = 0.001
OWN_UNITS = {"MiB_per_s": MIB, "MB_per_s": 1e6, "MB_per_sec": 1e6, "GB_per_s": 1e9, "kIOPS": 1e3}


def is_near(value: float, found: list[float]) -> bool:
    return any(abs(one - value) <= NEAR * value for one in found)


def lost_of_table(run: RunData, table: TypedTable) -> list[str]:
    """The figures that the run of this text lacks."""
    found: dict[str, list[float]] = {}
    for setting, metric, value in run.metrics.select("setting", "metric", "value").drop_nulls("value").iter_rows():
        # A rate of a CSV file keeps the unit that its name has.
        scale = next((scale for unit, scale in OWN_UNITS.items() if unit in metric), 1.0)
        found.setdefault(setting.lower(), []).append(value * scale)
    return [str(key) for key, value in table.values.items() if not is_near(value, found.get(key[1].lower(), []))]


def lost_of_post(run: RunData, post: TypedPost) -> list[str]:
    """What the run of this text lacks. None of its figures are rounds of each other."""
    rows = list(run.metrics.select("setting", "workload", "key", "round", "value").iter_rows())
    assert not any(round for *_, round, _ in rows), post.text
    lost = []
    for (setting, what), values in post.values.items():
        of_setting = [
            value
            for name, workload, key, _, value in rows
            if value is not None
            and name.lower() == setting.lower()
            and what in f"{workload} {key}".lower().replace("_", " ")
        ]
        lost += [f"{setting}, {what}: no {value}" for value in values if not is_near(value, of_setting)]
    return lost


@pytest.mark.parametrize(
    ("typed", "lost_of", "seeds", "lost_max", "refused_max"),
    [(typed_table, lost_of_table, 120, 3, 6), (typed_post, lost_of_post, 150, 2, 4)],
    ids=["tables", "posts"],
)
def test_each_figure_is_read_under_its_setting(
    tmp_path: Path,
    typed: Callable[[int], Any],
    lost_of: Callable[[RunData, Any], list[str]],
    seeds: int,
    lost_max: int,
    refused_max: int,
) -> None:
    """Some texts lose a figure, or have it under another name, and a line says so."""
    losing: dict[int, list[str]] = {}
    refused: dict[int, str] = {}
    for seed in range(seeds):
        text = typed(seed)
        path = tmp_path / f"{seed}{text.suffix}"
        path.write_text(text.text)
        try:
            if lost := lost_of(open_run(path), text):
                losing[seed] = lost
        except InputError as error:
            refused[seed] = str(error)
    assert len(losing) <= lost_max, losing
    assert len(refused) <= refused_max, refused


@pytest.mark.parametrize("typed", [typed_table, typed_post])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_text_of_a_seed_is_always_the_same(typed: Callable[[int], Any], seed: int) -> None:
    assert typed(seed) == typed(seed) != typed(seed + 1)
