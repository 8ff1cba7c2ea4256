"""What one job of a job file comes to in iolab's terms: sizes, files, blocks, bounds. Pure; problems are noted."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from iolab.base.quantity import size_in_words
from iolab.domain import native_types as native
from iolab.domain.workload.block_sizes import AlignedBlocks, mean_bytes
from iolab.domain.workload.fio_file.ini import USE_FIO, JobFileProblems
from iolab.domain.workload.fio_file.job_file import FioJob, Runner
from iolab.domain.workload.fio_file.option import DIRECTIONS, ENGINES, Distribution
from iolab.domain.workload.fio_file.value import Directions, SteadyRate
from iolab.domain.workload.job import RINGS, TAKE_FLAGS
from iolab.domain.workload.load import plain_pattern
from iolab.domain.workload.zone import zoned

FILE_GRANULE_BYTES = 4096
ONE_AT_A_TIME = ("psync", "pvsync", "mmap")
DEFAULT_BLOCK_BYTES = 4096


@dataclass(frozen=True)
class Shape:
    """A job's numbers, the same for each of its clones except where the clone's number is asked for."""

    job: FioJob
    random: bool
    reads: bool
    writes: bool
    blocks: Mapping[int, float]
    """Sizes of operations, with weights; of reads only, if writes have their own."""
    align_bytes: int
    writes_alone: AlignedBlocks | None
    """Sizes and alignment of writes, if a mix has others for them."""
    file_count: int
    """The files of each clone."""
    length_bytes: int
    """The length of the range in each file, in whole aligned blocks."""

    @property
    def engine(self) -> native.EngineKind:
        """iolab's engine for the job's ioengine; psync for one that it has no counterpart of."""
        return ENGINES.get(self.job["ioengine"], "psync")

    @property
    def direct(self) -> bool:
        """Whether the page cache is bypassed, as commands always do. mmap and null have no O_DIRECT, whatever the job
        sets."""
        if self.engine == "io_uring_cmd":
            return True
        wanted = self.job["direct"] if self.job.has("direct") else not self.job["buffered"]
        return wanted and self.engine not in ("mmap", "null")

    @property
    def queue_depth(self) -> int:
        """I/Os in flight of one job; 1 for engines that do one at a time, whatever iodepth is."""
        return 1 if self.engine in ONE_AT_A_TIME else int(self.job["iodepth"])

    @property
    def read_share(self) -> float:
        """The share of reads among the operations that are offered, 0 to 1. In fio each direction of a mix goes at its
        own rate, so that two rates say what the mix is."""
        reads, writes = self.rates_per_s
        return self._mixed_share if reads is None or writes is None else reads / (reads + writes)

    @property
    def rates_per_s(self) -> tuple[float | None, float | None]:
        """The rates of reads and of writes, in operations; None without one, and for a direction that it has not."""
        of_ops: Directions | None = self.job["rate_iops"]
        given = of_ops or self.job["rate"] or Directions(None, None)
        each = (1.0, 1.0) if of_ops else self.mean_bytes
        reads, writes = (None if limit is None else limit / size for limit, size in zip(given, each, strict=True))
        share = self._mixed_share
        return reads if share > 0 else None, writes if share < 1 else None

    @property
    def _mixed_share(self) -> float:
        """Of reads, as rwmixread or rwmixwrite has it; half if neither is given."""
        if not (self.reads and self.writes):
            return 1.0 if self.reads else 0.0
        given = self.job["rwmixread"]
        if given is None and self.job["rwmixwrite"] is not None:
            given = 100 - self.job["rwmixwrite"]
        return (50 if given is None else given) / 100

    @property
    def mean_block_bytes(self) -> float:
        """The mean size of an operation, weighted by how often each is drawn, in bytes."""
        reads, writes = self.mean_bytes
        return reads * self.read_share + writes * (1 - self.read_share)

    @property
    def mean_bytes(self) -> tuple[float, float]:
        """The mean size of a read and of a write, in bytes."""
        of_both = mean_bytes(self.blocks)
        return of_both, of_both if self.writes_alone is None else mean_bytes(self.writes_alone.sizes)

    @property
    def sizes(self) -> list[int]:
        """Every size that an operation may have."""
        return [*self.blocks, *(() if self.writes_alone is None else self.writes_alone.sizes)]

    @property
    def aligns(self) -> list[int]:
        """The multiple of offsets: of reads, and of writes if those have their own."""
        return [self.align_bytes, *([] if self.writes_alone is None else [self.writes_alone.align_bytes])]

    @property
    def lays_out(self) -> bool:
        """Whether its files hold data before it begins."""
        return self.engine != "null" and (self.reads or self.job["overwrite"])

    @property
    def verifies(self) -> bool:
        """Whether what is read is checked against what was written."""
        return self._verify != "0"

    @property
    def _verify(self) -> str:
        """As fio, a verify_pattern alone is a verify=pattern."""
        if self.job.has("verify_pattern") and not self.job.has("verify"):
            return "pattern"
        return str(self.job["verify"])

    @property
    def filling(self) -> native.VerifyPattern | None:
        """What verified blocks are filled with; None for pseudo-random bytes behind iolab's stamp."""
        given: bytes | None = self.job["verify_pattern"]
        return None if given is None else {"bytes": list(given), "alone": self._verify == "pattern"}

    @property
    def start_ns(self) -> int:
        """From when on it offers I/O, since the start of its stage."""
        return int(self.job["startdelay"])

    @property
    def depth_search(self) -> native.DepthSearch | None:
        """The search for the queue depth that keeps latency_target; None without one."""
        if not self.job["latency_target"]:
            return None
        return {
            "target_ns": self.job["latency_target"],
            "window_ns": self.job["latency_window"],
            "share": self.job["latency_percentile"] / 100,
            "goes_on": self.job["latency_run"],
        }

    @property
    def steady_state(self) -> native.SteadyState | None:
        """The steady rate that the job runs for; None if it runs to its bounds."""
        wanted: SteadyRate = self.job["steadystate"]
        if not self.job["steadystate_duration"]:
            return None
        return {
            "of": wanted.of,
            "by": wanted.by,
            "limit": wanted.limit,
            "in_percent": wanted.in_percent,
            "window_ns": self.job["steadystate_duration"],
            "interval_ns": self.job["steadystate_check_interval"],
            "ramp_ns": self.job["steadystate_ramp_time"],
        }

    @property
    def time_based(self) -> bool:
        """Without a runtime, fio takes time_based for not given."""
        return bool(self.job["time_based"] and self.job["runtime"])

    @property
    def is_one_pass(self) -> bool:
        """Whether it ends when its files are through, once."""
        others = (self.job["runtime"], self.job["io_size"], self.job["number_ios"])
        return not any(others) and self.job["loops"] == 1

    def offset_bytes(self, clone: int) -> int:
        """Where in its file the clone of this number, from 0, begins, in bytes."""
        return int(self.job["offset"] + clone * self.job["offset_increment"])

    def file_bytes(self, clone: int) -> int:
        """Size of each file: at least filesize, and at least to the end of the range."""
        end = max(self.offset_bytes(clone) + self.length_bytes, self.job["filesize"] or 0)
        return -(-end // FILE_GRANULE_BYTES) * FILE_GRANULE_BYTES

    def names(self, clone: int) -> list[str]:
        """As the job file has them; clones and jobs with equal names share files."""
        given = self.job["filename"]
        if given is None:
            pattern = self.job["filename_format"] or "$jobname.$jobnum.$filenum"
            fills = {"$jobname": self.job.name, "$jobnum": str(clone)}
            for variable, text in fills.items():
                pattern = pattern.replace(variable, text)
            given = [pattern.replace("$filenum", str(number)) for number in range(self.file_count)]
        directory = self.job["directory"]
        if self.engine == "io_uring_cmd":
            # The namespace's block device; fio takes the character device: the kernel gives both one number.
            given = [re.sub(r"/dev/ng(?=\d+n\d+$)", "/dev/nvme", name) for name in given]
        return [name if directory is None or name.startswith("/") else f"{directory}/{name}" for name in given]

    def pattern(self) -> native.Pattern:
        """The engine's (crates/measure/workload/src/spec.rs)."""
        step = self.job["rw"][1]
        if self.random:
            if self.job["random_distribution"] is not None:
                return self._skewed(self.job["random_distribution"])
            once = not self.job["norandommap"] and self._is_of_one_size
            return plain_pattern("permutation" if once else "uniform")
        if step > 0:
            return {"kind": "strided", "stride_bytes": min(self.blocks) + step}
        return plain_pattern("backward" if step < 0 else "sequential")

    def _skewed(self, found: Distribution) -> native.Pattern:
        match found.name:
            case "zipf":
                return {"kind": "zipf", "theta": found.parameter}
            case "pareto":
                return {"kind": "pareto", "h": found.parameter}
            case "normal":
                return {"kind": "normal", "deviation_percent": found.parameter}
            case "zoned":
                return zoned(found.zones, self.length_bytes)

    @property
    def _is_of_one_size(self) -> bool:
        """Each direction has one size, and blocks of that size side by side."""
        return self.sizes == self.aligns

    def bounds(self) -> native.JobBounds:
        """The engine's `until`: whichever comes first."""
        duration_ns = self.start_ns + self.job["ramp_time"] + self.job["runtime"] if self.job["runtime"] else None
        if self.time_based:
            return {"ops": self.job["number_ios"], "bytes": None, "duration_ns": duration_ns}
        ops = self.job["number_ios"]
        if not self.random and self.job["rw"][1] > 0 and self.job["io_size"] is None:
            steps = -(-self.length_bytes // (min(self.blocks) + self.job["rw"][1])) * self.file_count
            ops = min(ops or steps, steps * self.job["loops"])
        return {"ops": ops, "bytes": self._amount_bytes() * self.job["loops"], "duration_ns": duration_ns}

    def _amount_bytes(self) -> int:
        """fio asks whether enough was issued before each operation, so an io_size that is no multiple is exceeded."""
        smallest = min(self.sizes)
        wanted = self.job["io_size"]
        if wanted is not None:
            return max(-(-int(wanted) // smallest) * smallest, max(self.sizes))
        whole = self.length_bytes * self.file_count
        return max(min(whole, -(-int(self.job["size"] or whole) // smallest) * smallest), max(self.sizes))


def shape_of(job: FioJob, default_size: int | None, problems: JobFileProblems, runner: Runner) -> Shape | None:
    """None, with the problem noted, if it is unknown what the job would do."""
    random, reads, writes = DIRECTIONS[job["rw"][0]]
    of_reads, of_writes = _blocks(job)
    is_split = reads and writes and of_reads != of_writes
    blocks = of_reads if reads else of_writes
    sizes = [*of_reads, *of_writes] if is_split else list(blocks)
    files = len(job["filename"]) if job["filename"] is not None else job["nrfiles"]
    size = job["size"] or default_size
    length = size // files if size is not None else None
    if job["filesize"] is not None:
        length = job["filesize"] - job["offset"]
    if length is None:
        # A size that could not be read is a problem already.
        if not job.has("size") or "size" in job.values:
            problems.add(job.line, f"{job.name}: no size; set one, such as size=1g")
        return None
    given = job["ba"] or Directions(None, None)
    align = (given.read or min(of_reads)) if is_split else max((part for part in given if part), default=min(blocks))
    writes_alone = AlignedBlocks(of_writes, given.write or min(of_writes)) if is_split else None
    granule = align if writes_alone is None else math.gcd(align, writes_alone.align_bytes)
    length = length // granule * granule
    if length < max(sizes):
        line = job.line_of("filesize" if job.has("filesize") else "size")
        problems.add(
            line,
            f"{job.name}: no block of {size_in_words(max(sizes))} fits into files of {size_in_words(max(length, 0))}",
        )
        return None
    shape = Shape(job, random, reads, writes, blocks, align, writes_alone, files, length)
    if runner == "iolab":
        for option, what in _conflicts(shape):
            problems.add(job.line_of(option), f"{option}: {what}")
    return shape


def _blocks(job: FioJob) -> tuple[Mapping[int, float], Mapping[int, float]]:
    """The sizes of reads and those of writes, with weights."""
    plain = {DEFAULT_BLOCK_BYTES: 1.0}
    for option in ("bssplit", "bsrange", "bs"):
        given: Directions | None = job[option]
        if given is not None:
            sizes = [part if isinstance(part, Mapping) or part is None else {part: 1.0} for part in given]
            read, write = (part or plain for part in sizes)
            return read, write
    return plain, plain


def _conflicts(shape: Shape) -> Iterator[tuple[str, str]]:
    """What the engine can't do, each with the option to blame."""
    job = shape.job
    step = job["rw"][1]
    if shape.random and step not in (0, 1):
        yield "rw", f"every offset is drawn; leave :{step} out, or {USE_FIO}"
    if not shape.random and step and len(set(shape.sizes)) > 1:
        yield "rw", f"a step between blocks of several sizes; keep one of the two, or {USE_FIO}"
    if not shape.random and step < 0 and step != -2 * min(shape.blocks):
        yield "rw", f"backward is -{2 * min(shape.blocks)}, two blocks, here; {USE_FIO} for another step"
    if not shape.random and step > 0 and step % shape.align_bytes:
        yield "rw", f"a step of {size_in_words(step)} is no multiple of {shape.align_bytes}"
    if shape.direct and math.gcd(*shape.sizes, *shape.aligns, job["offset"], job["offset_increment"]) % 512:
        blamed = next(name for name in ("bssplit", "bsrange", "bs", "ba", "offset", "direct") if job.has(name))
        yield blamed, "direct I/O needs multiples of 512 bytes"
    if misaligned := [align for align in shape.aligns if (job["offset"] + job["offset_increment"]) % align]:
        yield "offset", f"is no multiple of {misaligned[0]}, to which offsets are aligned"
    if (job.has("rate") or job.has("rate_iops")) and job["thinktime"]:
        yield "thinktime", f"an open loop (rate, rate_iops) does not wait; leave one out, or {USE_FIO}"
    if 0 < shape.read_share < 1 and shape.rates_per_s.count(None) == 1:
        blamed = "rate_iops" if job.has("rate_iops") else "rate"
        without = "reads" if shape.rates_per_s[0] is None else "writes"
        yield blamed, f"{without} of the mix have no rate, as many as fit in; give both, or {USE_FIO}"
    if job.has("rate") and job.has("rate_iops"):
        yield "rate_iops", "rate is given too; keep one of the two"
    if job["fsync"] and job["fdatasync"]:
        yield "fdatasync", "fsync is given too; keep one of the two"
    if job["sync"] not in ("none", "0") and shape.engine == "mmap":
        yield "sync", f"engine mmap makes no call that could be durable; {USE_FIO}"
    if job["ramp_time"] and not job["runtime"]:
        yield "ramp_time", "needs runtime: a job that ends by its size is measured from its first byte to its last"
    if job["zonemode"] == "zbd" and shape.writes and (shape.random or shape.reads or step or not shape.direct):
        yield "zonemode", "zones are written in sequence alone here; say rw=write and direct=1"
    if job["sqthread_poll"] and shape.engine not in RINGS:
        yield "sqthread_poll", f"only with ioengine=io_uring or io_uring_cmd, not {job['ioengine']}; {USE_FIO}"
    if job["hipri"] and shape.engine not in (*RINGS, "pvsync"):
        yield "hipri", f"only with ioengine=io_uring, io_uring_cmd or pvsync2, not {job['ioengine']}; {USE_FIO}"
    if job["hipri"] and not shape.direct:
        yield "hipri", "polled completion needs direct=1"
    for option in (option for option in ("uncached", "atomic") if job[option] and shape.engine not in TAKE_FLAGS):
        yield option, f"only with ioengine=io_uring, libaio or pvsync2, not {job['ioengine']}; {USE_FIO}"
    if job["uncached"] and shape.direct:
        yield "uncached", "direct I/O has nothing in the page cache; uncached needs direct=0"
    if job["atomic"] and not shape.direct:
        yield "atomic", "the kernel writes atomically past the page cache alone; say direct=1"
    if job["write_hint"] is not None and shape.engine == "null":
        yield "write_hint", "the null engine writes nothing"
    if shape.verifies and shape.engine == "null":
        yield "verify", "the null engine moves no data, so there is nothing to verify"
    if shape.verifies and shape.writes and job["numjobs"] > 1 and job.has("filename"):
        yield "verify", "clones share the file, so its contents are undefined; let each have its own"
    if shape.verifies and math.gcd(*shape.sizes, *shape.aligns, job["offset"]) % 512:
        yield "verify", "blocks are stamped in units of 512 bytes; choose a multiple for block size and offset"
    if job["verify"] == "pattern" and not job.has("verify_pattern"):
        yield "verify", "pattern needs verify_pattern, such as verify_pattern=0xdeadbeef"
    if shape.start_ns and job["ramp_time"]:
        yield "startdelay", f"ramp_time counts from the start of the stage here; keep one of the two, or {USE_FIO}"
    yield from _search_conflicts(shape)
    yield from _steady_conflicts(shape)


def _search_conflicts(shape: Shape) -> Iterator[tuple[str, str]]:
    """What a search for a queue depth does not go with."""
    job = shape.job
    if not job["latency_target"]:
        for option in ("latency_window", "latency_percentile", "latency_run"):
            if job.has(option):
                yield option, "nothing is looked for without latency_target"
        return
    if not job["latency_window"]:
        yield "latency_target", "needs latency_window, how long each depth is tried, such as latency_window=2s"
    if shape.engine in ONE_AT_A_TIME:
        yield "latency_target", f"ioengine={job['ioengine']} has one I/O in flight; take io_uring or libaio"
    if job["numjobs"] > 1:
        yield "latency_target", f"with numjobs={job['numjobs']}: iolab searches with one job at a time; {USE_FIO}"
    if job.has("rate") or job.has("rate_iops"):
        yield "latency_target", f"an open loop (rate, rate_iops) has no depth to choose; leave one out, or {USE_FIO}"
    if job["ramp_time"]:
        yield "latency_target", "the search itself is not measured, so ramp_time has no part in it; leave it out"


STEADY_INTERVALS_MAX = 43_200
STEADY_INTERVAL_NS_MIN = 10_000_000
"""As crates/measure/workload/src/limits.rs has them."""


def _steady_conflicts(shape: Shape) -> Iterator[tuple[str, str]]:
    """What a steady rate does not go with."""
    job = shape.job
    wanted = shape.steady_state
    if wanted is None:
        for option in ("steadystate", "steadystate_ramp_time", "steadystate_check_interval"):
            if job.has(option):
                yield option, "nothing is looked at without steadystate_duration (ss_dur), such as ss_dur=10s"
        return
    window, interval = wanted["window_ns"], wanted["interval_ns"]
    if interval < STEADY_INTERVAL_NS_MIN:
        yield "steadystate_check_interval", "expected 10ms or more"
    elif window % interval or not 2 <= window // interval <= STEADY_INTERVALS_MAX:
        what = f"expected 2 to {STEADY_INTERVALS_MAX:,} whole intervals (steadystate_check_interval, by default 1 s)"
        yield "steadystate_duration", what
    if shape.depth_search is not None:
        yield "steadystate", "a search for a queue depth (latency_target) ends the job itself; keep one of the two"
