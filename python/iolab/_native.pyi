"""The Rust extension: load engine, probes, sorter, units, the steady-state search. JSON where a call says so."""

from collections.abc import Sequence
from typing import final

__all__ = [
    "IoLog",
    "Load",
    "LogDirection",
    "Memory",
    "MetadataLoad",
    "Model",
    "Probes",
    "RowGroups",
    "Sort",
    "TraceJob",
    "TraceRows",
    "TraceSchedule",
    "TraceWatch",
    "build_profile",
    "calibrate_clock",
    "check_load",
    "check_simulated_load",
    "drive_sizes",
    "extents",
    "features",
    "format_bytes",
    "format_duration_ns",
    "parse_bytes",
    "parse_duration_ns",
    "parse_rate",
    "schema",
    "steady_cut",
    "time_tunables_ns",
    "toml_lines",
    "trace_columns",
    "unread_keys",
    "unzstd",
    "zstd",
]

@final
class RowGroups:
    """Sums of a table's numbers by its keys, a piece of the file at a time (crates/measure/rows/src/groups.rs)."""

    def __new__(cls, *, separator: str, decimal: str, columns: Sequence[str], batch_bytes: int) -> RowGroups:
        """Each of `columns` is a "key", a "number" or "ignored". So many bytes are a batch, 0: there are none.
        ValueError for anything else."""

    def add(self, text: bytes, begin: int, end: int, offset: int) -> None:
        """Whole lines, the first of which starts at `offset` of the file. ValueError(offset) of a line that can't be
        read."""

    def merge(self, later: RowGroups) -> None:
        """Adds what later lines came to."""

    def groups(self) -> list[tuple[list[str], int, int, list[int], list[float]]]:
        """Key (and batch), offset of the first row, rows, count and sum of each number column. ValueError for a key
        that is no UTF-8."""

@final
class IoLog:
    """fio's log, a piece of the file at a time (crates/measure/rows/src/io_log.rs)."""

    def __new__(cls, interval_ms: int) -> IoLog: ...
    def add(self, text: bytes, begin: int, end: int, offset: int) -> None:
        """Whole lines, the first of which starts at `offset` of the file. ValueError(offset) of a line that can't be
        read."""

    def merge(self, later: IoLog) -> None:
        """Adds what other lines came to."""

    def directions(self) -> list[LogDirection | None]:
        """Reads, writes, trims, syncs; None where there are none."""

@final
class LogDirection:
    """What the lines of one direction came to: of the log's second column unless it says bytes or ms."""

    count: int
    bytes: int
    last_ms: int
    mean: float
    stddev: float
    min: int
    max: int
    buckets: list[tuple[int, int]]
    """The highest value in the bucket, and how many."""
    intervals: list[tuple[int, int, int]]
    """Count, bytes, sum of the values."""

@final
class Memory:
    """What verification remembers between the phases of one trial."""

    def __new__(cls) -> Memory: ...

@final
class Load:
    """A phase under way; its threads never touch Python."""

    @staticmethod
    def start(phase_json: str, memory: Memory) -> Load:
        """ValueError for a wrong specification, OSError(errno, message, path) for the kernel's refusals."""

    def snapshot(self) -> str:
        """JSON of `Snapshot` (crates/measure/workload/src/record.rs)."""

    def stop(self) -> None:
        """Everything ends within 100 ms; `wait` then has the record."""

    def wait(self, timeout_s: float) -> str | None:
        """JSON of `PhaseRecord`, None while running. OSError when the engine broke down."""

@final
class Sort:
    """Memory that is filled and sorted, again and again, on a thread of its own."""

    @staticmethod
    def start(spec_json: str) -> Sort:
        """JSON of `SortSpec` (crates/measure/engine/src/sorter/mod.rs). ValueError for a wrong one, OSError for the
        kernel's refusals."""

    def snapshot(self) -> str:
        """JSON of `SortSnapshot`."""

    def stop(self) -> None:
        """It ends as soon as the pages that it waits for are there."""

    def wait(self, timeout_s: float) -> str | None:
        """JSON of `SortRecord`, None while running."""

