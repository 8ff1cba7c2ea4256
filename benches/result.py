"""What a bench yields, and docs/reference/benchmarks.json, where the results of all benches are kept.

A result that misses its target states its cause and the cause's date, from causes.toml.
"""

import json
import statistics
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path


@dataclass(frozen=True)
class Result:
    """One figure. The ratio is ours over the peer's, or over the target when there is no peer; medians and ranges are
    taken over rounds in which ours and the peer alternate, ratios within a round."""

    name: str
    unit: str
    ours: float
    peer: float | None
    peer_name: str
    ratio: float | None
    ratio_min: float | None
    ratio_max: float | None
    target: str
    """The target in words; empty for a figure that only informs."""
    met: bool | None
    commands: list[str] = field(default_factory=list)
    bench: str = ""
    measured_on: str = ""
    cause: str = ""
    """Why the target is missed, in a sentence; empty unless it is."""
    date: str = ""
    """When the cause was found, as year-month-day."""


@dataclass(frozen=True)
class Target:
    words: str
    is_met: Callable[[Sequence[float]], bool]
    """A check of the ratios, one per round."""


def at_least(limit: float) -> Target:
    return Target(f"ratio >= {limit:g}", lambda ratios: statistics.median(ratios) >= limit)


def at_most(limit: float) -> Target:
    return Target(f"ratio <= {limit:g}", lambda ratios: statistics.median(ratios) <= limit)


def _reaches_one(ratios: Sequence[float]) -> bool:
    from iolab.domain.verdict.judgement import judge

    high = judge([1.0] * len(ratios), ratios, nature="rate").ci_high
    return (max(ratios) if high is None else high) >= 1


NOT_BEHIND = Target("95 % interval reaches 1", _reaches_one)


def paired(
    name: str,
    unit: str,
    ours: Sequence[float],
    peer: Sequence[float],
    peer_name: str,
    *,
    target: Target | None = None,
    commands: Sequence[str] = (),
) -> Result:
    """`ours[i]` and `peer[i]` are from the same round."""
    ratios = [a / b for a, b in zip(ours, peer, strict=True)]
    return Result(
        name=name,
        unit=unit,
        ours=statistics.median(ours),
        peer=statistics.median(peer),
        peer_name=peer_name,
        ratio=statistics.median(ratios),
        ratio_min=min(ratios),
        ratio_max=max(ratios),
        target=target.words if target else "",
        met=target.is_met(ratios) if target else None,
        commands=list(commands),
    )


def bounded(name: str, unit: str, ours: Sequence[float], *, limit: float, commands: Sequence[str] = ()) -> Result:
    """A figure without a peer: against its limit."""
    median = statistics.median(ours)
    return Result(
        name=name,
        unit=unit,
        ours=median,
        peer=None,
        peer_name="",
        ratio=median / limit,
        ratio_min=min(ours) / limit,
        ratio_max=max(ours) / limit,
        target=f"<= {limit:g} {unit}",
        met=median <= limit,
        commands=list(commands),
    )


def plain(name: str, unit: str, ours: Sequence[float]) -> Result:
    """A figure without peer and limit, to compare others with."""
    median = statistics.median(ours)
    return Result(
        name,
        unit,
        median,
        None,
        "",
        None,
        min(ours) / median if median else None,
        max(ours) / median if median else None,
        "",
        None,
    )


class NotMeasured(Exception):
    """Something that a bench needs is absent: states what, and how to get it. Earlier results stay."""


def unmeasured(why: NotMeasured) -> Result:
    """A line in the table for a bench that was never measured, so that it is not overlooked."""
    return Result("not measured", "", 0.0, None, str(why), None, None, None, "", met=None)


@dataclass(frozen=True)
class Cause:
    """Why results of a bench miss their targets."""

    bench: str
    rows: list[str]
    """Names of results."""
    date: str
    cause: str


CAUSES = Path(__file__).with_name("causes.toml")


def causes(path: Path = CAUSES) -> list[Cause]:
    return [Cause(**entry) for entry in tomllib.loads(path.read_text())["causes"]]


def explained(results: Sequence[Result], known: Sequence[Cause]) -> list[Result]:
    """The results, each that misses its target with its cause, and no other with one."""
    by_row = {(one.bench, row): one for one in known for row in one.rows}
    found = []
    for one in results:
        cause = by_row.get((one.bench, one.name)) if one.met is False else None
        found.append(replace(one, cause=cause.cause, date=cause.date) if cause else replace(one, cause="", date=""))
    return found


def unexplained(results: Sequence[Result]) -> list[Result]:
    """Those that miss their target and state no cause."""
    return [one for one in results if one.met is False and not (one.cause and one.date)]


def load(path: Path) -> list[Result]:
    return [Result(**entry) for entry in json.loads(path.read_text())] if path.exists() else []


def save(path: Path, results: Sequence[Result]) -> None:
    """A line for each, so that a difference shows which results are new."""
    rows = ",\n".join(json.dumps(_entry(result)) for result in results)
    path.write_text(f"[\n{rows}\n]\n")


def _entry(result: Result) -> dict[str, object]:
    """Without the cause of a target that is not missed."""
    return {key: value for key, value in asdict(result).items() if value or key not in ("cause", "date")}


def merge(known: Sequence[Result], bench: str, fresh: Sequence[Result]) -> list[Result]:
    """A bench's new results take the place of all its old ones; those of other benches stay as they were."""
    others = [result for result in known if result.bench != bench]
    return sorted([*others, *fresh], key=lambda result: result.bench)
