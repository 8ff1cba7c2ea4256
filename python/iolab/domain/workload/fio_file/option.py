"""The options of fio that iolab takes: each declared once, with its reader and its effect.

An option of fio that is not in this registry is an error on iolab's engine, and is passed on when fio runs the job.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal, cast

from iolab.base.errors import unknown
from iolab.domain import native_types as native
from iolab.domain.workload.fio_file import value
from iolab.domain.workload.fio_file.value import Reader
from iolab.domain.workload.zone import Zone, read_zones


@dataclass(frozen=True)
class KnownNames:
    """The names that fio gives its options and engines, up to `version`. Made by tools/fio_options.py."""

    version: str
    engines: frozenset[str]
    names: dict[str, str]
    """Every name, aliases too -> the name that fio lists it by."""


@cache
def known() -> KnownNames:
    """The names, read once from options.json beside this file."""
    data = json.loads(resources.files("iolab.domain.workload.fio_file").joinpath("options.json").read_text())
    names = {alias: name for name, aliases in data["options"].items() for alias in aliases}
    return KnownNames(
        data["version"], frozenset(data["engines"]), {**names, **{name: name for name in data["options"]}}
    )


DIRECTIONS = {
    "read": (False, True, False),
    "write": (False, False, True),
    "randread": (True, True, False),
    "randwrite": (True, False, True),
    "rw": (False, True, True),
    "readwrite": (False, True, True),
    "randrw": (True, True, True),
}
"""rw -> random, reads, writes."""

ENGINES: dict[str, native.EngineKind] = {
    "io_uring": "io_uring",
    "io_uring_cmd": "io_uring_cmd",
    "libaio": "libaio",
    "psync": "psync",
    "sync": "psync",
    "pvsync": "pvsync",
    "pvsync2": "pvsync",
    "mmap": "mmap",
    "null": "null",
}
"""fio's ioengine -> iolab's engine."""

CHECKSUMS = (
    *("md5", "crc64", "crc32", "crc32c", "crc32c-intel", "crc16", "crc7", "xxhash", "sha1", "sha256", "sha512"),
    *("sha3-224", "sha3-256", "sha3-384", "sha3-512"),
)


@dataclass(frozen=True)
class Option:
    """An option of fio that iolab takes: the reader of its value, and whether it has an effect."""

    name: str
    state: Literal["supported", "accepted"]
    """supported: does what it does in fio; accepted: has no effect on iolab's engine."""
    read: Reader
    default: Any
    help: str


def _read_rw(text: str, kb_base: int = value.KB_BASE) -> tuple[str, int]:
    """The word, and the size after a colon: `read:8k` -> 8192."""
    name, _, step = text.partition(":")
    if "trim" in name:
        raise ValueError(f'"{text}": iolab has no trims; it has {", ".join(DIRECTIONS)}')
    return value.word(*DIRECTIONS)(name, kb_base), value.whole(step, kb_base) if step else 0


def _read_engine(text: str, kb_base: int = value.KB_BASE) -> str:
    if text in ENGINES:
        return text

    what = "fio has it, iolab has not" if text in known().engines else unknown("engine", text, ENGINES)
    raise ValueError(f'"{text}": {what}; iolab runs {", ".join(ENGINES)}')


@dataclass(frozen=True)
class Distribution:
    """Which blocks random operations prefer."""

    name: Literal["zipf", "pareto", "normal", "zoned"]
    parameter: float = 0.0
    """theta, h or the deviation in percent."""
    zones: tuple[Zone, ...] = ()


DISTRIBUTIONS: dict[str, tuple[float, float, float]] = {
    "zipf": (1.1, 0.0, 100.0),
    "pareto": (0.2, 0.0, 1.0),
    "normal": (0.0, -1.0, 100.0001),
}
"""The default of a distribution's parameter, and what it is above and below."""
DISTRIBUTIONS_EXPECTED = "expected random, zipf:THETA, pareto:H, normal:DEVIATION, zoned:... or zoned_abs:..."


DISTRIBUTIONS_HELP = (
    "random, zipf, pareto, normal, zoned or zoned_abs, with their parameters; a centre has no effect, as in fio."
)


