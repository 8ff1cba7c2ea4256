"""What an I/O on a modelled machine costs in wall time as the machine grows to 1,024 CPUs and 1,024 devices, each
device with a task of its own that reads at random: CPUs and devices together, CPUs beside 16 devices, and devices
beside 16 CPUs. A cost for each I/O that stays the same is a cost of the whole that grows with what the machine does,
and with nothing else.

![Wall time for each I/O over the number of CPUs, devices, or both](model_scale.svg)
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from alternate import alternate
from model_speed import build, command, ours
from result import Result, at_most, paired

PICTURE = Path(__file__).parents[1] / "docs/model_scale.svg"
SIZES = (16, 64, 256, 1024)
FEW = 16
LINES: Mapping[str, Callable[[int], tuple[int, int]]] = {
    "CPUs and devices": lambda size: (size, size),
    "CPUs": lambda size: (size, FEW),
    "devices": lambda size: (FEW, size),
}
"""What grows: from its number, how many CPUs and devices the machine has."""
GROWTH = at_most(2)
"""A machine that no longer fits into the caches of the processor that simulates it is slower for each I/O."""


def measure(quick: bool) -> list[Result]:
    build()
    machines = {line: {size: _load(*shape(size)) for size in SIZES} for line, shape in LINES.items()}
    loads = {load: partial(ours, "whole_stack", load) for of_line in machines.values() for load in of_line.values()}
    samples = alternate(loads, 1 if quick else 5)
    costs = {line: [samples[of_line[size]] for size in SIZES] for line, of_line in machines.items()}
    if not quick:
        draw({line: [statistics.median(one) for one in of_line] for line, of_line in costs.items()})
    return [
        paired(
            f"1,024 {line}, wall time for each I/O",
            "ns",
            of_line[-1],
            of_line[0],
            f"{FEW} {line}",
            target=GROWTH,
            commands=[command("whole_stack", load) for load in machines[line].values()],
        )
        for line, of_line in costs.items()
    ]


def draw(costs: Mapping[str, Sequence[float]]) -> None:
    """Nanoseconds by number, a line for each of `LINES`."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "iolab"  # the same figures make the same file
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for line, of_line in costs.items():
        axes.plot(SIZES, of_line, marker="o", label=line)
    axes.set_xscale("log", base=2)
    axes.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("number")
    axes.set_ylabel("wall time for each I/O [ns]")
    axes.legend()
    figure.savefig(PICTURE, metadata={"Date": None})


def _load(cpus: int, devices: int) -> str:
    return f"{cpus} CPUs and {devices} devices"
