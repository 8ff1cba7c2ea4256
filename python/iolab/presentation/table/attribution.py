"""Which keys make the difference between two settings, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from iolab.base.plain_text import counted
from iolab.base.quantity import scale_for
from iolab.presentation.table.words import label, unit_of

if TYPE_CHECKING:
    from iolab.base.strict_json import JsonObject
    from iolab.domain.attribute.judgement import Effect
    from iolab.studies.run.attribute import AttributionAnswer

DOUBTFUL_FROM = 0.02
"""A key that matters with less probability is not named."""


def lines(found: AttributionAnswer) -> Iterator[str]:
    """The answer, each key's effect, and the keys that are in doubt."""
    attribution, keys = found.attribution, list(found.asked.keys)
    place = f"{label(found.metric)} of {found.workload}, {found.asked.good} to {found.asked.bad}"
    sure = f"({attribution.probability:.0%})"
    if not found.decided:
        yield f"{place}: undecided; most likely {' and '.join(found.named) or 'no key'} {sure}."
    elif found.named:
        makes = "make" if len(found.named) > 1 else "makes"
        yield f"{place}: {' and '.join(found.named)} {makes} the difference {sure}."
    else:
        yield f"{place}: no key makes a difference of more than {_least(found)} {sure}."
    shown = {place for effect in attribution.effects for place in effect.keys}
    for effect in attribution.effects:
        yield _effect(found, effect)
    for key, share in sorted(zip(keys, attribution.inclusion, strict=True), key=lambda one: -one[1]):
        if share >= DOUBTFUL_FROM and keys.index(key) not in shown:
            yield f"in doubt: {key} ({share:.0%})"
    if attribution.modes:
        yield (
            "The values may have modes that come by chance; an effect is then on how often each of them comes. See the "
            "trials with: iolab show RUN --as csv"
        )
    yield f"{counted(len(keys), 'key')}, {counted(attribution.trials, 'trial')} in {counted(found.rounds, 'round')}."


def as_dict(found: AttributionAnswer) -> JsonObject:
    """The finding as JSON: the schema stands in docs/attribution.md."""
    attribution, keys = found.attribution, list(found.asked.keys)
    return {
        "metric": found.metric,
        "workload": found.workload,
        "good": found.asked.good,
        "bad": found.asked.bad,
        "decided": found.decided,
        "same_within": found.same_within,
        "keys": found.named,
        "probability": attribution.probability,
        "effects": [
            {
                "keys": [keys[place] for place in one.keys],
                "size": one.size,
                "low": one.low,
                "high": one.high,
                "probability": one.probability,
            }
            for one in attribution.effects
        ],
        "inclusion": dict(zip(keys, attribution.inclusion, strict=True)),
        "resolution": attribution.resolution,
        "modes": attribution.modes,
        "trials": attribution.trials,
        "rounds": found.rounds,
    }


def _least(found: AttributionAnswer) -> str:
    """The difference that is excluded: what was asked for, or what the trials show at best."""
    resolution = found.attribution.resolution
    if resolution <= found.margin:
        return f"{found.same_within:.1%} (same_within)"
    if not found.level:
        return scale_for(unit_of(found.metric), [resolution]).with_unit(resolution)
    return f"{resolution / abs(found.level):.1%}, which is what these trials can show,"


def _effect(found: AttributionAnswer, effect: Effect) -> str:
    names = [list(found.asked.keys)[place] for place in effect.keys]
    scale = scale_for(unit_of(found.metric), [found.level])
    sizes = f"{scale.with_unit(effect.size)} [{scale.number(effect.low)}, {scale.number(effect.high)}]"
    if found.level:
        sizes += f", {effect.size / found.level:+.1%}"
    too_small = "; too small to count" if effect.is_within(found.margin) else ""
    if len(names) == 1:
        ours, theirs = found.asked.keys[names[0]]
        text = f"{names[0]}, {'not given' if ours is None else ours} -> {'not given' if theirs is None else theirs}"
        return f"  {text}: {sizes}; probability that it matters: {effect.probability:.0%}{too_small}"
    sure = f"probability of an interaction: {effect.probability:.0%}{too_small}"
    return f"  {' with '.join(names)}, their joint effect beyond the sum of both: {sizes}; {sure}"
