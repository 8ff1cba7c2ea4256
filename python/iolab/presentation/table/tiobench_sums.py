"""`show --as tiobench_sums`: the table as `tiobench.pl --numruns` prints it, to be held beside posted ones.

The script adds up the mean latency, the maximum and the shares above 2 and 10 s over its runs, and never divides them;
rates and CPU are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolab.presentation.table import tiobench

if TYPE_CHECKING:
    from iolab.files.store import RunData


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """The table. InputError as of `tiobench.render`."""
    return tiobench.render(run, metrics, sums=True)
