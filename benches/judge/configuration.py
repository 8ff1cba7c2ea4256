"""A configuration that is asked of a real kernel and of the model: a load, a drive, a queue, a kernel.

It is plain data; `key` names its stored answer. Every time is in microseconds or milliseconds, as its name states.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

BARE = "none"
"""No filesystem: the jobs read and write the drive itself."""


@dataclass(frozen=True)
class Job:
    """A job of the mix, in `copies` threads."""

    pattern: Literal["random", "sequential"] = "random"
    read_percent: int = 100
    block_kib: int = 4
    depth: int = 1
    """Operations in flight of each copy; 1 is synchronous."""
    copies: int = 1
    think_ms: int = 0
    """Pause of a copy after `think_every` completions."""
    think_every: int = 1
    direct: bool = True
    fsync_every: int = 0
    """Writes between two fsyncs; 0: none."""
    io_max: dict[str, int] = field(default_factory=dict)
    """Limits of its control group, as of a mix; empty: it has none."""
    io_latency_us: int = 0
    """The latency that its group is promised; 0: none."""
    io_weight: int = 0
    """Of its group; 0: the kernel's."""
    io_prio_class: str = ""
    """What becomes of its group's priority class, as of a mix; empty: nothing."""

    @property
    def has_group(self) -> bool:
        """Its control group is told something."""
        return any(getattr(self, key) for key in _OF_GROUPS)

    @property
    def in_flight(self) -> int:
        return self.depth * self.copies


_OF_GROUPS = ("io_max", "io_latency_us", "io_weight", "io_prio_class")


@dataclass(frozen=True)
class Configuration:
    """One question. Its drive is a null_blk with a timer: `drive_depth` commands at once, `latency_us` for each."""

    kernel: str
    """As after `guest:`."""
    latency_us: int
    drive_depth: int
    scheduler: str
    jobs: tuple[Job, ...]
    tunables: dict[str, int] = field(default_factory=dict)
    """Under the kernel's names, in the kernel's units."""
    nr_requests: int = 0
    """0: the kernel's."""
    filesystem: str = BARE
    dirty_percent: int = 0
    """Limit of dirty memory, with half of it in the background; 0: the kernel's."""
    duration_ms: int = 1500
    file_mib: int = 16
    """Of each copy."""
    config: str = ""
    """A file beside this one, of the configuration of a tree's kernel."""
    cost_model: str = ""
    """As io.cost.model takes it; empty: io.cost is off."""
    cost_qos: str = ""
    """As io.cost.qos does."""
    boot: int = 1
    """Which of several boots answers: it draws the offsets, and moves the moment in which the load begins, neither of
    which the question names."""

    @property
    def buffered(self) -> bool:
        return any(not job.direct for job in self.jobs)

    @property
    def has_processes(self) -> bool:
        """Its groups are processes, which make their tasks later: controllers of version 2 alone."""
        return bool(self.cost_qos) or any(job.io_latency_us for job in self.jobs)

    @property
    def keeps_data(self) -> bool:
        """null_blk keeps what is written for a filesystem, which reads it again."""
        return self.filesystem != BARE

    @property
    def files_mib(self) -> int:
        return self.file_mib * sum(job.copies for job in self.jobs)

    def as_json(self) -> dict[str, Any]:
        found = asdict(self)
        # Answers are stored under the text of their question, and most were before these keys.
        jobs = [_without_unset(job, _OF_GROUPS) for job in found["jobs"]]
        if found["boot"] == 1:
            del found["boot"]
        return {**_without_unset(found, ("config", "cost_model", "cost_qos")), "jobs": tuple(jobs)}

    @property
    def key(self) -> str:
        """The same for equal configurations, in every process."""
        text = json.dumps(self.as_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def words(self) -> str:
        """In one line."""
        tunables = "".join(f" {name}={value}" for name, value in sorted(self.tunables.items()))
        requests = f" nr_requests={self.nr_requests}" if self.nr_requests else ""
        dirty = f" dirty={self.dirty_percent}%" if self.dirty_percent else ""
        place = "" if self.filesystem == BARE else f" {self.filesystem}"
        drive = f"{self.latency_us}us x{self.drive_depth}"
        jobs = " | ".join(_job_words(job) for job in self.jobs)
        drive += f" [{self.cost_model}] [{self.cost_qos}]" if self.cost_model else ""
        return f"{self.kernel} {self.scheduler}{tunables}{requests}{place}{dirty} {drive}: {jobs}"


def _without_unset(found: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key not in keys or value}


def _job_words(job: Job) -> str:
    kind = {100: "read", 0: "write"}.get(job.read_percent, f"{job.read_percent}%read")
    parts = [f"{job.copies}x", job.pattern[:4], kind, f"{job.block_kib}k", f"qd{job.depth}"]
    parts += [] if job.direct else ["buffered"]
    parts += [f"think{job.think_ms}ms/{job.think_every}"] if job.think_ms else []
    parts += [f"fsync/{job.fsync_every}"] if job.fsync_every else []
    parts += [f"{key}<={limit}" for key, limit in job.io_max.items()]
    parts += [f"weight={job.io_weight}"] if job.io_weight else []
    parts += [f"latency={job.io_latency_us}us"] if job.io_latency_us else []
    parts += [job.io_prio_class] if job.io_prio_class else []
    return " ".join(parts)


def from_json(found: dict[str, Any]) -> Configuration:
    """The inverse of `as_json`."""
    given = Configuration(**{**found, "jobs": ()})
    return replace(given, jobs=tuple(Job(**job) for job in found["jobs"]))
