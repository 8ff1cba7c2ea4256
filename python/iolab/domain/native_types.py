"""Documents that cross the border to Rust, made by `make golden` of crates/bindings/src/json_schema.rs.

They are plain dicts of JSON: Rust checks what it is given, and these types show mypy what it takes and gives. The
schema states what each field means, in which unit and range.
"""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class DistributionRecord(TypedDict):
    count: int
    histogram: list[list[int]]
    max: int | None
    mean: float | None
    min: int | None
    p50: int | None
    p99: int | None
    stddev: float | None


class Activity(TypedDict):
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
    other: Activity
    read: Activity
    total: Activity
    write: Activity


AffinityWord = Literal["application", "interrupt", "other"]


AffinityPart = int | AffinityWord


class AffinityKeys(TypedDict):
    application: NotRequired[AffinityPart | None]
    completion: NotRequired[AffinityPart | None]
    queue: NotRequired[AffinityPart | None]


Allocation = Literal["direct", "workqueue", "data_only", "mapping"]


ClockKind = Literal["tsc", "monotonic", "model"]


class LatencyRecord(TypedDict):
    histogram: list[tuple[int, int, int]]
    max_ns: int
    mean_ns: float
    min_ns: int
    stddev_ns: float


class OpRecord(TypedDict):
    bytes: int
    count: int
    latency: LatencyRecord | None


class Window(TypedDict):
    count: int
    late: int
    queue_depth: int
    start_ns: int


class DepthSearchResult(TypedDict):
    missed: bool
    queue_depth: int | None
    share: float
    target_ns: int
    windows: list[Window]


class ErrorRecord(TypedDict):
    count: int
    errno: int
    first_offset: int
    first_path: str
    name: str
    op: str


class IntervalRecord(TypedDict):
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
    expected: str
    found: str
    offset: int
    path: str


class ReplayRecord(TypedDict):
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


RateKind = Literal["operations", "bytes"]


class SteadyState(TypedDict):
    by: SteadyCriterion
    in_percent: bool
    interval_ns: int
    limit: float
    of: RateKind
    ramp_ns: int
    spread_limit: NotRequired[float | None]
    window_ns: int


class Steadiness(TypedDict):
    criterion: float | None
    mean_per_s: float | None
    reached_ns: int | None
    spread: NotRequired[float | None]
    wanted: SteadyState


class JobRecord(TypedDict):
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
    cut_ns: int
    steady: bool


class ThreadRecord(TypedDict):
    errors: list[ErrorRecord]
    finished_ns: int
    intervals: list[IntervalRecord]
    measures: dict[str, float | None]
    mismatches: list[MismatchRecord]
    mismatches_count: int
    name: str
    ops: dict[str, OpRecord]


class GroupRecordOfThreadRecord(TypedDict):
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
    bytes_per_s: int
    latency_ns: int


class ArrayCache(TypedDict):
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
    kind: Literal["closed"]
    think_every: int
    think_ns: int


Spacing = Literal["constant", "poisson", "constant_each"]


class OpenArrival(TypedDict):
    kind: Literal["open"]
    rate_per_s: float
    spacing: Spacing


Arrival = ClosedArrival | OpenArrival


class BackEnd(TypedDict):
    access_ns: int
    bytes_per_s: int
    holds_server: NotRequired[bool | None]
    servers: int
    write_access_ns: NotRequired[int | None]
    write_bytes_per_s: NotRequired[int | None]


class BlockColumns(TypedDict):
    bytes_completed_per_s: list[float]
    length_s: list[float]
    merges_per_s: list[float]
    queue_depth: list[float]
    queue_depth_max: list[int]
    requests_completed_per_s: list[float]
    requests_waiting: list[float]


class Conservation(TypedDict):
    completed: int
    in_flight: int
    merged: int
    queued: int
    split: int
    unmatched: int
    unqueued: int


class DeviceReport(TypedDict):
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
    at_ns: list[int]
    columns: BlockColumns


class BlockObservation(TypedDict):
    all: Activities
    devices: list[DeviceReport]
    elapsed_ns: int
    events_lost: int
    losses_uncounted: int
    notes: list[str]
    series: dict[str, BlockSeries]
    trace_events_lost: int


