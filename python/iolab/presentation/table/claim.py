"""Published claims: their list, and one in full, as text, Markdown and JSON."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from iolab.base.plain_text import counted, markdown_table, one_line
from iolab.base.quantity import plain
from iolab.base.strict_json import JsonObject
from iolab.domain.claim.finding import Finding, is_confounded
from iolab.studies.claims.library import Claim, figures_of
from iolab.studies.reproduction.effects import PLACES

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.studies.reproduction.options import EffectOptions

WIDTH = 100
_SAID = {"agrees": "agree", "disagrees": "disagree", "mixed": "are mixed", "undecided": "are undecided"}
_COMMIT = re.compile(r"\b[0-9a-f]{7,40}\b")
_MARKS = {"agrees": "✓", "disagrees": "✗", "undecided": "?", "not measured": "-"}


def listed(claims: Sequence[Claim]) -> RenderableType:
    """A line for each claim, and the counts."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("claim", "date", "asked by", "state", "title"):
        table.add_column(head, overflow="fold" if head == "title" else "ellipsis", no_wrap=head != "title")
    for one in claims:
        row = summary(one)
        table.add_row(*(one_line(str(row[key])) for key in ("name", "date", "asked_by", "state", "title")))
    return Group(table, Text(claims_in_words(claims)))


def claims_in_words(claims: Sequence[Claim]) -> str:
    """How many claims there are, and what asking them came to, in a line."""
    with_effects = [one for one in claims if one.published.effects.claimed]
    states = [one.state for one in with_effects]
    asked = len(states) - states.count("stated")
    words = [_count(word, said, with_effects) for word, said in _SAID.items() if word in states]
    others = len(claims) - len(with_effects)
    said = f"{counted(len(with_effects), 'claim')} stated, {asked} asked{': ' if words else ''}{', '.join(words)}"
    return f"{said}; {counted(others, 'further table')} of figures, which models are asked."


SCORE = ("asked by", "answers", "agree", "disagree", "undecided", "of the decided, agree", "the same, not confounded")


def score(claims: Sequence[Claim]) -> str:
    """How many answers agree, by place, as a Markdown table."""
    found = [finding for one in claims for finding in one.findings.findings if finding.answer != "not measured"]
    places = [(place, [one for one in found if one.by == place]) for place in PLACES]
    rows = [_scored(place, answers) for place, answers in [*places, ("all", found)] if answers]
    return markdown_table(SCORE, rows)


def _scored(place: str, answers: Sequence[Finding]) -> tuple[str, ...]:
    words = ("agrees", "disagrees", "undecided")
    counts = [str(sum(one.answer == word for one in answers)) for word in words]
    clean = [one for one in answers if one.confounded is None]
    return place, str(len(answers)), *counts, _agreeing(answers), _agreeing(clean)


def _agreeing(answers: Sequence[Finding]) -> str:
    decided = [one for one in answers if one.answer in ("agrees", "disagrees")]
    agree = sum(one.answer == "agrees" for one in decided)
    return f"{agree} of {len(decided)}" + (f", {100 * agree / len(decided):.0f} %" if decided else "")


def _count(state: str, said: str, claims: Sequence[Claim]) -> str:
    of_state = [one for one in claims if one.state == state]
    confounded = sum(is_confounded(one.findings.findings) for one in of_state)
    return f"{len(of_state)} {said}" + (f" ({confounded} of them confounded)" if confounded else "")


def summary(claim: Claim) -> dict[str, str]:
    """A claim in the list."""
    published = claim.published
    return {
        "name": published.name,
        "date": claim.date,
        "asked_by": ", ".join(_places(claim)) or "nobody",
        "state": _state(claim),
        "title": published.title,
    }


def _places(claim: Claim) -> list[str]:
    asked = {ask.by for ask in claim.published.effects.asks.values()}
    return [
        place for place in PLACES if place in asked or (place == "model" and claim.published.experiment is not None)
    ]


def _state(claim: Claim) -> str:
    if claim.published.effects.claimed:
        return claim.state + (", confounded" if is_confounded(claim.findings.findings) else "")
    found = figures_of(claim.published.name)
    if found is None:
        return "stated"
    cells, met, of = found
    parts = [counted(cells, "cell")] if cells else []
    return ", ".join([*parts, f"{met} of {counted(of, 'claim')} met"] if of else parts) or "asked"


def as_dict(claim: Claim) -> JsonObject:
    """A claim in full."""
    published = claim.published
    return {
        **summary(claim),
        "source": published.source,
        "commit": published.commit,
        "setup": dict(published.setup),
        "effects": {name: one.model_dump(exclude_none=True) for name, one in published.effects.claimed.items()},
        "asks": {name: one.model_dump(exclude_none=True) for name, one in published.effects.asks.items()},
        "not_asked": published.effects.not_asked,
        "answers": [one.model_dump() for one in claim.findings.findings],
    }


def text(claim: Claim) -> str:
    """A claim in full, for a terminal."""
    return "\n".join(_lines(claim)) + "\n"


