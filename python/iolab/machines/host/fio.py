"""Runs one phase with fio itself and makes the phase's record of what it reports.

fio gets each job with its own options and iolab's files. Its jobs are threads of one process, which dies with ours; the
job file goes in and the report comes out through memory, so that nothing is left on a disk.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.base import child_process
from iolab.base.errors import InputError, MachineError
from iolab.base.option import shown
from iolab.base.plain_text import is_one_line
from iolab.base.strict_json import JsonObject
from iolab.domain.executor import Progress
from iolab.domain.fio_report.document import documents
from iolab.domain.trial import FioPhase, Phase
from iolab.domain.workload.fio_file.value import joined
from iolab.machines.host import fio_record
from iolab.machines.system import beneath, command, page_cache

if TYPE_CHECKING:
    from iolab.domain import native_types as native
    from iolab.domain.phase_record import PhaseRecord
    from iolab.machines.host.surroundings import Surroundings

POLL_S = 0.1
STOP_PATIENCE_S = 20.0
INSTALL = "install it: sudo apt-get install fio"

Report = JsonObject
"""fio's own, of which `fio_record` reads what iolab needs."""

OURS = frozenset(
    {
        *("name", "description", "filename", "filename_format", "directory", "nrfiles", "numjobs", "offset"),
        *("offset_increment", "stonewall", "new_group", "group_reporting", "thread", "unlink", "cpus_allowed"),
        *("cpumask", "cpus_allowed_policy", "verify_state_save", "fallocate", "significant_figures"),
        *("lat_percentiles", "clat_percentiles", "slat_percentiles", "percentile_list", "per_job_logs"),
        *("gtod_reduce", "disable_lat", "disable_clat", "disable_slat", "unified_rw_reporting"),
        *("write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log"),
    }
)
"""Options that iolab gives itself, or that would leave files or hide numbers."""


def check(phases: Sequence[Phase]) -> None:
    """Asks fio whether it takes the options of its phases: before anything is laid out, and whatever iolab has of them.
    Nothing if there is no such phase.

    Raises:
        InputError: it does not.
        MachineError: fio is missing.
    """
    for phase in (phase for phase in phases if isinstance(phase, FioPhase)):
        jobs = "\n".join(_section(phase, job, _as_written(options)) for job, options in phase.options.items())
        where = f"phase {phase.name}"
        try:
            command.run(["fio", "-", "--parse-only"], package="fio", where=where, given=jobs)
        except command.CommandFailed as error:
            version = command.run(["fio", "--version"], package="fio", where=where).strip().replace("-", " ")
            raise InputError(
                f"{version}, which is installed, refuses the jobs: {error.what}",
                where=where,
                remedy="see what it takes: fio --cmdhelp=OPTION",
            ) from None


def _installed(phase: FioPhase) -> str:
    tool = command.find("fio")
    if tool is None:
        raise MachineError("fio is not installed", where=f"phase {phase.name}", remedy=INSTALL)
    return tool


def run(phase: FioPhase, around: Surroundings) -> PhaseRecord:
    """The phase's record, in the likeness of the engine's.

    Raises:
        InputError: fio can't be given the files as they lie.
        MachineError: fio is missing, or refuses the jobs.
    """
    tool = _installed(phase)
    paths = (Path(file["path"]) for file in phase.load["files"])
    notes = page_cache.drop(paths) if phase.load["drop_caches"] else []
    with ExitStack() as stack:
        names, fds = beneath.held(phase.load["files"], stack)
        text = job_file(phase, names)
        started_unix_ns = time.time_ns()
        report, stopped = _report(tool, phase, text, fds, around)
    return fio_record.record(phase, report, started_unix_ns=started_unix_ns, stopped=stopped, notes=notes)


def job_file(phase: FioPhase, names: Sequence[str]) -> str:
    """What fio is given: every job with its files as the machine placed them, under names that lead there.

    InputError if a name or a value would not stay on its line, where fio would read the rest as options of their own.
    """
    sections = []
    for group in phase.load["groups"]:
        for job in group["jobs"]:
            options = {**_as_written(phase.options[job["name"]]), **_given(phase, names, group, job)}
            sections.append(_section(phase, job["name"], options))
    return "\n".join(sections)


def _section(phase: FioPhase, name: str, options: Mapping[str, str]) -> str:
    lines = [f"[{name}]", *(f"{option}={text}" if text else option for option, text in options.items())]
    for line in lines:
        if not is_one_line(line):
            what = f"{shown(line)} can't be given to fio: it is not one line without control characters"
            raise InputError(what, where=f"phase {phase.name}")
    return "\n".join(lines) + "\n"


def _as_written(options: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in options.items() if name not in OURS}