class BlockSize(TypedDict):
    bytes: int
    weight: float


Method = Literal["fiemap", "fibmap", "model"]


class Bounds(TypedDict):
    extents_max: int
    listed_max: int
    method: NotRequired[Method | None]


class BurstFigures(TypedDict):
    dispersion: float | None
    empty_share: float
    mean: float
    most: int
    window_ns: int
    windows: int


class Cache(TypedDict):
    dirty_sectors_max: int
    read_ahead_min_sectors: NotRequired[int]
    read_ahead_sectors: int
    segment_sectors: int
    segments: int
    write_back: bool


class IoMaxSpec(TypedDict):
    read: NotRequired[int | None]
    read_iops: NotRequired[int | None]
    write: NotRequired[int | None]
    write_iops: NotRequired[int | None]


PriorityPolicy = Literal["no-change", "promote-to-rt", "restrict-to-be", "idle"]


class CgroupSpec(TypedDict):
    io_latency_ns: NotRequired[int | None]
    io_max: NotRequired[IoMaxSpec | None]
    io_prio_class: NotRequired[PriorityPolicy | None]
    name: str
    weight: int


class Coalesce(TypedDict):
    completions: int
    time_ns: int


Collector = Literal["greedy", "cost_benefit", "windowed"]


Distance = Literal["core", "socket", "node", "machine"]


CompletionVariant = Literal[
    "softirq", "remote_softirq", "thread", "grouped", "cache_aware", "multi_queue_direct", "multi_queue"
]


class CompletionSpec(TypedDict):
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
    command_ns: int
    controllers: int
    latency_ns: int
    port_bytes_per_s: int


class CostModelSpec(TypedDict):
    rbps: NotRequired[int | None]
    rrandiops: NotRequired[int | None]
    rseqiops: NotRequired[int | None]
    wbps: NotRequired[int | None]
    wrandiops: NotRequired[int | None]
    wseqiops: NotRequired[int | None]


class CostQosSpec(TypedDict):
    max: NotRequired[float | None]
    min: NotRequired[float | None]
    rlat: NotRequired[int | None]
    rpct: NotRequired[float | None]
    wlat: NotRequired[int | None]
    wpct: NotRequired[float | None]


class PerOperation(TypedDict):
    read: int
    write: int


class CostSpec(TypedDict):
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
    counted_share: float
    value: float


class SharingFigures(TypedDict):
    locked: int
    transfer_cycles: int
    transfers: int
    waited: int
    waited_ns: int


class CounterObservation(TypedDict):
    absent: dict[str, str]
    elapsed_ns: int
    events: dict[str, ModelEventSum]
    notes: list[str]
    sharing: dict[str, SharingFigures]


class EventSum(TypedDict):
    counted_share: float
    value: float


class CountersObservation(TypedDict):
    absent: dict[str, str]
    elapsed_ns: int
    events: dict[str, EventSum]
    notes: list[str]


class Frequency(TypedDict):
    hz_max: float
    hz_mean: float
    source: str


class SampledSeries(TypedDict):
    at_ns: list[int]
    columns: dict[str, list[float | None]]


class Times(TypedDict):
    cost_cpu_ns: NotRequired[int | None]
    elapsed_ns: int
    interval_ns: int
    readings: int
    readings_failed: int
    started_unix_ns: int


class CpuObservation(TypedDict):
    cpus_online: int
    frequency: Frequency | None
    means: dict[str, dict[str, float | None]]
    series: dict[str, SampledSeries]
    ticks_per_s: int
    times: Times


class StartSpec(TypedDict):
    beside: NotRequired[int]
    lead_ns: NotRequired[int]
    op_ns: NotRequired[int]


class TimerInterruptSpec(TypedDict):
    after_issue_ns: NotRequired[int]
    calls_thread_ns: NotRequired[int]
    dequeue_ns: NotRequired[int]
    first_ns: NotRequired[int]
    further_ns: NotRequired[int]
    issue_ns: NotRequired[int]
    switch_ns: NotRequired[int]
    thread_ends_ns: NotRequired[int]
    thread_ns: NotRequired[int]


