"""Replays of a trace of 4 KiB random direct reads that arrive independently of one another, 100,000 a second, on a loop
device on tmpfs, from a thread of real-time priority and from one of ordinary priority. The figures are the share of
arrivals that are submitted more than 100 us after their time, the 99th percentile of the lateness, and the time of the
whole replay over the trace's own. Lateness is taken from the engine's clock when an I/O enters the ring; the kernel's
own share comes after that.

A loop device needs threads of its own for each I/O, and this machine has two CPUs for them and for the replay. The same
trace is therefore also replayed on a zram device, which does the I/O in the call that submits it (`engine = "libaio"`).
While a thread of real-time priority waits for the next arrival, the machine's other tasks have one CPU less, a loop
device's workers included.

An arrival is late because the thread was late, or because all of the queue depth was in flight: then the device does
not keep up. Three rows separate the two causes: the device's own rate at the same queue depth; the highest of some
rates at which 99 % of the arrivals are within 100 us; and the lateness with I/Os that complete at once (the null
engine), which is the thread's alone. The peer is fio, which reads the same trace as its own log (`read_iolog`, version
3) at the depth that iolab uses.
"""

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from random import Random

import loop_device
import zram_device
from iolab import _native
from iolab.domain.native_types import EngineKind, JobRecord, Phase
from iolab.domain.workload import KINDS
from iolab.domain.workload.trace import TraceOptions
from result import NotMeasured, Result, at_most, bounded, paired, plain
from startup import MEMORY

RATE_PER_S = 100_000
SIZE_MIB = 256
DEPTH = 1024
COLUMNS = "time:ns,operation,offset:B,size:B"
LATE_PERCENT_MAX, LATENESS_NS_MAX = 1.0, 100_000.0
RATES_PER_S = (10_000, 20_000, 40_000, 60_000, 80_000, 100_000, 150_000, 200_000)


@dataclass(frozen=True)
class Replayed:
    late_percent: float
    queue_full_percent: float
    """The share of all arrivals that were late because the queue was full."""
    lateness_ns_p99: float
    elapsed_s: float


def measure(quick: bool) -> list[Result]:
    seconds, rounds = (0.3, 1) if quick else (5.0, 5)
    with (
        tempfile.TemporaryDirectory(prefix="iolab-bench-", dir=MEMORY) as name,
        loop_device.bare(size_mib=SIZE_MIB) as device,
        zram_device.filled(size_mib=SIZE_MIB) as memory,
    ):
        trace, log = Path(name) / "trace.csv", Path(name) / "log"
        span_s = plant(trace, log, device, seconds, RATE_PER_S)
        ours, ordinary, theirs, alone, in_memory = [], [], [], [], []
        for _ in range(rounds):
            in_memory.append(replay(trace, memory, realtime=True, engine="libaio"))
            ours.append(replay(trace, device, realtime=True))
            ordinary.append(replay(trace, device))
            theirs.append(fio(log, device))
            alone.append(replay(trace, device, realtime=True, engine="null"))
        kept_up = [kept_up_per_s(Path(name), device, seconds / 4) for _ in range(min(rounds, 3))]
        most = [most_per_s(device, seconds / 2) for _ in range(rounds)]
    command = f"iolab replay trace.csv --columns {COLUMNS} --on {device}"
    late = f"arrivals later than 100 us, {RATE_PER_S:,} a second"
    return [
        bounded(
            late,
            "percent",
            [one.late_percent for one in ours],
            limit=LATE_PERCENT_MAX,
            commands=[f"{command} --realtime"],
        ),
        bounded(
            f"{late}, though the queue was not full",
            "percent",
            [one.late_percent - one.queue_full_percent for one in ours],
            limit=LATE_PERCENT_MAX,
        ),
        bounded(
            f"{late}, ordinary priority",
            "percent",
            [one.late_percent for one in ordinary],
            limit=LATE_PERCENT_MAX,
            commands=[command],
        ),
        bounded(
            f"{late}, zram",
            "percent",
            [one.late_percent for one in in_memory],
            limit=LATE_PERCENT_MAX,
            commands=[f"{command.replace(str(device), str(memory))} --realtime"],
        ),
        bounded(
            "99th percentile of lateness, zram",
            "ns",
            [one.lateness_ns_p99 for one in in_memory],
            limit=LATENESS_NS_MAX,
        ),
        bounded(f"{late}, null engine", "percent", [one.late_percent for one in alone], limit=LATE_PERCENT_MAX),
        bounded("99th percentile of lateness", "ns", [one.lateness_ns_p99 for one in ours], limit=LATENESS_NS_MAX),
        plain("highest rate at which 99 % of arrivals are within 100 us", "1/s", kept_up),
        plain(f"the device's own rate, kept at a depth of {DEPTH:,}", "1/s", most),
        paired(
            "time of the replay over the trace's",
            "share",
            [one.elapsed_s / span_s for one in ours],
            [one / span_s for one in theirs],
            "fio read_iolog",
            target=at_most(1.001),
        ),
    ]


