"""`show --as csv`: one line per trial, one column per metric, full precision, units in the names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolab.table.summary import chosen_keys

if TYPE_CHECKING:
    from iolab.store import RunData


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """Columns trial, round, workload, setting, status, then the metrics; without `metrics` every one that has a value.

    An absent value is an empty field.
    """
    wide = run.wide(chosen_keys(run, metrics) if metrics else None)
    identity = ["trial", "round", "workload", "setting", "status"]
    keys = [name for name in wide.columns if name in set(run.keys) and wide[name].null_count() < wide.height]
    return wide.select(*identity, *keys).sort("trial").write_csv()
