"""A configuration as the experiments that ask the guest and the model, and the model's machine."""

import sys
from pathlib import Path

from iolab.machines.guest import debian_source

from judge.configuration import BARE, Configuration, Job

WORKLOAD, SETTING = "load", "asked"
DIRTYABLE_PAGES = {
    BARE: (217_950, 215_200),
    "ext4": (213_500, 205_760),
    "xfs": (212_150, 214_860),
    "xfs with large folios": (213_550, 210_750),
}
"""Of memory that may be dirty in a guest machine of 1 GiB, by place: when dirty_ratio is set, and when the load begins,
with what null_blk keeps of files and the log. From `limit` and `setpoint` of the kernel's event balance_dirty_pages, in
one guest each: 6.12 on the drive itself (4359 and 4304 at 2 %), 6.1 on ext4 (2135 and 1648 at 1 %, with 160 MiB of
files), 6.1 on XFS (4243 and 3560 at 2 %, with 80 MiB), 6.12 on XFS (8542 and 7283 at 4 %, with 48 MiB)."""
XFS_LOG_MIB = 64
"""mkfs.xfs 6.1 fills its log, which null_blk keeps."""
UPSTREAM = {
    "6.1.0-56-cloud": "6.1.192",
    "6.12.117+deb12-cloud": "6.12.117",
    "linux-source-6.1": "6.1.192",
    "linux-source-6.12": "6.12.117",
}
"""The stable release that a Debian kernel is built from: `uname -v` in the guest."""
COPY_CALL_NS, PAGE_COPY_NS = 1815, 838
"""Of reads from the page cache in Debian's 6.1.0-56 on ext4 in a guest, where an instruction takes a nanosecond: 2,141
instructions for 4 KiB and 7,030 for 64 KiB (user and kernel, by psync, counted), and 512 steps of 8 bytes for copying a
page, which the count takes for one instruction."""
WRITE_NS = {BARE: (1527, 1512), "ext4": (1595, 1828), "xfs": (2474, 1477)}
"""Of writes to dirty pages of the page cache in the same guest, by place: what a call takes, and each page of it.
Medians of 4 KiB and of 64 KiB under 6.1.0-56, of one job alone that nothing holds (3,039 and 25,727 ns; 3,423 and
30,847; 3,951 and 26,111). 6.12 takes 8 % more on the drive itself (3,295 and 27,647)."""
LARGE_FOLIO_WRITE_NS = (3681, 638)
"""The same on XFS under 6.12.117, which finds a large folio once for all pages of a call (4,319 ns for 4 KiB, 6,239 for
16, 13,887 for 64)."""
REAP_CALL_NS, FURTHER_OP_NS = 3100, 6500
"""Of io_getevents, and of an operation that is not the first of its io_submit, in a guest of 6.1.0-56 before null_blk:
a read alone takes 12,366 instructions by psync and 15,467 by libaio, 11,127 as one of two and 7,459 as one of eight
that are submitted at once, so that further ones take 6,787 and 6,315."""
FURTHER_PAGE_NS = {BARE: 430, "ext4": 2600, "xfs": 2600}
"""Of each page of a direct operation after the first, by psync in a guest of 6.1.0-56: from 4 to 64 KiB reads take
12,430 and 18,389 instructions on the drive itself, writes 17,865 and 24,912; on ext4 15,973 and 45,213, 17,312 and
50,760, as null_blk then copies each page (512 steps of 8 bytes, which the count takes for one instruction). Means of
reads and writes; on XFS as on ext4 (inferred)."""
WAKE_NS = 5000
"""Of a completion, until an idle CPU takes who is woken: 205 us from block_rq_issue to sched_switch in 2,576 of 2,879
reads that were alone before a drive of 200 us, in a guest of 6.12.117 with these two events."""
QUEUE_RUN_NS = 9900
"""From a completion until the request that waited for its tag is issued, by the thread that the completion wakes: four
threads that each read 4 KiB from a drive of one command have a read in 508 to 513 us of 500 and in 2,008 to 2,010 us of
2,000, with mq-deadline, BFQ and none, in guests of 6.1.0-56 and 6.12.117; the mean of twelve."""
GAP_NS = 1400
"""Between two requests that one run of the queue sends, whose timers begin one after the other: seven gaps take 10 us
in a guest of 6.12.117 that records block_rq_issue among other events."""
START_NS, START_IN_GROUPS_NS = 7_977_000, 3_985_000
"""What the guest's agent has of the CPU after it has made the tasks of a load and before they begin, while it waits for
a tick (crates/measure/guest-agent/src/tick.rs), which is the next one or the one after: `sched_stat_runtime` in a guest
of 6.1.0-56, and `sched_switch` in one whose tasks are in control groups. Less than 6 ms let tasks begin behind by what
their forks cost them, the first the most."""
NULL_BLK_KIB = 127
"""Largest request of null_blk, which states no limit: BLK_SAFE_MAX_SECTORS, 255 (include/linux/blkdev.h of 6.1)."""
TARGET_SPARE_MIB = 64
XFS_MIB = 512
"""mkfs.xfs takes no less than 300 MiB; its log, as small as it can be, fits into a group of 128 MiB."""


