"""A run on several hosts: is a setting faster on all of them, or on some? Each host is a block of rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iolab.domain.comparison import Comparison, Numbers, Pair, compare_pairs
from iolab.domain.verdict.host_spread import Spread, logs_by_host, spread

if TYPE_CHECKING:
    from iolab.domain.measured_run import MeasuredRun
    from iolab.domain.summary import Summary


@dataclass(frozen=True)
class HostComparison:
    """One comparison of the run, host by host."""

    overall: Comparison
    """Over the rounds of all hosts."""
    by_host: dict[str, Comparison]
    """The comparison of each host's own rounds."""
    spread: Spread | None
    """None if fewer than two hosts have two rounds."""


def host_comparisons(run: MeasuredRun, summary: Summary) -> list[HostComparison]:
    """Every comparison of the summary that is paired by rounds, host by host, the false-discovery rate controlled over
    all of them; empty for a run that was not measured on several hosts."""
    host_of = run.host_of_round
    if len(set(host_of.values())) < 2:
        return []
    hosts = sorted(set(host_of.values()))
    pairs: list[Pair] = []
    places: list[tuple[Comparison, str]] = []
    spreads: dict[int, Spread | None] = {}
    compared = [one for one in summary.comparisons if one.pairing == "round" and one.job is None]
    for one in compared:
        wide = run.values(one.metric, one.workload or "")
        rounds = wide[wide.columns[0]].to_list()
        ours, theirs = (wide[name].to_list() if name in wide.columns else [] for name in (one.against, one.setting))
        if not (ours and theirs):
            continue
        where = [host_of.get(number) for number in rounds]
        spreads[id(one)] = spread(logs_by_host(ours, theirs, where))
        for host in hosts:
            x, y = (_on(values, where, host) for values in (ours, theirs))
            pairs.append(Pair(one.metric, one.workload, one.against, one.setting, x, y))
            places.append((one, host))
    found: dict[int, dict[str, Comparison]] = {}
    for (one, host), judged in zip(places, compare_pairs(pairs, same_within=summary.same_within), strict=True):
        found.setdefault(id(one), {})[host] = judged
    return [HostComparison(one, found[id(one)], spreads[id(one)]) for one in compared if id(one) in found]


def _on(values: Numbers, where: list[str | None], host: str) -> Numbers:
    return [value for value, of in zip(values, where, strict=True) if of == host]
