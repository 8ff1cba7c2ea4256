"""Block events: what became of each request of the target's devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import fmean
from typing import Literal

from iolab.base.option import Bytes, option
from iolab.domain.definition import NO_TIME, Metric, Nature
from iolab.domain.native_types import Activity, BlockObservation
from iolab.domain.probe import per_io
from iolab.domain.probe.probe import Probe, ProbeReader, SampledOptions

NAME = "block"
READER = ProbeReader[BlockObservation](NAME, lambda probes: probes.get("block"))
Counter = Literal["bios_queued", "requests_issued", "back_merges", "front_merges", "request_merges"]
Distribution = Literal[
    "request_bytes", "seek_sectors", "time_in_queue_ns", "time_in_scheduler_ns", "time_in_device_ns", "time_total_ns"
]
Side = Literal["queue_local", "queue_remote", "completions_local", "completions_remote"]
MERGES: tuple[Counter, ...] = ("back_merges", "front_merges", "request_merges")
TIMES: dict[Distribution, str] = {
    "time_in_queue_ns": "Time of a request from the queue event of the first bio until it is inserted, or issued if it "
    "never is",
    "time_in_scheduler_ns": "Time of an inserted request until it is first issued to the driver",
    "time_in_device_ns": "Time of a request from the first issue to completion",
    "time_total_ns": "Time of a bio from the queue event to the completion of its request",
}
_BIOS = "Bios per device whose request was issued to the driver", "the bio was queued"
_REQUESTS = "Requests per device that completed", "their first bio was queued"
SIDES: dict[Side, tuple[str, str]] = {
    "queue_local": _BIOS,
    "queue_remote": _BIOS,
    "completions_local": _REQUESTS,
    "completions_remote": _REQUESTS,
}
_NO_REQUEST = "no request of the target's devices completed"
_NO_EVENT = "no block event of the target's devices was seen"


class BlockOptions(SampledOptions):
    """The options of the probe `block`."""

    buffer: Bytes = option(
        16 * 2**20,
        "Size of each CPU's ring buffer. Events that arrive while it is full are lost, and counted.",
        unit="bytes",
        ge=64 * 2**10,
        le=256 * 2**20,
    )
    trace: Literal["no", "blktrace", "ftrace"] = option(
        "no", "On a simulated machine only: also write the events, as blktrace's files or as ftrace's text."
    )


def _metrics() -> Iterator[Metric]:
    yield READER.metric(
        "bios_queued_per_s", "1/s", "neutral", "Bios that entered the block layer.", NO_TIME, _rate("bios_queued")
    )
    yield READER.metric(
        "requests_issued_per_s", "1/s", "neutral", "Requests issued to the driver.", NO_TIME, _rate("requests_issued")
    )
    yield READER.metric(
        "merges_per_s",
        "1/s",
        "neutral",
        "Bios and requests merged into others before they went to the device.",
        NO_TIME,
        _rate(*MERGES),
    )
    yield READER.metric(
        "merged_percent",
        "percent",
        "neutral",
        "Share of bios and requests that were merged into others.",
        _NO_REQUEST,
        _merged_percent,
    )
    yield READER.metric(
        "request_bytes_mean",
        "bytes",
        "neutral",
        "Mean size of the devices' requests.",
        _NO_REQUEST,
        _mean("request_bytes"),
    )
    for name, what in TIMES.items():
        yield READER.metric(f"{name}_mean", "ns", "time", f"{what}: mean.", _NO_REQUEST, _mean(name))
        yield READER.metric(f"{name}_p99", "ns", "time", f"{what}: 99th percentile.", _NO_REQUEST, _p99(name))
    yield READER.metric(
        "queue_depth_mean",
        "count",
        "neutral",
        "Mean number of requests at the devices.",
        _NO_EVENT,
        _depth_mean,
    )
    yield READER.metric(
        "queue_depth_max",
        "count",
        "neutral",
        "Most requests that a device had at any time.",
        _NO_EVENT,
        _depth_max,
    )
    yield READER.metric(
        "seek_sectors_mean",
        "count",
        "cost",
        "Mean distance from the end of the previous request of the same device, in issue order, in sectors of 512 "
        "bytes.",
        "fewer than two requests moved data",
        _mean("seek_sectors"),
    )
    yield READER.metric(
        "sequential_share",
        "share",
        "benefit",
        "Share of requests that begin where the previous one ended, 0 to 1.",
        "fewer than two requests moved data",
        _sequential_share,
    )
    for side, (what, of) in SIDES.items():
        remote = side.endswith("_remote")
        nature: Nature = "cost" if remote else "neutral"
        on = "on another CPU than where" if remote else "on the CPU where"
        yield READER.metric(side, "count", nature, f"{what} {on} {of}.", _NO_EVENT, _per_device(side))
    yield READER.metric(
        "block_events_lost",
        "count",
        "cost",
        "Events lost because the ring buffers were full; the other metrics are then incomplete.",
        "it is not counted",
        lambda found: found.get("trace_events_lost"),
    )
    yield from per_io.metrics(READER)


Of = Callable[[BlockObservation], float | None]


def _total(found: BlockObservation) -> Activity:
    """All devices, reads, writes and others."""
    return found["all"]["total"]


def _rate(*counters: Counter) -> Of:
    """Per second of the observation."""

    def read(found: BlockObservation) -> float | None:
        elapsed_s = found["elapsed_ns"] / 1e9
        return sum(_total(found)[counter] for counter in counters) / elapsed_s if elapsed_s > 0 else None

    return read


def _mean(distribution: Distribution) -> Of:
    return lambda found: _total(found)[distribution]["mean"]


def _p99(distribution: Distribution) -> Of:
    return lambda found: _total(found)[distribution]["p99"]


def _depth_mean(found: BlockObservation) -> float | None:
    depths = [device["queue_depth_mean"] for device in found["devices"]]
    return sum(depths) if depths else None


def _depth_max(found: BlockObservation) -> float | None:
    return max((device["queue_depth_max"] for device in found["devices"]), default=None)


def _per_device(counter: Side) -> Of:
    """The mean over the devices that were used."""

    def read(found: BlockObservation) -> float | None:
        counts = [device["total"][counter] for device in found["devices"]]
        return fmean(counts) if counts else None

    return read


def _merged_percent(found: BlockObservation) -> float | None:
    merged = sum(_total(found)[counter] for counter in MERGES)
    requests = merged + _total(found)["requests_issued"]
    return 100 * merged / requests if requests else None


def _sequential_share(found: BlockObservation) -> float | None:
    count = _total(found)["seek_sectors"]["count"]
    return _total(found)["requests_sequential"] / count if count else None


PROBE = Probe(
    NAME,
    "Block-layer events of the target's devices: queue, merge, insert, issue, complete.",
    BlockOptions,
    ("block device", "tracefs"),
    tuple(_metrics()),
)
