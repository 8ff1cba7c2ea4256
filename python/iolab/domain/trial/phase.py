"""The steps of a trial: one class per kind. What each is run by stands in `RUNNERS` of `iolab.machines.host.host`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, TypedDict, TypeVar

from pydantic import Discriminator, Field, Tag
from typing_extensions import override

from iolab.domain import native_types as native
from iolab.domain.trial.control_group import ControlGroup
from iolab.domain.trial.target import DOCUMENT, Reach, Spec


class PhaseOverlap(Spec):
    """What a phase is to others that run at the same time."""

    follows: bool
    """It begins together with the phase before it; else it is the first of those that do."""
    stops_others: bool
    """Its end stops those beside it."""


class PhaseSpec(Spec):
    """One step of a workload: what the rest of the house asks of any kind."""

    name: str
    measured: bool
    """False for laying out files: run, but no metrics."""
    fills: bool = Field(default=False, exclude_if=lambda fills: not fills)
    """Not measured, and asked for: what is there is overwritten, even if what is measured only reads."""
    beside: PhaseOverlap | None = Field(default=None, exclude_if=lambda beside: beside is None)
    """None: it runs alone."""

    @property
    @abstractmethod
    def writes(self) -> bool:
        """Whether it changes what the target holds."""

    @property
    def overwrites(self) -> bool:
        """Whether it does so on a target that is there already; files are laid out only if another phase does."""
        return self.writes and (self.measured or self.fills)

    @property
    def verifies(self) -> bool:
        """Whether it checks what it reads against what was written."""
        return False

    @property
    def takes_devices(self) -> bool:
        """Whether it makes and mounts filesystems itself, on devices that are bare until then."""
        return False

    @property
    def reach(self) -> frozenset[Reach]:
        """What it changes, while it runs, that other runs share; a setting may change more."""
        return frozenset()

    @property
    def offered(self) -> tuple[str, ...]:
        """The operations that its jobs are to do (names in `iolab.domain.metric.OPS`); others have no rows."""
        return ()

    @property
    def measures(self) -> tuple[str, ...]:
        """The metrics that its record has under `measures`."""
        return ()

    @property
    def late_starts_ns(self) -> dict[str, int]:
        """From when on each job that begins later than the phase offers I/O, since the phase's start."""
        return {}

    @property
    def weighted_groups(self) -> tuple[WeightedGroup, ...]:
        """Jobs that are measured together too, against each other by weight."""
        return ()

    @property
    def control_groups(self) -> list[ControlGroup]:
        """The control groups that its jobs are to run in; none: in those that there are."""
        return []

    @property
    def job_names(self) -> tuple[str, ...]:
        """Its jobs that are measured one by one too."""
        return ()

    @property
    def waits_for_syncs(self) -> bool:
        """Whether its jobs wait for data to be durable while they run."""
        return False

    @property
    def commits(self) -> bool:
        """Whether what its jobs write are the records of a log, whose commits are measured."""
        return False

    @property
    def queue_depth(self) -> int:
        """The most I/Os that one of its jobs keeps in flight."""
        return 1

    def in_memory(self, memory_bytes: int) -> Self:
        """The same, on a simulated machine that has so much memory."""
        return self

    def of_part(self, part: str, name: str) -> Self:
        """The same under that name, with files of its own: they are named after the part."""
        return self.model_copy(update={"name": name})

    @abstractmethod
    def on_cpus(self, cpus: list[int]) -> Self:
        """The same phase with its jobs on these CPUs only."""

    def submitting_on(self, cpu: int) -> Self | None:
        """The same, its I/O submitted on that CPU wherever its threads run; None if it can't be."""
        return None

    @property
    @abstractmethod
    def drops_caches(self) -> bool:
        """Whether the page cache is dropped first."""

    @abstractmethod
    def dropping_caches(self, drop: bool) -> Self:
        """The same, with or without dropping the page cache first."""

    def on_filesystem(self, changes: Mapping[str, str | None]) -> Self:
        """The same, with another `filesystem`, `mkfs_options` or `mount_options` if it makes one itself."""
        return self


