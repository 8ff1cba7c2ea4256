"""The peer: runs fio and reads what a comparison needs from its JSON."""

import json
import shlex
import subprocess
from dataclasses import dataclass

TIME_LIMIT_S = 60.0


@dataclass(frozen=True)
class Sample:
    """One arm in one round."""

    iops: float
    cpu_ns_per_io: float
    """User and system time of the load generator's own process, over the measured time."""

    def __str__(self) -> str:
        return f"{self.iops / 1e3:.0f} k IOPS, {self.cpu_ns_per_io:.0f} ns CPU per I/O"


def command(*options: str, warm_up_s: float, duration_s: float) -> list[str]:
    """Latencies are recorded (fio's default); `thread` is left out, so that a job is a process and its CPU time
    includes the ring's kernel workers, as ours does."""
    timing = [f"--ramp_time={warm_up_s * 1e3:.0f}ms", f"--runtime={duration_s * 1e3:.0f}ms", "--time_based"]
    return ["fio", "--name=peer", "--output-format=json", "--randrepeat=0", "--norandommap", *timing, *options]


def run(arguments: list[str]) -> Sample:
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(arguments)}: {done.stderr or done.stdout}")
    return sample(done.stdout)


def sample(output: str) -> Sample:
    """`output` may begin with messages; the JSON begins at the first brace. Sums jobs: rates add up, and each
    job's CPU share is of its own run time."""
    jobs = json.loads(output[output.index("{") :])["jobs"]
    reads = [job["read"] for job in jobs]
    operations = sum(read["total_ios"] for read in reads)
    cpu_ns = sum((job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] * 1e6 for job in jobs)
    return Sample(
        iops=sum(read["iops"] for read in reads),
        cpu_ns_per_io=cpu_ns / operations,
    )
