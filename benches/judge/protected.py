"""Groups with a promised latency (`io.latency`): eight loads on three drives, beside groups that may be held back."""

from judge.configuration import Configuration, Job
from judge.costed import DEPTH, LATENCIES_US

KERNEL = "linux-source-6.1"
"""Built with `groups.config`: Debian's own kernels have no io.latency."""


def configurations() -> list[Configuration]:
    return [
        Configuration(
            kernel=KERNEL,
            config="groups.config",
            latency_us=latency_us,
            drive_depth=DEPTH,
            scheduler="none",
            jobs=jobs,
            duration_ms=4000,
        )
        for latency_us in LATENCIES_US
        for jobs in _loads(latency_us)
    ]


def _loads(latency_us: int) -> list[tuple[Job, ...]]:
    """Targets are multiples of the drive's latency: the tight one is missed whatever the others do."""
    tight, loose = latency_us, latency_us * 4
    first = Job(io_latency_us=tight)
    greedy = Job(depth=16)
    return [
        (first, greedy),
        (first, Job(depth=8, copies=4)),
        (Job(io_latency_us=loose), Job(depth=32)),
        (Job(depth=4, io_latency_us=tight), Job(pattern="sequential", block_kib=64, depth=16)),
        (Job(read_percent=0, io_latency_us=tight), greedy),
        (first, Job(depth=16, io_latency_us=loose)),
        (first, Job(depth=4, io_latency_us=latency_us * 2), greedy),
        (Job(think_ms=1, think_every=10, io_latency_us=tight), Job(depth=16, read_percent=50)),
    ]
