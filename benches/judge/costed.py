"""Groups that share a drive by what its I/O costs (`io.cost`): eight loads on three drives."""

from judge.configuration import Configuration, Job

KERNEL = "6.1.0-56-cloud"
LATENCIES_US = (200, 1000, 4000)
DEPTH = 8


def configurations() -> list[Configuration]:
    return [
        Configuration(
            kernel=KERNEL,
            latency_us=latency_us,
            drive_depth=DEPTH,
            scheduler="none",
            cost_model=model(latency_us),
            cost_qos=qos,
            jobs=jobs,
            duration_ms=2000,
        )
        for latency_us in LATENCIES_US
        for qos, jobs in _loads(latency_us)
    ]


def model(latency_us: int) -> str:
    """What the drive can do: it serves `DEPTH` at once, in the same time whatever they are."""
    rate = DEPTH * 1_000_000 // latency_us
    rates = {"bps": rate * 65_536, "seqiops": rate, "randiops": rate}
    return " ".join(f"{way}{name}={value}" for way in "rw" for name, value in rates.items())


FIXED = "min=100 max=100"
"""The rate of virtual time stays."""


def _loads(latency_us: int) -> list[tuple[str, tuple[Job, ...]]]:
    late = f"rpct=90 rlat={latency_us * 3 // 2} min=25 max=100"
    deep, deep_writes = Job(depth=16, io_weight=100), Job(depth=16, read_percent=0, io_weight=100)
    return [
        (FIXED, (deep, Job(depth=16, io_weight=300))),
        (FIXED, (Job(io_weight=100), Job(depth=32, io_weight=100))),
        (FIXED, (Job(pattern="sequential", block_kib=64, depth=8, io_weight=200), deep)),
        ("min=50 max=50", (deep, deep_writes)),
        (FIXED, (deep, Job(depth=16, io_weight=200), Job(depth=16, io_weight=500))),
        (late, (Job(io_weight=500), Job(depth=32, io_weight=100))),
        (FIXED, (Job(think_ms=5, think_every=20, depth=4, io_weight=400), Job(depth=32, io_weight=100))),
        ("min=25 max=400", (deep, Job(depth=16, copies=2, io_weight=200))),
    ]
