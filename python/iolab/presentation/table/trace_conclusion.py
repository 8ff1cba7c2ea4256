"""What a trace comes to, in one sentence: where the time went, and behind whom the slowest requests waited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iolab.base.plain_text import counted
from iolab.presentation.table.trace import STAGES, UNKNOWN, device_name, error_name, microseconds, task, total

if TYPE_CHECKING:
    from iolab.domain import native_types as native

WHOLE, DEVICE = "whole", "device"
MOST = 0.5
"""Whoever has more than this share of the weight in front is named alone."""
NAMED_MAX = 2
UNNAMED = "tasks that the trace does not name"
TENTH = 10
MUCH = 0.25
"""A request that has more than this share of all requests' time is named: the mean is about it. Chosen."""


@dataclass(frozen=True)
class Share:
    """A stage's part of all requests' time."""

    stage: str
    share: float
    mean_ns: float


@dataclass(frozen=True)
class TaskInFront:
    """A task whose requests completed while some of the slowest were in flight."""

    task: str
    slow: int
    """How many of the slowest."""
    requests: int
    bytes: int
    weight: float
    """How much of the waiting is put down to it."""
    own: bool
    """All of the slowest that waited behind it are its own."""


def shares(figures: native.TraceFigures) -> list[Share]:
    """The stages that the trace determines, in their order; empty if it has the whole time alone."""
    known = [
        (name, values["mean"] * values["count"], values["mean"])
        for key, name in STAGES
        if name != WHOLE and (values := figures["all"][key])
    ]
    total = sum(time for _, time, _ in known)
    return [Share(name, time / total, mean) for name, time, mean in known] if total else []


def in_front(figures: native.TraceFigures, few: Sequence[native.SlowRequest] | None = None) -> list[TaskInFront]:
    """By task, those that weigh most in front of the slowest first: of the `few`, or of all that the figures have."""
    found: dict[int, list[tuple[int, native.TaskAhead]]] = {}
    for slow in figures["slowest"] if few is None else few:
        for ahead in slow["ahead"]:
            found.setdefault(ahead["pid"], []).append((slow["pid"], ahead))
    sums = {
        pid: (sum(one["requests"] for _, one in of), sum(one["bytes"] for _, one in of)) for pid, of in found.items()
    }
    weights = _weights(sums, figures)
    rows = [
        TaskInFront(task(pid, figures), len(of), *sums[pid], weights[pid], all(behind == pid for behind, _ in of))
        for pid, of in found.items()
    ]
    return sorted(rows, key=lambda one: (-one.weight, -one.slow, one.task))


def _weights(sums: Mapping[int, tuple[int, int]], figures: native.TraceFigures) -> dict[int, float]:
    """By task, its share of what was in front, times how much larger that is than its process's share of all requests.

    A share is the mean of that of requests and that of bytes: a device takes time for both. Who is in front of every
    request does not tell the slowest from the others.
    """
    here = (sum(requests for requests, _ in sums.values()), sum(size for _, size in sums.values()))
    whole = (sum(one["count"] for one in figures["by_process"]), sum(one["bytes"] for one in figures["by_process"]))
    usual = {one["name"]: _share((one["count"], one["bytes"]), whole) for one in figures["by_process"]}
    names = {pid: str(figures["names"].get(str(pid))) for pid in sums}
    slow: dict[str, float] = {}
    for pid, name in names.items():
        slow[name] = slow.get(name, 0.0) + _share(sums[pid], here)
    return {
        pid: _share(one, here) * (slow[names[pid]] / usual[names[pid]] if usual.get(names[pid]) else 1.0)
        for pid, one in sums.items()
    }


def _share(part: tuple[int, int], whole: tuple[int, int]) -> float:
    """The mean of the shares of requests and of bytes, or the first if nothing has bytes."""
    known = [one / of for one, of in zip(part, whole, strict=True) if of]
    return sum(known) / len(known) if known else 0.0


def conclusion(figures: native.TraceFigures) -> str:
    """`95 % of the time is in the device, 900 µs a request; the slowest 10 waited behind writer-12.` What failed comes
    first."""
    return "; ".join(_parts(figures)) + "."


def _of_layers(figures: native.TraceFigures) -> Iterator[str]:
    """The layer in which bios spend most time by itself."""
    known = [
        (own["mean"] * own["count"], own["mean"], below["mean"], device_name(device))
        for device in figures["devices"]
        if (layer := device["layer"]) is not None and (own := layer["own_ns"]) and (below := layer["below_ns"])
    ]
    if known:
        _, own_ns, below_ns, device = max(known)
        yield f"{device} itself keeps a bio for {microseconds(own_ns)} of {microseconds(own_ns + below_ns)} µs"


