"""Two runs side by side: the second as the candidate, the first as the baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.domain.compare import Numbers, Pair, compare_pairs
from iolab.domain.summary import chosen_keys, values_by_setting

if TYPE_CHECKING:
    from iolab.domain.compare import Comparison
    from iolab.domain.measured_run import MeasuredRun


def compare_runs(
    baseline: MeasuredRun, candidate: MeasuredRun, *, metrics: Sequence[str] = (), same_within: float | None = None
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
    name_ours, name_theirs = setting_names(baseline, candidate)
    pairs = []
    for place in ours:
        by_setting = theirs.get(place, {})
        for setting, numbers in ours[place].items():
            partner = next(iter(by_setting), setting) if one_setting else setting
            if partner in by_setting:
                pairs.append(_pair(place, (name_ours(setting), numbers), (name_theirs(partner), by_setting[partner])))
    if not pairs:
        raise InputError(
            "the runs have no workload, setting and metric in common",
            where=f"{baseline.path}, {candidate.path}",
            remedy="compare runs of the same experiment, on two kernels for instance",
        )
    margin = baseline.experiment.compare.same_within if same_within is None else same_within
    return compare_pairs(pairs, same_within=margin)


def setting_names(baseline: MeasuredRun, candidate: MeasuredRun) -> tuple[Callable[[str], str], Callable[[str], str]]:
    """How each run's settings are called beside the other's: `bfq in RUN`, by the path where the names are alike."""
    by_path = baseline.path.name == candidate.path.name
    ours, theirs = (run.path if by_path else run.path.name for run in (baseline, candidate))
    return lambda setting: f"{setting} in {ours}", lambda setting: f"{setting} in {theirs}"


def _pair(place: tuple[str, str], ours: tuple[str, Numbers], theirs: tuple[str, Numbers]) -> Pair:
    workload, key = place
    rounds = min(len(ours[1]), len(theirs[1]))
    return Pair(key, workload, ours[0], theirs[0], ours[1][:rounds], theirs[1][:rounds])
