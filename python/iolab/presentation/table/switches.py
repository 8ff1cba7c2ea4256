"""`show --as switches`: where tasks leave their CPUs and for how long, by the function that waits and by task.

Rounds are taken together. Sites are estimates from stack samples, each of which stands for as many switches as its
weight; tasks are counted. Times are from leaving the CPU to running again: `sleeping` until woken, `run queue` from
then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.base.quantity import ABSENT, scale_for
from iolab.domain import native_types as native
from iolab.domain.probe.switches import NAME
from iolab.presentation.table.probe_observations import PlaceObservations, columns, observations_of

if TYPE_CHECKING:
    from iolab.files.store import RunData

ROWS_SHOWN = 15
CHAINS_SHOWN = 5
FRAMES_SHOWN = 8
Part = Literal["stall", "sleeping", "run_queue_delay"]
PARTS: tuple[Part, ...] = ("stall", "sleeping", "run_queue_delay")
STATES = {"sleep": "S", "disk_sleep": "D", "idle": "I", "preempted": "R"}
"""As ps has them: asleep until a signal, until I/O or a lock, a kernel thread without work, and still runnable."""


@dataclass
class Waits:
    """The waits of a site or a task in all rounds."""

    switches: int = 0
    times: dict[Part, list[native.Stall]] = field(default_factory=lambda: {part: [] for part in PARTS})
    states: dict[str, int] = field(default_factory=dict)
    pids: set[int] = field(default_factory=set)
    comm: str = ""
    chain: list[str] = field(default_factory=list)

    def add(self, row: native.SiteReport | native.TaskReport) -> None:
        """Takes in a round's."""
        self.switches += row["switches"]
        for part, found in self.times.items():
            found.append(row[part])

    def add_task(self, row: native.TaskReport) -> None:
        """The same of a task, with how it left its CPU."""
        self.add(row)
        for state, count in row["by_state"].items():
            self.states[state] = self.states.get(state, 0) + count
        if row["pid"] is not None:
            self.pids.add(row["pid"])

    def total_ns(self, part: Part) -> int:
        """The time spent in this part of all switches, in ns."""
        return sum(row["sum_ns"] for row in self.times[part])

    def mean_ns(self, part: Part) -> float | None:
        """The mean time of this part of a switch, in ns; None if none was timed."""
        count = sum(row["count"] for row in self.times[part])
        return self.total_ns(part) / count if count else None

    def max_ns(self) -> float | None:
        """The longest stall, in ns; None if none was timed."""
        return max((row["max_ns"] for row in self.times["stall"] if row["max_ns"] is not None), default=None)


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """The tables. InputError if the run was not measured with the probe, or if metrics are asked for."""
    if metrics:
        raise InputError("the table of switches has fixed columns", where="--metric", remedy="leave --metric out")
    return "\n".join(_block(place) for place in observations_of(run, NAME))


def _block(place: PlaceObservations[native.SwitchesObservation]) -> str:
    observations = place.observations
    elapsed_s = sum(found["elapsed_ns"] for found in observations) / 1e9
    sites, tasks = _sites_of(observations), _tasks_of(observations)
    parts = [_heading(place, elapsed_s)]
    if sites:
        parts += [_sites(sites, elapsed_s), _chains(sites)]
    else:
        parts.append("No kernel stacks: " + ("; ".join(_notes(observations)) or "none was sampled") + ".\n")
    return "\n".join([*parts, _tasks(tasks, elapsed_s)])


def _sites_of(observations: list[native.SwitchesObservation]) -> dict[str, Waits]:
    """By name, most switches first."""
    found: dict[str, Waits] = {}
    for observation in observations:
        for row in observation["sites"]:
            found.setdefault(row["site"], Waits(comm=row["comm"], chain=row.get("chain", []))).add(row)
    return _most_first(found)


def _tasks_of(observations: list[native.SwitchesObservation]) -> dict[str, Waits]:
    """By name, most switches first."""
    found: dict[str, Waits] = {}
    for observation in observations:
        for row in observation["tasks"]:
            found.setdefault(row["comm"], Waits(comm=row["comm"])).add_task(row)
    return _most_first(found)


