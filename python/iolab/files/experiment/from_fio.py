"""`iolab run job.fio`: the experiment that a job file by itself stands for, as its text.

The text holds the whole job file, variables filled in, so that the run directory needs no other file.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from iolab.base.errors import InputError
from iolab.base.toml import write, written
from iolab.domain.workload.fio_file import job_file
from iolab.domain.workload.fio_file.command_line import job_text
from iolab.domain.workload.fio_file.ini import JobFileProblems, filled, only
from iolab.domain.workload.fio_file.job_file import JobFile, Runner
from iolab.domain.workload.fio_file.translate import Plan, plan
from iolab.files.experiment.setting_words import setting_tables

ROUNDS_TO_COMPARE = 5
"""Of a job file under settings, unless --rounds says otherwise."""
ONE = "name one place in the job file, or set [target] and relocate = true in an experiment"


def is_job_file(path: Path, text: str) -> bool:
    """By the name, else by what is in it."""
    if path.suffix in (".fio", ".toml"):
        return path.suffix == ".fio"
    return job_file.is_job_file(text) or job_text(text, str(path)) is not None


def text_of(
    path: Path,
    text: str,
    device_bytes: Callable[[Path], int],
    runner: Runner = "iolab",
    sections: Sequence[str] = (),
    settings: Sequence[str] = (),
    *,
    fio_can_run: bool = True,
) -> tuple[str, list[str]]:
    """The experiment of the job file at `path`, and its options that have no effect on iolab's engine.

    Args:
        device_bytes: the size of the device at a path, or an InputError.
        sections: of these jobs alone.
        settings: what to compare, `CONTROL=VALUE` each; none: nothing, in one round.
        fio_can_run: whether errors may name fio as the way out.

    Raises:
        InputError: a line for each problem in it.
    """
    name = str(path)
    if (as_job := job_text(text, name)) is not None:
        text, name = as_job, f"{name}, as a job file"
    if sections:
        text = only(text, sections, name)
    problems = JobFileProblems(name, fio_can_run=fio_can_run)
    jobs = job_file.read(text, problems, runner=runner, environment=os.environ)
    problems.raise_any()
    # First without minding sizes: what is there already may have one.
    unsized = plan(jobs, default_size=2**60, problems=JobFileProblems(str(path)), runner=runner)
    target, size = _target(jobs, unsized, str(path), device_bytes)
    plan(jobs, default_size=size, problems=problems, runner=runner)
    problems.raise_any()
    experiment = _experiment(path, text, target, size, runner, ROUNDS_TO_COMPARE if settings else 1)
    compared = ["", *setting_tables(settings), ""] if settings else []
    return experiment + "\n".join(compared), jobs.accepted if runner == "iolab" else []


def _experiment(path: Path, text: str, target: str, size: int | None, runner: Runner, rounds: int) -> str:
    name = re.sub(r"[^\w.+:-]", "_", path.stem) or "job"
    sized = "" if size is None else f"size = {size}\n"
    return (
        f'title = {written(path.name)}\nrounds = {rounds}\n{target}\n[workloads.{written(name)}]\nkind = "fio"\n'
        f'runner = "{runner}"\n{sized}job = """\n{_multiline(filled(text, os.environ))}"""\n'
    )


def _target(jobs: JobFile, found: Plan, where: str, device_bytes: Callable[[Path], int]) -> tuple[str, int | None]:
    """The [target] table for the places that the jobs name, and the size of what is there."""
    names = found.named_paths
    devices = [name for name in names if name.startswith("/dev/") or _is(name, stat.S_ISBLK)]
    if devices:
        return _devices(names, devices, where, device_bytes)
    directories = {job["directory"] for job in jobs.jobs if job["directory"] is not None}
    if len(names) == 1 and not directories:
        [name] = names
        return _table("file", path=name), Path(name).stat().st_size if _is(name, stat.S_ISREG) else None
    if not names and not directories:
        return "", None
    parents = directories or {str(Path(name).parent) for name in names}
    if len(parents) > 1:
        raise InputError(f"files in several directories: {', '.join(sorted(parents))}", where=where, remedy=ONE)
    return _table("directory", path=parents.pop()), None


def _devices(
    names: Sequence[str], devices: Sequence[str], where: str, device_bytes: Callable[[Path], int]
) -> tuple[str, int | None]:
    if len(devices) < len(names):
        raise InputError("files and devices in one job file", where=where, remedy=ONE)
    sizes = [device_bytes(Path(name)) for name in names]
    if len(names) == 1:
        return _table("device", path=names[0]), sizes[0]
    return _table("device", paths=list(names)), min(sizes)


def _table(kind: str, **values: object) -> str:
    return write({"target": {"kind": kind, **values}})


def _is(name: str, kind: Callable[[int], bool]) -> bool:
    try:
        return kind(Path(name).stat().st_mode)
    except OSError:
        return False


def _multiline(text: str) -> str:
    """As the inside of TOML's three quotes: backslashes, quotes and what is not printed are escaped."""
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').replace("\r\n", "\n")
    escaped = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", lambda found: f"\\u{ord(found[0]):04x}", escaped)
    return escaped if escaped.endswith("\n") else escaped + "\n"
