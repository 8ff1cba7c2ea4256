"""Causes before symptoms: which mechanism moved first between two settings, and what followed from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from iolab.base.strict_json import JsonObject
from iolab.domain.explain.budget import NEEDED, Budget, budget, stages_of
from iolab.domain.explain.change import Change, Changes
from iolab.domain.explain.evidence import SettingEvidence, judge_setting, name_of, strength, with_setting
from iolab.domain.explain.mechanism import (
    BACKGROUND,
    CPU_WAIT,
    FLOORS,
    IN_FLIGHT,
    MECHANISMS,
    PREEMPTIONS,
    STEAL,
    SWITCHES_PER_IO,
    WAIT_SHARE_MIN,
    WAITING_ABOVE,
    Mechanism,
    follows_from,
    mechanisms_of,
)
from iolab.domain.explain.place import Arms, Array, Name, arms_of

if TYPE_CHECKING:
    import polars as pl

    from iolab.domain.comparison import Comparison

SCORE_MIN = 0.1
"""Strength below which a movement is no cause: about 10 % in every round."""
SHARE_OF_EFFECT = 0.5
"""A mechanism accounts for another that follows from it if its strength is at least this share of the other's."""
AS_STRONG = 0.75
"""Mechanisms that nothing accounts for, with this share of the strongest's strength, come in causal order."""
SYMPTOMS = frozenset({"cpu_cost"})
"""Named first only if a setting that acts on it was changed: a quotient of the result moves as the result does."""
ABOVE = "above"
CPU_SHRINKAGE_S = 0.05
"""Added to the CPU time by which preemptions are divided: one of a thread that hardly ran shows nothing."""


@dataclass(frozen=True)
class LeadingMetric:
    """A leading metric that moved with the setting."""

    metric: str
    with_setting: SettingEvidence
    strength: float

    def as_dict(self) -> JsonObject:
        """The documented JSON of a leading metric."""
        return {"metric": self.metric, "strength": self.strength, "with_setting": self.with_setting.as_dict()}


@dataclass(frozen=True)
class Group:
    """A mechanism that moved."""

    mechanism: Mechanism
    moved: list[LeadingMetric]
    """The strongest first."""

    @property
    def strength(self) -> float:
        """That of its strongest metric."""
        return max(one.strength for one in self.moved)

    @property
    def difference_ns_per_io(self) -> float | None:
        """The largest, of its metrics that are times per I/O."""
        judgements = [one.with_setting.judgement for one in self.moved if one.metric.endswith("_ns_per_io")]
        measured = [(one.baseline, one.candidate) for one in judgements]
        known = [abs(after - before) for before, after in measured if before is not None and after is not None]
        return max(known, default=None)

    def as_dict(self) -> JsonObject:
        """The documented JSON of a mechanism that moved."""
        return {
            "name": self.mechanism.name,
            "title": self.mechanism.title,
            "strength": self.strength,
            "metrics": [one.as_dict() for one in self.moved],
        }


@dataclass(frozen=True)
class Cause:
    """What is known of one pair of settings on one workload."""

    workload: str | None
    against: str
    setting: str
    results: list[Comparison]
    """All that was compared between them."""
    changes: list[Change]
    """What was changed; empty if that is not known."""
    first: Group | None
    """The mechanism that is named first; None: none is seen to have moved."""
    by_change: list[Change]
    """The changes that act on the first mechanism; empty: the numbers alone name it."""
    others: list[Group]
    """The other mechanisms that moved: those that nothing accounts for, then what follows."""
    still: list[Mechanism]
    """Those that were measured and are not seen to have moved."""
    unmeasured: list[Mechanism]
    budget: Budget | None

    @property
    def moved(self) -> list[Group]:
        """All that moved."""
        return [*([self.first] if self.first else []), *self.others]

    @property
    def independent(self) -> list[Group]:
        """The others that do not follow from the first."""
        if self.first is None:
            return self.others
        return [one for one in self.others if not follows_from(one.mechanism.name, self.first.mechanism.name)]

    @property
    def symptoms(self) -> list[Group]:
        """The others that follow from the first."""
        return [one for one in self.others if one not in self.independent]

    @property
    def unobserved(self) -> list[Mechanism]:
        """Mechanisms that a change acts on and no probe measured: what moved first among the rest may be an effect."""
        acted_on = {name for change in self.changes for name in mechanisms_of(change.setting)}
        every = len(acted_on) == len(MECHANISMS)
        return [] if every or self.by_change else [one for one in self.unmeasured if one.name in acted_on]

    def as_dict(self) -> JsonObject:
        """One JSON object; docs/why.md explains what is in it."""
        return {
            "workload": self.workload,
            "against": self.against,
            "setting": self.setting,
            "changes": [one.as_dict() for one in self.changes],
            "first": None if self.first is None else self.first.as_dict(),
            "by_change": [one.setting for one in self.by_change],
            "symptoms": [one.as_dict() for one in self.symptoms],
            "independent": [one.as_dict() for one in self.independent],
            "did_not_move": [one.name for one in self.still],
            "not_measured": [one.name for one in self.unmeasured],
            "budget": None if self.budget is None else self.budget.as_dict(),
        }


