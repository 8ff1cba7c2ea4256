"""Small modelled machines, and experiments on them."""

from __future__ import annotations

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