def _read_distribution(text: str, kb_base: int = value.KB_BASE) -> Distribution | None:
    """None for uniform. A centre, the second parameter, has no effect: fio hashes ranks over the range before it
    adds one (lib/zipf.c, lib/gauss.c of fio 3), so that it only turns the range round."""
    name, _, rest = text.partition(":")
    if text == "random":
        return None
    if name in ("zoned", "zoned_abs"):
        if "," in rest:
            raise ValueError(f'"{text}": iolab has the same zones for reads and writes')
        zones = read_zones(rest, lambda size: value.whole(size, kb_base), in_percent=name == "zoned")
        return Distribution("zoned", zones=tuple(zones))
    if name in DISTRIBUTIONS:
        default, above, below = DISTRIBUTIONS[name]
        parameter, _, centre = rest.partition(":")
        try:
            number = float(parameter or default)
            if above < number < below and 0 <= float(centre or 0) <= 1:
                return Distribution(cast(Literal["zipf", "pareto", "normal"], name), number)
        except ValueError:
            pass
    raise ValueError(f'"{text}" given; {DISTRIBUTIONS_EXPECTED}')


def _read_files_order(text: str, kb_base: int = value.KB_BASE) -> str:
    orders = {"random": "random", "roundrobin": "round_robin", "sequential": "sequential"}
    return orders[value.word(*orders)(text, kb_base)]


def _read_fallocate(text: str, kb_base: int = value.KB_BASE) -> str:
    if text in ("none", "0", "truncate"):
        return text
    raise ValueError(f'"{text}" given; iolab makes files sparse: none or truncate')