def causes(frame: pl.DataFrame, results: Sequence[Comparison], changes: Changes | None = None) -> list[Cause]:
    """For each pair of settings on each workload of the results, which mechanism moved first.

    Args:
        frame: as of `explain`.
        changes: what was changed between the settings, as far as it is known.
    """
    by_place: dict[Name, list[Comparison]] = {}
    for one in results:
        by_place.setdefault((one.workload, one.against, one.setting), []).append(one)
    arms = {place: _with_derived(arms_of(frame, place)) for place in by_place}
    leading = {place: _leading(found) for place, found in arms.items()}
    judged = [
        (measured[key], judge_setting(measured[key], by_place[place][0].judgement.same_within))
        for place, measured in leading.items()
        for key in measured
    ]
    evidence = iter(with_setting(judged))
    return [
        _cause(
            place, found, arms[place], {key: next(evidence) for key in leading[place]}, (changes or {}).get(place, [])
        )
        for place, found in by_place.items()
    ]


def _with_derived(arms: dict[str, Arms]) -> dict[str, Arms]:
    """With the quotients and differences of metrics that mechanisms are known by, phase by phase."""
    derived: dict[str, Arms] = {}
    for prefix in dict.fromkeys(_prefix(key) for key in arms):
        here = {key.removeprefix(prefix): one for key, one in arms.items() if _prefix(key) == prefix}
        for name, of in _DERIVED.items():
            # Who waits long is preempted seldom: a count of preemptions only stands in for the time.
            if name == PREEMPTIONS and CPU_WAIT in here and here[CPU_WAIT].present.any():
                continue
            sides = [of({key: getattr(one, side) for key, one in here.items()}) for side in ("baseline", "candidate")]
            if sides[0] is not None and sides[1] is not None:
                derived[f"{prefix}{name}"] = Arms(sides[0], sides[1])
    return {**arms, **derived}


def _switches_per_io(values: Mapping[str, Array]) -> Array | None:
    if not {"context_switches_voluntary", "ops"} <= values.keys():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        per_io = np.where(values["ops"] > 0, values["context_switches_voluntary"] / values["ops"], np.nan)
    return np.asarray(per_io, dtype=np.float64)


def _preemptions(values: Mapping[str, Array]) -> Array | None:
    if not {"context_switches_involuntary", "cpu_user_s", "cpu_system_s"} <= values.keys():
        return None
    cpu_s = values["cpu_user_s"] + values["cpu_system_s"]
    return np.asarray(values["context_switches_involuntary"] / (cpu_s + CPU_SHRINKAGE_S), dtype=np.float64)


def _waiting_above(values: Mapping[str, Array]) -> Array | None:
    """Above the block layer, less what the jobs' threads ran or waited for a CPU."""
    if not {*NEEDED, "cpu_ns_per_io"} <= values.keys():
        return None
    above = stages_of({**values})["above"] - values["cpu_ns_per_io"]
    wait = values.get(CPU_WAIT)
    if wait is not None:
        above = above - np.nan_to_num(wait)
    return np.asarray(np.maximum(0.0, above), dtype=np.float64)


def _ios_in_flight(values: Mapping[str, Array]) -> Array | None:
    """By Little's law."""
    if not {"iops", "latency_ns_mean"} <= values.keys():
        return None
    return np.asarray(values["iops"] * values["latency_ns_mean"] / 1e9, dtype=np.float64)


_DERIVED = {
    SWITCHES_PER_IO: _switches_per_io,
    PREEMPTIONS: _preemptions,
    WAITING_ABOVE: _waiting_above,
    IN_FLIGHT: _ios_in_flight,
}
"""In terms of a phase's metrics by name, each an array over the rounds."""

LEADING = frozenset(name for one in MECHANISMS.values() for name in one.leading + one.leading_if_set)


