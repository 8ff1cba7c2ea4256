"""The types of what crosses the border to Rust: hand-written ones and options go with the schema."""

import json
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import annotated_types
import pytest
from iolab import _native
from iolab.base.option import Options
from iolab.domain import native_types as native
from iolab.domain import phase_record
from iolab.domain.probe import PROBES
from iolab.domain.workload import KINDS

SCHEMA = json.loads(_native.schema())["$defs"]
LARGEST = {"uint64": 2**64 - 1, "uint": 2**64 - 1, "uint32": 2**32 - 1, "uint16": 2**16 - 1, "uint8": 2**8 - 1}
TOML_MAX = 2**63 - 1
"""No number of an experiment is larger."""

FIELDS = {
    "align": ("JobSpec", "align_bytes"),
    "amount": ("JobBounds", "bytes"),
    "batch": ("GroupSpec", "batch"),
    "buffer": ("BlockSpec", "buffer_bytes"),
    "duration": ("JobBounds", "duration_ns"),
    "extents_max": ("Bounds", "extents_max"),
    "fdatasync_every": ("Sync", "every_writes"),
    "files": ("MetadataSpec", "files"),
    "files_per_subdirectory": ("NextDirectory", "files"),
    "first_subdirectory": ("WalkSpec", "first"),
    "frequency_hz": ("ProfileSpec", "frequency_hz"),
    "dsync_every": ("JobSpec", "dsync_every"),
    "fsync_every": ("Sync", "every_writes"),
    "osync_every": ("JobSpec", "osync_every"),
    "sync_file_range_every": ("Sync", "every_writes"),
    "interval": ("SampleSpec", "interval_ns"),
    "listed": ("Bounds", "listed_max"),
    "memory_limit": ("SortPhase", "memory_limit_bytes"),
    "name_length": ("NameSpec", "bytes"),
    "operations": ("JobBounds", "ops"),
    "passes": ("SortSpec", "passes"),
    "processes": ("SortPhase", "processes"),
    "queue_depth": ("JobSpec", "queue_depth"),
    "random_name_length": ("NameSpec", "random_bytes"),
    "random_ops": ("JobBounds", "ops"),
    "range_length": ("JobSpec", "length_bytes"),
    "range_start": ("JobSpec", "offset_bytes"),
    "rate_iops": ("Arrival", "rate_per_s"),
    "record_size": ("BlockSize", "bytes"),
    "records": ("JobBounds", "ops"),
    "records_per_sync": ("Sync", "every_writes"),
    "stack_every": ("SwitchesSpec", "stack_every"),
    "subdirectories": ("WalkSpec", "count"),
    "skip": ("TraceChoice", "from_ns"),
    "take": ("TraceChoice", "length_ns"),
    "time_scale": ("ReplaySpec", "time_scale"),
    "region_size": ("ReplaySpec", "region_bytes"),
    "subdirectory_time": ("NextDirectory", "time_ns"),
    "swap_size": ("SortPhase", "swap_bytes"),
    "think_every": ("Arrival", "think_every"),
    "think_time": ("Arrival", "think_ns"),
    "warm_up": ("Phase", "warm_up_ns"),
    "write_size": ("MetadataSpec", "write_bytes"),
    "normal_deviation": ("Pattern", "deviation_percent"),
    "pareto_h": ("Pattern", "h"),
    "zipf_theta": ("Pattern", "theta"),
    ("io", "stride"): ("Pattern", "stride_bytes"),
    ("iostest", "block_size"): ("BlockSize", "bytes"),
    ("tiobench", "block_size"): ("BlockSize", "bytes"),
    ("aio-stream", "block_size"): ("BlockSize", "bytes"),
    ("fs_mark", "file_size"): ("MetadataSpec", "file_bytes"),
}
"""Option, of all kinds or of one, whose number goes to Rust as it is -> the field that takes it."""
NO_FIELDS = {
    *("directories", "file_size", "files_max", "files_per_job", "groups", "jobs", "jobs_per_group", "loops", "threads"),
    *("mixed_read_percent", "rate", "read_percent", "share", "size", "source_files", "source_functions", "stride"),
    *("runs", "segment_size", "segments", "swappiness", "window", "writers"),
    "cache",
}
"""Options with a number that Python counts, divides or multiplies by, and a host's own settings."""


