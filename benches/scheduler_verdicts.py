"""The public demonstration: the verdicts of the sweep experiments/schedulers/sweep.toml as the tables of
docs/schedulers.md.

    sudo iolab sweep experiments/schedulers/sweep.toml --out DIR
    benches/scheduler_verdicts.py DIR
"""

import argparse
import sys
from pathlib import Path

from iolab.base.quantity import change, scale_for
from iolab.domain.summary import Summary, summarise
from iolab.files.store.read import read
from iolab.files.store.sweep_directory import Cell, SweepDirectory
from statistics_simulation import write

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "schedulers.md"
WORKLOADS = ("boot", "database", "compile", "vm-images", "streaming", "small-files", "swap", "containers")
SETTINGS = ("none", "mq-deadline", "kyber", "bfq")
CLASSES = {
    "host": "host",
    "guest": "guest:6.1.0-56-cloud",
    "disk": "model:one_disk",
    "ssd": "model:sata_ssd",
    "nvme": "model:nvme",
}
"""By table, the machine that it is of."""
REFUSED = {
    ("guest", "swap"): "a guest sorts no memory",
}
"""In short why a cell has no run; the sweep's own file has the long line."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the tables of docs/schedulers.md.")
    parser.add_argument("sweep", type=Path, metavar="DIR")
    sweep = SweepDirectory.open(parser.parse_args().sweep)
    write({name: table(name, sweep) for name in CLASSES}, DOCUMENT)
    return 0


def table(name: str, sweep: SweepDirectory) -> list[list[str]]:
    """A class's table: a row for each metric of each workload, a cell for each scheduler."""
    rows = [["workload", "metric", *SETTINGS]]
    of_machine = {cell.experiment: cell for cell in sweep.cells if cell.machine == CLASSES[name]}
    for workload in WORKLOADS:
        cell = of_machine.get(workload)
        if cell is None or cell.impossible is not None:
            rows.append([workload, f"not measured: {REFUSED[name, workload]}", *[""] * len(SETTINGS)])
        else:
            rows += verdicts(cell, summarise(read(sweep.path / cell.run)))
    return rows


def verdicts(of: Cell, summary: Summary) -> list[list[str]]:
    rows = []
    for row in summary.rows:
        scale = scale_for(row.unit, [cell.typical for cell in row.cells.values()])
        cells = [of.experiment, f"{row.metric}{f', {scale.suffix}' if scale.suffix else ''}"]
        for setting in SETTINGS:
            cell = row.cells.get(setting)
            if cell is None or cell.typical is None:
                cells.append("-")
            elif setting not in row.comparisons:
                cells.append(scale.number(cell.typical))
            else:
                judgement = row.comparisons[setting].judgement
                ratio = "" if judgement.ratio is None else f", {change(judgement.ratio)}"
                strong = judgement.verdict if judgement.verdict in ("same", "undecided") else f"**{judgement.verdict}**"
                cells.append(f"{scale.number(cell.typical)} {strong}{ratio}")
        rows.append(cells)
    return rows


if __name__ == "__main__":
    sys.exit(main())
