"""What a guest's agent would say, without one."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fake_machine import record_of
from iolab.domain.phase_record import Usage
from iolab.domain.trial import LoadPhase, MetadataPhase, Phase, SortPhase, TimedCommandPhase, Trial
from iolab.machines.guest.steps import Plan

UP: dict[str, Any] = {"up": "6.1.0-tiny"}
END: dict[str, Any] = {"end": True}


def answers(plan: Plan, records: Sequence[Any]) -> list[dict[str, Any]]:
    """The answers of a guest in which every step succeeded; its phases yield `records`."""
    left = iter(records)
    found = [UP]
    for number, step in enumerate(plan.steps):
        told: Any = {"before": "0", "after": str(step["value"])} if step["do"] == "write" else None
        if number in plan.phases:
            told = {"record": next(left), "ops": 1000}
        found += [{"bytes": 0}] if step["do"] == "symbols" else []
        found.append({"step": number, "value": told})
    return [*found, END]


def record(trial: Trial, phase: Phase) -> Any:
    """What the agent would tell of the phase."""
    if isinstance(phase, LoadPhase):
        return next(one for one in record_of(trial).phases if one["phase"] == phase.name)
    if isinstance(phase, SortPhase):
        return _of_sort(phase)
    if isinstance(phase, TimedCommandPhase):
        used = [4_000_000, 3_000_000, 2, 1, 100, 0]
        told = {"started_unix_ns": 10**18, "elapsed_ns": 8_000_000, "used": used, "output": "done\n"}
        return {**told, "status": 0, "signal": None}
    assert isinstance(phase, MetadataPhase)
    return _of_files(phase)


def _of_sort(phase: SortPhase) -> Any:
    one = {"build_profile": "release", "bytes": 4096, "elapsed_ns": 5000, "started_unix_ns": 10**18, "stopped": False}
    one |= {**_USAGE, "passes": [{"fill_ns": 1000, "sort_ns": 2000}], "sorted": True}
    swapped = {"swap_in_bytes": 4096, "swap_out_bytes": 8192}
    told = {"records": [one] * phase.processes, "before": swapped, "first": swapped, "after": swapped}
    return {**told, "swap_bytes_max": 4096, "memory_bytes_max": None}


def _of_files(phase: MetadataPhase) -> Any:
    latency = {"min_ns": 10, "max_ns": 20, "mean_ns": 15.0, "stddev_ns": 1.0, "histogram": [[10, 20, 100]]}
    ops = ("mkdir", "create", "write", "fsync", "system_sync", "close", "unlink")
    job = {"finished_ns": 1000, "ops": {op: {"count": 100, "bytes": 0, "latency": latency} for op in ops}}
    job |= {"errors": [], "mismatches_count": 0, "mismatches": [], "intervals": []}
    job |= {"measures": {"files_per_s": 5.0, "app_overhead_s": 0.1}}
    names = [thread["job"]["name"] for thread in phase.metadata["threads"]]
    told = {"phase": phase.name, "started_unix_ns": 10**18, "elapsed_ns": 1000, "wall_clock_shift_ns": 0}
    told |= {"measured_from_ns": 0, "measured_to_ns": 1000, "transient": None, "stopped": False, "clock": "tsc"}
    told |= {"build_profile": "release", "process_cpu_user_ns": 1, "process_cpu_system_ns": 1}
    told |= {"groups": [{"name": name, "notes": [], **_USAGE, "jobs": [{**job, "name": name}]} for name in names]}
    of_all = {"files_per_s": 10.0, "files_per_s_wall": 9.0, "app_overhead_s": 0.2, "filesystem_used_percent": 1.0}
    return {**told, "measures": of_all}


_USAGE = asdict(Usage(4, 3, 2, 1, 6, 5))


def lines(messages: Sequence[Any]) -> bytes:
    """As they come."""
    return "".join(f"{json.dumps(message)}\n" for message in messages).encode()


def emulator(path: Path, commands: str) -> Path:
    """A program in QEMU's place: its standard output is what the agent says."""
    path.write_text(f"#!/bin/sh\n{commands}\n")
    path.chmod(0o755)
    return path


def emulator_that_says(path: Path, said: bytes) -> Path:
    """The same, of an agent that says so much and no more, where it is asked to: on standard output or in a file."""
    text = path.with_name(f"{path.name}.said")
    text.write_bytes(said)
    where = 'for word; do case "$word" in file,id=agent,path=*) exec > "${word##*=}";; esac; done'
    return emulator(path, f"{where}\nexec cat {shlex.quote(str(text))}")
