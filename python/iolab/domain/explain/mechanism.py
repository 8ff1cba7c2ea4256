"""What can change the path of an I/O, and what follows from what: the mechanisms, causes before effects.

A mechanism has a few leading metrics, whose movement shows that it changed; the settings that act on it; and the
mechanisms that it leads to. docs/why.md has this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SWITCHES_PER_IO = "voluntary_switches_per_io"
PREEMPTIONS = "preemptions_per_cpu_s"
WAITING_ABOVE = "waiting_above_ns_per_io"
CPU_WAIT = "cpu_wait_ns_per_io"
IN_FLIGHT = "ios_in_flight"
LEADING_DERIVED = (SWITCHES_PER_IO, PREEMPTIONS, WAITING_ABOVE, IN_FLIGHT)
"""Leading metrics that are made of others (`iolab.domain.explain.cause`)."""

INSTRUCTIONS, STEAL = "instructions", "steal"
"""Mechanisms."""
BACKGROUND = "background"
"""The control whose load may act on all, and has more time stolen, as whoever runs more on a busy hypervisor."""
EVERY_WAIT = ("depth", "queue", "scheduler", "device", "above")


@dataclass(frozen=True)
class Mechanism:
    """One thing on the path of an I/O that a setting can change."""

    name: str
    title: str
    """What its movement is called."""
    leading: tuple[str, ...]
    """Metrics that show it, the clearest first."""
    settings: tuple[str, ...]
    """Controls that act on it; `workload.KEY` is an option of the workload, `target.KEY` one of the target."""
    leads_to: tuple[str, ...]
    """Names of mechanisms that move because this one did."""
    leading_if_set: tuple[str, ...] = ()
    """Further metrics that show it if one of its settings was changed."""


_ALL = (
    Mechanism(
        "layout",
        "layout of the files (fragmentation)",
        ("extents_per_file_mean", "extent_bytes_mean", "interleave_share", "stretch_bytes_mean"),
        ("filesystem", "mkfs_options", "mount_options"),
        ("gathering", "merging", "request_size", "seeks"),
    ),
    Mechanism(
        INSTRUCTIONS,
        "kernel instructions per operation",
        ("kernel_instructions_per_op",),
        (),
        ("contention", "switching", "cpu_cost", *EVERY_WAIT),
    ),
    Mechanism(
        STEAL,
        "time stolen by other guests of the hypervisor",
        ("cpu_steal_percent",),
        (),
        ("contention", "cpu_cost", *EVERY_WAIT),
    ),
    Mechanism(
        "placement",
        "placement on CPUs",
        ("completions_remote_percent",),
        (
            *("cpus", "workload.cpus", "irq_cpus", "workqueue_cpus", "rq_affinity", "affinity", "queue_affinity"),
            *("completion_affinity", "workload.sqpoll_cpu"),
        ),
        ("contention", "switching", "cpu_cost", *EVERY_WAIT),
        (CPU_WAIT, PREEMPTIONS),
    ),
    Mechanism(
        "contention",
        "competition for CPUs",
        (CPU_WAIT, PREEMPTIONS),
        ("nice", "cpu_quota", BACKGROUND),
        EVERY_WAIT,
    ),
    Mechanism(
        "cache",
        "page cache",
        ("page_cache_hit_share",),
        (
            *("drop_caches", "workload.drop_caches", "workload.direct", "dirty_ratio", "dirty_bytes"),
            *("dirty_background_ratio", "dirty_background_bytes", "dirty_expire", "dirty_writeback"),
            *("bdi_min_ratio", "bdi_max_ratio", "bdi_strict_limit", "workload.file_size"),
        ),
        ("gathering", "request_size", "switching", "cpu_cost", *EVERY_WAIT),
    ),
    Mechanism(
        "gathering",
        "read-ahead and write-back (size of the bios)",
        ("bio_bytes_mean", "bios_per_io"),
        ("read_ahead_kb", "workload.block_size"),
        ("merging", "request_size", "switching"),
    ),
    Mechanism(
        "merging",
        "merging",
        ("merged_percent",),
        ("nomerges",),
        ("request_size",),
    ),
    Mechanism(
        "request_size",
        "size of the requests",
        ("splits_per_io", "request_bytes_mean", "requests_per_io"),
        ("max_sectors_kb",),
        ("seeks", "switching", "cpu_cost", *EVERY_WAIT),
    ),
    Mechanism(
        "switching",
        "context switches",
        (SWITCHES_PER_IO,),
        (
            *("workload.engine", "workload.batch", "workload.jobs", "workload.share_thread", "workload.poll"),
            *("workload.sqpoll", "io_poll", "io_poll_delay"),
        ),
        ("contention", "cpu_cost", *EVERY_WAIT),
    ),
    Mechanism(
        "seeks",
        "seeks",
        ("sequential_share", "seek_sectors_mean"),
        (
            *("workload.pattern", "workload.stride", "workload.range_length", "workload.zipf_theta"),
            *("workload.pareto_h", "workload.normal_deviation", "workload.zones"),
        ),
        ("depth", "queue", "scheduler", "device"),
    ),
    Mechanism(
        "depth",
        "queue depth",
        ("queue_depth_mean",),
        ("nr_requests", "workload.queue_depth", "workload.jobs"),
        ("queue", "scheduler", "device"),
        (IN_FLIGHT,),
    ),
    Mechanism("queue", "time in the queue", ("queue_ns_per_io", "time_in_queue_ns_mean"), ("wbt_lat_usec",), ()),
    Mechanism(
        "scheduler",
        "I/O scheduler",
        ("scheduler_ns_per_io", "time_in_scheduler_ns_mean"),
        ("scheduler", "io_priority", "rotational"),
        ("device",),
    ),
    Mechanism(
        "above",
        "waiting above the block layer",
        (WAITING_ABOVE,),
        ("io_max",),
        ("depth",),
    ),
    Mechanism(
        "device",
        "time at the device",
        ("device_ns_per_io", "time_in_device_ns_mean", "rpc_rtt_ns_mean"),
        ("target.path", "target.paths", "workload.fill"),
        (),
    ),
    Mechanism(
        "cpu_cost",
        "CPU time per I/O",
        ("cpu_ns_per_io",),
        (
            *("cpu_governor", "cpu_boost", "cpu_idle_states_disabled", "cpu_idle_latency_us_max"),
            *("iostats", "add_random"),
        ),
        ("above",),
    ),
)

MECHANISMS: Mapping[str, Mechanism] = {one.name: one for one in _ALL}
"""By name, causes before effects."""

ANY_MECHANISM = ("kernel", "machine", "layers", BACKGROUND)
"""Controls that may act on all of them: only the numbers show which moved."""

FLOORS: Mapping[str, float] = {
    "cpu_steal_percent": 1.0,
    "completions_remote_percent": 5.0,
    "merged_percent": 1.0,
    "page_cache_hit_share": 0.01,
    "interleave_share": 0.01,
    "sequential_share": 0.05,
    "splits_per_io": 0.05,
    "bios_per_io": 0.0,
    SWITCHES_PER_IO: 0.05,
    PREEMPTIONS: 20.0,
    CPU_WAIT: 1000.0,
    WAITING_ABOVE: 1000.0,
    "queue_depth_mean": 0.1,
    IN_FLIGHT: 0.1,
}
"""Per metric, an amount that does not matter: what is well below it counts as nothing. Units as the metric's name."""

WAIT_SHARE_MIN = 0.05
"""The share of the time per I/O below which a wait for a CPU counts as none, whatever it was before."""


def mechanisms_of(setting: str) -> list[str]:
    """The mechanisms that a control or a workload's option acts on."""
    if setting in ANY_MECHANISM or setting.startswith("machine."):
        return list(MECHANISMS)
    of_group = "io_max" if setting.startswith("workload.groups.") and setting.endswith(".io_max") else setting
    return [one.name for one in MECHANISMS.values() if of_group in one.settings]


def follows_from(effect: str, cause: str) -> bool:
    """Whether the one mechanism moves because the other did, directly or by way of others."""
    seen: set[str] = set()
    reached = [cause]
    while reached:
        name = reached.pop()
        for further in MECHANISMS[name].leads_to:
            if further == effect:
                return True
            if further not in seen:
                seen.add(further)
                reached.append(further)
    return False
