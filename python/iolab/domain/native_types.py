"""Documents that cross the border to Rust, made by `make golden` of crates/bindings/src/json_schema.rs.

They are plain dicts of JSON: Rust checks what it is given, and these types show mypy what it takes and gives. The
schema states what each field means, in which unit and range.
"""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class DistributionRecord(TypedDict):
    """A distribution as JSON carries it: exact moments (null when there is no value) and its buckets."""

    count: int
    histogram: list[list[int]]
    max: int | None
    mean: float | None
    min: int | None
    p50: int | None
    p99: int | None
    stddev: float | None


class Activity(TypedDict):
    """What was done in one direction."""

    back_merges: int
    bios_queued: int
    bytes_completed: int
    completions_local: int
    completions_remote: int
    errors: int
    front_merges: int
    queue_local: int
    queue_remote: int
    request_bytes: DistributionRecord
    request_merges: int
    requests_completed: int
    requests_issued: int
    requests_sequential: int
    requeues: int
    seek_sectors: DistributionRecord
    time_in_device_ns: DistributionRecord
    time_in_queue_ns: DistributionRecord
    time_in_scheduler_ns: DistributionRecord
    time_total_ns: DistributionRecord


class Activities(TypedDict):
    """The figures by direction."""

    other: Activity
    read: Activity
    total: Activity
    write: Activity


AffinityWord = Literal["application", "interrupt", "other"]


AffinityPart = int | AffinityWord


class AffinityKeys(TypedDict):
    """Left out: anywhere."""

    application: NotRequired[AffinityPart | None]
    completion: NotRequired[AffinityPart | None]
    queue: NotRequired[AffinityPart | None]


Allocation = Literal["direct", "workqueue", "data_only", "mapping"]
"""Where `xfs_alloc_vextent` runs; calls for a directory's or an inode's blocks are metadata, a file's blocks are
data."""


ClockKind = Literal["tsc", "monotonic", "model"]
"""The clock that operations are timed with."""


class LatencyRecord(TypedDict):
    """Latencies of operations, each from its due time to its completion."""

    histogram: list[tuple[int, int, int]]
    max_ns: int
    mean_ns: float
    min_ns: int
    stddev_ns: float


class OpRecord(TypedDict):
    """Successful operations of one kind in the measured part."""

    bytes: int
    count: int
    latency: LatencyRecord | None


class Window(TypedDict):
    """What one depth showed for the length of a window."""

    count: int
    late: int
    queue_depth: int
    start_ns: int


class DepthSearchResult(TypedDict):
    """What a search came to."""

    missed: bool
    queue_depth: int | None
    share: float
    target_ns: int
    windows: list[Window]


class ErrorRecord(TypedDict):
    """Failures of one operation with one errno."""

    count: int
    errno: int
    first_offset: int
    first_path: str
    name: str
    op: str


class IntervalRecord(TypedDict):
    """What completed in one interval of the time series."""

    latency_counts: list[tuple[int, int]]
    latency_ns_max: int | None
    latency_ns_p50: int | None
    latency_ns_p99: int | None
    length_ns: int
    null_bytes: NotRequired[int | None]
    null_ops: NotRequired[int | None]
    read_bytes: int
    read_ops: int
    start_ns: int
    write_bytes: int
    write_ops: int


class MismatchRecord(TypedDict):
    """A block that did not hold what was written there."""

    expected: str
    found: str
    offset: int
    path: str


class ReplayRecord(TypedDict):
    """How faithful the replay of a job was."""

    arrivals: int
    arrivals_late: int
    arrivals_late_queue_full: int
    depth_distance: float | None
    lateness_ns_max: int | None
    lateness_ns_p50: int | None
    lateness_ns_p99: int | None
    recorded_depth_mean: float | None
    recorded_rate_per_s: float | None
    refused: int
    replayed_depth_mean: float | None
    replayed_rate_per_s: float | None


SteadyCriterion = Literal["deviation", "slope", "excursion"]
"""When a window is steady."""


RateKind = Literal["operations", "bytes"]
"""The rate that is looked at."""


class SteadyState(TypedDict):
    """A rate that has to be steady. It is looked at in each interval's end, over a window of the last intervals."""

    by: SteadyCriterion
    in_percent: bool
    interval_ns: int
    limit: float
    of: RateKind
    ramp_ns: int
    spread_limit: NotRequired[float | None]
    window_ns: int


class Steadiness(TypedDict):
    """What the search for a steady rate came to."""

    criterion: float | None
    mean_per_s: float | None
    reached_ns: int | None
    spread: NotRequired[float | None]
    wanted: SteadyState


class JobRecord(TypedDict):
    """The record of one job of a load."""

    commit: NotRequired[OpRecord | None]
    depth_search: NotRequired[DepthSearchResult | None]
    discard: NotRequired[OpRecord | None]
    errors: list[ErrorRecord]
    finished_ns: int
    intervals: list[IntervalRecord]
    mismatches: list[MismatchRecord]
    mismatches_count: int
    name: str
    null: NotRequired[OpRecord | None]
    read: OpRecord
    replay: NotRequired[ReplayRecord | None]
    steady_state: NotRequired[Steadiness | None]
    sync: OpRecord
    write: OpRecord


class GroupRecordOfJobRecord(TypedDict):
    """The record of a group: a thread and its jobs."""

    context_switches_involuntary: int
    context_switches_voluntary: int
    cpu_system_ns: int
    cpu_user_ns: int
    cpu_wait_ns: NotRequired[int | None]
    faults_major: int
    faults_minor: int
    jobs: list[JobRecord]
    name: str
    notes: list[str]


class Transient(TypedDict):
    """What the steady-state search found."""

    cut_ns: int
    steady: bool


class ThreadRecord(TypedDict):
    """The record of one thread."""

    errors: list[ErrorRecord]
    finished_ns: int
    intervals: list[IntervalRecord]
    measures: dict[str, float | None]
    mismatches: list[MismatchRecord]
    mismatches_count: int
    name: str
    ops: dict[str, OpRecord]


class GroupRecordOfThreadRecord(TypedDict):
    """The record of a group: a thread and its jobs."""

    context_switches_involuntary: int
    context_switches_voluntary: int
    cpu_system_ns: int
    cpu_user_ns: int
    cpu_wait_ns: NotRequired[int | None]
    faults_major: int
    faults_minor: int
    jobs: list[ThreadRecord]
    name: str
    notes: list[str]


