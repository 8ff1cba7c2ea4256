"""Causes for people: one sentence of conclusion, the latency budget, then what followed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from iolab.base.quantity import scale_for
from iolab.domain.explain.evidence import name_of
from iolab.domain.explain.mechanism import (
    BACKGROUND,
    IN_FLIGHT,
    STEAL,
    SWITCHES_PER_IO,
    WAITING_ABOVE,
    Mechanism,
    mechanisms_of,
)
from iolab.presentation.table.plain import SENTENCE_WIDTH_MAX, empty_table
from iolab.presentation.table.words import claim, label, unit_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from iolab.domain.explain import Cause
    from iolab.domain.explain.budget import Budget
    from iolab.domain.explain.cause import Group, LeadingMetric
    from iolab.domain.explain.change import Change

NS_PER_US = 1e3
RESULTS_TOLD_MAX = 3
METRICS_TOLD_MAX = 2
"""The metrics of the first mechanism that the conclusion names."""
VALUE_CHARACTERS_MAX = 60

PHRASES = {
    "bio_bytes_mean": "bios are {after} instead of {before}",
    "bios_per_io": "an I/O takes {after} bios instead of {before}",
    "request_bytes_mean": "requests are {after} instead of {before}",
    "requests_per_io": "an I/O takes {after} requests instead of {before}",
    "splits_per_io": "an I/O is split {after} times instead of {before}",
    "merged_percent": "{after} of the bios are merged instead of {before}",
    "extents_per_file_mean": "a file has {after} extents instead of {before}",
    "extent_bytes_mean": "extents are {after} instead of {before}",
    "completions_remote_percent": "{after} of the requests complete on another CPU than they came from instead of "
    "{before}",
    "cpu_wait_ns_per_io": "the jobs' threads wait {after} for a CPU per I/O instead of {before}",
    "preemptions_per_cpu_s": "the jobs' threads are preempted {after} times per second of CPU time instead of {before}",
    SWITCHES_PER_IO: "the jobs' threads wait {after} times per I/O instead of {before}",
    WAITING_ABOVE: "an I/O waits {after} above the block layer, neither running nor queued, instead of {before}",
    IN_FLIGHT: "{after} I/Os are in flight at a time instead of {before}",
    "cpu_steal_percent": "{after} of the CPU time is stolen instead of {before}",
    "page_cache_hit_share": "the page cache has {after} of what is read instead of {before}",
}
"""How a leading metric is stated; `label is AFTER instead of BEFORE` otherwise."""
UNITS = {WAITING_ABOVE: "ns", SWITCHES_PER_IO: "count", "preemptions_per_cpu_s": "count", IN_FLIGHT: "count"}
"""The units of derived metrics, which the registry does not have."""
STAGES = {
    "application": "application",
    "above": "above the block layer",
    "queue": "queue",
    "scheduler": "scheduler",
    "device": "device",
    "unknown": "unknown",
}
PROBES = {
    "layout": "extents",
    "steal": "cpu",
    "placement": "block",
    "cache": "memory",
    "gathering": "block",
    "merging": "block",
    "request_size": "block",
    "seeks": "block",
    "depth": "block",
    "queue": "block",
    "scheduler": "block",
    "above": "block",
    "device": "block",
}
"""By mechanism, the probe that shows it."""


def causes(found: Sequence[Cause]) -> RenderableType:
    """All that name a mechanism, one below the other."""
    from rich.console import Group as Lines
    from rich.padding import Padding

    return Lines(
        *(
            Padding(Lines(*_cause(one)), (0, 0, 1, 0), expand=False)
            for one in found
            if one.first or one.budget or one.unobserved
        )
    )


def conclusion(cause: Cause) -> str:
    """The changes, what moved first, and the movement of the results."""
    place = f"on {cause.workload}, " if cause.workload else ""
    results = _results(cause)
    if cause.first is None and not cause.unobserved:
        return f"{cause.setting} against {cause.against}, {place}no mechanism visibly moved; {results}."
    if cause.by_change and cause.first:
        moved = _some_of(cause.first)
        changed = ", ".join(_changed(one, cause) for one in cause.by_change)
        return f"{changed}: {place}{moved}; {results}."
    if cause.unobserved:
        unobserved = {one.name for one in cause.unobserved}
        acting = (one for one in cause.changes if not unobserved.isdisjoint(mechanisms_of(one.setting)))
        changed = ", ".join(_changed(one, cause) for one in acting)
        moved = f"{_some_of(cause.first)}, which may be an effect of the change; " if cause.first else ""
        return (
            f"{changed}: {place}no probe measured what this change acts on: {_looked_at_by(cause.unobserved)}; "
            f"{moved}{results}."
        )
    assert cause.first is not None
    moved = _some_of(cause.first)
    sentence = f"{cause.setting} against {cause.against}, {place}{cause.first.mechanism.title} moved first: {moved}"
    if cause.first.mechanism.name == "above":
        sentence += (
            ". Something outside the block layer delays the I/Os: a limit of a control group (io.max, blkio.throttle, "
            "a CPU quota) or a lock"
        )
    return f"{sentence}; {results}."


def chain(cause: Cause) -> str:
    """The control, the first mechanism, and what follows from it."""
    assert cause.first is not None
    parts = [" and ".join(one.setting for one in cause.by_change)] if cause.by_change else []
    parts.append(cause.first.mechanism.title)
    if cause.symptoms:
        parts.append(", ".join(one.mechanism.title for one in cause.symptoms))
    return " → ".join(parts)


def _cause(cause: Cause) -> Iterator[RenderableType]:
    from rich.constrain import Constrain
    from rich.padding import Padding
    from rich.text import Text

    yield Constrain(Text(conclusion(cause), style="bold"), SENTENCE_WIDTH_MAX)
    if cause.first and not cause.unobserved:
        yield Constrain(Text(chain(cause), style="dim"), SENTENCE_WIDTH_MAX)
    if cause.budget:
        yield Padding(_budget(cause.budget, cause), (1, 0, 0, 0), expand=False)
        yield Constrain(Text("\n".join(_below_budget(cause.budget)), style="dim"), SENTENCE_WIDTH_MAX)
    if lines := list(_further(cause)):
        yield Padding(Constrain(Text("\n".join(lines)), SENTENCE_WIDTH_MAX), (1, 0, 0, 0), expand=False)


def _budget(budget: Budget, cause: Cause) -> Table:
    """A row per stage, in µs per I/O; the last row is their sum."""
    from rich.text import Text

    table = empty_table()
    table.add_column("µs per I/O")
    for heading in (cause.against, cause.setting, "difference"):
        table.add_column(Text(heading, overflow="fold"), justify="right")
    for stage in budget.stages:
        numbers = (budget.baseline[stage], budget.candidate[stage])
        table.add_row(STAGES[stage], *(_us(one) for one in numbers), _us(budget.difference(stage), signed=True))
    ours, theirs = budget.totals
    table.add_section()
    table.add_row("all together", _us(ours), _us(theirs), _us(theirs - ours, signed=True), style="bold")
    return table


def _below_budget(budget: Budget) -> Iterator[str]:
    if "application" in budget.stages:
        yield "Application: from a completion until the next submission in its place. The rest adds up to the latency."
    else:
        yield "The stages add up to the latency. The application's own time between I/Os is unknown."
    total = max(budget.totals)
    if total and max(abs(budget.baseline["unknown"]), abs(budget.candidate["unknown"])) > 0.02 * total:
        yield (
            "Unknown: time of I/Os that their requests do not account for; with buffered writes, requests that "
            "nobody waits for."
        )
    if (most := max(budget.side_by_side)) > 1.05:
        yield (
            f"Up to {most:.3g} bios of an I/O are in flight side by side: their times are scaled down to the latency, "
            "and the time above the block layer is hidden."
        )


def _further(cause: Cause) -> Iterator[str]:
    """Symptoms, one line per mechanism; then the other mechanisms: moved, not moved, not measured."""
    for one in cause.symptoms:
        yield f"● {one.mechanism.title}: {_phrase(one.moved[0])}."
    if cause.first and not cause.by_change and cause.changes and not cause.unobserved:
        named = ", ".join(f"{one.setting}" for one in cause.changes[:4])
        yield f"The settings changed {named}; no mechanism that this acts on visibly moved first."
    by_itself = {STEAL} if any(one.setting == BACKGROUND for one in cause.changes) else set()
    for one in cause.independent:
        if one.mechanism.name in by_itself:
            yield f"The background load runs beside: {_phrase(one.moved[0])}, as more is of whoever runs more."
            continue
        yield f"Also moved, not known to follow: {one.mechanism.title}: {_phrase(one.moved[0])}."
    if cause.first and cause.still:
        yield f"Did not visibly move: {', '.join(one.title for one in cause.still)}."
    if cause.first and (missing := _looked_at_by(cause.unmeasured)):
        yield f"Not measured: {missing}."


def _looked_at_by(mechanisms: Sequence[Mechanism]) -> str:
    """`time at the device (probe block)`: one mechanism for each probe that would show some."""
    by_probe = {PROBES[one.name]: one for one in mechanisms if one.name in PROBES}
    return ", ".join(f"{one.title} (probe {probe})" for probe, one in by_probe.items())


def _results(cause: Cause) -> str:
    """What the compared metrics did, those that moved."""
    moved = [one for one in cause.results if one.judgement.differs and one.judgement.ratio]
    claims = [f"{label(one.metric)} is {claim(one.judgement)}" for one in moved[:RESULTS_TOLD_MAX]]
    more = len(moved) - len(claims)
    if not claims:
        return "no compared metric visibly differs"
    return ", ".join(claims) + (f", and {more} more" if more else "")


def _some_of(group: Group) -> str:
    """The mechanism's metrics in the order of its own list, the clearest first."""
    by_name = {name_of(one.metric): one for one in group.moved}
    names = group.mechanism.leading + group.mechanism.leading_if_set
    in_order = [by_name[name] for name in names if name in by_name]
    return ", ".join(_phrase(one) for one in in_order[:METRICS_TOLD_MAX])


