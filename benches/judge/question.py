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
REAP_CALL_NS = 3100
"""Of io_getevents, in a guest of 6.1.0-56 before null_blk: a read alone takes 12,366 instructions by psync and 15,467
by libaio."""
FURTHER_OP_NS = {
    "6.1.192": {"none": 6500, "mq-deadline": 4060, "kyber": 4880, "bfq": 3100},
    "6.12.117": {"none": 6500, "mq-deadline": 5160, "kyber": 5980, "bfq": 4300},
}
"""Of an operation that is not the first of its io_submit. In the same guest a read takes 11,127 instructions as one of
two and 7,459 as one of eight that are submitted at once, so that further ones take 6,787 and 6,315. Four at once take
27.5 us beyond the latency of a drive of 200 us without a scheduler, and with one no more than a single read does plus 0
to 3.4 us for each further one, of which the model counts the rest in the scheduler and in the run of the queue."""
FURTHER_PAGE_NS = {BARE: 430, "ext4": 2600, "xfs": 2600}
"""Of each page of a direct operation after the first, by psync in a guest of 6.1.0-56: from 4 to 64 KiB reads take
12,430 and 18,389 instructions on the drive itself, writes 17,865 and 24,912; on ext4 15,973 and 45,213, 17,312 and
50,760, as null_blk then copies each page (512 steps of 8 bytes, which the count takes for one instruction). Means of
reads and writes; on XFS as on ext4 (inferred)."""
TIMER_INTERRUPTS = {
    "first_ns": 3800,
    "further_ns": 2200,
    "calls_thread_ns": 3200,
    "switch_ns": 1200,
    "thread_ns": 2900,
    "thread_ends_ns": 3000,
    "dequeue_ns": 800,
    "issue_ns": 1300,
    "after_issue_ns": 3500,
}
"""Of the guest's one CPU, by events hrtimer_start and hrtimer_expire_entry in a guest of 6.12.117 whose drive completes
by timers (`irqmode` 2), less 0.3 us for each event, which is inferred, and rounded: eight timers that a run of the
queue starts expire 1.3 us after one another, those of requests taken one at a time 2.1; passes of an interrupt begin
4.5 us after each other if the first completes one request, 7.9 if that calls the queue's thread, and 2.6 for each
further one; 3.2 us pass from the last one to the thread's first timer. With 2.9 the first request is sent 9.9 us after
a completion, as in twelve guests of one command. `after_issue_ns` is what is left of the CPU time of a read (sixteen
tasks that have no other: 17.7 us under mq-deadline, 18.0 Kyber, 19.7 BFQ in 6.1.0-56; 14.2, 14.9, 16.4 in 6.12.117)
when those parts and the time until it is sent are taken away: 2.6 to 3.9."""
CALL_NS = {
    "6.1.192": {"none": 7200, "mq-deadline": 10_670, "kyber": 11_700, "bfq": 10_300},
    "6.12.117": {"none": 7900, "mq-deadline": 7700, "kyber": 8950, "bfq": 7500},
}
"""Of a read: what a guest takes beyond the latency of its drive for one at a time (6.1.0-56: 8.7, 14.0, 14.1 and 16.6
us; 6.12.117: 9.4, 11.0, 11.3 and 13.8), less the interrupt and what the model's scheduler takes, with
`after_issue_ns`."""
START_NS, START_IN_GROUPS_NS = 7_977_000, 3_985_000
"""What the guest's agent has of the CPU after it has made the tasks of a load and before they begin, while it waits for
a tick (crates/measure/guest-agent/src/tick.rs), which is the next one or the one after: `sched_stat_runtime` in a guest
of 6.1.0-56, and `sched_switch` in one whose tasks are in control groups. Less than 6 ms let tasks begin behind by what
their forks cost them, the first the most."""
BESIDE_IN_PROCESSES, START_OP_NS = 2, 13_000
"""Of loads that are a process for each group: each process makes its task when the agent, which goes on, has told it to
(crates/measure/guest-agent/src/members.rs); until its first operation a task of depth 16 has the CPU for 0.2 ms more
than one of depth 1 (`sched_switch` in a guest of 6.1.192)."""
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
        f"call_ns = {CALL_NS[UPSTREAM[asked.kernel]][asked.scheduler or 'none']}",
        "completion_ns = 5000",
        f"timer_interrupts = {{ {', '.join(f'{key} = {ns}' for key, ns in TIMER_INTERRUPTS.items())} }}",
        f"reap_call_ns = {REAP_CALL_NS}",
        f"further_op_ns = {FURTHER_OP_NS[UPSTREAM[asked.kernel]][asked.scheduler or 'none']}",
        f"further_page_ns = {FURTHER_PAGE_NS[asked.filesystem]}",
        *([f"start = {{ {_start(asked, in_groups)} }}"] if has_debit else []),
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
    ]
    return "\n".join(lines)


def _start(asked: Configuration, in_groups: bool) -> str:
    if asked.has_processes:
        return f"beside = {BESIDE_IN_PROCESSES}, op_ns = {START_OP_NS}"
    return f"lead_ns = {START_IN_GROUPS_NS if in_groups else START_NS}"


XFS_COSTS = """\
application = 6000, begin = 26000, inode = 30000, entry = 22000, scan_block = 4, commit = 18000, commit_locked = 1500, \
end = 10000, close = 6000, unlink = 60000, allocate = 6000, hand_over = 800, checkpoint_block = 1500, \
convert = 12700, force = 6600, flush = 30000"""
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