class MetadataRecord(TypedDict):
    """The record of a metadata load."""

    build_profile: str
    clock: ClockKind
    elapsed_ns: int
    groups: list[GroupRecordOfThreadRecord]
    measured_from_ns: int
    measured_to_ns: int
    measures: dict[str, float | None]
    phase: str
    process_cpu_system_ns: int
    process_cpu_user_ns: int
    started_unix_ns: int
    stopped: bool
    transient: Transient | None
    wall_clock_shift_ns: int


class MirrorSpec(TypedDict):
    """The path to the other controller's cache."""

    bytes_per_s: int
    latency_ns: int


class ArrayCache(TypedDict):
    """The cache for reads, prefetching and writes."""

    destages_max: int
    dirty_ns_max: int
    high_percent: int
    line_bytes: int
    low_percent: int
    mirror: NotRequired[MirrorSpec | None]
    prefetch_bytes: int
    read_bytes: int
    stream_after_commands: int
    streams: int
    write_bytes: int


class ClosedArrival(TypedDict):
    """A new operation is offered when one completes; after every `think_every` completions the job pauses
    `think_ns`."""

    kind: Literal["closed"]
    think_every: int
    think_ns: int


Spacing = Literal["constant", "poisson", "constant_each"]
"""The distances between due times."""


class OpenArrival(TypedDict):
    """Operations are due at times that do not depend on completions. Latency counts from the due time, so that a stall
    is not forgotten (coordinated omission)."""

    kind: Literal["open"]
    rate_per_s: float
    spacing: Spacing


Arrival = ClosedArrival | OpenArrival
"""When operations are offered."""


class BackEnd(TypedDict):
    """The disks behind the controller, as no more than an access time and a rate."""

    access_ns: int
    bytes_per_s: int
    holds_server: NotRequired[bool | None]
    servers: int
    write_access_ns: NotRequired[int | None]
    write_bytes_per_s: NotRequired[int | None]


class BlockColumns(TypedDict):
    """What happened in each interval."""

    bytes_completed_per_s: list[float]
    length_s: list[float]
    merges_per_s: list[float]
    queue_depth: list[float]
    queue_depth_max: list[int]
    requests_completed_per_s: list[float]
    requests_waiting: list[float]


class Conservation(TypedDict):
    """What became of every bio. queued + split + unqueued = merged + completed + in_flight + unmatched, always."""

    completed: int
    in_flight: int
    merged: int
    queued: int
    split: int
    unmatched: int
    unqueued: int


class DeviceReport(TypedDict):
    """What one device did."""

    completed_by_cpu: list[int]
    conservation: Conservation
    device: str
    events: dict[str, int]
    events_unmatched: int
    other: Activity
    queue_depth_max: int
    queue_depth_mean: float
    queued_by_cpu: list[int]
    read: Activity
    times_unknown: int
    total: Activity
    write: Activity
    writes_flushed: int


class BlockSeries(TypedDict):
    """Columns over time."""

    at_ns: list[int]
    columns: BlockColumns


class BlockObservation(TypedDict):
    """What docs/reference/probes.md describes as the observation of `block`."""

    all: Activities
    devices: list[DeviceReport]
    elapsed_ns: int
    events_lost: int
    losses_uncounted: int
    notes: list[str]
    series: dict[str, BlockSeries]
    trace_events_lost: int


class BlockSize(TypedDict):
    """A size of operations and how often it is drawn."""

    bytes: int
    weight: float


Method = Literal["fiemap", "fibmap", "model"]
"""How a filesystem is asked for a file's extents."""


class Bounds(TypedDict):
    """How much is examined, and how much of it is reported."""

    extents_max: int
    listed_max: int
    method: NotRequired[Method | None]


class BurstFigures(TypedDict):
    """Arrivals in windows of one length."""

    dispersion: float | None
    empty_share: float
    mean: float
    most: int
    window_ns: int
    windows: int


class Cache(TypedDict):
    """Segments for reads and read-ahead, and the write cache."""

    dirty_sectors_max: int
    read_ahead_min_sectors: NotRequired[int]
    read_ahead_sectors: int
    segment_sectors: int
    segments: int
    write_back: bool


class CgroupSpec(TypedDict):
    """A control group. Those that are not named share the root, with the weight that kernels give it: 1000."""

    name: str
    weight: int


class Coalesce(TypedDict):
    """The feature as the host has set it."""

    completions: int
    time_ns: int


Collector = Literal["greedy", "cost_benefit", "windowed"]
"""What decides which block is collected (docs/model/flash.md)."""


Distance = Literal["core", "socket", "node", "machine"]
"""The smallest part of the machine that has both of two different CPUs in it."""


CompletionVariant = Literal[
    "softirq", "remote_softirq", "thread", "grouped", "cache_aware", "multi_queue_direct", "multi_queue"
]
"""Forms of the path from a device's interrupt to a completed request."""


class CompletionSpec(TypedDict):
    """Cycles, unless the name has another unit."""

    bio_lines: int
    call_ns: NotRequired[int]
    complete_cycles: int
    control_block_lines: int
    enter_cycles: int
    hand_over_cycles: int
    interrupt_cycles: int
    interrupt_stalled_cycles: int
    list_lines: int
    local_cycles: NotRequired[int]
    request_lines: int
    shares_cache: Distance
    softirq_cycles: int
    splice_cycles: int
    variant: NotRequired[CompletionVariant]


class ControllerSpec(TypedDict):
    """The front of the array."""

    command_ns: int
    controllers: int
    latency_ns: int
    port_bytes_per_s: int


class PerOperation(TypedDict):
    """A value for READ and one for WRITE."""

    read: int
    write: int


class CostSpec(TypedDict):
    """Mean times of the client's steps; the two spreads give how they vary."""

    completion_wakeup_ns: int
    copy_bytes_per_s: int
    decode_ns: PerOperation
    encode_ns: PerOperation
    lookup_ns: int
    register_ns: int
    reply_ns: int
    rpciod_wakeup_ns: int
    send_ack_ns: int
    send_done_ns: int
    transmit_ns: int
    wakeup_spread: float
    work_spread: float


