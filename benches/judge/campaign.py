"""A campaign: the configurations of a seed, asked of guests and of the model, and what came of it.

    python benches/judge/campaign.py ask SEED COUNT ANSWERS [--boots N]   guests; stopped and continued at any time
    python benches/judge/campaign.py score ANSWERS [--shrink N]  the model, now

ANSWERS is a directory with a file for each configuration.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from judge import answer, boots, null_predictor, shrink
from judge.answer import Answer, Answers
from judge.configuration import Configuration
from judge.draw import configuration
from judge.score import DOUBLE, Score, Scored, orders, orders_of_two, score, scored


@dataclass(frozen=True)
class Pair:
    """A configuration with both answers: the medians of its boots, if there are several."""

    asked: Configuration
    guest: Answer
    model: Answer
    boots: tuple[Answer, ...] = ()
    """The guests'."""


def ask(seed: int, count: int, boots_each: int, answers: Answers, workers: int) -> None:
    """Asks guests what is not stored of a seed's."""
    drawn = [configuration(seed, number) for number in range(count)]
    ask_all([replace(one, boot=boot) for boot in range(1, boots_each + 1) for one in drawn], answers, workers)


def ask_all(questions: Sequence[Configuration], answers: Answers, workers: int) -> None:
    """Asks guests what is not stored."""

    def one(number: int) -> None:
        asked = questions[number]
        new = answers.stored(asked) is None
        found = answers.guest(asked)
        if new:
            print(f"{number}: {asked.words}{': ' + found.refusal if found.refusal else ''}", flush=True)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(one, range(len(questions))))


def paired(answers: Answers, workers: int) -> list[Pair]:
    """All that are stored, with what the model says now; without those that the guest refused."""
    known = [(asked, guest) for asked, guest in answers.all() if not guest.refusal]
    with ThreadPoolExecutor(workers) as pool:
        models = pool.map(answer.of_model, (asked for asked, _ in known))
        both = list(zip(known, models, strict=True))
    questions: dict[str, list[tuple[tuple[Configuration, Answer], Answer]]] = {}
    for one in both:
        questions.setdefault(replace(one[0][0], boot=1).key, []).append(one)
    return [_of_boots(found) for found in questions.values()]


def _of_boots(found: Sequence[tuple[tuple[Configuration, Answer], Answer]]) -> Pair:
    (asked, _), _ = found[0]
    guests = tuple(guest for (_, guest), _ in found)
    return Pair(replace(asked, boot=1), boots.median(guests), boots.median([model for _, model in found]), guests)


def scores(pairs: Sequence[Pair]) -> tuple[Score, Score]:
    """Of the model, and of the null predictor."""
    null = [Pair(one.asked, one.guest, Answer(null_predictor.predicted(one.asked))) for one in pairs]
    return score(cells_of(pairs), orders_of(pairs)), score(cells_of(null), orders_of(null))


def cells_of(pairs: Sequence[Pair]) -> list[Scored]:
    return [cell for one in pairs for cell in scored(one.asked, one.guest.cells, one.model.cells)]


def orders_of(pairs: Sequence[Pair]) -> list[bool]:
    """Between jobs of a configuration, and between two queues of one load."""
    found = [right for one in pairs for right in orders(one.guest.cells, one.model.cells)]
    loads: dict[str, Pair] = {}
    for one in pairs:
        other = loads.setdefault(_load(one.asked), one)
        if other is not one:
            found += orders_of_two((other.guest.cells, one.guest.cells), (other.model.cells, one.model.cells))
    return found


def _load(asked: Configuration) -> str:
    """The configuration without its queue."""
    return str({**asked.as_json(), "scheduler": "", "tunables": {}, "nr_requests": 0})


def misses(pairs: Sequence[Pair]) -> list[Scored]:
    """Cells that are more than 2x off, the worst first."""
    return sorted((one for one in cells_of(pairs) if one.factor > DOUBLE), key=lambda one: -one.factor)


def reduced(miss: Scored, answers: Answers) -> Configuration:
    """The smallest configuration found in which that cell's kind of figure is more than 2x off."""

    def shows(asked: Configuration) -> bool:
        guest = answers.guest(asked)
        if guest.refusal:
            return False
        model = answer.of_model(asked)
        return any(one.factor > DOUBLE for one in scored(asked, guest.cells, model.cells))

    return shrink.smallest(miss.asked, shows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 1)))
    actions = parser.add_subparsers(dest="action", required=True)
    asking = actions.add_parser("ask")
    asking.add_argument("seed", type=int)
    asking.add_argument("count", type=int)
    asking.add_argument("answers", type=Path)
    asking.add_argument("--boots", type=int, default=1, help="of each, which differ in what no question names")
    scoring = actions.add_parser("score")
    scoring.add_argument("answers", type=Path)
    scoring.add_argument("--shrink", type=int, default=0, help="misses to reduce")
    scoring.add_argument("--only", default="", help="configurations whose line contains this")
    given = parser.parse_args()
    answers = Answers(given.answers)
    if given.action == "ask":
        ask(given.seed, given.count, given.boots, answers, given.workers)
        return
    pairs = [one for one in paired(answers, given.workers) if given.only in one.asked.words]
    report(pairs)
    seen: set[str] = set()
    for miss in misses(pairs):
        if len(seen) < given.shrink and miss.asked.key not in seen:
            seen.add(miss.asked.key)
            small = reduced(miss, Answers(given.answers / "reduced"))
            print(f"reduced: {miss.asked.words}\n     to: {small.words}", flush=True)


def report(pairs: Sequence[Pair]) -> None:
    ours, null = scores(pairs)
    for one in pairs:
        if one.model.refusal:
            print(f"refused: {one.asked.words}: {one.model.refusal}")
    for miss in misses(pairs):
        print(f"{miss.factor:8.2f}x {miss.name:24} {miss.real:12.5g} {miss.predicted or 0:12.5g}  {miss.asked.words}")
    print(f"{len(pairs)} configurations\nmodel: {ours.words}\nnull:  {null.words}")
    if any(len(one.boots) > 1 for one in pairs):
        report_boots(pairs)


def report_boots(pairs: Sequence[Pair]) -> None:
    """How far the question decides its answer: a boot against the others, and the cells on which all agree."""
    another = [boots.one_by_the_others(one.asked, one.boots) for one in pairs]
    of_another = score([cell for cells, _ in another for cell in cells], [one for _, found in another for one in found])
    agreed = {one.asked.key: boots.agreed(one.boots) for one in pairs}
    decided = [cell for cell in cells_of(pairs) if cell.name in agreed[cell.asked.key]]
    print(f"another boot of the guest: {of_another.words}")
    print(f"model, cells on which the boots agree within 25 %: {score(decided, []).of_cells}")


if __name__ == "__main__":
    main()