@final
class TraceJob:
    """A trace of block I/O that is being read; its threads never touch Python."""

    @staticmethod
    def start(spec_json: str) -> TraceJob:
        """JSON of `TraceSpec` (crates/measure/engine/src/trace_file.rs). ValueError for a wrong one, and for files that
        can't be read."""

    def events(self) -> int:
        """Events so far."""

    def stop(self) -> None:
        """It ends soon; `wait` then raises ValueError."""

    def wait(self, timeout_s: float) -> str | None:
        """JSON of `TraceFigures` (crates/measure/trace/src/study/figures.rs), None while running. ValueError for what
        can't be read or written."""

@final
class TraceRows:
    """Requests of a trace in the order of completion, some at a time, as columns."""

    @staticmethod
    def open(spec_json: str) -> TraceRows:
        """JSON of `TraceSpec`. ValueError for a wrong one, and for files that can't be read."""

    def next(self, count: int) -> list[bytes] | None:
        """The columns of about so many rows, as `trace_columns` says; None at the end. ValueError for what can't be
        read."""

    def began_ns(self) -> int | None:
        """The time of the first event, on the trace's clock; None before it was read."""

    def device_names(self) -> tuple[dict[int, str], bool]:
        """What the trace calls devices that have no major and minor, by number, of those so far; and whether it numbers
        devices by itself."""

    def names(self) -> dict[int, str]:
        """What the tasks are called, by number; complete at the end."""

@final
class TraceSchedule:
    """The I/Os of a trace that can be replayed; read once for all who ask."""

    @staticmethod
    def open(choice_json: str) -> TraceSchedule:
        """JSON of `TraceChoice` (crates/measure/workload/src/traced/spec.rs). ValueError for a wrong one, and for files
        that can't be read or hold nothing to replay."""

    def summary(self, region_bytes: int) -> str:
        """JSON of `ScheduleSummary`, with regions of so many bytes counted. ValueError for 0."""

    def table(self) -> str:
        """The I/Os as a table of text that reads as the same schedule."""

@final
class TraceWatch:
    """Watches a recording of block events while it is made for a request that takes too long."""

    def __new__(cls, header_page: str, formats: Sequence[str], limit_ns: int) -> TraceWatch:
        """The texts of tracefs `header_page` and of each event's `format`. ValueError for what is none."""

    def add(self, cpu: int, page: bytes) -> int | None:
        """The next sub-buffer of a CPU. How many ns a request took, or has been under way, if that is too long."""

@final
class MetadataLoad:
    """Threads that make, write, sync, close and unlink files."""

    @staticmethod
    def start(phase_json: str) -> MetadataLoad:
        """JSON of `MetadataPhase` (crates/measure/workload/src/metadata/phase.rs). ValueError for a wrong one,
        OSError(errno, message, path) for the kernel's refusals."""

    def snapshot(self) -> str:
        """JSON of `Snapshot` (crates/measure/workload/src/record.rs); `ops` are files made, `bytes` those written."""

    def stop(self) -> None:
        """It ends within 100 ms; what was made stays."""

    def wait(self, timeout_s: float) -> str | None:
        """JSON of `MetadataRecord` (crates/measure/workload/src/metadata/record.rs), None while running."""

@final
class Model:
    """A simulated machine, switched on: its phases run one after the other, in simulated time, each on a thread that
    never touches Python. The same machine and phases, which carry the seeds, yield the same records.

    An extension for hosts alone has none, nor `check_simulated_load`, `drive_sizes`, `time_tunables_ns` and
    `unread_keys`."""

    def __new__(cls, machine_json: str) -> Model:
        """JSON of a machine's file (crates/model/stack/src/machine/mod.rs), devices in place of their names.
        ValueError(key, what) for an impossible one."""

    def start(self, phase_json: str) -> None:
        """JSON of a phase with `probes`. Its `kind` says which: `load`, or none: `Phase`
        (crates/measure/workload/src/phase.rs) with `place` of files and `cgroup` of groups; `metadata`: `MetadataPhase`
        (crates/measure/workload/src/metadata/phase.rs). ValueError(key, what) for what the model has no mechanism
        for."""

    def snapshot(self) -> str:
        """JSON of `Snapshot`; simulated time."""

    def stop(self) -> None:
        """The phase ends soon; `wait` then has the record."""

    def wait(self, timeout_s: float) -> str | None:
        """JSON of `PhaseRecord` or `MetadataRecord`, with `probes` and `probes_absent`; None while running.
        RuntimeError: an invariant of the simulator does not hold."""

    def extents(self, paths: list[str], bounds_json: str) -> str:
        """As the function `extents`, of the model's files."""

    def take_traces(self) -> dict[str, bytes]:
        """The trace files of the last phase by their names, where the probe `block` was asked for some."""

    def check(self) -> None:
        """At the end: RuntimeError when requests were lost, or a station disobeys Little's law."""