class ModelEventSum(TypedDict):
    """Over all CPUs."""

    counted_share: float
    value: float


class SharingFigures(TypedDict):
    """What CPUs took from one another of the objects of a kind, and of their locks."""

    locked: int
    transfer_cycles: int
    transfers: int
    waited: int
    waited_ns: int


class CounterObservation(TypedDict):
    """What docs/reference/probes.md describes as the observation of `counters`."""

    absent: dict[str, str]
    elapsed_ns: int
    events: dict[str, ModelEventSum]
    notes: list[str]
    sharing: dict[str, SharingFigures]


class EventSum(TypedDict):
    """Over all CPUs."""

    counted_share: float
    value: float


class CountersObservation(TypedDict):
    """What docs/reference/probes.md describes as the observation of `counters`."""

    absent: dict[str, str]
    elapsed_ns: int
    events: dict[str, EventSum]
    notes: list[str]


class Frequency(TypedDict):
    """The clock frequency of the CPUs, a mean over them."""

    hz_max: float
    hz_mean: float
    source: str


class SampledSeries(TypedDict):
    """What was read over time: a row per interval."""

    at_ns: list[int]
    columns: dict[str, list[float | None]]


class Times(TypedDict):
    """When something was read, how often and at what cost."""

    cost_cpu_ns: NotRequired[int | None]
    elapsed_ns: int
    interval_ns: int
    readings: int
    readings_failed: int
    started_unix_ns: int


class CpuObservation(TypedDict):
    """What docs/reference/probes.md describes as the observation of `cpu`."""

    cpus_online: int
    frequency: Frequency | None
    means: dict[str, dict[str, float | None]]
    series: dict[str, SampledSeries]
    ticks_per_s: int
    times: Times


class CpuSpec(TypedDict):
    """CPUs as a number, and what calls cost on them."""

    call_ns: int
    clock_hz: NotRequired[int | None]
    completion_ns: int
    copy_call_ns: NotRequired[int | None]
    count: int
    interrupt_ns: NotRequired[int | None]
    jitter: float
    page_copy_ns: int
    page_write_ns: NotRequired[int | None]
    time_slice_ns: int
    write_call_ns: NotRequired[int | None]


class IdleState(TypedDict):
    """A CPU that has been idle for `after_ns` is in this state, and comes out of it after `exit_ns`."""

    after_ns: int
    exit_ns: int


class InterruptSpec(TypedDict):
    """Interrupts that one CPU sends another."""

    latency_ns: int
    latency_other_node_ns: int
    receive_cycles: int
    send_cycles: int


class OfflineCpu(TypedDict):
    """A CPU that is taken out for a while, or for good."""

    cpu: int
    from_ns: int
    until_ns: NotRequired[int | None]


class SchedulingSpec(TypedDict):
    """The task scheduler's times and costs."""

    migrates_within: Distance
    preempt_after_ns: int
    run_queue_lines: int
    switch_cycles: int
    task_lines: int
    time_slice_ns: int
    wake_cycles: int


class Topology(TypedDict):
    """How many of each there are in the next larger one."""

    cores_per_socket: int
    numa_nodes: int
    sockets_per_node: int
    threads_per_core: int


class DetailedCpusTable(TypedDict):
    """CPUs with places, caches and interrupts of their own."""

    clock_hz: int
    computing_stall_per_mille: int
    idle_states: NotRequired[list[IdleState]]
    interrupts: InterruptSpec
    jitter: float
    offline: NotRequired[list[OfflineCpu]]
    page_copy_cycles: int
    poll_cycles: NotRequired[int]
    reap_cycles: int
    scheduling: SchedulingSpec
    submit_cycles: int
    topology: Topology
    transfer_cycles: list[int]
    user_cycles: int


CpusTable = CpuSpec | DetailedCpusTable
"""What the table `cpus` holds, for the schema."""


class Cycles(TypedDict):
    """CPU time of the parts of a call, in cycles."""

    allocate: int
    application: int
    begin: int
    checkpoint_block: int
    close: int
    commit: int
    commit_locked: int
    end: int
    entry: int
    hand_over: int
    inode: int
    scan_block: int
    unlink: int


class Daemons(TypedDict):
    """Kernel threads that complete and start writes of log and metadata, wherever they are due."""

    cycles: int
    wakeups_per_s: int


class DepthSearch(TypedDict):
    """A search for the largest queue depth at which enough operations are fast enough. The measured part begins where
    the depth has been found."""

    goes_on: bool
    share: float
    target_ns: int
    window_ns: int


class Quantiles(TypedDict):
    """Where values lie. Exact moments; quantiles are the upper ends of buckets 1/128 wide."""

    count: int
    histogram: list[list[int]]
    max: int
    mean: float
    min: int
    p50: int
    p90: int
    p99: int
    p99_9: int
    p99_99: int


class LayerFigures(TypedDict):
    """A device that sends bios on to others, such as device mapper or md."""

    below_ns: Quantiles | None
    lower: list[str]
    own_ns: Quantiles | None
    unknown: int


class GroupFigures(TypedDict):
    """A group in the form of the report."""

    bytes: int
    count: int
    device_ns: Quantiles | None
    errors: int
    name: str
    queue_ns: Quantiles | None
    scheduler_ns: Quantiles | None
    whole_ns: Quantiles | None


class DeviceFigures(TypedDict):
    """One device."""

    bytes_discarded: int
    bytes_read: int
    bytes_written: int
    bytes_zeroed: int
    depth_max: int | None
    depth_mean: float | None
    depth_ns: list[int]
    device: str
    discards: int
    flushes: int
    fua: int
    idle_ns: Quantiles | None
    idle_share: float | None
    layer: LayerFigures | None
    merges: int
    name: str | None
    others: int
    reads: int
    requests: GroupFigures
    requeues: int
    seek_sectors: Quantiles | None
    sequential_runs: Quantiles | None
    sequential_share: float | None
    splits: int
    writes: int
    zeroes: int


class NullDeviceSpec(TypedDict):
    """A fixed latency, whatever the load: docs/model/README.md."""

    capacity_bytes: int
    kind: Literal["null"]
    latency_ns: int
    queue_depth: int


Order = Literal["first_come", "shortest_positioning"]
"""Orders in which a disk serves waiting commands."""


