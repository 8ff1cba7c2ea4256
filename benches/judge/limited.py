"""Groups at their limits (`io.max`): eight loads on three drives, each beside a reader without limits."""

from itertools import product

from judge.configuration import Configuration, Job

KERNEL = "6.1.0-56-cloud"
LATENCIES_US = (50, 500, 2000)
MIB = 1 << 20
LOADS = (
    Job(io_max={"read": 2 * MIB}),
    Job(depth=8, io_max={"read": 2 * MIB}),
    Job(pattern="sequential", block_kib=64, depth=4, io_max={"read": 16 * MIB}),
    Job(pattern="sequential", block_kib=256, depth=8, io_max={"read": 20 * MIB}),
    Job(depth=4, io_max={"read_iops": 300}),
    Job(block_kib=16, depth=8, read_percent=0, io_max={"write": 5 * MIB}),
    Job(copies=4, io_max={"read_iops": 1000}),
    Job(block_kib=16, depth=16, io_max={"read": 4 * MIB, "read_iops": 200}),
)


def configurations() -> list[Configuration]:
    return [
        Configuration(kernel=KERNEL, latency_us=latency_us, drive_depth=16, scheduler="none", jobs=(load, Job()))
        for load, latency_us in product(LOADS, LATENCIES_US)
    ]
