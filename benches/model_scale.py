"""Wall time per I/O on a simulated machine as it grows to 1,024 CPUs and 1,024 drives: both together, CPUs with 16
drives, and drives with 16 CPUs. Each drive has its own task, on another NUMA node than the drive's interrupts. If the
simulation scaled perfectly, an I/O would cost the same on every machine. What remains is the caches of the processor
that simulates: they hold a smaller share of a larger machine.

![Wall time of an I/O over the number of CPUs, drives, or both](model_scale.svg)
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from alternate import alternate
from model_speed import build, command, ours
from result import Result, at_most, paired

PICTURE = Path(__file__).parents[1] / "docs/reference/model_scale.svg"
SIZES = (16, 64, 256, 1024)
FEW = 16
LINES: Mapping[str, Callable[[int], tuple[int, int]]] = {
    "CPUs and drives": lambda size: (size, size),
    "CPUs": lambda size: (size, FEW),
    "drives": lambda size: (FEW, size),
}
"""What grows: from its number, how many CPUs and drives the machine has."""
GROWTH = at_most(3)


def measure(quick: bool) -> list[Result]:
    build()
    machines = {line: {size: _load(*shape(size)) for size in SIZES} for line, shape in LINES.items()}
    loads = {load: partial(ours, "detailed_cpus", load) for of_line in machines.values() for load in of_line.values()}
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
            commands=[command("detailed_cpus", load) for load in machines[line].values()],
        )
        for line, of_line in costs.items()
    ]


def draw(costs: Mapping[str, Sequence[float]]) -> None:
    """Nanoseconds by number, a line for each of `LINES`."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "iolab"  # the same figures make the same file
    matplotlib.rcParams["svg.fonttype"] = "none"  # letters as text, not as outlines
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


def _load(cpus: int, drives: int) -> str:
    return f"{cpus} CPUs and {drives} drives"