def of_guest(asked: Configuration) -> str:
    """The experiment that asks the kernel."""
    return "\n".join(
        [
            f'machine = "guest:{_kernel(asked)}"',
            "rounds = 1",
            f"seed = {asked.boot}",
            "[target]",
            'kind = "scratch"',
            f'size = "{capacity_mib(asked)}MiB"',
            f'filesystem = "{asked.filesystem}"',
            "[probes]",
            "instructions = false",
            "[guest]",
            *([f'command_line = "judge.boot={asked.boot}"'] if asked.boot > 1 else []),
            *([f'config = "{Path(__file__).parent / asked.config}"'] if asked.config else []),
            "[guest.drive_parameters]",
            "irqmode = 2",
            f"completion_nsec = {1000 * asked.latency_us}",
            f"hw_queue_depth = {asked.drive_depth}",
            *_load(asked),
            *_setting(asked),
        ]
    )


def _kernel(asked: Configuration) -> str:
    """Of a source's name its tree, which is made if there is none."""
    if not debian_source.is_source(asked.kernel):
        return asked.kernel
    return f"{debian_source.tree(asked.kernel, lambda line: print(line, file=sys.stderr))}@HEAD"


def of_model(asked: Configuration, machine: str) -> str:
    """The experiment that asks the model.

    Args:
        machine: the file that `machine_file` describes, beside the experiment.
    """
    return "\n".join(
        [f'machine = "model:{machine}"', "rounds = 1", f"seed = {asked.boot}", *_load(asked), *_setting(asked)]
    )


def machine_file(asked: Configuration) -> str:
    """The simulated machine: `machines/known-latency.toml` with this drive, and its memory if I/O is buffered."""
    has_large_folios = asked.filesystem == "xfs" and UPSTREAM[asked.kernel] == "6.12.117"
    in_groups = any(job.has_group for job in asked.jobs)
    has_debit = UPSTREAM[asked.kernel].startswith("6.1.")
    call_ns, page_ns = LARGE_FOLIO_WRITE_NS if has_large_folios else WRITE_NS[asked.filesystem]
    lines = [
        f'kernel = "{UPSTREAM[asked.kernel]}"',
        "[cpus]",
        "count = 1",
        "time_slice_ns = 3000000",
        "call_ns = 7000",
        "completion_ns = 5000",
        f"wake_ns = {WAKE_NS}",
        f"queue_run_ns = {QUEUE_RUN_NS}",
        f"reap_call_ns = {REAP_CALL_NS}",
        f"further_op_ns = {FURTHER_OP_NS}",
        f"further_page_ns = {FURTHER_PAGE_NS[asked.filesystem]}",
        *(
            [f"start_ns = {START_IN_GROUPS_NS if in_groups else START_NS}"]
            if has_debit and not asked.has_processes
            else []
        ),
        f"copy_call_ns = {COPY_CALL_NS}",
        f"page_copy_ns = {PAGE_COPY_NS}",
        f"write_call_ns = {call_ns}",
        f"page_write_ns = {page_ns}",
        "clock_hz = 1000000000",
        "jitter = 0",
    ]
    if asked.buffered or asked.filesystem != "none":
        place = "xfs with large folios" if has_large_folios else asked.filesystem
        former, now = DIRTYABLE_PAGES[place]
        kept_mib = (asked.files_mib if asked.keeps_data else 0) + (XFS_LOG_MIB if asked.filesystem == "xfs" else 0)
        lines += ["[memory]", f"bytes = {4096 * now - (kept_mib << 20)}", f"former_bytes = {4096 * former}"]
    lines += ["[[drives]]", 'scheduler = { name = "none" }', f"queue = {{ max_sectors_kb = {NULL_BLK_KIB} }}"]
    if asked.filesystem != "none":
        lines.append(f'filesystem = {{ kind = "{asked.filesystem}"{_OWN.get(asked.filesystem, "")} }}')
    lines += [
        "[drives.device]",
        'kind = "null"',
        f"capacity_bytes = {capacity_mib(asked) << 20}",
        f"latency_ns = {1000 * asked.latency_us}",
        f"queue_depth = {asked.drive_depth}",
        f"gap_ns = {GAP_NS}",
    ]
    return "\n".join(lines)


