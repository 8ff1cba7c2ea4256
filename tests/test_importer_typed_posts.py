"""Lists, blocks and sentences as people type them, drawn from seeds: each of their figures is read once, under its
setting and of what was done, or the text is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from iolab.base.errors import InputError
from iolab.files.importer.run_import import open_run
from support.typed_posts import TypedPost, typed_post

SEEDS = range(150)
LOST_MAX = 2
REFUSED_MAX = 4
NEAR = 0.001


def wrong(path: Path, post: TypedPost) -> list[str]:
    """What the run of this text lacks, and what it has as rounds of each other. InputError if it is refused."""
    run = open_run(path)
    rows = list(run.metrics.select("setting", "workload", "key", "round", "value").iter_rows())
    found = [f"round {round} of {setting}, {key}" for setting, _, key, round, _ in rows if round]
    for (setting, what), values in post.values.items():
        of_setting = [
            value
            for name, workload, key, _, value in rows
            if name.lower() == setting.lower() and what in f"{workload} {key}".lower().replace("_", " ")
        ]
        found += [
            f"{setting}, {what}: no {value}"
            for value in values
            if not any(one is not None and abs(one - value) <= NEAR * value for one in of_setting)
        ]
    return found


def test_each_figure_is_read_once_under_its_setting(tmp_path: Path) -> None:
    losing: dict[int, list[str]] = {}
    refused: dict[int, str] = {}
    for seed in SEEDS:
        post = typed_post(seed)
        path = tmp_path / f"{seed}.txt"
        path.write_text(post.text)
        try:
            if found := wrong(path, post):
                losing[seed] = found
        except InputError as error:
            refused[seed] = str(error)
    assert not any(one.startswith("round ") for found in losing.values() for one in found), losing
    assert len(losing) <= LOST_MAX, losing
    assert len(refused) <= REFUSED_MAX, refused


@pytest.mark.parametrize("seed", [0, 1])
def test_a_post_of_a_seed_is_always_the_same(seed: int) -> None:
    assert typed_post(seed) == typed_post(seed) != typed_post(seed + 1)
