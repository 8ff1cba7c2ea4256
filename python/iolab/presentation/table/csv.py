"""`show --as csv`: one line per trial, one column per metric, full precision, units in the names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolab.base.plain_text import no_formula
from iolab.domain.summary import chosen_keys

if TYPE_CHECKING:
    from iolab.files.store import RunData


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """Columns trial, round, workload, setting, status, then the metrics; without `metrics` every one that has a value.

    An absent value is an empty field.
    """
    import polars as pl

    wide = run.wide(chosen_keys(run, metrics) if metrics else None)
    identity = ["trial", "round", "workload", "setting", "status"]
    keys = [name for name in wide.columns if name in set(run.keys) and wide[name].null_count() < wide.height]
    texts = pl.col(pl.String).map_elements(no_formula, return_dtype=pl.String)
    return wide[[*identity, *keys]].sort("trial").with_columns(texts).rename(no_formula).write_csv()