def _supported() -> Iterable[tuple[str, Reader, Any, str]]:
    sizes, bool_, whole = value.size, value.boolean, value.count
    second, microsecond = value.duration_ns(1_000_000_000), value.duration_ns(1_000)
    yield "name", value.nonempty, None, "Name of the job, instead of its section's."
    yield "rw", _read_rw, ("read", 0), "read, write, rw and the random ones; `read:8k` skips, `read:-8k` goes backward."
    yield (
        "bs",
        value.directions(value.positive),
        None,
        "Block size; `8k,64k`: of reads, of writes.",
    )
    yield (
        "bsrange",
        value.directions(value.block_range),
        None,
        "Uniform over the multiples of the smaller size; with a comma as bs.",
    )
    yield (
        "bssplit",
        value.directions(value.block_split),
        None,
        "Sizes with percentages of the operations; with a comma as bs.",
    )
    yield (
        "ba",
        value.directions(value.positive),
        None,
        "Offsets are multiples of this, else of the smallest block.",
    )
    yield (
        "size",
        sizes,
        None,
        "Bytes of the job's files together, and bytes that it transfers; 100%: the whole existing file.",
    )
    yield "io_size", sizes, None, "Bytes that it transfers, instead of size."
    yield "filesize", sizes, None, "Bytes of each file."
    yield "offset", sizes, 0, "Start of the job's I/O in each file."
    yield "offset_increment", sizes, 0, "Added for each clone."
    yield "number_ios", value.count, None, "Ends after this many operations."
    yield "loops", value.positive, 1, "Multiplies the amount; new offsets are drawn."
    yield "runtime", second, 0, "Ends after this time, in seconds, unless the amount is done earlier."
    yield "time_based", bool_, False, "Continues until runtime is over, whatever the size."
    yield "startdelay", second, 0, "The job begins this much later than its stage; runtime counts from there."
    yield "ramp_time", second, 0, "I/O before the measured time; one for all jobs of a stage."
    yield "numjobs", value.up_to(1024), 1, "Clones of the job, each a thread."
    yield "stonewall", bool_, False, "Begins a stage: a separate phase, after all jobs above."
    yield "nrfiles", value.up_to(10_000), 1, "Files of the job, which share its size."
    yield "file_service_type", _read_files_order, "round_robin", "Which file is next: roundrobin, random, sequential."
    yield "filename", value.paths, None, "Names of the files, which clones share. Must lie in the target."
    yield "filename_format", value.nonempty, None, "With $jobname, $jobnum and $filenum."
    yield "directory", value.nonempty, None, "Where the files lie. Must lie in the target."
    yield "ioengine", _read_engine, "psync", f"{', '.join(ENGINES)}; sync runs as psync, pvsync2 as pvsync."
    yield "iodepth", value.up_to(4096), 1, "Operations in flight; 1 with engines that wait for each operation."
    yield "iodepth_batch", value.up_to(4096), None, "Operations submitted at once; by default as many as are ready."
    yield "direct", bool_, False, "O_DIRECT; mmap always uses the page cache."
    yield "buffered", bool_, True, "The opposite of direct."
    yield "rwmixread", value.percent, None, "Share of reads of a mix."
    yield "rwmixwrite", value.percent, None, "Share of writes of a mix."
    yield "rate", value.directions(value.positive), None, "Bytes per second, as an open loop: see above."
    yield "rate_iops", value.directions(value.positive), None, "Operations per second, as an open loop."
    yield "rate_process", value.word("linear", "poisson"), "linear", "Even or Poisson distances."
    yield "thinktime", microsecond, 0, "Pause between operations, in microseconds."
    yield "thinktime_blocks", value.positive, 1, "Operations between two pauses."
    yield "fsync", whole, 0, "Writes between two fsyncs."
    yield "fdatasync", whole, 0, "Writes between two fdatasyncs."
    yield "sync", value.word("none", "0", "sync", "1", "dsync"), "none", "Each write is durable: O_SYNC, or O_DSYNC."
    yield "end_fsync", bool_, False, "fsync at the end, inside the measured time."
    yield "invalidate", bool_, True, "Drops the cache before a stage with buffered reads; fio does so at each pass."
    yield "cpus_allowed", value.cpu_list, None, "CPUs of the job's threads."
    yield "cpumask", value.cpu_mask, None, "CPUs of the job's threads, as bits."
    yield "cpus_allowed_policy", value.word("shared", "split"), "shared", "split: a CPU for each clone, in turn."
    yield (
        "random_distribution",
        _read_distribution,
        None,
        DISTRIBUTIONS_HELP,
    )
    yield "norandommap", bool_, False, "Blocks may repeat before all have been visited."
    yield (
        "verify",
        value.word("0", "pattern", *CHECKSUMS),
        "0",
        "Any checksum, for which blocks carry iolab's own; or pattern.",
    )
    yield "do_verify", bool_, True, "The data that a job wrote is read and checked after its stage."
    yield "verify_pattern", value.pattern, None, 'Fills written blocks: `0xdeadbeef`, 255, `"text"`; see above.'
    yield "overwrite", bool_, False, "Files are laid out before they are written too."
    yield "registerfiles", bool_, False, "Files are registered with the ring."
    yield "fixedbufs", bool_, False, "Buffers are registered with the ring."
    yield (
        "zonemode",
        value.word("none", "zbd"),
        "none",
        "zbd: writes in sequence, each zone emptied before it is begun.",
    )
    yield "hipri", bool_, False, "Completions are polled for (io_uring, io_uring_cmd or pvsync2, direct)."
    yield "uncached", bool_, False, "Nothing stays in the page cache (RWF_DONTCACHE, Linux 6.14)."
    yield "atomic", bool_, False, "Writes reach the medium whole or not at all (RWF_ATOMIC, Linux 6.11)."
    yield (
        "write_hint",
        value.word("none", "short", "medium", "long", "extreme"),
        None,
        "How long what the job writes will live: F_SET_RW_HINT, Linux 4.13.",
    )
    yield "sqthread_poll", bool_, False, "A kernel thread submits."
    yield "sqthread_poll_cpu", value.count, None, "The CPU of that thread."
    yield "latency_target", microsecond, 0, "Searches for the largest depth up to iodepth that meets it: see above."
    yield "latency_window", microsecond, 0, "How long each depth is tried."
    yield "latency_percentile", value.percentile, 100.0, "Percentage of the I/Os that must be within the target."
    yield "latency_run", bool_, False, "Continues at the depth that was found, instead of ending."
    yield (
        "steadystate",
        value.steady_rate,
        value.STEADY_BY_DEFAULT,
        "Ends when the rate is steady: `iops:1%`; see above.",
    )
    yield "steadystate_duration", second, 0, "Window in which the rate has to be steady; 0: no check."
    yield "steadystate_ramp_time", second, 0, "The first interval begins this much later than the job."
    yield "steadystate_check_interval", second, 1_000_000_000, "Length of each interval of the window."
    yield "kb_base", value.positive, value.KB_BASE, "1024: k is 1024 and kib is 1000; 1000: the other way round."


