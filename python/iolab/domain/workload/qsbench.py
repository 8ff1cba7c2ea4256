"""`kind = "qsbench"`: processes that each sort a share of memory that they do not have together: a load of swapping."""

from __future__ import annotations

from collections.abc import Iterator

from iolab.base.option import Bytes, Options, Percent, option
from iolab.base.quantity import format_bytes
from iolab.domain.trial import Phase, SortPhase
from iolab.domain.trial.phase import sorted_bytes
from iolab.domain.workload.conflict import cpus_conflicts
from iolab.domain.workload.kind import Conflict, Kind, cpus_option, replace_options

MEMORY_MIN_BYTES = 16 * 2**20
"""Less leaves no room for the process itself."""
MEMORY_LIMIT_BYTES = 256 * 2**20
SWAP_MIN_BYTES = 2**20


class QsbenchOptions(Options):
    """The options of `kind = "qsbench"`."""

    processes: int = option(4, "Processes that sort at once.", ge=1, le=256)
    share: Percent = option(30.0, "Percentage of memory_limit that each process sorts.", unit="percent", gt=0, le=1000)
    memory_limit: Bytes | None = option(
        None,
        "Memory that all processes may use together; the rest is swapped to the target.",
        unit="bytes",
        ge=MEMORY_MIN_BYTES,
        default_is='"256MiB"; on a simulated machine, its memory',
    )
    swap_size: Bytes | None = option(
        None,
        "Total size of the swap, spread evenly over the target's devices.",
        unit="bytes",
        ge=SWAP_MIN_BYTES,
        default_is="all of the target; on a simulated machine, its swap area",
    )
    passes: int = option(1, "How often each process fills and sorts its memory.", ge=1, le=2**20)
    swappiness: int | None = option(
        None,
        "The kernel's preference for swapping over dropping page cache. Set on the control group if it has its own "
        "value, else as vm.swappiness, which is restored afterwards.",
        ge=0,
        le=200,
        default_is="unchanged",
    )
    cpus: list[int] | None = cpus_option("CPUs that the processes may run on.")
    drop_caches: bool = option(True, "Sync and drop the page cache before the measured phase.")

    @property
    def host_limit(self) -> int:
        """The memory limit on a host, in bytes: as given, else 256 MiB."""
        return MEMORY_LIMIT_BYTES if self.memory_limit is None else self.memory_limit

    @property
    def process_bytes(self) -> int:
        """What each process sorts on a host, in bytes."""
        return sorted_bytes(self.host_limit, self.share)


def _conflicts(options: QsbenchOptions) -> Iterator[Conflict]:
    if not options.process_bytes:
        yield Conflict(("share",), f"{options.share} % of {format_bytes(options.host_limit)} is nothing to sort")
    yield from cpus_conflicts(options.cpus)


def _phases(options: QsbenchOptions, seed: int, devices: int = 1) -> list[Phase]:
    return [
        SortPhase(
            name="sort",
            measured=True,
            processes=options.processes,
            process_bytes=options.process_bytes,
            memory_limit_bytes=options.host_limit,
            share_of_machine=options.share if options.memory_limit is None else None,
            swap_bytes=options.swap_size,
            swappiness=options.swappiness,
            passes=options.passes,
            cpus=options.cpus,
            drop_caches=options.drop_caches,
            seed=seed,
        )
    ]


KIND = Kind(
    name="qsbench",
    help="Processes that together sort more memory than they may use, and swap to the target.",
    options=QsbenchOptions,
    conflicts=_conflicts,
    phases=_phases,
    override=replace_options,
    file_bytes=lambda options: 0,
    compared=("elapsed_s", "elapsed_s_spread", "swap_in_bytes", "swap_out_bytes", "faults_major"),
)