class CpuSpec(TypedDict):
    call_ns: int
    clock_hz: NotRequired[int | None]
    completion_ns: int
    copy_call_ns: NotRequired[int | None]
    count: int
    further_op_ns: NotRequired[int | None]
    further_page_ns: NotRequired[int | None]
    interrupt_ns: NotRequired[int | None]
    jitter: float
    page_copy_ns: int
    page_write_ns: NotRequired[int | None]
    reap_call_ns: NotRequired[int | None]
    start: NotRequired[StartSpec | None]
    sync_call_ns: NotRequired[int | None]
    time_slice_ns: int
    timer_interrupts: NotRequired[TimerInterruptSpec | None]
    write_call_ns: NotRequired[int | None]


class IdleState(TypedDict):
    after_ns: int
    exit_ns: int


class InterruptSpec(TypedDict):
    latency_ns: int
    latency_other_node_ns: int
    receive_cycles: int
    send_cycles: int


class OfflineCpu(TypedDict):
    cpu: int
    from_ns: int
    until_ns: NotRequired[int | None]


class SchedulingSpec(TypedDict):
    migrates_within: Distance
    preempt_after_ns: int
    run_queue_lines: int
    switch_cycles: int
    task_lines: int
    time_slice_ns: int
    wake_cycles: int


class Topology(TypedDict):
    cores_per_socket: int
    numa_nodes: int
    sockets_per_node: int
    threads_per_core: int


class DetailedCpusTable(TypedDict):
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


class Cycles(TypedDict):
    allocate: int
    application: int
    begin: int
    checkpoint_block: int
    close: int
    commit: int
    commit_locked: int
    convert: NotRequired[int]
    end: int
    entry: int
    flush: NotRequired[int]
    force: NotRequired[int]
    hand_over: int
    inode: int
    scan_block: int
    unlink: int


class Daemons(TypedDict):
    cycles: int
    wakeups_per_s: int


DataMode = Literal["journal", "ordered", "writeback"]


class DepthSearch(TypedDict):
    goes_on: bool
    share: float
    target_ns: int
    window_ns: int


class Quantiles(TypedDict):
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
    below_ns: Quantiles | None
    lower: list[str]
    own_ns: Quantiles | None
    unknown: int


class GroupFigures(TypedDict):
    bytes: int
    count: int
    device_ns: Quantiles | None
    errors: int
    name: str
    queue_ns: Quantiles | None
    scheduler_ns: Quantiles | None
    whole_ns: Quantiles | None


class DeviceFigures(TypedDict):
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
    capacity_bytes: int
    kind: Literal["null"]
    latency_ns: int
    queue_depth: int
    volatile_cache: NotRequired[bool]


Order = Literal["first_come", "shortest_positioning"]


class Queue(TypedDict):
    age_limit_ns: int
    depth: int
    order: Order


class Seek(TypedDict):
    cylinders: int
    time_ns: int


class Zone2(TypedDict):
    cylinders: int
    sectors_per_track: int


class DiskDeviceSpec(TypedDict):
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
    high_percent: int
    idle_flush_ns: int
    line_bytes: int
    low_percent: int
    read_bytes: int
    write_bytes: int


class LunDeviceSpec(TypedDict):
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


class LayoutSpec(TypedDict):
    chunk_bytes: int
    disks: int
    extent_stripes: int
    groups: int
    level: Level
    stripe_disks: int


class ArrayDeviceSpec(TypedDict):
    cache: ArrayCache
    controller: ControllerSpec
    disk: DiskSpec
    kind: Literal["array"]
    layout: LayoutSpec
    queue_depth: int


class WriteStall(TypedDict):
    ns: int
    writes: int


SteadyPattern = Literal["sequential", "random", "skewed", "permutation"]


class Firmware(TypedDict):
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
    stall: NotRequired[WriteStall | None]
    steady: NotRequired[SteadyPattern | None]
    steady_block_bytes: NotRequired[int | None]
    steady_stride_bytes: NotRequired[int | None]
    unit_bytes: int
    write_ns: NotRequired[int | None]


class Geometry(TypedDict):
    blocks_per_plane: int
    channels: int
    dies_per_channel: int
    over_provision_per_mille: int
    page_bytes: int
    pages_per_block: int
    planes_per_die: int


class Interface(TypedDict):
    bytes_per_s: int
    coalesce: NotRequired[Coalesce | None]
    command_ns: NotRequired[int | None]
    half_duplex: bool


