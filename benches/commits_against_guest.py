"""Commits of 1 to 64 writers on ext4 and XFS: `known-flush` and `known-flush-xfs` beside a kernel in a guest.

Debian's kernel boots in an emulated machine of one CPU whose time is exact, with a null_blk whose flush takes 200 us as
each command does, and the simulated machines have a drive of the same rule ([the table and what
disagrees](../commits.md#the-model-beside-a-guest)). *Ours* is the share of cells within 25 %, of a preallocated log and
of one that grows, and *peer* that of arithmetic: as many commits as if each waited for its commands alone. The bench
prints each cell.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from guest_counts import chosen_kernel
from iolab.base import data
from iolab.domain.metric import ALL
from iolab.files.store import read
from iolab.studies.reproduction.run_values import RunValues
from model_against_guest import share
from model_against_kernel import run
from result import Result

EXPERIMENT = "guest-commits"
MACHINES = {"ext4": "known-flush", "xfs": "known-flush-xfs"}
METRICS = {
    "commits a second": "commit.iops",
    "medians": "commit.latency_ns_p50",
    "99th percentiles": "commit.latency_ns_p99",
}
WRITERS = (1, 2, 4, 8, 16, 32, 64)
COMMAND_NS = 200_000
COMMANDS = {("ext4", "preallocated"): 2, ("ext4", "grown"): 4, ("xfs", "preallocated"): 2, ("xfs", "grown"): 3}
"""Of the drive for a commit: data and a flush; data, log, flush and record; data, flush and record."""
QUARTER = 1.25
COUNTS_ONLY = True
"""Times are those of the machines asked: a debug build has the same."""


@dataclass(frozen=True)
class Cell:
    """A figure of the guest beside the model's and arithmetic's."""

    metric: str
    words: str
    guest: float
    model: float
    null: float

    def off(self, predicted: float) -> float:
        return max(predicted / self.guest, self.guest / predicted)


def measure(quick: bool) -> list[Result]:
    chosen_kernel()
    cells = [cell for filesystem in MACHINES for cell in cells_of(filesystem, WRITERS[:2] if quick else WRITERS)]
    for cell in cells:
        print(f"{cell.words:40} {cell.metric:18} {cell.guest:12.0f} {cell.model:12.0f} {cell.off(cell.model):6.2f}x")
    return [result_of(metric, [cell for cell in cells if cell.metric == metric]) for metric in METRICS]


def cells_of(filesystem: str, writers: Sequence[int]) -> list[Cell]:
    text = data.experiments()[EXPERIMENT].read_text().replace(str(list(WRITERS)), str(list(writers)))
    guest = asked(text.replace('"ext4"', f'"{filesystem}"'), writers)
    load = text[text.index("[workloads.log]") :]
    model = asked(f'machine = "model:{MACHINES[filesystem]}"\nrounds = 1\nseed = 1\n{load}', writers)
    return [
        Cell(metric, f"{filesystem}, {setting}, {count} writers", value, model[place], null_of(filesystem, place))
        for place, value in guest.items()
        for setting, count, metric in [place]
    ]


Place = tuple[str, int, str]


def asked(text: str, writers: Sequence[int]) -> dict[Place, float]:
    """By setting, number of writers and metric."""
    with tempfile.TemporaryDirectory(prefix="iolab-bench-") as directory:
        out = Path(directory) / "run"
        run(text, out, rounds=None)
        values = RunValues(read(out))
        found = {
            (setting, count, metric): values.mean((f"log[writers={count}]", setting), key, ALL).value
            for setting in ("preallocated", "grown")
            for count in writers
            for metric, key in METRICS.items()
        }
    return {place: value for place, value in found.items() if value is not None}


def null_of(filesystem: str, place: Place) -> float:
    setting, count, metric = place
    takes_ns = COMMANDS[filesystem, setting] * COMMAND_NS
    return 1e9 * count / takes_ns if METRICS[metric] == "commit.iops" else takes_ns


def result_of(metric: str, cells: Sequence[Cell]) -> Result:
    ours = sum(cell.off(cell.model) <= QUARTER for cell in cells) / len(cells)
    null = sum(cell.off(cell.null) <= QUARTER for cell in cells) / len(cells)
    found = share(f"{metric}: {len(cells)} cells within 25 %", ours, null, [])
    return Result(**{**vars(found), "peer_name": "the drive's commands alone"})
