"""Histograms of latency that were read as text: what they hold, and no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iolab.base.histogram import is_known
from iolab.base.plain_text import one_line
from iolab.presentation.table.trace import microseconds
from iolab.studies.trace.histograms import PERCENTILES, Histogram, Moved

if TYPE_CHECKING:
    from rich.console import RenderableType

NO_ROUNDS = (
    "one histogram each is no experiment: a percentile lies somewhere in its bucket, and nothing tells by how much it "
    "varies from run to run"
)
_BAR = 40


def shown(histograms: Sequence[Histogram]) -> Iterator[RenderableType]:
    """A sentence of the percentiles and a table of the buckets, of each."""
    from rich.table import Table

    for one in histograms:
        intervals = f" in {one.intervals} intervals" if one.intervals > 1 else ""
        yield one_line(f"{one.name + ': ' if one.name else ''}{one.count} I/Os{intervals}")
        yield (
            "; ".join(
                f"p{percent:g} from {microseconds(found[0])} to {microseconds(found[1])} µs"
                for percent in PERCENTILES
                if is_known(percent, one.count) and (found := one.within(percent))
            )
            or "too few I/Os for a percentile"
        )
        table = Table(title="Latency (µs)", title_justify="left")
        for head in ("from", "below", "I/Os", "share", "took less"):
            table.add_column(head, justify="right", no_wrap=True)
        table.add_column("")
        seen, most = 0, max((count for *_, count in one.buckets), default=0)
        for low, high, count in one.buckets:
            seen += count
            bar = "█" * round(_BAR * count / most)
            shares = (f"{count / one.count:.1%}", f"{seen / one.count:.1%}")
            table.add_row(microseconds(low), microseconds(high), str(count), *shares, bar)
        yield table
        if one.impossible:
            yield f"! {one.impossible} I/Os of more than 116 days are left out: the tool's own clock ran backwards"
        if one.is_cut_off:
            yield "! the text is cut off in a line of this histogram: I/Os that took longer may be missing"
    yield "! a histogram has no requests: sizes, rates and stages are not known"


def compared(found: Sequence[Moved], baseline: str, candidate: str) -> Iterator[RenderableType]:
    """A line per percentile of two histograms."""
    for one in found:
        (low, high), (ours_low, ours_high) = one.after, one.before
        name = f"{one.name}: " if one.name else ""
        places = (
            f"{microseconds(low)} to {microseconds(high)} µs, {microseconds(ours_low)} to {microseconds(ours_high)} µs"
        )
        yield one_line(f"● {name}p{one.percent:g} of {candidate} is {one.how}: {places} in {baseline}")
    yield f"! {NO_ROUNDS}"