Isolation = Literal["initially", "persistently"]


class Placement(TypedDict):
    handles: int
    isolation: Isolation


class WrittenSize(TypedDict):
    bytes: int
    weight: int


class WrittenZone(TypedDict):
    bytes: int
    weight: int


class SkewSpec(TypedDict):
    block_bytes: int
    normal_deviation_per_mille: NotRequired[int | None]
    pareto_h_per_mille: NotRequired[int | None]
    scatter_seed: NotRequired[int | None]
    sizes: NotRequired[list[WrittenSize] | None]
    zipf_theta_per_mille: NotRequired[int | None]
    zones: NotRequired[list[WrittenZone] | None]


class SlcCache(TypedDict):
    bits_per_cell: int
    blocks_per_plane: int
    idle_ns: int
    page_program_ns: int


class Thermal(TypedDict):
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
    erase_ns: int
    program_ns: int


class Timing2(TypedDict):
    block_erase_ns: int
    cache_register: NotRequired[bool | None]
    channel_bytes_per_s: int
    page_program_ns: int
    page_read_ns: int
    suspend: NotRequired[Suspend | None]


class FlashDeviceSpec(TypedDict):
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


class Identity(TypedDict):
    device: int
    inode: int


class Directory(TypedDict):
    identity: Identity
    path: str


class DmaSpec(TypedDict):
    far_bytes_per_s: int
    near_bytes_per_s: int


Kind = Literal["ext2", "ext3", "ext3_windows", "ext4", "contiguous"]


class FilesystemSpec(TypedDict):
    blocks: NotRequired[int]
    group_inodes: NotRequired[int]
    group_metadata_blocks: NotRequired[int]
    kind: Kind
    preallocated_blocks: NotRequired[int]
    start_colours: NotRequired[bool]


class WritebackCycles(TypedDict):
    copy_page: NotRequired[int]
    map: NotRequired[int]
    write: NotRequired[int]
    write_back_page: NotRequired[int]


class Writeback(TypedDict):
    background_blocks: NotRequired[int]
    cycles: NotRequired[WritebackCycles]
    expire_ns: NotRequired[int]
    flushers: NotRequired[int]
    period_ns: NotRequired[int]


class XfsXfsTable(TypedDict):
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


FilesystemTable = FilesystemSpec | XfsTable


class ExtMetadata(TypedDict):
    allocate_ns: NotRequired[int]
    barrier: NotRequired[bool | None]
    call_ns: NotRequired[int]
    commit_ns: NotRequired[int]
    data: NotRequired[DataMode | None]
    dirsync: NotRequired[bool]
    fast_commit: NotRequired[bool]
    journal_blocks: NotRequired[int]
    max_batch_time: NotRequired[int | None]
    min_batch_time: NotRequired[int | None]
    scan_block_ns: NotRequired[int]


WriteCache = Literal["write back", "write through"]


class QueueSpec(TypedDict):
    fua: NotRequired[int | None]
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


SchedulerTable = str | dict[str, TunableValue]


class DriveSpec(TypedDict):
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


class Layout(TypedDict):
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
    path: str


class LayoutRefusal(TypedDict):
    absent: str
    errno: int


class LayoutRefusalOfExamination(LayoutRefusal):
    path: str


Examination = LayoutOfExamination | LayoutRefusalOfExamination


class Interleaving(TypedDict):
    bytes: int
    device: str
    extents: int
    files: int
    share: float
    stretch_bytes_mean: float
    switches: int


class Examinations(TypedDict):
    files: list[Examination]
    interleaving: list[Interleaving]


class FailedFigures(TypedDict):
    count: int
    error: int
    first_device: str
    first_ns: int
    first_sector: int
    operation: str


FileOrder = Literal["sequential", "round_robin", "random"]


WriteHint = Literal["none", "short", "medium", "long", "extreme"]


class FileSpec(TypedDict):
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
    kind: Literal["sequential"]


class BackwardPattern(TypedDict):
    kind: Literal["backward"]


class StridedPattern(TypedDict):
    blocks_done: NotRequired[int]
    kind: Literal["strided"]
    one_lap: NotRequired[bool]
    stride_bytes: int