class Queue(TypedDict):
    """The command queue (tagged queueing or NCQ)."""

    age_limit_ns: int
    depth: int
    order: Order


class Seek(TypedDict):
    """A point of the seek curve."""

    cylinders: int
    time_ns: int


class Zone2(TypedDict):
    """Neighbouring cylinders with tracks of the same length."""

    cylinders: int
    sectors_per_track: int


class DiskDeviceSpec(TypedDict):
    """A disk: docs/model/disk.md."""

    cache: Cache
    command_read_ns: int
    command_write_ns: int
    head_switch_ns: int
    hit_read_ns: int
    hit_write_ns: int
    interface_bytes_per_s: int
    kind: Literal["disk"]
    queue: Queue
    revolutions_per_minute: int
    seeks: list[Seek]
    surfaces: int
    turnaround_ns: NotRequired[int]
    write_settle_ns: int
    zones: list[Zone2]


class LunCache(TypedDict):
    """The cache for reads and writes."""

    high_percent: int
    idle_flush_ns: int
    line_bytes: int
    low_percent: int
    read_bytes: int
    write_bytes: int


class LunDeviceSpec(TypedDict):
    """A cached LUN: docs/model/lun.md."""

    adapter_ns: int
    back_end: BackEnd
    cache: LunCache
    capacity_bytes: int
    controller_commands_per_s: int
    controller_ns: int
    flush_ns: NotRequired[int | None]
    kind: Literal["lun"]
    link_bytes_per_s: int
    link_ns: int
    queue_depth: int


class DiskSpec(TypedDict):
    """Everything about a disk; a machine file's `[[devices]]` of kind `disk`. Times in nanoseconds, sectors of 512
    bytes."""

    cache: Cache
    command_read_ns: int
    command_write_ns: int
    head_switch_ns: int
    hit_read_ns: int
    hit_write_ns: int
    interface_bytes_per_s: int
    queue: Queue
    revolutions_per_minute: int
    seeks: list[Seek]
    surfaces: int
    turnaround_ns: NotRequired[int]
    write_settle_ns: int
    zones: list[Zone2]


Level = Literal["raid0", "raid1", "raid5"]
"""RAID levels."""


class LayoutSpec(TypedDict):
    """How data, parity and copies are spread over the disks."""

    chunk_bytes: int
    disks: int
    extent_stripes: int
    groups: int
    level: Level
    stripe_disks: int


class ArrayDeviceSpec(TypedDict):
    """A RAID array: docs/model/array.md."""

    cache: ArrayCache
    controller: ControllerSpec
    disk: DiskSpec
    kind: Literal["array"]
    layout: LayoutSpec
    queue_depth: int


SteadyPattern = Literal["sequential", "random", "skewed"]
"""How a device was written before the start."""


class Firmware(TypedDict):
    """What the controller does, and how."""

    buffer_bytes: int
    buffer_ns_max: int
    collect_only_per_mille: int
    collect_per_mille: int
    collect_window_per_mille: NotRequired[int | None]
    collector: NotRequired[Collector | None]
    command_ns: int
    cores: int
    filled: bool
    flush_ns: NotRequired[int | None]
    power_loss_protection: NotRequired[bool | None]
    read_first: bool
    reports_write_cache: NotRequired[bool | None]
    steady: NotRequired[SteadyPattern | None]
    unit_bytes: int
    write_ns: NotRequired[int | None]


class Geometry(TypedDict):
    """How the flash is divided."""

    blocks_per_plane: int
    channels: int
    dies_per_channel: int
    over_provision_per_mille: int
    page_bytes: int
    pages_per_block: int
    planes_per_die: int


class Interface(TypedDict):
    """The link to the host."""

    bytes_per_s: int
    coalesce: NotRequired[Coalesce | None]
    command_ns: NotRequired[int | None]
    half_duplex: bool


Isolation = Literal["initially", "persistently"]
"""The type of a reclaim unit handle."""


class Placement(TypedDict):
    """The handles of a device; a machine file's table `placement`."""

    handles: int
    isolation: Isolation


class SkewSpec(TypedDict):
    """A pattern of writes that are not uniform: hot and cold zones, or Zipf's law."""

    block_bytes: int
    hot_per_mille: NotRequired[int | None]
    hot_writes_per_mille: NotRequired[int | None]
    zipf_seed: NotRequired[int | None]
    zipf_theta_per_mille: NotRequired[int | None]


class SlcCache(TypedDict):
    """A pseudo-SLC cache: what is written there first is programmed faster, and holds less."""

    bits_per_cell: int
    blocks_per_plane: int
    idle_ns: int
    page_program_ns: int


class Thermal(TypedDict):
    """What heats a device, how it cools, and when it is throttled."""

    erase_nanojoule: int
    idle_celsius: int
    millikelvin_per_watt: int
    program_nanojoule: int
    read_nanojoule: int
    resume_celsius: int
    throttle_celsius: int
    throttle_per_mille: int
    time_constant_ns: int


class Suspend(TypedDict):
    """How long it takes to interrupt a die's work for a read."""

    erase_ns: int
    program_ns: int


class Timing2(TypedDict):
    """What the flash itself takes."""

    block_erase_ns: int
    cache_register: NotRequired[bool | None]
    channel_bytes_per_s: int
    page_program_ns: int
    page_read_ns: int
    suspend: NotRequired[Suspend | None]


class FlashDeviceSpec(TypedDict):
    """An SSD: docs/model/flash.md."""

    firmware: Firmware
    geometry: Geometry
    interface: Interface
    kind: Literal["flash"]
    placement: NotRequired[Placement | None]
    queue_depth: int
    skew: NotRequired[SkewSpec | None]
    slc: NotRequired[SlcCache | None]
    thermal: NotRequired[Thermal | None]
    timing: Timing2


DeviceSpec = NullDeviceSpec | DiskDeviceSpec | LunDeviceSpec | ArrayDeviceSpec | FlashDeviceSpec
"""A device of a machine file: its `kind` and that kind's keys."""


class Identity(TypedDict):
    """What was found under a path when it was checked; whatever else is found there later is refused."""

    device: int
    inode: int


class Directory(TypedDict):
    """A directory that was checked. What lies below it is opened from it, and no symbolic link is followed on the
    way."""

    identity: Identity
    path: str


