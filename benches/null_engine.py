"""CPU time of the load generator per I/O: random 4 KiB reads that complete at once, without a
system call, at queue depth 32. Each has a time stamp and a histogram entry. The peer is fio's null
engine, one by one (its default) and in batches of 8.
"""

from functools import partial
from pathlib import Path

import fio
import ours
from alternate import alternate, cpu
from result import Result, bounded, paired

LIMIT_NS = 40.0
SIZE_BYTES = 1 << 40


def measure(quick: bool) -> list[Result]:
    warm_up_s, duration_s, rounds = (0.1, 0.3, 2) if quick else (0.5, 2.0, 7)
    options = {"engine": "null", "pattern": "random", "queue_depth": 32}
    options |= {"warm_up": f"{warm_up_s:g}s", "duration": f"{duration_s:g}s"}
    reads = ["--ioengine=null", "--rw=randread", "--bs=4k", "--iodepth=32", f"--size={SIZE_BYTES}"]
    one_by_one = fio.command(*reads, warm_up_s=warm_up_s, duration_s=duration_s)
    batches = [
        *one_by_one,
        "--iodepth_batch_submit=8",
        "--iodepth_batch_complete_min=8",
        "--iodepth_batch_complete_max=8",
    ]
    samples = alternate(
        {
            "iolab": partial(ours.run, ours.phase(Path("null"), SIZE_BYTES, options)),
            "fio": partial(fio.run, one_by_one),
            "fio in batches": partial(fio.run, batches),
        },
        rounds,
    )
    commands = [ours.describe(options), " ".join(one_by_one), " ".join(batches)]
    own = cpu(samples["iolab"])
    absolute = bounded("engine CPU per I/O, null, QD 32", "ns", own, limit=LIMIT_NS, commands=commands)
    against = [
        paired(f"engine CPU per I/O against {peer}", "ns", own, cpu(samples[peer]), f"{peer}, null", commands=commands)
        for peer in ("fio", "fio in batches")
    ]
    return [absolute, *against]
