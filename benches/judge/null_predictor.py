"""What arithmetic alone predicts: every operation shares the drive's slots alike, whatever the scheduler is."""

from dataclasses import replace

from judge.answer import Cells
from judge.configuration import Configuration, Job
from judge.question import names

NS_PER_US = 1_000
US_PER_S = 1_000_000


def predicted(asked: Configuration) -> Cells:
    """The cells of a configuration. A closed loop of so many operations in flight waits in one line; a buffered call
    costs the drive its bytes in requests of 128 KiB. Who is limited has the limit, and waits in one line for it. Whose
    latency would be above what the kernel promises has the others keep one operation in flight."""
    if any(job.io_weight for job in asked.jobs):
        return _by_weight(asked)
    service_us = _service_us(asked)
    promised_us = min((job.io_latency_us for job in asked.jobs if job.io_latency_us), default=service_us)
    if promised_us < service_us:
        held = [job if job.io_latency_us == promised_us else replace(job, depth=1, copies=1) for job in asked.jobs]
        asked = replace(asked, jobs=tuple(held))
        service_us = _service_us(asked)
    cells: Cells = {}
    for name, job in zip(names(asked), asked.jobs, strict=True):
        call_us = service_us * (job.block_kib / 128 if not job.direct else 1)
        sync_us = service_us / job.fsync_every if job.fsync_every else 0
        pause_us = 1000 * job.think_ms / job.think_every
        rate = job.in_flight * US_PER_S / (call_us + sync_us + pause_us)
        latency_ns = (service_us if job.direct else call_us) * NS_PER_US
        if (limit := _limit(job)) < rate:
            rate, latency_ns = limit, 1e9 * job.in_flight / limit
        for kind, share in (("read", job.read_percent / 100), ("write", 1 - job.read_percent / 100)):
            if share:
                cells[f"{name}/{kind}.iops"] = rate * share
                cells[f"{name}/{kind}.latency_ns_p50"] = latency_ns
                cells[f"{name}/{kind}.latency_ns_p99"] = latency_ns
        if job.fsync_every:
            cells[f"{name}/sync.latency_ns_p50"] = service_us * NS_PER_US
    return cells


def _by_weight(asked: Configuration) -> Cells:
    """Who shares by weight has its part of what the drive can do, or what it asks for if that is less; what is
    left goes to the others in the same way."""
    left = asked.drive_depth * US_PER_S / asked.latency_us
    wants = {
        name: job.in_flight * US_PER_S / (asked.latency_us + 1000 * job.think_ms * job.depth / job.think_every)
        for name, job in zip(names(asked), asked.jobs, strict=True)
    }
    weights = {name: job.io_weight for name, job in zip(names(asked), asked.jobs, strict=True)}
    rates: dict[str, float] = {}
    while weights:
        total = sum(weights.values())
        content = [name for name, weight in weights.items() if wants[name] <= left * weight / total]
        for name in content or list(weights):
            rates[name] = min(wants[name], left * weights[name] / total)
        left -= sum(rates[name] for name in content)
        weights = {name: weight for name, weight in weights.items() if name not in rates}
    cells: Cells = {}
    for name, job in zip(names(asked), asked.jobs, strict=True):
        for kind, share in (("read", job.read_percent / 100), ("write", 1 - job.read_percent / 100)):
            if share:
                latency_ns = max(1e9 * job.in_flight / rates[name], asked.latency_us * NS_PER_US)
                cells[f"{name}/{kind}.iops"] = rates[name] * share
                cells[f"{name}/{kind}.latency_ns_p50"] = latency_ns
                cells[f"{name}/{kind}.latency_ns_p99"] = latency_ns
    return cells


def _service_us(asked: Configuration) -> float:
    waiting = sum(job.in_flight * _busy_share(asked, job) for job in asked.jobs)
    return asked.latency_us * max(1.0, waiting / asked.drive_depth)


def _limit(job: Job) -> float:
    """Operations per second that its group's limits allow, of a job that reads or writes alone."""
    kind = "read" if job.read_percent else "write"
    by_bytes = job.io_max.get(kind, float("inf")) / (1024 * job.block_kib)
    return min(by_bytes, job.io_max.get(f"{kind}_iops", float("inf")))


def _busy_share(asked: Configuration, job: Job) -> float:
    """Of its time, how much an operation in flight spends at the drive, if it were alone."""
    pause_us = 1000 * job.think_ms / job.think_every
    return asked.latency_us / (asked.latency_us + pause_us)