class LoadPhase(PhaseSpec):
    """I/O offered by the engine."""

    kind: Literal["load"] = "load"
    load: Annotated[native.Phase, DOCUMENT]
    """The engine's phase (crates/measure/workload/src/phase.rs) with paths relative to the target's root; the machine
    makes them absolute. A file may name its `place`: which of the target's devices it lies on, from 0."""

    @property
    @override
    def writes(self) -> bool:
        return any(job["read_share"] < 1.0 for job in self._jobs)

    @property
    @override
    def verifies(self) -> bool:
        return bool(self.load["verify"])

    @property
    @override
    def offered(self) -> tuple[str, ...]:
        groups = self.load["groups"]
        jobs = [job for group in groups if group["engine"] != "null" for job in group["jobs"]]
        asked = {
            "read": any(job["read_share"] > 0 for job in jobs),
            "write": any(job["read_share"] < 1 for job in jobs),
            "sync": any(_syncs(job) for job in jobs),
            "discard": any(_replays(job, "discards") for job in jobs),
            "commit": any(job.get("commits", False) for job in jobs),
            "null": any(group["engine"] == "null" for group in groups),
        }
        return tuple(op for op, is_asked in asked.items() if is_asked)

    @property
    @override
    def job_names(self) -> tuple[str, ...]:
        return tuple(job["name"] for job in self._jobs)

    @property
    @override
    def waits_for_syncs(self) -> bool:
        return any(job["sync"] is not None or _replays(job, "flushes") for job in self._jobs)

    @property
    @override
    def commits(self) -> bool:
        return "commit" in self.offered

    @property
    @override
    def queue_depth(self) -> int:
        return max((job["queue_depth"] for job in self._jobs), default=1)

    @property
    @override
    def measures(self) -> tuple[str, ...]:
        if any("replay" in job for job in self._jobs):
            return REPLAY_MEASURES
        searches = any("depth_search" in job for job in self._jobs)
        rules = [rule for job in self._jobs if (rule := job.get("steady_state")) is not None]
        is_snia = any(rule.get("spread_limit") is not None for rule in rules)
        return (
            *(("queue_depth_found",) if searches else ()),
            *(("steady_after_ns",) if rules else ()),
            *(STEADY_MEASURES if is_snia else ()),
        )

    @property
    @override
    def late_starts_ns(self) -> dict[str, int]:
        return {job["name"]: start for job in self._jobs if (start := job.get("start_ns")) is not None}

    @override
    def of_part(self, part: str, name: str) -> Self:
        files: list[native.FileSpec] = [{**file, "path": f"{part}.{file['path']}"} for file in self.load["files"]]
        return self.model_copy(update={"name": name, "load": {**self.load, "name": name, "files": files}})

    @override
    def on_cpus(self, cpus: list[int]) -> Self:
        groups: list[native.GroupSpec] = [{**group, "cpus": cpus} for group in self.load["groups"]]
        return self._with(groups=groups)

    @override
    def submitting_on(self, cpu: int) -> Self | None:
        groups = self.load["groups"]
        if any(group["engine"] != "io_uring" for group in groups):
            return None
        polled: list[native.GroupSpec] = [{**group, "sqpoll": True, "sqpoll_cpu": cpu} for group in groups]
        return self._with(groups=polled)

    @property
    @override
    def drops_caches(self) -> bool:
        return bool(self.load["drop_caches"])

    @override
    def dropping_caches(self, drop: bool) -> Self:
        return self._with(drop_caches=drop)

    def with_files(self, files: list[native.FileSpec]) -> Self:
        """The same on these files, in their order."""
        return self._with(files=files)

    def _with(self, **changes: Any) -> Self:
        return self.model_copy(update={"load": {**self.load, **changes}})

    @property
    def _jobs(self) -> list[native.JobSpec]:
        return [job for group in self.load["groups"] for job in group["jobs"]]


REPLAY_MEASURES = (
    "arrivals_late_percent",
    "arrivals_late_queue_full_percent",
    "lateness_ns_p99",
    "arrival_rate_share",
    "queue_depth_distance",
    "refused_discards",
)
"""What a phase measures that replays a trace."""
STEADY_MEASURES = ("steady_iops", "steady_slope_percent", "steady_spread_percent")
"""What a phase measures besides that ends when a rate is steady by SNIA's rule."""


def _syncs(job: native.JobSpec) -> bool:
    return job["sync"] is not None or job["sync_at_end"] or _replays(job, "flushes")


def _replays(job: native.JobSpec, what: Literal["flushes", "discards"]) -> bool:
    replay = job.get("replay")
    return replay is not None and replay.get(what, False)


class DevicesPhase(PhaseSpec):
    """What is done to whole devices, bare until then, by processes of its own."""

    cpus: list[int] | None
    drop_caches: bool

    writes: ClassVar[bool] = True
    takes_devices: ClassVar[bool] = True

    @override
    def on_cpus(self, cpus: list[int]) -> Self:
        return self.model_copy(update={"cpus": cpus})

    @property
    @override
    def drops_caches(self) -> bool:
        return self.drop_caches

    @override
    def dropping_caches(self, drop: bool) -> Self:
        return self.model_copy(update={"drop_caches": drop})