def _phrase(moved: LeadingMetric) -> str:
    name = name_of(moved.metric)
    unit = UNITS.get(name) or unit_of(moved.metric)
    judgement = moved.with_setting.judgement
    after, before = (scale_for(unit, (one,)).with_unit(one) for one in (judgement.candidate, judgement.baseline))
    return PHRASES.get(name, f"{label(moved.metric)} is {{after}} instead of {{before}}").format(
        after=after, before=before
    )


def _changed(one: Change, cause: Cause) -> str:
    """`read_ahead_kb is 0 in off, not set in plain`."""
    after, before = _value(one.candidate), _value(one.baseline)
    return f"{one.setting} is {after} in {cause.setting}, {before} in {cause.against}"


def _value(value: Any) -> str:
    if value is None:
        return "not set"
    if value == []:
        return "none"
    if isinstance(value, list) and all(isinstance(one, dict) for one in value):
        text = " on ".join(map(_value, value))
    elif isinstance(value, dict):
        named = [str(value[key]) for key in ("name", "kind") if key in value]
        given = (f"{key} = {one}" for key, one in value.items() if key not in ("name", "kind") and one is not None)
        text = ", ".join([*named, *given])
    else:
        text = str(value)
    return text if len(text) <= VALUE_CHARACTERS_MAX else f"{text[:VALUE_CHARACTERS_MAX]}..."


def _us(ns: float, *, signed: bool = False) -> str:
    us = round(ns / NS_PER_US, 2) + 0.0
    return f"{us:+,.2f}" if signed else f"{us:,.2f}"
