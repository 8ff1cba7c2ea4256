"""Why requests of a trace are slow, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from iolab.base.plain_text import one_line
from iolab.base.quantity import scale_for
from iolab.presentation.table.trace import microseconds
from iolab.studies.trace.explain import NO_CAUSE, Change, SlowRequests, Stage

if TYPE_CHECKING:
    from rich.console import RenderableType


def slow(found: SlowRequests) -> Iterator[RenderableType]:
    """The stage that the slowest spend more time in, and what they have in common."""
    scale = scale_for("ns", [found.from_ns])
    apart = sum(stage.after_ns - stage.before_ns for stage in found.stages)
    yield (
        f"The slowest {found.slow:,} of {found.requests:,} requests took {scale.with_unit(found.from_ns)} or more, on "
        f"average {scale.with_unit(apart)} longer than the others: {_shares(found.stages)}. They have "
        f"{_percent(found.held)} of all time beyond the median."
    )
    yield _stages(found.stages, "others", "slowest")
    if not found.traits:
        yield (
            "No operation, size, process or flag, and nothing in flight beside them, is more frequent among them than "
            "among the others, neither by their number nor by their time."
        )
        return
    from rich.table import Table

    table = Table(title="More frequent among the slowest", title_justify="left")
    for head in ("a request that", "slowest", "of their extra time", "others"):
        table.add_column(head, justify="left" if head.startswith("a ") else "right")
    for trait in found.traits:
        of_slow = (f"{share:.0%}" for share in (trait.slow_share, trait.time_share))
        table.add_row(one_line(trait.what), *of_slow, f"{trait.other_share:.1%}")
    yield table
    yield NO_CAUSE


def change(found: Change) -> Iterator[RenderableType]:
    """By stage, and whether other requests came or the same took longer."""
    from rich.table import Table

    scale = scale_for("ns", [found.before_ns, found.after_ns])
    apart = found.after_ns - found.before_ns
    yield (
        f"Mean latency ({found.measure}): {scale.with_unit(found.before_ns)} in the first, "
        f"{scale.with_unit(found.after_ns)} in the second: {_shares(found.stages)}."
    )
    yield _stages(found.stages, "first", "second")
    if apart:
        yield (
            f"Of the difference, {_percent(found.mix_ns / apart)} is that other operations and sizes came, "
            f"{_percent(found.slower_ns / apart)} that requests alike took another time."
        )
    table = Table(title="Requests alike, those that make most of the difference first", title_justify="left")
    table.add_column("requests")
    for head in ("share, first", "share, second", "mean, first", "mean, second", "makes"):
        table.add_column(head if head.startswith("share") else f"{head} (µs)", justify="right")
    for group in found.groups:
        means = ("" if mean is None else microseconds(mean) for mean in (group.before_ns, group.after_ns))
        shares = (f"{share:.1%}" if share else "" for share in (group.share_before, group.share_after))
        makes = microseconds(group.slower_ns) if group.slower_ns else ""
        table.add_row(one_line(group.name), *shares, *means, makes)
    if found.groups:
        yield table
    yield "Two traces are no experiment: whatever else differed between them is in the difference."


def _shares(stages: list[Stage]) -> str:
    largest = sorted((stage for stage in stages if round(100 * stage.share)), key=lambda stage: -stage.share)
    return (
        ", ".join(f"{_percent(stage.share)} in the {_WORDS[stage.name]}" for stage in largest)
        or "no stage more than others"
    )


def _percent(share: float) -> str:
    return f"{round(100 * share) + 0} %"


_WORDS = {
    "queue": "queue before the scheduler",
    "scheduler": "scheduler",
    "device": "device",
    "whole": "whole I/O, which the trace does not part",
}


def _stages(stages: list[Stage], before: str, after: str) -> RenderableType:
    from rich.table import Table

    table = Table(title="Where the time goes, on average", title_justify="left")
    for head in ("stage", before, after, "of the difference"):
        unit = " (µs)" if head in (before, after) else ""
        table.add_column(head + unit, justify="left" if head == "stage" else "right")
    for stage in stages:
        if not (stage.before_ns or stage.after_ns):
            continue
        numbers = (microseconds(value) for value in (stage.before_ns, stage.after_ns))
        table.add_row(stage.name, *numbers, _percent(stage.share))
    return table
