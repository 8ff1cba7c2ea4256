"""`kind = "aio-stream"`: one application per device with many large asynchronous direct operations in flight.

The load of A. D. Brunelle's tests of I/O affinity (linux-kernel, February 2008): 128 reads of 256 KiB outstanding on
each device; with a small `window`, reads of 4 KiB that stay in a controller's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from iolab.base.option import Bytes, Duration, Options, option
from iolab.base.quantity import format_bytes, size_in_words
from iolab.domain.trial import Phase
from iolab.domain.workload.conflict import job_conflicts
from iolab.domain.workload.job import JobOptions, PhaseOptions
from iolab.domain.workload.kind import Conflict, Kind, cpus_option, replace_options
from iolab.domain.workload.load import jobs_phases

LARGE_BLOCK_BYTES = 256 * 2**10
CACHED_BLOCK_BYTES = 4096


class AioStreamOptions(Options):
    """The options of `kind = "aio-stream"`."""

    operation: Literal["read", "write"] = option("read", "The operation; writes overwrite the files in sequence.")
    window: Bytes | None = option(
        None,
        "Cycle through this many bytes of each device, few enough for its controller's cache; file_size is then "
        "ignored.",
        unit="bytes",
        gt=0,
        default_is="all of the file",
    )
    block_size: Bytes | None = option(
        None,
        "Bytes of one operation.",
        unit="bytes",
        gt=0,
        le=2**30,
        default_is='`"256KiB"`, with a window `"4KiB"`',
    )
    queue_depth: int = option(128, "Operations in flight on each device.", ge=1, le=4096)
    file_size: Bytes = option(
        2**30,
        "Size of the file, or of the region, on each device, rounded down to a multiple of 4KiB.",
        unit="bytes",
        ge=4096,
    )
    engine: Literal["io_uring", "libaio"] = option("io_uring", "How I/O is issued.")
    duration: Duration = option(10 * 10**9, "Measured time.", unit="ns", gt=0)
    warm_up: Duration = option(0, "Time of I/O before the measured time; not counted.", unit="ns", ge=0)
    cpus: list[int] | None = cpus_option(
        "The CPU of each device's application, device by device; a shorter list repeats.",
        default_is="any CPU for all of them",
    )

    @property
    def block_bytes(self) -> int:
        """Bytes of one operation: as given, else large blocks, and small ones for a window that fits a cache."""
        return self.block_size or (LARGE_BLOCK_BYTES if self.window is None else CACHED_BLOCK_BYTES)

    @property
    def device_bytes(self) -> int:
        """How much of each device is used, in bytes."""
        return self.window or self.file_size

    @property
    def phase(self) -> PhaseOptions:
        """The options of the phase as any load's, for the checks that all loads share."""
        return PhaseOptions.model_construct(duration=self.duration, warm_up=self.warm_up)

    def application(self, device: int) -> JobOptions:
        """The job on the device of that number."""
        return JobOptions(
            pattern="sequential",
            read_percent=100.0 if self.operation == "read" else 0.0,
            block_size={self.block_bytes: 1.0},
            queue_depth=self.queue_depth,
            file_size=self.device_bytes,
            devices=[device],
            engine=self.engine,
            cpus=None if self.cpus is None else [self.cpus[device % len(self.cpus)]],
        )


def _conflicts(options: AioStreamOptions) -> Iterator[Conflict]:
    if options.window is not None and options.window % 4096:
        yield Conflict(("window",), f"{size_in_words(options.window)} is not a multiple of 4KiB")
    elif options.block_bytes > options.device_bytes:
        key = "file_size" if options.window is None else "window"
        yield Conflict(
            ("block_size",),
            f"{format_bytes(options.block_bytes)} is larger than {key}, {format_bytes(options.device_bytes)}",
        )
    elif options.cpus == []:
        yield Conflict(("cpus",), "expected a list of CPU numbers such as [0] or [0, 1]")
    else:
        yield from job_conflicts(options.application(0), options.phase)


def _phases(options: AioStreamOptions, seed: int, devices: int = 1) -> list[Phase]:
    applications = {f"device.{device}": options.application(device) for device in range(devices)}
    return jobs_phases(applications, options.phase, seed, devices)


KIND = Kind(
    name="aio-stream",
    help="One application per device with many large asynchronous direct reads or writes in flight.",
    options=AioStreamOptions,
    conflicts=_conflicts,
    phases=_phases,
    override=replace_options,
    file_bytes=lambda options: options.device_bytes,
    compared=("rate_bytes_per_s", "latency_ns_mean", "latency_ns_stddev_job_mean", "cpu_ns_per_io"),
)