def _most_first(found: dict[str, Waits]) -> dict[str, Waits]:
    order = sorted(found.items(), key=lambda item: (-item[1].switches, -item[1].total_ns("stall")))
    return dict(order)


def _heading(place: PlaceObservations[native.SwitchesObservation], elapsed_s: float) -> str:
    observations = place.observations
    switches = sum(found["switches"] for found in observations)
    lost = sum(found.get("trace_events_lost") or found["events_lost"] for found in observations)
    lines = [place.title, f"{_rate(switches, elapsed_s)} context switches/s over {elapsed_s:.1f} s"]
    means: tuple[tuple[str, Column], ...] = (
        ("off the CPU", "stall_ns"),
        ("wake-up latency", "wakeup_latency_ns"),
        ("run-queue delay", "run_queue_delay_ns"),
    )
    lines.append(", ".join(f"{words} {_time(_mean(observations, column))}" for words, column in means) + " (means)")
    if lost:
        lines.append(f"{counted(lost, 'event was', 'events were')} lost: the rest is incomplete")
    return "\n".join([*lines, ""])


def _sites(sites: dict[str, Waits], elapsed_s: float) -> str:
    sampled = sum(waits.switches for waits in sites.values())
    rows: list[tuple[str, ...]] = [
        ("site", "task", "switches/s", "share", "stall mean", "max", "sleeping", "run queue", "stalled/s")
    ]
    for site, waits in list(sites.items())[:ROWS_SHOWN]:
        share = f"{100 * waits.switches / sampled:.1f} %" if sampled else ABSENT
        rows.append((site, waits.comm, _rate(waits.switches, elapsed_s), share, *_times(waits, elapsed_s)))
    return columns(rows, left=2) + _left_out(sites, "sites")


def _tasks(tasks: dict[str, Waits], elapsed_s: float) -> str:
    rows = [
        ("task", "tasks", "switches/s", *STATES.values(), "stall mean", "max", "sleeping", "run queue", "stalled/s")
    ]
    for task, waits in list(tasks.items())[:ROWS_SHOWN]:
        states = (_percent(waits.states.get(state, 0), waits.switches) for state in STATES)
        count = str(len(waits.pids)) if waits.pids else ABSENT
        rows.append((task, count, _rate(waits.switches, elapsed_s), *states, *_times(waits, elapsed_s)))
    return columns(rows) + _left_out(tasks, "names of tasks")


def _chains(sites: dict[str, Waits]) -> str:
    """How the first sites came to wait, innermost function first."""
    lines = [
        f"{site}: {' < '.join(waits.chain[:FRAMES_SHOWN])}{' < ...' if len(waits.chain) > FRAMES_SHOWN else ''}"
        for site, waits in list(sites.items())[:CHAINS_SHOWN]
    ]
    return "\n".join([*lines, ""])


def _times(waits: Waits, elapsed_s: float) -> tuple[str, ...]:
    stalled_per_s = waits.total_ns("stall") / elapsed_s if waits.mean_ns("stall") is not None else None
    values = (
        waits.mean_ns("stall"),
        waits.max_ns(),
        waits.mean_ns("sleeping"),
        waits.mean_ns("run_queue_delay"),
        stalled_per_s,
    )
    return tuple(map(_time, values))


def _left_out(rows: dict[str, Waits], what: str) -> str:
    left = len(rows) - ROWS_SHOWN
    return f"\n... {left} more {what}\n" if left > 0 else "\n"


Column = Literal["stall_ns", "wakeup_latency_ns", "run_queue_delay_ns"]


def _mean(observations: list[native.SwitchesObservation], column: Column) -> float | None:
    found = [row[column] for row in observations]
    count = sum(row["count"] for row in found)
    return sum(row["count"] * (row["mean"] or 0.0) for row in found) / count if count else None


def _notes(observations: list[native.SwitchesObservation]) -> list[str]:
    return list(dict.fromkeys(note for found in observations for note in found.get("notes", [])))


def _time(value_ns: float | None) -> str:
    return scale_for("ns", [value_ns]).with_unit(value_ns)


def _rate(count: int, elapsed_s: float) -> str:
    return f"{count / elapsed_s:.1f}" if elapsed_s else ABSENT


def _percent(part: int, of: int) -> str:
    return f"{100 * part / of:.0f} %" if of else ABSENT
