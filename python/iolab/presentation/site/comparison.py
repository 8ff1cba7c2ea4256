"""Two runs side by side, if they ran on the same hardware, or on request."""

from __future__ import annotations

from iolab.base.errors import InputError
from iolab.domain.arms import Arm
from iolab.domain.collection.entry import Entry
from iolab.domain.collection.extract import Judged, judged_of
from iolab.domain.collection.hardware import hardware_of, unlike
from iolab.domain.comparison import Comparison
from iolab.files.collection.collection import Collection
from iolab.files.store import read
from iolab.presentation.side_by_side import ComparisonRequest, compare_several
from iolab.presentation.site.page_types import ComparisonPage, Difference
from iolab.presentation.site.parts import metrics_of, run_row
from iolab.presentation.table.conclusions import conclusions


def page(runs: Collection, ours: Entry, theirs: Entry, *, although_unlike: bool) -> ComparisonPage:
    """What `iolab compare` reports about the two. InputError if they have nothing in common, or can't be read."""
    if ours.id == theirs.id:
        raise InputError("both are the same run", where=ours.name)
    pairs = dict(zip(("ours", "theirs"), runs.extracts([ours, theirs]), strict=False))
    if len(pairs) < 2:
        raise InputError("one of the two cannot be read", where=f"{ours.name}, {theirs.name}")
    hardware = [hardware_of(entry.machine, extract.facts) for entry, extract in pairs.values()]
    different = [Difference(what=what, baseline=a, candidate=b) for what, a, b in unlike(*hardware)]
    margin = pairs["ours"][1].same_within
    if different and not although_unlike:
        return ComparisonPage(
            baseline=run_row(ours),
            candidate=run_row(theirs),
            unlike=different,
            differs=[],
            not_compared=[],
            conclusion=None,
            sentences=[],
            metrics={},
            judged=None,
            same_within=margin,
            problems=[],
        )
    arms = [Arm(entry.name, [read(runs.path(entry))]) for entry in (ours, theirs)]
    found = compare_several(arms, ComparisonRequest())
    conditions = found.conditions
    return ComparisonPage(
        baseline=run_row(ours),
        candidate=run_row(theirs),
        unlike=different,
        differs=[
            Difference(what=one.what, baseline=one.values[arms[0].name], candidate=one.values[arms[1].name])
            for one in (conditions.differs if conditions else ())
        ],
        not_compared=conditions.unknown if conditions else [],
        conclusion=conditions.conclusion if conditions else None,
        sentences=[*found.swept, *(one.text for one in conclusions(found.comparisons))],
        metrics=metrics_of(one.metric for one in found.comparisons),
        judged=[_judged(one, ours, theirs) for one in found.comparisons],
        same_within=margin,
        problems=list(found.remarks),
    )


def _judged(one: Comparison, ours: Entry, theirs: Entry) -> Judged:
    """With the settings' own names: the page states which run is which."""
    names = {
        "against": one.against.removesuffix(f" in {ours.name}"),
        "setting": one.setting.removesuffix(f" in {theirs.name}"),
    }
    return judged_of(one).model_copy(update=names)
