"""Several boots of a configuration: the median answer, and how far boots agree, which no prediction can surpass.

Boots differ in what the question does not name: the offsets of random I/O, and the moment in which the load begins.
"""

import statistics
from collections.abc import Sequence

from judge.answer import Answer
from judge.configuration import Configuration
from judge.score import QUARTER, Scored, orders, scored


def median(answers: Sequence[Answer]) -> Answer:
    """Of each cell that most boots have."""
    values: dict[str, list[float]] = {}
    for one in answers:
        for name, value in one.cells.items():
            values.setdefault(name, []).append(value)
    refusal = next((one.refusal for one in answers if one.refusal), "")
    return Answer(
        {name: statistics.median(found) for name, found in values.items() if 2 * len(found) > len(answers)}, refusal
    )


def one_by_the_others(asked: Configuration, answers: Sequence[Answer]) -> tuple[list[Scored], list[bool]]:
    """Each boot's independent cells, and orders between its jobs, predicted by the median of the other boots."""
    cells, in_order = [], []
    for number, one in enumerate(answers):
        others = median([*answers[:number], *answers[number + 1 :]]).cells
        cells += scored(asked, one.cells, others)
        in_order += orders(one.cells, others)
    return cells, in_order


def agreed(answers: Sequence[Answer]) -> set[str]:
    """The cells whose every boot is within 25 % of their median: the question decides them."""
    middle = median(answers).cells
    return {
        name
        for name, value in middle.items()
        if all(
            name in one.cells and max(one.cells[name], value) <= QUARTER * min(one.cells[name], value)
            for one in answers
        )
    }
