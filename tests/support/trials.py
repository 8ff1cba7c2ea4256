"""Trials that a machine can run, and their records, without going through an experiment file."""

from collections.abc import Sequence
from typing import Any

from iolab.domain.record import Record
from iolab.domain.trial import DirectoryTarget, LoadPhase, Phase, ScratchTarget, Trial
from iolab.domain.workload.job import ONE_AT_A_TIME
from iolab.domain.workload.load import file_json, group_json, job_json, phase_json, plain_pattern, until_json

Json = dict[str, Any]
MIB = 1 << 20


def scratch_target(**changes: Any) -> ScratchTarget:
    plain = {
        "size_bytes": 128 * MIB,
        "filesystem": "ext4",
        "mkfs_options": "",
        "mount_options": "",
        "backing_directory": None,
        "sector_bytes": None,
    }
    return ScratchTarget.model_validate({**plain, **changes})


def trial(phases: Sequence[Phase], target: Any = None, controls: Json | None = None) -> Trial:
    return Trial(
        trial=0,
        round=0,
        position=0,
        workload="random",
        setting="default",
        seed=1,
        machine="host",
        target=target or DirectoryTarget(path="."),
        controls=controls or {},
        phases=list(phases),
    )


def io_trial(
    target: Any,
    *,
    controls: Json | None = None,
    read_share: float = 1.0,
    duration_ns: int = 200_000_000,
    engine: Any = "io_uring",
    direct: bool = True,
    verify: bool = False,
    file_bytes: int = 8 * MIB,
    files: int = 2,
) -> Trial:
    """Lays out `files` files, then does random 4 KiB I/O on them for a while."""

    def phase(name: str, **of_job: Any) -> LoadPhase:
        of_job["queue_depth"] = 1 if engine in ONE_AT_A_TIME else 8
        job = job_json("job", files=list(range(files)), align_bytes=4096, length_bytes=file_bytes, seed=1, **of_job)
        group = group_json("group", engine=engine, direct=direct, jobs=[job])
        made = [file_json(f"file.{number}", file_bytes) for number in range(files)]
        load = phase_json(name, files=made, groups=[group], seed=1, interval_ns=50_000_000, verify=verify)
        return LoadPhase(name=name, measured=name == "main", load=load)

    layout = phase("layout", until=until_json(bytes_=files * file_bytes))
    until = until_json(duration_ns=duration_ns)
    return trial(
        [layout, phase("main", pattern=plain_pattern("uniform"), read_share=read_share, until=until)], target, controls
    )


def record(spec: Trial, *phases: Any, **changes: Any) -> Record:
    """What a trial yielded that went well, unless it is changed."""
    plain: Json = {
        "status": "ok",
        "started_unix_ns": 0,
        "ended_unix_ns": 1,
        "controls_applied": {},
        "controls_absent": {},
        "observed": {},
        "faults": [],
        "notes": [],
    }
    return Record(spec=spec, phases=list(phases), **{**plain, **changes})