class UniformPattern(TypedDict):
    kind: Literal["uniform"]


class ZipfPattern(TypedDict):
    kind: Literal["zipf"]
    theta: float


class ParetoPattern(TypedDict):
    h: float
    kind: Literal["pareto"]


class NormalPattern(TypedDict):
    deviation_percent: float
    kind: Literal["normal"]


class Zone(TypedDict):
    length_bytes: int
    weight: float


class ZonedPattern(TypedDict):
    kind: Literal["zoned"]
    zones: list[Zone]


class PermutationPattern(TypedDict):
    blocks_done: NotRequired[int]
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


Mapping = Literal["wrap", "scale", "regions"]


Timing = Literal["recorded", "dependent"]


Side = Literal["issued", "queued"]


class TraceTable(TypedDict):
    columns: list[tuple[str, int]]
    ended: NotRequired[bool]
    one_reads: NotRequired[bool]
    separator: str


class TraceChoice(TypedDict):
    device: NotRequired[str | None]
    from_ns: int
    length_ns: NotRequired[int | None]
    paths: list[str]
    side: Side
    table: NotRequired[TraceTable | None]


class ReplaySpec(TypedDict):
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


class Sync(TypedDict):
    every_writes: int
    kind: SyncKind
    when_idle: NotRequired[bool]


class JobBounds(TypedDict):
    bytes: NotRequired[int | None]
    duration_ns: NotRequired[int | None]
    ops: NotRequired[int | None]


class WriteBlocks(TypedDict):
    align_bytes: int
    blocks: list[BlockSize]


class JobSpec(TypedDict):
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
    registered_waits: NotRequired[bool]
    sqpoll: bool
    sqpoll_cpu: NotRequired[int | None]
    uncached: NotRequired[bool]


class IoCostObservation(TypedDict):
    series: dict[str, SampledSeries]
    times: Times


class MemoryObservation(TypedDict):
    absent: dict[str, str]
    series: dict[str, SampledSeries]
    times: Times


class ProfileColumns(TypedDict):
    length_s: list[float]
    samples: list[int]


class ProfileSeries(TypedDict):
    at_ns: list[int]
    columns: ProfileColumns


class ProfileObservation(TypedDict):
    elapsed_ns: int
    functions: list[FunctionReport]
    interval_ns: int
    notes: list[str]
    samples: int
    samples_lost: int
    series: dict[str, ProfileSeries]


class SwitchColumns(TypedDict):
    context_switches_per_s: list[float]
    length_s: list[float]


class SwitchSeries(TypedDict):
    at_ns: list[int]
    columns: SwitchColumns


class Stall(TypedDict):
    count: int
    max_ns: int | None
    mean_ns: float | None
    sum_ns: int


class SiteReport(TypedDict):
    chain: list[str]
    comm: str
    run_queue_delay: Stall
    samples: int
    site: str
    sleeping: Stall
    stall: Stall
    switches: int


class Stacks(TypedDict):
    taken: int
    unmatched: int


class TaskReport(TypedDict):
    by_state: dict[str, int]
    comm: str
    pid: int | None
    run_queue_delay: Stall
    sleeping: Stall
    stall: Stall
    switches: int


class SwitchesObservation(TypedDict):
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
    block: BlockObservation | None
    counters: CountersObservation | None
    cpu: CpuObservation | None
    io_cost: IoCostObservation | None
    memory: MemoryObservation | None
    profile: ProfileObservation | None
    switches: SwitchesObservation | None


class IoCostSpec2(TypedDict):
    model: NotRequired[CostModelSpec]
    qos: NotRequired[CostQosSpec]


IommuMode = Literal["none", "lazy", "strict"]


class IommuSpec(TypedDict):
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


class MemorySpec(TypedDict):
    bytes: int
    commit_interval_ns: NotRequired[int | None]
    dirty_background_percent: NotRequired[int | None]
    dirty_expire_ns: NotRequired[int | None]
    dirty_percent: NotRequired[int | None]
    dirty_writeback_interval_ns: NotRequired[int | None]
    former_bytes: NotRequired[int | None]
    lowmem_bytes: NotRequired[int | None]


class ProcessSpec(TypedDict):
    completion_ns: int
    cpu_ns: PerOperation
    spread: float
    wait_ns: PerOperation


