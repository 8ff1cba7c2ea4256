"""Tables as people type them, drawn from seeds: each of their figures is read under its setting, or the text is
refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.files.importer.run_import import open_run
from support.typed_tables import MIB, TypedTable, typed_table

SEEDS = range(120)
LOST_MAX = 3
"""Texts of which a figure is lost, or stands under another name, and a line says so."""
REFUSED_MAX = 6
NEAR = 0.001
OWN_UNITS = {"MiB_per_s": MIB, "MB_per_s": 1e6, "MB_per_sec": 1e6, "GB_per_s": 1e9, "kIOPS": 1e3}


def lost(path: Path, table: TypedTable) -> list[tuple[str, str, str]]:
    """The figures that the run of this text lacks. InputError if it is refused."""
    found: dict[str, list[float]] = {}
    run = open_run(path)
    for setting, metric, value in run.metrics.select("setting", "metric", "value").iter_rows():
        # A rate of a CSV file keeps the unit that its name has.
        scale = next((scale for unit, scale in OWN_UNITS.items() if unit in metric), 1.0)
        if value is not None:
            found.setdefault(setting.lower(), []).append(value * scale)
    return [
        key
        for key, value in table.values.items()
        if not any(abs(one - value) <= NEAR * value for one in found.get(key[1].lower(), ()))
    ]


def test_each_figure_is_read_under_its_setting(tmp_path: Path) -> None:
    losing: dict[int, list[tuple[str, str, str]]] = {}
    refused: dict[int, str] = {}
    for seed in SEEDS:
        table = typed_table(seed)
        path = tmp_path / f"{seed}{table.suffix}"
        path.write_text(table.text)
        try:
            if missing := lost(path, table):
                losing[seed] = missing
        except InputError as error:
            refused[seed] = str(error)
    assert len(losing) <= LOST_MAX, losing
    assert len(refused) <= REFUSED_MAX, refused


@pytest.mark.parametrize("seed", [0, 1])
def test_a_table_of_a_seed_is_always_the_same(seed: int) -> None:
    assert typed_table(seed) == typed_table(seed) != typed_table(seed + 1)