_ACCEPTED = {
    "offsets and their order follow the experiment's seed": (
        *("randrepeat", "randseed", "allrandrepeat", "random_generator"),
    ),
    "jobs are always threads": ("thread", "threads"),
    "every job and the whole stage are in the record": ("group_reporting", "new_group", "description", "unit_base"),
    "latencies are always measured; their histogram is in the record": (
        *("lat_percentiles", "clat_percentiles", "slat_percentiles", "percentile_list", "significant_figures"),
        *("gtod_reduce", "disable_lat", "disable_clat", "disable_slat", "disable_bw_measurement", "clocksource"),
        *("unified_rw_reporting", "disk_util", "stats"),
    ),
    "intervals are in the record, in place of log files": (
        *("write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "log_avg_msec", "log_hist_msec"),
        *("log_hist_coarseness", "log_max_value", "log_offset", "log_prio", "log_entries", "log_compression"),
        *("log_store_compressed", "log_unix_epoch", "per_job_logs", "bwavgtime", "iopsavgtime"),
    ),
    "files are made before the measured time and removed after the trial": (
        *("unlink", "create_serialize", "create_fsync", "create_on_open", "allow_file_create", "openfiles"),
    ),
    "completions are taken as they are ready": (
        *("iodepth_batch_complete_min", "iodepth_batch_complete_max", "iodepth_low", "userspace_reap", "nonvectored"),
    ),
    "latency counts from the time an operation is due, whichever thread submits it": ("io_submit_mode", "rate_cycle"),
    "buffers are page-aligned memory; written data never repeats": (
        *("mem", "iomem_align", "hugepage-size", "refill_buffers", "scramble_buffers"),
    ),
    "wrong blocks are counted; the first ones are reported": (
        *("verify_fatal", "verify_dump", "verify_async", "verify_backlog", "verify_backlog_batch"),
        *("verify_interval", "verify_state_save"),
    ),
    "failed operations are counted; the job continues": ("continue_on_error", "error_dump"),
    "no advice is given to the kernel": ("fadvise_hint",),
    "no engine of fio reads it": ("write_barrier",),
}

OPTIONS: dict[str, Option] = {
    **{name: Option(name, "supported", read, default, help) for name, read, default, help in _supported()},
    "fallocate": Option("fallocate", "accepted", _read_fallocate, "none", "Files are sparse: none or truncate only."),
    "cmd_type": Option("cmd_type", "accepted", value.word("nvme"), "nvme", "Commands of io_uring_cmd: nvme alone."),
    **{
        name: Option(name, "accepted", value.plain, None, f"{why[0].upper()}{why[1:]}.")
        for why, names in _ACCEPTED.items()
        for name in names
    },
}
"""By fio's own name."""

FORBIDDEN = {
    **dict.fromkeys(("exec_prerun", "exec_postrun"), "it runs a command"),
    **dict.fromkeys(("ioscheduler",), "it changes a tunable that nobody restores; use a setting, scheduler = ..."),
    **dict.fromkeys(
        ("cgroup", "cgroup_weight", "cgroup_nodelete", "uid", "gid"),
        "it changes the user or the control group of processes",
    ),
    **dict.fromkeys(
        ("opendir", "read_iolog", "write_iolog", "replay_redirect", "merge_blktrace_file", "verify_state_load"),
        "it names files outside the target",
    ),
    **dict.fromkeys(
        ("trim_percentage", "trim_verify_zero", "trim_backlog", "trim_backlog_batch", "unlink_each_loop"),
        "it discards, resets or removes data that it did not create",
    ),
    "recover_zbd_write_error": "it discards, resets or removes data that it did not create",
    **dict.fromkeys(("profile", "allow_mounted_write", "lockmem", "create_only"), "it does not concern a job's I/O"),
}
"""Options that are refused also when fio runs the job, with the reason: they reach beyond the target."""

FORBIDDEN_TO_FIO = {
    "zonemode": "it resets zones wherever it is pointed; iolab's engine empties a zone before it writes it anew",
    "ioengine=io_uring_cmd": "it takes a character device, which iolab hands to its own engine alone",
}
"""Options, alone or with one value, that are refused only when fio runs the job."""

WITHOUT_EFFECT = {"allow_mounted_write": "0"}
"""Refused options, and the value with which they have no effect."""

FILE_ENGINES = frozenset({*ENGINES, "vsync", "posixaio", "splice"} - {"io_uring_cmd"})
"""The engines of fio that read and write the files they are given and do nothing else."""
