"""The simulated machine beside a real kernel in a guest machine, in front of a drive of known latency.

Debian's kernel boots in an emulated machine of one CPU whose time is exact, with a null_blk that serves four commands
at once and takes 2 ms for each. Its schedulers run the load of an experiment there, and the simulated machine runs the
same experiment with a drive of the same rule. Nothing is fitted. *Ours* is the typical error of the model's figures of
a table, as a factor, and *peer* the typical error of the best null predictor. The figures are in
`published/known-latency*.toml`, whose rows this bench writes; `iolab reproduce known-latency known-latency-shares`
shows them, and [its page](../case-studies/guest-schedulers.md) explains what disagrees.

Eight loads of a group at its limit (`io.max`), each beside a reader without limits, are asked on three drives.
Arithmetic knows the limits, but not that they are kept in slices. As many are asked of groups with a promised latency
(`io.latency`) and of groups whose priority is changed (`io.prio.class`), for which kernels are built from Debian's
source, and of groups that share by cost (`io.cost`) or by BFQ's weights. Arithmetic holds whoever promised nothing to
one operation at a time, shares by weights, and knows no priorities.

Then a campaign asks both machines questions that nobody chose ([how](../trust-a-model.md#random-questions)): kernel,
scheduler, tunables, jobs, filesystem and drive are drawn from a seed. *Ours* is the model's share of independent cells,
or of orders, *peer* that of arithmetic that knows no scheduler. Guests' answers stay in the cache, so that a campaign
that was stopped is continued. `--seed` and `--count` draw others.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from guest_counts import chosen_kernel
from iolab.base import data
from judge import campaign, costed, limited, prioritised, protected, weighted
from judge.answer import Answers
from judge.configuration import Configuration
from judge.draw import KERNELS, configuration
from judge.score import Score
from model_against_kernel import ROOT, compared, rows_of, run, shorter, with_rows
from result import Result

GUESTS = {"known-latency": "guest-schedulers", "known-latency-shares": "guest-shares"}
"""By published file: the experiment that asks the kernel."""


SEED, COUNT = 10_787_776, 200
"""Drawn from /dev/urandom when the generator was final, on 27 November 2026. Its first 24
answers have been compared; a model that is mended by them needs another seed."""
QUICK_COUNT = 2


def measure(quick: bool, seed: int = SEED, count: int = COUNT) -> list[Result]:
    chosen_kernel()
    results = known_latency(quick)
    for name, of_what, questions in OF_GROUPS:
        results += of_groups(name, of_what, questions()[: QUICK_COUNT if quick else None])
    return results + drawn(seed, QUICK_COUNT if quick else count)


OF_GROUPS = (
    ("judge-limits", f"groups at their limits under {limited.KERNEL}", limited.configurations),
    ("judge-latencies", f"groups with a promised latency under {protected.KERNEL}", protected.configurations),
    ("judge-costs", f"groups that share by cost under {costed.KERNEL}", costed.configurations),
    ("judge-weights", f"groups that share by BFQ's weights under {weighted.KERNEL}", weighted.configurations),
    ("judge-priorities", f"groups of changed priority under {prioritised.KERNEL}", prioritised.configurations),
)
"""Controllers of groups: where guests' answers are kept, what is asked, and the questions."""


def of_groups(name: str, of_what: str, questions: Sequence[Configuration]) -> list[Result]:
    found = asked_of_both(name, questions)
    ours, null = campaign.scores(found)
    of_all = f"{len(found)} loads of {of_what}"
    return shares_of_cells(of_all, ours, null, ["benches/run.py model_against_guest"])


def drawn(seed: int, count: int) -> list[Result]:
    """The campaign of a seed, of so many configurations."""
    pairs = asked_of_both(f"judge-{seed}", [configuration(seed, number) for number in range(count)])
    ours, null = campaign.scores(pairs)
    name = f"{len(pairs)} configurations of seed {seed} under {' and '.join(KERNELS)}"
    commands = [f"benches/run.py model_against_guest --seed {seed} --count {count}"]
    return [
        *shares_of_cells(name, ours, null, commands),
        share(f"{name}: {ours.orders} orders that are right", ours.orders_right, null.orders_right, commands),
    ]


def asked_of_both(name: str, questions: Sequence[Configuration]) -> list[campaign.Pair]:
    """Guests' answers stay in the cache under that name."""
    from iolab.machines.guest import cache

    answers = Answers(cache.directory("bench") / name)
    campaign.ask_all(questions, answers, WORKERS)
    pairs = campaign.paired(answers, WORKERS)
    campaign.report(pairs)
    return pairs


def shares_of_cells(name: str, ours: Score, null: Score, commands: list[str]) -> list[Result]:
    return [
        share(
            f"{name}: {ours.cells} independent cells within 25 %", ours.within_quarter, null.within_quarter, commands
        ),
        share(f"{name}: the same within 2x", ours.within_double, null.within_double, commands),
    ]


WORKERS = 2
"""Guests at once."""


def share(name: str, ours: float, null: float, commands: list[str]) -> Result:
    """A share of the model beside the null predictor's, both in percent."""
    return Result(
        name=name,
        unit="%",
        ours=100 * ours,
        peer=100 * null,
        peer_name="the drive shared alike",
        ratio=ours / null if null else None,
        ratio_min=None,
        ratio_max=None,
        target="",
        met=None,
        commands=commands,
    )


def known_latency(quick: bool) -> list[Result]:
    """The two experiments that were chosen by hand."""
    results = []
    for name, guest in GUESTS.items():
        with tempfile.TemporaryDirectory(prefix="iolab-bench-") as directory:
            place = Path(directory)
            text = data.experiments()[guest].read_text()
            run(shorter(text) if quick else text, place / "kernel", rounds=None)
            measured = rows_of(name, place / "kernel", quick=quick)
            results += compared(name, measured, place, quick=quick)
        if not quick:
            path = ROOT / "published" / f"{name}.toml"
            path.write_text(with_rows(path.read_text(), measured))
            print(f"   wrote {path.name}", file=sys.stderr)
    return results