class TimedCommandPhase(DevicesPhase):
    """A shell command in a directory."""

    kind: Literal["command"] = "command"
    command: str
    """For `sh -c`."""
    directory: str | None
    """None: the target's own."""

    takes_devices: ClassVar[bool] = False


class CommandsPhase(DevicesPhase):
    """A shell command on each of the target's devices, all devices at once. A job is a device; its time has the mount
    before and the unmount after the command in it, and the mkfs if one is made."""

    kind: Literal["commands"] = "commands"
    command: str | None
    """For `sh -c`, in the root of the device's filesystem; None: nothing between mount and unmount."""
    environment: dict[str, str]
    """What the command finds besides DEVICE and TARBALL."""
    makes_filesystem: bool
    filesystem: str | None
    """None: the target's, else ext4; likewise the options."""
    mkfs_options: str | None
    mount_options: str | None
    tarball: str | None
    """An existing file; None: a source tree that iolab makes of `source_tree`."""
    source_tree: dict[str, int] | None
    """The arguments of `machine.source_tree.tarball`."""

    @override
    def on_filesystem(self, changes: Mapping[str, str | None]) -> Self:
        return self.model_copy(update=dict(changes))


class WeightedGroup(Spec):
    """Jobs that get their share of the device together."""

    name: str
    weight: int | float
    """Of nested groups, the share of the whole that it is entitled to."""
    jobs: list[str]
    """Names of jobs."""


class WeightedLoadPhase(LoadPhase):
    """I/O offered by several engines at once, each a process in a control group with a weight."""

    kind: Literal["weighted_load"] = "weighted_load"  # type: ignore[assignment]
    controller: Literal["auto", "bfq", "cfq", "cost", "none"]
    """What enforces the weights; none: nothing does, the groups are processes only."""
    members: list[WeightedGroup]
    cost_model: str | None = None
    """With controller cost: parameters of its model as io.cost.model takes them; None: the kernel's."""
    cost_qos: str | None = Field(default=None, exclude_if=lambda qos: qos is None)
    """Likewise, as io.cost.qos takes them."""
    groups: list[ControlGroup] = Field(default=[], exclude_if=lambda groups: not groups)
    """The tree whose leaves the members are; empty: the members have weights alone, and the first whose jobs are done
    ends all."""
    ends_with: str | None = Field(default=None, exclude_if=lambda name: name is None)
    """The member whose end ends all, if `groups` are given; None: each runs to its own end."""

    @property
    @override
    def control_groups(self) -> list[ControlGroup]:
        if self.groups or self.controller == "none":
            return self.groups
        return [ControlGroup(name=member.name, io_weight=int(member.weight)) for member in self.members]

    @property
    def needs_version_2(self) -> bool:
        """Whether a controller of its groups is of version 2 of control groups alone."""
        return self.controller == "cost" or any(group.io_latency is not None for group in self.groups)

    @property
    def group_of(self) -> dict[str, str]:
        """By job, the member that it belongs to."""
        return {job: member.name for member in self.members for job in member.jobs}

    @property
    def reach(self) -> frozenset[Reach]:
        """Controllers are enabled for all groups, and io.cost is switched on for the disk; the scheduler that shares
        must stay."""
        return frozenset({"queue", "machine"}) if self.control_groups else frozenset()

    @property
    @override
    def measures(self) -> tuple[str, ...]:
        of_shares = ("fairness_jain_weighted", "share_of_entitlement")
        if not self.groups:
            return of_shares
        compete = self.controller != "none" and len(self.members) > 1
        return (*(of_shares if compete else ()), "io_stalled_percent")

    @property
    @override
    def weighted_groups(self) -> tuple[WeightedGroup, ...]:
        return tuple(self.members)


class PlacedThread(native.ThreadSpec):
    """A thread before its directory is absolute."""

    place: int
    """Which of the target's devices its directory lies on, from 0."""


class MetadataDocument(TypedDict):
    """The engine's metadata phase (crates/measure/workload/src/metadata/phase.rs) before directories are absolute."""

    name: str
    threads: list[PlacedThread]