def _given(phase: FioPhase, names: Sequence[str], group: native.GroupSpec, job: native.JobSpec) -> dict[str, str]:
    files = [phase.load["files"][number] for number in job["files"]]
    bases = {file["base_bytes"] for file in files}
    if len(bases) > 1 or (len(files) > 1 and len({file["path"] for file in files}) < len(files)):
        raise InputError(
            f"{job['name']} has several files on one device, and fio has one offset for all",
            where=f"phase {phase.name}",
            remedy="give the target a filesystem, or the job one file",
        )
    given = {
        "filename": joined([names[number] for number in job["files"]]),
        "offset": str(bases.pop() + job["offset_bytes"]),
        "thread": "1",
        "fallocate": phase.options[job["name"]].get("fallocate", "none"),
        "lat_percentiles": "1",
        "clat_percentiles": "0",
        "verify_state_save": "0",
    }
    options = phase.options[job["name"]]
    # A share of the file or device may be more than the part of it that is the job's.
    if "filesize" not in options and ("size" not in options or options["size"].endswith("%")):
        given["size"] = str(job["length_bytes"] * len(files))
    if not {"randseed", "randrepeat"} & phase.options[job["name"]].keys():
        given["randseed"] = str(job["seed"])
    if (cpus := group.get("cpus")) is not None:
        given["cpus_allowed"] = ",".join(map(str, cpus))
    return given


def _report(tool: str, phase: FioPhase, text: str, fds: list[int], around: Surroundings) -> tuple[Report, bool]:
    """fio's JSON, and whether it was stopped."""
    # Files in memory, not pipes: one who dies while it is written to ends nobody else, and none waits for the other.
    jobs_fd = os.memfd_create("fio-jobs", 0)
    report_fd = os.memfd_create("fio-report", 0)
    said_fd = os.memfd_create("fio-messages", 0)
    try:
        os.pwrite(jobs_fd, text.encode(), 0)
        process = subprocess.Popen(
            [
                tool,
                "-",
                "--output-format=json+",
                f"--output=/proc/self/fd/{report_fd}",
                "--eta=never",
                *([] if phase.writes else ["--readonly"]),
            ],
            stdin=jobs_fd,
            stdout=said_fd,
            stderr=said_fd,
            pass_fds=[report_fd, *fds],
            env={**child_process.environment(), "LC_ALL": "C"},
            start_new_session=True,
            preexec_fn=command.dying_with_parent(),
        )
        stopped = _follow(process, phase, around)
        found = list(documents(_contents(report_fd), "fio's report"))
        if not found:
            raise _without_report(process.returncode, _words(_contents(said_fd)), f"phase {phase.name}")
        return found[-1].content, stopped
    finally:
        for fd in (jobs_fd, report_fd, said_fd):
            os.close(fd)


def _without_report(exit_status: int, message: str, where: str) -> MachineError:
    if exit_status < 0:
        words = f": {message}" if message else ""
        return MachineError(f"fio was killed by {signal.Signals(-exit_status).name}{words}", where=where)
    return MachineError(
        f"fio refused the jobs: {message or 'it printed nothing'}",
        where=where,
        remedy="see what it takes: fio --cmdhelp=OPTION",
    )


def _follow(process: subprocess.Popen[bytes], phase: FioPhase, around: Surroundings) -> bool:
    """Waits for fio to end; asks it to stop, once, when it should. True when it was asked."""
    begun = time.monotonic()
    deadline = float("inf")
    while True:
        try:
            process.wait(POLL_S)
            return deadline < float("inf")
        except subprocess.TimeoutExpired:
            pass
        now = time.monotonic()
        around.on_progress(_progress(phase, now - begun))
        if deadline == float("inf") and around.should_stop():
            process.send_signal(signal.SIGINT)
            deadline = now + STOP_PATIENCE_S
        if now > deadline:
            process.kill()


def _progress(phase: FioPhase, elapsed_s: float) -> Progress:
    lengths_ns = [job["until"].get("duration_ns") for group in phase.load["groups"] for job in group["jobs"]]
    known_ns = [length for length in lengths_ns if length is not None]
    return Progress(
        phase=phase.name,
        doing="running",
        elapsed_ns=round(elapsed_s * 1e9),
        fraction=min(1.0, elapsed_s * 1e9 / max(known_ns)) if len(known_ns) == len(lengths_ns) else None,
        warming_up=elapsed_s * 1e9 < phase.load["warm_up_ns"],
    )


def _contents(fd: int) -> str:
    os.lseek(fd, 0, os.SEEK_SET)
    with os.fdopen(os.dup(fd), "rb") as file:
        return file.read().decode(errors="replace")


def _words(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return " / ".join(lines[:3]) or json.dumps(message)
