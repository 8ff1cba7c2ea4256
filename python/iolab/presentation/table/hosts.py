"""`show --as hosts`: a run on several hosts, a verdict per host, and how much the hosts differ."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.base.strict_json import JsonObject
from iolab.domain.definition import NO_DIFFERENCE, VERDICTS, Verdict
from iolab.domain.hosts import HostComparison, host_comparisons
from iolab.domain.summary import summarise
from iolab.presentation.table.plain import STYLES, empty_table
from iolab.presentation.table.words import change_with_interval, label, verdict_with_rounds
from iolab.presentation.terminal import text_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from iolab.files.store import RunData

DIFFER_BELOW = 0.05
"""p-value up to which the hosts are reported to differ."""


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """A sentence per comparison, then a table per workload. InputError for a run on one host."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    found = host_comparisons(run, summarise(run, metrics=metrics))
    if not found:
        raise InputError(
            "was not measured on several hosts",
            where=str(run.path),
            remedy="measure it there: iolab run EXPERIMENT.toml --on ray",
        )
    parts: list[RenderableType] = [Text.assemble(("● ", "cyan"), sentence(one)) for one in found]
    for workload, of_workload in groupby(found, key=lambda one: one.overall.workload or ""):
        parts += [Padding(Text(workload, style="bold cyan"), (1, 0, 0, 0), expand=False), _table(list(of_workload))]
    return text_of(Group(*parts))


def sentence(one: HostComparison) -> str:
    """`group against queue in rate: faster on all 3 hosts; spread between hosts 2.1 %, and they differ (p = 0.01).`"""
    overall, judged = one.overall, one.by_host
    head = f"{overall.setting} against {overall.against} in {label(overall.metric)}"
    place = f"on {overall.workload}, " if overall.workload else ""
    by_verdict: dict[Verdict, list[str]] = {}
    for host, comparison in judged.items():
        by_verdict.setdefault(comparison.judgement.verdict, []).append(host)
    ordered = sorted(by_verdict, key=VERDICTS.index)
    if len(ordered) == 1:
        text = f"{ordered[0]} on {'both' if len(judged) == 2 else f'all {len(judged)}'} hosts"
    else:
        text = "; ".join(f"{verdict} on {', '.join(by_verdict[verdict])}" for verdict in ordered)
    if len([verdict for verdict in ordered if verdict not in NO_DIFFERENCE]) > 1:
        text += ": it depends on the host"
    return f"{place}{head}: {text}{_spread(one)}."


def as_dict(one: HostComparison) -> JsonObject:
    """For programs."""
    spread = one.spread
    return {
        "metric": one.overall.metric,
        "workload": one.overall.workload,
        "setting": one.overall.setting,
        "against": one.overall.against,
        "text": sentence(one),
        "hosts": {host: comparison.judgement.as_dict() for host, comparison in one.by_host.items()},
        "spread_between_hosts": None if spread is None else spread.share,
        "p_same_on_all_hosts": None if spread is None else spread.p_value,
    }


def _spread(one: HostComparison) -> str:
    if one.spread is None:
        return "; for a spread between hosts each needs two rounds"
    text = f"; spread between hosts {one.spread.share * 100:.1f} %"
    if one.spread.p_value is None:
        return text
    if one.spread.p_value < DIFFER_BELOW:
        return f"{text}, and they differ (p = {one.spread.p_value:.2g})"
    return f"{text}, no more than the noise of their rounds explains (p = {one.spread.p_value:.2g})"


def _table(found: Sequence[HostComparison]) -> Table:
    from rich.text import Text

    table = empty_table()
    table.add_column("metric, setting, host", overflow="fold")
    table.add_column("rounds", justify="right")
    table.add_column("change within rounds [95 %]", justify="right")
    table.add_column("verdict")
    for one in found:
        table.add_row(Text(f"{label(one.overall.metric)}, {one.overall.setting}", style="bold"))
        for host, comparison in [*one.by_host.items(), ("all", one.overall)]:
            judged = comparison.judgement
            verdict = Text(verdict_with_rounds(judged), style=STYLES[judged.verdict])
            table.add_row(f"  {host}", str(judged.n), change_with_interval(judged) or "-", verdict)
        table.add_section()
    return table
