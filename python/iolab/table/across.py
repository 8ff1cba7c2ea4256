"""Two runs side by side: the second as the candidate, the first as the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolab.compare import Numbers, Pair, compare_pairs
from iolab.errors import InputError
from iolab.table.summary import chosen_keys, values_by_setting

if TYPE_CHECKING:
    from iolab.compare import Comparison
    from iolab.store import RunData


def compare_runs(
    baseline: RunData, candidate: RunData, *, metrics: Sequence[str] = (), same_within: float | None = None
) -> list[Comparison]:
    """Each setting of the candidate run against the setting of the same name in the baseline run, on each workload that
    both have; where both runs have a single setting, that one, whatever its name.

    Rounds are paired by their index. They ran at different times, so pairing takes out no common drift; it does no harm
    either. InputError if the runs have nothing in common.
    """
    wanted = metrics or baseline.experiment.compare.metrics or ()
    ours = values_by_setting(baseline, chosen_keys(baseline, wanted))
    theirs = values_by_setting(candidate, chosen_keys(candidate, wanted))
    one_setting = len(baseline.settings) == len(candidate.settings) == 1
    pairs = []
    for place in ours:
        by_setting = theirs.get(place, {})
        for setting, numbers in ours[place].items():
            partner = next(iter(by_setting), setting) if one_setting else setting
            if partner in by_setting:
                pairs.append(_pair(place, (baseline, setting, numbers), (candidate, partner, by_setting[partner])))
    if not pairs:
        raise InputError(
            "the runs have no workload, setting and metric in common",
            where=f"{baseline.path}, {candidate.path}",
            remedy="compare runs of the same experiment, on two kernels for instance",
        )
    margin = baseline.experiment.compare.same_within if same_within is None else same_within
    return compare_pairs(pairs, same_within=margin)


def _pair(place: tuple[str, str], ours: tuple[RunData, str, Numbers], theirs: tuple[RunData, str, Numbers]) -> Pair:
    workload, key = place
    rounds = min(len(ours[2]), len(theirs[2]))
    before, after = (f"{setting} in {run.path.name}" for run, setting, _ in (ours, theirs))
    return Pair(key, workload, before, after, ours[2][:rounds], theirs[2][:rounds])