class DmaSpec(TypedDict):
    """How fast it moves data to or from the memory of the NUMA node that it interrupts, and of any other."""

    far_bytes_per_s: int
    near_bytes_per_s: int


Kind = Literal["ext2", "ext3", "ext3_windows", "ext4", "contiguous"]
"""The allocators that are simulated."""


class FilesystemSpec(TypedDict):
    """A filesystem of a machine file's drive: the table `filesystem`, for the kinds that take loads."""

    blocks: NotRequired[int]
    group_inodes: NotRequired[int]
    group_metadata_blocks: NotRequired[int]
    kind: Kind
    preallocated_blocks: NotRequired[int]
    start_colours: NotRequired[bool]


class WritebackCycles(TypedDict):
    """CPU time of buffered writes and of writeback, in cycles."""

    copy_page: NotRequired[int]
    map: NotRequired[int]
    write: NotRequired[int]
    write_back_page: NotRequired[int]


class Writeback(TypedDict):
    """The table `filesystem.writeback`. The times and thresholds are the kernel's defaults
    (`dirty_writeback_centisecs`, `dirty_expire_centisecs`, `dirty_background_ratio`); cycles are estimates."""

    background_blocks: NotRequired[int]
    cycles: NotRequired[WritebackCycles]
    expire_ns: NotRequired[int]
    flushers: NotRequired[int]
    period_ns: NotRequired[int]


class XfsXfsTable(TypedDict):
    """The table `filesystem` of a drive with `kind = "xfs"`. Blocks are of 4 KiB."""

    ag_count: int
    allocation: NotRequired[Allocation | None]
    barrier: NotRequired[bool]
    blocks: NotRequired[int]
    call_stall_ns: NotRequired[int]
    cycles: Cycles
    daemons: NotRequired[Daemons]
    inode_bytes: NotRequired[int]
    kind: Literal["xfs"]
    log_blocks: NotRequired[int]
    log_buffer_bytes: NotRequired[int]
    log_buffers: NotRequired[int]
    log_bytes_per_create: NotRequired[int]
    workers_max: NotRequired[int]
    writeback: NotRequired[Writeback]


XfsTable = XfsXfsTable
"""XFS, which takes metadata loads."""


FilesystemTable = FilesystemSpec | XfsTable
"""What a drive's table `filesystem` holds, for the schema. `blocks` may be left out: the drive's."""


class ExtMetadata(TypedDict):
    """The table `metadata` of a drive whose filesystem is ext2, ext3 or ext4."""

    barrier: NotRequired[bool | None]
    call_ns: NotRequired[int]
    dirsync: NotRequired[bool]
    journal_blocks: NotRequired[int]
    max_batch_time: NotRequired[int | None]
    min_batch_time: NotRequired[int | None]
    scan_block_ns: NotRequired[int]


WriteCache = Literal["write back", "write through"]
"""The words of /sys/block/DEVICE/queue/write_cache."""


class QueueSpec(TypedDict):
    """The tunables of a drive's queue, under the names of /sys/block/DEVICE/queue; those left out are the kernel's."""

    hardware_queues: NotRequired[int | None]
    io_poll: NotRequired[int | None]
    io_poll_delay: NotRequired[int | None]
    max_sectors_kb: NotRequired[int | None]
    max_segments: NotRequired[int | None]
    nomerges: NotRequired[int | None]
    nr_requests: NotRequired[int | None]
    read_ahead_kb: NotRequired[int | None]
    rotational: NotRequired[int | None]
    rq_affinity: NotRequired[int | None]
    wbt_lat_usec: NotRequired[int | None]
    write_cache: NotRequired[WriteCache | None]


TunableValue = int | bool | str
"""A tunable's value, in the kernel's unit."""


SchedulerTable = str | dict[str, TunableValue]
"""What a drive's key `scheduler` holds, for the schema: its name, or a table of `name` and tunables by the kernel's
names."""


class DriveSpec(TypedDict):
    """The file's keys."""

    affinity: NotRequired[AffinityKeys | None]
    device: DeviceSpec
    dma: NotRequired[DmaSpec | None]
    filesystem: NotRequired[FilesystemTable | None]
    interrupt_cpu: NotRequired[int | None]
    metadata: NotRequired[ExtMetadata | None]
    peek: NotRequired[bool]
    queue: NotRequired[QueueSpec]
    scheduler: NotRequired[SchedulerTable | None]


EngineKind = Literal["io_uring", "io_uring_cmd", "libaio", "psync", "pvsync", "mmap", "null"]
"""The interface through which a group submits I/O."""


class Layout(TypedDict):
    """One file. Extents that touch, in the file and on the device, count as one: filesystems cut them at lengths of
    their own."""

    beyond_end_bytes: int
    block_bytes: int
    bytes_by_flag: list[tuple[str, int]]
    complete: bool
    device: str
    extents: int
    extents_of_filesystem: int
    hole_bytes: int | None
    listed: list[tuple[int, int | None, int, list[str]]]
    mapped_bytes: int
    method: Method
    size_bytes: int


class LayoutOfExamination(Layout):
    """What is known of one file."""

    path: str


class LayoutRefusal(TypedDict):
    """Why a file's extents are not known."""

    absent: str
    errno: int


class LayoutRefusalOfExamination(LayoutRefusal):
    """What is known of one file."""

    path: str


Examination = LayoutOfExamination | LayoutRefusalOfExamination
"""What is known of one file."""


class Interleaving(TypedDict):
    """The files of one device. A stretch is what lies between two changes of the file along the device's offsets, gaps
    aside: a file that nobody interrupts is one stretch, however many extents it has."""

    bytes: int
    device: str
    extents: int
    files: int
    share: float
    stretch_bytes_mean: float
    switches: int


class Examinations(TypedDict):
    """Where several files lie."""

    files: list[Examination]
    interleaving: list[Interleaving]


class FailedFigures(TypedDict):
    """Requests that failed alike."""

    count: int
    error: int
    first_device: str
    first_ns: int
    first_sector: int
    operation: str


FileOrder = Literal["sequential", "round_robin", "random"]
"""How a job with several files takes turns between them."""


WriteHint = Literal["none", "short", "medium", "long", "extreme"]
"""How long what is written will live, beside what else is written: RWH_WRITE_LIFE_* of fcntl(2)."""