def kept_up_per_s(directory: Path, device: Path, seconds: float) -> float:
    """The highest rate up to which the replay keeps up with each rate; 0 if it keeps up with none."""
    highest = 0
    for rate_per_s in RATES_PER_S:
        trace, log = directory / f"{rate_per_s}.csv", directory / f"{rate_per_s}.log"
        plant(trace, log, device, seconds, rate_per_s)
        if replay(trace, device, realtime=True).late_percent > LATE_PERCENT_MAX:
            break
        highest = rate_per_s
    return float(highest)


def most_per_s(device: Path, seconds: float) -> float:
    """Random reads of 4 KiB per second, always as many in flight as the replay may have."""
    given = {"pattern": "random", "queue_depth": DEPTH, "duration": f"{seconds * 1000:.0f}ms", "block_size": "4KiB"}
    given |= {"file_size": f"{SIZE_MIB}MiB", "layout": False, "drop_caches": False}
    kind = KINDS["io"]
    load = kind.phases(kind.options.model_validate(given), 1)[-1].load  # type: ignore[union-attr]
    (file,) = load["files"]
    file |= {"path": str(device), "create": False}
    (job,) = ran(load)
    return job["read"]["count"] / (job["finished_ns"] / 1e9)


def plant(trace: Path, log: Path, device: Path, seconds: float, rate_per_s: int) -> float:
    """Writes the trace as a table and as fio's log; from the first arrival to the last, in seconds."""
    random = Random(1)
    now_ns, rows, lines = 0.0, [], [f"fio version 3 iolog\n0 {device} add\n0 {device} open"]
    blocks = SIZE_MIB * 256
    while now_ns < seconds * 1e9:
        offset = random.randrange(blocks) * 4096
        rows.append(f"{int(now_ns)},R,{offset},4096")
        lines.append(f"{int(now_ns / 1e3)} {device} read {offset} 4096")
        now_ns += random.expovariate(rate_per_s) * 1e9
    lines.append(f"{int(now_ns / 1e3)} {device} close")
    trace.write_text("\n".join(rows) + "\n")
    log.write_text("\n".join(lines) + "\n")
    return int(rows[-1].split(",")[0]) / 1e9


def replay(trace: Path, device: Path, *, realtime: bool = False, engine: EngineKind = "io_uring") -> Replayed:
    given = {"file": str(trace), "columns": COLUMNS, "queue_depth": DEPTH, "realtime": realtime, "align": "4KiB"}
    options = TraceOptions.model_validate(given)
    load = KINDS["trace"].phases(options, 1)[-1].load  # type: ignore[union-attr]
    (file,) = load["files"]
    file |= {"path": str(device), "create": False}
    file.pop("place", None)
    for group in load["groups"]:
        group["engine"] = engine
    (job,) = ran(load)
    found = job["replay"]
    assert found is not None
    late, full = (100 * found[key] / found["arrivals"] for key in ("arrivals_late", "arrivals_late_queue_full"))
    return Replayed(late, full, found["lateness_ns_p99"] or 0, job["finished_ns"] / 1e9)


def ran(load: Phase) -> list[JobRecord]:
    """The jobs of a load that ran to its end without an error."""
    under_way = _native.Load.start(json.dumps(load), _native.Memory())
    record = under_way.wait(60)
    if record is None:
        under_way.stop()
        raise NotMeasured("the load did not end")
    jobs: list[JobRecord] = [job for group in json.loads(record)["groups"] for job in group["jobs"]]
    for job in jobs:
        if job["errors"]:
            raise NotMeasured(f"the load had errors: {job['errors'][0]}")
    return jobs


def fio(log: Path, device: Path) -> float:
    """How long fio takes for its log, in seconds."""
    command = [
        *("fio", "--name=replay", f"--read_iolog={log}", "--ioengine=io_uring", "--direct=1"),
        *(f"--iodepth={DEPTH}", "--output-format=json", "--readonly"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise NotMeasured(f"fio: {done.stderr.strip() or done.returncode}")
    (job,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    return float(job["job_runtime"]) / 1e3
