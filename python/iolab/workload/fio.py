"""`kind = "fio"`: a fio job file, run by iolab's engine or by fio itself."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import PrivateAttr

from iolab.option import Bytes, Options, option
from iolab.trial import Phase
from iolab.workload.kind import Conflict, Kind

if TYPE_CHECKING:
    from iolab.fio.problem import Problems
    from iolab.fio.translate import Plan


class FioOptions(Options):
    file: str | None = option(
        None,
        "The job file; a relative path counts from the experiment's directory. A run keeps a copy.",
        default_is="must be given, or job",
    )
    job: str | None = option(None, "The text of a job file, instead of file.", default_is="file")
    runner: Literal["iolab", "fio"] = option("iolab", "Who runs it: iolab's engine, or the fio that is installed.")
    engine: Literal["io_uring", "libaio", "psync", "sync", "pvsync", "pvsync2", "mmap", "null"] | None = option(
        None, "ioengine of every job, instead of its own.", default_is="as the jobs say"
    )
    options: dict[str, str | int | float | bool] = option(
        {},
        "Options of fio for every job, instead of its own: { iodepth = 32 }.",
        expected='a table of fio\'s options such as { iodepth = 32, bs = "4k" }',
    )
    size: Bytes | None = option(
        None, "Size of jobs that give none.", unit="bytes", gt=0, default_is="must be in the job"
    )
    relocate: bool = option(False, "Put files that jobs name by absolute paths into the target.")

    _directories: list[Path] = PrivateAttr(default_factory=list)

    def model_post_init(self, context: Any) -> None:
        """A run's own directory has its copy of the file; an experiment's is beside it."""
        directory = Path((context or {}).get("experiment", "")).parent
        self._directories = [directory / "files", directory]

    @property
    def attachments(self) -> dict[str, str]:
        from iolab.fio.ini import filled

        return {} if self.file is None else {attachment_name(self.file): filled(self._text, os.environ)}

    @property
    def named_paths(self) -> list[str]:
        return [] if self.relocate else self.plan.named_paths

    @cached_property
    def plan(self) -> Plan:
        return self._read[0]

    @cached_property
    def problems(self) -> list[str]:
        return self._read[1].lines()

    @cached_property
    def _read(self) -> tuple[Plan, Problems]:
        from iolab.fio import job_file, translate
        from iolab.fio.problem import Problems

        problems = Problems(self.file or "job")
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
        copy = self._directories[0] / attachment_name(self.file)
        return (copy if copy.exists() else self._directories[1] / self.file).read_bytes().decode()


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
    from iolab.fio import translate

    return translate.phases(options.plan, seed, devices)


def _override(table: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """fio's own options are replaced one by one."""
    return {**table, **changes, "options": {**table.get("options", {}), **changes.get("options", {})}}


KIND = Kind(
    name="fio",
    help="A fio job file, run by iolab's engine, on a modelled machine, or by fio itself.",
    options=FioOptions,
    conflicts=_conflicts,
    phases=_phases,
    override=_override,
    file_bytes=lambda options: options.plan.file_bytes,
)