class FileSpec(TypedDict):
    """A file or a block device, or a range of it."""

    base_bytes: int
    beneath: NotRequired[Directory | None]
    create: bool
    extend: bool
    identity: NotRequired[Identity | None]
    path: str
    place: NotRequired[int | None]
    size_bytes: int
    write_hint: NotRequired[WriteHint | None]


class FunctionReport(TypedDict):
    """Shares are of all samples of the interval, or of the whole recording: 0 to 1."""

    function: str
    own: int
    own_share: float
    own_share_max: float
    own_shares: list[float | None]
    total: int
    total_share: float
    total_share_max: float
    total_shares: list[float | None]


class SequentialPattern(TypedDict):
    """From the start of the range to its end, then again."""

    kind: Literal["sequential"]


class BackwardPattern(TypedDict):
    """From the end of the range to its start."""

    kind: Literal["backward"]


class StridedPattern(TypedDict):
    """Each offset is the last one plus `stride_bytes`; at the end of the range it starts again one block further on."""

    kind: Literal["strided"]
    one_lap: NotRequired[bool]
    stride_bytes: int


class UniformPattern(TypedDict):
    """Every block with the same probability, independent of those before."""

    kind: Literal["uniform"]


class ZipfPattern(TypedDict):
    """Block ranks drawn with probability proportional to 1/rank^theta, ranks scattered over the range."""

    kind: Literal["zipf"]
    theta: float


class ParetoPattern(TypedDict):
    """A share `h` of the blocks gets the share 1 - h of the operations, and so on within it: self-similar (Gray et al.,
    Quickly generating billion-record synthetic databases, SIGMOD 1994). Ranks are scattered over the range."""

    h: float
    kind: Literal["pareto"]


class NormalPattern(TypedDict):
    """The mean of twelve uniform ranks and one more within a width, as gauss.c of fio 3 draws it; ranks are scattered
    over the range."""

    deviation_percent: float
    kind: Literal["normal"]


class Zone(TypedDict):
    """A part of the range, and how often it is drawn."""

    length_bytes: int
    weight: float


class ZonedPattern(TypedDict):
    """Uniform within zones, which follow one another from the start of the range; what is behind the last is left
    out."""

    kind: Literal["zoned"]
    zones: list[Zone]


class PermutationPattern(TypedDict):
    """Each block exactly once a pass, in an order drawn anew each pass, in constant memory."""

    kind: Literal["permutation"]


Pattern = (
    SequentialPattern
    | BackwardPattern
    | StridedPattern
    | UniformPattern
    | ZipfPattern
    | ParetoPattern
    | NormalPattern
    | ZonedPattern
    | PermutationPattern
)
"""In which order a job visits the blocks of a file."""


Mapping = Literal["wrap", "scale", "regions"]
"""Where I/Os go on a device of another size."""


Timing = Literal["recorded", "dependent"]
"""When I/Os are offered."""


Side = Literal["issued", "queued"]
"""Which of a request's beginnings counts."""


class TraceTable(TypedDict):
    """The columns of a table of I/Os."""

    columns: list[tuple[str, int]]
    ended: NotRequired[bool]
    one_reads: NotRequired[bool]
    separator: str


class TraceChoice(TypedDict):
    """Files of one trace, and which of its I/Os are meant."""

    device: NotRequired[str | None]
    from_ns: int
    length_ns: NotRequired[int | None]
    paths: list[str]
    side: Side
    table: NotRequired[TraceTable | None]


class ReplaySpec(TypedDict):
    """What a job that replays offers, instead of what it would draw."""

    digest: str
    discards: bool
    flushes: bool
    mapping: Mapping
    region_bytes: int
    thread: int
    threads: int
    time_scale: float
    timing: Timing
    trace: TraceChoice


SyncKind = Literal["fsync", "fdatasync", "sync_file_range"]
"""The system call that syncs."""


class Sync(TypedDict):
    """After every `every_writes` completed writes, and before the next operation, each file written since is synced."""

    every_writes: int
    kind: SyncKind
    when_idle: NotRequired[bool]


class JobBounds(TypedDict):
    """The job is done at the first bound it reaches; at least one is given."""

    bytes: NotRequired[int | None]
    duration_ns: NotRequired[int | None]
    ops: NotRequired[int | None]


class WriteBlocks(TypedDict):
    """What writes of a job transfer, if it is not what its reads do."""

    align_bytes: int
    blocks: list[BlockSize]


class JobSpec(TypedDict):
    """What one job does."""

    align_bytes: int
    arrival: Arrival
    blocks: list[BlockSize]
    commits: NotRequired[bool]
    depth_search: NotRequired[DepthSearch | None]
    dsync_every: NotRequired[int | None]
    file_order: FileOrder
    files: list[int]
    length_bytes: int
    name: str
    offset_bytes: int
    osync_every: NotRequired[int | None]
    pattern: Pattern
    queue_depth: int
    read_share: float
    replay: NotRequired[ReplaySpec | None]
    scatter_seed: NotRequired[int | None]
    seed: int
    start_ns: NotRequired[int | None]
    steady_state: NotRequired[SteadyState | None]
    sync: NotRequired[Sync | None]
    sync_at_end: bool
    until: JobBounds
    writes: NotRequired[WriteBlocks | None]


class GroupSpec(TypedDict):
    """Jobs that share one thread, one ring and one pool of buffers."""

    atomic_writes: NotRequired[bool]
    batch: NotRequired[int | None]
    cgroup: NotRequired[str | None]
    close_in_time: bool
    cpus: NotRequired[list[int] | None]
    direct: bool
    engine: EngineKind
    fixed_buffers: bool
    fresh_data: bool
    hybrid_poll: NotRequired[bool]
    io_log: NotRequired[str | None]
    jobs: list[JobSpec]
    name: str
    nowait_reads: NotRequired[bool]
    poll: bool
    realtime: NotRequired[bool]
    registered_files: bool
    sqpoll: bool
    sqpoll_cpu: NotRequired[int | None]
    uncached: NotRequired[bool]


class MemoryObservation(TypedDict):
    """What docs/reference/probes.md describes as the observation of `memory`."""

    absent: dict[str, str]
    series: dict[str, SampledSeries]
    times: Times


class ProfileColumns(TypedDict):
    """What happened in each interval."""

    length_s: list[float]
    samples: list[int]