class MetadataPhase(PhaseSpec):
    """Threads that make, write, sync, close and unlink files."""

    kind: Literal["metadata"] = "metadata"
    metadata: Annotated[MetadataDocument, DOCUMENT]
    """Directories are relative to the root of the device that a thread's `place` names; the machine makes them
    absolute."""
    drop_caches: bool

    writes: ClassVar[bool] = True

    @property
    @override
    def offered(self) -> tuple[str, ...]:
        jobs = [thread["job"] for thread in self.metadata["threads"]]
        asked = {
            "mkdir": any(job["subdirectories"] is not None for job in jobs),
            "create": True,
            "write": any(job["file_bytes"] > 0 for job in jobs),
            "fsync": any(job["sync"] != "none" for job in jobs),
            "system_sync": any(job["sync"].startswith("system") for job in jobs),
            "close": True,
            "unlink": any(not job["keep"] for job in jobs),
        }
        return tuple(op for op, is_asked in asked.items() if is_asked)

    @property
    @override
    def measures(self) -> tuple[str, ...]:
        return ("files_per_s", "files_per_s_wall", "app_overhead_s", "filesystem_used_percent")

    @override
    def of_part(self, part: str, name: str) -> Self:
        threads: list[PlacedThread] = [
            {**thread, "directory": f"{part}.{thread['directory']}"} for thread in self.metadata["threads"]
        ]
        return self.model_copy(update={"name": name, "metadata": {"name": name, "threads": threads}})

    @override
    def on_cpus(self, cpus: list[int]) -> Self:
        threads: list[PlacedThread] = [{**thread, "cpus": cpus} for thread in self.metadata["threads"]]
        return self.model_copy(update={"metadata": {**self.metadata, "threads": threads}})

    @property
    @override
    def drops_caches(self) -> bool:
        return self.drop_caches

    @override
    def dropping_caches(self, drop: bool) -> Self:
        return self.model_copy(update={"drop_caches": drop})


class FioPhase(LoadPhase):
    """I/O offered by fio, on the files that the engine's phase names."""

    kind: Literal["fio"] = "fio"  # type: ignore[assignment]
    options: dict[str, dict[str, str]]
    """By the name of a job of `load`: fio's options as its job file has them."""

    @override
    def submitting_on(self, cpu: int) -> Self | None:
        return None


P = TypeVar("P", bound=PhaseSpec)

SORTED_NUMBER_BYTES = 4


def sorted_bytes(memory_bytes: int, share_percent: float) -> int:
    """What a process sorts: a share of the memory, in whole numbers."""
    return int(memory_bytes * share_percent / 100) // SORTED_NUMBER_BYTES * SORTED_NUMBER_BYTES


class SortPhase(DevicesPhase):
    """Processes that each sort a share of memory, in a control group that has less than they need together, with the
    target's device as swap."""

    kind: Literal["sort"] = "sort"
    processes: int
    process_bytes: int
    """What each process sorts."""
    memory_limit_bytes: int
    share_of_machine: float | None = None
    """In percent: if no limit was given, the share of a simulated machine's memory that each process sorts."""
    swap_bytes: int | None = None
    """The swap space of all devices together; None: all that they have."""
    swappiness: int | None
    """None: as it is."""
    passes: int
    seed: int

    @property
    def reach(self) -> frozenset[Reach]:
        """Controllers are enabled for all groups, swappiness is the machine's, and so is what it swaps."""
        return frozenset({"machine"})

    @override
    def in_memory(self, memory_bytes: int) -> Self:
        if self.share_of_machine is None:
            return self
        each = sorted_bytes(memory_bytes, self.share_of_machine)
        return self.model_copy(update={"memory_limit_bytes": memory_bytes, "process_bytes": each})

    measures: ClassVar[tuple[str, ...]] = (
        "elapsed_s_spread",
        "swap_in_bytes",
        "swap_out_bytes",
        "swap_out_after_first_bytes",
        "swap_bytes_max",
        "memory_bytes_max",
    )


def at_once(phases: Sequence[P]) -> Iterator[list[P]]:
    """The phases in groups of those that begin together, in order."""
    group: list[P] = []
    for phase in phases:
        if group and not (phase.beside is not None and phase.beside.follows):
            yield group
            group = []
        group.append(phase)
    if group:
        yield group


def _kind_of(phase: Any) -> str:
    """Trials written before there were kinds have none."""
    return str(phase.get("kind", "load") if isinstance(phase, dict) else phase.kind)


Phase = Annotated[
    Annotated[LoadPhase, Tag("load")]
    | Annotated[WeightedLoadPhase, Tag("weighted_load")]
    | Annotated[FioPhase, Tag("fio")]
    | Annotated[CommandsPhase, Tag("commands")]
    | Annotated[TimedCommandPhase, Tag("command")]
    | Annotated[MetadataPhase, Tag("metadata")]
    | Annotated[SortPhase, Tag("sort")],
    Discriminator(_kind_of),
]
