"""The simulated machine beside a real kernel in a guest machine, in front of a drive of known latency.

Debian's kernel boots in an emulated machine of one CPU whose time is exact, with a null_blk that serves four commands
at once and takes 2 ms for each. Its schedulers run the load of an experiment there, and the simulated machine runs the
same experiment with a drive of the same rule. Nothing is fitted. *Ours* is the typical error of the model's figures of
a table, as a factor, and *peer* the typical error of the best null predictor. The figures are in
`published/known-latency*.toml`, whose rows this bench writes; `iolab reproduce known-latency known-latency-shares`
shows them, and [its page](../case-studies/guest-schedulers.md) explains what disagrees.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from guest_counts import chosen_kernel
from iolab.base import data
from model_against_kernel import ROOT, compared, rows_of, run, shorter, with_rows
from result import Result

GUESTS = {"known-latency": "guest-schedulers", "known-latency-shares": "guest-shares"}
"""By published file: the experiment that asks the kernel."""


def measure(quick: bool) -> list[Result]:
    chosen_kernel()
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
