"""Error rates of the verdict, simulated: *faster* or *slower* on identical settings, and 95 %
intervals that miss, under eight kinds of noise with 5, 10 and 30 rounds. Each figure is the worst
cell. [Statistics](statistics.md) has the rest; this bench rewrites its tables.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from iolab.domain.verdict.interval import interval
from iolab.domain.verdict.judgement import control_false_discovery, judge, q_values
from iolab.domain.verdict.looks import FIRST_LOOK, nominal_level
from iolab.domain.verdict.unpaired_samples import p_value
from numpy.typing import NDArray
from result import Result, bounded
from scipy.special import ndtr
from statistics_methods import CANDIDATES, COMPARED, Rejects
from statistics_noise import (
    HARSHER,
    INDEPENDENT,
    REQUIRED,
    Draw,
    autoregressive,
    drift,
    gaussian,
    independent,
    outliers,
    two_modes,
)

Array = NDArray[np.float64]
Table = list[list[str]]

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "reference" / "statistics.md"
ROUNDS = (5, 10, 30)
UNPAIRED_ROUNDS = (2, 3, 5, 10, 30)
MANY_ROUNDS = (3, 4, 5, 6, 8)
MANY = 40
"""Independent metrics of a comparison."""
ALPHA = 0.05
MARGIN = 0.02
CHUNK = 4000
SEQUENTIAL_SHARE = 2
"""One of so many experiments is spent on each cell of the sequential table."""
MODELS = list((REQUIRED | HARSHER).values())
"""A model's place seeds its stream, so that tables don't share their luck."""
STANDARD_ERRORS = 3
"""How far from 5 % chance may put a cell."""


def measure(quick: bool) -> list[Result]:
    experiments = 400 if quick else 20_000
    tables = study(experiments)
    if not quick:
        write(tables, DOCUMENT)
    slack = 100 * STANDARD_ERRORS * float(np.sqrt(ALPHA * (1 - ALPHA) / experiments))
    cells = np.array([[float(cell) for cell in row[1:]] for row in tables["identical"][1:]])
    false, uncovered = cells[:, : len(ROUNDS)].max(), 100 - cells[:, len(ROUNDS) :].min()
    together = max(float(row[column]) for row in tables["sequential"][1 : len(REQUIRED) + 1] for column in (1, 4))
    slack_together = slack * float(np.sqrt(SEQUENTIAL_SHARE))
    return [
        bounded("false faster or slower, worst cell", "%", [float(false)], limit=round(5 + slack, 1)),
        bounded("intervals that miss, worst cell", "%", [float(uncovered)], limit=7),
        bounded(
            "--until-decided, false over the whole run",
            "%",
            [together],
            limit=round(5 + slack_together, 1),
        ),
    ]


def study(experiments: int) -> dict[str, Table]:
    """The document's tables by name; `experiments` per cell of the first, fewer where an experiment costs more."""
    return {
        "identical": identical(REQUIRED, experiments),
        "harsher": identical(HARSHER, experiments),
        "unpaired": unpaired(max(100, experiments // 5)),
        "unpaired_many": unpaired_many(max(10, experiments // 100)),
        "power": power(experiments // 4),
        "candidates": candidates(experiments // 2),
        "sequential": sequential(experiments // SEQUENTIAL_SHARE),
        "economy": economy(experiments // 10),
        "several": several(max(100, experiments // 10)),
        "discovery": discovery(max(10, experiments // 100)),
        "rounds": rounds_to_decide(experiments // 20),
    }


def identical(models: dict[str, Draw], experiments: int) -> Table:
    """False faster or slower, and coverage of the 95 % interval, in percent."""
    table = [["identical settings", *(f"{n} rounds: false" for n in ROUNDS), *(f"{n}: coverage" for n in ROUNDS)]]
    for name, draw in models.items():
        results = [false_and_coverage(draw, experiments, n) for n in ROUNDS]
        table.append([name, *(percent(false) for false, _ in results), *(percent(cover, 1) for _, cover in results)])
    return table


def false_and_coverage(draw: Draw, experiments: int, rounds: int) -> tuple[float, float]:
    claimed, covered = [], []
    for x, y in chunks(draw, experiments, rounds):
        low, high = interval(x, y, ALPHA)
        claimed.append(differs(low, high))
        covered.append((low <= 1) & (high >= 1))
    return float(np.concatenate(claimed).mean()), float(np.concatenate(covered).mean())


def unpaired(experiments: int) -> Table:
    """The same of rounds that are not interleaved, and nothing drifts: false faster or slower, in percent."""
    table = [["identical settings", *(f"{n} of each: false" for n in UNPAIRED_ROUNDS)]]
    for name in INDEPENDENT:
        row = [name]
        for place, n in enumerate(UNPAIRED_ROUNDS):
            x, y = REQUIRED[name](np.random.default_rng([7, place]), experiments, n)
            false = [p_value(one, other) <= ALPHA for one, other in zip(x, y, strict=True)]
            row.append(percent(float(np.mean(false))))
        table.append(row)
    return table


def unpaired_many(experiments: int) -> Table:
    """Comparisons of `MANY` metrics that are not interleaved: those with any false faster or slower, in percent."""
    table = [[f"{MANY} metrics, identical settings", *(f"{n} of each: any false" for n in MANY_ROUNDS)]]
    skewed = independent(lambda z: 10 - 3 * np.log(ndtr(z)))
    for name, draw in {**{name: REQUIRED[name] for name in INDEPENDENT}, "exponential above 10": skewed}.items():
        row = [name]
        for place, n in enumerate(MANY_ROUNDS):
            x, y = draw(np.random.default_rng([8, place]), experiments * MANY, n)
            found = np.array([p_value(one, other) for one, other in zip(x, y, strict=True)]).reshape(-1, MANY)
            row.append(percent(float(np.mean([min(q_values(list(one))) <= ALPHA for one in found])), 1))
        table.append(row)
    return table


def power(experiments: int) -> Table:
    """Percent of experiments in which a true shift is seen, beside the usual methods on the same data."""
    models = {
        "white noise, 3 %": independent(gaussian(0.03)),
        "AR(1), 0.8, 5 %": autoregressive(0.8, gaussian(0.05)),
        "drift +30 %, noise 3 %": drift(0.3, 0.03),
        "1 % outliers x 10, noise 3 %": outliers(0.01, 10, 0.03),
        "two modes 25 % apart, noise 3 %": two_modes(0.25, 0.5, 0.03),
    }
    cases = [(n, shift) for n in ROUNDS for shift in (0.02, 0.05, 0.10)]
    table = [["noise", "method", *(f"{n} rounds, {shift:.0%}" for n, shift in cases)]]
    for name, draw in models.items():
        for method, rejects in COMPARED.items():
            shares = [share(rejects, draw, experiments, n, shift) for n, shift in cases]
            table.append([name, method, *(percent(one, 0) for one in shares)])
    return table


def candidates(experiments: int) -> Table:
    """What else was tried: the worst over all models, and the power against 5 % with 10 rounds."""
    models = REQUIRED | HARSHER
    head = [f"{n}: {what}" for n in ROUNDS for what in ("false", "coverage")]
    table = [["method", *head, "power, white 3 %", "power, outliers", "power, two modes"]]
    seen_in = (independent(gaussian(0.03)), outliers(0.01, 10, 0.03), two_modes(0.25, 0.5, 0.03))
    for method, rejects in CANDIDATES.items():
        cells = []
        for n in ROUNDS:
            shares = [share(rejects, draw, experiments, n) for draw in models.values()]
            cells += [percent(max(shares)), f"{100 - 100 * max(shares):.1f}-{100 - 100 * min(shares):.1f}"]
        powers = [percent(share(rejects, draw, experiments, 10, shift=0.05)) for draw in seen_in]
        table.append([method, *cells, *powers])
    return table


def share(rejects: Rejects, draw: Draw, experiments: int, rounds: int, shift: float = 0.0) -> float:
    each = [rejects(x, y * (1 + shift)) for x, y in chunks(draw, experiments, rounds)]
    return float(np.concatenate(each).mean())


def sequential(experiments: int) -> Table:
    """`--until-decided` on identical settings, a look after every round: errors over the whole path."""
    most = (10, 30)
    head = [f"at most {n} rounds: {what}" for n in most for what in ("false", "coverage", "mean rounds")]
    table = [["identical settings", *head]]
    for name, draw in (REQUIRED | HARSHER).items():
        cells = []
        for n in most:
            false, _, covered, rounds = stopped(draw, experiments, n)
            cells += [percent(false), percent(covered, 1), f"{rounds:.1f}"]
        table.append([name, *cells])
    return table


def economy(experiments: int) -> Table:
    """How many rounds `--until-decided` takes with white noise, and how often it decides."""
    table = [["noise", "shift", "mean rounds of at most 30", "decided %", "coverage %"]]
    for spread, shift in ((0.01, 0.0), (0.01, 0.03), (0.03, 0.0), (0.03, 0.02), (0.03, 0.05), (0.03, 0.1), (0.1, 0.2)):
        _, decided, covered, rounds = stopped(independent(gaussian(spread)), experiments, 30, shift=shift)
        table.append([f"{spread:.0%}", f"{shift:.0%}", f"{rounds:.1f}", percent(decided, 0), percent(covered, 1)])
    return table


def stopped(
    draw: Draw, experiments: int, most: int, *, shift: float = 0.0, comparisons: int = 1
) -> tuple[float, float, float, float]:
    """Shares of experiments that stop at faster or slower, that are decided, whose interval at the stop covers the
    truth; and the mean number of rounds at the stop."""
    false = decided = covered = rounds = 0
    for x, y in chunks(draw, experiments, most):
        y = y * (1 + shift)
        for n in range(FIRST_LOOK, most + 1):
            low, high = interval(x[:, :n], y[:, :n], nominal_level(n, most, ALPHA / comparisons))
            claims, same = differs(low, high), within_margin(low, high)
            ends = claims | same | (n == most)
            false += int(claims.sum())
            decided += int((claims | same).sum())
            covered += int((ends & (low <= 1 + shift) & (high >= 1 + shift)).sum())
            rounds += n * int(ends.sum())
            x, y = x[~ends], y[~ends]
            if not len(x):
                break
    return false / experiments, decided / experiments, covered / experiments, rounds / experiments


def several(experiments: int) -> Table:
    """Runs of twelve comparisons, identical settings, correlation 0.5: a run errs when any of them does."""
    table = [["twelve metrics, identical settings", "false in any, %"]]
    rng = np.random.default_rng(12)
    most, metrics = 20, 12
    for name, spread in (("white noise, 5 %", 0.05), ("white noise, 1 %", 0.01)):
        wrong = np.zeros(experiments, dtype=bool)
        shared = rng.standard_normal((2, experiments, 1, most))
        own = rng.standard_normal((2, experiments, metrics, most))
        x, y = np.exp(spread * (np.sqrt(0.5) * shared + np.sqrt(0.5) * own))
        for n in range(FIRST_LOOK, most + 1):
            low, high = interval(x[..., :n], y[..., :n], nominal_level(n, most, ALPHA / metrics))
            wrong |= differs(low, high).any(-1)
        table.append([f"{name}, at most {most} rounds", percent(float(wrong.mean()))])
    return table


def discovery(experiments: int) -> Table:
    """The false-discovery rate over 100 metrics, correlation 0.5, of which ten truly differ by 10 %."""
    table = [["rounds", "false among the claimed, %", "true ones found, %"]]
    rng = np.random.default_rng(100)
    metrics, real = 100, 10
    for n in ROUNDS:
        false_share, found = [], []
        for _ in range(experiments):
            shared, own = rng.standard_normal((2, 1, n)), rng.standard_normal((2, metrics, n))
            x, y = 100 * np.exp(0.03 * (np.sqrt(0.5) * shared + np.sqrt(0.5) * own))
            y[:real] *= 1.1
            judged = control_false_discovery(
                [judge(list(a), list(b), nature="rate") for a, b in zip(x, y, strict=True)]
            )
            claimed = np.array([one.verdict in ("faster", "slower") for one in judged])
            false_share.append(claimed[real:].sum() / max(1, claimed.sum()))
            found.append(claimed[:real].mean())
        table.append([str(n), percent(float(np.mean(false_share))), percent(float(np.mean(found)), 0)])
    return table


def rounds_to_decide(experiments: int) -> Table:
    """The share of undecided verdicts that are decided after the number of further rounds that they asked for (at most
    200)."""
    table = [["noise 3 %, shift", "rounds", "undecided %", "median more rounds", "then decided %"]]
    rng = np.random.default_rng(200)
    for shift in (0.0, 0.02, 0.05):
        for n in (5, 10):
            asked, settled = [], []
            for _ in range(experiments):
                x, y = 100 * np.exp(0.03 * rng.standard_normal((2, n + 200)))
                y *= 1 + shift
                first = judge(list(x[:n]), list(y[:n]), nature="rate")
                if first.rounds_to_decide and first.rounds_to_decide <= 200:
                    now = n + first.rounds_to_decide
                    asked.append(first.rounds_to_decide)
                    settled.append(judge(list(x[:now]), list(y[:now]), nature="rate").verdict != "undecided")
            row = [percent(len(asked) / experiments, 0), f"{np.median(asked):.0f}", percent(float(np.mean(settled)), 0)]
            table.append([f"{shift:.0%}", str(n), *row])
    return table


def chunks(draw: Draw, experiments: int, rounds: int) -> Iterator[tuple[Array, Array]]:
    rng = np.random.default_rng([rounds, MODELS.index(draw) if draw in MODELS else len(MODELS)])
    for first in range(0, experiments, CHUNK):
        yield draw(rng, min(CHUNK, experiments - first), rounds)


def within_margin(low: Array, high: Array) -> NDArray[np.bool_]:
    return (low >= 1 / (1 + MARGIN)) & (high <= 1 + MARGIN)


def differs(low: Array, high: Array) -> NDArray[np.bool_]:
    return ((low > 1) | (high < 1)) & ~within_margin(low, high)


def percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f}"


def markdown(table: Table) -> str:
    lines = [f"| {' | '.join(row)} |" for row in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]])


def write(tables: dict[str, Table], document: Path) -> None:
    """Replaces what stands between `<!-- name -->` and `<!-- end -->`."""
    text = document.read_text()
    for name, table in tables.items():
        before, marker, rest = text.partition(f"<!-- {name} -->\n")
        if not marker:
            raise ValueError(f"{document}: no place for the table {name}, expected <!-- {name} --> ... <!-- end -->")
        text = before + marker + markdown(table) + "\n" + rest[rest.index("<!-- end -->") :]
    document.write_text(text)
