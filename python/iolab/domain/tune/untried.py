"""Points with values that no point has yet: what is left to try while nothing shows that any key acts."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from iolab.domain.tune.space import Parameter, Point, Space

VALUES_MAX = 15
"""So many values of a range are tried, spread over it evenly: near values do alike."""
POINTS_LEAST = 15
"""So many points are tried at least, if there are so many: values may act together only."""
DRAWS = 200
"""So many points are drawn for each that is chosen."""

KeyPlace = tuple[str, int]


def untried(space: Space, points: Sequence[Point], count: int, seed: int) -> list[Point]:
    """So many new points at most, each drawn as the one with the most values that no point has. None if the points have
    every value and are `POINTS_LEAST`, or `DRAWS` points in a row have nothing new."""
    draw = random.Random(seed)
    known = [dict(point) for point in points]
    wanted = {parameter.key: _spread(parameter) for parameter in space.parameters}
    left = {(key, place) for key, places in wanted.items() for place in places}
    left -= {one for point in known for one in point.items()}
    found: list[Point] = []
    while len(found) < count and (left or len(known) < POINTS_LEAST):
        new = [point for point in _drawn(space, wanted, left, draw) if point not in known]
        best = max(new, key=lambda point: len(left & point.items()), default=None)
        if best is None or (left and not left & best.items() and len(known) >= POINTS_LEAST):
            break
        found.append(best)
        known.append(best)
        left -= best.items()
    return found


def _drawn(
    space: Space, wanted: dict[str, list[int]], left: set[KeyPlace], draw: random.Random
) -> Iterator[dict[str, int]]:
    """Points that the requirements allow. Every second one takes values that are left if a key has any, the others
    any value: a key may be in force only beside a value that was tried."""
    for number in range(DRAWS):
        point: dict[str, int] = {}
        for parameter in space.parameters:
            if parameter.in_force(point):
                places = wanted[parameter.key]
                fresh = [place for place in places if (parameter.key, place) in left] if number % 2 else []
                point[parameter.key] = draw.choice(fresh or places)
        if space.allows(point):
            yield point


def _spread(parameter: Parameter) -> list[int]:
    """The places of a key's values that are tried: all, of a long range some, its ends among them."""
    last = len(parameter.values) - 1
    if not parameter.ordered or last < VALUES_MAX:
        return list(range(last + 1))
    return sorted({round(step * last / (VALUES_MAX - 1)) for step in range(VALUES_MAX)})