class ProfileSeries(TypedDict):
    """Samples over time."""

    at_ns: list[int]
    columns: ProfileColumns


class ProfileObservation(TypedDict):
    """What docs/reference/probes.md describes as the observation of `profile`."""

    elapsed_ns: int
    functions: list[FunctionReport]
    interval_ns: int
    notes: list[str]
    samples: int
    samples_lost: int
    series: dict[str, ProfileSeries]


class SwitchColumns(TypedDict):
    """What happened in each interval."""

    context_switches_per_s: list[float]
    length_s: list[float]


class SwitchSeries(TypedDict):
    """Columns over time."""

    at_ns: list[int]
    columns: SwitchColumns


class Stall(TypedDict):
    """Times as tables carry them. With weighted samples, `count` and `sum_ns` are estimates of the whole."""

    count: int
    max_ns: int | None
    mean_ns: float | None
    sum_ns: int


class SiteReport(TypedDict):
    """A place in the kernel where tasks leave their CPU."""

    chain: list[str]
    comm: str
    run_queue_delay: Stall
    samples: int
    site: str
    sleeping: Stall
    stall: Stall
    switches: int


class Stacks(TypedDict):
    """What became of the stack samples."""

    taken: int
    unmatched: int


class TaskReport(TypedDict):
    """The switches of one task."""

    by_state: dict[str, int]
    comm: str
    pid: int | None
    run_queue_delay: Stall
    sleeping: Stall
    stall: Stall
    switches: int


class SwitchesObservation(TypedDict):
    """What docs/reference/probes.md describes as the observation of `switches`."""

    by_state: dict[str, int]
    elapsed_ns: int
    events_lost: int
    losses_uncounted: int
    notes: list[str]
    run_queue_delay_ns: DistributionRecord
    series: dict[str, SwitchSeries]
    sites: list[SiteReport]
    stack_samples_lost: int
    stacks: Stacks
    stall_ns: DistributionRecord
    switches: int
    tasks: list[TaskReport]
    trace_events_lost: int
    wakeup_latency_ns: DistributionRecord


class HostObservations(TypedDict):
    """What [`ProbeReports::observations`] holds, for the schema: each probe's report."""

    block: BlockObservation | None
    counters: CountersObservation | None
    cpu: CpuObservation | None
    memory: MemoryObservation | None
    profile: ProfileObservation | None
    switches: SwitchesObservation | None


IommuMode = Literal["none", "lazy", "strict"]
"""How the client's DMA addresses are translated (`iommu=`, `intel_iommu=`)."""


class IommuSpec(TypedDict):
    """The client's IOMMU, and the CPU time of mapping and unmapping."""

    caching: bool
    direct_ns: int
    free_ns: int
    invalidate_ns: int
    map_ns: int
    mode: IommuMode
    page_ns: int
    refill_ns: int
    unmap_ns: int


Kernel = Literal["before", "after"]
"""Kernels before and after small messages are pulled up."""


class MemorySpec(TypedDict):
    """Everything left out is as the kernel has it."""

    bytes: int
    commit_interval_ns: NotRequired[int | None]
    dirty_background_percent: NotRequired[int | None]
    dirty_expire_ns: NotRequired[int | None]
    dirty_percent: NotRequired[int | None]
    dirty_writeback_interval_ns: NotRequired[int | None]
    lowmem_bytes: NotRequired[int | None]


class ProcessSpec(TypedDict):
    """What a thread that calls does between two calls."""

    completion_ns: int
    cpu_ns: PerOperation
    spread: float
    wait_ns: PerOperation


class ServerSpec(TypedDict):
    """The server: threads that serve calls, behind a link."""

    link_bytes_per_s: int
    network_ns: int
    service_ns: PerOperation
    spread: float
    threads: int


class TransportSpec(TypedDict):
    """A kernel, and what is set otherwise than its own."""

    credits: NotRequired[int | None]
    data_placement: NotRequired[bool | None]
    inline_bytes: NotRequired[int | None]
    kernel: Kernel
    pull_up: NotRequired[bool | None]
    send_buffer_bytes: NotRequired[int | None]
    send_fragments_max: NotRequired[int | None]
    slots: NotRequired[int | None]


class NfsSpec(TypedDict):
    """The file's keys. Times are means; how they vary is given by the `spread` beside them, from 0, always the mean, to
    1, exponential."""

    costs: CostSpec
    iommu: IommuSpec
    process: ProcessSpec
    server: ServerSpec
    title: NotRequired[str]
    transport: TransportSpec


class SwapSpec(TypedDict):
    """`[swap]` of a machine file."""

    bytes: int
    drive: int
    fault_ns: int
    number_ns: float
    page_cluster: NotRequired[int]
    scan_ns: int
    walk_pages: NotRequired[int | None]


class MachineFile(TypedDict):
    """The file's keys, as they are written. Tables whose reading depends on the kernel state their contents to the
    schema."""

    cgroups: NotRequired[list[CgroupSpec]]
    completion: NotRequired[CompletionSpec | None]
    cpus: CpusTable
    drives: NotRequired[list[DriveSpec]]
    hz: NotRequired[int | None]
    io_priority: NotRequired[str | None]
    kernel: str
    memory: NotRequired[MemorySpec | None]
    mounts: NotRequired[list[NfsSpec]]
    swap: NotRequired[SwapSpec | None]
    title: NotRequired[str]


class Maps(TypedDict):
    """Over time. All columns have `length` values."""

    by_pid: dict[str, Any]
    bytes_discarded: list[int]
    bytes_read: list[int]
    bytes_written: list[int]
    depth_max: list[int]
    depth_ns: list[int]
    discards: list[int]
    interval_ns: int
    latency: list[list[int]]
    place_sectors: int
    places: list[list[int]]
    reads: list[int]
    writes: list[int]


class NameSpec(TypedDict):
    """How a thread names its files."""

    bytes: int
    first: int
    random_bytes: int
    step: int


class FilesNextDirectory(TypedDict):
    """After this many files."""

    files: int


class TimeNsNextDirectory(TypedDict):
    """With the first file after this time."""

    time_ns: int


NextDirectory = FilesNextDirectory | TimeNsNextDirectory
"""When to move on; after the last subdirectory comes number 0 again."""


