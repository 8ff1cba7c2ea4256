"""Trials as JSON that a machine can run, without going through an experiment file."""

from __future__ import annotations

from typing import Any

from iolab.domain.trial import LoadPhase, Trial

Json = dict[str, Any]
MIB = 1 << 20


def scratch_target(**changes: Any) -> Json:
    plain = {
        "kind": "scratch",
        "size_bytes": 128 * MIB,
        "filesystem": "ext4",
        "mkfs_options": "",
        "mount_options": "",
        "backing_directory": None,
        "sector_bytes": None,
    }
    return {**plain, **changes}


def io_trial(
    target: Json,
    *,
    controls: Json | None = None,
    read_share: float = 1.0,
    duration_ns: int = 200_000_000,
    engine: str = "io_uring",
    direct: bool = True,
    verify: bool = False,
    file_bytes: int = 8 * MIB,
    files: int = 2,
) -> Trial:
    """Lays out `files` files, then does random 4 KiB I/O on them for a while."""
    names = [f"file.{number}" for number in range(files)]
    layout = _phase("layout", names, file_bytes, read_share=0.0, engine=engine, direct=direct, verify=verify)
    layout["groups"][0]["jobs"][0]["until"] = {"ops": None, "bytes": files * file_bytes, "duration_ns": None}
    main = _phase("main", names, file_bytes, read_share=read_share, engine=engine, direct=direct, verify=verify)
    main["groups"][0]["jobs"][0]["pattern"] = {"kind": "uniform"}
    main["groups"][0]["jobs"][0]["until"] = {"ops": None, "bytes": None, "duration_ns": duration_ns}
    return Trial.model_validate(
        {
            "trial": 0,
            "round": 0,
            "position": 0,
            "workload": "random",
            "setting": "default",
            "seed": 1,
            "machine": "host",
            "target": target,
            "controls": controls or {},
            "phases": [
                LoadPhase(name="layout", measured=False, load=layout).model_dump(),
                LoadPhase(name="main", measured=True, load=main).model_dump(),
            ],
        }
    )


def _phase(
    name: str, files: list[str], file_bytes: int, *, read_share: float, engine: str, direct: bool, verify: bool
) -> Json:
    job = {
        "name": "job",
        "files": list(range(len(files))),
        "file_order": "sequential",
        "pattern": {"kind": "sequential"},
        "read_share": read_share,
        "blocks": [{"bytes": 4096, "weight": 1.0}],
        "align_bytes": 4096,
        "offset_bytes": 0,
        "length_bytes": file_bytes,
        "queue_depth": 1 if engine in ("psync", "pvsync", "mmap") else 8,
        "arrival": {"kind": "closed", "think_ns": 0, "think_every": 1},
        "until": {"ops": None, "bytes": None, "duration_ns": None},
        "sync": None,
        "sync_at_end": False,
        "seed": 1,
    }
    group = {
        "name": "group",
        "engine": engine,
        "direct": direct,
        "cpus": None,
        "batch": None,
        "fixed_buffers": True,
        "registered_files": True,
        "poll": False,
        "sqpoll": False,
        "sqpoll_cpu": None,
        "fresh_data": True,
        "close_in_time": False,
        "jobs": [job],
    }
    return {
        "name": name,
        "files": [
            {"path": file, "base_bytes": 0, "size_bytes": file_bytes, "create": True, "extend": True} for file in files
        ],
        "groups": [group],
        "warm_up_ns": 0,
        "interval_ns": 50_000_000,
        "cut_transient": False,
        "verify": verify,
        "drop_caches": False,
        "ends_with_first": False,
        "seed": 1,
    }
