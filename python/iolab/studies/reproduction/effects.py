"""What a mail or a commit claims beside its tables, and where each effect can be asked here: read and checked."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from iolab.base.errors import unknown
from iolab.base.problem import Problems
from iolab.domain.cost.measure import MEASURES, ON_REQUEST
from iolab.studies.reproduction.options import AskOptions, EffectOptions, FileOptions, by_name

PLACES = {
    "count": "counts of a guest machine",
    "paced": "a guest's drive of known latency",
    "model": "a simulated machine",
    "host": "this machine",
}
"""Where an effect can be asked, in the order of tables."""
OTHERS = "others"
_DATE = re.compile(r"(?:19|20)\d\d(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
COUNTED = "kernel_instructions_per_op"
"""What is counted if an ask names no metric; `measure` is the same of a path."""
_OF_PATH = ("path", "base", "tip")
_OF_EXPERIMENT = ("experiment", "metric", "baseline", "setting")


@dataclass(frozen=True)
class Effects:
    """What is claimed, how each of it is asked, and the reasons for places where nothing is."""

    claimed: dict[str, EffectOptions]
    asks: dict[str, AskOptions]
    not_asked: dict[str, str]
    """By place of `PLACES`."""


def read_effects(top: FileOptions, statements: Collection[str], problems: Problems) -> Effects:
    """The effects and asks that are right; every mistake is noted.

    Args:
        statements: the names of the file's [claims.NAME].
    """
    if top.date is not None and not _DATE.fullmatch(top.date):
        problems.add(("date",), f'"{top.date}" given; expected a day, a month or a year such as "2022-11-02"')
    if top.commit is not None and not _COMMIT.fullmatch(top.commit):
        problems.add(("commit",), f'"{top.commit}" given; expected 7 to 40 hexadecimal digits')
    claimed = by_name(EffectOptions, top.effects, ("effects",), "an effect", problems)
    for name, effect in claimed.items():
        _check_effect(name, effect, problems)
    asks = by_name(AskOptions, top.asks, ("asks",), "an ask", problems)
    for name, ask in asks.items():
        only = next(iter(top.effects)) if len(top.effects) == 1 else ""
        counted = COUNTED if ask.by == "count" and ask.experiment is not None else None
        ask = asks[name] = ask.model_copy(update={"effect": ask.effect or only, "metric": ask.metric or counted})
        if not ask.effect:
            known = ", ".join(top.effects) or "[effects.NAME]"
            problems.add(("asks", name, "effect"), f"missing; expected one of {known}")
        elif ask.effect not in top.effects:
            problems.add(("asks", name, "effect"), f"{ask.effect}: {unknown('effect', ask.effect, top.effects)}")
        for key, what in _misfits(ask, statements):
            problems.add(("asks", name, *key), what)
    return Effects(claimed, asks, dict(_reasons(top, asks, problems)))


def _check_effect(name: str, effect: EffectOptions, problems: Problems) -> None:
    figures = [key for key in ("size", "before", "after") if getattr(effect, key) is not None]
    if figures and effect.unit is None:
        problems.add(("effects", name, "unit"), f'missing; {figures[0]} has one, such as "%"')
    if effect.unit is not None and not figures:
        problems.add(("effects", name, "unit"), "a unit without a figure; expected size, or before and after")
    if (effect.before is None) != (effect.after is None):
        problems.add(("effects", name), "expected before and after together, or none of them")
    elif effect.before is not None and effect.after is not None:
        moved = effect.after - effect.before
        if (effect.direction == "more" and moved <= 0) or (effect.direction == "less" and moved >= 0):
            what = f"{effect.direction} given; before is {effect.before:g} and after is {effect.after:g}"
            problems.add(("effects", name, "direction"), what)


def _misfits(ask: AskOptions, statements: Collection[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """What of an ask does not fit together: a key's path in it, and the mistake."""
    if ask.by == "model":
        if ask.statement is None:
            yield ("statement",), "missing; a model is asked a claim of this file, [claims.NAME]"
        elif ask.statement not in statements:
            yield ("statement",), f"{ask.statement}: {unknown('claim', ask.statement, statements)}"
        yield from _surplus(ask, (*_OF_PATH, *_OF_EXPERIMENT, "measure", "function", "workload"), "not by the model")
        return
    yield from _surplus(ask, ("statement",), "by the model only")
    if ask.by == "count" and ask.path is not None:
        yield from ((((key,), "missing; a path is counted under two kernels")) for key in _missing(ask, _OF_PATH))
        yield from _surplus(ask, (*_OF_EXPERIMENT, "workload"), "not with a path")
        if ask.function is not None and ask.measure is not None:
            yield ("measure",), "not with a function; leave one of the two out"
        measures = {name for name in MEASURES if name not in ON_REQUEST}
        if ask.measure is not None and ask.measure not in measures:
            yield ("measure",), f"{ask.measure}: {unknown('measure', ask.measure, sorted(measures))}"
        return
    yield from _surplus(ask, (*_OF_PATH, "measure", "function"), "by count only, with a path")
    beside = "an experiment, or a path" if ask.by == "count" else "an experiment"
    yield from (((key,), f"missing; expected {beside}") for key in _missing(ask, _OF_EXPERIMENT))
    if ask.setting is not None and ask.setting == ask.baseline:
        yield ("setting",), f"{ask.setting}: expected another setting than the baseline"


def _missing(ask: AskOptions, keys: Collection[str]) -> list[str]:
    return [key for key in keys if getattr(ask, key) is None]


def _surplus(ask: AskOptions, keys: Collection[str], why: str) -> Iterator[tuple[tuple[str, ...], str]]:
    return (((key,), f"{why}; leave it out") for key in keys if getattr(ask, key) is not None)


def _reasons(top: FileOptions, asks: Mapping[str, AskOptions], problems: Problems) -> Iterator[tuple[str, str]]:
    asked = {ask.by for ask in asks.values()}
    for place in top.not_asked:
        if place not in (*PLACES, OTHERS):
            problems.add(("not_asked", place), f"{place}: {unknown('place', place, (*PLACES, OTHERS))}")
        elif place in asked:
            problems.add(("not_asked", place), "a reason not to ask, and an ask; expected one of them")
    for place in PLACES if top.effects else ():
        reason = top.not_asked.get(place, top.not_asked.get(OTHERS))
        if place not in asked and reason is None:
            what = f"missing; each place has an ask or a reason: [asks.NAME] by = {place!r}, or {place} = "
            problems.add(("not_asked",), what + '"..." here')
        elif place not in asked:
            yield place, reason or ""
