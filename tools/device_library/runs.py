"""The measured figures of each model: runs of the io.cost benchmark, one or several a model.

The figures are facts out of the results that people sent in (runs.csv names each by its id); a run that stands twice in
the source under two names counts once.
"""

import csv
import math
import re
from dataclasses import dataclass
from pathlib import Path

SOURCE = (
    "github iocost-benchmark/iocost-benchmarks, database/2.2/*/result-*.json.gz, commit b2fc8dd (2025-01-27); "
    "protocol: resctl-demo, rd-agent/src/misc/iocost_coef_gen.py"
)
FIGURES = ("rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops", "rlat_us", "wlat_us")
SAME_RUN = {"68c78cfa": "aaceb350"}
"""A result that has the figures of another to the last digit, and so is that run: left out."""
ODD = {
    "Fanxiang_S500Pro_1TB": "its read latency is 7.7 s, 690 times what its rate allows",
    "KXG50ZNV256G_TOSHIBA": "its two runs differ by 1.2 to 2.2",
    "MTFDHBA256TCK-1AS15ABYY": "one of its three runs states 128 GB",
}


@dataclass(frozen=True)
class Model:
    """A model and its figures: geometric means over its runs."""

    name: str
    gb: int
    figures: dict[str, float]
    results: tuple[str, ...]

    @property
    def file(self) -> str:
        """The name of its device file: what sysfs calls the model, in small letters and underscores."""
        return re.sub(r"[^a-z0-9]+", "_", self.name.lower()).strip("_")

    @property
    def odd(self) -> str | None:
        """What is odd about its runs."""
        return ODD.get(self.name)


def models() -> list[Model]:
    """Every model, by name."""
    with (Path(__file__).parent / "runs.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["result"] not in SAME_RUN]
    by_name: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        by_name.setdefault(row["model"], []).append(row)
    return [_model(name, runs) for name, runs in sorted(by_name.items(), key=lambda one: one[0].lower())]


def geometric_mean(values: list[float]) -> float:
    """Of values above 0."""
    return math.exp(sum(map(math.log, values)) / len(values))


def _model(name: str, runs: list[dict[str, str]]) -> Model:
    sizes = sorted(int(run["gb"]) for run in runs)
    return Model(
        name,
        sizes[len(sizes) // 2],
        {figure: geometric_mean([float(run[figure]) for run in runs]) for figure in FIGURES},
        tuple(run["result"] for run in runs),
    )