@final
class Probes:
    """Readers of what the system does; on from `start` to `stop`."""

    @staticmethod
    def start(spec_json: str) -> Probes:
        """JSON of `Spec` (crates/measure/engine/src/probe/spec.rs). ValueError for a wrong one; a probe that can't run
        here is no error, it is among the absent."""

    def stop(self) -> str:
        """JSON: {"observations": {probe: what it saw}, "absent": {probe: reason}}. ValueError the second time."""

def extents(paths: list[str], bounds_json: str) -> str:
    """JSON of `Examined` (crates/measure/trace/src/extents/mod.rs) for JSON of `Bounds`: each file's extents, after its
    dirty pages were written, and how the files interleave. A file that can't be read says why in its place."""

def features() -> str:
    """JSON of what this kernel lets the engine use."""

def calibrate_clock() -> None:
    """Measures the rate of the time stamp counter (20 ms), for this process and those that it forks later."""

def build_profile() -> str:
    """`release` or `debug`."""

def parse_bytes(text: str) -> int: ...
def parse_duration_ns(text: str) -> int: ...
def parse_rate(text: str) -> float:
    """Bytes per second."""

def format_bytes(n: int) -> str: ...
def format_duration_ns(n: int) -> str: ...
def steady_cut(rates: list[float]) -> tuple[int, bool]:
    """How many leading intervals are a transient, and whether the rest is steady."""

def check_load(phase_json: str) -> None:
    """Checks a load phase without opening anything. ValueError names what no machine can run."""

def drive_sizes(machine_json: str) -> list[int]:
    """How many bytes each drive of a simulated machine has. ValueError(key, what) for an impossible one."""

def schema() -> str:
    """The JSON schema (draft 2020-12) of every type that crosses the border as JSON, by name under `$defs`."""

def time_tunables_ns() -> str:
    """What one unit of each scheduler tunable that is a time is in nanoseconds, a JSON object."""

def toml_lines(text: str) -> list[tuple[int | None, str | int, int]]:
    """The keys and array elements of a TOML file (crates/measure/rows/src/toml_lines.rs): the number of the node around
    each, an earlier one (None: the file), its key or its number, its line from 1. ValueError for a text that is no
    TOML."""

def check_simulated_load(machine_json: str, load_json: str) -> None:
    """ValueError(key, what) if the machine has no mechanism for something that the load asks (`Phase`, as
    `Model.start` takes it); the key is of the load, a dotted path."""

def unread_keys(machine_json: str, phases_json: str, keys: list[str]) -> list[tuple[str, str | None]]:
    """The `keys` of a machine's file (dotted paths) that nothing reads while any of the phases runs, each with the
    condition under which it would be read; None: never. The phases are a list, each as `Model.start` takes it, or less
    of it. ValueError(key, what) for an impossible machine or phase."""

def trace_columns() -> list[tuple[str, str]]:
    """Name and type (u64, u32, u16, i16; little-endian) of each column of `TraceRows`. The largest u64 is a time that
    is not known."""

def unzstd(data: bytes, limit: int) -> bytes:
    """What frames of zstd hold. OverflowError above `limit` bytes, ValueError for what can't be unpacked."""

def zstd(data: bytes) -> bytes:
    """The bytes as one frame of zstd."""
