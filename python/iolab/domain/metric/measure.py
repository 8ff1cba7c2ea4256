"""What phases of some kinds measure besides operations, and their records name themselves."""

from __future__ import annotations

from iolab.domain.definition import Metric

METRICS = (
    *(
        Metric(name, unit, "cost", help, "measure", lambda seen, name=name: seen.measure(name), absent)  # type: ignore[misc]
        for name, unit, help, absent in (
            (
                "elapsed_s_spread",
                "share",
                "Time between the first and the last process to finish, over the mean of all processes' times.",
                "a process did not finish",
            ),
            (
                "swap_in_bytes",
                "bytes",
                "Bytes read back from swap, whole machine (pswpin of /proc/vmstat).",
                "/proc/vmstat does not show it",
            ),
            (
                "swap_out_bytes",
                "bytes",
                "Bytes written to swap, whole machine (pswpout of /proc/vmstat).",
                "/proc/vmstat does not show it",
            ),
            (
                "swap_out_after_first_bytes",
                "bytes",
                "The part of swap_out_bytes written after the first process had finished.",
                "/proc/vmstat does not show it, or no process was seen to finish before the last",
            ),
            (
                "swap_bytes_max",
                "bytes",
                "Highest swap use of the control group, sampled every 0.1 s.",
                "the kernel does not account swap to control groups",
            ),
            (
                "memory_bytes_max",
                "bytes",
                "Highest memory use of the control group (its own high-water mark).",
                "the kernel keeps no high-water mark of control groups",
            ),
        )
    ),
    Metric(
        "write_amplification",
        "ratio",
        "cost",
        "On a simulated machine: what its flash programmed over what the host's writes needed, of the whole phase. "
        "What lies in a drive's buffer at its end is not counted.",
        "flash",
        lambda seen: seen.measure("write_amplification"),
        "no flash was programmed",
    ),
    Metric(
        "flash_erases",
        "count",
        "cost",
        "On a simulated machine: blocks of flash erased in the whole phase, those of all planes of a die as one.",
        "flash",
        lambda seen: seen.measure("flash_erases"),
        "no flash was programmed",
    ),
    Metric(
        "flash_free_percent",
        "percent",
        "benefit",
        "On a simulated machine: blocks of its flash that are erased and not open at the end of the phase, of all that "
        "are no part of a pseudo-SLC cache.",
        "flash",
        lambda seen: seen.measure("flash_free_percent"),
        "the record is of an older version",
    ),
    Metric(
        "slc_fill_percent",
        "percent",
        "cost",
        "On a simulated machine: pages of the pseudo-SLC cache that are programmed at the end of the phase, of all its "
        "pages.",
        "flash",
        lambda seen: seen.measure("slc_fill_percent"),
        "no drive has such a cache",
    ),
    Metric(
        "flash_celsius",
        "°C",
        "cost",
        "On a simulated machine: temperature of the warmest drive at the end of the phase.",
        "flash",
        lambda seen: seen.measure("flash_celsius"),
        "no drive gets warm: none has the table thermal",
    ),
    Metric(
        "queue_depth_found",
        "count",
        "benefit",
        "The queue depth that a search found (`latency_target` of a fio job): the largest at which enough I/Os met the "
        "target.",
        "measure",
        lambda seen: seen.queue_depth_found,
        "no depth met the target, or the job ended before one was known; a note states which",
    ),
    Metric(
        "steady_after_ns",
        "ns",
        "neutral",
        "When the rate that a job ran for was steady (`steady`; `steadystate` of a fio job), since the start of the "
        "phase; of several jobs, the last one's.",
        "measure",
        lambda seen: seen.steady_after_ns,
        "a job ended before its rate was steady; a note states how far from it",
        per_job=True,
    ),
    Metric(
        "steady_iops",
        "1/s",
        "rate",
        "Operations per second in the last window of a job that runs for a steady rate (`steady`), whether it was "
        "steady or not; the sum of all jobs.",
        "measure",
        lambda seen: sum(found) if (found := seen.in_last_window("mean_per_s")) else None,
        "the job ended before a window was full",
        per_job=True,
    ),
    *(
        Metric(
            name,
            "percent",
            "neutral",
            help,
            "measure",
            lambda seen, figure=figure: max(seen.in_last_window(figure), default=None),  # type: ignore[misc]
            "the job ended before a window was full, or nothing completed in it",
            per_job=True,
        )
        for name, figure, help in (
            (
                "steady_slope_percent",
                "criterion",
                "By how much of its mean the rate of a job's last window rises or falls, by the line through its "
                "rounds (`steady`); the largest of all jobs.",
            ),
            (
                "steady_spread_percent",
                "spread",
                "By how much of the mean the highest and the lowest round of a job's last window differ (`steady`); "
                "the largest of all jobs.",
            ),
        )
    ),
    Metric(
        "arrivals_late_percent",
        "percent",
        "cost",
        "In a trace's replay: I/Os issued more than 100 us after they were due, because the queue was full, the "
        "thread busy or the CPU taken.",
        "measure",
        lambda seen: seen.replayed.late_percent,
        "nothing was offered",
        per_job=True,
    ),
    Metric(
        "arrivals_late_queue_full_percent",
        "percent",
        "cost",
        "In a trace's replay: I/Os issued more than 100 us late that were due while all of the queue depth was in "
        "flight, because the target is slower than the traced one or the depth too small.",
        "measure",
        lambda seen: seen.replayed.late_queue_full_percent,
        "nothing was offered, or the record is of an older version",
        per_job=True,
    ),
    Metric(
        "refused_discards",
        "count",
        "cost",
        "In a trace's replay: discards, and writes of zeroes without data, that the target does not take.",
        "measure",
        lambda seen: seen.replayed.refused,
        "the record is of an older version, which replayed none",
        per_job=True,
    ),
    Metric(
        "lateness_ns_p99",
        "ns",
        "cost",
        "In a trace's replay: the 99th percentile of the time by which I/Os were issued later than due; the highest of "
        "all threads.",
        "measure",
        lambda seen: seen.replayed.lateness_ns_p99,
        "nothing was offered",
        per_job=True,
    ),
    Metric(
        "arrival_rate_share",
        "share",
        "neutral",
        "In a trace's replay: arrivals per second over those of the trace, its times scaled.",
        "measure",
        lambda seen: seen.replayed.rate_share,
        "fewer than two I/Os were offered",
        per_job=True,
    ),
    Metric(
        "queue_depth_distance",
        "count",
        "neutral",
        "In a trace's replay: by how many I/Os its queue depth differs from the trace's, averaged over the quantiles "
        "of time; the mean of all threads, weighted by their I/Os.",
        "measure",
        lambda seen: seen.replayed.depth_distance,
        "the trace does not show when its I/Os ended",
        per_job=True,
    ),
    Metric(
        "files_per_s",
        "1/s",
        "rate",
        "Files created, written, synced and closed per second: the sum of the threads' own rates, as fs_mark prints "
        "it.",
        "measure",
        lambda seen: seen.measure("files_per_s"),
        "no file was made, or a thread did not come back",
        per_job=True,
    ),
    Metric(
        "files_per_s_wall",
        "1/s",
        "rate",
        "Files per second of all threads together: all files over the time from the common start to the last file.",
        "measure",
        lambda seen: seen.measure("files_per_s_wall"),
        "no file was made, or a thread did not come back",
    ),
    Metric(
        "app_overhead_s",
        "s",
        "time",
        "Sum of the threads' times outside create, write, fsync, sync and close, until their last file.",
        "measure",
        lambda seen: seen.measure("app_overhead_s"),
        "a thread did not come back",
        per_job=True,
    ),
    Metric(
        "filesystem_used_percent",
        "percent",
        "neutral",
        "How full the filesystem was after the phase; space reserved for root counts as used.",
        "measure",
        lambda seen: seen.measure("filesystem_used_percent"),
        "the filesystem could not be asked (statvfs)",
    ),
)
