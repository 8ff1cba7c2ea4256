"""`show --as output`: the output of commands that failed, all that was kept of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.domain.phase_record import jobs_of

if TYPE_CHECKING:
    from iolab.domain.record import Record
    from iolab.files.store import RunData


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """A block per trial, phase and job. InputError if metrics are asked for, or if no command failed."""
    if metrics:
        raise InputError("the output of commands has no metrics", where="--metric", remedy="leave --metric out")
    failed = run.trials.filter(status="failed")["trial"].to_list()
    blocks = [block for trial in failed for block in _blocks(run.record(trial))]
    if not blocks:
        raise InputError("no command of this run failed", where=str(run.path), remedy="show it as plain")
    return "\n".join(blocks)


def _blocks(record: Record) -> Iterator[str]:
    spec = record.spec
    for phase in record.phases:
        for name, job in jobs_of(phase).items():
            if "output" in job:
                head = f"*** trial {spec.trial}: {spec.workload} under {spec.setting}, {phase['phase']} on {name}"
                yield f"{head}\n{job['output']}" + ("" if job["output"].endswith("\n") else "\n")
