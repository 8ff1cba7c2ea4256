"""What a search for the best setting has found, for people and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from iolab.base.option import shown
from iolab.base.plain_text import counted
from iolab.base.quantity import change
from iolab.domain.tune.search import SAME_LOG, Search
from iolab.domain.tune.untried import VALUES_MAX
from iolab.presentation.table.words import label
from iolab.studies.tuner.commands import Commands, commands, device_of

if TYPE_CHECKING:
    from iolab.base.strict_json import JsonObject
    from iolab.domain.tune.answer import ConfirmedCandidate
    from iolab.domain.tune.keys import Reduction
    from iolab.studies.tuner.tuner import TunerResult


def lines(found: TunerResult) -> Iterator[str]:
    """The answer, the verdicts of fresh rounds on each candidate, the keys that matter, and how to have the setting."""
    tuning = found.directory.tuning
    yield from _searched(found)
    if found.confirmed is None:
        yield _without_rounds(found)
        return
    yield ""
    yield f"On fresh rounds, against {found.directory.baseline}:"
    for one in found.answer.fresh.values():
        yield from _fresh(one, found)
    if found.search.reduction is not None:
        yield from _keys(found.search.reduction)
    yield ""
    if not found.answer.chosen:
        yield f"Keep the default: no candidate is shown to be better for {label(tuning.objectives[0])}."
        return
    several = len(tuning.objectives) > 1
    taken = found.answer.chosen if several else found.answer.chosen[:1]
    yield f"Take {'one of ' if len(taken) > 1 else ''}{', '.join(taken)}:"
    for name in taken:
        yield ""
        yield from _how(_commands(name, found))


def as_dict(found: TunerResult) -> JsonObject:
    """The finding as JSON: the schema stands in docs/tuning.md."""
    tuning = found.directory.tuning
    reduction = found.search.reduction
    return {
        "workload": tuning.workload,
        "objectives": list(tuning.objectives),
        "trials": found.search.trials_used,
        "candidates": found.search.candidates,
        "nothing_acts": found.search.nothing_acts,
        "chosen": list(found.answer.chosen),
        "finalists": {
            name: {
                "setting": _values(one, found),
                "objectives": {
                    key: judgement.as_dict() for key, judgement in zip(tuning.objectives, one.objectives, strict=True)
                },
                "limited": {key: judgement.as_dict() for key, judgement in one.limited.items()},
                "beyond": one.beyond(tuning),
            }
            for name, one in found.answer.fresh.items()
        },
        "keys": None if reduction is None else _inclusion(reduction),
        "commands": {name: _commands(name, found).__dict__ for name in found.answer.chosen},
        "left_out": list(found.left_out),
        "left_out_on_model": list(found.left_out_on_model),
    }


def _searched(found: TunerResult) -> Iterator[str]:
    tuning, search = found.directory.tuning, found.search
    what = " and ".join(label(key) for key in tuning.objectives)
    yield (
        f"{what} of {tuning.workload}, {counted(len(tuning.space.parameters), 'key')}, "
        f"{counted(tuning.space.size, 'candidate')} at most"
    )
    if found.on_model is not None:
        on_model = found.on_model
        yield f"on {tuning.first}: {_effort(on_model)}"
    yield f"searched: {_effort(search)}, each in rounds with the default"


def _effort(search: Search) -> str:
    return f"{counted(search.trials_used, 'trial')} of {counted(search.candidates, 'candidate')}"


def _without_rounds(found: TunerResult) -> str:
    if found.search.nothing_acts:
        return (
            f"Keep the default: no key acts. {counted(found.search.candidates, 'candidate').capitalize()} with every "
            f"value of every key ({VALUES_MAX} of a longer range) gave what the default gave beside them, within "
            f"{SAME_LOG:.2%}."
        )
    if found.search.next() is not None:
        return f"The search is not over: iolab tune --resume {found.directory.path}"
    return "Keep the default: no candidate looked better, so there was nothing to confirm."


def _fresh(one: ConfirmedCandidate, found: TunerResult) -> Iterator[str]:
    tuning = found.directory.tuning
    beyond = one.beyond(tuning)
    for key, judgement in [*zip(tuning.objectives, one.objectives, strict=True), *one.limited.items()]:
        if judgement.ratio is None or judgement.ci_low is None or judgement.ci_high is None:
            yield f"  {one.name}: {label(key)}: {judgement.reason}"
            continue
        interval = f"[{change(judgement.ci_low)}, {change(judgement.ci_high)}]"
        text = (
            f"{label(key)} {judgement.verdict}, {change(judgement.ratio)} {interval}, {counted(judgement.n, 'round')}"
        )
        yield f"  {one.name}: {text}{', beyond its limit' if key in beyond else ''}"
    yield f"    {', '.join(f'{_short(key)} = {shown(value)}' for key, value in _values(one, found).items())}"


def _keys(reduction: Reduction) -> Iterator[str]:
    text = reduction.attribution
    if text is None:
        return
    names = [_short(keys[0]) for keys in reduction.factors]
    if not text.keys:
        yield f"No key is shown to matter by itself ({text.probability:.0%})."
        return
    yield f"What matters, by {counted(text.trials, 'trial')} of mixtures of winner and default:"
    for effect in text.effects:
        low, high = sorted((math.expm1(effect.low), math.expm1(effect.high)))
        of = " with ".join(names[place] for place in effect.keys)
        yield f"  {of}: {math.expm1(effect.size):+.1%} [{low:+.1%}, {high:+.1%}], {effect.probability:.0%} sure"


def _inclusion(reduction: Reduction) -> JsonObject | None:
    text = reduction.attribution
    if text is None:
        return None
    return {_short(keys[0]): share for keys, share in zip(reduction.factors, text.inclusion, strict=True)}


def _values(one: ConfirmedCandidate, found: TunerResult) -> dict[str, object]:
    return found.search.space.values(one.point)


def _commands(name: str, found: TunerResult) -> Commands:
    one = found.answer.fresh[name]
    return commands(name, _values(one, found), device_of(found.directory.experiment.target))


def _how(commands: Commands) -> Iterator[str]:
    yield from commands.toml.strip().splitlines()
    for title, text in (
        ("For this boot:", commands.shell),
        ("As a udev rule, /etc/udev/rules.d/90-iolab.rules:", (commands.udev,) if commands.udev else ()),
        ("In /etc/sysctl.d/90-iolab.conf:", commands.sysctl),
        ("As a profile of tuned:", commands.tuned.splitlines() if commands.tuned else ()),
        ("By hand:", commands.by_hand),
    ):
        if text:
            yield ""
            yield title
            yield from (f"  {line}" if line else "" for line in text)


def _short(key: str) -> str:
    return key.removesuffix(".name")