def ranged() -> list[tuple[str, str, Any]]:
    """Every option that is a number: kind of workload or probe, name, field."""
    tables: dict[str, type[Options]] = {name: kind.options for name, kind in {**KINDS, **PROBES}.items()}
    return [
        (name, option, field)
        for name, table in tables.items()
        for option, field in table.model_fields.items()
        if numbers(field.annotation)
    ]


def numbers(annotation: Any) -> set[Any]:
    """int or float, where the annotation is one of these, perhaps an optional one."""
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return {number for one in get_args(annotation) for number in numbers(one)}
    return {int, float} & ({annotation} if isinstance(annotation, type) else set())


def bounds(field: Any) -> tuple[float, float]:
    """The least and the largest number that the option takes."""
    least, most = 0.0, float(TOML_MAX)
    whole = int in numbers(field.annotation)
    for one in field.metadata:
        if isinstance(one, annotated_types.Ge):
            least = float(one.ge)  # type: ignore[arg-type]
        elif isinstance(one, annotated_types.Gt):
            least = float(one.gt) + whole  # type: ignore[arg-type]
        elif isinstance(one, annotated_types.Lt):
            most = float(one.lt) - whole  # type: ignore[arg-type]
        elif isinstance(one, annotated_types.Le):
            most = float(one.le)  # type: ignore[arg-type]
    return least, most


def native_bounds(type_name: str, key: str) -> tuple[float, float]:
    """The same of a field of Rust's."""
    tables = [SCHEMA[type_name], *SCHEMA[type_name].get("oneOf", [])]
    (field,) = (table["properties"][key] for table in tables if key in table.get("properties", {}))
    most = field.get("maximum", LARGEST.get(field["format"], float("inf")))
    return field.get("minimum", 0), most


@pytest.mark.parametrize(("kind", "option", "field"), ranged())
def test_an_option_takes_no_number_that_rust_refuses(kind: str, option: str, field: Any) -> None:
    place = FIELDS.get((kind, option)) or FIELDS.get(option)
    assert place or option in NO_FIELDS, f"{kind}.{option}: say in this file which field of Rust's takes it, if any"
    if place:
        least, most = native_bounds(*place)
        assert least <= bounds(field)[0]
        assert bounds(field)[1] <= most


def test_every_kind_and_probe_is_looked_at() -> None:
    assert len(ranged()) > 60
    options = {option for _, option, _ in ranged()}
    assert {place if isinstance(place, str) else place[1] for place in FIELDS} <= options
    assert options >= NO_FIELDS


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (phase_record.JobRecord, native.JobRecord),
        (phase_record.JobRecord, native.ThreadRecord),
        (phase_record.GroupRecord, native.GroupRecordOfJobRecord),
        (phase_record.GroupRecord, native.GroupRecordOfThreadRecord),
        (phase_record.PhaseRecord, native.PhaseRecordOfJobRecord),
        (phase_record.PhaseRecord, native.MetadataRecord),
        (phase_record.Observations, native.HostObservations),
        (phase_record.HostCounters, native.CountersObservation),
        (phase_record.HostCounters, native.CounterObservation),
    ],
)
def test_what_python_reads_alike_has_the_fields_of_each(ours: Any, theirs: Any) -> None:
    assert theirs.__annotations__.keys() <= ours.__annotations__.keys()


def test_what_python_reads_is_in_some_record_of_rusts() -> None:
    own = {"output"}
    jobs = native.JobRecord.__annotations__.keys() | native.ThreadRecord.__annotations__.keys()
    assert phase_record.JobRecord.__annotations__.keys() - own == jobs
    assert phase_record.GroupRecord.__annotations__.keys() == native.GroupRecordOfJobRecord.__annotations__.keys()
    phases = native.MetadataRecord.__annotations__.keys()
    of_python = {"conditions", "failures", "io_stalled_us", "probes", "probes_absent"}
    assert phase_record.PhaseRecord.__annotations__.keys() - of_python == phases
    hosts = native.HostObservations.__annotations__.keys()
    assert phase_record.Observations.__annotations__.keys() - {"extents", "nfs", "nvme", "instructions"} == hosts


def test_the_schema_has_machines_with_all_that_their_files_may_hold() -> None:
    machine = SCHEMA["MachineFile"]["properties"]
    assert {"kernel", "cpus", "completion", "memory", "drives", "mounts", "cgroups", "swap"} <= machine.keys()
    devices = {variant["properties"]["kind"]["const"] for variant in SCHEMA["DeviceSpec"]["oneOf"]}
    assert devices == {"null", "disk", "lun", "array", "flash"}
    assert "blocks" not in SCHEMA["FilesystemSpec"]["required"]
