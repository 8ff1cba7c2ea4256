"""`kind = "fio"`: a fio job file, run by iolab's engine or by fio itself."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import PrivateAttr
from typing_extensions import override

from iolab.base.bounded_file import EXPERIMENT_BYTES_MAX, read_bounded
from iolab.base.errors import InputError
from iolab.base.option import Bytes, Options, option
from iolab.base.toml import TomlTable
from iolab.domain.trial import Phase
from iolab.domain.workload.fio_file import job_file, translate
from iolab.domain.workload.fio_file.ini import JobFileProblems, filled
from iolab.domain.workload.fio_file.translate import Plan
from iolab.domain.workload.kind import Conflict, Kind


class FioOptions(Options):
    """The options of `kind = "fio"`."""

    file: str | None = option(
        None,
        "The job file; a relative path is relative to the experiment's directory. A run keeps a copy.",
        default_is="must be given, or job",
    )
    job: str | None = option(None, "The text of a job file, instead of file.", default_is="file", lines=True)
    runner: Literal["iolab", "fio"] = option("iolab", "What runs it: iolab's engine, or the installed fio.")
    engine: (
        Literal["io_uring", "io_uring_cmd", "libaio", "psync", "sync", "pvsync", "pvsync2", "mmap", "null"] | None
    ) = option(None, "ioengine of every job, instead of the job's own.", default_is="the jobs' own")
    options: dict[str, str | int | float | bool] = option(
        {},
        "Options of fio for every job, instead of the job's own: { iodepth = 32 }.",
        expected='a table of fio\'s options such as { iodepth = 32, bs = "4k" }',
    )
    size: Bytes | None = option(
        None, "Size of jobs that set none.", unit="bytes", gt=0, default_is="must be in the job"
    )
    relocate: bool = option(False, "Put files that jobs name by absolute paths into the target.")

    _places: list[Path] = PrivateAttr(default_factory=list)
    """The first job file that is there."""
    _run: Path | None = PrivateAttr(default=None)
    """Below it, no link is followed."""

    def model_post_init(self, context: Any) -> None:
        """A run's experiment has the run's copy of the file; any other the file beside it, and only if there is none
        the copy, for who took the experiment of a run with its files."""
        given = context or {}
        if (copies := given.get("copies")) is not None:
            self._places = [copies / attachment_name(self.file or "")]
            self._run = copies.parent
        else:
            directory = Path(given.get("experiment", "")).parent
            self._places = [directory / (self.file or ""), directory / "files" / attachment_name(self.file or "")]

    @property
    @override
    def attachments(self) -> dict[str, str]:
        return {} if self.file is None else {attachment_name(self.file): filled(self._text, os.environ)}

    @property
    @override
    def named_paths(self) -> list[str]:
        return [] if self.relocate else self.plan.named_paths

    @cached_property
    def plan(self) -> Plan:
        """What the job file comes to: its phases, and the files that they need. Read once."""
        return self._read[0]

    @cached_property
    def problems(self) -> list[str]:
        """What is wrong with the job file, a line each, in file order; empty if it can be run."""
        return self._read[1].lines()

    @cached_property
    def _read(self) -> tuple[Plan, JobFileProblems]:
        problems = JobFileProblems(self.file or "job")
        changes = {name: _written(value) for name, value in self.options.items()}
        if self.engine is not None:
            changes["ioengine"] = self.engine
        jobs = job_file.read(self._text, problems, runner=self.runner, environment=os.environ, changes=changes)
        found = translate.plan(jobs, default_size=self.size, problems=problems, runner=self.runner)
        return found, problems

    @cached_property
    def _text(self) -> str:
        """Raises OSError or UnicodeDecodeError: `_conflicts` looks first."""
        if self.file is None:
            return self.job or ""
        place = next((place for place in self._places if place.exists()), self._places[0])
        try:
            return read_bounded(place, EXPERIMENT_BYTES_MAX, "a job file", within=self._run).decode()
        except InputError as error:
            raise OSError(errno.EINVAL, error.what) from None


def attachment_name(file: str) -> str:
    """The name of a run's copy: the path, as one name."""
    return file.replace("%", "%25").replace("/", "%2F")


def _written(value: str | int | float | bool) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _conflicts(options: FioOptions) -> Iterator[Conflict]:
    if (options.file is None) == (options.job is None):
        yield Conflict(
            ("file",), 'name the job file, file = "job.fio", or give its text, job = """...""", one of the two'
        )
        return
    key = "file" if options.job is None else "job"
    try:
        lines = options.problems
    except UnicodeDecodeError as error:
        lines = [f"{options.file}: not UTF-8 text at byte {error.start}"]
    except OSError as error:
        lines = [f"{options.file}: cannot read it: {error.strerror}"]
    for line in lines:
        yield Conflict((key,), line)


def _phases(options: FioOptions, seed: int, devices: int = 1) -> list[Phase]:
    return translate.phases(options.plan, seed, devices)


def _override(table: TomlTable, changes: Mapping[str, Any]) -> TomlTable:
    """fio's own options are replaced one by one."""
    return {**table, **changes, "options": {**table.get("options", {}), **changes.get("options", {})}}


KIND = Kind(
    name="fio",
    help="A fio job file, run by iolab's engine, on a simulated machine, or by fio itself.",
    options=FioOptions,
    conflicts=_conflicts,
    phases=_phases,
    override=_override,
    file_bytes=lambda options: options.plan.file_bytes,
)