def _of_longest(figures: native.TraceFigures) -> Iterator[str]:
    """A request that weighs more than thousands of others."""
    whole = figures["all"]["whole_ns"]
    if whole and len(figures["slowest"]) < whole["count"]:
        share = whole["max"] / (whole["mean"] * whole["count"])
        if share > MUCH:
            at = f"at {figures['slowest'][0]['arrived_ns'] / 1e9:.6f} s"
            yield f"one request, {at}, took {microseconds(whole['max'])} µs, {share * 100:.0f} % of all the time"


def _parts(figures: native.TraceFigures) -> Iterator[str]:
    yield from _of_failed(figures)
    yield from _of_layers(figures)
    most = max(shares(figures), key=lambda one: one.share, default=None)
    if most is None:
        yield f"{counted(figures['all']['count'], 'request')}, of which the trace holds no stages"
    elif len(shares(figures)) == 1:
        yield f"a request is {microseconds(most.mean_ns)} µs in the {most.stage}, the only part that the trace holds"
    else:
        mean = microseconds(most.mean_ns)
        yield f"{most.share * 100:.0f} % of the time is in the {most.stage}, {mean} µs a request"
    yield from _of_longest(figures)
    yield from _of_slowest(figures)


def _of_failed(figures: native.TraceFigures) -> Iterator[str]:
    """How many requests failed, and why most of them."""
    if found := figures["failed"]:
        whole = figures["all"]["count"]
        most = max(found, key=lambda one: one["count"])
        why = f"{most['operation']}, {error_name(most['error'])}" + (" most" if len(found) > 1 else "")
        yield f"{sum(one['count'] for one in found):,} of {counted(whole, 'request')} failed ({why})"


def _of_slowest(figures: native.TraceFigures) -> Iterator[str]:
    """The slowest that the figures have, or a tenth of the requests if these are most of them, and whose requests were
    in front."""
    few = figures["slowest"]
    if len(few) > MOST * figures["all"]["count"]:
        few = few[: max(1, figures["all"]["count"] // TENTH)]
    if len(few) == 1:
        yield _of_one(few[0], in_front(figures, few))
    elif few:
        rows = in_front(figures, few)
        behind = sum(bool(slow["ahead"]) for slow in few)
        if not rows:
            yield f"nothing completed while the slowest {len(few)} were in flight"
            return
        which = f"the slowest {len(few)}" if behind == len(few) else f"{behind} of the slowest {len(few)}"
        yield f"{which} waited behind {_tasks(rows)}"


def _of_one(slow: native.SlowRequest, rows: Sequence[TaskInFront]) -> str:
    """What became of one request: `the slowest took 40,503 µs, 99 % of it in the scheduler, behind cp-502`. What
    completed while it was in the device may have overtaken it."""
    took = total(slow)
    stages = [(value, name) for value, (_, name) in zip(slow["stages_ns"], STAGES, strict=True) if value is not None]
    most, stage = max(((value, name) for value, name in stages if name != WHOLE), default=(0, ""))
    share = f", {most / took * 100:.0f} % of it in the {stage}" if len(stages) > 1 and took else ""
    error = f" and failed ({error_name(slow['error'])})" if slow["error"] else ""
    behind = "and nothing completed meanwhile"
    if rows:
        others = counted(sum(one.requests for one in rows), "request")
        whose = f" of {_tasks(rows)}" if _named(rows) else ""
        overtook = stage in ("", DEVICE)
        behind = f"while {others}{whose} completed" if overtook else f"behind {_tasks(rows) if whose else others}"
    return f"the slowest took {microseconds(took)} µs{error}{share}, {behind}"


def _tasks(rows: Sequence[TaskInFront]) -> str:
    """Whoever weighs most, or the first two; `other requests` of a trace that names no tasks."""
    if not (named := _named(rows)):
        return "other requests"
    first = named[0]
    if first.weight > MOST * sum(one.weight for one in rows):
        return f"their own process, {first.task}" if first.own and first.slow > 1 else first.task
    others = [UNNAMED] if len(named) < len(rows) else []
    listed_first = [*(one.task for one in named), *others]
    return " and ".join(listed_first[:NAMED_MAX]) + (" most" if len(listed_first) > NAMED_MAX else "")


def _named(rows: Sequence[TaskInFront]) -> list[TaskInFront]:
    return [one for one in rows if one.task != UNKNOWN]
