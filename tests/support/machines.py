"""Small simulated machines, and experiments on them."""

from pathlib import Path

MACHINE = """\
title = "Two drives for tests"
kernel = "2.6.35"

[cpus]
count = 2
time_slice_ns = 100000000
call_ns = 2000
completion_ns = 2000
page_copy_ns = 1000
jitter = 0.05

[memory]
bytes = 67108864

[[drives]]
device = "quick"
filesystem = { kind = "ext3" }
scheduler = { name = "cfq" }

[[drives]]
device = { kind = "null", capacity_bytes = 1073741824, latency_ns = 50000, queue_depth = 8 }
scheduler = { name = "noop" }
"""
DETAILED = """\
title = "Four CPUs in two cells, for tests"
kernel = "2.6.24-kthread"

[cpus]
topology = { numa_nodes = 2, sockets_per_node = 2, cores_per_socket = 1, threads_per_core = 1 }
clock_hz = 1000000000
transfer_cycles = [30, 100, 240, 700]
computing_stall_per_mille = 500
submit_cycles = 5000
user_cycles = 500
reap_cycles = 1000
page_copy_cycles = 3000
jitter = 0.0

[cpus.interrupts]
send_cycles = 700
latency_ns = 1500
latency_other_node_ns = 2500
receive_cycles = 1500

[cpus.scheduling]
time_slice_ns = 100000000
preempt_after_ns = 100000000
wake_cycles = 900
switch_cycles = 1600
task_lines = 3
run_queue_lines = 2
migrates_within = "machine"

[completion]
interrupt_cycles = 5000
interrupt_stalled_cycles = 2000
softirq_cycles = 300
complete_cycles = 4000
enter_cycles = 2000
hand_over_cycles = 200
splice_cycles = 200
local_cycles = 0
call_ns = 1000
shares_cache = "socket"
request_lines = 4
bio_lines = 2
control_block_lines = 7
list_lines = 2

[[drives]]
count = 2
device = "quick"
scheduler = { name = "noop" }
interrupt_cpus = [0, 3]
"""
QUICK = """\
# A device that takes 0.1 ms for everything.
kind = "null"
capacity_bytes = 1073741824
latency_ns = 100000
queue_depth = 4
"""
READS = """\
[workloads.reads]
file_size = "4MiB"
queue_depth = 2
duration = "20ms"
"""


def write_machine(directory: Path, machine: str = MACHINE, device: str = QUICK) -> None:
    """`model:small.toml` for an experiment in the directory."""
    (directory / "small.toml").write_text(machine)
    (directory / "devices").mkdir(exist_ok=True)
    (directory / "devices" / "quick.toml").write_text(device)


def line_of(text: str, start: str) -> int:
    """The number of the first line that begins so."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith(start))
