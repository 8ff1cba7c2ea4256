"""What a search among versions has found, for people: the answer, each change, and the versions measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iolab.base.plain_text import counted
from iolab.base.quantity import scale_for
from iolab.presentation.table.plain import empty_table
from iolab.presentation.table.words import change_with_interval, label, unit_of
from iolab.studies.run.bisect import Finding, in_words

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.domain.bisect.search import Search

BAR_CHARACTERS = 20
NO_STEP = 1e-6
"""A share of the level that is rounding."""
UNSEEN_TOLD_FROM = 3
UNSEEN_TOLD_SHARE = 0.1
STOPPED = {
    "decided": "",
    "budget": "Stopped at the most trials allowed (--most): this is what is known.",
    "nothing left to measure": "Nothing is left that could be measured.",
    "going on": "The search is not over: iolab bisect --resume continues it.",
    "stored": "That does not decide it.",
}


def lines(found: Finding, *, stored: bool = False) -> RenderableType:
    """The answer in a sentence, a line per change with its confirmation, and a table of the versions measured.
    `stored`: of trials that were there, which nothing is added to."""
    from rich.console import Group
    from rich.text import Text

    question, answer, versions = found.question, found.answer, found.versions
    sentences = [f"{label(found.metric)} of {question.workload}, {versions[0]} to {versions[-1]}: {in_words(found)}."]
    if answer.kind == "none":
        step = largest_step(found.search, versions)
        sentences.append(f"{step[0].upper()}{step[1:]}.")
    for change in answer.changes:
        scale = scale_for(unit_of(found.metric), [change.before, change.after])
        sentences.append(
            f"  {versions[change.last]}: {scale.number(change.before)} -> {scale.with_unit(change.after)}"
            + _confirmed(found, change.last)
        )
    if stored:
        sentences.append(f"{counted(answer.measurements, 'trial')}. {_next(found)}".rstrip())
    else:
        sentences.append(f"{counted(answer.measurements, 'trial')} of the search. {STOPPED[answer.stopped]}".rstrip())
    sentences += unmeasured_stretch(found.search, versions)
    sentences += [f"not measurable: {name}: {why}" for name, why in found.unmeasurable.items()]
    parts: list[RenderableType] = [Text(line) for line in sentences]
    if answer.kind != "unknown":
        parts += [Text(), _versions(found)]
    return Group(*parts)


def _next(found: Finding) -> str:
    version = found.search.next()
    return "" if version is None else f"{STOPPED['stored']} A trial of {found.versions[version]} would show most."


def unmeasured_stretch(search: Search, names: Sequence[str]) -> Iterator[str]:
    """A line on the longest stretch in which nothing was measured, if changes are named and it has a tenth of all
    versions or more."""
    ends = search.longest_unmeasured() if search.answer().kind == "changes" else None
    if ends is not None and ends[1] - ends[0] >= max(UNSEEN_TOLD_FROM, search.versions * UNSEEN_TOLD_SHARE):
        between = f"{counted(ends[1] - ends[0] - 1, 'version')} between {names[ends[0]]} and {names[ends[1]]}"
        yield f"None of the {between} was measured: a change that is reversed there is not seen (--spread looks)."


def largest_step(search: Search, names: Sequence[str]) -> str:
    """What was seen if nothing counts as a change."""
    version, share = search.largest_step()
    if abs(share) < NO_STEP:
        return "no step was seen"
    return f"the largest step seen is {100 * share:+.2g} %, at {names[version]}"


def _confirmed(found: Finding, change: int) -> str:
    judged = found.confirmations.get(change)
    if judged is None:
        return ""
    against = f"on {counted(judged.n, 'fresh round')} against {found.versions[change - 1]}"
    return f"; {against}: {judged.verdict} {change_with_interval(judged)}"


def _versions(found: Finding) -> RenderableType:
    """A row per version measured: how often, its level, the probability that it stepped since the last, by more than
    counts."""
    table = empty_table()
    now = found.search.posterior
    levels, in_gaps = now.mean_levels.tolist(), now.in_gaps(found.search.margin)
    scale = scale_for(unit_of(found.metric), levels)
    for heading in ("version", "trials", scale.suffix.strip() or "level", "P(changed since the row above)"):
        table.add_column(heading, justify="left" if heading.startswith(("version", "P")) else "right")
    for place, (point, level) in enumerate(zip(now.points, levels, strict=True)):
        trials = sum(version == point for version, _ in found.search.values)
        share = float(in_gaps[place - 1]) if place else None
        bar = "" if share is None else f"{share:4.0%} {'#' * round(share * BAR_CHARACTERS)}"
        table.add_row(found.versions[point], str(trials), scale.number(level), bar)
    return table
