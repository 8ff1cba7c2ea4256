"""Our arm: a phase with the options that a user gets by default, run by the engine in a process of its own."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from fio import TIME_LIMIT_S, Sample

SEED = 1

RUN_PHASE = """
import resource, sys
from iolab import _native
load = _native.Load.start(sys.stdin.read(), _native.Memory())
while (record := load.wait(60.0)) is None:
    pass
print(record)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def phase(path: Path, size_bytes: int, options: dict[str, Any]) -> dict[str, Any]:
    """The engine's phase (crates/measure/workload/src/phase.rs) for a workload of kind `io` with these options, on a
    file that is there already."""
    from iolab.domain import workload
    from iolab.domain.trial import LoadPhase

    kind = workload.KINDS["io"]
    parsed = kind.options.model_validate(
        {"file_size": size_bytes, "cut_transient": False, "shared_files": True, **options}
    )
    measured = kind.phases(parsed, SEED)[-1]
    assert isinstance(measured, LoadPhase)
    (file,) = measured.load["files"]
    return {**measured.load, "files": [{**file, "path": str(path), "create": False}]}


def run(phase: dict[str, Any]) -> Sample:
    return sample(record_and_peak_memory(phase)[0])


def peak_memory_bytes(phase: dict[str, Any]) -> int:
    return record_and_peak_memory(phase)[1]


def record_and_peak_memory(phase: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """The engine's record (crates/measure/workload/src/record.rs), and the peak resident set of the process in
    bytes."""
    process = [sys.executable, "-c", RUN_PHASE]
    done = subprocess.run(
        process, input=json.dumps(phase), capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"the engine refused the phase: {done.stderr}")
    record, peak = done.stdout.splitlines()
    return json.loads(record), int(peak)


def sample(answer: dict[str, Any]) -> Sample:
    """Over the measured part, which leaves the warm-up out as fio's `ramp_time` does; CPU time is the process's."""
    reads = [job.get("null") or job["read"] for group in answer["groups"] for job in group["jobs"]]
    errors = [error for group in answer["groups"] for job in group["jobs"] for error in job["errors"]]
    if errors:
        raise RuntimeError(f"errors while measuring: {errors}")
    operations = sum(read["count"] for read in reads)
    elapsed_s = (answer["measured_to_ns"] - answer["measured_from_ns"]) / 1e9
    cpu_ns = answer["process_cpu_user_ns"] + answer["process_cpu_system_ns"]
    return Sample(
        iops=operations / elapsed_s,
        cpu_ns_per_io=cpu_ns / operations,
    )


def describe(options: dict[str, Any]) -> str:
    """As an experiment's line, for the page's list of commands."""
    return "iolab: " + shlex.join(f"{name}={value}" for name, value in options.items())