class WalkSpec(TypedDict):
    """The subdirectories of a thread, and the order in which files fill them."""

    count: int
    first: int
    next_after: NextDirectory


SyncMethod = Literal[
    "none", "before_close", "system_then_first", "reverse", "system_then_reverse", "in_order", "system_then_in_order"
]
"""When files become durable. "Again" is: opened once more by name, fsynced, closed."""


class MetadataSpec(TypedDict):
    """What one thread of a metadata load does, as Python describes it."""

    file_bytes: int
    files: int
    keep: bool
    name: str
    names: NameSpec
    seed: int
    subdirectories: NotRequired[WalkSpec | None]
    sync: SyncMethod
    until_full: bool
    write_bytes: int


PathForm = Literal["full", "relative"]
"""How a call names a file."""


class ThreadSpec(TypedDict):
    """One thread: its directory, its CPUs and what it does."""

    beneath: NotRequired[Directory | None]
    cpus: NotRequired[list[int] | None]
    directory: str
    job: MetadataSpec
    paths: PathForm


class MetadataPhase(TypedDict):
    """A metadata load as Python hands it to the engine and to the simulated machine."""

    name: str
    threads: list[ThreadSpec]


class OperationObserved(TypedDict):
    """Times in whole milliseconds, as the kernel reports them."""

    bytes_received: int
    bytes_sent: int
    execute_ms: int
    ops: int
    queue_ms: int
    rtt_ms: int
    timeouts: int
    transmissions: int


class MountObserved(TypedDict):
    """What one mount counted."""

    operations: dict[str, OperationObserved]
    pulled_up_bytes: NotRequired[int | None]
    source: str


class NfsObservation(TypedDict):
    """What docs/reference/probes.md describes as the observation of `nfs`."""

    elapsed_ns: int
    mounts: dict[str, MountObserved]


class OutputSpec(TypedDict):
    """Another form of the trace."""

    descriptor: int
    device: NotRequired[str]
    form: str
    queued: NotRequired[bool]


class PassRecord(TypedDict):
    """The times of one pass."""

    fill_ns: int
    sort_ns: int


class VerifyPattern(TypedDict):
    """What verified blocks are filled with. The bytes begin anew every 512 bytes of a file."""

    alone: bool
    bytes: list[int]


class StopCondition(TypedDict):
    """When jobs of a phase are stopped before an end of their own: they offer nothing more, and what is under way is
    measured."""

    any: bool
    jobs: list[str]


class Phase(TypedDict):
    """A load on files or devices."""

    cut_transient: bool
    drop_caches: bool
    ends_with_first: bool
    files: list[FileSpec]
    groups: list[GroupSpec]
    interval_ns: int
    name: str
    pattern: NotRequired[VerifyPattern | None]
    seed: int
    stops_with: NotRequired[StopCondition | None]
    verify: bool
    warm_up_ns: int


class PhaseRecordOfJobRecord(TypedDict):
    """A phase's record; `J` is the record of a job."""

    build_profile: str
    clock: ClockKind
    elapsed_ns: int
    groups: list[GroupRecordOfJobRecord]
    measured_from_ns: int
    measured_to_ns: int
    phase: str
    process_cpu_system_ns: int
    process_cpu_user_ns: int
    started_unix_ns: int
    stopped: bool
    transient: Transient | None
    wall_clock_shift_ns: int


class ProbeReports(TypedDict):
    """What the probes yielded."""

    absent: dict[str, str]
    observations: HostObservations


class Process(TypedDict):
    """A process of the trace."""

    depth_max: int
    discards: int
    flushes: int
    ios: int
    name: str
    pid: int
    reads: int
    writes: int


class ReuseFigures(TypedDict):
    """The working set."""

    hit_share_by_cache_bytes: list[tuple[int, float, float]]
    sampled_share: float
    touched_bytes: int
    working_set_bytes: int


class TracedDevice(TypedDict):
    """A device of the trace."""

    extent_bytes: int
    ios: int
    name: str


class ScheduleSummary(TypedDict):
    """A schedule without its I/Os."""

    devices: list[TracedDevice]
    digest: str
    elapsed_ns: int
    ended_share: float
    ios: int
    largest_bytes: int
    left_out: int
    processes: list[Process]
    regions: list[int]


class TaskAhead(TypedDict):
    """What one task had in front of a request."""

    bytes: int
    pid: int
    requests: int


class SlowRequest(TypedDict):
    """A slow request, step by step."""

    ahead: list[TaskAhead]
    arrived_ns: int
    bytes: int
    device: str
    error: int
    merged: int
    overtaken_by: int
    pid: int
    requeues: int
    rwbs: str
    sector: int
    stages_ns: list[int | None]


class Snapshot(TypedDict):
    """What a poll of the handle shows while the phase runs."""

    bytes: int
    done: bool
    elapsed_ns: int
    errors: int
    fraction: float | None
    ops: int
    warming_up: bool


class SortRecord(TypedDict):
    """What a sort yielded."""

    build_profile: str
    bytes: int
    context_switches_involuntary: int
    context_switches_voluntary: int
    cpu_system_ns: int
    cpu_user_ns: int
    elapsed_ns: int
    faults_major: int
    faults_minor: int
    passes: list[PassRecord]
    sorted: bool
    started_unix_ns: int
    stopped: bool


class SortSpec(TypedDict):
    """How much is sorted, and how often."""

    bytes: int
    passes: int
    seed: int


class TraceFigures(TypedDict):
    """A whole trace. docs/traces.md explains each figure."""

    absent: dict[str, str]
    all: GroupFigures
    began_ns: int
    bursts: list[BurstFigures]
    by_cpu: list[GroupFigures]
    by_operation: list[GroupFigures]
    by_process: list[GroupFigures]
    by_queue: list[GroupFigures]
    by_size: list[GroupFigures]
    devices: list[DeviceFigures]
    elapsed_ns: int
    events: dict[str, int]
    events_late: int
    events_lost: int
    events_unmatched: int
    failed: list[FailedFigures]
    first_malformed: str | None
    format: str
    losses: int
    malformed: int
    maps: Maps
    names: dict[str, Any]
    notes: list[str]
    records: int
    records_skipped: int
    restarts: int
    reuse: ReuseFigures
    slowest: list[SlowRequest]
    unended: int
    unknown_alike: int
    unknown_lost: int
