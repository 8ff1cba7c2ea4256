"""What sorting on a real kernel takes, a host's or a guest's, and the record of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iolab.base.errors import InputError
from iolab.base.quantity import format_bytes
from iolab.domain import native_types as native
from iolab.domain.phase_record import PhaseRecord, Usage, group_record, job_record, phase_record
from iolab.domain.trial import SortPhase
from iolab.domain.trial.trial import derive_seed

SWAP_HEADER_BYTES = 1 << 16
"""More than mkswap takes of an area for itself."""


@dataclass(frozen=True)
class SwapReadings:
    """What was swapped meanwhile: of the whole machine since its boot, by metric, and of the group."""

    before: Mapping[str, int]
    at_first: Mapping[str, int] | None
    """When the first process had sorted all; None: it was not seen."""
    after: Mapping[str, int]
    swap_bytes_max: int | None
    memory_bytes_max: int | None


def areas(phase: SortPhase, places: Sequence[tuple[str, int]]) -> list[int]:
    """How large the swap area on each device is to be. InputError: a device is too small, or all of them are.

    Args:
        places: what to call each device, and its bytes.
    """
    found = [has for _, has in places]
    if phase.swap_bytes is not None:
        each = phase.swap_bytes // len(places)
        small = next((place for place in places if place[1] < each), None)
        if small is not None:
            raise InputError(
                f"swap_size wants {format_bytes(each)} on each device, this has {format_bytes(small[1])}",
                where=small[0],
                remedy="raise [target] size, or lower swap_size",
            )
        found = [each] * len(places)
    return found


def check_room(phase: SortPhase, swap_areas: Sequence[int], where: str) -> None:
    """InputError if what does not fit into memory does not fit into the swap either."""
    room = sum(swap_areas) - SWAP_HEADER_BYTES * len(swap_areas)
    if (swapped := beyond(phase)) > room:
        raise InputError(
            f"{phase.processes} processes of {format_bytes(phase.process_bytes)} exceed the limit of "
            f"{format_bytes(phase.memory_limit_bytes)} by {format_bytes(swapped)}, and there are {format_bytes(room)} "
            "of swap",
            where=where,
            remedy="raise swap_size or [target] size, or lower processes or share",
        )


def beyond(phase: SortPhase) -> int:
    """Bytes of all processes that find no place in their memory."""
    return max(0, phase.processes * phase.process_bytes - phase.memory_limit_bytes)


def specs(phase: SortPhase) -> dict[str, native.SortSpec]:
    """What each process is to sort, by its name."""
    return {
        f"sort.{number}": {
            "bytes": phase.process_bytes,
            "passes": phase.passes,
            "seed": derive_seed(phase.seed, "sort", number),
        }
        for number in range(1, phase.processes + 1)
    }


def record(
    phase: SortPhase, records: Sequence[native.SortRecord], swapping: SwapReadings, notes: Sequence[str]
) -> PhaseRecord:
    """The phase's: a job per process, in the order of `specs`."""
    names = list(specs(phase))
    start_ns = min(record["started_unix_ns"] for record in records)
    ends_ns = [record["started_unix_ns"] - start_ns + record["elapsed_ns"] for record in records]
    groups = [
        group_record(name, _usage(record), [job_record(name, finished_ns=end_ns)], notes if name == names[0] else ())
        for name, record, end_ns in zip(names, records, ends_ns, strict=True)
    ]
    made = phase_record(
        phase.name,
        started_unix_ns=start_ns,
        elapsed_ns=max(ends_ns),
        groups=groups,
        stopped=any(record["stopped"] for record in records),
        measures=_measures(records, swapping),
        failures=[
            {"job": name, "what": "the memory was not in order after it had been sorted"}
            for name, record in zip(names, records, strict=True)
            if not record["sorted"]
        ],
    )
    return {**made, "build_profile": records[0]["build_profile"]}


def _measures(records: Sequence[native.SortRecord], swapping: SwapReadings) -> dict[str, float | None]:
    times_ns = [record["elapsed_ns"] for record in records if not record["stopped"]]
    finished = len(times_ns) == len(records)
    mean_ns = sum(times_ns) / len(times_ns) if finished else None
    first, out = swapping.at_first, "swap_out_bytes"
    return {
        "elapsed_s_spread": (max(times_ns) - min(times_ns)) / mean_ns if mean_ns else None,
        **{metric: swapping.after[metric] - value for metric, value in swapping.before.items()},
        "swap_out_after_first_bytes": swapping.after[out] - first[out] if first is not None and out in first else None,
        "swap_bytes_max": swapping.swap_bytes_max,
        "memory_bytes_max": swapping.memory_bytes_max,
    }


def _usage(record: native.SortRecord) -> Usage:
    return Usage(
        cpu_user_ns=record["cpu_user_ns"],
        cpu_system_ns=record["cpu_system_ns"],
        context_switches_voluntary=record["context_switches_voluntary"],
        context_switches_involuntary=record["context_switches_involuntary"],
        faults_minor=record["faults_minor"],
        faults_major=record["faults_major"],
    )
