"""What the registry's names mean to an explanation."""

from __future__ import annotations

THROUGHPUT = frozenset(
    {
        *("rate_bytes_per_s", "rate_sum_bytes_per_s", "iops", "ops", "bytes", "elapsed_s", "measured_s"),
        *("files_per_s", "files_per_s_wall", "latency_ns_mean", "time_total_ns_mean"),
        *("bios_queued_per_s", "requests_issued_per_s", "page_in_bytes_per_s", "page_out_bytes_per_s"),
        "rpc_ops_per_s",
    }
)
"""Metrics that count the same work, or its time: of fixed work by a fixed number of jobs at a fixed depth each is a
function of the others (Little's law for the mean latency). They tell a result in other words, and explain nothing."""

SUSPECTS = (
    *("time_in_device_ns_mean", "time_in_scheduler_ns_mean", "time_in_queue_ns_mean", "queue_depth_mean"),
    *("request_bytes_mean", "merged_percent", "merges_per_s", "seek_sectors_mean", "sequential_share"),
    *("context_switches_per_s", "context_switches_per_io", "machine_switches_per_s", "switch_stall_ns_mean"),
    *("wakeup_latency_ns_mean", "run_queue_delay_ns_mean", "cpu_busy_percent", "cpu_percent", "cpu_ns_per_io"),
    *("machine_cpu_ns_per_io", "page_cache_hit_share", "dirty_bytes_mean", "extents_per_file_mean"),
    *("rpc_rtt_ns_mean", "rpc_backlog_wait_ns_mean"),
)
"""What is asked about first: that one of these did not move rules an explanation out. In the order of the telling."""


def name_of(key: str) -> str:
    """`random_read/read.iops` -> `iops`."""
    return key.rpartition("/")[2].rpartition(".")[2]