def _leading(arms: dict[str, Arms]) -> dict[str, Arms]:
    """The leading metrics that can be judged, of all operations together."""
    return {
        key: one
        for key, one in arms.items()
        if name_of(key) in LEADING and "." not in key.rpartition("/")[2] and one.present.sum() >= 2
    }


def _floor(key: str, arms: Mapping[str, Arms]) -> float:
    """The amount of a leading metric that does not matter."""
    floor = FLOORS.get(name_of(key), 0.0)
    iops = arms.get(f"{_prefix(key)}iops") if name_of(key) == CPU_WAIT else None
    if iops is None or not iops.present.any():
        return floor
    slower = min(float(np.median(arm[iops.present])) for arm in (iops.baseline, iops.candidate))
    return max(floor, WAIT_SHARE_MIN * 1e9 / slower) if slower > 0 else floor


def _cause(
    place: Name,
    results: list[Comparison],
    arms: dict[str, Arms],
    evidence: dict[str, SettingEvidence],
    changes: list[Change],
) -> Cause:
    groups: dict[str, Group] = {}
    set_ = {change.setting for change in changes}
    still: list[Mechanism] = []
    unmeasured: list[Mechanism] = []
    for mechanism in MECHANISMS.values():
        names = mechanism.leading + (mechanism.leading_if_set if set_ & {*mechanism.settings} else ())
        measured = [key for name in names for key in evidence if name_of(key) == name]
        moved = [
            LeadingMetric(key, evidence[key], size)
            for key in measured
            if evidence[key].moved and (size := strength(arms[key], _floor(key, arms))) >= SCORE_MIN
        ]
        if moved:
            groups[mechanism.name] = Group(mechanism, sorted(moved, key=lambda one: -one.strength))
        else:
            (still if measured else unmeasured).append(mechanism)
    acted_on = {name for change in changes for name in mechanisms_of(change.setting)}
    changed = {name: one for name, one in groups.items() if name in acted_on}
    in_flight = _in_flight(arms, _prefix(results[0].metric))
    ordered = _in_order(changed, in_flight) if changed else []
    ordered += _in_order({name: one for name, one in groups.items() if one not in ordered}, in_flight)
    not_first = {STEAL} if BACKGROUND in set_ else set()
    ordered.sort(key=lambda one: one.mechanism.name in not_first)
    if not changed:
        not_first |= SYMPTOMS
    first = ordered[0] if ordered and ordered[0].mechanism.name not in not_first else None
    by_change = [
        change for change in changes if first and changed and first.mechanism.name in mechanisms_of(change.setting)
    ]
    prefix = _prefix(results[0].metric)
    return Cause(
        *place,
        results,
        changes,
        first,
        by_change,
        ordered[1:] if first else ordered,
        still,
        unmeasured,
        budget(arms, prefix),
    )


def _in_flight(arms: Mapping[str, Arms], prefix: str) -> float:
    """I/Os at a time under the candidate, by Little's law; 1 if that is not known."""
    found = arms.get(f"{prefix}{IN_FLIGHT}")
    if found is None or not found.present.any():
        return 1.0
    return max(1.0, float(np.median(found.candidate[found.present])))


def _in_order(groups: Mapping[str, Group], in_flight: float) -> list[Group]:
    """Those that nothing else accounts for, by their evidence; then the others, causes before effects."""
    roots = [
        one for one in groups.values() if not any(_accounts_for(other, one, in_flight) for other in groups.values())
    ]
    measured: list[Group] = []
    while roots:
        strongest = max(one.strength for one in roots)
        measured.append(next(one for one in roots if one.strength >= AS_STRONG * strongest))
        roots.remove(measured[-1])
    return measured + [one for one in groups.values() if one not in measured]


def _accounts_for(cause: Group, effect: Group, in_flight: float) -> bool:
    if cause is effect or not follows_from(effect.mechanism.name, cause.mechanism.name):
        return False
    if effect.mechanism.name == ABOVE:
        # Both are times of an I/O's way: microseconds do not account for milliseconds, however many times as long they
        # became. What holds up a job's thread holds up all its I/Os.
        ours, theirs = cause.difference_ns_per_io, effect.difference_ns_per_io
        if ours is not None and theirs is not None and ours * in_flight < SHARE_OF_EFFECT * theirs:
            return False
    return cause.strength >= SHARE_OF_EFFECT * effect.strength


def _prefix(key: str) -> str:
    phase, slash, _ = key.rpartition("/")
    return f"{phase}{slash}"