XFS_COSTS = """\
application = 6000, begin = 26000, inode = 30000, entry = 22000, scan_block = 4, commit = 18000, commit_locked = 1500, \
end = 10000, close = 6000, unlink = 60000, allocate = 6000, hand_over = 800, checkpoint_block = 1500"""
"""As in machines/vm-xfs.toml; a load on files that exist hardly spends them."""
_OWN = {"xfs": f", ag_count = 4, log_blocks = 16384, cycles = {{ {XFS_COSTS} }}"}


def capacity_mib(asked: Configuration) -> int:
    needed = asked.files_mib + TARGET_SPARE_MIB
    return max(needed, XFS_MIB) if asked.filesystem == "xfs" else needed


def _load(asked: Configuration) -> list[str]:
    lines = [f"[workloads.{WORKLOAD}]", 'kind = "mix"', 'warm_up = "250ms"', f'duration = "{asked.duration_ms}ms"']
    lines += ["cut_transient = false", "drop_caches = false"]
    for key, line in (("io_cost_model", asked.cost_model), ("io_cost_qos", asked.cost_qos)):
        lines += [f'{key} = "{line}"'] if line else []
    in_groups = any(job.has_group for job in asked.jobs)
    for name, job in zip(names(asked), asked.jobs, strict=True):
        if in_groups:
            limits = ", ".join(f"{key} = {limit}" for key, limit in job.io_max.items())
            lines += [f"[workloads.{WORKLOAD}.groups.of-{name}]", *([f"io_max = {{ {limits} }}"] if limits else [])]
            lines += [f"io_weight = {job.io_weight}"] if job.io_weight else []
            lines += [f'io_latency = "{job.io_latency_us}us"'] if job.io_latency_us else []
            lines += [f'io_prio_class = "{job.io_prio_class}"'] if job.io_prio_class else []
        lines += [f"[workloads.{WORKLOAD}.jobs.{name}]", *_job(asked, job)]
        lines += [f'group = "of-{name}"'] if in_groups else []
    return lines


def names(asked: Configuration) -> list[str]:
    """Of the jobs."""
    return [f"j{number}" for number in range(len(asked.jobs))]


def _job(asked: Configuration, job: Job) -> list[str]:
    lines = [
        f'pattern = "{job.pattern}"',
        f"read_percent = {job.read_percent}",
        f'block_size = "{job.block_kib}KiB"',
        f'engine = "{"psync" if job.depth == 1 else "libaio"}"',
        f"queue_depth = {job.depth}",
        f"jobs = {job.copies}",
        f'file_size = "{asked.file_mib}MiB"',
        f"direct = {str(job.direct).lower()}",
        f"layout = {str(asked.filesystem != 'none').lower()}",
    ]
    if job.think_ms:
        lines += [f'think_time = "{job.think_ms}ms"', f"think_every = {job.think_every}"]
    if job.fsync_every:
        lines.append(f"fsync_every = {job.fsync_every}")
    return lines


def _setting(asked: Configuration) -> list[str]:
    tunables = "".join(f", {name} = {value}" for name, value in sorted(asked.tunables.items()))
    lines = [f"[settings.{SETTING}]", f'scheduler = {{ name = "{asked.scheduler}"{tunables} }}']
    if asked.nr_requests:
        lines.append(f"nr_requests = {asked.nr_requests}")
    if asked.dirty_percent:
        lines.append(f"dirty_ratio = {asked.dirty_percent}")
        lines.append(f"dirty_background_ratio = {asked.dirty_percent // 2}")
    return lines
