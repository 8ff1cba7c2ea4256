"""How much of a device its groups use together, of what each of them gets alone.

Under a setting, a round's figure is the sum over the groups of the rate beside the others over the rate alone. A
scheduler that never idles while there is work, on a device that serves each request in the same time whoever sent it,
has 1: groups only divide the time. Less is lost to switching, idling or limits; more is gained, since a group by itself
left the device idle. `alone = true` of a mix has the settings that this needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from iolab.base.plain_text import listed
from iolab.domain.metric import ALL
from iolab.domain.verdict.interval import estimate, interval
from iolab.domain.workload.mix import MixOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars

    from iolab.domain.experiment import Experiment
    from iolab.domain.measured_run import MeasuredRun

RATE = "rate_bytes_per_s"
ALPHA = 0.05
PAIRED = "Each group alone is compared with the same group beside the others."
SETTINGS_NAMED_MAX = 4
"""Settings that a sentence names; more are counted."""


def sharing_sentences(run: MeasuredRun) -> list[str]:
    """A sentence per workload whose groups also ran alone: the typical sum of their shares of the rates alone under
    each setting, with its 95 % interval."""
    by_itself: dict[str, list[Alone]] = {}
    for alone in groups_alone(run.experiment).values():
        by_itself.setdefault(alone.together, []).append(alone)
    found = []
    for workload in run.workloads if by_itself else ():
        rates = run.job_metrics(workload=workload)
        shares = [text for setting, groups in by_itself.items() if (text := _share(rates, setting, groups))]
        if shares:
            place = f" on {workload}" if len(run.workloads) > 1 else ""
            what = f"Work conservation{place}: the groups' shares of their rates alone add up to "
            found.append(f"{what}{listed(shares, SETTINGS_NAMED_MAX)}. {PAIRED}")
    return found


class Alone(NamedTuple):
    """A setting in which one group of a mix runs by itself."""

    setting: str
    group: str
    together: str
    """The same setting with all of the mix's groups."""


def groups_alone(experiment: Experiment) -> dict[str, Alone]:
    """The settings that `alone = true` added, by name."""
    found = {}
    for (_, name), variant in experiment.variants.items():
        match variant.options:
            case MixOptions(alone=True, only=[group]) if name.endswith(suffix := f" {group} alone"):
                found[name] = Alone(name, group, name.removesuffix(suffix))
    return found


def _share(rates: polars.DataFrame, setting: str, groups: Sequence[Alone]) -> str:
    """`96 % [91 %, 102 %] under plain`; empty if no round has all of the rates."""
    import numpy as np

    by_group = [(_by_round(rates, setting, one.group), _by_round(rates, one.setting, one.group)) for one in groups]
    complete = set.intersection(*(beside.keys() & by_itself.keys() for beside, by_itself in by_group))
    sums = np.array([sum(beside[n] / by_itself[n] for beside, by_itself in by_group) for n in sorted(complete)])
    if not sums.size:
        return ""
    ones = np.ones_like(sums)
    text = f"{float(estimate(ones, sums)):.0%}"
    if sums.size > 1:
        low, high = (float(end) for end in interval(ones, sums, ALPHA))
        text += f" [{low:.0%}, {high:.0%}]"
    return f"{text.replace('%', ' %')} under {setting}"


def _by_round(rates: polars.DataFrame, setting: str, group: str) -> dict[int, float]:
    own = rates.filter(
        (rates["setting"] == setting) & (rates["job"] == group) & (rates["metric"] == RATE) & (rates["op"] == ALL)
    )
    return {number: value for number, value in own.select("round", "value").iter_rows() if value}
