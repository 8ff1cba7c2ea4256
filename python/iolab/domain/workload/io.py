"""`kind = "io"`: one job, in any number of copies. The default kind."""

from __future__ import annotations

from collections.abc import Iterator

from iolab.domain.trial import Phase
from iolab.domain.workload.conflict import job_conflicts, phase_conflicts
from iolab.domain.workload.job import JobOptions, PhaseOptions
from iolab.domain.workload.kind import Conflict, Kind, replace_options
from iolab.domain.workload.load import jobs_phases


class IoOptions(JobOptions, PhaseOptions):
    """A job and the phase it runs in."""


def _conflicts(options: IoOptions) -> Iterator[Conflict]:
    yield from phase_conflicts(options)
    yield from job_conflicts(options, options)


def _phases(options: IoOptions, seed: int, devices: int = 1) -> list[Phase]:
    return jobs_phases({"job": options}, options, seed, devices)


KIND = Kind(
    name="io",
    help="One job, in any number of copies.",
    options=IoOptions,
    conflicts=_conflicts,
    phases=_phases,
    override=replace_options,
    file_bytes=lambda options: options.file_bytes * options.file_count,
)
