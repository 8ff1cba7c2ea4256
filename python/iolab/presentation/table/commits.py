"""What a search among commits has found: for people, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from iolab.base.plain_text import counted
from iolab.base.quantity import scale_for
from iolab.presentation.table.bisection import BAR_CHARACTERS, STOPPED, largest_step, unmeasured_stretch
from iolab.presentation.table.words import change_with_interval

if TYPE_CHECKING:
    from iolab.base.strict_json import JsonObject
    from iolab.domain.bisect.search import Change
    from iolab.studies.run.commits import GitFinding


def lines(found: GitFinding) -> Iterator[str]:
    """The answer, each change with its confirmation, what it took, and a line per commit measured."""
    answer, commits = found.answer, found.commits
    yield f"{len(commits) - 1} {_one(found)}s, {found.question.good}..{found.question.bad}: {_in_words(found)}"
    for change in answer.changes:
        yield _change(found, change)
    built = f"{counted(found.builds, 'build')} in {found.build_s:.0f} s, "
    # A version of a list is what its command makes of a name; without --build, nothing is built of it.
    took = f"{'' if found.question.versions and not found.question.build else built}{found.measure_s:.0f} s measured"
    yield f"{answer.measurements} measurements of the search; {took}. {STOPPED[answer.stopped]}".rstrip()
    yield from unmeasured_stretch(found.search, [commit.short for commit in commits])
    for place, why in sorted(found.unmeasurable.items()):
        yield f"not measurable: {commits[place].short}: {why}"
    if answer.kind != "unknown":
        yield ""
        yield from _measured(found)
    if found.named:
        yield ""
        yield from _log(found)
    for place, within in found.within.items():
        yield ""
        yield f"Among the commits of the merge {commits[place].short}:"
        yield from lines(within)
        if within.answer.kind == "none":
            yield f"None of them did it alone: {commits[place].short} did, with the other side of the merge."


def as_dict(found: GitFinding) -> JsonObject:
    """The finding as JSON: the schema stands in docs/bisection.md."""
    answer, commits = found.answer, found.commits
    judged = {change.last: found.judged(change.last) for change in answer.changes}
    return {
        "commits": len(commits) - 1,
        "kind": answer.kind,
        "probability": answer.probability,
        "stopped": answer.stopped,
        "measurements": answer.measurements,
        "builds": found.builds,
        "build_s": found.build_s,
        "measure_s": found.measure_s,
        "changes": [
            {
                "first": commits[change.first].sha,
                "last": commits[change.last].sha,
                "subject": commits[change.last].subject,
                "merge": commits[change.last].parents > 1,
                "within": as_dict(found.within[change.last]) if change.last in found.within else None,
                "probability": change.probability,
                "before": change.before,
                "after": change.after,
                "confirmed": None if (one := judged[change.last]) is None else one.as_dict(),
            }
            for change in answer.changes
        ],
        "unmeasurable": {commits[place].sha: why for place, why in sorted(found.unmeasurable.items())},
    }


def _one(found: GitFinding) -> str:
    return "version" if found.question.versions else "commit"


def _in_words(found: GitFinding) -> str:
    answer, commits = found.answer, found.commits
    sure = f"({answer.probability:.0%})"
    if answer.kind == "none":
        seen = largest_step(found.search, [commit.short for commit in commits])
        return f"none changes it by more than {100 * found.question.same_within:.2g} % {sure}; {seen}."
    if answer.kind == "unknown":
        return "nothing known yet."
    if answer.kind == "creep":
        (change,) = answer.changes
        first, last = commits[change.first].short, commits[change.last].short
        return f"it creeps from {first} to {last} {sure}: no {_one(found)} did it."
    named = [
        commits[change.last].short
        if change.first == change.last
        else f"one of {commits[change.first].short} to {commits[change.last].short}"
        for change in answer.changes
    ]
    return f"changed by {' and by '.join(named)} {sure}."


def _change(found: GitFinding, change: Change) -> str:
    commit = found.commits[change.last]
    scale = scale_for(_unit(found), [change.before, change.after])
    text = f"{commit.short} {commit.subject}".rstrip()
    text += f": {scale.number(change.before)} -> {scale.with_unit(change.after)}"
    if (judged := found.judged(change.last)) is not None:
        text += f"; on {counted(judged.n, 'fresh round')}: {judged.verdict} {change_with_interval(judged)}"
    if commit.parents > 1:
        text += "; a merge" if found.question.all_parents else "; a merge: --all-parents searches in what it brought"
    return text


def _measured(found: GitFinding) -> Iterator[str]:
    """How often each commit was measured, its level, and the probability that it stepped since the line above,
    by more than counts."""
    now = found.search.posterior
    levels, in_gaps = now.mean_levels.tolist(), now.in_gaps(found.search.margin)
    scale = scale_for(_unit(found), levels)
    for place, (point, level) in enumerate(zip(now.points, levels, strict=True)):
        times = sum(version == point for version, _ in found.search.values)
        share = float(in_gaps[place - 1]) if place else 0.0
        bar = f"{share:5.0%} {'#' * round(share * BAR_CHARACTERS)}" if place else ""
        yield f"{found.commits[point].short:12} {times:4} x {scale.with_unit(level):>12} {bar}".rstrip()


def _log(found: GitFinding) -> Iterator[str]:
    """One change, in the form of `git bisect log`."""
    if len(found.named) != 1 or found.question.versions:
        return
    (place,) = found.named
    after, before = found.commits[place], found.commits[place - 1]
    yield "git bisect start"
    yield f"git bisect good {before.sha}"
    yield f"git bisect bad {after.sha}"
    yield f"# first bad commit: [{after.sha}] {after.subject}"


def _unit(found: GitFinding) -> str:
    return "" if found.question.value == "printed" else "s"
