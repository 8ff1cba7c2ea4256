"""Groups whose priority class is changed (`io.prio.class`), before mq-deadline: eight loads on three drives."""

from judge.configuration import Configuration, Job
from judge.costed import DEPTH, LATENCIES_US

KERNEL = "linux-source-6.12"
"""Built with `groups.config`: Debian's own kernels have no io.prio.class, and 6.1 promotes nobody."""


def configurations() -> list[Configuration]:
    return [
        Configuration(
            kernel=KERNEL,
            config="groups.config",
            latency_us=latency_us,
            drive_depth=DEPTH,
            scheduler="mq-deadline",
            tunables={"prio_aging_expire": aging_ms} if aging_ms else {},
            jobs=jobs,
            duration_ms=2000,
        )
        for latency_us in LATENCIES_US
        for aging_ms, jobs in LOADS
    ]


_REAL_TIME, _IDLE = "promote-to-rt", "idle"
LOADS: tuple[tuple[int, tuple[Job, ...]], ...] = (
    (0, (Job(io_prio_class=_REAL_TIME), Job(depth=16))),
    (0, (Job(), Job(depth=16, io_prio_class=_IDLE))),
    (0, (Job(depth=4, think_ms=5, think_every=10, io_prio_class=_REAL_TIME), Job(depth=16))),
    (50, (Job(depth=8), Job(depth=16, io_prio_class=_IDLE))),
    (20, (Job(depth=16, io_prio_class=_REAL_TIME), Job(depth=16))),
    (0, (Job(think_ms=2, io_prio_class=_REAL_TIME), Job(), Job(depth=16, io_prio_class=_IDLE))),
    (0, (Job(copies=2), Job(depth=16, read_percent=0, io_prio_class=_IDLE))),
    (
        100,
        (
            Job(depth=8, think_ms=1, think_every=4, io_prio_class="restrict-to-be"),
            Job(pattern="sequential", block_kib=64, depth=8, io_prio_class=_IDLE),
        ),
    ),
)
"""By `prio_aging_expire` in milliseconds, 0: the kernel's."""