class ServerSpec(TypedDict):
    link_bytes_per_s: int
    network_ns: int
    service_ns: PerOperation
    spread: float
    threads: int


class TransportSpec(TypedDict):
    credits: NotRequired[int | None]
    data_placement: NotRequired[bool | None]
    inline_bytes: NotRequired[int | None]
    kernel: Kernel
    pull_up: NotRequired[bool | None]
    send_buffer_bytes: NotRequired[int | None]
    send_fragments_max: NotRequired[int | None]
    slots: NotRequired[int | None]


class NfsSpec(TypedDict):
    costs: CostSpec
    iommu: IommuSpec
    process: ProcessSpec
    server: ServerSpec
    title: NotRequired[str]
    transport: TransportSpec


class SwapSpec(TypedDict):
    bytes: int
    drive: int
    fault_ns: int
    number_ns: float
    page_cluster: NotRequired[int]
    scan_ns: int
    walk_pages: NotRequired[int | None]


class MachineFile(TypedDict):
    cgroups: NotRequired[list[CgroupSpec]]
    completion: NotRequired[CompletionSpec | None]
    cpus: CpusTable
    drives: NotRequired[list[DriveSpec]]
    hz: NotRequired[int | None]
    io_cost: NotRequired[IoCostSpec2 | None]
    io_priority: NotRequired[str | None]
    kernel: str
    memory: NotRequired[MemorySpec | None]
    mounts: NotRequired[list[NfsSpec]]
    swap: NotRequired[SwapSpec | None]
    title: NotRequired[str]


class Maps(TypedDict):
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
    bytes: int
    first: int
    random_bytes: int
    step: int


class FilesNextDirectory(TypedDict):
    files: int


class TimeNsNextDirectory(TypedDict):
    time_ns: int


NextDirectory = FilesNextDirectory | TimeNsNextDirectory


class WalkSpec(TypedDict):
    count: int
    first: int
    next_after: NextDirectory


SyncMethod = Literal[
    "none", "before_close", "system_then_first", "reverse", "system_then_reverse", "in_order", "system_then_in_order"
]


class MetadataSpec(TypedDict):
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


class ThreadSpec(TypedDict):
    beneath: NotRequired[Directory | None]
    cpus: NotRequired[list[int] | None]
    directory: str
    job: MetadataSpec
    paths: PathForm


class MetadataPhase(TypedDict):
    name: str
    threads: list[ThreadSpec]


class OperationObserved(TypedDict):
    bytes_received: int
    bytes_sent: int
    execute_ms: int
    ops: int
    queue_ms: int
    rtt_ms: int
    timeouts: int
    transmissions: int


class MountObserved(TypedDict):
    operations: dict[str, OperationObserved]
    pulled_up_bytes: NotRequired[int | None]
    source: str


class NfsObservation(TypedDict):
    elapsed_ns: int
    mounts: dict[str, MountObserved]


class OutputSpec(TypedDict):
    descriptor: int
    device: NotRequired[str]
    form: str
    queued: NotRequired[bool]


class PassRecord(TypedDict):
    fill_ns: int
    sort_ns: int


class VerifyPattern(TypedDict):
    alone: bool
    bytes: list[int]


class StopCondition(TypedDict):
    any: bool
    jobs: list[str]


class Phase(TypedDict):
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
    absent: dict[str, str]
    observations: HostObservations


class Process(TypedDict):
    depth_max: int
    discards: int
    flushes: int
    ios: int
    name: str
    pid: int
    reads: int
    writes: int


class ReuseFigures(TypedDict):
    hit_share_by_cache_bytes: list[tuple[int, float, float]]
    sampled_share: float
    touched_bytes: int
    working_set_bytes: int


class TracedDevice(TypedDict):
    extent_bytes: int
    ios: int
    name: str


class ScheduleSummary(TypedDict):
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
    bytes: int
    pid: int
    requests: int


class SlowRequest(TypedDict):
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
    bytes: int
    done: bool
    elapsed_ns: int
    errors: int
    fraction: float | None
    ops: int
    warming_up: bool


class SortRecord(TypedDict):
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
    bytes: int
    passes: int
    seed: int


class TraceFigures(TypedDict):
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