def _lines(claim: Claim) -> Iterator[str]:
    published = claim.published
    yield from _filled(f"{published.name}: {published.title}")
    yield from _filled(f"Source: {_sourced(claim)}")
    for name, fact in published.setup.items():
        yield from _filled(f"{name.capitalize()}: {fact}")
    for name, effect in published.effects.claimed.items():
        yield from _filled(f"Claimed, {name}: {effect.text} ({claimed(effect)})")
    for finding in claim.findings.findings:
        yield from _filled(f"{_MARKS[finding.answer]} {_answer(finding)}")
    for name, cause in _causes(claim):
        yield from _filled(f"Cause of the disagreement, {name}: {cause}")
    asked = {one.ask for one in claim.findings.findings}
    for name, ask in published.effects.asks.items():
        if name not in asked:
            yield from _filled(f"Not asked so far, {name}, by {ask.by}: {ask.why}")
    for places, why in _by_reason(published.effects.not_asked):
        yield from _filled(f"Not by {places}: {why}")
    if not published.effects.claimed:
        yield from _filled(f"Figures for models: {_state(claim)}; iolab reproduce {published.name}")


def _causes(claim: Claim) -> Iterator[tuple[str, str]]:
    """Why its answers disagree, by ask, as far as its file states it."""
    for finding in claim.findings.findings:
        ask = claim.published.effects.asks.get(finding.ask)
        if finding.answer == "disagrees" and ask is not None and ask.cause is not None:
            yield finding.ask, ask.cause


def _by_reason(reasons: Mapping[str, str]) -> list[tuple[str, str]]:
    """Each reason once, with all that it is given for."""
    names: dict[str, list[str]] = {}
    for name, why in reasons.items():
        names.setdefault(why, []).append(name)
    return [(", ".join(of_it), why) for why, of_it in names.items()]


def _sourced(claim: Claim) -> str:
    source, commit = claim.published.source, claim.published.commit
    is_named = commit is None or any(commit.startswith(digits) for digits in _COMMIT.findall(source))
    return source if is_named else f"{source} (commit {commit})"


def claimed(effect: EffectOptions) -> str:
    """What an effect amounts to: `IOPS: less by 21.8 %`."""
    size = f" by {effect.size:g} {effect.unit}" if effect.size is not None else ""
    ends = f", from {effect.before:g} to {effect.after:g} {effect.unit}" if effect.before is not None else ""
    return f"{effect.of}: {'the same' if effect.direction == 'same' else effect.direction}{size}{ends}"


def _answer(finding: Finding) -> str:
    parts = [f"{finding.answer}, by {finding.by} ({finding.ask}): {finding.what}: {measured(finding)}"]
    parts += [f"Said {finding.expected}."]
    parts += [f"Confounded: {finding.confounded}"] if finding.confounded else []
    return " ".join(parts)


def measured(finding: Finding) -> str:
    """What was measured, with its interval."""
    if finding.baseline is None:
        return f"{finding.reason or 'nothing'}."
    if finding.candidate is None:
        return f"{plain(finding.baseline, 6)}."
    values = f"{plain(finding.baseline, 6)} against {plain(finding.candidate, 6)}"
    if finding.share is None:
        return f"{values}, {counted(finding.rounds, 'round')}."
    ends = (
        f", 95 % interval {100 * finding.low:+.2f} to {100 * finding.high:+.2f} %"
        if finding.low is not None and finding.high is not None
        else ""
    )
    why = f"; {finding.reason}" if finding.reason else ""
    return f"{values}, {100 * finding.share:+.2f} %{ends}, {counted(finding.rounds, 'round')}{why}."


def markdown(claim: Claim) -> str:
    """A claim's page."""
    published = claim.published
    facts = "; ".join(f"{name}: {fact}" for name, fact in published.setup.items())
    parts = [
        f"# {published.name}",
        _wrapped(f"{published.title}. State: **{_state(claim)}**."),
        "\n".join(filter(None, (_item(f"Source: {_sourced(claim)}."), _item(f"Setup: {facts}.") if facts else ""))),
        "## Claimed\n\n"
        + "\n".join(_item(f"{name}: {one.text} *{claimed(one)}*") for name, one in published.effects.claimed.items()),
    ]
    if findings := claim.findings.findings:
        rows = [
            (one.answer, one.by, one.what, measured(one).removesuffix("."), f"said {one.expected}") for one in findings
        ]
        parts += ["## Asked\n\n" + markdown_table(("answer", "by", "what", "measured", "claim"), rows).rstrip()]
        causes = [_item(f"Cause ({name}): {cause}") for name, cause in _causes(claim)]
        parts += ["\n".join(causes)] if causes else []
    whys = [_item(f"By {ask.by} ({name}): {ask.why}") for name, ask in published.effects.asks.items()]
    confounded = {name: ask.confounded for name, ask in published.effects.asks.items() if ask.confounded}
    whys += [_item(f"Confounded ({names}): {why}") for names, why in _by_reason(confounded)]
    whys += [_item(f"Not by {places}: {why}") for places, why in _by_reason(published.effects.not_asked)]
    parts += ["## How it can be asked\n\n" + "\n".join(whys)]
    return "\n\n".join(parts) + "\n"


def _wrapped(line: str) -> str:
    return textwrap.fill(one_line(line), WIDTH, break_long_words=False, break_on_hyphens=False)


def _item(line: str) -> str:
    return textwrap.fill(
        one_line(line),
        WIDTH,
        initial_indent="- ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _filled(line: str) -> list[str]:
    return textwrap.wrap(one_line(line), WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
