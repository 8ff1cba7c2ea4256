"""An executor without a machine: plausible records, a function of the trial alone, and faults on request."""

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from iolab.domain.executor import OnProgress, Progress, ShouldStop
from iolab.domain.phase_record import GroupRecord, Usage, group_record
from iolab.domain.record import Fault, Record
from iolab.domain.trial import DeviceIdentity, LoadPhase, Trial
from iolab.files.experiment import Experiment, loads
from support.trials import record

MS = 1_000_000
EXPERIMENT = """\
title = "Which is it?"
rounds = 2
seed = 7

[target]
kind = "directory"
path = "."

[workloads.reads]
engine = "psync"
file_size = "1MiB"
read_percent = 100
duration = "1s"

[workloads.both]
engine = "psync"
file_size = "1MiB"
read_percent = 50
jobs = 2
duration = "1s"

[settings.plain]

[settings.pinned]
cpus = [0]

[compare]
metrics = ["rate_bytes_per_s", "latency_ns_p99"]
"""
TRIALS_PER_ROUND = 4


def experiment(text: str = EXPERIMENT) -> Experiment:
    return loads(text, "experiment.toml")


class FakeExecutor:
    """Runs nothing. `faster` is by how much a setting's rate exceeds that of the others; `before` is called before each
    trial and may raise; `status_of` decides how a trial ends."""

    def __init__(
        self,
        *,
        faster: dict[str, float] | None = None,
        before: Callable[[Trial], None] | None = None,
        status_of: Callable[[Trial], str] = lambda _: "ok",
    ) -> None:
        self.ran: list[int] = []
        self._faster = faster or {}
        self._before = before
        self._status_of = status_of

    def expect(self, trials: Iterable[Trial]) -> None: ...

    def admit(self, trial: Trial, should_stop: ShouldStop) -> list[DeviceIdentity]:
        return []

    def run(self, trial: Trial, on_progress: OnProgress, should_stop: ShouldStop) -> Record:
        if self._before:
            self._before(trial)
        on_progress(Progress("main", "running", elapsed_ns=500 * MS, ops=1000, bytes=4096 * 1000, fraction=0.5))
        on_progress(Progress("main", "running", elapsed_ns=1000 * MS, ops=2000, bytes=4096 * 2000, fraction=1.0))
        status = "interrupted" if should_stop() else self._status_of(trial)
        if status != "interrupted":
            self.ran.append(trial.trial)
        return record_of(trial, status=status, speed=self._faster.get(trial.setting, 1.0))


def record_of(trial: Trial, *, status: str = "ok", speed: float = 1.0) -> Record:
    """What a machine of that speed would have handed back."""
    loads = [phase for phase in trial.phases if isinstance(phase, LoadPhase) and phase.measured]
    measured = loads if status not in ("failed", "interrupted") else []
    return record(
        trial,
        *(_phase_record(trial, phase.name, phase.load, speed) for phase in measured),
        status=status,
        started_unix_ns=1_700_000_000_000_000_000 + trial.trial,
        ended_unix_ns=1_700_000_001_000_000_000 + trial.trial,
        faults=[] if status == "ok" else [Fault(what="it broke", errno=5, count=2, phase="main")],
        notes=["polling was refused"],
    )


def _phase_record(trial: Trial, name: str, load: Any, speed: float) -> dict[str, Any]:
    draw = random.Random(f"{trial.seed} {trial.setting} {name}")
    return {
        "phase": name,
        "started_unix_ns": 1_700_000_000_000_000_000,
        "elapsed_ns": 1000 * MS,
        "wall_clock_shift_ns": 0,
        "measured_from_ns": 0,
        "measured_to_ns": 1000 * MS,
        "transient": {"cut_ns": 0, "steady": True},
        "stopped": False,
        "build_profile": "release",
        "clock": "tsc",
        "process_cpu_user_ns": 90 * MS,
        "process_cpu_system_ns": 210 * MS,
        "groups": [_group_record(group, draw, speed) for group in load["groups"]],
    }


def _group_record(group: dict[str, Any], draw: random.Random, speed: float) -> GroupRecord:
    usage = Usage(90 * MS, 200 * MS, context_switches_voluntary=10, context_switches_involuntary=1, faults_minor=3)
    jobs: Any = [_job_record(job, draw, speed, is_null=group["engine"] == "null") for job in group["jobs"]]
    return group_record(group["name"], usage, jobs)


def _job_record(job: dict[str, Any], draw: random.Random, speed: float, *, is_null: bool) -> dict[str, Any]:
    count = int(10_000 * speed * draw.uniform(0.999, 1.001))
    if is_null:
        return {
            **job_of(job["name"], [_op_record(0, draw) for _ in range(3)]),
            "null": _op_record(count, draw),
            "intervals": [{**_interval_record(index, 0, 0), **_null_interval(count // 10)} for index in range(10)],
        }
    reads = int(count * job["read_share"])
    return {
        **job_of(job["name"], [_op_record(reads, draw), _op_record(count - reads, draw), _op_record(0, draw)]),
        "intervals": [_interval_record(index, reads // 10, (count - reads) // 10) for index in range(10)],
    }


def job_of(name: str, ops: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "finished_ns": 1000 * MS,
        **dict(zip(("read", "write", "sync"), ops, strict=True)),
        "errors": [],
        "mismatches_count": 0,
        "mismatches": [],
    }


def _null_interval(count: int) -> dict[str, Any]:
    return {"null_ops": count, "null_bytes": 4096 * count}


def _op_record(count: int, draw: random.Random) -> dict[str, Any]:
    if not count:
        return {"count": 0, "bytes": 0, "latency": None}
    slow = draw.randrange(1, 1 + count // 20)
    latency = {
        "min_ns": 80_000,
        "max_ns": 410_000,
        "mean_ns": (100_000 * (count - slow) + 400_000 * slow) / count,
        "stddev_ns": 20_000.0,
        "histogram": [[99_840, 100_351, count - slow], [399_360, 401_407, slow]],
    }
    return {"count": count, "bytes": 4096 * count, "latency": latency}


def _interval_record(index: int, reads: int, writes: int) -> dict[str, Any]:
    return {
        "start_ns": index * 100 * MS,
        "length_ns": 100 * MS,
        "read_ops": reads,
        "read_bytes": 4096 * reads,
        "write_ops": writes,
        "write_bytes": 4096 * writes,
        "latency_ns_p50": 100_351,
        "latency_ns_p99": 401_407,
        "latency_ns_max": 410_000,
        "latency_counts": [],
    }


class SilentDisplay:
    """Keeps what was said, shows nothing."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def begin(self, path: Path, *, finished: int) -> None: ...

    def planned(self, trials_by_workload: Any) -> None: ...

    def trial_started(self, trial: Trial) -> None: ...

    def trial_progress(self, progress: Progress) -> None: ...

    def trial_finished(self, trial: Trial, record: Record, duration_ns: int) -> None: ...

    def report_line(self, line: str) -> None:
        self.lines.append(line)

    def report_look(self, line: str) -> None:
        self.lines.append(line)

    def end(self) -> None: ...
